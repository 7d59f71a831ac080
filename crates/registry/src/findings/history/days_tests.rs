use bowline_contract::v1::registry::vulnerability::Severity;

use super::super::report_ids::{IdNumbers, ReportIds};
use super::super::{FindingHistory, RepoHistory, ReportCounts};
use super::*;

const HOUR: Micros = 3600 * 1_000_000;

fn report(numbers: &mut IdNumbers, day: i64, findings: &[(Severity, &str)]) -> ReportCounts {
    let mut ids: BTreeMap<i32, BTreeSet<String>> = BTreeMap::new();
    for (severity, id) in findings {
        ids.entry(*severity as i32).or_default().insert((*id).into());
    }
    ReportCounts { at: start_of(day) + HOUR, ids: ReportIds::new(&ids, numbers) }
}

fn moved(moves: &[(i64, Option<usize>)]) -> Vec<(Micros, Option<usize>)> {
    moves.iter().map(|(day, image)| (start_of(*day) + 2 * HOUR, *image)).collect()
}

fn history(images: Vec<Vec<ReportCounts>>, tags: Vec<Vec<(Micros, Option<usize>)>>) -> FindingHistory {
    FindingHistory { repos: vec![RepoHistory { images, tags }], is_incomplete: false }
}

fn open(summary: &HistorySummary, severity: Severity) -> Vec<usize> {
    summary.days.iter().map(|day| day.open.get(&(severity as i32)).copied().unwrap_or(0)).collect()
}

#[test]
fn an_image_counts_while_a_tag_names_it_and_once_for_all_tags() {
    let mut numbers = IdNumbers::default();
    let mut report = |day, findings: &[_]| report(&mut numbers, day, findings);
    let first = report(1, &[(Severity::High, "a"), (Severity::Low, "b")]);
    let second = report(1, &[(Severity::High, "a")]);
    let tags = vec![moved(&[(2, Some(0)), (4, Some(1))]), moved(&[(2, Some(0)), (5, None)])];
    let summary = history(vec![vec![first], vec![second]], tags).summarize((1, 6));
    assert_eq!(open(&summary, Severity::High), [0, 1, 1, 2, 1, 1]);
    assert_eq!(open(&summary, Severity::Low), [0, 1, 1, 1, 0, 0]);
    assert_eq!(summary.days.iter().map(|day| day.images).collect::<Vec<_>>(), [0, 1, 1, 2, 1, 1]);
    assert_eq!(summary.fixed, BTreeMap::from([(FixedFinding { severity: Severity::Low as i32, days: 4 }, 1)]));
    assert_eq!(summary.days[4].fixed, Counts::from([(Severity::Low as i32, 1)]));
    assert_eq!(summary.open, BTreeMap::from([(OpenFinding { severity: Severity::High as i32, age: 5 }, 1)]));
    assert_eq!(summary.vulnerabilities, 1);
}

#[test]
fn an_image_without_a_report_fixes_nothing() {
    let mut numbers = IdNumbers::default();
    let mut report = |day, findings: &[_]| report(&mut numbers, day, findings);
    let first = report(1, &[(Severity::High, "a")]);
    let third = report(5, &[]);
    let tags = vec![moved(&[(1, Some(0)), (3, Some(1))])];
    let summary = history(vec![vec![first], vec![third]], tags).summarize((1, 5));
    assert_eq!(open(&summary, Severity::High), [1, 1, 0, 0, 0]);
    assert_eq!(summary.days.iter().map(|day| day.unreported).collect::<Vec<_>>(), [0, 0, 1, 1, 0]);
    let fixed: Vec<usize> = summary.days.iter().map(|day| day.fixed.values().sum()).collect();
    assert_eq!(fixed, [0, 0, 0, 0, 1], "the report says so, not the move");
    assert_eq!(summary.fixed.first_key_value().map(|(fixed, count)| (fixed.days, *count)), Some((4, 1)));
}

#[test]
fn what_was_fixed_before_the_first_day_is_not_counted_and_a_newer_report_counts() {
    let mut numbers = IdNumbers::default();
    let mut report = |day, findings: &[_]| report(&mut numbers, day, findings);
    let reports = vec![
        report(1, &[(Severity::High, "a"), (Severity::Low, "b")]),
        report(2, &[(Severity::Low, "b")]),
        report(4, &[(Severity::Critical, "b")]),
    ];
    let summary = history(vec![reports], vec![moved(&[(1, Some(0))])]).summarize((3, 4));
    assert_eq!((open(&summary, Severity::Low), open(&summary, Severity::Critical)), (vec![1, 0], vec![0, 1]));
    assert!(summary.fixed.is_empty());
    assert_eq!(summary.open, BTreeMap::from([(OpenFinding { severity: Severity::Critical as i32, age: 3 }, 1)]));
}

#[test]
fn repositories_that_take_too_many_steps_are_left_out() {
    let mut numbers = IdNumbers::default();
    let finding = report(&mut numbers, 1, &[(Severity::High, "a")]);
    let small = || RepoHistory { images: vec![vec![finding.clone()]], tags: vec![moved(&[(2, Some(0))])] };
    // Each of them is looked at on every day.
    let many_tags = RepoHistory { images: Vec::new(), tags: vec![Vec::new(); MAX_STEPS / 366 + 1] };
    // Each day shows the findings of every tag.
    let ids: Vec<String> = (0..2_000).map(|n| format!("CVE-{n}")).collect();
    let ids: Vec<(Severity, &str)> = ids.iter().map(|id| (Severity::Low, id.as_str())).collect();
    let often: Vec<(i64, Option<usize>)> = (1..366).map(|day| (day, Some(0))).collect();
    let changing = RepoHistory { images: vec![vec![report(&mut numbers, 1, &ids)]], tags: vec![moved(&often); 40] };
    let repos = vec![small(), many_tags, changing, small()];
    let summary = FindingHistory { repos, is_incomplete: false }.summarize((1, 366));
    assert_eq!((summary.left_out, summary.days[365].images), (2, 2));
    assert_eq!(open(&summary, Severity::Low)[365], 0);
    assert_eq!(open(&summary, Severity::High)[365], 2);
}
