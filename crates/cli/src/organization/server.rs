//! The objects of an organization, read from the server by lists alone.

use std::collections::{BTreeMap, BTreeSet};

use bowline_client::{Api, ClientError};
use bowline_contract::{Contract, MethodInfo};
use bowline_core::Uidp;
use prost_reflect::Kind as Type;
use serde_json::{Map, Value, json};

use super::kinds::{self, GROUP, KINDS, Kind, PathOf, README, REPOSITORY};
use super::ownership::Inventories;
use super::schema::{self, Members};
use crate::dynamic;

/// Elements of a page.
const PAGE_SIZE: u64 = 200;

/// An object of the server.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) kind: &'static Kind,
    pub(super) uid: String,
    /// UIDP of its container, or of its subject; empty for an organization.
    pub(super) parent: String,
    /// Empty where the kind has no names.
    pub(super) name: String,
    /// What a file has of it; references are UIDPs.
    pub(super) spec: Members,
    /// Whether the server has a value of a secret, by the secret's path, where that is known.
    pub(super) secrets: BTreeMap<String, bool>,
}

/// The objects that were read.
#[derive(Default)]
pub(super) struct Server {
    pub(super) objects: Vec<Stored>,
    /// What is recorded about owners, by organization.
    pub(super) inventories: BTreeMap<String, Inventories>,
    /// UIDPs of the organizations by their names.
    pub(super) organizations: BTreeMap<String, Vec<String>>,
}

/// Reads objects; each list once.
pub(super) struct Reader<'a> {
    pub(super) api: &'a Api,
    pub(super) contract: &'a Contract,
    lists: BTreeMap<(&'static str, String), Vec<Members>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(api: &'a Api, contract: &'a Contract) -> Reader<'a> {
        Reader { api, contract, lists: BTreeMap::new() }
    }

    /// Reads organizations of these names or UIDPs, and what they contain of some kinds. An organization that the caller may not
    /// see does not exist here.
    ///
    /// # Errors
    /// The server refuses, or no response comes.
    pub(super) async fn read(
        &mut self,
        names: &BTreeSet<String>,
        kinds: &BTreeSet<&'static str>,
    ) -> Result<Server, ClientError> {
        let mut server = Server::default();
        let group = kinds::kind(GROUP).ok_or_else(|| ClientError::Usage("there is no kind Group".into()))?;
        for name in names {
            let request = if Uidp::is_valid(name) {
                json!({ "uidp": { "ids": [name] } })
            } else {
                json!({ "name": name, "uidp": { "in_root": true } })
            };
            for found in self.pages(group.list, request).await? {
                server.organizations.entry(text(&found, "name")).or_default().push(text(&found, "uid"));
                server.objects.extend(self.stored(group, &found, "")?);
            }
        }
        let roots: Vec<String> = server.organizations.values().flatten().cloned().collect();
        for root in roots {
            self.read_organization(&root, kinds, &mut server).await?;
        }
        Ok(server)
    }

    async fn read_organization(
        &mut self,
        root: &str,
        kinds: &BTreeSet<&'static str>,
        server: &mut Server,
    ) -> Result<(), ClientError> {
        let readmes = kinds::kind(README).map_or("", |kind| kind.list);
        let inventories = Inventories::read(root, &self.list(readmes, root).await?);
        let mut kinds = closure(kinds.iter().copied().chain(inventories.kinds()).collect());
        kinds.insert(GROUP);
        let hidden: BTreeSet<String> = inventories.repositories().map(String::from).collect();
        let mut known: BTreeSet<(&str, String)> = BTreeSet::from([(GROUP, root.to_owned())]);
        for kind in KINDS.iter().filter(|kind| kinds.contains(kind.name)) {
            for element in self.list(kind.list, root).await? {
                let Some(object) = self.stored(kind, &element, root)? else { continue };
                // One list has the policies of groups and of repositories.
                let is_of_subject =
                    kind.path != PathOf::Subject || known.contains(&(kind.within, object.parent.clone()));
                if hidden.contains(&object.uid) || !is_of_subject || is_internal(kind, &element, &known) {
                    continue;
                }
                known.insert((kind.name, object.uid.clone()));
                server.objects.push(object);
            }
        }
        server.inventories.insert(root.to_owned(), inventories);
        Ok(())
    }

    /// The elements of a list below an organization.
    async fn list(&mut self, method: &'static str, root: &str) -> Result<Vec<Members>, ClientError> {
        let key = (method, root.to_owned());
        if let Some(known) = self.lists.get(&key) {
            return Ok(known.clone());
        }
        let input = &dynamic::method(self.contract, method)?.input;
        let has = |name: &str| input.get_field_by_name(name).is_some();
        let request = if method.ends_with("ListAccountAssociations") {
            // An association has the UIDP of its group, which no filter of what is below finds for an organization.
            json!({})
        } else if has("uidp") {
            json!({ "uidp": { "descendants_of": root } })
        } else {
            json!({ (if has("parent_id") { "parent_id" } else { "uid" }): root })
        };
        let elements = self.pages(method, request).await?;
        self.lists.insert(key, elements.clone());
        Ok(elements)
    }

    /// The elements of all pages.
    async fn pages(&self, method: &str, request: Value) -> Result<Vec<Members>, ClientError> {
        let method = dynamic::method(self.contract, method)?;
        let Value::Object(mut request) = request else { return Ok(Vec::new()) };
        let has_pages = method.input.get_field_by_name("page_token").is_some();
        if has_pages {
            request.insert("page_size".into(), PAGE_SIZE.into());
        }
        let list = element_list(method);
        let mut elements = Vec::new();
        loop {
            let mut page = dynamic::call_sparse(self.api, method, &request).await?;
            if let Some(Value::Array(items)) = page.get_mut(&list).map(Value::take) {
                elements.extend(items.into_iter().filter_map(|item| match item {
                    Value::Object(members) => Some(members),
                    _ => None,
                }));
            }
            let token = page.get("nextPageToken").and_then(Value::as_str).unwrap_or_default();
            if token.is_empty() || !has_pages {
                return Ok(elements);
            }
            request.insert("page_token".into(), token.into());
        }
    }

    /// An element of a list as an object; absent for what files do not have.
    fn stored(&self, kind: &'static Kind, element: &Members, root: &str) -> Result<Option<Stored>, ClientError> {
        let uid = text(element, if kind.name == README { "id" } else { kind.uid_field() });
        let is_below =
            root.is_empty() || uid == root || uid.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
        if !is_below {
            return Ok(None);
        }
        let message = schema::message(self.contract, kind)?;
        let mut spec = if kind.name == README {
            let content = element.get("readme").cloned();
            content.map(|content| ("content".to_owned(), content)).into_iter().collect()
        } else {
            schema::spec(kind, &message, element)
        };
        if kind.path == PathOf::Subject && spec.is_empty() {
            return Ok(None);
        }
        if kind.name == GROUP && uid.contains('/') {
            // Inherited from the organization.
            spec.remove("kind");
        }
        let parent = match kind.path {
            PathOf::Subject => uid.clone(),
            PathOf::Itself | PathOf::Container => uid.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned(),
        };
        let name = if kind.is_named() { text(element, "name") } else { String::new() };
        let mut secrets = BTreeMap::new();
        known_secrets(&message, element, "", &mut secrets);
        Ok(Some(Stored { kind, uid, parent, name, spec, secrets }))
    }
}

