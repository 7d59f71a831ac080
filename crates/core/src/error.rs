use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::reason::{Code, Reason};

/// The result of anything that can fail towards a caller.
pub type Result<T> = std::result::Result<T, Error>;

/// Maximum number of wrong fields that a response lists.
pub const MAX_VIOLATIONS: usize = 100;
/// Maximum bytes of a field's path, and of a description: both may quote the request.
const MAX_QUOTED: usize = 512;

/// Cuts a text that quotes too much of a request.
fn shorten(text: &mut String) {
    if text.len() > MAX_QUOTED {
        text.truncate(text.floor_char_boundary(MAX_QUOTED));
        text.push_str("...");
    }
}

/// One wrong request field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldViolation {
    /// Path of the field, as the caller spells it.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}

/// One condition that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreconditionViolation {
    /// Kind of condition, such as `RESOURCE_NOT_EMPTY`.
    pub kind: &'static str,
    /// The resource that the condition is on.
    pub subject: String,
    pub description: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaViolation {
    /// What the limit is on.
    pub subject: String,
    /// The limit and what to do.
    pub description: String,
}

/// A document that the operator wants organizations to accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermsDocument {
    pub id: String,
    /// A title that people read.
    pub label: String,
    /// Where it is read.
    pub url: String,
}

/// A typed detail, mostly in the vocabulary of `google.rpc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The wrong fields, all at once.
    BadRequest(Vec<FieldViolation>),
    /// The resource that the error is about.
    Resource {
        /// Type, such as `iam.chainguard.dev/Group`.
        kind: &'static str,
        /// UIDP or name, as the caller gave it.
        name: String,
        /// What is wrong with it.
        description: String,
    },
    /// The conditions that did not hold.
    Precondition(Vec<PreconditionViolation>),
    Quota(Vec<QuotaViolation>),
    /// When to try again.
    RetryAfter(Duration),
    /// The documents that the organization has not accepted.
    TermsNotAccepted(Vec<TermsDocument>),
    /// Facts that go into `ErrorInfo.metadata`.
    Metadata(BTreeMap<&'static str, String>),
    /// The error is that of a previewed call: it is presented as the previewed method presents it.
    PreviewOf {
        /// Product domain of the method.
        domain: String,
        /// Whether it is of the first API version, whose ambiguous failures carry no details.
        is_v1: bool,
    },
}

