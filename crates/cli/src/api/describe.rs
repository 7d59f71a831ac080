use bowline_contract::{Auth, Body, Contract, Docs, FieldFacts, MethodInfo};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

/// Deepest fields that are shown; what is deeper has a description of its own in the API's documents.
const DEPTH: usize = 4;

/// What a method does, needs, takes and returns.
pub(super) fn method(contract: &Contract, method: &MethodInfo) -> String {
    let docs = Docs::load();
    let mut text = format!("{}\n", method.full_name);
    let doc = docs.of(&method.full_name);
    if !doc.is_empty() {
        text.push_str(&format!("  {doc}\n"));
    }
    text.push('\n');
    for binding in &method.bindings {
        let body = match &binding.body {
            Body::None => String::new(),
            Body::Whole => " (body: the request)".into(),
            Body::Field(field) => format!(" (body: {field})"),
        };
        text.push_str(&format!("REST      {} {}{body}\n", binding.verb.name(), binding.template));
    }
    text.push_str(&format!("needs     {}\n", needs(contract, method)));
    let stream = if method.server_streaming { "a stream of " } else { "" };
    text.push_str(&format!("returns   {stream}{}\n", method.output.full_name()));
    text.push_str(&format!("\nFields of the request, {}:\n", method.input.full_name()));
    let fields = Fields { contract, docs: &docs };
    let mut lines = Vec::new();
    fields.collect("", &method.input, &mut Vec::new(), &mut lines);
    if lines.is_empty() {
        text.push_str("  none\n");
    }
    let width = lines.iter().map(|line| line.0.chars().count()).max().unwrap_or(0);
    for (name, rest) in lines {
        text.push_str(&format!("  {name:width$}  {rest}\n"));
    }
    text
}

fn needs(contract: &Contract, method: &MethodInfo) -> String {
    match &method.auth {
        Auth::Own => "a token of its own, in the request".into(),
        Auth::Public => "nothing".into(),
        Auth::Capabilities { needed, .. } if method.operator_only && needed.is_empty() => "the operator".into(),
        Auth::Capabilities { needed, .. } if needed.is_empty() => "any token".into(),
        Auth::Capabilities { needed, .. } => {
            let names = contract.capabilities().names(needed).join(", ");
            match method.authorized_field() {
                Some(field) => format!("{names} at {field}"),
                None => format!("{names}; the result is what the caller may see"),
            }
        }
    }
}

struct Fields<'c> {
    contract: &'c Contract,
    docs: &'c Docs,
}

impl Fields<'_> {
    /// Lines of all fields that a request may set, with those of messages below them.
    fn collect(
        &self,
        prefix: &str,
        message: &MessageDescriptor,
        open: &mut Vec<String>,
        lines: &mut Vec<(String, String)>,
    ) {
        open.push(message.full_name().to_owned());
        for field in message.fields() {
            let Some(facts) = self.contract.field_rules().facts(&field) else { continue };
            let name = format!("{prefix}{}", field.name());
            lines.push((name.clone(), self.line(&field, &facts)));
            let Kind::Message(inner) = field.kind() else { continue };
            let is_plain = !field.is_map() && !inner.full_name().starts_with("google.protobuf.");
            if is_plain && open.len() < DEPTH && !open.iter().any(|name| name == inner.full_name()) {
                let list = if field.is_list() { "[]" } else { "" };
                self.collect(&format!("{name}{list}."), &inner, open, lines);
            }
        }
        open.pop();
    }

    fn line(&self, field: &FieldDescriptor, facts: &FieldFacts) -> String {
        let mut parts = vec![kind(field)];
        if facts.required {
            parts.push("required".into());
        }
        let text = &facts.text;
        match (text.min_characters, text.max_characters) {
            (0, 0) => {}
            (0, most) => parts.push(format!("at most {most} characters")),
            (least, 0) => parts.push(format!("at least {least} characters")),
            (least, most) => parts.push(format!("{least} to {most} characters")),
        }
        if text.uidp {
            parts.push("a UIDP".into());
        }
        if facts.max_elements > 0 {
            parts.push(format!("at most {} elements", facts.max_elements));
        }
        let doc = self.docs.of(field.full_name());
        let rules = parts.join(", ");
        if doc.is_empty() { rules } else { format!("{rules}: {doc}") }
    }
}

fn kind(field: &FieldDescriptor) -> String {
    if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
        let (key, value) = (entry.map_entry_key_field().kind(), entry.map_entry_value_field().kind());
        return format!("map of {key:?} to {value:?}");
    }
    let name = match field.kind() {
        Kind::Message(message) => message.name().to_owned(),
        Kind::Enum(descriptor) => descriptor.name().to_owned(),
        scalar => format!("{scalar:?}"),
    };
    if field.is_list() { format!("list of {name}") } else { name }
}
