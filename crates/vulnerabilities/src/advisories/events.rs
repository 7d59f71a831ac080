//! What happened to advisories, as it is stored, and what follows for the advisory: its latest approved event.

use std::collections::{BTreeMap, HashMap};

use bowline_contract::v1::vulnerabilities::advisory_event::Type;
use bowline_contract::v1::vulnerabilities::{AdvisoryEvent, EventTypeFilter, ReviewStatus};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_resources::kinds::ADVISORY_EVENT;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx, placeholders};
use prost::Message;

use super::rows::{AdvisoryRow, LOADED_AT_ONCE};
use super::{publication, waiting};

/// Maximum number of events of an advisory.
pub(crate) const MAX_EVENTS: i64 = 1000;
/// Maximum bytes that the events of an advisory have together, and so the most that one advisory adds to a
/// response.
pub(crate) const MAX_EVENT_BYTES: i64 = 4 << 20;

const COLUMNS: &str = "uid, advisory, type, state, author, reviewer, at, created_at, body";

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventRow {
    pub(crate) uid: Uidp,
    pub(crate) state: ReviewStatus,
    pub(crate) author: String,
    /// Empty until someone decides.
    pub(crate) reviewer: String,
    pub(crate) at: Micros,
    pub(crate) created_at: Micros,
    /// Kind, findings and issue; the other fields are empty.
    pub(crate) body: AdvisoryEvent,
}

impl EventRow {
    fn read(row: &Row<'_>) -> Result<EventRow> {
        let uid = row.text(0)?;
        let state = row.int(3)? as i32;
        let damaged = |what: &str| Error::internal(format!("the advisory event {uid} has a damaged {what}"));
        Ok(EventRow {
            state: ReviewStatus::try_from(state).map_err(|_| damaged("state"))?,
            author: row.text(4)?,
            reviewer: row.text(5)?,
            at: row.int(6)?,
            created_at: row.int(7)?,
            body: AdvisoryEvent::decode(row.bytes(8)?.as_slice()).map_err(Error::internal)?,
            uid: Uidp::parse(&uid).map_err(|_| damaged("uid"))?,
        })
    }

    pub(crate) fn advisory(&self) -> &str {
        self.uid.parent_str()
    }

    /// Whether the review has come to its end.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.state, ReviewStatus::Approved | ReviewStatus::Rejected)
    }

    /// In the shape of v1.
    pub(crate) fn to_v1(&self) -> AdvisoryEvent {
        AdvisoryEvent {
            id: self.uid.as_str().into(),
            timestamp: timestamp(self.at),
            author: self.author.clone(),
            reviewer: self.reviewer.clone(),
            status: self.state as i32,
            ..self.body.clone()
        }
    }

    fn kind(&self) -> Result<EventTypeFilter> {
        let kind = self.body.r#type.as_ref().map(kind_of);
        kind.ok_or_else(|| Error::internal("an advisory event without a kind came to the storage"))
    }
}

/// The kind of an event as filters name it.
pub(crate) fn kind_of(event: &Type) -> EventTypeFilter {
    match event {
        Type::Detection(_) => EventTypeFilter::Detection,
        Type::TruePositiveDetermination(_) => EventTypeFilter::TruePositiveDetermination,
        Type::Fixed(_) => EventTypeFilter::Fixed,
        Type::FalsePositiveDetermination(_) => EventTypeFilter::FalsePositiveDetermination,
        Type::AnalysisNotPlanned(_) => EventTypeFilter::AnalysisNotPlanned,
        Type::FixNotPlanned(_) => EventTypeFilter::FixNotPlanned,
        Type::PendingUpstreamFix(_) => EventTypeFilter::PendingUpstreamFix,
        Type::Patched(_) => EventTypeFilter::Patched,
        Type::ComponentLocationChanged(_) => EventTypeFilter::ComponentLocationChanged,
    }
}

