//! Judges request fields: `field_behavior`, enum ranges, and the string rules of `bowline.contract.v1`.
//!
//! Reads the wire bytes once; nothing is decoded into a message for it.

use std::collections::{BTreeMap, HashMap, HashSet};

use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::fields::{Fields, Payload, packed_varints};
use crate::options;
use crate::text_rule::{TextRule, text_rules};

mod facts;
pub use facts::{FieldFacts, TextFacts};

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Dotted path in JSON names.
    pub field: String,
    /// What is wrong.
    pub description: String,
}

/// The rules of every message of the contract, compiled.
#[derive(Default)]
pub struct FieldRules {
    plans: Vec<Plan>,
    by_message: HashMap<String, usize>,
}

/// What to look at in one message.
#[derive(Default)]
struct Plan {
    fields: HashMap<u32, FieldPlan>,
}

struct FieldPlan {
    json_name: String,
    proto_name: String,
    required: bool,
    /// Names the place that is judged: inside a batch, the batch's own stands for it.
    scope: bool,
    repeated: bool,
    /// Most elements of a repeated field, of whatever type; 0 for no limit.
    max_elements: usize,
    check: Check,
}

enum Check {
    Nothing,
    Text(Option<TextRule>),
    Enum(HashSet<i32>),
    Message(usize),
}

/// The occurrences of one field. A message that comes in several is the one that they merge to; of a
/// scalar the last one counts.
#[derive(Default)]
struct Found<'a> {
    count: usize,
    last: Option<Payload<'a>>,
    merged: Vec<u8>,
}

impl<'a> Found<'a> {
    fn add(&mut self, field: &FieldPlan, payload: Payload<'a>) {
        let is_message = matches!(field.check, Check::Message(_));
        match &payload {
            // An empty message is there; an empty scalar is not told from an absent one.
            Payload::Empty if !is_message && !field.repeated => self.count = 0,
            // Enumerations of a list come one by one, or many in one.
            Payload::Bytes(packed) if field.repeated && matches!(field.check, Check::Enum(_)) => {
                self.count += packed_varints(packed).count();
            }
            _ => self.count += 1,
        }
        if is_message && !field.repeated {
            if let Some(Payload::Bytes(first)) = self.last.take_if(|_| self.count == 2) {
                self.merged.extend(first);
            }
            if let (Payload::Bytes(bytes), true) = (&payload, self.count > 1) {
                self.merged.extend(*bytes);
            }
        }
        self.last = Some(payload);
    }

    fn payload(&self) -> Option<Payload<'_>> {
        if self.merged.is_empty() { self.last } else { Some(Payload::Bytes(&self.merged)) }
    }
}

impl FieldPlan {
    fn path(&self, prefix: &str) -> String {
        if prefix.is_empty() { self.json_name.clone() } else { format!("{prefix}.{}", self.json_name) }
    }

    fn judge_count(&self, count: usize, prefix: &str, scope: &Scope<'_>) -> Option<Violation> {
        let rule = match &self.check {
            Check::Text(rule) => rule.as_ref(),
            _ => None,
        };
        let most = self.max_elements;
        if self.repeated && most > 0 && count > most {
            return Some(Violation { field: self.path(prefix), description: format!("at most {most} elements") });
        }
        let is_needed = (self.required && !(self.scope && scope.depth > 0)) || rule.is_some_and(|rule| rule.not_empty);
        (count == 0 && is_needed && scope.judges_absence(&self.proto_name)).then(|| required(self.path(prefix)))
    }
}

