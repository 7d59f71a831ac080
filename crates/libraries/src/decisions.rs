//! Decisions of policies: explained for a version, evaluated for a draft, compared for recently served versions.

mod dependencies;
mod facts;

use std::collections::BTreeSet;

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::decisions::{
    EvaluatePolicy, ExplainDependencies, ExplainPackage, PreviewPolicy,
};
use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::libraries as v1;
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Error, FieldViolation, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value};

use self::facts::{Facts, Scope, VersionName};
use super::ecosystems::{LANGUAGES, Language, MUST_BE_OWN};
use super::in_force::{self, InForce};
use super::policies::{self, Mode};
use super::policy::decide::{Decision, Policy, Refusal, Severity, Vulnerability, decide};
use super::{exceptions, policy_ages, policy_vulnerabilities, require_organization};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .validate::<ExplainPackage>(|request| purl_violations("purl", &request.purl).collect())
        .read::<ExplainPackage>(handler!(explain))
        .validate::<ExplainDependencies>(dependencies::violations)
        .heavy_read::<ExplainDependencies>(handler!(dependencies::explain))
        .validate::<EvaluatePolicy>(evaluate_violations)
        .read::<EvaluatePolicy>(handler!(evaluate))
        .validate::<PreviewPolicy>(preview_violations)
        .heavy_read::<PreviewPolicy>(handler!(preview))
}

/// Resolutions that a preview reads.
const EXAMINED: i64 = 5000;
/// Decisions of either kind that a preview lists.
const SHOWN: usize = 500;
const DEFAULT_WINDOW_DAYS: i32 = 30;
const MAX_WINDOW_DAYS: i32 = 90;
const DAY: Micros = 24 * 3600 * 1_000_000;

fn purl_violations(field: &str, purl: &str) -> impl Iterator<Item = FieldViolation> {
    let wrong = VersionName::parse(purl).err();
    let field = field.to_owned();
    wrong.map(|description| FieldViolation { field, description }).into_iter()
}

pub(super) fn draft_violations(policy: Option<&v1::LibraryPolicy>) -> Vec<FieldViolation> {
    let Some(policy) = policy else {
        return vec![FieldViolation { field: "policy".into(), description: "policy is required".into() }];
    };
    let mut wrong = policies::violations(policy);
    for violation in &mut wrong {
        violation.field.insert_str(0, "policy.");
    }
    wrong
}

fn evaluate_violations(request: &own::EvaluatePolicyRequest) -> Vec<FieldViolation> {
    let mut wrong = draft_violations(request.policy.as_ref());
    wrong.extend(policy_vulnerabilities::violations("vulnerabilityRule", request.vulnerability_rule.as_ref()));
    wrong.extend(policy_ages::violations("ageSource", request.age_source));
    for (at, purl) in request.purls.iter().enumerate() {
        wrong.extend(purl_violations(&format!("purls[{at}]"), purl));
    }
    wrong
}

fn preview_violations(request: &own::PreviewPolicyRequest) -> Vec<FieldViolation> {
    let mut wrong = draft_violations(request.policy.as_ref());
    wrong.extend(policy_vulnerabilities::violations("vulnerabilityRule", request.vulnerability_rule.as_ref()));
    wrong.extend(policy_ages::violations("ageSource", request.age_source));
    if !(0..=MAX_WINDOW_DAYS).contains(&request.window_days) {
        let description = format!("must be 1 to {MAX_WINDOW_DAYS}; leave it out for {DEFAULT_WINDOW_DAYS}");
        wrong.push(FieldViolation { field: "windowDays".into(), description });
    }
    if Language::required_own("ecosystem", request.ecosystem).is_err() {
        let description = MUST_BE_OWN.into();
        wrong.push(FieldViolation { field: "ecosystem".into(), description });
    }
    wrong
}

fn parsed(field: &str, purl: &str) -> Result<VersionName> {
    VersionName::parse(purl).map_err(|wrong| Error::invalid_field(field, wrong))
}

