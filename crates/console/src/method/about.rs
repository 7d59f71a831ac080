//! What the contract says of a method, in words.

use bowline_contract::{Auth, MethodInfo};
use maud::{Markup, html};

use crate::components::facts;
use crate::shell::Content;
use crate::values::{badge, code, text};
use crate::visit::Visit;

/// A method's name in words: `GroupsService.UpdateGroup` is "Update group".
pub(crate) fn title(method: &MethodInfo) -> String {
    let (service, name) = method.short_name().split_once('.').unwrap_or(("", method.short_name()));
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
            words.extend(letter.to_lowercase());
        } else {
            words.push(letter);
        }
    }
    if words.contains(' ') { words } else { format!("{service}: {}", words.to_lowercase()) }
}

/// Whether a method only reads.
pub(crate) fn kind(visit: &Visit, method: &MethodInfo) -> Markup {
    if visit.app.api.reads_by_address(method.index) { badge("good", "reads") } else { badge("plain", "other") }
}

/// Where a method is, and what it needs.
pub(super) fn about(visit: &Visit, method: &MethodInfo) -> Markup {
    let needs = match &method.auth {
        Auth::Own => text("a credential of its own"),
        Auth::Public => text("nothing"),
        Auth::Capabilities { needed, .. } => {
            let names = visit.app.api.contract().capabilities().names(needed);
            if names.is_empty() { text("any valid token") } else { code(&names.join(", ")) }
        }
    };
    let address = method.bindings.first();
    let address = address.map(|binding| format!("{} {}", binding.verb.name(), binding.template)).unwrap_or_default();
    facts(&[
        ("Full name", code(&method.full_name)),
        ("Address", code(&address)),
        ("Needs", needs),
        ("Event", code(method.event.as_ref().map_or("", |event| event.event_type.as_str()))),
        ("Kind", kind(visit, method)),
    ])
}

/// The page of a method that no form can send.
pub(super) fn elsewhere(visit: &Visit, method: &MethodInfo) -> Content {
    let body = html! {
        @if method.server_streaming {
            p { "This method returns a stream, which a page does not show. The command line does:" }
        } @else {
            p { "This method is for programs that get an access token, which no page shows. The command line calls it:" }
        }
        pre tabindex="0" data-copy { code { "bowline api " (method.full_name) } }
        (about(visit, method))
    };
    Content::new(title(method), body).below("/console/methods".to_owned(), "Methods")
}
