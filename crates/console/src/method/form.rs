//! The form of a method, with what was typed into it.

use bowline_contract::{Docs, MethodInfo};
use bowline_core::{Code, Detail, Error, FieldViolation};
use maud::{Markup, html};

use super::about::about;
use super::fields::{Input, Leaf, MASK, Node, leaves};
use super::typed::{JSON, PREFIX, Typed, lines};
use super::{BASE, CONFIRM, METHOD, NAME, NEXT, SEND, UNREAD, base_text};
use crate::components::{section, why};
use crate::forms::{ID, issue};
use crate::values::{MAX_VALUE, beginning};
use crate::visit::Visit;

/// Maximum number of elements that are listed beside a field.
const MAX_CHOICES: usize = 300;

/// A form that is shown.
pub(crate) struct Sheet<'a> {
    pub(crate) method: &'a MethodInfo,
    pub(crate) nodes: &'a [Node],
    pub(crate) typed: Typed,
    /// What the page showed of the resource, for an edit.
    pub(crate) base: Option<Typed>,
    /// Page to return to; empty for none.
    pub(crate) back: String,
    /// Page that comes after the call, which gets the id of what was made; empty for none.
    pub(crate) next: String,
    /// What was typed to confirm a deletion, and what confirms it.
    pub(crate) confirm: String,
    pub(crate) names: Vec<String>,
    pub(crate) violations: Vec<FieldViolation>,
    /// Whether an address filled it in that no page of the session has.
    pub(crate) is_unread: bool,
    /// Why the form is shown again.
    pub(crate) notice: Option<Markup>,
}

