//! Documents and the objects that they describe: by UIDP where a document has one, else by a name that is unique.

use std::collections::BTreeMap;

use bowline_contract::Contract;
use serde_json::Value;

use super::addresses;
use super::files::{Document, Faults};
use super::kinds::{self, GROUP, INHERITED, PathOf, REPOSITORY};
use super::names::Names;
use super::ownership;
use super::requests::{self, Written};
use super::schema::{self, Members};
use super::server::{Server, Stored};
use crate::dynamic;
use crate::error::CliError;

/// A document, and what it means on the server.
pub(super) struct Item<'d> {
    pub(super) document: &'d Document,
    /// UIDP of the organization.
    pub(super) root: String,
    /// UIDP of the object; of one that does not exist yet a stand-in, which is a UIDP in form.
    pub(super) uid: String,
    /// UIDP of the container or subject, or its stand-in.
    pub(super) parent: String,
    /// The fields; references are UIDPs or stand-ins.
    pub(super) spec: Members,
    /// The object, if it exists.
    pub(super) stored: Option<&'d Stored>,
    pub(super) label: String,
}

impl<'d> Item<'d> {
    /// The name, which the path ends in.
    pub(super) fn name(&self) -> &'d str {
        self.document.split().1
    }
}

/// UIDP-shaped text for a document whose object does not exist yet.
fn stand_in(index: usize) -> String {
    format!("{}{index:08x}", "f".repeat(32))
}

/// Whether a text stands for an object that does not exist yet.
pub(super) fn is_stand_in(uid: &str) -> bool {
    uid.len() == 40 && uid.starts_with(&"f".repeat(32))
}

/// Matches documents with objects.
///
/// # Errors
/// Documents contradict each other, or name what neither they nor the server have, or several things; or a value breaks
/// a rule of the contract. All faults are named.
pub(super) fn items<'d>(
    contract: &Contract,
    documents: &'d [Document],
    server: &'d Server,
    names: &mut Names,
    owner: &str,
) -> Result<Vec<Item<'d>>, CliError> {
    let mut order: Vec<usize> = (0..documents.len()).collect();
    let depth = |document: &Document| document.path.matches('/').count();
    order.sort_by_key(|&at| (kinds::rank(documents[at].kind), depth(&documents[at]), at));
    let mut matcher = Matcher {
        contract,
        server,
        names,
        owner,
        index: Index::new(server),
        faults: Faults::default(),
        targets: BTreeMap::new(),
        taken: BTreeMap::new(),
    };
    let mut items = Vec::new();
    for &at in order.iter().filter(|&&at| documents[at].kind.is_named()) {
        items.extend(matcher.named(&documents[at], at));
    }
    for item in &mut items {
        matcher.refer(item)?;
    }
    for &at in order.iter().filter(|&&at| !documents[at].kind.is_named()) {
        items.extend(matcher.unnamed(&documents[at], at)?);
    }
    for item in &items {
        matcher.validate(item)?;
    }
    matcher.faults.require_none()?;
    Ok(items)
}

