use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bowline_core::CapabilitySet;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, ServiceDescriptor, Value};

use crate::capabilities::Capabilities;
use crate::method::{Auth, EventRule, MethodInfo, MethodOptions, Verb};
use crate::options;
use crate::part;
use crate::roles::{self, BuiltInRole};
use crate::route::Routes;
use crate::rules::FieldRules;

/// The compiled `proto/` directory with custom options: what the method table is made of and reflection serves.
pub const SERVED_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/served.binpb"));

static EMBEDDED: OnceLock<Arc<Contract>> = OnceLock::new();

/// Parts by the full name of their service.
static PARTS: Mutex<BTreeMap<String, Arc<Contract>>> = Mutex::new(BTreeMap::new());

/// The method table and everything else that is derived from the descriptor set. Built once, immutable.
pub struct Contract {
    pool: DescriptorPool,
    /// The served methods, and behind them the operations.
    methods: Vec<MethodInfo>,
    served: usize,
    by_full_name: HashMap<String, usize>,
    by_grpc_path: HashMap<String, usize>,
    routes: Routes,
    capabilities: Capabilities,
    roles: Vec<BuiltInRole>,
    operator_roles: Vec<BuiltInRole>,
    field_rules: OnceLock<FieldRules>,
    is_whole: bool,
    kinds: HashMap<String, CapabilitySet>,
    text_forms: Vec<TextForm>,
    /// Full names of fields whose value is a secret.
    secrets: HashSet<String>,
    /// Full names of fields whose value is an address that may have a secret in it.
    secret_addresses: HashSet<String>,
    /// Full names of methods that take something away, besides those with the verb DELETE.
    confirmed: HashSet<String>,
}

impl Contract {
    /// What the embedded descriptor set says. The first call of a process reads it.
    ///
    /// # Panics
    /// The descriptor set contradicts itself: a defect of the build that no input causes; a test covers it.
    pub fn load() -> Arc<Contract> {
        EMBEDDED.get_or_init(|| Arc::new(Contract::read(SERVED_DESCRIPTOR_SET, true))).clone()
    }

    /// The part of the contract that calls of this method need: the methods of its file with their messages and rules, but
    /// none of other files. The whole contract, if it was read before, has no such method, or if the messages may have any other
    /// in them.
    pub fn of(method: &str) -> Arc<Contract> {
        if let Some(whole) = EMBEDDED.get() {
            return whole.clone();
        }
        let Some((service, _)) = method.rsplit_once('.') else { return Contract::load() };
        // Nothing panics while it is locked but a defect of the build, which every start would meet.
        let mut parts = PARTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts.get(service) {
            return part.clone();
        }
        let Some(set) = part::set_of(SERVED_DESCRIPTOR_SET, service) else { return Contract::load() };
        let part = Arc::new(Contract::read(&set, false));
        parts.insert(service.to_owned(), part.clone());
        part
    }

    fn read(set: &[u8], is_whole: bool) -> Contract {
        let pool = DescriptorPool::decode(set).expect("the embedded descriptor set decodes");
        let capabilities = Capabilities::load(&pool);
        let method_options = MethodOptions::load(&pool);
        let mut services: Vec<ServiceDescriptor> = pool.services().collect();
        let operations = operation_services(&pool);
        let is_operation = |service: &ServiceDescriptor| operations.iter().any(|name| name == service.full_name());
        services.sort_by(|a, b| (is_operation(a), a.full_name()).cmp(&(is_operation(b), b.full_name())));
        let mut methods: Vec<MethodInfo> = Vec::new();
        for method in services.iter().flat_map(ServiceDescriptor::methods) {
            methods.push(method_options.method(methods.len(), &method, &capabilities));
        }
        apply_method_rules(&pool, &mut methods, is_whole);
        methods.iter().for_each(require_scope);
        let served =
            services.iter().filter(|service| !is_operation(service)).map(|service| service.methods().len()).sum();
        Contract {
            by_full_name: methods.iter().map(|m| (m.full_name.clone(), m.index)).collect(),
            by_grpc_path: methods[..served].iter().map(|m| (m.grpc_path.clone(), m.index)).collect(),
            routes: Routes::build(&methods[..served]),
            served,
            roles: roles::load(&pool, &capabilities, "bowline.contract.v1.BuiltInRole"),
            operator_roles: roles::load(&pool, &capabilities, "bowline.contract.v1.OperatorRole"),
            field_rules: OnceLock::new(),
            is_whole,
            kinds: if is_whole { kinds(&pool, &methods) } else { HashMap::new() },
            text_forms: text_forms(&pool),
            secrets: fields_of(&pool, "bowline.contract.v1.secret_fields", is_whole),
            secret_addresses: fields_of(&pool, "bowline.contract.v1.secret_address_fields", is_whole),
            confirmed: confirmed_methods(&pool, &methods, is_whole),
            methods,
            capabilities,
            pool,
        }
    }

    pub fn pool(&self) -> &DescriptorPool {
        &self.pool
    }

