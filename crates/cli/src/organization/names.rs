//! Paths of names in place of UIDPs, and back.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::Contract;
use bowline_core::Uidp;
use prost_reflect::MessageDescriptor;
use serde_json::Value;

use super::kinds::{GROUP, Kind, PathOf};
use super::schema::{self, Members};
use super::server::{Server, Stored};

/// Paths of objects, in both directions.
pub(super) struct Names {
    by_uid: BTreeMap<String, String>,
    by_path: BTreeMap<(&'static str, String), BTreeSet<String>>,
}

impl Names {
    /// The built-in roles, which have no group, and the objects that were read.
    pub(super) fn new(contract: &Contract, server: &Server) -> Names {
        let mut names = Names { by_uid: BTreeMap::new(), by_path: BTreeMap::new() };
        for role in contract.built_in_roles() {
            names.insert("Role", role.uid.clone(), role.name.clone());
        }
        // Containers come before what is in them, by their UIDPs.
        let mut named: Vec<&Stored> = server.objects.iter().filter(|object| object.kind.is_named()).collect();
        named.sort_by_key(|object| (object.kind.name != GROUP, &object.uid));
        for object in named {
            let path = match names.by_uid.get(&object.parent) {
                Some(parent) => format!("{parent}/{}", object.name),
                None => object.name.clone(),
            };
            names.insert(object.kind.name, object.uid.clone(), path);
        }
        names
    }

    /// Adds an object that files name.
    pub(super) fn insert(&mut self, kind: &'static str, uid: String, path: String) {
        self.by_path.entry((kind, path.clone())).or_default().insert(uid.clone());
        self.by_uid.insert(uid, path);
    }

    /// The UIDPs with a path: none, one, or several with the same names.
    pub(super) fn uids(&self, kind: &'static str, path: &str) -> Vec<String> {
        // A person's UIDP is made from issuer and subject, and the same on every server.
        if kind == "Identity" && Uidp::is_valid(path) && !path.contains('/') {
            return vec![path.to_owned()];
        }
        self.by_path.get(&(kind, path.to_owned())).into_iter().flatten().cloned().collect()
    }

    /// The path of a UIDP; the UIDP itself if it has no path.
    pub(super) fn path<'a>(&'a self, uid: &'a str) -> &'a str {
        self.by_uid.get(uid).map_or(uid, String::as_str)
    }

    /// What a document has as `path` for an object.
    pub(super) fn path_of(&self, kind: &Kind, uid: &str, parent: &str) -> String {
        match kind.path {
            PathOf::Itself => self.path(uid).to_owned(),
            PathOf::Container | PathOf::Subject => self.path(parent).to_owned(),
        }
    }

    /// A spec with paths in place of UIDPs.
    pub(super) fn named(&self, message: &MessageDescriptor, spec: &Members) -> Members {
        let mut spec = spec.clone();
        let renamed = schema::each_reference(message, &mut spec, "", &mut |_, _, text: &mut String| {
            *text = self.path(text).to_owned();
            Ok::<_, std::convert::Infallible>(())
        });
        let Ok(()) = renamed;
        spec
    }

    /// What people call an object: kind, path, and what distinguishes it from others with that path.
    pub(super) fn label(&self, kind: &Kind, message: &MessageDescriptor, path: &str, spec: &Members) -> String {
        let named = self.named(message, spec);
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
        let keys: Vec<String> = kind.keys.iter().filter_map(|key| named.get(*key)).map(text).collect();
        match keys.as_slice() {
            [] => format!("{} {path}", kind.name),
            keys => format!("{} {path} ({})", kind.name, keys.join(", ")),
        }
    }
}
