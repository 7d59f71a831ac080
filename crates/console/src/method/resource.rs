//! What a method that updates or deletes is about: how it is read, and what changed since a page showed it.

use std::borrow::Cow;

use bowline_contract::{Contract, MethodInfo};
use bowline_core::{Code, Error, Reason, Result};
use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor, ReflectMessage as _, Value as Dynamic};
use serde_json::{Value, json};

use super::fields::{Leaf, MASK};
use super::typed::{Typed, at, decode, encode, text_of};
use crate::visit::Visit;

/// Rows and pages of a list that are read to find one resource.
const PAGE: i32 = 100;
const PAGES: usize = 5;
/// Maximum bytes of a response that is read for an edit.
const MAX_READ: usize = 1 << 20;
/// Fields of the first API version with the id of a resource, and of the group that contains it.
const ID: &str = "id";
const PARENT: &str = "parent_id";

/// How the resource of a method is read.
pub(crate) struct Reader<'c> {
    method: &'c MethodInfo,
    how: How,
    /// Field of the changing request with the id; absent where there is one resource only.
    pub(crate) id_of_change: Option<String>,
    /// Field of the changing request that holds the resource, empty where it is the request; absent for a deletion.
    pub(crate) resource: Option<String>,
}

enum How {
    /// By the method that gets one, whose request has the id in this field, if in any.
    Get(Option<String>),
    /// By the method that lists what is in a group: the field with the list.
    List(String),
}

/// The reader of a method; absent where the service has no method that reads what this one is about.
pub(crate) fn reader<'c>(contract: &'c Contract, method: &MethodInfo) -> Option<Reader<'c>> {
    let (service, name) = method.full_name.rsplit_once('.')?;
    match (name.strip_prefix("Update"), name.strip_prefix("Delete")) {
        (Some(noun), _) => getter(contract, service, noun, method, true).or_else(|| lister(contract, service, method)),
        (None, Some(noun)) => getter(contract, service, noun, method, false).or_else(|| {
            // What a list has is what the update of the same service replaces.
            let update = contract.by_full_name(&format!("{service}.Update{noun}"))?;
            (named(update) == named(method)).then(|| lister(contract, service, update))?
        }),
        (None, None) => None,
    }
}

/// The fields that the path of a method names.
fn named(method: &MethodInfo) -> Vec<String> {
    method.bindings.first().map_or_else(Vec::new, |binding| binding.template.fields().map(str::to_owned).collect())
}

fn getter<'c>(
    contract: &'c Contract,
    service: &str,
    noun: &str,
    method: &MethodInfo,
    is_update: bool,
) -> Option<Reader<'c>> {
    let get = contract.by_full_name(&format!("{service}.Get{noun}")).filter(|get| get.only_reads())?;
    let (own, of_get) = (named(method), named(get));
    if own.len() != of_get.len() || own.len() > 1 {
        return None;
    }
    let resource = if is_update {
        let field = method.resource_field()?;
        Some((field.kind().as_message()? == &get.output).then(|| field.name().to_owned())?)
    } else {
        None
    };
    let how = How::Get(of_get.into_iter().next());
    Some(Reader { method: get, how, id_of_change: own.into_iter().next(), resource })
}

/// The list of the same service that has what an update replaces, whose request is the resource.
fn lister<'c>(contract: &'c Contract, service: &str, method: &MethodInfo) -> Option<Reader<'c>> {
    let id = named(method).into_iter().next().filter(|id| id == ID)?;
    let items = |list: &MethodInfo| {
        let is_list = |field: &FieldDescriptor| field.is_list() && field.kind().as_message() == Some(&method.input);
        list.output.fields().find(is_list).map(|field| field.name().to_owned())
    };
    let is_of_service = |list: &&MethodInfo| {
        list.full_name.rsplit_once('.').is_some_and(|(of, name)| of == service && name.starts_with("List"))
    };
    let takes = |list: &MethodInfo| [ID, PARENT].iter().any(|name| list.input.get_field_by_name(name).is_some());
    let mut lists = contract.methods().iter().filter(is_of_service).filter(|list| list.only_reads() && takes(list));
    let (list, field) = lists.find_map(|list| Some((list, items(list)?)))?;
    Some(Reader { method: list, how: How::List(field), id_of_change: Some(id), resource: Some(String::new()) })
}

