//! Writing JSON text: strings, numbers, base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks (by its high bit) each byte of `word` that a JSON string cannot hold
/// as it is. A borrow may also mark bytes *above* a true hit, never below, so
/// the lowest mark is exact.
#[inline]
fn special_mask(word: u64) -> u64 {
    let quote = word ^ (ONES * 0x22);
    let slash = word ^ (ONES * 0x5c);
    ((quote.wrapping_sub(ONES) & !quote)
        | (slash.wrapping_sub(ONES) & !slash)
        | (word.wrapping_sub(ONES * 0x20) & !word))
        & HIGHS
}

/// Offset of the first `"`, `\` or control character, or the length; eight
/// bytes at a time.
#[inline]
pub(crate) fn first_special(bytes: &[u8]) -> usize {
    let (chunks, tail) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let mask = special_mask(u64::from_le_bytes(*chunk));
        if mask != 0 {
            return index * 8 + mask.trailing_zeros() as usize / 8;
        }
    }
    let done = chunks.len() * 8;
    tail.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').map_or(bytes.len(), |at| done + at)
}

/// Appends `s` as a JSON string, quotes included.
///
/// ```
/// let mut out = Vec::new();
/// bowline_transcode::push_json_string(&mut out, "a \"b\"\n");
/// assert_eq!(out, br#""a \"b\"\n""#);
/// ```
pub fn push_json_string(out: &mut Vec<u8>, s: &str) {
    let mut rest = s.as_bytes();
    out.reserve(rest.len() + 2);
    out.push(b'"');
    loop {
        let (plain, special) = rest.split_at(first_special(rest));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else {
            break;
        };
        push_escape(out, byte);
        rest = after;
    }
    out.push(b'"');
}

#[cold]
fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends a decimal number.
pub(crate) fn push_u64(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    for slot in digits.iter_mut().rev() {
        *slot = b'0' + (value % 10) as u8;
        value /= 10;
        at -= 1;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a signed decimal number.
pub(crate) fn push_i64(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_u64(out, value.unsigned_abs());
}

/// Appends the shortest text that reads back as the same number, or one of the
/// three quoted names proto3 JSON gives to what JSON cannot say.
macro_rules! push_float {
    ($name:ident, $type:ty) => {
        pub(crate) fn $name(out: &mut Vec<u8>, value: $type) {
            use std::io::Write as _;
            let size = value.abs();
            // Writing to a Vec cannot fail.
            let _ = if value.is_nan() {
                out.write_all(b"\"NaN\"")
            } else if value.is_infinite() {
                out.write_all(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" })
            } else if size != 0.0 && !(1e-6..1e21).contains(&size) {
                write!(out, "{value:e}")
            } else {
                write!(out, "{value}")
            };
        }
    };
}
push_float!(push_f32, f32);
push_float!(push_f64, f64);

/// Appends quoted standard base64 with padding.
pub(crate) fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, b'=');
    if let Some(room) = out.get_mut(start..) {
        // The room is exact, so this cannot fail.
        let _ = STANDARD.encode_slice(bytes, room);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_equal_serde_json(s in ".{0,40}", cut in proptest::collection::vec(any::<u8>(), 0..40)) {
            let control = String::from_utf8_lossy(&cut).into_owned();
            for s in [s, control] {
                let mut out = Vec::new();
                push_json_string(&mut out, &s);
                prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), s);
            }
        }

        #[test]
        fn scan_equals_the_simple_loop(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let simple = bytes
                .iter()
                .position(|&b| b < 0x20 || b == b'"' || b == b'\\')
                .unwrap_or(bytes.len());
            prop_assert_eq!(first_special(&bytes), simple);
        }

        #[test]
        fn numbers_equal_std(a in any::<u64>(), b in any::<i64>(), c in any::<f64>(), d in any::<f32>()) {
            let mut out = Vec::new();
            push_u64(&mut out, a);
            out.push(b' ');
            push_i64(&mut out, b);
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("{a} {b}"));
            if c.is_finite() && d.is_finite() {
                let mut out = Vec::new();
                push_f64(&mut out, c);
                prop_assert_eq!(String::from_utf8(out).unwrap().parse::<f64>().unwrap().to_bits(), c.to_bits());
                let mut out = Vec::new();
                push_f32(&mut out, d);
                prop_assert_eq!(String::from_utf8(out).unwrap().parse::<f32>().unwrap().to_bits(), d.to_bits());
            }
        }

        #[test]
        fn base64_equals_the_crate(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut out = Vec::new();
            push_base64(&mut out, &bytes);
            prop_assert_eq!(out, format!("\"{}\"", STANDARD.encode(bytes)).into_bytes());
        }
    }

    #[test]
    fn floats_stay_short() {
        for (value, text) in [(1.0, "1"), (1e21, "1e21"), (1.5e-7, "1.5e-7"), (f64::NAN, "\"NaN\"")] {
            let mut out = Vec::new();
            push_f64(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
