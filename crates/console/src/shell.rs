//! The frame of every page: navigation, search, who is signed in, and the calls of the page as code.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use bowline_core::{Code, Error, Reason};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::actions;
use crate::assets;
use crate::components::{denied, why};
use crate::export::FORMATS;
use crate::help;
use crate::method::METHOD;
use crate::query::address;
use crate::sign_in::{HOME, SIGN_OUT};
use crate::unlock;
use crate::values::{MAX_VALUE, beginning, bytes};
use crate::visit::{Shown, Visit};

/// What a page shows.
pub(crate) struct Content {
    pub(crate) title: String,
    /// Pages above this one: address and text.
    pub(crate) crumbs: Vec<(String, String)>,
    pub(crate) body: Markup,
    /// Whether the page has a secret that the API returns once: no page of an error takes its place.
    pub(crate) is_shown_once: bool,
    /// Whether what the page is about is there, so that something can be done with it.
    has_actions: bool,
}

impl Content {
    pub(crate) fn new(title: impl Into<String>, body: Markup) -> Content {
        Content { title: title.into(), crumbs: Vec::new(), body, is_shown_once: false, has_actions: true }
    }

    pub(crate) fn below(mut self, address: String, text: impl Into<String>) -> Content {
        self.crumbs.push((address, text.into()));
        self
    }
}

/// Headings of the navigation, with their pages.
const NAVIGATION: &[(&str, &[(&str, &str)])] = &[
    ("Overview", &[(HOME, "Organizations"), ("/console/home", "Home"), ("/console/groups", "Groups")]),
    (
        "Access",
        &[
            ("/console/identities", "Identities"),
            ("/console/roles", "Roles"),
            ("/console/bindings", "Role bindings"),
            ("/console/access", "Who has access"),
            ("/console/invites", "Invitations"),
            ("/console/providers", "Identity providers"),
            ("/console/why", "Why?"),
        ],
    ),
    (
        "Images",
        &[
            ("/console/repositories", "Repositories"),
            ("/console/find", "Find images"),
            ("/console/image-policies", "Image policies"),
            ("/console/upstreams", "Upstreams"),
        ],
    ),
    (
        "Vulnerabilities",
        &[
            ("/console/findings", "Findings"),
            ("/console/matches", "Vulnerable components"),
            ("/console/posture", "Posture"),
            ("/console/advisories", "Advisories"),
        ],
    ),
    (
        "Packages",
        &[
            ("/console/packages", "Packages"),
            ("/console/policies", "Policies"),
            ("/console/exceptions", "Exceptions and freezes"),
            ("/console/decision", "Is a package allowed?"),
            ("/console/blocked", "Blocked packages"),
        ],
    ),
    ("Activity", &[("/console/audit", "Audit log"), ("/console/subscriptions", "Subscriptions")]),
    ("You", &[("/console/me", "Your account"), ("/console/methods", "All methods")]),
];

/// What an operator has besides.
const OPERATOR: [(&str, &[(&str, &str)]); 1] = [(
    "Operator",
    &[
        ("/console/first-run", "First steps"),
        ("/console/operator", "The server"),
        ("/console/organizations", "Organizations by size"),
    ],
)];

/// Maximum bytes of a page.
const MAX_PAGE: usize = 2 << 20;

/// A whole page of a signed-in caller.
pub(crate) fn page(visit: &Visit, status: StatusCode, content: &Content) -> Response {
    let whole = whole_page(visit, content);
    if whole.len() <= MAX_PAGE || content.is_shown_once {
        return (status, Html(whole)).into_response();
    }
    let text = format!("This page would have {}: read what it shows with the calls below.", bytes(whole.len() as i64));
    problem(Some(visit), &Error::new(Reason::FailedPrecondition, text), visit.request_id(), None)
}

/// The group that the links of the frame keep. What a caller's own entries in the audit log are below is no group.
fn scope_of_links(visit: &Visit) -> String {
    Some(visit.scope()).filter(|scope| *scope != visit.session.subject).unwrap_or_default()
}

