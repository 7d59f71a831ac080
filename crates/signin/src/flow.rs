//! Sign-ins under way, as they are stored.
//!
//! A row is sealed with the server's key, bound to its table and hash, and is removed by every step that
//! continues with it: of two requests that bring the same response, one finds nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_identity::people::{Choice, Provider, Source, Upstream};
use bowline_pipeline::Vault;
use bowline_store::{Db, Value, WriteTx};
use serde::{Deserialize, Serialize};

use crate::login_request::LoginRequest;
use crate::secrets::FlowSecret;

/// How long each step may take, in seconds: the cookie lives as long.
pub(crate) const SECONDS: i64 = 600;

/// How far a sign-in came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The browser is at the provider.
    AtProvider,
    /// The person is known and has to confirm.
    Confirming,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::AtProvider => "provider",
            Stage::Confirming => "confirm",
        }
    }
}

/// A provider, by what stays the same: a name may be someone else's tomorrow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Chosen {
    /// One of the operator's, by its id.
    Operator(String),
    /// An organization's, by its UIDP.
    Organization(String),
}

impl Chosen {
    pub(crate) fn of(provider: &Provider) -> Chosen {
        match &provider.source {
            Source::Operator { id } => Chosen::Operator(id.clone()),
            Source::Organization { uid } => Chosen::Organization(uid.as_str().into()),
        }
    }

    /// How it is found again.
    ///
    /// # Errors
    /// INTERNAL: the stored UIDP is not valid.
    pub(crate) fn choice(&self) -> Result<Choice> {
        match self {
            Chosen::Operator(id) => Ok(Choice::Operator(id.clone())),
            Chosen::Organization(uid) => Uidp::parse(uid).map(Choice::Provider).map_err(|_| damaged()),
        }
    }
}

/// A sign-in under way.
#[derive(Serialize, Deserialize)]
pub(crate) struct Flow {
    /// The request that the sign-in serves.
    #[serde(rename = "wanted")]
    pub(crate) request: LoginRequest,
    /// The provider that the browser was sent to.
    pub(crate) provider: Chosen,
    /// Who came back from the provider; absent while no one has.
    pub(crate) upstream: Option<Upstream>,
}

impl Flow {
    fn stage(&self) -> Stage {
        if self.upstream.is_some() { Stage::Confirming } else { Stage::AtProvider }
    }
}

/// Stores a step of a flow, which must not be there.
///
/// # Errors
/// The storage fails.
pub(crate) async fn put(db: &Db, vault: &Vault, secret: &FlowSecret, flow: &Flow, now: Micros) -> Result<()> {
    let hash = secret.hash();
    let plain = serde_json::to_vec(flow).map_err(Error::internal)?;
    let state = STANDARD.encode(vault.seal(&context(&hash), &plain));
    let state = serde_json::json!({ "stage": flow.stage().name(), "sealed": state }).to_string();
    db.write(move |tx| {
        let state = state.clone();
        Box::pin(async move {
            let sql = "INSERT INTO signin_flows (hash, state, expires_at) VALUES ($1, $2, $3)";
            let params = [Value::Bytes(&hash), Value::from(&state), Value::Int(now + SECONDS * 1_000_000)];
            tx.execute(sql, &params).await?;
            Ok::<_, Error>(())
        })
    })
    .await
}

/// Removes a flow at this stage from the storage and returns it; absent if it does not exist, has ended, or
/// is at another stage.
///
/// # Errors
/// The storage fails, or the row is damaged.
pub(crate) async fn take(
    db: &Db,
    vault: &Vault,
    secret: &FlowSecret,
    stage: Stage,
    now: Micros,
) -> Result<Option<Flow>> {
    let hash = secret.hash();
    let Some(state) = db.write(move |tx| Box::pin(async move { take_in(tx, &hash, stage, now).await })).await? else {
        return Ok(None);
    };
    let sealed = state["sealed"].as_str().and_then(|text| STANDARD.decode(text).ok()).ok_or_else(damaged)?;
    let plain = vault.open(&context(&hash), &sealed)?;
    let flow: Flow = serde_json::from_slice(&plain).map_err(|_| damaged())?;
    Ok(Some(flow).filter(|flow| flow.stage() == stage))
}

async fn take_in(tx: &mut WriteTx, hash: &[u8; 32], stage: Stage, now: Micros) -> Result<Option<serde_json::Value>> {
    let sql = "SELECT state FROM signin_flows WHERE hash = $1 AND expires_at > $2";
    let params = [Value::Bytes(hash), Value::Int(now)];
    let Some(text) = tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await? else {
        return Ok(None);
    };
    let state: serde_json::Value = serde_json::from_str(&text).map_err(|_| damaged())?;
    if state["stage"] != stage.name() {
        return Ok(None);
    }
    // Of two at a time, one deletes.
    let sql = "DELETE FROM signin_flows WHERE hash = $1 AND state = $2";
    let deleted = tx.execute(sql, &[Value::Bytes(hash), Value::from(&text)]).await?;
    Ok(Some(state).filter(|_| deleted == 1))
}

fn damaged() -> Error {
    Error::internal("a stored sign-in is damaged")
}

fn context(hash: &[u8; 32]) -> String {
    format!("sign-in {}", bowline_core::hex(hash))
}
