//! Rules that images must satisfy to be pulled, the exceptions from them, and what they say about the images that there are.

use bowline_contract::bowline::registry::v1::rpc::image_policies::{
    CreateImageException, DeleteImageException, GetImagePolicy, ListImagePolicies, PreviewImagePolicy,
    UpdateImagePolicy,
};
use bowline_contract::bowline::registry::v1::{
    GetImagePolicyRequest, ImageException, ImagePolicy, ImagePolicyMode, ImageRule, ImageRuleVerdict, ImageSigners,
    ImageVerdict, ListImagePoliciesRequest, ListImagePoliciesResponse, PreviewImagePolicyRequest,
    VulnerabilityRequirement,
};
use bowline_contract::v1::registry::PolicyCheckResult;
use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_core::{Code, Result};
use maud::{Markup, html};

use super::findings::choose;
use super::group_or_repository;
use crate::components::{Field, List, action, edit, filters, link, section, table};
use crate::query::address;
use crate::shell::Content;
use crate::values::{badge, count, digest, none, text, time, words};
use crate::visit::Visit;

const TITLE: &str = "Image policies";

/// The policy of a group or repository, and those below it.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let Some(scope) = group_or_repository(visit) else { return Ok(choose(TITLE)) };
    let own = visit.call::<GetImagePolicy>(GetImagePolicyRequest { uid: scope.clone() }).await?;
    let request = ListImagePoliciesRequest {
        uid: scope.clone(),
        page_token: visit.query.text("page"),
        ..ListImagePoliciesRequest::default()
    };
    let below = match visit.call::<ListImagePolicies>(request).await {
        Ok(response) => section("below", "Groups and repositories with a policy", &scopes_below(visit, &response)),
        // There is nothing below a repository.
        Err(error) if error.code() == Code::NotFound => html! {},
        Err(error) => return Err(error),
    };
    let body = html! {
        p { "The policies of a repository and of all groups above it apply together. What is unknown never passes." }
        p {
            (edit::<UpdateImagePolicy>(visit, "Edit the rules", &[("policy.uid", &scope)])) " "
            (action::<CreateImageException>(visit, "Add an exception", &[("uid", &scope)])) " "
            (link("/console/image-verdicts", &[("uid", &scope)], "What the policies say about the images"))
        }
        (section("rules", "Rules", &rules(&own)))
        (section("exceptions", "Exceptions", &exceptions(visit, &own)))
        (below)
    };
    Ok(Content::new(TITLE, body))
}

fn scopes_below(visit: &Visit, response: &ListImagePoliciesResponse) -> Markup {
    let list = List {
        caption: "Policies here and below",
        heads: &["Group or repository", "Rules", "Enforced", "Exceptions", "Changed"],
        rows: response.policies.iter().map(scope_row).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "No policy is set here or below.",
        filters: &[],
    };
    list.render(visit)
}

fn rules(policy: &ImagePolicy) -> Markup {
    if policy.rules.is_empty() {
        return html! { p.empty { "There is no rule here." } };
    }
    let rows: Vec<_> =
        policy.rules.iter().map(|rule| vec![text(&rule.name), mode(rule.mode), text(&requirement(rule))]).collect();
    html! {
        (table("Rules", &["Rule", "Mode", "Requires"], &rows))
        @if policy.grace_days > 0 {
            p { "Callers may pull an image again for " (count(policy.grace_days.into(), "day", "days")) " that they pulled while it passed." }
        }
        @if !policy.trusted_root.is_empty() { p { "Certificates are verified by the trusted root of this policy." } }
    }
}

fn mode(number: i32) -> Markup {
    match ImagePolicyMode::try_from(number).unwrap_or_default() {
        ImagePolicyMode::Enforce => badge("good", "enforced"),
        ImagePolicyMode::Log => badge("plain", "log only"),
        ImagePolicyMode::Unspecified => none(),
    }
}

