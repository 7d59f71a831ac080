use bowline_contract::bowline::events::v1::rpc::deliveries_service::{
    GetDelivery, GetDeliveryStatus, ListDeadLetters, ListDeliveries, Redeliver,
};
use bowline_contract::bowline::events::v1::{
    DeadLetter, Delivery, DeliveryKind, DeliveryStatus, GetDeliveryRequest, GetDeliveryStatusRequest,
    ListDeadLettersRequest, ListDeliveriesRequest,
};
use bowline_contract::v2::events::rpc::subscriptions_service::{GetSubscription, ListSubscriptions};
use bowline_contract::v2::events::{GetSubscriptionRequest, ListSubscriptionsRequest, Subscription};
use bowline_core::{Error, Result};
use maud::{Markup, html};

use super::{below, parent, part, required};
use crate::components::{List, action, facts, link, refused, section, table};
use crate::query::address;
use crate::shell::Content;
use crate::values::{address_of, badge, block, code, none, text, time, words};
use crate::visit::{ROWS, Visit};

/// Dead letters on the page of a subscription.
const SOME: i32 = 20;

/// Subscriptions in a group and below, or all visible ones.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let request = ListSubscriptionsRequest {
        uidp: below(&visit.scope()),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListSubscriptionsRequest::default()
    };
    let response = visit.call::<ListSubscriptions>(request).await?;
    let row = |one: &Subscription| {
        let group = parent(&one.uid);
        vec![
            link("/console/deliveries", &[("uid", &one.uid)], &address_of(&one.sink)),
            link("/console/group", &[("uid", group)], group),
            code(&one.uid),
        ]
    };
    let list = List {
        caption: "Subscriptions",
        heads: &["Sink", "Group", "Id"],
        rows: response.subscriptions.iter().map(row).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: "There is no subscription that you may see here. Make one with: bowline events subscriptions create",
        filters: &[],
    };
    Ok(Content::new("Subscriptions", list.render(visit)))
}

/// One subscription: its state, attempts, and events that were given up.
pub(super) async fn deliveries(visit: &mut Visit) -> Result<Content> {
    let uid = required(visit, "uid")?;
    let subscription = visit.call::<GetSubscription>(GetSubscriptionRequest { uid: uid.clone() }).await?;
    let status = part(visit.call::<GetDeliveryStatus>(GetDeliveryStatusRequest { uid: uid.clone() }).await)?;
    let status_method = visit.last_method().map(str::to_owned);
    let request = ListDeliveriesRequest { uid: uid.clone(), page_size: ROWS, page_token: visit.query.text("page") };
    let attempts = part(visit.call::<ListDeliveries>(request).await)?;
    let attempts_method = visit.last_method().map(str::to_owned);
    let request = ListDeadLettersRequest { uid: uid.clone(), page_size: SOME, page_token: String::new() };
    let dead = part(visit.call::<ListDeadLetters>(request).await)?;
    let dead_method = visit.last_method().map(str::to_owned);
    let body = html! {
        (section("state", "State", &match &status {
            Ok(status) => state(status),
            Err(error) => refused(error, status_method.as_deref()),
        }))
        (section("attempts", "Attempts", &match &attempts {
            Ok(response) => List {
                caption: "Attempts to deliver, the newest first",
                heads: &["Event", "Outcome", "Time", "Took", "Kind"],
                rows: response.deliveries.iter().map(|one| attempt(&uid, one)).collect(),
                next: &response.next_page_token,
                total: None,
                empty: "Nothing has been delivered yet.",
                filters: &[],
            }
            .render(visit),
            Err(error) => refused(error, attempts_method.as_deref()),
        }))
        (section("dead", "Events that were given up", &match &dead {
            Ok(response) if response.dead_letters.is_empty() => html! { p.empty { "None was given up." } },
            Ok(response) => {
                let rows: Vec<_> = response.dead_letters.iter().map(|letter| given_up_row(visit, &uid, letter)).collect();
                table("The newest first", &["Event", "About", "Why", "Given up", "Delivered again", "Actions"], &rows)
            }
            Err(error) => refused(error, dead_method.as_deref()),
        }))
    };
    let group = parent(&uid);
    Ok(Content::new(address_of(&subscription.sink), body)
        .below(address("/console/subscriptions", &[("in", group)]), "Subscriptions"))
}

fn state(status: &DeliveryStatus) -> Markup {
    let mood = if status.pause_time.is_some() {
        badge("plain", "paused")
    } else if status.failing_since.is_some() {
        badge("bad", "failing")
    } else {
        badge("good", "working")
    };
    facts(&[
        ("State", mood),
        ("Paused", time(status.pause_time.as_ref())),
        ("Failing since", time(status.failing_since.as_ref())),
        ("Last error", text(&status.last_error)),
        ("Next attempt", time(status.next_attempt_time.as_ref())),
        ("Waiting", text(&status.waiting.to_string())),
        ("Oldest waiting", time(status.oldest_waiting_time.as_ref())),
        ("Given up", text(&status.dead_letters.to_string())),
    ])
}

fn attempt(uid: &str, delivery: &Delivery) -> Vec<Markup> {
    let number = delivery.number.to_string();
    let kind = DeliveryKind::try_from(delivery.kind).unwrap_or_default();
    vec![
        link("/console/delivery", &[("uid", uid), ("number", &number)], &delivery.event_type),
        outcome(delivery),
        time(delivery.time.as_ref()),
        took(delivery),
        text(&words(kind.as_str_name(), "DELIVERY_KIND_")),
    ]
}

fn outcome(delivery: &Delivery) -> Markup {
    match delivery.status {
        status @ 200..=299 => badge("good", &status.to_string()),
        0 => html! { (badge("bad", "no response")) " " (text(&delivery.error)) },
        status => html! { (badge("bad", &status.to_string())) " " (text(&delivery.error)) },
    }
}

fn took(delivery: &Delivery) -> Markup {
    delivery.duration.as_ref().map_or_else(none, |duration| {
        text(&format!("{} ms", duration.seconds * 1000 + i64::from(duration.nanos) / 1_000_000))
    })
}

fn given_up_row(visit: &Visit, uid: &str, letter: &DeadLetter) -> Vec<Markup> {
    vec![
        code(&letter.event_type),
        code(&letter.subject),
        text(&letter.last_error),
        time(letter.death_time.as_ref()),
        time(letter.redeliver_time.as_ref()),
        action::<Redeliver>(visit, "Deliver again", &[("uid", uid), ("event_id", &letter.event_id)]),
    ]
}

/// One attempt: what was sent, and the beginning of the answer.
pub(super) async fn delivery(visit: &mut Visit) -> Result<Content> {
    let uid = required(visit, "uid")?;
    let number = required(visit, "number")?;
    let number = number.parse().map_err(|_| Error::invalid_field("number", "must be a number"))?;
    let delivery = visit.call::<GetDelivery>(GetDeliveryRequest { uid: uid.clone(), number }).await?;
    let about = facts(&[
        ("Event", code(&delivery.event_type)),
        ("Id of the event", code(&delivery.event_id)),
        ("About", code(&delivery.subject)),
        ("Outcome", outcome(&delivery)),
        ("Time", time(delivery.time.as_ref())),
        ("Took", took(&delivery)),
    ]);
    let body = html! {
        (about)
        (section("sent", "What was sent", &block(&delivery.payload)))
        (section("answer", "What the sink answered", &block(&delivery.response)))
    };
    Ok(Content::new(format!("Attempt {number}"), body)
        .below(address("/console/deliveries", &[("uid", &uid)]), "Subscription"))
}
