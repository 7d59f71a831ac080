//! What is in repositories: tags, images, and their metadata.

use bowline_contract::Method;
use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::image_policies as of_images;
use bowline_contract::bowline::registry::v1::rpc::registry_policies as policies_of_owners;
use bowline_contract::bowline::registry::v1::rpc::release_cycles as cycles;
use bowline_contract::bowline::registry::v1::rpc::replication;
use bowline_contract::bowline::registry::v1::rpc::scan_reports::PutScanReport;
use bowline_contract::v1::registry as r1;
use bowline_contract::v1::registry::rpc::registry as methods1;
use bowline_contract::v1::registry::rpc::{charts, entitlements, policies, vulnerabilities};
use bowline_contract::v2::registry as r2;
use bowline_contract::v2::registry::rpc::{images_service as images2, repos_service as repos2, tags_service as tags2};

use super::{Aim, Check, Row, anybody, at, default, delete, list, mask, row};
use crate::contents;
use crate::fixture::Kind;
use crate::oracle::{NOT_FOUND, OK, PRECONDITION};

pub(super) fn everything() -> Vec<Row> {
    [tags(), images(), deployments(), attached(), scans(), policies(), image_policies(), neutral()]
        .into_iter()
        .flatten()
        .collect()
}

pub(super) fn repositories() -> Vec<Row> {
    vec![
        at::<repos2::GetRepo>(|aim| r2::GetRepoRequest { uid: aim.uid(Kind::Repo) }),
        list::<repos2::ListRepos>(Kind::Repo, true, |uidp| r2::ListReposRequest { uidp, ..default() }),
        at::<repos2::CreateRepo>(|aim| r2::CreateRepoRequest {
            parent: aim.group(),
            repo: Some(r2::Repo { name: aim.name(), ..default() }),
        }),
        at::<repos2::UpdateRepo>(|aim| r2::UpdateRepoRequest {
            repo: Some(r2::Repo { uid: aim.uid(Kind::Repo), description: aim.name(), ..default() }),
            update_mask: Some(mask("description")),
        }),
        delete::<repos2::DeleteRepo>(Kind::Repo, |uid| r2::DeleteRepoRequest { uid }),
        at::<repos2::GetRepoReadme>(|aim| r2::GetRepoReadmeRequest { uid: aim.uid(Kind::Repo) }),
        at::<repos2::UpdateRepoReadme>(|aim| r2::UpdateRepoReadmeRequest {
            repo_readme: Some(r2::RepoReadme { uid: aim.uid(Kind::Repo), content: aim.name() }),
            update_mask: Some(mask("content")),
        }),
        at::<methods1::CreateRepo>(|aim| r1::CreateRepoRequest {
            parent_id: aim.group(),
            repo: Some(r1::Repo { name: aim.name(), ..default() }),
            prevent_existing: true,
        }),
        at::<methods1::UpdateRepo>(|aim| r1::Repo { id: aim.uid(Kind::Repo), name: aim.name(), ..default() }),
        list::<methods1::ListRepos>(Kind::Repo, false, |uidp| r1::RepoFilter { uidp, ..default() }),
        delete::<methods1::DeleteRepo>(Kind::Repo, |id| r1::DeleteRepoRequest { id }),
    ]
}

/// The image that every repository of the fixture has.
fn digest() -> String {
    contents::digest('a')
}

/// A list that never refuses, whose items are no resources of the fixture.
fn unlisted<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    row::<M>(Check::List { refuses: false }, build)
}

