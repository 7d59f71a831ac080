//! Answers, and refusals in the forms that clients show: each client prints another part of a response.
//!
//! The same sentence stands in the reason phrase of HTTP/1.1 (pip, twine), in `title` and `detail` of a problem document
//! (uv, Maven), and in `error` and `message` (npm).

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bowline_content::ContentError;
use bowline_core::{Error, Reason};
use bowline_fronts::error_response;
use bowline_libraries::hosting::{HostError, Withheld};
use hyper::ext::ReasonPhrase;
use serde_json::json;

/// uv reads a problem of this type alone, without a charset.
const PROBLEM: &str = "application/problem+json";
/// Maximum bytes of a reason phrase.
const PHRASE: usize = 200;

/// Why a request is refused.
#[derive(Debug)]
pub(crate) struct Refused {
    error: Error,
    /// Status, if it differs from the reason's.
    status: Option<StatusCode>,
    headers: Vec<(HeaderName, String)>,
    form: Form,
}

/// What the body of a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Problem,
    /// The sentence and nothing else.
    Text,
    /// A list of errors, of which cargo shows the details.
    Errors,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, sentence: impl Into<String>) -> Refused {
        let reason = match status {
            StatusCode::UNAUTHORIZED => Reason::Unauthenticated,
            StatusCode::FORBIDDEN => Reason::PermissionDenied,
            StatusCode::NOT_FOUND => Reason::NotFound,
            StatusCode::PAYLOAD_TOO_LARGE => Reason::RequestTooLarge,
            _ => Reason::InvalidArgument,
        };
        Refused {
            error: Error::new(reason, sentence.into()),
            status: Some(status),
            headers: Vec::new(),
            form: Form::Problem,
        }
    }

    pub(crate) fn bad(sentence: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, sentence)
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> Refused {
        self.headers.push((name, value.into()));
        self
    }

    /// Whether nothing was done for sure; a failure may have come after the deed.
    pub(crate) fn is_certain(&self) -> bool {
        is_certain(&self.error)
    }

    pub(crate) fn reason(&self) -> Reason {
        self.error.reason()
    }

    /// The error behind the answer.
    pub(crate) fn into_error(self) -> Error {
        self.error
    }

    /// The same with a plain text where something is absent: Maven 3.9 takes a problem document with that status for a failure,
    /// and ends the build.
    pub(crate) fn with_plain_absence(self) -> Refused {
        let form = if self.error.reason() == Reason::NotFound { Form::Text } else { self.form };
        Refused { form, ..self }
    }

    /// The same as plain text, which alone the go command shows, and cargo of indexes and files.
    pub(crate) fn with_plain_text(self) -> Refused {
        Refused { form: Form::Text, ..self }
    }

    /// The same as a list of errors, which alone cargo shows of changes.
    pub(crate) fn with_errors(self) -> Refused {
        Refused { form: Form::Errors, ..self }
    }

    /// The refusal of what a policy withholds.
    pub(crate) fn withheld(status: StatusCode, withheld: &Withheld) -> Refused {
        let refused = Refused::new(status, withheld.sentence.clone())
            .with_header(HeaderName::from_static("x-bowline-reason"), withheld.reason);
        match &*withheld.policy {
            "" => refused,
            policy => refused.with_header(HeaderName::from_static("x-bowline-policy"), phrase(policy)),
        }
    }

    pub(crate) fn response(self) -> Response {
        let Refused { error, status, headers, form } = self;
        let mut response = error_response(&error, |usual, error| {
            let (status, sentence) = (status.unwrap_or(usual), error.message());
            match form {
                Form::Problem => problem(status, sentence),
                Form::Text => plain(status, sentence),
                Form::Errors => errors(status, sentence),
            }
        });
        set(&mut response, header::CACHE_CONTROL, "no-store");
        if response.status() == StatusCode::UNAUTHORIZED {
            set(&mut response, header::WWW_AUTHENTICATE, "Basic realm=\"packages\", charset=\"UTF-8\"");
        }
        for (name, value) in headers {
            set(&mut response, name, &value);
        }
        response
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        // What is not as it must be for a change is a conflict to those who publish.
        let status = (error.reason() == Reason::FailedPrecondition).then_some(StatusCode::CONFLICT);
        Refused { error, status, headers: Vec::new(), form: Form::Problem }
    }
}

