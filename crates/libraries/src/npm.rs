//! npm's packages, by name instead of by id: names with a scope need no path.

use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::npm_packages::{List, ListVersions};
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Cursor, Direction, Handlers, Page, PageRequest, SortKey, handler};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Sql, Value, like};
use prost::Message;

use super::ecosystems::Language;
use super::hosted::Readable;
use super::search::{self, ArtifactPage, ArtifactRow, Search, With};
use super::versions::{self, Sources, VersionRow};
use super::{base64_of_hex, may_look, page_size};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<List>(handler!(list)).read::<ListVersions>(handler!(list_versions))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::NpmPackageFilter>) -> Result<v1::NpmPackageList> {
    let request = call.request();
    let page = PageRequest {
        page_size: page_size(request.page_size)?,
        page_token: request.page_token.clone(),
        filter: v1::NpmPackageFilter { page_size: 0, page_token: String::new(), ..request.clone() }.encode_to_vec(),
        ..PageRequest::default()
    };
    let part = request.query.to_lowercase();
    let with = with(&request.source_types);
    let found = match with {
        _ if !may_look(call) => ArtifactPage::nothing(),
        None => ArtifactPage::nothing(),
        Some(with) => {
            let search = Search {
                ecosystems: vec![(Language::JavaScript, with)],
                part,
                cuda_version: String::new(),
                hosted: Readable::nothing(),
            };
            if search.part.is_empty() {
                search.page(tx, call, &page).await?
            } else {
                ranked(tx, call, &search, &page).await?
            }
        }
    };
    Ok(v1::NpmPackageList {
        items: found.items.iter().map(package).collect(),
        next_page_token: found.next_page_token,
        total_count: found.total,
    })
}

/// The narrowest condition that covers these sources; what covers more is everything.
fn with(sources: &[i32]) -> Option<With> {
    let has = |source: v1::NpmSourceType| sources.contains(&(source as i32));
    let (internal, remediated, upstream) = (
        has(v1::NpmSourceType::Internal),
        has(v1::NpmSourceType::InternalRemediated),
        has(v1::NpmSourceType::UpstreamRegistry),
    );
    match (internal, remediated, upstream) {
        (false, false, false) if sources.is_empty() => Some(With::Any),
        // Every version has a source, so none is of unknown origin.
        (false, false, false) => None,
        (false, true, false) => Some(With::Remediated),
        (true, _, false) => Some(With::Built),
        (false, false, true) => Some(With::Upstream),
        (_, _, true) => Some(With::Any),
    }
}

fn package(row: &ArtifactRow) -> v1::NpmPackage {
    let source = match row {
        row if row.is_remediated => v1::NpmSourceType::InternalRemediated,
        row if row.built_count > 0 => v1::NpmSourceType::Internal,
        _ => v1::NpmSourceType::UpstreamRegistry,
    };
    v1::NpmPackage {
        package_name: row.name.clone(),
        latest_version: row.latest.clone(),
        description: row.description.clone(),
        license: row.license.clone(),
        version_count: row.version_count,
        source_type: source as i32,
    }
}

/// The page of a search in the order of relevance: the name itself, names that begin with the text, then the others.
async fn ranked<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    search: &Search,
    request: &PageRequest,
) -> Result<ArtifactPage> {
    let page = Page::validate(call, request, search::ORDERS, (0, Direction::Ascending))?;
    let mut rest = Vec::new();
    let (mut rank, mut after) = match &page.cursor {
        Some(Cursor { key: Some(SortKey::Text(folded)), uid, .. }) => {
            let (rank, id) =
                uid.split_once(' ').ok_or_else(|| Error::internal("a page token of packages holds no rank"))?;
            (rank.parse::<usize>().map_err(Error::internal)?, Some((folded.clone(), id.to_owned())))
        }
        Some(_) => return Err(Error::internal("a page token of packages has no name")),
        None => (0, None),
    };
    while rank < RANKS && rest.len() <= page.size {
        let wanted = page.size + 1 - rest.len();
        let rows = search.of_rank(tx, rank, after.take(), wanted).await?;
        rest.extend(rows.into_iter().map(|row| (rank, row)));
        rank += 1;
    }
    let total = search.total_of_part(tx).await?;
    let mut next_page_token = String::new();
    if rest.len() > page.size {
        rest.truncate(page.size);
        if let Some((rank, last)) = rest.last() {
            let key = SortKey::Text(last.folded.clone());
            next_page_token = page.next_token(call, Some(key), format!("{rank} {}", last.id));
        }
    }
    Ok(ArtifactPage { items: rest.into_iter().map(|(_, row)| row).collect(), next_page_token, total, skipped: 0 })
}

