//! The versions that a record affects, as the requirements of a RustSec advisory: which say what is not affected.
//!
//! A reader takes each requirement for one range, refuses ranges that overlap, and takes what is between them as affected.

use bowline_osv::{Affected, Event, Range, RangeKind};
use semver::{BuildMetadata, Version};

/// Most ranges of versions of one advisory. A reader compares each with each.
const MAX_INTERVALS: usize = 500;
/// Largest number in a version: a reader adds one to it.
const MAX_NUMBER: u64 = u32::MAX as u64;
/// The lowest version that there is.
const LOWEST: &str = "0.0.0-0";

/// Version requirements that are met by versions that are not affected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Requirements {
    /// Those above affected versions.
    pub(super) patched: Vec<String>,
    /// Those below all affected versions.
    pub(super) unaffected: Vec<String>,
}

/// Where affected versions end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Before(Version),
    At(Version),
    Open,
}

/// Affected versions without a gap; without a start, from the lowest version on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    start: Option<Version>,
    end: End,
}

/// The requirements for what is not affected; the error says why there are none.
pub(super) fn requirements(affected: &[&Affected]) -> Result<Requirements, String> {
    let mut intervals = Vec::new();
    for affected in affected {
        for range in affected.ranges.iter().filter(|range| range.kind != RangeKind::Git) {
            intervals.extend(of_range(range)?);
        }
        for version in &affected.versions {
            let version = parse(version)?;
            intervals.push(Interval { start: Some(version.clone()), end: End::At(version) });
        }
    }
    let intervals = merged(intervals);
    match intervals.len() {
        0 => Err("it names no affected versions".into()),
        1..=MAX_INTERVALS => Ok(complement(&intervals)),
        many => Err(format!("it has {many} separate ranges of versions, more than {MAX_INTERVALS}")),
    }
}

/// A version without its build metadata, which has no order. Numbers that are missing are zero, as in `1.2`.
fn parse(text: &str) -> Result<Version, String> {
    let refuse = || format!("{text:?} is no semantic version");
    let core = text.find(['-', '+']).unwrap_or(text.len());
    let missing = 2_usize.saturating_sub(text[..core].matches('.').count());
    let full = format!("{}{}{}", &text[..core], ".0".repeat(missing), &text[core..]);
    let mut version = Version::parse(&full).map_err(|_| refuse())?;
    if [version.major, version.minor, version.patch].into_iter().any(|number| number > MAX_NUMBER) {
        return Err(refuse());
    }
    version.build = BuildMetadata::EMPTY;
    Ok(version)
}

/// A version at which affected ones begin; absent for the lowest.
fn start(text: &str) -> Result<Option<Version>, String> {
    let version = parse(text)?;
    Ok((text != "0" && version.to_string() != LOWEST).then_some(version))
}

/// What happens at a version, in the order in which it counts there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begins,
    EndsAfter,
    EndsBefore,
}

fn of_range(range: &Range) -> Result<Vec<Interval>, String> {
    let mut steps = Vec::new();
    let mut limits = Vec::new();
    for event in &range.events {
        match event {
            Event::Introduced(version) => steps.push((start(version)?, Step::Begins)),
            Event::LastAffected(version) => steps.push((Some(parse(version)?), Step::EndsAfter)),
            Event::Fixed(version) => steps.push((Some(parse(version)?), Step::EndsBefore)),
            Event::Limit(version) if version == "*" => limits.push(None),
            Event::Limit(version) => limits.push(Some(parse(version)?)),
        }
    }
    steps.sort();
    let intervals = swept(steps);
    // The highest limit counts, and `*` is above every version.
    if limits.is_empty() || limits.contains(&None) {
        return Ok(intervals);
    }
    let limit = limits.into_iter().flatten().max();
    Ok(limit.map_or(Vec::new(), |limit| below(intervals, &limit)))
}

/// The intervals that steps make, which are in the order of their versions.
fn swept(steps: Vec<(Option<Version>, Step)>) -> Vec<Interval> {
    let mut intervals: Vec<Interval> = Vec::new();
    let mut open: Option<Option<Version>> = None;
    for (at, step) in steps {
        match (step, at) {
            (Step::Begins, at) => _ = open.get_or_insert(at),
            (Step::EndsAfter, Some(at)) => {
                intervals.extend(open.take().map(|start| Interval { start, end: End::At(at) }));
            }
            (Step::EndsBefore, Some(at)) => {
                // What is fixed in a version is not affected there, even if that was the last affected one.
                if let Some(last) = intervals.last_mut().filter(|last| last.end == End::At(at.clone())) {
                    last.end = End::Before(at.clone());
                }
                intervals.extend(open.take().map(|start| Interval { start, end: End::Before(at) }));
            }
            (Step::EndsAfter | Step::EndsBefore, None) => {}
        }
    }
    intervals.extend(open.map(|start| Interval { start, end: End::Open }));
    intervals.retain(|one| !matches!((&one.start, &one.end), (Some(start), End::Before(end)) if start >= end));
    intervals
}

/// Without what is at a version or above it.
fn below(intervals: Vec<Interval>, limit: &Version) -> Vec<Interval> {
    let within = intervals.into_iter().filter(|one| one.start.as_ref().is_none_or(|start| start < limit));
    within
        .map(|one| {
            let ends_within = match &one.end {
                End::Before(end) => end <= limit,
                End::At(end) => end < limit,
                End::Open => false,
            };
            if ends_within { one } else { Interval { end: End::Before(limit.clone()), ..one } }
        })
        .collect()
}

/// In order, with those joined that touch.
fn merged(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_by(|one, other| one.start.cmp(&other.start));
    let mut merged: Vec<Interval> = Vec::new();
    for next in intervals {
        match merged.last_mut() {
            Some(last) if last.end.reaches(next.start.as_ref()) => {
                if next.end.is_above(&last.end) {
                    last.end = next.end;
                }
            }
            _ => merged.push(next),
        }
    }
    merged
}

impl End {
    /// Whether no version is between this end and that start.
    fn reaches(&self, start: Option<&Version>) -> bool {
        match self {
            End::Open => true,
            End::Before(end) | End::At(end) => start.is_none_or(|start| start <= end),
        }
    }

    fn is_above(&self, other: &End) -> bool {
        match (self, other) {
            (_, End::Open) => false,
            (End::Open, _) => true,
            (End::At(one), End::Before(other)) => one >= other,
            (End::Before(one) | End::At(one), End::Before(other) | End::At(other)) => one > other,
        }
    }

    /// The lower bound of what comes after it.
    fn lower_bound(&self) -> Option<String> {
        match self {
            End::Before(end) => Some(format!(">= {end}")),
            End::At(end) => Some(format!("> {end}")),
            End::Open => None,
        }
    }
}

/// What is outside of intervals in order.
fn complement(intervals: &[Interval]) -> Requirements {
    let first = intervals.first().and_then(|one| one.start.as_ref());
    let unaffected = first.map(|start| format!("< {start}")).into_iter().collect();
    let starts = intervals.iter().skip(1).map(|next| next.start.as_ref()).chain([None]);
    let between = |(one, next): (&Interval, Option<&Version>)| {
        let lower = one.end.lower_bound()?;
        Some(next.map_or_else(|| lower.clone(), |next| format!("{lower}, < {next}")))
    };
    Requirements { patched: intervals.iter().zip(starts).filter_map(between).collect(), unaffected }
}

#[cfg(test)]
#[path = "ranges_tests.rs"]
mod tests;
