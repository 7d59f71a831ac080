//! Entering: a person whom a provider has vouched for is registered or found again, and gets a session.
//!
//! What a provider may do is decided here. One of the operator's vouches for its people everywhere. One of an
//! organization's can sign in as anyone of its issuer, so that its word counts inside that organization only: an
//! address that it calls verified is not stored as verified, and what it lets people join is its own organization.

use std::sync::Arc;

use bowline_authn::crypto::sha256;
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::{Actor, Change, ResourceSnapshot, record_audit};
use bowline_resources::kinds::IDENTITY;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::first_grants::{bind_default_role, join, tell_registration};
use super::providers::{self, OrganizationProvider};
use super::sessions::{self, SessionRow};
use super::{Context, Entry, Login, Parts, Provider, Source, Upstream};
use crate::access::iam_changed;
use crate::iam::group_invites::{InviteCode, read_code};
use crate::iam::human_uid;
use crate::iam::identities::{self, IdentityRow};
use crate::oidc::issuing::first_half;
use crate::scim;

/// A sign-in before it is decided: everything that the transaction needs, for each of its attempts.
pub(super) struct SignInAttempt {
    /// UIDP of the organization's provider; absent for one of the operator's.
    pub(super) provider: Option<Uidp>,
    pub(super) upstream: Upstream,
    pub(super) invite: Option<InviteCode>,
    pub(super) may_register: bool,
    pub(super) now: Micros,
    /// Id of the request, and what was called.
    pub(super) request: (String, String),
    /// For the binding of the default role.
    pub(super) binding: [u8; 8],
}

pub(super) struct SignedIn {
    pub(super) row: IdentityRow,
    pub(super) is_new: bool,
    /// The group that an invitation let them into.
    pub(super) group: Option<Uidp>,
}

/// Who vouches, as this transaction sees it.
pub(super) struct ProviderTrust {
    pub(super) organization: Option<OrganizationProvider>,
    /// Whether the operator trusts what the issuer says of people.
    pub(super) is_operators: bool,
}

pub(super) async fn sign_in(
    parts: &Arc<Parts>,
    provider: &Provider,
    upstream: &Upstream,
    entry: &Entry,
    context: &Context<'_>,
) -> Result<Login> {
    let invite = entry.invite.as_deref().map(|code| read_code(&parts.vault, code)).transpose()?;
    let attempt = SignInAttempt::new(provider, upstream, invite, entry.may_register, context)?;
    let id = bowline_core::hex(&first_half((context.draw)()));
    let cookie_hash = entry.cookie.map(|cookie| sha256(&cookie));
    let job = Arc::new((parts.clone(), attempt, id, cookie_hash));
    parts
        .db
        .write(move |tx| {
            let job = job.clone();
            Box::pin(async move {
                let (parts, attempt, id, cookie_hash) = &*job;
                let signed_in = admit(tx, parts, attempt).await?;
                begin(tx, attempt, &signed_in.row.uid, id, *cookie_hash).await?;
                Ok::<_, Error>(Login { session: id.clone(), identity: signed_in.row.uid, is_new: signed_in.is_new })
            })
        })
        .await
}

/// Begins the session of someone inside, with its audit row.
pub(super) async fn begin(
    tx: &mut WriteTx,
    attempt: &SignInAttempt,
    identity: &Uidp,
    id: &str,
    cookie_hash: Option<[u8; 32]>,
) -> Result<()> {
    let session = SessionRow {
        id: id.into(),
        identity: identity.clone(),
        provider: attempt.provider.as_ref().map(|uid| uid.as_str().to_owned()).unwrap_or_default(),
        created_at: attempt.now,
    };
    sessions::begin(tx, &session, cookie_hash, &attempt.upstream.groups).await?;
    sessions::audit(tx, &session, attempt.now, &attempt.request).await
}

/// The person's identity, if they are registered.
pub(super) async fn find(parts: &Parts, provider: &Provider, upstream: &Upstream) -> Result<Option<Uidp>> {
    validate_issuer(provider, upstream)?;
    let uid = human_uid(&upstream.issuer, &upstream.subject);
    let row = parts.db.read(move |tx| Box::pin(async move { identities::find(tx, uid.as_str()).await })).await?;
    Ok(row.map(|row| row.uid))
}

