//! The tables that this crate owns.

use bowline_store::tables::{TableDeclaration, value};

/// Every table of this crate, with what its columns hold.
const TABLES: &[TableDeclaration] = &[
    TableDeclaration { name: "facts", columns: &[value("name"), value("value")] },
    TableDeclaration {
        name: "operator_providers",
        columns: &[
            value("id"),
            value("label"),
            value("issuer"),
            value("client_id"),
            value("client_secret"),
            value("scopes"),
        ],
    },
    TableDeclaration { name: "secrets", columns: &[value("name"), value("sealed")] },
    TableDeclaration { name: "signing_keys", columns: &[value("kid"), value("algorithm"), value("sealed")] },
];

/// The tables of all crates.
pub fn declared_tables() -> Vec<TableDeclaration> {
    [
        bowline_store::tables::TABLES,
        bowline_pipeline::TABLES,
        bowline_identity::TABLES,
        bowline_registry::TABLES,
        bowline_vulnerabilities::TABLES,
        bowline_libraries::TABLES,
        bowline_services::TABLES,
        bowline_signin::TABLES,
        TABLES,
    ]
    .concat()
}
