//! Paths of the distribution protocol. The repository's name stands in their middle and has any number of parts.

use bowline_content::Digest;
use bowline_formats::percent;
use bowline_fronts::request::pairs;
use bowline_registry::content::{Name, Reference, Refusal, RefusalCode, is_tag};
use serde_json::Value;

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Base,
    Catalog,
    Manifest(Name, Reference),
    Blob(Name, Digest),
    Uploads(Name),
    Upload(Name, String),
    Tags(Name),
    Referrers(Name, Digest),
    History(Name, String),
}

impl Target {
    /// The repository, where there is one.
    pub(crate) fn name(&self) -> Option<&Name> {
        match self {
            Target::Base | Target::Catalog => None,
            Target::Manifest(name, _)
            | Target::Blob(name, _)
            | Target::Uploads(name)
            | Target::Upload(name, _)
            | Target::Tags(name)
            | Target::Referrers(name, _)
            | Target::History(name, _) => Some(name),
        }
    }
}

impl Target {
    /// The same of another repository.
    pub(crate) fn of(&self, name: Name) -> Target {
        match self.clone() {
            target @ (Target::Base | Target::Catalog) => target,
            Target::Manifest(_, reference) => Target::Manifest(name, reference),
            Target::Blob(_, digest) => Target::Blob(name, digest),
            Target::Uploads(_) => Target::Uploads(name),
            Target::Upload(_, id) => Target::Upload(name, id),
            Target::Tags(_) => Target::Tags(name),
            Target::Referrers(_, digest) => Target::Referrers(name, digest),
            Target::History(_, tag) => Target::History(name, tag),
        }
    }
}

/// Reads a path as it came over the wire.
pub(crate) fn parse(path: &str) -> Result<Target, Refusal> {
    let path = percent::decode(path).ok_or_else(|| refusal(RefusalCode::NameInvalid, "the path is not UTF-8"))?;
    let rest = match path.strip_prefix("/v2") {
        Some("" | "/") => return Ok(Target::Base),
        Some(rest) => rest.strip_prefix('/').unwrap_or_default(),
        None => "",
    };
    if rest == "_catalog" {
        return Ok(Target::Catalog);
    }
    let parts: Vec<&str> = rest.split('/').collect();
    match *parts.as_slice() {
        // Only the protocol's own words have a slash at their end, and names have no empty part.
        [ref name @ .., "blobs", "uploads", ""] | [ref name @ .., "blobs", "uploads"] => {
            Ok(Target::Uploads(read_name(name)?))
        }
        [ref name @ .., "blobs", "uploads", id] => Ok(Target::Upload(read_name(name)?, read_id(id)?)),
        [ref name @ .., "blobs", digest] => Ok(Target::Blob(read_name(name)?, read_digest(digest)?)),
        [ref name @ .., "manifests", reference] => Ok(Target::Manifest(read_name(name)?, read_reference(reference)?)),
        [ref name @ .., "tags", "list"] => Ok(Target::Tags(read_name(name)?)),
        [ref name @ .., "referrers", digest] => Ok(Target::Referrers(read_name(name)?, read_digest(digest)?)),
        [ref name @ .., "_chainguard" | "_bowline", "history", tag] => {
            Ok(Target::History(read_name(name)?, read_tag(tag)?))
        }
        _ => Err(refusal(RefusalCode::NameUnknown, "there is nothing at this path")),
    }
}

fn read_name(parts: &[&str]) -> Result<Name, Refusal> {
    let rules = "a repository's name has an organization, groups and a name, each of lower-case letters and digits \
                 with single separators between them";
    Name::parse(&parts.join("/")).ok_or_else(|| refusal(RefusalCode::NameInvalid, rules))
}

fn read_digest(text: &str) -> Result<Digest, Refusal> {
    Digest::parse(text).map_err(|error| refusal(RefusalCode::DigestInvalid, &format!("the digest {error}")))
}

fn read_reference(text: &str) -> Result<Reference, Refusal> {
    let reference = Reference::parse(text);
    reference.ok_or_else(|| {
        // Anyone who wrote a colon meant a digest.
        let code = if text.contains(':') { RefusalCode::DigestInvalid } else { RefusalCode::ManifestInvalid };
        refusal(code, "a manifest is named by a tag or by a digest")
    })
}

fn read_tag(text: &str) -> Result<String, Refusal> {
    if is_tag(text) { Ok(text.into()) } else { Err(refusal(RefusalCode::ManifestInvalid, "that is not a tag")) }
}

fn read_id(text: &str) -> Result<String, Refusal> {
    let is_upload_id = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_upload_id {
        return Ok(text.into());
    }
    Err(refusal(RefusalCode::BlobUploadUnknown, "there is no such upload of yours: begin a new one"))
}

fn refusal(code: RefusalCode, message: &str) -> Refusal {
    Refusal { code, message: message.into(), detail: Value::Null }
}

