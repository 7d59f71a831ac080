//! The memory of choices: from which tier an organization was served a version, so that it is served from there again and
//! a digest in a lock file stays good. A generation number per ecosystem says which choices count.

use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::resolution_cache::{List, SetOptOut, Status};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Cursor, Direction, Handlers, Page, PageRequest, SortKey, handler};
use bowline_resources::kinds::RESOLUTION_CACHE;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx, like};
use prost::Message;

use super::ecosystems::{IN_CONTRACT, Language, OWN_FROM};
use super::require_organization;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<Status>(handler!(status)).write::<SetOptOut>(handler!(set_opt_out)).read::<List>(handler!(list))
}

/// Where the memory of an ecosystem stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watermark {
    pub(super) language: Language,
    pub(super) generation: i64,
    pub(super) purge_count: i64,
    pub(super) opted_out: bool,
    pub(super) last_zapped_at: Option<Micros>,
}

impl Watermark {
    /// Of an ecosystem that no one has touched.
    fn first(language: Language) -> Watermark {
        Watermark { language, generation: 1, purge_count: 0, opted_out: false, last_zapped_at: None }
    }

    pub(super) fn shown(&self) -> v1::ResolutionCacheWatermark {
        v1::ResolutionCacheWatermark {
            ecosystem: self.language.wire(false) as i32,
            generation: self.generation,
            zap_count: self.purge_count,
            opted_out: self.opted_out,
            last_zapped_at: self.last_zapped_at.and_then(timestamp),
        }
    }
}

/// The watermarks of all ecosystems, in their order.
pub(super) async fn watermarks(tx: &mut ReadTx, organization: &Uidp) -> Result<Vec<Watermark>> {
    let sql =
        "SELECT ecosystem, generation, zap_count, opted_out, last_zapped_at FROM library_watermarks WHERE org = $1";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(Watermark {
            language: Language::of_number(row.int(0)?)?,
            generation: row.int(1)?,
            purge_count: row.int(2)?,
            opted_out: row.bool(3)?,
            last_zapped_at: row.opt_int(4)?,
        })
    };
    let mut stored = tx.query(sql, &[Value::from(organization.as_str())], read).await?;
    for language in IN_CONTRACT {
        if !stored.iter().any(|mark| mark.language == language) {
            stored.push(Watermark::first(language));
        }
    }
    stored.sort_by_key(|mark| mark.language);
    Ok(stored)
}

