//! AWS identities: a workload signs a `GetCallerIdentity` request for this server and presents it; AWS
//! verifies whose signature it is.
//!
//! The presented token is base64url of that request in its wire form. Nothing in it is trusted before AWS
//! accepted the signature, and only what the signature covers is sent to AWS: two signed headers bind the
//! request to this issuer and to one identity, so that a request signed for another server or identity is
//! useless here.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use url::Url;

use crate::guarded::{FetchError, GuardedClient, Limits, Request};
use crate::matching::{Expect, Test};

/// The host that requests are signed for, unless more are configured.
pub const GLOBAL_HOST: &str = "sts.amazonaws.com";

/// Maximum bytes of a request; session tokens alone have some thousand.
const MAX_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 40;
/// How long a signature is good for, in seconds.
const VALIDITY: i64 = 15 * 60;
/// How far the signer's clock may be ahead, in seconds.
const SKEW: i64 = 5 * 60;
/// Bytes of a response.
const MAX_RESPONSE: usize = 64 * 1024;

const TARGET: &str = "/?Action=GetCallerIdentity&Version=2011-06-15";
const SCHEME: &str = "AWS4-HMAC-SHA256 ";
const AUTHORIZATION: &str = "authorization";
const HOST: &str = "host";
const DATE: &str = "x-amz-date";
const AUDIENCE: &str = "chainguard-audience";
const IDENTITY: &str = "chainguard-identity";
const LENGTH: &str = "content-length";
const ACCEPT: &str = "accept";

/// Headers that concern one connection, or how a body is read; none belongs into such a request.
const REFUSED: &[&str] =
    &["connection", "expect", "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"];

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why a request was not accepted. `Display` is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AwsError {
    /// Not base64 of an HTTP request of that one shape.
    #[error("the token is not a serialized GetCallerIdentity request")]
    Malformed,
    /// Signed for a host that is not accepted.
    #[error("the token's request is signed for an STS host that is not accepted")]
    Host,
    /// A header that counts is not covered by the signature.
    #[error("the token's signature must cover host, x-amz-date, Chainguard-Audience and Chainguard-Identity")]
    Unsigned,
    #[error("the token's Chainguard-Audience is not this issuer")]
    Audience,
    /// The token is for another identity than the requested one.
    #[error("the token's Chainguard-Identity is not the requested identity")]
    Identity,
    /// Signed more than 15 minutes ago.
    #[error("the token has expired")]
    Expired,
    /// Signed in the future.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// AWS does not accept the signature.
    #[error("AWS did not accept the token's signature")]
    Rejected,
    /// AWS is not reachable, or its response is not understood; the word is for logs.
    #[error("AWS STS cannot be asked at the moment")]
    Unavailable(&'static str),
}

/// Who AWS says signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The account, 12 digits.
    pub account: String,
    /// The ARN of the user or of the session of a role.
    pub arn: String,
    /// The unique id of the user, or of the role with the session's name.
    pub user_id: String,
    /// Address of the STS that said so.
    pub issuer: String,
}

/// Whom a stored identity accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerMatch {
    pub account: String,
    /// The ARN; none means any.
    pub arn: Option<Expect>,
    /// The user id; none means any.
    pub user_id: Option<Expect>,
}

impl CallerMatch {
    /// The first member that does not fit, if there is one.
    ///
    /// # Errors
    /// A stored pattern does not compile.
    pub fn mismatch(&self, caller: &Caller) -> Result<Option<&'static str>, String> {
        let fits = |expect: &Option<Expect>, value: &str| {
            expect.as_ref().map_or(Ok(true), |expect| Test::compile(expect).map(|test| test.fits(value)))
        };
        // With neither, everyone in the account would be let in.
        if self.account != caller.account || (self.arn.is_none() && self.user_id.is_none()) {
            return Ok(Some("account"));
        }
        if !fits(&self.arn, &caller.arn)? {
            return Ok(Some("arn"));
        }
        Ok((!fits(&self.user_id, &caller.user_id)?).then_some("user_id"))
    }
}

/// A signed request whose form was checked, and nothing else.
#[derive(Clone, Debug)]
pub struct SignedRequest {
    /// By name in lower case; only those that the signature covers, and the signature.
    headers: BTreeMap<String, String>,
    signed_at: i64,
}

