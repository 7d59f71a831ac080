//! What the registry's requests are called in the access log and in the counters.

use axum::http::Method;

/// What a request is called: few names, whatever clients send.
pub(crate) fn name(verb: &Method, path: &str) -> &'static str {
    let mut from_end = path.rsplit('/');
    let [last, before, third] = std::array::from_fn(|_| from_end.next().unwrap_or_default());
    match (third, before, last, verb.as_str()) {
        ("", "", "token", _) => "oci.token",
        ("", "", "v2", _) | ("", "v2", "", _) => "oci.base",
        ("", "v2", "_catalog", _) => "oci.catalog",
        (_, "tags", "list", _) => "oci.tags",
        (_, "referrers", _, _) => "oci.referrers",
        ("_chainguard" | "_bowline", "history", _, _) => "oci.history",
        (_, "manifests", _, "GET") => "oci.manifest.get",
        (_, "manifests", _, "HEAD") => "oci.manifest.head",
        (_, "manifests", _, "PUT") => "oci.manifest.put",
        (_, "manifests", _, "DELETE") => "oci.manifest.delete",
        ("blobs", "uploads", "", "POST") | (_, "blobs", "uploads", "POST") => "oci.upload.post",
        ("blobs", "uploads", _, "GET") => "oci.upload.get",
        ("blobs", "uploads", _, "PATCH") => "oci.upload.patch",
        ("blobs", "uploads", _, "PUT") => "oci.upload.put",
        ("blobs", "uploads", _, "DELETE") => "oci.upload.delete",
        (_, "blobs", _, "GET") => "oci.blob.get",
        (_, "blobs", _, "HEAD") => "oci.blob.head",
        (_, "blobs", _, "DELETE") => "oci.blob.delete",
        _ => "oci.unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_few_names() {
        for (verb, path, wanted) in [
            ("GET", "/v2", "oci.base"),
            ("GET", "/v2/", "oci.base"),
            ("POST", "/token", "oci.token"),
            ("GET", "/v2/_catalog", "oci.catalog"),
            ("HEAD", "/v2/o/r/manifests/latest", "oci.manifest.head"),
            ("GET", "/v2/o/r/blobs/sha256:00", "oci.blob.get"),
            ("POST", "/v2/o/r/blobs/uploads", "oci.upload.post"),
            ("POST", "/v2/o/r/blobs/uploads/", "oci.upload.post"),
            ("PATCH", "/v2/o/r/blobs/uploads/00", "oci.upload.patch"),
            ("GET", "/v2/o/r/tags/list", "oci.tags"),
            ("GET", "/v2/o/r/referrers/sha256:00", "oci.referrers"),
            ("GET", "/v2/o/r/_bowline/history/latest", "oci.history"),
            ("TRACE", "/v2/o/r/manifests/latest", "oci.unknown"),
            ("GET", "/v2/o/r", "oci.unknown"),
        ] {
            assert_eq!(name(&verb.parse().expect("a method"), path), wanted, "{verb} {path}");
        }
    }
}
