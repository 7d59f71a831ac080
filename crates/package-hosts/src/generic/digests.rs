//! Digests that clients announce of what they send, in the forms that are in use.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_core::hex;

/// Bytes of a SHA-256 and of a SHA-512.
const SHA256: usize = 32;
const SHA512: usize = 64;
/// Headers with a list of algorithms and digests in base64: `Digest` has them as they are, the others between colons.
const LISTS: [&str; 3] = ["digest", "content-digest", "repr-digest"];
const IN_HEX: &str = "x-checksum-sha256";

/// The digests that a body must have, in lower-case hex.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Announced {
    sha256: Vec<String>,
    sha512: Vec<String>,
}

impl Announced {
    /// Reads the headers of a request.
    ///
    /// # Errors
    /// A digest that cannot be read, or a header with none that is verified here.
    pub(super) fn of(headers: &HeaderMap) -> Result<Announced, String> {
        let mut announced = Announced::default();
        for header in LISTS {
            let values: Vec<_> = headers.get_all(header).into_iter().collect();
            let mut is_verified = values.is_empty();
            for value in values {
                let text = value.to_str().map_err(|_| format!("the header {header} is not ASCII"))?;
                for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
                    is_verified |= announced.add(header, entry)?;
                }
            }
            if !is_verified {
                return Err(format!(
                    "the header {header} has no sha-256 or sha-512, which alone are verified: add sha-256"
                ));
            }
        }
        for value in headers.get_all(IN_HEX) {
            let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
            if bytes_of(&text).is_none_or(|bytes| bytes.len() != SHA256) {
                return Err(format!("the header {IN_HEX} must have 64 digits in hex"));
            }
            announced.sha256.push(text);
        }
        Ok(announced)
    }

    /// Adds an entry of a list; whether it is of an algorithm that is verified.
    fn add(&mut self, header: &str, entry: &str) -> Result<bool, String> {
        let (algorithm, value) = entry.split_once('=').unwrap_or((entry, ""));
        let (digests, length) = match algorithm.trim().to_ascii_lowercase().as_str() {
            "sha-256" => (&mut self.sha256, SHA256),
            "sha-512" => (&mut self.sha512, SHA512),
            _ => return Ok(false),
        };
        let between = || value.strip_prefix(':')?.split_once(':').map(|(value, _)| value);
        let encoded = if header == LISTS[0] { Some(value) } else { between() };
        let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok()).filter(|bytes| bytes.len() == length);
        let bytes = bytes.ok_or_else(|| {
            let example = if header == LISTS[0] { "sha-256=BASE64" } else { "sha-256=:BASE64:" };
            format!("the digest {algorithm} in the header {header} cannot be read: write it as {example}")
        })?;
        digests.push(hex(&bytes));
        Ok(true)
    }

    /// Compares them with those of the bytes that came.
    ///
    /// # Errors
    /// One of them differs.
    pub(super) fn require(&self, sha256: &str, sha512: &str) -> Result<(), String> {
        for (name, announced, found) in [("SHA-256", &self.sha256, sha256), ("SHA-512", &self.sha512, sha512)] {
            if let Some(other) = announced.iter().find(|digest| *digest != found) {
                return Err(format!(
                    "the body has the {name} {found}, and the request says {other}: send the file again"
                ));
            }
        }
        Ok(())
    }
}

/// A digest in hex as headers have it.
pub(super) fn base64_of(text: &str) -> Option<String> {
    bytes_of(text).map(|bytes| STANDARD.encode(bytes))
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?);
    text.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    /// SHA-256 of `abc`.
    const HEX: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const BASE64: &str = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";

    fn read(name: &'static str, value: &str) -> Result<Announced, String> {
        Announced::of(&HeaderMap::from_iter([(
            name.parse().expect("a name"),
            value.parse::<HeaderValue>().expect("a value"),
        )]))
    }

    #[test]
    fn digests_are_read_in_all_forms() {
        assert_eq!(base64_of(HEX).as_deref(), Some(BASE64));
        for (name, value) in [
            ("digest", format!("sha-256={BASE64}")),
            ("digest", format!("md5=abc, SHA-256={BASE64}")),
            ("content-digest", format!("sha-256=:{BASE64}:")),
            ("repr-digest", format!("unknown=:YQ==:, sha-256=:{BASE64}:;x=1")),
            ("x-checksum-sha256", HEX.to_uppercase()),
        ] {
            let announced = read(name, &value).expect(&value);
            assert_eq!(announced, Announced { sha256: vec![HEX.into()], sha512: Vec::new() }, "{name}: {value}");
            assert_eq!(announced.require(HEX, ""), Ok(()));
            assert!(
                announced.require(&HEX.replace('b', "c"), "").expect_err("another").contains("send the file again")
            );
        }
        let wide = STANDARD.encode([7; SHA512]);
        let announced = read("repr-digest", &format!("sha-512=:{wide}:")).expect("a digest");
        assert!(announced.require("", &"07".repeat(SHA512)).is_ok() && announced.require("", "07").is_err());
        assert_eq!(Announced::of(&HeaderMap::new()), Ok(Announced::default()));
    }

    #[test]
    fn digests_that_cannot_be_verified_are_refused() {
        for (name, value, wanted) in [
            ("digest", "md5=kAFQmDzST7DWlj99KOF/cg==".to_owned(), "has no sha-256"),
            ("content-digest", String::new(), "has no sha-256"),
            ("digest", format!("sha-256=:{BASE64}:"), "write it as sha-256=BASE64"),
            ("repr-digest", format!("sha-256={BASE64}"), "write it as sha-256=:BASE64:"),
            ("repr-digest", "sha-256=:YQ==:".into(), "cannot be read"),
            ("x-checksum-sha256", HEX[1..].to_owned(), "64 digits"),
            ("x-checksum-sha256", "z".repeat(64), "64 digits"),
        ] {
            let refused = read(name, &value).expect_err(&value);
            assert!(refused.contains(wanted), "{name}: {value}: {refused}");
        }
    }
}
