//! The pages: what each one calls and shows.

mod access;
mod advisories;
mod attention;
pub(crate) mod audit;
pub(crate) mod audit_live;
mod audit_verify;
mod bindings;
mod checklist;
mod decisions;
mod exceptions;
mod find;
mod findings;
pub(crate) mod first_run;
mod groups;
mod home;
mod identities;
mod image_changes;
mod image_policies;
mod images;
mod joining;
mod matches;
mod me;
mod methods;
mod operator;
mod overview;
mod packages;
mod policies;
mod provider;
mod repositories;
mod roles;
mod search;
mod subscriptions;
mod why;
pub(crate) mod wizard;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use bowline_contract::v1::common::UidpFilter;
use bowline_contract::v2::iam::ListGroupsRequest;
use bowline_contract::v2::iam::rpc::groups_service::ListGroups;
use bowline_core::{Code, Detail, Error, Reason, Result};
use bowline_fronts::LogFields;
use bowline_pipeline::RequestOrigin;
use futures_util::future::BoxFuture;

use crate::app::App;
use crate::export;
use crate::guard::{is_from_here, is_of_a_page};
use crate::method;
use crate::permits::{OfServer, Permits};
use crate::query::Query;
use crate::shell::{self, Content};
use crate::sign_in::{see_other, to_sign_in};
use crate::visit::Visit;

/// Makes the content of a page.
type Render = for<'v> fn(&'v mut Visit) -> BoxFuture<'v, Result<Content>>;

/// A page: its address and what makes its content.
pub(crate) struct Page {
    pub(crate) path: &'static str,
    render: Render,
}

macro_rules! page {
    ($path:literal, $render:path) => {
        Page { path: $path, render: |visit| Box::pin($render(visit)) }
    };
}

/// All pages, by their address.
pub(crate) const PAGES: &[Page] = &[
    page!("/console/", home::show),
    page!("/console/access", access::effective),
    page!("/console/advisories", advisories::list),
    page!("/console/advisory", advisories::show),
    page!("/console/audit", audit::list),
    page!("/console/audit-entry", audit::show),
    page!("/console/audit-verify", audit_verify::show),
    page!("/console/bindings", bindings::list),
    page!("/console/blocked", policies::blocked),
    page!("/console/compare", image_changes::compare),
    page!("/console/decision", decisions::show),
    page!("/console/deliveries", subscriptions::deliveries),
    page!("/console/delivery", subscriptions::delivery),
    page!("/console/exceptions", exceptions::show),
    page!("/console/find", find::images),
    page!("/console/findings", findings::list),
    page!("/console/first-run", first_run::show),
    page!("/console/first-run/person", first_run::person),
    page!("/console/first-run/provider", first_run::provider),
    page!("/console/first-run/save", first_run::save),
    page!("/console/first-run/test", first_run::test),
    page!("/console/group", groups::show),
    page!("/console/groups", groups::list),
    page!("/console/help", crate::help::show),
    page!("/console/history", audit::history),
    page!("/console/home", overview::show),
    page!("/console/identities", identities::list),
    page!("/console/identities/new", wizard::start),
    page!("/console/identities/new/bind", wizard::bind),
    page!("/console/identities/new/claims", wizard::claims),
    page!("/console/identities/new/connect", wizard::connect),
    page!("/console/identities/new/create", wizard::create),
    page!("/console/identities/new/facts", wizard::facts),
    page!("/console/identities/new/role", wizard::roles),
    page!("/console/identity", identities::show),
    page!("/console/image", images::show),
    page!("/console/image-packages", images::packages),
    page!("/console/image-policies", image_policies::list),
    page!("/console/image-verdicts", image_policies::verdicts),
    page!("/console/invites", joining::invites),
    page!("/console/licenses", find::licenses),
    page!("/console/matches", matches::list),
    page!("/console/me", me::show),
    page!("/console/method", method::show),
    page!("/console/methods", methods::list),
    page!("/console/operator", operator::show),
    page!("/console/organizations", operator::organizations),
    page!("/console/package", packages::versions),
    page!("/console/packages", packages::list),
    page!("/console/policies", policies::list),
    page!("/console/policy", image_changes::policy),
    page!("/console/posture", findings::posture),
    page!("/console/provider", provider::show),
    page!("/console/providers", joining::providers),
    page!("/console/repositories", repositories::list),
    page!("/console/repository", repositories::show),
    page!("/console/role", roles::show),
    page!("/console/roles", roles::list),
    page!("/console/search", search::show),
    page!("/console/subscriptions", subscriptions::list),
    page!("/console/tag-history", image_changes::tag_history),
    page!("/console/tags", repositories::tags),
    page!("/console/unindexed-sboms", find::unindexed),
    page!("/console/upstreams", findings::upstreams),
    page!("/console/why", why::show),
];

/// Serves a page to a signed-in caller; leads others to sign-in.
pub(crate) async fn show(
    page: &'static Page,
    State(app): State<Arc<App>>,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let address = uri.path_and_query().map_or(page.path, |whole| whole.as_str()).to_owned();
    let Some(found) = app.session(&headers) else {
        return to_sign_in(&app, &headers, &address, false);
    };
    let query = match Query::read(uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(error) => return shell::problem(None, &error, &origin.request_id, None),
    };
    let mut visit = Visit::new(app.clone(), found, page.path, query, origin);
    visit.is_led_here = !is_from_here(&headers);
    if !is_of_a_page(&headers) && is_filled_step(page.path, &visit.query) {
        visit.query.set(method::UNREAD, "true");
    }
    let made = made(page, &mut visit).await;
    // The page shows the id of its own request, not those of its calls.
    let failure = made.as_ref().err().map(LogFields::failure).unwrap_or_default();
    let mut response = made.unwrap_or_else(|error| failed(&visit, &error, &headers, &address));
    let principal = visit.session.subject.clone();
    response.extensions_mut().insert(LogFields { principal, ..failure });
    response
}

