//! Scalars between text and wire: the rules shared by JSON values, map keys
//! and query parameters.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::enums::EnumTable;
use crate::json_reader::number_length;
use crate::scan::{put_delimited, put_key, put_varint};
use crate::tables::Kind;
use crate::text::{first_special, push_json_string};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// A parsed value, ready to be encoded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar<'a> {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Float(f32),
    Double(f64),
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
}

/// A map key, ordered as it is printed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key<'a> {
    Text(Cow<'a, str>),
    /// Wide enough for every integer kind, so one order serves all.
    Integer(i128),
    Bool(bool),
}

impl Key<'_> {
    pub(crate) fn push_json(&self, out: &mut Vec<u8>) {
        match self {
            Key::Text(text) => push_json_string(out, text),
            Key::Integer(value) => out.extend_from_slice(format!("\"{value}\"").as_bytes()),
            Key::Bool(value) => out.extend_from_slice(format!("\"{value}\"").as_bytes()),
        }
    }

    /// The key as error paths show it.
    pub(crate) fn path_part(&self) -> String {
        match self {
            Key::Text(text) => format!("[{text}]"),
            Key::Integer(value) => format!("[{value}]"),
            Key::Bool(value) => format!("[{value}]"),
        }
    }
}

impl<'a> Scalar<'a> {
    /// Whether implicit presence drops the value; as in prost, `-0.0` counts.
    pub(crate) fn is_default(&self) -> bool {
        match self {
            Scalar::Varint(value) | Scalar::Fixed64(value) => *value == 0,
            Scalar::Fixed32(value) => *value == 0,
            Scalar::Float(value) => *value == 0.0,
            Scalar::Double(value) => *value == 0.0,
            Scalar::Text(text) => text.is_empty(),
            Scalar::Bytes(bytes) => bytes.is_empty(),
        }
    }

    /// The value without its key, as in a packed list.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Scalar::Varint(value) => put_varint(out, *value),
            Scalar::Fixed32(value) => out.extend_from_slice(&value.to_le_bytes()),
            Scalar::Fixed64(value) => out.extend_from_slice(&value.to_le_bytes()),
            Scalar::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
            Scalar::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
            Scalar::Text(text) => {
                put_varint(out, text.len() as u64);
                out.extend_from_slice(text.as_bytes());
            }
            Scalar::Bytes(bytes) => {
                put_varint(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
        }
    }

    /// Appends the field's key and its value.
    pub(crate) fn encode_field(&self, out: &mut Vec<u8>, number: u32, kind: Kind) {
        if let Scalar::Text(text) = self {
            put_delimited(out, number, text.as_bytes());
        } else {
            put_key(out, number, kind.wire_type());
            self.encode(out);
        }
    }

    /// A number's text, from a JSON number, a JSON string or a map key.
    pub(crate) fn number(kind: Kind, text: &str) -> Result<Scalar<'a>, String> {
        match kind {
            Kind::Float => float32(text).map(Scalar::Float),
            Kind::Double => float64(text).map(Scalar::Double),
            _ => {
                let value = integer(text)?;
                Scalar::integer(kind, value).ok_or_else(|| format!("{} is out of range", quote(text)))
            }
        }
    }

    pub(crate) fn integer(kind: Kind, value: i128) -> Option<Scalar<'a>> {
        let zigzag = |value: i64| ((value << 1) ^ (value >> 63)) as u64;
        let narrow = || i32::try_from(value).ok();
        let wide = || i64::try_from(value).ok();
        Some(match kind {
            Kind::Int32 | Kind::Enum(_) => Scalar::Varint(i64::from(narrow()?) as u64),
            Kind::Sint32 => Scalar::Varint(zigzag(i64::from(narrow()?))),
            Kind::Sfixed32 => Scalar::Fixed32(narrow()? as u32),
            Kind::Int64 => Scalar::Varint(wide()? as u64),
            Kind::Sint64 => Scalar::Varint(zigzag(wide()?)),
            Kind::Sfixed64 => Scalar::Fixed64(wide()? as u64),
            Kind::Uint32 => Scalar::Varint(u64::from(u32::try_from(value).ok()?)),
            Kind::Fixed32 => Scalar::Fixed32(u32::try_from(value).ok()?),
            Kind::Fixed64 => Scalar::Fixed64(u64::try_from(value).ok()?),
            _ => Scalar::Varint(u64::try_from(value).ok()?),
        })
    }

    pub(crate) fn enum_name(table: Option<&EnumTable>, name: &str) -> Result<Scalar<'a>, String> {
        if let Some(number) = table.and_then(|table| table.number(name)) {
            return Ok(Scalar::Varint(i64::from(number) as u64));
        }
        let listing = table.map_or("", |table| &table.listing);
        Err(format!("unknown enum value {}; one of {listing}", quote(name)))
    }

    pub(crate) fn base64(text: &str) -> Result<Scalar<'a>, String> {
        let url_safe = text.bytes().any(|byte| byte == b'-' || byte == b'_');
        let engine = if url_safe { &URL_SAFE } else { &STANDARD };
        let bytes = engine.decode(text).map_err(|_| "the string is not valid base64".to_owned())?;
        Ok(Scalar::Bytes(bytes))
    }
}

