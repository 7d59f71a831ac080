use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_client::{Api, ClientError, ExchangeRequest, Issuer};
use bowline_contract::Method;
use bowline_core::{Clock as _, Micros};
use bowline_server::{Options, Server, StartError, mint_operator_token};

use crate::clock::{DAY, DemoClock, HOUR, SECOND};
use crate::people::Signer;
use crate::random::Random;

/// The caller that commands of the operator are made for.
pub(crate) const OPERATOR: &str = "operator";

/// A server that is being filled, and those who call it.
pub(crate) struct World {
    server: Server,
    clock: DemoClock,
    base: String,
    signer: Signer,
    identities: BTreeMap<String, String>,
    sessions: BTreeMap<String, Session>,
    http: reqwest::Client,
    random: Random,
    first: Micros,
}

struct Session {
    token: String,
    api: Api,
    until: Micros,
}

impl World {
    /// Starts a server for the directory of the options, at that time.
    pub(crate) async fn start(options: &Options, first: Micros) -> Result<World, StartError> {
        let clock = DemoClock::at(first);
        let server = Server::start(&filling(options), Arc::new(clock.clone())).await?;
        let base = server.parts().settings.base_url.clone();
        let http = loopback_client()?;
        let random = Random::of("world");
        let (identities, sessions) = (BTreeMap::new(), BTreeMap::new());
        Ok(World { server, clock, base, signer: Signer::new()?, identities, sessions, http, random, first })
    }

    pub(crate) async fn stop(self) {
        self.server.stop().await;
    }

    pub(crate) fn clock(&self) -> &DemoClock {
        &self.clock
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// The public keys of everyone's tokens.
    pub(crate) fn jwks(&self) -> String {
        self.signer.jwks()
    }

    /// Moves the time to that hour of that day of the history.
    pub(crate) fn move_to(&self, day: i64, hour: i64) {
        self.clock.move_to(self.first + day * DAY + hour * HOUR);
    }

    /// From now on that caller is this identity.
    pub(crate) fn know(&mut self, name: &str, identity: &str) {
        self.identities.insert(name.to_owned(), identity.to_owned());
    }

    /// The identity of that caller.
    pub(crate) fn identity(&self, name: &str) -> Result<String, StartError> {
        let identity = self.identities.get(name).cloned();
        identity.ok_or_else(|| StartError::Defect(format!("the demonstration has no person {name}")))
    }

    /// Calls a method as that caller, some seconds after the last call.
    pub(crate) async fn call<M: Method>(
        &mut self,
        caller: &str,
        request: M::Request,
    ) -> Result<M::Response, StartError> {
        self.pause(2, 40);
        self.look::<M>(caller, request).await
    }

    /// Calls a method as that caller while the time stands still, for polls: their number depends on the machine.
    pub(crate) async fn look<M: Method>(
        &mut self,
        caller: &str,
        request: M::Request,
    ) -> Result<M::Response, StartError> {
        let result = self.session(caller).await?.api.call::<M>(&request).await;
        result.map_err(|error| failed(&format!("{} by {caller}", M::FULL_NAME), &error))
    }

    /// Moves the time forward by some seconds, from `least` to `most`.
    pub(crate) fn pause(&mut self, least: u64, most: u64) {
        self.clock.advance(self.random.between(least, most) as Micros * SECOND);
    }

    /// Writes the pulls so far, which a server otherwise does some time later.
    pub(crate) async fn write_pulls(&self) {
        self.server.parts().registry.flush_pulls().await;
    }

    /// The token of that caller, for the registry.
    pub(crate) async fn token(&mut self, caller: &str) -> Result<String, StartError> {
        Ok(self.session(caller).await?.token.clone())
    }

    /// The session of that caller, a new one if the last one ends soon.
    async fn session(&mut self, caller: &str) -> Result<&Session, StartError> {
        let now = self.clock.now();
        let is_fresh = self.sessions.get(caller).is_some_and(|session| now + 300 * SECOND < session.until);
        if !is_fresh {
            let token = self.sign_in(caller, now).await?;
            let api = Api::new(&self.base, Some(token.clone())).map_err(|error| failed("an API client", &error))?;
            self.sessions.insert(caller.to_owned(), Session { token, api, until: now + HOUR });
        }
        self.sessions.get(caller).ok_or_else(|| StartError::Defect(format!("{caller} has no session")))
    }

    async fn sign_in(&self, caller: &str, now: Micros) -> Result<String, StartError> {
        let parts = self.server.parts();
        if caller == OPERATOR {
            let reason = Some("demonstration data");
            return mint_operator_token(&parts.storage, &self.clock, None, None, 3600, reason).await;
        }
        let identity = self.identities.get(caller).cloned();
        let token = self.signer.token(caller, &parts.settings.auth_url, now / SECOND)?;
        let request = ExchangeRequest { audiences: vec![self.base.clone()], identity, ..ExchangeRequest::default() };
        let tokens = Issuer::new(&self.base, self.http.clone()).exchange(&token, &request).await;
        let tokens = tokens.map_err(|error| failed(&format!("the sign-in of {caller}"), &error))?;
        tokens.token.ok_or_else(|| StartError::Defect(format!("{caller} got no token")))
    }
}

/// The HTTP client of pushes, pulls and sign-ins: no proxy of the machine may come between it and the server.
fn loopback_client() -> Result<reqwest::Client, StartError> {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(60));
    builder.build().map_err(|error| StartError::Defect(error.to_string()))
}

/// Options of the server that fills the directory: it is reached from this machine only, and does nothing by itself that
/// would depend on how long the filling takes.
fn filling(options: &Options) -> Options {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    Options {
        data_dir: options.data_dir.clone(),
        key_file: options.key_file.clone(),
        token_algorithm: options.token_algorithm,
        disk_reserve: options.disk_reserve,
        advisory_prefix: options.advisory_prefix.clone(),
        listen: Some(loopback),
        admin_listen: Some(loopback),
        rate_limit_address: Some(0),
        retention_every: Some(0),
        gc_every: Some("never".into()),
        ..Options::default()
    }
}

/// A step of the filling that failed.
pub(crate) fn failed(step: &str, error: &ClientError) -> StartError {
    StartError::Unusable {
        cause: format!("cannot make the demonstration data: {step}: {error}"),
        hint: "remove the directory of the demonstration and run the command again".into(),
    }
}