pub(super) async fn save(tx: &mut WriteTx, organization: &Uidp, mark: &Watermark) -> Result<()> {
    let sql = "INSERT INTO library_watermarks (org, ecosystem, generation, zap_count, opted_out, last_zapped_at)
               VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (org, ecosystem) DO UPDATE SET generation = excluded.generation, zap_count = excluded.zap_count,
                 opted_out = excluded.opted_out, last_zapped_at = excluded.last_zapped_at";
    let params = [
        Value::from(organization.as_str()),
        Value::Int(mark.language.number()),
        Value::Int(mark.generation),
        Value::Int(mark.purge_count),
        Value::Bool(mark.opted_out),
        Value::OptInt(mark.last_zapped_at),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// The ecosystems that a request means: one, or all.
pub(super) fn languages(ecosystem: i32) -> Result<Vec<Language>> {
    if ecosystem == v1::Ecosystem::Unknown as i32 {
        return Ok(IN_CONTRACT.into());
    }
    Ok(vec![Language::required("ecosystem", ecosystem)?])
}

fn state(organization: &Uidp, marks: &[Watermark]) -> v1::ResolutionCacheStatus {
    v1::ResolutionCacheStatus {
        id: organization.as_str().into(),
        watermarks: marks.iter().map(Watermark::shown).collect(),
    }
}

async fn status(
    tx: &mut ReadTx,
    call: &Authorized<v1::ResolutionCacheStatusFilter>,
) -> Result<v1::ResolutionCacheStatus> {
    let organization = require_organization(tx, call).await?;
    Ok(state(&organization, &watermarks(tx, &organization).await?))
}

async fn set_opt_out(
    tx: &mut WriteTx,
    call: &Authorized<v1::ResolutionCacheOptOutRequest>,
) -> Result<Changed<v1::ResolutionCacheOptOut>> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let switched = languages(request.ecosystem)?;
    let before = watermarks(tx, &organization).await?;
    let mut after = before.clone();
    for mark in after.iter_mut().filter(|mark| switched.contains(&mark.language) && mark.opted_out != request.opted_out)
    {
        mark.opted_out = request.opted_out;
        save(tx, &organization, mark).await?;
    }
    let response = v1::ResolutionCacheOptOut {
        id: organization.as_str().into(),
        watermarks: after.iter().map(Watermark::shown).collect(),
    };
    if before == after {
        return Ok(Changed::nothing(response));
    }
    Ok(changed(&organization, (&before, &after), response, request))
}

/// The change of watermarks, with its event.
pub(super) fn changed<T, M: Message + prost::Name>(
    organization: &Uidp,
    (before, after): (&[Watermark], &[Watermark]),
    response: T,
    request: &M,
) -> Changed<T> {
    let (before, after) = (state(organization, before), state(organization, after));
    Changed::one(RESOLUTION_CACHE, organization, Some(&before), Some(&after), response)
        .with_event(organization, request)
}

/// A version that an organization was served.
pub struct Choice<'a> {
    pub organization: &'a Uidp,
    /// Ecosystem of the package.
    pub language: Language,
    /// Endpoint that served it.
    pub registry: &'a str,
    pub package: &'a str,
    pub version: &'a str,
    /// True for a build, false for what comes from upstream unchanged.
    pub is_built: bool,
    /// Digest of the file, with its algorithm in front.
    pub digest: &'a str,
}

/// Records a choice, unless a valid one exists; false if the organization has switched recording off.
///
/// # Errors
/// Those of the database.
pub async fn record(tx: &mut WriteTx, choice: &Choice<'_>, now: Micros) -> Result<bool> {
    let marks = watermarks(tx, choice.organization).await?;
    let (generation, is_off) = match marks.iter().find(|mark| mark.language == choice.language) {
        Some(mark) => (mark.generation, mark.opted_out),
        // The wire contract cannot name the ecosystem: its choices are off where those of all others are.
        None => (Watermark::first(choice.language).generation, marks.iter().all(|mark| mark.opted_out)),
    };
    if is_off {
        return Ok(false);
    }
    let sql = "INSERT INTO library_resolutions (org, ecosystem, registry, package, version, tier, digest, generation, observed_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
               ON CONFLICT (org, ecosystem, registry, package, version) DO UPDATE SET tier = excluded.tier,
                 digest = excluded.digest, generation = excluded.generation, observed_at = excluded.observed_at
               WHERE library_resolutions.generation <> excluded.generation";
    let tier = if choice.is_built { v1::Tier::Chainguard } else { v1::Tier::Upstream };
    let params = [
        Value::from(choice.organization.as_str()),
        Value::Int(choice.language.number()),
        Value::from(choice.registry),
        Value::from(choice.package),
        Value::from(choice.version),
        Value::from(tier as i32),
        Value::from(choice.digest),
        Value::Int(generation),
        Value::Int(now),
    ];
    tx.execute(sql, &params).await?;
    Ok(true)
}

