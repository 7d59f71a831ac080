//! Spans of days, of UTC, in which calls count.

use bowline_core::{Error, Micros, Result};
use bowline_store::activity::day_of;
use prost_types::Timestamp;

use crate::list::micros;

/// How many days a call counts.
#[derive(Clone, Copy, Debug)]
pub struct DayLimits {
    /// Days up to the last one, if the call names no first.
    pub usual: i64,
    /// Days of one call at most.
    pub max: i64,
}

/// The first and the last day of a call, as days since 1970. Days that have not begun are left out.
///
/// # Errors
/// INVALID_ARGUMENT for a time before 1970, for a first day after the last one, and for too many days.
pub fn day_span(
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    now: Micros,
    limits: DayLimits,
) -> Result<(i64, i64)> {
    let (start, end) = (day("startTime", start)?, day("endTime", end)?);
    let last = day_of(now).min(end.unwrap_or(i64::MAX));
    let first = start.unwrap_or((last - limits.usual + 1).max(0));
    if first > last {
        return Err(Error::invalid_field("startTime", "must not be after endTime, nor in the future"));
    }
    if last - first >= limits.max {
        return Err(Error::invalid_field("startTime", format!("must be within {} days of endTime", limits.max)));
    }
    Ok((first, last))
}

fn day(field: &str, time: Option<Timestamp>) -> Result<Option<i64>> {
    match time.map(micros) {
        Some(time) if time < 0 => Err(Error::invalid_field(field, "must not be before 1970-01-01T00:00:00Z")),
        time => Ok(time.map(day_of)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600;
    const LIMITS: DayLimits = DayLimits { usual: 30, max: 366 };

    #[expect(clippy::unnecessary_wraps, reason = "requests have it as an option")]
    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp { seconds, nanos: 0 })
    }

    /// On the thousandth day.
    fn span(start: Option<Timestamp>, end: Option<Timestamp>) -> Result<(i64, i64)> {
        day_span(start, end, (1000 * DAY + 5) * 1_000_000, LIMITS)
    }

    #[test]
    fn days_are_the_usual_ones_up_to_today_unless_the_call_names_others() {
        assert_eq!(span(None, None).unwrap(), (971, 1000));
        assert_eq!(span(None, at(500 * DAY)).unwrap(), (471, 500));
        assert_eq!(span(at(990 * DAY + 1), at(i64::MAX)).unwrap(), (990, 1000), "no day is after today");
        assert_eq!(span(at(1000 * DAY), at(1000 * DAY)).unwrap(), (1000, 1000));
        assert_eq!(span(at(0), at(365 * DAY)).unwrap(), (0, 365));
        assert_eq!(span(None, at(3 * DAY)).unwrap(), (0, 3), "no day is before 1970");
    }

    #[test]
    fn times_before_1970_and_days_that_are_too_many_or_in_the_wrong_order_are_refused() {
        for (start, end, field, cause) in [
            (at(-1), None, "startTime", "1970"),
            (at(-2 * DAY), at(-DAY), "startTime", "1970"),
            (None, at(-1), "endTime", "1970"),
            (at(i64::MIN), None, "startTime", "1970"),
            (at(500 * DAY), at(499 * DAY), "startTime", "after endTime"),
            (at(1001 * DAY), None, "startTime", "future"),
            (at(0), at(366 * DAY), "startTime", "within 366 days"),
        ] {
            let text = format!("{:?}", span(start, end).unwrap_err());
            assert!(text.contains(field) && text.contains(cause), "{start:?} {end:?}: {text}");
        }
    }
}
