//! The findings of each day, out of reports and moves of tags.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bowline_core::Micros;
use bowline_store::activity::{day_of, start_of};

use super::report_ids::IdNumber;
use super::{FindingHistory, RepoHistory, ReportCounts};
use crate::scan_reports::parse::rank;

/// Steps of one summary: tags looked at, and vulnerabilities of the reports that they show. It holds one of the few turns
/// of costly reads, so repositories that may need more than is left are left out.
const MAX_STEPS: usize = 20_000_000;

/// Counts by number of the severity.
type Counts = BTreeMap<i32, usize>;

/// The findings at the end of a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DayCounts {
    /// Open findings: vulnerabilities of tagged images, each under its highest severity in the image.
    pub open: BTreeMap<i32, usize>,
    /// Vulnerabilities that no tagged image of their repository has any longer.
    pub fixed: BTreeMap<i32, usize>,
    /// Tagged images with a report.
    pub images: usize,
    /// Tagged images without one.
    pub unreported: usize,
}

/// A finding that is open at the end of the last day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenFinding {
    /// Number of the severity.
    pub severity: i32,
    /// Days since the first report of the repository that has it.
    pub age: i64,
}

/// A vulnerability that was fixed in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FixedFinding {
    /// Number of the severity.
    pub severity: i32,
    /// Days from the first report that has it to the day on which it was fixed.
    pub days: i64,
}

/// The findings of some days in numbers.
#[derive(Clone, Debug, Default)]
pub struct HistorySummary {
    /// Each of the days, the first one first.
    pub days: Vec<DayCounts>,
    /// How many there are of each.
    pub open: BTreeMap<OpenFinding, usize>,
    /// How many there are of each: a tag that is moved to and fro fixes the same ones again and again.
    pub fixed: BTreeMap<FixedFinding, usize>,
    /// Different vulnerabilities that are open at the end of the last day.
    pub vulnerabilities: usize,
    /// Repositories that were not counted, because they take too long.
    pub left_out: usize,
}

/// An image of a repository, and the position of its newest report.
type Reported = (usize, usize);

impl FindingHistory {
    /// Sums the days of a span, which are days since the epoch.
    pub fn summarize(&self, (first, last): (i64, i64)) -> HistorySummary {
        let days = usize::try_from(last - first + 1).unwrap_or(0);
        let mut summary = HistorySummary { days: vec![DayCounts::default(); days], ..HistorySummary::default() };
        let mut vulnerabilities: HashSet<IdNumber> = HashSet::new();
        let mut steps = MAX_STEPS;
        for repo in &self.repos {
            match steps.checked_sub(repo.steps(days)) {
                Some(left) => {
                    steps = left;
                    repo.add_to(&mut summary, first, &mut vulnerabilities);
                }
                None => summary.left_out += 1,
            }
        }
        summary.vulnerabilities = vulnerabilities.len();
        summary
    }
}

/// Where the tags of a repository are at the end of a day.
#[derive(Default)]
struct Tagged {
    reported: BTreeSet<Reported>,
    unreported: BTreeSet<usize>,
}

impl RepoHistory {
    /// How many steps so many days take at most: each day looks at every tag, and a day on which something changes at
    /// every vulnerability that the tags can show.
    fn steps(&self, days: usize) -> usize {
        let findings = |report: &ReportCounts| report.ids.count();
        let largest: Vec<usize> =
            self.images.iter().map(|reports| reports.iter().map(findings).max().unwrap_or(0)).collect();
        let of_tag = |moves: &Vec<(Micros, Option<usize>)>| {
            moves.iter().filter_map(|(_, image)| largest.get((*image)?).copied()).max().unwrap_or(0)
        };
        let shown = self.tags.iter().map(of_tag).sum::<usize>();
        let changes = self.tags.iter().map(Vec::len).chain(self.images.iter().map(Vec::len)).sum::<usize>();
        let tags = days.saturating_mul(self.tags.len());
        tags.saturating_add(changes.min(days).saturating_add(1).saturating_mul(shown))
    }

