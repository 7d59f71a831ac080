//! Times as RFC 3339.

use prost_types::Timestamp;

use crate::model::Micros;

/// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, in seconds.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// The time in UTC, with as many digits as it needs.
pub(crate) fn text(time: Micros) -> String {
    let seconds = time.div_euclid(1_000_000);
    let nanos = i32::try_from(time.rem_euclid(1_000_000) * 1000).unwrap_or_default();
    Timestamp { seconds: seconds.clamp(*SECONDS.start(), *SECONDS.end()), nanos }.to_string()
}

/// The time that a text says, cut to microseconds.
pub(crate) fn parse(text: &str) -> Option<Micros> {
    // The parser also takes dates without times and odd separators, which are no RFC 3339.
    let is_full = text.len() >= 20 && matches!(text.as_bytes().get(10), Some(b'T' | b't'));
    let time: Timestamp = text.parse().ok().filter(|_| is_full)?;
    let seconds = Some(time.seconds).filter(|seconds| SECONDS.contains(seconds))?;
    Some(seconds * 1_000_000 + i64::from(time.nanos / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_as_they_were() {
        for time in [0, 1, -1, 1_795_268_722_500_000, 951_782_399_999_999] {
            assert_eq!(parse(&text(time)), Some(time), "{}", text(time));
        }
        assert_eq!(text(1_795_268_722_000_000), "2026-11-21T13:45:22Z");
        assert_eq!(parse("2026-11-21T15:45:22+02:00"), Some(1_795_268_722_000_000));
        for wrong in ["", "2026-11-21", "now", "2026-11-21 13:45:22Z", "2026-13-21T13:45:22Z", "99999-01-01T00:00:00Z"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
