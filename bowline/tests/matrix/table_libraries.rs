//! Requests to libraries. The catalogue belongs to no place; everything else lives in organizations, and nowhere below them.

use bowline_contract::Method;
use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::{
    cargo_packages, cargo_policies, catalog, decisions, generic_packages, go_packages, java_packages,
    javascript_packages, package_exceptions, package_freezes, package_reservations, package_upstreams, policy_ages,
    policy_tests, policy_vulnerabilities, python_packages,
};
use bowline_contract::v1::libraries as l1;
use bowline_contract::v1::libraries::rpc::{
    a_w_s_marketplace_subscriptions as subscriptions, artifacts, entitlements, library_policies as policies,
    library_policy_bindings as bindings, library_policy_block_events as block_events, malware, npm_packages,
    resolution_cache as cache,
};
use bowline_contract::v2::libraries as l2;
use bowline_contract::v2::libraries::rpc::artifacts_service as artifacts2;

use crate::fixture::Kind;
use crate::oracle::{ALREADY_EXISTS, NOT_FOUND, OK};
use crate::table::{Aim, Check, Row, anybody, at, default, delete, row};

pub(crate) fn rows() -> Vec<Row> {
    [
        catalogue(),
        operators(),
        entitled(),
        policies_and_bindings(),
        of_cargo(),
        decided(),
        remembered(),
        published(),
        published_elsewhere(),
        upstreams(),
        overrides(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn catalogue() -> Vec<Row> {
    vec![
        anybody::<artifacts::List>(OK, |_| default()),
        anybody::<artifacts::GetArtifactCount>(OK, |_| default()),
        anybody::<artifacts::ListVersions>(NOT_FOUND, |_| l1::ArtifactVersionFilter {
            id: "python:nothing".into(),
            ..default()
        }),
        anybody::<artifacts2::ListArtifacts>(OK, |_| l2::ListArtifactsRequest { ecosystems: vec![1], ..default() }),
        anybody::<artifacts2::GetArtifactCount>(OK, |_| l2::GetArtifactCountRequest { ecosystems: vec![1] }),
        anybody::<artifacts2::ListArtifactVersions>(NOT_FOUND, |_| l2::ListArtifactVersionsRequest {
            artifact_id: "python:nothing".into(),
            ..default()
        }),
        anybody::<npm_packages::List>(OK, |_| default()),
        anybody::<npm_packages::ListVersions>(NOT_FOUND, |_| l1::NpmPackageVersionFilter {
            package_name: "nothing".into(),
            ..default()
        }),
        anybody::<malware::ListBlockList>(OK, |_| default()),
        anybody::<subscriptions::List>(OK, |_| default()),
    ]
}

/// What needs no place is fine where there is none.
fn operators() -> Vec<Row> {
    fn operator<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
        Row { absent_is_fine: true, ..row::<M>(Check::Operator, build) }
    }
    vec![
        operator::<catalog::ImportVersions>(|_| own::ImportVersionsRequest::default()),
        operator::<catalog::ImportMalware>(|_| own::ImportMalwareRequest::default()),
        operator::<catalog::RemoveMalware>(|_| own::RemoveMalwareRequest::default()),
    ]
}

/// A method of a whole organization.
fn in_organization<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    Row { only_organizations: true, ..at::<M>(build) }
}

/// A method of something that is in organizations alone.
fn of_organization(row: Row) -> Row {
    Row { lives_in_organizations: true, ..row }
}

fn entitled() -> Vec<Row> {
    vec![
        in_organization::<entitlements::Create>(|aim| l1::CreateEntitlementRequest {
            parent_id: aim.group(),
            ecosystem: l1::Ecosystem::Javascript as i32,
            ..default()
        }),
        row::<entitlements::List>(Check::List { refuses: false }, |aim| l1::EntitlementFilter {
            parent_id: aim.group(),
            ..default()
        }),
        of_organization(delete::<entitlements::Delete>(Kind::Entitlement, |id| l1::DeleteEntitlementRequest { id })),
    ]
}

fn listed<M: Method>(kind: Kind, build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    Row { lists: Some(kind), ..row::<M>(Check::List { refuses: false }, build) }
}

fn policies_and_bindings() -> Vec<Row> {
    let binding = |aim: &Aim<'_>| l1::LibraryPolicyBinding {
        policy: aim.uid(Kind::LibraryPolicy),
        ecosystem: l1::Ecosystem::Java as i32,
        mode: l1::LibraryPolicyBindingMode::Enforced as i32,
        ..default()
    };
    vec![
        in_organization::<policies::CreatePolicy>(|aim| l1::CreateLibraryPolicyRequest {
            parent_id: aim.group(),
            policy: Some(l1::LibraryPolicy { name: aim.name(), ..default() }),
        }),
        of_organization(at::<policies::UpdatePolicy>(|aim| l1::LibraryPolicy {
            id: aim.uid(Kind::LibraryPolicy),
            name: aim.name(),
            ..default()
        })),
        listed::<policies::ListPolicies>(Kind::LibraryPolicy, |aim| l1::LibraryPolicyFilter {
            parent_id: aim.group(),
            ..default()
        }),
        of_organization(delete::<policies::DeletePolicy>(Kind::LibraryPolicy, |id| l1::DeleteLibraryPolicyRequest {
            id,
        })),
        // The fixture has a binding for the same place, so anyone who is let through finds it.
        Row {
            let_through: ALREADY_EXISTS,
            ..in_organization::<bindings::CreateBinding>(move |aim| l1::CreateLibraryPolicyBindingRequest {
                parent_id: aim.group(),
                binding: Some(binding(aim)),
            })
        },
        of_organization(at::<bindings::UpdateBinding>(move |aim| l1::LibraryPolicyBinding {
            id: aim.uid(Kind::LibraryPolicyBinding),
            ..binding(aim)
        })),
        listed::<bindings::ListBindings>(Kind::LibraryPolicyBinding, |aim| l1::LibraryPolicyBindingFilter {
            parent_id: aim.group(),
            ..default()
        }),
        of_organization(delete::<bindings::DeleteBinding>(Kind::LibraryPolicyBinding, |id| {
            l1::DeleteLibraryPolicyBindingRequest { id }
        })),
        row::<block_events::ListBlockEvents>(Check::List { refuses: false }, |aim| l1::LibraryPolicyBlockEventFilter {
            parent_id: aim.group(),
            ..default()
        }),
    ]
}

