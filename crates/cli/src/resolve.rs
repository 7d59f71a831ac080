//! Places that a person names: by UIDP, or by the path of their names.

use bowline_client::{Api, ClientError, LookupKind};
use bowline_contract::chainguard::platform::common::UidpFilter;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::groups_service::ListGroups;
use bowline_core::Uidp;

/// UIDP of an organization or group: `UIDP`, `organization`, `organization/group/...` or `UIDP/group/...`.
///
/// # Errors
/// The caller sees none of that name, or several; or the server refuses.
pub(crate) async fn group(api: &Api, text: &str) -> Result<String, ClientError> {
    if Uidp::is_valid(text) {
        return Ok(text.into());
    }
    // The longest UIDP that the path begins with, as container clients name organizations.
    let ends = text.rmatch_indices('/').map(|(at, _)| at);
    let uidp = ends.filter_map(|end| text.get(..end)).find(|prefix| Uidp::is_valid(prefix));
    let names = uidp.map_or(text, |uidp| text.get(uidp.len() + 1..).unwrap_or_default());
    let mut place: Option<String> = uidp.map(String::from);
    for name in names.split('/') {
        let filter = match &place {
            None => UidpFilter { in_root: true, ..UidpFilter::default() },
            Some(parent) => UidpFilter { children_of: parent.clone(), ..UidpFilter::default() },
        };
        let request =
            v2::ListGroupsRequest { name: name.into(), uidp: Some(filter), ..v2::ListGroupsRequest::default() };
        let found = api.call::<ListGroups>(&request).await?.groups;
        place = Some(only(text, "group", found.into_iter().map(|group| group.uid).collect())?);
    }
    place.ok_or_else(|| none(text, "group"))
}

/// The one UIDP that was found.
pub(crate) fn only(text: &str, kind: &str, mut found: Vec<String>) -> Result<String, ClientError> {
    match (found.len(), found.pop()) {
        (1, Some(uid)) => Ok(uid),
        (_, None) => Err(none(text, kind)),
        (_, Some(last)) => {
            found.push(last);
            Err(ClientError::Usage(format!("several are called {text}; name one by its UIDP: {}", found.join(", "))))
        }
    }
}

fn none(text: &str, noun: &str) -> ClientError {
    ClientError::not_found(lookup_kind(noun), format!("there is no {noun} {text:?} that you may see"))
}

/// The kind that a noun of messages means.
pub(crate) fn lookup_kind(noun: &str) -> LookupKind {
    match noun {
        "group" => LookupKind::Group,
        "repository" => LookupKind::Repository,
        "role" => LookupKind::Role,
        "identity" => LookupKind::Identity,
        _ => LookupKind::Other,
    }
}
