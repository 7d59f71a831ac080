//! Requests to identity providers, their SCIM tokens and their mappings.

use bowline_contract::Method;
use bowline_contract::v1::iam as i1;
use bowline_contract::v1::iam::identity_provider as provider1;
use bowline_contract::v1::iam::rpc::{external_group_role_mappings as mappings1, identity_providers as providers1};
use bowline_contract::v2::iam as i2;
use bowline_contract::v2::iam::identity_provider as provider2;
use bowline_contract::v2::iam::rpc::{
    external_group_role_mappings_service as mappings2, identity_providers_service as providers2,
};

use crate::fixture::Kind;
use crate::table::{Aim, Row, at, default, delete, grant, list, mask};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = providers_v2();
    rows.extend(providers_v1());
    rows.extend(tokens_v2());
    rows.extend(tokens_v1());
    rows.extend(mappings_v2());
    rows.extend(mappings_v1());
    rows
}

/// A call that succeeds once with each of a kind.
fn once<M: Method>(kind: Kind, build: impl Fn(&Aim<'_>, String) -> M::Request + Send + Sync + 'static) -> Row {
    Row { takes: Some(kind), ..at::<M>(move |aim| build(aim, aim.doomed.clone())) }
}

/// An issuer and a client at it are keys to everyone who signs in there: only owners may set them.
fn of_owner<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    Row { grants: Some("owner"), ..at::<M>(build) }
}

fn provider2(aim: &Aim<'_>) -> i2::IdentityProvider {
    let oidc = provider2::Oidc { issuer: aim.issuer(), client_id: "matrix".into(), ..default() };
    i2::IdentityProvider {
        name: aim.name(),
        default_role: aim.viewer(),
        configuration: Some(provider2::Configuration::Oidc(oidc)),
        ..default()
    }
}

fn provider1(aim: &Aim<'_>) -> i1::IdentityProvider {
    let oidc = provider1::Oidc { issuer: aim.issuer(), client_id: "matrix".into(), ..default() };
    i1::IdentityProvider {
        name: aim.name(),
        default_role: aim.viewer(),
        configuration: Some(provider1::Configuration::Oidc(oidc)),
        ..default()
    }
}

fn providers_v2() -> Vec<Row> {
    vec![
        at::<providers2::GetIdentityProvider>(|aim| i2::GetIdentityProviderRequest { uid: aim.uid(Kind::Provider) }),
        list::<providers2::ListIdentityProviders>(Kind::Provider, true, |uidp| i2::ListIdentityProvidersRequest {
            uidp,
            ..default()
        }),
        of_owner::<providers2::CreateIdentityProvider>(|aim| i2::CreateIdentityProviderRequest {
            parent: aim.group(),
            identity_provider: Some(provider2(aim)),
        }),
        at::<providers2::UpdateIdentityProvider>(|aim| i2::UpdateIdentityProviderRequest {
            identity_provider: Some(i2::IdentityProvider {
                uid: aim.uid(Kind::Provider),
                description: aim.name(),
                ..default()
            }),
            update_mask: Some(mask("description")),
        }),
        of_owner::<providers2::UpdateIdentityProvider>(|aim| {
            let oidc = provider2::Oidc { client_id: aim.name(), ..default() };
            i2::UpdateIdentityProviderRequest {
                identity_provider: Some(i2::IdentityProvider {
                    uid: aim.uid(Kind::Provisioned),
                    configuration: Some(provider2::Configuration::Oidc(oidc)),
                    ..default()
                }),
                update_mask: Some(mask("oidc.client_id")),
            }
        }),
        delete::<providers2::DeleteIdentityProvider>(Kind::Provider, |uid| i2::DeleteIdentityProviderRequest { uid }),
    ]
}

fn providers_v1() -> Vec<Row> {
    vec![
        of_owner::<providers1::Create>(|aim| i1::CreateIdentityProviderRequest {
            parent_id: aim.group(),
            identity_provider: Some(provider1(aim)),
        }),
        at::<providers1::Update>(|aim| i1::IdentityProvider { id: aim.uid(Kind::Provider), ..provider1(aim) }),
        of_owner::<providers1::Update>(|aim| {
            let oidc = provider1::Oidc { issuer: aim.issuer(), client_id: aim.name(), ..default() };
            let configuration = Some(provider1::Configuration::Oidc(oidc));
            i1::IdentityProvider { id: aim.uid(Kind::Provisioned), configuration, ..provider1(aim) }
        }),
        list::<providers1::List>(Kind::Provider, false, |uidp| i1::IdentityProviderFilter { uidp, ..default() }),
        delete::<providers1::Delete>(Kind::Provider, |id| i1::DeleteIdentityProviderRequest { id }),
    ]
}

