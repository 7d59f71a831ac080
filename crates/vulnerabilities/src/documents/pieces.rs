//! Public advisories as they are read from the database: approved events of public groups, and nothing else.

use std::collections::HashMap;

use bowline_contract::v1::vulnerabilities::advisory_event::Type;
use bowline_contract::v1::vulnerabilities::{AdvisoryEvent, EventTypeFilter, ReviewStatus};
use bowline_contract::v2::advisory as v2;
use bowline_contract::v2::advisory::document_event::Data;
use bowline_core::{Error, Micros, Result};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value, placeholders};
use bytes::Bytes;
use prost::Message;

use crate::advisories::rows::folded;

/// A public advisory: the same bytes in both versions.
#[derive(Debug)]
pub(super) struct Piece {
    /// The package, whose document it is in.
    pub(super) document: String,
    pub(super) advisory_id: String,
    /// The names to look it up by, in upper case: its identifier and its aliases.
    pub(super) names: Vec<String>,
    /// The `DocumentAdvisory` in wire format.
    pub(super) wire: Bytes,
}

impl Piece {
    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| name.len() + size_of::<String>()).sum();
        self.wire.len() + names + self.document.len() + self.advisory_id.len() + 2 * size_of::<Piece>()
    }
}

/// A group that publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublicGroup {
    pub(super) uid: String,
    /// Name, which packages of its advisories have as their name space.
    pub(super) name: String,
    /// Grows with every change of what it publishes.
    pub(super) revision: i64,
}

/// The groups that publish.
pub(super) async fn groups(tx: &mut ReadTx) -> Result<Vec<PublicGroup>> {
    let sql = "SELECT s.place, g.name, s.revision FROM advisory_settings s JOIN groups g ON g.uid = s.place
               WHERE s.is_public ORDER BY s.place";
    let read = |row: &Row<'_>| Ok(PublicGroup { uid: row.text(0)?, name: row.text(1)?, revision: row.int(2)? });
    tx.query(sql, &[], read).await
}

/// Advisories that are read at once.
const READ_AT_ONCE: i64 = 200;
/// Bytes of events that are read at once, if one advisory does not have more.
const EVENT_BYTES: i64 = 8 << 20;

/// An advisory without its events.
struct Head {
    uid: String,
    advisory_id: String,
    document: String,
    aliases: Vec<String>,
    event_bytes: i64,
    namespace: String,
}

const COLUMNS: &str = "a.uid, a.advisory_id, a.artifact_name, a.aliases, a.event_bytes, g.name FROM advisories a
     JOIN groups g ON g.uid = a.parent JOIN advisory_settings s ON s.place = a.parent AND s.is_public";
/// The advisory is in use and has an approved event.
const HAS_APPROVED: &str = "a.deleted_at IS NULL AND a.latest_event_type <> 0";

fn head(row: &Row<'_>) -> Result<Head> {
    Ok(Head {
        uid: row.text(0)?,
        advisory_id: row.text(1)?,
        document: row.text(2)?,
        aliases: serde_json::from_str(&row.text(3)?).map_err(Error::internal)?,
        event_bytes: row.int(4)?,
        namespace: row.text(5)?,
    })
}

/// Some advisories of a public group, from the one after this UIDP on; and the last UIDP, absent once there is no more.
pub(super) async fn of_group(tx: &mut ReadTx, group: &str, after: &str) -> Result<(Vec<Piece>, Option<String>)> {
    let sql = format!("SELECT {COLUMNS} WHERE a.parent = $1 AND a.uid > $2 AND {HAS_APPROVED} ORDER BY a.uid LIMIT $3");
    let params = [Value::from(group), Value::from(after), Value::Int(READ_AT_ONCE)];
    let heads = tx.query(&sql, &params, head).await?;
    let next = heads.last().map(|last| last.uid.clone()).filter(|_| heads.len() as i64 == READ_AT_ONCE);
    Ok((with_events(tx, heads).await?, next))
}

