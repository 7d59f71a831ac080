//! Tokens of a session: access tokens, refresh tokens, and id tokens for this server's exchange.

use std::sync::Arc;

use bowline_authn::claims::{AccessClaims, TokenClass, mint_value};
use bowline_contract::v1::oidc::{ExchangeRequest, RawToken};
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::Narrowing;
use bowline_store::{ReadTx, WriteTx};
use serde_json::{Value, json};

use super::first_grants::act;
use super::refresh::{self, Family};
use super::sessions::{self, SessionRow};
use super::{Context, Issued, Parts, TokenParams, Upstream};
use crate::iam::identities;
use crate::oidc::issuing::{self, Cause, Issuance, Proof, Standing, first_half, seconds};
use crate::oidc::params::ExchangeParams;
use crate::oidc::{narrowing, refusals};

/// How long an id token of this server is good: it is exchanged at once.
const ID_TOKEN_SECONDS: i64 = 300;

/// What tokens say of the sign-in besides the identity.
#[derive(Clone, Default)]
pub(super) struct About {
    pub(super) act: Option<Value>,
    pub(super) upstream: Option<Value>,
}

impl About {
    pub(super) fn of(upstream: &Upstream) -> About {
        let members = [
            ("email", &upstream.email),
            ("name", &upstream.name),
            ("given_name", &upstream.given_name),
            ("family_name", &upstream.family_name),
            ("picture", &upstream.picture),
        ];
        let known = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?))));
        About { act: Some(act(upstream)), upstream: Some(Value::Object(known.collect())) }
    }
}

impl Cause {
    pub(super) fn in_context(context: &Context<'_>) -> Cause {
        Cause {
            now: context.now,
            request_id: context.request_id.into(),
            method: context.method.into(),
            id: first_half((context.draw)()),
        }
    }
}

/// What one issuance needs, for every attempt of its transaction.
struct Job {
    parts: Arc<Parts>,
    session: String,
    params: ExchangeParams,
    about: About,
    /// A refresh token to go with it, if it may.
    family: Option<Family>,
    cause: Cause,
}

pub(super) async fn issue(
    parts: &Arc<Parts>,
    session: &str,
    upstream: &Upstream,
    params: &TokenParams,
    context: &Context<'_>,
) -> Result<Issued> {
    let validated = validate(parts, params)?;
    let cause = Cause::in_context(context);
    let job = Job {
        parts: parts.clone(),
        session: session.into(),
        params: validated,
        about: About::of(upstream),
        family: params.refresh.then(|| Family::drawn((context.draw)(), (context.draw)())),
        cause,
    };
    let own = session_of(parts, session, context.now).await?.identity;
    if job.params.identity.as_ref().is_some_and(|identity| *identity != own) {
        // The identity trusts what the provider says, or it does not: the session has no part in it.
        return issued(parts.exchange.assume(&upstream.id_token, job.params, job.cause).await?, None);
    }
    let job = Arc::new(job);
    let shared = job.clone();
    let written = parts.db.write(move |tx| {
        let job = shared.clone();
        Box::pin(async move { job.record(tx).await })
    });
    let (proof, standing, refresh) = written.await?;
    parts.exchange.note_seen(&proof, &standing, job.cause.now);
    let raw = parts.exchange.mint(proof, job.params.audiences.clone(), &standing, job.cause.now, job.cause.id)?;
    issued(raw, refresh)
}

fn issued(raw: RawToken, refresh_token: Option<String>) -> Result<Issued> {
    let expiry = raw.expiry.ok_or_else(|| Error::internal("a token was issued without an end"))?;
    Ok(Issued { token: raw.token, expires_at: expiry.seconds, refresh_token })
}

pub(super) fn validate(parts: &Parts, params: &TokenParams) -> Result<ExchangeParams> {
    let identity = params.identity.as_ref().map(|identity| identity.as_str().to_owned()).unwrap_or_default();
    let request = ExchangeRequest {
        aud: params.audiences.clone(),
        cap: params.capabilities.clone(),
        scopes: params.scopes.clone(),
        identity,
        ..ExchangeRequest::default()
    };
    parts.exchange.requested(&request)
}

