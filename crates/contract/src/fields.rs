//! Walks the fields of an encoded message as a decoder would, without decoding it.

/// Groups inside groups that a walk follows, as decoders do.
const MAX_DEPTH: u32 = 100;

/// One field's payload on the wire.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// A zero scalar or an empty string, which proto3 does not distinguish from absence.
    Empty,
    Other,
}

/// Walks the fields of a message. Damage ends the walk with an error.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

/// Bytes that are no message.
pub(crate) struct Damaged;

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Payload<'a>), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.0.is_empty() {
                return None;
            }
            match field(&mut self.0, 0) {
                Some((number, Some(payload))) => return Some(Ok((number, payload))),
                // An unknown group: skipped, as decoders do.
                Some((_, None)) => {}
                None => {
                    self.0 = &[];
                    return Some(Err(Damaged));
                }
            }
        }
    }
}

/// One field; a group has no payload. Absent if the bytes are damaged.
fn field<'a>(bytes: &mut &'a [u8], depth: u32) -> Option<(u32, Option<Payload<'a>>)> {
    let key = varint(bytes)?;
    let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
    let payload = match key & 7 {
        0 => match varint(bytes)? {
            0 => Payload::Empty,
            value => Payload::Varint(value),
        },
        1 => take(bytes, 8).map(|_| Payload::Other)?,
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            match take(bytes, length)? {
                [] => Payload::Empty,
                payload => Payload::Bytes(payload),
            }
        }
        3 if depth < MAX_DEPTH => {
            skip_group(bytes, number, depth)?;
            return Some((number, None));
        }
        5 => take(bytes, 4).map(|_| Payload::Other)?,
        _ => return None,
    };
    Some((number, Some(payload)))
}

/// Everything up to the end of the group.
fn skip_group(bytes: &mut &[u8], number: u32, depth: u32) -> Option<()> {
    loop {
        let mut ahead = *bytes;
        let key = varint(&mut ahead)?;
        if key & 7 == 4 {
            *bytes = ahead;
            return (key >> 3 == u64::from(number)).then_some(());
        }
        field(bytes, depth + 1)?;
    }
}

/// The elements of a packed repeated scalar.
pub(crate) fn packed_varints(mut bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    std::iter::from_fn(move || varint(&mut bytes))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}
