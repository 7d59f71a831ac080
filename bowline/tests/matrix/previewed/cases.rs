//! The calls that are previewed and made: those of the matrix, and others where those of the matrix change nothing.

use bowline_contract::bowline::advisories::v1 as transfers;
use bowline_contract::bowline::advisories::v1::rpc::advisory_transfers::ImportAdvisories;
use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::bowline::iam::v1::rpc::access_requests::AnswerAccessRequest;
use bowline_contract::bowline::libraries::v1 as policy_tests;
use bowline_contract::bowline::libraries::v1::rpc::policy_ages::SetRule as SetAgeRule;
use bowline_contract::bowline::libraries::v1::rpc::policy_tests::SetPolicyTests;
use bowline_contract::bowline::libraries::v1::rpc::policy_vulnerabilities::SetRule;
use bowline_contract::v1::events::rpc::identities::UpdateMetadata;
use bowline_contract::v1::iam as i1;
use bowline_contract::v1::iam::rpc::{
    external_group_role_mappings as mappings1, identity_providers as providers1, terms as terms1,
};
use bowline_contract::v1::libraries as l1;
use bowline_contract::v1::libraries::rpc::library_policy_bindings::CreateBinding;
use bowline_contract::v1::libraries::rpc::resolution_cache::SetOptOut;
use bowline_contract::v1::registry as r1;
use bowline_contract::v1::registry::rpc::registry::UpdateRegistrySettings;
use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v2::events::DeleteSubscriptionRequest;
use bowline_contract::v2::events::rpc::subscriptions_service::DeleteSubscription;
use bowline_contract::v2::iam as i2;
use bowline_contract::v2::iam::rpc::identities_service::UpdateIdentityMetadata;
use bowline_contract::v2::iam::rpc::{
    external_group_role_mappings_service as mappings2, identity_providers_service as providers2,
    terms_service as terms2,
};
use bowline_testkit::{Actor, TestServer};

use crate::escalation::people;
use crate::fixture::{Fixture, Kind, Place, UNSHARED};
use crate::table::advisories::{advisory, batch_review};
use crate::table::{Aim, Check, Row, at, default, row, table};

/// What organizations accept.
pub(super) const DOCUMENT: &str = "terms-1";

/// Methods that succeed in the fixture without a change: nothing there was resolved or is kept for a time.
pub(super) const CHANGE_NOTHING: [&str; 2] =
    ["chainguard.platform.libraries.ResolutionCache.Zap", "bowline.registry.v1.RegistryPolicies.ApplyRetention"];

/// A call by someone at a place.
pub(super) struct Case<'f> {
    pub(super) row: Row,
    pub(super) actor: &'f Actor,
    pub(super) place: &'f Place,
}

impl Case<'_> {
    pub(super) async fn payload(&self, fixture: &Fixture<'_>) -> Vec<u8> {
        let doomed = match self.row.takes {
            Some(kind) => fixture.doomed(self.place, kind).await,
            None => String::new(),
        };
        (self.row.build)(&Aim { fixture, place: self.place, doomed })
    }

    /// Says that a call took what was doomed.
    pub(super) fn settle(&self, has_succeeded: bool) {
        if let Some(kind) = self.row.takes.filter(|_| has_succeeded) {
            self.place.spend(kind);
        }
    }
}

/// The fixture with what the further cases need. No event is delivered, since attempts are rows.
pub(super) async fn whole(server: &TestServer) -> Fixture<'_> {
    let fixture = Fixture::new(server).await;
    let subscriptions = fixture.all.lock().expect(UNSHARED)[&Kind::Subscription].clone();
    for uid in subscriptions {
        let gone = fixture.operator.grpc::<DeleteSubscription>(DeleteSubscriptionRequest { uid }).await;
        gone.expect("the operator deletes subscriptions");
    }
    people::request_access(server, &person(&fixture).identity, &fixture.place("parent").group).await;
    fixture
}

fn caller<'f>(fixture: &'f Fixture<'_>, name: &str) -> &'f Actor {
    &fixture.callers.iter().find(|caller| caller.actor.name == name).expect("a caller of the fixture").actor
}

fn person<'f>(fixture: &'f Fixture<'_>) -> &'f Actor {
    caller(fixture, "operator.viewer")
}

/// Each row of the matrix by the operator, where it is let through and where nothing is; then those of [`further`].
pub(super) fn cases<'f>(fixture: &'f Fixture<'_>) -> Vec<Case<'f>> {
    let contract = &fixture.server.server().parts().contract;
    let can = |row: &Row| contract.by_full_name(row.full_name).is_some_and(|method| method.previewable);
    let mut cases = Vec::new();
    for name in ["", "absent"] {
        for row in table().into_iter().filter(can) {
            let is_of_organization = row.only_organizations || row.lives_in_organizations;
            let there = if is_of_organization { "parent" } else { "own" };
            let place = fixture.place(if name.is_empty() { there } else { name });
            let actor = match row.validated {
                Check::Person => person(fixture),
                _ => &fixture.operator,
            };
            cases.push(Case { row, actor, place });
        }
    }
    let parent = fixture.place("parent");
    let rows = further().into_iter().chain(of_providers());
    cases.extend(rows.map(|row| Case { row, actor: &fixture.operator, place: parent }));
    let metadata = row::<UpdateMetadata>(Check::Person, |_| bowline_contract::v1::events::IdentityMetadata {
        updates_opt_in: true,
        ..default()
    });
    let metadata2 = row::<UpdateIdentityMetadata>(Check::Person, |aim| i2::UpdateIdentityMetadataRequest {
        identity_metadata: Some(i2::IdentityMetadata { company: aim.name(), ..default() }),
        ..default()
    });
    cases.extend([metadata, metadata2].map(|row| Case { row, actor: person(fixture), place: parent }));
    cases
}

