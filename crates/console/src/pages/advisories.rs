use bowline_contract::bowline::vulnerabilities::v1::rpc::reviews::{BatchReviewEvents, PreviewPublication};
use bowline_contract::v1::vulnerabilities::ReviewStatus;
use bowline_contract::v2::vulnerabilities::advisory_event::Type;
use bowline_contract::v2::vulnerabilities::rpc::advisories_service::{GetAdvisory, ListAdvisories};
use bowline_contract::v2::vulnerabilities::{
    Advisory, AdvisoryEvent, EventTypeFilter, GetAdvisoryRequest, ListAdvisoriesRequest, ReviewState, advisory_event,
    severity,
};
use bowline_core::Result;
use maud::{Markup, html};
use serde_json::json;

use super::{below, parent, required};
use crate::components::{Field, List, action, facts, filters, link, section};
use crate::names::Names;
use crate::query::address;
use crate::shell::Content;
use crate::values::{badge, code, none, note, text, time, words};
use crate::visit::{ROWS, Visit};

const REVIEWS: [(&str, &str); 5] = [
    ("", "any"),
    ("REVIEW_STATE_PENDING", "pending"),
    ("REVIEW_STATE_APPROVED", "approved"),
    ("REVIEW_STATE_REQUEST_CHANGES", "changes requested"),
    ("REVIEW_STATE_REJECTED", "rejected"),
];
const EVENTS: [(&str, &str); 9] = [
    ("", "any"),
    ("EVENT_TYPE_FILTER_DETECTION", "detection"),
    ("EVENT_TYPE_FILTER_TRUE_POSITIVE_DETERMINATION", "true positive"),
    ("EVENT_TYPE_FILTER_FIXED", "fixed"),
    ("EVENT_TYPE_FILTER_FALSE_POSITIVE_DETERMINATION", "false positive"),
    ("EVENT_TYPE_FILTER_ANALYSIS_NOT_PLANNED", "analysis not planned"),
    ("EVENT_TYPE_FILTER_FIX_NOT_PLANNED", "fix not planned"),
    ("EVENT_TYPE_FILTER_PENDING_UPSTREAM_FIX", "pending upstream fix"),
    ("EVENT_TYPE_FILTER_PATCHED", "patched"),
];

/// Advisories in a group and below, or all visible ones.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let state = visit.query.get("review").and_then(ReviewState::from_str_name);
    let latest = visit.query.get("latest").and_then(EventTypeFilter::from_str_name);
    let request = ListAdvisoriesRequest {
        uidp: below(&visit.scope()),
        query: visit.query.text("q"),
        artifact_names: visit.query.get("package").map(str::to_owned).into_iter().collect(),
        event_review_states: state.into_iter().map(i32::from).collect(),
        latest_event_type: latest.map(i32::from),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListAdvisoriesRequest::default()
    };
    let response = visit.call::<ListAdvisories>(request).await?;
    let list = List {
        caption: "Advisories",
        heads: &["Advisory", "Vulnerabilities", "Package", "State", "Severity", "Changed"],
        rows: response.advisories.iter().map(row).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: "There is no advisory that you may see here.",
        filters: &["q", "package", "review", "latest"],
    };
    let fields = [
        Field::Text { name: "q", label: "Text (three characters at least)" },
        Field::Text { name: "package", label: "Package (whole name)" },
        Field::Choice { name: "latest", label: "Newest event", options: &EVENTS },
        Field::Choice { name: "review", label: "Review", options: &REVIEWS },
    ];
    Ok(Content::new("Advisories", html! { (filters(visit, &["in"], &fields)) (list.render(visit)) }))
}

fn row(advisory: &Advisory) -> Vec<Markup> {
    let newest =
        advisory.events.iter().max_by_key(|event| event.create_time.as_ref().map(|time| (time.seconds, time.nanos)));
    vec![
        link("/console/advisory", &[("uid", &advisory.uid)], &advisory.advisory_id),
        text(&advisory.aliases.join(", ")),
        text(&advisory.artifact_name),
        newest.map_or_else(none, |event| html! { (name_of(event)) " " (review(event)) }),
        severities(advisory),
        time(advisory.update_time.as_ref()),
    ]
}

