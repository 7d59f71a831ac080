//! The decision, by cases and by properties.

use proptest::prelude::*;

use super::super::age::FirstSeen;
use super::*;

fn pattern(purl: &str) -> Pattern {
    Pattern::parse(purl).expect("a package URL")
}

fn subject() -> Subject<'static> {
    Subject {
        language: Language::JavaScript,
        name: "left-pad",
        version: "1.3.0",
        license: "MIT OR Apache-2.0",
        is_malware: false,
        age: Age::published(Some(0)),
        vulnerabilities: &[],
        is_own: false,
    }
}

fn exempt(bypass_cooldown: bool, bypass_malware: bool) -> Exemption {
    Exemption { pattern: pattern("pkg:npm/left-pad"), bypass_cooldown, bypass_malware }
}

const LATE: Micros = 1000 * DAY;

#[test]
fn without_a_policy_of_its_own_a_version_waits_seven_days() {
    let policy = Policy::default();
    let refused = |now| decide(&policy, &subject(), now) != Decision::Allowed;
    assert!(refused(0) && refused(7 * DAY - 1));
    assert!(!refused(7 * DAY));
    let unknown = Subject { age: Age::default(), ..subject() };
    let waits_for_ever = Refusal::Cooldown { days: 7, until: None, first_seen_at: None };
    assert_eq!(decide(&policy, &unknown, LATE), Decision::Refused(waits_for_ever));
    assert_eq!(decide(&Policy { cooldown_days: Some(0), ..policy }, &unknown, 0), Decision::Allowed);
}

#[test]
fn the_block_list_beats_the_allow_list() {
    let policy = Policy {
        blocked: vec![pattern("pkg:npm/left-pad@1.3.0")],
        allowed: vec![exempt(true, true)],
        ..Policy::default()
    };
    let decision = decide(&policy, &subject(), LATE);
    assert_eq!(decision, Decision::Refused(Refusal::Blocked(pattern("pkg:npm/left-pad@1.3.0"))));
}

#[test]
fn no_exemption_lifts_a_licence() {
    let policy =
        Policy { blocked_licenses: vec!["apache-2.0".into()], allowed: vec![exempt(true, true)], ..Policy::default() };
    assert_eq!(decide(&policy, &subject(), LATE), Decision::Refused(Refusal::License("apache-2.0".into())));
    let other = Policy { blocked_licenses: vec!["Apache-2".into()], ..policy };
    assert_eq!(decide(&other, &subject(), LATE), Decision::Allowed);
}

#[test]
fn exemptions_lift_what_they_say_and_nothing_else() {
    let malicious = Subject { is_malware: true, ..subject() };
    let with = |entry| Policy { allowed: vec![entry], ..Policy::default() };
    assert_eq!(decide(&with(exempt(true, false)), &malicious, LATE), Decision::Refused(Refusal::Malware));
    assert_eq!(decide(&with(exempt(false, true)), &malicious, LATE), Decision::Allowed);
    let too_young = Decision::Refused(Refusal::Cooldown { days: 7, until: Some(7 * DAY), first_seen_at: None });
    assert_eq!(decide(&with(exempt(false, true)), &malicious, 0), too_young);
    assert_eq!(decide(&with(exempt(true, true)), &malicious, 0), Decision::Allowed);
}

fn patterns() -> impl Strategy<Value = Pattern> {
    let purls = ["pkg:npm/left-pad", "pkg:npm/left-pad@1.3.0", "pkg:npm/other", "pkg:npm", "pkg:pypi"];
    (0..purls.len()).prop_map(move |index| pattern(purls[index]))
}

