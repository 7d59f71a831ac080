//! Single fields by dotted path: query and path parameters into wire bytes,
//! sub-messages wrapped, strings read back out.

use std::borrow::Cow;

use crate::errors::{Outcome, Within, fault};
use crate::scalar::{Scalar, quote};
use crate::scan::{self, DELIMITED, MAX_DEPTH};
use crate::tables::{Field, Kind, MessageTable, Shape, Special, Tables};
use crate::to_json::wrong_wire_type;
use crate::well_known::encode_text;
use crate::{MessageId, TranscodeError};

impl Tables {
    /// Parses `value` into the field at `path` (`a.b.c`, proto or JSON names)
    /// and appends wire bytes that merge into the message: a repeated field
    /// gains an element per call, any other takes the last value given. Zeros
    /// are written too, because they may have to replace something.
    ///
    /// `Ok(false)` means that there is no such field.
    pub fn set_parameter(
        &self,
        id: MessageId,
        path: &str,
        value: &str,
        out: &mut Vec<u8>,
    ) -> Result<bool, TranscodeError> {
        let Some(fields) = self.resolve(id, path) else {
            return Ok(false);
        };
        let Some(leaf) = fields.last() else {
            return Ok(false);
        };
        let mut encoded = Vec::new();
        self.parameter(leaf, value, &mut encoded).map_err(|message| TranscodeError {
            field: fields.iter().map(|field| &*field.json_name).collect::<Vec<_>>().join("."),
            message,
        })?;
        wrap(&fields, encoded, out);
        Ok(true)
    }

    /// The path of the field that [`Tables::set_parameter`] fills, in JSON names,
    /// if it takes one value. Both spellings of a path give the same.
    pub fn singular_path(&self, id: MessageId, path: &str) -> Option<String> {
        let fields = self.resolve(id, path)?;
        let is_singular = fields.last().is_some_and(|leaf| leaf.shape == Shape::Singular);
        is_singular.then(|| fields.iter().map(|field| &*field.json_name).collect::<Vec<_>>().join("."))
    }

    /// Wraps already encoded `bytes` as the sub-message, string or bytes field
    /// at the dotted `path` (`group`, `group.uid`) and appends the result.
    /// `None`, and nothing appended, if the path leads to no such field or the
    /// bytes for a string are not UTF-8.
    pub fn embed(&self, id: MessageId, path: &str, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let fields = self.resolve(id, path)?;
        let leaf = fields.last()?;
        let fits = match leaf.kind {
            Kind::String => std::str::from_utf8(bytes).is_ok(),
            kind => kind.wire_type() == DELIMITED,
        };
        if !fits || matches!(leaf.shape, Shape::Map { .. }) {
            return None;
        }
        let mut encoded = Vec::new();
        scan::put_delimited(&mut encoded, leaf.number, bytes);
        wrap(&fields, encoded, out);
        Some(())
    }

    /// The message type of the singular field at the dotted `path`, for parsing
    /// what [`Tables::embed`] will wrap.
    pub fn message_at(&self, id: MessageId, path: &str) -> Option<MessageId> {
        match self.resolve(id, path)?.last()? {
            Field { shape: Shape::Singular, kind: Kind::Message(inner), .. } => Some(MessageId(*inner)),
            _ => None,
        }
    }

