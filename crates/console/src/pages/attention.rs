//! What needs attention in an organization or group, as far as methods that count or filter say it.

use bowline_contract::bowline::events::v1::rpc::deliveries_service::GetDeliveryStatus;
use bowline_contract::bowline::events::v1::{DeliveryStatus, GetDeliveryStatusRequest};
use bowline_contract::bowline::registry::v1::rpc::replication::ListUpstreams;
use bowline_contract::bowline::registry::v1::{ListUpstreamsRequest, ListUpstreamsResponse, Usage};
use bowline_contract::bowline::vulnerabilities::v1::rpc::posture::ListFindings;
use bowline_contract::bowline::vulnerabilities::v1::{ListFindingsRequest, ListFindingsResponse};
use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_contract::v1::registry::vulnerability::fix::State;
use bowline_contract::v2::events::rpc::subscriptions_service::ListSubscriptions;
use bowline_contract::v2::events::{ListSubscriptionsRequest, ListSubscriptionsResponse};
use bowline_contract::v2::vulnerabilities::rpc::advisories_service::ListAdvisories;
use bowline_contract::v2::vulnerabilities::{ListAdvisoriesRequest, ListAdvisoriesResponse, ReviewState};
use bowline_core::{Code, Result};
use maud::{Markup, html};

use super::below;
use super::overview::{FULL, percent};
use crate::components::{link, refused};
use crate::values::{address_of, bytes, count, time};
use crate::visit::{Answer, ROWS, Visit};

/// The points of the list, and what could not be looked at.
#[derive(Default)]
struct Points {
    rows: Vec<Markup>,
    refused: Vec<Markup>,
}

impl Points {
    fn add<T>(&mut self, about: &str, answer: &Answer<T>, find: impl FnOnce(&T) -> Option<Markup>) {
        match &answer.result {
            Ok(response) => self.rows.extend(find(response)),
            Err(error) if error.code() == Code::PermissionDenied => {
                self.refused.push(html! { (about) ": " (refused(error, Some(answer.method))) });
            }
            Err(error) => self.refused.push(html! { (about) ": " (error.message()) }),
        }
    }
}

/// The list of what needs attention. The usage is that of the scope.
pub(super) async fn show(visit: &mut Visit, scope: &str, usage: &Answer<Usage>) -> Result<Markup> {
    let mut points = Points::default();
    deliveries(visit, scope, &mut points).await?;
    if let Ok(usage) = &usage.result {
        points.rows.extend(quota(scope, usage));
    }
    let request = ListAdvisoriesRequest {
        uidp: below(scope),
        event_review_states: vec![ReviewState::Pending.into()],
        page_size: 1,
        ..ListAdvisoriesRequest::default()
    };
    let answer = visit.answer::<ListAdvisories>(request).await?;
    points.add("Reviews", &answer, |response| reviews(scope, response));
    let request = ListUpstreamsRequest {
        parent: scope.to_owned(),
        failed_only: true,
        page_size: ROWS,
        ..ListUpstreamsRequest::default()
    };
    let answer = visit.answer::<ListUpstreams>(request).await?;
    points.add("Upstreams", &answer, |response| upstreams(scope, response));
    let request = ListFindingsRequest {
        scope: scope.to_owned(),
        severities: vec![Severity::Critical.into()],
        fix_states: vec![State::Fixed.into()],
        page_size: ROWS,
        ..ListFindingsRequest::default()
    };
    let answer = visit.answer::<ListFindings>(request).await?;
    points.add("Findings", &answer, |response| fixable(scope, response));
    Ok(html! {
        @if points.rows.is_empty() && points.refused.is_empty() { p.empty { "Nothing needs attention." } }
        @if !points.rows.is_empty() { ul.points { @for point in &points.rows { li { (point) } } } }
        @if !points.refused.is_empty() {
            details { summary { "Not looked at: " (points.refused.len()) }
                ul.plain { @for point in &points.refused { li { (point) } } }
            }
        }
    })
}