/// What a rule requires, as a sentence.
fn requirement(rule: &ImageRule) -> String {
    if let Some(signature) = &rule.signature {
        return format!("a signature by {}", signers(signature.signers.as_ref()));
    }
    if let Some(attestation) = &rule.attestation {
        let signers = signers(attestation.signers.as_ref());
        return format!("an attestation of the type {} by {signers}", attestation.predicate_type);
    }
    if let Some(vulnerability) = &rule.vulnerability {
        return vulnerabilities(vulnerability);
    }
    if let Some(license) = &rule.license {
        let unlicensed = if license.allow_unlicensed { "" } else { ", and a license of every component" };
        return format!("none of the licenses {}{unlicensed}", license.denied.join(", "));
    }
    if let Some(age) = &rule.age {
        return format!("a push in the last {}", count(age.max_days.into(), "day", "days"));
    }
    if rule.sbom.is_some() { "an indexed SBOM".into() } else { String::new() }
}

fn signers(signers: Option<&ImageSigners>) -> String {
    let Some(signers) = signers else { return "no one".into() };
    let keys = signers.public_keys.len();
    let keys = (keys > 0).then(|| count(keys as i64, "public key", "public keys"));
    let certificates = signers.certificates.iter().map(|one| format!("{} of {}", one.identity, one.issuer));
    keys.into_iter().chain(certificates).collect::<Vec<_>>().join(" or ")
}

fn vulnerabilities(rule: &VulnerabilityRequirement) -> String {
    let severity = Severity::try_from(rule.greatest).unwrap_or_default();
    let mut sentence = format!("no vulnerability above {}", words(severity.as_str_name(), "SEVERITY_"));
    sentence.push_str(if rule.unfixed { ", with or without a fix" } else { " that has a fix" });
    if rule.fix_days > 0 {
        sentence.push_str(&format!(", after {}", count(rule.fix_days.into(), "day", "days")));
    }
    if rule.report_days > 0 {
        sentence.push_str(&format!(", by a scan of the last {}", count(rule.report_days.into(), "day", "days")));
    }
    sentence
}

fn exceptions(visit: &Visit, policy: &ImagePolicy) -> Markup {
    if policy.exceptions.is_empty() {
        return html! { p.empty { "There is no exception." } };
    }
    let row = |one: &ImageException| {
        let fields = [("uid", policy.uid.as_str()), ("exception_id", &one.id)];
        vec![
            text(&one.justification),
            about(one),
            text(&if one.rules.is_empty() { "all".into() } else { one.rules.join(", ") }),
            time(one.expire_time.as_ref()),
            link("/console/identity", &[("uid", &one.granted_by)], &one.granted_by),
            action::<DeleteImageException>(visit, "Remove", &fields),
        ]
    };
    let heads = ["Reason", "Of", "Rules", "Until", "Granted by", "Actions"];
    table("Exceptions", &heads, &policy.exceptions.iter().map(row).collect::<Vec<_>>())
}

/// The images that an exception is of.
fn about(exception: &ImageException) -> Markup {
    html! {
        @if exception.digest.is_empty() { "all images" } @else { (digest(&exception.digest)) }
        @if !exception.repo_uid.is_empty() {
            " in " (link("/console/repository", &[("uid", &exception.repo_uid)], &exception.repo_uid))
        }
    }
}

fn scope_row(policy: &ImagePolicy) -> Vec<Markup> {
    let enforced = policy.rules.iter().filter(|rule| rule.mode() == ImagePolicyMode::Enforce).count();
    vec![
        link("/console/image-policies", &[("uid", &policy.uid)], &policy.uid),
        text(&policy.rules.iter().map(|rule| rule.name.as_str()).collect::<Vec<_>>().join(", ")),
        text(&format!("{enforced} of {}", policy.rules.len())),
        text(&policy.exceptions.len().to_string()),
        time(policy.update_time.as_ref()),
    ]
}

