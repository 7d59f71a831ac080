//! Refresh tokens: each is good once, and its use makes the next one of its family.
//!
//! The next secret is computed from the spent one with a key of the server's. So a client that lost the
//! response gets the same successor again for a while, and no secret is stored. Anyone who comes later with a
//! spent token has a copy of what another used, or the other way round: the family ends, and with it the
//! session.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_authn::crypto::{constant_time_eq, sha256};
use bowline_contract::v1::oidc::{ExchangeRefreshTokenRequest, RawToken, TokenPair};
use bowline_core::{Error, FieldViolation, Micros, Reason, Result};
use bowline_pipeline::{Narrowing, Open};
use bowline_store::{ReadTx, Row, Value, WriteTx};
use serde::Deserialize;
use serde_json::json;

use super::sessions::{self, SessionRow};
use super::tokens::{self, About};
use super::{Context, Parts};
use crate::iam::identities;
use crate::oidc::issuing::{self, Cause, Issuance, Proof, Standing, seconds};
use crate::oidc::{narrowing, refusals};

/// How long a spent token gives its successor again.
const REPLAY: Micros = 30_000_000;
/// Longer texts are none of this server.
const LONGEST: usize = 1024;

/// The first token of a family.
#[derive(Clone)]
pub(super) struct Family {
    id: String,
    secret: [u8; 32],
}

impl Family {
    pub(super) fn drawn(id: [u8; 32], secret: [u8; 32]) -> Family {
        Family { id: bowline_core::hex(&id[..16]), secret }
    }
}

/// A presented token, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Presented {
    family: String,
    secret: [u8; 32],
}

/// The text of a token. Clients read `exp` and nothing else.
fn text(family: &str, secret: &[u8; 32], expires_at: Micros) -> String {
    let json = json!({ "exp": seconds(expires_at), "fam": family, "tok": bowline_core::hex(secret) });
    STANDARD.encode(json.to_string())
}

fn parse(text: &str) -> Option<Presented> {
    #[derive(Deserialize)]
    struct Members {
        fam: String,
        tok: String,
    }
    let bytes = STANDARD.decode(Some(text.trim()).filter(|text| text.len() <= LONGEST)?).ok()?;
    let members: Members = serde_json::from_slice(&bytes).ok()?;
    let digits = Some(members.tok.as_bytes()).filter(|digits| digits.len() == 64 && digits.is_ascii())?;
    let mut secret = [0; 32];
    for (byte, pair) in secret.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(Presented { family: members.fam, secret })
}

/// A token as it is stored.
struct Stored {
    family: String,
    session: String,
    identity: String,
    audiences: Vec<String>,
    narrowing: Narrowing,
    expires_at: Micros,
    spent_at: Option<Micros>,
}

impl Stored {
    fn read(row: &Row<'_>) -> Result<Stored> {
        let damaged = |error: serde_json::Error| Error::internal(format!("a stored refresh token: {error}"));
        Ok(Stored {
            family: row.text(0)?,
            session: row.text(1)?,
            identity: row.text(2)?,
            audiences: serde_json::from_str(&row.text(3)?).map_err(damaged)?,
            narrowing: narrowing::from_text(&row.text(4)?)?,
            expires_at: row.int(5)?,
            spent_at: row.opt_int(6)?,
        })
    }
}

async fn find(tx: &mut ReadTx, secret: &[u8; 32]) -> Result<Option<Stored>> {
    let sql = "SELECT family, session, identity, audiences, narrowing, expires_at, spent_at
               FROM refresh_tokens WHERE hash = $1";
    tx.query_opt(sql, &[Value::Bytes(&sha256(secret))], Stored::read).await
}

