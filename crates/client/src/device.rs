use std::time::Duration;

use serde::Deserialize;

use crate::cache::Tokens;
use crate::error::ClientError;
use crate::issuer::{ExchangeRequest, Issuer, parsed, refusal};

/// A sign-in on another device (RFC 8628).
#[derive(Debug)]
pub struct DeviceSignIn {
    device_code: String,
    token_endpoint: String,
    interval_seconds: u64,
    /// The code that the person has to type.
    pub user_code: String,
    pub verification_uri: String,
    /// The same with the code filled in.
    pub verification_uri_complete: Option<String>,
    /// Seconds until the code expires.
    pub expires_in: u64,
}

#[derive(Deserialize)]
struct Authorization {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    #[serde(default = "five")]
    interval: u64,
}

fn five() -> u64 {
    5
}

#[derive(Deserialize)]
struct Granted {
    id_token: String,
    refresh_token: Option<String>,
}

#[derive(Deserialize)]
struct Failure {
    error: String,
    error_description: Option<String>,
}

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

impl DeviceSignIn {
    /// Requests a code. The refresh token, if requested, is for `audience`.
    ///
    /// # Errors
    /// The issuer offers no such sign-in, or the request fails.
    pub async fn start(issuer: &Issuer, audience: &str, refresh: bool) -> Result<DeviceSignIn, ClientError> {
        let discovery = issuer.discover().await?;
        let missing = || ClientError::SignIn("the issuer offers no sign-in on another device".into());
        let endpoint = discovery.device_authorization_endpoint.ok_or_else(missing)?;
        let token_endpoint = discovery.token_endpoint.ok_or_else(missing)?;
        let scope = if refresh { "openid email profile offline_access" } else { "openid email profile" };
        let form = [("client_id", "bowline"), ("scope", scope), ("audience", audience)];
        let response: Authorization = post(issuer, &endpoint, &form).await?.map_err(|failure| failed(&failure))?;
        Ok(DeviceSignIn {
            device_code: response.device_code,
            token_endpoint,
            interval_seconds: response.interval,
            user_code: response.user_code,
            verification_uri: response.verification_uri,
            verification_uri_complete: response.verification_uri_complete,
            expires_in: response.expires_in,
        })
    }

    /// Waits until the person has confirmed, then exchanges the id token for a token of that audience.
    ///
    /// # Errors
    /// The person denied the request, or the code has expired.
    pub async fn finish(mut self, issuer: &Issuer, audience: &str) -> Result<Tokens, ClientError> {
        let form = [("grant_type", GRANT), ("device_code", self.device_code.as_str()), ("client_id", "bowline")];
        let granted: Granted = loop {
            tokio::time::sleep(Duration::from_secs(self.interval_seconds)).await;
            match post(issuer, &self.token_endpoint, &form).await? {
                Ok(granted) => break granted,
                Err(failure) => match failure.error.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => self.interval_seconds += 5,
                    _ => return Err(failed(&failure)),
                },
            }
        };
        let request = ExchangeRequest { audiences: vec![audience.into()], ..ExchangeRequest::default() };
        let tokens = issuer.exchange(&granted.id_token, &request).await?;
        Ok(Tokens { refresh_token: granted.refresh_token.or(tokens.refresh_token), ..tokens })
    }
}

fn failed(failure: &Failure) -> ClientError {
    ClientError::SignIn(match (failure.error.as_str(), &failure.error_description) {
        ("access_denied", _) => "the sign-in was refused".into(),
        ("expired_token", _) => "the code has expired; run the command again".into(),
        (_, Some(description)) => format!("the sign-in failed: {description}"),
        (error, None) => format!("the sign-in failed: {error}"),
    })
}

/// Posts to an OAuth endpoint; returns the document, or its error.
async fn post<T: serde::de::DeserializeOwned>(
    issuer: &Issuer,
    endpoint: &str,
    form: &[(&str, &str)],
) -> Result<Result<T, Failure>, ClientError> {
    let path = endpoint.strip_prefix(issuer.url()).ok_or_else(|| {
        ClientError::SignIn(format!(
            "the issuer names an endpoint outside its own origin, {endpoint}; nothing was sent there"
        ))
    })?;
    let (status, body) = issuer.send(path, None, form).await?;
    if status.is_success() {
        return parsed(&body).map(Ok);
    }
    match serde_json::from_slice(&body) {
        Ok(failure) => Ok(Err(failure)),
        Err(_) => Err(refusal(status, &body)),
    }
}
