//! What every command shares: how it writes to the terminal, and how it reads times and addresses.

mod confirm;
mod duration;
mod example;
mod json_path;
mod listing;
mod nearest;
mod output;
mod public_url;
mod settings;
mod table;

use std::io::Write as _;
use std::pin::Pin;

pub use confirm::confirm;
pub use duration::seconds;
pub use example::{with_short_examples, with_whole_examples};
pub use json_path::JsonPath;
pub use listing::Listing;
pub use nearest::{nearest, suggestion};
pub use output::{Form, Output, Pages, json, time};
pub use public_url::public_url;
pub use settings::{TerminalSettings, error_label};
pub use table::Table;

/// Why a command cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// An option has a value that it cannot have.
    #[error("{0}")]
    Usage(String),
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(std::io::Error),
    /// What would be destroyed, which no one confirmed.
    #[error("{0}")]
    Unconfirmed(String),
    /// A template names what the output does not have.
    #[error("{0}")]
    Absent(String),
    /// A defect of the program.
    #[error("defect: {0}")]
    Defect(String),
}

impl TerminalError {
    /// The exit code of a process that ends with it: 2 for wrong usage, else 1.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, TerminalError::Usage(_) | TerminalError::Unconfirmed(_)) { 2 } else { 1 }
    }

    /// What to do about it, where the message does not say so itself.
    pub fn hint(&self) -> Option<String> {
        match self {
            TerminalError::Usage(_) => Some("--help of the command describes its options".into()),
            TerminalError::Unconfirmed(_) => Some("pass --yes to confirm without a question".into()),
            TerminalError::Absent(_) => Some("-o json shows what can be named".into()),
            TerminalError::Output(_) => Some("check the disk, or the program that reads the output".into()),
            TerminalError::Defect(_) => Some("report it with the command and the output of `bowline version`".into()),
        }
    }
}

/// What a command does. Boxed, so that it is compiled with the command and not in the binary, which is built last.
pub type Work<E> = Pin<Box<dyn Future<Output = Result<(), E>>>>;

/// Writes data to stdout; a closed pipe is no failure.
///
/// # Errors
/// [`TerminalError::Output`].
pub fn print(text: &str) -> Result<(), TerminalError> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => Err(TerminalError::Output(source)),
        _ => Ok(()),
    }
}

/// Writes a message to stderr, since stdout is for data.
pub fn say(text: &str) {
    // A closed stderr has no reader.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Writes a message that `--quiet` suppresses.
pub fn note(text: &str) {
    if !TerminalSettings::get().quiet {
        say(text);
    }
}

/// Runs a command to its end on a runtime of its own.
///
/// # Errors
/// The command's, or a defect: the runtime does not start.
pub fn block_on<T, E: From<TerminalError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| TerminalError::Defect(error.to_string()))?.block_on(work)
}
