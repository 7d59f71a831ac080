//! Sessions: how they begin, whom they are of, and how they end. A token that names a session ends with its row.

use std::collections::BTreeSet;

use bowline_authn::crypto::sha256;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Actor, Change, Narrowing, OPERATOR, Principal, record_audit};
use bowline_resources::kinds::SESSION;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::{Context, Parts, Signed, providers};
use crate::access::iam_changed;
use crate::iam::identities;
use crate::oidc::refusals;

/// How long a session lasts that nothing keeps: as long as one access token.
pub(super) const HOUR: Micros = 3_600_000_000;
/// How long a session lasts at most.
pub(super) const MONTH: Micros = 30 * 24 * HOUR;

/// A session as it is stored.
#[derive(Clone, Debug)]
pub(super) struct SessionRow {
    pub(super) id: String,
    pub(super) identity: Uidp,
    /// UIDP of the organization's provider; empty for one of the operator's.
    pub(super) provider: String,
    pub(super) created_at: Micros,
}

const COLUMNS: &str = "id, identity, provider, created_at";

impl SessionRow {
    fn read(row: &Row<'_>) -> Result<SessionRow> {
        let identity = row.text(1)?;
        Ok(SessionRow {
            id: row.text(0)?,
            identity: Uidp::parse(&identity).map_err(|_| Error::internal("a session has a damaged identity"))?,
            provider: row.text(2)?,
            created_at: row.int(3)?,
        })
    }
}

/// The session of this id, unless it has ended.
pub(super) async fn find(tx: &mut ReadTx, id: &str, now: Micros) -> Result<Option<SessionRow>> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE id = $1 AND expires_at > $2");
    tx.query_opt(&sql, &[Value::from(id), Value::Int(now)], SessionRow::read).await
}

async fn find_by_cookie(tx: &mut ReadTx, cookie: &[u8; 32], now: Micros) -> Result<Option<SessionRow>> {
    let hash = sha256(cookie);
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE cookie_hash = $1 AND expires_at > $2");
    tx.query_opt(&sql, &[Value::Bytes(&hash), Value::Int(now)], SessionRow::read).await
}

/// Begins a session with those of the groups that mean something at the provider. It lasts an hour: longer only if a
/// cookie keeps it, and never longer if membership in a group gives it roles, since no one would look again whether
/// the person still is a member.
pub(super) async fn begin(
    tx: &mut WriteTx,
    session: &SessionRow,
    cookie_hash: Option<[u8; 32]>,
    groups: &[String],
) -> Result<()> {
    let mapped = mapped_groups(tx, &session.provider, groups).await?;
    let lasts = if cookie_hash.is_some() && mapped.is_empty() { MONTH } else { HOUR };
    if let Some(hash) = &cookie_hash {
        // A browser has one session: the newest.
        tx.execute("UPDATE sessions SET cookie_hash = NULL WHERE cookie_hash = $1", &[Value::Bytes(hash)]).await?;
    }
    let sql = "INSERT INTO sessions (id, identity, provider, cookie_hash, created_at, expires_at)
               VALUES ($1, $2, $3, $4, $5, $6)";
    let params = [
        Value::from(&session.id),
        Value::from(session.identity.as_str()),
        Value::from(&session.provider),
        Value::OptBytes(cookie_hash.as_ref().map(<[u8; 32]>::as_slice)),
        Value::Int(session.created_at),
        Value::Int(session.created_at + lasts),
    ];
    tx.execute(sql, &params).await?;
    for group in &mapped {
        let sql = "INSERT INTO session_groups (session, external_group) VALUES ($1, $2)";
        tx.execute(sql, &[Value::from(&session.id), Value::from(group)]).await?;
    }
    iam_changed(tx).await
}

/// Maximum number of groups of one statement.
const AT_ONCE: usize = 50;