impl FieldRules {
    pub(crate) fn load(pool: &DescriptorPool) -> FieldRules {
        let mut texts = text_rules(pool);
        let behavior = options::extension(pool, "google.api.field_behavior");
        let iam_scope = options::extension(pool, "chainguard.annotations.iam_scope");
        let messages: Vec<MessageDescriptor> = pool.all_messages().collect();
        let by_message: HashMap<String, usize> =
            messages.iter().enumerate().map(|(i, message)| (message.full_name().to_owned(), i)).collect();
        let mut plans = Vec::with_capacity(messages.len());
        for message in &messages {
            let mut plan = Plan::default();
            for field in message.fields() {
                let behaviors = behaviors(&field.options(), &behavior);
                if behaviors.contains(&OUTPUT_ONLY) {
                    texts.remove(field.full_name());
                    continue;
                }
                let rule = texts.remove(field.full_name());
                let max_elements = rule.as_ref().map_or(0, |rule| rule.max_elements);
                let check = check(&field, rule, &by_message);
                plan.fields.insert(
                    field.number(),
                    FieldPlan {
                        json_name: field.json_name().into(),
                        proto_name: field.name().into(),
                        required: behaviors.contains(&REQUIRED) && can_be_absent(&field),
                        scope: options::get(&field.options(), &iam_scope).is_some(),
                        repeated: field.is_list() || field.is_map(),
                        max_elements,
                        check,
                    },
                );
            }
            plans.push(plan);
        }
        if let Some(unknown) = texts.keys().next() {
            panic!("a field rule names {unknown}, which is no input field of the contract");
        }
        FieldRules { plans, by_message }
    }

    /// Judges a request. `resource` names the request field that holds the resource: violations inside it are
    /// named relative to it. `mask` limits what is judged inside it to the fields that an update changes.
    pub fn judge(&self, message: &str, wire: &[u8], resource: Option<&str>, mask: Option<&[String]>) -> Vec<Violation> {
        let mut violations = Vec::new();
        if let Some(plan) = self.by_message.get(message) {
            let scope = Scope { resource, mask, partial: false, depth: 0 };
            self.walk(*plan, wire, "", &scope, &mut violations);
        }
        violations
    }

    fn walk(&self, plan: usize, wire: &[u8], prefix: &str, scope: &Scope<'_>, violations: &mut Vec<Violation>) {
        let plan = &self.plans[plan];
        let mut found: BTreeMap<u32, Found<'_>> = BTreeMap::new();
        for item in Fields(wire) {
            // What the walk cannot read, nothing behind it may: a decoder might read on.
            let Ok((number, payload)) = item else {
                let field = if prefix.is_empty() { "request" } else { prefix };
                violations.push(Violation { field: field.into(), description: "is not well-formed".into() });
                return;
            };
            let Some(field) = plan.fields.get(&number).filter(|field| !scope.is_masked_out(&field.proto_name)) else {
                continue;
            };
            let found = found.entry(number).or_default();
            if field.repeated {
                let path = format!("{}[{}]", field.path(prefix), found.count);
                self.judge_value(field, &payload, &path, scope, violations);
            }
            found.add(field, payload);
        }
        for (number, field) in &plan.fields {
            if scope.is_masked_out(&field.proto_name) {
                continue;
            }
            let found = found.remove(number).unwrap_or_default();
            if let Some(payload) = found.payload().filter(|_| !field.repeated) {
                self.judge_value(field, &payload, &field.path(prefix), scope, violations);
            }
            if let Some(violation) = field.judge_count(found.count, prefix, scope) {
                violations.push(violation);
            }
        }
        violations.sort_by(|a, b| a.field.cmp(&b.field));
    }

