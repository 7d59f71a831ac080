//! Forgetting choices. A whole ecosystem is forgotten by raising its generation, whatever the number of choices; a part of it
//! by taking the generation off its choices one by one.

use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::resolution_cache::Zap;
use bowline_core::{Error, FieldViolation, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Sql, Value, WriteTx, like};
use prost::Message;

use super::require_organization;
use super::resolutions::{self, Watermark};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.validate::<Zap>(violations).write::<Zap>(handler!(purge))
}

fn violations(request: &v1::ZapResolutionCacheRequest) -> Vec<FieldViolation> {
    let mut wrong = Vec::new();
    let mut refuse = |field: &str, description: &str| {
        wrong.push(FieldViolation { field: field.into(), description: description.into() });
    };
    if !request.version.is_empty() && request.package_name.is_empty() {
        refuse("version", "needs packageName");
    }
    if !request.package_prefix.is_empty() && !request.package_name.is_empty() {
        refuse("packagePrefix", "cannot be combined with packageName");
    }
    let is_part =
        [&request.package_prefix, &request.package_name, &request.registry].iter().any(|part| !part.is_empty());
    if is_part && request.ecosystem == v1::Ecosystem::Unknown as i32 {
        refuse("ecosystem", "is required to forget a part of it");
    }
    wrong
}

async fn purge(
    tx: &mut WriteTx,
    call: &Authorized<v1::ZapResolutionCacheRequest>,
) -> Result<Changed<v1::ZapResolutionCacheSummary>> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let zapped = resolutions::languages(request.ecosystem)?;
    if let Some(response) = answered_before(tx, &organization, request).await? {
        return Ok(Changed::nothing(response));
    }
    let before = resolutions::watermarks(tx, &organization).await?;
    let mut after = before.clone();
    let mut results = Vec::new();
    for mark in after.iter_mut().filter(|mark| zapped.contains(&mark.language)) {
        let retired_count = live(tx, &organization, mark, request).await?;
        if !request.dry_run {
            forget(tx, &organization, mark, request).await?;
            mark.purge_count += 1;
            mark.last_zapped_at = Some(call.now());
            resolutions::save(tx, &organization, mark).await?;
        }
        results.push(v1::ZapResolutionCacheResult {
            ecosystem: mark.language.wire(false) as i32,
            generation: mark.generation,
            zapped_at: if request.dry_run { None } else { timestamp(call.now()) },
            retired_count,
        });
    }
    let summary = v1::ZapResolutionCacheSummary {
        id: organization.as_str().into(),
        results,
        dry_run: request.dry_run,
        replayed: false,
    };
    if request.dry_run {
        return Ok(Changed::nothing(summary));
    }
    keep_answer(tx, &organization, request, &summary).await?;
    Ok(resolutions::changed(&organization, (&before, &after), summary, request))
}

/// What the last zap answered, if it was this very call.
async fn answered_before(
    tx: &mut ReadTx,
    organization: &Uidp,
    request: &v1::ZapResolutionCacheRequest,
) -> Result<Option<v1::ZapResolutionCacheSummary>> {
    if request.idempotency_key.is_empty() || request.dry_run {
        return Ok(None);
    }
    let sql = "SELECT summary FROM library_zaps WHERE org = $1 AND idempotency_key = $2";
    let params = [Value::from(organization.as_str()), Value::from(&request.idempotency_key)];
    let found = tx.query_opt(sql, &params, |row| row.bytes(0).map_err(Error::from)).await?;
    let Some(bytes) = found else { return Ok(None) };
    let summary = v1::ZapResolutionCacheSummary::decode(bytes.as_slice()).map_err(Error::internal)?;
    Ok(Some(v1::ZapResolutionCacheSummary { replayed: true, ..summary }))
}

/// A zap without a key also deletes the stored response: keys are valid until the next zap.
async fn keep_answer(
    tx: &mut WriteTx,
    organization: &Uidp,
    request: &v1::ZapResolutionCacheRequest,
    summary: &v1::ZapResolutionCacheSummary,
) -> Result<()> {
    if request.idempotency_key.is_empty() {
        let sql = "DELETE FROM library_zaps WHERE org = $1";
        tx.execute(sql, &[Value::from(organization.as_str())]).await?;
        return Ok(());
    }
    let sql = "INSERT INTO library_zaps (org, idempotency_key, summary) VALUES ($1, $2, $3)
               ON CONFLICT (org) DO UPDATE SET idempotency_key = excluded.idempotency_key, summary = excluded.summary";
    let bytes = summary.encode_to_vec();
    let params = [Value::from(organization.as_str()), Value::from(&request.idempotency_key), Value::from(&bytes)];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// The choices that count and are meant.
fn meant<'a>(
    sql: &mut Sql<'a>,
    organization: &'a Uidp,
    mark: &Watermark,
    request: &'a v1::ZapResolutionCacheRequest,
    prefix: &'a str,
) {
    sql.bind(" WHERE org = ", organization.as_str()).bind(" AND ecosystem = ", mark.language.number());
    sql.bind(" AND generation = ", mark.generation);
    for (column, value) in
        [("registry", &request.registry), ("package", &request.package_name), ("version", &request.version)]
    {
        if !value.is_empty() {
            sql.bind(&format!(" AND {column} = "), value);
        }
    }
    if !request.package_prefix.is_empty() {
        sql.bind(" AND package LIKE ", prefix).push(" ESCAPE '\\'");
    }
}

async fn live(
    tx: &mut ReadTx,
    organization: &Uidp,
    mark: &Watermark,
    request: &v1::ZapResolutionCacheRequest,
) -> Result<i64> {
    let prefix = like(&request.package_prefix, true);
    let mut sql = Sql::new("SELECT count(*) FROM library_resolutions");
    meant(&mut sql, organization, mark, request, &prefix);
    let count = tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(count.unwrap_or(0))
}

async fn forget(
    tx: &mut WriteTx,
    organization: &Uidp,
    mark: &mut Watermark,
    request: &v1::ZapResolutionCacheRequest,
) -> Result<()> {
    let is_whole =
        [&request.package_prefix, &request.package_name, &request.registry].iter().all(|part| part.is_empty());
    if is_whole {
        mark.generation += 1;
        return Ok(());
    }
    let prefix = like(&request.package_prefix, true);
    let mut sql = Sql::new("UPDATE library_resolutions SET generation = 0");
    meant(&mut sql, organization, mark, request, &prefix);
    tx.execute(&sql.text, &sql.params).await?;
    Ok(())
}
