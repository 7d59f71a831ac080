//! Edits of what a page showed: the form begins with the resource, and an update that others overtook is not sent.

use bowline_core::Result;
use maud::{Markup, html};
use serde_json::Value;

use super::fields::Leaf;
use super::form::{Sheet, carried, unread};
use super::resource::Reader;
use super::typed::{PREFIX, Typed, at};
use super::{BASE, EDIT, METHOD, NAME, UNREAD, base_text};
use crate::components::table;
use crate::forms::{ID, issue};
use crate::query::address;
use crate::shell::Content;
use crate::values::{block, none};
use crate::visit::Visit;

/// Fills a form with the resource as it is, and returns what it shows of it. Fields of the address win.
///
/// # Errors
/// What reading it returns.
pub(super) async fn start(
    visit: &mut Visit,
    reader: &Reader<'_>,
    leaves: &[&Leaf],
    typed: &mut Typed,
) -> Result<Option<Typed>> {
    if reader.resource.is_none() {
        return Ok(None);
    }
    let request = typed.request(leaves)?;
    let id = reader.id_of_change.as_deref().and_then(|path| at(&request, path)).and_then(Value::as_str);
    let resource = reader.read(visit, id.unwrap_or_default()).await?;
    let shown = reader.shown(leaves, &resource);
    for (path, text) in shown.texts() {
        if typed.get(path).is_empty() {
            typed.set(path, text.to_owned());
        }
    }
    Ok(Some(shown))
}

/// The page of an update that others overtook: what a page showed, what they made of it, and what was typed.
pub(super) fn lost(
    visit: &Visit,
    sheet: &Sheet<'_>,
    reader: &Reader<'_>,
    leaves: &[&Leaf],
    base: &Typed,
    now: &Typed,
) -> Content {
    let mine = reader.different(leaves, base, &sheet.typed);
    let theirs = reader.different(leaves, base, now);
    let is_among = |some: &[&Leaf], leaf: &Leaf| some.iter().any(|one| one.path == leaf.path);
    let value = |leaf: &Leaf, text: &str| -> Markup { if text.is_empty() { none() } else { block(&leaf.shown(text)) } };
    let rows: Vec<Vec<Markup>> = leaves
        .iter()
        .filter(|leaf| is_among(&mine, leaf) || is_among(&theirs, leaf))
        .map(|leaf| {
            let texts = [base, now, &sheet.typed].map(|typed| value(leaf, typed.get(&leaf.path)));
            let [was, is, yours] = texts;
            let yours = if is_among(&mine, leaf) {
                yours
            } else {
                html! { span.none { "as it was" } }
            };
            vec![html! { code { (leaf.path) } }, was, is, yours]
        })
        .collect();
    // What was not touched stays as the others made it.
    let mut merged = sheet.typed.clone();
    for leaf in leaves.iter().filter(|leaf| is_among(&theirs, leaf) && !is_among(&mine, leaf)) {
        merged.set(&leaf.path, now.get(&leaf.path).to_owned());
    }
    let names: Vec<(String, &str)> = merged.texts().map(|(path, text)| (format!("{PREFIX}{path}"), text)).collect();
    let pairs = names.iter().map(|(name, text)| (name.as_str(), *text));
    let id_field = reader.id_of_change.as_deref();
    let id = id_field.map(|path| (format!("{PREFIX}{path}"), sheet.typed.get(path)));
    let again: Vec<(&str, &str)> =
        [(NAME, sheet.method.full_name.as_str()), (EDIT, "1"), ("back", sheet.back.as_str())]
            .into_iter()
            .chain(id.as_ref().map(|(name, value)| (name.as_str(), *value)))
            .collect();
    let body = html! {
        p.notice role="alert" {
            "Someone changed this while you edited it. Nothing was sent: choose what is to be kept."
        }
        @if sheet.is_unread { (unread()) }
        (table("Fields that differ", &["Field", "It was", "Theirs", "Yours"], &rows))
        form.request method="post" action=(METHOD) {
            input type="hidden" name=(ID) value=(issue(&visit.app, (&visit.key, &visit.session), &sheet.method.full_name));
            input type="hidden" name=(NAME) value=(sheet.method.full_name);
            @if sheet.is_unread { input type="hidden" name=(UNREAD) value="true"; }
            input type="hidden" name="back" value=(sheet.back);
            input type="hidden" name=(BASE) value=(base_text(now));
            (carried(pairs))
            div.buttons {
                button type="submit" name="do" value="send" { "Send yours" }
                a.button.quiet href=(address(METHOD, &again)) { "Keep theirs and edit again" }
            }
            p.small { "Fields that you did not change stay as the others made them." }
        }
    };
    Content::new("Changed meanwhile", body)
}