    fn add_to(&self, summary: &mut HistorySummary, first: i64, vulnerabilities: &mut HashSet<IdNumber>) {
        let first_seen = self.first_seen();
        // What each tag showed last: a move to an image without a report shows nothing new.
        let mut shown: Vec<Option<Reported>> = vec![None; self.tags.len()];
        self.tagged(start_of(first), &mut shown);
        let mut before = self.open(&shown);
        let (mut same, mut counts) = (BTreeSet::new(), BTreeMap::new());
        for (day, counted) in (first..).zip(&mut summary.days) {
            let shown_before = shown.clone();
            let tagged = self.tagged(start_of(day + 1), &mut shown);
            if tagged.reported != same {
                counts = self.counts(&tagged.reported);
                same.clone_from(&tagged.reported);
            }
            counted.images += tagged.reported.len();
            counted.unreported += tagged.unreported.len();
            for (severity, count) in &counts {
                *counted.open.entry(*severity).or_default() += count;
            }
            if shown == shown_before {
                continue;
            }
            let open = self.open(&shown);
            for (id, severity) in before.iter().filter(|(id, _)| !open.contains_key(*id)) {
                *counted.fixed.entry(*severity).or_default() += 1;
                let days = day - first_seen.get(id).map_or(day, |at| day_of(*at));
                *summary.fixed.entry(FixedFinding { severity: *severity, days }).or_default() += 1;
            }
            before = open;
        }
        let last = first + summary.days.len() as i64 - 1;
        for (image, report) in same {
            for (severity, ids) in self.images[image][report].ids.iter() {
                for id in ids {
                    let age = last - first_seen.get(id).map_or(last, |at| day_of(*at));
                    *summary.open.entry(OpenFinding { severity, age }).or_default() += 1;
                    vulnerabilities.insert(*id);
                }
            }
        }
    }

    /// When each vulnerability was first in a report.
    fn first_seen(&self) -> HashMap<IdNumber, Micros> {
        let mut first: HashMap<IdNumber, Micros> = HashMap::new();
        for report in self.images.iter().flatten() {
            for id in report.ids.all() {
                let at = first.entry(id).or_insert(report.at);
                *at = report.at.min(*at);
            }
        }
        first
    }

    /// Where the tags are right before a time; `shown` follows those that are at a report.
    fn tagged(&self, end: Micros, shown: &mut [Option<Reported>]) -> Tagged {
        let mut tagged = Tagged::default();
        for (moves, shown) in self.tags.iter().zip(shown) {
            let moved = moves.partition_point(|(at, _)| *at < end);
            let Some((_, image)) = moved.checked_sub(1).and_then(|at| moves.get(at)) else { continue };
            let Some(image) = *image else {
                *shown = None;
                continue;
            };
            let reports = self.images[image].partition_point(|report| report.at < end);
            match reports.checked_sub(1) {
                Some(report) => {
                    tagged.reported.insert((image, report));
                    *shown = Some((image, report));
                }
                None => {
                    tagged.unreported.insert(image);
                }
            }
        }
        tagged
    }

    fn counts(&self, reported: &BTreeSet<Reported>) -> Counts {
        let mut counts = Counts::new();
        for (image, report) in reported {
            for (severity, ids) in self.images[*image][*report].ids.iter() {
                *counts.entry(severity).or_default() += ids.len();
            }
        }
        counts
    }

    /// The vulnerabilities that the tags show, each with its highest severity.
    fn open(&self, shown: &[Option<Reported>]) -> HashMap<IdNumber, i32> {
        let mut open: HashMap<IdNumber, i32> = HashMap::new();
        let reports: BTreeSet<&Reported> = shown.iter().flatten().collect();
        for (image, report) in reports {
            for (severity, ids) in self.images[*image][*report].ids.iter() {
                for id in ids {
                    let known = open.entry(*id).or_insert(severity);
                    if rank(severity) > rank(*known) {
                        *known = severity;
                    }
                }
            }
        }
        open
    }
}

#[cfg(test)]
#[path = "days_tests.rs"]
mod tests;