/// Public advisories by package, or by the names that they go by, or both; absent if they are more than so many, or their
/// events have more than so many bytes.
pub(super) async fn named(
    tx: &mut ReadTx,
    document: &str,
    names: &[String],
    (most, most_bytes): (i64, usize),
) -> Result<Option<Vec<Piece>>> {
    let mut params = Vec::new();
    let mut sql = format!("SELECT {COLUMNS} WHERE {HAS_APPROVED}");
    if !document.is_empty() {
        params.push(Value::from(document));
        sql += " AND a.artifact_name = $1";
    }
    if !names.is_empty() {
        let first = params.len() + 1;
        params.extend(names.iter().map(Value::from));
        let again = params.len() + 1;
        params.extend(names.iter().map(Value::from));
        sql += &format!(
            " AND a.uid IN (SELECT b.advisory FROM advisory_aliases b WHERE b.alias IN ({})
                UNION SELECT c.uid FROM advisories c WHERE upper(c.advisory_id) IN ({}))",
            placeholders(first, names.len()),
            placeholders(again, names.len())
        );
    }
    params.push(Value::Int(most + 1));
    sql += &format!(" ORDER BY a.uid LIMIT ${}", params.len());
    let heads = tx.query(&sql, &params, head).await?;
    let bytes: i64 = heads.iter().map(|head| head.event_bytes).sum();
    if heads.len() as i64 > most || bytes > most_bytes as i64 {
        return Ok(None);
    }
    with_events(tx, heads).await.map(Some)
}

/// The advisories with their events, read in portions.
async fn with_events(tx: &mut ReadTx, mut heads: Vec<Head>) -> Result<Vec<Piece>> {
    let mut pieces = Vec::with_capacity(heads.len());
    while !heads.is_empty() {
        let mut bytes = 0;
        let fit = heads.iter().take_while(|head| {
            bytes += head.event_bytes;
            bytes <= EVENT_BYTES
        });
        let portion: Vec<Head> = heads.drain(..fit.count().clamp(1, READ_AT_ONCE as usize)).collect();
        let mut events = approved(tx, &portion, "").await?;
        for head in portion {
            let events = events.remove(&head.uid).unwrap_or_default();
            if !events.is_empty() {
                pieces.push(piece(head, events));
            }
        }
    }
    Ok(pieces)
}

/// The approved events of these advisories that documents have words for, and the event of this UIDP whether approved or
/// not; the earliest first.
async fn approved(tx: &mut ReadTx, heads: &[Head], with: &str) -> Result<HashMap<String, Vec<v2::DocumentEvent>>> {
    let mut params: Vec<Value<'_>> = vec![
        Value::from(ReviewStatus::Approved as i32),
        Value::from(EventTypeFilter::Patched as i32),
        Value::from(EventTypeFilter::ComponentLocationChanged as i32),
        Value::from(with),
    ];
    params.extend(heads.iter().map(|head| Value::from(&head.uid)));
    let sql = format!(
        "SELECT advisory, at, body FROM advisory_events
         WHERE (state = $1 OR uid = $4) AND type <> $2 AND type <> $3 AND advisory IN ({}) ORDER BY advisory, at, uid",
        placeholders(5, heads.len())
    );
    let read = |row: &Row<'_>| {
        let body = AdvisoryEvent::decode(row.bytes(2)?.as_slice()).map_err(Error::internal)?;
        Ok::<_, Error>((row.text(0)?, event(row.int(1)?, body)?))
    };
    let mut by_advisory: HashMap<String, Vec<v2::DocumentEvent>> = HashMap::new();
    for (advisory, event) in tx.query(&sql, &params, read).await? {
        by_advisory.entry(advisory).or_default().extend(event);
    }
    Ok(by_advisory)
}

