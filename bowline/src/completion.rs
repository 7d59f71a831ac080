//! Shell completions and manual pages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use bowline_cli::CliError;
use bowline_terminal::{TerminalError, print};

use crate::error::CommandError;
use crate::reference;

/// `bowline completion`.
#[derive(Args)]
pub(crate) struct CompletionCommand {
    /// Which shell
    shell: Shell,
}

/// `bowline man`.
#[derive(Args)]
pub(crate) struct ManCommand {
    /// Directory to write a page per command to; made if it is not there [default: the first page to stdout]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the options of every command as Markdown
    #[arg(long, conflicts_with = "out")]
    markdown: bool,
}

/// Variable by which the script of a shell asks for candidates.
const VARIABLE: &str = "BOWLINE_COMPLETE";

/// Prints the script that lets a shell complete commands, options, names and UIDPs.
pub(crate) fn completion(command: &CompletionCommand) -> Result<(), CommandError> {
    let defect = |error: &dyn std::fmt::Display| TerminalError::Defect(error.to_string());
    let name = command.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).ok_or_else(|| defect(&format!("no script of {name}")))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "bowline", "bowline", "bowline", &mut script).map_err(|error| defect(&error))?;
    Ok(print(&String::from_utf8_lossy(&script))?)
}

/// Whether a shell asked for candidates; they are printed then.
///
/// # Errors
/// The variable names no shell: it was set for another purpose, and the command would not be run.
pub(crate) fn is_completed(describe: fn() -> Command, arguments: &[OsString]) -> Result<bool, TerminalError> {
    let requested = std::env::var_os(VARIABLE).filter(|value| !value.is_empty() && value != "0");
    if let Some(value) = requested {
        let shells = Shells::builtins();
        // A path such as that of SHELL will do.
        let name = Path::new(&value).file_stem().unwrap_or(&value).to_string_lossy();
        if shells.completer(&name).is_none() {
            let known = shells.names().collect::<Vec<_>>().join(", ");
            let value = value.to_string_lossy();
            return Err(TerminalError::Usage(format!(
                "{VARIABLE}={value}: no such shell; unset it, or name one: {known}"
            )));
        }
    }
    let completed = CompleteEnv::with_factory(describe).var(VARIABLE).try_complete(arguments.iter().cloned(), None);
    // A shell shows no message while it completes.
    Ok(completed.unwrap_or(true))
}

/// Writes manual pages.
pub(crate) fn man(command: &ManCommand, described: Command) -> Result<(), CommandError> {
    if command.markdown {
        return Ok(print(&reference::markdown(described))?);
    }
    let Some(out) = &command.out else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(described).render(&mut page);
        rendered.map_err(|error| TerminalError::Defect(error.to_string()))?;
        return Ok(print(&String::from_utf8_lossy(&page))?);
    };
    let written = std::fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(described, out));
    Ok(written.map_err(|source| CliError::File { path: out.clone(), source })?)
}
