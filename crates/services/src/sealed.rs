//! Which stored values are sealed with the key file: what a new key file has to seal again.

use bowline_identity::people;
use bowline_libraries::hosting::{signing, upstreams as package_upstreams};
use bowline_registry::content::replication::credentials as upstream_credentials;

/// A column of sealed values, empty where a row has none.
#[derive(Clone, Copy)]
pub struct SealedColumn {
    pub table: &'static str,
    /// Its primary key, a text.
    pub key: &'static str,
    /// The column with the sealed bytes.
    pub column: &'static str,
    /// What the value of a row is sealed for, by the row's primary key.
    pub context: fn(&str) -> String,
}

/// The sealed columns of the product domains; signing keys and the server's own secrets are the server's.
pub const SEALED_COLUMNS: [SealedColumn; 5] = [
    SealedColumn {
        table: "identity_providers",
        key: "uid",
        column: "client_secret",
        context: people::provider_secret_context,
    },
    SealedColumn {
        table: "operator_providers",
        key: "id",
        column: "client_secret",
        context: people::operator_secret_context,
    },
    SealedColumn { table: "package_signing_keys", key: "keyid", column: "sealed", context: signing::context },
    SealedColumn { table: "package_upstreams", key: "uid", column: "password", context: package_upstreams::context },
    SealedColumn {
        table: "registry_policies",
        key: "place",
        column: "upstream_password",
        context: upstream_credentials::context,
    },
];

/// Tables whose rows hold sealed values inside of other values, and live for minutes: a new key file ends them.
pub const SEALED_FOR_MINUTES: [&str; 2] = ["signin_flows", "device_codes"];
