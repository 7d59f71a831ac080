//! Publishing to the hosts of packages, which speak protocols of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{ClientError, LazyClient};

/// How long a file may take to arrive.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Puts a file at an address, as the holder of a token for libraries. False if it is there with the same bytes.
///
/// # Errors
/// No response, or the host's refusal.
pub async fn put_file(http: &LazyClient, url: &str, token: &str, bytes: Vec<u8>) -> Result<bool, ClientError> {
    let request = http.get()?.put(url).bearer_auth(token).timeout(PATIENCE).body(bytes);
    let response = request.send().await.map_err(ClientError::transport)?;
    let status = response.status().as_u16();
    match status {
        201 => return Ok(true),
        200 => return Ok(false),
        _ => {}
    }
    let text = response.text().await.map_err(ClientError::transport)?;
    let code = match status {
        400 | 405 | 413 => 3,
        401 => 16,
        403 => 7,
        404 => 5,
        409 => 6,
        429 => 8,
        503 => 14,
        other => return Err(ClientError::NotTheApi(other)),
    };
    Err(ClientError::Refused { code, message: text.trim().to_owned(), facts: BTreeMap::new() })
}
