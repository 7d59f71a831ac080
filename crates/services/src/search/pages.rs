//! Pages of results: each kind has tokens of its own, which are bound to the query.

use bowline_contract::bowline::search::v1 as wire;
use bowline_core::{Error, Result, UidRange};
use bowline_libraries::names::{self as packages, PackageName};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest, SortKey};
use bowline_resources::names::{NameSearch, Position, TRIGRAM};
use bowline_store::ReadTx;
use bowline_vulnerabilities::advisories::search::{self as advisories_search, AdvisoryHit, By};
use prost::Message as _;

use super::kinds::Kind;
use super::{hits, pasted};

/// Default number of results of a kind.
const USUAL_SIZE: i32 = 10;

/// Pages are in the order of relevance alone.
const ORDERS: &[&[&str]] = &[&["relevance"]];

/// The page of one kind that a request is about.
pub(super) struct SectionPage {
    page: Page,
    /// The query in lower case.
    text: String,
}

/// The page of a request that its token is bound to: the query, the scope and the kind.
fn page_request(request: &wire::SearchRequest, kind: Kind) -> PageRequest {
    let bound = wire::SearchRequest {
        query: request.query.clone(),
        kinds: vec![kind.wire() as i32],
        scope: request.scope.clone(),
        page_size: 0,
        page_token: String::new(),
    };
    PageRequest {
        page_size: if request.page_size == 0 { USUAL_SIZE } else { request.page_size },
        page_token: request.page_token.clone(),
        filter: bound.encode_to_vec(),
        ..PageRequest::default()
    }
}

impl SectionPage {
    pub(super) fn new(call: &Authorized<wire::SearchRequest>, kind: Kind) -> Result<SectionPage> {
        let text = call.request().query.trim().to_ascii_lowercase();
        // Tokens of advisories are those of their list.
        let request = page_request(call.request(), kind);
        let request =
            if kind == Kind::Advisory { PageRequest { page_token: String::new(), ..request } } else { request };
        let page = Page::validate(call, &request, ORDERS, (0, Direction::Ascending))?;
        Ok(SectionPage { page, text })
    }

    /// One row more than the page has, to detect whether there is a next page.
    fn limit(&self) -> usize {
        self.page.size + 1
    }

    /// Shortens `rows` to the page; returns the token of the next page, empty if there is none.
    fn truncate<R, T>(
        &self,
        call: &Authorized<T>,
        rows: &mut Vec<R>,
        cursor: impl Fn(&R) -> (SortKey, String),
    ) -> String {
        if rows.len() <= self.page.size {
            return String::new();
        }
        rows.truncate(self.page.size);
        let last = rows.last().map(cursor);
        last.map(|(key, uid)| self.page.next_token(call, Some(key), uid)).unwrap_or_default()
    }
}

/// A section that has no further page.
pub(super) fn whole(kind: Kind, hits: Vec<wire::SearchHit>) -> wire::SearchSection {
    wire::SearchSection { kind: kind.wire() as i32, hits, next_page_token: String::new(), incomplete: false }
}

/// Resources whose names have the text.
pub(super) async fn names(
    tx: &mut ReadTx,
    call: &Authorized<wire::SearchRequest>,
    (kind, ranges): (Kind, &[UidRange]),
    page: &SectionPage,
) -> Result<wire::SearchSection> {
    let Some(named) = kind.named() else { return Ok(whole(kind, Vec::new())) };
    let after = page.page.cursor.as_ref().map(|cursor| match &cursor.key {
        Some(SortKey::Text(name)) => Position::Beginning(name.clone(), cursor.uid.clone()),
        Some(SortKey::Int(number)) => Position::Within(*number),
        None => Position::Within(0),
    });
    let mut search = NameSearch::new(named, &page.text, ranges)?;
    let mut rows = search.after(tx, after.as_ref(), page.limit()).await?;
    let next_page_token = page.truncate(call, &mut rows, |row| match &row.position {
        Position::Beginning(name, uid) => (SortKey::Text(name.clone()), uid.clone()),
        Position::Within(number) => (SortKey::Int(*number), row.uid.clone()),
    });
    let uids: Vec<String> = rows.into_iter().map(|row| row.uid).collect();
    let hits = hits::of_uids(tx, call, kind, &uids).await?;
    Ok(wire::SearchSection { next_page_token, incomplete: search.is_incomplete(), ..whole(kind, hits) })
}

