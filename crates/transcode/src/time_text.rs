//! The string forms of `Timestamp`, `Duration` and `FieldMask`.

use bowline_core::rfc3339::{self, Digits};

use crate::text::push_u64;

/// About 10,000 years either way.
const MAX_DURATION_SECONDS: u64 = 315_576_000_000;

/// Appends the quoted RFC 3339 text, in UTC.
pub(crate) fn push_timestamp(out: &mut Vec<u8>, seconds: i64, nanos: i32) -> Result<(), String> {
    let nanos = u32::try_from(nanos).ok().filter(|&nanos| nanos < 1_000_000_000);
    let (true, Some(nanos)) = (rfc3339::VALID_SECONDS.contains(&seconds), nanos) else {
        return Err("the timestamp is out of range".to_owned());
    };
    out.push(b'"');
    rfc3339::push(out, seconds, nanos, Digits::Fewest);
    out.push(b'"');
    Ok(())
}

/// Appends the quoted seconds with an `s`.
pub(crate) fn push_duration(out: &mut Vec<u8>, seconds: i64, nanos: i32) -> Result<(), String> {
    let mixed = (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0);
    if mixed || seconds.unsigned_abs() > MAX_DURATION_SECONDS || nanos.unsigned_abs() >= 1_000_000_000 {
        return Err("the duration is out of range".to_owned());
    }
    out.push(b'"');
    // The sign cannot come from the seconds alone: -0.5 s has none there.
    if seconds < 0 || nanos < 0 {
        out.push(b'-');
    }
    push_u64(out, seconds.unsigned_abs());
    rfc3339::push_fraction(out, nanos.unsigned_abs(), Digits::Fewest);
    out.extend_from_slice(b"s\"");
    Ok(())
}

/// Seconds and nanoseconds of RFC 3339 text with any offset.
pub(crate) fn parse_timestamp(text: &str) -> Result<(i64, i32), String> {
    rfc3339::parse(text).ok_or_else(|| "expected an RFC 3339 timestamp such as \"2026-01-31T12:00:00Z\"".to_owned())
}

/// Seconds and nanoseconds of `1.5s`, both with the sign.
pub(crate) fn parse_duration(text: &str) -> Result<(i64, i32), String> {
    duration(text).ok_or_else(|| "expected a duration in seconds such as \"1.5s\"".to_owned())
}

fn duration(text: &str) -> Option<(i64, i32)> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (seconds, rest) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let seconds = seconds.parse::<i64>().ok().filter(|seconds| seconds.unsigned_abs() <= MAX_DURATION_SECONDS)?;
    let (nanos, rest) = rfc3339::fraction(rest)?;
    (rest == "s").then_some((seconds * i64::from(sign), nanos * sign))
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
        fn timestamps_round_trip(seconds in rfc3339::VALID_SECONDS, nanos in 0..1_000_000_000) {
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
    fn timestamps_out_of_range_are_refused() {
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
