//! Lists of signing keys of other registries: requested, and read.

use axum::http::header;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_authn::package_key::is_public_key;
use bowline_core::{Micros, rfc3339};
use bowline_libraries::hosting::{Answer, Ask, NewDocument, PackageSigningKey, UpstreamDocument};
use serde::Deserialize;
use serde_json::Value;

use super::documents::KEY_TYPE;
use crate::PackageHosts;
use crate::fetching::{self, text_of};

const ACCEPT: &str = "application/json";
/// Maximum number of keys of a list, and characters of the id of one.
const KEYS: usize = 100;
const KEYID: usize = 200;

/// What the upstream answers.
pub(super) async fn answer(hosts: &PackageHosts, ask: &Ask) -> Result<Answer, String> {
    let address = format!("{}/{}", ask.upstream.url.trim_end_matches('/'), ask.package);
    let opened = match fetching::requested_page(hosts, ask, (&address, ACCEPT)).await? {
        Ok((opened, _)) => opened,
        Err(answer) => return Ok(answer),
    };
    let (etag, last_modified) = (text_of(&opened, header::ETAG), text_of(&opened, header::LAST_MODIFIED));
    let signing_keys = read(&fetching::page(opened).await?)?;
    let document = UpstreamDocument { signing_keys, ..UpstreamDocument::default() };
    Ok(Answer::Document(Box::new(NewDocument { etag, last_modified, document, ..NewDocument::default() })))
}

#[derive(Deserialize)]
#[serde(expecting = "a list of keys as an object")]
struct KeyDocument {
    /// Read one by one: an odd one does not take the others with it.
    keys: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "a key as an object")]
struct KeyEntry {
    keyid: String,
    #[serde(default)]
    keytype: String,
    #[serde(default)]
    scheme: String,
    key: String,
    expires: Option<String>,
}

impl KeyEntry {
    /// The key, if clients can verify with it. One whose end cannot be read is left out: it may have ended.
    fn usable(&self) -> Option<PackageSigningKey> {
        let is_id = |text: &str| (1..=KEYID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_of_type = self.keytype == KEY_TYPE && self.scheme == KEY_TYPE;
        let public_key = STANDARD.decode(&self.key).ok().filter(|der| is_public_key(der))?;
        let expires_micros = self.expires.as_deref().map_or(Some(0), end)?;
        (is_of_type && is_id(&self.keyid)).then(|| PackageSigningKey {
            keyid: self.keyid.clone(),
            public_key,
            expires_micros,
        })
    }
}

/// The end of a key; a date stands for its first moment.
fn end(text: &str) -> Option<Micros> {
    rfc3339::parse_micros(text)
        .or_else(|| rfc3339::parse_micros(&format!("{text}T00:00:00Z")))
        .filter(|micros| *micros != 0)
}

/// The keys of a list that clients can verify with, each id once.
fn read(body: &[u8]) -> Result<Vec<PackageSigningKey>, String> {
    let list: KeyDocument =
        serde_json::from_slice(body).map_err(|error| format!("the list of signing keys does not parse: {error}"))?;
    if list.keys.len() > KEYS {
        return Err(format!("the list of signing keys has more than {KEYS}"));
    }
    let mut keys: Vec<PackageSigningKey> = Vec::new();
    let entries = list.keys.into_iter().filter_map(|entry| serde_json::from_value::<KeyEntry>(entry).ok());
    for key in entries.filter_map(|entry| entry.usable()) {
        if !keys.iter().any(|known| known.keyid == key.keyid) {
            keys.push(key);
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A key of the public registry.
    const KNOWN: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEY6Ya7W++7aUPzvMTrezH6Ycx3c+HOKYCcNGybJZSCJq/fd7Qa8uuAKtdIkUQtQiEKER\
                         hAmE5lMMJhP8OkDOa2g==";

    fn key(keyid: &str, more: Value) -> Value {
        let mut key = json!({ "keyid": keyid, "keytype": KEY_TYPE, "scheme": KEY_TYPE, "key": KNOWN, "expires": null });
        for (member, value) in more.as_object().expect("an object") {
            key[member] = value.clone();
        }
        key
    }

    #[test]
    fn a_list_has_the_keys_that_clients_can_verify_with() {
        let list = json!({ "keys": [
            key("a", json!({})),
            key("b", json!({ "expires": "2025-01-29T00:00:00.000Z" })),
            key("c", json!({ "expires": "2025-01-29" })),
            key("a", json!({ "expires": "2025-01-29" })),
            key("d", json!({ "expires": "soon" })),
            json!(7),
            key("d", json!({ "expires": 7 })),
            json!({ "keyid": "d" }),
            key("e", json!({ "scheme": "rsa" })),
            key("f", json!({ "keytype": "rsa" })),
            key("g", json!({ "key": "AAAA" })),
            key("", json!({})),
            key("h\n", json!({})),
            key(&"i".repeat(201), json!({})),
        ] });
        let keys = read(list.to_string().as_bytes()).expect("a list");
        let read: Vec<(&str, Micros)> = keys.iter().map(|key| (key.keyid.as_str(), key.expires_micros)).collect();
        let end = 1_738_108_800_000_000;
        assert_eq!(read, [("a", 0), ("b", end), ("c", end)]);
        assert_eq!(keys[0].public_key, STANDARD.decode(KNOWN).expect("base64"));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "[]", "{}", "{\"keys\":7}", "<html>"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        let many: Vec<Value> = (0..=KEYS).map(|number| key(&number.to_string(), json!({}))).collect();
        assert!(read(json!({ "keys": many }).to_string().as_bytes()).is_err());
    }
}
