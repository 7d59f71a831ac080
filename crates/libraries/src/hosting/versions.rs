//! Versions that groups published, as they are stored: listed, named, withdrawn and removed. The methods of the API are in
//! `python_versions` and `hosted_versions`; the protocols have changes of their own, which end here as well.

use bowline_core::{Error, Micros, Result, Uidp, hex};
use bowline_pipeline::{Authorized, Cursor, Direction, Page, PageRequest, SortKey};
use bowline_resources::kinds::PACKAGE_VERSION;
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};
use bowline_versions::order_key;

use super::{files, java_changes, repositories};
use crate::ecosystems::Language;

const COLUMNS: &str = "v.package, v.sort_key, v.version, v.license, v.yanked, v.created_at,
    (SELECT count(*) FROM hosted_files f WHERE f.repository = v.repository AND f.package = v.package
       AND f.sort_key = v.sort_key AND f.deleted_at IS NULL),
    (SELECT CAST(coalesce(sum(f.size_bytes), 0) AS BIGINT) FROM hosted_files f WHERE f.repository = v.repository
       AND f.package = v.package AND f.sort_key = v.sort_key AND f.deleted_at IS NULL)";

/// A version as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VersionRow {
    pub(super) package: String,
    pub(super) sort_key: Vec<u8>,
    pub(super) version: String,
    pub(super) license: String,
    /// Why installers should pass over it, or what those who install it are warned of; absent if nothing is to be said.
    pub(super) yanked: Option<String>,
    pub(super) created_at: Micros,
    pub(super) file_count: i64,
    pub(super) size_bytes: i64,
}

impl VersionRow {
    fn read(row: &Row<'_>) -> Result<VersionRow> {
        Ok(VersionRow {
            package: row.text(0)?,
            sort_key: row.bytes(1)?,
            version: row.text(2)?,
            license: row.text(3)?,
            yanked: row.opt_text(4)?,
            created_at: row.int(5)?,
            file_count: row.int(6)?,
            size_bytes: row.int(7)?,
        })
    }

    /// Number of its files.
    pub(super) fn files(&self) -> i32 {
        i32::try_from(self.file_count).unwrap_or(i32::MAX)
    }
}

/// A page of the versions of a group in one ecosystem, by package and version, with the token of the next page; of one package
/// alone if its name is not empty.
pub(super) async fn page<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    (language, package): (Language, &str),
    request: &PageRequest,
) -> Result<(Vec<VersionRow>, String)> {
    let group = call.require_scope()?;
    require_group(tx, group).await?;
    let page = Page::validate(call, request, &[&["id"]], (0, Direction::Ascending))?;
    let Some(repository) = repositories::find(tx, group.as_str(), language.number()).await? else {
        return Ok((Vec::new(), String::new()));
    };
    let (package, after) = (language.normalized(package), page.cursor.as_ref().map(cursor).transpose()?);
    let mut sql = Sql::new(format!("SELECT {COLUMNS} FROM hosted_versions v"));
    sql.bind(" WHERE v.repository = ", repository.uid.as_str());
    if !package.is_empty() {
        sql.bind(" AND v.package = ", &package);
    }
    if let Some((package, sort_key)) = &after {
        sql.bind(" AND (v.package, v.sort_key) > (", package).bind(", ", sort_key.as_slice()).push(")");
    }
    sql.push(" ORDER BY v.package, v.sort_key").bind(" LIMIT ", page.size as i64 + 1);
    let mut rows = tx.query(&sql.text, &sql.params, VersionRow::read).await?;
    let has_more = rows.len() > page.size;
    rows.truncate(page.size);
    let next_page_token = match rows.last() {
        Some(last) if has_more => page.next_token(call, Some(SortKey::Text(last.package.clone())), hex(&last.sort_key)),
        _ => String::new(),
    };
    Ok((rows, next_page_token))
}

/// Where a page ended: package and sort key.
fn cursor(cursor: &Cursor) -> Result<(String, Vec<u8>)> {
    let damaged = || Error::internal("a cursor of versions is damaged");
    let Some(SortKey::Text(package)) = &cursor.key else { return Err(damaged()) };
    Ok((package.clone(), crate::versions::unhex(&cursor.uid).ok_or_else(damaged)?))
}

/// The version that a call names, in any spelling that its ecosystem takes for the same, with the repository that has it.
pub(super) async fn require(
    tx: &mut ReadTx,
    group: &Uidp,
    language: Language,
    (package, version): (&str, &str),
) -> Result<(Uidp, VersionRow)> {
    require_group(tx, group).await?;
    let absent = || Error::not_found(PACKAGE_VERSION, format!("{package} {version}"));
    let repository = repositories::find(tx, group.as_str(), language.number()).await?.ok_or_else(absent)?.uid;
    let sql = format!(
        "SELECT {COLUMNS} FROM hosted_versions v WHERE v.repository = $1 AND v.package = $2 AND v.sort_key = $3"
    );
    let (package, sort_key) = (language.normalized(package), order_key(language.scheme(), version));
    let params = [Value::from(repository.as_str()), Value::from(&package), Value::from(sort_key.as_slice())];
    let row = tx.query_opt(&sql, &params, VersionRow::read).await?;
    row.map(|row| (repository, row)).ok_or_else(absent)
}

/// Stores why installers should pass over a version, or what they warn of; with none, they need not.
pub(super) async fn set_yanked(
    tx: &mut WriteTx,
    repository: &Uidp,
    (package, sort_key): (&str, &[u8]),
    yanked: Option<&str>,
) -> Result<()> {
    let sql = "UPDATE hosted_versions SET yanked = $4 WHERE repository = $1 AND package = $2 AND sort_key = $3";
    let params =
        [Value::from(repository.as_str()), Value::from(package), Value::from(sort_key), Value::OptText(yanked)];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Removes a version with its files, whose names stay used; how many these were.
pub(super) async fn remove(
    tx: &mut WriteTx,
    repository: &Uidp,
    (package, sort_key): (&str, &[u8]),
    now: Micros,
) -> Result<i64> {
    let version = [Value::from(repository.as_str()), Value::from(package), Value::from(sort_key)];
    let gone = files::of_version(tx, repository, package, sort_key).await?;
    let mut params = version.to_vec();
    params.push(Value::Int(now));
    let sql = "UPDATE hosted_files SET deleted_at = $4
               WHERE repository = $1 AND package = $2 AND sort_key = $3 AND deleted_at IS NULL";
    tx.execute(sql, &params).await?;
    for table in ["hosted_versions", "hosted_manifests", "hosted_attestations"] {
        let sql = format!("DELETE FROM {table} WHERE repository = $1 AND package = $2 AND sort_key = $3");
        tx.execute(&sql, &version).await?;
    }
    // Wheels of one version often have the same metadata, and a blob is linked once.
    let mut digests: Vec<&str> = gone.iter().flat_map(files::FileRow::digests).collect();
    digests.sort_unstable();
    digests.dedup();
    for digest in digests {
        java_changes::unlink_unless_named(tx, repository, digest).await?;
    }
    Ok(i64::try_from(gone.len()).unwrap_or(i64::MAX))
}
