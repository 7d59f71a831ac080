use bowline_core::CapabilitySet;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor, ReflectMessage, Value,
};

use crate::capabilities::Capabilities;
use crate::options;
use crate::template::Template;

/// The API version that a method belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiVersion {
    V1,
    V2,
}

/// HTTP verbs that bindings use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the verbs of HTTP")]
pub enum Verb {
    Get,
    Put,
    Post,
    Delete,
    Patch,
}

impl Verb {
    /// The verb as HTTP writes it.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Put => "PUT",
            Verb::Post => "POST",
            Verb::Delete => "DELETE",
            Verb::Patch => "PATCH",
        }
    }
}

/// What the HTTP body fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing: a body is ignored, or read as a form.
    None,
    /// Every field that the path leaves over.
    Whole,
    /// One field of the request.
    Field(String),
}

/// One way to reach a method over HTTP.
#[derive(Clone, Debug)]
pub struct HttpBinding {
    pub verb: Verb,
    pub template: Template,
    /// What the body fills.
    pub body: Body,
}

/// Who may call a method.
#[derive(Clone, Debug)]
pub enum Auth {
    /// No option: the method authenticates by itself.
    Own,
    Public,
    /// A valid token and these capabilities, all of them.
    Capabilities {
        /// The capabilities; empty for any valid token.
        needed: CapabilitySet,
        /// True where the result is narrowed to what the caller may see, false where the scope field is checked.
        unscoped: bool,
    },
}

/// The number of `CUSTOMER` in the enum `Audience` of the events option.
const AUDIENCE_CUSTOMER: i32 = 1;

/// The event of a successful call.
#[derive(Clone, Debug)]
pub struct EventRule {
    /// Type of the CloudEvent.
    pub event_type: String,
    /// Extension attributes that the event carries.
    pub extensions: Vec<String>,
    /// Whether subscriptions deliver it; otherwise it is internal.
    pub customer: bool,
    /// Whether the event is Bowline's own and so absent from the wire contract.
    pub is_server_event: bool,
}

/// How a method appears in a tool listing.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the names are those of the option")]
pub struct ToolHints {
    pub description: String,
    pub hidden: bool,
    pub read_only: bool,
    pub destructive: Option<bool>,
    pub idempotent: bool,
    pub open_world: Option<bool>,
}

/// Everything that the contract says of one method.
#[derive(Debug)]
pub struct MethodInfo {
    /// Position in the method table.
    pub index: usize,
    /// Its full name: `<package>.<Service>.<Method>`.
    pub full_name: String,
    /// Path over gRPC: `/<package>.<Service>/<Method>`.
    pub grpc_path: String,
    pub input: MessageDescriptor,
    pub output: MessageDescriptor,
    /// HTTP bindings; none for the contract's known gaps.
    pub bindings: Vec<HttpBinding>,
    pub auth: Auth,
    /// Dotted path of the request field that names the scope.
    pub scope_field: Option<String>,
    /// The event of a successful call.
    pub event: Option<EventRule>,
    /// Tool hints, where the method has any.
    pub tool: Option<ToolHints>,
    pub version: ApiVersion,
    /// Product domain, such as `iam`: also the domain of its errors.
    pub domain: String,
    /// Whether the response is a stream.
    pub server_streaming: bool,
    /// Only the operator may call.
    pub operator_only: bool,
    /// Request field that must equal the caller's own subject.
    pub own_subject_field: Option<String>,
    /// Whether a caller needs no capability where the scope is the caller's own identity.
    pub own_identity_allowed: bool,
    /// Request field that names whose access the method is about: no capability is needed where it is empty or the
    /// caller's own identity.
    pub own_access_field: Option<String>,
    /// Largest request in bytes, if the method has its own limit.
    pub max_request_bytes: Option<u64>,
    /// Whether the method works in an organization that has not accepted the operator's terms.
    pub terms_exempt: bool,
    /// Whether a rule says that the method works while the disk is full: see [`MethodInfo::frees_storage`].
    pub works_on_full_disk: bool,
    /// Whether the stream of responses ends by itself.
    pub finite_stream: bool,
    /// Whether a preview may run the method: it changes rows of the database alone, and returns no secret.
    pub previewable: bool,
}

impl MethodInfo {
    /// Whether the method works while the disk is full, because it removes or revokes something.
    pub fn frees_storage(&self) -> bool {
        self.works_on_full_disk || self.bindings.first().is_some_and(|binding| binding.verb == Verb::Delete)
    }

