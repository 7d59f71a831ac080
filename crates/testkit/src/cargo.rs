//! Crates of some hundred bytes, and the bodies that publish them.

use serde_json::{Value, json};

use crate::tarball::tarball;

/// The archive of a version, with more lines of its package.
pub fn archive(name: &str, version: &str, more: &str) -> Vec<u8> {
    let manifest = format!("[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\n{more}");
    tarball(&[
        (format!("{name}-{version}/Cargo.toml"), manifest.into_bytes()),
        (format!("{name}-{version}/src/lib.rs"), b"pub fn answer() -> u32 {\n    42\n}\n".to_vec()),
    ])
}

/// What cargo says of a version.
pub fn announced(name: &str, version: &str) -> Value {
    json!({ "name": name, "vers": version, "deps": [], "features": {}, "authors": [], "license": "MIT" })
}

/// The body that publishes an archive.
pub fn body(announced: &Value, archive: &[u8]) -> Vec<u8> {
    let text = announced.to_string().into_bytes();
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("a short text").to_le_bytes();
    [&length(&text)[..], &text, &length(archive), archive].concat()
}
