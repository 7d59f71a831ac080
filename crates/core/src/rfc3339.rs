//! Times as text in RFC 3339: the one parser and the one formatter of the workspace.

use crate::Micros;

/// Seconds since 1970 with a year of four digits: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
pub const VALID_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

const SECONDS_OF_A_DAY: i64 = 86_400;

/// How many digits follow the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// None, three, six or nine: the fewest that are exact, as in the JSON of Protocol Buffers.
    Fewest,
    /// None for whole seconds, else six.
    SixOrNone,
    /// Nine digits, trailing zeros included.
    Nine,
}

/// Appends a time in UTC. Seconds outside of [`VALID_SECONDS`] become the nearest inside.
pub fn push(out: &mut Vec<u8>, seconds: i64, nanos: u32, digits: Digits) {
    let seconds = seconds.clamp(*VALID_SECONDS.start(), *VALID_SECONDS.end());
    let (year, month, day) = date(seconds.div_euclid(SECONDS_OF_A_DAY));
    let second = seconds.rem_euclid(SECONDS_OF_A_DAY);
    let parts =
        [(year, 4, b'-'), (month, 2, b'-'), (day, 2, b'T'), (second / 3600, 2, b':'), (second / 60 % 60, 2, b':')];
    for (value, width, separator) in parts {
        push_padded(out, value.unsigned_abs(), width);
        out.push(separator);
    }
    push_padded(out, (second % 60).unsigned_abs(), 2);
    push_fraction(out, nanos, digits);
    out.push(b'Z');
}

/// Appends the point and its digits, if there are any.
pub fn push_fraction(out: &mut Vec<u8>, nanos: u32, digits: Digits) {
    let (value, width) = match digits {
        Digits::Nine => (nanos, 9),
        _ if nanos == 0 => return,
        Digits::SixOrNone => (nanos / 1000, 6),
        Digits::Fewest if nanos.is_multiple_of(1_000_000) => (nanos / 1_000_000, 3),
        Digits::Fewest if nanos.is_multiple_of(1000) => (nanos / 1000, 6),
        Digits::Fewest => (nanos, 9),
    };
    out.push(b'.');
    push_padded(out, u64::from(value), width);
}

/// Formats a time in UTC. Responses have thousands of times, so the digits are written without `core::fmt`.
pub fn text(time: Micros, digits: Digits) -> String {
    let mut out = Vec::with_capacity(30);
    let nanos = u32::try_from(time.rem_euclid(1_000_000) * 1000).unwrap_or_default();
    push(&mut out, time.div_euclid(1_000_000), nanos, digits);
    out.into_iter().map(char::from).collect()
}

fn push_padded(out: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut digits = [b'0'; 9];
    for digit in digits[..width].iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[..width]);
}

/// Parses a text with any offset to seconds since 1970 and nanoseconds; absent if it is not a time, or not
/// within [`VALID_SECONDS`].
///
/// Letters must be upper case, and at most nine digits follow the point. A leap second becomes the second
/// after it.
pub fn parse(text: &str) -> Option<(i64, i32)> {
    let mut parts = Parts(text);
    let found = time(&mut parts)?;
    (parts.0.is_empty() && VALID_SECONDS.contains(&found.0)).then_some(found)
}

/// The same in microseconds; finer digits are truncated.
pub fn parse_micros(text: &str) -> Option<Micros> {
    let (seconds, nanos) = parse(text)?;
    Some(seconds * 1_000_000 + i64::from(nanos / 1000))
}

fn time(parts: &mut Parts<'_>) -> Option<(i64, i32)> {
    let year = parts.number(4, 9999)?;
    parts.literal('-')?;
    let month = parts.number(2, 12)?;
    parts.literal('-')?;
    let day = parts.number(2, 31)?;
    parts.literal('T')?;
    let days = days_since_1970(year, month, day);
    // 31 April is 1 May by the arithmetic, so the way back must agree.
    if month == 0 || date(days) != (year, month, day) {
        return None;
    }
    let hour = parts.number(2, 23)?;
    parts.literal(':')?;
    let minute = parts.number(2, 59)?;
    parts.literal(':')?;
    let second = parts.number(2, 60)?;
    let nanos = parts.fraction()?;
    let of_day = hour * 3600 + minute * 60 + second;
    Some((days * SECONDS_OF_A_DAY + of_day - offset(parts)?, nanos))
}

/// Seconds that a time is east of UTC.
fn offset(parts: &mut Parts<'_>) -> Option<i64> {
    let east = if parts.literal('+').is_some() {
        1
    } else if parts.literal('-').is_some() {
        -1
    } else {
        parts.literal('Z')?;
        return Some(0);
    };
    let hours = parts.number(2, 23)?;
    parts.literal(':')?;
    Some(east * (hours * 3600 + parts.number(2, 59)? * 60))
}

