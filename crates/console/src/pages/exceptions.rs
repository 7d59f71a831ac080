use bowline_contract::bowline::libraries::v1::rpc::package_exceptions::{
    ApproveException, CreateException, EndException, ListExceptions, RequestException, SetExceptionApproval,
};
use bowline_contract::bowline::libraries::v1::rpc::package_freezes::{FreezePackages, LiftFreeze, ListFreezes};
use bowline_contract::bowline::libraries::v1::{
    ListPackageExceptionsRequest, ListPackageExceptionsResponse, ListPackageFreezesRequest, PackageException,
    PackageExceptionState, PackageFreeze, PackageFreezeList,
};
use bowline_core::Result;
use maud::{Markup, html};

use super::part;
use super::policies::{choose, ecosystem};
use crate::components::{action, refused, section, table};
use crate::shell::Content;
use crate::values::{badge, code, text, time, yes};
use crate::visit::Visit;

/// Versions that are installed although something withholds them, and freezes of an organization.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let parent = visit.scope();
    if parent.is_empty() {
        return Ok(choose("Exceptions and freezes"));
    }
    let excepted = part(visit.call::<ListExceptions>(ListPackageExceptionsRequest { parent: parent.clone() }).await)?;
    let of_exceptions = visit.last_method().map(str::to_owned);
    let frozen = part(visit.call::<ListFreezes>(ListPackageFreezesRequest { parent: parent.clone() }).await)?;
    let of_freezes = visit.last_method().map(str::to_owned);
    let body = html! {
        (section("exceptions", "Exceptions", &match &excepted {
            Ok(response) => exceptions(visit, &parent, response),
            Err(error) => refused(error, of_exceptions.as_deref()),
        }))
        (section("freezes", "Freezes", &match &frozen {
            Ok(list) => freezes(visit, &parent, list),
            Err(error) => refused(error, of_freezes.as_deref()),
        }))
    };
    Ok(Content::new("Exceptions and freezes", body))
}

fn exceptions(visit: &Visit, parent: &str, response: &ListPackageExceptionsResponse) -> Markup {
    let rows: Vec<_> = response.exceptions.iter().map(|exception| row(visit, exception)).collect();
    let heads = ["Version", "State", "Also", "Why", "Requested by", "Approved by", "Until", "Actions"];
    html! {
        @if response.second_person { p { "Someone other than who requested an exception approves it." } }
        @if rows.is_empty() { p.empty { "There is no exception here." } }
        @else { (table("Exceptions", &heads, &rows)) }
        p {
            (action::<RequestException>(visit, "Request an exception", &[("parent", parent)])) " "
            (action::<CreateException>(visit, "Create an exception", &[("parent", parent)])) " "
            (action::<SetExceptionApproval>(visit, "Set who approves", &[("parent", parent)]))
        }
    }
}

fn row(visit: &Visit, exception: &PackageException) -> Vec<Markup> {
    let is_requested = exception.state() == PackageExceptionState::Requested;
    let state = if is_requested { badge("plain", "requested") } else { badge("good", "in force") };
    let also = [(exception.bypass_malware, "malware"), (exception.bypass_freeze, "freeze")];
    let also: Vec<&str> = also.into_iter().filter_map(|(is_set, word)| is_set.then_some(word)).collect();
    let uid = [("uid", &*exception.uid)];
    vec![
        code(&exception.purl),
        state,
        text(&also.join(", ")),
        text(&exception.justification),
        code(&exception.requested_by),
        code(&exception.approved_by),
        time(exception.expire_time.as_ref()),
        html! {
            @if is_requested { (action::<ApproveException>(visit, "Approve", &uid)) " " }
            (action::<EndException>(visit, if is_requested { "Decline" } else { "End" }, &uid))
        },
    ]
}

fn freezes(visit: &Visit, parent: &str, list: &PackageFreezeList) -> Markup {
    let row = |freeze: &PackageFreeze| {
        vec![
            ecosystem(freeze.ecosystem),
            time(freeze.cutoff_time.as_ref()),
            yes(freeze.includes_own),
            text(&freeze.justification),
            code(&freeze.frozen_by),
            time(freeze.freeze_time.as_ref()),
        ]
    };
    let rows: Vec<_> = list.freezes.iter().map(row).collect();
    html! {
        @if rows.is_empty() { p.empty { "Nothing is frozen here." } }
        @else { (table("Freezes", &["Ecosystem", "Nothing later than", "Own packages too", "Why", "Set by", "Set"], &rows)) }
        p {
            (action::<FreezePackages>(visit, "Freeze", &[("parent", parent)])) " "
            @if !list.freezes.is_empty() { (action::<LiftFreeze>(visit, "Lift", &[("parent", parent)])) }
        }
    }
}
