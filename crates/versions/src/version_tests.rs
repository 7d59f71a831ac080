//! Known orders of each scheme, and keys against plain definitions.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

fn version(scheme: Scheme, text: &str) -> Version {
    Version::parse(scheme, text).unwrap_or_else(|e| panic!("{scheme:?} {text:?}: {e}"))
}

/// Every version of the list is below every later one.
fn ascending(scheme: Scheme, list: &[&str]) {
    for (index, low) in list.iter().enumerate() {
        for high in &list[index + 1..] {
            let (low, high) = (version(scheme, low), version(scheme, high));
            assert!(low < high, "{scheme:?}: {low} < {high}");
            assert!(order_key(scheme, low.text()) < order_key(scheme, high.text()));
        }
    }
}

fn equal(scheme: Scheme, list: &[&str]) {
    for text in list {
        assert_eq!(version(scheme, list[0]), version(scheme, text), "{scheme:?}");
    }
}

fn malformed(scheme: Scheme, list: &[&str]) {
    for text in list {
        let read = Version::parse(scheme, text);
        assert!(matches!(read, Err(VersionError::Malformed { .. })), "{scheme:?} reads {text:?}");
    }
}

#[test]
fn python_versions_order_as_pep_440_says() {
    ascending(
        Scheme::Pep440,
        &[
            "1.0.dev456",
            "1.0a1",
            "1.0a2.dev456",
            "1.0a12.dev456",
            "1.0a12",
            "1.0b1.dev456",
            "1.0b2",
            "1.0b2.post345.dev456",
            "1.0b2.post345",
            "1.0rc1.dev456",
            "1.0rc1",
            "1.0",
            "1.0+abc.5",
            "1.0+abc.7",
            "1.0+5",
            "1.0+5.1",
            "1.0.post456.dev34",
            "1.0.post456",
            "1.0.15",
            "1.1.dev1",
            "1.1",
            "1.10",
            "2012.4",
            "99999999999999999999999999",
            "1!0.1",
        ],
    );
    equal(Scheme::Pep440, &["1", "1.0", "1.0.0", "v1.0", "0!1", "01.00", " 1 "]);
    equal(Scheme::Pep440, &["1.0rc1", "1.0c1", "1.0-RC-1", "1.0.pre1", "1_preview_1"]);
    equal(Scheme::Pep440, &["1.0.post1", "1.0-1", "1.0-r1", "1.0.rev.1"]);
    equal(Scheme::Pep440, &["1.0a", "1.0.alpha0"]);
    equal(Scheme::Pep440, &["1.0+ubuntu-1", "1.0+Ubuntu.1"]);
    ascending(Scheme::Pep440, &["1.1.2", "1.1.2+cgr.1", "1.1.2+cgr.2", "1.1.2+cgr.10", "1.1.3.dev0"]);
    malformed(Scheme::Pep440, &["a", "1.", "1..2", "1.0+", "1.0+a..b", "1.0x", "!1", "1!", "2004d", "1.0 beta"]);
}

#[test]
fn maven_versions_order_as_its_reference_says() {
    ascending(
        Scheme::Maven,
        &[
            "1-alpha2snapshot",
            "1-alpha2",
            "1-alpha-123",
            "1-beta-2",
            "1-beta123",
            "1-m2",
            "1-m11",
            "1-rc",
            "1-cr2",
            "1-rc123",
            "1-SNAPSHOT",
            "1",
            "1-sp",
            "1-sp2",
            "1-sp123",
            "1-abc",
            "1-def",
            "1-pom-1",
            "1-1-snapshot",
            "1-1",
            "1-2",
            "1-123",
        ],
    );
    ascending(
        Scheme::Maven,
        &[
            "2.0", "2.0.a", "2-1", "2.0.2", "2.0.123", "2.1.0", "2.1-a", "2.1b", "2.1-c", "2.1-1", "2.1.0.1", "2.2",
            "2.123", "11.a2", "11.a11", "11.b2", "11.b11", "11.m2", "11.m11", "11", "11.a", "11b", "11c", "11m",
        ],
    );
    ascending(Scheme::Maven, &["3.18.0-0.cgr.1", "3.18.0-0.cgr.2", "3.18.1"]);
    ascending(Scheme::Maven, &["1.0-alpha.1", "1.0-alpha1"]);
    ascending(Scheme::Maven, &["31.1-android", "31.1-jre", "32.0.0-android"]);
    equal(Scheme::Maven, &["1", "1.0", "1.0.0", "1-0", "1.ga", "1-final", "1.0.Release", "1.", "1-", "1.0.0-0.0.0"]);
    equal(Scheme::Maven, &["1.0.0-foo.0.0", "1-foo", "1.foo", "1foo", "1.0.FOO"]);
    equal(Scheme::Maven, &["1-a1", "1alpha1", "1-alpha-1", "1.0.0-ALPHA1"]);
    equal(Scheme::Maven, &["1-rc1", "1-cr-1"]);
}