/// Policies in force for Cargo.
fn of_cargo() -> Vec<Row> {
    vec![
        in_organization::<cargo_policies::GetPolicies>(|aim| own::GetCargoPoliciesRequest {
            parent: aim.group(),
            ..default()
        }),
        in_organization::<cargo_policies::SetPolicy>(|aim| own::SetCargoPolicyRequest {
            parent: aim.group(),
            mode: own::CargoPolicyMode::Enforced as i32,
            policy: aim.uid(Kind::LibraryPolicy),
            ..default()
        }),
        in_organization::<cargo_policies::ListBlockEvents>(|aim| own::ListCargoBlockEventsRequest {
            parent: aim.group(),
            ..default()
        }),
    ]
}

/// Decisions of policies, and what is expected of them.
fn decided() -> Vec<Row> {
    vec![
        of_organization(at::<policy_tests::ListPolicyTests>(|aim| own::ListPolicyTestsRequest {
            policy: aim.uid(Kind::LibraryPolicy),
        })),
        of_organization(at::<policy_tests::SetPolicyTests>(|aim| own::SetPolicyTestsRequest {
            policy: aim.uid(Kind::LibraryPolicy),
            ..default()
        })),
        of_organization(at::<policy_tests::UpdatePolicy>(|aim| own::UpdateTestedPolicyRequest {
            policy: Some(l1::LibraryPolicy { id: aim.uid(Kind::LibraryPolicy), name: aim.name(), ..default() }),
            ..default()
        })),
        of_organization(at::<policy_ages::GetRule>(|aim| own::GetAgeRuleRequest {
            policy: aim.uid(Kind::LibraryPolicy),
        })),
        of_organization(at::<policy_ages::SetRule>(|aim| own::SetAgeRuleRequest {
            policy: aim.uid(Kind::LibraryPolicy),
            ..default()
        })),
        of_organization(at::<policy_vulnerabilities::GetRule>(|aim| own::GetVulnerabilityRuleRequest {
            policy: aim.uid(Kind::LibraryPolicy),
        })),
        of_organization(at::<policy_vulnerabilities::SetRule>(|aim| own::SetVulnerabilityRuleRequest {
            policy: aim.uid(Kind::LibraryPolicy),
            ..default()
        })),
        in_organization::<decisions::ExplainPackage>(|aim| own::ExplainPackageRequest {
            parent: aim.group(),
            purl: "pkg:npm/none@1.0.0".into(),
        }),
        Row {
            // Nothing of this name is stored.
            let_through: NOT_FOUND,
            ..in_organization::<decisions::ExplainDependencies>(|aim| own::ExplainDependenciesRequest {
                parent: aim.group(),
                purl: "pkg:npm/none@1.0.0".into(),
            })
        },
        in_organization::<decisions::EvaluatePolicy>(|aim| own::EvaluatePolicyRequest {
            parent: aim.group(),
            policy: Some(l1::LibraryPolicy { name: aim.name(), ..default() }),
            purls: vec!["pkg:npm/none@1.0.0".into()],
            ..default()
        }),
        in_organization::<decisions::PreviewPolicy>(|aim| own::PreviewPolicyRequest {
            parent: aim.group(),
            policy: Some(l1::LibraryPolicy { name: aim.name(), ..default() }),
            ecosystem: l1::Ecosystem::Java as i32,
            ..default()
        }),
        in_organization::<decisions::GetBlockStatistics>(|aim| own::GetBlockStatisticsRequest {
            parent: aim.group(),
            ..default()
        }),
    ]
}

