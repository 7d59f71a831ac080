//! Verbosity, confirmation and colors of the process: read once at its start, from flags and variables.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

static SETTINGS: OnceLock<TerminalSettings> = OnceLock::new();

/// Settings of flags and variables for verbosity, confirmation and colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalSettings {
    /// Only data and errors are written.
    pub quiet: bool,
    /// Each call of the server is written to stderr.
    pub verbose: bool,
    /// Deletions need no confirmation.
    pub yes: bool,
    /// Colors are never used.
    pub no_color: bool,
}

impl TerminalSettings {
    /// Sets the settings of the process; later calls have no effect.
    pub fn set(self) {
        let _ = SETTINGS.set(self);
    }

    /// The settings of the process; the defaults if they were never set.
    pub fn get() -> TerminalSettings {
        SETTINGS.get().copied().unwrap_or_default()
    }
}

/// Whether stdout is a terminal, whose reader wants aligned columns.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Columns of the terminal at stdout; absent without a terminal, or if it does not tell.
pub(crate) fn stdout_columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(width.0.into())
}

/// Whether a question can be asked and its text seen.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A text in bold, where stdout takes colors.
pub(crate) fn bold(text: &str, is_terminal: bool) -> String {
    if is_terminal && !TerminalSettings::get().no_color { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// `error:` in red, where stderr takes colors.
pub fn error_label() -> &'static str {
    let has_color = std::io::stderr().is_terminal() && !TerminalSettings::get().no_color;
    if has_color { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" }
}
