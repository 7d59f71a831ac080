//! Findings in numbers: by severity and day, by age, and how long they took to be fixed.

use std::collections::BTreeMap;

use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_core::Result;
use bowline_pipeline::Authorized;
use bowline_registry::findings::history::{self, DayCounts, FixedFinding, OpenFinding};
use bowline_registry::findings::require_scope;
use bowline_resources::days::{DayLimits, day_span};
use bowline_resources::list::timestamp;
use bowline_store::ReadTx;
use bowline_store::activity::start_of;
use bowline_store::counters::{self, Scope};

const DAYS: DayLimits = DayLimits { usual: 30, max: 366 };
/// Where the ages begin that are counted together, in days.
const AGES: [i64; 6] = [0, 7, 30, 90, 180, 365];
/// Severities in the order in which they are shown.
const SEVERITIES: [Severity; 6] =
    [Severity::Critical, Severity::High, Severity::Medium, Severity::Low, Severity::Negligible, Severity::Unknown];

pub(super) async fn get(tx: &mut ReadTx, call: &Authorized<own::GetPostureRequest>) -> Result<own::PostureSummary> {
    let scope = call.require_scope()?;
    require_scope(tx, scope).await?;
    let request = call.request();
    let (first, last) = day_span(request.start_time, request.end_time, call.now(), DAYS)?;
    let history = history::load(tx, scope, start_of(last + 1)).await?;
    let summary = history.summarize((first, last));
    Ok(own::PostureSummary {
        scope: scope.as_str().into(),
        days: (first..).zip(summary.days).map(|(day, counts)| shown_day(day, &counts)).collect(),
        ages: ages(&summary.open),
        fix_times: fix_times(&summary.fixed),
        vulnerabilities: number(summary.vulnerabilities),
        repos: counters::total(tx, "repos", &Scope::Subtree(scope.as_str())).await?,
        counted_repos: number(history.repos().saturating_sub(summary.left_out)),
        report_time: history.newest_report().and_then(timestamp),
        incomplete: history.is_incomplete || summary.left_out > 0,
    })
}

fn shown_day(day: i64, counts: &DayCounts) -> own::PostureDay {
    own::PostureDay {
        day: timestamp(start_of(day)),
        open: Some(severity_counts(&counts.open)),
        fixed: Some(severity_counts(&counts.fixed)),
        images: number(counts.images),
        unreported_images: number(counts.unreported),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn severity_counts(counts: &BTreeMap<i32, usize>) -> own::SeverityCounts {
    let of = |severity: Severity| number(counts.get(&(severity as i32)).copied().unwrap_or(0));
    own::SeverityCounts {
        critical: of(Severity::Critical),
        high: of(Severity::High),
        medium: of(Severity::Medium),
        low: of(Severity::Low),
        negligible: of(Severity::Negligible),
        unknown: of(Severity::Unknown),
    }
}

fn ages(open: &BTreeMap<OpenFinding, usize>) -> Vec<own::PostureAge> {
    let of = |(at, from): (usize, i64)| {
        let to = AGES.get(at + 1).copied();
        let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
        for (finding, count) in open.iter().filter(|(one, _)| one.age >= from && to.is_none_or(|to| one.age < to)) {
            *counts.entry(finding.severity).or_default() += count;
        }
        let (from_days, to_days) = (from as i32, to.unwrap_or(0) as i32);
        own::PostureAge { from_days, to_days, open: Some(severity_counts(&counts)) }
    };
    AGES.into_iter().enumerate().map(of).collect()
}

fn fix_times(fixed: &BTreeMap<FixedFinding, usize>) -> Vec<own::FixTimes> {
    let of = |severity: Severity| {
        let of_severity = fixed.iter().filter(|(finding, _)| finding.severity == severity as i32);
        let days: Vec<(i64, usize)> = of_severity.map(|(finding, count)| (finding.days, *count)).collect();
        let all = days.iter().map(|(_, count)| count).sum::<usize>();
        let mean = days.iter().map(|(days, count)| days * *count as i64).sum::<i64>().checked_div(all as i64)?;
        Some(own::FixTimes {
            severity: severity as i32,
            fixed: number(all),
            mean_days: mean as i32,
            median_days: percentile(&days, 50),
            p90_days: percentile(&days, 90),
        })
    };
    SEVERITIES.into_iter().filter_map(of).collect()
}

/// The least of these sorted numbers, each with how often it is there, that so many of a hundred do not exceed.
fn percentile(sorted: &[(i64, usize)], percent: usize) -> i32 {
    let all = sorted.iter().map(|(_, count)| count).sum::<usize>();
    let mut left = (all * percent).div_ceil(100);
    let at = sorted.iter().find(|(_, count)| {
        left = left.saturating_sub(*count);
        left == 0
    });
    at.map_or(0, |(days, _)| *days as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_counted_from_the_least_on() {
        let open = |age: i64| (OpenFinding { severity: Severity::High as i32, age }, 1);
        let counted = ages(&[open(0), open(6), open(7), open(365), open(5000)].into());
        let high: Vec<i32> = counted.iter().map(|age| age.open.as_ref().map_or(0, |open| open.high)).collect();
        assert_eq!(high, [2, 1, 0, 0, 0, 2]);
        assert_eq!((counted[0].to_days, counted[5].from_days, counted[5].to_days), (7, 365, 0));
    }

    #[test]
    fn times_until_a_fix_are_those_of_their_severity() {
        let fixed = |severity: Severity, days: i64| FixedFinding { severity: severity as i32, days };
        let mut all: BTreeMap<FixedFinding, usize> = (1..=10).map(|days| (fixed(Severity::Low, days), 1)).collect();
        all.insert(fixed(Severity::Critical, 3), 1);
        let times = fix_times(&all);
        let shown: Vec<[i32; 5]> =
            times.iter().map(|one| [one.severity, one.fixed, one.mean_days, one.median_days, one.p90_days]).collect();
        assert_eq!(shown, [[Severity::Critical as i32, 1, 3, 3, 3], [Severity::Low as i32, 10, 5, 5, 9]]);
    }
}