fn severities(advisory: &Advisory) -> Markup {
    if advisory.severities.is_empty() {
        return none();
    }
    let kind = |number| severity::Type::try_from(number).unwrap_or_default();
    html! {
        ul.plain {
            @for one in &advisory.severities {
                li { (words(kind(one.r#type).as_str_name(), "TYPE_")) " " (code(&one.score)) }
            }
        }
    }
}

fn review(event: &AdvisoryEvent) -> Markup {
    let state = ReviewState::try_from(event.review_state).unwrap_or_default();
    let kind = match state {
        ReviewState::Unspecified => return html! {},
        ReviewState::Approved => "good",
        ReviewState::Rejected | ReviewState::RequestChanges => "bad",
        ReviewState::Pending => "plain",
    };
    badge(kind, &words(state.as_str_name(), "REVIEW_STATE_"))
}

fn name_of(event: &AdvisoryEvent) -> &'static str {
    match event.r#type {
        Some(Type::Detection(_)) => "detection",
        Some(Type::Fixed(_)) => "fixed",
        Some(Type::FalsePositiveDetermination(_)) => "false positive",
        Some(Type::AnalysisNotPlanned(_)) => "analysis not planned",
        Some(Type::FixNotPlanned(_)) => "fix not planned",
        Some(Type::PendingUpstreamFix(_)) => "pending upstream fix",
        Some(Type::TruePositiveDetermination(_)) => "true positive",
        Some(Type::Patched(_)) => "patched",
        None => "unknown event",
    }
}

/// One advisory and its events.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let uid = required(visit, "uid")?;
    let advisory = visit.call::<GetAdvisory>(GetAdvisoryRequest { uid: uid.clone() }).await?;
    let people = advisory.events.iter().flat_map(|event| [event.author.as_str(), event.reviewer.as_str()]);
    let names = Names::of(visit, people.chain([advisory.author.as_str()])).await?;
    let about = facts(&[
        ("Vulnerabilities", text(&advisory.aliases.join(", "))),
        ("Package", text(&advisory.artifact_name)),
        ("Package type", text(&advisory.artifact_type)),
        ("Architecture", text(&advisory.artifact_architecture)),
        ("Component", text(&advisory.component_name)),
        ("Component type", text(&advisory.component_type)),
        ("Location", text(&advisory.component_location)),
        ("Severity", severities(&advisory)),
        ("Author", names.show(&advisory.author)),
        ("Id", code(&advisory.uid)),
        ("Created", time(advisory.create_time.as_ref())),
        ("Changed", time(advisory.update_time.as_ref())),
    ]);
    let group = parent(&uid).to_owned();
    let body = html! {
        (about)
        (section("events", "Events", &html! {
            @if advisory.events.is_empty() { p.empty { "Nothing has been stated yet." } }
            ol { @for event in &advisory.events { li { (event_of(event, &names)) (reviews(visit, &group, event)) } } }
        }))
    };
    Ok(Content::new(advisory.advisory_id, body).below(address("/console/advisories", &[("in", &group)]), "Advisories"))
}

/// How an event that waits can be reviewed.
fn reviews(visit: &Visit, group: &str, event: &AdvisoryEvent) -> Markup {
    let state = ReviewState::try_from(event.review_state).unwrap_or_default();
    if !matches!(state, ReviewState::Pending | ReviewState::RequestChanges) {
        return html! {};
    }
    let answers = [
        ("Approve", ReviewStatus::Approved),
        ("Request changes", ReviewStatus::RequestChanges),
        ("Reject", ReviewStatus::Rejected),
    ];
    html! {
        ul.actions aria-label="Review" {
            @for (text, status) in answers {
                @let review = json!([{ "uid": event.uid, "status": status.as_str_name() }]).to_string();
                li { (action::<BatchReviewEvents>(visit, text, &[("parent", group), ("reviews", &review)])) }
            }
            li { (action::<PreviewPublication>(visit, "What it would publish", &[("uid", &event.uid)])) }
        }
    }
}

fn event_of(event: &AdvisoryEvent, names: &Names) -> Markup {
    html! {
        p {
            strong { (name_of(event)) } " " (review(event)) " "
            span.small { (time(event.create_time.as_ref())) }
            br;
            (detail(event))
            @if !event.author.is_empty() { br; span.small { "by " (names.show(&event.author)) } }
            @if !event.reviewer.is_empty() { span.small { ", reviewed by " (names.show(&event.reviewer)) } }
            @if let Some(issue) = event.issue.as_ref().filter(|issue| !issue.is_empty()) {
                br; span.small { "issue " (text(issue)) }
            }
        }
    }
}

fn detail(event: &AdvisoryEvent) -> Markup {
    use advisory_event::detection::Type as Detected;
    use advisory_event::false_positive_determination::Type as Cause;
    match &event.r#type {
        Some(Type::Detection(detection)) => match &detection.r#type {
            Some(Detected::Scanv1(scan)) => html! {
                "found by " (text(&scan.scanner)) " in " (text(&scan.component)) " " (code(&scan.component_version))
            },
            Some(Detected::Nvdapi(nvd)) => html! { "matched " (code(&nvd.cpe_found)) },
            Some(Detected::Manual(_)) => text("found by a person"),
            None => none(),
        },
        Some(Type::Fixed(fixed)) => html! { "in " (code(&fixed.fixed_version)) " " (note(&fixed.note)) },
        Some(Type::FalsePositiveDetermination(found)) => {
            let cause = Cause::try_from(found.r#type).unwrap_or_default();
            html! { (words(cause.as_str_name(), "TYPE_")) ". " (note(&found.note)) }
        }
        Some(Type::AnalysisNotPlanned(event)) => note(&event.note),
        Some(Type::FixNotPlanned(event)) => note(&event.note),
        Some(Type::PendingUpstreamFix(event)) => note(&event.note),
        Some(Type::TruePositiveDetermination(event)) => note(&event.note),
        Some(Type::Patched(event)) => {
            html! { "in " (code(&event.patched_versions.join(", "))) " " (note(&event.note)) }
        }
        None => none(),
    }
}
