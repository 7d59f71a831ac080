//! The server that a command talks to, and its credentials.

use std::path::PathBuf;

use bowline_client::{
    Ambient, AmbientCredentials, Api, ClientError, Context, Contexts, ExchangeRequest, Issuer, LazyClient, TokenCache,
    Tokens, claims,
};
use bowline_core::{Clock as _, SystemClock};
use bowline_terminal::{TerminalSettings, say};
use clap::Args;

use crate::{credential_helper, input};

/// Which server is meant.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Context to use instead of the current one
    #[arg(long, env = "BOWLINE_CONTEXT", value_name = "NAME", help_heading = "Connection")]
    pub(crate) context: Option<String>,
    /// Address of the API
    #[arg(long, env = "BOWLINE_API", value_name = "URL", help_heading = "Connection")]
    pub(crate) api: Option<String>,
    /// Address of the token exchange [default: the API's]
    #[arg(long, env = "BOWLINE_ISSUER", value_name = "URL", help_heading = "Connection")]
    pub(crate) issuer: Option<String>,
}

/// Which server, and as whom.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Access {
    #[command(flatten)]
    target: Target,
    /// File with the token to call with, such as `bowline operator token` prints, or - for standard input
    /// [default: BOWLINE_TOKEN, else the sign-in]
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    token_file: Option<PathBuf>,
}

/// Subject of the operator, who is no member of any organization.
pub(crate) const OPERATOR: &str = "0000000000000000000000000000000000000000";

/// Longest token in a file, in bytes.
const TOKEN_BYTES: u64 = 64 << 10;

impl Access {
    /// Access to a server with the sign-in, or the token of the variable.
    pub(crate) fn of(target: Target) -> Access {
        Access { target, token_file: None }
    }

    /// Whether the token comes from standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.token_file.as_deref() == Some(std::path::Path::new("-"))
    }

    /// Opens a session with the selected server; it uses the token of `--token-file` if that is given.
    pub(crate) fn session(&self) -> Result<Session, ClientError> {
        let mut session = Session::open(&self.target)?;
        session.given = variable("BOWLINE_TOKEN");
        if let Some(path) = &self.token_file {
            let no_token = || ClientError::Usage(format!("--token-file {}: this is no token", path.display()));
            let text = String::from_utf8(input::read(path, TOKEN_BYTES)?).map_err(|_| no_token())?;
            let token = text.trim();
            if token.is_empty() || token.chars().any(char::is_whitespace) {
                return Err(no_token());
            }
            session.given = Some(token.to_owned());
        }
        Ok(session)
    }
}

/// The selected server, and the cache of its tokens.
pub(crate) struct Session {
    pub(crate) api: String,
    pub(crate) issuer: Issuer,
    pub(crate) cache: TokenCache,
    pub(crate) contexts: PathBuf,
    /// Identity to assume with the ambient token.
    pub(crate) identity: Option<String>,
    pub(crate) http: LazyClient,
    /// Registry hosts in the names of this server's images.
    registries: Vec<String>,
    ambient: Option<Ambient>,
    /// The token of `--token-file`, used instead of cached ones.
    given: Option<String>,
}

/// Token files on Kubernetes: a projected volume for Bowline, else the service account's.
const KUBERNETES_FILES: [&str; 2] =
    ["/var/run/secrets/bowline/token", "/var/run/secrets/kubernetes.io/serviceaccount/token"];

impl Session {
    /// Selects the server: flags and variables first, then the context.
    pub(crate) fn open(target: &Target) -> Result<Session, ClientError> {
        let contexts = contexts_file()?;
        let known = Contexts::read(&contexts)?;
        // With an explicit address the current context does not apply.
        let context = match (&target.context, &target.api) {
            (None, Some(_)) => None,
            (name, _) => known.find(name.as_deref())?,
        };
        if let (Some(context), Some(api)) = (context, &target.api) {
            require_one_server(target.context.as_deref().unwrap_or_default(), context, api)?;
        }
        let api = target.api.clone().or_else(|| context.map(|context| context.api.clone()));
        let api = checked("api", &api.ok_or(ClientError::NoServer)?)?;
        let issuer = target.issuer.clone().or_else(|| context.and_then(|context| context.issuer.clone()));
        let issuer = checked("issuer", issuer.as_deref().unwrap_or(&api))?;
        let http = LazyClient::default();
        let registry = context.and_then(|context| context.registry.clone());
        Ok(Session {
            registries: registry.into_iter().chain([credential_helper::host(&api).to_owned()]).collect(),
            issuer: Issuer::new(&issuer, http.clone()),
            cache: TokenCache::new(&tokens_directory()?),
            contexts,
            identity: variable("BOWLINE_IDENTITY").or_else(|| context.and_then(|context| context.identity.clone())),
            ambient: Ambient::detect(&ambient()),
            given: None,
            api,
            http,
        })
    }

