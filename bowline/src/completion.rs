//! Shell completions and manual pages.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use bowline_cli::CliError;
use bowline_terminal::{TerminalError, print};

use crate::error::CommandError;

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
}

/// Prints the script that lets a shell complete commands and options.
pub(crate) fn completion(command: &CompletionCommand, mut described: Command) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut described, "bowline", &mut script);
    Ok(print(&String::from_utf8_lossy(&script))?)
}

/// Writes manual pages.
pub(crate) fn man(command: &ManCommand, described: Command) -> Result<(), CommandError> {
    let Some(out) = &command.out else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(described).render(&mut page);
        rendered.map_err(|error| TerminalError::Defect(error.to_string()))?;
        return Ok(print(&String::from_utf8_lossy(&page))?);
    };
    let written = std::fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(described, out));
    Ok(written.map_err(|source| CliError::File { path: out.clone(), source })?)
}
