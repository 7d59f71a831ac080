//! `keyring`: this binary by another name, from which pip and uv get a token for the package hosts, as they get passwords
//! from the program of that name (`--keyring-provider subprocess`). The token goes to stdout, and errors go to stderr.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use bowline_client::{ClientError, Contexts, claims};
use bowline_core::Uidp;
use bowline_terminal::{block_on, public_url, say};
use clap::{Parser, ValueEnum};
use serde_json::json;
use url::Url;

use crate::credential_helper::TOKEN_USER;
use crate::error::CliError;
use crate::print;
use crate::session::{Session, Target, contexts_file, variable};

/// The name by which pip and uv call the program.
pub(crate) const COMMAND: &str = "keyring";
/// Address of the package hosts of the selected server, where it is not below that of the API.
pub(crate) const LIBRARIES_URL: &str = "BOWLINE_LIBRARIES_URL";

/// The arguments that pip and uv pass, which are those of Python's `keyring`.
#[derive(Debug, Parser)]
#[command(name = COMMAND, version, about = "Print a token for the package hosts of a Bowline server")]
#[command(after_help = "pip and uv call it, set up by: bowline libraries configure keyring")]
struct KeyringRequest {
    /// Print the password alone, or the user name as well
    #[arg(long, value_enum, default_value_t = KeyringMode::Password)]
    mode: KeyringMode,
    /// Print lines, or a JSON document
    #[arg(long, value_enum, default_value_t = KeyringOutput::Plain)]
    output: KeyringOutput,
    /// get; there is no other
    operation: String,
    /// Address of an index, as installers name it
    #[arg(value_name = "URL")]
    service: Option<String>,
    /// User name for the index
    username: Option<String>,
}

/// Which parts of an account are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyringMode {
    Password,
    Creds,
}

/// The form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyringOutput {
    Plain,
    Json,
}

/// Whether the binary was called as the keyring.
pub fn is_meant(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(COMMAND))
}

/// Serves one request. The exit code is 1 where there is no token, as installers expect, and 2 for wrong usage.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let request = match parse(arguments) {
        Ok(request) => request,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    match respond(&request).and_then(|text| print(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Installers try a bare host after the address of the index, for which the reason was shown.
            if !request.service.as_deref().is_some_and(is_bare) {
                say(&format!("keyring of bowline: {error}\n"));
            }
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[OsString]) -> Result<KeyringRequest, clap::Error> {
    KeyringRequest::try_parse_from(std::iter::once(OsString::from(COMMAND)).chain(arguments.iter().cloned()))
}

fn respond(request: &KeyringRequest) -> Result<String, CliError> {
    let refused = |why: &str| Err(CliError::Client(ClientError::Usage(why.into())));
    if request.operation != "get" {
        return refused("it gives out tokens and stores no password: sign in with bowline auth login");
    }
    let username = request.username.as_deref();
    let is_named = username.is_some() || request.mode == KeyringMode::Creds;
    let Some(address) = request.service.as_deref().filter(|_| is_named) else {
        return refused("name the address of an index and a user name: keyring get URL _token");
    };
    let (token, username) = (token(address)?, username.unwrap_or(TOKEN_USER));
    require_own_name(username, claims(&token).map(|claims| claims.sub).as_deref())?;
    Ok(render(request, username, &token))
}

fn render(request: &KeyringRequest, username: &str, token: &str) -> String {
    match (request.mode, request.output) {
        (KeyringMode::Password, KeyringOutput::Plain) => format!("{token}\n"),
        (KeyringMode::Creds, KeyringOutput::Plain) => format!("{username}\n{token}\n"),
        (KeyringMode::Password, KeyringOutput::Json) => format!("{}\n", json!({ "password": token })),
        (KeyringMode::Creds, KeyringOutput::Json) => {
            format!("{}\n", json!({ "username": username, "password": token }))
        }
    }
}

/// The token for the package hosts that an address belongs to.
fn token(address: &str) -> Result<String, CliError> {
    let Some((session, url)) = session(address)? else {
        return Err(ClientError::Usage(format!(
            "{}: no known server has package hosts there; `bowline libraries configure pip` prints the address \
             of an index, and `bowline context set NAME --api URL` stores a server",
            host(address)
        ))
        .into());
    };
    match block_on(async { Ok::<_, CliError>(session.token(&url).await?) }) {
        // The message of other commands names a variable that is not used here: an installer calls for any index.
        Err(CliError::Client(ClientError::NotSignedIn(_))) if session.is_signed_out()? => {
            Err(ClientError::NotSignedIn("not signed in; sign in with: bowline auth login".into()).into())
        }
        Err(CliError::Client(ClientError::Refused { code: 3, message, .. })) => Err(ClientError::Usage(format!(
            "{} gives no token for {url}: {message}; set {LIBRARIES_URL} to the address of its package hosts",
            session.issuer.url()
        ))
        .into()),
        other => other,
    }
}

/// The server that the address belongs to, and the address of its package hosts: the selected server, else that of a context.
fn session(address: &str) -> Result<Option<(Session, String)>, CliError> {
    let selected = Target {
        context: variable("BOWLINE_CONTEXT"),
        api: variable("BOWLINE_API"),
        issuer: variable("BOWLINE_ISSUER"),
    };
    match Session::open(&selected) {
        Ok(session) => {
            let url = libraries_url(&session.api, variable(LIBRARIES_URL))?;
            if is_below(address, &url) {
                return Ok(Some((session, url)));
            }
        }
        Err(ClientError::NoServer) => {}
        Err(other) => return Err(other.into()),
    }
    let known = Contexts::read(&contexts_file()?)?;
    let Some(name) = known.only(|context| is_below(address, &usual_url(&context.api)))? else { return Ok(None) };
    let session = Session::open(&Target { context: Some(name.into()), ..Target::default() })?;
    let url = usual_url(&session.api);
    Ok(Some((session, url)))
}

/// The address of a server's package hosts: the given one, else the usual one.
pub(crate) fn libraries_url(api: &str, given: Option<String>) -> Result<String, CliError> {
    Ok(given.map(|url| public_url("libraries-url", &url)).transpose()?.unwrap_or_else(|| usual_url(api)))
}

/// The address of package hosts that have no host of their own.
pub(crate) fn usual_url(api: &str) -> String {
    format!("{}/libraries", api.trim_end_matches('/'))
}

/// Whether a token for package hosts may be sent to an address: one that begins with theirs, character by character, so that
/// no program reads another host out of it.
fn is_below(address: &str, libraries: &str) -> bool {
    // Programs drop or escape these, each in its own way.
    if address.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return false;
    }
    // uv passes addresses in their normal form, and pip as they are written.
    let Ok(normal) = Url::parse(libraries) else { return false };
    [libraries, normal.as_str()].into_iter().any(|base| {
        let path = address.strip_prefix(base.trim_end_matches('/'));
        path.is_some_and(|path| path.is_empty() || (path.starts_with('/') && stays_below(path)))
    })
}