    /// The time, unix seconds.
    pub(crate) fn now() -> i64 {
        SystemClock.now().div_euclid(1_000_000)
    }

    /// The source of ambient identity tokens, if there is one.
    pub(crate) fn ambient(&self) -> Option<&Ambient> {
        self.ambient.as_ref()
    }

    /// Returns a token for the audience: the cached one, else a refreshed one, else one exchanged for the
    /// ambient token, else one exchanged for the API's token. If an identity is configured, cached tokens of
    /// other identities are not used.
    pub(crate) async fn token(&self, audience: &str) -> Result<String, ClientError> {
        if let Some(given) = &self.given {
            return self.given_token(given, audience).await;
        }
        let found = self.cached(audience)?;
        let cached = if self.is_requested(&found) { found.clone() } else { Tokens::default() };
        if let Some(token) = cached.fresh(Session::now()) {
            return Ok(token);
        }
        let tokens = if let Some(refresh_token) = &cached.refresh_token {
            self.issuer.refresh(refresh_token, audience).await.map_err(ended)?
        } else if let (Some(identity), Some(ambient)) = (&self.identity, self.ambient()) {
            let presented = ambient.token(self.http.get()?, self.issuer.url()).await?;
            let request = ExchangeRequest {
                audiences: vec![audience.into()],
                identity: Some(identity.clone()),
                ..ExchangeRequest::default()
            };
            self.issuer.exchange(&presented, &request).await?
        } else if audience != self.api {
            let token = Box::pin(self.token(&self.api)).await?;
            let request = ExchangeRequest { audiences: vec![audience.into()], ..ExchangeRequest::default() };
            self.issuer.exchange(&token, &request).await?
        } else {
            return Err(not_signed_in(&found, self.identity.as_deref()));
        };
        // Another identity's refresh token is not overwritten: losing it would cost a sign-in.
        if self.is_requested(&found) || found.refresh_token.is_none() {
            self.cache.write(audience, &tokens)?;
        }
        tokens.token.ok_or_else(|| ClientError::Transport("the issuer gave no token".into()))
    }

    /// The token that was given, exchanged where it is for another audience; nothing of it is stored.
    async fn given_token(&self, given: &str, audience: &str) -> Result<String, ClientError> {
        if audience == self.api {
            return Ok(given.to_owned());
        }
        let request = ExchangeRequest { audiences: vec![audience.into()], ..ExchangeRequest::default() };
        let token = self.issuer.exchange(given, &request).await?.token;
        token.ok_or_else(|| ClientError::Transport("the issuer gave no token".into()))
    }

    /// Whether the tokens belong to the configured identity; true if none is configured.
    fn is_requested(&self, tokens: &Tokens) -> bool {
        let subject = tokens.token.as_deref().and_then(claims).map(|claims| claims.sub);
        self.identity.is_none() || subject == self.identity
    }

    /// Removes the registry host that an image name begins with.
    pub(crate) fn without_registry<'a>(&self, path: &'a str) -> &'a str {
        let rest = |host: &String| path.strip_prefix(host.as_str()).and_then(|rest| rest.strip_prefix('/'));
        self.registries.iter().find_map(rest).unwrap_or(path)
    }

    /// The cached tokens for an audience, if they are of this issuer; tokens of another server are ignored.
    pub(crate) fn cached(&self, audience: &str) -> Result<Tokens, ClientError> {
        let cached = self.cache.read(audience)?;
        let issuer = cached.token.as_deref().and_then(claims).map(|claims| claims.iss);
        Ok(if issuer.as_deref() == Some(self.issuer.url()) { cached } else { Tokens::default() })
    }

    /// Whether no token of the API is stored, and no identity is configured that could get one.
    pub(crate) fn is_signed_out(&self) -> Result<bool, ClientError> {
        Ok(self.identity.is_none() && self.cached(&self.api)?.token.is_none())
    }

    /// Host of the registry, as far as it is known.
    pub(crate) fn registry(&self) -> &str {
        self.registries.first().map(String::as_str).unwrap_or_default()
    }

    /// A client of the API with the session's token.
    pub(crate) async fn api(&self) -> Result<Api, ClientError> {
        self.api_with(self.token(&self.api).await?)
    }

    /// A client of the API with a token that is at hand. Nothing is refreshed or exchanged: a refresh token that is spent by
    /// a process which ends before it stores the next one costs the sign-in.
    pub(crate) fn api_at_hand(&self) -> Result<Api, ClientError> {
        let cached = self.cached(&self.api)?;
        let fresh = || cached.fresh(Session::now()).filter(|_| self.is_requested(&cached));
        let token = self.given.clone().or_else(fresh);
        self.api_with(token.ok_or_else(|| not_signed_in(&cached, self.identity.as_deref()))?)
    }

    /// A client of the API with a token.
    pub(crate) fn api_with(&self, token: String) -> Result<Api, ClientError> {
        let api = Api::new(&self.api, Some(token))?;
        Ok(if TerminalSettings::get().verbose { api.observed(|call| say(&format!("{call}\n"))) } else { api })
    }

    /// Audiences of this issuer with cached tokens, spelled as in the cache.
    pub(crate) fn audiences(&self) -> Result<Vec<String>, ClientError> {
        let own = self.api.replace('/', "-");
        let mut audiences = Vec::new();
        for audience in self.cache.cached()? {
            let token = self.cache.read(&audience)?.token;
            let issuer = token.as_deref().and_then(claims).map(|claims| claims.iss);
            if audience == own || issuer.as_deref() == Some(self.issuer.url()) {
                audiences.push(audience);
            }
        }
        Ok(audiences)
    }

    /// Caches tokens. If there are no contexts, stores the server as the context `default`.
    pub(crate) fn keep(&self, audience: &str, tokens: &Tokens) -> Result<(), ClientError> {
        self.cache.write(audience, tokens)?;
        let mut known = Contexts::read(&self.contexts)?;
        if known.contexts.is_empty() {
            let issuer = Some(self.issuer.url().to_owned()).filter(|issuer| *issuer != self.api);
            known
                .contexts
                .insert("default".into(), Context { api: self.api.clone(), issuer, identity: None, registry: None });
            known.current = Some("default".into());
            known.write(&self.contexts)?;
        }
        Ok(())
    }
}

