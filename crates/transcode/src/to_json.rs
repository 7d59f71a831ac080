//! Wire -> JSON: index a message's fields in one shallow scan, then emit them
//! in field order.
//!
//! Emitting in wire order cannot work: fields arrive in any order, repeated
//! fields interleave, later values replace or merge with earlier ones, and
//! absent fields may have to appear too. The index settles all of that before
//! the first byte is written.

use std::borrow::Cow;

use crate::errors::{Outcome, Within, fault};
use crate::scalar::Key;
use crate::scan::{self, DELIMITED, MAX_DEPTH};
use crate::tables::{Field, Kind, MessageTable, Shape, Special, Tables};
use crate::text::{push_base64, push_f32, push_f64, push_i64, push_json_string, push_u64};
use crate::{JsonOptions, MessageId, TranscodeError};

/// Where a field's occurrences lie in its message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot {
    /// Start of the first occurrence's key.
    first: u32,
    /// Start of the last occurrence's value.
    last: u32,
    count: u32,
}

pub(crate) struct Emitter<'t, 'o> {
    pub(crate) tables: &'t Tables,
    options: JsonOptions,
    pub(crate) out: &'o mut Vec<u8>,
    /// The indexes of all messages being emitted, innermost on top.
    slots: Vec<Slot>,
}

impl Tables {
    /// Appends the canonical JSON of the encoded message `wire` to `out`.
    ///
    /// Fields come in order of their numbers and map entries in order of their
    /// keys, so equal messages give equal text. Unknown fields are skipped. On
    /// an error `out` is left as it was.
    pub fn to_json(
        &self,
        id: MessageId,
        wire: &[u8],
        opts: &JsonOptions,
        out: &mut Vec<u8>,
    ) -> Result<(), TranscodeError> {
        let start = out.len();
        if u32::try_from(wire.len()).is_err() {
            return Err(*fault("the encoded message is larger than 4 GiB"));
        }
        out.reserve(wire.len().saturating_mul(2));
        let mut emitter = Emitter { tables: self, options: *opts, out, slots: Vec::with_capacity(64) };
        let result = emitter.message(id.0, wire, 0);
        if result.is_err() {
            out.truncate(start);
        }
        result.map_err(|error| *error)
    }
}

