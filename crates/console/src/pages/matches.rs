//! Components of images that imported records of vulnerabilities affect.

use bowline_contract::bowline::vulnerabilities::v1::rpc::matches::ListMatches;
use bowline_contract::bowline::vulnerabilities::v1::{
    FindingStatus, FixCondition, ListMatchesRequest, VulnerableComponent,
};
use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_core::Result;
use maud::{Markup, html};

use super::find::{uncompared_notice, unindexed_notice};
use super::findings::{SEVERITIES, choose};
use super::group_or_repository;
use crate::components::{Field, List, filters, link};
use crate::shell::Content;
use crate::values::{badge, code, digest, none, text, words};
use crate::visit::{ROWS, Visit};

const FIXES: [(&str, &str); 3] =
    [("", "any"), ("FIX_CONDITION_FIXED", "there is one"), ("FIX_CONDITION_NOT_FIXED", "not yet")];
const FILTERS: [&str; 4] = ["vulnerability", "package", "severity", "fix"];
const FIELDS: [Field<'_>; 4] = [
    Field::Text { name: "vulnerability", label: "Vulnerability" },
    Field::Text { name: "package", label: "Package URL, such as pkg:npm/lodash" },
    Field::Choice { name: "severity", label: "Severity", options: &SEVERITIES },
    Field::Choice { name: "fix", label: "Fix", options: &FIXES },
];

/// Vulnerable components of images in a group and below, by their SBOMs.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let Some(scope) = group_or_repository(visit) else { return Ok(choose("Vulnerable components")) };
    let severity = visit.query.get("severity").and_then(Severity::from_str_name);
    let fix = visit.query.get("fix").and_then(FixCondition::from_str_name).unwrap_or_default();
    let request = ListMatchesRequest {
        scope: scope.clone(),
        vulnerability: visit.query.text("vulnerability"),
        package: visit.query.text("package"),
        severities: severity.into_iter().map(i32::from).collect(),
        fix: fix.into(),
        page_size: ROWS,
        page_token: visit.query.text("page"),
    };
    let response = visit.call::<ListMatches>(request).await?;
    let list = List {
        caption: "Vulnerable components",
        heads: &["Vulnerability", "Severity", "Component", "Version", "Fixed in", "Image", "Tags", "Advisory"],
        rows: response.matches.iter().map(row).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "No imported record affects a component here. Images without an SBOM have no components.",
        filters: &FILTERS,
    };
    let body = html! {
        (filters(visit, &["in", "uid"], &FIELDS)) (unindexed_notice(&scope, response.unindexed_sboms))
        (uncompared_notice(response.uncompared_components)) (list.render(visit))
    };
    Ok(Content::new("Vulnerable components", body))
}

fn row(one: &VulnerableComponent) -> Vec<Markup> {
    let severity = Severity::try_from(one.severity).unwrap_or_default();
    let status = FindingStatus::try_from(one.status).unwrap_or_default();
    let image = [("repo", one.repo_uid.as_str()), ("digest", &one.digest)];
    vec![
        text(&one.vulnerability),
        text(&words(severity.as_str_name(), "SEVERITY_")),
        html! { (text(&one.component)) br; span.small { (code(&one.purl)) } },
        code(&one.version),
        if one.fixed_version.is_empty() { none() } else { code(&one.fixed_version) },
        html! { (link("/console/image", &image, &one.repo_name)) " " (digest(&one.digest)) },
        text(&one.tags.join(", ")),
        match &one.advisory {
            Some(advisory) => html! {
                (link("/console/advisory", &[("uid", &advisory.uid)], &advisory.advisory_id)) " "
                (badge("plain", &words(status.as_str_name(), "FINDING_STATUS_")))
                @if one.closed_by_advisory { " " (badge("good", "closed")) }
            },
            None => none(),
        },
    ]
}
