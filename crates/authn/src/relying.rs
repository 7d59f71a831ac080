//! Sign-in at an external provider: the relying party of OpenID Connect's authorization code flow.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as B64;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, byte_serialize};
use url::{Host, Url};

use crate::crypto::constant_time_eq;
use crate::discovery::discovery_url;
use crate::guarded::{FetchError, GuardedClient, Limits, Request};
use crate::jwt::Presented;

/// Why signing in at a provider did not work. `Display` is public and holds nothing that the provider sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelyingError {
    /// A request to the provider failed.
    #[error("the identity provider cannot be asked: {0}")]
    Fetch(FetchError),
    /// The issuer is not a URL that discovery works for.
    #[error("the identity provider's issuer is not a URL without query and fragment")]
    Issuer,
    /// The discovery document names another issuer.
    #[error("the identity provider's discovery document names another issuer than the configured one")]
    OtherIssuer,
    /// The discovery document lacks something, or has it in a form that cannot be used.
    #[error("the identity provider's discovery document has no usable {0}")]
    Document(&'static str),
    /// The authorization response is of another issuer, or of none although the provider always names itself.
    #[error("the answer came from another identity provider than the one that was asked")]
    MixedUp,
    /// The token endpoint refused the code; the OAuth error, where it is a known one.
    #[error("the identity provider refused the sign-in ({0})")]
    Refused(&'static str),
    /// The response of an endpoint lacks something.
    #[error("the identity provider's answer has no usable {0}")]
    IncompleteResponse(&'static str),
    /// The id token is not for this client, or not for this sign-in.
    #[error("the identity provider's id token does not fit: {0}")]
    IdToken(&'static str),
}

impl From<FetchError> for RelyingError {
    fn from(error: FetchError) -> Self {
        Self::Fetch(error)
    }
}

impl RelyingError {
    /// Whether trying again later may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Fetch(error) if error.is_temporary())
    }
}

/// What a provider publishes about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The issuer, equal to the configured one.
    pub issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    userinfo_endpoint: Option<String>,
    /// How clients prove their secret; absent for the default.
    auth_methods: Option<Vec<String>>,
    /// Whether authorization responses always name the issuer (RFC 9207).
    names_itself: bool,
}

/// The client as the provider knows it.
#[derive(Clone, Copy)]
pub struct Client<'a> {
    pub id: &'a str,
    /// Its secret; a public client has none.
    pub secret: Option<&'a str>,
}

/// What the token endpoint gave.
pub struct Tokens {
    /// The ID token, not verified yet.
    pub id_token: String,
    /// For the userinfo endpoint.
    pub access_token: Option<String>,
}

/// Reads the provider's discovery document. It is not cached: changes of a provider take effect at once.
pub async fn discover(client: &GuardedClient, issuer: &str) -> Result<Metadata, RelyingError> {
    let url = discovery_url(issuer).map_err(|_| RelyingError::Issuer)?;
    let document = client.get_json(&url).await?;
    Metadata::read(&document, issuer)
}

impl Metadata {
    fn read(document: &Value, issuer: &str) -> Result<Metadata, RelyingError> {
        if document.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err(RelyingError::OtherIssuer);
        }
        let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
        let methods = document.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
        let names = "authorization_response_iss_parameter_supported";
        Ok(Metadata {
            issuer: issuer.to_owned(),
            authorization_endpoint: text("authorization_endpoint"),
            token_endpoint: text("token_endpoint"),
            userinfo_endpoint: text("userinfo_endpoint"),
            auth_methods: methods.map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            names_itself: document.get(names).and_then(Value::as_bool).unwrap_or(false),
        })
    }

    /// The address that the browser is sent to, with these parameters on top of its own.
    ///
    /// # Errors
    /// There is no endpoint, or none that a browser should be sent to.
    pub fn authorization_url(
        &self,
        client: &GuardedClient,
        parameters: &[(&str, &str)],
    ) -> Result<String, RelyingError> {
        let unusable = RelyingError::Document("authorization_endpoint");
        let text = self.authorization_endpoint.as_deref().ok_or_else(|| unusable.clone())?;
        let mut url = client.check_url(text).map_err(|_| unusable.clone())?;
        // Parameters in the endpoint's own query could contradict those of this request.
        let is_own = |name: &str| parameters.iter().any(|(own, _)| *own == name);
        if url.fragment().is_some() || url.query_pairs().any(|(name, _)| is_own(&name)) {
            return Err(unusable);
        }
        url.query_pairs_mut().extend_pairs(parameters);
        Ok(url.into())
    }

    /// Checks the `iss` of an authorization response, before its code goes anywhere.
    ///
    /// # Errors
    /// Another provider answered.
    pub fn validate_response(&self, iss: Option<&str>) -> Result<(), RelyingError> {
        match iss {
            Some(iss) if iss == self.issuer => Ok(()),
            None if !self.names_itself => Ok(()),
            _ => Err(RelyingError::MixedUp),
        }
    }

    /// Turns a code into tokens.
    pub async fn redeem(
        &self,
        http: &GuardedClient,
        client: Client<'_>,
        code: &str,
        redirect_uri: &str,
        code_verifier: &str,
    ) -> Result<Tokens, RelyingError> {
        let endpoint = self.token_endpoint.as_deref().ok_or(RelyingError::Document("token_endpoint"))?;
        let (headers, body) = self.token_request(client, code, redirect_uri, code_verifier)?;
        let request = Request { method: Method::POST, url: endpoint.to_owned(), headers, body };
        let response = http.fetch(request, Limits::default()).await?;
        if !response.status.is_success() {
            return Err(refusal(response.status.as_u16(), &response.body));
        }
        let answer: Value =
            serde_json::from_slice(&response.body).map_err(|_| RelyingError::IncompleteResponse("tokens"))?;
        let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(Tokens {
            id_token: text("id_token").ok_or(RelyingError::IncompleteResponse("id_token"))?,
            access_token: text("access_token"),
        })
    }

    /// Headers and form of a request to the token endpoint. (The form's writer must not live across an await.)
    fn token_request(
        &self,
        client: Client<'_>,
        code: &str,
        redirect_uri: &str,
        code_verifier: &str,
    ) -> Result<(HeaderMap, Bytes), RelyingError> {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("code_verifier", code_verifier);
        let mut headers = json_headers();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        match client.secret {
            None => drop(form.append_pair("client_id", client.id)),
            Some(secret) if self.wants_secret_in_form() => {
                form.append_pair("client_id", client.id).append_pair("client_secret", secret);
            }
            Some(secret) => drop(headers.insert(AUTHORIZATION, basic(client.id, secret)?)),
        }
        Ok((headers, Bytes::from(form.finish())))
    }

    /// The standard wants the header to be understood everywhere; the form is for providers that say otherwise.
    fn wants_secret_in_form(&self) -> bool {
        let has = |name: &str| self.auth_methods.as_ref().map(|all| all.iter().any(|method| method == name));
        has("client_secret_basic") == Some(false) && has("client_secret_post") == Some(true)
    }

    /// Whether there is a userinfo endpoint.
    pub fn has_userinfo(&self) -> bool {
        self.userinfo_endpoint.is_some()
    }

    /// The userinfo claims of the person `subject`.
    ///
    /// # Errors
    /// The endpoint does not respond, or describes another person.
    pub async fn userinfo(
        &self,
        http: &GuardedClient,
        access_token: &str,
        subject: &str,
    ) -> Result<Map<String, Value>, RelyingError> {
        let endpoint = self.userinfo_endpoint.as_deref().ok_or(RelyingError::Document("userinfo_endpoint"))?;
        let mut headers = json_headers();
        let value = HeaderValue::from_str(&format!("Bearer {access_token}"));
        headers.insert(AUTHORIZATION, value.map_err(|_| RelyingError::IncompleteResponse("access_token"))?);
        let request = Request { headers, ..Request::get(endpoint) };
        let response = http.fetch(request, Limits::default()).await?;
        if !response.status.is_success() {
            return Err(FetchError::Status(response.status.as_u16()).into());
        }
        let claims: Map<String, Value> =
            serde_json::from_slice(&response.body).map_err(|_| RelyingError::IncompleteResponse("userinfo"))?;
        // Without this anyone's claims could be put in place of the person's.
        if claims.get("sub").and_then(Value::as_str) != Some(subject) {
            return Err(RelyingError::IncompleteResponse("userinfo of the same person"));
        }
        Ok(claims)
    }
}

