//! Responses: error bodies, challenges, and the headers of every response.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bowline_content::ContentError;
use bowline_core::{Error, Reason};
use bowline_registry::content::{Refusal, RefusalCode, RegistryError};
use serde_json::{Value, json};

use crate::Distribution;
use crate::route::Target;

/// A handler's response, or its error.
pub(crate) type Answer = Result<Response, Refused>;

/// The error of a request, with its status and headers.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: RegistryError,
    /// Status, if it differs from the code's.
    status: Option<StatusCode>,
    headers: Vec<(HeaderName, String)>,
}

impl Refused {
    pub(crate) fn new(code: RefusalCode, message: impl Into<String>) -> Refused {
        RegistryError::refused(code, message).into()
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Refused {
        self.status = Some(status);
        self
    }

    /// The refusal of what an upstream would have had to give, with the status that its failure leads to.
    pub(crate) fn of_upstream(status: u16, absent: RefusalCode, message: impl Into<String>) -> Refused {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        match status {
            StatusCode::TOO_MANY_REQUESTS => Refused::new(RefusalCode::TooManyRequests, message),
            status => Refused::new(absent, message).with_status(status),
        }
    }

    pub(crate) fn with_retry_after(self, seconds: u64) -> Refused {
        self.with_header(header::RETRY_AFTER, seconds.to_string())
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| match &self.error {
            RegistryError::Refused(refusal) => protocol_code(refusal.code).1,
            RegistryError::Failed(error) => {
                StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        })
    }

    /// The same refusal for another client.
    pub(crate) fn again(&self) -> Refused {
        let error = match &self.error {
            RegistryError::Refused(refusal) => RegistryError::Refused(refusal.clone()),
            RegistryError::Failed(error) => RegistryError::Failed(again(error)),
        };
        Refused { error, status: self.status, headers: self.headers.clone() }
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> Refused {
        self.headers.push((name, value.into()));
        self
    }
}

impl From<RegistryError> for Refused {
    fn from(error: RegistryError) -> Refused {
        Refused { error, status: None, headers: Vec::new() }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        RegistryError::Refused(refusal).into()
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        RegistryError::from(error).into()
    }
}

impl From<ContentError> for Refused {
    fn from(error: ContentError) -> Refused {
        let text = error.to_string();
        match error {
            ContentError::UnknownUpload => {
                Refused::new(RefusalCode::BlobUploadUnknown, "there is no such upload of yours: begin a new one")
            }
            ContentError::Mismatch { .. } => Refused::new(RefusalCode::DigestInvalid, text),
            ContentError::TooLarge(_) => {
                Refused::new(RefusalCode::SizeInvalid, text).with_status(StatusCode::PAYLOAD_TOO_LARGE)
            }
            ContentError::OutOfOrder { .. } => {
                Refused::new(RefusalCode::BlobUploadInvalid, text).with_status(StatusCode::RANGE_NOT_SATISFIABLE)
            }
            ContentError::Torn | ContentError::TooManyBodies(_) => Refused::new(RefusalCode::BlobUploadInvalid, text),
            ContentError::Busy => Refused::new(RefusalCode::BlobUploadInvalid, text).with_status(StatusCode::CONFLICT),
            ContentError::Interrupted => Refused::new(
                RefusalCode::SizeInvalid,
                "the body broke off, or has another length than was promised: the upload is as it was before",
            ),
            full if full.is_full() => RegistryError::Failed(Error::storage_full(full)).into(),
            ContentError::Storage(error) => RegistryError::Failed(Error::internal(error)).into(),
            // The cause may name hosts and accounts: it is for the log.
            ContentError::Objects(error) => RegistryError::Failed(Error::unavailable(error)).into(),
        }
    }
}

/// The same error for another client; its cause is in the log already.
fn again(error: &Error) -> Error {
    let same = Error::new(error.reason(), error.message().to_owned());
    error.details().iter().cloned().fold(same, Error::with)
}

/// Name and status of a code.
fn protocol_code(code: RefusalCode) -> (&'static str, StatusCode) {
    match code {
        RefusalCode::BlobUnknown => ("BLOB_UNKNOWN", StatusCode::NOT_FOUND),
        RefusalCode::BlobUploadInvalid => ("BLOB_UPLOAD_INVALID", StatusCode::BAD_REQUEST),
        RefusalCode::BlobUploadUnknown => ("BLOB_UPLOAD_UNKNOWN", StatusCode::NOT_FOUND),
        RefusalCode::Denied => ("DENIED", StatusCode::FORBIDDEN),
        RefusalCode::DigestInvalid => ("DIGEST_INVALID", StatusCode::BAD_REQUEST),
        RefusalCode::ManifestBlobUnknown => ("MANIFEST_BLOB_UNKNOWN", StatusCode::BAD_REQUEST),
        RefusalCode::ManifestInvalid => ("MANIFEST_INVALID", StatusCode::BAD_REQUEST),
        RefusalCode::ManifestUnknown => ("MANIFEST_UNKNOWN", StatusCode::NOT_FOUND),
        RefusalCode::NameInvalid => ("NAME_INVALID", StatusCode::BAD_REQUEST),
        RefusalCode::NameUnknown => ("NAME_UNKNOWN", StatusCode::NOT_FOUND),
        RefusalCode::PaginationNumberInvalid => ("PAGINATION_NUMBER_INVALID", StatusCode::BAD_REQUEST),
        RefusalCode::SizeInvalid => ("SIZE_INVALID", StatusCode::BAD_REQUEST),
        RefusalCode::TooManyRequests => ("TOOMANYREQUESTS", StatusCode::TOO_MANY_REQUESTS),
        RefusalCode::Unauthorized => ("UNAUTHORIZED", StatusCode::UNAUTHORIZED),
        RefusalCode::Unsupported => ("UNSUPPORTED", StatusCode::METHOD_NOT_ALLOWED),
    }
}

impl Distribution {
    /// The error response of a request. Without authentication it has a challenge, which says where to get a
    /// token.
    pub(crate) fn refusal(&self, refused: Refused, target: Option<&Target>, method: &Method) -> Response {
        let is_unauthorized =
            matches!(&refused.error, RegistryError::Refused(refusal) if refusal.code == RefusalCode::Unauthorized);
        let mut response = response_of(refused);
        if is_unauthorized {
            let mut challenge = format!("Bearer realm=\"{}\",service=\"{}\"", self.realm, self.service);
            if let Some(scope) = target.and_then(|target| scope(target, method)) {
                challenge += &format!(",scope=\"{scope}\"");
            }
            set(&mut response, header::WWW_AUTHENTICATE, &challenge);
        }
        response
    }
}

/// The token scope that the request needs.
fn scope(target: &Target, method: &Method) -> Option<String> {
    let Some(name) = target.name() else {
        return (*target == Target::Catalog).then(|| "registry:catalog:*".into());
    };
    let actions = match *method {
        Method::GET | Method::HEAD if !matches!(target, Target::Upload(..)) => "pull",
        Method::DELETE if !matches!(target, Target::Upload(..)) => "delete",
        _ => "pull,push",
    };
    Some(format!("repository:{name}:{actions}"))
}

/// Renders an error in the protocol's form.
pub(crate) fn response_of(refused: Refused) -> Response {
    let Refused { error, status, headers } = refused;
    let body = |code, message: &str, detail| json!({ "errors": [error_body(code, message, detail)] });
    let mut response = match error {
        RegistryError::Refused(refusal) => {
            let (code, usual) = protocol_code(refusal.code);
            json(status.unwrap_or(usual), &body(code, &refusal.message, refusal.detail))
        }
        RegistryError::Failed(error) => bowline_fronts::error_response(&error, |usual, error| {
            let (code, detail) = match error.reason() {
                Reason::StorageFull => ("DENIED", json!({ "reason": Reason::StorageFull.name() })),
                _ => ("UNKNOWN", Value::Null),
            };
            json(status.unwrap_or(usual), &body(code, error.message(), detail))
        }),
    };
    for (name, value) in headers {
        set(&mut response, name, &value);
    }
    response
}

fn error_body(code: &str, message: &str, detail: Value) -> Value {
    let mut body = json!({ "code": code, "message": message });
    if !detail.is_null() {
        body["detail"] = detail;
    }
    body
}

pub(crate) fn json(status: StatusCode, value: &Value) -> Response {
    typed(status, "application/json", value.to_string().into_bytes())
}

/// A response with a body of this type.
pub(crate) fn typed(status: StatusCode, content_type: &str, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE, content_type);
    response
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Sets a header. An invalid value is left out; no caller passes one.
pub(crate) fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Adds the headers of every response.
pub(crate) fn finished(mut response: Response, request_id: &str) -> Response {
    set(&mut response, HeaderName::from_static("x-request-id"), request_id);
    let headers = response.headers_mut();
    let version = HeaderName::from_static("docker-distribution-api-version");
    headers.insert(version, HeaderValue::from_static("registry/2.0"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // For a browser that shows it all the same: no scripts, no forms, and none of the rights of this host.
    let sandbox = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
    headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
    response
}

/// The error for a method that the path does not allow.
pub(crate) fn wrong_verb(allowed: &str) -> Refused {
    Refused::new(RefusalCode::Unsupported, format!("only {allowed} are possible here"))
        .with_header(header::ALLOW, allowed)
}