/// A defect of the caller must not let one provider vouch for another's people.
fn validate_issuer(provider: &Provider, upstream: &Upstream) -> Result<()> {
    if provider.issuer == upstream.issuer {
        return Ok(());
    }
    Err(Error::internal("a sign-in was completed with another provider than it began with"))
}

impl SignInAttempt {
    pub(super) fn new(
        provider: &Provider,
        upstream: &Upstream,
        invite: Option<InviteCode>,
        may_register: bool,
        context: &Context<'_>,
    ) -> Result<SignInAttempt> {
        validate_issuer(provider, upstream)?;
        let provider = match &provider.source {
            Source::Operator { .. } => None,
            Source::Organization { uid } => Some(uid.clone()),
        };
        let drawn = (context.draw)();
        Ok(SignInAttempt {
            provider,
            upstream: upstream.clone(),
            invite,
            may_register,
            now: context.now,
            request: sessions::request(context),
            binding: std::array::from_fn(|i| drawn[i]),
        })
    }

    pub(super) fn actor<'a>(&'a self, person: &'a Uidp) -> Actor<'a> {
        Actor { subject: person.as_str(), request_id: &self.request.0, method: &self.request.1 }
    }
}

/// Lets a person in, registering them first if they are new and may.
pub(super) async fn admit(tx: &mut WriteTx, parts: &Parts, attempt: &SignInAttempt) -> Result<SignedIn> {
    let trust = provider_trust(tx, parts, attempt).await?;
    let uid = human_uid(&attempt.upstream.issuer, &attempt.upstream.subject);
    validate_provisioned(tx, &trust, attempt, &uid).await?;
    let known = identities::find(tx, uid.as_str()).await?;
    let is_new = known.is_none();
    let row = match known {
        Some(row) => refresh(tx, &trust, attempt, row).await?,
        None if attempt.may_register => register(tx, &trust, attempt, uid).await?,
        None => return Err(not_registered()),
    };
    let mut group = None;
    if is_new && let Some(provider) = &trust.organization {
        bind_default_role(tx, parts, attempt, provider, &row.uid).await?;
    }
    if let Some(invite) = &attempt.invite {
        group = Some(join(tx, parts, &trust, attempt, invite, &row.uid).await?);
    }
    if is_new {
        let scope = group.clone().or_else(|| trust.organization.as_ref().and_then(|provider| provider.uid.parent()));
        tell_registration(tx, parts, attempt, &row.uid, scope).await?;
    }
    Ok(SignedIn { row, is_new, group })
}

/// The provider in this snapshot: it may have been removed or changed since the person was verified. An
/// issuer asserts an identity to one client, so the provider must still have the client that received the
/// assertion.
async fn provider_trust(tx: &mut ReadTx, parts: &Parts, attempt: &SignInAttempt) -> Result<ProviderTrust> {
    let organization = match &attempt.provider {
        None => None,
        Some(uid) => providers::find(tx, uid.as_str()).await?,
    };
    let Upstream { issuer, client_id, .. } = &attempt.upstream;
    let is_operators = providers::is_operators(tx, &parts.providers, issuer, Some(client_id)).await?;
    let is_there = match (&attempt.provider, &organization) {
        (None, _) => is_operators,
        (Some(_), Some(provider)) => provider.issuer == *issuer && provider.client_id == *client_id,
        (Some(_), None) => false,
    };
    if is_there { Ok(ProviderTrust { organization, is_operators }) } else { Err(provider_gone()) }
}

fn provider_gone() -> Error {
    Error::permission_denied(
        "Permission denied: the identity provider is not in use here any more; sign in with another",
    )
}

pub(super) fn not_registered() -> Error {
    Error::new(Reason::NotFound, "Not found: there is no account of this person; register first")
}

/// Stored number of the rule that the directory knows people by their object id.
const BY_OBJECT_ID: i32 = 2;

/// Where an organization provisions its people, no one else comes in through its provider.
async fn validate_provisioned(
    tx: &mut WriteTx,
    trust: &ProviderTrust,
    attempt: &SignInAttempt,
    person: &Uidp,
) -> Result<()> {
    let Some(provider) = trust.organization.as_ref().filter(|provider| provider.scim_enabled) else { return Ok(()) };
    let upstream = &attempt.upstream;
    let external = match provider.correlation_rule {
        BY_OBJECT_ID => upstream.oid.as_deref().ok_or_else(not_provisioned)?,
        _ => &upstream.subject,
    };
    let sql = "SELECT uid, person FROM scim_users WHERE provider = $1 AND external_id = $2 AND active";
    let params = [Value::from(provider.uid.as_str()), Value::from(external)];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let (uid, known) = tx.query_opt(sql, &params, read).await?.ok_or_else(not_provisioned)?;
    if known == person.as_str() {
        return Ok(());
    }
    if !known.is_empty() {
        return Err(not_provisioned());
    }
    let change = scim::link(tx, &uid, person).await?;
    record_audit(tx, attempt.now, &attempt.actor(person), &change).await?;
    iam_changed(tx).await
}

