//! The tables that this crate owns.

use bowline_store::tables::{TableDeclaration, value};

/// Every table of this crate, with what its columns hold.
pub const TABLES: &[TableDeclaration] = &[
    TableDeclaration { name: "device_codes", columns: &[value("device_hash"), value("user_hash"), value("state")] },
    TableDeclaration { name: "signin_flows", columns: &[value("hash"), value("state")] },
];