fn tags() -> Vec<Row> {
    let tag1 = |aim: &Aim<'_>| r1::Tag { name: aim.name(), digest: digest(), ..default() };
    let tag2 = |aim: &Aim<'_>| r2::Tag { name: aim.name(), digest: digest(), ..default() };
    vec![
        at::<tags2::GetTag>(|aim| r2::GetTagRequest { uid: aim.uid(Kind::Tag) }),
        list::<tags2::ListTags>(Kind::Tag, true, |uidp| r2::ListTagsRequest { uidp, ..default() }),
        at::<tags2::CreateTag>(move |aim| r2::CreateTagRequest { parent: aim.uid(Kind::Repo), tag: Some(tag2(aim)) }),
        delete::<tags2::DeleteTag>(Kind::Tag, |uid| r2::DeleteTagRequest { uid }),
        at::<methods1::CreateTag>(move |aim| r1::CreateTagRequest {
            repo_id: aim.uid(Kind::Repo),
            tag: Some(tag1(aim)),
        }),
        at::<methods1::UpdateTag>(move |aim| r1::Tag { id: aim.uid(Kind::Tag), ..tag1(aim) }),
        list::<methods1::ListTags>(Kind::Tag, false, |uidp| r1::TagFilter { uidp, ..default() }),
        delete::<methods1::DeleteTag>(Kind::Tag, |id| r1::DeleteTagRequest { id }),
        unlisted::<methods1::ListEolTags>(|aim| r1::EolTagFilter { uidp: Some(aim.below()), ..default() }),
        at::<methods1::ListTagHistory>(|aim| r1::TagHistoryFilter { parent_id: aim.uid(Kind::Tag), ..default() }),
        at::<methods1::GetRepoTagsSummary>(|aim| r1::GetRepoTagsSummaryRequest {
            repo_id: aim.uid(Kind::Repo),
            ..default()
        }),
        at::<methods1::GetUpdateStatus>(|aim| r1::UpdateStatusRequest { repo_id: aim.uid(Kind::Repo) }),
    ]
}

fn images() -> Vec<Row> {
    let repo = |aim: &Aim<'_>| aim.uid(Kind::Repo);
    vec![
        at::<images2::GetArchitectures>(move |aim| r2::GetArchitecturesRequest {
            repo_uid: repo(aim),
            digest: digest(),
        }),
        at::<images2::GetSize>(move |aim| r2::GetSizeRequest { repo_uid: repo(aim), digest: digest(), ..default() }),
        at::<methods1::GetArchs>(move |aim| r1::ArchRequest { repo_id: repo(aim), digest: digest() }),
        at::<methods1::GetSize>(move |aim| r1::SizeRequest { repo_id: repo(aim), digest: digest(), ..default() }),
        at::<methods1::GetImageConfig>(move |aim| r1::ImageConfigRequest {
            repo_id: repo(aim),
            digest: digest(),
            ..default()
        }),
        at::<methods1::ListManifestMetadata>(move |aim| r1::ManifestMetadataFilter { repo_id: repo(aim), ..default() }),
        at::<methods1::GetManifestDigestCount>(|aim| r1::ManifestDigestCountFilter { parent_id: aim.group() }),
        at::<methods1::GetRepoCountBySource>(move |aim| r1::GetRepoCountBySourceRequest { id: repo(aim) }),
        at::<methods1::GetSyncStatus>(move |aim| r1::GetSyncStatusRequest { repo_id: repo(aim) }),
        at::<methods1::ListSyncStatuses>(|aim| r1::ListSyncStatusesRequest { registry_id: aim.group() }),
        at::<policies::CheckPolicies>(move |aim| r1::CheckPoliciesRequest { repo_id: repo(aim), digest: digest() }),
    ]
}

/// A method of an organization's whole registry.
fn in_organization<M: Method>(build: impl Fn(String) -> M::Request + Send + Sync + 'static) -> Row {
    Row { only_organizations: true, ..row::<M>(Check::Scope, move |aim| build(aim.group())) }
}

/// Every lasting repository has a deployment; one is created in a repository that has none.
fn deployments() -> Vec<Row> {
    let charts = |aim: &Aim<'_>| vec![r1::HelmChart { repo: aim.name(), ..default() }];
    vec![
        at::<methods1::GetDeployment>(|aim| r1::GetDeploymentRequest { repo_id: aim.uid(Kind::Repo) }),
        Row {
            takes: Some(Kind::Repo),
            ..at::<methods1::CreateDeployment>(move |aim| r1::CreateDeploymentRequest {
                parent_id: aim.doomed.clone(),
                charts: charts(aim),
            })
        },
        at::<methods1::UpdateDeployment>(move |aim| r1::UpdateDeploymentRequest {
            repo_id: aim.uid(Kind::Repo),
            charts: charts(aim),
        }),
        in_organization::<methods1::GetRegistrySettings>(|registry_id| r1::GetRegistrySettingsRequest { registry_id }),
        in_organization::<methods1::UpdateRegistrySettings>(|registry_id| r1::RegistrySettings {
            registry_id,
            ..default()
        }),
    ]
}