/// Objects by what documents say of them.
struct Index<'d> {
    by_uid: BTreeMap<(&'static str, &'d str), &'d Stored>,
    /// By kind, parent and name.
    by_name: BTreeMap<(&'static str, &'d str, &'d str), Vec<&'d Stored>>,
    by_hash: BTreeMap<(&'static str, String), &'d Stored>,
}

impl<'d> Index<'d> {
    fn new(server: &'d Server) -> Index<'d> {
        let mut index = Index { by_uid: BTreeMap::new(), by_name: BTreeMap::new(), by_hash: BTreeMap::new() };
        for object in &server.objects {
            let kind = object.kind.name;
            index.by_uid.insert((kind, &object.uid), object);
            index.by_name.entry((kind, &object.parent, &object.name)).or_default().push(object);
            index.by_hash.insert((kind, ownership::hash(&object.uid)), object);
        }
        index
    }
}

struct Matcher<'a, 'd> {
    contract: &'a Contract,
    server: &'d Server,
    names: &'a mut Names,
    owner: &'a str,
    index: Index<'d>,
    faults: Faults,
    /// UIDPs and stand-ins of documents with names, by kind and path.
    targets: BTreeMap<(&'static str, String), String>,
    /// Which document has an object.
    taken: BTreeMap<String, String>,
}

impl<'d> Matcher<'_, 'd> {
    fn fault(&mut self, document: &Document, field: &str, why: &str) {
        self.faults.push(format!("{}: {why}", document.at(field)));
    }

    /// The UIDP of the one object with a path, in the files or on the server.
    fn target(&mut self, document: &Document, field: &str, kind: &'static str, path: &str) -> Option<String> {
        if let Some(target) = self.targets.get(&(kind, path.to_owned())) {
            return Some(target.clone());
        }
        let uids = self.names.uids(kind, path);
        match uids.as_slice() {
            [only] => return Some(only.clone()),
            [] => {
                let why =
                    format!("there is no {kind} {path:?}, neither in the files nor that you may see on the server");
                self.fault(document, field, &why);
            }
            several => {
                let why = format!("several of the kind {kind} are called {path}: {}; rename one", several.join(", "));
                self.fault(document, field, &why);
            }
        }
        None
    }

    /// The organization, and the container or subject.
    fn ancestors(&mut self, document: &Document) -> Option<(String, String)> {
        let (parent, _) = document.split();
        if parent.is_empty() {
            return Some((String::new(), String::new()));
        }
        let parent = self.target(document, "path", document.kind.within, parent)?;
        let root = self.target(document, "path", GROUP, document.organization())?;
        Some((root, parent))
    }

    fn named(&mut self, document: &'d Document, at: usize) -> Option<Item<'d>> {
        let (root, parent) = self.ancestors(document)?;
        let kind = document.kind;
        let label = format!("{} {}", kind.name, document.path);
        let candidates = self.index.by_name.get(&(kind.name, parent.as_str(), document.split().1));
        let mut candidates = candidates.cloned().unwrap_or_default();
        if candidates.is_empty() {
            candidates.extend(self.renamed(kind.name, &root, &label));
        }
        let stored = self.one(document, &parent, candidates).ok()?;
        let uid = stored.map_or_else(|| stand_in(at), |stored| stored.uid.clone());
        if !self.take(document, &format!("{} {}", kind.name, document.path), &uid) {
            return None;
        }
        self.targets.insert((kind.name, document.path.clone()), uid.clone());
        self.names.insert(kind.name, uid.clone(), document.path.clone());
        let root = if root.is_empty() { uid.clone() } else { root };
        Some(Item { document, root, uid, parent, spec: document.spec.members.clone(), stored, label })
    }

    /// The object that an owner's files had under this label, if it was renamed since.
    fn renamed(&self, kind: &'static str, root: &str, label: &str) -> Option<&'d Stored> {
        let hash = self.server.inventories.get(root)?.recorded_uid(self.owner, kind, label)?;
        self.index.by_hash.get(&(kind, hash)).copied()
    }

    fn unnamed(&mut self, document: &'d Document, at: usize) -> Result<Option<Item<'d>>, CliError> {
        let Some((root, parent)) = self.ancestors(document) else { return Ok(None) };
        let kind = document.kind;
        let is_subject = kind.path == PathOf::Subject;
        let uid = if is_subject { parent.clone() } else { stand_in(at) };
        let spec = document.spec.members.clone();
        let mut item = Item { document, root, uid, parent, spec, stored: None, label: String::new() };
        if !self.refer(&mut item)? {
            return Ok(None);
        }
        let missing: Vec<&str> = kind.keys.iter().copied().filter(|key| !item.spec.contains_key(*key)).collect();
        if let [first, ..] = missing.as_slice() {
            self.fault(document, "spec", &format!("{first} is required"));
            return Ok(None);
        }
        let candidates = self.index.by_name.get(&(kind.name, item.parent.as_str(), "")).cloned().unwrap_or_default();
        let same = |stored: &&Stored| kind.keys.iter().all(|key| stored.spec.get(*key) == item.spec.get(*key));
        let candidates = candidates.into_iter().filter(same).collect();
        let Ok(stored) = self.one(document, &item.parent, candidates) else { return Ok(None) };
        if let Some(stored) = stored {
            item.uid.clone_from(&stored.uid);
        }
        item.stored = stored;
        let message = schema::message(self.contract, kind)?;
        item.label = self.names.label(kind, &message, &document.path, &item.spec);
        let is_free = self.take(document, &item.label, if is_subject { "" } else { &item.uid });
        Ok(is_free.then_some(item))
    }

    /// The object of a document: the one that its UIDP names, else the only candidate.
    fn one(
        &mut self,
        document: &Document,
        parent: &str,
        candidates: Vec<&'d Stored>,
    ) -> Result<Option<&'d Stored>, ()> {
        if let Some(uid) = &document.uid {
            let Some(stored) = self.index.by_uid.get(&(document.kind.name, uid.as_str())).copied() else {
                let why = format!("no {} has it; leave it out to create one", document.kind.name);
                self.fault(document, "uid", &why);
                return Err(());
            };
            if stored.parent != parent {
                let why = format!("{uid} is in another group; objects cannot be moved");
                self.fault(document, "path", &why);
                return Err(());
            }
            return Ok(Some(stored));
        }
        match candidates.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(only)),
            several => {
                let uids: Vec<&str> = several.iter().map(|stored| stored.uid.as_str()).collect();
                let why = format!("several objects match: {}; name one by `uid`", uids.join(", "));
                self.fault(document, "path", &why);
                Err(())
            }
        }
    }

    /// Records that a document describes an object; false if another one does already.
    fn take(&mut self, document: &Document, label: &str, uid: &str) -> bool {
        let at = format!("{}:{}", document.file, document.line);
        for key in [label, uid] {
            if let Some(other) = self.taken.get(key).filter(|_| !key.is_empty()) {
                let label = addresses::shown_label(document.kind, label, &document.spec.members);
                let why = format!("{label} is described twice: here, and at {other}");
                self.fault(document, "path", &why);
                return false;
            }
        }
        for key in [label, uid] {
            self.taken.insert(key.to_owned(), at.clone());
        }
        true
    }

    /// Puts UIDPs in place of paths; false if one is unknown.
    fn refer(&mut self, item: &mut Item<'d>) -> Result<bool, CliError> {
        let message = schema::message(self.contract, item.document.kind)?;
        let document = item.document;
        let mut is_known = true;
        schema::each_reference(&message, &mut item.spec, "", &mut |kind, field, text| {
            // The source of a repository may be at another registry.
            let is_elsewhere = kind == REPOSITORY
                && !self.server.organizations.contains_key(text.split('/').next().unwrap_or_default())
                && !self.targets.contains_key(&(GROUP, text.split('/').next().unwrap_or_default().to_owned()));
            if !is_elsewhere && !text.is_empty() {
                match self.target(document, field, kind, text) {
                    Some(uid) => *text = uid,
                    None => is_known = false,
                }
            }
            Ok::<_, CliError>(())
        })?;
        if document.kind.name == REPOSITORY && item.spec.contains_key("sync_config") {
            item.spec.retain(|name, _| !INHERITED.contains(&name.as_str()));
        }
        Ok(is_known)
    }

    /// Checks the rules of the contract, as the server would.
    fn validate(&mut self, item: &Item<'d>) -> Result<(), CliError> {
        let (document, name) = (item.document, item.name());
        let secrets = document.spec.secrets.as_slice();
        let written = Written { kind: document.kind, parent: &item.parent, name, spec: &item.spec, secrets };
        let call = requests::create(self.contract, written)?;
        let wire = match dynamic::encoded(&call.method.input, &call.request) {
            Ok(wire) => wire,
            Err(error) => {
                self.fault(document, "spec", &error.to_string());
                return Ok(());
            }
        };
        let resource = call.method.resource_field().map(|field| field.name().to_owned());
        let rules = self.contract.field_rules();
        let violations = rules.validate(call.method.input.full_name(), &wire, resource.as_deref(), None);
        for violation in violations.list {
            let is_name = violation.field == "name" && document.kind.is_named();
            let field = if is_name { "path" } else { violation.field.as_str() };
            self.fault(document, field, &violation.description);
        }
        Ok(())
    }
}

/// A spec with UIDPs in place of stand-ins, once the objects exist.
pub(super) fn settled(value: &mut Value, created: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            if let Some(uid) = created.get(text) {
                text.clone_from(uid);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| settled(item, created)),
        Value::Object(members) => members.values_mut().for_each(|member| settled(member, created)),
        _ => {}
    }
}
