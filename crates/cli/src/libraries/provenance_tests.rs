use bowline_client::StatementSigner;
use serde_json::json;

use super::*;

#[test]
fn package_urls_name_versions_of_python_and_npm() {
    let python =
        |project: &str, version: &str| PublishedVersion::Python { project: project.into(), version: version.into() };
    let npm = |name: &str, version: &str| PublishedVersion::Npm { name: name.into(), version: version.into() };
    for (text, wanted) in [
        ("pkg:pypi/foo@1.0", python("foo", "1.0")),
        ("pkg:pypi/Foo__Bar.baz@1!1.0", python("foo-bar-baz", "1!1.0")),
        ("pkg:npm/foo@1.0.0", npm("foo", "1.0.0")),
        ("pkg:npm/%40acme/foo@1.0.0", npm("@acme/foo", "1.0.0")),
        ("pkg:npm/@acme/foo@1.0.0", npm("@acme/foo", "1.0.0")),
    ] {
        assert_eq!(PublishedVersion::parse(text).expect(text), wanted, "{text}");
    }
    for (text, why) in [
        ("foo", "is no package URL"),
        ("pkg:pypi/foo", "has no version"),
        ("pkg:npm/%40acme/foo", "has no version"),
        ("pkg:pypi/acme/foo@1.0", "has a namespace"),
        ("pkg:maven/org.example/foo@1.0", "as FILE.sigstore.json"),
        ("pkg:cargo/foo@1.0.0", "must begin with pkg:pypi/ or pkg:npm/"),
    ] {
        let error = PublishedVersion::parse(text).expect_err(text);
        assert!(error.exit_code() == 2 && error.to_string().contains(why), "{text}: {error}");
    }
}

#[test]
fn paths_stay_below_the_package_host() {
    assert_eq!(
        integrity_path("foo", "1!1.0+a", "../../x/foo-1.0.tar.gz", "provenance"),
        "integrity/foo/1%211.0%2Ba/..%2F..%2Fx%2Ffoo-1.0.tar.gz/provenance"
    );
    assert_eq!(attestations_path("@acme/foo", "1.0.0"), "-/npm/v1/attestations/%40acme%2Ffoo%401.0.0");
    assert_eq!(tarball("@acme/foo", "1.0.0"), "foo-1.0.0.tgz");
}

#[test]
fn attested_files_of_the_version_are_named_and_no_address_is_taken() {
    let elsewhere = "https://other.example/integrity/foo/1.0/foo-1.0.tar.gz/provenance";
    let page = json!({ "files": [
        { "filename": "foo-1.0-py3-none-any.whl", "provenance": elsewhere },
        { "filename": "foo-1.0.0.tar.gz", "provenance": elsewhere },
        { "filename": "foo-1.0.zip", "provenance": null },
        { "filename": "foo-1.0.1.tar.gz", "provenance": elsewhere },
        { "filename": "foo-1.0rc1.tar.gz", "provenance": elsewhere },
        { "filename": "foo-1.0_1-py3-none-any.whl", "provenance": elsewhere },
        { "filename": "foo\n-1.0.tar.gz", "provenance": elsewhere },
        { "filename": "README", "provenance": elsewhere },
        {},
    ] });
    let files = |version: &str| attested_files(&page, version).expect("a page");
    for spelling in ["1.0", "1", "v1.0.0"] {
        assert_eq!(files(spelling), ["foo-1.0-py3-none-any.whl", "foo-1.0.0.tar.gz"], "{spelling}");
    }
    assert_eq!(files("1.0-rc.1"), ["foo-1.0rc1.tar.gz"]);
    assert_eq!(files("1.0.post1"), ["foo-1.0_1-py3-none-any.whl"]);
    assert_eq!(files("2.0"), Vec::<String>::new());
    assert_eq!(files("no version"), Vec::<String>::new());
    assert_eq!(attested_files(&json!({ "files": {} }), "1.0"), None);
}

#[test]
fn the_bundle_of_npm_is_the_provenance_if_there_is_one() {
    let (publish, provenance) = (
        json!({ "predicateType": "https://example.com/publish", "bundle": 1 }),
        json!({ "predicateType": "https://slsa.dev/provenance/v1", "bundle": 2 }),
    );
    assert_eq!(npm_bundle(&json!({ "attestations": [publish, provenance] })), Some(&json!(2)));
    assert_eq!(npm_bundle(&json!({ "attestations": [publish] })), Some(&json!(1)));
    assert_eq!(npm_bundle(&json!({ "attestations": [] })), None);
    assert_eq!(npm_bundle(&json!([])), None);
}

#[test]
fn a_signer_is_shown_only_where_it_was_verified() {
    let statement = |signer| ("foo.whl".to_owned(), FileStatement { predicate_type: "t".into(), signer });
    let signer = StatementSigner {
        identity: "dana@acme.example".into(),
        issuer: "https://ci.example".into(),
        source_repository: "https://ci.example/acme".into(),
    };
    let shown = table(vec![statement(Some(signer)), statement(None)]).text();
    let rows: Vec<&str> = shown.lines().skip(1).map(str::trim).collect();
    assert!(rows[0].contains("dana@acme.example") && rows[0].ends_with("https://ci.example/acme"), "{shown}");
    assert!(rows[1].ends_with("not verified"), "{shown}");
}

#[test]
fn absence_says_how_statements_come() {
    for (text, hint) in [("pkg:pypi/foo@1.0", "uv publish"), ("pkg:npm/foo@1.0.0", "npm publish --provenance")] {
        let version = PublishedVersion::parse(text).expect(text);
        let refused = ClientError::Refused { code: 5, message: "no".into(), facts: Default::default() };
        for error in [version.absent(refused), version.not_attested()] {
            assert!(error.hint().is_some_and(|shown| shown.contains(hint)), "{error:?}");
            assert_eq!(error.exit_code(), 6);
        }
        let unreachable = version.absent(ClientError::Transport("no".into()));
        assert_eq!(unreachable.exit_code(), 5);
    }
}
