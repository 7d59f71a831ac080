//! JSON -> wire: one pass over the text, encoding as it goes.
//!
//! Lengths of nested messages are not known in advance: one byte is reserved and the content moved if that is
//! too little. Members may come in any order, but the encoding is in order of field numbers, so the positions
//! of the encoded pieces of each message are recorded, and the pieces rearranged when (rarely) needed.

use crate::errors::join;
use crate::json_reader::{Fault, Parse, Reader};
use crate::scalar::{Key, Scalar, map_key};
use crate::scan::{self, DELIMITED, MAX_DEPTH};
use crate::tables::{Field, Kind, MessageTable, Shape, Special, Tables};
use crate::{MessageId, Presence, TranscodeError};

/// No one reads more errors than this, and collecting them takes memory.
const MAX_ERRORS: usize = 50;

pub(crate) struct Parser<'t, 'a, 'o> {
    pub(crate) tables: &'t Tables,
    pub(crate) reader: Reader<'a>,
    pub(crate) out: &'o mut Vec<u8>,
    errors: Vec<TranscodeError>,
    path: Vec<Part<'t>>,
    /// Which fields the open messages have had, innermost on top; after the
    /// fields of a message come its oneofs.
    seen: Vec<bool>,
    /// The encoded pieces of the open messages.
    pieces: Vec<Piece>,
    presence: Vec<String>,
    /// Set while only singular messages enclose the current object.
    tracking: bool,
}

enum Part<'t> {
    Field(&'t Field),
    Index(usize),
    Key(String),
}

/// An encoded field: `out[start..end]`.
#[derive(Clone, Copy)]
struct Piece {
    number: u32,
    start: usize,
    end: usize,
}

impl Tables {
    /// Parses JSON text and appends the canonical encoding (fields in order of
    /// their numbers, map entries in order of their keys) to `out`.
    ///
    /// Values that do not fit their field are all reported at once (up to 50);
    /// a syntax error ends the collection. On errors `out` is left as it was.
    /// Unknown members are checked for syntax and ignored, `null` means absent.
    pub fn from_json(&self, id: MessageId, json: &[u8], out: &mut Vec<u8>) -> Result<Presence, Vec<TranscodeError>> {
        let text = match std::str::from_utf8(json) {
            Ok(text) => text,
            Err(error) => {
                return Err(vec![malformed(json, error.valid_up_to(), "invalid UTF-8")]);
            }
        };
        let start = out.len();
        let mut parser = Parser {
            tables: self,
            reader: Reader::new(text),
            out,
            errors: Vec::new(),
            path: Vec::new(),
            seen: Vec::new(),
            pieces: Vec::new(),
            presence: Vec::new(),
            tracking: self.table(id.0).special == Special::None,
        };
        parser.document(id.0, json);
        let Parser { errors, presence, .. } = parser;
        if errors.is_empty() {
            return Ok(Presence(presence));
        }
        out.truncate(start);
        Err(errors)
    }
}

/// A syntax error, with the position people count in.
#[cold]
fn malformed(json: &[u8], at: usize, what: &str) -> TranscodeError {
    let before = json.get(..at).unwrap_or(json);
    let line = before.split(|&byte| byte == b'\n').count();
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
    TranscodeError { field: String::new(), message: format!("malformed JSON at line {line} column {column}: {what}") }
}

