//! Responses over REST: messages from JSON by the transcoder, and errors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_contract::MethodInfo;
use bowline_transcode::Tables;
use bytes::Bytes;
use http::StatusCode;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use serde::Deserialize;
use serde_json::Value;

use crate::error::ClientError;

/// The tables of each part of the contract that was used.
static TABLES: Mutex<Vec<(DescriptorPool, Arc<Tables>)>> = Mutex::new(Vec::new());

/// Conversion tables of all messages of the part of the contract that a message is from.
pub fn tables(message: &MessageDescriptor) -> Arc<Tables> {
    // Nothing panics while it is locked but a defect of the build.
    let mut known = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let has_it = |pool: &DescriptorPool| pool.get_message_by_name(message.full_name()).as_ref() == Some(message);
    if let Some((_, tables)) = known.iter().find(|(pool, _)| has_it(pool)) {
        return tables.clone();
    }
    let tables = Arc::new(Tables::new(message.parent_pool()));
    known.push((message.parent_pool().clone(), tables.clone()));
    tables
}

/// The message that a JSON response is, encoded.
///
/// # Errors
/// The response is not that message.
pub(crate) fn response(method: &MethodInfo, json: &[u8]) -> Result<Bytes, ClientError> {
    let mut wire = Vec::new();
    let json = if json.trim_ascii().is_empty() { b"{}" } else { json };
    let tables = tables(&method.output);
    let Some(id) = tables.message(method.output.full_name()) else { return Ok(Bytes::new()) };
    match tables.from_json(id, json, &mut wire) {
        Ok(_) => Ok(wire.into()),
        Err(errors) => {
            let first = errors.first().map(ToString::to_string).unwrap_or_default();
            Err(ClientError::Transport(format!("the response is damaged: {first}")))
        }
    }
}

#[derive(Deserialize)]
struct Status {
    code: i32,
    message: String,
    #[serde(default)]
    details: Vec<Value>,
}

impl Status {
    /// Metadata of the detail that has some.
    fn facts(&self) -> BTreeMap<String, String> {
        let has_metadata = |detail: &&Value| {
            detail.get("@type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("/google.rpc.ErrorInfo"))
        };
        let metadata = self.details.iter().find(has_metadata).and_then(|info| info.get("metadata")?.as_object());
        let facts = metadata.into_iter().flatten();
        facts.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }
}

/// The error of a JSON body.
pub(crate) fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Status>(body) {
        Ok(status) => {
            let facts = status.facts();
            ClientError::Refused { code: status.code, message: status.message, facts }
        }
        Err(_) => ClientError::NotTheApi(status.as_u16()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_facts() {
        let body = br#"{"code":7,"message":"no","details":[{"@type":"type.googleapis.com/google.rpc.Help"},
            {"@type":"type.googleapis.com/google.rpc.ErrorInfo","metadata":{"capability":"repo.create","scope":"a"}}]}"#;
        let ClientError::Refused { code: 7, message, facts } = refusal(StatusCode::FORBIDDEN, body) else {
            panic!("not a refusal")
        };
        assert_eq!(
            (message.as_str(), facts["capability"].as_str(), facts["scope"].as_str()),
            ("no", "repo.create", "a")
        );
        let bare = refusal(StatusCode::FORBIDDEN, br#"{"code":7,"message":"no"}"#);
        assert!(matches!(bare, ClientError::Refused { facts, .. } if facts.is_empty()));
    }
}