impl Sheet<'_> {
    /// Marks what an error says of fields, and puts its sentence on top. A refusal leads to its explanation.
    pub(crate) fn mark(&mut self, error: &Error) {
        let violations = error.details().iter().filter_map(|detail| match detail {
            Detail::BadRequest(violations) => Some(violations.clone()),
            _ => None,
        });
        self.violations = violations.flatten().collect();
        let leaves = leaves(self.nodes);
        self.notice = Some(html! {
            @if error.code() == Code::PermissionDenied {
                p { (error.message()) }
                p { a.button href=(why(error, Some(&self.method.full_name))) { "Why?" } }
            } @else if self.violations.is_empty() {
                p { (error.message()) }
            } @else {
                p { "Some fields are not right:" }
                ul {
                    @for violation in &self.violations {
                        @let target = target(&leaves, &violation.field);
                        li {
                            @match &target {
                                Some(id) => { a href={ "#" (id) } { (beginning(&violation.field, MAX_VALUE)) } }
                                None => { code { (beginning(&violation.field, MAX_VALUE)) } }
                            }
                            ": " (violation.description)
                        }
                    }
                }
            }
        });
    }

    pub(crate) fn render(&self, visit: &Visit) -> Markup {
        let doc = Docs::load().of(&self.method.full_name);
        html! {
            @if self.is_unread { (unread()) }
            @if let Some(notice) = &self.notice { div.notice role="alert" { (notice) } }
            @if !doc.is_empty() { p { (doc) } }
            @let by_address = visit.app.api.reads_by_address(self.method.index);
            form.request method=(if by_address { "get" } else { "post" }) action=(METHOD) {
                @if !by_address {
                    input type="hidden" name=(ID) value=(issue(&visit.app, (&visit.key, &visit.session), &self.method.full_name));
                }
                input type="hidden" name=(NAME) value=(self.method.full_name);
                @if self.is_unread { input type="hidden" name=(UNREAD) value="true"; }
                @if !self.back.is_empty() { input type="hidden" name="back" value=(self.back); }
                @if !self.next.is_empty() { input type="hidden" name=(NEXT) value=(self.next); }
                @if let Some(base) = &self.base { input type="hidden" name=(BASE) value=(base_text(base)); }
                @for node in self.nodes { (self.node(node)) }
                @if by_address {
                    button type="submit" name=(SEND) value="true" { "Call" }
                } @else {
                    (self.whole())
                    @if visit.app.api.contract().is_confirmed(self.method) { (self.confirmation()) }
                    (self.buttons(visit))
                }
            }
            (section("about", "About this method", &about(visit, self.method)))
        }
    }

    fn node(&self, node: &Node) -> Markup {
        match node {
            // An edit says itself which fields it changes.
            Node::Leaf(leaf) if leaf.path == MASK && self.base.is_some() => html! {},
            Node::Leaf(leaf) => self.field(leaf),
            Node::Group { path, name, doc, nodes } => html! {
                fieldset {
                    legend id=(id(path)) { (label(name)) }
                    @if !doc.is_empty() { p.small { (doc) } }
                    @for node in nodes { (self.node(node)) }
                }
            },
        }
    }

    fn field(&self, leaf: &Leaf) -> Markup {
        let id = id(&leaf.path);
        let hint = format!("{id}-hint");
        let wrong: Vec<&FieldViolation> =
            self.violations.iter().filter(|violation| is_about(&leaf.path, &violation.field)).collect();
        html! {
            div.field {
                label for=(id) {
                    (label(&leaf.name)) @if leaf.is_required { " (required)" }
                }
                p.small id=(hint) { (leaf.doc) " " (format_hint(leaf)) (list_of(leaf)) }
                @for violation in &wrong { p.wrong { (violation.description) } }
                (self.input(leaf, &id, &hint, !wrong.is_empty()))
            }
        }
    }

    fn input(&self, leaf: &Leaf, id: &str, hint: &str, is_wrong: bool) -> Markup {
        let (name, text) = (format!("{PREFIX}{}", leaf.path), self.typed.get(&leaf.path));
        let wrong = is_wrong.then_some("true");
        let choices = |options: &[(String, String)]| {
            html! {
                select id=(id) name=(name) aria-describedby=(hint) aria-invalid=[wrong] {
                    @for (value, shown) in options { option value=(value) selected[value == text] { (shown) } }
                }
            }
        };
        let named = |value: &str, shown: &str| (value.to_owned(), shown.to_owned());
        match &leaf.input {
            Input::Flag => choices(&[named("", "not set"), named("true", "yes"), named("false", "no")]),
            Input::Presence => choices(&[named("", "no"), named("true", "yes")]),
            Input::Choice(names) => {
                let mut options = vec![named("", "not set")];
                options.extend(names.iter().map(|name| named(name, name)));
                choices(&options)
            }
            Input::Area | Input::Lines(_) | Input::Json => area(&name, id, hint, text, is_wrong),
            // A line would lose what an area keeps.
            _ if text.contains('\n') => area(&name, id, hint, text, is_wrong),
            input => {
                let kind = if *input == Input::Secret { "password" } else { "text" };
                html! {
                    input type=(kind) id=(id) name=(name) value=(text) aria-describedby=(hint) aria-invalid=[wrong]
                        autocomplete="off" autocapitalize="none" spellcheck="false"
                        maxlength=[(leaf.max > 0).then_some(leaf.max)];
                }
            }
        }
    }

    /// The whole request, for what the fields do not hold.
    fn whole(&self) -> Markup {
        html! {
            details.whole open[!self.typed.json.is_empty()] {
                summary { "Whole request as JSON" }
                div.field {
                    label for="f-json" { "JSON" }
                    p.small id="f-json-hint" { "If this is filled in, it is sent in place of all fields above." }
                    (area(JSON, "f-json", "f-json-hint", &self.typed.json, false))
                }
            }
        }
    }

    fn confirmation(&self) -> Markup {
        html! {
            div.field {
                label for="f-confirm" { "Confirm (required)" }
                p.small id="f-confirm-hint" {
                    @match self.names.as_slice() {
                        [] => "Type the name or the id of what goes."
                        names => {
                            "Type "
                            @for (at, name) in names.iter().enumerate() {
                                @if at > 0 { " or " }
                                code { (beginning(name, MAX_VALUE)) }
                            }
                            ". It cannot be undone here."
                        }
                    }
                }
                input type="text" id="f-confirm" name=(CONFIRM) value=(self.confirm) aria-describedby="f-confirm-hint"
                    autocomplete="off" autocapitalize="none" spellcheck="false";
            }
        }
    }

    fn buttons(&self, visit: &Visit) -> Markup {
        html! {
            div.buttons {
                button.quiet type="submit" name="do" value="code" { "Show as code" }
                @if visit.app.api.only_reads(self.method.index) {
                    button type="submit" name="do" value="call" { "Call" }
                } @else {
                    (self.send(visit))
                }
                @if !self.back.is_empty() { a href=(self.back) { "Back" } }
            }
        }
    }

    /// The buttons of a method that changes something.
    fn send(&self, visit: &Visit) -> Markup {
        html! {
            @if self.method.previewable { button.quiet type="submit" name="do" value="preview" { "Preview" } }
            @if visit.session.unlocked_until(visit.app.now()).is_some() {
                button type="submit" name="do" value="send" { "Send" }
            } @else {
                button type="submit" name="do" value="unlock" { "Unlock changes for 15 minutes" }
                p.small { "This session only reads. What you typed stays." }
            }
        }
    }
}

