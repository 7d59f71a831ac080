//! The parts that pages are made of: facts, tables, filters, pages of lists, and what is said where nothing is.

use bowline_contract::Method;
use bowline_core::{Code, Detail, Error};
use maud::{Markup, html};

use crate::method::{EDIT, METHOD, NAME, PREFIX, SEAL, is_filled_in};
use crate::query::address;
use crate::values::{MAX_VALUE, beginning};
use crate::visit::Visit;

/// A link to the form of a method, with fields filled in. It is shown to all: the call decides who may.
pub(crate) fn action<M: Method>(visit: &Visit, text: &str, fields: &[(&str, &str)]) -> Markup {
    form_link(visit, M::FULL_NAME, text, fields, "")
}

/// A link to the form of an update, with the resource as it is.
pub(crate) fn edit<M: Method>(visit: &Visit, text: &str, fields: &[(&str, &str)]) -> Markup {
    form_link(visit, M::FULL_NAME, text, fields, "1")
}

fn form_link(visit: &Visit, method: &str, text: &str, fields: &[(&str, &str)], edit: &str) -> Markup {
    let fields: Vec<(String, &str)> = fields.iter().map(|(path, value)| (format!("{PREFIX}{path}"), *value)).collect();
    let back = visit.query.address(visit.path, &["notice"], &[]);
    let mut parameters = vec![(NAME, method), (EDIT, edit), ("back", back.as_str())];
    parameters.extend(fields.iter().map(|(name, value)| (name.as_str(), *value)));
    // As the address will have them: it leaves out what is empty.
    let filled = parameters.iter().copied().filter(|(_, value)| !value.is_empty());
    let seal = visit.app.seal(&visit.key, filled.filter(|(name, _)| is_filled_in(name)));
    parameters.push((SEAL, &seal));
    html! { a.action href=(address(METHOD, &parameters)) { (text) } }
}

/// A list of names and values.
pub(crate) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// A link to a page with these parameters.
pub(crate) fn link(path: &str, parameters: &[(&str, &str)], text: &str) -> Markup {
    let shown = if text.trim().is_empty() { "(no name)" } else { beginning(text, MAX_VALUE) };
    html! { a href=(address(path, parameters)) { bdi { (shown) } } }
}

/// A link to the page of a resource by its name, with the id in the title; by its id without a name.
pub(crate) fn named(path: &str, uid: &str, name: &str) -> Markup {
    let to = address(path, &[("uid", uid)]);
    html! {
        @if name.trim().is_empty() {
            a href=(to) { code { (uid) } }
        } @else {
            a href=(to) title=(uid) { bdi { (beginning(name, MAX_VALUE)) } }
        }
    }
}

/// Maximum number of rows that a table shows. Lists have fewer; what is in one image or document may have any number.
pub(crate) const MAX_ROWS: usize = 200;

/// What stands below the first rows of a table that has more.
pub(crate) fn more(number: usize) -> Markup {
    html! { @if number > MAX_ROWS { p.small { "These are the first " (MAX_ROWS) " of " (number) "." } } }
}

