use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::parse;

fn matches(ranges: &str, ecosystem: &str, version: Option<&str>) -> bool {
    VersionQuery::new(ecosystem, version).is_in(ranges)
}

fn ranges_of(affected: &serde_json::Value) -> String {
    let record = json!({"id": "A-1", "modified": "2024-01-01T00:00:00Z", "affected": [affected]});
    let parsed = parse(&serde_json::to_vec(&record).unwrap()).unwrap();
    Affects::of(&parsed.record).remove(0).ranges
}

fn with_events(events: serde_json::Value) -> String {
    ranges_of(
        &json!({"package": {"ecosystem": "PyPI", "name": "a"}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}),
    )
}

fn hit(ranges: &str, version: &str) -> bool {
    matches(ranges, "PyPI", Some(version))
}

#[test]
fn a_range_begins_with_what_introduced_it_and_ends_before_what_fixed_it() {
    let ranges = with_events(json!([{"introduced": "1.0"}, {"fixed": "1.5"}, {"introduced": "2.0"}, {"fixed": "2.1"}]));
    for (version, expected) in [
        ("0.9", false),
        ("1.0", true),
        ("1.4.9", true),
        ("1.5", false),
        ("1.9", false),
        ("2.0.1", true),
        ("2.1", false),
    ] {
        assert_eq!(hit(&ranges, version), expected, "{version}");
    }
}

#[test]
fn the_order_of_events_in_the_record_does_not_count() {
    let ranges = with_events(json!([{"fixed": "2.1"}, {"introduced": "2.0"}, {"fixed": "1.5"}, {"introduced": "0"}]));
    for (version, expected) in [("0", true), ("1.4", true), ("1.5", false), ("2.0", true), ("3", false)] {
        assert_eq!(hit(&ranges, version), expected, "{version}");
    }
}

#[test]
fn the_last_affected_version_is_affected() {
    let ranges = with_events(json!([{"introduced": "1"}, {"last_affected": "1"}]));
    assert!(hit(&ranges, "1.0"));
    assert!(!hit(&ranges, "1.0.1"));
}

#[test]
fn a_range_that_is_fixed_where_it_begins_holds_nothing() {
    let ranges = with_events(json!([{"introduced": "1"}, {"fixed": "1"}]));
    assert!(!hit(&ranges, "1"));
    assert!(!hit(&ranges, "2"));
}

#[test]
fn a_limit_cuts_a_range_off() {
    let ranges = with_events(json!([{"introduced": "1"}, {"limit": "2"}]));
    assert!(hit(&ranges, "1.9"));
    assert!(!hit(&ranges, "2"));
    let unlimited = with_events(json!([{"introduced": "1"}, {"limit": "*"}]));
    assert!(hit(&unlimited, "200"));
}

#[test]
fn single_versions_match_in_other_spellings_too() {
    let ranges = ranges_of(&json!({"package": {"ecosystem": "PyPI", "name": "a"}, "versions": ["1.0", "strange"]}));
    assert!(hit(&ranges, "1.0"));
    assert!(hit(&ranges, "1.0.0"));
    assert!(hit(&ranges, "strange"));
    assert!(!hit(&ranges, "1.1"));
}

#[test]
fn a_version_that_cannot_be_ordered_is_in_no_range() {
    let ranges = with_events(json!([{"introduced": "0"}, {"fixed": "1"}]));
    assert!(!hit(&ranges, "not-a-version"));
    let open = with_events(json!([{"introduced": "0"}]));
    assert!(hit(&open, "not-a-version"), "whatever it is, it is affected");
}

