//! The tables that this crate owns.

use super::{OnDelete, TableDeclaration, reference, value};

/// Every table of this crate, with what its columns hold.
pub const TABLES: &[TableDeclaration] = &[
    TableDeclaration {
        name: "activity_days",
        columns: &[
            reference(
                "scope",
                "*",
                OnDelete::Keep("what happened counts for the groups above, until its day is too old"),
            ),
            reference(
                "identity",
                "identities",
                OnDelete::Keep("what happened outlives who did it, until it is too old"),
            ),
        ],
    },
    TableDeclaration {
        name: "activity_deltas",
        columns: &[
            reference("scope", "*", OnDelete::Keep("on its way into the days")),
            reference("identity", "identities", OnDelete::Keep("on its way into the days")),
        ],
    },
    TableDeclaration {
        name: "count_deltas",
        columns: &[
            value("collection"),
            reference("uid", "*", OnDelete::Keep("a change of a count on its way into the count")),
        ],
    },
    TableDeclaration {
        name: "counts",
        columns: &[
            value("collection"),
            reference("node", "*", OnDelete::Keep("a count falls to zero with the rows that it counts")),
        ],
    },
    TableDeclaration { name: "schema_migrations", columns: &[value("name")] },
];
