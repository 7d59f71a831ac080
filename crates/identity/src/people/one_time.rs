//! What is used up by being read: results of headless sign-ins, and links of the operator.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_authn::claims::AccessClaims;
use bowline_authn::crypto::sha256;
use bowline_contract::bowline::operator::v1::BreakGlass;
use bowline_contract::bowline::operator::v1::rpc::local_operator::IssueToken;
use bowline_contract::v1::auth::HeadlessSession;
use bowline_contract::{Contract, Method as _};
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::{Actor, Change, EventBody, Narrowing, OPERATOR, ResourceSnapshot, record_audit, record_event};
use bowline_resources::kinds::LINK;
use bowline_resources::list::timestamp;
use bowline_store::{Db, Row, Value};

use super::{Context, Issued, Parts};
use crate::oidc::issuing::{self, Cause, Issuance, Proof};

/// How long either waits.
const FIVE_MINUTES: Micros = 300_000_000;

/// The longest code that is looked at.
const LONGEST: usize = 1024;

/// `Auth.GetHeadlessSession`: reads a result, once.
pub(super) async fn take_headless(parts: &Parts, code: &str, now: Micros) -> Result<HeadlessSession> {
    let hash = sha256(Some(code).filter(|code| code.len() <= LONGEST).ok_or_else(no_result)?.as_bytes());
    let written = parts.db.write(move |tx| {
        Box::pin(async move {
            let sql = "SELECT public_key, sealed FROM headless_sessions WHERE code = $1 AND expires_at > $2";
            let params = [Value::Bytes(&hash), Value::Int(now)];
            let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.bytes(1)?));
            let (public_key, sealed) = tx.query_opt(sql, &params, read).await?.ok_or_else(no_result)?;
            tx.execute("DELETE FROM headless_sessions WHERE code = $1", &[Value::Bytes(&hash)]).await?;
            Ok(HeadlessSession { ecdh_public_key: public_key.into_bytes(), encrypted_idtoken: sealed })
        })
    });
    written.await
}

fn no_result() -> Error {
    Error::new(Reason::NotFound, "Not found: no sign-in with this code has ended, or its result was read already")
}

pub(super) async fn put_headless(
    parts: &Parts,
    code: &str,
    public_key: &str,
    sealed: &[u8],
    now: Micros,
) -> Result<()> {
    let hash = sha256(code.as_bytes());
    let content = Arc::new((public_key.to_owned(), sealed.to_owned()));
    let written = parts.db.write(move |tx| {
        let content = content.clone();
        Box::pin(async move {
            let sql = "DELETE FROM headless_sessions WHERE code = $1 AND expires_at <= $2";
            tx.execute(sql, &[Value::Bytes(&hash), Value::Int(now)]).await?;
            let sql = "INSERT INTO headless_sessions (code, public_key, sealed, expires_at) VALUES ($1, $2, $3, $4)
                       ON CONFLICT DO NOTHING";
            let (public_key, sealed) = &*content;
            let params =
                [Value::Bytes(&hash), Value::from(public_key), Value::from(sealed), Value::Int(now + FIVE_MINUTES)];
            if tx.execute(sql, &params).await? == 1 {
                return Ok(());
            }
            // The first result stays: another one could be someone else's.
            Err(Error::precondition("HEADLESS_RESULT", "", "a result waits for this code already; begin again"))
        })
    });
    written.await
}

/// A link that signs the operator in once, within five minutes: its code, made of 128 random bits.
pub async fn create_operator_link(db: &Db, random: [u8; 16], reason: &str, now: Micros) -> Result<String> {
    let expires_at = now + FIVE_MINUTES;
    let made = BreakGlass { reason: reason.to_owned(), expire_time: timestamp(expires_at), operator: OPERATOR.into() };
    let job = Arc::new((ResourceSnapshot::of(&made), Contract::load()));
    let code = URL_SAFE_NO_PAD.encode(random);
    let hash = sha256(code.as_bytes());
    let request_id = bowline_core::hex(&hash[..8]);
    let written = db.write(move |tx| {
        let (request_id, job) = (request_id.clone(), job.clone());
        Box::pin(async move {
            let (snapshot, contract) = &*job;
            let sql = "INSERT INTO one_time_links (hash, purpose, expires_at) VALUES ($1, 'operator', $2)";
            tx.execute(sql, &[Value::Bytes(&hash), Value::Int(expires_at)]).await?;
            let actor = Actor { subject: OPERATOR, request_id: &request_id, method: "bowline operator login-url" };
            let change = Change { kind: LINK, uid: OPERATOR.into(), before: None, after: Some(snapshot.clone()) };
            record_audit(tx, now, &actor, &change).await?;
            let method = contract.by_full_name(IssueToken::FULL_NAME);
            let method = method.ok_or_else(|| Error::internal("the contract lacks the operator's tokens"))?;
            let (body, extensions) = (snapshot.clone(), Vec::new());
            let event = EventBody { subject: OPERATOR.into(), group: String::new(), body, extensions };
            record_event(tx, method, now, &actor, None, &event).await
        })
    });
    written.await?;
    Ok(code)
}

pub(super) async fn redeem_operator_link(parts: &Arc<Parts>, code: &str, context: &Context<'_>) -> Result<Issued> {
    let cause = Cause::in_context(context);
    let operator = Uidp::parse(OPERATOR).map_err(|_| Error::internal("the operator has no UIDP"))?;
    let draft = AccessClaims { exp: i64::MAX, ..AccessClaims::default() };
    let proof = Proof { subject: operator, basis: None, draft, narrowing: Narrowing::default() };
    let job = Arc::new((sha256(code.as_bytes()), proof.clone(), cause.clone()));
    let written = parts.db.write(move |tx| {
        let job = job.clone();
        Box::pin(async move {
            let (hash, proof, cause) = &*job;
            let sql = "DELETE FROM one_time_links WHERE hash = $1 AND purpose = 'operator' AND expires_at > $2";
            if tx.execute(sql, &[Value::Bytes(hash), Value::Int(cause.now)]).await? != 1 {
                return Err(no_link());
            }
            issuing::record(tx, &Issuance::of(proof, cause.clone())).await
        })
    });
    let standing = written.await?;
    let audiences = vec![parts.settings.api_audience.clone()];
    let raw = parts.exchange.mint(proof, audiences, &standing, cause.now, cause.id)?;
    let expiry = raw.expiry.ok_or_else(|| Error::internal("a token was issued without an end"))?;
    Ok(Issued { token: raw.token, expires_at: expiry.seconds, refresh_token: None })
}

fn no_link() -> Error {
    Error::new(
        Reason::NotFound,
        "Not found: the link was used already, or is older than five minutes; make another with: bowline operator login-url",
    )
}
