//! Any method of the contract as a form: its page, and what is sent from there.
//!
//! A page shows the form (`GET`, with fields from the address) and calls nothing that changes something. A form that was
//! sent (`POST`) is previewed, or sent to the method, once; what was typed stays wherever it is not.

mod about;
mod edit;
mod fields;
mod form;
mod next;
mod outcome;
mod received;
mod resource;
mod typed;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::Response;
use bowline_contract::{Contract, MethodInfo};
use bowline_core::{Code, Error, Reason, Result};
use bowline_fronts::LogFields;
use bowline_pipeline::RequestOrigin;
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::app::{App, is_page};
use crate::components::section;
use crate::forms::{FormId, check};
use crate::guard::{Form, same};
use crate::pages::permits;
use crate::query::Query;
use crate::shell::{self, Content};
use crate::visit::Visit;

use about::elsewhere;
pub(crate) use about::{kind, title};
use fields::{Leaf, MASK, Node, fields, leaves};
use form::Sheet;
pub(crate) use form::unread;
use received::{ended, form_of};
use resource::{Reader, names_of, reader, takes_mask};
pub(crate) use typed::PREFIX;
use typed::{JSON, Typed, at, encode, lines};

/// Address of the form of a method.
pub(crate) const METHOD: &str = "/console/method";
/// Parameter with the full name of the method.
pub(crate) const NAME: &str = "name";
/// Parameter that asks for a form with the resource as it is.
pub(crate) const EDIT: &str = "edit";
/// Parameter that calls a method that only reads.
pub(crate) const SEND: &str = "send";
/// Parameter that says that a page of the session has the link.
pub(crate) const SEAL: &str = "seal";
/// Field with the page that comes after the method was called.
pub(crate) const NEXT: &str = "next";
/// Parameter of that page with the id of what was made.
pub(crate) const MADE: &str = "made";
/// Parameter of the page that comes after a test of an issuer, which says that the session tested it.
pub(crate) const TESTED: &str = "tested";
/// Field that says that a link of others filled in the form.
pub(crate) const UNREAD: &str = "unread";
/// Field with what a page showed of a resource.
const BASE: &str = "base";
/// Field that confirms a deletion.
const CONFIRM: &str = "confirm";
/// Maximum bytes of a form as it is sent: three for each byte of what is typed, at worst.
const MAX_FORM: usize = 768 << 10;
/// Maximum fields of a form: more than any method has.
const MAX_FIELDS: usize = 400;
/// Maximum bytes of what is typed. Shown again, each may take six.
const MAX_TYPED: usize = 256 << 10;

/// Whether a parameter says which form it is, or fills something in.
pub(crate) fn is_filled_in(name: &str) -> bool {
    name == NAME || name == EDIT || name.starts_with(PREFIX)
}

/// The method that a page or form names.
fn named<'c>(contract: &'c Contract, query: &Query) -> Result<&'c MethodInfo> {
    let name = query.get(NAME).unwrap_or_default();
    let known = contract.by_full_name(name).filter(|method| method.index < contract.methods().len());
    known.ok_or_else(|| {
        Error::new(Reason::NotFound, "There is no method of this name: open it from the list of methods.")
    })
}