async fn session_of(parts: &Parts, session: &str, now: Micros) -> Result<SessionRow> {
    let id = session.to_owned();
    let found = parts.db.read(move |tx| Box::pin(async move { sessions::find(tx, &id, now).await })).await?;
    found.ok_or_else(refusals::own_subject)
}

impl Job {
    async fn record(&self, tx: &mut WriteTx) -> Result<(Proof, Standing, Option<String>)> {
        let session = sessions::find(tx, &self.session, self.cause.now).await?;
        let session = session.ok_or_else(refusals::own_subject)?;
        let proof = prove(tx, &self.parts, &session, &self.params.narrowing, &self.about).await?;
        let mut token = None;
        // No one would look again whether the person still is a member of the groups.
        if let Some(family) = &self.family
            && !sessions::has_groups(tx, &session.id).await?
        {
            let end = sessions::keep(tx, &session).await?;
            token = Some(refresh::begin(tx, family, &session, &self.params.audiences, &proof.narrowing, end).await?);
        }
        let standing = issuing::record(tx, &Issuance::of(&proof, self.cause.clone())).await?;
        Ok((proof, standing, token))
    }
}

/// The proof of a session: its person, and its limits besides those of the request.
pub(super) async fn prove(
    tx: &mut ReadTx,
    parts: &Parts,
    session: &SessionRow,
    requested: &Narrowing,
    about: &About,
) -> Result<Proof> {
    let limits = sessions::limits(tx, parts, session).await?;
    let row = identities::find(tx, session.identity.as_str()).await?.ok_or_else(refusals::own_subject)?;
    // Only an address that the operator's word stands behind.
    let email = Some(row.email).filter(|email| !email.is_empty());
    Ok(Proof {
        subject: row.uid,
        basis: None,
        draft: AccessClaims {
            exp: i64::MAX,
            email_verified: email.as_ref().map(|_| true),
            email,
            act: about.act.clone(),
            idp: limits.provider,
            sid: Some(session.id.clone()),
            upstream: about.upstream.clone(),
            ..AccessClaims::default()
        },
        narrowing: narrowing::intersect(&limits.narrowing, requested)?,
    })
}

pub(super) async fn id_token(
    parts: &Arc<Parts>,
    session: &str,
    audiences: &[String],
    client: Option<&str>,
    nonce: Option<&str>,
    context: &Context<'_>,
) -> Result<String> {
    let cause = Cause::in_context(context);
    let job = Arc::new((parts.clone(), session.to_owned(), cause.clone()));
    let written = parts.db.write(move |tx| {
        let job = job.clone();
        Box::pin(async move {
            let (parts, id, cause) = &*job;
            let session = sessions::find(tx, id, cause.now).await?.ok_or_else(refusals::own_subject)?;
            let about = About { act: refresh::act_of(tx, &session).await?, upstream: None };
            let proof = prove(tx, parts, &session, &Narrowing::default(), &about).await?;
            let standing = issuing::record(tx, &Issuance::of(&proof, cause.clone())).await?;
            Ok::<_, Error>((proof, standing))
        })
    });
    let (mut proof, standing) = written.await?;
    proof.draft.exp = seconds(cause.now) + ID_TOKEN_SECONDS;
    proof.draft.good_for = audiences.to_vec();
    let issuer = parts.settings.auth_url.clone();
    // Clients look for themselves among the audiences (OpenID Connect); the exchange looks for the issuer.
    let audiences = [Some(issuer.as_str()), client].into_iter().flatten().map(String::from).collect();
    let claims = issuing::claims(&issuer, proof, audiences, &standing, cause.now, cause.id);
    let mut claims = json!(claims);
    if let Some(client) = client {
        claims["azp"] = json!(client);
    }
    if let Some(nonce) = nonce {
        claims["nonce"] = json!(nonce);
    }
    let keys = parts.authenticator.keys();
    let key = keys.ring.signing_key(seconds(cause.now)).ok_or_else(issuing::no_key)?;
    Ok(mint_value(TokenClass::Id, &claims, key))
}
