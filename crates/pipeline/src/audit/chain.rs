//! The hashes that tie the rows of the audit log together.
//!
//! Every organization has a chain of its own, so that it can verify what it may read; the server's chain runs
//! through all rows and takes in the organizations' hashes. Images enter by their hashes, so that they can be
//! erased. All numbers are eight bytes, the most significant first; every value is preceded by its length.

use bowline_authn::crypto::sha256;
use bowline_core::{Error, Micros, Result};

/// Bytes of a hash.
pub const HASH_LENGTH: usize = 32;

pub type Hash = [u8; HASH_LENGTH];

/// What a chain begins with.
pub(crate) const ORIGIN: Hash = [0; HASH_LENGTH];

const OF_ORGANIZATION: &[u8] = b"bowline audit row 1";
const OF_SERVER: &[u8] = b"bowline audit chain 1";

/// What of a row enters the chain of its organization.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the columns of the audit log")]
pub struct Link<'a> {
    pub org_seq: i64,
    pub at: Micros,
    pub org: &'a str,
    pub actor: &'a str,
    pub method: &'a str,
    pub request_id: &'a str,
    pub kind: &'a str,
    pub resource: &'a str,
    pub before_type: Option<&'a str>,
    pub before_hash: Option<&'a [u8]>,
    pub after_type: Option<&'a str>,
    pub after_hash: Option<&'a [u8]>,
}

/// The hash of a snapshot, as the row keeps it.
pub fn snapshot_hash(snapshot: &[u8]) -> Hash {
    sha256(snapshot)
}

/// The hash of a row in the chain of its organization.
pub fn organization_hash(previous: &Hash, link: &Link<'_>) -> Hash {
    let mut text = Vec::with_capacity(512);
    put(&mut text, OF_ORGANIZATION);
    put(&mut text, previous);
    put(&mut text, &link.org_seq.to_be_bytes());
    put(&mut text, &link.at.to_be_bytes());
    for part in [link.org, link.actor, link.method, link.request_id, link.kind, link.resource] {
        put(&mut text, part.as_bytes());
    }
    for part in
        [link.before_type.map(str::as_bytes), link.before_hash, link.after_type.map(str::as_bytes), link.after_hash]
    {
        // Absence is no empty value.
        text.push(u8::from(part.is_some()));
        put(&mut text, part.unwrap_or_default());
    }
    sha256(&text)
}

/// The hash of a row in the chain of all rows.
pub fn server_hash(previous: &Hash, seq: i64, organization_hash: &Hash) -> Hash {
    let mut text = Vec::with_capacity(160);
    for part in [OF_SERVER, previous, &seq.to_be_bytes(), organization_hash] {
        put(&mut text, part);
    }
    sha256(&text)
}

fn put(text: &mut Vec<u8>, part: &[u8]) {
    text.extend((part.len() as u64).to_be_bytes());
    text.extend(part);
}

pub(crate) fn stored(bytes: &[u8], what: &str) -> Result<Hash> {
    bytes.try_into().map_err(|_| Error::internal(format!("{what} is no hash: it has {} bytes", bytes.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link<'static> = Link {
        org_seq: 1,
        at: 2,
        org: "o",
        actor: "a",
        method: "m",
        request_id: "r",
        kind: "k",
        resource: "u",
        before_type: None,
        before_hash: None,
        after_type: Some("t"),
        after_hash: Some(&[1]),
    };

    #[test]
    fn every_part_counts() {
        let others = [
            Link { org_seq: 2, ..LINK },
            Link { at: 3, ..LINK },
            Link { org: "oa", actor: "", ..LINK },
            Link { method: "", request_id: "mr", ..LINK },
            Link { kind: "ku", resource: "", ..LINK },
            Link { before_type: Some(""), ..LINK },
            Link { before_hash: Some(&[]), ..LINK },
            Link { before_hash: Some(&[1]), after_hash: None, ..LINK },
            Link { after_type: Some("x"), ..LINK },
        ];
        let mut hashes: Vec<Hash> = others.iter().map(|link| organization_hash(&ORIGIN, link)).collect();
        hashes.push(organization_hash(&ORIGIN, &LINK));
        hashes.push(organization_hash(&[1; 32], &LINK));
        hashes.push(server_hash(&ORIGIN, 1, &ORIGIN));
        hashes.push(server_hash(&ORIGIN, 2, &ORIGIN));
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }
}
