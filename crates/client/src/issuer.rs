use std::collections::BTreeMap;

use http::StatusCode;
use serde::Deserialize;

use crate::LazyClient;
use crate::cache::Tokens;
use crate::error::ClientError;

/// Largest response of the issuer that is read, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// Parameters of a token exchange.
#[derive(Clone, Debug, Default)]
pub struct ExchangeRequest {
    /// Audiences of the new token.
    pub audiences: Vec<String>,
    /// The identity to assume; absent to be found by issuer and subject.
    pub identity: Option<String>,
    /// The organization's identity provider that the token comes from.
    pub identity_provider: Option<String>,
    /// Capabilities that are left; empty for all.
    pub capabilities: Vec<String>,
    /// Groups that are left; empty for all.
    pub scopes: Vec<String>,
}

/// Parameters of a sign-in in the browser.
#[derive(Clone, Debug, Default)]
pub struct SignInRequest {
    /// Audience of the token.
    pub audience: String,
    /// UIDP of an identity provider, or name of an organization that has one.
    pub identity_provider: Option<String>,
    /// One of the operator's providers.
    pub connection: Option<String>,
    /// An identity to assume.
    pub identity: Option<String>,
    /// Code of an invitation to redeem.
    pub invite: Option<String>,
    /// Whether a refresh token is wanted.
    pub refresh: bool,
}

impl SignInRequest {
    /// As parameters of the sign-in address.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, &str)> {
        let optional = [
            ("idp_id", &self.identity_provider),
            ("connection", &self.connection),
            ("identity", &self.identity),
            ("invite", &self.invite),
        ];
        let mut parameters: Vec<(&'static str, &str)> =
            optional.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect();
        if !self.audience.is_empty() {
            parameters.push(("audience", &self.audience));
        }
        if self.refresh {
            parameters.push(("create_refresh_token", "true"));
        }
        parameters
    }
}