/// `GET /console/method`: the form of a method, with fields of the address filled in.
pub(crate) async fn show(visit: &mut Visit) -> Result<Content> {
    let app = visit.app.clone();
    let contract = app.api.contract();
    let method = named(contract, &visit.query)?;
    if !app.api.can_send(method.index) {
        return Ok(elsewhere(visit, method));
    }
    let nodes = fields(contract, method);
    let leaves = leaves(&nodes);
    let reader = reader(contract, method);
    let mut typed = Typed::read(&visit.query, &leaves)?;
    if let Some(leaf) = leaves.iter().find(|leaf| leaf.holds_secret(typed.get(&leaf.path))) {
        visit.query = Query::of(&[(NAME, &method.full_name)]);
        return Err(Error::invalid_field(
            &leaf.path,
            "may hold a secret, which no address may have: type it into the form",
        ));
    }
    let mut base = None;
    if let (Some(reader), true) = (&reader, visit.query.get(EDIT).is_some()) {
        base = edit::start(visit, reader, &leaves, &mut typed).await?;
    }
    let names = if contract.is_confirmed(method) {
        names_of(visit, method, &typed.request(&leaves).unwrap_or_default()).await?
    } else {
        Vec::new()
    };
    let (is_filled, is_own) = filling(visit);
    let (by_address, is_asked) = (app.api.reads_by_address(method.index), visit.query.get(SEND).is_some());
    // What only reads is called by its address, but for that of another site: it costs the caller's limits.
    let is_led = visit.is_led_here && !is_own;
    let is_unread = is_filled && if by_address { is_asked && is_led } else { !is_own };
    let response =
        if by_address && is_asked && !is_led { Some(read(visit, method, &leaves, &typed).await) } else { None };
    let mut sheet = Sheet {
        method,
        nodes: &nodes,
        typed,
        base,
        back: back(&visit.query),
        next: String::new(),
        confirm: String::new(),
        names,
        violations: Vec::new(),
        is_unread,
        notice: None,
    };
    match response {
        None => Ok(page_of(visit, &sheet)),
        Some(Ok(response)) => {
            let mut content = page_of(visit, &sheet);
            content.body = html! { (response) (content.body) };
            Ok(content)
        }
        Some(Err(error)) if error.code() == Code::InvalidArgument => {
            sheet.mark(&error);
            Ok(page_of(visit, &sheet))
        }
        Some(Err(error)) => Err(error),
    }
}

/// Whether the address fills in fields, and whether a page of the session has this link.
fn filling(visit: &Visit) -> (bool, bool) {
    let filled: Vec<_> = visit.query.pairs().filter(|(name, value)| is_filled_in(name) && !value.is_empty()).collect();
    let is_filled = filled.iter().any(|(name, _)| name.starts_with(typed::PREFIX));
    let seal = visit.app.seal(&visit.key, filled.into_iter());
    (is_filled, same(&seal, visit.query.get(SEAL).unwrap_or_default()))
}

/// Calls a method that only reads, with the fields of the address.
async fn read(visit: &mut Visit, method: &MethodInfo, leaves: &[&Leaf], typed: &Typed) -> Result<Markup> {
    let payload = encode(visit.app.api.tables(), method, &typed.request(leaves)?)?;
    let response = visit.read(method.index, payload).await?;
    Ok(section("response", "Response", &outcome::shown(visit, method, response).await?))
}

fn page_of(visit: &Visit, sheet: &Sheet<'_>) -> Content {
    Content::new(title(sheet.method), sheet.render(visit)).below("/console/methods".to_owned(), "Methods")
}

/// The page to return to; empty for none.
fn back(query: &Query) -> String {
    query.get("back").filter(|path| is_page(path)).unwrap_or_default().to_owned()
}

/// `POST /console/method`: previews or sends what was typed.
pub(crate) async fn send(
    State(app): State<Arc<App>>,
    Extension(origin): Extension<RequestOrigin>,
    request: axum::extract::Request,
) -> Response {
    let (head, body) = request.into_parts();
    let headers = head.headers;
    // What it holds is given back with the form.
    let (form, _held) = match form_of(&app, &headers, &origin, body).await {
        Ok(read) => read,
        Err(error) => return shell::problem(None, &error, &origin.request_id, None),
    };
    let Some(found) = app.session(&headers) else { return ended(&app, &form) };
    let (name, back) = (form.fields().text(NAME), back(form.fields()));
    let query = Query::of(&[(NAME, &name), ("back", &back)]);
    let mut visit = Visit::new(app.clone(), found, METHOD, query, origin);
    let session = visit.session.clone();
    let made = match permits(&mut visit).await {
        Ok(()) => answer(&mut visit, &form).await,
        Err(error) => Err(error),
    };
    let mut response = match &made {
        Ok((status, content)) => shell::page(&visit, *status, content),
        Err(error) if error.code() == Code::Unauthenticated => {
            app.sessions.end(&visit.key);
            ended(&app, &form)
        }
        Err(error) => shell::problem(Some(&visit), error, visit.request_id(), visit.last_method()),
    };
    let failure = made.as_ref().err().map(LogFields::failure).unwrap_or_default();
    response.extensions_mut().insert(LogFields { principal: session.subject.clone(), ..failure });
    response
}