/// Versions that a group published. It has none of this name.
fn published() -> Vec<Row> {
    let missing = |row: Row| Row { let_through: NOT_FOUND, ..row };
    let (package, version) = ("absent", "1.0");
    vec![
        at::<python_packages::ListVersions>(|aim| own::ListPythonVersionsRequest { parent: aim.group(), ..default() }),
        missing(at::<python_packages::YankVersion>(move |aim| own::YankPythonVersionRequest {
            parent: aim.group(),
            package: package.into(),
            version: version.into(),
            ..default()
        })),
        missing(at::<python_packages::UnyankVersion>(move |aim| own::UnyankPythonVersionRequest {
            parent: aim.group(),
            package: package.into(),
            version: version.into(),
        })),
        missing(at::<python_packages::DeleteVersion>(move |aim| own::DeletePythonVersionRequest {
            parent: aim.group(),
            package: package.into(),
            version: version.into(),
        })),
    ]
}

/// The same of the other ecosystems.
fn published_elsewhere() -> Vec<Row> {
    fn listed<M: Method<Request = own::ListHostedVersionsRequest>>() -> Row {
        at::<M>(|aim| own::ListHostedVersionsRequest { parent: aim.group(), ..default() })
    }
    fn missing<M: Method<Request = own::HostedVersionRequest>>() -> Row {
        let named = |aim: &Aim<'_>| own::HostedVersionRequest {
            parent: aim.group(),
            package: "absent".into(),
            version: "1.0.0".into(),
        };
        Row { let_through: NOT_FOUND, ..at::<M>(named) }
    }
    let warned = at::<javascript_packages::DeprecateVersion>(|aim| own::DeprecateVersionRequest {
        parent: aim.group(),
        package: "absent".into(),
        version: "1.0.0".into(),
        deprecated: "use another".into(),
    });
    vec![
        listed::<javascript_packages::ListVersions>(),
        Row { let_through: NOT_FOUND, ..warned },
        missing::<javascript_packages::UndeprecateVersion>(),
        missing::<javascript_packages::DeleteVersion>(),
        listed::<java_packages::ListVersions>(),
        missing::<java_packages::DeleteVersion>(),
        listed::<go_packages::ListVersions>(),
        missing::<go_packages::DeleteVersion>(),
        listed::<cargo_packages::ListVersions>(),
        missing::<cargo_packages::YankVersion>(),
        missing::<cargo_packages::UnyankVersion>(),
        missing::<cargo_packages::DeleteVersion>(),
        listed::<generic_packages::ListVersions>(),
        missing::<generic_packages::DeleteVersion>(),
    ]
}

