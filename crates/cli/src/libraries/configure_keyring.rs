//! `bowline libraries configure keyring`: the program from which pip and uv get tokens.

use std::path::{Path, PathBuf};

use bowline_terminal::{note, say};
use clap::Args;

use crate::error::CliError;
use crate::helpers;
use crate::keyring::{COMMAND, LIBRARIES_URL, libraries_url, usual_url};
use crate::session::{Session, Target, variable};

/// What to do where the server gives no token for an address.
const REMEDY: &str = "name the address of its package hosts with --libraries-url";

/// `bowline libraries configure keyring`.
#[derive(Args)]
pub struct KeyringArgs {
    #[command(flatten)]
    target: Target,
    /// Address of the package hosts [default: BOWLINE_LIBRARIES_URL, else /libraries of the API]
    #[arg(long, value_name = "URL")]
    libraries_url: Option<String>,
    /// Directory for the link, one of PATH other than that of pip [default: where bowline is]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Links the keyring, and shows what makes installers call it.
///
/// # Errors
/// No context has the server, it gives no token for the package hosts, or the link cannot be made.
pub(super) async fn run(args: KeyringArgs) -> Result<(), CliError> {
    let session = Session::open(&args.target)?;
    let set = variable(LIBRARIES_URL);
    let url = libraries_url(&session.api, args.libraries_url.or_else(|| set.clone()))?;
    helpers::context_name(&session, args.target.context.as_deref())?;
    helpers::try_token(&session, &url, "pip and uv", REMEDY).await?;
    let link = helpers::link(COMMAND, args.directory, "--directory")?;
    note(&format!(
        "{}: gives pip and uv tokens for {url}\n\
         pip: set PIP_KEYRING_PROVIDER=subprocess; before version 26.2 also write _token@ before the host of the index\n\
         uv: set UV_KEYRING_PROVIDER=subprocess; without authenticate = \"always\" also write _token@ before the host\n",
        link.display()
    ));
    let is_known = libraries_url(&session.api, set)? == url;
    if !is_known {
        say(&format!("set {LIBRARIES_URL}={url} where pip and uv run: it is not {}\n", usual_url(&session.api)));
    }
    if let Some(directory) = link.parent() {
        warn_of_path(directory);
    }
    Ok(())
}

/// Says so if installers find another program, or none.
fn warn_of_path(directory: &Path) {
    match helpers::first_in_path(COMMAND) {
        Some(first) if helpers::is_this_binary(&first) => {}
        Some(first) => say(&format!(
            "{} comes first in PATH, and is what pip and uv call: put {} before its directory\n",
            first.display(),
            directory.display()
        )),
        None => say(&format!("put {} into PATH, or pip and uv do not find it\n", directory.display())),
    }
}