async fn explain(tx: &mut ReadTx, call: &Authorized<own::ExplainPackageRequest>) -> Result<own::PackageExplanation> {
    let organization = require_organization(tx, call).await?;
    let version = parsed("purl", &call.request().purl)?;
    let readable = readable(call, &organization);
    let package = Some((version.language, &*version.name));
    let overrides = in_force::overrides(tx, &organization, package, call.now()).await?;
    let enforced = in_force::find(tx, &organization, version.language, Mode::Enforced, &overrides).await?;
    let logged = in_force::find(tx, &organization, version.language, Mode::Log, &overrides).await?;
    let minimum = lowest([&enforced, &logged].into_iter().flatten().map(|found| &found.policy));
    let scope = Scope { organization: &organization, readable: &readable, minimum };
    let facts = facts::load_for(tx, &scope, std::slice::from_ref(&version)).await?;
    let of_version = (version.language, &*version.name, &*version.version);
    let exception = if call.holds(organization.as_str(), Capability::CapPoliciesOverrideList) {
        exceptions::of_version(tx, &organization, of_version, call.now()).await?
    } else {
        None
    };
    let of = |policy: Option<&Policy>| shown(&version, facts::of(&facts, &version), policy, call.now());
    let uid = |found: Option<InForce>| found.and_then(|found| found.policy_uid).map(|uid| uid.as_str().into());
    Ok(own::PackageExplanation {
        purl: version.purl(),
        decision: Some(of(enforced.as_ref().map(|found| &found.policy))),
        logged: logged.as_ref().map(|found| of(Some(&found.policy))),
        policy: uid(enforced).unwrap_or_default(),
        logged_policy: uid(logged).unwrap_or_default(),
        exception,
    })
}

async fn evaluate(
    tx: &mut ReadTx,
    call: &Authorized<own::EvaluatePolicyRequest>,
) -> Result<own::EvaluatePolicyResponse> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let overrides = in_force::overrides(tx, &organization, None, call.now()).await?;
    let rules = (request.vulnerability_rule.as_ref(), request.age_source());
    let draft = drafted(tx, &organization, request.policy.as_ref(), rules).await?;
    let policy = Policy { overrides, ..draft };
    let readable = readable(call, &organization);
    let decisions = decided(tx, &organization, (&request.purls, &readable), &policy, call.now()).await?;
    Ok(own::EvaluatePolicyResponse { decisions })
}

/// The lowest severity that rules of policies are about.
fn lowest<'a>(policies: impl IntoIterator<Item = &'a Policy>) -> Option<Severity> {
    policies.into_iter().filter_map(|policy| Some(policy.vulnerabilities?.minimum)).min()
}

/// A draft with its rules about vulnerabilities and age: those that are given, or else those that the policy of its id has, which
/// an update keeps.
async fn drafted(
    tx: &mut ReadTx,
    organization: &Uidp,
    policy: Option<&v1::LibraryPolicy>,
    (rule, source): (Option<&own::VulnerabilityRule>, own::AgeSource),
) -> Result<Policy> {
    let policy = policy.cloned().unwrap_or_default();
    let stored = Uidp::parse(&policy.id).ok().filter(|uid| organization.contains(uid.as_str()));
    let vulnerabilities = match (rule, &stored) {
        (Some(rule), _) => policy_vulnerabilities::ready(rule),
        (None, Some(uid)) => policy_vulnerabilities::of_policy(tx, uid).await?,
        (None, None) => None,
    };
    let age_source = match (source, &stored) {
        (own::AgeSource::Unspecified, Some(uid)) => policy_ages::of_policy(tx, uid).await?,
        (given, _) => policy_ages::ready(given),
    };
    Ok(Policy { age_source, vulnerabilities, ..policies::draft(policy)? })
}

/// The ecosystems whose own packages the caller may list.
fn readable<T>(call: &Authorized<T>, organization: &Uidp) -> Vec<Language> {
    let listing: fn(Language) -> &'static [Capability] = |language| match language {
        Language::Java => &[Capability::CapLibrariesJavaList],
        Language::JavaScript => &[Capability::CapLibrariesJavascriptList],
        Language::Python => &[Capability::CapLibrariesPythonList],
        Language::Go => &[Capability::CapLibrariesGoList],
        Language::Cargo | Language::Generic => {
            &[Capability::CapLibrariesArtifactsList, Capability::CapLibrariesDotnetList]
        }
    };
    let holds = |capability: &Capability| call.holds(organization.as_str(), *capability);
    LANGUAGES.into_iter().filter(|language| listing(*language).iter().all(holds)).collect()
}

/// The decisions of a policy of an organization about the versions of these package URLs, in their order; by own packages in the
/// ecosystems that are readable.
pub(super) async fn decided(
    tx: &mut ReadTx,
    organization: &Uidp,
    (purls, readable): (&[String], &[Language]),
    policy: &Policy,
    now: Micros,
) -> Result<Vec<own::Decision>> {
    let versions = purls.iter().map(|purl| parsed("purls", purl)).collect::<Result<Vec<_>>>()?;
    if versions.is_empty() {
        return Ok(Vec::new());
    }
    let scope = Scope { organization, readable, minimum: lowest([policy]) };
    let facts = facts::load_for(tx, &scope, &versions).await?;
    Ok(versions.iter().map(|version| shown(version, facts::of(&facts, version), Some(policy), now)).collect())
}

