//! The fields of a method's request, as a form has them. Everything follows from the descriptors.

use std::borrow::Cow;

use bowline_contract::{Contract, Docs, MethodInfo};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::hidden::reaches_secret;
use crate::values::{NOT_SHOWN, address_of, has_path_or_query};

/// Messages inside messages that a form has fields for; deeper ones are written as JSON.
const MAX_DEPTH: usize = 5;
/// Maximum characters of a text that gets a line; longer ones get an area.
const LINE: usize = 300;
/// The field of an update that names what changes.
pub(crate) const MASK: &str = "update_mask";

/// How a field is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Line,
    Area,
    Secret,
    Number,
    /// Yes or no; empty for the default.
    Flag,
    /// One of these names; empty for the default.
    Choice(Vec<String>),
    Time,
    Duration,
    Mask,
    /// One element per line; of these names, unless there are none.
    Lines(Vec<String>),
    /// A message without fields: it is there or not.
    Presence,
    /// What no other input holds.
    Json,
}

/// A field with a value of its own.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Dotted path in proto names.
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) is_required: bool,
    /// Maximum characters; 0 for no limit of its own.
    pub(crate) max: usize,
    pub(crate) input: Input,
    /// Whether its value is a secret, or a message that may have one: no address has it, and no page keeps it for others.
    pub(crate) may_hold_secret: bool,
    /// Whether it is an address, with a secret in its path or query, if any.
    pub(crate) is_address: bool,
}

impl Leaf {
    /// Whether this text of the field may be a secret, or have one in it.
    pub(crate) fn holds_secret(&self, text: &str) -> bool {
        self.may_hold_secret && !text.is_empty() && (!self.is_address || has_path_or_query(text))
    }

    /// The text as it is shown beside others.
    pub(crate) fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match text {
            text if !self.holds_secret(text) => text.into(),
            text if self.is_address => address_of(text).into(),
            _ => NOT_SHOWN.into(),
        }
    }
}

/// A field of a form.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Leaf(Leaf),
    /// The fields of a message.
    Group {
        path: String,
        name: String,
        doc: String,
        nodes: Vec<Node>,
    },
}

/// The fields of a request.
pub(crate) fn fields(contract: &Contract, method: &MethodInfo) -> Vec<Node> {
    let named: Vec<&str> = method.bindings.iter().flat_map(|binding| binding.template.fields()).collect();
    let reader = Reader { contract, docs: Docs::load(), named };
    reader.nodes(&method.input, "", &mut Vec::new())
}

/// The fields with values, in the order of the form.
pub(crate) fn leaves(nodes: &[Node]) -> Vec<&Leaf> {
    let mut found = Vec::new();
    for node in nodes {
        match node {
            Node::Leaf(leaf) => found.push(leaf),
            Node::Group { nodes, .. } => found.extend(leaves(nodes)),
        }
    }
    found
}

struct Reader<'c> {
    contract: &'c Contract,
    docs: Docs,
    /// Fields that the method's path names: a caller sets them even where only the server sets them elsewhere.
    named: Vec<&'c str>,
}

impl Reader<'_> {
    fn nodes(&self, message: &MessageDescriptor, path: &str, above: &mut Vec<String>) -> Vec<Node> {
        above.push(message.full_name().to_owned());
        let nodes = message.fields().filter_map(|field| self.node(&field, path, above)).collect();
        above.pop();
        nodes
    }

    fn node(&self, field: &FieldDescriptor, path: &str, above: &mut Vec<String>) -> Option<Node> {
        let path = if path.is_empty() { field.name().to_owned() } else { format!("{path}.{}", field.name()) };
        let facts = self.contract.field_rules().facts(field);
        if facts.is_none() && !self.named.contains(&path.as_str()) {
            return None;
        }
        let facts = facts.unwrap_or_default();
        let doc = self.docs.of(field.full_name());
        let name = field.name().to_owned();
        let is_single = !field.is_list() && !field.is_map();
        let is_nested = |inner: &MessageDescriptor| {
            is_single && !is_well_known(inner) && inner.fields().len() > 0 && above.len() < MAX_DEPTH
        };
        if let Kind::Message(inner) = field.kind()
            && is_nested(&inner)
            && !above.contains(&inner.full_name().to_owned())
        {
            let nodes = self.nodes(&inner, &path, above);
            return (!nodes.is_empty()).then_some(Node::Group { path, name, doc, nodes });
        }
        let input = self.input(field, facts.text.max_characters);
        let is_address = self.contract.is_secret_address(field);
        let may_hold_secret = match field.kind() {
            Kind::Message(inner) => reaches_secret(self.contract, &inner),
            _ => self.contract.is_secret(field) || is_address,
        };
        let (is_required, max) = (facts.required, facts.text.max_characters);
        Some(Node::Leaf(Leaf { path, name, doc, is_required, max, input, may_hold_secret, is_address }))
    }

    fn input(&self, field: &FieldDescriptor, max: usize) -> Input {
        let names = |kind: &Kind| match kind {
            Kind::Enum(values) => values.values().map(|value| value.name().to_owned()).collect(),
            _ => Vec::new(),
        };
        match field.kind() {
            _ if field.is_map() => Input::Json,
            Kind::Message(_) if field.is_list() => Input::Json,
            kind if field.is_list() => Input::Lines(names(&kind)),
            Kind::Message(inner) => match inner.full_name() {
                "google.protobuf.Timestamp" => Input::Time,
                "google.protobuf.Duration" => Input::Duration,
                "google.protobuf.FieldMask" => Input::Mask,
                _ if !is_well_known(&inner) && inner.fields().len() == 0 => Input::Presence,
                _ => Input::Json,
            },
            Kind::Bool => Input::Flag,
            kind @ Kind::Enum(_) => Input::Choice(names(&kind)),
            Kind::String if self.contract.is_secret(field) => Input::Secret,
            Kind::String if (1..=LINE).contains(&max) || is_id(field.name()) => Input::Line,
            Kind::String | Kind::Bytes => Input::Area,
            _ => Input::Number,
        }
    }
}

