//! Lists, page by page.

use bowline_client::Api;
use bowline_contract::MethodInfo;
use bowline_terminal::{Form, Listing, Table};
use serde_json::{Map, Value};

use super::table::{Cell, Column, Does, Resource, Verb};
use super::uidp_names::UidpNames;
use crate::dynamic;
use crate::error::CliError;

/// Elements of a page.
const PAGE_SIZE: u64 = 200;

/// The columns of a verb's list in a form.
pub(super) fn columns(resource: &Resource, verb: &Verb, form: &Form) -> Vec<&'static Column> {
    if let Does::ListOf(columns) | Does::Rows(columns) = verb.does {
        return columns.iter().collect();
    }
    let wide: &'static [Column] = if matches!(form, Form::Wide | Form::Csv) { resource.wide } else { &[] };
    resource.columns.iter().chain(wide).collect()
}

/// The list in a response as a table.
pub(super) async fn table(api: &Api, columns: &[&'static Column], elements: &[Value]) -> Table {
    let head: Vec<&'static str> = columns.iter().map(|column| column.head).collect();
    let mut names = UidpNames::default();
    names.read(api, uidps(columns, elements)).await;
    let mut table = Table::new(&head);
    for element in elements {
        table.push(columns.iter().map(|column| cell(column, element, &names)));
    }
    table
}

/// Prints all pages of a list, or as many elements as are wanted.
pub(super) async fn print(
    api: &Api,
    columns: &[&'static Column],
    method: &MethodInfo,
    mut request: Map<String, Value>,
    limit: Option<u64>,
    form: &Form,
) -> Result<(), CliError> {
    let head: Vec<&'static str> = columns.iter().map(|column| column.head).collect();
    let mut names = UidpNames::default();
    let mut listing = Listing::new(form, &head);
    let mut left = limit.unwrap_or(u64::MAX);
    let has_pages = dynamic::page_token_field(method);
    loop {
        if has_pages {
            request.insert("page_size".into(), left.min(PAGE_SIZE).into());
        }
        let page = dynamic::call(api, method, &request).await?;
        let mut elements = dynamic::elements(method, &page).to_vec();
        elements.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= elements.len() as u64;
        if matches!(form, Form::Table | Form::Wide | Form::Csv) {
            names.read(api, uidps(columns, &elements)).await;
        }
        listing.page(elements, |element| columns.iter().map(|column| cell(column, element, &names)).collect())?;
        let next = page.get("nextPageToken").and_then(Value::as_str).unwrap_or_default();
        if next.is_empty() || left == 0 {
            return Ok(listing.finish()?);
        }
        request.insert("page_token".into(), next.into());
    }
}

/// The UIDPs that the cells of a page show by name.
pub(super) fn uidps(columns: &[&Column], elements: &[Value]) -> Vec<String> {
    elements.iter().flat_map(|element| columns.iter().filter_map(|column| named(column, element))).collect()
}

/// The UIDP that a cell shows by name.
fn named(column: &Column, element: &Value) -> Option<String> {
    match column.cell {
        Cell::Path(_) | Cell::End(..) | Cell::Counts(..) => None,
        Cell::Parent => text(element, "uid").rsplit_once('/').map(|(parent, _)| parent.to_owned()),
        Cell::NamesAt(path) => Some(text(element, path)),
    }
}

pub(super) fn cell(column: &Column, element: &Value, names: &UidpNames) -> String {
    match column.cell {
        Cell::Path(path) => text(element, path),
        Cell::End(path, parts) => dynamic::end(&text(element, path), parts).to_owned(),
        Cell::Counts(path, name, count) => counts(element, path, name, count),
        Cell::Parent | Cell::NamesAt(_) => named(column, element).map(|uidp| names.path(&uidp)).unwrap_or_default(),
    }
}

/// The member at a dotted path of JSON names, or at the first of several paths between bars that has one, for people;
/// empty where there is none.
pub(super) fn text(element: &Value, path: &str) -> String {
    let at = |path: &str| path.split('.').try_fold(element, |value, name| value.get(name)).map(scalar);
    path.split('|').filter_map(at).find(|text| !text.is_empty()).unwrap_or_default()
}

/// Counts by name, such as `group=2,role=1`.
fn counts(element: &Value, path: &str, name: &str, count: &str) -> String {
    let items = element.get(path).and_then(Value::as_array).into_iter().flatten();
    let counts = items.map(|item| format!("{}={}", text(item, name), text(item, count)));
    counts.collect::<Vec<_>>().join(",")
}

/// A value for people.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => dynamic::capability_name(text).unwrap_or_else(|| text.clone()),
        Value::Array(items) => items.iter().map(scalar).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// The members of an object by their paths: what a table of one resource shows.
pub(super) fn flattened(value: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    flatten("", value, &mut rows);
    rows
}

fn flatten(prefix: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        match member {
            Value::Object(inner) if !inner.is_empty() => flatten(&format!("{path}."), member, rows),
            Value::Object(_) => {}
            other => rows.push((path, scalar(other))),
        }
    }
}