#[test]
fn semantic_versions_order_as_semver_says() {
    ascending(
        Scheme::SemVer,
        &[
            "0.0.0-0",
            "0.0.0",
            "0.9.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "1.10.0",
            "2.0.0-x-y-z.--",
            "2.0.0",
        ],
    );
    ascending(Scheme::SemVer, &["v0.0.0-20190101000000-aaaaaaaaaaaa", "v0.0.0-20200101000000-aaaaaaaaaaaa", "v0.0.1"]);
    equal(Scheme::SemVer, &["1.2.0", "v1.2.0", "1.2", "1.2.0+build.7", "1.2.0+incompatible"]);
    malformed(Scheme::SemVer, &["v", "1.", "1.2.3.4", "1.2.3-", "1.2.3-a..b", "1.2.3+", "latest", "1.x", "=1"]);
    ascending(Scheme::NuGet, &["1.0.0-beta", "1.0.0-RC", "1.0.0", "1.0.0.1", "1.0.1"]);
    equal(Scheme::NuGet, &["1.0.0-RC", "1.0-rc"]);
}

#[test]
fn distributions_order_as_their_package_managers_do() {
    ascending(
        Scheme::Debian,
        &["1.0~~", "1.0~~a", "1.0~", "1.0", "1.0-1~bpo1", "1.0-1", "1.0a", "1.0+b", "1.0.1", "1:0.1"],
    );
    equal(Scheme::Debian, &["1.0", "0:1.0", "1.0-0", "1.", "1.00"]);
    malformed(Scheme::Debian, &["a:1", "1.0_1", "-1", "1 2"]);
    ascending(
        Scheme::Alpine,
        &[
            "1.0_alpha",
            "1.0_alpha1",
            "1.0_beta",
            "1.0_rc1",
            "1.0",
            "1.0-r1",
            "1.0-r10",
            "1.0_p1",
            "1.0a",
            "1.0.01",
            "1.0.1",
            "1.0.10",
        ],
    );
    malformed(Scheme::Alpine, &["a", "1.0_foo", "1.0-1", "1.0-r", "1.0AB"]);
    ascending(
        Scheme::Rpm,
        &["1.0~rc1-1", "1.0-1", "1.0-1.el9", "1.0^git1-1", "1.0a-1", "1.0.1-1", "1.0.10-1", "1:0.1-1"],
    );
    equal(Scheme::Rpm, &["1.0-1", "0:1.0-1", "1_0-01"]);
}

#[test]
fn other_versions_order_as_text_with_numbers_by_value() {
    ascending(Scheme::Text, &["a", "a2", "a10", "a10b", "b", "1", "1.2", "1.10"]);
}

#[test]
fn what_a_scheme_cannot_read_still_has_a_key_below_the_rest() {
    assert!(order_key(Scheme::Pep440, "2004d") < order_key(Scheme::Pep440, "0.dev0"));
    assert!(order_key(Scheme::Pep440, "2004d") < order_key(Scheme::Pep440, "2004e"));
    assert!(order_key(Scheme::Pep440, "") < order_key(Scheme::Pep440, "x"));
    let long = "9".repeat(3_000);
    assert_eq!(Version::parse(Scheme::Maven, &long), Err(VersionError::TooLong(3_000)));
    assert!(order_key(Scheme::Maven, &long) < order_key(Scheme::Maven, &format!("{long}0")));
    assert_eq!(Version::parse(Scheme::SemVer, "  "), Err(VersionError::Empty));
}