/// The event of this UIDP.
pub(crate) async fn find(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<EventRow>> {
    let sql = format!("SELECT {COLUMNS} FROM advisory_events WHERE uid = $1");
    tx.query_opt(&sql, &[Value::from(uid.as_str())], EventRow::read).await
}

/// The event of this UIDP.
///
/// # Errors
/// NOT_FOUND.
pub(crate) async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<EventRow> {
    find(tx, uid).await?.ok_or_else(|| Error::not_found(ADVISORY_EVENT, uid.as_str()))
}

/// The events of these advisories by advisory, the earliest first. What they can have is bounded by the advisories'
/// [`MAX_EVENT_BYTES`]; a call for many advisories looks at `event_bytes` first.
pub(crate) async fn load(tx: &mut ReadTx, advisories: &[&str]) -> Result<HashMap<String, Vec<EventRow>>> {
    let mut by_advisory: HashMap<String, Vec<EventRow>> = HashMap::with_capacity(advisories.len());
    for advisories in advisories.chunks(LOADED_AT_ONCE) {
        let params: Vec<Value<'_>> = advisories.iter().map(|uid| Value::from(*uid)).collect();
        let sql = format!(
            "SELECT {COLUMNS} FROM advisory_events WHERE advisory IN ({}) ORDER BY advisory, at, created_at, uid",
            placeholders(1, params.len())
        );
        for event in tx.query(&sql, &params, EventRow::read).await? {
            by_advisory.entry(event.advisory().to_owned()).or_default().push(event);
        }
    }
    Ok(by_advisory)
}

/// Versions without a vulnerability, by an advisory.
pub(crate) enum FixedVersions {
    /// This one and all above.
    From(String),
    /// These versions and no others.
    Exactly(Vec<String>),
}

/// What the latest approved event of each of these advisories says of fixed versions, if it does.
pub(crate) async fn fixed_versions(
    tx: &mut ReadTx,
    advisories: impl Iterator<Item = &String>,
) -> Result<BTreeMap<String, FixedVersions>> {
    let mut versions = BTreeMap::new();
    let advisories: Vec<&String> = advisories.collect();
    for part in advisories.chunks(LOADED_AT_ONCE) {
        let order = "PARTITION BY advisory ORDER BY at DESC, created_at DESC, uid DESC";
        let mut sql = Sql::new(format!(
            "SELECT advisory, body FROM (SELECT advisory, body, ROW_NUMBER() OVER ({order}) AS place FROM advisory_events WHERE"
        ));
        sql.bind_list(" advisory IN ", part.iter().map(|uid| Value::from(*uid)));
        sql.bind(" AND state = ", ReviewStatus::Approved as i32);
        sql.bind(" AND type <> ", EventTypeFilter::ComponentLocationChanged as i32).push(") e WHERE place = 1");
        let read = |row: &Row<'_>| {
            let event = AdvisoryEvent::decode(row.bytes(1)?.as_slice()).map_err(Error::internal)?;
            Ok::<_, Error>((row.text(0)?, event))
        };
        for (advisory, event) in tx.query(&sql.text, &sql.params, read).await? {
            let fixed = match event.r#type {
                Some(Type::Fixed(fixed)) => FixedVersions::From(fixed.fixed_version),
                Some(Type::Patched(patched)) => FixedVersions::Exactly(patched.patched_versions),
                _ => continue,
            };
            versions.insert(advisory, fixed);
        }
    }
    Ok(versions)
}

/// Stores a new event of the advisory.
///
/// # Errors
/// RESOURCE_EXHAUSTED where the advisory has as many as one can have.
pub(crate) async fn insert(tx: &mut WriteTx, advisory: &AdvisoryRow, event: &EventRow, now: Micros) -> Result<()> {
    let body = event.body.encode_to_vec();
    require_room(advisory, 1, body.len() as i64)?;
    let sql = "INSERT INTO advisory_events (uid, advisory, org, type, state, author, reviewer, at, created_at, body)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let params = [
        Value::from(event.uid.as_str()),
        Value::from(event.advisory()),
        Value::from(event.uid.root_str()),
        Value::from(event.kind()? as i32),
        Value::from(event.state as i32),
        Value::from(&event.author),
        Value::from(&event.reviewer),
        Value::Int(event.at),
        Value::Int(event.created_at),
        Value::from(&body),
    ];
    tx.execute(sql, &params).await?;
    follow(tx, advisory, 1, body.len() as i64, now).await
}