/// What everyone reads of one advisory if its group publishes, and what everyone would read with one more event.
pub(super) struct Drafts {
    pub(super) document: String,
    pub(super) is_public: bool,
    pub(super) is_deleted: bool,
    pub(super) now: v2::DocumentAdvisory,
    pub(super) then: v2::DocumentAdvisory,
}

/// The drafts of an advisory with this event.
pub(super) async fn drafts(tx: &mut ReadTx, advisory: &str, event: &str) -> Result<Option<Drafts>> {
    let sql = "SELECT a.uid, a.advisory_id, a.artifact_name, a.aliases, a.event_bytes, g.name,
                 coalesce(s.is_public, FALSE), a.deleted_at IS NOT NULL
               FROM advisories a JOIN groups g ON g.uid = a.parent
               LEFT JOIN advisory_settings s ON s.place = a.parent WHERE a.uid = $1";
    let read = |row: &Row<'_>| Ok::<_, Error>((head(row)?, row.bool(6)?, row.bool(7)?));
    let Some((head, is_public, is_deleted)) = tx.query_opt(sql, &[Value::from(advisory)], read).await? else {
        return Ok(None);
    };
    let heads = [head];
    let now = approved(tx, &heads, "").await?.remove(advisory).unwrap_or_default();
    let then = approved(tx, &heads, event).await?.remove(advisory).unwrap_or_default();
    let [head] = heads;
    let document = head.document.clone();
    Ok(Some(Drafts { document, is_public, is_deleted, now: shown(&head, now), then: shown(&head, then) }))
}

/// The advisory as documents show it.
fn shown(head: &Head, events: Vec<v2::DocumentEvent>) -> v2::DocumentAdvisory {
    v2::DocumentAdvisory {
        id: head.advisory_id.clone(),
        events,
        aliases: head.aliases.clone(),
        package_namespace: head.namespace.clone(),
    }
}

fn piece(head: Head, events: Vec<v2::DocumentEvent>) -> Piece {
    let mut names: Vec<String> = head.aliases.iter().map(|alias| folded(alias)).collect();
    names.push(folded(&head.advisory_id));
    names.sort();
    names.dedup();
    let advisory = shown(&head, events);
    Piece { document: head.document, advisory_id: head.advisory_id, names, wire: Bytes::from(advisory.encode_to_vec()) }
}

/// The event as documents show it: without findings, ticket, author and reviewer.
fn event(at: Micros, body: AdvisoryEvent) -> Result<Option<v2::DocumentEvent>> {
    let data = match body.r#type {
        Some(Type::Detection(inner)) => Data::Detection(same(&inner)?),
        Some(Type::Fixed(inner)) => Data::Fixed(v2::Fixed {
            fixed_version: inner.fixed_version,
            scanner_version: inner.scanner_version,
            grype_db_built: inner.grype_db_built,
            grype_db_checksum: inner.grype_db_checksum,
        }),
        Some(Type::FalsePositiveDetermination(inner)) => Data::FalsePositiveDetermination(same(&inner)?),
        Some(Type::AnalysisNotPlanned(inner)) => Data::AnalysisNotPlanned(same(&inner)?),
        Some(Type::FixNotPlanned(inner)) => Data::FixNotPlanned(same(&inner)?),
        Some(Type::PendingUpstreamFix(inner)) => Data::PendingUpstreamFix(same(&inner)?),
        Some(Type::TruePositiveDetermination(inner)) => Data::TruePositiveDetermination(same(&inner)?),
        Some(Type::Patched(_) | Type::ComponentLocationChanged(_)) | None => return Ok(None),
    };
    Ok(Some(v2::DocumentEvent { timestamp: timestamp(at), data: Some(data) }))
}

/// A message whose numbers and types documents share with advisories.
fn same<From: Message, To: Message + Default>(message: &From) -> Result<To> {
    To::decode(message.encode_to_vec().as_slice()).map_err(Error::internal)
}
