use bowline_versions::{Scheme, order_key};

use super::*;

/// Versions, the highest first; a `!` marks yanked ones.
fn stored(list: &[&str]) -> Vec<StoredVersion> {
    let of = |text: &&str| {
        let version = text.trim_start_matches('!');
        StoredVersion {
            version: version.into(),
            sort_key: order_key(Scheme::SemVer, version),
            is_yanked: text.starts_with('!'),
            is_deprecated: false,
        }
    };
    let mut versions: Vec<StoredVersion> = list.iter().map(of).collect();
    versions.sort_by(|one, other| other.sort_key.cmp(&one.sort_key));
    versions
}

fn tags() -> BTreeMap<String, String> {
    BTreeMap::from([("latest".into(), "1.4.0".into()), ("next".into(), "2.0.0-rc.1".into())])
}

const VERSIONS: [&str; 10] =
    ["0.2.3", "0.2.9", "0.3.0", "1.2.3", "1.2.9", "1.4.0", "1.4.1-rc.1", "2.0.0-rc.1", "2.0.0-rc.2", "3.1.0"];

fn chosen(versions: &RequiredVersions) -> DependencyChoice {
    choose(versions, (&stored(&VERSIONS), &tags()), |_| false)
}

#[test]
fn npm_requirements_choose_the_highest_that_satisfies() {
    for (text, wanted) in [
        ("^1.2.3", "1.4.0"),
        ("^0.2.3", "0.2.9"),
        ("^0.2", "0.2.9"),
        ("~1.2.3", "1.2.9"),
        ("~> 1.2", "1.2.9"),
        ("1", "1.4.0"),
        ("1.x", "1.4.0"),
        ("1.2.*", "1.2.9"),
        ("x", "1.4.0"),
        (">=1.2.3 <1.4.0", "1.2.9"),
        ("0.2 - 1.2", "1.2.9"),
        ("0.2.3 - 0.3.0", "0.3.0"),
        ("^0.2.0 || ^1.2.0", "1.4.0"),
        ("= 1.2.3", "1.2.3"),
        ("v1.2.3", "1.2.3"),
        // A pre-release satisfies only what names one of the same numbers.
        ("^2.0.0-rc.1", "2.0.0-rc.2"),
        (">=2.0.0-rc.1", "3.1.0"),
        ("<2.0.0", "1.4.0"),
        ("2.0.0-rc.1", "2.0.0-rc.1"),
        ("latest", "1.4.0"),
        ("next", "2.0.0-rc.1"),
        ("*", "1.4.0"),
        ("", "1.4.0"),
        (" ^1.2.3 ", "1.4.0"),
    ] {
        let (name, versions) = npm("a", text);
        assert_eq!((name, chosen(&versions)), ("a", DependencyChoice::Allowed(wanted.into())), "{text:?}");
    }
}

#[test]
fn other_requirements_of_npm_are_unknown() {
    let long = "1 || ".repeat(60);
    for (text, why) in [
        ("workspace:*", OF_NO_REGISTRY),
        ("file:../a", OF_NO_REGISTRY),
        ("../a", OF_NO_REGISTRY),
        ("acme/a", OF_NO_REGISTRY),
        ("git+ssh://git@a.example/a.git#v1", OF_NO_REGISTRY),
        ("https://a.example/a.tgz", OF_NO_REGISTRY),
        (">=1.0.0,<2.0.0", NOT_UNDERSTOOD),
        (&long, NOT_UNDERSTOOD),
        ("beta", "no stored version satisfies it"),
        ("^4.0.0", "no stored version satisfies it"),
    ] {
        assert_eq!(chosen(&npm("a", text).1), DependencyChoice::Unknown(why), "{text:?}");
    }
}

#[test]
fn aliases_name_another_package() {
    for (text, package, wanted) in [
        ("npm:b@^1.2.3", "b", "1.4.0"),
        ("npm:@acme/b@~1.2.3", "@acme/b", "1.2.9"),
        ("npm:@acme/b", "@acme/b", "1.4.0"),
        ("npm:b@next", "b", "2.0.0-rc.1"),
    ] {
        let (name, versions) = npm("a", text);
        assert_eq!((name, chosen(&versions)), (package, DependencyChoice::Allowed(wanted.into())), "{text:?}");
    }
}

