//! The tables that this crate owns.

use bowline_store::tables::{OnDelete, TableDeclaration, message_with_ids, own_id, reference, value};

/// Every table of this crate, with what its columns hold.
pub const TABLES: &[TableDeclaration] = &[
    TableDeclaration {
        name: "advisories",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Restrict("advisories", Some("deleted_at IS NULL"))),
            own_id("org"),
            value("advisory_id"),
            value("legacy_id"),
            value("artifact_name"),
            value("artifact_type"),
            value("artifact_architecture"),
            value("component_name"),
            value("component_location"),
            value("component_type"),
            value("aliases"),
            value("first_alias"),
            value("author"),
        ],
    },
    TableDeclaration {
        name: "advisory_aliases",
        columns: &[value("alias"), reference("advisory", "advisories", OnDelete::Hook)],
    },
    TableDeclaration {
        name: "advisory_event_origins",
        columns: &[
            own_id("event"),
            reference("advisory", "advisories", OnDelete::Hook),
            value("source"),
            value("licence"),
        ],
    },
    TableDeclaration {
        name: "advisory_events",
        columns: &[
            own_id("uid"),
            reference("advisory", "advisories", OnDelete::Hook),
            own_id("org"),
            value("author"),
            value("reviewer"),
            message_with_ids("body", "chainguard.platform.vulnerabilities.v2.AdvisoryEvent", &["uid"]),
        ],
    },
    TableDeclaration {
        name: "advisory_settings",
        columns: &[reference("place", "groups", OnDelete::Delete), own_id("org")],
    },
    TableDeclaration {
        name: "advisory_words",
        columns: &[reference("advisory", "advisories", OnDelete::Hook), value("words")],
    },
    TableDeclaration {
        name: "package_matches",
        columns: &[
            value("package"),
            value("version"),
            value("origin"),
            value("record_id"),
            value("vulnerability"),
            value("aliases"),
            value("fixed_version"),
        ],
    },
    TableDeclaration { name: "record_affects", columns: &[value("package"), value("id"), value("ranges")] },
    TableDeclaration { name: "record_aliases", columns: &[value("alias")] },
    TableDeclaration { name: "record_bodies", columns: &[value("body")] },
    TableDeclaration {
        name: "record_imports",
        columns: &[own_id("uid"), value("source"), value("licence"), value("url")],
    },
    TableDeclaration {
        name: "record_sources",
        columns: &[value("name"), value("licence"), value("url"), value("malware_after"), value("matched_after")],
    },
    TableDeclaration {
        name: "records",
        columns: &[value("id"), value("digest"), value("licence"), value("severities")],
    },
    TableDeclaration {
        name: "waiting_advisories",
        columns: &[
            reference("advisory", "advisories", OnDelete::Keep("the task that matches deletes it")),
            value("alias"),
            reference("after_repo", "repos", OnDelete::Keep("a place in the order of images")),
            value("after_digest"),
        ],
    },
];
