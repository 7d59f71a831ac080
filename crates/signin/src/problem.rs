//! What went wrong, for a page.

use std::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bowline_core::Error;
use bowline_fronts::LogFields;

/// A response that is an error page. The page itself is written when the request's id is known.
#[derive(Clone)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    /// Seconds after which to try again.
    pub(crate) retry_after: Option<u64>,
    /// For the log alone.
    pub(crate) cause: Option<String>,
}

impl Problem {
    fn new(status: StatusCode, text: impl Into<String>) -> Problem {
        Problem { status, text: text.into(), retry_after: None, cause: None }
    }

    /// The request is wrong.
    pub(crate) fn bad(text: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, text)
    }

    /// The form was sent by another site, or without what its page has set.
    pub(crate) fn forbidden(text: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, text)
    }

    pub(crate) fn wait(seconds: i64) -> Problem {
        let text = format!("There were too many tries from your address. Try again in {seconds} seconds.");
        Problem { retry_after: seconds.try_into().ok(), ..Problem::new(StatusCode::TOO_MANY_REQUESTS, text) }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::from(&error)
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Problem {
        let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = error.retry_after().map(|wait| wait.as_secs().max(1));
        Problem { status, text: error.message().into(), retry_after, cause: LogFields::failure(error).causes }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(LogFields { causes: self.cause.clone(), ..LogFields::default() });
        response.extensions_mut().insert(self);
        response
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.status, self.text)
    }
}
