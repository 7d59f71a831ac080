//! Advisories about packages of the organization's own distribution, from detection to review.

use std::collections::BTreeMap;

use bowline_contract::bowline::vulnerabilities::v1::rpc::advisory_settings_service::UpdateAdvisorySettings;
use bowline_contract::bowline::vulnerabilities::v1::{AdvisorySettings, UpdateAdvisorySettingsRequest};
use bowline_contract::v1::vulnerabilities::advisory_event::{
    Detection, FalsePositiveDetermination, FixNotPlanned, Fixed, PendingUpstreamFix, TruePositiveDetermination, Type,
    detection, false_positive_determination,
};
use bowline_contract::v1::vulnerabilities::rpc::advisories::{Create, CreateAdvisoryEvent, UpdateAdvisoryEvent};
use bowline_contract::v1::vulnerabilities::{
    Advisory, AdvisoryEvent, CreateAdvisoryEventRequest, CreateAdvisoryRequest, ReviewStatus,
};
use bowline_server::StartError;
use prost_types::FieldMask;

use crate::DAYS;
use crate::catalog::{VULNERABILITIES, Vulnerability, fixed_version};
use crate::organization::{ANALYST, OWNER, Organization, REVIEWER};
use crate::world::World;

/// Days from a publication to the detection here, to the statement, and to its review.
const DETECTED: i64 = 1;
const STATED: i64 = 3;
const REVIEWED: i64 = 5;
/// Statements after this day are not reviewed any more when the history ends.
const LAST_REVIEW: i64 = DAYS - 12;

/// The advisories of the organization while the days pass.
pub(crate) struct Advisories {
    organization: String,
    group: Option<String>,
    advisories: BTreeMap<&'static str, String>,
    /// Events that wait for their review.
    pending: BTreeMap<&'static str, String>,
}

impl Advisories {
    pub(crate) fn new(organization: &Organization) -> Advisories {
        let group = organization.group("security").ok();
        let organization = organization.uid.clone();
        Advisories { organization, group, advisories: BTreeMap::new(), pending: BTreeMap::new() }
    }

    /// What analyst and reviewer do on that day.
    pub(crate) async fn live_through(&mut self, world: &mut World, day: i64) -> Result<(), StartError> {
        if day == 2 {
            self.settings(world).await?;
        }
        // Those that were known at the beginning are looked at from the first days on.
        let since = |one: &Vulnerability| day - one.day.max(3);
        for one in VULNERABILITIES.iter().filter(|one| is_about_apk(one)) {
            match since(one) {
                DETECTED => self.detect(world, one).await?,
                STATED => self.state(world, one).await?,
                REVIEWED if day <= LAST_REVIEW => self.review(world, one).await?,
                _ => {}
            }
        }
        Ok(())
    }

    async fn settings(&self, world: &mut World) -> Result<(), StartError> {
        let settings = AdvisorySettings {
            uid: self.organization.clone(),
            public: true,
            second_reviewer_required: true,
            ..AdvisorySettings::default()
        };
        let paths = vec!["public".to_owned(), "second_reviewer_required".to_owned()];
        let request =
            UpdateAdvisorySettingsRequest { settings: Some(settings), update_mask: Some(FieldMask { paths }) };
        world.call::<UpdateAdvisorySettings>(OWNER, request).await?;
        Ok(())
    }

    async fn detect(&mut self, world: &mut World, one: &'static Vulnerability) -> Result<(), StartError> {
        let group = self.group.clone().ok_or_else(|| StartError::Defect("no group has advisories".into()))?;
        let advisory = Advisory {
            artifact_type: "apk".into(),
            artifact_name: one.package.into(),
            artifact_architecture: "x86_64".into(),
            component_name: Some(one.package.into()),
            component_type: Some("apk".into()),
            aliases: vec![one.id.into()],
            ..Advisory::default()
        };
        let request = CreateAdvisoryRequest { parent_id: group, advisory: Some(advisory) };
        let id = world.call::<Create>(ANALYST, request).await?.id;
        self.advisories.insert(one.id, id);
        let manual = detection::Type::Manual(detection::Manual {});
        let event = self.add(world, one, Type::Detection(Detection { r#type: Some(manual) })).await?;
        decide(world, REVIEWER, event, ReviewStatus::Approved).await
    }

    async fn state(&mut self, world: &mut World, one: &'static Vulnerability) -> Result<(), StartError> {
        let event = self.add(world, one, statement(one)).await?;
        self.pending.insert(one.id, event);
        Ok(())
    }

    async fn review(&mut self, world: &mut World, one: &'static Vulnerability) -> Result<(), StartError> {
        let Some(event) = self.pending.remove(one.id) else { return Ok(()) };
        let status = match number(one) % 9 {
            5 => ReviewStatus::Rejected,
            7 => ReviewStatus::RequestChanges,
            _ => ReviewStatus::Approved,
        };
        decide(world, REVIEWER, event, status).await
    }

    async fn add(&self, world: &mut World, one: &Vulnerability, statement: Type) -> Result<String, StartError> {
        let parent_id = self.advisories.get(one.id).cloned().unwrap_or_default();
        let event =
            AdvisoryEvent { status: ReviewStatus::Pending as i32, r#type: Some(statement), ..AdvisoryEvent::default() };
        let request = CreateAdvisoryEventRequest { parent_id, advisory_event: Some(event) };
        Ok(world.call::<CreateAdvisoryEvent>(ANALYST, request).await?.id)
    }
}

async fn decide(world: &mut World, by: &str, id: String, status: ReviewStatus) -> Result<(), StartError> {
    let event = AdvisoryEvent { id, status: status as i32, ..AdvisoryEvent::default() };
    world.call::<UpdateAdvisoryEvent>(by, event).await?;
    Ok(())
}

fn is_about_apk(one: &Vulnerability) -> bool {
    !["stdlib", "log-kit", "express-lite"].contains(&one.package)
}

/// The number at the end of the identifier.
fn number(one: &Vulnerability) -> u32 {
    one.id.rsplit('-').next().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// What the analyst says of a vulnerability.
fn statement(one: &Vulnerability) -> Type {
    use false_positive_determination::Type as Ground;
    match (number(one) % 6, fixed_version(one)) {
        (1, _) => Type::FalsePositiveDetermination(FalsePositiveDetermination {
            r#type: Ground::VulnerableCodeNotIncludedInPackage as i32,
            note: "The affected part is not compiled into our package.".into(),
        }),
        (2, _) => Type::TruePositiveDetermination(TruePositiveDetermination {
            note: "Our build has the affected code.".into(),
        }),
        (3, _) => Type::FixNotPlanned(FixNotPlanned { note: "The tool is removed with the next release.".into() }),
        (_, Some(version)) => Type::Fixed(Fixed { fixed_version: version.into(), ..Fixed::default() }),
        (_, None) => {
            Type::PendingUpstreamFix(PendingUpstreamFix { note: "Upstream works on it; the patch is public.".into() })
        }
    }
}