/// Nothing is attached to the image of the fixture, and it is no chart.
fn attached() -> Vec<Row> {
    fn none<M: Method>(build: impl Fn(String) -> M::Request + Send + Sync + 'static) -> Row {
        Row { let_through: NOT_FOUND, ..at::<M>(move |aim| build(aim.uid(Kind::Repo))) }
    }
    vec![
        none::<methods1::GetSbom>(|repo_id| r1::SbomRequest { repo_id, digest: digest(), ..default() }),
        none::<methods1::GetRawSbom>(|repo_id| r1::RawSbomRequest { repo_id, digest: digest(), ..default() }),
        none::<methods1::GetVulnReport>(|repo_id| r1::VulnReportRequest { repo_id, digest: contents::digest('f') }),
        none::<methods1::GetChart>(|repo_id| r1::GetChartRequest { repo_id, digest: digest() }),
        none::<methods1::GetHelm>(|repo_id| r1::HelmRequest { repo_id, digest: digest(), ..default() }),
        at::<methods1::ListChartsByImageRepo>(|aim| r1::ListChartsByImageRepoRequest { repo_id: aim.uid(Kind::Repo) }),
        Row {
            let_through: NOT_FOUND,
            also: super::sources::PUSH,
            ..at::<charts::AddChart>(|aim| r1::AddChartRequest {
                parent_id: aim.group(),
                source_repo_id: aim.uid(Kind::Repo),
                ..default()
            })
        },
    ]
}

/// Reports are seen with the repository that they are of; what is seen has no UIDP that the table could look for.
fn scans() -> Vec<Row> {
    let counts = |_: &Aim<'_>| r1::VulnCountReportFilter { repo: "nothing".into(), ..default() };
    vec![
        at::<PutScanReport>(|aim| own::PutScanReportRequest {
            repo_uid: aim.uid(Kind::Repo),
            digest: digest(),
            scanner: own::ScannerName::Grype as i32,
            report: br#"{"matches":[]}"#.to_vec(),
        }),
        anybody::<vulnerabilities::ListVulnReports>(OK, |aim| r1::VulnReportFilter {
            repo_id: aim.uid(Kind::Repo),
            ..default()
        }),
        anybody::<vulnerabilities::GetRawVulnReport>(NOT_FOUND, |_| r1::GetRawVulnReportRequest {
            digest: contents::digest('f'),
            ..default()
        }),
        anybody::<vulnerabilities::ListVulnCountReports>(OK, counts),
        anybody::<vulnerabilities::ListCumulativeVulnCountReports>(OK, counts),
    ]
}

/// `registry/image_policies.rs` checks who may except images, and where.
fn image_policies() -> Vec<Row> {
    let rule = own::ImageRule {
        name: "listed".into(),
        mode: own::ImagePolicyMode::Log as i32,
        sbom: Some(own::SbomRequirement {}),
        ..default()
    };
    vec![
        at::<of_images::GetImagePolicy>(|aim| own::GetImagePolicyRequest { uid: aim.group() }),
        at::<of_images::UpdateImagePolicy>(move |aim| own::UpdateImagePolicyRequest {
            policy: Some(own::ImagePolicy { uid: aim.group(), rules: vec![rule.clone()], ..default() }),
            update_mask: Some(mask("rules")),
        }),
        at::<of_images::ListImagePolicies>(|aim| own::ListImagePoliciesRequest { uid: aim.group(), ..default() }),
        at::<of_images::PreviewImagePolicy>(|aim| own::PreviewImagePolicyRequest { uid: aim.group(), ..default() }),
        at::<of_images::CreateImageException>(|aim| own::CreateImageExceptionRequest {
            uid: aim.group(),
            exception: Some(own::ImageException {
                digest: digest(),
                expire_time: Some(prost_types::Timestamp {
                    seconds: aim.fixture.server.clock().seconds() + 3600,
                    nanos: 0,
                }),
                justification: "matrix".into(),
                ..default()
            }),
        }),
        Row {
            let_through: NOT_FOUND,
            ..at::<of_images::DeleteImageException>(|aim| own::DeleteImageExceptionRequest {
                uid: aim.group(),
                exception_id: "0".repeat(16),
            })
        },
    ]
}

