//! Times as the schema writes them: RFC 3339 in UTC, with `Z`.

/// Microseconds since 1970.
pub type Micros = i64;

const DAY: Micros = 24 * 3600 * 1_000_000;

/// Reads a time; finer parts than microseconds are cut off. `None` if the text is no time in UTC.
pub fn read_time(text: &str) -> Option<Micros> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        && bytes[13] == b':'
        && bytes[16] == b':'
        && bytes.ends_with(b"Z");
    if !shaped {
        return None;
    }
    let (year, month, day) = (number(&bytes[..4])?, number(&bytes[5..7])?, number(&bytes[8..10])?);
    let (hour, minute, second) = (number(&bytes[11..13])?, number(&bytes[14..16])?, number(&bytes[17..19])?);
    let micros = fraction(&bytes[19..bytes.len() - 1])?;
    let known = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    // A leap second is the one after it.
    if !known || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days_since_1970(year, month, day) * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros)
}

/// Writes a time, with as many digits of a second as it has: none, or six.
pub fn write_time(time: Micros) -> String {
    let (days, in_day) = (time.div_euclid(DAY), time.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let (seconds, micros) = (in_day / 1_000_000, in_day % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut out = String::with_capacity(27);
    let parts = [(year, 4, '-'), (month, 2, '-'), (day, 2, 'T'), (hour, 2, ':'), (minute, 2, ':')];
    for (value, digits, after) in parts {
        push_number(&mut out, value, digits);
        out.push(after);
    }
    push_number(&mut out, second, 2);
    if micros != 0 {
        out.push('.');
        push_number(&mut out, micros, 6);
    }
    out.push('Z');
    out
}

/// Answers have thousands of times: formatting them was a twentieth of a batch of queries.
fn push_number(out: &mut String, value: i64, digits: u32) {
    for place in (0..digits).rev() {
        let digit = value.div_euclid(10_i64.pow(place)).rem_euclid(10);
        out.push(char::from(b'0' + digit as u8));
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

/// What stands between the seconds and `Z`: nothing, or a point and digits.
fn fraction(text: &[u8]) -> Option<Micros> {
    let Some(digits) = text.strip_prefix(b".") else {
        return text.is_empty().then_some(0);
    };
    if digits.is_empty() || digits.len() > 12 {
        return None;
    }
    number(digits)?;
    (0..6).try_fold(0, |value, i| Some(value * 10 + digits.get(i).map_or(0, |digit| i64::from(digit - b'0'))))
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

const DAYS_TO_1970: i64 = 719_468;
const DAYS_IN_400_YEARS: i64 = 146_097;

/// Years are counted from March, so that the leap day is the last of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, in_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    let in_year = (153 * from_march + 2) / 5 + day - 1;
    era * DAYS_IN_400_YEARS + in_era * 365 + in_era / 4 - in_era / 100 + in_year - DAYS_TO_1970
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_read_in_utc_only() {
        assert_eq!(read_time("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(read_time("2000-02-29T00:00:00.5Z"), Some(951_782_400_500_000));
        assert_eq!(read_time("2024-01-01T00:00:00.123456789Z"), Some(1_704_067_200_123_456));
        for wrong in [
            "",
            "2024-01-01",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00+01:00",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00,5Z",
            "2024-01-01t00:00:00Z",
            "ü024-01-01T00:00:00Z",
        ] {
            assert_eq!(read_time(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(time in -62_000_000_000_000_000_i64..250_000_000_000_000_000) {
            prop_assert_eq!(read_time(&write_time(time)), Some(time));
        }
    }
}
