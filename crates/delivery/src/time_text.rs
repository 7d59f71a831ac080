//! Times in headers.

use bowline_core::Micros;

const DAY: Micros = 24 * 3600 * 1_000_000;

/// RFC 3339 in UTC, with nanoseconds.
pub(crate) fn rfc3339(time: Micros) -> String {
    let (days, in_day) = (time.div_euclid(DAY), time.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let (seconds, micros) = (in_day / 1_000_000, in_day % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}000Z")
}

/// Year, month and day of a number of days since 1970. Years are counted from March, so that the leap day is
/// the last of its year.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_TO_1970: i64 = 719_468;
    const DAYS_IN_400_YEARS: i64 = 146_097;
    let days = days + DAYS_TO_1970;
    let (era, in_era) = (days.div_euclid(DAYS_IN_400_YEARS), days.rem_euclid(DAYS_IN_400_YEARS));
    let year_in_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_in_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_nanoseconds() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_399_999_999, "2000-02-28T23:59:59.999999000Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000000Z"),
            (951_868_800_000_001, "2000-03-01T00:00:00.000001000Z"),
            (1_795_268_722_500_000, "2026-11-21T13:45:22.500000000Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000000Z"),
            (-1, "1969-12-31T23:59:59.999999000Z"),
        ] {
            assert_eq!(rfc3339(micros), text);
        }
    }
}