/// Says that a link of others filled in a form.
pub(crate) fn unread() -> Markup {
    html! {
        div.notice role="alert" {
            "A link that is not of your pages filled in this form: read every field before you send it."
        }
    }
}

fn area(name: &str, id: &str, hint: &str, text: &str, is_wrong: bool) -> Markup {
    let rows = text.lines().count().clamp(2, 20);
    html! {
        // Browsers leave out the first line end.
        textarea id=(id) name=(name) rows=(rows) aria-describedby=(hint) aria-invalid=[is_wrong.then_some("true")]
            autocapitalize="none" spellcheck="false" { "\n" (text) }
    }
}

/// The id of a field's element.
fn id(path: &str) -> String {
    format!("f-{}", path.replace('.', "-"))
}

/// The element that a violation is about.
fn target(leaves: &[&Leaf], field: &str) -> Option<String> {
    match field {
        JSON => Some("f-json".to_owned()),
        CONFIRM => Some("f-confirm".to_owned()),
        field => leaves.iter().find(|leaf| is_about(&leaf.path, field)).map(|leaf| id(&leaf.path)),
    }
}

/// Whether an error names a field: as the API spells it, perhaps without the field that holds the resource.
fn is_about(path: &str, field: &str) -> bool {
    let plain = |text: &str| -> String {
        let text = text.split('[').next().unwrap_or_default();
        text.chars().filter(|letter| *letter != '_').flat_map(char::to_lowercase).collect()
    };
    let (path, field) = (plain(path), plain(field));
    path == field || (!field.is_empty() && path.strip_suffix(&field).is_some_and(|rest| rest.ends_with('.')))
}

/// A field's name in words.
fn label(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(char::to_uppercase);
    let rest = letters.as_str().replace('_', " ");
    first.map_or_else(String::new, |first| first.chain(rest.chars()).collect())
}

fn format_hint(leaf: &Leaf) -> Markup {
    html! {
        @match &leaf.input {
            Input::Time => { "A time such as " code { "2026-01-31T12:00:00Z" } "." }
            Input::Duration => { "Seconds, such as " code { "3600s" } "." }
            Input::Mask => { "Names of the fields to change, with commas. Without any: those that are filled in." }
            Input::Json => { "As JSON." }
            Input::Lines(names) => {
                "One in each line."
                @if !names.is_empty() {
                    details {
                        summary { "Values" }
                        p { @for name in names.iter().take(MAX_CHOICES) { code { (name) } " " } }
                    }
                }
            }
            _ => {}
        }
    }
}

/// Where the ids are listed that a field takes. Another tab leaves what is typed here.
fn list_of(leaf: &Leaf) -> Markup {
    let list = match leaf.name.as_str() {
        "role" | "role_uid" | "default_role" => Some(("/console/roles", "Roles")),
        "identity" | "identity_uid" => Some(("/console/identities", "Identities")),
        _ => None,
    };
    html! {
        @if let Some((page, text)) = list {
            "Ids are listed under " a href=(page) target="_blank" rel="noopener" { (text) " (new tab)" } "."
        }
    }
}

/// Everything that a form holds, for a page of someone whose session has ended: nothing typed is lost.
pub(crate) fn carried<'f>(pairs: impl Iterator<Item = (&'f str, &'f str)>) -> Markup {
    html! {
        @for (name, value) in pairs.filter(|(name, _)| !matches!(*name, ID | "do")) {
            textarea.carried name=(name) readonly aria-hidden="true" tabindex="-1" hidden { "\n" (lines(value)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_find_their_fields() {
        for (path, field) in [
            ("group.name", "group.name"),
            ("group.name", "name"),
            ("identity_provider.oidc.client_id", "identityProvider.oidc.clientId"),
            ("role.capabilities", "role.capabilities[3]"),
        ] {
            assert!(is_about(path, field), "{path} {field}");
        }
        for (path, field) in [("group.name", "ame"), ("group.name", ""), ("group.name", "group")] {
            assert!(!is_about(path, field), "{path} {field}");
        }
        assert_eq!(label("default_role"), "Default role");
    }
}
