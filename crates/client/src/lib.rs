//! A client library of the platform API; the command line is built on it.
//!
//! [`Api`] calls any method of the contract by its type or its name, over gRPC or REST. [`Issuer`] talks to the token
//! exchange and to the sign-in flows. [`TokenCache`] keeps tokens where the public Go SDK looks for
//! them, and [`Contexts`] remembers which servers there are. Nothing here reads the environment or
//! writes to a terminal; the command line does both.
//!
//! To call one more method: `api.call::<rpc::groups_service::ListGroups>(request).await`.

mod ambient;
mod api;
mod attestations;
mod browser;
mod cache;
mod contexts;
mod device;
mod docker;
mod error;
mod files;
mod grpc;
mod headless;
mod issuer;
mod jwt;
mod package_host;
mod pull_token;
mod rest;
mod stream;

use std::sync::{Arc, OnceLock};

pub use ambient::{Ambient, AmbientCredentials};
pub use api::Api;
pub use attestations::{FileStatement, StatementSigner};
pub use browser::BrowserSignIn;
pub use cache::{TokenCache, Tokens};
pub use contexts::{Context, Contexts};
pub use device::DeviceSignIn;
pub use docker::DockerConfig;
pub use error::{ClientError, LookupKind};
pub use headless::HeadlessSignIn;
pub use issuer::{ExchangeRequest, Issuer, SignInRequest};
pub use jwt::{Claims, claims};
pub use package_host::{get_document, put_file, receive_file, stream_file};
pub use pull_token::{PullToken, PullTokenKey};
pub use rest::tables;
pub use stream::Messages;

/// [`http_client`], built when it is first needed: building it reads the machine's certificates.
#[derive(Clone, Debug, Default)]
pub struct LazyClient(Arc<OnceLock<reqwest::Client>>);

impl LazyClient {
    /// The client.
    ///
    /// # Errors
    /// The system's certificates cannot be read.
    pub fn get(&self) -> Result<&reqwest::Client, ClientError> {
        if let Some(client) = self.0.get() {
            return Ok(client);
        }
        let client = http_client()?;
        Ok(self.0.get_or_init(|| client))
    }
}

impl From<reqwest::Client> for LazyClient {
    fn from(client: reqwest::Client) -> LazyClient {
        LazyClient(Arc::new(OnceLock::from(client)))
    }
}

/// The HTTP client of everything here: system roots, TLS 1.2 or newer, no redirects.
///
/// # Errors
/// The system's certificates cannot be read.
pub fn http_client() -> Result<reqwest::Client, ClientError> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(std::time::Duration::from_secs(10))
        .timeout(std::time::Duration::from_secs(60))
        .user_agent(concat!("bowline/", env!("CARGO_PKG_VERSION")));
    builder.build().map_err(|error| ClientError::Transport(error.to_string()))
}