/// Cuts leading parts off a text.
struct Parts<'a>(&'a str);

impl Parts<'_> {
    fn literal(&mut self, literal: char) -> Option<()> {
        self.0 = self.0.strip_prefix(literal)?;
        Some(())
    }

    fn number(&mut self, width: usize, max: i64) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(width)?;
        self.0 = rest;
        let all = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|&value| all && value <= max)
    }

    fn fraction(&mut self) -> Option<i32> {
        let (nanos, rest) = fraction(self.0)?;
        self.0 = rest;
        Some(nanos)
    }
}

/// Nanoseconds of the fraction that a text begins with, and the rest of it; zero if it begins with none, absent if its
/// point has no digits or more than nine.
pub fn fraction(text: &str) -> Option<(i32, &str)> {
    let Some(after) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = after.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = after.split_at_checked(end)?;
    let places = u32::try_from(end).ok().filter(|places| (1..=9).contains(places))?;
    Some((digits.parse::<i32>().ok()? * 10i32.pow(9 - places), rest))
}

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;
const DAYS_IN_400_YEARS: i64 = 146_097;

/// Year, month and day of a number of days since 1970 in the Gregorian calendar. Years are counted from March, so that
/// the leap day is the last of its year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, in_era) = (days.div_euclid(DAYS_IN_400_YEARS), days.rem_euclid(DAYS_IN_400_YEARS));
    let year_in_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_in_era + i64::from(month <= 2), month, day)
}

/// The inverse of [`date`].
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, in_era) = (year.div_euclid(400), year.rem_euclid(400));
    let in_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * DAYS_IN_400_YEARS + in_era * 365 + in_era / 4 - in_era / 100 + in_year - DAYS_TO_1970
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(seconds: i64, nanos: u32, digits: Digits) -> String {
        let mut out = Vec::new();
        push(&mut out, seconds, nanos, digits);
        String::from_utf8(out).expect("digits")
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(seconds in VALID_SECONDS, nanos in 0..1_000_000_000_u32) {
            let wanted = Some((seconds, nanos as i32));
            prop_assert_eq!(parse(&written(seconds, nanos, Digits::Fewest)), wanted);
            prop_assert_eq!(parse(&written(seconds, nanos, Digits::Nine)), wanted);
        }

        #[test]
        fn microseconds_come_back(time in -62_000_000_000_000_000_i64..250_000_000_000_000_000) {
            for digits in [Digits::Fewest, Digits::SixOrNone, Digits::Nine] {
                prop_assert_eq!(parse_micros(&text(time, digits)), Some(time));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,30}|[0-9:TZ.+-]{0,30}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn times_are_written_with_their_digits() {
        for (micros, fewest, six, nine) in [
            (0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000000Z"),
            (-1000, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999000Z", "1969-12-31T23:59:59.999000000Z"),
            (
                951_782_400_000_001,
                "2000-02-29T00:00:00.000001Z",
                "2000-02-29T00:00:00.000001Z",
                "2000-02-29T00:00:00.000001000Z",
            ),
            (4_107_542_400_000_000, "2100-03-01T00:00:00Z", "2100-03-01T00:00:00Z", "2100-03-01T00:00:00.000000000Z"),
        ] {
            let all = [Digits::Fewest, Digits::SixOrNone, Digits::Nine].map(|digits| text(micros, digits));
            assert_eq!(all, [fewest, six, nine]);
        }
        assert_eq!(written(*VALID_SECONDS.start(), 1, Digits::Fewest), "0001-01-01T00:00:00.000000001Z");
        assert_eq!(written(i64::MAX, 0, Digits::Fewest), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn times_are_read_with_any_offset() {
        assert_eq!(parse("1970-01-01T01:00:00.5+01:00"), Some((0, 500_000_000)));
        assert_eq!(parse("2026-11-21T15:45:22+02:00"), Some((1_795_268_722, 0)));
        assert_eq!(parse_micros("2024-01-01T00:00:00.123456789Z"), Some(1_704_067_200_123_456));
        assert_eq!(parse("2016-12-31T23:59:60Z"), parse("2017-01-01T00:00:00Z"));
        for wrong in [
            "",
            "now",
            "1970-01-01",
            "2026-11-21 13:45:22Z",
            "1970-02-29T00:00:00Z",
            "1970-00-01T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:61Z",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00,5Z",
            "1970-01-01T00:00:00.0123456789Z",
            "1970-01-01T00:00:00Zx",
            "1970-01-01t00:00:00z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59-01:00",
            "99999-01-01T00:00:00Z",
            "+970-01-01T00:00:00Z",
            "ü024-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