    fn judge_value(
        &self,
        field: &FieldPlan,
        payload: &Payload<'_>,
        path: &str,
        scope: &Scope<'_>,
        violations: &mut Vec<Violation>,
    ) {
        match (&field.check, payload) {
            (Check::Text(Some(rule)), Payload::Bytes(bytes)) => {
                let text = String::from_utf8_lossy(bytes);
                let name = path.rsplit('.').next().unwrap_or(path);
                if let Some(description) = rule.judge(name, &text) {
                    violations.push(Violation { field: path.into(), description });
                }
            }
            (Check::Text(None), Payload::Bytes(bytes)) if bytes.contains(&0) => {
                violations.push(Violation {
                    field: path.into(),
                    description: "must not contain the character U+0000".into(),
                });
            }
            (Check::Enum(known), Payload::Varint(value)) if !known.contains(&(*value as i32)) => {
                violations.push(Violation {
                    field: path.into(),
                    description: format!("unknown enum value {}", *value as i32),
                });
            }
            (Check::Enum(known), Payload::Bytes(packed)) if field.repeated => {
                for value in packed_varints(packed).filter(|value| !known.contains(&(*value as i32))) {
                    violations.push(Violation {
                        field: path.into(),
                        description: format!("unknown enum value {}", value as i32),
                    });
                }
            }
            (Check::Message(inner), Payload::Bytes(_) | Payload::Empty) => {
                let bytes = if let Payload::Bytes(bytes) = payload { *bytes } else { &[] };
                if scope.depth < MAX_DEPTH {
                    let is_resource = scope.resource == Some(field.proto_name.as_str()) && scope.depth == 0;
                    let prefix = if is_resource { "" } else { path };
                    self.walk(*inner, bytes, prefix, &scope.inside(is_resource, &field.proto_name), violations);
                }
            }
            _ => {}
        }
    }
}

const REQUIRED: i32 = 2;
const OUTPUT_ONLY: i32 = 3;
const MAX_DEPTH: u32 = 100;

/// Where in the request the walk is.
struct Scope<'a> {
    resource: Option<&'a str>,
    mask: Option<&'a [String]>,
    /// Inside a message of which the mask names a part only: what is left out there is left alone.
    partial: bool,
    depth: u32,
}

impl Scope<'_> {
    fn inside(&self, is_resource: bool, field: &str) -> Scope<'_> {
        let mask = if self.depth == 0 && is_resource { self.mask } else { None };
        let whole = |path: &String| path == "*" || path == field;
        let partial = self.partial || (self.is_in_resource() && !self.mask.unwrap_or(&[]).iter().any(whole));
        Scope { resource: None, mask, partial, depth: self.depth + 1 }
    }

    fn is_in_resource(&self) -> bool {
        self.depth == 1 && self.mask.is_some()
    }

    fn is_masked_out(&self, field: &str) -> bool {
        self.is_in_resource() && !self.names(field)
    }

    fn judges_absence(&self, field: &str) -> bool {
        !self.partial && (!self.is_in_resource() || self.names(field))
    }

    fn names(&self, field: &str) -> bool {
        self.mask.unwrap_or(&[]).iter().any(|path| path == "*" || path.split('.').next() == Some(field))
    }
}

fn required(field: String) -> Violation {
    let name = field.rsplit('.').next().unwrap_or(&field).to_owned();
    Violation { description: format!("{name} is required"), field }
}

fn behaviors(field_options: &DynamicMessage, extension: &prost_reflect::ExtensionDescriptor) -> Vec<i32> {
    match options::get(field_options, extension) {
        Some(Value::List(list)) => list.iter().filter_map(Value::as_enum_number).collect(),
        _ => Vec::new(),
    }
}

/// A plain boolean that is false is not on the wire, and false is an answer.
fn can_be_absent(field: &FieldDescriptor) -> bool {
    field.kind() != Kind::Bool || field.supports_presence()
}

