//! Packages of libraries, who may have them, and what is withheld.

use bowline_contract::bowline::libraries::v1::rpc::catalog::{ImportMalware, ImportVersions};
use bowline_contract::bowline::libraries::v1::rpc::policy_tests::SetPolicyTests;
use bowline_contract::bowline::libraries::v1::{
    ExpectedDecision, ImportMalwareRequest, ImportVersionsRequest, PackageFile, PackageVersion, PolicyTest,
    SetPolicyTestsRequest,
};
use bowline_contract::v1::libraries::rpc::entitlements::Create as CreateEntitlement;
use bowline_contract::v1::libraries::rpc::library_policies::CreatePolicy;
use bowline_contract::v1::libraries::rpc::library_policy_bindings::CreateBinding;
use bowline_contract::v1::libraries::{
    CreateEntitlementRequest, CreateLibraryPolicyBindingRequest, CreateLibraryPolicyRequest, Ecosystem,
    LibraryAllowListEntry, LibraryBlockListEntry, LibraryPolicy, LibraryPolicyBinding, LibraryPolicyBindingMode,
    MalwareBlockListEntry, MalwareScope, Policy, SourceType,
};
use bowline_core::{Clock as _, hex};
use bowline_server::StartError;
use prost_types::Timestamp;

use crate::clock::SECOND;
use crate::organization::{OWNER, Organization};
use crate::random::Random;
use crate::world::{OPERATOR, World};

/// Ecosystem, name, license, and versions, the oldest first.
type Library = (Ecosystem, &'static str, &'static str, &'static [&'static str]);

const LIBRARIES: &[Library] = &[
    (Ecosystem::Javascript, "express-lite", "MIT", &["5.0.0", "5.1.0", "5.1.1", "5.2.0"]),
    (Ecosystem::Javascript, "left-align", "MIT", &["1.2.0", "1.3.0"]),
    (Ecosystem::Javascript, "color-names-plus", "WTFPL", &["2.0.0"]),
    (Ecosystem::Javascript, "date-tools", "AGPL-3.0-only", &["4.1.0", "4.2.0"]),
    (Ecosystem::Python, "frame-kit", "BSD-3-Clause", &["2.2.0", "2.3.0", "2.3.1"]),
    (Ecosystem::Python, "http-simple", "Apache-2.0", &["0.27.0", "0.28.0"]),
    (Ecosystem::Python, "yaml-reader", "MIT", &["6.0.1", "6.0.2"]),
    (Ecosystem::Java, "org.example:log-kit", "Apache-2.0", &["4.1.0", "4.2.0", "4.2.1"]),
    (Ecosystem::Java, "org.example:json-bind", "Apache-2.0", &["2.18.0", "2.19.0"]),
];

const MALWARE: &[(&str, &str, &str, &str)] = &[
    ("npm", "expres-lite", "", "Steals environment variables at installation"),
    ("npm", "color-names-plus", "2.0.1", "Downloads a program at installation"),
    ("PyPI", "http-simpel", "", "Sends tokens of cloud accounts to another host"),
    ("Maven", "org.exemple:log-kit", "", "Replaces the library of a similar name"),
];

pub(crate) async fn create(world: &mut World, organization: &Organization) -> Result<(), StartError> {
    world.move_to(1, 10);
    let now = world.clock().now() / SECOND;
    let versions = LIBRARIES.iter().flat_map(|library| published(library, now)).collect();
    world.call::<ImportVersions>(OPERATOR, ImportVersionsRequest { versions, dry_run: false }).await?;
    let entries = MALWARE.iter().zip(990_001..).map(|(entry, number)| malware(entry, number, now)).collect();
    world.call::<ImportMalware>(OPERATOR, ImportMalwareRequest { entries }).await?;
    for ecosystem in [Ecosystem::Javascript, Ecosystem::Python, Ecosystem::Java] {
        let request = CreateEntitlementRequest {
            parent_id: organization.uid.clone(),
            ecosystem: ecosystem as i32,
            policy: Policy::ChainguardAndUpstream as i32,
            cooldown_days: 3,
            ..CreateEntitlementRequest::default()
        };
        world.call::<CreateEntitlement>(OPERATOR, request).await?;
    }
    policies(world, organization).await
}