#[test]
fn requirements_of_cargo_choose_the_highest_that_satisfies() {
    for (text, wanted) in [
        ("^1.2.3", "1.4.0"),
        ("1.2", "1.4.0"),
        ("~1.2.3", "1.2.9"),
        ("0.2", "0.2.9"),
        ("=1.2.3", "1.2.3"),
        (">=1.2, <1.4", "1.2.9"),
        ("*", "3.1.0"),
        ("2.0.0-rc.1", "2.0.0-rc.2"),
    ] {
        assert_eq!(chosen(&cargo(text)), DependencyChoice::Allowed(wanted.into()), "{text:?}");
    }
    for text in ["", "latest", "1 || 2"] {
        assert_eq!(chosen(&cargo(text)), DependencyChoice::Unknown(NOT_UNDERSTOOD), "{text:?}");
    }
}

/// Versions of Python, the highest first; a `!` marks yanked ones.
fn python_versions(list: &[&str]) -> Vec<StoredVersion> {
    let mut versions = stored(list);
    for version in &mut versions {
        version.sort_key = order_key(Scheme::Pep440, &version.version);
    }
    versions.sort_by(|one, other| other.sort_key.cmp(&one.sort_key));
    versions
}

#[test]
fn requirements_of_python_choose_the_highest_release_that_satisfies() {
    let versions = python_versions(&["0.9", "1.0", "1.4.2", "1.4.5", "1.5", "2.0rc1", "2.0.post1", "3.0a1", "1!0.5"]);
    for (text, wanted) in [
        ("a", "1!0.5"),
        ("a>=1,<2", "1.5"),
        ("a (>=1,<2)", "1.5"),
        ("a ( ~=1.4.2 )", "1.4.5"),
        ("a~=1.4", "1.5"),
        ("a==1.4.*", "1.4.5"),
        ("a == 1.0.0", "1.0"),
        ("a!=1.5,<2", "1.4.5"),
        ("a<1.0", "0.9"),
        ("a>1.5,<2.1", "2.0.post1"),
        // A pre-release satisfies what names one, or what no release satisfies.
        ("a>=2.0rc1,<=2.0", "2.0rc1"),
        ("a==3.0a1", "3.0a1"),
        ("a==3.*", "3.0a1"),
        ("a[fast,slow]>=1,<2; python_version < '3'", "1.5"),
        // That another one is refused names none.
        ("a>=2,!=2.0rc1,<4", "2.0.post1"),
        ("a<2.0rc2", "2.0rc1"),
        // Numbers that are not written are zero.
        ("a==3.*,!=3.1.*", "3.0a1"),
        ("a==1.0.*", "1.0"),
        ("a===1.5", "1.5"),
    ] {
        let read = python(text);
        let found = choose(&read.versions(), (&versions, &BTreeMap::new()), |_| false);
        assert_eq!((read.name, found), ("a", DependencyChoice::Allowed(wanted.into())), "{text}");
    }
    let bare = python_versions(&["1", "1.4"]);
    let found = choose(&python("a==1.4.*").versions(), (&bare[1..], &BTreeMap::new()), |_| false);
    assert_eq!(found, DependencyChoice::Unknown("no stored version satisfies it"));
    let none = python("a>=4,<5");
    let found = choose(&none.versions(), (&versions, &BTreeMap::new()), |_| false);
    assert_eq!(found, DependencyChoice::Unknown("no stored version satisfies it"));
}