impl<'t, 'a> Parser<'t, 'a, '_> {
    fn document(&mut self, id: u32, json: &[u8]) {
        let parsed = self.attempt(|parser| parser.message_value(id, 0)).and_then(|()| match self.reader.peek() {
            None => Ok(()),
            Some(_) => self.reader.syntax("text after the value"),
        });
        if let Err(Fault::Syntax { at, what }) = parsed {
            self.errors.push(malformed(json, at, &what));
        }
    }

    /// Runs `parse`; if the value turns out bad, reports it and passes over it.
    fn attempt(&mut self, parse: impl FnOnce(&mut Self) -> Parse) -> Parse {
        let start = self.out.len();
        let at = self.reader.pos;
        let (path, seen, pieces) = (self.path.len(), self.seen.len(), self.pieces.len());
        match parse(self) {
            Err(Fault::Bad(message)) => {
                self.out.truncate(start);
                self.path.truncate(path);
                self.seen.truncate(seen);
                self.pieces.truncate(pieces);
                self.report(message)?;
                self.reader.pos = at;
                self.reader.skip_value()
            }
            other => other,
        }
    }

    fn report(&mut self, message: String) -> Parse {
        let field = self.path.iter().rev().fold(String::new(), |rest, part| match part {
            Part::Field(field) => join(&field.json_name, &rest),
            Part::Index(index) => join(&format!("[{index}]"), &rest),
            Part::Key(key) => join(key, &rest),
        });
        self.errors.push(TranscodeError { field, message });
        if self.errors.len() < MAX_ERRORS { Ok(()) } else { Err(Fault::Enough) }
    }

    pub(crate) fn check_depth(&self, depth: u32) -> Parse {
        if depth > MAX_DEPTH {
            return self.reader.syntax(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        Ok(())
    }

    /// The content of a message, without its length.
    pub(crate) fn message_value(&mut self, id: u32, depth: u32) -> Parse {
        self.check_depth(depth)?;
        let table = self.tables.table(id);
        match table.special {
            Special::None | Special::Empty => self.object(table, depth, false),
            _ => self.special_value(table, depth),
        }
    }

    /// An object of the message's fields; inside `Any` its type is among them.
    pub(crate) fn object(&mut self, table: &'t MessageTable, depth: u32, any: bool) -> Parse {
        self.reader.open(b'{')?;
        let seen = self.seen.len();
        self.seen.resize(seen + table.fields.len() + table.oneofs.len(), false);
        let pieces = self.pieces.len();
        let (mut hint, mut first) = (0, true);
        while self.reader.next(b'}', &mut first)? {
            let name = self.reader.key()?;
            match table.named(&name, hint) {
                Some((index, field)) if !(any && name == "@type") => {
                    hint = index + 1;
                    self.path.push(Part::Field(field));
                    self.member(table, index, seen, depth)?;
                    self.path.pop();
                }
                _ => {
                    self.reader.peek();
                    self.reader.skip_value()?;
                }
            }
        }
        self.arrange(pieces);
        self.pieces.truncate(pieces);
        self.seen.truncate(seen);
        Ok(())
    }

    /// One known member, its name already read.
    fn member(&mut self, table: &'t MessageTable, index: usize, seen: usize, depth: u32) -> Parse {
        let Some(field) = table.fields.get(index) else {
            return Ok(());
        };
        self.reader.peek();
        if self.mark(seen + index) {
            return self.attempt(|_| Err(Fault::Bad("the field appears twice".to_owned())));
        }
        if self.reader.peek() == Some(b'n') && !self.takes_null(field) {
            self.reader.literal("null")?;
            self.note_presence();
            return Ok(());
        }
        if let Some(oneof) = field.oneof
            && self.mark(seen + table.fields.len() + oneof as usize)
        {
            let message = "another member of the same oneof is already set".to_owned();
            return self.attempt(|_| Err(Fault::Bad(message)));
        }
        let start = self.out.len();
        self.attempt(|parser| parser.field_value(field, depth))?;
        let end = self.out.len();
        if end > start {
            let number = field.number;
            self.pieces.push(Piece { number, start, end });
        }
        Ok(())
    }

    /// Sets a mark; true if it was set before.
    fn mark(&mut self, at: usize) -> bool {
        self.seen.get_mut(at).is_some_and(|mark| std::mem::replace(mark, true))
    }

    /// `null` is a value only where the type says so.
    fn takes_null(&self, field: &Field) -> bool {
        field.shape == Shape::Singular && self.null_kind(field.kind)
    }

    fn null_kind(&self, kind: Kind) -> bool {
        match kind {
            Kind::Message(id) => self.tables.table(id).special == Special::Value,
            Kind::Enum(id) => self.tables.enumeration(id).is_some_and(|table| table.null),
            _ => false,
        }
    }

    /// Records the current path as present.
    fn note_presence(&mut self) {
        if self.tracking {
            let names = self.path.iter().filter_map(|part| match part {
                Part::Field(field) => Some(&*field.name),
                _ => None,
            });
            self.presence.push(names.collect::<Vec<_>>().join("."));
        }
    }

    /// A field's value with its presence: a plain message is present by its
    /// members, or by itself if it has none.
    fn field_value(&mut self, field: &'t Field, depth: u32) -> Parse {
        if !self.tracking {
            return self.field_content(field, depth);
        }
        if let (Shape::Singular, Kind::Message(id)) = (field.shape, field.kind)
            && self.tables.table(id).special == Special::None
        {
            let before = self.presence.len();
            self.field_content(field, depth)?;
            if self.presence.len() == before {
                self.note_presence();
            }
            return Ok(());
        }
        self.note_presence();
        self.tracking = false;
        let result = self.field_content(field, depth);
        self.tracking = true;
        result
    }

    /// Encodes a field, keys included, from its value.
    pub(crate) fn field_content(&mut self, field: &'t Field, depth: u32) -> Parse {
        match (field.shape, field.kind) {
            (Shape::Singular, Kind::Message(id)) => self.message_field(field.number, id, depth),
            (Shape::Singular, kind) => {
                let scalar = self.scalar(kind)?;
                if field.presence || !scalar.is_default() {
                    scalar.encode_field(self.out, field.number, kind);
                }
                Ok(())
            }
            (Shape::Repeated { packed }, _) => self.list(field, packed, depth),
            (Shape::Map { key }, _) => self.map(field, key, depth),
        }
    }

    fn message_field(&mut self, number: u32, id: u32, depth: u32) -> Parse {
        scan::put_key(self.out, number, DELIMITED);
        let start = scan::open_length(self.out);
        self.message_value(id, depth + 1)?;
        scan::close_length(self.out, start);
        Ok(())
    }

    fn list(&mut self, field: &'t Field, packed: bool, depth: u32) -> Parse {
        self.reader.open(b'[')?;
        let undo = self.out.len();
        if packed {
            scan::put_key(self.out, field.number, DELIMITED);
            scan::open_length(self.out);
        }
        let start = self.out.len();
        let mut first = true;
        let mut index = 0;
        while self.reader.next(b']', &mut first)? {
            self.path.push(Part::Index(index));
            self.reader.peek();
            self.attempt(|parser| match field.kind {
                Kind::Message(id) => parser.message_field(field.number, id, depth),
                kind => {
                    let scalar = parser.scalar(kind)?;
                    if packed {
                        scalar.encode(parser.out);
                    } else {
                        scalar.encode_field(parser.out, field.number, kind);
                    }
                    Ok(())
                }
            })?;
            self.path.pop();
            index += 1;
        }
        if packed && self.out.len() == start {
            self.out.truncate(undo);
        } else if packed {
            scan::close_length(self.out, start);
        }
        Ok(())
    }

    fn map(&mut self, field: &'t Field, key_kind: Kind, depth: u32) -> Parse {
        self.reader.open(b'{')?;
        self.check_depth(depth + 1)?;
        let mut entries: Vec<(Key<'_>, Piece)> = Vec::new();
        let mut first = true;
        while self.reader.next(b'}', &mut first)? {
            let text = self.reader.key()?;
            self.path.push(Part::Key(format!("[{text}]")));
            self.reader.peek();
            let start = self.out.len();
            let mut found = None;
            self.attempt(|parser| {
                let (key, scalar) = map_key(key_kind, text).map_err(Fault::Bad)?;
                parser.entry(field, key_kind, &scalar, depth + 1)?;
                found = Some(key);
                Ok(())
            })?;
            if let Some(key) = found {
                let (number, end) = (field.number, self.out.len());
                entries.push((key, Piece { number, start, end }));
            }
            self.path.pop();
        }
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            if let Some([_, twice]) = entries.array_windows().find(|[a, b]| a.0 == b.0) {
                return Err(Fault::Bad(format!("the key {} appears twice", twice.0.path_part())));
            }
            let pieces: Vec<Piece> = entries.into_iter().map(|(_, piece)| piece).collect();
            rearrange(self.out, &pieces);
        }
        Ok(())
    }

    fn entry(&mut self, field: &'t Field, key_kind: Kind, key: &Scalar<'_>, depth: u32) -> Parse {
        scan::put_key(self.out, field.number, DELIMITED);
        let start = scan::open_length(self.out);
        if !key.is_default() {
            key.encode_field(self.out, 1, key_kind);
        }
        match field.kind {
            Kind::Message(id) => self.message_field(2, id, depth)?,
            kind => {
                let value = self.scalar(kind)?;
                if !value.is_default() {
                    value.encode_field(self.out, 2, kind);
                }
            }
        }
        scan::close_length(self.out, start);
        Ok(())
    }

    pub(crate) fn boolean(&mut self) -> Parse<bool> {
        match self.reader.peek() {
            Some(b't') => self.reader.literal("true").map(|()| true),
            Some(b'f') => self.reader.literal("false").map(|()| false),
            _ => self.reader.unexpected("a boolean"),
        }
    }

    fn scalar(&mut self, kind: Kind) -> Parse<Scalar<'a>> {
        let token = self.reader.peek();
        match (kind, token) {
            (Kind::Bool, _) => self.boolean().map(|value| Scalar::Varint(u64::from(value))),
            (Kind::String, _) => Ok(Scalar::Text(self.reader.string()?)),
            (Kind::Bytes, _) => Scalar::base64(&self.reader.string()?).map_err(Fault::Bad),
            (Kind::Enum(_), Some(b'n')) if self.null_kind(kind) => {
                self.reader.literal("null")?;
                Ok(Scalar::Varint(0))
            }
            (Kind::Enum(id), Some(b'"')) => {
                let name = self.reader.string()?;
                Scalar::enum_name(self.tables.enumeration(id), &name).map_err(Fault::Bad)
            }
            (_, Some(b'-' | b'0'..=b'9')) => Scalar::number(kind, self.reader.number()?).map_err(Fault::Bad),
            (Kind::Enum(_), _) => self.reader.unexpected("an enum value's name"),
            (_, Some(b'"')) => Scalar::number(kind, &self.reader.string()?).map_err(Fault::Bad),
            _ => self.reader.unexpected("a number"),
        }
    }

    /// Puts the pieces of a message, all from `first` on, in order.
    fn arrange(&mut self, first: usize) {
        let pieces = self.pieces.get_mut(first..).unwrap_or_default();
        if !pieces.is_sorted_by_key(|piece| piece.number) {
            pieces.sort_by_key(|piece| piece.number);
            rearrange(self.out, pieces);
        }
    }
}

/// Rewrites the tail of `out` that `pieces` cover, in their order.
fn rearrange(out: &mut Vec<u8>, pieces: &[Piece]) {
    let start = pieces.iter().map(|piece| piece.start).min().unwrap_or(out.len());
    let mut sorted = Vec::with_capacity(out.len().saturating_sub(start));
    for piece in pieces {
        sorted.extend_from_slice(out.get(piece.start..piece.end).unwrap_or_default());
    }
    out.truncate(start);
    out.extend_from_slice(&sorted);
}
