use bowline_contract::bowline::registry::v1::rpc::replication::{CheckUpstream, FetchNow, ListUpstreams};
use bowline_contract::bowline::registry::v1::{ListUpstreamsRequest, UpstreamState};
use bowline_contract::bowline::vulnerabilities::v1::rpc::posture::{GetPosture, ListFindings};
use bowline_contract::bowline::vulnerabilities::v1::{
    FindingStatus, GetPostureRequest, ImageFinding, ListFindingsRequest, PostureDay, PostureSummary, SeverityCounts,
};
use bowline_contract::v1::registry::sync_status::Status;
use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_contract::v1::registry::vulnerability::fix::State;
use bowline_contract::v1::vulnerabilities::rpc::advisories::{Create, CreateAdvisoryEvent};
use bowline_core::Result;
use maud::{Markup, html};

use super::parent;
use crate::chart;
use crate::components::{Field, List, action, facts, filters, link, section, table};
use crate::shell::Content;
use crate::values::{badge, code, count, day, none, text, time, words};
use crate::visit::{ROWS, Visit};

const STATUSES: [(&str, &str); 6] = [
    ("", "any"),
    ("FINDING_STATUS_NO_ADVISORY", "no advisory"),
    ("FINDING_STATUS_UNDER_REVIEW", "under review"),
    ("FINDING_STATUS_AFFECTED", "affected"),
    ("FINDING_STATUS_FIXED", "fixed"),
    ("FINDING_STATUS_NOT_AFFECTED", "not affected"),
];

pub(super) const SEVERITIES: [(&str, &str); 7] = [
    ("", "any"),
    ("CRITICAL", "critical"),
    ("HIGH", "high"),
    ("MEDIUM", "medium"),
    ("LOW", "low"),
    ("NEGLIGIBLE", "negligible"),
    ("UNKNOWN", "unknown"),
];
const FIXES: [(&str, &str); 3] = [("", "any"), ("FIXED", "there is one"), ("NOT_FIXED", "not yet")];

/// Open findings of the newest scans in a group and below.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let Some(scope) = scope(visit) else { return Ok(choose("Findings")) };
    let status = visit.query.get("status").and_then(FindingStatus::from_str_name);
    let severity = visit.query.get("severity").and_then(Severity::from_str_name);
    let fix = visit.query.get("fix").and_then(State::from_str_name);
    let request = ListFindingsRequest {
        scope,
        severities: severity.into_iter().map(i32::from).collect(),
        fix_states: fix.into_iter().map(i32::from).collect(),
        statuses: status.into_iter().map(i32::from).collect(),
        query: visit.query.text("q"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
    };
    let response = visit.call::<ListFindings>(request).await?;
    let list = List {
        caption: "Findings",
        heads: &[
            "Vulnerability",
            "Severity",
            "Package",
            "Version",
            "Fixed in",
            "Image",
            "Advisory",
            "Scanned",
            "Actions",
        ],
        rows: response.findings.iter().map(|finding| row(visit, finding)).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "There is no finding that you may see here. Images without a scan have none either.",
        filters: &["q", "severity", "fix", "status"],
    };
    let fields = [
        Field::Text { name: "q", label: "Vulnerability or package" },
        Field::Choice { name: "severity", label: "Severity", options: &SEVERITIES },
        Field::Choice { name: "fix", label: "Fix", options: &FIXES },
        Field::Choice { name: "status", label: "Advisory", options: &STATUSES },
    ];
    Ok(Content::new("Findings", html! { (filters(visit, &["in"], &fields)) (list.render(visit)) }))
}

pub(super) fn scope(visit: &Visit) -> Option<String> {
    Some(visit.scope()).filter(|scope| !scope.is_empty())
}

/// What stands on a page that is about one group, before one is chosen.
pub(super) fn choose(title: &str) -> Content {
    let body = html! {
        p { "This page is about an organization or group: choose one, its page leads here." }
        p { a.button href="/console/" { "Organizations" } }
    };
    Content::new(title, body)
}

/// What a scanner wrote, as a list of one: lines would become several aliases.
fn one_alias(vulnerability: &str) -> String {
    serde_json::json!([vulnerability]).to_string()
}

