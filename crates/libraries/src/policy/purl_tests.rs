//! Patterns: how they are written, and what they match.

use proptest::prelude::*;

use super::*;

fn text(purl: &str) -> String {
    Pattern::parse(purl).unwrap_or_else(|wrong| panic!("{purl}: {wrong}")).text()
}

fn matches(purl: &str, language: Language, name: &str, version: &str) -> bool {
    Pattern::parse(purl).expect("a package URL").matches(language, name, version)
}

#[test]
fn package_urls_are_normalized() {
    for (given, wanted) in [
        ("pkg:npm/left-pad@1.3.0", "pkg:npm/left-pad@1.3.0"),
        ("pkg:NPM/@types/node", "pkg:npm/%40types/node"),
        ("pkg:npm/%40types/node@20.0.0", "pkg:npm/%40types/node@20.0.0"),
        ("pkg:npm/@types/", "pkg:npm/%40types/"),
        ("pkg:npm/@types/*@*", "pkg:npm/%40types/"),
        ("pkg:npm/*/node", "pkg:npm/%40*/node"),
        ("pkg:npm/*", "pkg:npm/*"),
        ("pkg:npm", "pkg:npm/"),
        ("pkg://pypi/Foo_Bar", "pkg:pypi/foo-bar"),
        ("pkg:pypi/torch@2.3.0+cu121", "pkg:pypi/torch@2.3.0+cu121"),
        ("pkg:pypi", "pkg:pypi/"),
        ("pkg:maven/org.slf4j/slf4j-api@2.0.0", "pkg:maven/org.slf4j/slf4j-api@2.0.0"),
        ("pkg:maven/org.slf4j/", "pkg:maven/org.slf4j/"),
        ("pkg:maven/slf4j-api", "pkg:maven/slf4j-api"),
        ("pkg:golang/github.com/Acme/tool@v1.0.0", "pkg:golang/github.com/Acme/tool@v1.0.0"),
        ("pkg:golang/github.com/acme/", "pkg:golang/github.com/acme/"),
        ("pkg:golang/*/tool", "pkg:golang/*/tool"),
        ("pkg:golang/example.com", "pkg:golang/example.com"),
        ("pkg:golang", "pkg:golang/"),
    ] {
        assert_eq!(text(given), wanted, "{given}");
        assert_eq!(text(wanted), wanted);
    }
}

#[test]
fn what_is_no_package_url_is_refused() {
    for wrong in [
        "",
        "left-pad",
        "npm/left-pad",
        "pkg:",
        "pkg:deb/curl",
        "pkg:npm/left-pad@",
        "pkg:npm/left*",
        "pkg:npm/a/b",
        "pkg:npm/left-pad?x=1",
        "pkg:npm/left-pad#x",
        "pkg:pypi/a/b",
        "pkg:npm/%zz",
        "pkg:npm/%+1",
        "pkg:maven/@1.0",
        "pkg:pypi/a b",
        "pkg:npm/a@1 2",
        "pkg:npm/%ff",
        "pkg:golang/tool",
        "pkg:golang/github.com/../tool",
    ] {
        assert!(Pattern::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn modules_are_meant_in_any_case_and_below_directories() {
    let is_meant = |purl: &str, module: &str| matches(purl, Language::Go, module, "v1.0.0");
    assert!(is_meant("pkg:golang/github.com/azure/sdk", "github.com/Azure/sdk"));
    assert!(!is_meant("pkg:golang/github.com/azure/sdk", "github.com/Azure/sdk/v2"));
    for below in ["github.com/evil/a", "github.com/Evil/a/v2", "github.com/evil/a/b/c"] {
        assert!(is_meant("pkg:golang/github.com/evil/", below), "{below}");
    }
    assert!(!is_meant("pkg:golang/github.com/evil/", "github.com/evildoer/a"));
    assert!(!is_meant("pkg:golang/github.com/evil/", "github.com/a"));
    assert!(is_meant("pkg:golang/*/a", "example.com/b/a") && is_meant("pkg:golang", "example.com/b/a"));
}

#[test]
fn missing_parts_match_anything_but_scopes_of_npm() {
    assert!(matches("pkg:npm/left-pad", Language::JavaScript, "left-pad", "1.0.0"));
    assert!(!matches("pkg:npm/left-pad", Language::JavaScript, "@evil/left-pad", "1.0.0"));
    assert!(matches("pkg:npm/*/left-pad", Language::JavaScript, "@evil/left-pad", "1.0.0"));
    assert!(matches("pkg:npm/@types/", Language::JavaScript, "@types/node", "1.0.0"));
    assert!(!matches("pkg:npm/@types/", Language::JavaScript, "node", "1.0.0"));
    for unscoped in ["pkg:npm/*".to_owned(), text("pkg:npm/*")] {
        assert!(matches(&unscoped, Language::JavaScript, "left-pad", "1.0.0"));
        assert!(!matches(&unscoped, Language::JavaScript, "@evil/left-pad", "1.0.0"));
    }
    assert!(matches("pkg:maven/slf4j-api", Language::Java, "org.slf4j:slf4j-api", "2.0.0"));
    assert!(matches("pkg:maven/org.slf4j/", Language::Java, "org.slf4j:slf4j-api", "2.0.0"));
    assert!(!matches("pkg:maven/org/", Language::Java, "org.slf4j:slf4j-api", "2.0.0"));
    assert!(matches("pkg:pypi", Language::Python, "requests", "2.0"));
    assert!(!matches("pkg:pypi", Language::JavaScript, "requests", "2.0.0"));
}

#[test]
fn versions_match_as_their_ecosystem_calls_them_equal() {
    assert!(matches("pkg:pypi/a@1.0", Language::Python, "a", "1.0.0"));
    assert!(matches("pkg:maven/g/a@1.0.Final", Language::Java, "g:a", "1"));
    assert!(!matches("pkg:npm/a@1.0.0", Language::JavaScript, "a", "1.0.0+evil"));
    assert!(!matches("pkg:pypi/a@1.0", Language::Python, "a", "1.0+local"));
}

proptest! {
    #[test]
    fn no_text_panics_and_what_parses_is_written_in_one_way(given in "(pkg:(npm|pypi|maven)/)?[ -~]{0,30}") {
        if let Ok(pattern) = Pattern::parse(&given) {
            let written = pattern.text();
            prop_assert_eq!(Pattern::parse(&written), Ok(pattern), "{}", written);
        }
    }

    #[test]
    fn a_version_matches_its_own_package_url(name in "[a-z][a-z0-9]{0,8}", version in "[0-9]\\.[0-9](rc1|-a\\.1)?(\\+b)?") {
        for (language, name) in [
            (Language::Python, name.clone()),
            (Language::JavaScript, format!("@s/{name}")),
            (Language::Java, format!("g.h:{name}")),
        ] {
            let purl = of_version(language, &name, &version);
            prop_assert!(matches(&purl, language, &name, &version), "{}", purl);
        }
    }
}