/// Kinds with those that their objects refer to, or are in.
fn closure(mut kinds: BTreeSet<&'static str>) -> BTreeSet<&'static str> {
    loop {
        let mut more = kinds.clone();
        for kind in KINDS.iter().filter(|kind| kinds.contains(kind.name)) {
            more.insert(kind.within);
            let references = kinds::REFERENCES
                .iter()
                .filter(|(field, _)| field.strip_prefix(kind.message).is_some_and(|rest| rest.starts_with('.')));
            more.extend(references.map(|(_, kind)| *kind));
            if kind.message.ends_with(".v2.Repo") {
                more.insert(REPOSITORY);
            }
        }
        if more == kinds {
            return kinds;
        }
        kinds = more;
    }
}

/// What other commands manage: pull tokens with their bindings, and policies of the platform.
fn is_internal(kind: &Kind, element: &Members, known: &BTreeSet<(&str, String)>) -> bool {
    let at = |pointer: &str| Value::Object(element.clone()).pointer(pointer).and_then(Value::as_str).map(String::from);
    match kind.name {
        "Identity" => at("/staticKeys/subject").is_some_and(|subject| subject.starts_with("pull-token-")),
        // A person is below no organization.
        "RoleBinding" => at("/identityUid").is_some_and(|uid| uid.contains('/') && !known.contains(&("Identity", uid))),
        "LibraryPolicy" => at("/policyType").as_deref() == Some("LIBRARY_POLICY_TYPE_SYSTEM"),
        _ => false,
    }
}

/// The field of a response that has the elements.
fn element_list(method: &MethodInfo) -> String {
    let list = method.output.fields().find(|field| field.is_list() && matches!(field.kind(), Type::Message(_)));
    list.map(|field| field.json_name().to_owned()).unwrap_or_default()
}

/// Whether secrets are stored, as far as a field `has_...` beside them says so.
fn known_secrets(
    message: &prost_reflect::MessageDescriptor,
    members: &Map<String, Value>,
    prefix: &str,
    known: &mut BTreeMap<String, bool>,
) {
    for field in message.fields() {
        let path = format!("{prefix}{}", field.json_name());
        let value = members.get(field.json_name());
        if schema::is_write_only(&field) {
            if let Some(presence) = message.get_field_by_name(&format!("has_{}", field.name())) {
                let is_stored = members.get(presence.json_name()) == Some(&Value::Bool(true));
                known.insert(path, is_stored);
            }
        } else if let (Some(inner), Some(Value::Object(members))) = (schema::structure(&field), value) {
            known_secrets(&inner, members, &format!("{path}."), known);
        }
    }
}

pub(super) fn text(members: &Members, name: &str) -> String {
    members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_bring_what_they_refer_to() {
        let closed = |name| closure(BTreeSet::from([name]));
        assert_eq!(closed("Role"), BTreeSet::from([GROUP, "Role"]));
        assert_eq!(closed("RoleBinding"), BTreeSet::from([GROUP, "Role", "Identity", "RoleBinding"]));
        assert!(closed("GroupMapping").contains("IdentityProvider"));
        assert!(closed("RepositoryPolicy").contains(REPOSITORY));
    }

    #[test]
    fn every_list_has_its_elements() {
        let contract = Contract::load();
        for kind in KINDS {
            let method = contract.by_full_name(kind.list).unwrap();
            assert!(!element_list(method).is_empty(), "{}", kind.list);
        }
    }
}