fn not_provisioned() -> Error {
    Error::permission_denied(
        "Permission denied: the organization's directory does not list this person as active; ask its administrator",
    )
}

/// Address and whether it counts as verified: only where the operator trusts the issuer.
pub(super) fn verified_email(upstream: &Upstream, is_trusted: bool) -> Option<&str> {
    upstream.email.as_deref().filter(|_| upstream.email_verified && is_trusted)
}

/// What the sign-in says of the person, put into the row.
fn describe(row: &mut IdentityRow, trust: &ProviderTrust, upstream: &Upstream) {
    let shown_name = upstream.name.as_deref().or(upstream.email.as_deref());
    if let Some(shown_name) = shown_name {
        row.name = shown_name.chars().take(200).collect();
    } else if row.name.is_empty() {
        row.name = "person".into();
    }
    match (&upstream.email, verified_email(upstream, trust.is_operators)) {
        (_, Some(email)) => {
            row.email = email.into();
            row.email_unverified = String::new();
        }
        // What was verified before stays, unless the provider that may say so says otherwise.
        (Some(email), None) if trust.is_operators => {
            row.email = String::new();
            row.email_unverified.clone_from(email);
        }
        (Some(email), None) if row.email.is_empty() => row.email_unverified.clone_from(email),
        _ => {}
    }
}

async fn register(tx: &mut WriteTx, trust: &ProviderTrust, attempt: &SignInAttempt, uid: Uidp) -> Result<IdentityRow> {
    let mut row = IdentityRow {
        uid,
        name: String::new(),
        description: String::new(),
        email: String::new(),
        email_unverified: String::new(),
        company: String::new(),
        relationship_type: 0,
        stored: Vec::new(),
        issuer: attempt.upstream.issuer.clone(),
        subject: attempt.upstream.subject.clone(),
        expires_at: None,
        deactivated: false,
        last_seen_at: Some(attempt.now),
        created_at: attempt.now,
        updated_at: attempt.now,
    };
    describe(&mut row, trust, &attempt.upstream);
    identities::insert(tx, &row).await?;
    audit(tx, attempt, &row, None).await?;
    Ok(row)
}

/// Takes over what the provider says of a known person today.
async fn refresh(
    tx: &mut WriteTx,
    trust: &ProviderTrust,
    attempt: &SignInAttempt,
    before: IdentityRow,
) -> Result<IdentityRow> {
    if before.deactivated {
        return Err(Error::permission_denied("Permission denied: the account is deactivated; ask your administrator"));
    }
    let mut after = before.clone();
    describe(&mut after, trust, &attempt.upstream);
    let shown_name = |row: &IdentityRow| (row.name.clone(), row.email.clone(), row.email_unverified.clone());
    if shown_name(&before) == shown_name(&after) {
        return Ok(before);
    }
    after.updated_at = attempt.now;
    let sql = "UPDATE identities SET name = $2, email = $3, email_unverified = $4, updated_at = $5 WHERE uid = $1";
    let params = [
        Value::from(after.uid.as_str()),
        Value::from(&after.name),
        Value::from(&after.email),
        Value::from(&after.email_unverified),
        Value::Int(after.updated_at),
    ];
    tx.execute(sql, &params).await?;
    audit(tx, attempt, &after, Some(&before)).await?;
    Ok(after)
}

async fn audit(
    tx: &mut WriteTx,
    attempt: &SignInAttempt,
    after: &IdentityRow,
    before: Option<&IdentityRow>,
) -> Result<()> {
    let change = Change {
        kind: IDENTITY,
        uid: after.uid.as_str().into(),
        before: before.map(|row| row.to_v2().map(|shown| ResourceSnapshot::of(&shown))).transpose()?,
        after: Some(ResourceSnapshot::of(&after.to_v2()?)),
    };
    record_audit(tx, attempt.now, &attempt.actor(&after.uid), &change).await
}