impl<'t> Emitter<'t, '_> {
    pub(crate) fn message(&mut self, id: u32, buf: &[u8], depth: u32) -> Outcome {
        if depth > MAX_DEPTH {
            return Err(scan::too_deep());
        }
        let table = self.tables.table(id);
        match table.special {
            Special::None | Special::Empty => {
                self.out.push(b'{');
                self.fields(table, buf, depth, true)?;
                self.out.push(b'}');
                Ok(())
            }
            _ => self.special(table, buf, depth),
        }
    }

    /// The members of an object, without its braces.
    pub(crate) fn fields(&mut self, table: &'t MessageTable, buf: &[u8], depth: u32, mut first: bool) -> Outcome {
        let base = self.index(table, buf)?;
        for (at, field) in table.fields.iter().enumerate() {
            let slot = self.slots.get(base + at).copied().unwrap_or_default();
            let absent = slot.count == 0;
            if absent && (field.presence || !self.options.emit_defaults) {
                continue;
            }
            let undo = self.out.len();
            let key = if self.options.proto_names { &field.proto_key } else { &field.json_key };
            self.out.extend_from_slice(key.get(usize::from(first)..).unwrap_or_default());
            let written = if absent {
                self.out.extend_from_slice(&field.default_json);
                true
            } else {
                self.present(field, slot, buf, depth).within(&field.json_name)?
            };
            if written {
                first = false;
            } else {
                self.out.truncate(undo);
            }
        }
        self.slots.truncate(base);
        Ok(())
    }

    /// Fills one slot per field and returns where they start.
    pub(crate) fn index(&mut self, table: &MessageTable, buf: &[u8]) -> Outcome<usize> {
        let base = self.slots.len();
        self.slots.resize(base + table.fields.len(), Slot::default());
        let slots = self.slots.get_mut(base..).unwrap_or_default();
        let mut pos = 0;
        while pos < buf.len() {
            let start = pos;
            let (number, wire_type) = scan::key(buf, &mut pos)?;
            let value = pos;
            scan::skip(buf, &mut pos, number, wire_type)?;
            let Some((at, field)) = table.field(number) else {
                continue;
            };
            if !field.accepts(wire_type) {
                return Err(wrong_wire_type()).within(&field.json_name);
            }
            if let Some(oneof) = field.oneof {
                clear_others(table, oneof, at, slots);
            }
            if let Some(slot) = slots.get_mut(at) {
                if slot.count == 0 {
                    slot.first = start as u32;
                }
                slot.last = value as u32;
                slot.count += 1;
            }
        }
        Ok(base)
    }

    pub(crate) fn slot(&self, at: usize) -> Slot {
        self.slots.get(at).copied().unwrap_or_default()
    }

    pub(crate) fn drop_index(&mut self, base: usize) {
        self.slots.truncate(base);
    }

    /// The value of a field that occurs; false if it is a default to leave out.
    pub(crate) fn present(&mut self, field: &'t Field, slot: Slot, buf: &[u8], depth: u32) -> Outcome<bool> {
        match field.shape {
            Shape::Map { key } => self.map(field, key, slot, buf, depth).map(|()| true),
            Shape::Repeated { .. } => {
                let some = self.list(field, slot, buf, depth)?;
                Ok(some || self.options.emit_defaults)
            }
            Shape::Singular => {
                let at = slot.last as usize;
                if let (Kind::Message(id), 2..) = (field.kind, slot.count) {
                    let run = buf.get(slot.first as usize..).unwrap_or_default();
                    let merged = scan::concatenate(run, field.number)?;
                    self.message(id, &merged, depth + 1)?;
                } else if !field.presence && !self.options.emit_defaults {
                    let undo = self.out.len();
                    self.value(field.kind, buf, &mut { at }, depth)?;
                    return Ok(self.out.get(undo..) != Some(&field.default_json));
                } else {
                    self.value(field.kind, buf, &mut { at }, depth)?;
                }
                Ok(true)
            }
        }
    }

    /// All elements, packed and unpacked ones mixed as they may be.
    fn list(&mut self, field: &Field, slot: Slot, buf: &[u8], depth: u32) -> Outcome<bool> {
        self.out.push(b'[');
        let mut pos = slot.first as usize;
        let mut left = slot.count;
        let mut count = 0;
        while left > 0 {
            let (number, wire_type) = scan::key(buf, &mut pos)?;
            if number != field.number {
                scan::skip(buf, &mut pos, number, wire_type)?;
                continue;
            }
            left -= 1;
            if wire_type == field.kind.wire_type() {
                self.element(field.kind, buf, &mut pos, depth, &mut count)?;
            } else {
                let packed = scan::delimited(buf, &mut pos)?;
                let mut at = 0;
                while at < packed.len() {
                    self.element(field.kind, packed, &mut at, depth, &mut count)?;
                }
            }
        }
        self.out.push(b']');
        Ok(count > 0)
    }

    fn element(&mut self, kind: Kind, buf: &[u8], pos: &mut usize, depth: u32, count: &mut usize) -> Outcome {
        if *count > 0 {
            self.out.push(b',');
        }
        self.value(kind, buf, pos, depth).within_index(*count)?;
        *count += 1;
        Ok(())
    }

    /// The last entry per key, in order of the keys.
    fn map(&mut self, field: &Field, key: Kind, slot: Slot, buf: &[u8], depth: u32) -> Outcome {
        if depth + 1 > MAX_DEPTH {
            return Err(scan::too_deep());
        }
        let mut entries = Vec::with_capacity(slot.count as usize);
        let mut pos = slot.first as usize;
        while entries.len() < slot.count as usize {
            let (number, wire_type) = scan::key(buf, &mut pos)?;
            if number == field.number {
                let payload = scan::delimited(buf, &mut pos)?;
                entries.push(Entry::read(payload, key, field.kind)?);
            } else {
                scan::skip(buf, &mut pos, number, wire_type)?;
            }
        }
        // A stable sort keeps equal keys in wire order.
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        self.out.push(b'{');
        let mut first = true;
        let mut rest = entries.iter().peekable();
        while let Some(entry) = rest.next() {
            if rest.peek().is_some_and(|next| next.key == entry.key) {
                continue;
            }
            if !std::mem::take(&mut first) {
                self.out.push(b',');
            }
            entry.key.push_json(self.out);
            self.out.push(b':');
            if let Err(error) = self.entry_value(field.kind, entry, depth + 1) {
                return Err(error).within(&entry.key.path_part());
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn entry_value(&mut self, kind: Kind, entry: &Entry<'_>, depth: u32) -> Outcome {
        match (kind, entry.last) {
            (Kind::Message(id), _) if entry.count != 1 => {
                let merged = scan::concatenate(entry.payload, 2)?;
                self.message(id, &merged, depth + 1)
            }
            (_, Some(at)) => self.value(kind, entry.payload, &mut { at }, depth),
            // An absent value is the default, which reads as zero bytes.
            (_, None) => self.value(kind, &[0; 8], &mut 0, depth),
        }
    }

    /// One value at `pos`, which moves past it.
    pub(crate) fn value(&mut self, kind: Kind, buf: &[u8], pos: &mut usize, depth: u32) -> Outcome {
        match kind {
            Kind::String => push_json_string(self.out, scan::string(buf, pos)?),
            Kind::Message(id) => return self.message(id, scan::delimited(buf, pos)?, depth + 1),
            Kind::Bool => {
                let text: &[u8] = if scan::varint(buf, pos)? == 0 { b"false" } else { b"true" };
                self.out.extend_from_slice(text);
            }
            Kind::Enum(id) => {
                let number = scan::varint(buf, pos)? as i32;
                self.enumeration(id, number);
            }
            Kind::Bytes => push_base64(self.out, scan::delimited(buf, pos)?),
            Kind::Float => push_f32(self.out, f32::from_le_bytes(scan::fixed(buf, pos)?)),
            Kind::Double => push_f64(self.out, f64::from_le_bytes(scan::fixed(buf, pos)?)),
            _ => {
                // 64-bit integers are strings, because JavaScript's numbers
                // cannot hold them.
                let integer = Integer::read(kind, buf, pos)?;
                let quote: &[u8] = if integer.wide { b"\"" } else { b"" };
                self.out.extend_from_slice(quote);
                integer.push(self.out);
                self.out.extend_from_slice(quote);
            }
        }
        Ok(())
    }

    fn enumeration(&mut self, id: u32, number: i32) {
        match self.tables.enumeration(id) {
            Some(table) if table.null => self.out.extend_from_slice(b"null"),
            Some(table) if let Some(name) = table.name(number) => {
                self.out.extend_from_slice(name);
            }
            _ => push_i64(self.out, i64::from(number)),
        }
    }
}

#[cold]
#[expect(clippy::unnecessary_box_returns, reason = "the error side of `Outcome`")]
pub(crate) fn wrong_wire_type() -> Box<TranscodeError> {
    fault("encoded with a wire type that is not this field's")
}

/// A oneof holds the member seen last; the others' earlier values are gone.
fn clear_others(table: &MessageTable, oneof: u32, keep: usize, slots: &mut [Slot]) {
    for &member in table.oneofs.get(oneof as usize).into_iter().flatten() {
        if member as usize != keep
            && let Some(slot) = slots.get_mut(member as usize)
        {
            *slot = Slot::default();
        }
    }
}

impl Slot {
    pub(crate) fn is_set(self) -> bool {
        self.count > 0
    }

    pub(crate) fn last(self) -> usize {
        self.last as usize
    }
}

impl Field {
    /// Whether an occurrence may have this wire type.
    #[inline]
    pub(crate) fn accepts(&self, wire_type: u8) -> bool {
        match self.shape {
            Shape::Map { .. } => wire_type == DELIMITED,
            Shape::Repeated { .. } if wire_type == DELIMITED => true,
            _ => wire_type == self.kind.wire_type(),
        }
    }
}

/// An integer of any kind.
pub(crate) struct Integer {
    negative: bool,
    magnitude: u64,
    wide: bool,
}

impl Integer {
    #[inline]
    fn read(kind: Kind, buf: &[u8], pos: &mut usize) -> Outcome<Integer> {
        let zigzag = |raw: u64| (raw >> 1) as i64 ^ -((raw & 1) as i64);
        let signed = match kind {
            Kind::Int32 => i64::from(scan::varint(buf, pos)? as i32),
            Kind::Int64 => scan::varint(buf, pos)? as i64,
            Kind::Sint32 => zigzag(u64::from(scan::varint(buf, pos)? as u32)),
            Kind::Sint64 => zigzag(scan::varint(buf, pos)?),
            Kind::Sfixed32 => i64::from(i32::from_le_bytes(scan::fixed(buf, pos)?)),
            Kind::Sfixed64 => i64::from_le_bytes(scan::fixed(buf, pos)?),
            Kind::Uint32 => i64::from(scan::varint(buf, pos)? as u32),
            Kind::Fixed32 => i64::from(u32::from_le_bytes(scan::fixed(buf, pos)?)),
            Kind::Fixed64 => {
                return Ok(Integer::unsigned(u64::from_le_bytes(scan::fixed(buf, pos)?)));
            }
            _ => return Ok(Integer::unsigned(scan::varint(buf, pos)?)),
        };
        let wide = matches!(kind, Kind::Int64 | Kind::Sint64 | Kind::Sfixed64);
        Ok(Integer { negative: signed < 0, magnitude: signed.unsigned_abs(), wide })
    }

    fn unsigned(magnitude: u64) -> Integer {
        Integer { negative: false, magnitude, wide: true }
    }

    fn push(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        push_u64(out, self.magnitude);
    }

    fn key(&self) -> Key<'static> {
        let size = i128::from(self.magnitude);
        Key::Integer(if self.negative { -size } else { size })
    }
}

/// A map entry: its key, and where its value lies.
struct Entry<'a> {
    key: Key<'a>,
    payload: &'a [u8],
    last: Option<usize>,
    count: u32,
}

impl<'a> Entry<'a> {
    fn read(payload: &'a [u8], key_kind: Kind, value_kind: Kind) -> Outcome<Entry<'a>> {
        let mut key_at = None;
        let (mut last, mut count) = (None, 0);
        let mut pos = 0;
        while pos < payload.len() {
            let (number, wire_type) = scan::key(payload, &mut pos)?;
            let expected = match number {
                1 => {
                    key_at = Some(pos);
                    key_kind.wire_type()
                }
                2 => {
                    last = Some(pos);
                    count += 1;
                    value_kind.wire_type()
                }
                _ => wire_type,
            };
            if wire_type != expected {
                return Err(wrong_wire_type());
            }
            scan::skip(payload, &mut pos, number, wire_type)?;
        }
        let (buf, mut at): (&[u8], usize) = match key_at {
            Some(at) => (payload, at),
            None => (&[0; 8], 0),
        };
        let key = match key_kind {
            Kind::String => Key::Text(Cow::Borrowed(scan::string(buf, &mut at)?)),
            Kind::Bool => Key::Bool(scan::varint(buf, &mut at)? != 0),
            kind => Integer::read(kind, buf, &mut at)?.key(),
        };
        Ok(Entry { key, payload, last, count })
    }
}
