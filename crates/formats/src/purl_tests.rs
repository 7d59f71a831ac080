//! Package URLs: the specification's own cases, further ones, and properties.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// The cases of the specification, without their descriptions; `packageurl-python` 0.17.6 carries them (MIT).
const SUITE: &str = include_str!("purl_suite.json");

#[test]
fn the_cases_of_the_specification_hold() {
    let cases: Vec<Value> = serde_json::from_str(SUITE).expect("JSON");
    assert_eq!(cases.len(), 32);
    for case in &cases {
        let text = case["purl"].as_str().expect("text");
        let read = PackageUrl::parse(text);
        assert_eq!(read.is_err(), case["is_invalid"] == true, "{text}: {read:?}");
        let Ok(purl) = read else { continue };
        assert_eq!(Some(purl.to_string().as_str()), case["canonical_purl"].as_str());
        let part = |name: &str| case[name].as_str().unwrap_or_default().trim_end_matches('/').to_owned();
        let parts = ["type", "namespace", "name", "version", "subpath"].map(part);
        let PackageUrl { kind, namespace, name, version, qualifiers, subpath } = purl;
        assert_eq!([kind, namespace.join("/"), name, version, subpath], parts, "{text}");
        let wanted = case["qualifiers"].as_object().into_iter().flatten();
        let wanted = wanted.map(|(name, value)| (name.clone(), value.as_str().expect("text").to_owned()));
        assert_eq!(qualifiers, wanted.collect(), "{text}");
    }
}

#[test]
fn package_urls_of_others_are_read() {
    for (text, kind, namespace, name, version) in [
        ("pkg:apk/wolfi/curl@8.5.0-r0?arch=x86_64", "apk", "wolfi", "curl", "8.5.0-r0"),
        ("pkg:npm/%40scope/name@1.0.0", "npm", "@scope", "name", "1.0.0"),
        ("pkg:npm/@scope/name", "npm", "@scope", "name", ""),
        ("pkg:npm/foo@1/bar", "npm", "", "foo", "1/bar"),
        ("pkg:golang/github.com/A/b@v1.2.3#sub/path", "golang", "github.com/A", "b", "v1.2.3"),
        ("pkg:oci/nginx@sha256%3Aabc?repository_url=example.com%2Facme%2Fnginx", "oci", "", "nginx", "sha256:abc"),
        ("PKG:PyPI/urllib3", "pypi", "", "urllib3", ""),
        ("pkg:deb/debian/curl@7.1-1%2Bdeb?arch=source", "deb", "debian", "curl", "7.1-1+deb"),
        ("pkg:cargo/serde@", "cargo", "", "serde", ""),
    ] {
        let purl = PackageUrl::parse(text).expect(text);
        let read = (purl.kind.as_str(), purl.namespace.join("/"), purl.name.as_str(), purl.version.as_str());
        assert_eq!(read, (kind, namespace.to_owned(), name, version), "{text}");
    }
}

#[test]
fn other_texts_are_refused() {
    for (text, wrong) in [
        ("", PackageUrlError::Scheme),
        ("curl", PackageUrlError::Scheme),
        ("npm:curl", PackageUrlError::Scheme),
        ("pkg:", PackageUrlError::Type),
        ("pkg:a b/c", PackageUrlError::Type),
        ("pkg:1a/c", PackageUrlError::Type),
        ("pkg:apk", PackageUrlError::Name),
        ("pkg:apk/", PackageUrlError::Name),
        ("pkg:apk/%zz", PackageUrlError::Percent),
        ("pkg:apk/%", PackageUrlError::Percent),
        ("pkg:apk/%ff", PackageUrlError::Percent),
        ("pkg:apk/a?b", PackageUrlError::Qualifier),
        ("pkg:apk/a?=b", PackageUrlError::Qualifier),
        ("pkg:apk/a?b=1&B=2", PackageUrlError::Twice),
        ("pkg:pypi/x@1.0\x07", PackageUrlError::Control),
        ("pkg:pypi/x%00", PackageUrlError::Control),
    ] {
        assert_eq!(PackageUrl::parse(text), Err(wrong), "{text:?}");
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
        subpath in "[a-z][a-z?@ ]{0,3}(/[a-z#]{1,4})?",
    ) {
        let purl = PackageUrl { kind, namespace, name, version, qualifiers, subpath }.normalized();
        let text = purl.to_string();
        prop_assert_eq!(PackageUrl::parse(&text), Ok(purl), "{}", text);
    }

    #[test]
    fn noise_does_no_harm(text in "(pkg:)?[a-z%@/?&=#\\PC]{0,40}") {
        let _ = PackageUrl::parse(&text);
    }
}
