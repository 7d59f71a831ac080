//! gRPC over HTTP/2: frames and statuses.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bowline_contract::google::rpc::{ErrorInfo, Status};
use bowline_formats::percent;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::HeaderMap;
use prost::Message as _;

use crate::error::ClientError;

/// Bytes before each message: a flag and the length.
const HEAD: usize = 5;

/// One uncompressed message with its length.
pub(crate) fn frame(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + HEAD);
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.freeze()
}

/// The message of a response that holds exactly one.
///
/// # Errors
/// The bytes are not one uncompressed message.
pub(crate) fn unframe(mut body: Bytes) -> Result<Bytes, ClientError> {
    if body.len() < HEAD || body.get_u8() != 0 || body.get_u32() as usize != body.len() {
        return Err(damaged());
    }
    Ok(body)
}

/// Takes the first message out of what has arrived of a stream; absent until all of it has.
///
/// # Errors
/// The message is compressed, which no request allowed, or larger than `longest`.
pub(crate) fn take_message(arrived: &mut BytesMut, longest: usize) -> Result<Option<Bytes>, ClientError> {
    let Some(head) = arrived.first_chunk::<HEAD>() else { return Ok(None) };
    let [flag, length @ ..] = *head;
    let length = u32::from_be_bytes(length) as usize;
    if flag != 0 || length > longest {
        return Err(damaged());
    }
    if arrived.len() < HEAD + length {
        return Ok(None);
    }
    arrived.advance(HEAD);
    Ok(Some(arrived.split_to(length).freeze()))
}

fn damaged() -> ClientError {
    ClientError::Transport("the response is damaged".into())
}

/// The error of a gRPC status; absent where there is no status, or a success.
pub(crate) fn refusal(headers: &HeaderMap) -> Option<ClientError> {
    let code: i32 = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    if code == 0 {
        return None;
    }
    let message = headers.get("grpc-message").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let message = percent::decode_lossy(message.as_bytes()).into_owned();
    Some(ClientError::Refused { code, message, facts: facts(headers).unwrap_or_default() })
}

/// Metadata of a status; absent where its details cannot be read, since the error stands without them.
fn facts(headers: &HeaderMap) -> Option<BTreeMap<String, String>> {
    let encoded = headers.get("grpc-status-details-bin")?.to_str().ok()?;
    let status = STANDARD_NO_PAD.decode(encoded.trim_end_matches('=')).ok()?;
    let details = Status::decode(status.as_slice()).ok()?.details;
    let info = details.iter().find(|detail| detail.type_url.ends_with("/google.rpc.ErrorInfo"))?;
    Some(ErrorInfo::decode(info.value.as_slice()).ok()?.metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_and_damage_is_seen() {
        assert_eq!(unframe(frame(b"abc")).unwrap(), Bytes::from_static(b"abc"));
        for damaged in [&b""[..], &[0, 0, 0, 0], &[1, 0, 0, 0, 0], &[0, 0, 0, 0, 1], &[0, 0, 0, 0, 0, 9]] {
            assert!(unframe(Bytes::copy_from_slice(damaged)).is_err(), "{damaged:?}");
        }
    }

    #[test]
    fn errors_have_their_facts() {
        let info = ErrorInfo {
            metadata: BTreeMap::from([("capability".into(), "repo.create".into())]),
            ..ErrorInfo::default()
        };
        let detail = prost_types::Any {
            type_url: "type.googleapis.com/google.rpc.ErrorInfo".into(),
            value: info.encode_to_vec(),
        };
        let status = Status { code: 7, message: "no".into(), details: vec![detail] };
        let encoded = STANDARD_NO_PAD.encode(status.encode_to_vec());
        for (details, expected) in [(encoded.as_str(), Some("repo.create")), ("!", None)] {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-status", "7".parse().unwrap());
            headers.insert("grpc-message", "no".parse().unwrap());
            headers.insert("grpc-status-details-bin", details.parse().unwrap());
            let Some(ClientError::Refused { code: 7, facts, .. }) = refusal(&headers) else { panic!("not a refusal") };
            assert_eq!(facts.get("capability").map(String::as_str), expected);
        }
    }

    #[test]
    fn messages_of_a_stream_arrive_in_pieces() {
        let sent = [frame(b"abc"), frame(b"")].concat();
        let mut arrived = BytesMut::new();
        let mut messages = Vec::new();
        for byte in sent {
            arrived.put_u8(byte);
            messages.extend(take_message(&mut arrived, 10).unwrap());
        }
        assert_eq!(messages, [Bytes::from_static(b"abc"), Bytes::new()]);
        assert!(take_message(&mut BytesMut::from(&frame(b"abc")[..]), 2).is_err());
    }
}
