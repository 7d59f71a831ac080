//! A JSON document as YAML: block style, with every doubtful text in quotes.

use serde_json::Value;

/// The document, with a line feed at its end.
pub fn render(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => write_members(members, 0, &mut out),
        Value::Array(items) if !items.is_empty() => write_items(items, 0, &mut out),
        scalar => {
            out.push_str(&flow(scalar));
            out.push('\n');
        }
    }
    out
}

fn write_members(members: &serde_json::Map<String, Value>, depth: usize, out: &mut String) {
    for (at, (name, value)) in members.iter().enumerate() {
        // The first member of an element follows its dash.
        if at > 0 || !out.ends_with("- ") {
            indent(depth, out);
        }
        out.push_str(&text(name));
        out.push(':');
        write_value(value, depth + 1, out);
    }
}

fn write_items(items: &[Value], depth: usize, out: &mut String) {
    for item in items {
        indent(depth, out);
        out.push_str("- ");
        match item {
            Value::Object(members) if !members.is_empty() => write_members(members, depth + 1, out),
            other => {
                out.push_str(&flow(other));
                out.push('\n');
            }
        }
    }
}

fn write_value(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push('\n');
            write_members(members, depth, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_items(items, depth.saturating_sub(1), out);
        }
        other => {
            out.push(' ');
            out.push_str(&flow(other));
            out.push('\n');
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// JSON is YAML in flow style, but for texts that need no quotes.
fn flow(value: &Value) -> String {
    match value {
        Value::String(content) => text(content),
        other => other.to_string(),
    }
}

/// A text without quotes only where no reader can take it for anything else.
fn text(content: &str) -> String {
    const OTHERS: [&str; 10] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf"];
    let begins = content.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let is_plain = content.chars().all(|c| c.is_ascii_alphanumeric() || "_-./@+".contains(c));
    if begins && is_plain && !OTHERS.contains(&content.to_ascii_lowercase().as_str()) {
        return content.to_owned();
    }
    Value::from(content).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_in_block_style() {
        let document = json!({
            "uid": "0123/ab", "name": "nginx", "empty": [], "none": null, "count": 5, "yes": "no",
            "items": [{"a": "x: y", "b": {"c": ["d"]}}, "plain", []],
        });
        let expected = "count: 5\nempty: []\nitems:\n- a: \"x: y\"\n  b:\n    c:\n    - d\n- plain\n- []\nname: nginx\n\
                        none: null\nuid: \"0123/ab\"\n\"yes\": \"no\"\n";
        assert_eq!(render(&document), expected);
        assert_eq!(render(&json!([{"a": 1, "b": 2}])), "- a: 1\n  b: 2\n");
        assert_eq!(render(&json!("x\ny")), "\"x\\ny\"\n");
    }
}
