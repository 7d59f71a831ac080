//! Names in place of UIDPs.

use bowline_client::{Api, ClientError};
use bowline_contract::Contract;
use bowline_core::Uidp;
use bowline_terminal::suggestion;
use serde_json::{Map, Value, json};

use super::table::Kind;
use crate::complete::Subject;
use crate::registry::targets;
use crate::{dynamic, resolve};

/// The method that lists resources of a kind by name.
fn list_method(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Role => Some("chainguard.platform.iam.v2.RolesService.ListRoles"),
        Kind::Identity => Some("chainguard.platform.iam.v2.IdentitiesService.ListIdentities"),
        Kind::IdentityProvider => Some("chainguard.platform.iam.v2.IdentityProvidersService.ListIdentityProviders"),
        Kind::Repo => Some("chainguard.platform.registry.v2.ReposService.ListRepos"),
        Kind::Group | Kind::Scope | Kind::Resource | Kind::Unnamed(_) => None,
    }
}

/// What completes the name of a resource of a kind.
pub(super) fn subject(kind: Kind) -> Option<Subject> {
    match kind {
        Kind::Group => Some(Subject::Group),
        _ => list_method(kind).map(Subject::ByName),
    }
}

/// UIDP of a resource: a UIDP is taken as it is; else the path of its group and its name, or a name that only one
/// visible resource has. A role's name without a group is that of a built-in role first.
///
/// # Errors
/// The caller sees none of that name, or several; or the server refuses.
pub(super) async fn uidp(api: &Api, kind: Kind, text: &str) -> Result<String, ClientError> {
    if text.is_empty() || Uidp::is_valid(text) {
        return Ok(text.to_owned());
    }
    match kind {
        Kind::Group => return resolve::group(api, text).await,
        Kind::Repo => return targets::repo_at(api, text).await,
        Kind::Scope => return scope(api, text).await,
        Kind::Resource => return any(api, text).await,
        _ => {}
    }
    listed(api, kind, text).await
}

/// UIDP of a group, else of a repository.
async fn scope(api: &Api, text: &str) -> Result<String, ClientError> {
    match resolve::group(api, text).await {
        Err(error) if error.is_absent() && text.contains('/') => targets::repo_at(api, text).await,
        resolved => resolved,
    }
}

/// UIDP of the first that has the name: a group, a repository, an identity, a role or an identity provider.
async fn any(api: &Api, text: &str) -> Result<String, ClientError> {
    let mut resolved = scope(api, text).await;
    for kind in [Kind::Identity, Kind::Role, Kind::IdentityProvider] {
        match resolved {
            Err(error) if error.is_absent() => resolved = listed(api, kind, text).await,
            resolved => return resolved,
        }
    }
    resolved.map_err(|error| match error {
        error if error.is_absent() => {
            let message =
                format!("there is no group, repository, identity, role or provider {text:?} that you may see");
            ClientError::not_found(resolve::lookup_kind(Kind::Resource.noun()), message)
        }
        other => other,
    })
}

/// UIDP of a resource by the list of its kind.
async fn listed(api: &Api, kind: Kind, text: &str) -> Result<String, ClientError> {
    let Some(method) = list_method(kind) else {
        let noun = kind.noun();
        return Err(ClientError::Usage(format!(
            "{text:?} is not a UIDP, and a {noun} has no name; list them to find it"
        )));
    };
    let (parent, name) = text.rsplit_once('/').map_or((None, text), |(parent, name)| (Some(parent), name));
    let mut request = Map::from_iter([("name".to_owned(), Value::from(name))]);
    if let Some(parent) = parent {
        request.insert("uidp".into(), json!({ "children_of": resolve::group(api, parent).await? }));
    }
    let contract = Contract::of(method);
    let list = dynamic::method(&contract, method)?;
    let response = dynamic::call(api, list, &request).await?;
    let uids = dynamic::elements(list, &response).iter().filter_map(|element| element.get("uid")?.as_str());
    let uids: Vec<String> = uids.map(String::from).collect();
    let built_in = uids.iter().find(|uid| kind == Kind::Role && parent.is_none() && !uid.contains('/'));
    match built_in {
        Some(uid) => Ok(uid.clone()),
        None if uids.is_empty() => Err(unknown(api, &contract, method, kind, text).await?),
        None => resolve::only(text, kind.noun(), uids),
    }
}

/// Most names that are compared with an unknown one.
const COMPARED: i32 = 200;

/// No resource has the name: the nearest that the caller may list is named.
async fn unknown(
    api: &Api,
    contract: &Contract,
    method: &str,
    kind: Kind,
    text: &str,
) -> Result<ClientError, ClientError> {
    let request = Map::from_iter([("page_size".to_owned(), COMPARED.into())]);
    let list = dynamic::method(contract, method)?;
    let response = dynamic::call(api, list, &request).await?;
    let names = dynamic::elements(list, &response).iter().filter_map(|element| element.get("name")?.as_str());
    let name = text.rsplit('/').next().unwrap_or(text);
    let suggestion = suggestion(name, names.collect::<Vec<_>>());
    let noun = kind.noun();
    let message = format!("there is no {noun} {text:?} that you may see{suggestion}");
    Ok(ClientError::not_found(resolve::lookup_kind(noun), message))
}