    /// All methods that transports serve, by full name.
    pub fn methods(&self) -> &[MethodInfo] {
        &self.methods[..self.served]
    }

    /// What is allowed at fronts with a protocol of their own.
    pub fn operations(&self) -> &[MethodInfo] {
        &self.methods[self.served..]
    }

    /// The method or operation at this position of the table.
    pub fn method(&self, index: usize) -> &MethodInfo {
        &self.methods[index]
    }

    /// The method or operation of this full name.
    pub fn by_full_name(&self, full_name: &str) -> Option<&MethodInfo> {
        self.by_full_name.get(full_name).map(|index| &self.methods[*index])
    }

    /// The method of this gRPC path, `/<package>.<Service>/<Method>`.
    pub fn by_grpc_path(&self, path: &str) -> Option<&MethodInfo> {
        self.by_grpc_path.get(path).map(|index| &self.methods[*index])
    }

    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    pub fn built_in_roles(&self) -> &[BuiltInRole] {
        &self.roles
    }

    /// The roles of named operators, which are bound at no group: `operator.viewer` and `operator.admin`.
    pub fn operator_roles(&self) -> &[BuiltInRole] {
        &self.operator_roles
    }

    /// How messages are written as one text in a query: message, field before the last colon, field after it.
    pub fn text_forms(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.text_forms.iter().map(|form| (&*form.message, &*form.before, &*form.after))
    }

    /// Whether the value of a field is a secret, such as a password or a token: pages show it once at most.
    pub fn is_secret(&self, field: &FieldDescriptor) -> bool {
        self.secrets.contains(field.full_name())
    }

    /// Whether the value of a field is an address that may have a secret in its path or query: pages show its host.
    pub fn is_secret_address(&self, field: &FieldDescriptor) -> bool {
        self.secret_addresses.contains(field.full_name())
    }

    /// Whether a method takes something away, so that people confirm it: by the verb of its route, or by a rule.
    pub fn is_confirmed(&self, method: &MethodInfo) -> bool {
        let deletes = method.bindings.first().is_some_and(|binding| binding.verb == Verb::Delete);
        deletes || self.confirmed.contains(&method.full_name)
    }

    /// The rules of request fields. The first call reads them; a server compiles them as well when it starts.
    pub fn field_rules(&self) -> &FieldRules {
        self.field_rules.get_or_init(|| FieldRules::load(&self.pool, self.is_whole))
    }

    /// The capabilities that list resources of this kind; absent for kinds that no method lists.
    pub fn listing_of_kind(&self, kind: &str) -> Option<&CapabilitySet> {
        self.kinds.get(kind)
    }

    /// The contract's gaps, one line each: methods without a binding, scoped methods without a scope
    /// field, mutations without an event. A golden file keeps the list from growing unseen.
    pub fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        for method in self.methods() {
            let mut gap = |what: &str| gaps.push(format!("{}: {what}", method.full_name));
            if method.bindings.is_empty() {
                gap("no binding");
            }
            let scoped = matches!(method.auth, Auth::Capabilities { unscoped: false, .. });
            if scoped && method.scope_field.is_none() {
                gap("scoped without a scope field");
            }
            if method.is_mutation() && method.wire_event().is_none() {
                gap("no event");
            }
            let unscoped = matches!(&method.auth, Auth::Capabilities { unscoped: true, needed } if !needed.is_empty());
            if method.is_mutation() && unscoped {
                gap("unscoped mutation, whose handler authorizes the scope");
            }
        }
        gaps
    }
}

/// # Panics
/// A method needs capabilities at a scope and has no scope field: no caller could be authorized.
fn require_scope(method: &MethodInfo) {
    if let Auth::Capabilities { needed, unscoped: false } = &method.auth {
        let has_scope = needed.is_empty() || method.scope_field.is_some();
        assert!(has_scope, "{} needs capabilities and has no scope field", method.full_name);
    }
}

/// What lists each kind of resource.
///
/// # Panics
/// A kind names a method that does not exist, or one that needs no capability.
fn kinds(pool: &DescriptorPool, methods: &[MethodInfo]) -> HashMap<String, CapabilitySet> {
    let extension = options::extension(pool, "bowline.contract.v1.resource_kinds");
    let rules = pool.files().filter_map(|file| options::get(&file.options(), &extension));
    let mut kinds = HashMap::new();
    for rule in rules.filter_map(|rules| rules.as_list().map(<[Value]>::to_vec)).flatten() {
        let Value::Message(rule) = rule else { continue };
        let (kind, name) = (options::text(&rule, "kind"), options::text(&rule, "list_method"));
        let method = methods.iter().find(|method| method.full_name == name);
        match method.map(|method| &method.auth) {
            Some(Auth::Capabilities { needed, .. }) if !needed.is_empty() => kinds.insert(kind, *needed),
            _ => panic!("the kind {kind} is listed by {name}, which is no method with a capability"),
        };
    }
    kinds
}

