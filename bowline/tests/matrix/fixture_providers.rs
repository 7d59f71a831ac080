//! What the fixture has of identity providers and roles.

use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::identity_provider::{Configuration, Oidc};
use bowline_contract::v2::iam::rpc::external_group_role_mappings_service::CreateExternalGroupRoleMapping;
use bowline_contract::v2::iam::rpc::identity_providers_service::{CreateIdentityProvider, GenerateScimToken};
use bowline_contract::v2::iam::rpc::roles_service::CreateRole;

use crate::fixture::{Fixture, UNSHARED};

impl Fixture<'_> {
    pub(crate) async fn provider(&self, group: &str, name: &str) -> String {
        let oidc = Oidc { issuer: self.server.idp().issuer().into(), client_id: "matrix".into(), ..Oidc::default() };
        let provider = v2::IdentityProvider {
            name: name.into(),
            default_role: self.server.role("viewer"),
            configuration: Some(Configuration::Oidc(oidc)),
            ..v2::IdentityProvider::default()
        };
        let request = v2::CreateIdentityProviderRequest { parent: group.into(), identity_provider: Some(provider) };
        self.operator.grpc::<CreateIdentityProvider>(request).await.expect("the operator makes a provider").uid
    }

    pub(crate) async fn provision(&self, provider: &str) {
        let request = v2::GenerateScimTokenRequest { identity_provider_uid: provider.into(), ..Default::default() };
        let made = self.operator.grpc::<GenerateScimToken>(request).await.expect("the operator makes a token");
        self.etags.lock().expect(UNSHARED).insert(provider.into(), made.etag);
    }

    /// The entity tag that the provider requires; another text where there is none.
    pub(crate) fn etag(&self, provider: &str) -> String {
        self.etags.lock().expect(UNSHARED).get(provider).cloned().unwrap_or_else(|| "none".into())
    }

    pub(crate) async fn mapping(&self, provider: &str, external_group: &str) -> String {
        let mapping = v2::ExternalGroupRoleMapping {
            external_group_id: external_group.into(),
            role_uid: self.server.role("viewer"),
            ..Default::default()
        };
        let request = v2::CreateExternalGroupRoleMappingRequest {
            parent: provider.into(),
            external_group_role_mapping: Some(mapping),
        };
        let made = self.operator.grpc::<CreateExternalGroupRoleMapping>(request).await;
        made.expect("the operator makes a mapping").uid
    }

    pub(crate) async fn role(&self, group: &str, name: &str, capabilities: &[Capability]) -> String {
        let capabilities = capabilities.iter().map(|capability| *capability as i32).collect();
        let role = v2::Role { name: name.into(), capabilities, ..v2::Role::default() };
        let request = v2::CreateRoleRequest { parent: group.into(), role: Some(role) };
        self.operator.grpc::<CreateRole>(request).await.expect("the operator makes a role").uid
    }
}
