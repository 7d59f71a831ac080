//! Bringing a batch of advisories into a group.

use bowline_contract::bowline::advisories::v1 as own;
use bowline_contract::bowline::advisories::v1::ImportOutcome;
use bowline_contract::bowline::advisories::v1::rpc::advisory_transfers::ImportAdvisories;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::vulnerabilities::ReviewStatus;
use bowline_core::{Error, FieldViolation, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, ResourceSnapshot, handler};
use bowline_resources::kinds::{ADVISORY, ADVISORY_EVENT};
use bowline_resources::references::require_scope;
use bowline_store::WriteTx;
use prost::Message as _;

use super::super::event_calls::new_event;
use super::super::operations::{self, NewAdvisory, NewEvent};
use super::super::review;
use super::super::rows::{self, AdvisoryRow};
use super::plan::{Entry, Plan, Step, Terms};
use super::{known, origins};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<ImportAdvisories>(handler!(import))
        .validate::<ImportAdvisories>(|request| validate(request.advisories.len()).into_iter().collect())
}

/// Maximum number of advisories of a batch: each batch is one transaction.
const MAX_ADVISORIES: usize = 100;

fn validate(advisories: usize) -> Option<FieldViolation> {
    let description = format!("at most {MAX_ADVISORIES} elements");
    (advisories > MAX_ADVISORIES).then(|| FieldViolation { field: "advisories".into(), description })
}

type Call = Authorized<own::ImportAdvisoriesRequest>;

async fn import(tx: &mut WriteTx, call: &Call) -> Result<Changed<own::ImportAdvisoriesResponse>> {
    let group = require_scope(tx, call).await?;
    let request = call.request();
    let approved = match request.status() {
        ReviewStatus::Unknown | ReviewStatus::Pending => false,
        ReviewStatus::Approved => true,
        ReviewStatus::RequestChanges | ReviewStatus::Rejected => {
            return Err(Error::invalid_field("status", "must be PENDING or APPROVED"));
        }
    };
    // Refused before anything else, and in a dry run too; each event is checked again when it is added.
    if approved {
        review::require_may_decide(tx, call, &group, call.principal().subject()).await?;
    }
    let terms =
        Terms { may_update: call.holds(group.as_str(), Capability::CapAdvisoriesUpdate), approved, now: call.now() };
    let entries = known::entries(tx, &group, &request.advisories).await?;
    let before: Vec<Vec<String>> = entries.iter().map(|entry| entry.aliases.clone()).collect();
    let taken = known::taken(tx, &group, &request.advisories).await?;
    let mut plan = Plan::new(entries, taken, terms);
    let mut steps: Vec<Step> = request.advisories.iter().map(|given| plan.add(given)).collect();
    if request.dry_run {
        return Ok(Changed::nothing(rendered(steps)));
    }
    let mut writer = Writer { call, group: &group, changes: Vec::new(), events: Vec::new() };
    writer.rows(tx, &mut plan.entries, &before).await?;
    for step in &mut steps {
        writer.events(tx, step, &mut plan.entries).await?;
    }
    origins::insert(tx, &writer.events, &request.source, &request.licence).await?;
    let changes = writer.changes;
    let event = summary(request, &steps);
    let is_changed = !changes.is_empty();
    let changed = Changed::many(changes, rendered(steps));
    Ok(if is_changed { with_event(changed, &group, &event) } else { changed })
}

fn rendered(steps: Vec<Step>) -> own::ImportAdvisoriesResponse {
    own::ImportAdvisoriesResponse { advisories: steps.into_iter().map(|step| step.result).collect() }
}

/// The event is about the group that got the advisories, and goes to its subscriptions.
fn with_event(
    changed: Changed<own::ImportAdvisoriesResponse>,
    group: &Uidp,
    event: &own::AdvisoryImport,
) -> Changed<own::ImportAdvisoriesResponse> {
    let mut changed = changed.with_event(group, event);
    if let Some(event) = &mut changed.event {
        event.group = group.as_str().into();
    }
    changed
}