#[test]
fn prereleases_and_releases_are_distinguished() {
    for (scheme, before, released) in [
        (Scheme::Pep440, ["1.0a1", "1.0.dev1", "1.0.post1.dev1"], ["1.0", "1.0.post1", "1.0+local"]),
        (Scheme::Maven, ["1-alpha", "1.0-SNAPSHOT", "1-rc2"], ["1.0.Final", "31-jre", "1-sp"]),
        (Scheme::SemVer, ["1.0.0-0", "1.0.0-beta+1", "1-x"], ["1.0.0", "1.0.0+build-1", "v1"]),
    ] {
        assert!(before.iter().all(|text| version(scheme, text).is_prerelease()), "{scheme:?}");
        assert!(!released.iter().any(|text| version(scheme, text).is_prerelease()), "{scheme:?}");
    }
}

#[test]
fn ecosystems_are_known_by_their_names() {
    assert_eq!(Scheme::of_ecosystem("PyPI"), Scheme::Pep440);
    assert_eq!(Scheme::of_ecosystem("Debian:12"), Scheme::Debian);
    assert_eq!(Scheme::of_ecosystem(concat!("crates", ".io")), Scheme::SemVer);
    assert_eq!(Scheme::of_ecosystem("RubyGems"), Scheme::Text);
    assert_eq!(Scheme::of_purl_type("golang"), Scheme::SemVer);
    assert_eq!(Scheme::of_purl_type("MAVEN"), Scheme::Maven);
}

/// PEP 440's parts as tuples, whose order is the definition.
type Python = (u32, Vec<u32>, Option<(u8, u32)>, Option<u32>, Option<u32>);

fn python() -> impl Strategy<Value = Python> {
    let number = || 0..12_u32;
    let pre = proptest::option::of((0..3_u8, number()));
    (
        0..2_u32,
        proptest::collection::vec(number(), 1..4),
        pre,
        proptest::option::of(number()),
        proptest::option::of(number()),
    )
}

fn python_text((epoch, release, pre, post, dev): &Python) -> String {
    let mut text = format!("{epoch}!");
    text += &release.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
    if let Some((class, number)) = pre {
        text += &format!("{}{number}", ["a", "b", "rc"][usize::from(*class)]);
    }
    text += &post.map(|number| format!(".post{number}")).unwrap_or_default();
    text + &dev.map(|number| format!(".dev{number}")).unwrap_or_default()
}

fn python_order(a: &Python, b: &Python) -> Ordering {
    let sortable = |(epoch, release, pre, post, dev): &Python| {
        let mut release = release.clone();
        while release.last() == Some(&0) {
            release.pop();
        }
        let class = match pre {
            Some((class, number)) => (i32::from(*class), *number),
            None if post.is_none() && dev.is_some() => (-1, 0),
            None => (9, 0),
        };
        (*epoch, release, class, *post, dev.map_or(u64::MAX, u64::from))
    };
    sortable(a).cmp(&sortable(b))
}

/// SemVer's precedence over the text, as its eleventh section words it.
fn semver_order(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| {
        let (core, pre) =
            text.split_once('-').map_or((text.to_string(), None), |(c, p)| (c.into(), Some(p.to_string())));
        (core.split('.').map(|number| number.parse::<u64>().unwrap()).collect::<Vec<_>>(), pre)
    };
    let ((core_a, pre_a), (core_b, pre_b)) = (parts(a), parts(b));
    core_a.cmp(&core_b).then_with(|| match (pre_a, pre_b) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Greater,
        (_, None) => Ordering::Less,
        (Some(a), Some(b)) => {
            let (mut a, mut b) = (a.split('.'), b.split('.'));
            loop {
                let order = match (a.next(), b.next()) {
                    (None, None) => return Ordering::Equal,
                    (None, _) => Ordering::Less,
                    (_, None) => Ordering::Greater,
                    (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                        (Ok(a), Ok(b)) => a.cmp(&b),
                        (Ok(_), _) => Ordering::Less,
                        (_, Ok(_)) => Ordering::Greater,
                        _ => a.cmp(b),
                    },
                };
                if order != Ordering::Equal {
                    return order;
                }
            }
        }
    })
}