/// The parameters of a query. Storage takes no NUL, and no parameter of sense has one.
pub(crate) fn query(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let pairs = pairs(text).map_err(|wrong| refusal(RefusalCode::Unsupported, &wrong))?;
    if pairs.iter().any(|(_, value)| value.contains('\0')) {
        return Err(refusal(RefusalCode::NameInvalid, "a parameter holds a NUL"));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    #[test]
    fn every_path_of_the_protocol() {
        let digest = Digest::parse(DIGEST).unwrap();
        let id = "0123456789abcdef0123456789abcdef";
        let cases = [
            ("/v2".to_owned(), Target::Base),
            ("/v2/".into(), Target::Base),
            ("/v2/_catalog".into(), Target::Catalog),
            ("/v2/a/b/manifests/latest".into(), Target::Manifest(name("a/b"), Reference::Tag("latest".into()))),
            (
                format!("/v2/a/b/c/manifests/{DIGEST}"),
                Target::Manifest(name("a/b/c"), Reference::Digest(DIGEST.into())),
            ),
            (format!("/v2/a/b/blobs/{DIGEST}"), Target::Blob(name("a/b"), digest.clone())),
            (format!("/v2/a/b/blobs/{}", DIGEST.replace(':', "%3A")), Target::Blob(name("a/b"), digest.clone())),
            ("/v2/a/b/blobs/uploads/".into(), Target::Uploads(name("a/b"))),
            ("/v2/a/b/blobs/uploads".into(), Target::Uploads(name("a/b"))),
            (format!("/v2/a/b/blobs/uploads/{id}"), Target::Upload(name("a/b"), id.into())),
            ("/v2/a/b/tags/list".into(), Target::Tags(name("a/b"))),
            (format!("/v2/a/b/referrers/{DIGEST}"), Target::Referrers(name("a/b"), digest)),
            ("/v2/a/b/_chainguard/history/1.0".into(), Target::History(name("a/b"), "1.0".into())),
            ("/v2/a/b/_bowline/history/1.0".into(), Target::History(name("a/b"), "1.0".into())),
            // Words of the protocol are names as well.
            (
                "/v2/a/blobs/uploads/manifests/x".into(),
                Target::Manifest(name("a/blobs/uploads"), Reference::Tag("x".into())),
            ),
            ("/v2/tags/list/tags/list".into(), Target::Tags(name("tags/list"))),
            (
                "/v2/a/manifests/manifests/manifests".into(),
                Target::Manifest(name("a/manifests"), Reference::Tag("manifests".into())),
            ),
        ];
        for (path, target) in cases {
            assert_eq!(parse(&path), Ok(target), "{path}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let cases = [
            ("/v2/a", RefusalCode::NameUnknown),
            ("/v2x", RefusalCode::NameUnknown),
            ("/v2/a/b", RefusalCode::NameUnknown),
            ("/v2/a/b/tags", RefusalCode::NameUnknown),
            ("/v2/a/b/tags/list/", RefusalCode::NameUnknown),
            ("/v2/a/manifests/x", RefusalCode::NameInvalid),
            ("/v2/manifests/x", RefusalCode::NameInvalid),
            ("/v2/a/../b/manifests/x", RefusalCode::NameInvalid),
            ("/v2/a/%2e%2e/b/manifests/x", RefusalCode::NameInvalid),
            ("/v2/a%2f..%2fb/manifests/x", RefusalCode::NameInvalid),
            ("/v2//a/b/manifests/x", RefusalCode::NameInvalid),
            ("/v2/a/b/%00/manifests/x", RefusalCode::NameInvalid),
            ("/v2/a/b/manifests/%ff", RefusalCode::NameInvalid),
            ("/v2/a/b/manifests/%zz", RefusalCode::NameInvalid),
            ("/v2/A/b/manifests/x", RefusalCode::NameInvalid),
            ("/v2/a/b/manifests/", RefusalCode::ManifestInvalid),
            ("/v2/a/b/manifests/..", RefusalCode::ManifestInvalid),
            ("/v2/a/b/manifests/sha256:abc", RefusalCode::DigestInvalid),
            ("/v2/a/b/blobs/sha256:../../../x", RefusalCode::NameUnknown),
            ("/v2/a/b/blobs/sha256:abc", RefusalCode::DigestInvalid),
            ("/v2/a/b/blobs/", RefusalCode::DigestInvalid),
            ("/v2/a/b/blobs/uploads/..", RefusalCode::BlobUploadUnknown),
            ("/v2/a/b/blobs/uploads/%2e%2e%2fx", RefusalCode::NameUnknown),
            ("/v2/a/b/blobs/uploads/x", RefusalCode::BlobUploadUnknown),
        ];
        for (path, code) in cases {
            assert_eq!(parse(path).map_err(|refusal| refusal.code), Err(code), "{path}");
        }
    }

    #[test]
    fn queries_without_nul() {
        assert_eq!(query("n=3&last=a%2Bb").unwrap(), [("n".into(), "3".into()), ("last".into(), "a+b".into())]);
        assert!(query("last=%00").is_err());
    }
}