#[test]
fn releases_are_distinguished_if_one_is_requested() {
    let ranges = ranges_of(&json!({
        "package": {"ecosystem": "Debian:12", "name": "curl"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2"}]}],
    }));
    assert!(matches(&ranges, "Debian:12", Some("1")));
    assert!(matches(&ranges, "debian:12", Some("1")));
    assert!(!matches(&ranges, "Debian:11", Some("1")));
    assert!(matches(&ranges, "Debian", Some("1")));
    assert!(!matches(&ranges, "Debian", Some("2")));
}

#[test]
fn a_release_has_its_variants_and_an_entry_without_one_is_about_all() {
    let ranges =
        |ecosystem: &str| ranges_of(&json!({ "package": { "ecosystem": ecosystem, "name": "a" }, "versions": ["1"] }));
    for (entry, query, expected) in [
        ("Ubuntu:22.04:LTS", "Ubuntu:22.04", true),
        ("Ubuntu:22.04:LTS", "Ubuntu:22.04:LTS", true),
        ("Ubuntu:22.04", "Ubuntu:22.04:LTS", false),
        ("Ubuntu:Pro:22.04:LTS", "Ubuntu:22.04", false),
        ("Ubuntu:22.04:LTS", "Ubuntu:22", false),
        ("Red Hat:enterprise_linux:9::baseos", "red hat:Enterprise_Linux:9", true),
        ("Red Hat:enterprise_linux:90::baseos", "Red Hat:enterprise_linux:9", false),
        ("Debian:1é", "Debian:1", false),
        ("Debian", "Debian:12", true),
        ("Alpine", "Debian:12", false),
    ] {
        assert_eq!(matches(&ranges(entry), query, Some("1")), expected, "{entry} {query}");
    }
}

#[test]
fn without_a_version_the_package_alone_matches() {
    let ranges = with_events(json!([{"introduced": "5"}, {"fixed": "6"}]));
    assert!(matches(&ranges, "PyPI", None));
    let bare = ranges_of(&json!({"package": {"ecosystem": "PyPI", "name": "a"}}));
    assert!(matches(&bare, "PyPI", None));
    assert!(!hit(&bare, "1"), "without ranges and versions no version is affected");
}

#[test]
fn modules_are_asked_for_with_and_without_their_prefix() {
    let ranges = ranges_of(&json!({
        "package": {"ecosystem": "Go", "name": "m"},
        "ranges": [{"type": "SEMVER", "events": [{"introduced": "1.0.0"}, {"fixed": "1.2.0"}]}],
    }));
    assert!(matches(&ranges, "Go", Some("v1.1.0")));
    assert!(matches(&ranges, "Go", Some("1.1.0")));
    assert!(!matches(&ranges, "Go", Some("v1.2.0")));
}

#[test]
fn entries_of_one_package_are_kept_together_and_commits_left_out() {
    let record = json!({"id": "A-1", "modified": "2024-01-01T00:00:00Z", "affected": [
        {"package": {"ecosystem": "Debian:11", "name": "curl"}, "versions": ["1"]},
        {"package": {"ecosystem": "Debian:12", "name": "curl"}, "versions": ["2"]},
        {"ranges": [{"type": "GIT", "repo": "https://example.com/r", "events": [{"introduced": "0"}]}]},
        {"package": {"ecosystem": "npm", "name": "a"},
         "ranges": [{"type": "GIT", "repo": "https://example.com/r", "events": [{"introduced": "0"}]}]},
    ]});
    let parsed = parse(&serde_json::to_vec(&record).unwrap()).unwrap();
    let affects = Affects::of(&parsed.record);
    let keys: Vec<&str> = affects.iter().map(|affects| affects.package.as_str()).collect();
    assert_eq!(keys, ["debian/curl", "npm/a"]);
    assert_eq!(affects[0].ranges, "eDebian:11\nv1\neDebian:12\nv2\n");
    assert!(!matches(&affects[1].ranges, "npm", Some("1")));

    let mut withdrawn = record;
    withdrawn["withdrawn"] = json!("2024-02-01T00:00:00Z");
    let parsed = parse(&serde_json::to_vec(&withdrawn).unwrap()).unwrap();
    assert_eq!(Affects::of(&parsed.record), []);
}

/// The definition of the schema, by sorted events, as it is written there.
fn by_definition(events: &[(u64, bool)], version: u64) -> bool {
    let mut sorted = events.to_vec();
    sorted.sort_by_key(|(at, begins)| (*at, !begins));
    sorted.iter().fold(false, |vulnerable, (at, begins)| if version >= *at { *begins } else { vulnerable })
}

proptest! {
    #[test]
    fn matching_agrees_with_the_definition(
        events in proptest::collection::vec((1_u64..20, any::<bool>()), 0..8),
        version in 0_u64..22,
    ) {
        let mut all = vec![(0, true)];
        all.extend(events);
        let written: Vec<_> = all.iter()
            .map(|(at, begins)| if *begins { json!({"introduced": at.to_string()}) } else { json!({"fixed": at.to_string()}) })
            .collect();
        prop_assert_eq!(hit(&with_events(json!(written)), &version.to_string()), by_definition(&all, version));
    }
}

#[test]
fn the_fix_is_the_lowest_fixed_version_above() {
    let ranges = with_events(json!([{"introduced": "0"}, {"fixed": "1.10"}, {"introduced": "2.0"}, {"fixed": "2.1"}]));
    for (version, expected) in [("1.9", Some("1.10")), ("1.10", Some("2.1")), ("2.0", Some("2.1")), ("2.1", None)] {
        assert_eq!(VersionQuery::new("PyPI", Some(version)).fixed_in(&ranges), expected, "{version}");
    }
    for (ecosystem, version) in [("npm", Some("1.9")), ("PyPI", Some("no version")), ("PyPI", None)] {
        assert_eq!(VersionQuery::new(ecosystem, version).fixed_in(&ranges), None, "{ecosystem} {version:?}");
    }
    let unfixed = with_events(json!([{"introduced": "0"}, {"last_affected": "3"}]));
    assert_eq!(VersionQuery::new("pypi", Some("1")).fixed_in(&unfixed), None);
}