    /// The value of the singular string field at the dotted `path` of an
    /// encoded message: the last one, with split messages merged and replaced
    /// oneof members gone, as any decoder sees it. `None` if it is absent; an
    /// error if the schema has no such string field.
    pub fn read_string<'a>(
        &self,
        id: MessageId,
        wire: &'a [u8],
        path: &str,
    ) -> Result<Option<Cow<'a, str>>, TranscodeError> {
        let fields = self.resolve(id, path).filter(|fields| {
            let leaf = fields.last();
            leaf.is_some_and(|leaf| leaf.kind == Kind::String && leaf.shape == Shape::Singular)
        });
        let found = match fields {
            Some(fields) => self.find_string(id, &fields, wire),
            None => Err(fault("there is no such string field")),
        };
        found.within(path).map_err(|error| *error)
    }

    /// The fields along a path; all but the last are singular plain messages.
    fn resolve(&self, id: MessageId, path: &str) -> Option<Vec<&Field>> {
        let mut table = Some(self.table(id.0));
        let mut fields = Vec::new();
        for name in path.split('.') {
            if fields.len() >= MAX_DEPTH as usize {
                return None;
            }
            // Paths have no order, so there is no index to begin with.
            let (_, field) = table?.named(name, usize::MAX)?;
            fields.push(field);
            table = match (field.kind, field.shape) {
                (Kind::Message(inner), Shape::Singular) => Some(self.table(inner)),
                _ => None,
            };
            table = table.filter(|table| table.special == Special::None);
        }
        Some(fields)
    }

    fn parameter(&self, field: &Field, text: &str, out: &mut Vec<u8>) -> Result<(), String> {
        const UNSUPPORTED: &str = "the field cannot be given as a parameter";
        if matches!(field.shape, Shape::Map { .. }) {
            return Err(UNSUPPORTED.to_owned());
        }
        let Kind::Message(id) = field.kind else {
            self.parameter_scalar(field.kind, text)?.encode_field(out, field.number, field.kind);
            return Ok(());
        };
        let mut content = Vec::new();
        let table = self.table(id);
        match (table.special, table.fields.first()) {
            (Special::Timestamp | Special::Duration | Special::FieldMask, _) => {
                encode_text(table.special, text, true, &mut content)?;
            }
            (Special::Only, Some(inner)) if inner.shape == Shape::Singular => {
                let scalar = self.parameter_scalar(inner.kind, text)?;
                scalar.encode_field(&mut content, inner.number, inner.kind);
            }
            _ => match self.text_forms.get(&id) {
                Some(form) => self.text_form(id, form, text, &mut content)?,
                None => return Err(UNSUPPORTED.to_owned()),
            },
        }
        scan::put_delimited(out, field.number, &content);
        Ok(())
    }

    /// A message as one text: a field before the last colon, and one after it.
    fn text_form(&self, id: u32, form: &(Box<str>, Box<str>), text: &str, out: &mut Vec<u8>) -> Result<(), String> {
        let (before, after) = text.rsplit_once(':').map_or((text, None), |(before, after)| (before, Some(after)));
        for (name, value) in [(&form.0, Some(before)), (&form.1, after)] {
            let Some(value) = value else { continue };
            self.set_parameter(MessageId(id), name, value, out).map_err(|error| error.message)?;
        }
        Ok(())
    }

    fn parameter_scalar<'a>(&self, kind: Kind, text: &'a str) -> Result<Scalar<'a>, String> {
        match kind {
            Kind::String => Ok(Scalar::Text(Cow::Borrowed(text))),
            Kind::Bytes => Scalar::base64(text),
            Kind::Bool => match text {
                "true" => Ok(Scalar::Varint(1)),
                "false" => Ok(Scalar::Varint(0)),
                _ => Err(format!("expected true or false, got {}", quote(text))),
            },
            // An enum value's name never starts like a number.
            Kind::Enum(id) if !text.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
                Scalar::enum_name(self.enumeration(id), text)
            }
            _ => Scalar::number(kind, text),
        }
    }

    fn find_string<'a>(&self, id: MessageId, fields: &[&Field], wire: &'a [u8]) -> Outcome<Option<Cow<'a, str>>> {
        let mut table = self.table(id.0);
        let mut current = Cow::Borrowed(wire);
        for field in fields {
            let found = match &current {
                Cow::Borrowed(buf) => merged_value(table, field, buf)?,
                // Merged content is temporary, so what is in it gets copied.
                Cow::Owned(buf) => {
                    let found = merged_value(table, field, buf)?;
                    found.map(|found| Cow::Owned(found.into_owned()))
                }
            };
            let Some(found) = found else {
                return Ok(None);
            };
            if let Kind::Message(inner) = field.kind {
                table = self.table(inner);
            } else {
                return text_of(found).map(Some);
            }
            current = found;
        }
        Ok(None)
    }
}

/// What a field holds after merging: the last string, or all of a message.
fn merged_value<'a>(table: &MessageTable, field: &Field, buf: &'a [u8]) -> Outcome<Option<Cow<'a, [u8]>>> {
    let mut found: Option<Cow<'a, [u8]>> = None;
    let mut pos = 0;
    while pos < buf.len() {
        let (number, wire_type) = scan::key(buf, &mut pos)?;
        if number == field.number {
            if wire_type != DELIMITED {
                return Err(wrong_wire_type());
            }
            let payload = scan::delimited(buf, &mut pos)?;
            match (&mut found, field.kind) {
                (Some(merged), Kind::Message(_)) => merged.to_mut().extend_from_slice(payload),
                _ => found = Some(Cow::Borrowed(payload)),
            }
            continue;
        }
        scan::skip(buf, &mut pos, number, wire_type)?;
        let is_same_oneof = |other: &Field| other.oneof.is_some() && other.oneof == field.oneof;
        if field.oneof.is_some() && table.field(number).is_some_and(|(_, other)| is_same_oneof(other)) {
            found = None;
        }
    }
    Ok(found)
}

fn text_of(bytes: Cow<'_, [u8]>) -> Outcome<Cow<'_, str>> {
    let text = match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    };
    text.ok_or_else(|| fault("the string is not valid UTF-8"))
}

/// Encodes the messages around a leaf, from the inside out.
fn wrap(fields: &[&Field], mut encoded: Vec<u8>, out: &mut Vec<u8>) {
    for field in fields.iter().rev().skip(1) {
        let mut outer = Vec::with_capacity(encoded.len() + 8);
        scan::put_delimited(&mut outer, field.number, &encoded);
        encoded = outer;
    }
    out.extend_from_slice(&encoded);
}