fn json_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers
}

/// Both halves are form-encoded first (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &str) -> Result<HeaderValue, RelyingError> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let value = format!("Basic {}", B64.encode(format!("{}:{}", encoded(id), encoded(secret))));
    let mut value = HeaderValue::from_str(&value).map_err(|_| RelyingError::Document("client"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Error codes of the token endpoint that are shown. The texts are the provider's, so others are not.
const KNOWN: [&str; 6] = [
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
];

fn refusal(status: u16, body: &[u8]) -> RelyingError {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = answer.get("error").and_then(Value::as_str);
    match error.and_then(|error| KNOWN.iter().find(|known| **known == error)) {
        Some(known) => RelyingError::Refused(known),
        None => FetchError::Status(status).into(),
    }
}

/// Checks whom an id token is for: `aud` must hold one of these, `azp` must not name another, several audiences need
/// it, and the token must be no access token.
///
/// # Errors
/// The first thing that does not fit.
pub fn validate_audience(token: &Presented, audiences: &[&str]) -> Result<(), RelyingError> {
    let typ = token.header.typ.as_deref().unwrap_or_default().to_ascii_lowercase();
    if matches!(typ.trim_start_matches("application/"), "at+jwt" | "logout+jwt" | "secevent+jwt") {
        return Err(RelyingError::IdToken("it is another kind of token"));
    }
    if !token.audiences.iter().any(|one| audiences.contains(&one.as_str())) {
        return Err(RelyingError::IdToken("its audience is not this client"));
    }
    match token.claims.get("azp") {
        Some(Value::String(party)) if audiences.contains(&party.as_str()) => Ok(()),
        None if token.audiences.len() == 1 => Ok(()),
        _ => Err(RelyingError::IdToken("it is authorized for another client")),
    }
}

/// Checks that an id token belongs to the sign-in that was begun: issuer, nonce, and the times it must have.
///
/// # Errors
/// The first thing that does not fit.
pub fn validate_sign_in(token: &Presented, issuer: &str, nonce: &str) -> Result<(), RelyingError> {
    if token.issuer != issuer {
        return Err(RelyingError::IdToken("its issuer is another one"));
    }
    let claimed = token.claims.get("nonce").and_then(Value::as_str).unwrap_or_default();
    if nonce.is_empty() || !constant_time_eq(claimed.as_bytes(), nonce.as_bytes()) {
        return Err(RelyingError::IdToken("its nonce is not that of this sign-in"));
    }
    if token.issued_at.is_none() {
        return Err(RelyingError::IdToken("it does not say when it was issued"));
    }
    Ok(())
}

/// Whether an issuer can be configured: what discovery needs, and https unless it is this very machine.
pub fn is_issuer(issuer: &str) -> bool {
    let Ok(url) = Url::parse(issuer) else { return false };
    let is_local = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    discovery_url(issuer).is_ok() && (url.scheme() == "https" || (url.scheme() == "http" && is_local))
}

#[cfg(test)]
#[path = "relying_tests.rs"]
mod tests;