/// Debian's comparison of one part, as its policy words it.
fn debian_order(mut a: &str, mut b: &str) -> Ordering {
    let weight = |c: Option<u8>| match c {
        Some(b'~') => -1,
        None => 0,
        Some(c) if c.is_ascii_alphabetic() => i32::from(c),
        Some(c) => i32::from(c) + 256,
    };
    while !(a.is_empty() && b.is_empty()) {
        let cut = |text: &str| text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        let ((words_a, rest_a), (words_b, rest_b)) = (a.split_at(cut(a)), b.split_at(cut(b)));
        for index in 0..words_a.len().max(words_b.len()) {
            let order =
                weight(words_a.as_bytes().get(index).copied()).cmp(&weight(words_b.as_bytes().get(index).copied()));
            if order != Ordering::Equal {
                return order;
            }
        }
        let ((number_a, after_a), (number_b, after_b)) = (crate::key::digits(rest_a), crate::key::digits(rest_b));
        let value = |digits: &str| if digits.is_empty() { 0 } else { digits.parse::<u64>().unwrap() };
        let order = value(number_a).cmp(&value(number_b));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (after_a, after_b);
    }
    Ordering::Equal
}

const SCHEMES: [Scheme; 8] = [
    Scheme::Alpine,
    Scheme::Debian,
    Scheme::Maven,
    Scheme::NuGet,
    Scheme::Pep440,
    Scheme::Rpm,
    Scheme::SemVer,
    Scheme::Text,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn python_keys_agree_with_the_definition(a in python(), b in python()) {
        let (left, right) = (version(Scheme::Pep440, &python_text(&a)), version(Scheme::Pep440, &python_text(&b)));
        prop_assert_eq!(left.cmp(&right), python_order(&a, &b), "{} {}", left, right);
    }

    #[test]
    fn semver_keys_agree_with_the_definition(
        a in "[0-2]\\.[0-2]\\.(0|1|10)(-(0|1|10|a|ab|a-1)(\\.(0|1|10|a|ab)){0,2})?",
        b in "[0-2]\\.[0-2]\\.(0|1|10)(-(0|1|10|a|ab|a-1)(\\.(0|1|10|a|ab)){0,2})?",
    ) {
        let (left, right) = (version(Scheme::SemVer, &a), version(Scheme::SemVer, &b));
        prop_assert_eq!(left.cmp(&right), semver_order(&a, &b), "{} {}", a, b);
    }

    #[test]
    fn debian_keys_agree_with_the_definition(
        a in "[0-2a~.+]{1,6}(-[0-2a~.+]{0,3})?", b in "[0-2a~.+]{1,6}(-[0-2a~.+]{0,3})?",
    ) {
        let split = |text: &str| text.rsplit_once('-').map_or((text.to_string(), String::new()), |(v, r)| (v.into(), r.into()));
        let ((upstream_a, revision_a), (upstream_b, revision_b)) = (split(&a), split(&b));
        let wanted = debian_order(&upstream_a, &upstream_b).then_with(|| debian_order(&revision_a, &revision_b));
        prop_assert_eq!(version(Scheme::Debian, &a).cmp(&version(Scheme::Debian, &b)), wanted, "{} {}", a, b);
    }

    #[test]
    fn keys_agree_with_versions_and_are_short(a in ".{0,40}", b in "[0-9a-z.~+!:_-]{0,20}", c in "[0-9.-]{0,9}(rc|a|sp)?[0-9]?") {
        for scheme in SCHEMES {
            for (left, right) in [(&a, &b), (&b, &c), (&a, &c)] {
                let (left_key, right_key) = (order_key(scheme, left), order_key(scheme, right));
                prop_assert!(left_key.len() < 2_000 && right_key.len() < 2_000, "{} {}", left, right);
                // Texts that are not versions come before all versions.
                let order = match (Version::parse(scheme, left), Version::parse(scheme, right)) {
                    (Ok(left), Ok(right)) => left.cmp(&right),
                    (left, right) if left.is_ok() != right.is_ok() => left.is_ok().cmp(&right.is_ok()),
                    _ => continue,
                };
                prop_assert_eq!(left_key.cmp(&right_key), order, "{:?} {} {}", scheme, left, right);
            }
        }
    }

    #[test]
    fn case_and_trailing_zeros_decide_nothing_where_schemes_say_so(text in "[0-9]{1,2}(\\.[0-9]){0,3}", zeros in 0..4_usize) {
        let padded = format!("{text}{}", ".0".repeat(zeros));
        for scheme in [Scheme::Pep440, Scheme::Maven] {
            prop_assert_eq!(version(scheme, &text), version(scheme, &padded));
            prop_assert_eq!(version(scheme, &format!("{padded}RC1")), version(scheme, &format!("{text}rc1")));
        }
    }
}
