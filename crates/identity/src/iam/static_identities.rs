//! Identities with static keys, created by the operator's own services in one flat message.

use bowline_contract::v1::events;
use bowline_contract::v1::events::rpc::identities::Create;
use bowline_contract::v2::iam::identity::{Relationship, StaticKeys};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::references::require_group;
use bowline_store::WriteTx;

use super::identities::{self, IdentityInput};
use super::relationship::{self, Spelling};

/// The parts of the relationship are fields of the request itself.
const FLAT: Spelling = Spelling { static_keys: "", expiration: "expiration" };

/// What such identities are called: the message has no name, and names need not be unique.
const NAME: &str = "static keys";

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .validate::<Create>(|request| relationship::violations(Some(&keys(request)), &FLAT))
        .write::<Create>(handler!(create))
}

fn keys(request: &events::Identity) -> Relationship {
    Relationship::StaticKeys(StaticKeys {
        issuer: request.issuer.clone(),
        subject: request.subject.clone(),
        issuer_keys: request.issuer_keys.clone(),
        expiration_time: request.expiration,
        audiences: Vec::new(),
    })
}

/// Creates an identity in the group that `id` names; the response has the identity's own UIDP there.
async fn create(tx: &mut WriteTx, call: &Authorized<events::Identity>) -> Result<Changed<events::Identity>> {
    let request = call.request();
    let group = Uidp::parse(&request.id).map_err(|error| Error::invalid_field("id", format!("id {error}")))?;
    require_group(tx, &group).await?;
    let input = IdentityInput { name: NAME.into(), relationship: Some(keys(request)), ..IdentityInput::default() };
    let changed = identities::create_in(tx, call, &group, input, &FLAT).await?;
    let expiration = match changed.response.relationship()? {
        Some(Relationship::StaticKeys(keys)) => keys.expiration_time,
        _ => None,
    };
    Ok(changed.map(|row| events::Identity { id: row.uid.as_str().into(), expiration, ..request.clone() }))
}