impl Reader<'_> {
    /// Reads the resource with this id as the caller.
    ///
    /// # Errors
    /// What the API returns; NOT_FOUND where a list does not have it.
    pub(crate) async fn read(&self, visit: &mut Visit, id: &str) -> Result<Value> {
        match &self.how {
            How::Get(Some(field)) => self.get(visit, &json!({ (field.as_str()): id })).await,
            How::Get(None) => self.get(visit, &json!({})).await,
            How::List(items) => self.find(visit, items, id).await,
        }
    }

    /// Looks for the resource in the list of its group, or by its id where the list takes one.
    async fn find(&self, visit: &mut Visit, items: &str, id: &str) -> Result<Value> {
        let mut request = json!({ "page_size": PAGE });
        if self.method.input.get_field_by_name(ID).is_some() {
            request[ID] = id.into();
        } else {
            request[PARENT] = id.rsplit_once('/').map_or("", |(parent, _)| parent).into();
        }
        for _ in 0..PAGES {
            let response = self.call(visit, &request).await?;
            let (list, items, id) = (self.method.output.clone(), items.to_owned(), id.to_owned());
            let page = visit.aside_if_large(response.len(), move || page_of(list, &items, &id, &response)).await??;
            if let Some((name, row)) = page.row {
                return json_of(visit, name, row).await;
            }
            if page.next.is_empty() {
                break;
            }
            request["page_token"] = page.next.into();
        }
        Err(Error::new(Reason::NotFound, "Not found: it is not in its list; open the form again from a list"))
    }

    async fn get(&self, visit: &mut Visit, request: &Value) -> Result<Value> {
        let response = self.call(visit, request).await?;
        json_of(visit, self.method.output.full_name().to_owned(), response).await
    }

    async fn call(&self, visit: &mut Visit, request: &Value) -> Result<Bytes> {
        let app = visit.app.clone();
        let payload = encode(app.api.tables(), self.method, request)?;
        let response = visit.read(self.method.index, payload).await?;
        if response.len() > MAX_READ {
            let text = format!("What is there has more than {} MiB: edit it with the command line.", MAX_READ >> 20);
            return Err(Error::new(Reason::FailedPrecondition, text));
        }
        Ok(response)
    }

    /// The fields of the form that hold the resource.
    fn fields<'l>(&self, leaves: &[&'l Leaf]) -> Vec<(&'l Leaf, String)> {
        let Some(resource) = &self.resource else { return Vec::new() };
        let inside = |leaf: &&'l Leaf| {
            if resource.is_empty() {
                return Some((*leaf, leaf.path.clone()));
            }
            let rest = leaf.path.strip_prefix(resource.as_str())?.strip_prefix('.')?;
            Some((*leaf, rest.to_owned()))
        };
        leaves.iter().filter_map(inside).collect()
    }

    /// What a form shows of a resource.
    pub(crate) fn shown(&self, leaves: &[&Leaf], resource: &Value) -> Typed {
        let mut shown = Typed::default();
        for (leaf, path) in self.fields(leaves) {
            shown.set(&leaf.path, text_of(leaf, at(resource, &path)));
        }
        shown
    }

    /// The fields of the form whose texts differ.
    pub(crate) fn different<'l>(&self, leaves: &[&'l Leaf], one: &Typed, other: &Typed) -> Vec<&'l Leaf> {
        let fields = self.fields(leaves).into_iter().map(|(leaf, _)| leaf);
        fields.filter(|leaf| one.get(&leaf.path).trim() != other.get(&leaf.path).trim()).collect()
    }

    /// The mask of what the typed texts change: members of the resource.
    ///
    /// # Errors
    /// FAILED_PRECONDITION: they change nothing.
    pub(crate) fn mask(&self, leaves: &[&Leaf], shown: &Typed, typed: &Typed) -> Result<String> {
        let prefix = self.resource.as_deref().filter(|field| !field.is_empty()).map(|field| format!("{field}."));
        let prefix = prefix.unwrap_or_default();
        let different = self.different(leaves, shown, typed);
        let paths = different.iter().filter_map(|leaf| leaf.path.strip_prefix(prefix.as_str()));
        let mut members: Vec<&str> = paths.filter_map(|rest| rest.split('.').next()).collect();
        members.dedup();
        if members.is_empty() {
            let text = "Nothing is different from what was shown: change a field and send the form again.";
            return Err(Error::new(Reason::FailedPrecondition, text));
        }
        Ok(members.join(","))
    }
}

/// A message of the contract as JSON.
async fn json_of(visit: &Visit, name: String, wire: Bytes) -> Result<Value> {
    let (app, bytes) = (visit.app.clone(), wire.len());
    let json = move || {
        decode(app.api.tables(), &name, &wire).ok_or_else(|| Error::internal(format!("{name} does not decode")))
    };
    visit.aside_if_large(bytes, json).await?
}

/// What a page of a list has of one resource: its message, and the wire of that; and the token of the next page.
struct Listed {
    row: Option<(String, Bytes)>,
    next: String,
}

/// Looks for a resource by its id, and makes JSON of nothing.
fn page_of(list: MessageDescriptor, items: &str, id: &str, wire: &[u8]) -> Result<Listed> {
    let list = DynamicMessage::decode(list, wire).map_err(Error::internal)?;
    let member = |message: &DynamicMessage, name: &str| message.get_field_by_name(name).map(Cow::into_owned);
    let text = |value: Option<Dynamic>| value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
    let rows = list.get_field_by_name(items);
    let rows = rows.as_deref().and_then(Dynamic::as_list).unwrap_or_default();
    let mut messages = rows.iter().filter_map(Dynamic::as_message);
    let row = messages.find(|row| text(member(row, ID)) == id);
    let row = row.map(|row| (row.descriptor().full_name().to_owned(), row.encode_to_vec().into()));
    Ok(Listed { row, next: text(member(&list, "next_page_token")) })
}