/// Packages of the catalogue whose names have the text.
pub(super) async fn packages(
    tx: &mut ReadTx,
    call: &Authorized<wire::SearchRequest>,
    page: &SectionPage,
) -> Result<wire::SearchSection> {
    // The first character of the key is the part of the order that it belongs to.
    let (begins, after) = match &page.page.cursor {
        Some(cursor) => match &cursor.key {
            Some(SortKey::Text(key)) => {
                let name = key.get(1..).unwrap_or_default().to_owned();
                (key.starts_with('b'), (name, cursor.uid.clone()))
            }
            _ => return Err(Error::internal("a page token of packages has no name")),
        },
        None => (true, (String::new(), String::new())),
    };
    let mut rows: Vec<(char, PackageName)> = Vec::new();
    if begins {
        let beginning = packages::beginning(tx, &page.text, (&after.0, &after.1), page.limit()).await?;
        rows.extend(beginning.into_iter().map(|package| ('b', package)));
    }
    if rows.len() < page.limit() && page.text.chars().count() >= TRIGRAM {
        let after = if begins { ("", "") } else { (after.0.as_str(), after.1.as_str()) };
        let within = packages::within(tx, &page.text, after, page.limit() - rows.len()).await?;
        rows.extend(within.into_iter().map(|package| ('w', package)));
    }
    let next_page_token = page.truncate(call, &mut rows, |(part, package)| {
        (SortKey::Text(format!("{part}{}", package.folded)), package.id.clone())
    });
    let hits = rows.into_iter().map(|(_, package)| package_hit(package)).collect();
    Ok(wire::SearchSection { next_page_token, ..whole(Kind::Package, hits) })
}

pub(super) fn package_hit(package: PackageName) -> wire::SearchHit {
    let PackageName { id, name, ecosystem, folded: _ } = package;
    wire::SearchHit { uid: id, name, detail: ecosystem.into(), ..wire::SearchHit::default() }
}

/// Advisories in the ranges.
pub(super) async fn advisories(
    tx: &mut ReadTx,
    call: &Authorized<wire::SearchRequest>,
    ranges: &[UidRange],
    by: By<'_>,
) -> Result<wire::SearchSection> {
    let request = page_request(call.request(), Kind::Advisory);
    let (rows, next_page_token) = advisories_search::page(tx, call, ranges, by, request).await?;
    let hit = |AdvisoryHit { uid, name, detail }: AdvisoryHit| {
        let parent = uid.rsplit_once('/').map(|(parent, _)| parent.to_owned()).unwrap_or_default();
        wire::SearchHit { uid, name, parent, detail, ..wire::SearchHit::default() }
    };
    let mut hits: Vec<wire::SearchHit> = rows.into_iter().map(hit).collect();
    hits::name_parents(tx, call, Kind::Group, &mut hits).await?;
    Ok(wire::SearchSection { next_page_token, ..whole(Kind::Advisory, hits) })
}

/// Images with a digest, one for each repository in the ranges that has it.
pub(super) async fn images(
    tx: &mut ReadTx,
    call: &Authorized<wire::SearchRequest>,
    (digest, ranges): (&str, &[UidRange]),
    page: &SectionPage,
) -> Result<wire::SearchSection> {
    let after = page.page.cursor.as_ref().map_or("", |cursor| cursor.uid.as_str());
    let mut repos = pasted::repos_with(tx, digest, ranges, after, page.limit()).await?;
    let next_page_token = page.truncate(call, &mut repos, |repo| (SortKey::Int(0), repo.clone()));
    let hits = hits::of_images(tx, call, &repos, digest).await?;
    Ok(wire::SearchSection { next_page_token, ..whole(Kind::Image, hits) })
}
