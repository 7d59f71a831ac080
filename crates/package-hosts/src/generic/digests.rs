//! Digests that clients announce of what they send, in the forms that are in use.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_core::hex;
use bowline_libraries::hosting::Checksums;

/// Algorithms that are verified, as messages name them, with the bytes of their digests.
const SHA256: (&str, usize) = ("SHA-256", 32);
const SHA512: (&str, usize) = ("SHA-512", 64);
const SHA1: (&str, usize) = ("SHA-1", 20);
const MD5: (&str, usize) = ("MD5", 16);
/// Headers with a list of algorithms and digests in base64: `Digest` has them as they are, the others between colons.
const LISTS: [&str; 3] = ["digest", "content-digest", "repr-digest"];
/// Headers with one digest in hex, and the one with a digest in base64.
const IN_HEX: [(&str, (&str, usize)); 3] =
    [("x-checksum-sha256", SHA256), ("x-checksum-sha1", SHA1), ("x-checksum-md5", MD5)];
const CONTENT_MD5: &str = "content-md5";

/// The digests that a body must have, in lower-case hex.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Announced(Vec<(&'static str, String)>);

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
        for (header, (name, length)) in IN_HEX {
            for value in headers.get_all(header) {
                let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
                if bytes_of(&text).is_none_or(|bytes| bytes.len() != length) {
                    return Err(format!("the header {header} must have {} digits in hex", 2 * length));
                }
                announced.0.push((name, text));
            }
        }
        for value in headers.get_all(CONTENT_MD5) {
            let bytes = STANDARD.decode(value.as_bytes()).ok().filter(|bytes| bytes.len() == MD5.1);
            let bytes = bytes.ok_or_else(|| format!("the header {CONTENT_MD5} must have an MD5 in base64"))?;
            announced.0.push((MD5.0, hex(&bytes)));
        }
        Ok(announced)
    }

    /// Adds an entry of a list; whether it is of an algorithm that is verified.
    fn add(&mut self, header: &str, entry: &str) -> Result<bool, String> {
        let (algorithm, value) = entry.split_once('=').unwrap_or((entry, ""));
        let (name, length) = match algorithm.trim().to_ascii_lowercase().as_str() {
            "sha-256" => SHA256,
            "sha-512" => SHA512,
            _ => return Ok(false),
        };
        let between = || value.strip_prefix(':')?.split_once(':').map(|(value, _)| value);
        let encoded = if header == LISTS[0] { Some(value) } else { between() };
        let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok()).filter(|bytes| bytes.len() == length);
        let bytes = bytes.ok_or_else(|| {
            let example = if header == LISTS[0] { "sha-256=BASE64" } else { "sha-256=:BASE64:" };
            format!("the digest {algorithm} in the header {header} cannot be read: write it as {example}")
        })?;
        self.0.push((name, hex(&bytes)));
        Ok(true)
    }

    /// Compares them with those of the bytes that came.
    ///
    /// # Errors
    /// One of them differs.
    pub(super) fn require(&self, sha256: &str, others: &Checksums) -> Result<(), String> {
        let digests = [(SHA256.0, sha256), (SHA512.0, &others.sha512), (SHA1.0, &others.sha1), (MD5.0, &others.md5)];
        let differs = |(name, announced): &&(&str, String)| !digests.contains(&(name, announced));
        let Some((name, announced)) = self.0.iter().find(differs) else { return Ok(()) };
        let found = digests.iter().find(|(of, _)| of == name).map_or("", |(_, found)| found);
        Err(format!("the body has the {name} {found}, and the request says {announced}: send the file again"))
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
            assert_eq!(announced, Announced(vec![("SHA-256", HEX.into())]), "{name}: {value}");
            assert_eq!(announced.require(HEX, &Checksums::default()), Ok(()));
            let refused = announced.require(&HEX.replace('b', "c"), &Checksums::default());
            assert!(refused.expect_err("another").contains("send the file again"));
        }
        let wide = STANDARD.encode([7; 64]);
        let announced = read("repr-digest", &format!("sha-512=:{wide}:")).expect("a digest");
        let others = Checksums { sha512: "07".repeat(64), sha1: "07".repeat(20), md5: "07".repeat(16) };
        assert!(announced.require("", &others).is_ok() && announced.require("", &Checksums::default()).is_err());
        for (name, value) in [
            ("x-checksum-sha1", "07".repeat(20)),
            ("x-checksum-md5", "07".repeat(16)),
            ("content-md5", STANDARD.encode([7; 16])),
        ] {
            let announced = read(name, &value).expect("a digest");
            assert!(
                announced.require("", &others).is_ok() && announced.require("", &Checksums::default()).is_err(),
                "{name}"
            );
        }
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
            ("x-checksum-sha1", HEX.to_owned(), "40 digits"),
            ("content-md5", HEX.to_owned(), "an MD5 in base64"),
        ] {
            let refused = read(name, &value).expect_err(&value);
            assert!(refused.contains(wanted), "{name}: {value}: {refused}");
        }
    }
}
