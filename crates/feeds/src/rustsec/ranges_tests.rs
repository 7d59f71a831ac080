use semver::{Op, VersionReq};

use super::*;

/// Events as `i0 f1.2.0 l1.3.0 t2.0.0`, several ranges apart by `|`, single versions as `v1.0.0`.
fn affected(text: &str) -> Affected {
    let mut affected = Affected { package: None, severity: Vec::new(), ranges: Vec::new(), versions: Vec::new() };
    for part in text.split('|') {
        let mut events = Vec::new();
        for word in part.split_whitespace() {
            let version = word[1..].to_owned();
            match &word[..1] {
                "i" => events.push(Event::Introduced(version)),
                "f" => events.push(Event::Fixed(version)),
                "l" => events.push(Event::LastAffected(version)),
                "t" => events.push(Event::Limit(version)),
                _ => affected.versions.push(version),
            }
        }
        if !events.is_empty() {
            affected.ranges.push(Range { kind: RangeKind::Semver, repo: None, events });
        }
    }
    affected
}

fn read(text: &str) -> Result<(String, String), String> {
    let turned = requirements(&[&affected(text)])?;
    Ok((turned.unaffected.join(" | "), turned.patched.join(" | ")))
}

#[test]
fn ranges_are_turned_round() {
    for (record, unaffected, patched) in [
        ("i0 f1.2.0", "", ">= 1.2.0"),
        ("i0.0.0-0 f1.2.0", "", ">= 1.2.0"),
        ("i0", "", ""),
        ("i1.0.0", "< 1.0.0", ""),
        ("i1.0.0 f1.2.0", "< 1.0.0", ">= 1.2.0"),
        ("f1.2.0 i1.0.0", "< 1.0.0", ">= 1.2.0"),
        ("i0 l1.2.0", "", "> 1.2.0"),
        ("i1.0.0 f1.2.0 i2.0.0 f2.1.0", "< 1.0.0", ">= 1.2.0, < 2.0.0 | >= 2.1.0"),
        ("i1.0.0 l1.2.0 i2.0.0", "< 1.0.0", "> 1.2.0, < 2.0.0"),
        (
            "i0 f1.0.5 | i1.1.0 f1.1.2 | i2.0.0-alpha.1 f2.0.0",
            "",
            ">= 1.0.5, < 1.1.0 | >= 1.1.2, < 2.0.0-alpha.1 | >= 2.0.0",
        ),
        ("i1.0.0 f1.2.0 | i1.2.0 f1.3.0", "< 1.0.0", ">= 1.3.0"),
        ("i1.0.0 f1.5.0 | i1.2.0 l1.5.0", "< 1.0.0", "> 1.5.0"),
        ("i0 f2.0.0 | i1.0.0 f1.5.0", "", ">= 2.0.0"),
        ("i1.0.0-rc.1 f1.0.0-rc.3", "< 1.0.0-rc.1", ">= 1.0.0-rc.3"),
        ("i0 f1.2", "", ">= 1.2.0"),
        ("i1 f1.2-rc.1", "< 1.0.0", ">= 1.2.0-rc.1"),
        ("i0 f111.10.2+1.1.1g", "", ">= 111.10.2"),
        ("v1.0.0", "< 1.0.0", "> 1.0.0"),
        ("v1.0.0 v1.0.1 v1.0.0+b", "< 1.0.0", "> 1.0.0, < 1.0.1 | > 1.0.1"),
        ("i0 f1.0.0 v1.0.0 v0.5.0", "", "> 1.0.0"),
        ("i0 t2.0.0", "", ">= 2.0.0"),
        ("i0 f1.5.0 i1.8.0 t1.7.0 t1.9.0", "", ">= 1.5.0, < 1.8.0 | >= 1.9.0"),
        ("i0 l2.0.0 t2.0.0 t*", "", "> 2.0.0"),
        ("i1.0.0 l1.0.0", "< 1.0.0", "> 1.0.0"),
        ("i1.0.0 l1.2.0 f1.2.0", "< 1.0.0", ">= 1.2.0"),
    ] {
        assert_eq!(read(record), Ok((unaffected.into(), patched.into())), "{record}");
    }
}

#[test]
fn what_no_requirement_says_is_an_error() {
    for (record, error) in [
        ("", "it names no affected versions"),
        ("i1.0.0 f1.0.0", "it names no affected versions"),
        ("i2.0.0 t1.0.0", "it names no affected versions"),
        ("i0 fnext", "\"next\" is no semantic version"),
        ("i0 f1.2.3.4", "\"1.2.3.4\" is no semantic version"),
        ("i0 f01.2.3", "\"01.2.3\" is no semantic version"),
        ("i0 l1.0.18446744073709551615", "\"1.0.18446744073709551615\" is no semantic version"),
        ("v", "\"\" is no semantic version"),
    ] {
        assert_eq!(read(record).unwrap_err(), error, "{record}");
    }
    let mut git = affected("i0");
    git.ranges[0].kind = RangeKind::Git;
    assert!(requirements(&[&git]).is_err());
    let many: Vec<String> = (0..=MAX_INTERVALS).map(|patch| format!("v1.0.{patch}")).collect();
    assert!(read(&many.join(" ")).unwrap_err().contains("501 separate ranges"));
}

/// What a reader takes from requirements: each is one range, and versions in none of them are affected.
fn is_affected(requirements: &Requirements, version: &Version) -> bool {
    let all = requirements.patched.iter().chain(&requirements.unaffected);
    !all.map(|text| VersionReq::parse(text).unwrap()).any(|requirement| {
        requirement.comparators.iter().all(|one| {
            let at = Version {
                major: one.major,
                minor: one.minor.unwrap(),
                patch: one.patch.unwrap(),
                pre: one.pre.clone(),
                build: BuildMetadata::EMPTY,
            };
            match one.op {
                Op::GreaterEq => *version >= at,
                Op::Greater => *version > at,
                Op::Less => *version < at,
                _ => panic!("{requirement}"),
            }
        })
    })
}

#[test]
fn requirements_agree_with_what_queries_match() {
    let versions = [
        "0.0.0-0",
        "0.9.9",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1-0",
        "1.0.1",
        "1.2.0-beta",
        "1.2.0",
        "1.5.0",
        "2.0.0",
        "3.0.0",
    ];
    for record in [
        "i0 f1.2.0",
        "i1.0.0 l1.0.1 i1.2.0 f2.0.0",
        "i1.0.0-rc.1 f1.0.0 | i1.0.1 l1.5.0",
        "v1.0.0 v1.0.1",
        "i0 t1.2.0",
        "i1.2.0 f1.2.0 i1.5.0",
        "i0 l1.0.0 f1.0.0 i2.0.0 l2.0.0",
    ] {
        let affected = affected(record);
        let turned = requirements(&[&affected]).unwrap();
        let ranges: String =
            affected.ranges.iter().map(|range| bowline_osv::Affects::range(bowline_osv::RUST, range)).collect();
        for text in versions {
            let query = bowline_osv::VersionQuery::new(bowline_osv::RUST, Some(text));
            let expected = query.is_in(&ranges) || affected.versions.iter().any(|version| version == text);
            assert_eq!(is_affected(&turned, &Version::parse(text).unwrap()), expected, "{record}: {text}");
        }
    }
}
