//! The audit log, subscriptions and deliveries.

use bowline_contract::bowline::audit::v1 as audit;
use bowline_contract::bowline::audit::v1::rpc::audit as log;
use bowline_contract::bowline::events::v1 as own;
use bowline_contract::bowline::events::v1::rpc::deliveries_service as deliveries;
use bowline_contract::v1::events as e1;
use bowline_contract::v1::events::rpc::subscriptions as subscriptions1;
use bowline_contract::v2::events as e2;
use bowline_contract::v2::events::rpc::subscriptions_service as subscriptions2;

use super::{Aim, Check, Row, at, default, delete, list, row};
use crate::fixture::Kind;
use crate::oracle::NOT_FOUND;

/// Methods whose answer depends on what happened before: `behaviour/audit_log.rs` and `behaviour/audit_watch.rs`
/// check who may call them.
pub(crate) const ELSEWHERE: [&str; 7] = [
    "bowline.audit.v1.Audit.GetCheckpoints",
    "bowline.audit.v1.Audit.GetEntry",
    "bowline.audit.v1.Audit.WatchEntries",
    // `behaviour/audit_export.rs` has these.
    "bowline.audit.v1.Audit.ExportEntries",
    "bowline.audit.v1.Audit.GetSummary",
    "bowline.audit.v1.Audit.VerifyChain",
    // `behaviour/deliveries_log.rs`: a subscription is tested once in ten seconds.
    "bowline.events.v1.DeliveriesService.TestDelivery",
];

/// What was done to something stays on record when it is gone, and nothing may have been done yet.
pub(super) fn audit_log() -> Vec<Row> {
    let within = |aim: &Aim<'_>| audit::ListEntriesRequest { within: aim.group(), ..default() };
    let history = |aim: &Aim<'_>| audit::GetHistoryRequest { resource: aim.group(), ..default() };
    vec![
        Row { absent_is_fine: true, ..row::<log::ListEntries>(Check::List { refuses: true }, within) },
        Row { absent_is_fine: true, ..at::<log::GetHistory>(history) },
    ]
}

pub(super) fn subscriptions() -> Vec<Row> {
    let sink = || "https://a.example".to_owned();
    vec![
        at::<subscriptions2::GetSubscription>(|aim| e2::GetSubscriptionRequest { uid: aim.uid(Kind::Subscription) }),
        list::<subscriptions2::ListSubscriptions>(Kind::Subscription, true, |uidp| e2::ListSubscriptionsRequest {
            uidp,
            ..default()
        }),
        at::<subscriptions2::CreateSubscription>(move |aim| e2::CreateSubscriptionRequest {
            parent: aim.group(),
            subscription: Some(e2::Subscription { sink: sink(), ..default() }),
        }),
        delete::<subscriptions2::DeleteSubscription>(Kind::Subscription, |uid| e2::DeleteSubscriptionRequest { uid }),
        at::<subscriptions1::Create>(move |aim| e1::CreateSubscriptionRequest {
            parent_id: aim.group(),
            subscription: Some(e1::Subscription { sink: sink(), ..default() }),
        }),
        list::<subscriptions1::List>(Kind::Subscription, false, |uidp| e1::SubscriptionFilter { uidp, ..default() }),
        delete::<subscriptions1::Delete>(Kind::Subscription, |id| e1::DeleteSubscriptionRequest { id }),
        at::<deliveries::GetDeliveryStatus>(|aim| own::GetDeliveryStatusRequest { uid: aim.uid(Kind::Subscription) }),
        at::<deliveries::ListDeadLetters>(|aim| own::ListDeadLettersRequest {
            uid: aim.uid(Kind::Subscription),
            ..default()
        }),
        at::<deliveries::Redeliver>(|aim| own::RedeliverRequest {
            uid: aim.uid(Kind::Subscription),
            all: true,
            ..default()
        }),
        at::<deliveries::ListDeliveries>(|aim| own::ListDeliveriesRequest {
            uid: aim.uid(Kind::Subscription),
            ..default()
        }),
        at::<deliveries::Pause>(|aim| own::PauseRequest { uid: aim.uid(Kind::Subscription) }),
        at::<deliveries::Resume>(|aim| own::ResumeRequest { uid: aim.uid(Kind::Subscription) }),
        // No attempt has that number, which those hear who may read attempts.
        Row {
            let_through: NOT_FOUND,
            ..at::<deliveries::GetDelivery>(|aim| own::GetDeliveryRequest {
                uid: aim.uid(Kind::Subscription),
                number: 999,
            })
        },
    ]
}
