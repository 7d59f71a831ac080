//! Publishing to the hosts of packages and reading from them, in protocols of their own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use bowline_core::hex;
use serde::Deserialize;
use serde_json::Value;

use crate::issuer::parsed;
use crate::{ClientError, LazyClient};

/// How long a file may take to arrive.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Puts a file at an address, as the holder of a token for libraries. False if it is there with the same bytes.
///
/// # Errors
/// No response, or the host's refusal.
pub async fn put_file(http: &LazyClient, url: &str, token: &str, bytes: Vec<u8>) -> Result<bool, ClientError> {
    put(http.get()?.put(url).bearer_auth(token).timeout(PATIENCE).body(bytes)).await
}

/// The same of a file that is read while it is sent, whose SHA-256 in hex the host verifies.
///
/// # Errors
/// No response, or the host's refusal.
pub async fn stream_file(
    http: &LazyClient,
    url: &str,
    token: &str,
    (file, sha256): (File, &str),
) -> Result<bool, ClientError> {
    let request = http.get()?.put(url).bearer_auth(token).header("x-checksum-sha256", sha256);
    put(request.timeout(PATIENCE).body(tokio::fs::File::from_std(file))).await
}

/// Sends a file. False if it is there with the same bytes.
async fn put(request: reqwest::RequestBuilder) -> Result<bool, ClientError> {
    let response = request.send().await.map_err(ClientError::transport)?;
    let status = response.status().as_u16();
    match status {
        201 => return Ok(true),
        200 => return Ok(false),
        _ => {}
    }
    let text = response.text().await.map_err(ClientError::transport)?;
    let sentence = match serde_json::from_str::<Problem>(&text) {
        Ok(Problem { detail }) => detail,
        Err(_) => text.trim().to_owned(),
    };
    Err(match code(status) {
        Some(code) => refused(code, &sentence),
        None => ClientError::NotTheApi(status),
    })
}

/// Writes the file at an address to an open one, which has a path, as the holder of a token for libraries; its SHA-256 in hex.
///
/// # Errors
/// No response, one that ends early, the host's refusal, or the file cannot be written.
pub async fn receive_file(
    http: &LazyClient,
    url: &str,
    token: &str,
    (file, path): (&mut File, &Path),
) -> Result<String, ClientError> {
    let request = http.get()?.get(url).bearer_auth(token).timeout(PATIENCE);
    let mut response = request.send().await.map_err(ClientError::transport)?;
    let status = response.status().as_u16();
    if status != 200 {
        let body = response.bytes().await.map_err(ClientError::transport)?;
        return Err(problem(status, &body));
    }
    let failed = |source| ClientError::File { path: path.to_owned(), source };
    let mut context = Context::new(&SHA256);
    while let Some(chunk) = response.chunk().await.map_err(ClientError::transport)? {
        context.update(&chunk);
        file.write_all(&chunk).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    Ok(hex(context.finish().as_ref()))
}

/// Gets a document in JSON of at most so many bytes, as the holder of a token for libraries.
///
/// # Errors
/// No response, one that is larger or no JSON, or the host's refusal.
pub async fn get_document(
    http: &LazyClient,
    url: &str,
    token: &str,
    media_type: &str,
    most: usize,
) -> Result<Value, ClientError> {
    let request = http.get()?.get(url).bearer_auth(token).header("accept", media_type);
    let mut response = request.send().await.map_err(ClientError::transport)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(ClientError::transport)? {
        body.extend_from_slice(&chunk);
        if body.len() > most {
            return Err(ClientError::Transport(format!("the response is larger than {most} bytes")));
        }
    }
    if status == 200 { parsed(&body) } else { Err(problem(status, &body)) }
}

/// A problem document, which hosts send to those who read.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

/// The refusal of a request that reads.
fn problem(status: u16, body: &[u8]) -> ClientError {
    let code = match status {
        // A policy withholds it, or the caller must name a group.
        409 => Some(9),
        502 => Some(14),
        other => code(other),
    };
    match (code, serde_json::from_slice::<Problem>(body)) {
        (Some(code), Ok(Problem { detail })) => refused(code, &detail),
        _ => ClientError::NotTheApi(status),
    }
}

/// The gRPC code of a status with which hosts refuse.
fn code(status: u16) -> Option<i32> {
    Some(match status {
        400 | 405 | 406 | 413 => 3,
        401 => 16,
        403 => 7,
        404 => 5,
        409 => 6,
        429 => 8,
        503 => 14,
        _ => return None,
    })
}

fn refused(code: i32, message: &str) -> ClientError {
    ClientError::Refused { code, message: message.to_owned(), facts: BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_sentence_of_the_problem() {
        let body = br#"{"type": "about:blank", "status": 404, "detail": "it has no attestations here"}"#;
        let error = problem(404, body);
        assert!(error.is_absent() && error.to_string() == "it has no attestations here", "{error:?}");
        assert!(problem(401, body).is_unauthenticated() && problem(403, body).is_permission_denied());
        for (status, wanted) in [(409, 9), (502, 14), (503, 14), (406, 3)] {
            assert!(matches!(problem(status, body), ClientError::Refused { code, .. } if code == wanted), "{status}");
        }
        // Not of a package host: a page of a proxy, or a redirect.
        for (status, body) in [(404, &b"<html>"[..]), (502, &b"{}"[..]), (301, &body[..])] {
            assert!(matches!(problem(status, body), ClientError::NotTheApi(_)), "{status}");
        }
    }
}
