//! Ninety days of releases, scans and pulls.

use std::collections::BTreeMap;

use bowline_contract::bowline::registry::v1::rpc::registry_policies::{
    ApplyRetention, UpdateGroupPolicy, UpdateRepoPolicy,
};
use bowline_contract::bowline::registry::v1::rpc::scan_reports::PutScanReport;
use bowline_contract::bowline::registry::v1::{
    ApplyRetentionRequest, PutScanReportRequest, RegistryPolicy, Retention, ScannerName, UpdateGroupPolicyRequest,
    UpdateRepoPolicyRequest, Upstream,
};
use bowline_contract::v2::registry::rpc::repos_service::{CreateRepo, UpdateRepoReadme};
use bowline_contract::v2::registry::{CreateRepoRequest, Repo, RepoReadme, UpdateRepoReadmeRequest};
use bowline_core::Clock as _;
use bowline_server::StartError;
use prost_types::FieldMask;
use serde_json::{Value, json};

use crate::DAYS;
use crate::advisories::Advisories;
use crate::catalog::{Installed, REPOSITORIES, Repository, findings, fixed_version};
use crate::clock::SECOND;
use crate::gate;
use crate::image::Release;
use crate::organization::{EDITOR, NAME, OWNER, Organization, SCANNER};
use crate::random::Random;
use crate::records;
use crate::registry::{self, Pushed};
use crate::world::World;

/// Releases that have a tag of their own at the same time.
const SUPPORTED: i64 = 3;

/// A repository with what was released of it.
struct Released {
    repository: &'static Repository,
    uid: String,
    path: String,
    pushed: Pushed,
    releases: i64,
    latest: Option<Latest>,
}

struct Latest {
    digest: String,
    packages: Vec<Installed>,
}

/// Lives through the days one by one.
pub(crate) async fn create(
    world: &mut World,
    organization: &Organization,
    advisories: &mut Advisories,
) -> Result<(), StartError> {
    let mut all = Vec::new();
    world.move_to(1, 11);
    for repository in REPOSITORIES {
        all.push(create_repository(world, organization, repository).await?);
    }
    upstreams(world, organization).await?;
    let by_name: BTreeMap<&str, String> = all.iter().map(|one| (one.repository.name, one.uid.clone())).collect();
    policies(world, organization, &by_name).await?;
    let mut random = Random::of("days");
    for (day, first) in (2..DAYS).zip(0..) {
        world.move_to(day, 7);
        for (one, offset) in all.iter_mut().zip(0..) {
            if first == offset % 3 || (day + offset * 5) % one.repository.cadence == 0 {
                release(world, one, day).await?;
            }
        }
        world.move_to(day, 10);
        for (one, offset) in all.iter().zip(0..) {
            if (day + offset) % 7 == 0 {
                scan(world, one, day).await?;
            }
        }
        world.move_to(day, 12);
        records::live_through(world, day).await?;
        advisories.live_through(world, day).await?;
        world.move_to(day, 13);
        pulls(world, &all, day, &mut random).await?;
        if day % 28 == 27 {
            let repo_uid = by_name.get("assets").cloned().unwrap_or_default();
            world.call::<ApplyRetention>(EDITOR, ApplyRetentionRequest { repo_uid }).await?;
        }
    }
    gate::create(world, organization, by_name.get("assets").map_or("", String::as_str)).await
}

async fn create_repository(
    world: &mut World,
    organization: &Organization,
    repository: &'static Repository,
) -> Result<Released, StartError> {
    let Repository { group, name, description, .. } = repository;
    let repo = Repo { name: (*name).into(), description: (*description).into(), ..Repo::default() };
    let request = CreateRepoRequest { parent: organization.group(group)?, repo: Some(repo) };
    let uid = world.call::<CreateRepo>(EDITOR, request).await?.uid;
    let content = format!(
        "# {name}\n\n{description}.\n\n```sh\ndocker pull registry.acme.example/{NAME}/{group}/{name}:latest\n```\n\n\
         Built from `github.com/acme/{name}`; ask in `#{group}`.\n"
    );
    let readme = RepoReadme { uid: uid.clone(), content };
    let request = UpdateRepoReadmeRequest { repo_readme: Some(readme), update_mask: None };
    world.call::<UpdateRepoReadme>(OWNER, request).await?;
    let path = format!("{NAME}/{group}/{name}");
    Ok(Released { repository, uid, path, pushed: Pushed::default(), releases: 0, latest: None })
}

/// Repositories that have images of another registry on demand; no server has its name.
async fn upstreams(world: &mut World, organization: &Organization) -> Result<(), StartError> {
    let group = organization.group("upstreams")?;
    let upstream = Upstream { url: "https://registry.upstream.example".into(), ..Upstream::default() };
    let policy = RegistryPolicy { uid: group.clone(), upstream: Some(upstream), ..RegistryPolicy::default() };
    let request = UpdateGroupPolicyRequest { policy: Some(policy), update_mask: Some(mask(&["upstream"])) };
    world.call::<UpdateGroupPolicy>(OWNER, request).await?;
    for (name, description) in [("postgres", "PostgreSQL, as its project releases it"), ("redis", "Redis of upstream")]
    {
        let repo = Repo { name: name.into(), description: description.into(), ..Repo::default() };
        let request = CreateRepoRequest { parent: group.clone(), repo: Some(repo) };
        world.call::<CreateRepo>(EDITOR, request).await?;
    }
    Ok(())
}