fn ended(error: ClientError) -> ClientError {
    match error {
        ClientError::Refused { code: 16 | 7, message, .. } => {
            ClientError::NotSignedIn(format!("{message}; sign in again with: bowline auth login"))
        }
        other => other,
    }
}

fn not_signed_in(cached: &Tokens, identity: Option<&str>) -> ClientError {
    let former = cached.token.as_deref().and_then(claims);
    if let Some(identity) = identity
        && former.as_ref().is_none_or(|former| former.sub != identity)
    {
        return ClientError::NotSignedIn(format!(
            "the context or BOWLINE_IDENTITY names the identity {identity}; no token of it is stored, and no ambient identity token was found; sign in with: bowline auth login --identity {identity}"
        ));
    }
    let what = match former {
        Some(former) if !former.email.is_empty() => format!("the token of {} has ended", former.email),
        Some(_) => "the stored token has ended".into(),
        None => {
            return ClientError::NotSignedIn(
                "not signed in; sign in with: bowline auth login, or set BOWLINE_TOKEN; on the server's machine \
                 `bowline operator token` prints one"
                    .into(),
            );
        }
    };
    ClientError::NotSignedIn(format!("{what}; sign in with: bowline auth login"))
}

/// Rejects an address that differs from the named context's: whichever was used, tokens for one server could
/// go to the other.
fn require_one_server(name: &str, context: &Context, api: &str) -> Result<(), ClientError> {
    if checked("api", api)? == checked("api", &context.api)? {
        return Ok(());
    }
    Err(ClientError::Usage(format!(
        "which server? The context {name:?} (--context or BOWLINE_CONTEXT) has the address {}, and --api or BOWLINE_API \
         names {api}; leave one of them out",
        context.api
    )))
}

fn checked(flag: &str, text: &str) -> Result<String, ClientError> {
    bowline_terminal::public_url(flag, text).map_err(|error| ClientError::Usage(error.to_string()))
}

/// Path of the contexts file.
pub(crate) fn contexts_file() -> Result<PathBuf, ClientError> {
    if let Some(path) = variable("BOWLINE_CONTEXTS") {
        return Ok(path.into());
    }
    let directory = user_directory("XDG_CONFIG_HOME", ".config", "Library/Application Support")?;
    Ok(Contexts::usual_path(&directory))
}

/// Where tokens are cached: CI jobs name a directory that ends with them.
fn tokens_directory() -> Result<PathBuf, ClientError> {
    match variable("BOWLINE_TOKENS") {
        Some(path) => Ok(path.into()),
        None => user_directory("XDG_CACHE_HOME", ".cache", "Library/Caches"),
    }
}

fn user_directory(name: &str, below_home: &str, on_mac: &str) -> Result<PathBuf, ClientError> {
    if let Some(path) = variable(name) {
        return Ok(path.into());
    }
    let home = variable("HOME").ok_or_else(|| ClientError::Usage(format!("neither HOME nor {name} is set")))?;
    Ok(PathBuf::from(home).join(if cfg!(target_os = "macos") { on_mac } else { below_home }))
}

fn ambient() -> AmbientCredentials {
    AmbientCredentials {
        github_url: variable("ACTIONS_ID_TOKEN_REQUEST_URL"),
        github_token: variable("ACTIONS_ID_TOKEN_REQUEST_TOKEN"),
        given_token: variable("BOWLINE_ID_TOKEN"),
        kubernetes_files: KUBERNETES_FILES.iter().map(PathBuf::from).collect(),
    }
}

#[expect(clippy::disallowed_methods, reason = "the command line is what may read the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
