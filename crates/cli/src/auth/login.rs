use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bowline_client::{
    BrowserSignIn, ClientError, DeviceSignIn, ExchangeRequest, HeadlessSignIn, SignInRequest, Tokens, claims,
};
use bowline_core::Uidp;
use bowline_terminal::say;
use clap::Args;

use crate::error::CliError;
use crate::print;
use crate::session::{Session, Target, variable};

/// How long a person may take in the browser.
const PATIENCE: Duration = Duration::from_mins(5);

/// What is shorter names a file: a signature alone has more characters.
const SHORTEST_TOKEN: usize = 80;

/// `bowline auth login`.
#[derive(Args)]
pub struct LoginCommand {
    #[command(flatten)]
    target: Target,
    /// Identity to assume
    #[arg(long, value_name = "UIDP")]
    identity: Option<String>,
    /// Identity token to exchange: the token, or a file that holds it
    #[arg(long, value_name = "FILE|JWT", conflicts_with_all = ["headless", "device", "refresh"])]
    identity_token: Option<String>,
    /// Identity provider of an organization
    #[arg(long, value_name = "UIDP", conflicts_with_all = ["org_name", "provider"])]
    identity_provider: Option<String>,
    /// Organization whose identity provider is meant
    #[arg(long, value_name = "NAME", conflicts_with = "provider")]
    org_name: Option<String>,
    /// One of the server's own identity providers
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
    /// Sign in with a browser elsewhere: prints an address to open
    #[arg(long, conflicts_with_all = ["device", "refresh", "identity"])]
    headless: bool,
    /// Sign in on another device: prints a short code to type there
    #[arg(long, conflicts_with_all = ["identity", "identity_provider", "org_name", "provider", "invite_code"])]
    device: bool,
    /// Audience of the token; may be repeated [default: the API]
    #[arg(long, value_name = "AUDIENCE")]
    audience: Vec<String>,
    /// Keep a refresh token too, so that the sign-in lasts for up to 30 days
    #[arg(long)]
    refresh: bool,
    /// Code of an invitation to join with
    #[arg(long, value_name = "CODE")]
    invite_code: Option<String>,
    /// Do not open a browser, only print the address
    #[arg(long)]
    no_browser: bool,
}

pub(crate) async fn run(command: LoginCommand) -> Result<(), CliError> {
    require_uidp(command.identity.as_deref())?;
    let session = Session::open(&command.target)?;
    let audiences = match &command.audience[..] {
        [] => vec![session.api.clone()],
        audiences => audiences.to_vec(),
    };
    let first = &audiences[0];
    let presented = presented_token(&command, &session).await?;
    if presented.is_none() {
        require_account(&command)?;
    }
    let tokens = match &presented {
        Some(token) => session.issuer.exchange(token, &exchange(&command, first)).await?,
        None => interactive(&command, &session, first).await?,
    };
    session.keep(first, &tokens)?;
    for audience in &audiences[1..] {
        let own = || tokens.token.as_ref().ok_or_else(|| ClientError::Transport("the issuer gave no token".into()));
        // A token of the issuer's own says itself whose it is.
        let (token, request) = match &presented {
            Some(token) => (token, exchange(&command, audience)),
            None => (own()?, ExchangeRequest { audiences: vec![audience.clone()], ..ExchangeRequest::default() }),
        };
        session.keep(audience, &session.issuer.exchange(token, &request).await?)?;
    }
    let who = tokens.token.as_deref().and_then(claims).unwrap_or_default();
    say(&format!(
        "signed in to {}{}\n",
        session.api,
        if who.email.is_empty() { String::new() } else { format!(" as {}", who.email) }
    ));
    print(&format!("{}\n", who.sub))
}

/// Names are resolved by calls of the API, which need a token first.
fn require_uidp(identity: Option<&str>) -> Result<(), ClientError> {
    let Some(named) = identity.filter(|identity| !Uidp::is_valid(identity)) else { return Ok(()) };
    Err(ClientError::Usage(format!(
        "--identity {named}: must be a UIDP, because names are resolved only after the sign-in; who may list identities \
         prints it with: bowline iam identities get {named} -o name"
    )))
}