/// The token exchange of one server.
#[derive(Clone, Debug)]
pub struct Issuer {
    url: String,
    http: LazyClient,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawToken {
    token: String,
    #[serde(default)]
    refresh_token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenPair {
    token: RawToken,
    refresh_token: RawToken,
}

/// The members of an issuer's OIDC discovery document that are used here.
#[derive(Clone, Debug, Deserialize)]
pub struct Discovery {
    issuer: String,
    pub(crate) device_authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    code: i32,
    message: String,
}

impl Issuer {
    /// The token exchange at this address.
    pub fn new(url: &str, http: impl Into<LazyClient>) -> Issuer {
        Issuer { url: url.trim_end_matches('/').to_owned(), http: http.into() }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Reads the issuer's discovery document, so that no user is sent to an address without an issuer.
    ///
    /// # Errors
    /// There is no issuer at the address, or one that has another, or the request fails.
    pub async fn discover(&self) -> Result<Discovery, ClientError> {
        let (status, body) = self.get(&self.at("/.well-known/openid-configuration")).await?;
        if !status.is_success() {
            return Err(self.refusal(status, &body));
        }
        let discovery: Discovery = parsed(&body)?;
        if discovery.issuer == self.url {
            return Ok(discovery);
        }
        let found = discovery.issuer;
        Err(ClientError::Usage(format!("the issuer calls itself {found}; name it so with --issuer")))
    }

    /// Exchanges an identity token, or a token of this server for another.
    ///
    /// # Errors
    /// The issuer refuses, or the request fails.
    pub async fn exchange(&self, token: &str, request: &ExchangeRequest) -> Result<Tokens, ClientError> {
        let optional = [("identity", &request.identity), ("identity_provider", &request.identity_provider)];
        let single = optional.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let mut form = narrowing(&request.audiences, &request.capabilities, &request.scopes);
        form.extend(single);
        let answer: RawToken = self.post_form("/sts/exchange", Some(token), &form).await?;
        let refresh_token = Some(answer.refresh_token).filter(|token| !token.is_empty());
        Ok(Tokens { token: Some(answer.token), refresh_token })
    }

    /// Exchanges a refresh token for an access token and the next refresh token.
    ///
    /// # Errors
    /// The issuer refuses, or the request fails.
    pub async fn refresh(&self, refresh_token: &str, audience: &str) -> Result<Tokens, ClientError> {
        let form = [("aud", audience)];
        let pair: TokenPair = self.post_form("/sts/exchange_refresh_token", Some(refresh_token), &form).await?;
        Ok(Tokens { token: Some(pair.token.token), refresh_token: Some(pair.refresh_token.token) })
    }

    /// Ends the session that a refresh token or an access token belongs to. Unknown ones are no error.
    ///
    /// # Errors
    /// The request fails.
    pub async fn revoke(&self, token: &str) -> Result<(), ClientError> {
        let (status, body) = self.send("/oauth/revoke", None, &[("token", token)]).await?;
        if status.is_success() { Ok(()) } else { Err(self.refusal(status, &body)) }
    }

    /// The error of a response. A 404 or 405 hints at a wrong address.
    pub(crate) fn refusal(&self, status: StatusCode, body: &[u8]) -> ClientError {
        match refusal(status, body) {
            ClientError::Refused { code: 5 | 12, message, .. }
                if ["Not Found", "Method Not Allowed"].contains(&&*message) =>
            {
                ClientError::Usage(format!("there is no token exchange at {}; name it with --issuer URL", self.url))
            }
            _ if status == StatusCode::MISDIRECTED_REQUEST => {
                ClientError::Usage(format!("the server does not know itself as {}; name its address", self.url))
            }
            other => other,
        }
    }

    /// Posts a form and reads the JSON response.
    pub(crate) async fn post_form<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        bearer: Option<&str>,
        form: &[(&str, &str)],
    ) -> Result<T, ClientError> {
        let (status, body) = self.send(path, bearer, form).await?;
        if !status.is_success() {
            return Err(self.refusal(status, &body));
        }
        parsed(&body)
    }

    /// Posts a form; the status and the body, whatever they are.
    pub(crate) async fn send(
        &self,
        path: &str,
        bearer: Option<&str>,
        form: &[(&str, &str)],
    ) -> Result<(StatusCode, Vec<u8>), ClientError> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let mut request = self.http.get()?.post(self.at(path)).body(body);
        request = request.header(http::header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(token) = bearer {
            request = request.bearer_auth(token);
        }
        read(request.send().await.map_err(ClientError::transport)?).await
    }

    /// Gets a document; the status and the body, whatever they are.
    pub(crate) async fn get(&self, url: &str) -> Result<(StatusCode, Vec<u8>), ClientError> {
        read(self.http.get()?.get(url).send().await.map_err(ClientError::transport)?).await
    }
}

async fn read(mut answer: reqwest::Response) -> Result<(StatusCode, Vec<u8>), ClientError> {
    let status = answer.status();
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(ClientError::transport)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER {
            return Err(ClientError::Transport("the answer is larger than 1 MiB".into()));
        }
    }
    Ok((status, body))
}

pub(crate) fn parsed<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body)
        .map_err(|error| ClientError::Transport(format!("the answer is no such document: {error}")))
}

/// The error of a body that should say it.
pub(crate) fn refusal(status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Status>(body) {
        Ok(Status { code, message }) => ClientError::Refused { code, message, facts: BTreeMap::new() },
        Err(_) => ClientError::Transport(format!("the issuer answered with HTTP status {status}")),
    }
}

fn narrowing<'a>(
    audiences: &'a [String],
    capabilities: &'a [String],
    scopes: &'a [String],
) -> Vec<(&'static str, &'a str)> {
    let all = [("aud", audiences), ("cap", capabilities), ("scopes", scopes)];
    all.into_iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value.as_str()))).collect()
}