/// Stores what a review changed.
///
/// # Errors
/// RESOURCE_EXHAUSTED where the events of the advisory would become too large.
pub(crate) async fn save(
    tx: &mut WriteTx,
    advisory: &AdvisoryRow,
    before: &EventRow,
    after: &EventRow,
    now: Micros,
) -> Result<()> {
    let body = after.body.encode_to_vec();
    let grown = body.len() as i64 - before.body.encoded_len() as i64;
    require_room(advisory, 0, grown)?;
    let sql = "UPDATE advisory_events SET type = $1, state = $2, author = $3, reviewer = $4, at = $5, body = $6
               WHERE uid = $7";
    let params = [
        Value::from(after.kind()? as i32),
        Value::from(after.state as i32),
        Value::from(&after.author),
        Value::from(&after.reviewer),
        Value::Int(after.at),
        Value::from(&body),
        Value::from(after.uid.as_str()),
    ];
    tx.execute(sql, &params).await?;
    follow(tx, advisory, 0, grown, now).await
}

fn require_room(advisory: &AdvisoryRow, more: i64, bytes: i64) -> Result<()> {
    let refuse = |what: String| {
        let description = format!("the advisory {} {what}; create another one", advisory.uid);
        Err(Error::quota(advisory.uid.as_str(), description))
    };
    if advisory.event_count + more > MAX_EVENTS {
        return refuse(format!("has {MAX_EVENTS} events, which is the most"));
    }
    if bytes > 0 && advisory.event_bytes + bytes > MAX_EVENT_BYTES {
        return refuse(format!("would have events of more than {MAX_EVENT_BYTES} bytes"));
    }
    Ok(())
}

/// Brings the advisory up to date after one of its events came or changed.
async fn follow(tx: &mut WriteTx, advisory: &AdvisoryRow, more: i64, bytes: i64, now: Micros) -> Result<()> {
    let AdvisoryRow { uid: advisory, aliases, .. } = advisory;
    let latest = latest_approved(tx, advisory, false).await?;
    let assessment = latest_approved(tx, advisory, true).await?;
    let sql = "UPDATE advisories SET latest_event_type = $1, latest_event_at = $2, latest_judgement_type = $3,
                 event_count = event_count + $4, event_bytes = event_bytes + $5, updated_at = $6
               WHERE uid = $7";
    let params = [
        Value::Int(latest.map_or(0, |(kind, _)| kind)),
        Value::OptInt(latest.map(|(_, at)| at)),
        Value::Int(assessment.map_or(0, |(kind, _)| kind)),
        Value::Int(more),
        Value::Int(bytes),
        Value::Int(now),
        Value::from(advisory.as_str()),
    ];
    tx.execute(sql, &params).await?;
    waiting::note(tx, advisory, aliases).await?;
    publication::note(tx, advisory.parent_str()).await
}

/// Kind and time of the latest approved event; with `judging`, of those that assess the vulnerability.
async fn latest_approved(tx: &mut ReadTx, advisory: &Uidp, only_assessments: bool) -> Result<Option<(i64, Micros)>> {
    let left_out =
        if only_assessments { EventTypeFilter::ComponentLocationChanged } else { EventTypeFilter::Unspecified };
    let sql = "SELECT type, at FROM advisory_events WHERE advisory = $1 AND state = $2 AND type <> $3
               ORDER BY at DESC, created_at DESC, uid DESC LIMIT 1";
    let params =
        [Value::from(advisory.as_str()), Value::from(ReviewStatus::Approved as i32), Value::from(left_out as i32)];
    tx.query_opt(sql, &params, |row| Ok((row.int(0)?, row.int(1)?))).await
}
