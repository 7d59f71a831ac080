//! What an import plans.

use bowline_contract::bowline::advisories::v1::ImportOutcome::{Changed, Created, Refused, Unchanged};
use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::advisory_event::{Fixed, TruePositiveDetermination, Type};
use bowline_core::Uidp;

use super::super::rows::{AdvisoryRow, Subject};
use super::plan::{Entry, Plan, Terms};

const TERMS: Terms = Terms { may_update: true, approved: false, now: 1_000_000_000 };

fn fixed(version: &str, seconds: Option<i64>) -> v1::AdvisoryEvent {
    v1::AdvisoryEvent {
        r#type: Some(Type::Fixed(Fixed { fixed_version: version.into(), ..Fixed::default() })),
        timestamp: seconds.map(|seconds| prost_types::Timestamp { seconds, nanos: 0 }),
        ..v1::AdvisoryEvent::default()
    }
}

fn given(id: &str, aliases: &[&str], events: Vec<v1::AdvisoryEvent>) -> v1::Advisory {
    v1::Advisory {
        artifact_type: "apk".into(),
        artifact_name: "curl".into(),
        advisory_id: id.into(),
        aliases: aliases.iter().map(ToString::to_string).collect(),
        events,
        ..v1::Advisory::default()
    }
}

fn stored(id: &str, aliases: &[&str], published: bool) -> Entry {
    let row = AdvisoryRow {
        uid: Uidp::root_from([1; 20]).child_from([2; 8]),
        advisory_id: id.into(),
        legacy_id: String::new(),
        subject: Subject { artifact_type: "apk".into(), artifact_name: "curl".into(), ..Subject::default() },
        aliases: aliases.iter().map(ToString::to_string).collect(),
        author: "author".into(),
        latest_event_type: i32::from(published),
        latest_statement_type: i32::from(published),
        event_count: 1,
        event_bytes: 10,
        created_at: 0,
        updated_at: 0,
        deleted_at: None,
    };
    let kind = Type::Fixed(Fixed { fixed_version: "1".into(), ..Fixed::default() });
    Entry::of(row, vec![(kind, 5_000_000)])
}

#[test]
fn the_same_again_changes_nothing() {
    let mut plan = Plan::new(vec![stored("BWL-2222-2222-2222", &["CVE-1"], true)], Default::default(), TERMS);
    for events in [vec![fixed("1", None)], vec![fixed("1", Some(5))], vec![]] {
        assert_eq!(plan.add(&given("", &["cve-1"], events)).result.outcome(), Unchanged);
    }
    for event in [fixed("2", None), fixed("1", Some(6))] {
        assert_eq!(plan.add(&given("", &["CVE-1"], vec![event.clone()])).result.outcome(), Changed);
        assert_eq!(plan.add(&given("", &["CVE-1"], vec![event])).result.outcome(), Unchanged);
    }
}

#[test]
fn later_advisories_of_a_batch_see_the_earlier_ones() {
    let mut plan = Plan::new(Vec::new(), Default::default(), TERMS);
    assert_eq!(plan.add(&given("CGA-2222-2222-2222", &["CVE-1"], vec![fixed("1", None)])).result.outcome(), Created);
    assert_eq!(plan.add(&given("", &["CVE-2"], vec![])).result.outcome(), Created);
    // By the alias, by the public id, and by both of two that are not the same.
    assert_eq!(plan.add(&given("", &["CVE-1"], vec![fixed("1", None)])).result.outcome(), Unchanged);
    assert_eq!(plan.add(&given("CGA-2222-2222-2222", &[], vec![])).result.outcome(), Unchanged);
    let both = plan.add(&given("", &["CVE-1", "CVE-2"], vec![]));
    assert_eq!((both.result.outcome(), both.result.withheld_aliases), (Unchanged, vec!["CVE-2".to_owned()]));
    assert_eq!(plan.entries.len(), 2);
}

#[test]
fn an_id_that_is_taken_stays_an_alias() {
    let taken = ["CGA-2222-2222-2222".to_owned()].into();
    let mut plan = Plan::new(Vec::new(), taken, TERMS);
    assert_eq!(plan.add(&given("CGA-2222-2222-2222", &["CVE-1"], vec![])).result.outcome(), Created);
    assert_eq!((plan.entries[0].advisory_id.as_str(), plan.entries[0].aliases.len()), ("", 2));
}

#[test]
fn what_is_approved_gets_no_alias_without_a_review() {
    for (terms, published, added) in [
        (TERMS, true, false),
        (TERMS, false, true),
        (Terms { approved: true, ..TERMS }, true, true),
        (Terms { may_update: false, ..TERMS }, false, false),
    ] {
        let mut plan = Plan::new(vec![stored("BWL-2222-2222-2222", &["CVE-1"], published)], Default::default(), terms);
        let result = plan.add(&given("", &["CVE-1", "GHSA-1"], vec![])).result;
        let (outcome, expected) = if added { (Changed, vec!["GHSA-1".to_owned()]) } else { (Unchanged, vec![]) };
        assert_eq!((result.outcome(), &result.added_aliases), (outcome, &expected), "{terms:?}");
        assert_eq!(result.withheld_aliases.is_empty(), added);
    }
}

#[test]
fn what_cannot_be_stored_is_refused_by_itself() {
    let mut plan = Plan::new(Vec::new(), Default::default(), TERMS);
    let empty = v1::AdvisoryEvent { r#type: Some(Type::Patched(Default::default())), ..Default::default() };
    let aliases: Vec<String> = (0..51).map(|n| format!("CVE-{n}")).collect();
    let aliases: Vec<&str> = aliases.iter().map(String::as_str).collect();
    for (wrong, words) in [
        (given("", &[], vec![]), "neither an alias"),
        (given("", &["CVE-1"], vec![empty]), "patched"),
        (given("", &["CVE-1"], vec![fixed("1", Some(9_000_000))]), "future"),
        (given("", &["CVE-1"], vec![v1::AdvisoryEvent::default()]), "kind"),
        (given("", &aliases, vec![]), "50 aliases"),
        (given("", &["CVE-1"], (0..1001).map(|n| fixed(&n.to_string(), None)).collect()), "1000 events"),
    ] {
        let result = plan.add(&wrong).result;
        assert!(result.outcome() == Refused && result.reason.contains(words), "{words}: {}", result.reason);
    }
    assert!(plan.entries.is_empty());
    let note = TruePositiveDetermination { note: "n".into() };
    let event = v1::AdvisoryEvent { r#type: Some(Type::TruePositiveDetermination(note)), ..Default::default() };
    assert_eq!(plan.add(&given("", &["CVE-1"], vec![event])).result.outcome(), Created);
}
