//! The search over all named resources.
//!
//! [`form`] recognizes the form of a query, [`kinds`] has the scopes where the caller may list each kind. Results come
//! from the names of [`bowline_resources`], the catalogue of packages and the advisories. Hidden resources are left out before a page is cut, so
//! that a response does not depend on them.

mod form;
mod hits;
mod kinds;
mod pages;
mod pasted;

use bowline_contract::bowline::search::v1 as wire;
use bowline_contract::bowline::search::v1::rpc::search::Search;
use bowline_core::{Error, Result, UidRange};
use bowline_libraries::names as packages;
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_store::ReadTx;
use bowline_vulnerabilities::advisories::search::By;

use self::form::{Form, ImageReference};
use self::kinds::Kind;
use self::pages::SectionPage;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<Search>(handler!(search))
}

async fn search(tx: &mut ReadTx, call: &Authorized<wire::SearchRequest>) -> Result<wire::SearchResponse> {
    let request = call.request();
    let kinds = Kind::requested(&request.kinds)?;
    if !request.page_token.is_empty() && kinds.len() != 1 {
        let why = "is the token of one kind: name that kind alone in kinds";
        return Err(Error::invalid_field("pageToken", why));
    }
    if request.query.trim().is_empty() {
        return Err(Error::invalid_field("query", "must have a character besides spaces"));
    }
    let form = Form::of(&request.query);
    let mut sections = Vec::new();
    for kind in kinds {
        let ranges = kind.visible(call, &request.scope);
        let page = SectionPage::new(call, kind)?;
        let section = section(tx, call, &form, (kind, &ranges), &page).await?;
        sections.extend(section.filter(|section| !section.hits.is_empty() || section.incomplete));
    }
    Ok(wire::SearchResponse { form: wire_form(&form) as i32, sections })
}

fn wire_form(form: &Form) -> wire::SearchForm {
    match form {
        Form::Text => wire::SearchForm::Text,
        Form::Digest(_) => wire::SearchForm::Digest,
        Form::Vulnerability(_) => wire::SearchForm::Vulnerability,
        Form::PackageUrl(_) => wire::SearchForm::PackageUrl,
        Form::Uidp(_) => wire::SearchForm::Uidp,
        Form::Reference(_) => wire::SearchForm::ImageReference,
    }
}

/// The results of one kind; absent where the query cannot have any.
async fn section(
    tx: &mut ReadTx,
    call: &Authorized<wire::SearchRequest>,
    form: &Form,
    (kind, ranges): (Kind, &[UidRange]),
    page: &SectionPage,
) -> Result<Option<wire::SearchSection>> {
    if ranges.is_empty() {
        return Ok(None);
    }
    let section = match (form, kind) {
        (Form::Text, Kind::Image) => return Ok(None),
        (Form::Text, Kind::Package) => pages::packages(tx, call, page).await?,
        (Form::Text, Kind::Advisory) => {
            pages::advisories(tx, call, ranges, By::Words(call.request().query.trim())).await?
        }
        (Form::Text, _) => pages::names(tx, call, (kind, ranges), page).await?,
        (Form::Digest(digest), Kind::Image) => pages::images(tx, call, (digest, ranges), page).await?,
        (Form::Vulnerability(id), Kind::Advisory) => vulnerability(tx, call, ranges, id).await?,
        (Form::PackageUrl(purl), Kind::Package) => {
            let package = packages::of_purl(tx, purl).await?;
            pages::whole(kind, package.map(pages::package_hit).into_iter().collect())
        }
        (Form::PackageUrl(purl), Kind::Advisory) => match packages::name_of_purl(purl) {
            Some(name) => pages::advisories(tx, call, ranges, By::Package(&name)).await?,
            None => return Ok(None),
        },
        (Form::Uidp(uid), _) if ranges.iter().any(|range| range.contains(uid)) => {
            if pasted::kind_of(tx, call, uid).await? != Some(kind) {
                return Ok(None);
            }
            pages::whole(kind, hits::of_uids(tx, call, kind, std::slice::from_ref(uid)).await?)
        }
        (Form::Reference(reference), Kind::Repo | Kind::Tag | Kind::Image) => {
            referenced(tx, call, (kind, ranges), reference).await?
        }
        _ => return Ok(None),
    };
    Ok(Some(section))
}

/// Advisories about a vulnerability, or the one that has this id.
async fn vulnerability(
    tx: &mut ReadTx,
    call: &Authorized<wire::SearchRequest>,
    ranges: &[UidRange],
    id: &str,
) -> Result<wire::SearchSection> {
    let section = pages::advisories(tx, call, ranges, By::Alias(id)).await?;
    if !section.hits.is_empty() {
        return Ok(section);
    }
    let (prefix, rest) = id.split_once('-').unwrap_or((id, ""));
    pages::advisories(tx, call, ranges, By::OwnId(&format!("{prefix}-{}", rest.to_ascii_lowercase()))).await
}

/// What an image reference names of this kind, as far as it lies in the ranges.
async fn referenced(
    tx: &mut ReadTx,
    call: &Authorized<wire::SearchRequest>,
    (kind, ranges): (Kind, &[UidRange]),
    reference: &ImageReference,
) -> Result<wire::SearchSection> {
    let named = pasted::resolve_image_reference(tx, reference).await?;
    let named = named.filter(|named| ranges.iter().any(|range| range.contains(&named.repo)));
    let Some(named) = named else { return Ok(pages::whole(kind, Vec::new())) };
    let repo = std::slice::from_ref(&named.repo);
    let hits = match kind {
        Kind::Repo => hits::of_uids(tx, call, kind, repo).await?,
        Kind::Tag => hits::of_uids(tx, call, kind, named.tag.as_slice()).await?,
        _ => match &named.digest {
            Some(digest) => hits::of_images(tx, call, repo, digest).await?,
            None => Vec::new(),
        },
    };
    Ok(pages::whole(kind, hits))
}