/// The one error towards callers: a reason, a sentence that says what to do, details, and a private source.
///
/// The message and the details are public; the source goes to the log only.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    reason: Reason,
    message: Cow<'static, str>,
    details: Vec<Detail>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error without details.
    pub fn new(reason: Reason, message: impl Into<Cow<'static, str>>) -> Error {
        Error(Box::new(Inner { reason, message: message.into(), details: Vec::new(), source: None }))
    }

    /// Wrong fields, all at once up to [`MAX_VIOLATIONS`]. The message lists them, and says how many more there are.
    pub fn invalid(violations: Vec<FieldViolation>) -> Error {
        Error::invalid_and_more(violations, 0)
    }

    /// The same where `more` violations were counted besides those that are listed.
    pub fn invalid_and_more(mut violations: Vec<FieldViolation>, more: usize) -> Error {
        let more = more + violations.len().saturating_sub(MAX_VIOLATIONS);
        violations.truncate(MAX_VIOLATIONS);
        for violation in &mut violations {
            shorten(&mut violation.field);
            shorten(&mut violation.description);
        }
        let mut list: Vec<String> = violations.iter().map(|v| format!("{}: {}", v.field, v.description)).collect();
        if more > 0 {
            list.push(format!("and {more} more violations; correct these first"));
        }
        Error::new(Reason::InvalidArgument, format!("Invalid argument: {}", list.join("; ")))
            .with(Detail::BadRequest(violations))
    }

    pub fn invalid_field(field: impl Into<String>, description: impl Into<String>) -> Error {
        Error::invalid(vec![FieldViolation { field: field.into(), description: description.into() }])
    }

    /// Nothing is there, and the caller may know.
    pub fn not_found(kind: &'static str, name: impl Into<String>) -> Error {
        let name = name.into();
        let what = kind.rsplit('/').next().unwrap_or(kind).to_lowercase();
        Error::new(Reason::NotFound, format!("Not found: {what} \"{name}\" does not exist")).with(Detail::Resource {
            kind,
            name,
            description: format!("the {what} does not exist"),
        })
    }

    /// The name is taken.
    pub fn already_exists(kind: &'static str, name: impl Into<String>) -> Error {
        let name = name.into();
        let what = kind.rsplit('/').next().unwrap_or(kind).to_lowercase();
        Error::new(Reason::AlreadyExists, format!("Already exists: there is a {what} \"{name}\" here already"))
            .with(Detail::Resource { kind, name, description: format!("a {what} of this name exists here") })
    }

    /// Something else stands in the way.
    pub fn precondition(kind: &'static str, subject: impl Into<String>, description: impl Into<String>) -> Error {
        let description = description.into();
        Error::new(Reason::FailedPrecondition, format!("Precondition failed: {description}"))
            .with(Detail::Precondition(vec![PreconditionViolation { kind, subject: subject.into(), description }]))
    }

    /// The organization has not accepted these documents.
    pub fn terms_not_accepted(missing: Vec<TermsDocument>) -> Error {
        // Clients compare the message.
        Error::new(Reason::FailedPrecondition, "terms not accepted").with(Detail::TermsNotAccepted(missing))
    }

    /// A limit on the number of resources is reached.
    pub fn quota(subject: impl Into<String>, description: impl Into<String>) -> Error {
        let description = description.into();
        Error::new(Reason::QuotaExceeded, format!("Quota exceeded: {description}"))
            .with(Detail::Quota(vec![QuotaViolation { subject: subject.into(), description }]))
    }

    /// The caller may not do this.
    pub fn permission_denied(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Reason::PermissionDenied, message)
    }

    /// A defect of this server; the source goes to the log.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::new(Reason::Internal, "Internal error: the request id identifies it in the server's log").because(source)
    }

    /// A dependency is away; trying again later helps.
    pub fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::new(Reason::Unavailable, "Unavailable: the storage does not answer at the moment; try again")
            .with(Detail::RetryAfter(Duration::from_secs(1)))
            .because(source)
    }

    /// The disk has no room left; deletions and reads continue.
    pub fn storage_full(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        let message = "Storage full: the server's disk has no room left; reads and deletions work, everything else after \
                       the operator has made room";
        Error::new(Reason::StorageFull, message).with(Detail::RetryAfter(Duration::from_secs(30))).because(source)
    }

    /// The database server has no memory or connection left; trying again later helps.
    pub fn short_of_resources(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        let message = "Unavailable: the database server has too little memory or too few connections at the moment; \
                       try again";
        Error::new(Reason::Unavailable, message).with(Detail::RetryAfter(Duration::from_secs(1))).because(source)
    }

    /// Adds what to do about it to the message.
    pub fn advise(mut self, advice: &str) -> Error {
        self.0.message = format!("{}; {advice}", self.0.message).into();
        self
    }

    pub fn with(mut self, detail: Detail) -> Error {
        self.0.details.push(detail);
        self
    }

    /// Adds the private source.
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(source.into());
        self
    }

    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    pub fn code(&self) -> Code {
        self.0.reason.code()
    }

    /// The HTTP status of its code.
    pub fn http_status(&self) -> u16 {
        match self.0.reason {
            Reason::StorageFull => 507,
            reason => reason.code().http_status(),
        }
    }

    /// What was wrong and what to do, for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn details(&self) -> &[Detail] {
        &self.0.details
    }

    /// When the caller should try again, if the error says so.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.details.iter().find_map(|detail| match detail {
            Detail::RetryAfter(delay) => Some(*delay),
            _ => None,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}
