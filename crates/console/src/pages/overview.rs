//! The home of an organization or group: what needs attention, and the numbers of its lists.

use bowline_contract::bowline::audit::v1::rpc::audit::ListEntries;
use bowline_contract::bowline::audit::v1::{ListEntriesRequest, ListEntriesResponse};
use bowline_contract::bowline::libraries::v1::rpc::decisions::GetBlockStatistics;
use bowline_contract::bowline::libraries::v1::{BlockStatistics, GetBlockStatisticsRequest};
use bowline_contract::bowline::registry::v1::rpc::statistics::{GetUsage, ListActivity, ListTopUsage};
use bowline_contract::bowline::registry::v1::{
    ActivityKind, GetUsageRequest, ListActivityRequest, ListActivityResponse, ListTopUsageRequest,
    ListTopUsageResponse, Usage, UsageOrder,
};
use bowline_contract::bowline::vulnerabilities::v1::rpc::posture::GetPosture;
use bowline_contract::bowline::vulnerabilities::v1::{GetPostureRequest, PostureSummary};
use bowline_core::{Error, Result, Uidp};
use maud::{Markup, html};
use prost_types::Timestamp;

use super::{attention, audit, checklist, findings, parent};
use crate::chart;
use crate::components::{link, refused, section, table};
use crate::query::address;
use crate::shell::Content;
use crate::values::{bytes, count, day, text};
use crate::visit::{Answer, Visit};

/// Days of the picture of findings.
const FINDING_DAYS: i64 = 90;
/// Groups and repositories of those that store the most.
const TOP: i32 = 5;
/// Number of last changes.
const RECENT: i32 = 8;
/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;
/// Share of a quota from which on it needs attention, in percent.
pub(super) const FULL: i64 = 85;

/// The home of the organization or group that the query names.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let scope = visit.scope();
    if scope.is_empty() {
        return Ok(findings::choose("Home"));
    }
    // One error of the page, in place of one in each of its parts.
    if !Uidp::is_valid(&scope) {
        return Err(Error::invalid_field(
            "in",
            "must be the id of an organization or group: open this page from a list",
        ));
    }
    let usage = visit.answer::<GetUsage>(GetUsageRequest { scope: scope.clone() }).await?;
    let has_images = usage.result.as_ref().map_or(true, |usage| usage.repos > 0);
    let first = if has_images { images(visit, &scope, &usage).await? } else { checklist::show(visit, &scope).await? };
    let request = ListEntriesRequest { within: scope.clone(), page_size: RECENT, ..ListEntriesRequest::default() };
    let recent = visit.answer::<ListEntries>(request).await?;
    let changed = recent.result.as_ref().map_or(&[][..], |response| &response.entries);
    let names = audit::names_in(visit, changed).await?;
    let changes = |response: &ListEntriesResponse| audit::brief(&response.entries, &names);
    let recent = tile("recent", "Last changes", &at("/console/audit", &scope), "Audit log", &shown(&recent, changes));
    let mut body = html! { (first) (recent) };
    // Policies for packages are of organizations.
    if parent(&scope).is_empty() {
        let request = GetBlockStatisticsRequest { parent: scope.clone(), ..GetBlockStatisticsRequest::default() };
        let blocked = visit.answer::<GetBlockStatistics>(request).await?;
        let blocked = shown(&blocked, blocked_by_reason);
        let list = at("/console/blocked", &scope);
        body = html! { (body) (tile("blocked", "Packages blocked in 30 days", &list, "Blocked packages", &blocked)) };
    }
    Ok(Content::new("Home", html! { div.tiles { (body) } }))
}

/// The tiles of an organization that has images.
async fn images(visit: &mut Visit, scope: &str, usage: &Answer<Usage>) -> Result<Markup> {
    let now = visit.app.now() / 1_000_000;
    let start_time = Some(Timestamp { seconds: now - (FINDING_DAYS - 1) * DAY, nanos: 0 });
    let request = GetPostureRequest { scope: scope.to_owned(), start_time, ..GetPostureRequest::default() };
    let posture = visit.answer::<GetPosture>(request).await?;
    let kind = ActivityKind::Pulls.into();
    let request = ListActivityRequest { scope: scope.to_owned(), kind, ..ListActivityRequest::default() };
    let pulls = visit.answer::<ListActivity>(request).await?;
    let request = ListTopUsageRequest { scope: scope.to_owned(), order: UsageOrder::Bytes.into(), limit: TOP };
    let top = visit.answer::<ListTopUsage>(request).await?;
    let attention = attention::show(visit, scope, usage).await?;
    Ok(html! {
        (section_wide("attention", "Needs attention", &attention))
        (tile("open", "Open findings", &at("/console/posture", scope), "Posture", &shown(&posture, open)))
        (tile("pulls", "Pulls", &at("/console/repositories", scope), "Repositories", &shown(&pulls, activity)))
        (tile("stored", "Stored", &at("/console/repositories", scope), "Repositories by size", &html! {
            (shown(usage, stored))
            (shown(&top, |rows| largest(scope, rows)))
        }))
    })
}

