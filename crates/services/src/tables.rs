//! The tables of subscriptions, those that the delivery to them keeps, and the names that are searched.

use bowline_store::tables::{OnDelete, TableDeclaration, own_id, reference, value};

/// Every table of this crate, with what its columns hold.
pub const TABLES: &[TableDeclaration] = &[
    TableDeclaration {
        name: "subscriptions",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Restrict("subscriptions", None)),
            own_id("org"),
            value("sink"),
        ],
    },
    TableDeclaration {
        name: "delivery_attempts",
        columns: &[
            reference("subscription", "subscriptions", OnDelete::Delete),
            value("event_id"),
            value("event_type"),
            reference("subject", "*", OnDelete::Keep("an event outlives what it tells of")),
            value("error"),
            value("response"),
        ],
    },
    TableDeclaration {
        name: "dead_letters",
        columns: &[
            reference("subscription", "subscriptions", OnDelete::Keep("swept after the subscription, by parts")),
            value("event_id"),
            value("last_error"),
            value("event_type"),
            reference("group_uid", "groups", OnDelete::Keep("an event outlives what it tells of")),
            reference("subject", "*", OnDelete::Keep("an event outlives what it tells of")),
            value("method"),
            reference("actor", "identities", OnDelete::Keep("an event outlives what it tells of")),
            value("extensions"),
            value("body_type"),
            value("body"),
        ],
    },
    TableDeclaration {
        name: "ended_subscriptions",
        columns: &[reference(
            "uid",
            "subscriptions",
            OnDelete::Keep("names what the dead letters of an ended subscription are swept by"),
        )],
    },
    TableDeclaration {
        name: "redeliveries",
        columns: &[reference("subscription", "subscriptions", OnDelete::Delete), value("event_id")],
    },
    TableDeclaration {
        name: "search_names",
        columns: &[
            reference("uid", "*", OnDelete::Keep("a trigger deletes the name with what has it")),
            own_id("org"),
            value("name"),
        ],
    },
    TableDeclaration {
        name: "subscription_cursors",
        columns: &[reference("subscription", "subscriptions", OnDelete::Delete), value("last_error")],
    },
];
