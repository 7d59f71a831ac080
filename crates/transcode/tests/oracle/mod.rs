//! Random messages, and prost-reflect's opinion of them.

use prost_reflect::prost::Message as _;
use prost_reflect::prost::encoding::{decode_varint, encode_varint};
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor,
    SerializeOptions, Value,
};
use serde_json::Value as Json;

pub(crate) fn pool() -> DescriptorPool {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protos");
    let set = protox::compile(["test.proto"], [root]).unwrap();
    DescriptorPool::from_file_descriptor_set(set).unwrap()
}

/// Small and seeded, so that a failing seed is all there is to keep.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn integer(&mut self) -> u64 {
        let shift = self.below(64);
        match self.below(4) {
            0 => self.next() >> shift,
            1 => (self.next() >> shift).wrapping_neg(),
            2 => self.below(3) as u64,
            _ => [u64::MAX, 1 << 63, 1 << 31, u64::from(u32::MAX)][self.below(4)],
        }
    }

    fn float(&mut self) -> f64 {
        match self.below(4) {
            0 => self.below(100) as f64,
            1 => -(self.below(1000) as f64) / 8.0,
            2 => 1e300,
            // serde_json reads few digits exactly, many only nearly.
            _ => f64::from(self.next() as i32) / 8.0,
        }
    }

    fn text(&mut self) -> String {
        let pieces = ["a", "Z", "\"", "\\", "\n", "\u{1}", "ü", "漢", "😀", "/", "plain text ", "\u{7f}"];
        (0..self.below(12)).map(|_| pieces[self.below(pieces.len())]).collect()
    }
}

pub(crate) fn message(desc: &MessageDescriptor, rng: &mut Random, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(desc.clone());
    match desc.full_name() {
        "google.protobuf.Timestamp" => {
            let seconds = -62_135_596_800 + (rng.next() % 315_537_897_600) as i64;
            message.set_field_by_name("seconds", Value::I64(seconds));
            message.set_field_by_name("nanos", Value::I32(nanos(rng)));
        }
        "google.protobuf.Duration" => {
            message.set_field_by_name("seconds", Value::I64(rng.below(1_000_000) as i64));
            message.set_field_by_name("nanos", Value::I32(nanos(rng)));
        }
        "google.protobuf.FieldMask" => {
            let paths = ["foo", "foo_bar", "a.b_c", "x1.y"];
            let paths = (0..rng.below(3)).map(|_| Value::String(paths[rng.below(4)].into()));
            message.set_field_by_name("paths", Value::List(paths.collect()));
        }
        "google.protobuf.Any" => {
            let names = [
                "test.Scalars",
                "google.protobuf.Duration",
                "test.Choice",
                "google.protobuf.Value",
                "google.protobuf.Empty",
                "test.WellKnown",
            ];
            let name = names[rng.below(names.len())];
            let inner = desc.parent_pool().get_message_by_name(name).unwrap();
            let inner = self::message(&inner, rng, depth + 1);
            message.set_field_by_name("type_url", Value::String(format!("type.googleapis.com/{name}")));
            message.set_field_by_name("value", Value::Bytes(inner.encode_to_vec().into()));
        }
        _ => {
            let wrapper = desc.full_name().starts_with("google.protobuf.");
            for field in desc.fields() {
                let nests = matches!(field.kind(), Kind::Message(_));
                if (!nests || depth < 6) && (wrapper || rng.below(3) > 0) && rng.below(2 + depth) < 2 {
                    let value = field_value(&field, rng, depth);
                    message.set_field(&field, value);
                }
            }
        }
    }
    message
}

fn nanos(rng: &mut Random) -> i32 {
    [0, 1_000_000, 120_000, 999_999_999, 1][rng.below(5)]
}

fn field_value(field: &FieldDescriptor, rng: &mut Random, depth: usize) -> Value {
    if let Kind::Message(entry) = field.kind()
        && field.is_map()
    {
        let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
        let entries = (0..rng.below(4)).map(|_| {
            let key = match value_of(&key.kind(), rng, depth) {
                Value::Bool(v) => MapKey::Bool(v),
                Value::I32(v) => MapKey::I32(v),
                Value::I64(v) => MapKey::I64(v),
                Value::U32(v) => MapKey::U32(v),
                Value::U64(v) => MapKey::U64(v),
                Value::String(v) => MapKey::String(v),
                other => panic!("{other:?} is no key"),
            };
            (key, value_of(&value.kind(), rng, depth))
        });
        return Value::Map(entries.collect());
    }
    if field.is_list() {
        return Value::List((0..rng.below(4)).map(|_| value_of(&field.kind(), rng, depth)).collect());
    }
    value_of(&field.kind(), rng, depth)
}

