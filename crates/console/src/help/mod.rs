//! Help: what each reason of an error means and what to do, and what each screen is for.
//!
//! The texts of reasons are those of docs/ERRORS.md, which is compiled in, so that there is one copy of them. The texts of
//! screens are in `screens`. Tests enumerate both.

mod reasons;
mod screens;

use bowline_core::{Detail, Error, Reason, Result};
use maud::{Markup, html};

use crate::components::{facts, section, table};
use crate::query::address;
use crate::shell::Content;
use crate::values::text;
use crate::visit::Visit;

use reasons::{ReasonHelp, kinds, of_kind, of_name, reasons};
use screens::{SCREENS, Screen};

/// Address of the help.
pub(crate) const HELP: &str = "/console/help";

/// `GET /console/help`: all of it, or the help about one reason or one screen.
pub(crate) async fn show(visit: &mut Visit) -> Result<Content> {
    let above = |content: Content| content.below(HELP.to_owned(), "Help");
    if let Some(name) = visit.query.get("reason") {
        let help =
            of_name(name).ok_or_else(|| missing("There is no reason of this name: open it from the list of help."))?;
        return Ok(above(Content::new(help.name, about_reason(help))));
    }
    if let Some(path) = visit.query.get("page") {
        let screen = SCREENS.iter().find(|screen| screen.path == path);
        let screen =
            screen.ok_or_else(|| missing("There is no screen at this address: open it from the list of help."))?;
        let title = format!("Help: {}", screen.title);
        return Ok(above(Content::new(title, html! { p { (screen.text) } })));
    }
    Ok(Content::new("Help", index()))
}

fn missing(text: &'static str) -> Error {
    Error::new(Reason::NotFound, text)
}

/// The link to the help of a screen, for its header.
pub(crate) fn link(path: &str) -> Markup {
    html! { a href=(address(HELP, &[("page", path)])) { "Help" } }
}

fn index() -> Markup {
    let screen = |screen: &Screen| html! { li { a href=(address(HELP, &[("page", screen.path)])) { (screen.title) } } };
    html! {
        (section("screens", "Screens", &html! { ul.plain { @for one in SCREENS { (screen(one)) } } }))
        (section("reasons", "Reasons of errors", &html! {
            p { "Each error has a reason, which programs can rely on. Its page and the response of a call name it." }
            @let rows: Vec<_> = reasons().map(|help| vec![link_to(help.name), text(help.status), words(help.remedy)]).collect();
            (table("Reasons", &["Reason", "HTTP status", "What to do"], &rows))
        }))
    }
}

fn link_to(reason: &str) -> Markup {
    html! { a href=(address(HELP, &[("reason", reason)])) { code { (reason) } } }
}

fn about_reason(help: ReasonHelp) -> Markup {
    let rows: Vec<_> = if help.name == Reason::FailedPrecondition.name() {
        kinds().map(|kind| vec![html! { code { (kind.name) } }, words(kind.subject), words(kind.meaning)]).collect()
    } else {
        Vec::new()
    };
    html! {
        (facts(&[
            ("What to do", words(help.remedy)),
            ("gRPC code", text(help.code)),
            ("HTTP status", words(help.status)),
            ("Details for programs", words(help.details)),
        ]))
        @if !rows.is_empty() { (table("Conditions", &["Type", "Subject", "Meaning"], &rows)) }
    }
}

/// What the reason of an error means and what to do, with the conditions that did not hold. `is_signed_in` adds links to
/// the help.
pub(crate) fn of_error(error: &Error, is_signed_in: bool) -> Markup {
    let name = error.reason().name();
    let Some(help) = of_name(name) else { return html! {} };
    let kinds = error.details().iter().filter_map(|detail| match detail {
        Detail::Precondition(violations) => Some(violations),
        _ => None,
    });
    let mut kinds: Vec<_> = kinds.flatten().filter_map(|violation| of_kind(violation.kind)).collect();
    kinds.dedup_by_key(|kind| kind.name);
    html! {
        dl.facts {
            div { dt { "Reason" } dd { @if is_signed_in { (link_to(name)) } @else { code { (name) } } } }
            @for kind in kinds { div { dt { code { (kind.name) } } dd { (words(kind.meaning)) } } }
            div { dt { "What to do" } dd { (words(help.remedy)) } }
        }
    }
}

/// A text of the document: what is between backticks is for machines.
fn words(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::pages::PAGES;

    #[test]
    fn every_reason_has_a_text() {
        for reason in Reason::ALL {
            let help = of_name(reason.name()).unwrap_or_else(|| panic!("docs/ERRORS.md has no {}", reason.name()));
            assert!(help.remedy.len() > 10 && help.code.contains(reason.code().name()), "{}", help.name);
            let shown = of_error(&Error::new(reason, "x"), true).into_string();
            assert!(shown.contains("What to do") && shown.contains(&format!("/console/help?reason={}", help.name)));
        }
        assert_eq!(reasons().count(), Reason::ALL.len(), "the document lists no other reason");
        assert!(
            kinds().count() > 40 && of_kind("ROLE_BOUND").is_some_and(|kind| kind.meaning.contains("role bindings"))
        );
    }

    #[test]
    fn every_screen_has_a_text() {
        let pages: BTreeSet<&str> = PAGES.iter().map(|page| page.path).collect();
        let described: BTreeSet<&str> = SCREENS.iter().map(|screen| screen.path).collect();
        assert_eq!(pages, described);
        assert_eq!(described.len(), SCREENS.len(), "no screen twice");
        for screen in SCREENS {
            assert!(
                screen.text.len() > 60 && screen.text.ends_with('.') && !screen.title.is_empty(),
                "{}",
                screen.path
            );
        }
    }

    #[test]
    fn errors_explain_their_conditions() {
        let error = Error::precondition("ROLE_BOUND", "a/b", "the role is bound");
        let shown = of_error(&error, false).into_string();
        assert!(shown.contains("<code>ROLE_BOUND</code>") && shown.contains("open invitation"), "{shown}");
        assert!(!shown.contains("href"), "without a session, no page is offered: {shown}");
        assert_eq!(words("a `b` c").into_string(), "a <code>b</code> c");
    }
}
