//! The one error type callers see, and the boxed form the hot paths carry.

/// Why a conversion failed, worded for the person who sent the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}{}{message}", if field.is_empty() { "" } else { ": " })]
pub struct TranscodeError {
    /// Dotted JSON path of the offending field (`spec.rules[2].name`,
    /// `labels[team]`), empty when the fault belongs to no field.
    pub field: String,
    /// The explanation, safe to show: it quotes the input, never internals.
    pub message: String,
}

/// Boxed, so that the `Result` of every small step stays one word wide.
pub(crate) type Outcome<T = ()> = Result<T, Box<TranscodeError>>;

/// A fault that does not know its field yet; see [`Within::within`].
#[cold]
#[expect(clippy::unnecessary_box_returns, reason = "the error side of `Outcome`")]
pub(crate) fn fault(message: impl Into<String>) -> Box<TranscodeError> {
    Box::new(TranscodeError { field: String::new(), message: message.into() })
}

/// Puts `part` in front of the path `rest`; an index or key needs no dot.
pub(crate) fn join(part: &str, rest: &str) -> String {
    let dot = if rest.is_empty() || rest.starts_with('[') { "" } else { "." };
    format!("{part}{dot}{rest}")
}

/// Names the enclosing field while an error travels outwards, so that paths
/// cost nothing as long as all goes well.
pub(crate) trait Within {
    fn within(self, part: &str) -> Self;
    fn within_index(self, index: usize) -> Self;
}

impl<T> Within for Outcome<T> {
    fn within(self, part: &str) -> Self {
        self.map_err(|mut error| {
            error.field = join(part, &error.field);
            error
        })
    }

    fn within_index(self, index: usize) -> Self {
        self.map_err(|mut error| {
            error.field = join(&format!("[{index}]"), &error.field);
            error
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_from_outside_in() {
        let error = Err::<(), _>(fault("bad")).within("name").within_index(2).within("rules").unwrap_err();
        assert_eq!(error.to_string(), "rules[2].name: bad");
        assert_eq!(fault("bad").to_string(), "bad");
    }
}
