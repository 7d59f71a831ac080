//! The tables that this crate owns.

use bowline_store::tables::{OnDelete, TableDeclaration, reference, value};

/// Every table of this crate, with what its columns hold.
pub const TABLES: &[TableDeclaration] = &[
    TableDeclaration {
        name: "audit",
        columns: &[
            reference("org", "groups", OnDelete::Keep("a record of the past")),
            reference("actor", "identities", OnDelete::Keep("a record of the past")),
            value("method"),
            value("request_id"),
            value("kind"),
            reference("resource", "*", OnDelete::Keep("a record of the past")),
            value("before_type"),
            value("before_hash"),
            value("after_type"),
            value("after_hash"),
            value("org_hash"),
            value("hash"),
            value("before_image"),
            value("after_image"),
        ],
    },
    TableDeclaration {
        name: "audit_chains",
        columns: &[
            reference("org", "groups", OnDelete::Keep("a record of the past")),
            value("hash"),
            value("pruned_hash"),
        ],
    },
    TableDeclaration {
        name: "audit_days",
        columns: &[reference("org", "groups", OnDelete::Keep("a record of the past")), value("kind")],
    },
    TableDeclaration { name: "leases", columns: &[value("name"), value("holder")] },
    TableDeclaration {
        name: "outbox",
        columns: &[
            value("event_type"),
            reference("org", "groups", OnDelete::Keep("an event outlives what it tells of")),
            reference("group_uid", "groups", OnDelete::Keep("an event outlives what it tells of")),
            reference("subject", "*", OnDelete::Keep("an event outlives what it tells of")),
            value("method"),
            reference("actor", "identities", OnDelete::Keep("an event outlives what it tells of")),
            value("extensions"),
            value("body_type"),
            value("body"),
        ],
    },
    TableDeclaration { name: "revisions", columns: &[value("name")] },
];
