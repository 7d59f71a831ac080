//! Policies in force for Cargo and for generic files. They are bindings like those of the wire contract, whose methods leave them out.

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

/// What the mode of a policy must be, for refusals of others, and the ecosystem.
const MUST_BE: &str = "must be CARGO_POLICY_MODE_ENFORCED or CARGO_POLICY_MODE_LOG";
const MUST_BE_OF: &str = "must be CARGO or GENERIC; bindings put policies into force for the others";

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetPolicies>(handler!(get))
        .validate::<SetPolicy>(violations)
        .write::<SetPolicy>(handler!(set))
        .read::<ListBlockEvents>(handler!(list))
}

fn violations(request: &own::SetCargoPolicyRequest) -> Vec<FieldViolation> {
    let violation = |field: &str, text: &str| FieldViolation { field: field.into(), description: text.into() };
    let mode = mode(request.mode()).is_none().then(|| violation("mode", MUST_BE));
    let ecosystem = language(request.ecosystem).is_err().then(|| violation("ecosystem", MUST_BE_OF));
    mode.into_iter().chain(ecosystem).collect()
}

/// The ecosystem that a request is about: Cargo if it names none.
fn language(ecosystem: i32) -> Result<Language> {
    if ecosystem == own::Ecosystem::Unknown as i32 {
        return Ok(Language::Cargo);
    }
    let language = Language::of_own(ecosystem).filter(|language| !language.is_in_contract());
    language.ok_or_else(|| Error::invalid_field("ecosystem", MUST_BE_OF))
}

fn mode(mode: own::CargoPolicyMode) -> Option<Mode> {
    match mode {
        own::CargoPolicyMode::Unspecified => None,
        own::CargoPolicyMode::Enforced => Some(Mode::Enforced),
        own::CargoPolicyMode::Log => Some(Mode::Log),
    }
}

/// The policies of these bindings of an organization for an ecosystem.
pub(super) fn shown(organization: &str, language: Language, rows: &[BindingRow]) -> own::CargoPoliciesInForce {
    let of_mode = |mode: Mode| {
        let row = rows.iter().find(|row| row.mode == mode as i32);
        row.map(|row| row.policy.clone()).unwrap_or_default()
    };
    own::CargoPoliciesInForce {
        parent: organization.into(),
        enforced: of_mode(Mode::Enforced),
        logged: of_mode(Mode::Log),
        ecosystem: language.own() as i32,
    }
}

async fn get(tx: &mut ReadTx, call: &Authorized<own::GetCargoPoliciesRequest>) -> Result<own::CargoPoliciesInForce> {
    let organization = require_organization(tx, call).await?;
    let language = language(call.request().ecosystem)?;
    let rows = policy_bindings::of_language(tx, &organization, language).await?;
    Ok(shown(organization.as_str(), language, &rows))
}

async fn set(
    tx: &mut WriteTx,
    call: &Authorized<own::SetCargoPolicyRequest>,
) -> Result<Changed<own::CargoPoliciesInForce>> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let mode = mode(request.mode()).ok_or_else(|| Error::invalid_field("mode", MUST_BE))?;
    let language = language(request.ecosystem)?;
    if !request.policy.is_empty() {
        policy_bindings::require_policy(tx, organization.as_str(), &request.policy).await?;
    }
    let change = policy_bindings::set(tx, call, &organization, (language, mode), &request.policy).await?;
    let rows = policy_bindings::of_language(tx, &organization, language).await?;
    let response = shown(organization.as_str(), language, &rows);
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
    let language = language(request.ecosystem)?;
    let package = language.normalized(&request.package_name);
    let rest = own::ListCargoBlockEventsRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let query = BlockEventQuery {
        selection: Selection {
            ranges: policies::within(call, organization.as_str()),
            parent: Some(organization.as_str().into()),
            filters: vec![Filter { column: "ecosystem", value: Value::Int(language.number()) }],
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