/// The token to exchange: the given one, or the environment' where an identity is named and no browser flow is.
async fn presented_token(command: &LoginCommand, session: &Session) -> Result<Option<String>, ClientError> {
    if let Some(given) = &command.identity_token {
        return read_token(given).map(Some);
    }
    match session.ambient() {
        Some(ambient) if command.identity.is_some() && !command.headless && !command.device => {
            say(&format!("using the identity token of {}\n", ambient.name()));
            ambient.token(session.http.get()?, session.issuer.url()).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// A job that names an identity means its own token: where it has none, no one comes to a browser either.
fn require_account(command: &LoginCommand) -> Result<(), ClientError> {
    let is_for_a_person = command.headless || command.device || command.no_browser || command.identity.is_none();
    if is_for_a_person || (variable("CI").is_none() && std::io::stderr().is_terminal()) {
        return Ok(());
    }
    Err(ClientError::NotSignedIn(
        "no ambient identity token was found, and there is no terminal to sign in at: GitHub needs permissions: \
         id-token: write; GitLab an id_tokens entry named BOWLINE_ID_TOKEN; Kubernetes a projected token at \
         /var/run/secrets/bowline/token; elsewhere give one with --identity-token. A person at a browser elsewhere: \
         --no-browser"
            .into(),
    ))
}

/// A token, or the file that holds it.
fn read_token(given: &str) -> Result<String, ClientError> {
    let path = Path::new(given);
    // A pipe will do too: <(command).
    if path.exists() && !path.is_dir() {
        let text = std::fs::read_to_string(path);
        return Ok(text.map_err(|source| ClientError::File { path: path.into(), source })?.trim().to_owned());
    }
    // A token with other contents than JSON may be one too: AWS identities present a signed request. None is short.
    if given.contains(['/', '\\']) || given.len() < SHORTEST_TOKEN {
        // What looks like no path may be a secret.
        let shown = if given.starts_with(['/', '.', '~']) { format!(" {given}") } else { String::new() };
        return Err(ClientError::Usage(format!("--identity-token{shown}: there is no such file, and it is no token")));
    }
    Ok(given.to_owned())
}

fn exchange(command: &LoginCommand, audience: &str) -> ExchangeRequest {
    ExchangeRequest {
        audiences: vec![audience.into()],
        identity: command.identity.clone(),
        identity_provider: command.identity_provider.clone(),
        ..ExchangeRequest::default()
    }
}

async fn interactive(command: &LoginCommand, session: &Session, audience: &str) -> Result<Tokens, ClientError> {
    let request = SignInRequest {
        audience: audience.into(),
        identity_provider: command.identity_provider.clone().or_else(|| command.org_name.clone()),
        connection: command.provider.clone(),
        identity: command.identity.clone(),
        invite: command.invite_code.clone(),
        refresh: command.refresh,
    };
    if command.device {
        let flow = DeviceSignIn::start(&session.issuer, audience, command.refresh).await?;
        let minutes = flow.expires_in / 60;
        let place = flow.verification_uri_complete.as_deref().unwrap_or(&flow.verification_uri);
        say(&format!("Open {place}\nand check the code {}. It is good for {minutes} minutes.\n", flow.user_code));
        return flow.finish(&session.issuer, audience).await;
    }
    session.issuer.discover().await?;
    if command.headless {
        let flow = HeadlessSignIn::start(&session.issuer, &request)?;
        say(&format!("Open {}\nThe page must show the code {}.\n", flow.url, flow.check_code));
        return flow.finish(&session.issuer, audience, PATIENCE).await;
    }
    let flow = BrowserSignIn::start(&session.issuer, &request).await?;
    say(&format!("Open this address if no browser does by itself:\n{}\n", flow.url));
    if !command.no_browser {
        open_browser(&flow.url);
    }
    flow.finish(PATIENCE).await
}

/// Asks the desktop to open the address; without a desktop the printed address has to do.
fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let _ = Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}
