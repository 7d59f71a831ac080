//! Previews: the changes that a call would make. The pipeline runs the call in a transaction that is rolled back; this
//! module turns its changes into a response, as far as the caller may list them.

use bowline_contract::bowline::audit::v1::Image;
use bowline_contract::bowline::preview::v1 as own;
use bowline_contract::bowline::preview::v1::rpc::previews::Preview;
use bowline_contract::bowline::registry::v1 as registry;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{Code, Error, Result, Uidp, hex};
use bowline_identity::{CapabilityDifference, capability_differences};
use bowline_pipeline::audit::snapshot_hash;
use bowline_pipeline::{Authorized, Change, Handlers, PreviewTarget, Previewed, PreviewedEvent, ResourceSnapshot};
use bowline_resources::kinds::REGISTRY_POLICY;
use bowline_store::ReadTx;
use prost::Message as _;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.preview::<Preview>(
        |request| {
            let prost_types::Any { type_url, value } = request.request.unwrap_or_default();
            PreviewTarget { method: request.method, type_url, request: value }
        },
        |tx, call, previewed| Box::pin(report(tx, call, previewed)),
    )
}

type Call = Authorized<own::PreviewRequest>;

/// Changes that a response lists, and pairs of identity and scope.
const SHOWN: usize = 1000;
/// Bytes of snapshots that a response carries, about.
const MAX_SNAPSHOT_BYTES: usize = 2 << 20;

async fn report(tx: &mut ReadTx, call: &Call, previewed: &Previewed) -> Result<own::PreviewResponse> {
    let visible: Vec<&Change> = previewed.changes.iter().filter(|change| may_list(call, change)).collect();
    let differences = capability_differences(tx, call, &previewed.changes).await?;
    let mut images = Images { call, bytes: 0 };
    let changes = visible.iter().take(SHOWN).map(|change| images.change(change)).collect();
    Ok(own::PreviewResponse {
        method: previewed.method.clone(),
        changes,
        more_changes: beyond_shown(visible.len()),
        events: previewed.event.iter().map(|one| event(one, visible.len() == previewed.changes.len())).collect(),
        more_capability_changes: beyond_shown(differences.list.len()),
        capability_changes: differences.list.iter().take(SHOWN).map(|one| capability_change(call, one)).collect(),
        capability_changes_incomplete: differences.is_incomplete,
        retention: retention(tx, call, &visible).await?,
    })
}

fn beyond_shown(count: usize) -> i32 {
    i32::try_from(count.saturating_sub(SHOWN)).unwrap_or(i32::MAX)
}

/// Whether the caller may list the kind there, as for entries of the audit log. What no method lists is seen by those
/// who may list role bindings.
fn may_list(call: &Call, change: &Change) -> bool {
    match call.contract().listing_of_kind(change.kind) {
        Some(listing) => call.grants().allows(&change.uid, listing),
        None => call.holds(&change.uid, Capability::CapIamRoleBindingsList),
    }
}

/// The event; without its body where it may have what the caller may not list.
fn event(event: &PreviewedEvent, shows_body: bool) -> own::PreviewedEvent {
    own::PreviewedEvent {
        r#type: event.event_type.clone(),
        group: event.body.group.clone(),
        subject: event.body.subject.clone(),
        delivered: event.customer,
        body: shows_body.then(|| any(&event.body.body)),
    }
}

fn capability_change(call: &Call, one: &CapabilityDifference) -> own::CapabilityChange {
    let names = |set| {
        let mut names: Vec<String> = call.contract().capabilities().names(set).into_iter().map(String::from).collect();
        names.sort_unstable();
        names
    };
    own::CapabilityChange {
        identity: one.identity.clone(),
        scope: one.scope.clone(),
        gained: names(&one.gained),
        lost: names(&one.lost),
    }
}

/// Makes snapshots into images, with their content as far as one response carries it.
struct Images<'a> {
    call: &'a Call,
    bytes: usize,
}

impl Images<'_> {
    fn change(&mut self, change: &Change) -> own::PreviewedChange {
        own::PreviewedChange {
            kind: change.kind.into(),
            resource: change.uid.clone(),
            before: change.before.as_ref().map(|snapshot| self.image(snapshot)),
            after: change.after.as_ref().map(|snapshot| self.image(snapshot)),
        }
    }

    fn image(&mut self, snapshot: &ResourceSnapshot) -> Image {
        let is_known = self.call.contract().pool().get_message_by_name(&snapshot.type_name).is_some();
        let has_room = self.bytes <= MAX_SNAPSHOT_BYTES;
        self.bytes += snapshot.bytes.len();
        Image {
            r#type: snapshot.type_name.clone(),
            hash: hex(&snapshot_hash(&snapshot.bytes)),
            content: (is_known && has_room).then(|| any(snapshot)),
        }
    }
}

fn any(snapshot: &ResourceSnapshot) -> prost_types::Any {
    prost_types::Any { type_url: format!("type.googleapis.com/{}", snapshot.type_name), value: snapshot.bytes.clone() }
}

/// What retention would remove by the new policy of a repository, for callers who may preview retention there.
async fn retention(tx: &mut ReadTx, call: &Call, visible: &[&Change]) -> Result<Option<registry::RetentionOutcome>> {
    let changed = visible.iter().find(|change| change.kind == REGISTRY_POLICY);
    let Some((change, after)) = changed.and_then(|change| change.after.as_ref().map(|after| (change, after))) else {
        return Ok(None);
    };
    let may_list = [Capability::CapManifestList, Capability::CapTagList, Capability::CapRepoList];
    if !may_list.iter().all(|capability| call.holds(&change.uid, *capability)) {
        return Ok(None);
    }
    let policy = registry::RegistryPolicy::decode(after.bytes.as_slice()).map_err(Error::internal)?;
    let repo = Uidp::parse(&change.uid).map_err(Error::internal)?;
    match bowline_registry::retention_by(tx, &repo, policy, call.now()).await {
        // `PreviewRetention` returns this error.
        Err(error) if error.code() == Code::FailedPrecondition => Ok(None),
        outcome => outcome,
    }
}