const RANKS: usize = 3;

impl Search {
    /// What matches as well as this, by name.
    async fn of_rank(
        &self,
        tx: &mut ReadTx,
        rank: usize,
        after: Option<(String, String)>,
        wanted: usize,
    ) -> Result<Vec<ArtifactRow>> {
        let (start, anywhere) = (like(&self.part, true), like(&self.part, false));
        let mut sql = Sql::new("SELECT ");
        sql.push(search::COLUMNS);
        let trigram = if rank == 2 { search::rarest(tx, &self.part).await? } else { None };
        let (language, with) =
            self.ecosystems.first().copied().ok_or_else(|| Error::internal("a search without a place"))?;
        if let Some(trigram) = &trigram {
            sql.push(" FROM library_trigrams t JOIN library_artifacts a ON a.id = t.artifact");
            sql.bind(" WHERE t.trigram = ", trigram).bind(" AND t.ecosystem = ", language.number());
        } else {
            sql.bind(" FROM library_artifacts a WHERE a.ecosystem = ", language.number());
        }
        sql.push(with.condition());
        let (folded, id) = if trigram.is_some() { ("t.folded", "t.artifact") } else { ("a.folded", "a.id") };
        match rank {
            0 => sql.bind(" AND a.folded = ", &self.part),
            // Names with a prefix are adjacent in the index, which not every engine infers from `LIKE`.
            1 => sql
                .bind(" AND a.folded > ", &self.part)
                .bind(" AND a.folded LIKE ", &start)
                .push(" ESCAPE '\\'")
                .bind(" AND a.folded < ", Value::Text(&self.part))
                .push(" || '\u{10FFFF}'"),
            _ => {
                sql.bind(&format!(" AND {folded} LIKE "), &anywhere).push(" ESCAPE '\\'");
                sql.bind(&format!(" AND {folded} NOT LIKE "), &start).push(" ESCAPE '\\'")
            }
        };
        if let Some((name, uid)) = &after {
            sql.bind(&format!(" AND ({folded}, {id}) > ("), name).bind(", ", uid).push(")");
        }
        sql.push(&format!(" ORDER BY {folded}, {id}")).bind(" LIMIT ", wanted as i64);
        tx.query(&sql.text, &sql.params, ArtifactRow::read).await
    }

    async fn total_of_part(&self, tx: &mut ReadTx) -> Result<i64> {
        let trigram = search::rarest(tx, &self.part).await?;
        self.total(tx, trigram.as_deref()).await
    }
}

async fn list_versions(
    tx: &mut ReadTx,
    call: &Authorized<v1::NpmPackageVersionFilter>,
) -> Result<v1::NpmPackageVersionList> {
    let request = call.request();
    let rest = v1::NpmPackageVersionFilter { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: page_size(request.page_size)?,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let id = Language::JavaScript.artifact_id(&request.package_name);
    // A name of the form `scope:name` would make the id of another package.
    let is_name = Language::JavaScript.validate_name(&request.package_name).is_ok();
    let artifact = if may_look(call) && is_name { search::find(tx, &id).await? } else { None };
    let artifact =
        artifact.ok_or_else(|| Error::not_found(bowline_resources::kinds::ARTIFACT, &request.package_name))?;
    let sources = if request.source_types.is_empty() { Sources::All } else { Sources::Of(&request.source_types) };
    let listing = versions::page(tx, call, &artifact, sources, &page).await?;
    Ok(v1::NpmPackageVersionList {
        items: listing.items.iter().map(|row| version(&artifact, row)).collect(),
        next_page_token: listing.next_page_token,
        total_count: listing.total_count,
    })
}

fn version(artifact: &ArtifactRow, row: &VersionRow) -> v1::NpmPackageVersion {
    let integrity = base64_of_hex(&row.sha512).map(|digest| format!("sha512-{digest}"));
    v1::NpmPackageVersion {
        package_name: artifact.name.clone(),
        version: row.version.clone(),
        license: row.license.clone(),
        created_at: timestamp(row.created_at),
        file_size: row.size_bytes,
        file_count: row.file_count,
        source_type: row.source,
        sha512: row.sha512.clone(),
        updated_at: timestamp(row.updated_at),
        upstream_published_date: row.published_at.and_then(timestamp),
        integrity: integrity.unwrap_or_default(),
        version_metadata: row.metadata.clone(),
        // Nothing is scanned here: only what the block list names counts as examined.
        malware_scanned: row.is_malware,
        malware_malicious: row.is_malware,
        ..v1::NpmPackageVersion::default()
    }
}