    /// The scope field, if the method is authorized at the scope that the request names.
    pub fn authorized_field(&self) -> Option<&str> {
        let is_scoped = matches!(self.auth, Auth::Capabilities { unscoped: false, .. });
        self.scope_field.as_deref().filter(|_| is_scoped)
    }

    /// Whether the scope field takes the name of a verified organization as well as a UIDP.
    pub fn scope_takes_names(&self) -> bool {
        matches!(self.scope_field.as_deref(), Some("parent" | "parent_id" | "group"))
    }

    /// Whether the method changes something.
    pub fn is_mutation(&self) -> bool {
        self.event.is_some() || self.bindings.first().is_some_and(|binding| binding.verb != Verb::Get)
    }

    /// Whether a caller of the method only reads: by its route, or by its tool hints where its request does not fit
    /// into an address. A method without a route may write.
    pub fn only_reads(&self) -> bool {
        !self.bindings.is_empty() && (!self.is_mutation() || self.event.is_none() && self.is_hinted_to_read())
    }

    /// Whether the hints say that a call changes nothing.
    fn is_hinted_to_read(&self) -> bool {
        let Some(hints) = &self.tool else { return false };
        hints.read_only && hints.idempotent && hints.destructive == Some(false)
    }

    /// The request field that holds the resource, where the body is that field, or the whole request of an
    /// update with a mask.
    pub fn resource_field(&self) -> Option<FieldDescriptor> {
        let field = match &self.bindings.first()?.body {
            Body::None => return None,
            Body::Field(field) => self.input.get_field_by_name(field)?,
            Body::Whole => {
                let mask = self.input.get_field_by_name("update_mask")?;
                self.input.fields().find(|field| *field != mask)?
            }
        };
        (field.kind().as_message().is_some() && !field.is_list()).then_some(field)
    }

    /// The event that the wire contract gives the method.
    pub fn wire_event(&self) -> Option<&EventRule> {
        self.event.as_ref().filter(|event| !event.is_server_event)
    }

    /// `<Service>.<Method>`, as messages name it.
    pub fn short_name(&self) -> &str {
        let mut dots = self.full_name.rmatch_indices('.');
        dots.next();
        dots.next().map_or(&self.full_name, |(at, _)| &self.full_name[at + 1..])
    }
}

/// The options that methods carry, looked up once.
pub(crate) struct MethodOptions {
    pub(crate) http: prost_reflect::ExtensionDescriptor,
    pub(crate) iam: prost_reflect::ExtensionDescriptor,
    pub(crate) iam_scope: prost_reflect::ExtensionDescriptor,
    pub(crate) events: prost_reflect::ExtensionDescriptor,
    pub(crate) mcp: prost_reflect::ExtensionDescriptor,
}

impl MethodOptions {
    pub(crate) fn load(pool: &prost_reflect::DescriptorPool) -> MethodOptions {
        MethodOptions {
            http: options::extension(pool, "google.api.http"),
            iam: options::extension(pool, "chainguard.annotations.iam"),
            iam_scope: options::extension(pool, "chainguard.annotations.iam_scope"),
            events: options::extension(pool, "chainguard.annotations.events"),
            mcp: options::extension(pool, "chainguard.annotations.mcp"),
        }
    }

    pub(crate) fn method(&self, index: usize, method: &MethodDescriptor, capabilities: &Capabilities) -> MethodInfo {
        let method_options = method.options();
        let service = method.parent_service();
        let package = service.package_name();
        MethodInfo {
            index,
            full_name: method.full_name().into(),
            grpc_path: format!("/{}/{}", service.full_name(), method.name()),
            input: method.input(),
            output: method.output(),
            bindings: self.bindings(&method_options),
            auth: self.auth(&method_options, capabilities),
            scope_field: self.scope_field(&method.input()),
            event: self.event(&method_options),
            tool: self.tool(&method_options),
            version: version(package),
            domain: domain(package).into(),
            server_streaming: method.is_server_streaming(),
            // Set afterwards from the rules in bowline.contract.v1; see contract.rs.
            operator_only: false,
            own_subject_field: None,
            own_identity_allowed: false,
            own_access_field: None,
            max_request_bytes: None,
            terms_exempt: false,
            works_on_full_disk: false,
            finite_stream: false,
            previewable: false,
        }
    }

