//! What the fixture is furnished with, besides the hierarchy itself.

use bowline_contract::v1::registry as registry1;
use bowline_contract::v1::registry::rpc::registry::CreateDeployment;
use bowline_contract::v1::vulnerabilities::rpc::advisories;
use bowline_contract::v1::vulnerabilities::{CreateAdvisoryEventRequest, CreateAdvisoryRequest};
use bowline_contract::v2::events;
use bowline_contract::v2::events::rpc::subscriptions_service::CreateSubscription;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::account_associations_service::CreateAccountAssociation;
use bowline_contract::v2::iam::rpc::group_invites_service::CreateGroupInvite;

use crate::fixture::Fixture;
use crate::table::advisories::{advisory, event};

impl Fixture<'_> {
    pub(crate) async fn invite(&self, group: &str) -> String {
        let ttl = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
        let invite = v2::GroupInvite { role_uid: self.server.role("viewer"), ttl, ..v2::GroupInvite::default() };
        let request = v2::CreateGroupInviteRequest { parent: group.into(), group_invite: Some(invite) };
        self.operator.grpc::<CreateGroupInvite>(request).await.expect("the operator invites").uid
    }

    pub(crate) async fn deployment(&self, repo: &str) {
        let chart = registry1::HelmChart { repo: "oci://example".into(), ..registry1::HelmChart::default() };
        let request = registry1::CreateDeploymentRequest { parent_id: repo.into(), charts: vec![chart] };
        self.operator.grpc::<CreateDeployment>(request).await.expect("the operator deploys");
    }

    pub(crate) async fn association(&self, group: &str) -> String {
        let association = v2::AccountAssociation { name: self.name(), ..v2::AccountAssociation::default() };
        let request =
            v2::CreateAccountAssociationRequest { parent: group.into(), account_association: Some(association) };
        self.operator.grpc::<CreateAccountAssociation>(request).await.expect("the operator associates").uid
    }

    pub(crate) async fn subscription(&self, group: &str) -> String {
        let subscription = events::Subscription { sink: "https://a.example".into(), ..events::Subscription::default() };
        let request = events::CreateSubscriptionRequest { parent: group.into(), subscription: Some(subscription) };
        self.operator.grpc::<CreateSubscription>(request).await.expect("the operator subscribes").uid
    }

    pub(crate) async fn advisory(&self, group: &str) -> String {
        let request = CreateAdvisoryRequest { parent_id: group.into(), advisory: Some(advisory(self.name())) };
        self.operator.grpc::<advisories::Create>(request).await.expect("the operator judges").id
    }

    pub(crate) async fn advisory_event(&self, advisory: &str) -> String {
        let request = CreateAdvisoryEventRequest { parent_id: advisory.into(), advisory_event: Some(event()) };
        self.operator.grpc::<advisories::CreateAdvisoryEvent>(request).await.expect("the operator goes on").id
    }
}
