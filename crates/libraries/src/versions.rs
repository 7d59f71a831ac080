//! Versions of an artifact, the highest first.

use bowline_contract::v1::libraries::SourceType;
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::{Authorized, Cursor, Direction, Page, PageRequest, SortKey};
use bowline_resources::list::Listing;
use bowline_store::{ReadTx, Row, Sql};

use super::malware;
use super::search::ArtifactRow;

/// A version from one source.
pub(super) struct VersionRow {
    pub(super) version: String,
    pub(super) source: i32,
    pub(super) description: String,
    pub(super) license: String,
    pub(super) size_bytes: i64,
    pub(super) published_at: Option<Micros>,
    pub(super) file_count: i64,
    pub(super) metadata: String,
    pub(super) created_at: Micros,
    pub(super) updated_at: Micros,
    pub(super) sort_key: Vec<u8>,
    /// Whether the malware list has it.
    pub(super) is_malware: bool,
    /// SHA-512 of its first file, in hex.
    pub(super) sha512: String,
}

const COLUMNS: &str = "v.version, v.source, v.description, v.license, v.size_bytes, v.published_at, v.file_count, v.metadata, \
     v.created_at, v.updated_at, v.sort_key, ";
const SHA512: &str = "(SELECT f.sha512 FROM library_files f WHERE f.artifact = v.artifact AND f.version = v.version \
                       AND f.source = v.source ORDER BY f.name LIMIT 1)";

/// Versions that a group published, as those of the catalogue are: from no source that the contract names.
const HOSTED: &str = "SELECT h.version, CAST(0 AS BIGINT) AS source, '' AS description, h.license,
    (SELECT CAST(coalesce(sum(f.size_bytes), 0) AS BIGINT) FROM hosted_files f WHERE f.repository = h.repository
       AND f.package = h.package AND f.sort_key = h.sort_key AND f.deleted_at IS NULL) AS size_bytes,
    CAST(NULL AS BIGINT) AS published_at,
    (SELECT count(*) FROM hosted_files f WHERE f.repository = h.repository AND f.package = h.package
       AND f.sort_key = h.sort_key AND f.deleted_at IS NULL) AS file_count,
    '' AS metadata, h.created_at, h.created_at AS updated_at, h.sort_key FROM hosted_versions h";

impl VersionRow {
    fn read(row: &Row<'_>) -> Result<VersionRow> {
        Ok(VersionRow {
            version: row.text(0)?,
            source: row.int(1)? as i32,
            description: row.text(2)?,
            license: row.text(3)?,
            size_bytes: row.int(4)?,
            published_at: row.opt_int(5)?,
            file_count: row.int(6)?,
            metadata: row.text(7)?,
            created_at: row.int(8)?,
            updated_at: row.int(9)?,
            sort_key: row.bytes(10)?,
            is_malware: false,
            sha512: row.opt_text(11)?.unwrap_or_default(),
        })
    }

    /// Artifact, version and source, joined by colons; of packages of groups, which have no source, the first two.
    pub(super) fn id(&self, artifact: &ArtifactRow) -> String {
        if artifact.is_hosted() {
            return format!("{}:{}", artifact.id, self.version);
        }
        let source = SourceType::try_from(self.source).unwrap_or_default().as_str_name();
        format!("{}:{}:{}", artifact.id, self.version, source.trim_start_matches("SOURCE_TYPE_"))
    }
}

/// Filter of versions by source.
#[derive(Clone, Copy)]
pub(super) enum Sources<'a> {
    All,
    Built,
    /// From one of these sources, of which there must be one at least.
    Of(&'a [i32]),
}

const ORDERS: &[&[&str]] = &[&["version"], &["create_time", "created_at", "createTime", "createdAt"]];

fn conditions<'a>(sql: &mut Sql<'a>, artifact: &'a ArtifactRow, sources: Sources<'_>) {
    if artifact.is_hosted() {
        sql.push(" FROM (").push(HOSTED);
        sql.bind(" WHERE h.repository = ", &artifact.repository).bind(" AND h.package = ", &artifact.name);
        sql.push(") v WHERE 1 = 1");
        return;
    }
    sql.bind(" FROM library_versions v WHERE v.artifact = ", &artifact.id);
    match sources {
        Sources::All => {}
        Sources::Built => _ = sql.bind(" AND v.source <> ", SourceType::UpstreamRegistry as i32),
        Sources::Of(sources) => _ = sql.bind_list(" AND v.source IN ", sources.iter().map(|source| (*source).into())),
    }
}

fn select<'a>(artifact: &'a ArtifactRow, sources: Sources<'_>) -> Sql<'a> {
    let mut sql = Sql::new("SELECT ");
    sql.push(COLUMNS).push(if artifact.is_hosted() { "''" } else { SHA512 });
    conditions(&mut sql, artifact, sources);
    sql
}

