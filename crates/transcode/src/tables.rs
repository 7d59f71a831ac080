//! The compiled schema: everything a conversion looks up, laid out in the order of access.

use std::collections::HashMap;

use prost_reflect::{DescriptorPool, FieldDescriptor, MessageDescriptor};

use crate::enums::EnumTable;
use crate::scan::{DELIMITED, FIXED32, FIXED64, VARINT};
use crate::text::push_json_string;

/// Handle of a message type within the [`Tables`] that issued it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId(pub(crate) u32);

/// All message types of a descriptor pool, compiled once and shared.
///
/// Proto2 groups and extensions are not in the tables: on the wire they are
/// skipped like unknown fields.
#[derive(Debug)]
pub struct Tables {
    messages: Vec<MessageTable>,
    enums: Vec<EnumTable>,
    by_name: HashMap<Box<str>, u32>,
    /// Fields before and after the colon, of messages that are one text in a query.
    pub(crate) text_forms: HashMap<u32, (Box<str>, Box<str>)>,
}

/// The messages whose JSON form is not an object of their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    None,
    Any,
    Timestamp,
    Duration,
    FieldMask,
    /// JSON form is that of field 1 alone: the wrappers, `Struct`, `ListValue`.
    Only,
    Value,
    Empty,
}

#[derive(Debug)]
pub(crate) struct MessageTable {
    pub(crate) special: Special,
    /// In order of field number, which is the order of output both ways.
    pub(crate) fields: Box<[Field]>,
    /// Index + 1 of the field with this number, 0 for none.
    dense: Box<[u32]>,
    /// JSON names and proto names alike.
    names: HashMap<Box<str>, u32>,
    /// Field indices of each real oneof.
    pub(crate) oneofs: Box<[Box<[u32]>]>,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    /// Whether an explicit default differs from absence.
    pub(crate) presence: bool,
    pub(crate) oneof: Option<u32>,
    pub(crate) name: Box<str>,
    pub(crate) json_name: Box<str>,
    /// `,"name":` ready to copy; the first field of an object drops the comma.
    pub(crate) json_key: Box<[u8]>,
    pub(crate) proto_key: Box<[u8]>,
    /// What `emit_defaults` prints for an absent field.
    pub(crate) default_json: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Singular,
    Repeated {
        packed: bool,
    },
    /// The field's own kind is that of the values.
    Map {
        key: Kind,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Float,
    Double,
    String,
    Bytes,
    Enum(u32),
    Message(u32),
}

impl Tables {
    /// Compiles every message and enum of `pool`.
    pub fn new(pool: &DescriptorPool) -> Tables {
        let enum_ids =
            pool.all_enums().enumerate().map(|(index, item)| (item.full_name().into(), index as u32)).collect();
        let by_name: HashMap<Box<str>, u32> =
            pool.all_messages().enumerate().map(|(index, item)| (item.full_name().into(), index as u32)).collect();
        let enums: Vec<EnumTable> = pool.all_enums().map(|item| EnumTable::new(&item)).collect();
        let ids = Ids { messages: &by_name, enum_ids: &enum_ids, enums: &enums };
        let messages = pool.all_messages().map(|item| MessageTable::new(&item, &ids)).collect();
        let mut tables = Tables { messages, enums, by_name, text_forms: HashMap::new() };
        tables.settle_specials();
        tables
    }

