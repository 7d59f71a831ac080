//! What every command shares: how it writes to the terminal, and how it reads times and addresses.

mod duration;
mod output;
mod public_url;

use std::io::Write as _;
use std::pin::Pin;

pub use duration::seconds;
pub use output::{Output, Table, time};
pub use public_url::public_url;

/// Why a command cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// An option has a value that it cannot have.
    #[error("{0}")]
    Usage(String),
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(std::io::Error),
    /// A defect of the program.
    #[error("defect: {0}")]
    Defect(String),
}

impl TerminalError {
    /// The exit code of a process that ends with it: 2 for wrong usage, else 1.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, TerminalError::Usage(_)) { 2 } else { 1 }
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

/// Runs a command to its end on a runtime of its own.
///
/// # Errors
/// The command's, or a defect: the runtime does not start.
pub fn block_on<T, E: From<TerminalError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| TerminalError::Defect(error.to_string()))?.block_on(work)
}