fn tokens_v2() -> Vec<Row> {
    vec![
        once::<providers2::GenerateScimToken>(Kind::Provider, |_, identity_provider_uid| {
            i2::GenerateScimTokenRequest { identity_provider_uid, ..default() }
        }),
        once::<providers2::RegenerateScimToken>(Kind::Provisioned, |aim, identity_provider_uid| {
            let etag = aim.fixture.etag(&identity_provider_uid);
            i2::RegenerateScimTokenRequest { identity_provider_uid, etag, ..default() }
        }),
        once::<providers2::RevokeScimToken>(Kind::Provisioned, |_, identity_provider_uid| i2::RevokeScimTokenRequest {
            identity_provider_uid,
        }),
        once::<providers2::SetScimEnabled>(Kind::Provisioned, |aim, identity_provider_uid| {
            let etag = aim.fixture.etag(&identity_provider_uid);
            i2::SetScimEnabledRequest { identity_provider_uid, etag, enabled: false }
        }),
    ]
}

fn tokens_v1() -> Vec<Row> {
    vec![
        once::<providers1::GenerateScimToken>(Kind::Provider, |_, identity_provider_id| i1::GenerateScimTokenRequest {
            identity_provider_id,
            ..default()
        }),
        once::<providers1::RegenerateScimToken>(Kind::Provisioned, |aim, identity_provider_id| {
            let etag = aim.fixture.etag(&identity_provider_id);
            i1::RegenerateScimTokenRequest { identity_provider_id, etag, ..default() }
        }),
        once::<providers1::RevokeScimToken>(Kind::Provisioned, |_, identity_provider_id| i1::RevokeScimTokenRequest {
            identity_provider_id,
        }),
        once::<providers1::SetScimEnabled>(Kind::Provisioned, |aim, identity_provider_id| {
            let etag = aim.fixture.etag(&identity_provider_id);
            i1::SetScimEnabledRequest { identity_provider_id, etag, enabled: false }
        }),
    ]
}

/// The role is given at the organization.
fn at_root(row: Row) -> Row {
    Row { grants_at_root: true, ..row }
}

fn mappings_v2() -> Vec<Row> {
    vec![
        at::<mappings2::GetExternalGroupRoleMapping>(|aim| i2::GetExternalGroupRoleMappingRequest {
            uid: aim.uid(Kind::Mapping),
        }),
        list::<mappings2::ListExternalGroupRoleMappings>(Kind::Mapping, true, |uidp| {
            i2::ListExternalGroupRoleMappingsRequest { uidp, ..default() }
        }),
        at_root(grant::<mappings2::CreateExternalGroupRoleMapping>(|aim| i2::CreateExternalGroupRoleMappingRequest {
            parent: aim.uid(Kind::Provider),
            external_group_role_mapping: Some(i2::ExternalGroupRoleMapping {
                external_group_id: aim.name(),
                role_uid: aim.viewer(),
                ..default()
            }),
        })),
        delete::<mappings2::DeleteExternalGroupRoleMapping>(Kind::Mapping, |uid| {
            i2::DeleteExternalGroupRoleMappingRequest { uid }
        }),
        at::<mappings2::BatchDeleteExternalGroupRoleMappings>(|aim| {
            let parent = aim.uid(Kind::Provider);
            let names = vec![format!("{parent}/00000000000000ff")];
            i2::BatchDeleteExternalGroupRoleMappingsRequest { parent, names }
        }),
    ]
}

fn mappings_v1() -> Vec<Row> {
    vec![
        at_root(grant::<mappings1::Create>(|aim| i1::CreateExternalGroupRoleMappingRequest {
            parent_id: aim.uid(Kind::Provider),
            mapping: Some(i1::ExternalGroupRoleMapping {
                external_group_id: aim.name(),
                role_uidp: aim.viewer(),
                ..default()
            }),
        })),
        at::<mappings1::Get>(|aim| i1::GetExternalGroupRoleMappingRequest { uid: aim.uid(Kind::Mapping) }),
        list::<mappings1::List>(Kind::Mapping, false, |uidp| i1::ExternalGroupRoleMappingFilter { uidp, ..default() }),
        delete::<mappings1::Delete>(Kind::Mapping, |id| i1::DeleteExternalGroupRoleMappingRequest { id }),
        at::<mappings1::BatchDelete>(|aim| {
            let parent_id = aim.uid(Kind::Provider);
            let ids = vec![format!("{parent_id}/00000000000000ff")];
            i1::BatchDeleteExternalGroupRoleMappingsRequest { parent_id, ids }
        }),
    ]
}
