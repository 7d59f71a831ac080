//! `docker-credential-bowline`: this binary by another name, from which docker, podman, skopeo, crane and
//! similar clients get the credentials of a registry. The request comes on stdin, and the response goes to
//! stdout, errors too: the clients show stdout alone.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use bowline_client::{ClientError, Contexts};
use bowline_terminal::block_on;
use serde_json::{Map, json};

use crate::error::CliError;
use crate::print;
use crate::session::{Session, Target, contexts_file};

/// What `credHelpers` calls the helper.
pub(crate) const NAME: &str = "bowline";
/// What the helper's command is called.
pub(crate) const COMMAND: &str = "docker-credential-bowline";

/// The protocol's words for "I have none", upon which clients continue without credentials.
const NOT_FOUND: &str = "credentials not found in native keychain";
/// User name that says that the password is a token of this server.
pub(crate) const TOKEN_USER: &str = "_token";
/// Bytes of a question; a registry's address is much shorter.
const LONGEST_QUESTION: u64 = 64 * 1024;

/// Whether the binary was called as the helper.
pub fn is_meant(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(COMMAND))
}

/// Serves one request, and returns the exit code.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let verb = arguments.first().and_then(|verb| verb.to_str()).unwrap_or_default();
    let answer = match verb {
        "get" => get(),
        "store" => store(),
        "erase" => erase(),
        "list" => list(),
        "version" => Ok(format!("{COMMAND} {}", env!("CARGO_PKG_VERSION"))),
        _ => {
            let usage = "usage: docker-credential-bowline get|store|erase|list|version; container clients call it, set up \
                         by: bowline auth configure-docker";
            Err(ClientError::Usage(usage.into()).into())
        }
    };
    let (text, code) = match answer {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(error) => (error.to_string(), ExitCode::from(error.exit_code())),
    };
    match print(&format!("{text}\n")) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

fn get() -> Result<String, CliError> {
    let address = question()?;
    let registry = host(&address);
    let session = session(registry)?.ok_or_else(|| ClientError::Usage(NOT_FOUND.into()))?;
    let token = block_on(async { Ok::<_, CliError>(session.token(registry).await?) });
    let token = match token {
        // The variable of the other commands is for one server, and a client names any registry.
        Err(CliError::Client(ClientError::NotSignedIn(_))) if session.is_signed_out()? => {
            return Err(ClientError::NotSignedIn("not signed in; sign in with: bowline auth login".into()).into());
        }
        other => other?,
    };
    Ok(json!({"ServerURL": address, "Username": TOKEN_USER, "Secret": token}).to_string())
}

/// Anyone who logs in with a password expects it to be used from then on, which it would not be.
fn store() -> Result<String, CliError> {
    question()?;
    let message = "bowline gives out tokens of its own and keeps no password: sign in with bowline auth login";
    Err(ClientError::Usage(message.into()).into())
}

fn erase() -> Result<String, CliError> {
    let address = question()?;
    let registry = host(&address);
    if let Some(session) = session(registry)? {
        session.cache.remove(registry)?;
    }
    Ok(String::new())
}

fn list() -> Result<String, CliError> {
    let known = Contexts::read(&contexts_file()?)?;
    let registries = known.contexts.into_values().filter_map(|context| context.registry);
    let users: Map<_, _> = registries.map(|registry| (registry, TOKEN_USER.into())).collect();
    Ok(serde_json::Value::Object(users).to_string())
}

/// The address that the client names, as it names it.
fn question() -> Result<String, CliError> {
    let mut text = String::new();
    let read = std::io::stdin().take(LONGEST_QUESTION).read_to_string(&mut text);
    read.map_err(|source| CliError::File { path: "standard input".into(), source })?;
    Ok(text.trim().to_owned())
}

/// The host of an address, with its port: some clients name the registry as `https://host/v1/`.
pub(crate) fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// Refuses the name of a registry that is no host.
///
/// # Errors
/// The text has a scheme, a path or an account.
pub(crate) fn require_host(registry: &str) -> Result<(), ClientError> {
    let is_host = registry.parse::<http::uri::Authority>().is_ok_and(|authority| !authority.as_str().contains('@'));
    if is_host {
        return Ok(());
    }
    Err(ClientError::Usage(format!(
        "--registry: {registry:?} is no host; it looks like registry.example.com or host:5000"
    )))
}

/// The server that gives out tokens for a registry, if one is known.
fn session(registry: &str) -> Result<Option<Session>, ClientError> {
    let known = Contexts::read(&contexts_file()?)?;
    let name = known.only(|context| context.registry.as_deref() == Some(registry))?;
    let target = |name: &str| Target { context: Some(name.into()), ..Target::default() };
    name.map(|name| Session::open(&target(name))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_addresses() {
        for address in ["host:5000", "https://host:5000", "https://host:5000/v1/", "host:5000/v2"] {
            assert_eq!(host(address), "host:5000");
        }
        assert!(is_meant(OsStr::new("/usr/bin/docker-credential-bowline")));
        assert!(!is_meant(OsStr::new("/usr/bin/bowline")));
    }
}