/// Whether a page is a step towards a change, and its address fills something in.
fn is_filled_step(path: &str, query: &Query) -> bool {
    let is_step = path.starts_with(wizard::START) || path.starts_with(first_run::FIRST_RUN);
    is_step && query.pairs().any(|(name, value)| !matches!(name, "in" | "platform") && !value.is_empty())
}

/// The page, or its data in the format of the query, within what the session and the server may make at a time.
async fn made(page: &'static Page, visit: &mut Visit) -> Result<Response> {
    permits(visit).await?;
    let content = content_of(page, visit).await?;
    match export::requested(visit)? {
        Some(format) => export::file(visit, format).await,
        None => Ok(shell::page(visit, StatusCode::OK, &content)),
    }
}

/// Gives a page or form its permits, which it keeps until it is made, and so does what it does on other threads.
///
/// # Errors
/// RESOURCE_EXHAUSTED: too many wait. DEADLINE_EXCEEDED: none was free in time. UNAUTHENTICATED: the session ended
/// meanwhile.
pub(crate) async fn permits(visit: &mut Visit) -> Result<()> {
    let (app, session) = (visit.app.clone(), visit.session.clone());
    let waiting = session.queue.clone().try_acquire_owned().map_err(|_| too_many_pages())?;
    let of_session = visit.in_time(session.pages.clone().acquire_owned()).await?;
    let of_server = if session.is_operator {
        OfServer::Operators { _permit: visit.in_time(app.pages_of_operators.clone().acquire_owned()).await? }
    } else {
        OfServer::Shared { _turn: visit.in_time(app.pages.take(session.tenant())).await? }
    };
    if session.has_ended() {
        return Err(Error::new(Reason::Unauthenticated, "Unauthenticated: the session has ended"));
    }
    visit.held = Some(Arc::new(Permits { _waiting: waiting, _of_session: of_session, _of_server: of_server }));
    Ok(())
}

fn too_many_pages() -> Error {
    let text = "Resource exhausted: this session waits for too many pages; try again when some of them are there";
    Error::new(Reason::RateLimited, text).with(Detail::RetryAfter(Duration::from_secs(1)))
}

async fn content_of(page: &'static Page, visit: &mut Visit) -> Result<Content> {
    let content = (page.render)(visit).await?;
    if visit.query.get("format").is_none() {
        name_scope(visit).await?;
    }
    Ok(content)
}

/// Finds the name of the group that the page is limited to. Without the right to list it, its id is shown.
async fn name_scope(visit: &mut Visit) -> Result<()> {
    let scope = visit.scope();
    if scope.is_empty() || visit.is_scope_resolved {
        return Ok(());
    }
    let uidp = UidpFilter { ids: vec![scope], ..UidpFilter::default() };
    let request = ListGroupsRequest { uidp: Some(uidp), page_size: 1, ..ListGroupsRequest::default() };
    let named = part(visit.call::<ListGroups>(request).await)?;
    visit.is_scope_resolved = true;
    visit.scope_name = named.ok().and_then(|response| response.groups.into_iter().next()).map(|group| group.name);
    Ok(())
}

fn failed(visit: &Visit, error: &Error, headers: &HeaderMap, address: &str) -> Response {
    match error.code() {
        Code::Unauthenticated => {
            visit.app.sessions.end(&visit.key);
            to_sign_in(&visit.app, headers, address, true)
        }
        // Tokens of pages expire, and are bound to the filters.
        Code::InvalidArgument if visit.query.get("page").is_some() => {
            see_other(&visit.query.address(visit.path, &["page", "notice"], &[("notice", "page")]))
        }
        _ => shell::problem(Some(visit), error, visit.request_id(), visit.last_method()),
    }
}

/// An address below the console that has no page.
pub(crate) async fn missing(
    State(app): State<Arc<App>>,
    Extension(origin): Extension<RequestOrigin>,
    headers: HeaderMap,
) -> Response {
    let error = Error::new(Reason::NotFound, "There is no page at this address.");
    let visit = app.session(&headers).map(|found| Visit::new(app, found, "", Query::default(), origin));
    shell::problem(visit.as_ref(), &error, "", None)
}

/// The parameter that names what a page is about.
///
/// # Errors
/// INVALID_ARGUMENT without it.
fn required(visit: &Visit, name: &str) -> Result<String> {
    let value = visit.query.get(name).map(str::to_owned);
    value.ok_or_else(|| Error::invalid_field(name, "must not be empty; open this page from a list"))
}

/// Everything in a group and below, or everything that is visible.
fn below(scope: &str) -> Option<UidpFilter> {
    (!scope.is_empty()).then(|| UidpFilter { descendants_of: scope.to_owned(), ..UidpFilter::default() })
}

/// The UIDP of what contains a resource; empty for an organization.
fn parent(uid: &str) -> &str {
    uid.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The group or repository that the page is about: `uid` where it may be a repository, else the chosen group.
fn group_or_repository(visit: &Visit) -> Option<String> {
    let uid = visit.query.text("uid");
    Some(if uid.is_empty() { visit.scope() } else { uid }).filter(|scope| !scope.is_empty())
}

/// A part of a page that may be refused while the others are shown. Failures that end the page are returned.
fn part<T>(result: Result<T>) -> Result<Result<T>> {
    match result {
        Err(error) if error.code() == Code::Unauthenticated => Err(error),
        other => Ok(other),
    }
}
