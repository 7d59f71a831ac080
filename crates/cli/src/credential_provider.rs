//! `bowline-credential-provider`: the kubelet's exec plugin, which gives the token of a pod's service account for a token
//! of the registry. The request comes on stdin, and the response goes to stdout; errors go to stderr, which the kubelet
//! writes to its log.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::Path;

use bowline_client::{ClientError, ExchangeRequest, Issuer, claims, http_client};
use bowline_core::Uidp;
use bowline_terminal::{Work, public_url};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::credential_helper::{TOKEN_USER, host};
use crate::error::CliError;
use crate::print;
use crate::session::Session;

pub(crate) use bowline_formats::workloads::IDENTITY_ANNOTATION;
pub(crate) use bowline_formats::workloads::kubelet::{API_VERSION, COMMAND};
/// The command that the file name stands for.
pub const SUBCOMMAND: &str = "credential-provider";

/// Largest request, in bytes.
const REQUEST_BYTES: u64 = 1 << 20;
/// Seconds before the end of a token at which the kubelet requests another.
const MARGIN: i64 = 300;

const EXAMPLE: &str = "\
Example of an entry in the kubelet's CredentialProviderConfig, which `bowline iam identities create kubernetes --kubelet` writes:
  name: bowline-credential-provider
  args: [--api=https://api.example.com, --registry=registry.example.com]";

/// `bowline credential-provider`.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct CredentialProviderCommand {
    /// Address of the API
    #[arg(long, env = "BOWLINE_API", value_name = "URL")]
    api: String,
    /// Address of the token exchange [default: the API's]
    #[arg(long, env = "BOWLINE_ISSUER", value_name = "URL")]
    issuer: Option<String>,
    /// Host of the registry, as images name it; credentials for others are refused
    #[arg(long, value_name = "HOST")]
    registry: String,
    /// Identity of service accounts without the annotation bowline/identity
    #[arg(long, value_name = "UIDP")]
    identity: Option<String>,
}

/// The request of the kubelet, as far as it is needed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CredentialRequest {
    api_version: String,
    kind: String,
    image: String,
    #[serde(default)]
    service_account_token: String,
    #[serde(default)]
    service_account_annotations: BTreeMap<String, String>,
}

/// Whether the binary was called as the plugin.
pub fn is_meant(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(COMMAND))
}

/// Runs `bowline credential-provider`: one request, one response.
pub fn run(command: CredentialProviderCommand) -> Work<CliError> {
    Box::pin(async move {
        let response = respond(&command, &read_request()?).await?;
        print(&format!("{response}\n"))
    })
}

fn read_request() -> Result<CredentialRequest, CliError> {
    let mut text = Vec::new();
    let read = std::io::stdin().lock().take(REQUEST_BYTES).read_to_end(&mut text);
    read.map_err(|source| CliError::File { path: "standard input".into(), source })?;
    let malformed = |error| ClientError::Usage(format!("standard input: no CredentialProviderRequest: {error}"));
    Ok(serde_json::from_slice(&text).map_err(malformed)?)
}

async fn respond(command: &CredentialProviderCommand, request: &CredentialRequest) -> Result<Value, CliError> {
    let identity = validate(command, request)?;
    let api = public_url("api", &command.api)?;
    let issuer = command.issuer.as_ref().map(|issuer| public_url("issuer", issuer)).transpose()?;
    let issuer = Issuer::new(issuer.as_deref().unwrap_or(&api), http_client()?);
    let exchange = ExchangeRequest {
        audiences: vec![command.registry.clone()],
        identity: Some(identity),
        ..ExchangeRequest::default()
    };
    let tokens = issuer.exchange(&request.service_account_token, &exchange).await?;
    let token = tokens.token.ok_or_else(|| ClientError::Transport("the issuer gave no token".into()))?;
    let ends = claims(&token).map_or(0, |claims| claims.exp);
    Ok(response(&command.registry, &token, ends - Session::now()))
}

/// The identity to assume, if the request is one that this plugin serves. Nothing is sent before.
fn validate(command: &CredentialProviderCommand, request: &CredentialRequest) -> Result<String, ClientError> {
    let refused = |why: String| Err(ClientError::Usage(why));
    if request.api_version != API_VERSION || request.kind != "CredentialProviderRequest" {
        return refused(format!(
            "the kubelet sent {} {}; set apiVersion: {API_VERSION} in its configuration",
            request.api_version, request.kind
        ));
    }
    if host(&request.image) != command.registry {
        return refused(format!(
            "{}: not an image of {}; name only that host in matchImages",
            request.image, command.registry
        ));
    }
    if request.service_account_token.is_empty() {
        return refused("the kubelet sent no service account token; set tokenAttributes in its configuration".into());
    }
    let annotation = request.service_account_annotations.get(IDENTITY_ANNOTATION);
    match annotation.or(command.identity.as_ref()) {
        Some(identity) if Uidp::is_valid(identity) => Ok(identity.clone()),
        Some(other) => refused(format!("identity {other:?}: not a UIDP; `bowline iam identities list` shows it")),
        None => {
            refused(format!("no identity: annotate the service account with {IDENTITY_ANNOTATION}, or pass --identity"))
        }
    }
}

fn response(registry: &str, token: &str, seconds_left: i64) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "CredentialProviderResponse",
        "cacheKeyType": "Registry",
        "cacheDuration": format!("{}s", (seconds_left - MARGIN).max(0)),
        "auth": { registry: { "username": TOKEN_USER, "password": token } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(identity: Option<&str>) -> CredentialProviderCommand {
        CredentialProviderCommand {
            api: "https://api.example.com".into(),
            issuer: None,
            registry: "registry.example.com:5000".into(),
            identity: identity.map(String::from),
        }
    }

    fn request(change: impl FnOnce(&mut Value)) -> CredentialRequest {
        let mut request = json!({
            "apiVersion": API_VERSION, "kind": "CredentialProviderRequest",
            "image": "registry.example.com:5000/acme/app:1", "serviceAccountToken": "t",
            "serviceAccountAnnotations": { IDENTITY_ANNOTATION: "ab".repeat(20) },
        });
        change(&mut request);
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn requests_of_others_are_refused_before_anything_is_sent() {
        assert_eq!(validate(&command(None), &request(|_| {})).unwrap(), "ab".repeat(20));
        let other = "cd".repeat(20);
        let no_annotation = request(|request| request["serviceAccountAnnotations"] = json!({}));
        assert_eq!(validate(&command(Some(&other)), &no_annotation).unwrap(), other);
        let refused = |request: &CredentialRequest| validate(&command(None), request).unwrap_err().to_string();
        assert!(refused(&no_annotation).contains("annotate the service account"));
        for (member, value, named) in [
            ("apiVersion", json!("credentialprovider.kubelet.k8s.io/v1beta1"), "set apiVersion"),
            ("image", json!("registry.example.com/acme/app"), "matchImages"),
            ("image", json!("registry.example.com:5000.evil.example/app"), "matchImages"),
            ("serviceAccountToken", json!(""), "tokenAttributes"),
            ("serviceAccountAnnotations", json!({ IDENTITY_ANNOTATION: "x" }), "not a UIDP"),
        ] {
            let message = refused(&request(|request| request[member] = value));
            assert!(message.contains(named), "{member}: {message}");
        }
    }

    #[test]
    fn credentials_are_cached_for_less_than_they_last() {
        let at = |left| response("r", "t", left)["cacheDuration"].clone();
        assert_eq!((at(3600), at(MARGIN), at(-5)), (json!("3300s"), json!("0s"), json!("0s")));
    }
}