async fn insert(tx: &mut WriteTx, secret: &[u8; 32], token: &Stored) -> Result<()> {
    let sql = "INSERT INTO refresh_tokens (hash, family, session, identity, audiences, narrowing, expires_at, spent_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, NULL)";
    let narrowing = narrowing::to_text(&token.narrowing);
    let audiences = json!(token.audiences).to_string();
    let hash = sha256(secret);
    let params = [
        Value::Bytes(&hash),
        Value::from(&token.family),
        Value::from(&token.session),
        Value::from(&token.identity),
        Value::from(&audiences),
        Value::from(&narrowing),
        Value::Int(token.expires_at),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Stores the first token of a family; gives its text.
pub(super) async fn begin(
    tx: &mut WriteTx,
    family: &Family,
    session: &SessionRow,
    audiences: &[String],
    narrowing: &Narrowing,
    expires_at: Micros,
) -> Result<String> {
    let token = Stored {
        family: family.id.clone(),
        session: session.id.clone(),
        identity: session.identity.as_str().into(),
        audiences: audiences.to_vec(),
        narrowing: narrowing.clone(),
        expires_at,
        spent_at: None,
    };
    insert(tx, &family.secret, &token).await?;
    Ok(text(&family.id, &family.secret, expires_at))
}

/// What one use of a token needs, for every attempt of its transaction.
struct Use {
    parts: Arc<Parts>,
    presented: Presented,
    request: ExchangeRefreshTokenRequest,
    narrowing: Narrowing,
    cause: Cause,
}

/// How a use went. A reused token is no error inside: what it ends has to be committed.
enum Used {
    Fresh(Box<Fresh>),
    Reused,
}

struct Fresh {
    proof: Proof,
    standing: Standing,
    audiences: Vec<String>,
    token: String,
    expires_at: Micros,
}

#[expect(deprecated, reason = "the single scope is still accepted, together with the list")]
pub(super) async fn exchange(parts: &Arc<Parts>, call: &Open<ExchangeRefreshTokenRequest>) -> Result<TokenPair> {
    let request = call.request().clone();
    let text = call.bearer().filter(|text| !text.is_empty()).ok_or_else(nothing_presented)?;
    let presented = parse(text).ok_or_else(unknown)?;
    let capabilities = parts.contract.capabilities();
    let narrowing = narrowing::requested(&request.cap, &request.scope, &request.scopes, capabilities)?;
    let attempt = Arc::new(Use { parts: parts.clone(), presented, request, narrowing, cause: Cause::of(call) });
    let shared = attempt.clone();
    let written = parts.db.write(move |tx| {
        let attempt = shared.clone();
        Box::pin(async move { attempt.run(tx).await })
    });
    let fresh = match written.await? {
        Used::Fresh(fresh) => *fresh,
        Used::Reused => return Err(reused()),
    };
    let cause = &attempt.cause;
    parts.exchange.note_seen(&fresh.proof, &fresh.standing, cause.now);
    let token = parts.exchange.mint(fresh.proof, fresh.audiences, &fresh.standing, cause.now, cause.id)?;
    let expiry = prost_types::Timestamp { seconds: seconds(fresh.expires_at), nanos: 0 };
    let refresh_token = RawToken { token: fresh.token, refresh_token: String::new(), expiry: Some(expiry) };
    Ok(TokenPair { token: Some(token), refresh_token: Some(refresh_token) })
}

impl Use {
    async fn run(&self, tx: &mut WriteTx) -> Result<Used> {
        let now = self.cause.now;
        let stored = find(tx, &self.presented.secret).await?.ok_or_else(unknown)?;
        if !constant_time_eq(stored.family.as_bytes(), self.presented.family.as_bytes()) {
            return Err(unknown());
        }
        if now >= stored.expires_at {
            return Err(expired());
        }
        if stored.spent_at.is_some_and(|spent| now - spent > REPLAY) {
            self.revoke(tx, &stored).await?;
            return Ok(Used::Reused);
        }
        let secret = self.parts.vault.mac("refresh", &self.presented.secret);
        let successor = match stored.spent_at {
            Some(_) => find(tx, &secret).await?.ok_or_else(unknown)?,
            None => self.rotate(tx, stored, &secret).await?,
        };
        let audiences = audiences(&self.request.aud, &successor.audiences)?;
        let session = sessions::find(tx, &successor.session, now).await?.ok_or_else(refusals::own_subject)?;
        let about = About { act: act_of(tx, &session).await?, upstream: None };
        let left = narrowing::intersect(&successor.narrowing, &self.narrowing)?;
        let proof = tokens::prove(tx, &self.parts, &session, &left, &about).await?;
        let standing = issuing::record(tx, &Issuance::of(&proof, self.cause.clone())).await?;
        let token = text(&successor.family, &secret, successor.expires_at);
        Ok(Used::Fresh(Box::new(Fresh { proof, standing, audiences, token, expires_at: successor.expires_at })))
    }

    /// Spends the token and stores its successor, which is limited to the present request.
    async fn rotate(&self, tx: &mut WriteTx, stored: Stored, secret: &[u8; 32]) -> Result<Stored> {
        let sql = "UPDATE refresh_tokens SET spent_at = $2 WHERE hash = $1 AND spent_at IS NULL";
        let hash = sha256(&self.presented.secret);
        if tx.execute(sql, &[Value::Bytes(&hash), Value::Int(self.cause.now)]).await? != 1 {
            return Err(Error::internal("a refresh token was spent twice in one transaction"));
        }
        let narrowing = narrowing::intersect(&stored.narrowing, &self.narrowing)?;
        let successor = Stored { narrowing, ..stored };
        insert(tx, secret, &successor).await?;
        Ok(successor)
    }

    async fn revoke(&self, tx: &mut WriteTx, stored: &Stored) -> Result<()> {
        tracing::warn!(identity = %stored.identity, "a spent refresh token was presented again: its session ends");
        let request = (self.cause.request_id.clone(), self.cause.method.clone());
        end_family(tx, stored, self.cause.now, &request).await
    }
}

/// Ends the family, the session, and whatever else the session has.
async fn end_family(tx: &mut WriteTx, stored: &Stored, now: Micros, request: &(String, String)) -> Result<()> {
    tx.execute("DELETE FROM refresh_tokens WHERE family = $1", &[Value::from(&stored.family)]).await?;
    match sessions::find(tx, &stored.session, now).await? {
        Some(session) => {
            sessions::end(tx, &session.id).await?;
            sessions::audit(tx, &session, now, request).await
        }
        None => Ok(()),
    }
}

/// RFC 7009: what is unknown is as good as revoked.
pub(super) async fn revoke(parts: &Arc<Parts>, text: &str, context: &Context<'_>) -> Result<()> {
    let Some(presented) = parse(text) else { return sessions::revoke(parts, text, context).await };
    let (now, request) = (context.now, sessions::request(context));
    let job = Arc::new((presented, request));
    // Revoking works on a full disk.
    let db = parts.db.from_reserve();
    let written = db.write(move |tx| {
        let job = job.clone();
        Box::pin(async move {
            let (presented, request) = &*job;
            match find(tx, &presented.secret).await? {
                Some(stored) if stored.family == presented.family => end_family(tx, &stored, now, request).await,
                _ => Ok(()),
            }
        })
    });
    written.await
}

/// The requested audiences, which must be among those of the family; by default all of them.
fn audiences(requested: &[String], held: &[String]) -> Result<Vec<String>> {
    let mut audiences: Vec<String> = Vec::new();
    for one in requested.iter().flat_map(|joined| joined.split(',')).map(str::trim).filter(|one| !one.is_empty()) {
        if !held.iter().any(|known| known == one) {
            let description = format!("the refresh token is not for the audience {one:?}; sign in with it");
            return Err(Error::invalid(vec![FieldViolation { field: "aud".into(), description }]));
        }
        if !audiences.iter().any(|known| known == one) {
            audiences.push(one.into());
        }
    }
    Ok(if audiences.is_empty() { held.to_vec() } else { audiences })
}

/// Whom the provider vouched for when the session began, as far as it is stored.
pub(super) async fn act_of(tx: &mut ReadTx, session: &SessionRow) -> Result<Option<serde_json::Value>> {
    let row = identities::find(tx, session.identity.as_str()).await?;
    Ok(row.filter(|row| !row.issuer.is_empty()).map(|row| json!({ "iss": row.issuer, "sub": row.subject })))
}

fn nothing_presented() -> Error {
    Error::new(
        Reason::Unauthenticated,
        "Unauthenticated: send the refresh token in the header \"Authorization: Bearer <token>\"",
    )
}

fn unknown() -> Error {
    Error::new(Reason::TokenInvalid, "Unauthenticated: the refresh token is not valid; sign in again")
}

fn expired() -> Error {
    Error::new(Reason::TokenExpired, "Unauthenticated: the refresh token has expired; sign in again")
}

fn reused() -> Error {
    Error::new(
        Reason::TokenReused,
        "Unauthenticated: the refresh token was used before, so that the session was ended; sign in again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_base64_of_json_that_clients_read_the_end_of() {
        let token = text("00ff", &[7; 32], 1_700_000_000_999_999);
        let json: serde_json::Value = serde_json::from_slice(&STANDARD.decode(&token).unwrap()).unwrap();
        assert_eq!(json, json!({ "exp": 1_700_000_000, "fam": "00ff", "tok": "07".repeat(32) }));
        assert_eq!(parse(&token), Some(Presented { family: "00ff".into(), secret: [7; 32] }));
    }

    #[test]
    fn other_texts_are_no_tokens() {
        let wrong = |json: serde_json::Value| STANDARD.encode(json.to_string());
        for text in [
            String::new(),
            "a.b.c".into(),
            "A".repeat(5000),
            wrong(json!({})),
            wrong(json!({ "fam": "a", "tok": "07" })),
            wrong(json!({ "fam": "a", "tok": "zz".repeat(32) })),
            wrong(json!({ "fam": "a", "tok": "+7".repeat(32).replace('7', "é") })),
            wrong(json!({ "fam": 1, "tok": "07".repeat(32) })),
        ] {
            assert_eq!(parse(&text), None, "{text}");
        }
    }

    #[test]
    fn audiences_are_those_of_the_family() {
        let held = ["a".to_owned(), "b".to_owned()];
        let ask = |asked: &[&str]| audiences(&asked.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>(), &held);
        assert_eq!(ask(&[]).unwrap(), held);
        assert_eq!(ask(&["b, b"]).unwrap(), ["b"]);
        assert_eq!(ask(&["a", "c"]).unwrap_err().reason(), Reason::InvalidArgument);
    }
}
