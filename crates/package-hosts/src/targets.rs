//! What addresses mean, in all protocols.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bowline_formats::percent;
use bowline_libraries::hosting::HostClient;

use crate::PackageHosts;
use crate::answers::Refused;

/// What an address of a protocol means.
pub(crate) trait Target: Sized + Send + 'static {
    /// The word that addresses of the protocol begin with.
    const WORD: &'static str;

    /// Whether the first part below the word is always a group, with `~` before it or without; `~` alone is the caller's organization.
    const BEGINS_WITH_GROUP: bool = false;

    /// Reads the parts of a path below the word and the group; absent if nothing is there.
    fn parse(parts: &[&str]) -> Option<Self>;

    /// What a request is called in the access log and in the counters: few names, whatever clients send.
    fn name(verb: &Method, path: &str) -> &'static str;

    /// Whether clients may pack the body of a request as gzip.
    fn takes_gzip(&self) -> bool {
        false
    }

    /// A refusal of a request at a path, in the form that clients of the protocol show.
    fn shown(_path: &str, refused: Refused) -> Refused {
        refused
    }

    /// The challenge to clients without credentials, if it is not that of HTTP; `base` is the address of the server.
    fn challenge(_base: &str) -> Option<String> {
        None
    }

    /// Headers as other protocols send them: some clients have a form of credentials of their own.
    fn headers(headers: HeaderMap) -> HeaderMap {
        headers
    }

    /// The answer to a request at a group.
    fn answer(
        self,
        hosts: &Arc<PackageHosts>,
        client: &HostClient,
        request: Request,
        scope: Option<&str>,
    ) -> impl Future<Output = Result<Response, Refused>> + Send;
}

/// Reads a path below the word of a protocol as it came over the wire; beside it the group that it names.
pub(crate) fn parse<T: Target>(path: &str) -> Result<(Option<String>, T), Refused> {
    let path = percent::decode(path).ok_or_else(|| Refused::bad("the path is not UTF-8"))?;
    if path.contains('\0') {
        return Err(Refused::bad("the path has a NUL"));
    }
    let rest = path.strip_prefix('/').unwrap_or_default();
    let plain = Some(rest).filter(|rest| T::BEGINS_WITH_GROUP && !rest.is_empty());
    let (scope, rest) = match rest.strip_prefix('~').or(plain) {
        None => (None, rest),
        Some(named) => {
            let (scope, rest) = named.split_once('/').unwrap_or((named, ""));
            let is_callers = T::BEGINS_WITH_GROUP && scope.is_empty();
            (Some(scope.to_owned()).filter(|_| !is_callers), rest)
        }
    };
    let parts: Vec<&str> = rest.split('/').collect();
    let target = T::parse(&parts).ok_or_else(|| {
        Refused::new(StatusCode::NOT_FOUND, format!("there is nothing at this path of the {} packages", T::WORD))
    })?;
    Ok((scope, target))
}

/// Refuses a body that is packed, unless it is as gzip and that is read.
pub(crate) fn require_no_encoding(headers: &HeaderMap, takes_gzip: bool) -> Result<(), Refused> {
    let is_read = |encoding: &HeaderValue| encoding == "identity" || takes_gzip && encoding == "gzip";
    if headers.get_all(header::CONTENT_ENCODING).iter().all(is_read) {
        return Ok(());
    }
    let text = "bodies are read without a content encoding here: send the body uncompressed";
    Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
}

pub(crate) fn wrong_verb(allowed: &str) -> Refused {
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, format!("only {allowed} are possible here"))
        .with_header(header::ALLOW, allowed)
}
