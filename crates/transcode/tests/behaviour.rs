//! What the properties do not show: error wording, presence, parameters, caps.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]

use bowline_transcode::{JsonOptions, MessageId, Tables, TranscodeError};
use prost_reflect::DescriptorPool;

fn tables() -> Tables {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/protos");
    let set = protox::compile(["test.proto"], [root]).unwrap();
    Tables::new(&DescriptorPool::from_file_descriptor_set(set).unwrap())
}

fn json(tables: &Tables, id: MessageId, wire: &[u8]) -> String {
    let mut out = Vec::new();
    tables.to_json(id, wire, &JsonOptions::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn errors(name: &str, text: &str) -> Vec<String> {
    let tables = tables();
    let id = tables.message(name).unwrap();
    let errors = tables.from_json(id, text.as_bytes(), &mut Vec::new()).unwrap_err();
    errors.iter().map(TranscodeError::to_string).collect()
}

#[test]
fn all_bad_fields_are_reported_at_once() {
    let text = r#"{"scalars":{"aString":1,"aColor":"GREEN","an_int32":3000000000},
        "lists":{"strings":["ok",5],"ints":["x"]},
        "maps":{"byInt":{"q":"v"},"labels":{"team":{},"team2":null}},
        "wellKnown":{"time":"yesterday","any":{"a":1}},"unknown":[{"x":[]}]}"#;
    let expected = [
        "scalars.aString: expected a string, got a number",
        "scalars.aColor: unknown enum value \"GREEN\"; one of COLOR_UNSPECIFIED, RED, BLUE, FAR, BELOW",
        "scalars.anInt32: \"3000000000\" is out of range",
        "lists.strings[1]: expected a string, got a number",
        "lists.ints[0]: expected an integer, got \"x\"",
        "maps.byInt[q]: expected an integer, got \"q\"",
        "maps.labels[team]: expected a string, got an object",
        "maps.labels[team2]: expected a string, got null",
        "wellKnown.time: expected an RFC 3339 timestamp such as \"2026-01-31T12:00:00Z\"",
        "wellKnown.any: \"@type\" is missing",
    ];
    assert_eq!(errors("test.Everything", text), expected);
}

#[test]
fn syntax_errors_name_their_place() {
    for (text, message) in [
        ("", "malformed JSON at line 1 column 1: expected a value"),
        ("{\n \"a\" 1}", "malformed JSON at line 2 column 6: expected ':'"),
        ("{\"x\":01}", "malformed JSON at line 1 column 7: expected ',' or '}'"),
        ("{} x", "malformed JSON at line 1 column 4: text after the value"),
        ("{\"x\":1,}", "malformed JSON at line 1 column 8: trailing comma"),
        ("[]", "expected an object, got a list"),
    ] {
        assert_eq!(errors("test.Scalars", text), [message], "{text}");
    }
}

#[test]
fn a_field_and_a_oneof_are_set_once() {
    assert_eq!(errors("test.Scalars", r#"{"aString":"a","a_string":"b"}"#), ["aString: the field appears twice"]);
    assert_eq!(
        errors("test.Choice", r#"{"number":1,"text":"b"}"#),
        ["text: another member of the same oneof is already set"]
    );
    assert_eq!(errors("test.Maps", r#"{"byInt":{"1":"a","1e0":"b"}}"#), ["byInt: the key [1] appears twice"]);
}

#[test]
fn errors_stop_being_collected() {
    let text = format!("{{\"ints\":[{}true]}}", "true,".repeat(1000));
    assert_eq!(errors("test.Lists", &text).len(), 50);
}

#[test]
fn presence_is_a_mask() {
    let tables = tables();
    let id = tables.message("test.Everything").unwrap();
    let text = r#"{"color":0,"scalars":{"kept_name":"","a_bool":null},"choice":{},"nested":{"nested":{"color":1}},
        "wellKnown":{"time":null,"value":null,"object":{"a":{}}},"children":[{"color":1}],"other":1,"maps":null}"#;
    let presence = tables.from_json(id, text.as_bytes(), &mut Vec::new()).unwrap();
    let expected = [
        "color",
        "scalars.renamed",
        "scalars.a_bool",
        "choice",
        "nested.nested.color",
        "well_known.time",
        "well_known.value",
        "well_known.object",
        "children",
        "maps",
    ];
    assert_eq!(presence.paths(), expected);
}

#[test]
fn parameters_merge() {
    let tables = tables();
    let id = tables.message("test.Everything").unwrap();
    let mut wire = Vec::new();
    for (path, value) in [
        ("scalars.an_int32", "5"),
        ("scalars.anInt32", "0"),
        ("scalars.aColor", "7"),
        ("scalars.maybeColor", "RED"),
        ("scalars.aString", "a&b"),
        ("lists.ints", "1"),
        ("lists.ints", "2"),
        ("lists.times", "1970-01-01T00:00:00Z"),
        ("well_known.wait", "1.5s"),
        ("well_known.wait", "2s"),
        ("well_known.mask", "display_name,fooBar"),
        ("well_known.w_bool", "false"),
    ] {
        assert_eq!(tables.set_parameter(id, path, value, &mut wire), Ok(true), "{path}");
    }
    assert_eq!(
        json(&tables, id, &wire),
        r#"{"lists":{"ints":[1,2],"times":["1970-01-01T00:00:00Z"]},"scalars":{"aString":"a&b","aColor":"BLUE","maybeColor":"RED"},"wellKnown":{"wait":"2s","mask":"displayName,fooBar","wBool":false}}"#
    );
    for path in ["", "nothing", "scalars.nothing", "scalars.aString.x", "lists.messages.aString", "scalars."] {
        assert_eq!(tables.set_parameter(id, path, "1", &mut wire), Ok(false), "{path}");
    }
    for (path, value) in [("scalars.aBool", "yes"), ("maps.labels", "a"), ("scalars", "a"), ("well_known.any", "a")] {
        let error = tables.set_parameter(id, path, value, &mut wire).unwrap_err();
        assert!(!error.field.is_empty());
    }
}

#[test]
fn messages_with_a_text_form_are_parameters() {
    let form = [("test.Scalars", "aString", "anInt32")];
    let tables = tables().with_text_forms(form.into_iter());
    let id = tables.message("test.Everything").unwrap();
    for (text, expected) in [
        ("a", r#"{"scalars":{"aString":"a"}}"#),
        ("a:5", r#"{"scalars":{"anInt32":5,"aString":"a"}}"#),
        ("a:b:5", r#"{"scalars":{"anInt32":5,"aString":"a:b"}}"#),
    ] {
        let mut wire = Vec::new();
        assert_eq!(tables.set_parameter(id, "scalars", text, &mut wire), Ok(true), "{text}");
        assert_eq!(json(&tables, id, &wire), expected, "{text}");
    }
    let refused = tables.set_parameter(id, "scalars", "a:x", &mut Vec::new()).unwrap_err();
    assert_eq!(refused.field, "scalars");
}

#[test]
fn strings_are_embedded_and_read() {
    let tables = tables();
    let id = tables.message("test.Everything").unwrap();
    let mut wire = Vec::new();
    tables.embed(id, "scalars.a_string", b"first", &mut wire).unwrap();
    assert_eq!(tables.read_string(id, &wire, "scalars.a_string").unwrap().as_deref(), Some("first"));
    tables.embed(id, "scalars", b"\x08\x01", &mut wire).unwrap();
    assert_eq!(tables.read_string(id, &wire, "scalars.a_string").unwrap().as_deref(), Some("first"));
    tables.embed(id, "scalars.a_string", b"", &mut wire).unwrap();
    assert_eq!(tables.read_string(id, &wire, "scalars.a_string").unwrap().as_deref(), Some(""));
    assert_eq!(tables.read_string(id, &wire, "nested.scalars.a_string").unwrap(), None);
    assert!(tables.read_string(id, &wire, "scalars.a_bool").is_err());
    assert!(tables.embed(id, "scalars.a_string", b"\xff", &mut wire).is_none());
    assert!(tables.embed(id, "scalars.a_bool", b"", &mut wire).is_none());
    assert_eq!(tables.message_at(id, "nested.scalars"), tables.message("test.Scalars"));

    let mut oneof = Vec::new();
    let id = tables.message("test.Choice").unwrap();
    tables.embed(id, "text", b"gone", &mut oneof).unwrap();
    tables.embed(id, "left", b"", &mut oneof).unwrap();
    assert_eq!(tables.read_string(id, &oneof, "text").unwrap(), None);
    assert_eq!(json(&tables, id, &oneof), r#"{"left":{}}"#);
}

#[test]
fn depth_is_capped_both_ways() {
    let tables = tables();
    let id = tables.message("test.Everything").unwrap();
    let nest = |levels: usize| format!("{}{{}}{}", "{\"nested\":".repeat(levels), "}".repeat(levels));
    let mut wire = Vec::new();
    tables.from_json(id, nest(100).as_bytes(), &mut wire).unwrap();
    assert_eq!(json(&tables, id, &wire), nest(100));
    assert!(tables.from_json(id, nest(101).as_bytes(), &mut Vec::new()).is_err());
    let mut deeper = Vec::new();
    tables.embed(id, "nested", &wire, &mut deeper).unwrap();
    assert!(tables.to_json(id, &deeper, &JsonOptions::default(), &mut Vec::new()).is_err());

    let id = tables.message("google.protobuf.Value").unwrap();
    for bomb in ["[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        assert!(tables.from_json(id, bomb.as_bytes(), &mut Vec::new()).is_err());
    }
    let id = tables.message("google.protobuf.Any").unwrap();
    let any = "{\"@type\":\"x/google.protobuf.Any\",\"value\":".repeat(10_000);
    assert!(tables.from_json(id, any.as_bytes(), &mut Vec::new()).is_err());
}

#[test]
fn bad_wire_is_refused() {
    let tables = tables();
    let id = tables.message("test.Scalars").unwrap();
    for (wire, text) in [
        (&b"\x72\x01\xff"[..], "aString: the string is not valid UTF-8"),
        (b"\x70\x01", "aString: encoded with a wire type that is not this field's"),
        (b"\x72\x05a", "the encoded message ends too early"),
        (b"\x00\x01", "the encoded message holds an invalid field key"),
    ] {
        let mut out = Vec::new();
        let error = tables.to_json(id, wire, &JsonOptions::default(), &mut out).unwrap_err();
        assert_eq!(error.to_string(), text);
        assert!(out.is_empty());
    }
}

#[test]
fn odd_numbers_and_special_cases() {
    let tables = tables();
    let id = tables.message("test.Scalars").unwrap();
    let text = r#"{"aFloat":"NaN","aDouble":"-Infinity","someBytes":"-_8","anInt64":1e3,"aColor":55}"#;
    let mut wire = Vec::new();
    tables.from_json(id, text.as_bytes(), &mut wire).unwrap();
    assert_eq!(
        json(&tables, id, &wire),
        r#"{"anInt64":"1000","aFloat":"NaN","aDouble":"-Infinity","someBytes":"+/8=","aColor":55}"#
    );
    let any = tables.message("google.protobuf.Any").unwrap();
    assert_eq!(json(&tables, any, b""), "{}");
    let late = r#"{"aBool":true,"@type":"x.y/test.Scalars"}"#;
    let mut wire = Vec::new();
    tables.from_json(any, late.as_bytes(), &mut wire).unwrap();
    assert_eq!(json(&tables, any, &wire), r#"{"@type":"x.y/test.Scalars","aBool":true}"#);
}