fn at(page: &str, scope: &str) -> String {
    let order = if page.ends_with("repositories") { "size desc" } else { "" };
    address(page, &[("in", scope), ("order", order)])
}

/// A part of the page that leads to its list.
fn tile(id: &str, title: &str, address: &str, list: &str, body: &Markup) -> Markup {
    section(id, title, &html! { (body) p { a href=(address) { (list) } } })
}

fn section_wide(id: &str, title: &str, body: &Markup) -> Markup {
    html! { div.wide { (section(id, title, body)) } }
}

/// What a tile shows: the response, or the sentence of its refusal.
pub(super) fn shown<T>(answer: &Answer<T>, show: impl Fn(&T) -> Markup) -> Markup {
    match &answer.result {
        Ok(response) => show(response),
        Err(error) => refused(error, Some(answer.method)),
    }
}

fn open(posture: &PostureSummary) -> Markup {
    html! {
        (findings::picture(posture))
        @if posture.incomplete { p.notice { "Not everything was counted: choose a smaller group." } }
    }
}

/// The pulls of each day.
pub(super) fn activity(response: &ListActivityResponse) -> Markup {
    let days: Vec<chart::Day> = response
        .days
        .iter()
        .map(|one| chart::Day { name: day(one.day.as_ref()), values: Some(vec![one.amount]) })
        .collect();
    let sum: i64 = response.days.iter().map(|one| one.amount).sum();
    let most = response.days.iter().max_by_key(|one| one.amount).filter(|one| one.amount > 0);
    let most = most.map(|one| format!(", most of them on {}", day(one.day.as_ref()))).unwrap_or_default();
    let finding = format!("{} in {}{most}.", count(sum, "pull", "pulls"), count(days.len() as i64, "day", "days"));
    let rows = response.days.iter().rev().map(|one| vec![text(&day(one.day.as_ref())), text(&one.amount.to_string())]);
    let numbers = table("Pulls by day (UTC), the newest day first", &["Day", "Pulls"], &rows.collect::<Vec<_>>());
    chart::bars(
        &chart::Figure { id: "pulls-chart", title: "Pulls by day", finding: &finding, numbers: Some(numbers) },
        &days,
    )
}

/// Stored bytes, of a quota where there is one.
fn stored(usage: &Usage) -> Markup {
    let quota = usage.byte_quota;
    let class = if usage.bytes >= quota / 100 * FULL { "full" } else { "bar" };
    html! {
        @if quota > 0 {
            p { (bytes(usage.bytes)) " of " (bytes(quota)) " (" (percent(usage.bytes, quota)) " %)" }
            (chart::share(usage.bytes, quota, class))
        } @else {
            p { (bytes(usage.bytes)) ", without a quota" }
        }
    }
}

/// The part in percent of the whole, as far as it is reached.
pub(super) fn percent(part: i64, whole: i64) -> i64 {
    (i128::from(part) * 100 / i128::from(whole.max(1))) as i64
}

/// What is directly below and stores the most. Repositories have their own page, and groups their home.
fn largest(scope: &str, response: &ListTopUsageResponse) -> Markup {
    let most = response.rows.iter().map(|row| row.amount).max().unwrap_or(0);
    let row = |row: &bowline_contract::bowline::registry::v1::UsageRow| {
        let name = if row.name.is_empty() { &row.uid } else { &row.name };
        vec![
            link("/console/search", &[("q", &row.uid), ("in", scope)], name),
            html! { (bytes(row.amount)) (chart::share(row.amount, most, "bar")) },
        ]
    };
    let rows: Vec<_> = response.rows.iter().filter(|row| row.amount > 0).map(row).collect();
    html! { @if !rows.is_empty() { (table("What stores the most", &["Name", "Stored"], &rows)) } }
}

fn blocked_by_reason(statistics: &BlockStatistics) -> Markup {
    let row = |one: &bowline_contract::bowline::libraries::v1::BlockedByReason| {
        vec![
            text(&one.reason.to_lowercase().replace('_', " ")),
            html! { (one.attempts) (chart::share(one.attempts, statistics.attempts, "bar")) },
            text(&one.packages.to_string()),
        ]
    };
    let rows: Vec<_> = statistics.reasons.iter().map(row).collect();
    html! {
        @if rows.is_empty() { p.empty { "No download was refused." } } @else {
            p { (count(statistics.attempts, "attempt", "attempts")) ", " (count(statistics.package_count.into(), "package", "packages")) }
            (table("By reason", &["Reason", "Attempts", "Packages"], &rows))
        }
    }
}