fn is_well_known(message: &MessageDescriptor) -> bool {
    message.package_name() == "google.protobuf"
}

/// Ids and their like have no limit of their own, and fit into a line.
fn is_id(name: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or(name);
    matches!(last, "uid" | "uidp" | "id" | "parent" | "group" | "scope" | "digest" | "token" | "by" | "name" | "role")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(name: &str) -> Vec<(String, Input)> {
        let contract = Contract::load();
        let nodes = fields(&contract, contract.by_full_name(name).unwrap());
        leaves(&nodes).into_iter().map(|leaf| (leaf.path.clone(), leaf.input.clone())).collect()
    }

    #[test]
    fn fields_follow_from_the_descriptors() {
        let update = paths("chainguard.platform.iam.v2.GroupsService.UpdateGroup");
        let input = |path: &str| update.iter().find(|(name, _)| name == path).map(|(_, input)| input.clone());
        assert_eq!(input("group.uid"), Some(Input::Line), "the path names it");
        assert_eq!((input("group.create_time"), input(MASK)), (None, Some(Input::Mask)));
        assert!(matches!(input("group.kind"), Some(Input::Choice(names)) if names.len() > 3));
        let identity = paths("chainguard.platform.iam.v2.IdentitiesService.CreateIdentity");
        let input = |path: &str| identity.iter().find(|(name, _)| name == path).map(|(_, input)| input.clone());
        assert_eq!(input("identity.claim_match.claims"), Some(Input::Json));
        assert_eq!(input("identity.static_keys.audiences"), Some(Input::Lines(Vec::new())));
        assert_eq!(input("identity.static_keys.expiration_time"), Some(Input::Time));
        let provider = paths("chainguard.platform.iam.v2.IdentityProvidersService.CreateIdentityProvider");
        assert!(provider.contains(&("identity_provider.oidc.client_secret".into(), Input::Secret)));
    }

    #[test]
    fn what_reaches_a_secret_is_known_as_such() {
        let contract = Contract::load();
        let mut found = Vec::new();
        for method in contract.methods() {
            let nodes = fields(&contract, method);
            let secret = leaves(&nodes).into_iter().filter(|leaf| leaf.may_hold_secret).map(|leaf| leaf.path.clone());
            let secret: Vec<String> = secret.collect();
            // The server alone sets the code of an invitation.
            let is_set_by_server = method.input.full_name().ends_with("GroupInviteRequest");
            let reaches = reaches_secret(&contract, &method.input) && !is_set_by_server;
            assert_eq!(!secret.is_empty(), reaches, "{}: {secret:?}", method.full_name);
            found.extend(secret);
        }
        for path in ["request", "identity_provider.oidc.client_secret", "token", "policy.upstream.password"] {
            assert!(found.iter().any(|one| one == path), "{path}: {found:?}");
        }
    }

    #[test]
    fn every_method_has_fields_and_few_enough() {
        let contract = Contract::load();
        for method in contract.methods() {
            let nodes = fields(&contract, method);
            let leaves = leaves(&nodes);
            assert!(leaves.len() < 150, "{} has {} fields", method.full_name, leaves.len());
            let mut paths: Vec<&str> = leaves.iter().map(|leaf| leaf.path.as_str()).collect();
            paths.sort_unstable();
            paths.dedup();
            assert_eq!(paths.len(), leaves.len(), "{}", method.full_name);
        }
    }
}