/// Whether a path has no part that leads above its beginning, in any spelling.
fn stays_below(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    let is_encoded = path.contains("%2f") || path.contains("%5c");
    !is_encoded && !path.split(['/', '\\', '?', '#']).any(|part| part == "..")
}

/// Whether an address has no path, not even a slash.
fn is_bare(address: &str) -> bool {
    !address.split_once("://").map_or(address, |(_, rest)| rest).contains('/')
}

/// The host that a message shows, without an account, which may have a password with any sign in it.
fn host(address: &str) -> String {
    let whole = if address.contains("://") { address.to_owned() } else { format!("https://{address}") };
    let Ok(url) = Url::parse(&whole) else { return "that address".into() };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    url.host_str().map_or_else(|| "that address".into(), |host| format!("{host}{port}"))
}

/// Refuses the UIDP of another identity as the user name: package hosts refuse it too, but installers do not show why.
fn require_own_name(username: &str, subject: Option<&str>) -> Result<(), ClientError> {
    // pip takes no slash in user names.
    let uidp = username.replace('_', "/");
    if !Uidp::is_valid(&uidp) || subject == Some(uidp.as_str()) {
        return Ok(());
    }
    Err(ClientError::Usage(format!(
        "the address names the identity {uidp}, and the token is of another: write _token in its place"
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const URL: &str = "https://api.example.com/libraries/python/simple/";

    fn request(arguments: &[&str]) -> KeyringRequest {
        parse(&arguments.iter().map(OsString::from).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn it_is_called_by_its_name() {
        assert!(is_meant(OsStr::new("/usr/local/bin/keyring")) && is_meant(OsStr::new("keyring")));
        assert!(!is_meant(OsStr::new("/usr/local/bin/bowline")) && !is_meant(OsStr::new("keyrings")));
    }

    #[test]
    fn every_client_gets_the_form_that_it_reads() {
        let printed = |arguments: &[&str]| {
            let request = request(arguments);
            assert_eq!(request.service.as_deref(), Some(URL), "{arguments:?}");
            render(&request, request.username.as_deref().unwrap_or(TOKEN_USER), "t")
        };
        // pip before 26.2, and uv where the address has a user name.
        assert_eq!(printed(&["get", URL, "me"]), "t\n");
        assert_eq!(printed(&["get", URL, "--mode", "creds"]), "_token\nt\n", "uv");
        for (more, username) in [(&["me"][..], "me"), (&[], "_token")] {
            let text = printed(&[&["--mode=creds", "--output=json", "get", URL][..], more].concat());
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document, json!({ "username": username, "password": "t" }), "pip");
        }
        let text = printed(&["--output=json", "get", URL, "me"]);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({ "password": "t" }));
    }

    #[test]
    fn requests_that_get_no_token_say_what_to_do() {
        for (arguments, part) in [
            (&["set", URL, "me"][..], "bowline auth login"),
            (&["del", URL, "me"], "bowline auth login"),
            (&["get"], "keyring get URL _token"),
            (&["get", URL], "keyring get URL _token"),
            (&["get", "--mode", "creds"], "keyring get URL _token"),
        ] {
            let refused = respond(&request(arguments)).unwrap_err().to_string();
            assert!(refused.contains(part), "{arguments:?}: {refused}");
        }
        for arguments in [&["get", URL, "me", "more"][..], &["--mode=all", "get", URL], &[]] {
            let words: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(parse(&words).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn tokens_are_for_addresses_of_the_package_hosts_alone() {
        let libraries = usual_url("https://api.example.com/");
        for address in [
            "https://api.example.com/libraries",
            "https://api.example.com/libraries/",
            URL,
            "https://api.example.com/libraries/python/~acme:web/simple/",
            "https://api.example.com/libraries/python/~acme@2026-11-01/simple/",
            "https://api.example.com/libraries/python/legacy/",
        ] {
            assert!(is_below(address, &libraries), "{address}");
        }
        for address in [
            "",
            "/libraries/python/simple/",
            "api.example.com",
            "api.example.com/libraries/python/simple/",
            "https://api.example.com",
            "https://api.example.com/",
            "https://api.example.com/librariesx/python/simple/",
            "https://api.example.com/libraries?/python/simple/",
            "http://api.example.com/libraries/python/simple/",
            "https://api.example.com:8443/libraries/python/simple/",
            "https://api.example.com.evil.example/libraries/python/simple/",
            "https://evil.example/libraries/python/simple/",
            "https://evil.example/https://api.example.com/libraries/",
            "https://api.example.com@evil.example/libraries/python/simple/",
            "https://user@api.example.com/libraries/python/simple/",
            "https://evil.example\\@api.example.com/libraries/python/simple/",
            "https://api.example.com\\.evil.example/libraries/python/simple/",
            "https://api.example.com/libraries/../x/",
            "https://api.example.com/libraries/python/%2e%2E/%2e./x/",
            "https://api.example.com/libraries/..%2fx/",
            "https://api.example.com/libraries/a\\..\\..\\x/",
            "https://api.example.com/libraries/..?x",
            "https://api.example.com/libraries/.\t./x/",
            "https://api.example.com/libraries/python/simple/\n",
            "https://api.example.com/libraries/a b/",
        ] {
            assert!(!is_below(address, &libraries), "{address}");
        }
    }

    #[test]
    fn package_hosts_may_have_a_host_of_their_own_and_be_spelled_in_two_ways() {
        let own = "https://packages.example.com";
        assert!(is_below("https://packages.example.com/python/simple/", own));
        for address in [
            "https://packages.example.com.evil.example/python/simple/",
            "https://packages.example.com:8443/python/simple/",
            "https://packages.example.com\\.evil.example/python/simple/",
            "https://packages.example.com@evil.example/python/simple/",
            "http://packages.example.com/python/simple/",
        ] {
            assert!(!is_below(address, own), "{address}");
        }
        let spelled = "https://API.example.com:443/libraries";
        assert!(is_below(URL, spelled) && is_below("https://API.example.com:443/libraries/python/simple/", spelled));
        assert!(is_below("http://[::1]:8080/libraries/python/simple/", "http://[::1]:8080/libraries"));
        assert!(!is_below("/python/simple/", "") && !is_below("x/python/simple/", "x"));
    }

    #[test]
    fn hosts_are_shown_without_accounts() {
        for address in ["https://me:secret@h.example:8443/x", "me:secret@h.example:8443", "h.example:8443"] {
            assert_eq!(host(address), "h.example:8443");
        }
        assert_eq!(host("https://h.example/libraries/python/~acme@2026-11-01/simple/"), "h.example");
        assert_eq!(host("https://me:se/cret@h.example/"), "that address", "what a password is cannot be told");
        assert!(is_bare("h.example:8443") && is_bare("https://h.example") && !is_bare("https://h.example/"));
    }

    #[test]
    fn the_user_name_is_not_another_identity() {
        let (own, other) = (format!("{}/{}", "ab".repeat(20), "cd".repeat(8)), "ef".repeat(20));
        for username in [own.as_str(), &own.replace('/', "_"), "_token", "__token__", "me"] {
            require_own_name(username, Some(&own)).unwrap();
        }
        for subject in [Some(own.as_str()), None] {
            let refused = require_own_name(&other, subject).unwrap_err().to_string();
            assert!(refused.contains(&other) && refused.contains("_token"), "{refused}");
        }
    }
}
