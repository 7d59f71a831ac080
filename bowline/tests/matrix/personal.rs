//! Terms, and what people ask of groups they are not in.

use bowline_contract::Method;
use bowline_contract::v1::events::rpc::identities as event_identities;
use bowline_contract::v1::iam as i1;
use bowline_contract::v1::iam::rpc::{groups as groups1, terms as terms1};
use bowline_contract::v2::iam as i2;
use bowline_contract::v2::iam::rpc::{
    groups_service as groups2, identities_service as identities2, terms_service as terms2,
};

use super::{Aim, Check, Row, anybody, at, default, row};
use crate::oracle::{INVALID, NOT_FOUND, OK, PRECONDITION};

/// An authorized call gets the error that there is no such document: the server of the matrix has none.
pub(super) fn terms() -> Vec<Row> {
    let documents = || vec!["nothing".to_owned()];
    vec![
        Row {
            let_through: INVALID,
            ..at::<terms2::AcceptTerms>(move |aim| i2::AcceptTermsRequest {
                group: aim.group(),
                document_ids: documents(),
            })
        },
        Row {
            let_through: INVALID,
            ..at::<terms1::AcceptTerms>(move |aim| i1::AcceptTermsRequest {
                group: aim.group(),
                document_ids: documents(),
            })
        },
        at::<terms2::ListTermsAcceptances>(|aim| i2::ListTermsAcceptancesRequest { group: aim.group(), ..default() }),
        Row { absent_is_fine: true, ..at::<terms1::ListAccepted>(|aim| i1::TermsFilter { group: aim.group() }) },
    ]
}

/// What machines and the local operator are refused.
fn of_person<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    Row { let_through: PRECONDITION, ..row::<M>(Check::Person, build) }
}

/// What only people get something from. No person of the matrix has the address of an organization.
pub(super) fn of_people() -> Vec<Row> {
    vec![
        of_person::<identities2::UpdateIdentityMetadata>(|_| i2::UpdateIdentityMetadataRequest {
            identity_metadata: Some(i2::IdentityMetadata { company: "acme".into(), ..default() }),
            ..default()
        }),
        of_person::<event_identities::UpdateMetadata>(|_| default()),
        anybody::<groups2::LookupGroup>(NOT_FOUND, |_| i2::LookupGroupRequest {}),
        anybody::<groups1::LookupGroup>(NOT_FOUND, |_| i1::LookupGroupRequest {}),
        anybody::<groups2::CheckEligibility>(OK, |_| i2::CheckEligibilityRequest {}),
        anybody::<groups1::CheckEligibility>(OK, |_| i1::CheckEligibilityRequest {}),
        anybody::<groups2::RequestGroupAccess>(NOT_FOUND, |aim| i2::RequestGroupAccessRequest {
            group_uid: aim.group(),
        }),
        anybody::<groups1::RequestGroupAccess>(NOT_FOUND, |aim| i1::RequestGroupAccessRequest {
            group_id: aim.group(),
        }),
    ]
}
