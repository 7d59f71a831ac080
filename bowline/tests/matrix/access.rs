//! Explanations of access.

use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::bowline::iam::v1::rpc::access_explainer as explainer;

use super::{Aim, Row, anybody, at, default};
use crate::fixture::Kind;
use crate::oracle::OK;

pub(super) fn explanations() -> Vec<Row> {
    let explained = |aim: &Aim<'_>, identity: String| own::ExplainAccessRequest {
        identity,
        capabilities: vec!["groups.list".into()],
        scope: aim.group(),
        ..default()
    };
    vec![
        at::<explainer::ExplainAccess>(move |aim| explained(aim, aim.uid(Kind::Identity))),
        // Everyone may ask about themselves, everywhere.
        anybody::<explainer::ExplainAccess>(OK, move |aim| explained(aim, String::new())),
        Row {
            absent_is_fine: true,
            ..at::<explainer::ListEffectiveAccess>(|aim| own::ListEffectiveAccessRequest {
                scope: aim.group(),
                ..default()
            })
        },
        anybody::<explainer::ListAccessOf>(OK, |aim| own::ListAccessOfRequest {
            identity: aim.uid(Kind::Identity),
            ..default()
        }),
    ]
}