/// The versions of a library, a month between two of them.
fn published((ecosystem, name, license, versions): &Library, now: i64) -> Vec<PackageVersion> {
    let months = |at: usize| (versions.len() - at) as i64 * 30 * 24 * 3600;
    versions
        .iter()
        .enumerate()
        .map(|(at, version)| {
            let mut random = Random::of(&format!("{name} {version}"));
            let file = PackageFile {
                name: file_name(*ecosystem, name, version),
                size_bytes: random.between(20_000, 900_000) as i64,
                sha256: hex(&random.bytes(32)),
                sha512: hex(&random.bytes(64)),
            };
            PackageVersion {
                ecosystem: *ecosystem as i32,
                name: (*name).into(),
                version: (*version).into(),
                source: SourceType::UpstreamRegistry as i32,
                license: (*license).into(),
                publish_time: Some(Timestamp { seconds: now - months(at), nanos: 0 }),
                files: vec![file],
                ..PackageVersion::default()
            }
        })
        .collect()
}

fn file_name(ecosystem: Ecosystem, name: &str, version: &str) -> String {
    match ecosystem {
        Ecosystem::Python => format!("{}-{version}-py3-none-any.whl", name.replace('-', "_")),
        Ecosystem::Java => format!("{}-{version}.jar", name.split(':').next_back().unwrap_or(name)),
        _ => format!("{name}-{version}.tgz"),
    }
}

fn malware(
    (ecosystem, package, version, text): &(&str, &str, &str, &str),
    number: u32,
    now: i64,
) -> MalwareBlockListEntry {
    let scope = if version.is_empty() { MalwareScope::Package } else { MalwareScope::Version };
    MalwareBlockListEntry {
        package_name: (*package).into(),
        version: (*version).into(),
        scope: scope as i32,
        malid: format!("MAL-2026-{number}"),
        source: "demonstration".into(),
        blocked_at: Some(Timestamp { seconds: now, nanos: 0 }),
        ecosystem: (*ecosystem).into(),
        reason: vec![(*text).into()],
        description: format!("{text}. This entry is generated."),
    }
}

async fn policies(world: &mut World, organization: &Organization) -> Result<(), StartError> {
    let block = |purl: &str| LibraryBlockListEntry { purl: purl.into() };
    let standard = LibraryPolicy {
        name: "standard".into(),
        description: "What every build of Acme may use".into(),
        cooldown_days: Some(7),
        block_list: vec![block("pkg:npm/left-align@1.2.0")],
        allow_list: vec![LibraryAllowListEntry {
            purl: "pkg:pypi/frame-kit".into(),
            bypass_cooldown: true,
            justification: "Its maintainers are ours".into(),
            ..LibraryAllowListEntry::default()
        }],
        blocked_licenses: vec!["AGPL-3.0-only".into()],
        ..LibraryPolicy::default()
    };
    let strict = LibraryPolicy {
        name: "strict".into(),
        description: "For what handles payments; on trial".into(),
        cooldown_days: Some(21),
        blocked_licenses: vec!["AGPL-3.0-only".into(), "WTFPL".into()],
        ..LibraryPolicy::default()
    };
    let mut made = Vec::new();
    for policy in [standard, strict] {
        let request = CreateLibraryPolicyRequest { parent_id: organization.uid.clone(), policy: Some(policy) };
        made.push(world.call::<CreatePolicy>(OWNER, request).await?.id);
    }
    let [standard, strict] = made.as_slice() else { return Ok(()) };
    for (policy, ecosystem, mode) in [
        (standard, Ecosystem::Javascript, LibraryPolicyBindingMode::Enforced),
        (standard, Ecosystem::Python, LibraryPolicyBindingMode::Enforced),
        (strict, Ecosystem::Java, LibraryPolicyBindingMode::Log),
    ] {
        let binding = LibraryPolicyBinding {
            policy: policy.clone(),
            ecosystem: ecosystem as i32,
            mode: mode as i32,
            ..LibraryPolicyBinding::default()
        };
        let request = CreateLibraryPolicyBindingRequest { parent_id: organization.uid.clone(), binding: Some(binding) };
        world.call::<CreateBinding>(OWNER, request).await?;
    }
    let test = |purl: &str, expected: ExpectedDecision, reason: &str| PolicyTest {
        purl: purl.into(),
        expected: expected as i32,
        reason: reason.into(),
        ..PolicyTest::default()
    };
    let tests = vec![
        test("pkg:npm/left-align@1.2.0", ExpectedDecision::Refused, "BLOCK_LIST"),
        test("pkg:npm/left-align@1.3.0", ExpectedDecision::Allowed, ""),
    ];
    let request = SetPolicyTestsRequest { policy: standard.clone(), tests, force: false };
    world.call::<SetPolicyTests>(OWNER, request).await?;
    Ok(())
}