/// All versions, or the `slice` of them (offset, limit).
pub(super) async fn all(
    tx: &mut ReadTx,
    artifact: &ArtifactRow,
    sources: Sources<'_>,
    slice: Option<(usize, usize)>,
) -> Result<Vec<VersionRow>> {
    let (offset, limit) = slice.unwrap_or((0, MAX_AT_ONCE));
    let mut sql = select(artifact, sources);
    sql.push(" ORDER BY v.sort_key DESC, v.version DESC, v.source DESC");
    sql.bind(" LIMIT ", limit.min(MAX_AT_ONCE + 1) as i64).bind(" OFFSET ", i64::try_from(offset).unwrap_or(i64::MAX));
    let mut rows = tx.query(&sql.text, &sql.params, VersionRow::read).await?;
    mark_malware(tx, artifact, &mut rows).await?;
    Ok(rows)
}

/// Marks the versions that the malware list has: it is about public packages, and packages of groups are others.
async fn mark_malware(tx: &mut ReadTx, artifact: &ArtifactRow, rows: &mut [VersionRow]) -> Result<()> {
    if artifact.is_hosted() {
        return Ok(());
    }
    let withheld = malware::withheld(tx, artifact.language, &artifact.name).await?;
    for row in rows {
        row.is_malware = withheld.has(&row.version, &row.sort_key);
    }
    Ok(())
}

/// Maximum number of versions of one response; no package has as many.
const MAX_AT_ONCE: usize = 100_000;

/// One page, the highest version first unless the request says otherwise.
pub(super) async fn page<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    artifact: &ArtifactRow,
    sources: Sources<'_>,
    request: &PageRequest,
) -> Result<Listing<VersionRow>> {
    let page = Page::validate(call, request, ORDERS, (0, Direction::Descending))?;
    let (column, is_ascending) = (["v.sort_key", "v.created_at"][page.order], page.direction == Direction::Ascending);
    let mut sql = select(artifact, sources);
    let after = page.cursor.as_ref().map(VersionCursor::read).transpose()?;
    if let Some(after) = &after {
        sql.push(&format!(" AND ({column}, v.version, v.source) {} ", if is_ascending { ">" } else { "<" }));
        match &after.key {
            Key::Version(bytes) => sql.bind("(", bytes),
            Key::Time(time) => sql.bind("(", *time),
        };
        sql.bind(", ", &after.version).bind(", ", after.source).push(")");
    }
    let direction = if is_ascending { "ASC" } else { "DESC" };
    sql.push(&format!(" ORDER BY {column} {direction}, v.version {direction}, v.source {direction}"));
    sql.bind(" LIMIT ", page.size as i64 + 1).bind(" OFFSET ", page.skip);
    let mut items = tx.query(&sql.text, &sql.params, VersionRow::read).await?;
    mark_malware(tx, artifact, &mut items).await?;
    let mut next_page_token = String::new();
    if items.len() > page.size {
        items.truncate(page.size);
        if let Some(last) = items.last() {
            let key = if page.order == 0 { SortKey::Text(hex(&last.sort_key)) } else { SortKey::Int(last.created_at) };
            next_page_token = page.next_token(call, Some(key), format!("{}:{}", last.source, last.version));
        }
    }
    let total_count = count(tx, artifact, sources).await?;
    let skipped = i32::try_from(page.skipped()).unwrap_or(i32::MAX);
    Ok(Listing { items, next_page_token, total_count, skipped })
}

async fn count(tx: &mut ReadTx, artifact: &ArtifactRow, sources: Sources<'_>) -> Result<i64> {
    let mut sql = Sql::new("SELECT count(*)");
    conditions(&mut sql, artifact, sources);
    let count = tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(count.unwrap_or(0))
}

/// Where a page ended.
struct VersionCursor {
    key: Key,
    source: i32,
    version: String,
}

enum Key {
    Version(Vec<u8>),
    Time(i64),
}

impl VersionCursor {
    fn read(cursor: &Cursor) -> Result<VersionCursor> {
        let broken = || Error::internal("a page token of versions holds no place");
        let key = match &cursor.key {
            Some(SortKey::Text(hex)) => Key::Version(unhex(hex).ok_or_else(broken)?),
            Some(SortKey::Int(time)) => Key::Time(*time),
            None => return Err(broken()),
        };
        let (source, version) = cursor.uid.split_once(':').ok_or_else(broken)?;
        Ok(VersionCursor { key, source: source.parse().map_err(|_| broken())?, version: version.into() })
    }
}

fn hex(bytes: &[u8]) -> String {
    bowline_core::hex(bytes)
}

pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    Some(digits?.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