/// What the policies in force say about the tagged images of a group or repository, or about one image.
pub(super) async fn verdicts(visit: &mut Visit) -> Result<Content> {
    let title = "What image policies say";
    let Some(scope) = group_or_repository(visit) else { return Ok(choose(title)) };
    let request = PreviewImagePolicyRequest {
        uid: scope.clone(),
        digest: visit.query.text("digest"),
        page_token: visit.query.text("page"),
        ..PreviewImagePolicyRequest::default()
    };
    let response = visit.call::<PreviewImagePolicy>(request).await?;
    let list = List {
        caption: "Images",
        heads: &["Image", "Tags", "Pull", "Rules that fail", "Actions"],
        rows: response.verdicts.iter().map(|verdict| verdict_row(visit, verdict)).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "There is no tagged image here.",
        filters: &["digest"],
    };
    let body = html! {
        p { "Pulls by callers who may push, and of signatures and the like, are never refused." }
        (filters(visit, &["in", "uid"], &[Field::Text { name: "digest", label: "Digest" }]))
        (list.render(visit))
    };
    Ok(Content::new(title, body).below(address("/console/image-policies", &[("uid", &scope)]), TITLE))
}

fn verdict_row(visit: &Visit, verdict: &ImageVerdict) -> Vec<Markup> {
    let image = [("repo", verdict.repo_uid.as_str()), ("digest", &verdict.digest)];
    let failed: Vec<&ImageRuleVerdict> = verdict.rules.iter().filter(|rule| has_failed(rule)).collect();
    let pull = match (verdict.exempt, verdict.refused) {
        (true, _) => badge("plain", "no rule applies"),
        (false, true) => badge("bad", "refused"),
        (false, false) => badge("good", "allowed"),
    };
    vec![
        html! { (link("/console/image", &image, &verdict.repo_uid)) " " (digest(&verdict.digest)) },
        text(&verdict.tags.join(", ")),
        pull,
        html! {
            @if failed.is_empty() { (none()) } @else {
                ul.plain { @for rule in &failed { li { (failure(rule)) } } }
            }
        },
        html! { @for policy in failed_scopes(&failed) { (except(visit, policy, &verdict.digest)) " " } },
    ]
}

/// Whether a rule says no, even if an exception allows the image.
fn has_failed(rule: &ImageRuleVerdict) -> bool {
    matches!(rule.result(), PolicyCheckResult::Denied | PolicyCheckResult::Error)
}

fn failure(rule: &ImageRuleVerdict) -> Markup {
    html! {
        (link("/console/image-policies", &[("uid", &rule.policy_uid)], &rule.rule)) " " (mode(rule.mode)) ": "
        (text(&rule.reason))
        @if let Some(exception) = &rule.exception {
            " Excepted until " (time(exception.expire_time.as_ref())) ": " (text(&exception.justification))
        }
    }
}

/// The places whose rules fail, each once.
fn failed_scopes<'a>(failed: &[&'a ImageRuleVerdict]) -> std::collections::BTreeSet<&'a str> {
    failed.iter().filter(|rule| rule.exception.is_none()).map(|rule| rule.policy_uid.as_str()).collect()
}

fn except(visit: &Visit, policy: &str, digest: &str) -> Markup {
    let fields = [("uid", policy), ("exception.digest", digest)];
    html! { (action::<CreateImageException>(visit, "Except this image", &fields)) }
}

#[cfg(test)]
mod tests {
    use bowline_contract::bowline::registry::v1::{AgeRequirement, CertificateIdentity, SignatureRequirement};

    use super::*;

    #[test]
    fn rules_are_sentences() {
        let certificates = vec![CertificateIdentity { identity: "a@b".into(), issuer: "https://i".into() }];
        let signers = Some(ImageSigners { public_keys: vec!["k".into()], certificates });
        let signature = ImageRule { signature: Some(SignatureRequirement { signers }), ..ImageRule::default() };
        assert_eq!(requirement(&signature), "a signature by 1 public key or a@b of https://i");
        let age = ImageRule { age: Some(AgeRequirement { max_days: 3 }), ..ImageRule::default() };
        assert_eq!(requirement(&age), "a push in the last 3 days");
        let rule =
            VulnerabilityRequirement { greatest: Severity::Medium.into(), fix_days: 7, report_days: 1, unfixed: false };
        assert_eq!(
            vulnerabilities(&rule),
            "no vulnerability above medium that has a fix, after 7 days, by a scan of the last 1 day"
        );
    }
}
