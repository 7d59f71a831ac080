//! Byte ranges of blobs, and conditional requests.

/// The requested bytes of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    Whole,
    Part {
        start: u64,
        length: u64,
    },
    /// No requested byte exists: status 416.
    Unsatisfiable,
}

/// Parses a `Range` header. Other units and several ranges are ignored, as RFC 9110 permits.
pub fn parse(range: Option<&str>, size: u64) -> ByteRange {
    let Some(text) = range.and_then(|text| text.trim().strip_prefix("bytes=")) else { return ByteRange::Whole };
    let Some((first, last)) = text.trim().split_once('-') else { return ByteRange::Whole };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => ByteRange::Unsatisfiable,
        (Some(first), Some(last)) => part(first, last, size),
        (Some(first), None) if last.is_empty() => part(first, u64::MAX, size),
        (None, Some(0)) if first.is_empty() => ByteRange::Unsatisfiable,
        (None, Some(length)) if first.is_empty() && size > 0 => {
            let length = length.min(size);
            ByteRange::Part { start: size - length, length }
        }
        (None, Some(_)) if first.is_empty() => ByteRange::Unsatisfiable,
        _ => ByteRange::Whole,
    }
}

fn part(first: u64, last: u64, size: u64) -> ByteRange {
    if first >= size {
        return ByteRange::Unsatisfiable;
    }
    ByteRange::Part { start: first, length: last.min(size - 1) - first + 1 }
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Whether an `If-None-Match` matches the digest of the response.
pub fn is_not_modified(if_none_match: Option<&str>, digest: &str) -> bool {
    if_none_match.is_some_and(|text| text.split(',').any(|tag| matches_etag(tag, digest)))
}

/// Whether an entity tag is that of this digest; `*` is any.
pub fn matches_etag(tag: &str, digest: &str) -> bool {
    let tag = tag.trim();
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    tag == "*" || tag.trim_matches('"') == digest
}

/// Reads the `Content-Range` of an upload: first and last byte.
pub fn content_range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.trim().split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    (first <= last && last < u64::MAX).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_ten_bytes() {
        for (range, expected) in [
            ("bytes=0-3", ByteRange::Part { start: 0, length: 4 }),
            ("bytes=4-", ByteRange::Part { start: 4, length: 6 }),
            ("bytes=-3", ByteRange::Part { start: 7, length: 3 }),
            ("bytes=-30", ByteRange::Part { start: 0, length: 10 }),
            ("bytes=8-99999999999999999999999", ByteRange::Part { start: 8, length: 2 }),
            ("bytes=9-9", ByteRange::Part { start: 9, length: 1 }),
            ("bytes=10-", ByteRange::Unsatisfiable),
            ("bytes=10-12", ByteRange::Unsatisfiable),
            ("bytes=-0", ByteRange::Unsatisfiable),
            ("bytes=3-2", ByteRange::Unsatisfiable),
            ("bytes=0-1,3-4", ByteRange::Whole),
            ("bytes=-", ByteRange::Whole),
            ("bytes=a-b", ByteRange::Whole),
            ("items=0-1", ByteRange::Whole),
        ] {
            assert_eq!(parse(Some(range), 10), expected, "{range}");
        }
        assert_eq!(parse(None, 10), ByteRange::Whole);
        assert_eq!(parse(Some("bytes=0-0"), 0), ByteRange::Unsatisfiable);
        assert_eq!(parse(Some("bytes=-1"), 0), ByteRange::Unsatisfiable);
    }

    #[test]
    fn entity_tags() {
        assert!(is_not_modified(Some("\"a\", \"sha256:x\""), "sha256:x"));
        assert!(is_not_modified(Some("W/\"sha256:x\""), "sha256:x") && is_not_modified(Some("*"), "y"));
        assert!(!is_not_modified(Some("\"sha256:xy\""), "sha256:x") && !is_not_modified(None, "x"));
    }

    #[test]
    fn places_of_chunks() {
        assert_eq!(content_range("0-9"), Some((0, 9)));
        for wrong in ["", "-", "5", "9-0", "a-b", "bytes 0-9/10", "0-", "-1-2", "0-99999999999999999999999"] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}
