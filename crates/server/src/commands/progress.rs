use std::io::{IsTerminal as _, Write as _};

/// How far a long command is: one line on a terminal, and nothing anywhere else.
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { is_shown: std::io::stderr().is_terminal() }
    }

    pub(crate) fn show(&self, text: &str) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