const COLUMNS: &str = "ecosystem, registry, package, version, tier, digest, observed_at, generation";

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v1::ResolutionCacheEntryFilter>,
) -> Result<v1::ResolutionCacheEntryList> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let rest = v1::ResolutionCacheEntryFilter { page_size: 0, cursor: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.cursor.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, &[&["id"]], (0, Direction::Ascending))?;
    let marks = watermarks(tx, &organization).await?;
    let prefix = like(&request.package_prefix, true);
    let mut sql = Sql::new(format!("SELECT {COLUMNS}"));
    conditions(&mut sql, &organization, request, &marks, &prefix)?;
    let after = page.cursor.as_ref().map(cursor).transpose()?;
    if let Some((ecosystem, [registry, package, version])) = &after {
        sql.bind(" AND (ecosystem, registry, package, version) > (", *ecosystem);
        sql.bind(", ", registry).bind(", ", package).bind(", ", version).push(")");
    }
    sql.push(" ORDER BY ecosystem, registry, package, version").bind(" LIMIT ", page.size as i64 + 1);
    let mut items = tx.query(&sql.text, &sql.params, |row| entry(row, &marks)).await?;
    let mut next_cursor = String::new();
    if items.len() > page.size {
        items.truncate(page.size);
        if let Some(last) = items.last() {
            let parts =
                serde_json::to_string(&[&last.registry, &last.package_name, &last.version]).map_err(Error::internal)?;
            next_cursor = page.next_token(call, Some(SortKey::Int(last.ecosystem.into())), parts);
        }
    }
    let mut count = Sql::new("SELECT count(*)");
    conditions(&mut count, &organization, request, &marks, &prefix)?;
    let total = tx.query_opt(&count.text, &count.params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(v1::ResolutionCacheEntryList { items, total_count: total.unwrap_or(0), next_cursor })
}

fn conditions<'a>(
    sql: &mut Sql<'a>,
    organization: &'a Uidp,
    request: &'a v1::ResolutionCacheEntryFilter,
    marks: &[Watermark],
    prefix: &'a str,
) -> Result<()> {
    sql.bind(" FROM library_resolutions WHERE org = ", organization.as_str());
    if request.ecosystem == v1::Ecosystem::Unknown as i32 {
        // The wire contract has no entries of others.
        sql.bind(" AND ecosystem < ", OWN_FROM);
    } else {
        sql.bind(" AND ecosystem = ", Language::required("ecosystem", request.ecosystem)?.number());
    }
    for (column, value) in [("registry", &request.registry), ("package", &request.package_name)] {
        if !value.is_empty() {
            sql.bind(&format!(" AND {column} = "), value);
        }
    }
    if !request.package_prefix.is_empty() {
        sql.bind(" AND package LIKE ", prefix).push(" ESCAPE '\\'");
    }
    if request.tier != v1::Tier::Unspecified as i32 {
        sql.bind(" AND tier = ", request.tier);
    }
    if request.live_only {
        sql.push(" AND CASE ecosystem");
        for mark in marks {
            sql.bind(" WHEN ", mark.language.number()).bind(" THEN generation = ", mark.generation);
        }
        sql.push(" ELSE FALSE END");
    }
    Ok(())
}

fn entry(row: &Row<'_>, marks: &[Watermark]) -> Result<v1::ResolutionCacheEntry> {
    let language = Language::of_number(row.int(0)?)?;
    let (registry, package_name, version) = (row.text(1)?, row.text(2)?, row.text(3)?);
    let generation = row.int(7)?;
    Ok(v1::ResolutionCacheEntry {
        id: format!("{}:{registry}:{package_name}:{version}", language.word()),
        ecosystem: language.wire(false) as i32,
        registry,
        package_name,
        version,
        tier: row.int(4)? as i32,
        digest: row.text(5)?,
        observed_at: timestamp(row.int(6)?),
        live: marks.iter().any(|mark| mark.language == language && mark.generation == generation),
    })
}

/// Where a page ended: ecosystem, then registry, package and version.
fn cursor(cursor: &Cursor) -> Result<(i64, [String; 3])> {
    let Some(SortKey::Int(ecosystem)) = cursor.key else {
        return Err(Error::internal("a cursor of choices has no ecosystem"));
    };
    Ok((ecosystem, serde_json::from_str(&cursor.uid).map_err(Error::internal)?))
}
