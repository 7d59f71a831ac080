//! What a write makes of a provider's fields: masks, what never changes, what is refused.

use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::identity_provider::oidc::CorrelationRule;
use bowline_contract::v2::iam::identity_provider::{Configuration, Oidc};
use bowline_core::{Error, FieldViolation, Result};
use bowline_pipeline::Mask;

use super::ProviderRow;
use crate::iam::relationship::issuer_problem;

/// How people sign in, as the request says; empty by default.
pub(super) fn oidc_of(provider: &v2::IdentityProvider) -> Oidc {
    match &provider.configuration {
        Some(Configuration::Oidc(oidc)) => oidc.clone(),
        None => Oidc::default(),
    }
}

/// What is wrong with a provider that the field rules of the contract cannot say.
pub(crate) fn violations(provider: &v2::IdentityProvider) -> Vec<FieldViolation> {
    let mut violations = Vec::new();
    if provider.default_role.is_empty() {
        violations.push(violation("defaultRole", "defaultRole is required"));
    }
    match &provider.configuration {
        Some(Configuration::Oidc(oidc)) => violations.extend(validate_oidc(oidc)),
        None => violations.push(violation("oidc", "oidc is required")),
    }
    violations
}

fn violation(field: impl Into<String>, description: impl Into<String>) -> FieldViolation {
    FieldViolation { field: field.into(), description: description.into() }
}

fn validate_oidc(oidc: &Oidc) -> Vec<FieldViolation> {
    let mut violations = Vec::new();
    if let Some(problem) = issuer_problem(&oidc.issuer) {
        violations.push(violation("oidc.issuer", problem));
    }
    if oidc.client_id.is_empty() {
        violations.push(violation("oidc.clientId", "clientId is required"));
    }
    for (at, _) in oidc.additional_scopes.iter().enumerate().filter(|(_, scope)| scope.is_empty()) {
        violations.push(violation(format!("oidc.additionalScopes[{at}]"), "a scope must not be empty"));
    }
    violations
}

/// The provider after a change of what the mask covers; its secret stays as it is.
///
/// # Errors
/// INVALID_ARGUMENT naming the fields.
pub(super) fn changed(before: &ProviderRow, given: &v2::IdentityProvider, mask: &Mask) -> Result<ProviderRow> {
    let mut after = before.clone();
    field(mask, "name", &mut after.name, &given.name);
    field(mask, "description", &mut after.description, &given.description);
    field(mask, "default_role", &mut after.default_role, &given.default_role);
    let oidc = oidc_of(given);
    field(mask, "oidc.issuer", &mut after.oidc.issuer, &oidc.issuer);
    field(mask, "oidc.client_id", &mut after.oidc.client_id, &oidc.client_id);
    field(mask, "oidc.additional_scopes", &mut after.oidc.additional_scopes, &oidc.additional_scopes);
    field(mask, "oidc.groups_claim", &mut after.oidc.groups_claim, &oidc.groups_claim);
    field(mask, "oidc.pkce_enabled", &mut after.oidc.pkce_enabled, &oidc.pkce_enabled);
    let mut violations = violations(&after.to_v2(Default::default()));
    if changes_rule(&before.oidc, &oidc, mask) {
        let what = "correlationRule is fixed when the provider is created; create another provider";
        violations.push(violation("oidc.correlationRule", what));
    }
    if violations.is_empty() { Ok(after) } else { Err(Error::invalid(violations)) }
}

/// Takes over a field that the mask covers, by itself or with what it is in.
fn field<T: Clone>(mask: &Mask, path: &str, after: &mut T, given: &T) {
    if covers(mask, path) {
        after.clone_from(given);
    }
}

fn covers(mask: &Mask, path: &str) -> bool {
    let is_inside = |outer: &String| path.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with('.'));
    mask.covers(path) || mask.paths().iter().any(is_inside)
}

/// Unspecified means the subject; in a replacement of the whole it means that nothing was said.
fn changes_rule(stored: &Oidc, given: &Oidc, mask: &Mask) -> bool {
    const PATH: &str = "oidc.correlation_rule";
    let effective = |oidc: &Oidc| match oidc.correlation_rule() {
        CorrelationRule::Unspecified => CorrelationRule::SubEqualsExternalId,
        rule => rule,
    };
    let is_said = given.correlation_rule() != CorrelationRule::Unspecified || mask.names(PATH);
    covers(mask, PATH) && is_said && effective(stored) != effective(given)
}

/// The secret that an update sets. Since it is never read back, an empty one takes the stored one away only
/// where the mask names it.
pub(super) fn new_secret(given: &v2::IdentityProvider, mask: &Mask) -> Option<String> {
    const PATH: &str = "oidc.client_secret";
    let secret = oidc_of(given).client_secret;
    let is_meant = mask.names(PATH) || (covers(mask, PATH) && !secret.is_empty());
    is_meant.then_some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_covers_everything_below_its_paths() {
        let mask = |path: &str| Mask::new(vec![path.into()]);
        for path in ["*", "oidc", "oidc.issuer"] {
            assert!(covers(&mask(path), "oidc.issuer"), "{path}");
        }
        for path in ["name", "oidc.client_id", "oid", "oidc.issuers"] {
            assert!(!covers(&mask(path), "oidc.issuer"), "{path}");
        }
    }
}
