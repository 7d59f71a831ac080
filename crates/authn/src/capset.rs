//! The wire form of capability sets in tokens.
//!
//! Base64url of an 8-byte big-endian bit length and that many bits in 64-bit big-endian words; bit `i` is `1
//! << (i % 64)` of word `i / 64`. Written with padding where the length needs it, as the clients' decoder
//! requires; read with or without.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

const WIRE: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Sets of more bits than this are refused.
pub const MAX_BITS: u64 = 65_536;

/// Not a capability set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a capability set")]
pub struct CapsetError;

/// The text for the set bits of `words`; the bit length is the highest set bit plus one.
pub fn encode_bits(words: &[u64]) -> String {
    let used = words.iter().rposition(|w| *w != 0).map_or(0, |at| at + 1);
    let length = match used {
        0 => 0,
        n => n as u64 * 64 - u64::from(words[n - 1].leading_zeros()),
    };
    let mut bytes = Vec::with_capacity(8 + used * 8);
    bytes.extend_from_slice(&length.to_be_bytes());
    for word in &words[..used] {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    WIRE.encode(bytes)
}

/// The words behind such a text. Bits past the stated length are ignored.
pub fn decode_bits(text: &str) -> Result<Vec<u64>, CapsetError> {
    let bytes = WIRE.decode(text).map_err(|_| CapsetError)?;
    let (length, words) = bytes.split_first_chunk::<8>().ok_or(CapsetError)?;
    let length = u64::from_be_bytes(*length);
    if length > MAX_BITS || words.len() as u64 != length.div_ceil(64) * 8 {
        return Err(CapsetError);
    }
    let mut words: Vec<u64> =
        words.chunks_exact(8).map(|w| u64::from_be_bytes(w.try_into().expect("chunks of eight"))).collect();
    if let Some(last) = words.last_mut()
        && length % 64 != 0
    {
        *last &= (1 << (length % 64)) - 1;
    }
    Ok(words)
}

/// The words behind a JSON claim: the text form, or the legacy array of enum numbers, whose bits `number_to_bit`
/// knows. Unknown numbers are ignored.
pub fn decode_claim(claim: &Value, number_to_bit: impl Fn(u32) -> Option<u32>) -> Result<Vec<u64>, CapsetError> {
    let numbers = match claim {
        Value::String(text) => return decode_bits(text),
        Value::Array(numbers) => numbers,
        _ => return Err(CapsetError),
    };
    let mut words = Vec::new();
    for number in numbers {
        let number = number.as_u64().ok_or(CapsetError)?;
        let bit = u32::try_from(number).ok().and_then(&number_to_bit);
        if let Some(bit) = bit.filter(|bit| u64::from(*bit) < MAX_BITS) {
            let at = (bit / 64) as usize;
            if words.len() <= at {
                words.resize(at + 1, 0);
            }
            words[at] |= 1 << (bit % 64);
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn count(words: &[u64]) -> u32 {
        words.iter().map(|w| w.count_ones()).sum()
    }

    #[test]
    fn the_published_samples_round_trip() {
        // behaviour.md says 77 for the second; its text holds 40 + 36.
        for (text, set) in [("AAAAAAAAAHxEQgBAgIBESAiIGDBAiqlk", 29), ("AAAAAAAAAHz_8gDx4eD__gno-DBB__tv", 76)] {
            let words = decode_bits(text).unwrap();
            assert_eq!((words.len(), count(&words)), (2, set));
            assert_eq!(words[1].leading_zeros(), 4, "124 bits");
            assert_eq!(encode_bits(&words), text);
        }
    }

    #[test]
    fn edges() {
        assert_eq!(encode_bits(&[]), "AAAAAAAAAAA=");
        assert_eq!(encode_bits(&[0, 0]), "AAAAAAAAAAA=");
        assert_eq!(decode_bits("AAAAAAAAAAA").unwrap(), Vec::<u64>::new());
        // One word: padded, as the decoder of the clients wants it.
        assert_eq!(encode_bits(&[1]), "AAAAAAAAAAEAAAAAAAAAAQ==");
        assert_eq!(decode_bits("AAAAAAAAAAEAAAAAAAAAAQ").unwrap(), [1]);
        // A bit past the length does not count.
        assert_eq!(decode_bits("AAAAAAAAAAEAAAAAAAAAAw").unwrap(), [1]);
        for bad in ["", "AAAA", "!!", "AAAAAAAAAAE=", "__________8=", "AAAAAAAAAAAAAAAAAAAAAA=="] {
            assert_eq!(decode_bits(bad), Err(CapsetError), "{bad}");
        }
    }

    #[test]
    fn the_legacy_array_is_read() {
        let bit = |n: u32| (n < 1000).then_some(n / 10);
        assert_eq!(decode_claim(&json!([10, 700, 4000]), bit).unwrap(), [2, 64]);
        assert_eq!(decode_claim(&json!([]), bit).unwrap(), Vec::<u64>::new());
        assert_eq!(decode_claim(&json!("AAAAAAAAAAEAAAAAAAAAAQ=="), bit).unwrap(), [1]);
        for bad in [json!({}), json!(null), json!(["1"]), json!([-1]), json!([1.5])] {
            assert!(decode_claim(&bad, bit).is_err(), "{bad}");
        }
        assert_eq!(decode_claim(&json!([u64::MAX]), bit).unwrap(), Vec::<u64>::new());
    }

    proptest! {
        #[test]
        fn any_set_round_trips(mut words in prop::collection::vec(any::<u64>(), 0..6)) {
            let text = encode_bits(&words);
            while words.last() == Some(&0) {
                words.pop();
            }
            prop_assert_eq!(decode_bits(&text).unwrap(), words);
        }

        #[test]
        fn no_text_panics(text in "\\PC*", bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = decode_bits(&text);
            let _ = decode_bits(&WIRE.encode(bytes));
        }
    }
}
