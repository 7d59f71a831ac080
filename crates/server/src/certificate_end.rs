//! The end of a certificate's validity. Only that is read: TLS itself leaves the rest to the clients.

use bowline_core::rfc3339;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const EXPLICIT_VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of an X.509 certificate (DER), in seconds since the Unix epoch; absent if it cannot be read.
pub(crate) fn not_after(certificate: &[u8]) -> Option<i64> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut rest, _) = expect(certificate, SEQUENCE)?;
    if let Some((_, after)) = expect(rest, EXPLICIT_VERSION) {
        rest = after;
    }
    // Serial number, signature algorithm, issuer.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        (_, rest) = expect(rest, tag)?;
    }
    let (validity, _) = expect(rest, SEQUENCE)?;
    let (_, _, end) = element(validity)?;
    let (tag, end, _) = element(end)?;
    seconds(tag, std::str::from_utf8(end).ok()?)
}

fn seconds(tag: u8, text: &str) -> Option<i64> {
    let text = match tag {
        // Two digits of the year: 1950 to 2049 (RFC 5280, 4.1.2.5.1).
        UTC_TIME if *text.as_bytes().first()? < b'5' => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let digits = text.strip_suffix('Z')?;
    if digits.len() != 14 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (date, time) = digits.split_at(8);
    let text = format!("{}-{}-{}T{}:{}:{}Z", &date[..4], &date[4..6], &date[6..], &time[..2], &time[2..4], &time[4..]);
    rfc3339::parse(&text).map(|(seconds, _)| seconds)
}

/// The content of a first element with that tag, and what follows the element.
fn expect(bytes: &[u8], expected: u8) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(tag, ..)| *tag == expected).map(|(_, content, rest)| (content, rest))
}

/// Tag, content and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time_are_read_and_damage_is_no_panic() {
        assert_eq!(seconds(UTC_TIME, "261123030926Z"), Some(1_795_403_366));
        assert_eq!(seconds(UTC_TIME, "700101000001Z"), Some(1));
        assert_eq!(seconds(GENERALIZED_TIME, "20261123030926Z"), Some(1_795_403_366));
        for (tag, text) in [(UTC_TIME, ""), (UTC_TIME, "2611230309Z"), (GENERALIZED_TIME, "20261323030926Z"), (4, "Z")]
        {
            assert_eq!(seconds(tag, text), None, "{text}");
        }
        for damaged in [&b""[..], b"\x30", b"\x30\x84\xff\xff\xff\xff", b"\x30\x83\xff\xff\xff", b"\x30\x02\x30\x00"] {
            assert_eq!(not_after(damaged), None);
        }
    }
}
