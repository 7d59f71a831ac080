//! Percent-encoding (RFC 3986): the encoder, a strict decoder for addresses, and a lenient one for `grpc-message`.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_decode_str, utf8_percent_encode};

pub use percent_encoding::{AsciiSet, CONTROLS};

/// All characters that are not unreserved (RFC 3986, 2.3): not letters, digits or `.-_~`.
pub const NOT_UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// Writes the bytes of a set, and those that are not ASCII, as percent signs and digits.
pub fn encode(text: &str, escaped: &'static AsciiSet) -> String {
    utf8_percent_encode(text, escaped).to_string()
}

/// The text that was escaped; absent if a percent sign is not followed by two digits, or the bytes are not UTF-8.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    let mut signs = text.split('%').skip(1);
    let are_whole = signs.all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    are_whole.then(|| percent_decode_str(text).decode_utf8().ok()).flatten()
}

/// The same for a text that is only shown: what is no escape stays as it is, and what is not UTF-8 is replaced.
pub fn decode_lossy(text: &[u8]) -> Cow<'_, str> {
    percent_decode(text).decode_utf8_lossy()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_are_read_strictly() {
        for (text, wanted) in [("", ""), ("a+b", "a+b"), ("a%2Fb%c3%a9", "a/bé"), ("%25", "%"), ("%2541", "%41")] {
            assert_eq!(decode(text).as_deref(), Some(wanted), "{text}");
        }
        for wrong in ["%", "%4", "a%zz", "%+1", "%ff", "%%41", "%4é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        assert_eq!(decode_lossy(b"50% of %41%ff"), "50% of A\u{fffd}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(text in "\\PC{0,30}") {
            let written = encode(&text, NOT_UNRESERVED);
            let read = decode(&written);
            prop_assert_eq!(read.as_deref(), Some(text.as_str()));
        }
    }
}
