use std::io::BufRead as _;

use crate::settings::{TerminalSettings, is_interactive};
use crate::{TerminalError, say};

/// Asks for confirmation of a deletion. `what` is a sentence without its question mark, such as
/// `Delete the repository acme/nginx with 12 tags`.
///
/// # Errors
/// [`TerminalError::Unconfirmed`]: it is not confirmed, or there is neither a terminal nor `--yes`.
pub fn confirm(what: &str) -> Result<(), TerminalError> {
    if TerminalSettings::get().yes {
        return Ok(());
    }
    if !is_interactive() {
        return Err(TerminalError::Unconfirmed(format!("{what}: not confirmed, and there is no terminal to ask at")));
    }
    say(&format!("{what}? [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim().to_ascii_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        _ => Err(TerminalError::Unconfirmed(format!("{what}: not confirmed; nothing was changed"))),
    }
}
