//! A page as data: the responses of its calls as JSON, or its list as CSV.

use std::collections::HashMap;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bowline_core::{Error, Reason, Result};
use bowline_pipeline::ConsolePipeline;
use bowline_transcode::JsonOptions;
use serde_json::{Map, Value};

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

/// The file of a page, made on a thread of its own, of which few run at a time.
///
/// # Errors
/// FAILED_PRECONDITION: the list of the page could not be read, or is too large for CSV. DEADLINE_EXCEEDED: others were made
/// for too long. INTERNAL: a response is not a message of the contract.
pub(crate) async fn file(visit: &Visit, format: Format) -> Result<Response> {
    let (app, calls) = (visit.app.clone(), visit.called());
    let name = visit.path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("organizations");
    let (kind, suffix) = match format {
        Format::Json => ("application/json", "json"),
        Format::Csv => ("text/csv; charset=utf-8", "csv"),
    };
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}.{suffix}\""));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_DISPOSITION, disposition.map_err(Error::internal)?),
    ];
    let turn = visit.in_time(app.exports.clone().acquire_owned()).await?;
    let made = visit.aside(move || {
        let body = match format {
            Format::Json => json(&app.api, &calls),
            Format::Csv => list_of(&app.api, &calls).map(|rows| csv(&rows).into_bytes()),
        };
        drop(turn);
        body
    });
    let body = made.await??;
    Ok((headers, body).into_response())
}

/// A response as JSON text.
fn written(api: &ConsolePipeline, method: usize, response: &[u8], json: &mut Vec<u8>) -> Result<()> {
    let tables = api.tables();
    let id = tables.message(api.contract().method(method).output.full_name());
    let id = id.ok_or_else(|| Error::internal("the contract has a method without a message"))?;
    let options = JsonOptions { proto_names: true, emit_defaults: false };
    tables.to_json(id, response, &options, json).map_err(Error::internal)
}

/// All calls with their responses, or with the messages of their errors.
fn json(api: &ConsolePipeline, calls: &[Called]) -> Result<Vec<u8>> {
    let mut text = b"{\"calls\":[".to_vec();
    for (at, call) in calls.iter().enumerate() {
        let separator = if at == 0 { "" } else { "," };
        text.extend(format!("{separator}{{\"method\":\"{}\",", api.contract().method(call.method).full_name).bytes());
        match &call.outcome {
            Ok(response) => {
                text.extend(b"\"response\":");
                written(api, call.method, response, &mut text)?;
            }
            Err(message) => text.extend(format!("\"error\":{}", Value::from(message.as_str())).bytes()),
        }
        text.push(b'}');
    }
    text.extend(b"]}");
    Ok(text)
}

/// The rows of the first list that the page reads; else its first response as one row.
///
/// # Errors
/// FAILED_PRECONDITION: that list could not be read, and another one is not what was asked for; or it is too large.
fn list_of(api: &ConsolePipeline, calls: &[Called]) -> Result<Vec<Value>> {
    let Some(call) = calls.iter().find(|call| call.list.is_some()).or(calls.first()) else { return Ok(Vec::new()) };
    let response = call.outcome.as_ref().map_err(|message| {
        Error::new(Reason::FailedPrecondition, format!("The list of this page could not be read: {message}"))
    })?;
    require_small(response.len())?;
    let mut text = Vec::new();
    written(api, call.method, response, &mut text)?;
    let mut response: Value = serde_json::from_slice(&text).map_err(Error::internal)?;
    Ok(match &call.list {
        None => vec![response],
        Some(list) => match response.get_mut(list).map(Value::take) {
            Some(Value::Array(rows)) => rows,
            _ => Vec::new(),
        },
    })
}

/// Maximum bytes of a response that becomes a table: its values take some fifty times as much.
const MAX_CSV: usize = 1 << 20;

fn require_small(bytes: usize) -> Result<()> {
    if bytes <= MAX_CSV {
        return Ok(());
    }
    let text = format!("This list is larger than {} MiB: take it as JSON, or with filters.", MAX_CSV >> 20);
    Err(Error::new(Reason::FailedPrecondition, text))
}

/// Columns of a table, at most. Members of maps are columns, and their names are those that other people chose.
const MAX_COLUMNS: usize = 200;

/// A table with a column for each member. Where there are too many, inner objects are one column, as JSON.
fn csv(rows: &[Value]) -> String {
    table(rows, usize::MAX).or_else(|| table(rows, 1)).unwrap_or_else(|| {
        let rows = rows.iter().map(Value::to_string).collect::<Vec<_>>();
        std::iter::once("row").chain(rows.iter().map(String::as_str)).map(|row| line([row].into_iter())).collect()
    })
}