async fn mapped_groups(tx: &mut ReadTx, provider: &str, groups: &[String]) -> Result<BTreeSet<String>> {
    let mut mapped = BTreeSet::new();
    if provider.is_empty() {
        return Ok(mapped);
    }
    let placeholders: Vec<String> = (2..=AT_ONCE + 1).map(|n| format!("${n}")).collect();
    let sql = format!(
        "SELECT DISTINCT external_group FROM external_group_role_mappings WHERE parent = $1 AND external_group IN ({})",
        placeholders.join(", ")
    );
    for some in groups.chunks(AT_ONCE) {
        // One text of the statement for any number: what is missing repeats the first.
        let padding = std::iter::repeat_n(&some[0], AT_ONCE - some.len());
        let mut params = vec![Value::from(provider)];
        params.extend(some.iter().chain(padding).map(Value::from));
        mapped.extend(tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?);
    }
    Ok(mapped)
}

/// Whether membership in a group gives the session roles, or did.
pub(super) async fn has_groups(tx: &mut ReadTx, session: &str) -> Result<bool> {
    let sql = "SELECT session FROM session_groups WHERE session = $1 LIMIT 1";
    let found = tx.query_opt(sql, &[Value::from(session)], |row| row.text(0).map_err(Error::from)).await?;
    Ok(found.is_some())
}

/// Lets a session last for its month.
pub(super) async fn keep(tx: &mut WriteTx, session: &SessionRow) -> Result<Micros> {
    let end = session.created_at + MONTH;
    let sql = "UPDATE sessions SET expires_at = $2 WHERE id = $1";
    tx.execute(sql, &[Value::from(&session.id), Value::Int(end)]).await?;
    iam_changed(tx).await?;
    Ok(end)
}

/// What a session is limited to, and the provider that limits it.
pub(super) struct Limits {
    pub(super) narrowing: Narrowing,
    /// For the claim `idp`.
    pub(super) provider: Option<String>,
}

/// Looks whether the session's provider still lets the person in, and what the session is limited to by it.
///
/// # Errors
/// UNAUTHENTICATED if the provider is gone or the organization's directory has deactivated the person.
pub(super) async fn limits(tx: &mut ReadTx, parts: &Parts, session: &SessionRow) -> Result<Limits> {
    if session.provider.is_empty() {
        let row = identities::find(tx, session.identity.as_str()).await?.ok_or_else(refusals::own_subject)?;
        if !providers::is_operators(tx, &parts.providers, &row.issuer, None).await? {
            return Err(refusals::own_subject());
        }
        return Ok(Limits { narrowing: Narrowing::default(), provider: None });
    }
    let provider = providers::find(tx, &session.provider).await?.ok_or_else(refusals::own_subject)?;
    if provider.scim_enabled && !is_provisioned(tx, &session.provider, &session.identity).await? {
        return Err(refusals::own_subject());
    }
    if providers::is_operators(tx, &parts.providers, &provider.issuer, Some(&provider.client_id)).await? {
        return Ok(Limits { narrowing: Narrowing::default(), provider: None });
    }
    // Anyone who runs a provider of some group must not act for people in what lies above it.
    let group = provider.uid.parent().unwrap_or_else(|| provider.uid.root());
    let narrowing = Narrowing { capabilities: None, scopes: vec![group] };
    Ok(Limits { narrowing, provider: Some(session.provider.clone()) })
}

async fn is_provisioned(tx: &mut ReadTx, provider: &str, person: &Uidp) -> Result<bool> {
    let sql = "SELECT uid FROM scim_users WHERE provider = $1 AND person = $2 AND active LIMIT 1";
    let params = [Value::from(provider), Value::from(person.as_str())];
    Ok(tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await?.is_some())
}

/// Ends a session with its refresh tokens.
pub(crate) async fn end(tx: &mut WriteTx, session: &str) -> Result<()> {
    for sql in [
        "DELETE FROM session_groups WHERE session = $1",
        "DELETE FROM refresh_tokens WHERE session = $1",
        "DELETE FROM sessions WHERE id = $1",
    ] {
        tx.execute(sql, &[Value::from(session)]).await?;
    }
    iam_changed(tx).await
}

