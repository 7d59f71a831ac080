//! Versions that groups published: listed, withdrawn, deleted.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::python_packages::{
    DeleteVersion, ListVersions, UnyankVersion, YankVersion,
};
use bowline_core::{Error, Micros, Result, Uidp, hex};
use bowline_pipeline::{Authorized, Changed, Cursor, Direction, Handlers, Page, PageRequest, SortKey, handler};
use bowline_resources::kinds::PACKAGE_VERSION;
use bowline_resources::list::timestamp;
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};
use bowline_versions::order_key;
use prost::Message;

use super::{files, java_changes, repositories};
use crate::ecosystems::Language;

const LANGUAGE: Language = Language::Python;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListVersions>(handler!(list))
        .write::<YankVersion>(handler!(yank))
        .write::<UnyankVersion>(handler!(unyank))
        .write::<DeleteVersion>(handler!(delete))
}

const COLUMNS: &str = "v.package, v.sort_key, v.version, v.license, v.yanked, v.created_at,
    (SELECT count(*) FROM hosted_files f WHERE f.repository = v.repository AND f.package = v.package
       AND f.sort_key = v.sort_key AND f.deleted_at IS NULL),
    (SELECT CAST(coalesce(sum(f.size_bytes), 0) AS BIGINT) FROM hosted_files f WHERE f.repository = v.repository
       AND f.package = v.package AND f.sort_key = v.sort_key AND f.deleted_at IS NULL)";

/// A version as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct VersionRow {
    package: String,
    sort_key: Vec<u8>,
    version: String,
    license: String,
    yanked: Option<String>,
    created_at: Micros,
    file_count: i64,
    size_bytes: i64,
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

    fn shown(&self, group: &Uidp) -> own::PythonVersion {
        own::PythonVersion {
            parent: group.as_str().into(),
            package: self.package.clone(),
            version: self.version.clone(),
            license: self.license.clone(),
            yanked: self.yanked.is_some(),
            yanked_reason: self.yanked.clone().unwrap_or_default(),
            file_count: i32::try_from(self.file_count).unwrap_or(i32::MAX),
            size_bytes: self.size_bytes,
            create_time: timestamp(self.created_at),
        }
    }
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListPythonVersionsRequest>,
) -> Result<own::ListPythonVersionsResponse> {
    let group = call.require_scope()?;
    require_group(tx, group).await?;
    let request = call.request();
    let rest = own::ListPythonVersionsRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, &[&["id"]], (0, Direction::Ascending))?;
    let Some(repository) = repositories::find(tx, group.as_str(), LANGUAGE.number()).await? else {
        return Ok(own::ListPythonVersionsResponse::default());
    };
    let (package, after) = (LANGUAGE.normalized(&request.package), page.cursor.as_ref().map(cursor).transpose()?);
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
    let versions = rows.iter().map(|row| row.shown(group)).collect();
    Ok(own::ListPythonVersionsResponse { versions, next_page_token })
}

/// Where a page ended: package and sort key.
fn cursor(cursor: &Cursor) -> Result<(String, Vec<u8>)> {
    let damaged = || Error::internal("a cursor of versions is damaged");
    let Some(SortKey::Text(package)) = &cursor.key else { return Err(damaged()) };
    Ok((package.clone(), crate::versions::unhex(&cursor.uid).ok_or_else(damaged)?))
}

/// The version that a call names, with the repository that has it.
async fn require(tx: &mut ReadTx, group: &Uidp, package: &str, version: &str) -> Result<(Uidp, VersionRow)> {
    require_group(tx, group).await?;
    let absent = || Error::not_found(PACKAGE_VERSION, format!("{package} {version}"));
    let repository = repositories::find(tx, group.as_str(), LANGUAGE.number()).await?.ok_or_else(absent)?.uid;
    let sql = format!(
        "SELECT {COLUMNS} FROM hosted_versions v WHERE v.repository = $1 AND v.package = $2 AND v.sort_key = $3"
    );
    let (package, sort_key) = (LANGUAGE.normalized(package), order_key(LANGUAGE.scheme(), version));
    let params = [Value::from(repository.as_str()), Value::from(&package), Value::from(sort_key.as_slice())];
    let row = tx.query_opt(&sql, &params, VersionRow::read).await?;
    row.map(|row| (repository, row)).ok_or_else(absent)
}

async fn yank(
    tx: &mut WriteTx,
    call: &Authorized<own::YankPythonVersionRequest>,
) -> Result<Changed<own::PythonVersion>> {
    let (group, request) = (call.require_scope()?, call.request());
    let (repository, before) = require(tx, group, &request.package, &request.version).await?;
    let after = VersionRow { yanked: Some(request.reason.clone()), ..before.clone() };
    set_yanked(tx, group, &repository, (&before, &after), request).await
}

async fn unyank(
    tx: &mut WriteTx,
    call: &Authorized<own::UnyankPythonVersionRequest>,
) -> Result<Changed<own::PythonVersion>> {
    let (group, request) = (call.require_scope()?, call.request());
    let (repository, before) = require(tx, group, &request.package, &request.version).await?;
    let after = VersionRow { yanked: None, ..before.clone() };
    set_yanked(tx, group, &repository, (&before, &after), request).await
}

async fn set_yanked<M: Message + prost::Name>(
    tx: &mut WriteTx,
    group: &Uidp,
    repository: &Uidp,
    (before, after): (&VersionRow, &VersionRow),
    request: &M,
) -> Result<Changed<own::PythonVersion>> {
    let (shown, response) = (before.shown(group), after.shown(group));
    if before == after {
        return Ok(Changed::nothing(response));
    }
    let sql = "UPDATE hosted_versions SET yanked = $4 WHERE repository = $1 AND package = $2 AND sort_key = $3";
    let params = [
        Value::from(repository.as_str()),
        Value::from(&after.package),
        Value::from(after.sort_key.as_slice()),
        Value::OptText(after.yanked.as_deref()),
    ];
    tx.execute(sql, &params).await?;
    repositories::note_change(tx, repository, 0).await?;
    let changed = Changed::one(PACKAGE_VERSION, repository, Some(&shown), Some(&response), response.clone());
    Ok(changed.with_event(group, request))
}

async fn delete(tx: &mut WriteTx, call: &Authorized<own::DeletePythonVersionRequest>) -> Result<Changed<()>> {
    let (group, request) = (call.require_scope()?, call.request());
    let (repository, before) = require(tx, group, &request.package, &request.version).await?;
    let gone = remove(tx, &repository, (&before.package, &before.sort_key), call.now()).await?;
    repositories::note_change(tx, &repository, -gone).await?;
    let shown = before.shown(group);
    let changed = Changed::one(PACKAGE_VERSION, &repository, Some(&shown), None::<&own::PythonVersion>, ());
    Ok(changed.with_event(group, request))
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