/// The table with inner objects to this depth; absent if it has too many columns.
fn table(rows: &[Value], depth: usize) -> Option<String> {
    let mut columns: HashMap<String, usize> = HashMap::new();
    let mut cells: Vec<Vec<(usize, String)>> = Vec::new();
    for row in rows {
        let mut of_row = Vec::new();
        let mut fits = true;
        flat("", row, depth, &mut |path, text| {
            let next = columns.len();
            let column = *columns.entry(path).or_insert(next);
            of_row.push((column, text));
            fits &= columns.len() <= MAX_COLUMNS;
            fits
        });
        if !fits {
            return None;
        }
        cells.push(of_row);
    }
    let mut names = vec![""; columns.len()];
    for (name, column) in &columns {
        names[*column] = name;
    }
    let mut text = line(names.iter().copied());
    for row in &cells {
        let mut whole = vec![""; names.len()];
        for (column, cell) in row {
            whole[*column] = cell;
        }
        text += &line(whole.into_iter());
    }
    Some(text)
}

/// The scalar members of an object, those of inner objects with their path; lists, and objects from the depth on, as JSON.
/// Ends where `add` returns false.
fn flat(prefix: &str, value: &Value, depth: usize, add: &mut dyn FnMut(String, String) -> bool) -> bool {
    let none = Map::new();
    value.as_object().unwrap_or(&none).iter().all(|(name, value)| {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(_) if depth > 1 => flat(&path, value, depth - 1, add),
            Value::String(text) => add(path, text.clone()),
            Value::Null => true,
            other => add(path, other.to_string()),
        }
    })
}

/// One line of CSV (RFC 4180). A program for tables would run a cell that begins like a formula: such a one begins with a
/// quotation mark.
fn line<'c>(cells: impl Iterator<Item = &'c str>) -> String {
    let cells: Vec<String> = cells.map(quoted).collect();
    cells.join(",") + "\r\n"
}

fn quoted(cell: &str) -> String {
    let is_formula = cell.starts_with(['\t', '\r', '\n']) || cell.trim_start().starts_with(FORMULA);
    let mark = if is_formula { "'" } else { "" };
    format!("\"{mark}{}\"", cell.replace('"', "\"\""))
}

/// What formulas begin with, also in the wide forms of East Asian keyboards.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_become_tables() {
        let list = [
            json!({ "uid": "a", "deep": { "x": 1 }, "tags": ["t"] }),
            json!({ "uid": "b", "name": "=cmd|'x'\"", "none": null }),
        ];
        assert_eq!(
            csv(&list),
            "\"deep.x\",\"tags\",\"uid\",\"name\"\r\n\"1\",\"[\"\"t\"\"]\",\"a\",\"\"\r\n\"\",\"\",\"b\",\"'=cmd|'x'\"\"\"\r\n"
        );
        assert_eq!(csv(&[json!({ "name": "-1", "on": true })]), "\"name\",\"on\"\r\n\"'-1\",\"true\"\r\n");
        assert_eq!(csv(&[]), "\r\n");
    }

    #[test]
    fn large_lists_become_no_table() {
        assert!(require_small(MAX_CSV).is_ok());
        let error = require_small(MAX_CSV + 1).unwrap_err();
        assert!(error.message().contains("larger than 1 MiB: take it as JSON"), "{error}");
    }

    #[test]
    fn no_cell_begins_like_a_formula() {
        for cell in ["=1", "+1", "-1", "@a", " =1", "\n=1", "\t1", "\u{ff1d}1", "\u{3000}=1"] {
            assert!(quoted(cell).starts_with("\"'"), "{cell:?}");
        }
        assert_eq!(quoted("a=1"), "\"a=1\"");
    }

    #[test]
    fn names_of_others_make_no_endless_table() {
        let labels = |from: usize, to: usize| -> Map<String, Value> {
            (from..to).map(|number| (format!("l{number}"), Value::from("x"))).collect()
        };
        let few = csv(&[json!({ "uid": "a", "labels": labels(0, MAX_COLUMNS - 1) })]);
        assert!(few.starts_with("\"labels.l0\""), "{few}");
        let many: Vec<Value> =
            (0..50).map(|row| json!({ "uid": row, "labels": labels(row * 9000, row * 9000 + 9000) })).collect();
        let text = csv(&many);
        assert!(text.starts_with("\"labels\",\"uid\"\r\n\"{\"\"l0\"\":"), "{}", &text[..100]);
        assert_eq!(text.lines().count(), 51);
        let top = csv(&[Value::Object(labels(0, 400_000))]);
        assert!(top.starts_with("\"row\"\r\n\"{\"\"l0\"\""), "{}", &top[..100]);
    }
}
