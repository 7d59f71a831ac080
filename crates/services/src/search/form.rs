//! The recognized form of a query, which depends only on its text.

/// What was typed or pasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Part of a name.
    Text,
    /// A digest with its algorithm.
    Digest(String),
    /// Id of a vulnerability or an advisory.
    Vulnerability(String),
    PackageUrl(String),
    Uidp(String),
    Reference(ImageReference),
}

/// An image reference, without the command and the scheme that it was pasted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImageReference {
    /// Path of the repository; its first part may be the host.
    pub(super) path: String,
    pub(super) tag: String,
    pub(super) digest: String,
}

/// Commands that image references are pasted with.
const COMMANDS: [&str; 7] = ["docker", "podman", "nerdctl", "crane", "skopeo", "oras", "cosign"];
/// Schemes that some tools write before image references.
const SCHEMES: [&str; 4] = ["docker://", "oci://", "https://", "http://"];
/// Prefixes of the ids of vulnerability databases.
const DATABASES: [&str; 5] = ["CVE-", "GHSA-", "GO-", "PYSEC-", "RUSTSEC-"];

impl Form {
    pub(super) fn of(query: &str) -> Form {
        let text = query.trim();
        if let Some(digest) = digest(text) {
            return Form::Digest(digest);
        }
        if bowline_core::Uidp::is_valid(text) {
            return Form::Uidp(text.to_owned());
        }
        if text.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("pkg:")) {
            return Form::PackageUrl(text.to_owned());
        }
        if is_vulnerability(text) {
            return Form::Vulnerability(text.to_uppercase());
        }
        reference(text).map_or(Form::Text, Form::Reference)
    }
}

/// A digest, also without its algorithm.
fn digest(text: &str) -> Option<String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    let is_hex = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| format!("sha256:{}", hex.to_ascii_lowercase()))
}

fn is_vulnerability(text: &str) -> bool {
    let upper = text.to_uppercase();
    let is_id = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    DATABASES.iter().any(|prefix| upper.strip_prefix(prefix).is_some_and(is_id)) || is_advisory_id(&upper)
}

/// Public ids of advisories: a prefix and three groups of four, as `BWL-2345-6789-CFGH`.
fn is_advisory_id(upper: &str) -> bool {
    let mut parts = upper.split('-');
    let is_prefix = |part: &str| (2..=10).contains(&part.len()) && part.starts_with(|c: char| c.is_ascii_uppercase());
    let is_group = |part: &str| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    parts.next().is_some_and(is_prefix) && parts.clone().count() == 3 && parts.all(is_group)
}

/// An image reference: with a slash, and with a command, a tag or a digest.
fn reference(text: &str) -> Option<ImageReference> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let is_command = COMMANDS.contains(&first);
    let reference = if is_command { words.find(|word| word.contains('/'))? } else { first };
    if !is_command && words.next().is_some() {
        return None;
    }
    let reference = SCHEMES.iter().find_map(|scheme| reference.strip_prefix(scheme)).unwrap_or(reference);
    let (name, digest) = match reference.split_once('@') {
        Some((name, text)) => (name, digest(text)?),
        None => (reference, String::new()),
    };
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, tag),
        _ => (name, ""),
    };
    let is_reference = path.contains('/') && (is_command || !tag.is_empty() || !digest.is_empty());
    is_reference.then(|| ImageReference { path: path.into(), tag: tag.into(), digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(path: &str, tag: &str, digest: &str) -> Form {
        Form::Reference(ImageReference { path: path.into(), tag: tag.into(), digest: digest.into() })
    }

    #[test]
    fn pasted_texts_are_taken_for_what_they_are() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let uidp = format!("{}/{}", "a".repeat(40), "b".repeat(16));
        for (text, form) in [
            (digest.clone(), Form::Digest(digest.clone())),
            (format!(" {} ", "AB".repeat(32)), Form::Digest(digest.clone())),
            (uidp.clone(), Form::Uidp(uidp)),
            ("pkg:pypi/requests@2".into(), Form::PackageUrl("pkg:pypi/requests@2".into())),
            ("cve-2026-1234".into(), Form::Vulnerability("CVE-2026-1234".into())),
            ("BWL-2345-6789-cfgh".into(), Form::Vulnerability("BWL-2345-6789-CFGH".into())),
            ("docker pull a.example/acme/web:1.2".into(), image("a.example/acme/web", "1.2", "")),
            ("docker pull --quiet a.example/acme/web".into(), image("a.example/acme/web", "", "")),
            (format!("localhost:5000/acme/web@{digest}"), image("localhost:5000/acme/web", "", &digest)),
            (format!("acme/web:1@{digest}"), image("acme/web", "1", &digest)),
            ("oci://a.example/acme/web:1".into(), image("a.example/acme/web", "1", "")),
        ] {
            assert_eq!(Form::of(&text), form, "{text}");
        }
    }

    #[test]
    fn everything_else_is_text() {
        for text in ["web", "acme/web", "@scope/name", "cve-", "web:1", "pull acme/web:1 now", "acme/web@sha256:12", ""]
        {
            assert_eq!(Form::of(text), Form::Text, "{text}");
        }
    }
}