/// No method lists failing subscriptions: the state of the first one is read, and of others is said that it was not.
async fn deliveries(visit: &mut Visit, scope: &str, points: &mut Points) -> Result<()> {
    let request = ListSubscriptionsRequest { uidp: below(scope), page_size: 1, ..ListSubscriptionsRequest::default() };
    let list = visit.answer::<ListSubscriptions>(request).await?;
    let first = list.result.as_ref().ok().and_then(|response| response.subscriptions.first()).cloned();
    points.add("Subscriptions", &list, |response| others(scope, response));
    if let Some(first) = first {
        let status = visit.answer::<GetDeliveryStatus>(GetDeliveryStatusRequest { uid: first.uid.clone() }).await?;
        points.add("Deliveries", &status, |status| failing(&first.sink, status));
    }
    Ok(())
}

fn failing(sink: &str, status: &DeliveryStatus) -> Option<Markup> {
    let subject = link("/console/deliveries", &[("uid", &status.uid)], &address_of(sink));
    if status.failing_since.is_some() {
        return Some(html! {
            "Deliveries to " (subject) " fail since " (time(status.failing_since.as_ref())) "; "
            (count(status.waiting.into(), "event waits", "events wait")) "."
        });
    }
    let dead = status.dead_letters;
    (dead > 0).then(|| html! { (count(dead.into(), "event", "events")) " for " (subject) " could not be delivered." })
}

fn others(scope: &str, response: &ListSubscriptionsResponse) -> Option<Markup> {
    let others = response.total_count.unwrap_or(0) - response.subscriptions.len() as i64;
    (others > 0).then(|| {
        html! {
            "The deliveries of " (count(others, "other subscription", "other subscriptions")) " were not looked at: see "
            (link("/console/subscriptions", &[("in", scope)], "all subscriptions")) "."
        }
    })
}

fn quota(scope: &str, usage: &Usage) -> Option<Markup> {
    let reached = percent(usage.bytes, usage.byte_quota);
    (usage.byte_quota > 0 && reached >= FULL).then(|| {
        html! {
            "The quota is used to " (reached) " %: " (bytes(usage.bytes)) " of " (bytes(usage.byte_quota)) ". "
            (link("/console/repositories", &[("in", scope), ("order", "size desc")], "Repositories by size"))
        }
    })
}

fn reviews(scope: &str, response: &ListAdvisoriesResponse) -> Option<Markup> {
    let waiting = response.total_count.unwrap_or(response.advisories.len() as i64);
    let shown = count(waiting, "advisory", "advisories");
    (waiting > 0).then(|| {
        html! {
            (link("/console/advisories", &[("in", scope), ("review", ReviewState::Pending.as_str_name())], &shown))
            @if waiting == 1 { " has" } @else { " have" } " events that wait for a reviewer."
        }
    })
}

/// A number of a page, which may not be the last one.
fn of_page(number: usize, next: &str, one: &str, many: &str) -> String {
    let shown = count(number as i64, one, many);
    if next.is_empty() { shown } else { format!("at least {shown}") }
}

fn upstreams(scope: &str, response: &ListUpstreamsResponse) -> Option<Markup> {
    let number = response.upstreams.len();
    let shown = of_page(number, &response.next_page_token, "upstream", "upstreams");
    (number > 0).then(|| {
        html! { "The last check of " (link("/console/upstreams", &[("in", scope), ("failed", "true")], &shown)) " failed." }
    })
}

fn fixable(scope: &str, response: &ListFindingsResponse) -> Option<Markup> {
    let number = response.findings.len();
    let shown = of_page(number, &response.next_page_token, "critical finding", "critical findings");
    let filters = [("in", scope), ("severity", Severity::Critical.as_str_name()), ("fix", State::Fixed.as_str_name())];
    (number > 0).then(|| {
        html! { (link("/console/findings", &filters, &shown)) @if number == 1 { " has" } @else { " have" } " a fix." }
    })
}