    /// These tables, which also read messages of some types from one text where they stand in a query: each is named
    /// with the field that comes before the last colon, and the one that comes after it.
    #[must_use]
    pub fn with_text_forms<'f>(mut self, forms: impl Iterator<Item = (&'f str, &'f str, &'f str)>) -> Tables {
        for (message, before, after) in forms {
            if let Some(id) = self.message(message) {
                self.text_forms.insert(id.0, (before.into(), after.into()));
            }
        }
        self
    }

    /// The handle of a message type by its full name (`package.Message`).
    pub fn message(&self, full_name: &str) -> Option<MessageId> {
        self.by_name.get(full_name).copied().map(MessageId)
    }

    /// An id of another `Tables` may be out of range; it then acts as a message
    /// without fields rather than as a panic.
    pub(crate) fn table(&self, id: u32) -> &MessageTable {
        static NOTHING: std::sync::LazyLock<MessageTable> = std::sync::LazyLock::new(MessageTable::nothing);
        self.messages.get(id as usize).unwrap_or(&NOTHING)
    }

    pub(crate) fn enumeration(&self, id: u32) -> Option<&EnumTable> {
        self.enums.get(id as usize)
    }

    /// A message merely named like a well-known type, without its fields, is
    /// treated as an ordinary one.
    fn settle_specials(&mut self) {
        let doubtful: Vec<usize> =
            (0..self.messages.len()).filter(|&index| !Tables::special_fits(&self.messages[index])).collect();
        for index in doubtful {
            self.messages[index].special = Special::None;
        }
    }

    fn special_fits(table: &MessageTable) -> bool {
        let has = |number, kind: Kind, repeated: bool| {
            table.field(number).is_some_and(|(_, field)| {
                field.kind == kind && repeated == matches!(field.shape, Shape::Repeated { .. })
            })
        };
        match table.special {
            Special::None | Special::Empty => true,
            Special::Any => has(1, Kind::String, false) && has(2, Kind::Bytes, false),
            Special::Timestamp | Special::Duration => has(1, Kind::Int64, false) && has(2, Kind::Int32, false),
            Special::FieldMask => has(1, Kind::String, true),
            Special::Only => table.fields.len() == 1,
            Special::Value => table.fields.len() == 6 && has(2, Kind::Double, false),
        }
    }
}

struct Ids<'a> {
    messages: &'a HashMap<Box<str>, u32>,
    enum_ids: &'a HashMap<Box<str>, u32>,
    enums: &'a [EnumTable],
}

impl MessageTable {
    fn nothing() -> MessageTable {
        MessageTable {
            special: Special::None,
            fields: Box::default(),
            dense: Box::default(),
            names: HashMap::new(),
            oneofs: Box::default(),
        }
    }

    fn new(message: &MessageDescriptor, ids: &Ids<'_>) -> MessageTable {
        // Numbers below this are looked up by index, the rest by search.
        const DENSE: u32 = 512;
        let oneofs: Vec<_> = message.oneofs().filter(|item| !item.is_synthetic()).collect();
        let mut descriptors: Vec<_> = message.fields().filter(|field| !field.is_group()).collect();
        descriptors.sort_by_key(FieldDescriptor::number);
        let fields: Box<[Field]> = descriptors
            .iter()
            .map(|field| {
                let oneof = field.containing_oneof();
                let oneof = oneof.and_then(|one| oneofs.iter().position(|item| *item == one));
                Field::new(field, oneof.map(|index| index as u32), ids)
            })
            .collect();
        let members = |oneof: u32| {
            let wanted = |(_, field): &(usize, &Field)| field.oneof == Some(oneof);
            let all = fields.iter().enumerate().filter(wanted);
            all.map(|(index, _)| index as u32).collect()
        };
        let oneofs = (0..oneofs.len() as u32).map(members).collect();
        let last = fields.iter().map(|field| field.number).filter(|&n| n < DENSE).max();
        let mut dense = vec![0; last.map_or(0, |last| last as usize + 1)];
        let mut names = HashMap::new();
        for (index, field) in fields.iter().enumerate() {
            if let Some(slot) = dense.get_mut(field.number as usize) {
                *slot = index as u32 + 1;
            }
            names.insert(field.json_name.clone(), index as u32);
        }
        for (index, field) in fields.iter().enumerate() {
            // Where the two spellings of different fields collide, JSON wins.
            names.entry(field.name.clone()).or_insert(index as u32);
        }
        MessageTable { special: Special::of(message.full_name()), fields, dense: dense.into(), names, oneofs }
    }

    /// The field with this number and its index.
    #[inline]
    pub(crate) fn field(&self, number: u32) -> Option<(usize, &Field)> {
        let index = match self.dense.get(number as usize) {
            Some(&slot) => (slot as usize).checked_sub(1)?,
            None => self.fields.binary_search_by_key(&number, |field| field.number).ok()?,
        };
        self.fields.get(index).map(|field| (index, field))
    }

    /// The field of this JSON or proto name. `hint` is the index it probably
    /// has: peers send fields in order, and comparing beats hashing.
    pub(crate) fn named(&self, name: &str, hint: usize) -> Option<(usize, &Field)> {
        let near = self.fields.iter().enumerate().skip(hint).take(4);
        for (index, field) in near {
            if *field.json_name == *name {
                return Some((index, field));
            }
        }
        let index = *self.names.get(name)? as usize;
        self.fields.get(index).map(|field| (index, field))
    }
}

