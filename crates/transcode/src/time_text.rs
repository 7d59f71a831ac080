//! The string forms of `Timestamp`, `Duration` and `FieldMask`.

use crate::text::{push_padded, push_u64};

/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z.
const TIMESTAMPS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;
/// About 10,000 years either way.
const MAX_DURATION: u64 = 315_576_000_000;
const DAY: i64 = 86_400;

/// Appends the quoted RFC 3339 text, in UTC.
pub(crate) fn push_timestamp(out: &mut Vec<u8>, seconds: i64, nanos: i32) -> Result<(), String> {
    let nanos = u32::try_from(nanos).ok().filter(|&nanos| nanos < 1_000_000_000);
    let (true, Some(nanos)) = (TIMESTAMPS.contains(&seconds), nanos) else {
        return Err("the timestamp is out of range".to_owned());
    };
    let (year, month, day) = date_of(seconds.div_euclid(DAY));
    let time = seconds.rem_euclid(DAY) as u64;
    out.push(b'"');
    let parts = [
        (year as u64, 4, b'-'),
        (month as u64, 2, b'-'),
        (day as u64, 2, b'T'),
        (time / 3600, 2, b':'),
        (time / 60 % 60, 2, b':'),
    ];
    for (value, width, separator) in parts {
        push_padded(out, value, width);
        out.push(separator);
    }
    push_padded(out, time % 60, 2);
    push_fraction(out, nanos);
    out.extend_from_slice(b"Z\"");
    Ok(())
}

/// Appends the quoted seconds with an `s`.
pub(crate) fn push_duration(out: &mut Vec<u8>, seconds: i64, nanos: i32) -> Result<(), String> {
    let mixed = (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0);
    if mixed || seconds.unsigned_abs() > MAX_DURATION || nanos.unsigned_abs() >= 1_000_000_000 {
        return Err("the duration is out of range".to_owned());
    }
    out.push(b'"');
    // The sign cannot come from the seconds alone: -0.5 s has none there.
    if seconds < 0 || nanos < 0 {
        out.push(b'-');
    }
    push_u64(out, seconds.unsigned_abs());
    push_fraction(out, nanos.unsigned_abs());
    out.extend_from_slice(b"s\"");
    Ok(())
}

/// 0, 3, 6 or 9 digits, as few as say it exactly.
fn push_fraction(out: &mut Vec<u8>, nanos: u32) {
    let (value, width) = match nanos {
        0 => return,
        _ if nanos.is_multiple_of(1_000_000) => (nanos / 1_000_000, 3),
        _ if nanos.is_multiple_of(1000) => (nanos / 1000, 6),
        _ => (nanos, 9),
    };
    out.push(b'.');
    push_padded(out, u64::from(value), width);
}

/// Proleptic Gregorian date of a day counted from 1970-01-01, by whole eras of
/// 400 years that begin on 1 March (so the leap day comes last).
fn date_of(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// The inverse of [`date_of`].
fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Cuts leading parts off a text.
struct Parts<'a>(&'a str);

impl<'a> Parts<'a> {
    fn sign(&mut self, sign: char) -> Option<()> {
        self.0 = self.0.strip_prefix(sign)?;
        Some(())
    }

    fn digits(&mut self) -> &'a str {
        let end = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at_checked(end).unwrap_or(("", self.0));
        self.0 = rest;
        digits
    }

    fn number(&mut self, width: usize, max: i64) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(width)?;
        self.0 = rest;
        let all = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|&value| all && value <= max)
    }

    /// An optional fraction of at most nine digits, in nanoseconds.
    fn fraction(&mut self) -> Option<i32> {
        if self.sign('.').is_none() {
            return Some(0);
        }
        let digits = self.digits();
        let places = (1..=9).contains(&digits.len()).then_some(digits.len() as u32)?;
        Some(digits.parse::<i32>().ok()? * 10i32.pow(9 - places))
    }
}

/// Seconds and nanoseconds of RFC 3339 text with any offset.
pub(crate) fn parse_timestamp(text: &str) -> Result<(i64, i32), String> {
    let mut parts = Parts(text);
    timestamp(&mut parts)
        .filter(|(seconds, _)| parts.0.is_empty() && TIMESTAMPS.contains(seconds))
        .ok_or_else(|| "expected an RFC 3339 timestamp such as \"2026-01-31T12:00:00Z\"".to_owned())
}

fn timestamp(parts: &mut Parts<'_>) -> Option<(i64, i32)> {
    let year = parts.number(4, 9999)?;
    parts.sign('-')?;
    let month = parts.number(2, 12)?;
    parts.sign('-')?;
    let day = parts.number(2, 31)?;
    parts.sign('T')?;
    let date = day_of(year, month, day);
    // 31 April is 1 May by the arithmetic, so the way back must agree.
    if month == 0 || date_of(date) != (year, month, day) {
        return None;
    }
    let hour = parts.number(2, 23)?;
    parts.sign(':')?;
    let minute = parts.number(2, 59)?;
    parts.sign(':')?;
    let second = parts.number(2, 59)?;
    let nanos = parts.fraction()?;
    let east = if parts.sign('+').is_some() {
        1
    } else if parts.sign('-').is_some() {
        -1
    } else {
        parts.sign('Z')?;
        0
    };
    let mut offset = 0;
    if east != 0 {
        offset = parts.number(2, 23)? * 3600;
        parts.sign(':')?;
        offset += parts.number(2, 59)? * 60;
    }
    Some((date * DAY + hour * 3600 + minute * 60 + second - east * offset, nanos))
}

