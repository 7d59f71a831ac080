//! The well-known types whose JSON is not an object of their fields, in both
//! directions.

use crate::errors::{Outcome, Within, fault};
use crate::from_json::Parser;
use crate::json_reader::{Fault, Parse};
use crate::scalar::quote;
use crate::scan::{self, DELIMITED, FIXED64, VARINT};
use crate::tables::{Kind, MessageTable, Special};
use crate::text::push_json_string;
use crate::time_text::{parse_duration, parse_mask, parse_timestamp, push_duration, push_mask_path, push_timestamp};
use crate::to_json::{Emitter, wrong_wire_type};

impl<'t> Emitter<'t, '_> {
    pub(crate) fn special(&mut self, table: &'t MessageTable, buf: &[u8], depth: u32) -> Outcome {
        match table.special {
            Special::Timestamp => {
                let (seconds, nanos) = seconds_and_nanos(buf)?;
                push_timestamp(self.out, seconds, nanos).map_err(fault)
            }
            Special::Duration => {
                let (seconds, nanos) = seconds_and_nanos(buf)?;
                push_duration(self.out, seconds, nanos).map_err(fault)
            }
            Special::FieldMask => self.mask(buf),
            Special::Any => self.any(buf, depth),
            Special::Value => self.dynamic(table, buf, depth),
            _ => self.only_field(table, buf, depth),
        }
    }

    /// Wrappers, `Struct` and `ListValue` are written as their one field.
    fn only_field(&mut self, table: &'t MessageTable, buf: &[u8], depth: u32) -> Outcome {
        let Some(field) = table.fields.first() else {
            return Ok(());
        };
        let base = self.index(table, buf)?;
        let slot = self.slot(base);
        let undo = self.out.len();
        if slot.is_set() {
            self.present(field, slot, buf, depth)?;
        }
        if self.out.len() == undo {
            self.out.extend_from_slice(&field.default_json);
        }
        self.drop_index(base);
        Ok(())
    }

    /// `google.protobuf.Value`: whatever its oneof holds.
    fn dynamic(&mut self, table: &'t MessageTable, buf: &[u8], depth: u32) -> Outcome {
        let base = self.index(table, buf)?;
        let set = table.fields.iter().enumerate();
        let set = set.map(|(at, field)| (field, self.slot(base + at)));
        match set.into_iter().find(|(_, slot)| slot.is_set()) {
            None => self.out.extend_from_slice(b"null"),
            Some((field, slot)) => {
                if field.kind == Kind::Double {
                    let number = scan::fixed(buf, &mut slot.last())?;
                    if !f64::from_le_bytes(number).is_finite() {
                        return Err(fault("a JSON value cannot hold NaN or an infinity"));
                    }
                }
                self.present(field, slot, buf, depth)?;
            }
        }
        self.drop_index(base);
        Ok(())
    }

    fn mask(&mut self, buf: &[u8]) -> Outcome {
        let mut text = String::new();
        let mut pos = 0;
        while pos < buf.len() {
            let (number, wire_type) = scan::key(buf, &mut pos)?;
            match (number, wire_type) {
                (1, DELIMITED) => {
                    let path = scan::string(buf, &mut pos)?;
                    if !text.is_empty() {
                        text.push(',');
                    }
                    if !push_mask_path(&mut text, path) {
                        let shown = quote(path);
                        return Err(fault(format!("the path {shown} has no JSON spelling")));
                    }
                }
                (1, _) => return Err(wrong_wire_type()),
                _ => scan::skip(buf, &mut pos, number, wire_type)?,
            }
        }
        push_json_string(self.out, &text);
        Ok(())
    }

    /// The message inside, with its type as the first member.
    fn any(&mut self, buf: &[u8], depth: u32) -> Outcome {
        let (mut url, mut payload): (&str, &[u8]) = ("", &[]);
        let mut pos = 0;
        while pos < buf.len() {
            match scan::key(buf, &mut pos)? {
                (1, DELIMITED) => url = scan::string(buf, &mut pos)?,
                (2, DELIMITED) => payload = scan::delimited(buf, &mut pos)?,
                (1 | 2, _) => return Err(wrong_wire_type()),
                (number, wire_type) => scan::skip(buf, &mut pos, number, wire_type)?,
            }
        }
        if url.is_empty() && payload.is_empty() {
            self.out.extend_from_slice(b"{}");
            return Ok(());
        }
        if depth + 1 > scan::MAX_DEPTH {
            return Err(scan::too_deep());
        }
        let Some(id) = self.tables.message(type_name(url)) else {
            return Err(fault(format!("unknown message type {}", quote(url)))).within("@type");
        };
        self.out.extend_from_slice(b"{\"@type\":");
        push_json_string(self.out, url);
        let table = self.tables.table(id.0);
        if table.special == Special::None {
            self.fields(table, payload, depth + 1, false)?;
        } else {
            self.out.extend_from_slice(b",\"value\":");
            self.message(id.0, payload, depth + 1)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// The message name a type URL ends with.
pub(crate) fn type_name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

/// Fields 1 and 2, the last occurrence of each.
fn seconds_and_nanos(buf: &[u8]) -> Outcome<(i64, i32)> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut pos = 0;
    while pos < buf.len() {
        match scan::key(buf, &mut pos)? {
            (1, VARINT) => seconds = scan::varint(buf, &mut pos)? as i64,
            (2, VARINT) => nanos = scan::varint(buf, &mut pos)? as i32,
            (1 | 2, _) => return Err(wrong_wire_type()),
            (number, wire_type) => scan::skip(buf, &mut pos, number, wire_type)?,
        }
    }
    Ok((seconds, nanos))
}

/// The content of a message written as a string. With `explicit`, zeros are
/// written too, so that they replace earlier values when merged.
pub(crate) fn encode_text(special: Special, text: &str, explicit: bool, out: &mut Vec<u8>) -> Result<(), String> {
    let (seconds, nanos) = match special {
        Special::Timestamp => parse_timestamp(text)?,
        Special::Duration => parse_duration(text)?,
        _ => {
            parse_mask(text).for_each(|path| scan::put_delimited(out, 1, path.as_bytes()));
            return Ok(());
        }
    };
    for (number, value) in [(1, seconds), (2, i64::from(nanos))] {
        if explicit || value != 0 {
            scan::put_key(out, number, VARINT);
            scan::put_varint(out, value as u64);
        }
    }
    Ok(())
}

impl<'t> Parser<'t, '_, '_> {
    pub(crate) fn special_value(&mut self, table: &'t MessageTable, depth: u32) -> Parse {
        match table.special {
            Special::Timestamp | Special::Duration | Special::FieldMask => {
                let text = self.reader.string()?;
                encode_text(table.special, &text, false, self.out).map_err(Fault::Bad)
            }
            Special::Any => self.any_value(depth),
            Special::Value => self.dynamic_value(table, depth),
            _ => match table.fields.first() {
                Some(field) => self.field_content(field, depth),
                None => self.object(table, depth, false),
            },
        }
    }

    /// Any JSON value, as the member of `Value`'s oneof that fits.
    fn dynamic_value(&mut self, table: &'t MessageTable, depth: u32) -> Parse {
        let number = match self.reader.peek() {
            Some(b'n') => {
                self.reader.literal("null")?;
                scan::put_key(self.out, 1, VARINT);
                self.out.push(0);
                return Ok(());
            }
            Some(b'-' | b'0'..=b'9') => {
                let text = self.reader.number()?;
                let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
                let range = || Fault::Bad(format!("{} is out of range", quote(text)));
                let value = value.ok_or_else(range)?;
                scan::put_key(self.out, 2, FIXED64);
                self.out.extend_from_slice(&value.to_le_bytes());
                return Ok(());
            }
            Some(b'"') => {
                let text = self.reader.string()?;
                scan::put_delimited(self.out, 3, text.as_bytes());
                return Ok(());
            }
            Some(b't' | b'f') => {
                let value = self.boolean()?;
                scan::put_key(self.out, 4, VARINT);
                self.out.push(u8::from(value));
                return Ok(());
            }
            Some(b'{') => 5,
            Some(b'[') => 6,
            _ => return self.reader.unexpected("a value"),
        };
        match table.field(number) {
            Some((_, field)) => self.field_content(field, depth),
            None => self.reader.unexpected("a scalar"),
        }
    }

    /// The type may come after the members it explains, so it is looked up
    /// first. Peers put it first, and then nothing is read twice.
    fn any_value(&mut self, depth: u32) -> Parse {
        let start = self.reader.pos;
        let mut url = None;
        let mut first = true;
        let mut empty = true;
        self.reader.open(b'{')?;
        while url.is_none() && self.reader.next(b'}', &mut first)? {
            empty = false;
            if self.reader.key()? == "@type" {
                url = Some(self.reader.string()?);
            } else {
                self.reader.skip_value()?;
            }
        }
        if empty {
            return Ok(());
        }
        let Some(url) = url else {
            return Err(Fault::Bad("\"@type\" is missing".to_owned()));
        };
        let Some(id) = self.tables.message(type_name(&url)) else {
            return Err(Fault::Bad(format!("unknown message type {}", quote(&url))));
        };
        self.reader.pos = start;
        scan::put_delimited(self.out, 1, url.as_bytes());
        let undo = self.out.len();
        scan::put_key(self.out, 2, DELIMITED);
        let content = scan::open_length(self.out);
        let table = self.tables.table(id.0);
        if table.special == Special::None {
            self.check_depth(depth + 1)?;
            self.object(table, depth + 1, true)?;
        } else {
            self.any_special(id.0, depth + 1)?;
        }
        if self.out.len() == content {
            self.out.truncate(undo);
        } else {
            scan::close_length(self.out, content);
        }
        Ok(())
    }

    /// A special type inside `Any` is its member `value`.
    fn any_special(&mut self, id: u32, depth: u32) -> Parse {
        let mut first = true;
        let mut found = false;
        self.reader.open(b'{')?;
        while self.reader.next(b'}', &mut first)? {
            if self.reader.key()? != "value" {
                self.reader.skip_value()?;
            } else if std::mem::replace(&mut found, true) {
                return Err(Fault::Bad("\"value\" appears twice".to_owned()));
            } else {
                self.message_value(id, depth)?;
            }
        }
        if found {
            return Ok(());
        }
        Err(Fault::Bad("\"value\" is missing".to_owned()))
    }
}
