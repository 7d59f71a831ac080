//! Device authorizations (RFC 8628), as they are stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::Vault;
use bowline_store::{Db, ReadTx, Value, WriteTx};
use serde::{Deserialize, Serialize};

/// How long a code is good, in seconds.
pub(crate) const SECONDS: i64 = 900;
/// Seconds between two questions for the result.
pub(crate) const INTERVAL: i64 = 5;
/// Microseconds that the row outlives its code, so that a late device gets the error for a late one.
const RETENTION: Micros = 3_600_000_000;

/// The request of a device, and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) client_id: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) refresh: bool,
    /// Address that the device's request came from.
    pub(crate) address: String,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// No one has confirmed or refused it yet.
    Pending,
    /// Someone confirmed, and its tokens are being made.
    Claimed,
    /// Someone refused it, or its tokens could not be made.
    Denied,
    /// Its tokens, sealed, as base64.
    Granted(String),
}

/// What a device gets.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) id_token: String,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    /// When the access token ends, in seconds since the Unix epoch.
    pub(crate) expires_at: i64,
}

/// Result of a device's poll for its tokens.
pub(crate) enum Poll {
    Pending,
    SlowDown,
    Denied,
    Expired,
    /// There is no such code, or it was answered already, or it is another client's.
    Unknown,
    Granted(Box<Tokens>),
}

/// A row, by one of its two digests.
struct DeviceRow {
    hash: Vec<u8>,
    state: String,
    polled_at: Micros,
    /// When the row is deleted, which is later than the end of the code.
    deleted_at: Micros,
}

impl DeviceRow {
    fn has_ended(&self, now: Micros) -> bool {
        self.deleted_at - RETENTION <= now
    }
}

/// What a user code is stored as. It is short: without the server's key no one finds it by trying.
pub(crate) fn hash_of_user_code(vault: &Vault, code: &str) -> [u8; 32] {
    vault.mac("device user code", code.as_bytes())
}

/// Stores a new authorization; false if its user code is taken.
///
/// # Errors
/// The storage fails.
pub(crate) async fn put(db: &Db, hash: [u8; 32], user_hash: [u8; 32], device: &Device, now: Micros) -> Result<bool> {
    let state = text(device)?;
    db.write(move |tx| {
        let state = state.clone();
        Box::pin(async move {
            let sql = "INSERT INTO device_codes (device_hash, user_hash, state, polled_at, expires_at)
                       VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
            let end = now + SECONDS * 1_000_000 + RETENTION;
            let params =
                [Value::Bytes(&hash), Value::Bytes(&user_hash), Value::from(&state), Value::Int(0), Value::Int(end)];
            Ok::<_, Error>(tx.execute(sql, &params).await? == 1)
        })
    })
    .await
}

/// The authorization with this user code that waits for someone, and its digest.
///
/// # Errors
/// The storage fails.
pub(crate) async fn waiting(db: &Db, user_hash: [u8; 32], now: Micros) -> Result<Option<[u8; 32]>> {
    let found = db.read(move |tx| Box::pin(async move { find(tx, "user_hash", &user_hash).await })).await?;
    let Some(found) = found.filter(|found| !found.has_ended(now)) else {
        return Ok(None);
    };
    let is_pending = device_of(&found.state)?.outcome == Outcome::Pending;
    Ok(if is_pending { found.hash.try_into().ok() } else { None })
}

/// The authorization of this digest, while it waits for someone.
///
/// # Errors
/// The storage fails.
pub(crate) async fn pending(db: &Db, hash: [u8; 32], now: Micros) -> Result<Option<Device>> {
    let found = db.read(move |tx| Box::pin(async move { find(tx, "device_hash", &hash).await })).await?;
    let device = found.filter(|found| !found.has_ended(now)).map(|found| device_of(&found.state)).transpose()?;
    Ok(device.filter(|device| device.outcome == Outcome::Pending))
}

