//! JavaScript packages of some hundred bytes, and the documents that publish them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::tarball::tarball;

/// A tarball with this `package.json`.
pub fn package(manifest: &Value) -> Vec<u8> {
    tarball(&[
        ("package/package.json".into(), manifest.to_string().into_bytes()),
        ("package/index.js".into(), b"module.exports = 42\n".to_vec()),
    ])
}

/// What `package.json` of a version says.
pub fn manifest(name: &str, version: &str) -> Value {
    json!({ "name": name, "version": version, "license": "MIT", "main": "index.js" })
}

/// The document that publishes a tarball under a tag.
pub fn document(name: &str, version: &str, tag: &str, tarball: &[u8]) -> Value {
    json!({
        "_id": name,
        "name": name,
        "dist-tags": { tag: version },
        "versions": { version: { "name": name, "version": version, "dist": {} } },
        "access": null,
        "_attachments": { format!("{name}-{version}.tgz"): {
            "content_type": "application/octet-stream", "data": STANDARD.encode(tarball), "length": tarball.len(),
        } },
    })
}