fn whole_page(visit: &Visit, content: &Content) -> String {
    let scope = scope_of_links(visit);
    let body = html! {
        a.skip href="#content" { "Skip to the content" }
        header.top {
            a.brand href=(HOME) { span.mark aria-hidden="true" {} "Bowline" }
            form.find method="get" action="/console/search" role="search" aria-label="Search" {
                @if !scope.is_empty() { input type="hidden" name="in" value=(scope); }
                label.hidden for="q" { "Search names, digests, vulnerabilities" }
                input type="search" id="q" name="q" maxlength="300" autocomplete="off" spellcheck="false"
                    placeholder="Search names, digests, CVEs";
                button.quiet type="submit" { "Search" }
            }
            div.account {
                (help::link(visit.path))
                a href="/console/me" { bdi { (visit.session.label) } }
                form method="post" action=(SIGN_OUT) {
                    input type="hidden" name="token" value=(visit.app.form_token(&visit.key, SIGN_OUT));
                    button.quiet type="submit" { "Sign out" }
                }
            }
            (unlock::state(visit))
            @if visit.app.api.settings().is_demo {
                p.operator { "Demonstration data: everything here is generated. Store nothing that matters." }
            }
            @if visit.session.is_operator {
                p.operator { "You act as the operator: you see every organization of this server." }
            }
            details.menu {
                summary { "Menu" }
                nav aria-label="Menu" { (navigation(visit, &scope)) }
            }
        }
        div.frame {
            nav.rail aria-label="Main" { (navigation(visit, &scope)) }
            main id="content" tabindex="-1" {
                (crumbs(visit, content))
                h1 { bdi { (beginning(&content.title, MAX_VALUE)) } }
                @if visit.query.get("notice") == Some("page") {
                    p.notice role="status" { "The page that you asked for has expired: this is the first one." }
                }
                @if content.has_actions { (actions::of(visit)) }
                (content.body)
                (exports(visit))
                (code(visit, &visit.shown_calls()))
            }
        }
    };
    let class = if visit.session.is_operator { "as-operator" } else { "" };
    document(&content.title, class, &body)
}

/// Where the page is, and what its lists are limited to.
fn crumbs(visit: &Visit, content: &Content) -> Markup {
    let scope = scope_of_links(visit);
    html! {
        @if !content.crumbs.is_empty() || !scope.is_empty() {
            nav.crumbs aria-label="Where you are" {
                ol {
                    @if !scope.is_empty() {
                        li {
                            "In " a href=(address("/console/group", &[("uid", &scope)])) {
                                @match &visit.scope_name {
                                    Some(name) => { bdi { (name) } }
                                    None => { code { (scope) } }
                                }
                            }
                            " (" a href=(visit.query.address(visit.path, &["in", "page", "notice"], &[])) { "everywhere" } ")"
                        }
                    }
                    @for (address, text) in &content.crumbs { li { a href=(address) { bdi { (text) } } } }
                }
            }
        }
    }
}

fn navigation(visit: &Visit, scope: &str) -> Markup {
    let path = visit.path;
    let operator: &[_] = if visit.session.is_operator { &OPERATOR } else { &[] };
    html! {
        @for (heading, pages) in NAVIGATION.iter().chain(operator) {
            div {
                p { (heading) }
                ul {
                    @for (page, text) in *pages {
                        li {
                            a href=(address(page, &[("in", if takes_scope(page) { scope } else { "" })]))
                                aria-current=[(*page == path).then_some("page")] { (text) }
                        }
                    }
                }
            }
        }
    }
}

/// Whether a page lists what is in a group.
fn takes_scope(page: &str) -> bool {
    !matches!(
        page,
        HOME | "/console/me"
            | "/console/methods"
            | "/console/why"
            | "/console/first-run"
            | "/console/operator"
            | "/console/organizations"
    )
}

