//! What the methods of both versions and importers do with advisories. Whether the caller may is checked before, but for
//! the review, which is checked here: no one gets around it.

use bowline_contract::v1::vulnerabilities::advisory_event::{Detection, Type, detection};
use bowline_contract::v1::vulnerabilities::{AdvisoryEvent, ReviewStatus};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::Authorized;
use bowline_resources::kinds::ADVISORY;
use bowline_store::{Value, WriteTx};

use super::events::{self, EventRow};
use super::rows::{self, AdvisoryRow, Subject};
use super::{ids, review};

/// What a new advisory says.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewAdvisory {
    pub(crate) subject: Subject,
    pub(crate) aliases: Vec<String>,
    /// Public identifier of one that comes from elsewhere; one of this server is made if it is empty.
    pub(crate) advisory_id: String,
    pub(crate) legacy_id: String,
}

/// What a new event says.
#[derive(Clone, Debug)]
pub(crate) struct NewEvent {
    /// Kind, findings and issue; the other fields are not looked at.
    pub(crate) body: AdvisoryEvent,
    /// Time of the event; now by default.
    pub(crate) at: Option<Micros>,
    /// Where its review begins.
    pub(crate) state: ReviewStatus,
}

/// Creates an advisory in a group that exists.
///
/// # Errors
/// ALREADY_EXISTS if the group has one about the same artifact, component and vulnerability, or the organization one
/// with the same public identifier.
pub(crate) async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    group: &Uidp,
    input: NewAdvisory,
) -> Result<AdvisoryRow> {
    require_single(tx, group, &input.subject, &input.aliases, None).await?;
    let advisory_id = match input.advisory_id {
        given if given.is_empty() => ids::mint(&call.settings().advisory_prefix, call.draw()),
        given => given,
    };
    let row = AdvisoryRow {
        uid: call.new_child(group),
        advisory_id,
        legacy_id: input.legacy_id,
        subject: input.subject,
        aliases: input.aliases,
        author: call.principal().subject().to_owned(),
        latest_event_type: 0,
        latest_statement_type: 0,
        event_count: 0,
        event_bytes: 0,
        created_at: call.now(),
        updated_at: call.now(),
        deleted_at: None,
    };
    rows::insert(tx, &row).await?;
    Ok(row)
}

/// Refuses a second advisory about the same artifact, component and vulnerability in a group.
pub(super) async fn require_single(
    tx: &mut WriteTx,
    group: &Uidp,
    subject: &Subject,
    aliases: &[String],
    itself: Option<&Uidp>,
) -> Result<()> {
    let same = rows::find_same(tx, group, subject, aliases, itself).await?;
    same.map_or(Ok(()), |same| Err(Error::already_exists(ADVISORY, &same.advisory_id)))
}

/// Adds an event to an advisory, by the caller.
///
/// # Errors
/// PERMISSION_DENIED or FAILED_PRECONDITION for a state that the caller may not give it; RESOURCE_EXHAUSTED where the
/// advisory has as many events as one can have.
pub(crate) async fn append_event<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    advisory: &AdvisoryRow,
    input: NewEvent,
) -> Result<EventRow> {
    let author = call.principal().subject().to_owned();
    let state = review::begin(tx, call, &advisory.uid, input.state).await?;
    let decided = matches!(state, ReviewStatus::Approved);
    let event = EventRow {
        uid: call.new_child(&advisory.uid),
        state,
        reviewer: if decided { author.clone() } else { String::new() },
        author,
        at: input.at.unwrap_or(call.now()),
        created_at: call.now(),
        body: only_content(input.body),
    };
    events::insert(tx, advisory, &event, call.now()).await?;
    learn_origin(tx, advisory, &event).await?;
    Ok(event)
}

/// Kind, findings and issue: what an author writes. The rest is stored in columns.
pub(super) fn only_content(event: AdvisoryEvent) -> AdvisoryEvent {
    AdvisoryEvent { r#type: event.r#type, findings: event.findings, issue: event.issue, ..AdvisoryEvent::default() }
}

/// A scanner's finding in a package names the package that it is built from: the advisory's artifact.
pub(super) async fn learn_origin(tx: &mut WriteTx, advisory: &AdvisoryRow, event: &EventRow) -> Result<()> {
    let Some(Type::Detection(Detection { r#type: Some(detection::Type::Scanv1(scan)) })) = &event.body.r#type else {
        return Ok(());
    };
    let origin = &advisory.subject.artifact_name;
    if scan.subpackage_name.is_empty() || scan.subpackage_name == *origin {
        return Ok(());
    }
    let sql = "INSERT INTO package_origins (org, origin, package) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    let params = [Value::from(advisory.uid.root_str()), Value::from(origin), Value::from(&scan.subpackage_name)];
    tx.execute(sql, &params).await?;
    Ok(())
}
