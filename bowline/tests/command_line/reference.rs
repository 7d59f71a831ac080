//! The page of all options is what the binary prints, and the published schemas are what commands print.

use std::path::Path;

use serde_json::Value;

use crate::support::{ended, text};

const PAGE: &str = "docs/COMMAND-OPTIONS.md";

#[tokio::test]
async fn the_page_of_options_is_what_the_binary_prints() {
    let home = tempfile::tempdir().expect("a directory");
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.env_clear().env("HOME", home.path()).args(["man", "--markdown"]);
    let output = command.output().await.expect("the binary runs");
    ended(&output, 0);
    let printed = text(&output.stdout) + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &printed).expect("the page is written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = stored.lines().zip(printed.lines()).find(|(one, other)| one != other);
    assert!(stored == printed, "{PAGE} differs; UPDATE_GOLDEN=1 writes it: {differs:?}");
}

/// The flags of a text, such as `--limit` of ``| `--limit N` |``.
fn flags(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "`=,|".contains(c));
    words
        .filter(|word| word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase())))
        .collect()
}

#[test]
fn every_flag_of_an_example_is_in_a_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    let page = std::fs::read_to_string(page).expect("the page");
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    let tables = |section: &str| {
        let rows = section.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('`').nth(1));
        rows.flat_map(|row| flags(row).into_iter().map(String::from).collect::<Vec<_>>()).collect::<Vec<String>>()
    };
    let shared: Vec<String> =
        sections.iter().filter(|section| !section.starts_with('`')).flat_map(|section| tables(section)).collect();
    let (mut missing, mut examples) = (Vec::new(), 0);
    for section in sections.iter().filter(|section| section.starts_with('`')) {
        let own = tables(section);
        let example = section.split("```").nth(1).unwrap_or_default();
        examples += usize::from(!example.is_empty());
        let unknown = flags(example).into_iter().filter(|flag| !own.iter().chain(&shared).any(|known| known == flag));
        missing.extend(unknown.map(|flag| format!("{flag} of {}", section.lines().next().unwrap_or_default())));
    }
    assert!(examples > 150, "hardly any example: {examples}");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Why a document is not what a schema describes; types, members, elements, references and enumerations are looked at.
pub(crate) fn mismatch(schema: &Value, root: &Value, document: &Value, path: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = &root["$defs"][name.strip_prefix("#/$defs/").unwrap_or(name)];
        return mismatch(definition, root, document, path);
    }
    let is_type = match schema["type"].as_str() {
        Some("object") => document.is_object(),
        Some("array") => document.is_array(),
        Some("string") => document.is_string(),
        Some("boolean") => document.is_boolean(),
        Some("integer" | "number") => document.is_number(),
        _ => true,
    };
    if !is_type {
        return Some(format!("{path}: {document} is no {}", schema["type"]));
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(document)
    {
        return Some(format!("{path}: {document} is not one of {values:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if document.get(name).is_none() {
            return Some(format!("{path}.{name} is missing"));
        }
    }
    for (at, item) in document.as_array().into_iter().flatten().enumerate() {
        if let Some(why) = mismatch(&schema["items"], root, item, &format!("{path}[{at}]")) {
            return Some(why);
        }
    }
    for (name, member) in document.as_object().into_iter().flatten() {
        let described = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        let Some(described) = described else {
            return (schema.get("properties").is_some()).then(|| format!("{path}.{name} is not described"));
        };
        if let Some(why) = mismatch(described, root, member, &format!("{path}.{name}")) {
            return Some(why);
        }
    }
    None
}

#[test]
fn mismatches_are_noticed() {
    let schema = serde_json::json!({
        "type": "array", "items": { "$ref": "#/$defs/a" },
        "$defs": { "a": { "type": "object", "required": ["b"], "properties": { "b": { "type": "string", "enum": ["x"] } } } },
    });
    for (document, is_right) in [
        (r#"[{"b": "x"}]"#, true),
        ("[]", true),
        (r#"[{"b": "y"}]"#, false),
        (r#"[{"b": 1}]"#, false),
        ("[{}]", false),
        (r#"[{"b": "x", "c": 1}]"#, false),
        (r#"{"b": "x"}"#, false),
    ] {
        let document = serde_json::from_str(document).expect("JSON");
        assert_eq!(mismatch(&schema, &schema, &document, "$").is_none(), is_right, "{document}");
    }
}
