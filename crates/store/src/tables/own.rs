//! The tables that this crate owns.

use super::{OnDelete, TableDeclaration, reference, value};

/// Every table of this crate, with what its columns hold.
pub const TABLES: &[TableDeclaration] = &[
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
