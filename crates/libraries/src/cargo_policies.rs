//! Policies in force for Cargo. They are bindings like those of the wire contract, whose methods leave them out.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::cargo_policies::{GetPolicies, ListBlockEvents, SetPolicy};
use bowline_core::{Error, FieldViolation, Result};
use bowline_pipeline::{Authorized, Changed, Handlers, PageRequest, handler};
use bowline_resources::list::{Filter, Listing, Selection, micros};
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use super::block_events::BlockEventQuery;
use super::ecosystems::Language;
use super::policies::{self, Mode};
use super::policy_bindings::{self, BindingRow};
use super::require_organization;

/// What the mode of a policy must be, for refusals of others.
const MUST_BE: &str = "must be CARGO_POLICY_MODE_ENFORCED or CARGO_POLICY_MODE_LOG";

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetPolicies>(handler!(get))
        .validate::<SetPolicy>(violations)
        .write::<SetPolicy>(handler!(set))
        .read::<ListBlockEvents>(handler!(list))
}

fn violations(request: &own::SetCargoPolicyRequest) -> Vec<FieldViolation> {
    match mode(request.mode()) {
        Some(_) => Vec::new(),
        None => vec![FieldViolation { field: "mode".into(), description: MUST_BE.into() }],
    }
}

fn mode(mode: own::CargoPolicyMode) -> Option<Mode> {
    match mode {
        own::CargoPolicyMode::Unspecified => None,
        own::CargoPolicyMode::Enforced => Some(Mode::Enforced),
        own::CargoPolicyMode::Log => Some(Mode::Log),
    }
}

/// The policies of these bindings of an organization.
pub(super) fn shown(organization: &str, rows: &[BindingRow]) -> own::CargoPoliciesInForce {
    let of_mode = |mode: Mode| {
        let row = rows.iter().find(|row| row.mode == mode as i32);
        row.map(|row| row.policy.clone()).unwrap_or_default()
    };
    own::CargoPoliciesInForce {
        parent: organization.into(),
        enforced: of_mode(Mode::Enforced),
        logged: of_mode(Mode::Log),
    }
}

async fn get(tx: &mut ReadTx, call: &Authorized<own::GetCargoPoliciesRequest>) -> Result<own::CargoPoliciesInForce> {
    let organization = require_organization(tx, call).await?;
    let rows = policy_bindings::of_language(tx, &organization, Language::Cargo).await?;
    Ok(shown(organization.as_str(), &rows))
}

async fn set(
    tx: &mut WriteTx,
    call: &Authorized<own::SetCargoPolicyRequest>,
) -> Result<Changed<own::CargoPoliciesInForce>> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let mode = mode(request.mode()).ok_or_else(|| Error::invalid_field("mode", MUST_BE))?;
    if !request.policy.is_empty() {
        policy_bindings::require_policy(tx, organization.as_str(), &request.policy).await?;
    }
    let change = policy_bindings::set(tx, call, &organization, (Language::Cargo, mode), &request.policy).await?;
    let rows = policy_bindings::of_language(tx, &organization, Language::Cargo).await?;
    let response = shown(organization.as_str(), &rows);
    Ok(match change {
        Some(change) => Changed::many(vec![change], response).with_event(&organization, request),
        None => Changed::nothing(response),
    })
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListCargoBlockEventsRequest>,
) -> Result<own::CargoBlockEventList> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let package = Language::Cargo.normalized(&request.package_name);
    let rest = own::ListCargoBlockEventsRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let query = BlockEventQuery {
        selection: Selection {
            ranges: policies::within(call, organization.as_str()),
            parent: Some(organization.as_str().into()),
            filters: vec![Filter { column: "ecosystem", value: Value::Int(Language::Cargo.number()) }],
            conditions: Vec::new(),
            clauses: Vec::new(),
        },
        mode: mode(request.mode()).unwrap_or(Mode::Enforced),
        package: &package,
        since: request.since.map(micros),
        page: PageRequest {
            page_size: request.page_size,
            page_token: request.page_token.clone(),
            filter: rest.encode_to_vec(),
            ..PageRequest::default()
        },
    };
    let Listing { items, next_page_token, total_count, skipped } = query.page(tx, call).await?;
    Ok(own::CargoBlockEventList { items, next_page_token, total_count, skipped })
}