/// A map key and its encoding, from the text of a JSON object key.
pub(crate) fn map_key(kind: Kind, text: Cow<'_, str>) -> Result<(Key<'_>, Scalar<'_>), String> {
    match kind {
        Kind::String => Ok((Key::Text(text.clone()), Scalar::Text(text))),
        Kind::Bool => match &*text {
            "true" => Ok((Key::Bool(true), Scalar::Varint(1))),
            "false" => Ok((Key::Bool(false), Scalar::Varint(0))),
            _ => Err("expected the key \"true\" or \"false\"".to_owned()),
        },
        _ => {
            let value = integer(&text)?;
            let scalar =
                Scalar::integer(kind, value).ok_or_else(|| format!("the key {} is out of range", quote(&text)))?;
            Ok((Key::Integer(value), scalar))
        }
    }
}

/// The input as an error message quotes it: escaped, and not too much of it.
pub(crate) fn quote(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut cut = text.to_owned();
    if let Some((at, _)) = text.char_indices().nth(SHOWN) {
        cut.truncate(at);
        cut.push_str("...");
    }
    if first_special(cut.as_bytes()) == cut.len() {
        return format!("\"{cut}\"");
    }
    format!("{cut:?}")
}

/// An integer in any JSON spelling (`12`, `1e3`, `1.0`), exactly.
pub(crate) fn integer(text: &str) -> Result<i128, String> {
    let plain = text.strip_prefix('-').unwrap_or(text);
    let simple = (1..=20).contains(&plain.len()) && plain.bytes().all(|byte| byte.is_ascii_digit());
    if simple && (plain.len() == 1 || !plain.starts_with('0')) {
        return text.parse().map_err(|_| not_an_integer(text));
    }
    if number_length(text.as_bytes()) != Some(text.len()) {
        return Err(not_an_integer(text));
    }
    let (mantissa, exponent) = plain.split_once(['e', 'E']).unwrap_or((plain, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    // A saturated exponent is far beyond any range either way.
    let exponent = exponent.parse::<i64>().unwrap_or(if exponent.starts_with('-') {
        i64::from(i32::MIN)
    } else {
        i64::from(i32::MAX)
    });
    let zeros = (digits.len() - significant.len()) as i64;
    let scale = exponent.saturating_sub(fraction.len() as i64).saturating_add(zeros);
    if scale < 0 {
        return Err(not_an_integer(text));
    }
    let magnitude = u32::try_from(scale)
        .ok()
        .filter(|&scale| significant.len() + scale as usize <= 20)
        .and_then(|scale| Some(significant.parse::<i128>().ok()? * 10i128.pow(scale)))
        .ok_or_else(|| format!("{} is out of range", quote(text)))?;
    Ok(if text.starts_with('-') { -magnitude } else { magnitude })
}

#[cold]
fn not_an_integer(text: &str) -> String {
    format!("expected an integer, got {}", quote(text))
}

macro_rules! float {
    ($name:ident, $type:ty) => {
        fn $name(text: &str) -> Result<$type, String> {
            match text {
                "NaN" => return Ok(<$type>::NAN),
                "Infinity" => return Ok(<$type>::INFINITY),
                "-Infinity" => return Ok(<$type>::NEG_INFINITY),
                _ => {}
            }
            // Rust reads more spellings (`inf`, `.5`, `+1`) than JSON has.
            if number_length(text.as_bytes()) != Some(text.len()) {
                return Err(format!("expected a number, got {}", quote(text)));
            }
            match text.parse::<$type>() {
                Ok(value) if value.is_finite() => Ok(value),
                _ => Err(format!("{} is out of range", quote(text))),
            }
        }
    };
}
float!(float32, f32);
float!(float64, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_in_every_spelling() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("1e3", 1000),
            ("1.0", 1),
            ("12.50E1", 125),
            ("-1200e-2", -12),
            ("0e999999999999999999999", 0),
            ("18446744073709551615", i128::from(u64::MAX)),
        ] {
            assert_eq!(integer(text), Ok(value), "{text}");
        }
        for text in ["", "-", "01", "1.5", "1e-1", "1e99", "+1", " 1", "0x1", "1e99999999999999999999"] {
            assert!(integer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_are_checked() {
        assert!(Scalar::number(Kind::Int32, "2147483648").is_err());
        assert!(Scalar::number(Kind::Uint64, "-1").is_err());
        assert!(Scalar::number(Kind::Float, "1e39").is_err());
        assert!(Scalar::number(Kind::Double, "inf").is_err());
        assert_eq!(Scalar::number(Kind::Sint32, "-1"), Ok(Scalar::Varint(1)));
        assert_eq!(Scalar::number(Kind::Sint32, "-2147483648"), Ok(Scalar::Varint(u64::from(u32::MAX))));
    }

    #[test]
    fn base64_in_both_alphabets() {
        for text in ["+/8=", "+/8", "-_8", "-_8="] {
            assert_eq!(Scalar::base64(text), Ok(Scalar::Bytes(vec![0xfb, 0xff])), "{text}");
        }
        assert!(Scalar::base64("*").is_err());
    }
}