/// Seconds and nanoseconds of `1.5s`, both with the sign.
pub(crate) fn parse_duration(text: &str) -> Result<(i64, i32), String> {
    let mut parts = Parts(text);
    let sign: i32 = if parts.sign('-').is_some() { -1 } else { 1 };
    let seconds = parts.digits().parse::<i64>().ok();
    let value =
        seconds.zip(parts.fraction()).filter(|(seconds, _)| seconds.unsigned_abs() <= MAX_DURATION && parts.0 == "s");
    match value {
        Some((seconds, nanos)) => Ok((seconds * i64::from(sign), nanos * sign)),
        None => Err("expected a duration in seconds such as \"1.5s\"".to_owned()),
    }
}

/// Appends one path in camelCase; false if it could not be read back.
pub(crate) fn push_mask_path(text: &mut String, path: &str) -> bool {
    let mut raise = false;
    for character in path.chars() {
        match (raise, character) {
            (true, 'a'..='z') => text.push(character.to_ascii_uppercase()),
            (true, _) | (false, 'A'..='Z') => return false,
            (false, '_') => {}
            (false, _) => text.push(character),
        }
        raise = !raise && character == '_';
    }
    !raise
}

/// The paths of a mask. Clients write proto names as often as camelCase, so
/// underscores pass too.
pub(crate) fn parse_mask(text: &str) -> impl Iterator<Item = String> {
    text.split(',').map(str::trim).filter(|path| !path.is_empty()).map(|path| {
        let mut snake = String::with_capacity(path.len() + 4);
        for character in path.chars() {
            if character.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(character.to_ascii_lowercase());
        }
        snake
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn timestamp_text(seconds: i64, nanos: i32) -> String {
        let mut out = Vec::new();
        push_timestamp(&mut out, seconds, nanos).unwrap();
        String::from_utf8(out).unwrap().trim_matches('"').to_owned()
    }

    proptest! {
        #[test]
        fn timestamps_round_trip(seconds in TIMESTAMPS, nanos in 0..1_000_000_000) {
            prop_assert_eq!(parse_timestamp(&timestamp_text(seconds, nanos)), Ok((seconds, nanos)));
        }

        #[test]
        fn parsers_never_panic(text in ".{0,30}|[0-9:TZ.+s-]{0,30}") {
            let _ = parse_timestamp(&text);
            let _ = parse_duration(&text);
            parse_mask(&text).for_each(drop);
            push_mask_path(&mut String::new(), &text);
        }
    }

    #[test]
    fn timestamps() {
        assert_eq!(timestamp_text(0, 1_000_000), "1970-01-01T00:00:00.001Z");
        assert_eq!(timestamp_text(951_782_400, 0), "2000-02-29T00:00:00Z");
        assert_eq!(timestamp_text(*TIMESTAMPS.start(), 1), "0001-01-01T00:00:00.000000001Z");
        assert_eq!(parse_timestamp("1970-01-01T01:00:00.5+01:00"), Ok((0, 500_000_000)));
        for bad in [
            "",
            "1970-01-01",
            "1970-02-29T00:00:00Z",
            "1970-00-01T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00Zx",
            "1970-01-01t00:00:00z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59-01:00",
            "+970-01-01T00:00:00Z",
        ] {
            assert!(parse_timestamp(bad).is_err(), "{bad}");
        }
        assert!(push_timestamp(&mut Vec::new(), i64::MAX, 0).is_err());
        assert!(push_timestamp(&mut Vec::new(), 0, -1).is_err());
    }

    #[test]
    fn durations() {
        for (seconds, nanos, text) in
            [(0, 0, "\"0s\""), (0, -500_000_000, "\"-0.500s\""), (-3, -1000, "\"-3.000001s\"")]
        {
            let mut out = Vec::new();
            push_duration(&mut out, seconds, nanos).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), text);
            assert_eq!(parse_duration(text.trim_matches('"')), Ok((seconds, nanos)));
        }
        for bad in ["", "s", "1", "1.s", ".5s", "+1s", "1.0000000001s", "315576000001s", "1ss"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert!(push_duration(&mut Vec::new(), 1, -1).is_err());
    }

    #[test]
    fn masks() {
        let paths: Vec<_> = parse_mask("fooBar.baz,, display_name").collect();
        assert_eq!(paths, ["foo_bar.baz", "display_name"]);
        let mut text = String::new();
        assert!(push_mask_path(&mut text, "foo_bar.baz"));
        assert_eq!(text, "fooBar.baz");
        for bad in ["fooBar", "foo__bar", "foo_1", "foo_"] {
            assert!(!push_mask_path(&mut String::new(), bad), "{bad}");
        }
    }
}