impl Special {
    fn of(full_name: &str) -> Special {
        let Some(name) = full_name.strip_prefix("google.protobuf.") else {
            return Special::None;
        };
        match name {
            "Any" => Special::Any,
            "Timestamp" => Special::Timestamp,
            "Duration" => Special::Duration,
            "FieldMask" => Special::FieldMask,
            "Value" => Special::Value,
            "Empty" => Special::Empty,
            "Struct" | "ListValue" | "FloatValue" | "DoubleValue" | "Int32Value" | "Int64Value" | "UInt32Value"
            | "UInt64Value" | "BoolValue" | "StringValue" | "BytesValue" => Special::Only,
            _ => Special::None,
        }
    }
}

impl Field {
    fn new(field: &FieldDescriptor, oneof: Option<u32>, ids: &Ids<'_>) -> Field {
        let key_of = |name: &str| {
            let mut key = vec![b','];
            push_json_string(&mut key, name);
            key.push(b':');
            key.into_boxed_slice()
        };
        let kind_of = |kind| Kind::new(&kind, ids);
        let (kind, shape) = match field.kind() {
            prost_reflect::Kind::Message(entry) if field.is_map() => {
                let key = kind_of(entry.map_entry_key_field().kind());
                (kind_of(entry.map_entry_value_field().kind()), Shape::Map { key })
            }
            kind if field.is_list() => {
                let packed = field.is_packed();
                (kind_of(kind), Shape::Repeated { packed })
            }
            kind => (kind_of(kind), Shape::Singular),
        };
        let default_json: Box<[u8]> = match shape {
            Shape::Singular => kind.default_json(&field.kind(), ids.enums),
            Shape::Repeated { .. } => b"[]".as_slice().into(),
            Shape::Map { .. } => b"{}".as_slice().into(),
        };
        Field {
            number: field.number(),
            kind,
            shape,
            presence: field.supports_presence(),
            oneof,
            name: field.name().into(),
            json_name: field.json_name().into(),
            json_key: key_of(field.json_name()),
            proto_key: key_of(field.name()),
            default_json,
        }
    }
}

impl Kind {
    fn new(kind: &prost_reflect::Kind, ids: &Ids<'_>) -> Kind {
        use prost_reflect::Kind as Of;
        // Ids come from the same pool, so the look-ups below always hit.
        let find = |map: &HashMap<Box<str>, u32>, name: &str| map.get(name).copied();
        match kind {
            Of::Bool => Kind::Bool,
            Of::Int32 => Kind::Int32,
            Of::Int64 => Kind::Int64,
            Of::Uint32 => Kind::Uint32,
            Of::Uint64 => Kind::Uint64,
            Of::Sint32 => Kind::Sint32,
            Of::Sint64 => Kind::Sint64,
            Of::Fixed32 => Kind::Fixed32,
            Of::Fixed64 => Kind::Fixed64,
            Of::Sfixed32 => Kind::Sfixed32,
            Of::Sfixed64 => Kind::Sfixed64,
            Of::Float => Kind::Float,
            Of::Double => Kind::Double,
            Of::String => Kind::String,
            Of::Bytes => Kind::Bytes,
            Of::Enum(item) => Kind::Enum(find(ids.enum_ids, item.full_name()).unwrap_or(u32::MAX)),
            Of::Message(item) => Kind::Message(find(ids.messages, item.full_name()).unwrap_or(u32::MAX)),
        }
    }

    #[inline]
    pub(crate) fn wire_type(self) -> u8 {
        match self {
            Kind::String | Kind::Bytes | Kind::Message(_) => DELIMITED,
            Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => FIXED32,
            Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => FIXED64,
            _ => VARINT,
        }
    }

    fn default_json(self, kind: &prost_reflect::Kind, enums: &[EnumTable]) -> Box<[u8]> {
        let text: &[u8] = match (self, kind) {
            (Kind::Bool, _) => b"false",
            (Kind::String | Kind::Bytes, _) => b"\"\"",
            (Kind::Int64 | Kind::Uint64 | Kind::Sint64 | Kind::Fixed64 | Kind::Sfixed64, _) => b"\"0\"",
            (Kind::Enum(id), prost_reflect::Kind::Enum(item)) => {
                let first = item.default_value().number();
                match enums.get(id as usize) {
                    Some(table) if table.null => b"null",
                    Some(table) => table.name(first).unwrap_or(b"0"),
                    None => b"0",
                }
            }
            _ => b"0",
        };
        text.into()
    }
}
