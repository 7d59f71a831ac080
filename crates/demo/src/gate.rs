//! Image policies of the organization, and an exception.

use bowline_contract::bowline::registry::v1::rpc::image_policies::{CreateImageException, UpdateImagePolicy};
use bowline_contract::bowline::registry::v1::{
    AgeRequirement, CreateImageExceptionRequest, ImageException, ImagePolicy, ImagePolicyMode, ImageRule,
    LicenseRequirement, SbomRequirement, UpdateImagePolicyRequest, VulnerabilityRequirement,
};
use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_core::Clock as _;
use bowline_server::StartError;
use prost_types::{FieldMask, Timestamp};

use crate::clock::{DAY, SECOND};
use crate::organization::{OWNER, Organization};
use crate::world::World;

/// Sets the policies of the organization and of one of its groups; `repository` is excepted for three weeks.
pub(crate) async fn create(world: &mut World, organization: &Organization, repository: &str) -> Result<(), StartError> {
    let rule =
        |name: &str, mode: ImagePolicyMode| ImageRule { name: name.into(), mode: mode.into(), ..ImageRule::default() };
    let fixable =
        VulnerabilityRequirement { greatest: Severity::High.into(), fix_days: 30, report_days: 14, unfixed: false };
    let denied = LicenseRequirement { denied: vec!["AGPL-3.0-only".into()], allow_unlicensed: true };
    let rules = vec![
        ImageRule { sbom: Some(SbomRequirement {}), ..rule("sbom", ImagePolicyMode::Enforce) },
        ImageRule { vulnerability: Some(fixable), ..rule("fixable-critical", ImagePolicyMode::Log) },
        ImageRule { license: Some(denied), ..rule("licenses", ImagePolicyMode::Log) },
    ];
    set(world, ImagePolicy { uid: organization.uid.clone(), rules, grace_days: 7, ..ImagePolicy::default() }).await?;
    let age = AgeRequirement { max_days: 60 };
    let rules = vec![ImageRule { age: Some(age), ..rule("rebuilt", ImagePolicyMode::Log) }];
    let uid = organization.group("payments")?;
    set(world, ImagePolicy { uid, rules, ..ImagePolicy::default() }).await?;
    let end = (world.clock().now() + 21 * DAY) / SECOND;
    let exception = ImageException {
        rules: vec!["fixable-critical".into()],
        repo_uid: repository.into(),
        expire_time: Some(Timestamp { seconds: end, nanos: 0 }),
        justification: "The fixed base image fails its load test; SEC-412".into(),
        ..ImageException::default()
    };
    let request = CreateImageExceptionRequest { uid: organization.uid.clone(), exception: Some(exception) };
    world.call::<CreateImageException>(OWNER, request).await?;
    Ok(())
}

async fn set(world: &mut World, policy: ImagePolicy) -> Result<(), StartError> {
    let paths = vec!["rules".into(), "grace_days".into()];
    let request = UpdateImagePolicyRequest { policy: Some(policy), update_mask: Some(FieldMask { paths }) };
    world.call::<UpdateImagePolicy>(OWNER, request).await?;
    Ok(())
}