impl SignedRequest {
    /// Takes a token apart.
    ///
    /// # Errors
    /// It is no request of the one accepted shape, or leaves a header unsigned that counts.
    pub fn parse(token: &str) -> Result<SignedRequest, AwsError> {
        if token.len() > MAX_BYTES * 4 / 3 + 4 {
            return Err(AwsError::Malformed);
        }
        let bytes = BASE64.decode(token).map_err(|_| AwsError::Malformed)?;
        let text = std::str::from_utf8(&bytes).ok().filter(|text| text.is_ascii()).ok_or(AwsError::Malformed)?;
        let head = text.strip_suffix("\r\n\r\n").ok_or(AwsError::Malformed)?;
        let mut lines = head.split("\r\n");
        if lines.next() != Some(&*format!("POST {TARGET} HTTP/1.1")) {
            return Err(AwsError::Malformed);
        }
        let mut headers = BTreeMap::new();
        for line in lines {
            let (name, value) = header(line)?;
            // AWS might read the second of two headers where this code reads the first.
            if headers.insert(name, value).is_some() || headers.len() > MAX_HEADERS {
                return Err(AwsError::Malformed);
            }
        }
        let names = signed_names(headers.get(AUTHORIZATION).ok_or(AwsError::Malformed)?)?;
        let is_signed = |wanted: &str| names.iter().any(|name| name == wanted);
        if ![HOST, DATE, AUDIENCE, IDENTITY].into_iter().all(is_signed) {
            return Err(AwsError::Unsigned);
        }
        let has_body = headers.get(LENGTH).is_some_and(|length| length != "0");
        let other_form = headers.get(ACCEPT).is_some_and(|accept| accept != "application/json");
        if has_body || other_form || !names.iter().all(|name| headers.contains_key(name)) {
            return Err(AwsError::Malformed);
        }
        let signed_at = headers.get(DATE).and_then(|date| seconds(date)).ok_or(AwsError::Malformed)?;
        headers.retain(|name, _| name == AUTHORIZATION || is_signed(name));
        Ok(SignedRequest { headers, signed_at })
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Asks the security token service of AWS, or what stands in for it.
#[derive(Clone, Debug)]
pub struct AwsSts {
    client: GuardedClient,
    hosts: Vec<String>,
    url: Option<String>,
}

impl AwsSts {
    /// Accepts requests that are signed for one of `hosts`, and sends them to that host, or to `url` if there is one.
    pub fn new(client: GuardedClient, hosts: Vec<String>, url: Option<String>) -> AwsSts {
        AwsSts { client, hosts, url }
    }

    /// Checks what can be checked without asking: for whom and when the request was signed.
    ///
    /// # Errors
    /// The request is not for an AWS host that is accepted, not for this audience or identity, or not valid
    /// now.
    pub fn check(&self, request: &SignedRequest, audience: &str, identity: &str, now: i64) -> Result<(), AwsError> {
        if !self.hosts.iter().any(|host| host == request.header(HOST)) {
            return Err(AwsError::Host);
        }
        if request.header(AUDIENCE) != audience {
            return Err(AwsError::Audience);
        }
        if request.header(IDENTITY) != identity {
            return Err(AwsError::Identity);
        }
        if request.signed_at > now.saturating_add(SKEW) {
            return Err(AwsError::NotYetValid);
        }
        if now > request.signed_at.saturating_add(VALIDITY) {
            return Err(AwsError::Expired);
        }
        Ok(())
    }

    /// Sends the request on, and reads who signed it. Only after [`AwsSts::check`].
    ///
    /// # Errors
    /// AWS rejects the signature, or is not reachable.
    pub async fn caller(&self, request: &SignedRequest) -> Result<Caller, AwsError> {
        let host = request.header(HOST);
        let issuer = self.url.clone().unwrap_or_else(|| format!("https://{host}"));
        let url = format!("{issuer}{TARGET}");
        let outbound = Request { method: Method::POST, headers: outbound(request, &url)?, url, body: Bytes::new() };
        let limits = Limits { body: MAX_RESPONSE, ..Limits::default() };
        let fetched = self.client.fetch(outbound, limits).await;
        let response = fetched.map_err(|error: FetchError| AwsError::Unavailable(error.reason()))?;
        match response.status.as_u16() {
            200 => read_caller(&response.body, issuer).ok_or(AwsError::Unavailable("answer")),
            429 | 500.. => Err(AwsError::Unavailable("status")),
            _ => Err(AwsError::Rejected),
        }
    }
}

/// The headers of the request as it is sent on.
fn outbound(request: &SignedRequest, url: &str) -> Result<HeaderMap, AwsError> {
    let own_host = Url::parse(url).ok().and_then(|url| url.host_str().map(String::from));
    let mut headers = HeaderMap::new();
    headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json"));
    for (name, value) in &request.headers {
        // The client sets both headers itself; a stand-in for AWS receives the host that was signed.
        if name == LENGTH || (name == HOST && own_host.as_deref() == Some(value)) {
            continue;
        }
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| AwsError::Malformed)?;
        headers.insert(name, HeaderValue::from_str(value).map_err(|_| AwsError::Malformed)?);
    }
    Ok(headers)
}

fn read_caller(body: &[u8], issuer: String) -> Option<Caller> {
    let document: Value = serde_json::from_slice(body).ok()?;
    let result = document.get("GetCallerIdentityResponse")?.get("GetCallerIdentityResult")?;
    let text = |name: &str| result.get(name)?.as_str().filter(|text| !text.is_empty()).map(String::from);
    let account = text("Account")?;
    let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    is_account.then_some(())?;
    Some(Caller { account, arn: text("Arn")?, user_id: text("UserId")?, issuer })
}

/// One header: the name in lower case, the value without the space around it.
fn header(line: &str) -> Result<(String, String), AwsError> {
    let (name, value) = line.split_once(':').ok_or(AwsError::Malformed)?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    // Tabs are left as they are by signers and dropped by parsers.
    let is_value = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let name = name.to_ascii_lowercase();
    if !is_name || !is_value || REFUSED.contains(&name.as_str()) {
        return Err(AwsError::Malformed);
    }
    Ok((name, value.trim_matches(' ').into()))
}

/// The names that a signature covers.
fn signed_names(authorization: &str) -> Result<Vec<String>, AwsError> {
    let parts = authorization.strip_prefix(SCHEME).ok_or(AwsError::Malformed)?;
    let mut found: BTreeMap<&str, &str> = BTreeMap::new();
    for part in parts.split(',') {
        let (name, value) = part.trim_matches(' ').split_once('=').ok_or(AwsError::Malformed)?;
        if found.insert(name, value).is_some() {
            return Err(AwsError::Malformed);
        }
    }
    let (Some(credential), Some(names), Some(signature), 3) =
        (found.get("Credential"), found.get("SignedHeaders"), found.get("Signature"), found.len())
    else {
        return Err(AwsError::Malformed);
    };
    let scope: Vec<&str> = credential.split('/').collect();
    let is_sts = matches!(scope[..], [_, _, _, "sts", "aws4_request"]);
    let is_signature = signature.len() == 64 && signature.bytes().all(|byte| byte.is_ascii_hexdigit());
    let names: Vec<String> = names.split(';').map(String::from).collect();
    let is_canonical = names.is_sorted_by(|a, b| a < b) && names.iter().all(|name| *name == name.to_ascii_lowercase());
    if is_sts && is_signature && is_canonical { Ok(names) } else { Err(AwsError::Malformed) }
}

/// Days from the first of March of the year 0 to the Unix epoch, and one since days count from 1.
const EPOCH: i64 = 719_469;

/// Unix seconds of `YYYYMMDDTHHMMSSZ`.
fn seconds(date: &str) -> Option<i64> {
    let bytes = date.as_bytes();
    if bytes.len() != 16 || bytes[8] != b'T' || bytes[15] != b'Z' {
        return None;
    }
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = &bytes[range];
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    };
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    let (hour, minute, second) = (number(9..11)?, number(11..13)?, number(13..15)?);
    let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    // Years begin in March, so that the leap day is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (month * 153 + 2) / 5;
    is_time.then(|| (days + day - EPOCH) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
#[path = "aws_tests.rs"]
mod tests;