impl From<HostError> for Refused {
    fn from(error: HostError) -> Refused {
        match error {
            HostError::Failed(error) => error.into(),
            HostError::Withheld(withheld) | HostError::WithheldIfThere(withheld, _) => {
                Refused::withheld(StatusCode::FORBIDDEN, &withheld)
            }
            HostError::Upstream(sentence) => Refused::new(StatusCode::BAD_GATEWAY, sentence),
            HostError::Ambiguous(organizations) => Refused::new(
                StatusCode::CONFLICT,
                format!(
                    "packages of several organizations can be read: put ~ and one of these names before the next part of \
                     the address: {}",
                    organizations.join(", ")
                ),
            ),
        }
    }
}

impl From<ContentError> for Refused {
    fn from(error: ContentError) -> Refused {
        let text = error.to_string();
        match error {
            ContentError::Mismatch { .. } | ContentError::Torn => Refused::bad(text),
            ContentError::Interrupted => Refused::bad("the body broke off: send the file again"),
            ContentError::TooLarge(_) => Refused::new(StatusCode::PAYLOAD_TOO_LARGE, text),
            ContentError::UnknownUpload
            | ContentError::OutOfOrder { .. }
            | ContentError::TooManyBodies(_)
            | ContentError::Busy => Refused::new(StatusCode::CONFLICT, "the upload has ended: send the file again"),
            full if full.is_full() => Error::storage_full(full).into(),
            ContentError::Storage(error) => Error::internal(error).into(),
            // The cause may name hosts and accounts: it is for the log.
            ContentError::Objects(error) => Error::unavailable(error).into(),
        }
    }
}

/// Whether nothing was done for sure when this failed.
pub(crate) fn is_certain(error: &Error) -> bool {
    !matches!(
        error.reason(),
        Reason::Internal | Reason::Unavailable | Reason::DeadlineExceeded | Reason::Aborted | Reason::StorageFull
    )
}

fn plain(status: StatusCode, sentence: &str) -> Response {
    phrased(typed(status, "text/plain; charset=utf-8", format!("{sentence}\n")), sentence)
}

fn errors(status: StatusCode, sentence: &str) -> Response {
    let body = json!({ "errors": [{ "detail": sentence }] });
    phrased(typed(status, "application/json", body.to_string()), sentence)
}

fn problem(status: StatusCode, sentence: &str) -> Response {
    let title = status.canonical_reason().unwrap_or("Error");
    let body = json!({
        "type": "about:blank", "title": title, "status": status.as_u16(), "detail": sentence,
        "error": sentence, "message": sentence,
    });
    phrased(typed(status, PROBLEM, body.to_string()), sentence)
}

/// Adds the sentence as the reason phrase.
fn phrased(mut response: Response, sentence: &str) -> Response {
    if let Ok(phrase) = ReasonPhrase::try_from(phrase(sentence).into_bytes()) {
        response.extensions_mut().insert(phrase);
    }
    response
}

/// A sentence as part of a header: printable ASCII, since it may hold names that others choose.
pub(crate) fn phrase(sentence: &str) -> String {
    let printable = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    sentence.chars().take(PHRASE).map(printable).collect()
}

/// A response with a body of this type.
pub(crate) fn typed(status: StatusCode, content_type: &str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE, content_type);
    response
}

/// Sets a header. An invalid value is left out; no caller passes one.
pub(crate) fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Adds the headers of every response.
pub(crate) fn finished(mut response: Response, request_id: &str) -> Response {
    set(&mut response, HeaderName::from_static("x-request-id"), request_id);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Names and texts of packages are others', and pages of this server may share the host.
    let sandbox = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
    headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stay_where_a_row_may_have_them() {
        let is_certain = |error: Error| Refused::from(error).is_certain();
        assert!(is_certain(Error::new(Reason::AlreadyExists, "taken")) && is_certain(Error::quota("a", "full")));
        // The connection to the database may have ended after the commit.
        assert!(!is_certain(Error::internal("gone")) && !is_certain(Error::unavailable("gone")));
    }

    #[test]
    fn a_sentence_cannot_break_out_of_a_header() {
        let refused = Refused::new(StatusCode::FORBIDDEN, "foo\r\nSet-Cookie: a\u{e9}\0 is blocked");
        let response = refused.response();
        let phrase = response.extensions().get::<ReasonPhrase>().expect("a phrase");
        assert_eq!(phrase.as_bytes(), b"foo??Set-Cookie: a?? is blocked");
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM);
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
        let long = Refused::bad("a".repeat(1000)).response();
        assert_eq!(long.extensions().get::<ReasonPhrase>().map(|phrase| phrase.as_bytes().len()), Some(PHRASE));
    }
}