/// What a form asks for, and what it has.
struct Request<'a> {
    method: &'a MethodInfo,
    leaves: &'a [&'a Leaf],
    reader: Option<&'a Reader<'a>>,
    form: &'a Form,
}

async fn answer(visit: &mut Visit, form: &Form) -> Result<(StatusCode, Content)> {
    let app = visit.app.clone();
    let contract = app.api.contract();
    let method = named(contract, form.fields())?;
    if !app.api.can_send(method.index) {
        return Ok((StatusCode::OK, elsewhere(visit, method)));
    }
    let nodes: Vec<Node> = fields(contract, method);
    let leaves = leaves(&nodes);
    let reader = reader(contract, method);
    let mut typed = Typed::read(form.fields(), &leaves)?;
    typed.json = lines(form.fields().raw(JSON));
    let mut sheet = Sheet {
        method,
        nodes: &nodes,
        typed,
        base: base_of(form.fields().raw(BASE)),
        back: back(form.fields()),
        next: form.fields().get(NEXT).filter(|path| is_page(path)).unwrap_or_default().to_owned(),
        confirm: form.fields().text(CONFIRM),
        names: Vec::new(),
        violations: Vec::new(),
        is_unread: form.fields().get(UNREAD).is_some(),
        notice: None,
    };
    let id = match check(&app, (&visit.key, &visit.session), &method.full_name, form) {
        Ok(id) => id,
        Err(refusal) => {
            let sentence = refusal.sentence();
            sheet.notice = Some(html! { (sentence) " Nothing was sent. Check what you typed, and send it again." });
            return Ok((StatusCode::UNPROCESSABLE_ENTITY, page_of(visit, &sheet)));
        }
    };
    let request = Request { method, leaves: &leaves, reader: reader.as_ref(), form };
    let outcome = match form.fields().get("do") {
        Some("unlock") => id.unlock(&app).map(|()| Outcome::Unlocked),
        Some("code") => code(visit, &request, &sheet).await,
        Some("preview") => preview(visit, &request, &sheet).await,
        Some("call") => call(visit, &request, &mut sheet).await,
        Some("send") => execute(visit, &request, &mut sheet, &id).await,
        _ => Err(Error::invalid_field("do", "press a button of the form")),
    };
    Ok(match outcome {
        Ok(Outcome::Unlocked) => {
            sheet.notice = Some(html! { "Changes are unlocked for 15 minutes. Nothing was sent yet." });
            (StatusCode::OK, page_of(visit, &sheet))
        }
        Ok(Outcome::Shown(status, content)) => (status, content),
        Err(error) if error.code() == Code::Unauthenticated => return Err(error),
        Err(error) => {
            sheet.mark(&error);
            if status_of(&error).is_server_error() && visit.last_method() == Some(method.full_name.as_str()) {
                let hint = "It may have been done all the same: look before you send it again.";
                sheet.notice = sheet.notice.map(|notice| html! { (notice) p { (hint) } });
            }
            (status_of(&error), page_of(visit, &sheet))
        }
    })
}

enum Outcome {
    Unlocked,
    Shown(StatusCode, Content),
}

