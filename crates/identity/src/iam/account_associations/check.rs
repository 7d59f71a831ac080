//! Validates the description of a group's account at a provider. No request is sent to the provider.

use bowline_contract::v2::iam as v2;
use bowline_core::{Error, Result};
use bowline_pipeline::Authorized;
use bowline_resources::references;
use bowline_store::ReadTx;

use super::find;

/// A provider whose account can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    Google,
    Amazon,
    Azure,
}

impl Provider {
    fn name(self) -> &'static str {
        match self {
            Provider::Google => "Google Cloud",
            Provider::Amazon => "Amazon Web Services",
            Provider::Azure => "Microsoft Azure",
        }
    }
}

/// How the account stands.
pub(crate) struct Standing {
    pub(crate) is_ready: bool,
    /// A word for machines.
    pub(crate) reason: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
}

/// How the checked group's account at the provider stands.
pub(crate) async fn standing<T>(tx: &mut ReadTx, call: &Authorized<T>, provider: Provider) -> Result<Standing> {
    let group = references::require_scope(tx, call).await?;
    let association = find(tx, &group).await?;
    Ok(validate(association.as_ref().map(|row| &row.given), provider))
}

fn validate(association: Option<&v2::AccountAssociation>, provider: Provider) -> Standing {
    let not_ready = |reason, message| Standing { is_ready: false, reason, message };
    let name = provider.name();
    let Some(association) = association else {
        return not_ready("NotAssociated", format!("the group has no account association, so none with {name}"));
    };
    match is_complete(association, provider) {
        None => not_ready("AccountMissing", format!("the account association names no account at {name}")),
        Some(false) => not_ready("AccountIncomplete", format!("the account association leaves parts of {name} empty")),
        Some(true) => Standing {
            is_ready: true,
            reason: "Associated",
            message: format!("the account at {name} is described; it was not contacted"),
        },
    }
}

/// Whether the provider's part says everything; absent if there is no such part.
fn is_complete(association: &v2::AccountAssociation, provider: Provider) -> Option<bool> {
    let filled = |text: &String| !text.is_empty();
    match provider {
        Provider::Google => association.google.as_ref().map(|p| filled(&p.project_id) && filled(&p.project_number)),
        Provider::Amazon => association.amazon.as_ref().map(|p| filled(&p.account)),
        Provider::Azure => association
            .azure
            .as_ref()
            .map(|p| filled(&p.tenant_id) && !p.client_ids.is_empty() && p.client_ids.values().all(filled)),
    }
}

pub(super) async fn check_v2(
    tx: &mut ReadTx,
    call: &Authorized<v2::CheckAccountAssociationRequest>,
) -> Result<v2::CheckAccountAssociationResponse> {
    let provider = match call.request().provider_type() {
        v2::AccountProviderType::Google => Provider::Google,
        v2::AccountProviderType::Amazon => Provider::Amazon,
        v2::AccountProviderType::Azure => Provider::Azure,
        v2::AccountProviderType::Unspecified => {
            return Err(Error::invalid_field("providerType", "providerType is required"));
        }
    };
    let standing = standing(tx, call, provider).await?;
    let status = if standing.is_ready { v2::CheckStatus::Ready } else { v2::CheckStatus::NotReady };
    Ok(v2::CheckAccountAssociationResponse {
        status: status as i32,
        reason: standing.reason.into(),
        message: standing.message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use v2::account_association::Azure;

    #[test]
    fn ready_is_what_is_complete() {
        let mut association = v2::AccountAssociation::default();
        assert_eq!(validate(None, Provider::Azure).reason, "NotAssociated");
        assert_eq!(validate(Some(&association), Provider::Azure).reason, "AccountMissing");
        association.azure = Some(Azure { tenant_id: "t".into(), client_ids: [("a".into(), String::new())].into() });
        assert_eq!(validate(Some(&association), Provider::Azure).reason, "AccountIncomplete");
        association.azure = Some(Azure { tenant_id: "t".into(), client_ids: [("a".into(), "b".into())].into() });
        assert!(validate(Some(&association), Provider::Azure).is_ready);
        assert!(!validate(Some(&association), Provider::Google).is_ready);
    }
}
