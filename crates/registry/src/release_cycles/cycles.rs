//! Which cycle a version belongs to, and what the cycle says on a day.

use bowline_contract::bowline::registry::v1::{ReleaseCycle, ReleaseProduct};
use bowline_contract::v1::registry as v1;
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Micros, rfc3339::parse_micros};

/// How long organizations with the setting may use images after the end of life.
pub(super) const GRACE_MONTHS: u32 = 6;

/// A day of UTC, as `YYYY-MM-DD`.
pub(super) fn day(at: Micros) -> String {
    let mut text = rfc3339::text(at, Digits::Fewest);
    text.truncate("YYYY-MM-DD".len());
    text
}

/// The beginning of a day; absent for what is no date.
pub(super) fn start_of(date: &str) -> Option<Micros> {
    parse_micros(&format!("{date}T00:00:00Z"))
}

/// Names by which the product of a package or repository is looked up, the best first: `nodejs-22-fips` may be the
/// product of this name, a FIPS build, or a package of one cycle.
pub(super) fn product_names(package: &str) -> Vec<&str> {
    let plain = package.strip_suffix("-fips").unwrap_or(package);
    let mut names = vec![package, plain];
    if let Some((name, version)) = plain.rsplit_once('-')
        && version.starts_with(|first: char| first.is_ascii_digit())
    {
        names.push(name);
    }
    names.dedup();
    names
}

/// The version that a package or repository is named after, if it is: the `22` of `nodejs-22`.
pub(super) fn version_in_name(package: &str) -> Option<&str> {
    let plain = package.strip_suffix("-fips").unwrap_or(package);
    let (_, version) = plain.rsplit_once('-')?;
    version.starts_with(|first: char| first.is_ascii_digit()).then_some(version)
}

/// The cycle of a version: the longest whose name the version is, or begins with before a separator.
pub(super) fn cycle_of<'a>(product: &'a ReleaseProduct, version: &str) -> Option<&'a ReleaseCycle> {
    let version = version.strip_prefix('v').unwrap_or(version);
    let belongs = |cycle: &&ReleaseCycle| {
        let name = cycle.name.strip_prefix('v').unwrap_or(&cycle.name);
        let rest = version.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_', '+']))
    };
    product.cycles.iter().filter(belongs).max_by_key(|cycle| cycle.name.len())
}

/// Whether there are no more fixes on a day.
pub(super) fn has_ended(cycle: &ReleaseCycle, today: &str) -> bool {
    if cycle.end_date.is_empty() { cycle.ended } else { cycle.end_date.as_str() <= today }
}

/// What a tag is on a day, and until when its grace lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub(super) tag: v1::EolTagStatus,
    pub(super) grace: v1::EolGracePeriodStatus,
    /// Absent where there is no grace.
    pub(super) grace_end: Option<Micros>,
}

impl State {
    /// Supported, as far as is known.
    pub(super) const ACTIVE: State =
        State { tag: v1::EolTagStatus::TagActive, grace: v1::EolGracePeriodStatus::GraceNotEligible, grace_end: None };
}

/// The state of a tag whose version belongs to the cycle. An end without a date has no grace, because nothing says when
/// it would be over.
pub(super) fn state(cycle: &ReleaseCycle, now: Micros, organization_has_grace: bool) -> State {
    if !has_ended(cycle, &day(now)) {
        return State::ACTIVE;
    }
    let Some(grace_end) = grace_end(&cycle.end_date) else {
        return State { tag: v1::EolTagStatus::TagInactive, ..State::ACTIVE };
    };
    let (tag, grace) = match (now < grace_end, organization_has_grace) {
        (true, true) => (v1::EolTagStatus::TagInGrace, v1::EolGracePeriodStatus::GraceActive),
        (true, false) => (v1::EolTagStatus::TagInactive, v1::EolGracePeriodStatus::GraceEligible),
        (false, _) => (v1::EolTagStatus::TagInactive, v1::EolGracePeriodStatus::GraceExpired),
    };
    State { tag, grace, grace_end: Some(grace_end) }
}

/// When the grace after an end is over: the same day six months later, or the last of that month.
fn grace_end(date: &str) -> Option<Micros> {
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<u32>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let months = month.checked_sub(1)? + GRACE_MONTHS;
    let (year, month) = (year + months / 12, months % 12 + 1);
    (1..=day).rev().take(4).find_map(|day| start_of(&format!("{year:04}-{month:02}-{day:02}")))
}

#[cfg(test)]
mod tests {
    use v1::{EolGracePeriodStatus as Grace, EolTagStatus as Tag};

    use super::*;

    fn cycle(name: &str, end_date: &str) -> ReleaseCycle {
        ReleaseCycle { name: name.into(), end_date: end_date.into(), ..ReleaseCycle::default() }
    }

    fn at(date: &str) -> Micros {
        start_of(date).expect("a date")
    }

    #[test]
    fn a_version_belongs_to_the_longest_cycle_that_it_begins_with() {
        let cycles = ["3", "3.1", "3.12", "v4"].map(|name| cycle(name, ""));
        let product = ReleaseProduct { cycles: cycles.into(), ..ReleaseProduct::default() };
        let of = |version: &str| cycle_of(&product, version).map(|cycle| cycle.name.as_str());
        for (version, expected) in [
            ("3.12", Some("3.12")),
            ("v3.12.4-r1", Some("3.12")),
            ("3.12-dev", Some("3.12")),
            ("3.1.9", Some("3.1")),
            ("3.13.0", Some("3")),
            ("4.0", Some("v4")),
            ("31", None),
            ("latest", None),
            ("", None),
        ] {
            assert_eq!(of(version), expected, "{version}");
        }
    }

    #[test]
    fn products_are_found_by_packages_of_one_cycle_and_fips_builds() {
        assert_eq!(product_names("python"), ["python"]);
        assert_eq!(product_names("python-3.12"), ["python-3.12", "python"]);
        assert_eq!(product_names("nodejs-22-fips"), ["nodejs-22-fips", "nodejs-22", "nodejs"]);
        assert_eq!(product_names("amazon-linux"), ["amazon-linux"]);
        assert_eq!(version_in_name("nodejs-22-fips"), Some("22"));
        assert_eq!(version_in_name("amazon-linux"), None);
    }

    #[test]
    fn the_grace_is_six_months_and_for_organizations_with_the_setting() {
        let cycle = cycle("3.8", "2026-08-31");
        let of = |date: &str, grace| state(&cycle, at(date), grace);
        assert_eq!(of("2026-08-30", true), State::ACTIVE);
        let end = Some(at("2027-02-28"));
        assert_eq!(of("2026-08-31", true), State { tag: Tag::TagInGrace, grace: Grace::GraceActive, grace_end: end });
        let eligible = State { tag: Tag::TagInactive, grace: Grace::GraceEligible, grace_end: end };
        assert_eq!(of("2027-02-27", false), eligible);
        let expired = State { tag: Tag::TagInactive, grace: Grace::GraceExpired, grace_end: end };
        assert_eq!(of("2027-02-28", true), expired);
    }

    #[test]
    fn an_end_without_a_date_has_no_grace() {
        let cycle = ReleaseCycle { ended: true, ..cycle("1", "") };
        assert_eq!(state(&cycle, at("2026-01-01"), true), State { tag: Tag::TagInactive, ..State::ACTIVE });
    }
}
