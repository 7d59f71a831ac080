//! Lifetimes of tokens, as callers may request them.

use bowline_core::{Error, Micros, Result};
use prost_types::{Duration, Timestamp};

use crate::iam::relationship::{CLOCK_SKEW, micros};

const SECOND: Micros = 1_000_000;
const HOUR: Micros = 3600 * SECOND;
const YEAR: Micros = 365 * 24 * HOUR;

/// End of a new token: in a year by default, never on request.
///
/// # Errors
/// INVALID_ARGUMENT for both at once, and for a time that is over or more than two years ahead.
pub(super) fn ends(now: Micros, requested: Option<&Timestamp>, never: bool) -> Result<Option<Micros>> {
    let refuse = |what: &str| Err(Error::invalid_field("expireTime", what));
    let Some(requested) = requested else {
        return Ok(if never { None } else { Some(now + YEAR) });
    };
    if never {
        return refuse("expireTime and neverExpires exclude each other");
    }
    match micros(requested) {
        None => refuse("expireTime is not a time"),
        Some(end) if end <= now => refuse("expireTime is over already"),
        // Clocks differ: a request for exactly two years may arrive as a little more.
        Some(end) if end > now + 2 * YEAR + CLOCK_SKEW => refuse("expireTime may be at most two years ahead"),
        Some(end) => Ok(Some(end)),
    }
}

/// How long a replaced token continues working, and the request as the response repeats it; an hour by
/// default.
///
/// # Errors
/// INVALID_ARGUMENT for what is negative or longer than a day.
pub(super) fn overlap(requested: Option<Duration>) -> Result<(Micros, Duration)> {
    let requested = requested.unwrap_or(Duration { seconds: HOUR / SECOND, nanos: 0 });
    let length = requested.seconds.checked_mul(SECOND).map(|length| length + Micros::from(requested.nanos / 1000));
    let is_formed = requested.seconds >= 0 && (0..1_000_000_000).contains(&requested.nanos);
    match length.filter(|length| is_formed && *length <= 24 * HOUR) {
        Some(length) => Ok((length, requested)),
        None => Err(Error::invalid_field("overlap", "overlap must be 0 to 24 hours")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Micros = 1_800_000_000 * SECOND;

    fn at(time: Micros) -> Timestamp {
        Timestamp { seconds: time / SECOND, nanos: 0 }
    }

    #[test]
    fn tokens_end_within_two_years() {
        assert_eq!(ends(NOW, None, false).unwrap(), Some(NOW + YEAR));
        assert_eq!(ends(NOW, None, true).unwrap(), None);
        for good in [NOW + SECOND, NOW + 2 * YEAR] {
            assert_eq!(ends(NOW, Some(&at(good)), false).unwrap(), Some(good));
        }
        for bad in [NOW, NOW - SECOND, NOW + 2 * YEAR + HOUR] {
            assert!(ends(NOW, Some(&at(bad)), false).is_err(), "{bad}");
        }
        assert!(ends(NOW, Some(&at(NOW + HOUR)), true).is_err());
        assert!(ends(NOW, Some(&Timestamp { seconds: i64::MAX, nanos: -1 }), false).is_err());
    }

    #[test]
    fn overlaps_last_a_day_at_most() {
        let of = |seconds, nanos| overlap(Some(Duration { seconds, nanos })).map(|(length, _)| length);
        assert_eq!(overlap(None).unwrap().0, HOUR);
        assert_eq!(of(0, 0).unwrap(), 0);
        assert_eq!(of(24 * 3600, 0).unwrap(), 24 * HOUR);
        for (seconds, nanos) in [(-1, 0), (0, -1), (24 * 3600, 1000), (i64::MAX, 0), (0, i32::MAX), (i64::MIN, 0)] {
            assert!(of(seconds, nanos).is_err(), "{seconds} {nanos}");
        }
    }
}