#[test]
fn requirements_of_python_are_taken_apart() {
    for (text, name, extras, marker, is_clear) in [
        ("Foo.Bar_2>=1", "Foo.Bar_2", "", "", true),
        ("foo [ a , b ] >=1 ; extra == 'x'", "foo", "[ a , b ]", "extra == 'x'", true),
        ("foo @ https://a.example/f;v=1.whl ; os_name == 'nt'", "foo", "", "os_name == 'nt'", false),
        ("foo[a]@ file:///x", "foo", "[a]", "", false),
        ("foo>=x", "foo", "", "", false),
        ("foo>=1 <2", "foo", "", "", false),
        ("foo[a", "foo", "", "", false),
        ("", "", "", "", true),
        ("é>=1", "", "", "", false),
    ] {
        let read = python(text);
        let clear = !matches!(read.versions(), RequiredVersions::Unclear(_));
        assert_eq!((read.name, read.extras, read.marker, clear), (name, extras, marker, is_clear), "{text:?}");
    }
    let many = |count: usize| format!("foo{}", vec![">1"; count].join(","));
    assert!(matches!(python(&many(SPECIFIERS)).versions(), RequiredVersions::Python(_)));
    assert!(matches!(python(&many(SPECIFIERS + 1)).versions(), RequiredVersions::Unclear(NOT_UNDERSTOOD)));
    assert_eq!(python(&many(3)).versions().comparisons(), 4);
    let long = format!("foo>={}", "1".repeat(TEXT));
    assert!(matches!(python(&long).versions(), RequiredVersions::Unclear(NOT_UNDERSTOOD)));
}

#[test]
fn withheld_versions_leave_lower_ones() {
    let versions = stored(&VERSIONS);
    let of = |text: &str, withheld: &[&str]| {
        choose(&npm("a", text).1, (&versions, &tags()), |version| withheld.contains(&version.version.as_str()))
    };
    let older =
        |chosen: &str, withheld: &str| DependencyChoice::Older { chosen: chosen.into(), withheld: withheld.into() };
    assert_eq!(of("^1.2.3", &["1.4.0"]), older("1.2.9", "1.4.0"));
    assert_eq!(of("^1.2.3", &["1.4.0", "1.2.9"]), older("1.2.3", "1.4.0"));
    assert_eq!(of("^1.2.3", &["1.4.0", "1.2.9", "1.2.3"]), DependencyChoice::Held("1.4.0".into()));
    assert_eq!(of("^1.2.3", &["1.2.9", "3.1.0"]), DependencyChoice::Allowed("1.4.0".into()));
    assert_eq!(of("next", &["2.0.0-rc.1"]), DependencyChoice::Held("2.0.0-rc.1".into()), "no other stands for a tag");
    assert_eq!(of("latest", &["1.4.0"]), older("3.1.0", "1.4.0"));
    let releases = ["0.2.3", "0.2.9", "0.3.0", "1.2.3", "1.2.9", "1.4.0", "3.1.0"];
    assert_eq!(of("latest", &releases), older("2.0.0-rc.2", "1.4.0"), "releases before pre-releases");
}

#[test]
fn npm_takes_its_latest_version_first_and_deprecated_ones_last() {
    let mut versions = stored(&["1.0.0", "1.4.0", "1.5.0", "1.6.0"]);
    let of = |versions: &[StoredVersion], text: &str| choose(&npm("a", text).1, (versions, &tags()), |_| false);
    let allowed = |version: &str| DependencyChoice::Allowed(version.into());
    assert_eq!(of(&versions, "^1.0.0"), allowed("1.4.0"));
    assert_eq!(of(&versions, ">1.4.0"), allowed("1.6.0"));
    for version in &mut versions {
        version.is_deprecated = version.version != "1.0.0" && version.version != "1.5.0";
    }
    assert_eq!(of(&versions, "^1.0.0"), allowed("1.5.0"));
    assert_eq!(of(&versions, ">=1.6.0"), allowed("1.6.0"));
}

#[test]
fn yanked_versions_are_passed_over() {
    let of = |list: &[&str]| choose(&cargo("1"), (&stored(list), &BTreeMap::new()), |_| false);
    assert_eq!(of(&["1.0.0", "!1.1.0"]), DependencyChoice::Allowed("1.0.0".into()));
    assert_eq!(of(&["!1.0.0", "!1.1.0"]), DependencyChoice::Unknown("each version that satisfies it is yanked"));
    assert_eq!(of(&["2.0.0"]), DependencyChoice::Unknown("no stored version satisfies it"));
    // Of Python, one that is named is installed all the same.
    let yanked = python_versions(&["!1.0"]);
    let of = |text: &str| choose(&python(text).versions(), (&yanked, &BTreeMap::new()), |_| false);
    let named = DependencyChoice::Allowed("1.0".into());
    assert_eq!((of("a==1.0"), of("a===1.0")), (named.clone(), named));
    assert_eq!(of("a==1.*"), DependencyChoice::Unknown("each version that satisfies it is yanked"));
}