async fn policies(
    world: &mut World,
    organization: &Organization,
    repositories: &BTreeMap<&str, String>,
) -> Result<(), StartError> {
    let whole = RegistryPolicy {
        uid: organization.uid.clone(),
        byte_quota: 50 << 30,
        retention: Some(Retention { keep_last: 30, keep_days: 180, keep_patterns: vec!["latest".into()] }),
        ..RegistryPolicy::default()
    };
    let request =
        UpdateGroupPolicyRequest { policy: Some(whole), update_mask: Some(mask(&["byte_quota", "retention"])) };
    world.call::<UpdateGroupPolicy>(OWNER, request).await?;
    let payments = RegistryPolicy {
        uid: organization.group("payments")?,
        immutable_tag_patterns: vec!["[0-9]+\\.[0-9]+\\.[0-9]+".into()],
        byte_quota: 10 << 30,
        ..RegistryPolicy::default()
    };
    let fields = mask(&["immutable_tag_patterns", "byte_quota"]);
    let request = UpdateGroupPolicyRequest { policy: Some(payments), update_mask: Some(fields) };
    world.call::<UpdateGroupPolicy>(OWNER, request).await?;
    let assets = RegistryPolicy {
        uid: repositories.get("assets").cloned().unwrap_or_default(),
        retention: Some(Retention { keep_last: 3, keep_days: 14, keep_patterns: vec!["latest".into()] }),
        ..RegistryPolicy::default()
    };
    let request = UpdateRepoPolicyRequest { policy: Some(assets), update_mask: Some(mask(&["retention"])) };
    world.call::<UpdateRepoPolicy>(EDITOR, request).await?;
    Ok(())
}

fn mask(paths: &[&str]) -> FieldMask {
    FieldMask { paths: paths.iter().map(|path| (*path).to_owned()).collect() }
}

async fn release(world: &mut World, one: &mut Released, day: i64) -> Result<(), StartError> {
    let version = version(one.releases);
    let packages = one.repository.installed(day);
    let made = Release::new(one.repository, &version, &packages, world.clock().now())?;
    let pusher = format!("ci-{}", one.repository.group);
    registry::push(world, &pusher, &one.path, &made, &[&version, "latest"], &mut one.pushed).await?;
    // Payments keeps all of its releases: they are immutable there, and show what old images come to.
    if one.releases >= SUPPORTED && one.repository.group != "payments" {
        registry::untag(world, EDITOR, &one.path, &self::version(one.releases - SUPPORTED)).await?;
    }
    one.releases += 1;
    one.latest = Some(Latest { digest: made.index.digest, packages });
    Ok(())
}

/// The name of a release by its number.
fn version(number: i64) -> String {
    format!("1.{}.{}", number / 3, number % 3)
}

/// The report of a scanner about the newest image.
async fn scan(world: &mut World, one: &Released, day: i64) -> Result<(), StartError> {
    let Some(latest) = &one.latest else { return Ok(()) };
    let matches: Vec<Value> = findings(&latest.packages, day)
        .into_iter()
        .map(|(found, package)| {
            let fix = fixed_version(found);
            json!({
                "vulnerability": {
                    "id": found.id, "severity": found.severity, "description": found.text,
                    "fix": { "versions": fix.into_iter().collect::<Vec<_>>(),
                        "state": if fix.is_some() { "fixed" } else { "not-fixed" } },
                    "cvss": [{ "version": "3.1", "metrics": { "baseScore": found.score } }],
                },
                "artifact": { "name": package.name, "version": package.version, "type": package.kind,
                    "purl": package.purl() },
            })
        })
        .collect();
    let report = json!({ "matches": matches, "descriptor": { "name": "grype", "version": "0.99.0" } });
    let request = PutScanReportRequest {
        repo_uid: one.uid.clone(),
        digest: latest.digest.clone(),
        scanner: ScannerName::Grype as i32,
        report: report.to_string().into_bytes(),
    };
    world.call::<PutScanReport>(SCANNER, request).await?;
    Ok(())
}

/// Pulls of the clusters from noon on: more in time, and most of the first repositories of the list.
async fn pulls(world: &mut World, all: &[Released], day: i64, random: &mut Random) -> Result<(), StartError> {
    let pulled: Vec<&Released> = all.iter().filter(|one| one.latest.is_some()).collect();
    let Some(last) = (pulled.len() as u64).checked_sub(1) else { return Ok(()) };
    for _ in 0..random.between(1, 6) + day as u64 / 30 {
        world.clock().advance(random.between(5, 60) as i64 * 60 * SECOND);
        let at = random.between(0, last).min(random.between(0, last));
        let cluster = *random.one_of(&["cluster-production", "cluster-production", "cluster-staging"]);
        registry::pull(world, cluster, &pulled[at as usize].path, "latest").await?;
    }
    Ok(())
}