/// Calls that succeed where those of the matrix do not, or that change something where those do not.
fn further() -> Vec<Row> {
    vec![
        at::<terms2::AcceptTerms>(|aim| i2::AcceptTermsRequest {
            group: aim.group(),
            document_ids: vec![DOCUMENT.into()],
        }),
        at::<terms1::AcceptTerms>(|aim| i1::AcceptTermsRequest {
            group: aim.fixture.place("other organization").group.clone(),
            document_ids: vec![DOCUMENT.into()],
        }),
        at::<AnswerAccessRequest>(|aim| own::AnswerAccessRequestRequest {
            group: aim.group(),
            identity: person(aim.fixture).identity.clone(),
            role: aim.viewer(),
            ..default()
        }),
        at::<CreateBinding>(|aim| l1::CreateLibraryPolicyBindingRequest {
            parent_id: aim.group(),
            binding: Some(l1::LibraryPolicyBinding {
                policy: aim.uid(Kind::LibraryPolicy),
                ecosystem: l1::Ecosystem::Javascript as i32,
                mode: l1::LibraryPolicyBindingMode::Enforced as i32,
                ..default()
            }),
        }),
        at::<SetOptOut>(|aim| l1::ResolutionCacheOptOutRequest {
            parent_id: aim.group(),
            opted_out: true,
            ..default()
        }),
        at::<SetPolicyTests>(|aim| policy_tests::SetPolicyTestsRequest {
            policy: aim.uid(Kind::LibraryPolicy),
            tests: vec![policy_tests::PolicyTest {
                purl: "pkg:npm/none@1.0.0".into(),
                expected: policy_tests::ExpectedDecision::Allowed as i32,
                ..default()
            }],
            force: true,
        }),
        at::<SetRule>(|aim| policy_tests::SetVulnerabilityRuleRequest {
            policy: aim.uid(Kind::LibraryPolicy),
            rule: Some(policy_tests::VulnerabilityRule { minimum_severity: 3, ..default() }),
            force: true,
        }),
        at::<SetAgeRule>(|aim| policy_tests::SetAgeRuleRequest {
            policy: aim.uid(Kind::LibraryPolicy),
            age_source: policy_tests::AgeSource::FirstSeenAll as i32,
            force: true,
        }),
        at::<UpdateRegistrySettings>(|aim| r1::RegistrySettings {
            registry_id: aim.group(),
            unique_tags: true,
            ..default()
        }),
        batch_review(),
        at::<ImportAdvisories>(|aim| transfers::ImportAdvisoriesRequest {
            parent: aim.group(),
            advisories: vec![v1::Advisory { aliases: vec!["CVE-2026-1".into()], ..advisory(aim.name()) }],
            ..default()
        }),
    ]
}

/// The same for providers: with mappings that are there, and for the provisioning that is off.
fn of_providers() -> Vec<Row> {
    let taking = |kind: Kind, row: Row| Row { takes: Some(kind), ..row };
    let provider = |mapping: &str| mapping.rsplit_once('/').map_or("", |(provider, _)| provider).to_owned();
    vec![
        taking(
            Kind::Mapping,
            at::<mappings1::BatchDelete>(move |aim| i1::BatchDeleteExternalGroupRoleMappingsRequest {
                parent_id: provider(&aim.doomed),
                ids: vec![aim.doomed.clone()],
            }),
        ),
        taking(
            Kind::Mapping,
            at::<mappings2::BatchDeleteExternalGroupRoleMappings>(move |aim| {
                i2::BatchDeleteExternalGroupRoleMappingsRequest {
                    parent: provider(&aim.doomed),
                    names: vec![aim.doomed.clone()],
                }
            }),
        ),
        taking(
            Kind::Provisioned,
            at::<providers1::SetScimEnabled>(|aim| i1::SetScimEnabledRequest {
                identity_provider_id: aim.doomed.clone(),
                etag: aim.fixture.etag(&aim.doomed),
                enabled: true,
            }),
        ),
        taking(
            Kind::Provisioned,
            at::<providers2::SetScimEnabled>(|aim| i2::SetScimEnabledRequest {
                identity_provider_uid: aim.doomed.clone(),
                etag: aim.fixture.etag(&aim.doomed),
                enabled: true,
            }),
        ),
    ]
}
