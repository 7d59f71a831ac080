use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use bowline_contract::{Method, google};
use bowline_formats::percent;
use bytes::Buf as _;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use prost::Message as _;

use crate::streamed::Streamed;
use crate::wire::{Answer, Wire};

/// Someone who calls the server.
#[derive(Clone)]
pub struct Actor {
    /// What to call them in messages.
    pub name: String,
    /// Access token for the API; no one has none.
    pub token: Option<String>,
    /// UIDP of the identity; empty for no one.
    pub identity: String,
    wire: Arc<Wire>,
}

impl std::fmt::Debug for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Actor").field("name", &self.name).field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Actor {
    pub(crate) fn new(name: &str, token: Option<String>, identity: &str, wire: Arc<Wire>) -> Actor {
        Actor { name: name.into(), token, identity: identity.into(), wire }
    }

    /// The same with another token.
    pub fn with_token(&self, token: &str) -> Actor {
        Actor { token: Some(token.into()), ..self.clone() }
    }

    /// The same under another name in messages.
    pub fn named(&self, name: &str) -> Actor {
        Actor { name: name.into(), ..self.clone() }
    }

    /// Calls a path, with a JSON body if there is one.
    pub async fn rest(&self, verb: &str, path: &str, body: Option<serde_json::Value>) -> RestReply {
        let mut headers = HeaderMap::new();
        let body = body.map(|body| {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            body.to_string().into_bytes()
        });
        self.rest_with(verb, path, headers, body.unwrap_or_default()).await
    }

    /// Calls a path with headers and body as they are; only the token is added, where there is one.
    pub async fn rest_with(&self, verb: &str, path: &str, mut headers: HeaderMap, body: Vec<u8>) -> RestReply {
        self.authorize(&mut headers);
        let answer = self.wire.rest(verb, path, headers, body).await;
        RestReply { status: answer.status, headers: answer.headers, body: answer.body.into() }
    }

    /// Calls a method over gRPC.
    ///
    /// # Errors
    /// What the server refuses with.
    pub async fn grpc<M: Method>(&self, request: M::Request) -> Result<M::Response, GrpcError> {
        let (service, method) = M::FULL_NAME.rsplit_once('.').expect("a full name has dots");
        let reply = self.grpc_raw(&format!("/{service}/{method}"), prost::Message::encode_to_vec(&request)).await?;
        Ok(prost::Message::decode(reply.as_slice()).unwrap_or_else(|error| panic!("{}: {error}", M::FULL_NAME)))
    }

    /// Calls a gRPC path with an encoded message.
    ///
    /// # Errors
    /// What the server refuses with.
    pub async fn grpc_raw(&self, grpc_path: &str, payload: Vec<u8>) -> Result<Vec<u8>, GrpcError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("te", HeaderValue::from_static("trailers"));
        self.authorize(&mut headers);
        let length = u32::try_from(payload.len()).expect("a test's message is small").to_be_bytes();
        let frame = [&[0][..], &length, &payload].concat();
        let answer = self.wire.grpc(grpc_path, headers, frame).await;
        assert_eq!(answer.status, 200, "{grpc_path}: gRPC answers over HTTP 200");
        match GrpcError::read(&answer) {
            Some(error) => Err(error),
            None => Ok(unframe(grpc_path, &answer)),
        }
    }

    /// Opens a path whose response continues, over REST.
    pub async fn watch_rest(&self, path: &str, mut headers: HeaderMap) -> Streamed {
        self.authorize(&mut headers);
        Streamed::new(self.wire.watch(false, path, headers, Vec::new()).await)
    }

    /// Opens a method whose response continues, over gRPC.
    pub async fn watch_grpc<M: Method>(&self, request: M::Request) -> Streamed {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert("te", HeaderValue::from_static("trailers"));
        self.authorize(&mut headers);
        let payload = prost::Message::encode_to_vec(&request);
        let length = u32::try_from(payload.len()).expect("a test's message is small").to_be_bytes();
        let (service, method) = M::FULL_NAME.rsplit_once('.').expect("a full name has dots");
        let frame = [&[0][..], &length, &payload].concat();
        Streamed::new(self.wire.watch(true, &format!("/{service}/{method}"), headers, frame).await)
    }

    fn authorize(&self, headers: &mut HeaderMap) {
        if let Some(token) = &self.token {
            let value = HeaderValue::from_str(&format!("Bearer {token}")).expect("a token fits into a header");
            headers.entry(AUTHORIZATION).or_insert(value);
        }
    }
}

/// The one message of a unary answer.
fn unframe(path: &str, answer: &Answer) -> Vec<u8> {
    let mut body = answer.body.clone();
    assert!(body.len() >= 5, "{path}: an answer with status 0 carries a message");
    assert_eq!(body.get_u8(), 0, "{path}: the answer is not compressed, since nobody asked for it");
    let length = body.get_u32() as usize;
    assert_eq!(length, body.len(), "{path}: a unary answer is one message");
    body.into()
}

/// A response over REST.
#[derive(Clone, Debug)]
pub struct RestReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl RestReply {
    /// The body as JSON; an empty one is null.
    pub fn json(&self) -> serde_json::Value {
        if self.body.is_empty() {
            return serde_json::Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The gRPC code: 0 for a success, else the `code` of the error body; -1 if it has none.
    pub fn code(&self) -> i32 {
        if (200..300).contains(&self.status) {
            return 0;
        }
        let body: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        let code = body.and_then(|body| body.get("code")?.as_i64());
        code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-1)
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A refusal over gRPC.
#[derive(Clone, Debug)]
pub struct GrpcError {
    pub code: i32,
    /// The message, as `grpc-message` has it, decoded.
    pub message: String,
    /// What `grpc-status-details-bin` carries; code and message alone if it is absent.
    pub status: google::rpc::Status,
}

impl GrpcError {
    /// From the trailers, or from the headers of a response without a body; absent for a success.
    pub(crate) fn read(answer: &Answer) -> Option<GrpcError> {
        let member = |name: &str| answer.trailers.get(name).or_else(|| answer.headers.get(name));
        let code = member("grpc-status").and_then(|value| value.to_str().ok()).and_then(|value| value.parse().ok());
        let code: i32 = code.expect("a gRPC answer has a status");
        if code == 0 {
            return None;
        }
        let message = member("grpc-message")
            .map(|value| percent::decode_lossy(value.as_bytes()).into_owned())
            .unwrap_or_default();
        let status = match member("grpc-status-details-bin") {
            Some(value) => status(value.as_bytes()),
            None => google::rpc::Status { code, message: message.clone(), details: Vec::new() },
        };
        Some(GrpcError { code, message, status })
    }

    /// The detail of this type, if the status carries one.
    pub fn detail<T: prost::Message + prost::Name + Default>(&self) -> Option<T> {
        let wanted = format!("/{}", T::full_name());
        let any = self.status.details.iter().find(|any| any.type_url.ends_with(&wanted))?;
        T::decode(any.value.as_slice()).ok()
    }
}

fn status(base64: &[u8]) -> google::rpc::Status {
    let bytes = STANDARD_NO_PAD.decode(base64).or_else(|_| STANDARD.decode(base64));
    let bytes = bytes.expect("grpc-status-details-bin is base64");
    google::rpc::Status::decode(bytes.as_slice()).expect("grpc-status-details-bin is a google.rpc.Status")
}
