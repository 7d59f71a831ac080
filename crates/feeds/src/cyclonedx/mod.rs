//! CycloneDX documents of vulnerabilities: written in version 1.6, read from 1.4 on.

mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::write;

use crate::model::FalsePositive;

/// The justification in the format's terms. A component mismatch has none: the format has a state for it.
fn justification(why: FalsePositive) -> Option<&'static str> {
    match why {
        FalsePositive::ComponentMismatch => None,
        FalsePositive::RecordContested | FalsePositive::VersionNotUsed | FalsePositive::CodeNotIncluded => {
            Some("code_not_present")
        }
        FalsePositive::CodeNotExecuted => Some("code_not_reachable"),
        FalsePositive::CodeNotControllable => Some("requires_environment"),
        FalsePositive::Mitigated => Some("protected_by_mitigating_control"),
    }
}

/// The inverse; accepts every justification of the format, also those that `justification` does not return.
fn false_positive(justification: &str) -> Option<FalsePositive> {
    Some(match justification {
        "code_not_present" | "requires_dependency" => FalsePositive::CodeNotIncluded,
        "code_not_reachable" => FalsePositive::CodeNotExecuted,
        "requires_environment" | "requires_configuration" => FalsePositive::CodeNotControllable,
        "protected_by_mitigating_control"
        | "protected_by_compiler"
        | "protected_at_runtime"
        | "protected_at_perimeter" => FalsePositive::Mitigated,
        _ => return None,
    })
}
