//! What the fixture has of libraries. It lives in organizations; elsewhere the fixture knows a UIDP at which nothing is.

use bowline_contract::v1::libraries as l1;
use bowline_contract::v1::libraries::rpc::entitlements::Create;
use bowline_contract::v1::libraries::rpc::library_policies::CreatePolicy;
use bowline_contract::v1::libraries::rpc::library_policy_bindings::CreateBinding;

use crate::fixture::{Fixture, Kind, UNSHARED};

/// Whether only organizations have such a thing.
pub(crate) fn is_of_organizations(kind: Kind) -> bool {
    matches!(kind, Kind::Entitlement | Kind::LibraryPolicy | Kind::LibraryPolicyBinding)
}

impl Fixture<'_> {
    pub(crate) async fn entitlement(&self, organization: &str) -> String {
        let ecosystem = self.ecosystem(Kind::Entitlement, organization) as i32;
        let request = l1::CreateEntitlementRequest { parent_id: organization.into(), ecosystem, ..Default::default() };
        self.operator.grpc::<Create>(request).await.expect("the operator entitles").id
    }

    pub(crate) async fn library_policy(&self, organization: &str, name: &str) -> String {
        let policy = Some(l1::LibraryPolicy { name: name.into(), ..Default::default() });
        let request = l1::CreateLibraryPolicyRequest { parent_id: organization.into(), policy };
        self.operator.grpc::<CreatePolicy>(request).await.expect("the operator makes a policy").id
    }

    pub(crate) async fn library_policy_binding(&self, organization: &str, policy: &str) -> String {
        let binding = l1::LibraryPolicyBinding {
            policy: policy.into(),
            ecosystem: self.ecosystem(Kind::LibraryPolicyBinding, organization) as i32,
            mode: l1::LibraryPolicyBindingMode::Enforced as i32,
            ..Default::default()
        };
        let request = l1::CreateLibraryPolicyBindingRequest { parent_id: organization.into(), binding: Some(binding) };
        self.operator.grpc::<CreateBinding>(request).await.expect("the operator binds a policy").id
    }

    /// Java for what stays, Python for what is deleted: there is one of each.
    fn ecosystem(&self, kind: Kind, organization: &str) -> l1::Ecosystem {
        let all = self.all.lock().expect(UNSHARED);
        let has_one = all.get(&kind).is_some_and(|known| known.iter().any(|uid| uid.starts_with(organization)));
        if has_one { l1::Ecosystem::Python } else { l1::Ecosystem::Java }
    }
}