/// Takes an authorization from one outcome to the next; false if it was not at the first, or has ended.
///
/// # Errors
/// The storage fails.
pub(crate) async fn step(db: &Db, hash: [u8; 32], from: Outcome, to: Outcome, now: Micros) -> Result<bool> {
    db.write(move |tx| {
        let (from, to) = (from.clone(), to.clone());
        Box::pin(async move {
            let Some(found) = find(tx, "device_hash", &hash).await?.filter(|found| !found.has_ended(now)) else {
                return Ok(false);
            };
            let device = device_of(&found.state)?;
            if device.outcome != from {
                return Ok(false);
            }
            let state = text(&Device { outcome: to, ..device })?;
            // The state that was read is part of the condition: of two at a time, one wins.
            let sql = "UPDATE device_codes SET state = $1 WHERE device_hash = $2 AND state = $3";
            let params = [Value::from(&state), Value::Bytes(&hash), Value::from(&found.state)];
            Ok::<_, Error>(tx.execute(sql, &params).await? == 1)
        })
    })
    .await
}

/// The outcome that hands out these tokens.
///
/// # Errors
/// INTERNAL: they cannot be written.
pub(crate) fn granted(vault: &Vault, hash: &[u8; 32], tokens: &Tokens) -> Result<Outcome> {
    let plain = serde_json::to_vec(tokens).map_err(Error::internal)?;
    Ok(Outcome::Granted(STANDARD.encode(vault.seal(&context(hash), &plain))))
}

/// Polls for a device's tokens, which are returned once.
///
/// # Errors
/// The storage fails, or the row is damaged.
pub(crate) async fn poll(db: &Db, vault: &Vault, hash: [u8; 32], client_id: &str, now: Micros) -> Result<Poll> {
    let client_id = client_id.to_owned();
    let polled = db.write(move |tx| {
        let client_id = client_id.clone();
        Box::pin(async move { poll_in(tx, &hash, &client_id, now).await })
    });
    let sealed = match polled.await? {
        Polled::Response(response) => return Ok(response),
        Polled::Sealed(sealed) => sealed,
    };
    let damaged = || Error::internal("a stored device authorization is damaged");
    let plain = vault.open(&context(&hash), &STANDARD.decode(sealed).map_err(|_| damaged())?)?;
    Ok(Poll::Granted(serde_json::from_slice(&plain).map_err(|_| damaged())?))
}

enum Polled {
    Response(Poll),
    Sealed(String),
}

async fn poll_in(tx: &mut WriteTx, hash: &[u8; 32], client_id: &str, now: Micros) -> Result<Polled> {
    let Some(found) = find(tx, "device_hash", hash).await? else {
        return Ok(Polled::Response(Poll::Unknown));
    };
    let device = device_of(&found.state)?;
    if device.client_id != client_id {
        return Ok(Polled::Response(Poll::Unknown));
    }
    if found.has_ended(now) {
        return Ok(Polled::Response(Poll::Expired));
    }
    let sql = "UPDATE device_codes SET polled_at = $1 WHERE device_hash = $2";
    tx.execute(sql, &[Value::Int(now), Value::Bytes(hash)]).await?;
    if now < found.polled_at + INTERVAL * 1_000_000 {
        return Ok(Polled::Response(Poll::SlowDown));
    }
    match device.outcome {
        Outcome::Pending | Outcome::Claimed => Ok(Polled::Response(Poll::Pending)),
        Outcome::Denied => Ok(Polled::Response(Poll::Denied)),
        Outcome::Granted(sealed) => {
            let deleted = tx.execute("DELETE FROM device_codes WHERE device_hash = $1", &[Value::Bytes(hash)]).await?;
            Ok(if deleted == 1 { Polled::Sealed(sealed) } else { Polled::Response(Poll::Unknown) })
        }
    }
}

async fn find(tx: &mut ReadTx, column: &'static str, hash: &[u8; 32]) -> Result<Option<DeviceRow>> {
    let sql = format!("SELECT device_hash, state, polled_at, expires_at FROM device_codes WHERE {column} = $1");
    tx.query_opt(&sql, &[Value::Bytes(hash)], |row| {
        Ok(DeviceRow { hash: row.bytes(0)?, state: row.text(1)?, polled_at: row.int(2)?, deleted_at: row.int(3)? })
    })
    .await
}

fn text(device: &Device) -> Result<String> {
    serde_json::to_string(device).map_err(Error::internal)
}

fn device_of(state: &str) -> Result<Device> {
    serde_json::from_str(state).map_err(|_| Error::internal("a stored device authorization is damaged"))
}

fn context(hash: &[u8; 32]) -> String {
    format!("device tokens {}", bowline_core::hex(hash))
}