/// A table. The first cell of each row names it. On narrow screens every row is a card, whose cells carry the names of
/// their columns; the roles keep it a table for readers.
pub(crate) fn table(caption: &str, heads: &[&str], rows: &[Vec<Markup>]) -> Markup {
    html! {
        table role="table" {
            caption { (caption) }
            thead role="rowgroup" {
                tr role="row" {
                    @for head in heads { th scope="col" role="columnheader" { (head) } }
                }
            }
            tbody role="rowgroup" {
                @for row in rows {
                    tr role="row" {
                        @for (at, cell) in row.iter().enumerate() {
                            @if at == 0 {
                                th scope="row" role="rowheader" { (cell) }
                            } @else {
                                td role="cell" data-label=(heads.get(at).copied().unwrap_or_default()) { div { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// One page of a list.
pub(crate) struct List<'a> {
    pub(crate) caption: &'a str,
    pub(crate) heads: &'a [&'a str],
    pub(crate) rows: Vec<Vec<Markup>>,
    /// Token of the next page; empty for none.
    pub(crate) next: &'a str,
    /// How many there are in all, if the API counts them.
    pub(crate) total: Option<i64>,
    /// What to say where there are none.
    pub(crate) empty: &'a str,
    /// Parameters that filter the list.
    pub(crate) filters: &'a [&'a str],
}

impl List<'_> {
    pub(crate) fn render(&self, visit: &Visit) -> Markup {
        let is_filtered = self.filters.iter().any(|name| visit.query.get(name).is_some());
        html! {
            @if !self.rows.is_empty() {
                (table(self.caption, self.heads, &self.rows))
                @if let Some(total) = self.total.filter(|total| *total > 0) { p.small { (total) " in all" } }
            } @else if is_filtered {
                p.empty {
                    "Nothing here matches these filters. "
                    a href=(visit.query.address(visit.path, &with_page(self.filters), &[])) { "Remove the filters" }
                }
            } @else {
                p.empty { (self.empty) }
            }
            (self.pager(visit))
        }
    }

    /// The links to other pages of the list.
    pub(crate) fn pager(&self, visit: &Visit) -> Markup {
        pager(visit, self.next)
    }
}

fn with_page<'a>(names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().chain(["page", "notice"]).collect()
}

fn pager(visit: &Visit, next: &str) -> Markup {
    let is_later = visit.query.get("page").is_some();
    html! {
        @if is_later || !next.is_empty() {
            nav.pager aria-label="Pages" {
                @if is_later { a href=(visit.query.address(visit.path, &["page", "notice"], &[])) { "First page" } }
                @if !next.is_empty() {
                    a rel="next" href=(visit.query.address(visit.path, &["page", "notice"], &[("page", next)])) { "Next page" }
                }
            }
        }
    }
}

/// A field of a form that filters.
pub(crate) enum Field<'a> {
    Text {
        name: &'a str,
        label: &'a str,
    },
    /// Values with their texts; the first is the default.
    Choice {
        name: &'a str,
        label: &'a str,
        options: &'a [(&'a str, &'a str)],
    },
}

/// The form that filters a list. Parameters of `kept` stay as they are.
pub(crate) fn filters(visit: &Visit, kept: &[&str], fields: &[Field<'_>]) -> Markup {
    html! {
        form.filters method="get" action=(visit.path) role="search" aria-label="Filters" {
            @for name in kept {
                @if let Some(value) = visit.query.get(name) { input type="hidden" name=(name) value=(value); }
            }
            @for field in fields {
                @match field {
                    Field::Text { name, label } => {
                        div {
                            label for={ "f-" (name) } { (label) }
                            input type="text" id={ "f-" (name) } name=(name) value=(visit.query.text(name)) maxlength="300"
                                autocomplete="off" autocapitalize="none" spellcheck="false";
                        }
                    }
                    Field::Choice { name, label, options } => {
                        div {
                            label for={ "f-" (name) } { (label) }
                            select id={ "f-" (name) } name=(name) {
                                @for (value, text) in *options {
                                    option value=(value) selected[visit.query.get(name).unwrap_or_default() == *value] { (text) }
                                }
                            }
                        }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

/// A part of a page with a heading of its own.
pub(crate) fn section(id: &str, title: &str, body: &Markup) -> Markup {
    html! { section aria-labelledby=(id) { h2 id=(id) { (title) } (body) } }
}

/// What a part of a page says in place of a response. Every refusal leads to its explanation.
pub(crate) fn refused(error: &Error, method: Option<&str>) -> Markup {
    html! {
        p.empty {
            @match error.code() {
                Code::PermissionDenied => {
                    (denied(error)) " "
                    a href=(why(error, method)) { "Why?" }
                }
                _ => { (error.message()) }
            }
        }
    }
}

/// A refusal in a sentence.
pub(crate) fn denied(error: &Error) -> String {
    match (fact(error, "capability"), fact(error, "scope")) {
        (Some(capability), Some(scope)) => format!("You may not see this: it needs {capability} at {scope}."),
        _ => format!("You may not see this. {}.", error.message().trim_end_matches('.')),
    }
}

/// The page that explains a refusal.
pub(crate) fn why(error: &Error, method: Option<&str>) -> String {
    let scope = fact(error, "scope").unwrap_or_default();
    let method = method.unwrap_or_default();
    address("/console/why", &[("method", method), ("scope", scope)])
}

fn fact<'e>(error: &'e Error, name: &str) -> Option<&'e str> {
    error.details().iter().find_map(|detail| match detail {
        Detail::Metadata(facts) => facts.get(name).map(String::as_str),
        _ => None,
    })
}
