//! Identity providers as in v1.

use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::identity_provider as v1_parts;
use bowline_contract::v1::iam::rpc::identity_providers::{Create, Delete, List, Update};
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::identity_provider as v2_parts;
use bowline_core::Result;
use bowline_pipeline::{Authorized, Changed, Handlers, Mask, handler};
use bowline_resources::list::{self, Filter};
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use super::identity_providers::{self, ProviderRow, violations};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .validate::<Create>(|request| {
            request.identity_provider.clone().map(|given| violations(&up(given))).unwrap_or_default()
        })
        .write::<Create>(handler!(create))
        .validate::<Update>(|request| violations(&up(request.clone())))
        .write::<Update>(handler!(update))
        .read::<List>(handler!(list))
        .write::<Delete>(handler!(delete))
}

async fn create(
    tx: &mut WriteTx,
    call: &Authorized<v1::CreateIdentityProviderRequest>,
) -> Result<Changed<v1::IdentityProvider>> {
    let given = call.request().identity_provider.clone().unwrap_or_default();
    Ok(identity_providers::create(tx, call, up(given)).await?.map(down))
}

async fn update(tx: &mut WriteTx, call: &Authorized<v1::IdentityProvider>) -> Result<Changed<v1::IdentityProvider>> {
    let given = up(call.request().clone());
    Ok(identity_providers::update(tx, call, &Mask::whole(), &given).await?.map(down))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::IdentityProviderFilter>) -> Result<v1::IdentityProviderList> {
    let filter = call.request();
    let mut selection = list::select_v1(call.visible(), filter.uidp.as_ref(), &filter.id);
    if !filter.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&filter.name) });
    }
    let size = |row: &ProviderRow| row.to_listed(call).encoded_len();
    let rows = list::everything(tx, call, &identity_providers::TABLE, &selection, size).await?;
    Ok(v1::IdentityProviderList { items: rows.iter().map(|row| down(row.to_listed(call))).collect() })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteIdentityProviderRequest>) -> Result<Changed<()>> {
    identity_providers::remove(tx, call).await
}

/// A provider as events show it: the caller's input without the secret.
pub(crate) fn rendered(provider: &v2::IdentityProvider) -> v1::IdentityProvider {
    v1::IdentityProvider { scim: None, ..down(provider.clone()) }
}

/// A provider of v1 in the form of v2.
fn up(provider: v1::IdentityProvider) -> v2::IdentityProvider {
    let oidc = |oidc: v1_parts::Oidc| v2_parts::Oidc {
        issuer: oidc.issuer,
        client_id: oidc.client_id,
        client_secret: oidc.client_secret,
        additional_scopes: oidc.additional_scopes,
        groups_claim: oidc.groups_claim,
        correlation_rule: oidc.correlation_rule,
        pkce_enabled: oidc.pkce_enabled,
    };
    v2::IdentityProvider {
        uid: provider.id,
        name: provider.name,
        description: provider.description,
        default_role: provider.default_role,
        configuration: provider.configuration.map(|configuration| match configuration {
            v1_parts::Configuration::Oidc(given) => v2_parts::Configuration::Oidc(oidc(given)),
        }),
        ..v2::IdentityProvider::default()
    }
}

fn down(provider: v2::IdentityProvider) -> v1::IdentityProvider {
    let oidc = |oidc: v2_parts::Oidc| v1_parts::Oidc {
        issuer: oidc.issuer,
        client_id: oidc.client_id,
        client_secret: oidc.client_secret,
        additional_scopes: oidc.additional_scopes,
        groups_claim: oidc.groups_claim,
        correlation_rule: oidc.correlation_rule,
        pkce_enabled: oidc.pkce_enabled,
    };
    v1::IdentityProvider {
        id: provider.uid,
        name: provider.name,
        description: provider.description,
        default_role: provider.default_role,
        scim: provider.scim.map(|scim| v1_parts::Scim {
            enabled: scim.enabled,
            endpoint_url: scim.endpoint_url,
            token_expire_time: scim.token_expire_time,
            previous_token_expire_time: scim.previous_token_expire_time,
            credential_state: scim.credential_state,
            etag: scim.etag,
        }),
        configuration: provider.configuration.map(|configuration| match configuration {
            v2_parts::Configuration::Oidc(stored) => v1_parts::Configuration::Oidc(oidc(stored)),
        }),
    }
}