fn check(field: &FieldDescriptor, rule: Option<TextRule>, by_message: &HashMap<String, usize>) -> Check {
    match field.kind() {
        Kind::String => Check::Text(rule),
        Kind::Enum(descriptor) => Check::Enum(descriptor.values().map(|value| value.number()).collect()),
        Kind::Message(inner) if !inner.full_name().starts_with("google.protobuf.") => {
            Check::Message(by_message[inner.full_name()])
        }
        _ => Check::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use crate::Contract;
    use crate::v2::iam::{CreateRoleBindingRequest, Group, UpdateGroupRequest};
    use prost::Message;

    fn judge(message: &str, wire: &[u8], resource: Option<&str>, mask: Option<&[String]>) -> Vec<String> {
        let violations = Contract::load().field_rules().judge(message, wire, resource, mask);
        violations.into_iter().map(|v| format!("{}: {}", v.field, v.description)).collect()
    }

    fn update(group: Group) -> Vec<u8> {
        UpdateGroupRequest { group: Some(group), update_mask: None }.encode_to_vec()
    }

    const UPDATE: &str = "chainguard.platform.iam.v2.UpdateGroupRequest";

    #[test]
    fn a_resource_in_two_pieces_is_one() {
        let body = update(Group { name: "fine name".into(), ..Group::default() });
        let path = update(Group { uid: "0".repeat(40), ..Group::default() });
        for wire in [[body.clone(), path.clone()].concat(), [path, body].concat()] {
            assert_eq!(judge(UPDATE, &wire, Some("group"), None), [""; 0]);
        }
    }

    #[test]
    fn only_what_the_mask_names_is_judged() {
        let wire = update(Group { name: "BAD".into(), description: "a\tb".into(), ..Group::default() });
        let mask = |path: &str| vec![path.to_owned()];
        let name = "name: name must match \"^[a-z0-9 ._-]{1,}$\"";
        assert_eq!(judge(UPDATE, &wire, Some("group"), Some(&mask("verified"))), [""; 0]);
        assert_eq!(judge(UPDATE, &wire, Some("group"), Some(&mask("name"))), [name]);
        assert_eq!(judge(UPDATE, &wire, Some("group"), None).len(), 2);
    }

    #[test]
    fn nothing_hides_behind_an_unknown_group() {
        let mut group = Group { name: "good name".into(), ..Group::default() }.encode_to_vec();
        group.extend([0xc3, 0x3e, 0xc4, 0x3e]); // an empty group of field 1000
        group.extend(Group { name: "BAD/../name".into(), ..Group::default() }.encode_to_vec());
        let mut wire = vec![0x0a];
        prost::encoding::encode_varint(group.len() as u64, &mut wire);
        wire.extend(group);
        assert_eq!(judge(UPDATE, &wire, Some("group"), None).len(), 1);
        assert!(!judge(UPDATE, &[0x0a, 0xff], Some("group"), None).is_empty(), "damage is a violation");
    }

    #[test]
    fn an_empty_resource_is_there_and_lacks_its_fields() {
        let request = CreateRoleBindingRequest { parent: "0".repeat(40), role_binding: Some(Default::default()) };
        let name = "chainguard.platform.iam.v2.CreateRoleBindingRequest";
        let violations = judge(name, &request.encode_to_vec(), Some("role_binding"), None);
        assert!(violations.iter().all(|violation| !violation.contains("roleBinding is required")), "{violations:?}");
    }

    proptest::proptest! {
        #[test]
        fn noise_does_not_panic(wire: Vec<u8>) {
            judge(UPDATE, &wire, Some("group"), None);
        }
    }

    #[test]
    fn elements_are_counted_of_whatever_type_they_are() {
        use crate::bowline::libraries::v1::{ImportVersionsRequest, PackageVersion};
        use crate::v1::libraries::{ArtifactFilter, Ecosystem};

        let judged = |versions| {
            let versions = vec![PackageVersion::default(); versions];
            let wire = ImportVersionsRequest { versions, dry_run: false }.encode_to_vec();
            judge("bowline.libraries.v1.ImportVersionsRequest", &wire, None, None)
        };
        let refusal = "versions: at most 500 elements".to_owned();
        assert!(!judged(500).contains(&refusal) && judged(501).contains(&refusal));
        let ecosystems = |count| {
            let ecosystems = vec![Ecosystem::Java as i32; count];
            let wire = ArtifactFilter { ecosystems, ..ArtifactFilter::default() }.encode_to_vec();
            judge("chainguard.platform.libraries.ArtifactFilter", &wire, None, None)
        };
        assert_eq!(ecosystems(50), Vec::<String>::new());
        assert_eq!(ecosystems(51), ["ecosystems: at most 50 elements"]);
    }
}