fn summary(request: &own::ImportAdvisoriesRequest, steps: &[Step]) -> own::AdvisoryImport {
    let uids = |outcome: ImportOutcome| {
        let with = steps.iter().filter(|step| step.result.outcome() == outcome);
        let mut uids: Vec<String> = with.map(|step| step.result.uid.clone()).collect();
        uids.sort();
        uids.dedup();
        uids
    };
    let status =
        if request.status() == ReviewStatus::Approved { ReviewStatus::Approved } else { ReviewStatus::Pending };
    own::AdvisoryImport {
        parent: request.parent.clone(),
        source: request.source.clone(),
        licence: request.licence.clone(),
        status: status.into(),
        created_uids: uids(ImportOutcome::Created),
        changed_uids: uids(ImportOutcome::Changed),
        added_events: steps.iter().map(|step| step.result.added_events).sum(),
    }
}

/// Writes what was planned.
struct Writer<'a> {
    call: &'a Call,
    group: &'a Uidp,
    changes: Vec<Change>,
    events: Vec<Uidp>,
}

impl Writer<'_> {
    /// Creates the advisories that are new, and stores the aliases that others got.
    async fn rows(&mut self, tx: &mut WriteTx, entries: &mut [Entry], before: &[Vec<String>]) -> Result<()> {
        for (at, entry) in entries.iter_mut().enumerate() {
            match entry.row.take() {
                None => entry.row = Some(self.create(tx, entry).await?),
                Some(row) if before.get(at).is_some_and(|before| *before != entry.aliases) => {
                    let aliases = entry.aliases.clone();
                    let after = AdvisoryRow { aliases, updated_at: self.call.now(), ..row.clone() };
                    rows::save(tx, &row, &after).await?;
                    self.change(ADVISORY, &row.uid, Some(&row), &after);
                    entry.row = Some(after);
                }
                Some(row) => entry.row = Some(row),
            }
        }
        Ok(())
    }

    async fn create(&mut self, tx: &mut WriteTx, entry: &Entry) -> Result<AdvisoryRow> {
        let input = NewAdvisory {
            subject: entry.subject.clone(),
            aliases: entry.aliases.clone(),
            advisory_id: entry.advisory_id.clone(),
            legacy_id: String::new(),
        };
        let row = operations::create(tx, self.call, self.group, input).await?;
        self.change(ADVISORY, &row.uid, None, &row);
        Ok(row)
    }

    fn change(&mut self, kind: &'static str, uid: &Uidp, before: Option<&AdvisoryRow>, after: &AdvisoryRow) {
        let snapshot = |row: &AdvisoryRow| ResourceSnapshot::of(&row.to_v1(&[]));
        let change =
            Change { kind, uid: uid.as_str().into(), before: before.map(snapshot), after: Some(snapshot(after)) };
        self.changes.push(change);
    }

    /// Adds the events of one advisory of the batch.
    async fn events(&mut self, tx: &mut WriteTx, step: &mut Step, entries: &mut [Entry]) -> Result<()> {
        let Some(row) = step.entry.and_then(|at| entries.get_mut(at)).and_then(|entry| entry.row.as_mut()) else {
            return Ok(());
        };
        row.uid.as_str().clone_into(&mut step.result.uid);
        for event in std::mem::take(&mut step.events) {
            let input = NewEvent { state: self.call.request().status(), ..new_event(event, self.call.now())? };
            let event = operations::append_event(tx, self.call, row, input).await?;
            row.event_count += 1;
            row.event_bytes += event.body.encoded_len() as i64;
            self.changes.push(Change {
                kind: ADVISORY_EVENT,
                uid: event.uid.as_str().into(),
                before: None,
                after: Some(ResourceSnapshot::of(&event.rendered())),
            });
            self.events.push(event.uid);
        }
        Ok(())
    }
}