fn value_of(kind: &Kind, rng: &mut Random, depth: usize) -> Value {
    match kind {
        Kind::Double => Value::F64(rng.float()),
        // Few digits: where two shortest texts are equally near, this one may differ from the oracle's
        // (55446.813 and 55446.812).
        Kind::Float => Value::F32(rng.below(4000) as f32 / 8.0 - 250.0),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(rng.integer() as i32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(rng.integer() as i64),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(rng.integer() as u32),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(rng.integer()),
        Kind::Bool => Value::Bool(rng.below(2) == 1),
        Kind::String => Value::String(rng.text()),
        Kind::Bytes => Value::Bytes(rng.text().into_bytes().into()),
        Kind::Enum(item) if item.full_name() == "google.protobuf.NullValue" => Value::EnumNumber(0),
        Kind::Enum(_) => Value::EnumNumber([0, 1, 7, 100_000, -3, 5, -9][rng.below(7)]),
        Kind::Message(inner) => Value::Message(message(inner, rng, depth + 1)),
    }
}

/// Another encoding of a message like this one: fields shuffled, some doubled
/// with other values, packed lists split, unknown fields strewn in.
pub(crate) fn disturb(desc: &MessageDescriptor, wire: &[u8], rng: &mut Random) -> Vec<u8> {
    let mut fields: Vec<Vec<u8>> = Vec::new();
    let mut rest = wire;
    while !rest.is_empty() {
        let before = rest;
        let key = decode_varint(&mut rest).unwrap();
        let field = desc.get_field((key >> 3) as u32);
        match key & 7 {
            0 => drop(decode_varint(&mut rest).unwrap()),
            1 => rest = &rest[8..],
            5 => rest = &rest[4..],
            _ => {
                let length = decode_varint(&mut rest).unwrap() as usize;
                let (payload, after) = rest.split_at(length);
                rest = after;
                fields.extend(inner(&field.unwrap(), key, payload, rng));
                continue;
            }
        }
        fields.push(before[..before.len() - rest.len()].to_vec());
    }
    for _ in 0..rng.below(3) {
        // A varint, a string, a group with a varint in it; number 5000.
        let salt: [&[u8]; 3] = [&[0xc0, 0xb8, 2, 1], &[0xc2, 0xb8, 2, 2, 9, 9], &[0xc3, 0xb8, 2, 8, 1, 0xc4, 0xb8, 2]];
        fields.push(salt[rng.below(3)].to_vec());
    }
    for at in (1..fields.len()).rev() {
        fields.swap(at, rng.below(at + 1));
    }
    fields.concat()
}

fn inner(field: &FieldDescriptor, key: u64, payload: &[u8], rng: &mut Random) -> Vec<Vec<u8>> {
    let delimited = |payload: &[u8]| {
        let mut out = Vec::new();
        encode_varint(key, &mut out);
        encode_varint(payload.len() as u64, &mut out);
        out.extend_from_slice(payload);
        out
    };
    match field.kind() {
        Kind::Message(message) => {
            let mut all = vec![delimited(&disturb(&message, payload, rng))];
            if rng.below(3) == 0 {
                let other = self::message(&message, rng, 5).encode_to_vec();
                all.push(delimited(&disturb(&message, &other, rng)));
            }
            all
        }
        Kind::Int32 | Kind::Sint64 if field.is_list() && rng.below(2) == 0 => {
            let mut rest = payload;
            let mut all = Vec::new();
            while !rest.is_empty() {
                let mut out = Vec::new();
                encode_varint(key & !7, &mut out);
                encode_varint(decode_varint(&mut rest).unwrap(), &mut out);
                all.push(out);
            }
            all
        }
        _ => vec![delimited(payload)],
    }
}

/// prost-reflect's JSON; `None` where it refuses the message.
pub(crate) fn to_json(message: &DynamicMessage, proto_names: bool, skip: bool) -> Option<Vec<u8>> {
    let options = SerializeOptions::new()
        .stringify_64_bit_integers(true)
        .use_proto_field_name(proto_names)
        .skip_default_fields(skip);
    let mut serializer = serde_json::Serializer::new(Vec::new());
    message.serialize_with_options(&mut serializer, &options).ok()?;
    Some(serializer.into_inner())
}

pub(crate) fn from_json(desc: &MessageDescriptor, json: &[u8]) -> Option<DynamicMessage> {
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    DynamicMessage::deserialize_with_options(desc.clone(), &mut deserializer, &options).ok()
}

/// JSON as a value in which `1` and `1.0` are the same number.
pub(crate) fn value(json: &[u8]) -> Json {
    fn plain(value: &mut Json) {
        match value {
            Json::Number(number) => *value = Json::from(number.as_f64().unwrap() + 0.0),
            Json::Array(items) => items.iter_mut().for_each(plain),
            Json::Object(members) => members.values_mut().for_each(plain),
            _ => {}
        }
    }
    let text = String::from_utf8_lossy(json);
    let mut value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    plain(&mut value);
    value
}