/// How a message is written as one text in a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextForm {
    /// Full name of the message.
    pub message: String,
    /// The field that has what comes before the last colon.
    pub before: String,
    /// The field that has what comes after it.
    pub after: String,
}

fn text_forms(pool: &DescriptorPool) -> Vec<TextForm> {
    let extension = options::extension(pool, "bowline.contract.v1.text_forms");
    let rules = pool.files().filter_map(|file| options::get(&file.options(), &extension));
    let mut forms = Vec::new();
    for rule in rules.filter_map(|rules| rules.as_list().map(<[Value]>::to_vec)).flatten() {
        let Value::Message(rule) = rule else { continue };
        let (before, after) = (options::text(&rule, "before_colon"), options::text(&rule, "after_colon"));
        let messages = rule.get_field_by_name("messages");
        let messages = messages.as_ref().and_then(|messages| messages.as_list()).unwrap_or_default();
        for message in messages.iter().filter_map(Value::as_str) {
            forms.push(TextForm { message: message.into(), before: before.clone(), after: after.clone() });
        }
    }
    forms
}

/// # Panics
/// A rule names a field that does not exist; in a part, it may be one of another file.
fn fields_of(pool: &DescriptorPool, option: &str, is_whole: bool) -> HashSet<String> {
    let names = names_of_files(pool, option);
    let exists = |name: &String| {
        let (message, field) = name.rsplit_once('.').unwrap_or_default();
        pool.get_message_by_name(message).is_some_and(|message| message.get_field_by_name(field).is_some())
    };
    names.inspect(|name| assert!(!is_whole || exists(name), "a rule names the unknown field {name}")).collect()
}

/// # Panics
/// A rule names a method that does not exist; in a part, it may be one of another file.
fn confirmed_methods(pool: &DescriptorPool, methods: &[MethodInfo], is_whole: bool) -> HashSet<String> {
    let exists = |name: &String| methods.iter().any(|method| method.full_name == *name);
    let names = names_of_files(pool, "bowline.contract.v1.confirmed_methods");
    names.inspect(|name| assert!(!is_whole || exists(name), "a rule names the unknown method {name}")).collect()
}

fn operation_services(pool: &DescriptorPool) -> Vec<String> {
    names_of_files(pool, "bowline.contract.v1.operation_services").collect()
}

/// The texts of an option of files.
fn names_of_files(pool: &DescriptorPool, option: &str) -> impl Iterator<Item = String> {
    let extension = options::extension(pool, option);
    let values: Vec<Value> = pool.files().filter_map(|file| options::get(&file.options(), &extension)).collect();
    let names = values.into_iter().flat_map(|value| value.as_list().map(<[Value]>::to_vec).unwrap_or_default());
    names.filter_map(|name| name.as_str().map(String::from))
}

/// # Panics
/// A rule names a method that does not exist; in a part, it may be one of another file.
fn apply_method_rules(pool: &DescriptorPool, methods: &mut [MethodInfo], is_whole: bool) {
    let extension = options::extension(pool, "bowline.contract.v1.method_rules");
    for file in pool.files() {
        let Some(Value::List(rules)) = options::get(&file.options(), &extension) else {
            continue;
        };
        for rule in &rules {
            let Value::Message(rule) = rule else { continue };
            for name in options::texts(rule, "methods") {
                let Some(method) = methods.iter_mut().find(|method| method.full_name == name) else {
                    assert!(!is_whole, "a rule names the unknown method {name}");
                    continue;
                };
                let own = options::text(rule, "own_subject_field");
                let own_access = options::text(rule, "own_access_field");
                let bytes = options::field(rule, "max_request_bytes").and_then(|v| v.as_u64()).unwrap_or(0);
                method.operator_only |= options::flag(rule, "operator_only");
                method.own_identity_allowed |= options::flag(rule, "own_identity_allowed");
                method.own_subject_field = (!own.is_empty()).then_some(own).or(method.own_subject_field.take());
                method.own_access_field =
                    (!own_access.is_empty()).then_some(own_access).or(method.own_access_field.take());
                method.terms_exempt |= options::flag(rule, "terms_exempt");
                method.works_on_full_disk |= options::flag(rule, "works_on_full_disk");
                method.finite_stream |= options::flag(rule, "finite_stream");
                method.previewable |= options::flag(rule, "previewable");
                if let Some(Value::Message(event)) = options::field(rule, "event") {
                    method.event = Some(server_event(method, &event));
                }
                method.max_request_bytes = (bytes > 0).then_some(bytes).or(method.max_request_bytes);
            }
        }
    }
}

/// # Panics
/// The wire contract has an event for the method: two would be one too many.
fn server_event(method: &MethodInfo, event: &DynamicMessage) -> EventRule {
    assert!(method.event.is_none(), "{} has an event already", method.full_name);
    EventRule {
        event_type: options::text(event, "type"),
        extensions: Vec::new(),
        customer: options::flag(event, "customer"),
        is_server_event: true,
    }
}