/// Ends every session of an identity.
pub(crate) async fn end_all_of(tx: &mut WriteTx, identity: &Uidp) -> Result<()> {
    let sql = "SELECT id FROM sessions WHERE identity = $1 ORDER BY id";
    let read = |row: &Row<'_>| row.text(0).map_err(Error::from);
    for session in tx.query(sql, &[Value::from(identity.as_str())], read).await? {
        end(tx, &session).await?;
    }
    // Of sessions that were pruned before their tokens.
    tx.execute("DELETE FROM refresh_tokens WHERE identity = $1", &[Value::from(identity.as_str())]).await?;
    Ok(())
}

/// Writes to the audit log what happened to a session. The row is about the provider where an organization's own was
/// used, so that the organization sees it, else about the person.
pub(super) async fn audit(
    tx: &mut WriteTx,
    session: &SessionRow,
    now: Micros,
    request: &(String, String),
) -> Result<()> {
    let (request_id, method) = request;
    let actor = Actor { subject: session.identity.as_str(), request_id, method };
    let about = if session.provider.is_empty() { session.identity.as_str() } else { &session.provider };
    let change = Change { kind: SESSION, uid: about.into(), before: None, after: None };
    record_audit(tx, now, &actor, &change).await
}

/// What the audit log needs of the request.
pub(super) fn request(context: &Context<'_>) -> (String, String) {
    (context.request_id.to_owned(), context.method.to_owned())
}

/// Ends the session of a cookie.
pub(super) async fn sign_out(parts: &Parts, cookie: [u8; 32], context: &Context<'_>) -> Result<bool> {
    let (now, request) = (context.now, request(context));
    let db = parts.db.from_reserve();
    let written = db.write(move |tx| {
        let request = request.clone();
        Box::pin(async move {
            let Some(session) = find_by_cookie(tx, &cookie, now).await? else { return Ok(false) };
            end(tx, &session.id).await?;
            audit(tx, &session, now, &request).await?;
            Ok(true)
        })
    });
    written.await
}

/// Ends the session that an access token of this server belongs to; any other text is as good as revoked (RFC 7009). A token
/// for another identity than the session's has no say in it.
pub(super) async fn revoke(parts: &Parts, token: &str, context: &Context<'_>) -> Result<()> {
    let principal = parts.authenticator.authenticate(Some(token), &parts.settings.audiences(), context.now);
    let Ok(Principal::Token(facts)) = principal else { return Ok(()) };
    let (now, request) = (context.now, request(context));
    let db = parts.db.from_reserve();
    let written = db.write(move |tx| {
        let (facts, request) = (facts.clone(), request.clone());
        Box::pin(async move {
            let Some(id) = &facts.session else { return Ok(()) };
            match find(tx, id, now).await?.filter(|session| session.identity == facts.subject) {
                Some(session) => {
                    end(tx, &session.id).await?;
                    audit(tx, &session, now, &request).await
                }
                None => Ok(()),
            }
        })
    });
    written.await
}

/// Who has this cookie.
pub(super) async fn signed(parts: &Parts, cookie: [u8; 32], now: Micros) -> Result<Option<Signed>> {
    let read = parts.db.read(move |tx| {
        Box::pin(async move {
            let Some(session) = find_by_cookie(tx, &cookie, now).await? else { return Ok(None) };
            let is_alive =
                |row: &identities::IdentityRow| !row.deactivated && row.expires_at.is_none_or(|end| now < end);
            let row = identities::find(tx, session.identity.as_str()).await?.filter(is_alive);
            Ok(row.map(|row| Signed {
                is_operator: row.uid.as_str() == OPERATOR,
                identity: row.uid,
                session: session.id,
                name: row.name,
                email: row.email,
            }))
        })
    });
    read.await
}
