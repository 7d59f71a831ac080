//! The audit log and the outbox: rows in the transaction of the change, or none at all.

use bowline_contract::MethodInfo;
use bowline_core::{Micros, Result};
use bowline_store::{Value, WriteTx};
use serde_json::json;

use crate::audit::{HASH_LENGTH, snapshot_hash};
use crate::call::Context;
use crate::changed::{Change, EventBody, ResourceSnapshot};

/// Who changed something, for the audit log.
#[derive(Clone, Debug)]
pub struct Actor<'a> {
    /// UIDP of the identity.
    pub subject: &'a str,
    /// Id of the request.
    pub request_id: &'a str,
    /// Full name of the method, or the name of a command.
    pub method: &'a str,
}

const INSERT_AUDIT: &str = "
INSERT INTO audit (at, org, actor, method, request_id, kind, resource,
  before_type, before_hash, before_image, after_type, after_hash, after_image)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

const INSERT_OUTBOX: &str = "
INSERT INTO outbox (at, event_type, customer, org, group_uid, subject, method, actor, extensions, body_type, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/// Appends one row to the audit log. Its number and its links in the hash chains are assigned after the
/// commit.
pub async fn record_audit(tx: &mut WriteTx, at: Micros, actor: &Actor<'_>, change: &Change) -> Result<()> {
    fn parts(snapshot: Option<&ResourceSnapshot>) -> (Option<&str>, Option<&[u8]>) {
        (snapshot.map(|snapshot| snapshot.type_name.as_str()), snapshot.map(|snapshot| snapshot.bytes.as_slice()))
    }
    let (before_type, before) = parts(change.before.as_ref());
    let (after_type, after) = parts(change.after.as_ref());
    let before_hash = before.map(snapshot_hash);
    let after_hash = after.map(snapshot_hash);
    let params = [
        Value::Int(at),
        Value::Text(root(&change.uid)),
        Value::Text(actor.subject),
        Value::Text(actor.method),
        Value::Text(actor.request_id),
        Value::Text(change.kind),
        Value::Text(&change.uid),
        Value::OptText(before_type),
        Value::OptBytes(before_hash.as_ref().map(<[u8; HASH_LENGTH]>::as_slice)),
        Value::OptBytes(before),
        Value::OptText(after_type),
        Value::OptBytes(after_hash.as_ref().map(<[u8; HASH_LENGTH]>::as_slice)),
        Value::OptBytes(after),
    ];
    tx.execute(INSERT_AUDIT, &params).await?;
    Ok(())
}

/// Appends everything that a call changed, and its event.
pub(crate) async fn record(
    tx: &mut WriteTx,
    context: &Context,
    changes: &[Change],
    event: Option<&EventBody>,
) -> Result<()> {
    let info = context.info();
    let actor =
        Actor { subject: context.principal.subject(), request_id: &context.request_id, method: &info.full_name };
    for change in changes {
        record_audit(tx, context.now, &actor, change).await?;
    }
    if let Some(event) = event {
        let act = context.principal.token().and_then(|token| token.actor.as_ref());
        record_event(tx, info, context.now, &actor, act, event).await?;
    }
    Ok(())
}

/// Appends the event of a method to the outbox, if the contract declares one. `act` is the `act` claim of the
/// actor's token. Code outside of handlers calls it directly; handlers
/// return their event in `Changed` instead.
pub async fn record_event(
    tx: &mut WriteTx,
    info: &MethodInfo,
    at: Micros,
    actor: &Actor<'_>,
    act: Option<&serde_json::Value>,
    event: &EventBody,
) -> Result<()> {
    let Some(rule) = &info.event else { return Ok(()) };
    let actor_json = event_actor(actor.subject, act);
    let extensions: serde_json::Map<String, serde_json::Value> =
        event.extensions.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let extensions = serde_json::Value::Object(extensions).to_string();
    // People belong to no organization: an event without a group belongs to its subject's root.
    let scope = if event.group.is_empty() { &event.subject } else { &event.group };
    let params = [
        Value::Int(at),
        Value::Text(&rule.event_type),
        Value::Bool(rule.customer),
        Value::Text(root(scope)),
        Value::Text(&event.group),
        Value::Text(&event.subject),
        Value::Text(&info.full_name),
        Value::Text(&actor_json),
        Value::Text(&extensions),
        Value::Text(&event.body.type_name),
        Value::Bytes(&event.body.bytes),
    ];
    tx.execute(INSERT_OUTBOX, &params).await?;
    Ok(())
}

/// Who did something, as events name them.
pub(crate) fn event_actor(subject: &str, act: Option<&serde_json::Value>) -> String {
    json!({ "subject": subject, "act": texts(act) }).to_string()
}

/// The claims as strings: the public SDK, with which subscribers read events, rejects events with other
/// values.
fn texts(claims: Option<&serde_json::Value>) -> serde_json::Map<String, serde_json::Value> {
    let claims = claims.and_then(serde_json::Value::as_object).into_iter().flatten();
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(_) => value.clone(),
        other => other.to_string().into(),
    };
    claims.map(|(name, value)| (name.clone(), text(value))).collect()
}

fn root(uid: &str) -> &str {
    uid.split('/').next().unwrap_or(uid)
}
