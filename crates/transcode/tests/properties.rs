//! Properties against prost-reflect as the oracle, and against panics.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]

mod oracle;

use std::sync::LazyLock;

use bowline_transcode::{JsonOptions, MessageId, Tables};
use oracle::Random;
use proptest::prelude::*;
use prost_reflect::prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};

static POOL: LazyLock<DescriptorPool> = LazyLock::new(oracle::pool);
static TABLES: LazyLock<Tables> = LazyLock::new(|| Tables::new(&POOL));
const TYPES: [&str; 6] = ["Everything", "Scalars", "Lists", "Maps", "Choice", "WellKnown"];

fn pick(rng: &mut Random) -> (MessageDescriptor, MessageId) {
    let name = format!("test.{}", TYPES[rng.below(TYPES.len())]);
    (POOL.get_message_by_name(&name).unwrap(), TABLES.message(&name).unwrap())
}

fn try_ours(id: MessageId, wire: &[u8], options: JsonOptions) -> Result<Vec<u8>, String> {
    let mut out = b"kept".to_vec();
    TABLES.to_json(id, wire, &options, &mut out).map_err(|error| error.to_string())?;
    assert!(out.starts_with(b"kept"));
    Ok(out.split_off(4))
}

fn ours(id: MessageId, wire: &[u8], options: JsonOptions) -> Vec<u8> {
    try_ours(id, wire, options).unwrap_or_else(|error| panic!("{error}"))
}

/// `merged`: messages were written in parts, where an `Any` can have its type from one and its value from the other. The oracle
/// takes a field of another wire type for an unknown one there, and this crate refuses it.
fn same_as_oracle(desc: &MessageDescriptor, id: MessageId, wire: &[u8], merged: bool) {
    let Ok(message) = DynamicMessage::decode(desc.clone(), wire) else {
        return;
    };
    for (proto_names, emit_defaults) in [(false, true), (true, false)] {
        let Some(theirs) = oracle::to_json(&message, proto_names, !emit_defaults) else {
            return;
        };
        match try_ours(id, wire, JsonOptions { proto_names, emit_defaults }) {
            Ok(ours) => assert_eq!(oracle::value(&ours), oracle::value(&theirs)),
            Err(error) => assert!(merged && error.contains(".any") && error.contains("wire type"), "{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn wire_to_json_equals_the_oracle(seed in any::<u64>()) {
        let mut rng = Random(seed);
        let (desc, id) = pick(&mut rng);
        let wire = oracle::message(&desc, &mut rng, 0).encode_to_vec();
        same_as_oracle(&desc, id, &wire, false);
        let mut doubled = oracle::disturb(&desc, &wire, &mut rng);
        same_as_oracle(&desc, id, &doubled, true);
        let other = oracle::message(&desc, &mut rng, 2).encode_to_vec();
        doubled.extend(oracle::disturb(&desc, &other, &mut rng));
        same_as_oracle(&desc, id, &doubled, true);
    }

    #[test]
    fn json_to_wire_equals_the_oracle(seed in any::<u64>()) {
        let mut rng = Random(seed);
        let (desc, id) = pick(&mut rng);
        let message = oracle::message(&desc, &mut rng, 0);
        for (proto_names, skip) in [(false, false), (true, true)] {
            let json = oracle::to_json(&message, proto_names, skip).unwrap();
            let theirs = oracle::from_json(&desc, &json).unwrap();
            let mut wire = b"kept".to_vec();
            TABLES.from_json(id, &json, &mut wire).unwrap_or_else(|e| panic!("{e:?} {}", String::from_utf8_lossy(&json)));
            let wire = wire.split_off(4);
            prop_assert_eq!(wire.len(), theirs.encoded_len(), "maps may differ in order, not in size");
            // As JSON, because bytes inside Any may hold maps, and those
            // come in any order from the oracle.
            let decoded = DynamicMessage::decode(desc.clone(), &*wire).unwrap();
            let plain = |message| oracle::value(&oracle::to_json(message, false, true).unwrap());
            prop_assert_eq!(plain(&decoded), plain(&theirs));

            // Canonical: our own JSON (members sorted as the wire is) gives the same bytes.
            let mut again = Vec::new();
            TABLES.from_json(id, &ours(id, &wire, JsonOptions::default()), &mut again).unwrap();
            prop_assert_eq!(&again, &wire);
            // And members in another order too: serde_json sorts them by name.
            let sorted = serde_json::to_vec(&serde_json::from_slice::<serde_json::Value>(&json).unwrap()).unwrap();
            let mut again = Vec::new();
            TABLES.from_json(id, &sorted, &mut again).unwrap();
            prop_assert_eq!(&again, &wire);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), seed in any::<u64>()) {
        let mut rng = Random(seed);
        let (desc, id) = pick(&mut rng);
        let mut wire = oracle::message(&desc, &mut rng, 0).encode_to_vec();
        for _ in 0..3 {
            let at = rng.below(wire.len());
            if let Some(byte) = wire.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
        let cut = rng.below(wire.len() + 1);
        for bytes in [&bytes[..], &wire, &wire[..cut]] {
            let mut out = Vec::new();
            if let Err(error) = TABLES.to_json(id, bytes, &JsonOptions::default(), &mut out) {
                prop_assert!(out.is_empty());
                prop_assert!(!error.message.is_empty());
            } else {
                serde_json::from_slice::<serde_json::Value>(&out).unwrap();
            }
            let _ = TABLES.read_string(id, bytes, "scalars.a_string");
            let _ = TABLES.from_json(id, bytes, &mut Vec::new());
        }
    }

    #[test]
    fn no_text_panics(seed in any::<u64>(), noise in "[\\[\\]{}:,\"\\\\a-z0-9.eE+\\- @]{0,20}") {
        let mut rng = Random(seed);
        let (desc, id) = pick(&mut rng);
        let message = oracle::message(&desc, &mut rng, 0);
        let json = String::from_utf8(oracle::to_json(&message, false, false).unwrap()).unwrap();
        let cut = (0..=rng.below(json.len() + 1)).rev().find(|&at| json.is_char_boundary(at)).unwrap_or(0);
        let mixed = format!("{}{noise}{}", &json[..cut], &json[cut..]);
        for text in [noise.as_str(), &mixed, &json[..cut]] {
            let mut out = Vec::new();
            match TABLES.from_json(id, text.as_bytes(), &mut out) {
                Ok(_) => drop(DynamicMessage::decode(desc.clone(), &*out).unwrap()),
                Err(errors) => prop_assert!(out.is_empty() && !errors.is_empty()),
            }
            let _ = TABLES.set_parameter(id, "scalars.a_float", text, &mut out);
            let _ = TABLES.set_parameter(id, "wellKnown.time", text, &mut out);
            let _ = TABLES.set_parameter(id, text, text, &mut out);
            let _ = TABLES.embed(id, text, text.as_bytes(), &mut out);
        }
    }
}