/// The id that a request names in its path: that of what a deletion removes.
pub(crate) fn id_of(method: &MethodInfo, request: &Value) -> Option<String> {
    let field = method.bindings.first()?.template.fields().last()?;
    at(request, field)?.as_str().map(str::to_owned)
}

/// The texts that confirm that something is taken away: its id, and its name where the caller may read it. Without an id in
/// the address of the method, the name of the method.
///
/// # Errors
/// The caller's session has ended.
pub(crate) async fn names_of(visit: &mut Visit, method: &MethodInfo, request: &Value) -> Result<Vec<String>> {
    if method.bindings.first().is_none_or(|binding| binding.template.fields().next().is_none()) {
        return Ok(vec![method.short_name().to_owned()]);
    }
    let Some(id) = id_of(method, request) else { return Ok(Vec::new()) };
    // Of what goes in a repository, the one element confirms, not the repository, which stays.
    if let [one] = elements(request).as_slice() {
        return Ok(vec![(*one).to_owned()]);
    }
    let mut names = vec![id.clone()];
    let app = visit.app.clone();
    if let Some(reader) = reader(app.api.contract(), method) {
        match reader.read(visit, &id).await {
            Ok(resource) => names.extend(at(&resource, "name").and_then(Value::as_str).map(str::to_owned)),
            Err(error) if error.code() == Code::Unauthenticated => return Err(error),
            // Without the name, the id confirms.
            Err(_) => {}
        }
    }
    names.retain(|name| !name.trim().is_empty());
    Ok(names)
}

/// The texts in lists of a request.
fn elements(request: &Value) -> Vec<&str> {
    let lists = request.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_array());
    lists.flatten().filter_map(Value::as_str).collect()
}

/// Whether an update can say which fields it changes.
pub(crate) fn takes_mask(method: &MethodInfo) -> bool {
    method.input.get_field_by_name(MASK).is_some()
}

#[cfg(test)]
mod tests {
    use bowline_contract::Contract;

    use super::*;

    #[test]
    fn a_list_is_searched_by_id() {
        let contract = Contract::load();
        let list = contract.by_full_name("chainguard.platform.libraries.LibraryPolicies.ListPolicies").unwrap();
        let tables = bowline_transcode::Tables::new(contract.pool());
        let json =
            json!({ "items": [{ "id": "a/1", "name": "x" }, { "id": "a/2", "name": "y" }], "next_page_token": "t" });
        let mut wire = Vec::new();
        let id = tables.message(list.output.full_name()).unwrap();
        tables.from_json(id, json.to_string().as_bytes(), &mut wire).unwrap();
        let page = page_of(list.output.clone(), "items", "a/2", &wire).unwrap();
        let (name, row) = page.row.unwrap();
        assert_eq!(decode(&tables, &name, &row).unwrap(), json!({ "id": "a/2", "name": "y" }));
        assert_eq!(page.next, "t");
        let page = page_of(list.output.clone(), "items", "a/3", &wire).unwrap();
        assert!(page.row.is_none() && page.next == "t");
    }

    #[test]
    fn what_is_updated_can_be_read() {
        let contract = Contract::load();
        let of = |name: &str| reader(&contract, contract.by_full_name(name).unwrap());
        let group = of("chainguard.platform.iam.v2.GroupsService.UpdateGroup").unwrap();
        assert_eq!(group.method.full_name, "chainguard.platform.iam.v2.GroupsService.GetGroup");
        assert!(matches!(&group.how, How::Get(Some(field)) if field == "uid"));
        let fields = (group.id_of_change.as_deref(), group.resource.as_deref());
        assert_eq!(fields, (Some("group.uid"), Some("group")));
        let preferences = of("bowline.people.v1.Sessions.UpdatePreferences").unwrap();
        assert!(matches!(preferences.how, How::Get(None)));
        assert_eq!(preferences.resource.as_deref(), Some("preferences"));
        for name in [
            "chainguard.platform.libraries.LibraryPolicies.UpdatePolicy",
            "chainguard.platform.libraries.LibraryPolicyBindings.UpdateBinding",
            "chainguard.platform.vulnerabilities.v1.Advisories.Update",
        ] {
            let reader = of(name).unwrap();
            assert!(matches!(&reader.how, How::List(field) if field == "items"), "{name}");
            assert_eq!(reader.resource.as_deref(), Some(""), "{name}");
        }
        for name in [
            "bowline.registry.v1.RegistryPolicies.UpdateRepoPolicy",
            "chainguard.platform.iam.v2.IdentitiesService.UpdateIdentity",
            "chainguard.platform.iam.v2.RolesService.DeleteRole",
            "chainguard.platform.registry.v2.ReposService.UpdateRepo",
            "chainguard.platform.events.v2.SubscriptionsService.DeleteSubscription",
            "chainguard.platform.libraries.LibraryPolicies.DeletePolicy",
            "chainguard.platform.libraries.LibraryPolicyBindings.DeleteBinding",
        ] {
            assert!(of(name).is_some(), "{name}");
        }
    }
}
