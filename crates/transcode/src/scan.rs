//! Reading protobuf wire data: varints, keys, skipping, merging.
//!
//! Every function takes the buffer and a position it moves, and refuses what
//! prost refuses: over-long varints, field number 0, lengths past the end.

use crate::errors::{Outcome, fault};

/// Levels of nested messages below the outermost one, as in prost. Map entries count, so that generated code
/// can decode whatever is encoded here.
pub(crate) const MAX_DEPTH: u32 = 100;

pub(crate) const VARINT: u8 = 0;
pub(crate) const FIXED64: u8 = 1;
pub(crate) const DELIMITED: u8 = 2;
const GROUP_START: u8 = 3;
const GROUP_END: u8 = 4;
pub(crate) const FIXED32: u8 = 5;

#[cold]
fn truncated<T>() -> Outcome<T> {
    Err(fault("the encoded message ends too early"))
}

/// One varint of at most ten bytes.
#[inline]
pub(crate) fn varint(buf: &[u8], pos: &mut usize) -> Outcome<u64> {
    match buf.get(*pos) {
        Some(&byte) if byte < 0x80 => {
            *pos += 1;
            Ok(u64::from(byte))
        }
        _ => long_varint(buf, pos),
    }
}

fn long_varint(buf: &[u8], pos: &mut usize) -> Outcome<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let Some(&byte) = buf.get(*pos) else {
            return truncated();
        };
        *pos += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            // The tenth byte has room for one bit only.
            if shift == 63 && byte > 1 {
                break;
            }
            return Ok(value);
        }
    }
    Err(fault("the encoded message holds an invalid varint"))
}

/// Field number and wire type of the next field.
#[inline]
pub(crate) fn key(buf: &[u8], pos: &mut usize) -> Outcome<(u32, u8)> {
    let key = varint(buf, pos)?;
    let wire_type = (key & 7) as u8;
    match u32::try_from(key) {
        Ok(key) if key >= 8 && wire_type <= FIXED32 => Ok((key >> 3, wire_type)),
        _ => Err(fault("the encoded message holds an invalid field key")),
    }
}

/// The payload of a length-delimited field.
#[inline]
pub(crate) fn delimited<'a>(buf: &'a [u8], pos: &mut usize) -> Outcome<&'a [u8]> {
    let length = varint(buf, pos)?;
    let end = usize::try_from(length).ok().and_then(|length| pos.checked_add(length));
    match end.and_then(|end| buf.get(*pos..end)) {
        Some(payload) => {
            *pos += payload.len();
            Ok(payload)
        }
        None => truncated(),
    }
}

/// `N` bytes of a fixed-width value.
#[inline]
pub(crate) fn fixed<const N: usize>(buf: &[u8], pos: &mut usize) -> Outcome<[u8; N]> {
    match buf.get(*pos..).and_then(<[u8]>::first_chunk::<N>) {
        Some(bytes) => {
            *pos += N;
            Ok(*bytes)
        }
        None => truncated(),
    }
}

#[inline]
pub(crate) fn string<'a>(buf: &'a [u8], pos: &mut usize) -> Outcome<&'a str> {
    std::str::from_utf8(delimited(buf, pos)?).map_err(|_| fault("the string is not valid UTF-8"))
}

/// Moves past a value whose key has been read.
#[inline]
pub(crate) fn skip(buf: &[u8], pos: &mut usize, number: u32, wire_type: u8) -> Outcome {
    match wire_type {
        VARINT => varint(buf, pos).map(drop),
        DELIMITED => delimited(buf, pos).map(drop),
        FIXED32 => fixed::<4>(buf, pos).map(drop),
        FIXED64 => fixed::<8>(buf, pos).map(drop),
        _ => skip_group(buf, pos, number, wire_type),
    }
}

/// Groups nest without lengths, so the open ones are kept on a small stack
/// instead of recursing.
#[cold]
fn skip_group(buf: &[u8], pos: &mut usize, number: u32, wire_type: u8) -> Outcome {
    if wire_type != GROUP_START {
        return Err(fault("the encoded message ends a group it never began"));
    }
    let mut open = vec![number];
    while let Some(&innermost) = open.last() {
        match key(buf, pos)? {
            (inner, GROUP_START) if open.len() < MAX_DEPTH as usize => open.push(inner),
            (_, GROUP_START) => return Err(too_deep()),
            (inner, GROUP_END) if inner == innermost => {
                open.pop();
            }
            (inner, wire_type) => skip(buf, pos, inner, wire_type)?,
        }
    }
    Ok(())
}

