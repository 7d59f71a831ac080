//! Explanations of access, names, access requests, tests of claims, sessions and preferences.

use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::bowline::iam::v1::rpc::{
    access_explainer as explainer, access_requests as requests, matchers, names,
};
use bowline_contract::bowline::people::v1 as people;
use bowline_contract::bowline::people::v1::rpc::sessions;
use bowline_contract::v2::iam::identity::ClaimMatch;
use bowline_contract::v2::iam::identity::claim_match::{Iss, Sub};

use super::{Aim, Row, anybody, at, default};
use crate::fixture::Kind;
use crate::oracle::{NOT_FOUND, OK};

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

/// No one has asked to be let in here, so that an answer is let through to a request that is not there.
pub(super) fn requests_and_names() -> Vec<Row> {
    vec![
        at::<requests::ListAccessRequests>(|aim| own::ListAccessRequestsRequest { group: aim.group(), ..default() }),
        Row {
            let_through: NOT_FOUND,
            ..at::<requests::AnswerAccessRequest>(|aim| own::AnswerAccessRequestRequest {
                group: aim.group(),
                identity: "ab".repeat(20),
                decline: true,
                ..default()
            })
        },
        anybody::<names::ResolveNames>(OK, |aim| own::ResolveNamesRequest { uids: vec![aim.group()] }),
    ]
}

pub(super) fn tests_of_trust() -> Vec<Row> {
    vec![
        Row {
            absent_is_fine: true,
            ..at::<matchers::TestClaims>(|aim| own::TestClaimsRequest {
                parent: aim.group(),
                claim_match: Some(ClaimMatch {
                    iss: Some(Iss::Issuer(aim.issuer())),
                    sub: Some(Sub::Subject(aim.name())),
                    ..default()
                }),
                claims: Some(default()),
                ..default()
            })
        },
        Row {
            absent_is_fine: true,
            ..at::<matchers::TestIssuer>(|aim| own::TestIssuerRequest { parent: aim.group(), issuer: aim.issuer() })
        },
    ]
}

/// Machines and the operator have no sessions, and everyone has preferences.
pub(super) fn of_oneself() -> Vec<Row> {
    vec![
        anybody::<sessions::ListSessions>(OK, |_| default()),
        anybody::<sessions::EndSession>(NOT_FOUND, |_| people::EndSessionRequest { id: "absent".into() }),
        anybody::<sessions::EndAllSessions>(OK, |_| default()),
        at::<sessions::ListProviderSessions>(|aim| people::ListProviderSessionsRequest {
            provider: aim.uid(Kind::Provider),
            ..default()
        }),
        anybody::<sessions::GetPreferences>(OK, |_| default()),
        anybody::<sessions::UpdatePreferences>(OK, |_| people::UpdatePreferencesRequest {
            preferences: Some(people::Preferences { page_size: 20, ..default() }),
            ..default()
        }),
    ]
}
