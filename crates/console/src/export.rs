//! A page as data: the responses of its calls as JSON, or its list as CSV.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bowline_core::{Error, Result};
use serde_json::{Map, Value, json};

use crate::visit::{Called, Visit};

/// What a page can be had as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Csv,
}

/// Formats with their names in addresses and on pages.
pub(crate) const FORMATS: [(Format, &str, &str); 2] = [(Format::Json, "json", "JSON"), (Format::Csv, "csv", "CSV")];

/// The format that a page was asked for in; absent for a page.
///
/// # Errors
/// INVALID_ARGUMENT: it is none of them.
pub(crate) fn requested(visit: &Visit) -> Result<Option<Format>> {
    let Some(name) = visit.query.get("format") else { return Ok(None) };
    let known = FORMATS.iter().find(|(_, known, _)| *known == name).map(|(format, ..)| *format);
    known.map(Some).ok_or_else(|| Error::invalid_field("format", "must be json or csv"))
}

/// The file of a page.
///
/// # Errors
/// INTERNAL: a response is not a message of the contract.
pub(crate) fn file(visit: &Visit, format: Format) -> Result<Response> {
    let responses = visit.responses()?;
    let name = visit.path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("organizations");
    let (kind, suffix, body) = match format {
        Format::Json => ("application/json", "json", json(&responses)),
        Format::Csv => ("text/csv; charset=utf-8", "csv", csv(&responses)),
    };
    let disposition =
        HeaderValue::from_str(&format!("attachment; filename=\"{name}.{suffix}\"")).map_err(Error::internal)?;
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(kind)), (header::CONTENT_DISPOSITION, disposition)];
    Ok((headers, body).into_response())
}

fn json(responses: &[Called]) -> String {
    let calls: Vec<Value> =
        responses.iter().map(|call| json!({ "method": call.method, "response": call.response })).collect();
    json!({ "calls": calls }).to_string()
}

/// The list of the first method that returns one, with a column for each member; else the members of the first response.
fn csv(responses: &[Called]) -> String {
    let list = responses.iter().find_map(|call| Some((call, call.list.as_deref()?)));
    let rows = match (list, responses.first()) {
        (Some((call, name)), _) => call.response.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice),
        (None, Some(first)) => std::slice::from_ref(&first.response),
        (None, None) => &[],
    };
    let rows: Vec<Vec<(String, String)>> = rows.iter().map(|row| flat("", row)).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut text = line(columns.iter().copied());
    for row in &rows {
        let cell = |column: &&str| row.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value.as_str());
        text += &line(columns.iter().map(cell));
    }
    text
}

/// The scalar members of an object, those of inner objects with their path; lists as JSON.
fn flat(prefix: &str, value: &Value) -> Vec<(String, String)> {
    let none = Map::new();
    let mut cells = Vec::new();
    for (name, value) in value.as_object().unwrap_or(&none) {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(_) => cells.extend(flat(&path, value)),
            Value::String(text) => cells.push((path, text.clone())),
            Value::Null => {}
            other => cells.push((path, other.to_string())),
        }
    }
    cells
}

/// One line of CSV (RFC 4180). A program for tables would run a cell that begins like a formula: such a one begins with a
/// quotation mark.
fn line<'c>(cells: impl Iterator<Item = &'c str>) -> String {
    let cells: Vec<String> = cells.map(quoted).collect();
    cells.join(",") + "\r\n"
}

fn quoted(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let mark = if is_formula { "'" } else { "" };
    format!("\"{mark}{}\"", cell.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(response: Value, list: Option<&str>) -> Called {
        Called { method: "a.B".into(), response, list: list.map(str::to_owned) }
    }

    #[test]
    fn lists_become_tables() {
        let list = json!({
            "total_count": "2",
            "groups": [{ "uid": "a", "deep": { "x": 1 }, "tags": ["t"] }, { "uid": "b", "name": "=cmd|'x'\"" }]
        });
        let facts = json!({ "name": "no list", "limits": [{ "x": 1 }] });
        assert_eq!(
            csv(&[called(facts, None), called(list, Some("groups"))]),
            "\"deep.x\",\"tags\",\"uid\",\"name\"\r\n\"1\",\"[\"\"t\"\"]\",\"a\",\"\"\r\n\"\",\"\",\"b\",\"'=cmd|'x'\"\"\"\r\n"
        );
        let first = called(json!({ "name": "-1", "on": true }), None);
        assert_eq!(csv(&[first]), "\"name\",\"on\"\r\n\"'-1\",\"true\"\r\n");
        let full = called(json!({ "entries": [{ "a": 1 }] }), Some("entries"));
        assert_eq!(csv(&[called(json!({}), Some("groups")), full]), "\r\n", "an empty list is not replaced by another");
        assert_eq!(csv(&[]), "\r\n");
        assert_eq!(json(&[called(json!({}), None)]), r#"{"calls":[{"method":"a.B","response":{}}]}"#);
    }
}