fn policies() -> impl Strategy<Value = Policy> {
    let exemption = (patterns(), any::<bool>(), any::<bool>())
        .prop_map(|(pattern, bypass_cooldown, bypass_malware)| Exemption { pattern, bypass_cooldown, bypass_malware });
    let licenses = prop::collection::vec(prop::sample::select(vec!["MIT".to_string(), "GPL-3.0".into()]), 0..2);
    let lists = (prop::collection::vec(patterns(), 0..2), prop::collection::vec(exemption, 0..3), licenses);
    (prop::option::of(0..=30_i32), lists).prop_map(|(cooldown_days, (blocked, allowed, blocked_licenses))| Policy {
        cooldown_days,
        blocked,
        allowed,
        blocked_licenses,
        age_source: AgeSource::default(),
        vulnerabilities: None,
        overrides: Overrides::default(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn waiting_never_turns_a_yes_into_a_no(policy in policies(), malware: bool, published in prop::option::of(0..LATE), now in 0..LATE, more in 0..LATE) {
        let subject = Subject { is_malware: malware, age: Age::published(published), ..subject() };
        if decide(&policy, &subject, now) == Decision::Allowed {
            prop_assert_eq!(decide(&policy, &subject, now + more), Decision::Allowed);
        }
    }

    #[test]
    fn a_cooldown_ends_when_it_says(policy in policies(), published in 0..LATE, now in 0..LATE) {
        let subject = Subject { age: Age::published(Some(published)), ..subject() };
        if let Decision::Refused(Refusal::Cooldown { until: Some(until), days, .. }) = decide(&policy, &subject, now) {
            prop_assert_eq!(until - published, Micros::from(days) * DAY);
            prop_assert_eq!(decide(&policy, &subject, until), Decision::Allowed);
            prop_assert!(decide(&policy, &subject, until - 1) != Decision::Allowed);
        }
    }

    #[test]
    fn more_blocking_never_allows_more(policy in policies(), more in patterns(), malware: bool, now in 0..LATE) {
        let subject = Subject { is_malware: malware, ..subject() };
        let mut stricter = policy.clone();
        stricter.blocked.push(more);
        if decide(&stricter, &subject, now) == Decision::Allowed {
            prop_assert_eq!(decide(&policy, &subject, now), Decision::Allowed);
        }
    }

    #[test]
    fn what_is_blocked_or_badly_licensed_stays_so_whatever_is_allowed(policy in policies(), now in 0..LATE) {
        let anything = Exemption { pattern: pattern("pkg:npm"), bypass_cooldown: true, bypass_malware: true };
        let laxer = Policy { allowed: vec![anything], ..policy.clone() };
        if let Decision::Refused(refusal @ (Refusal::Blocked(_) | Refusal::License(_))) = decide(&policy, &subject(), now) {
            prop_assert_eq!(decide(&laxer, &subject(), now), Decision::Refused(refusal));
        } else {
            prop_assert_eq!(decide(&laxer, &Subject { is_malware: true, ..subject() }, now), Decision::Allowed);
        }
    }
}

fn excepted(bypass_malware: bool, bypass_freeze: bool) -> Overrides {
    let pattern = pattern("pkg:npm/left-pad@1.3.0");
    let exception = Exception { pattern, bypass_malware, bypass_freeze, ends_at: DAY };
    Overrides { exceptions: vec![exception], freezes: Vec::new() }
}

#[test]
fn an_exception_lifts_the_cooldown_of_one_version_until_it_ends() {
    let policy = Policy { overrides: excepted(false, false), ..Policy::default() };
    assert_eq!(decide(&policy, &subject(), DAY - 1), Decision::Allowed);
    let waits = Decision::Refused(Refusal::Cooldown { days: 7, until: Some(7 * DAY), first_seen_at: None });
    assert_eq!(decide(&policy, &subject(), DAY), waits, "it has ended");
    let other = Subject { version: "1.3.1", ..subject() };
    assert_eq!(decide(&policy, &other, 0), waits, "another version");
    let malware = Subject { is_malware: true, ..subject() };
    assert_eq!(decide(&policy, &malware, 0), Decision::Refused(Refusal::Malware));
    let policy = Policy { overrides: excepted(true, false), ..policy };
    assert_eq!(decide(&policy, &malware, 0), Decision::Allowed);
}

#[test]
fn no_exception_lifts_a_block_or_a_licence() {
    let policy = Policy { overrides: excepted(true, true), ..Policy::default() };
    let blocked = Policy { blocked: vec![pattern("pkg:npm/left-pad")], ..policy.clone() };
    assert_eq!(decide(&blocked, &subject(), 0), Decision::Refused(Refusal::Blocked(pattern("pkg:npm/left-pad"))));
    let licensed = Policy { blocked_licenses: vec!["MIT".into()], ..policy };
    assert_eq!(decide(&licensed, &subject(), 0), Decision::Refused(Refusal::License("MIT".into())));
}

#[test]
fn a_freeze_beats_exemptions_and_yields_to_an_exception_of_it() {
    let freeze = |language| Freeze { language, cutoff: -1, includes_own: false };
    let frozen = |mut overrides: Overrides, language| {
        overrides.freezes.push(freeze(language));
        Policy { cooldown_days: Some(0), allowed: vec![exempt(true, true)], overrides, ..Policy::default() }
    };
    let policy = frozen(Overrides::default(), Language::JavaScript);
    let refusal = |published_at| Decision::Refused(Refusal::Frozen { cutoff: -1, published_at, first_seen_at: None });
    assert_eq!(decide(&policy, &subject(), LATE), refusal(Some(0)));
    assert_eq!(decide(&policy, &Subject { age: Age::default(), ..subject() }, LATE), refusal(None));
    assert_eq!(decide(&policy, &Subject { age: Age::published(Some(-1)), ..subject() }, LATE), Decision::Allowed);
    assert_eq!(decide(&frozen(excepted(true, false), Language::JavaScript), &subject(), 0), refusal(Some(0)));
    assert_eq!(decide(&frozen(excepted(false, true), Language::JavaScript), &subject(), 0), Decision::Allowed);
    assert_eq!(decide(&frozen(Overrides::default(), Language::Python), &subject(), 0), Decision::Allowed);
}

#[test]
fn own_packages_have_no_cooldown_and_are_frozen_where_a_freeze_says_so() {
    let own = Subject { is_own: true, ..subject() };
    let frozen = |includes_own| {
        let freezes = vec![Freeze { language: Language::JavaScript, cutoff: -1, includes_own }];
        Policy { overrides: Overrides { exceptions: Vec::new(), freezes }, ..Policy::default() }
    };
    assert_eq!(decide(&Policy::default(), &own, 0), Decision::Allowed);
    assert_eq!(decide(&frozen(false), &own, 0), Decision::Allowed);
    let refusal = Refusal::Frozen { cutoff: -1, published_at: Some(0), first_seen_at: None };
    assert_eq!(decide(&frozen(true), &own, 0), Decision::Refused(refusal));
    let blocked = Policy { blocked: vec![pattern("pkg:npm/left-pad")], ..Policy::default() };
    assert_eq!(decide(&blocked, &own, 0), Decision::Refused(Refusal::Blocked(pattern("pkg:npm/left-pad"))));
}

fn vulnerability(severity: Severity, fixed_since: Option<Micros>) -> Vulnerability {
    let fix =
        fixed_since.map(|since| Fix { version: "1.3.1".into(), age: Age::published(Some(since)), recorded_at: since });
    Vulnerability { id: "A-1".into(), severity, fix }
}

fn strict(minimum: Severity, fix_days: i32, cooldown_days: i32, includes_unfixed: bool) -> Policy {
    let vulnerabilities = Some(VulnerabilityRule { minimum, fix_days, includes_unfixed });
    Policy { vulnerabilities, cooldown_days: Some(cooldown_days), ..Policy::default() }
}

#[test]
fn a_vulnerability_counts_once_its_fix_is_old_enough() {
    let found = [vulnerability(Severity::High, Some(10 * DAY))];
    let subject = Subject { vulnerabilities: &found, ..subject() };
    let refusal = Decision::Refused(Refusal::Vulnerable(found[0].clone()));
    let policy = strict(Severity::High, 14, 7, false);
    assert_eq!(decide(&policy, &subject, 24 * DAY - 1), Decision::Allowed);
    assert_eq!(vulnerable_at(&policy, Language::JavaScript, &found, 24 * DAY - 1), Some(24 * DAY));
    assert_eq!(
        (decide(&policy, &subject, 24 * DAY), vulnerable_at(&policy, Language::JavaScript, &found, 24 * DAY)),
        (refusal.clone(), None)
    );
    // A fix that may not be installed yet does not count.
    let slow = strict(Severity::High, 14, 30, false);
    assert_eq!(
        (decide(&slow, &subject, 40 * DAY - 1), decide(&slow, &subject, 40 * DAY)),
        (Decision::Allowed, refusal)
    );
    let higher = strict(Severity::Critical, 0, 0, true);
    assert_eq!(
        (decide(&higher, &subject, LATE), vulnerable_at(&higher, Language::JavaScript, &found, 0)),
        (Decision::Allowed, None)
    );
    let own = Subject { is_own: true, ..subject };
    assert_eq!(decide(&policy, &own, LATE), Decision::Allowed);
    // Nor does one that a freeze withholds.
    let frozen = |language, cutoff| {
        let freezes = vec![Freeze { language, cutoff, includes_own: false }];
        let overrides = Overrides { exceptions: Vec::new(), freezes };
        decide(&Policy { overrides, ..strict(Severity::High, 14, 7, false) }, &subject, LATE)
    };
    assert_eq!(frozen(Language::JavaScript, 10 * DAY - 1), Decision::Allowed);
    assert_eq!(frozen(Language::JavaScript, 10 * DAY), Decision::Refused(Refusal::Vulnerable(found[0].clone())));
}

#[test]
fn a_vulnerability_without_a_fix_counts_where_the_rule_says_so() {
    let found = [vulnerability(Severity::Low, None), vulnerability(Severity::Critical, None)];
    let subject = Subject { vulnerabilities: &found, ..subject() };
    let refusal = Decision::Refused(Refusal::Vulnerable(found[1].clone()));
    assert_eq!(decide(&strict(Severity::Medium, 0, 0, false), &subject, LATE), Decision::Allowed);
    assert_eq!(decide(&strict(Severity::Medium, 365, 0, true), &subject, 0), refusal);
}

#[test]
fn an_exception_lifts_vulnerabilities_and_an_exemption_does_not() {
    let found = [vulnerability(Severity::Critical, Some(0))];
    let subject = Subject { vulnerabilities: &found, ..subject() };
    let refusal = Decision::Refused(Refusal::Vulnerable(found[0].clone()));
    let exempted = Policy { allowed: vec![exempt(true, true)], ..strict(Severity::Low, 0, 0, false) };
    assert_eq!(decide(&exempted, &subject, LATE), refusal);
    let exceptions = vec![Exception {
        pattern: pattern("pkg:npm/left-pad@1.3.0"),
        bypass_malware: false,
        bypass_freeze: false,
        ends_at: LATE + 1,
    }];
    let overrides = Overrides { exceptions, freezes: Vec::new() };
    let excepted = Policy { overrides, ..strict(Severity::Low, 0, 0, false) };
    assert_eq!(
        (decide(&excepted, &subject, LATE), decide(&excepted, &subject, LATE + 1)),
        (Decision::Allowed, refusal)
    );
}

/// Published on day 1, and seen first on day 100.
fn backdated(is_new: bool) -> Age {
    Age::of(Some(DAY), Some(FirstSeen { at: 100 * DAY, is_new }))
}

#[test]
fn a_policy_counts_from_its_source() {
    let until = |source, is_new| {
        let policy = Policy { age_source: source, ..Policy::default() };
        match decide(&policy, &Subject { age: backdated(is_new), ..subject() }, 101 * DAY) {
            Decision::Refused(Refusal::Cooldown { until, first_seen_at, .. }) => {
                assert_eq!(first_seen_at, Some(100 * DAY));
                until
            }
            decision => {
                assert_eq!(decision, Decision::Allowed);
                None
            }
        }
    };
    let later = Some(107 * DAY);
    for (source, of_new, of_first_list) in [
        (AgeSource::Upstream, None, None),
        (AgeSource::NewVersions, later, None),
        (AgeSource::AllVersions, later, later),
    ] {
        assert_eq!((until(source, true), until(source, false)), (of_new, of_first_list), "{source:?}");
    }
    let own = Subject { age: backdated(true), is_own: true, ..subject() };
    assert_eq!(decide(&Policy { age_source: AgeSource::AllVersions, ..Policy::default() }, &own, 0), Decision::Allowed);
}

#[test]
fn a_fix_that_waits_since_it_was_seen_does_not_count() {
    let fix = Fix { version: "1.3.1".into(), age: backdated(true), recorded_at: 0 };
    let found = [Vulnerability { id: "A-1".into(), severity: Severity::High, fix: Some(fix) }];
    let subject = Subject { vulnerabilities: &found, ..subject() };
    let refused = Decision::Refused(Refusal::Vulnerable(found[0].clone()));
    let by = |age_source| Policy { age_source, ..strict(Severity::High, 0, 7, false) };
    assert_eq!(decide(&by(AgeSource::Upstream), &subject, 101 * DAY), refused);
    let policy = by(AgeSource::NewVersions);
    assert_eq!(decide(&policy, &subject, 107 * DAY - 1), Decision::Allowed);
    assert_eq!(vulnerable_at(&policy, Language::JavaScript, &found, 101 * DAY), Some(107 * DAY));
    assert_eq!(decide(&policy, &subject, 107 * DAY), refused);
}

#[test]
fn the_days_of_a_rule_count_from_what_the_upstream_says() {
    let fix = Fix { version: "1.3.1".into(), age: backdated(true), recorded_at: 0 };
    let found = [Vulnerability { id: "A-1".into(), severity: Severity::High, fix: Some(fix) }];
    for (fix_days, cooldown, from) in [(30, 7, 107), (30, 0, 100), (200, 7, 201)] {
        let strict = strict(Severity::High, fix_days, cooldown, false);
        let policy = Policy { age_source: AgeSource::NewVersions, ..strict };
        let at = vulnerable_at(&policy, Language::JavaScript, &found, 0);
        assert_eq!(at, Some(from * DAY), "{fix_days} {cooldown}");
    }
}

#[test]
fn freezes_count_new_versions_from_when_they_were_seen() {
    let freezes = vec![Freeze { language: Language::JavaScript, cutoff: 50 * DAY, includes_own: false }];
    let overrides = Overrides { exceptions: Vec::new(), freezes };
    for (source, is_new, is_frozen) in [
        (AgeSource::Upstream, true, false),
        (AgeSource::NewVersions, true, true),
        (AgeSource::AllVersions, true, true),
        (AgeSource::AllVersions, false, false),
    ] {
        let policy = Policy { age_source: source, overrides: overrides.clone(), ..Policy::default() };
        let decision = decide(&policy, &Subject { age: backdated(is_new), ..subject() }, LATE);
        let seen = Some(100 * DAY);
        let frozen = Refusal::Frozen { cutoff: 50 * DAY, published_at: seen, first_seen_at: seen };
        let frozen = Decision::Refused(frozen);
        assert_eq!(decision, if is_frozen { frozen } else { Decision::Allowed }, "{source:?} {is_new}");
    }
}