fn policies() -> Vec<Row> {
    let policy = |uid| Some(own::RegistryPolicy { uid, byte_quota: 5, ..default() });
    vec![
        at::<policies_of_owners::GetRepoPolicy>(|aim| own::GetRepoPolicyRequest { uid: aim.uid(Kind::Repo) }),
        at::<policies_of_owners::UpdateRepoPolicy>(move |aim| own::UpdateRepoPolicyRequest {
            policy: policy(aim.uid(Kind::Repo)),
            update_mask: Some(mask("byte_quota")),
        }),
        at::<policies_of_owners::GetGroupPolicy>(|aim| own::GetGroupPolicyRequest { uid: aim.group() }),
        at::<policies_of_owners::UpdateGroupPolicy>(move |aim| own::UpdateGroupPolicyRequest {
            policy: policy(aim.group()),
            update_mask: Some(mask("byte_quota")),
        }),
        at::<policies_of_owners::PreviewRetention>(|aim| own::PreviewRetentionRequest {
            repo_uid: aim.uid(Kind::Repo),
            retention: None,
        }),
        at::<policies_of_owners::PreviewGroupRetention>(|aim| own::PreviewGroupRetentionRequest {
            parent: aim.group(),
            ..default()
        }),
        at::<policies_of_owners::ApplyRetention>(|aim| own::ApplyRetentionRequest { repo_uid: aim.uid(Kind::Repo) }),
        at::<policies_of_owners::GetEffectivePolicy>(|aim| own::GetEffectivePolicyRequest {
            repo_uid: aim.uid(Kind::Repo),
        }),
        at::<policies_of_owners::ListPolicies>(|aim| own::ListPoliciesRequest { uid: aim.group(), ..default() }),
        at::<policies_of_owners::ListRetentionRuns>(|aim| own::ListRetentionRunsRequest {
            repo_uid: aim.uid(Kind::Repo),
        }),
        at::<replication::ListUpstreams>(|aim| own::ListUpstreamsRequest { parent: aim.group(), ..default() }),
        // A repository that is not there: others have upstreams at times, and no request leaves for this table.
        Row {
            let_through: NOT_FOUND,
            ..at::<replication::CheckUpstream>(|aim| own::CheckUpstreamRequest {
                repo_uid: format!("{}/00000000000000fd", aim.group()),
            })
        },
        at::<replication::FetchNow>(|aim| own::FetchNowRequest { repo_uid: aim.uid(Kind::Repo) }),
    ]
}

/// What there is nothing of: no place needs to exist for that.
fn nothing<M: Method>(build: impl Fn(String) -> M::Request + Send + Sync + 'static) -> Row {
    Row { absent_is_fine: true, ..at::<M>(move |aim| build(aim.group())) }
}

fn neutral() -> Vec<Row> {
    vec![
        nothing::<entitlements::ListEntitlements>(|parent| r1::EntitlementFilter { parent }),
        nothing::<entitlements::ListEntitlementImages>(|parent| r1::EntitlementImagesFilter { parent }),
        nothing::<entitlements::ListEntitlementCatalogImages>(|parent| r1::EntitlementImagesFilter { parent }),
        nothing::<entitlements::Summary>(|parent| r1::EntitlementSummaryRequest { parent }),
        nothing::<entitlements::GetEffectiveEntitlements>(|parent| r1::GetEffectiveEntitlementsRequest { parent }),
        nothing::<entitlements::GetFeatures>(|parent| r1::GetFeaturesRequest { parent }),
        anybody::<methods1::ListBuildReports>(OK, |_| default()),
        anybody::<methods1::GetBuildStatus>(OK, |_| default()),
        anybody::<methods1::GetPackageVersionMetadata>(NOT_FOUND, |_| r1::PackageVersionMetadataRequest {
            package: "python".into(),
        }),
        anybody::<cycles::ListReleaseProducts>(OK, |_| default()),
        Row {
            absent_is_fine: true,
            ..row::<cycles::ImportReleaseCycles>(Check::Operator, |_| own::ImportReleaseCyclesRequest {
                removed_names: vec!["matrix".into()],
                ..default()
            })
        },
        anybody::<charts::FindChart>(PRECONDITION, |_| r1::FindChartRequest { name: "redis".into(), ..default() }),
    ]
}
