//! Parts of a blob, and what a client has already.

/// What of a blob is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteRange {
    Whole,
    /// From the first byte, so many.
    Part(u64, u64),
    /// No byte of it is there.
    Nothing,
}

/// Reads a `Range` header. What is not one range of bytes is not looked at, as HTTP wants it.
pub(crate) fn parse(range: Option<&str>, size: u64) -> ByteRange {
    let Some(text) = range.and_then(|text| text.trim().strip_prefix("bytes=")) else { return ByteRange::Whole };
    let Some((first, last)) = text.trim().split_once('-') else { return ByteRange::Whole };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => ByteRange::Nothing,
        (Some(first), Some(last)) => part(first, last, size),
        (Some(first), None) if last.is_empty() => part(first, u64::MAX, size),
        (None, Some(0)) if first.is_empty() => ByteRange::Nothing,
        (None, Some(length)) if first.is_empty() && size > 0 => {
            let length = length.min(size);
            ByteRange::Part(size - length, length)
        }
        (None, Some(_)) if first.is_empty() => ByteRange::Nothing,
        _ => ByteRange::Whole,
    }
}

fn part(first: u64, last: u64, size: u64) -> ByteRange {
    if first >= size {
        return ByteRange::Nothing;
    }
    ByteRange::Part(first, last.min(size - 1) - first + 1)
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Whether an `If-None-Match` names what the client would get.
pub(crate) fn is_known(if_none_match: Option<&str>, digest: &str) -> bool {
    if_none_match.is_some_and(|text| text.split(',').any(|tag| names(tag, digest)))
}

/// Whether an entity tag is that of this digest; `*` is any.
pub(crate) fn names(tag: &str, digest: &str) -> bool {
    let tag = tag.trim();
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    tag == "*" || tag.trim_matches('"') == digest
}

/// Reads the `Content-Range` of an upload: first and last byte.
pub(crate) fn content_range(text: &str) -> Option<(u64, u64)> {
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
            ("bytes=0-3", ByteRange::Part(0, 4)),
            ("bytes=4-", ByteRange::Part(4, 6)),
            ("bytes=-3", ByteRange::Part(7, 3)),
            ("bytes=-30", ByteRange::Part(0, 10)),
            ("bytes=8-99999999999999999999999", ByteRange::Part(8, 2)),
            ("bytes=9-9", ByteRange::Part(9, 1)),
            ("bytes=10-", ByteRange::Nothing),
            ("bytes=10-12", ByteRange::Nothing),
            ("bytes=-0", ByteRange::Nothing),
            ("bytes=3-2", ByteRange::Nothing),
            ("bytes=0-1,3-4", ByteRange::Whole),
            ("bytes=-", ByteRange::Whole),
            ("bytes=a-b", ByteRange::Whole),
            ("items=0-1", ByteRange::Whole),
        ] {
            assert_eq!(parse(Some(range), 10), expected, "{range}");
        }
        assert_eq!(parse(None, 10), ByteRange::Whole);
        assert_eq!(parse(Some("bytes=0-0"), 0), ByteRange::Nothing);
        assert_eq!(parse(Some("bytes=-1"), 0), ByteRange::Nothing);
    }

    #[test]
    fn entity_tags() {
        assert!(is_known(Some("\"a\", \"sha256:x\""), "sha256:x"));
        assert!(is_known(Some("W/\"sha256:x\""), "sha256:x") && is_known(Some("*"), "y"));
        assert!(!is_known(Some("\"sha256:xy\""), "sha256:x") && !is_known(None, "x"));
    }

    #[test]
    fn places_of_chunks() {
        assert_eq!(content_range("0-9"), Some((0, 9)));
        for wrong in ["", "-", "5", "9-0", "a-b", "bytes 0-9/10", "0-", "-1-2", "0-99999999999999999999999"] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}