/// A package URL of one version as the server spells it.
pub(super) fn spelled(purl: &str) -> std::result::Result<String, String> {
    VersionName::parse(purl).map(|version| version.purl())
}

async fn preview(tx: &mut ReadTx, call: &Authorized<own::PreviewPolicyRequest>) -> Result<own::PreviewPolicyResponse> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let language = Language::required_own("ecosystem", request.ecosystem)?;
    let overrides = in_force::overrides(tx, &organization, None, call.now()).await?;
    let in_force = in_force::find(tx, &organization, language, Mode::Enforced, &overrides).await?;
    let in_force = in_force.as_ref().map(|found| &found.policy);
    let rules = (request.vulnerability_rule.as_ref(), request.age_source());
    let draft = drafted(tx, &organization, request.policy.as_ref(), rules).await?;
    let draft = Policy { overrides, ..draft };
    let days = if request.window_days == 0 { DEFAULT_WINDOW_DAYS } else { request.window_days };
    let since = call.now() - Micros::from(days) * DAY;
    let (versions, incomplete) = served(tx, &organization, language, since).await?;
    let minimum = lowest(in_force.into_iter().chain([&draft]));
    let scope = Scope { organization: &organization, readable: &readable(call, &organization), minimum };
    let facts = facts::load_for(tx, &scope, &versions).await?;
    let mut response = own::PreviewPolicyResponse {
        examined: i32::try_from(versions.len()).unwrap_or(i32::MAX),
        incomplete,
        ..own::PreviewPolicyResponse::default()
    };
    for version in &versions {
        let of = |policy| shown(version, facts::of(&facts, version), policy, call.now());
        let (now, then) = (of(in_force), of(Some(&draft)));
        let (list, more) = match (now.allowed, then.allowed) {
            (true, false) => (&mut response.newly_refused, &mut response.more_newly_refused),
            (false, true) => (&mut response.newly_allowed, &mut response.more_newly_allowed),
            _ => continue,
        };
        if list.len() < SHOWN { list.push(then) } else { *more += 1 }
    }
    Ok(response)
}

/// The different versions that an organization was served since then, and whether there are more than were read.
async fn served(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    since: Micros,
) -> Result<(Vec<VersionName>, bool)> {
    let sql = "SELECT package, version FROM library_resolutions
               WHERE org = $1 AND ecosystem = $2 AND observed_at >= $3 ORDER BY observed_at DESC LIMIT $4";
    let params = [
        Value::from(organization.as_str()),
        Value::Int(language.number()),
        Value::Int(since),
        Value::Int(EXAMINED + 1),
    ];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let rows = tx.query(sql, &params, read).await?;
    let incomplete = rows.len() as i64 > EXAMINED;
    let different: BTreeSet<(String, String)> = rows.into_iter().take(EXAMINED as usize).collect();
    let versions = different.into_iter().map(|(name, version)| VersionName { language, name, version });
    Ok((versions.collect(), incomplete))
}

/// The decision with what it was made by; without a policy everything is allowed.
fn shown(version: &VersionName, facts: &Facts, policy: Option<&Policy>, now: Micros) -> own::Decision {
    let decided = policy.map_or(Decision::Allowed, |policy| decide(policy, &facts.subject(version), now));
    let mut shown = own::Decision {
        purl: version.purl(),
        allowed: decided == Decision::Allowed,
        known: facts.is_known,
        license: facts.license.clone(),
        publish_time: facts.age.published_at.and_then(timestamp),
        first_seen_time: facts.age.first_seen_at.and_then(timestamp),
        counted_time: policy.and_then(|policy| facts.age.since(policy.age_source)).and_then(timestamp),
        malware: facts.is_malware,
        ..own::Decision::default()
    };
    if let Decision::Refused(refusal) = decided {
        shown.reason = refusal.reason().into();
        match refusal {
            Refusal::Blocked(pattern) => shown.matched = pattern.text(),
            Refusal::License(license) => shown.matched = license,
            Refusal::Malware => {}
            Refusal::Vulnerable(Vulnerability { id, fix, .. }) => {
                (shown.matched, shown.fixed_version) = (id, fix.map(|fix| fix.version).unwrap_or_default());
            }
            Refusal::Frozen { cutoff, .. } => shown.matched = rfc3339::text(cutoff, Digits::Fewest),
            Refusal::Cooldown { until, .. } => shown.allowed_time = until.and_then(timestamp),
        }
    }
    shown
}