#[cold]
#[expect(clippy::unnecessary_box_returns, reason = "the error side of `Outcome`")]
pub(crate) fn too_deep() -> Box<crate::TranscodeError> {
    fault(format!("nested more than {MAX_DEPTH} levels deep"))
}

/// Joins the payloads of every occurrence of `number` in `buf`. By the wire
/// format's definition that is the merge of those messages.
pub(crate) fn concatenate(buf: &[u8], number: u32) -> Outcome<Vec<u8>> {
    let mut merged = Vec::new();
    let mut pos = 0;
    while pos < buf.len() {
        let (found, wire_type) = key(buf, &mut pos)?;
        if found == number && wire_type == DELIMITED {
            merged.extend_from_slice(delimited(buf, &mut pos)?);
        } else {
            skip(buf, &mut pos, found, wire_type)?;
        }
    }
    Ok(merged)
}

#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field key.
#[inline]
pub(crate) fn put_key(out: &mut Vec<u8>, number: u32, wire_type: u8) {
    put_varint(out, u64::from(number) << 3 | u64::from(wire_type));
}

/// Appends a length-delimited field.
pub(crate) fn put_delimited(out: &mut Vec<u8>, number: u32, payload: &[u8]) {
    put_key(out, number, DELIMITED);
    put_varint(out, payload.len() as u64);
    out.extend_from_slice(payload);
}

/// Reserves one byte for a length; most messages need no more.
pub(crate) fn open_length(out: &mut Vec<u8>) -> usize {
    out.push(0);
    out.len()
}

/// Writes the length of what follows `start` (from [`open_length`]) into the
/// reserved byte, moving the content when the length needs more room.
pub(crate) fn close_length(out: &mut Vec<u8>, start: usize) {
    let end = out.len();
    let mut length = end.saturating_sub(start);
    if length < 0x80 {
        if let Some(reserved) = start.checked_sub(1).and_then(|at| out.get_mut(at)) {
            *reserved = length as u8;
        }
        return;
    }
    let mut bytes = [0u8; 10];
    let mut used = 0;
    for byte in &mut bytes {
        used += 1;
        *byte = length as u8 | 0x80;
        length >>= 7;
        if length == 0 {
            *byte &= 0x7f;
            break;
        }
    }
    out.extend_from_slice(&bytes[..used - 1]);
    out.copy_within(start..end, start + used - 1);
    if let Some(room) = out.get_mut(start - 1..start - 1 + used) {
        room.copy_from_slice(&bytes[..used]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_have_ten_bytes_at_most() {
        let mut pos = 0;
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(varint(&max, &mut pos).unwrap(), u64::MAX);
        let over = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert!(varint(&over, &mut 0).is_err());
        assert!(varint(&[0x80; 11], &mut 0).is_err());
        assert!(varint(&[0x80], &mut 0).is_err());
    }

    #[test]
    fn keys_are_checked() {
        assert!(key(&[0x00], &mut 0).is_err(), "field number 0");
        assert!(key(&[0x0e], &mut 0).is_err(), "wire type 6");
        assert_eq!(key(&[0x0a], &mut 0).unwrap(), (1, DELIMITED));
    }

    #[test]
    fn groups_are_skipped_to_their_own_end() {
        // Group 1 { group 2 { varint 3 = 1 } }, then one byte more.
        let buf = [0x13, 0x18, 0x01, 0x14, 0x0c, 0xff];
        let mut pos = 0;
        skip(&buf, &mut pos, 1, GROUP_START).unwrap();
        assert_eq!(pos, 5);
        assert!(skip(&[0x14], &mut 0, 1, GROUP_START).is_err(), "other end");
        assert!(skip(&[], &mut 0, 1, GROUP_END).is_err());
        assert!(skip(&[0x0b; 500], &mut 0, 1, GROUP_START).is_err());
    }

    #[test]
    fn lengths_are_patched_in() {
        for size in [0usize, 1, 127, 128, 300, 16_383, 16_384, 70_000] {
            let mut out = vec![9];
            let start = open_length(&mut out);
            out.extend(std::iter::repeat_n(7, size));
            close_length(&mut out, start);
            let mut pos = 1;
            assert_eq!(delimited(&out, &mut pos).unwrap(), vec![7; size]);
            assert_eq!(pos, out.len());
        }
    }
}