/// Indexes that packages are taken from, and names that are not requested there. What is deleted is not there.
fn upstreams() -> Vec<Row> {
    vec![
        in_organization::<package_reservations::ListReservations>(|aim| own::ListPackageReservationsRequest {
            parent: aim.group(),
        }),
        in_organization::<package_reservations::CreateReservation>(|aim| own::CreatePackageReservationRequest {
            parent: aim.group(),
            ecosystem: l1::Ecosystem::Python as i32,
            pattern: "acme-*".into(),
        }),
        Row {
            let_through: NOT_FOUND,
            ..in_organization::<package_reservations::DeleteReservation>(|aim| own::DeletePackageReservationRequest {
                parent: aim.group(),
                ecosystem: l1::Ecosystem::Python as i32,
                pattern: "absent".into(),
            })
        },
        in_organization::<package_upstreams::ListUpstreams>(|aim| own::ListPackageUpstreamsRequest {
            parent: aim.group(),
        }),
        in_organization::<package_upstreams::SetUpstream>(|aim| own::SetPackageUpstreamRequest {
            parent: aim.group(),
            upstream: Some(own::PackageUpstream {
                name: "pypi".into(),
                ecosystem: l1::Ecosystem::Python as i32,
                url: "https://pypi.example/simple/".into(),
                ..default()
            }),
        }),
        Row {
            let_through: NOT_FOUND,
            ..in_organization::<package_upstreams::DeleteUpstream>(|aim| own::DeletePackageUpstreamRequest {
                parent: aim.group(),
                name: "absent".into(),
            })
        },
    ]
}

/// Exceptions of versions, and freezes. Exceptions that are named do not exist.
fn overrides() -> Vec<Row> {
    let asked = |aim: &Aim<'_>| own::CreatePackageExceptionRequest {
        parent: aim.group(),
        purl: "pkg:pypi/example@1.0".into(),
        justification: "mends a fault".into(),
        ..default()
    };
    let absent = |aim: &Aim<'_>| format!("{}/0123456789abcdef", aim.group());
    let missing = |row: Row| Row { let_through: NOT_FOUND, ..row };
    vec![
        in_organization::<package_exceptions::ListExceptions>(|aim| own::ListPackageExceptionsRequest {
            parent: aim.group(),
        }),
        in_organization::<package_exceptions::RequestException>(asked),
        in_organization::<package_exceptions::CreateException>(asked),
        missing(at::<package_exceptions::ApproveException>(move |aim| own::ApprovePackageExceptionRequest {
            uid: absent(aim),
        })),
        missing(at::<package_exceptions::EndException>(move |aim| own::EndPackageExceptionRequest {
            uid: absent(aim),
        })),
        in_organization::<package_exceptions::SetExceptionApproval>(|aim| own::SetExceptionApprovalRequest {
            parent: aim.group(),
            second_person: false,
        }),
        in_organization::<package_freezes::ListFreezes>(|aim| own::ListPackageFreezesRequest { parent: aim.group() }),
        in_organization::<package_freezes::FreezePackages>(|aim| own::FreezePackagesRequest {
            parent: aim.group(),
            justification: "a worm is about".into(),
            ..default()
        }),
        in_organization::<package_freezes::LiftFreeze>(|aim| own::LiftFreezeRequest {
            parent: aim.group(),
            ..default()
        }),
    ]
}

fn remembered() -> Vec<Row> {
    vec![
        in_organization::<cache::Zap>(|aim| l1::ZapResolutionCacheRequest { parent_id: aim.group(), ..default() }),
        in_organization::<cache::SetOptOut>(|aim| l1::ResolutionCacheOptOutRequest {
            parent_id: aim.group(),
            ..default()
        }),
        in_organization::<cache::Status>(|aim| l1::ResolutionCacheStatusFilter { parent_id: aim.group() }),
        in_organization::<cache::List>(|aim| l1::ResolutionCacheEntryFilter { parent_id: aim.group(), ..default() }),
    ]
}