/// The status of a form that is shown again.
fn status_of(error: &Error) -> StatusCode {
    match error.code() {
        Code::InvalidArgument => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// The request that was typed, with the mask of an edit; or the page of an update that was lost.
enum Prepared {
    Ready(Value, Bytes),
    Lost(Content),
}

async fn prepare(visit: &mut Visit, asked: &Request<'_>, sheet: &Sheet<'_>) -> Result<Prepared> {
    let mut request = sheet.typed.request(asked.leaves)?;
    if let (Some(reader), Some(base), true) = (asked.reader, &sheet.base, sheet.typed.json.trim().is_empty()) {
        let id = reader.id_of_change.as_deref().and_then(|path| at(&request, path)).and_then(Value::as_str);
        let now = reader.read(visit, id.unwrap_or_default()).await?;
        let now = reader.shown(asked.leaves, &now);
        if !reader.different(asked.leaves, base, &now).is_empty() {
            return Ok(Prepared::Lost(edit::lost(visit, sheet, reader, asked.leaves, base, &now)));
        }
        let mask = reader.mask(asked.leaves, base, &sheet.typed)?;
        if let (Value::Object(members), true) = (&mut request, takes_mask(asked.method)) {
            members.insert(MASK.to_owned(), mask.into());
        }
    }
    let payload = encode(visit.app.api.tables(), asked.method, &request)?;
    Ok(Prepared::Ready(request, payload))
}

/// The lines that make the call, which is not made.
async fn code(visit: &mut Visit, asked: &Request<'_>, sheet: &Sheet<'_>) -> Result<Outcome> {
    let payload = match prepare(visit, asked, sheet).await? {
        Prepared::Ready(_, payload) => payload,
        Prepared::Lost(content) => return Ok(Outcome::Shown(StatusCode::CONFLICT, content)),
    };
    let lines = shell::lines(&visit.lines(asked.method.index, &payload));
    let hint = html! { p { "Nothing was sent. These lines change something when you run them." } (lines) };
    let body = html! { (section("lines", "Lines that call it", &hint)) (sheet.render(visit)) };
    let content = Content::new(title(asked.method), body).below("/console/methods".to_owned(), "Methods");
    Ok(Outcome::Shown(StatusCode::OK, content))
}

async fn preview(visit: &mut Visit, asked: &Request<'_>, sheet: &Sheet<'_>) -> Result<Outcome> {
    let payload = match prepare(visit, asked, sheet).await? {
        Prepared::Ready(_, payload) => payload,
        Prepared::Lost(content) => return Ok(Outcome::Shown(StatusCode::CONFLICT, content)),
    };
    let effects = visit.preview(asked.method.index, payload).await?;
    let body = html! { (outcome::preview(visit, &effects)) (sheet.render(visit)) };
    let content = Content::new(format!("Preview: {}", title(asked.method)), body);
    Ok(Outcome::Shown(StatusCode::OK, content.below("/console/methods".to_owned(), "Methods")))
}

/// Calls a method that only reads, and changes nothing in a locked session either. What a secret was is not shown again.
async fn call(visit: &mut Visit, asked: &Request<'_>, sheet: &mut Sheet<'_>) -> Result<Outcome> {
    let payload = encode(visit.app.api.tables(), asked.method, &sheet.typed.request(asked.leaves)?)?;
    let response = visit.read(asked.method.index, payload).await?;
    for leaf in asked.leaves.iter().filter(|leaf| leaf.may_hold_secret) {
        sheet.typed.set(&leaf.path, String::new());
    }
    if !sheet.next.is_empty() {
        return Ok(Outcome::Shown(StatusCode::OK, next::before_next(visit, asked.method, response, sheet).await?));
    }
    let response = section("response", "Response", &outcome::shown(visit, asked.method, response).await?);
    let mut content = page_of(visit, sheet);
    content.body = html! { (response) (content.body) };
    Ok(Outcome::Shown(StatusCode::OK, content))
}

async fn execute(visit: &mut Visit, asked: &Request<'_>, sheet: &mut Sheet<'_>, id: &FormId) -> Result<Outcome> {
    let (request, payload) = match prepare(visit, asked, sheet).await? {
        Prepared::Ready(request, payload) => (request, payload),
        Prepared::Lost(content) => return Ok(Outcome::Shown(StatusCode::CONFLICT, content)),
    };
    let app = visit.app.clone();
    let index = asked.method.index;
    if app.api.contract().is_confirmed(asked.method) {
        sheet.names = names_of(visit, asked.method, &request).await?;
        let typed = asked.form.fields().get(CONFIRM).unwrap_or_default();
        if !sheet.names.iter().any(|name| name.trim() == typed) {
            return Err(Error::invalid_field(CONFIRM, "must be the name or the id of what goes"));
        }
    }
    let unlocked = id.use_up(&app)?;
    let response = visit.change(index, payload, unlocked).await?;
    Ok(Outcome::Shown(StatusCode::OK, outcome::response(visit, asked.method, response, sheet).await?))
}

/// What a page showed, as a field of its form.
fn base_text(base: &Typed) -> String {
    let texts: Map<String, Value> = base.texts().map(|(path, text)| (path.to_owned(), text.into())).collect();
    Value::Object(texts).to_string()
}

/// What a form says that its page showed; absent where it was no edit.
fn base_of(text: &str) -> Option<Typed> {
    let texts: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    Some(Typed::of(texts))
}
