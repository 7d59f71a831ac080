//! Who am I: what a token says, and what its identity may do at the moment.

use std::collections::HashMap;

use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::auth::WhoAmI;
use bowline_contract::v1::auth::rpc::auth::Validate;
use bowline_contract::v1::auth::who_am_i::Capability as Held;
use bowline_contract::v1::iam::{Group, Role};
use bowline_contract::{BuiltInRole, Contract};
use bowline_core::{CapabilitySet, Error, Result};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::list::{Listed, timestamp};
use bowline_store::{ReadTx, Value, placeholders};

use crate::iam::groups::{GroupRow, TABLE};
use crate::oidc::groups_left;

/// Directly bound groups that are shown at most, as in a token.
const SHOWN: usize = 100;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<Validate>(handler!(validate))
}

async fn validate(tx: &mut ReadTx, call: &Authorized<()>) -> Result<WhoAmI> {
    let facts = call.principal().token().ok_or_else(|| Error::internal("a caller without a token was let in"))?;
    let left = groups_left(&call.grants().direct(usize::MAX), &facts.narrowing);
    let held: Vec<(String, CapabilitySet)> = left.into_iter().take(SHOWN).collect();
    let mut groups = readable_groups(tx, call, &held).await?;
    let capabilities = held
        .into_iter()
        .map(|(uid, set)| {
            let role = built_in(call.contract(), &set);
            let names = if role.is_some() { Vec::new() } else { call.contract().capabilities().names(&set) };
            Held {
                group: Some(groups.remove(&uid).unwrap_or(Group { id: uid, ..Group::default() })),
                role: role.map(shown_role),
                capabilities: names.into_iter().map(String::from).collect(),
            }
        })
        .collect();
    Ok(WhoAmI {
        issuer: facts.issuer.clone(),
        subject: facts.subject.as_str().into(),
        audience: facts.audiences.clone(),
        expiry: timestamp(facts.expires_at),
        issued_at: timestamp(facts.issued_at),
        capabilities,
        email: facts.email.clone().unwrap_or_default(),
        profile: None,
    })
}

/// The groups that the caller could also read itself; of others only the UIDP is returned.
async fn readable_groups(
    tx: &mut ReadTx,
    call: &Authorized<()>,
    held: &[(String, CapabilitySet)],
) -> Result<HashMap<String, Group>> {
    let uids = held.iter().map(|(uid, _)| uid).filter(|uid| call.holds(uid, Capability::CapIamGroupsList));
    let params: Vec<Value<'_>> = uids.map(Value::from).collect();
    if params.is_empty() {
        return Ok(HashMap::new());
    }
    let groups = placeholders(1, params.len());
    let sql = format!("SELECT {} FROM {} WHERE uid IN ({groups})", TABLE.columns, TABLE.name);
    let rows = tx.query(&sql, &params, GroupRow::read).await?;
    Ok(rows.iter().map(|row| (row.uid.as_str().to_owned(), row.to_v1())).collect())
}

/// The built-in role that is exactly this set.
fn built_in<'a>(contract: &'a Contract, set: &CapabilitySet) -> Option<&'a BuiltInRole> {
    contract.built_in_roles().iter().find(|role| role.capabilities == *set)
}

fn shown_role(role: &BuiltInRole) -> Role {
    Role {
        id: role.uid.clone(),
        name: role.name.clone(),
        description: role.description.clone(),
        capabilities: Vec::new(),
    }
}
