//! Errors as `google.rpc.Status`, the form that both transports carry.

use bowline_contract::google::rpc::{
    BadRequest, ErrorInfo, Help, PreconditionFailure, QuotaFailure, ResourceInfo, RetryInfo, Status, bad_request, help,
    precondition_failure, quota_failure,
};
use bowline_contract::v1::iam::{MissingDocument, TermsNotAcceptedDetail};
use bowline_contract::{ApiVersion, MethodInfo};
use bowline_core::{Code, Detail, Error, Reason};
use prost::{Message, Name};

/// The error as the method's version presents it.
///
/// V1 keeps its ambiguous failures: NOT_FOUND, PERMISSION_DENIED and blocked deletes are
/// bare there, but for missing terms, which its clients look for. An internal error names the request. A refusal for want
/// of a capability has a link to its explanation below `base_url`.
pub fn status_of(error: &Error, method: Option<&MethodInfo>, request_id: &str, base_url: &str) -> Status {
    let (domain, is_v1) = presented_as(error, method);
    let bare = is_v1 && matches!(error.code(), Code::NotFound | Code::PermissionDenied | Code::FailedPrecondition);
    let details = if bare { terms(error) } else { details(error, domain, request_id, base_url) };
    Status { code: error.code() as i32, message: error.message().into(), details }
}

/// Domain of the method whose error it is, and whether that is of the first API version.
fn presented_as<'a>(error: &'a Error, method: Option<&'a MethodInfo>) -> (&'a str, bool) {
    let previewed = error.details().iter().find_map(|detail| match detail {
        Detail::PreviewOf { domain, is_v1 } => Some((domain.as_str(), *is_v1)),
        _ => None,
    });
    let own = method.map_or(("platform", false), |method| (&*method.domain, method.version == ApiVersion::V1));
    previewed.unwrap_or(own)
}

fn terms(error: &Error) -> Vec<prost_types::Any> {
    error.details().iter().filter(|detail| matches!(detail, Detail::TermsNotAccepted(_))).filter_map(any_of).collect()
}

fn details(error: &Error, domain: &str, request_id: &str, base_url: &str) -> Vec<prost_types::Any> {
    let mut info = ErrorInfo {
        reason: error.reason().name().into(),
        domain: format!("{domain}.chainguard.dev"),
        ..ErrorInfo::default()
    };
    if error.reason() == Reason::Internal {
        info.metadata.insert("request_id".into(), request_id.into());
    }
    let mut rest = Vec::new();
    for detail in error.details() {
        match detail {
            Detail::Metadata(facts) => {
                info.metadata.extend(facts.iter().map(|(name, value)| ((*name).into(), value.clone())));
            }
            other => rest.extend(any_of(other)),
        }
    }
    let help = explanation(error, &info, base_url);
    let mut all = vec![any(&info)];
    all.extend(rest);
    all.extend(help.as_ref().map(any));
    all
}

/// Missing capabilities that a link names: details are sent in a header, which clients bound at some kilobytes.
const LINKED: usize = 10;

/// Where a caller reads why a capability is missing, and who can grant it.
fn explanation(error: &Error, info: &ErrorInfo, base_url: &str) -> Option<Help> {
    if error.code() != Code::PermissionDenied {
        return None;
    }
    let (capabilities, scope) = (info.metadata.get("capability")?, info.metadata.get("scope")?);
    // Names of capabilities and UIDPs need no escaping in a query.
    let names = capabilities.split(", ").take(LINKED);
    let parameters: Vec<String> = names.map(|name| format!("capabilities={name}")).collect();
    let link = help::Link {
        description: "Why this was denied, and who can grant it".into(),
        url: format!("{base_url}/iam/v1/access:explain?{}&scope={scope}", parameters.join("&")),
    };
    Some(Help { links: vec![link] })
}

fn any_of(detail: &Detail) -> Option<prost_types::Any> {
    Some(match detail {
        Detail::Metadata(_) | Detail::PreviewOf { .. } => return None,
        Detail::BadRequest(violations) => any(&BadRequest {
            field_violations: violations
                .iter()
                .map(|v| bad_request::FieldViolation { field: v.field.clone(), description: v.description.clone() })
                .collect(),
        }),
        Detail::Resource { kind, name, description } => any(&ResourceInfo {
            resource_type: (*kind).into(),
            resource_name: name.clone(),
            description: description.clone(),
            ..ResourceInfo::default()
        }),
        Detail::Precondition(violations) => any(&PreconditionFailure {
            violations: violations
                .iter()
                .map(|v| precondition_failure::Violation {
                    r#type: v.kind.into(),
                    subject: v.subject.clone(),
                    description: v.description.clone(),
                })
                .collect(),
        }),
        Detail::Quota(violations) => any(&QuotaFailure {
            violations: violations
                .iter()
                .map(|v| quota_failure::Violation { subject: v.subject.clone(), description: v.description.clone() })
                .collect(),
        }),
        // Both versions carry the message of the first: clients know no other.
        Detail::TermsNotAccepted(missing) => any(&TermsNotAcceptedDetail {
            missing: missing
                .iter()
                .map(|document| MissingDocument {
                    id: document.id.clone(),
                    label: document.label.clone(),
                    url: document.url.clone(),
                })
                .collect(),
        }),
        Detail::RetryAfter(delay) => any(&RetryInfo {
            retry_delay: Some(prost_types::Duration {
                seconds: delay.as_secs() as i64,
                nanos: delay.subsec_nanos() as i32,
            }),
        }),
    })
}

fn any<M: Message + Name>(message: &M) -> prost_types::Any {
    prost_types::Any { type_url: format!("type.googleapis.com/{}", M::full_name()), value: message.encode_to_vec() }
}
