//! Package URLs: how the formats of exchange name what they judge.

use std::collections::BTreeMap;

/// The parts of a package URL, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Purl {
    pub(crate) kind: String,
    /// Segments before the name, without empty ones.
    pub(crate) namespace: Vec<String>,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) qualifiers: BTreeMap<String, String>,
}

/// The qualifier that says where a component lies. It is ours alone.
pub(crate) const LOCATION: &str = "location";

/// Whether a text may stand as the type of a package URL.
pub(crate) fn is_kind(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c))
}

impl Purl {
    /// Reads a package URL; a path inside the package is not kept.
    pub(crate) fn parse(text: &str) -> Result<Purl, String> {
        let wrong = |what: &str| format!("{text:?} is no package URL: {what}");
        let rest = text.strip_prefix("pkg:").ok_or_else(|| wrong("it does not begin with pkg:"))?;
        let rest = rest.split('#').next().unwrap_or_default().trim_start_matches('/');
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (kind, path) = path.split_once('/').ok_or_else(|| wrong("it has no name"))?;
        let kind = kind.to_ascii_lowercase();
        if !is_kind(&kind) {
            return Err(wrong("its type is none"));
        }
        let decoded = |text: &str| decode(text).ok_or_else(|| wrong("it has a wrong percent sign"));
        // The version follows the last @ that is not part of a scope at the beginning of a segment.
        let (path, version) = match path.rfind('@') {
            Some(at) if at > 0 && !path[..at].ends_with('/') => (&path[..at], decoded(&path[at + 1..])?),
            _ => (path, String::new()),
        };
        let segments = path.split('/').filter(|segment| !segment.is_empty()).map(decoded);
        let mut namespace: Vec<String> = segments.collect::<Result<_, _>>()?;
        let name = namespace.pop().filter(|name| !name.is_empty()).ok_or_else(|| wrong("it has no name"))?;
        let mut qualifiers = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| wrong("a qualifier has no value"))?;
            let known = qualifiers.insert(name.to_ascii_lowercase(), decoded(value)?);
            if known.is_some() {
                return Err(wrong("a qualifier is there twice"));
            }
        }
        qualifiers.retain(|_, value| !value.is_empty());
        let parts = namespace.iter().chain([&name, &version]).chain(qualifiers.values());
        if parts.into_iter().any(|part| part.chars().any(char::is_control)) {
            return Err(wrong("it has a control character"));
        }
        Ok(Purl { kind, namespace, name, version, qualifiers })
    }

    /// With the place that an id adds to it, if it is an id of ours.
    pub(crate) fn located_by(self, id: &str) -> Purl {
        let Ok(located) = Purl::parse(id) else { return self };
        let mut plain = located.clone();
        plain.qualifiers.remove(LOCATION);
        if plain == self { located } else { self }
    }

    /// The same without a version.
    pub(crate) fn unversioned(&self) -> Purl {
        Purl { version: String::new(), ..self.clone() }
    }
}

impl std::fmt::Display for Purl {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "pkg:{}/", self.kind)?;
        for segment in &self.namespace {
            write!(out, "{}/", encode(segment))?;
        }
        out.write_str(&encode(&self.name))?;
        if !self.version.is_empty() {
            write!(out, "@{}", encode(&self.version))?;
        }
        for (at, (name, value)) in self.qualifiers.iter().enumerate() {
            write!(out, "{}{name}={}", if at == 0 { '?' } else { '&' }, encode(value))?;
        }
        Ok(())
    }
}

/// Writes everything but letters, digits and `.-_~` as percent signs and digits.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b".-_~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The inverse of `encode`, if the text is well formed.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            let digits = rest.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn package_urls_of_others_are_read() {
        for (text, kind, namespace, name, version) in [
            ("pkg:apk/wolfi/curl@8.5.0-r0?arch=x86_64", "apk", "wolfi", "curl", "8.5.0-r0"),
            ("pkg:npm/%40scope/name@1.0.0", "npm", "@scope", "name", "1.0.0"),
            ("pkg:npm/@scope/name", "npm", "@scope", "name", ""),
            ("pkg:golang/github.com/a/b@v1.2.3#sub/path", "golang", "github.com/a", "b", "v1.2.3"),
            ("pkg:oci/nginx@sha256%3Aabc?repository_url=example.com%2Facme%2Fnginx", "oci", "", "nginx", "sha256:abc"),
            ("pkg:PyPI/urllib3", "pypi", "", "urllib3", ""),
        ] {
            let purl = Purl::parse(text).expect(text);
            let read = (purl.kind.as_str(), purl.namespace.join("/"), purl.name.as_str(), purl.version.as_str());
            assert_eq!(read, (kind, namespace.to_owned(), name, version), "{text}");
        }
        for wrong in ["", "curl", "pkg:", "pkg:apk", "pkg:apk/", "pkg:a b/c", "pkg:apk/%zz", "pkg:apk/a?b", "pkg:apk/%"]
        {
            assert!(Purl::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            kind in "[a-z][a-z0-9.-]{0,6}",
            namespace in proptest::collection::vec("\\PC{1,8}", 0..3),
            name in "\\PC{1,12}",
            version in "\\PC{0,12}",
            qualifiers in proptest::collection::btree_map("[a-z_]{1,8}", "\\PC{1,8}", 0..3),
        ) {
            let purl = Purl { kind, namespace, name, version, qualifiers };
            let text = purl.to_string();
            prop_assert_eq!(Purl::parse(&text), Ok(purl), "{}", text);
        }

        #[test]
        fn noise_does_no_harm(text in "(pkg:)?[a-z%@/?&=#\\PC]{0,40}") {
            let _ = Purl::parse(&text);
        }
    }
}