    fn bindings(&self, method_options: &DynamicMessage) -> Vec<HttpBinding> {
        let Some(Value::Message(rule)) = options::get(method_options, &self.http) else {
            return Vec::new();
        };
        let mut bindings = vec![binding(&rule)];
        let further = options::field(&rule, "additional_bindings");
        for rule in further.as_ref().and_then(Value::as_list).unwrap_or(&[]) {
            if let Value::Message(rule) = rule {
                bindings.push(binding(rule));
            }
        }
        bindings
    }

    fn auth(&self, method_options: &DynamicMessage, capabilities: &Capabilities) -> Auth {
        let Some(Value::Message(iam)) = options::get(method_options, &self.iam) else {
            return Auth::Own;
        };
        if options::field(&iam, "disabled").is_some() {
            return Auth::Public;
        }
        let Some(Value::Message(rules)) = options::field(&iam, "enabled") else {
            return Auth::Own;
        };
        let numbers = options::enum_numbers(&rules, "capabilities");
        Auth::Capabilities {
            needed: numbers
                .into_iter()
                .map(|n| capabilities.by_number(n).unwrap_or_else(|| panic!("capability {n} is unknown")).bit)
                .collect(),
            unscoped: options::flag(&rules, "unscoped"),
        }
    }

    /// The path to the first field marked `iam_scope`; a marked message field leads to the marked field inside it.
    fn scope_field(&self, message: &MessageDescriptor) -> Option<String> {
        let marked = |field: &FieldDescriptor| {
            options::get(&field.options(), &self.iam_scope).and_then(|flag| flag.as_bool()).unwrap_or(false)
        };
        let field = message.fields().find(marked)?;
        match field.kind() {
            Kind::Message(inner) => Some(format!("{}.{}", field.name(), self.scope_field(&inner)?)),
            _ => Some(field.name().into()),
        }
    }

    fn event(&self, method_options: &DynamicMessage) -> Option<EventRule> {
        let Some(Value::Message(event)) = options::get(method_options, &self.events) else {
            return None;
        };
        Some(EventRule {
            event_type: options::text(&event, "type"),
            extensions: options::texts(&event, "extensions"),
            customer: options::field(&event, "audience").and_then(|v| v.as_enum_number()) == Some(AUDIENCE_CUSTOMER),
            is_server_event: false,
        })
    }

    fn tool(&self, method_options: &DynamicMessage) -> Option<ToolHints> {
        let Some(Value::Message(hints)) = options::get(method_options, &self.mcp) else {
            return None;
        };
        Some(ToolHints {
            description: options::text(&hints, "description"),
            hidden: options::flag(&hints, "hidden"),
            read_only: options::flag(&hints, "read_only"),
            destructive: options::field(&hints, "destructive").and_then(|v| v.as_bool()),
            idempotent: options::flag(&hints, "idempotent"),
            open_world: options::field(&hints, "open_world").and_then(|v| v.as_bool()),
        })
    }
}

fn binding(rule: &DynamicMessage) -> HttpBinding {
    let verbs = [
        ("get", Verb::Get),
        ("put", Verb::Put),
        ("post", Verb::Post),
        ("delete", Verb::Delete),
        ("patch", Verb::Patch),
    ];
    let (verb, path) = verbs
        .into_iter()
        .find_map(|(name, verb)| {
            let field = rule.descriptor().get_field_by_name(name)?;
            rule.has_field(&field).then(|| (verb, options::text(rule, name)))
        })
        .expect("a binding has one of the five verbs");
    let body = match options::text(rule, "body") {
        text if text.is_empty() => Body::None,
        text if text == "*" => Body::Whole,
        text => Body::Field(text),
    };
    let template = Template::parse(&path).unwrap_or_else(|reason| panic!("template {path}: {reason}"));
    HttpBinding { verb, template, body }
}

/// Packages of this server speak as in v2.
fn version(package: &str) -> ApiVersion {
    let is_second = package.rsplit('.').next() == Some("v2") || package.starts_with("bowline.");
    if is_second { ApiVersion::V2 } else { ApiVersion::V1 }
}

/// `chainguard.platform.iam.v2` and `chainguard.platform.iam` both are `iam`.
fn domain(package: &str) -> &str {
    let mut parts = package.split('.');
    if package.starts_with("chainguard.platform.") {
        parts.nth(2).unwrap_or(package)
    } else {
        parts.nth(1).unwrap_or(package)
    }
}