/// Kind of artifact that a scanner's type of package is; empty for packages of systems that advisories do not have.
fn artifact_type(package_type: &str) -> &'static str {
    match package_type {
        "apk" => "apk",
        "" | "deb" | "rpm" => "",
        _ => "library",
    }
}

fn row(visit: &Visit, finding: &ImageFinding) -> Vec<Markup> {
    let severity = Severity::try_from(finding.severity).unwrap_or_default();
    let status = FindingStatus::try_from(finding.status).unwrap_or_default();
    let image = finding.tags.first().unwrap_or(&finding.digest);
    vec![
        text(&finding.vulnerability),
        text(&words(severity.as_str_name(), "SEVERITY_")),
        text(&finding.package),
        code(&finding.version),
        text(&finding.fixed_versions.join(", ")),
        link(
            "/console/image",
            &[("repo", &finding.repo_uid), ("digest", &finding.digest)],
            &format!("{} {image}", finding.repo_name),
        ),
        match &finding.advisory {
            Some(advisory) => html! {
                (link("/console/advisory", &[("uid", &advisory.uid)], &advisory.advisory_id)) " "
                (badge("plain", &words(status.as_str_name(), "FINDING_STATUS_")))
            },
            None => none(),
        },
        time(finding.report_time.as_ref()),
        match &finding.advisory {
            Some(advisory) => action::<CreateAdvisoryEvent>(visit, "Add an event", &[("parent_id", &advisory.uid)]),
            None => action::<Create>(
                visit,
                "Create an advisory",
                &[
                    ("parent_id", parent(&finding.repo_uid)),
                    ("advisory.artifact_type", artifact_type(&finding.package_type)),
                    ("advisory.artifact_name", &finding.package),
                    ("advisory.aliases", &one_alias(&finding.vulnerability)),
                ],
            ),
        },
    ]
}

/// Open findings by day, by age, and how long fixes took.
pub(super) async fn posture(visit: &mut Visit) -> Result<Content> {
    let Some(scope) = scope(visit) else { return Ok(choose("Posture")) };
    let request = GetPostureRequest { scope, ..GetPostureRequest::default() };
    let summary = visit.call::<GetPosture>(request).await?;
    let about = facts(&[
        ("Vulnerabilities", text(&summary.vulnerabilities.to_string())),
        ("Repositories", text(&format!("{} of {} counted", summary.counted_repos, summary.repos))),
        ("Newest scan", time(summary.report_time.as_ref())),
    ]);
    let ages: Vec<_> = summary
        .ages
        .iter()
        .map(|age| {
            let range = if age.to_days > 0 {
                format!("{} to {}", age.from_days, age.to_days)
            } else {
                format!("from {}", age.from_days)
            };
            counts(text(&range), age.open.as_ref())
        })
        .collect();
    let body = html! {
        (about)
        @if summary.incomplete { p.notice { "Not everything was counted: choose a smaller group." } }
        (section("days", "Open by day (UTC)", &picture(&summary)))
        (section("ages", "Open by age", &table("Days since they were found", &AGE_HEADS, &ages)))
        (section("fixes", "Time to a fix", &fixes(&summary)))
    };
    Ok(Content::new("Posture", body))
}

const AGE_HEADS: [&str; 7] = ["Days", "Critical", "High", "Medium", "Low", "Negligible", "Unknown"];
const DAY_HEADS: [&str; 7] = ["Day", "Critical", "High", "Medium", "Low", "Negligible", "Unknown"];

fn counts(name: Markup, counts: Option<&SeverityCounts>) -> Vec<Markup> {
    let counts = counts.copied().unwrap_or_default();
    let numbers = [counts.critical, counts.high, counts.medium, counts.low, counts.negligible, counts.unknown];
    std::iter::once(name).chain(numbers.map(|number| text(&number.to_string()))).collect()
}