/// The page as data. An export has the rows of this page of a list.
fn exports(visit: &Visit) -> Markup {
    let exported = |name: &str| visit.query.address(visit.path, &["format", "notice"], &[("format", name)]);
    html! {
        @if visit.has_called() && visit.path != METHOD {
            p.small {
                "This page as "
                @for (at, (_, name, text)) in FORMATS.iter().enumerate() {
                    @if at > 0 { " or " }
                    a href=(exported(name)) download { (text) }
                }
            }
        }
    }
}

/// The calls of the page, for a shell.
fn code(visit: &Visit, calls: &[Shown]) -> Markup {
    html! {
        @if !calls.is_empty() {
            details.code {
                summary { "Show as code" }
                p.small {
                    "The calls that this page made. Each line can be pasted into a shell where you are signed in with "
                    code { "bowline auth login --api " (visit.app.api.settings().base_url) } "."
                }
                @for call in calls {
                    h2 { code { (call.method) } }
                    (lines(call))
                }
            }
        }
    }
}

/// The lines that make a call.
pub(crate) fn lines(call: &Shown) -> Markup {
    html! {
        @if let Some(forms) = &call.forms {
            @for (name, line) in [("curl", &forms.curl), ("Command line", &forms.bowline), ("grpcurl", &forms.grpcurl)] {
                figure {
                    figcaption { (name) }
                    pre tabindex="0" data-copy { code { (line) } }
                }
            }
            @if let Some(text) = &call.terraform {
                figure {
                    figcaption { "Terraform" }
                    pre tabindex="0" data-copy { code { (text) } }
                }
            }
        } @else if call.has_secret {
            p { "This request holds a secret, which is not written into a line." }
        } @else {
            p { "This request does not fit into a line: call the method over gRPC." }
        }
    }
}

/// The page of an error.
pub(crate) fn problem(visit: Option<&Visit>, error: &Error, request_id: &str, method: Option<&str>) -> Response {
    let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let title = match error.code() {
        Code::NotFound => "Not found",
        Code::PermissionDenied => "Not allowed",
        Code::InvalidArgument => "This address does not work",
        Code::ResourceExhausted => "Please wait",
        _ if status.is_server_error() => "Something went wrong here",
        _ => "This did not work",
    };
    let body = html! {
        @if error.code() == Code::PermissionDenied && visit.is_some() {
            p.notice role="alert" { (denied(error)) }
            p { a.button href=(why(error, method)) { "Why?" } }
        } @else {
            p.notice role="alert" { (error.message()) }
        }
        (help::of_error(error, visit.is_some()))
        @if !request_id.is_empty() { p.small { "Request id: " code { (request_id) } } }
        p { a href=(HOME) { "To the first page" } }
    };
    let mut response = match visit {
        Some(visit) => (status, Html(whole_page(visit, &Content { has_actions: false, ..Content::new(title, body) })))
            .into_response(),
        None => outside(title, status, &body),
    };
    if let Some(delay) = error.retry_after() {
        response.headers_mut().insert(axum::http::header::RETRY_AFTER, delay.as_secs().max(1).into());
    }
    response
}

/// A page of someone who is not signed in.
pub(crate) fn outside(title: &str, status: StatusCode, body: &Markup) -> Response {
    let body = html! {
        header.top { a.brand href=(HOME) { span.mark aria-hidden="true" {} "Bowline" } }
        main.card id="content" tabindex="-1" { h1 { (title) } (body) }
    };
    (status, Html(document(title, "", &body))).into_response()
}

fn document(title: &str, class: &str, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (beginning(title, MAX_VALUE)) " · Bowline" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href={ (assets::PREFIX) (assets::style_name()) };
                script type="module" blocking="render" src={ (assets::PREFIX) (assets::script_name()) } { (PreEscaped("")) }
            }
            body class=(class) { (body) }
        }
    };
    markup.into_string()
}