/// The findings that were open on each day. Of days without a counted image nothing is known.
pub(super) fn picture(summary: &PostureSummary) -> Markup {
    let values = |one: &PostureDay| {
        let open = one.open.unwrap_or_default();
        let low = open.low + open.negligible;
        (one.images > 0).then(|| [open.critical, open.high, open.medium, low, open.unknown].map(i64::from).to_vec())
    };
    let drawn: Vec<chart::Day> =
        summary.days.iter().map(|one| chart::Day { name: day(one.day.as_ref()), values: values(one) }).collect();
    let finding = trend(&drawn);
    let title = "Open findings by severity and day";
    html! {
        (chart::stacked(
            &chart::Figure { id: "open-chart", title, finding: &finding, numbers: Some(days(summary)) },
            &chart::SEVERITIES,
            &drawn,
        ))
        p.small { "Newest scan: " (time(summary.report_time.as_ref())) ". Negligible ones are among the low ones." }
    }
}

/// How many are open on the last day, and how many were on the first day that is known.
fn trend(days: &[chart::Day]) -> String {
    let sum = |day: &chart::Day| day.values.as_ref().map(|values| (values.iter().sum::<i64>(), day.name.clone()));
    let Some((last, _)) = days.last().and_then(sum) else {
        return "No image here was scanned.".to_owned();
    };
    let open = format!("{} open", count(last, "finding", "findings"));
    match days.iter().find_map(sum) {
        Some((first, name)) if first != last => format!("{open}, {first} on {name}."),
        Some((_, name)) if days.last().is_some_and(|day| day.name != name) => format!("{open}, as many as on {name}."),
        _ => format!("{open}."),
    }
}

fn days(summary: &PostureSummary) -> Markup {
    let rows: Vec<_> = summary
        .days
        .iter()
        .rev()
        .map(|one| {
            let name = html! {
                (day(one.day.as_ref()))
                @if one.unreported_images > 0 { " " span.small { (one.unreported_images) " without a scan" } }
            };
            counts(name, one.open.as_ref())
        })
        .collect();
    table("Findings that were open, the newest day first", &DAY_HEADS, &rows)
}

fn fixes(summary: &PostureSummary) -> Markup {
    if summary.fix_times.is_empty() {
        return html! { p.empty { "Nothing has been fixed in this time." } };
    }
    let rows: Vec<_> = summary
        .fix_times
        .iter()
        .map(|one| {
            let severity = Severity::try_from(one.severity).unwrap_or_default();
            vec![
                text(&words(severity.as_str_name(), "SEVERITY_")),
                text(&one.fixed.to_string()),
                text(&one.median_days.to_string()),
                text(&one.p90_days.to_string()),
            ]
        })
        .collect();
    table("Days from finding to fix", &["Severity", "Fixed", "Median", "90 of 100 within"], &rows)
}

/// Repositories that get their content from another registry.
pub(super) async fn upstreams(visit: &mut Visit) -> Result<Content> {
    let Some(parent) = scope(visit) else { return Ok(choose("Upstreams")) };
    let request = ListUpstreamsRequest {
        parent,
        failed_only: visit.query.get("failed") == Some("true"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
    };
    let response = visit.call::<ListUpstreams>(request).await?;
    let list = List {
        caption: "Upstreams",
        heads: &["Repository", "State", "Checked", "Error", "Actions"],
        rows: response.upstreams.iter().map(|state| upstream(visit, state)).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "No repository here has checked an upstream yet.",
        filters: &["failed"],
    };
    let options = [("", "all"), ("true", "failed")];
    let fields = [Field::Choice { name: "failed", label: "Show", options: &options }];
    Ok(Content::new("Upstreams", html! { (filters(visit, &["in"], &fields)) (list.render(visit)) }))
}

fn upstream(visit: &Visit, state: &UpstreamState) -> Vec<Markup> {
    let status = Status::try_from(state.status).unwrap_or_default();
    vec![
        link("/console/repository", &[("uid", &state.repo_uid)], &state.repo_name),
        text(&words(status.as_str_name(), "STATUS_")),
        time(state.check_time.as_ref()),
        text(&state.error),
        html! {
            (action::<CheckUpstream>(visit, "Check", &[("repo_uid", &state.repo_uid)])) " "
            (action::<FetchNow>(visit, "Fetch now", &[("repo_uid", &state.repo_uid)]))
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scanner_names_one_alias() {
        for text in ["CVE-2026-1", "CVE-2026-1\nCVE-2026-2", "[\"CVE-2026-1\",\"CVE-2026-2\"]"] {
            let aliases: Vec<String> = serde_json::from_str(&one_alias(text)).unwrap();
            assert_eq!(aliases, [text]);
        }
    }
}
