//! Prints the contract in the format of the published facts: one text per package, and the capabilities.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use prost_reflect::{
    EnumDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor, MethodDescriptor, Value,
};

use crate::contract::Contract;
use crate::method::{Auth, Body, MethodInfo, MethodOptions};
use crate::options;

/// File name and text of every package, in order of the names.
pub fn print_packages(contract: &Contract) -> BTreeMap<String, String> {
    let mut packages: BTreeMap<String, Vec<FileDescriptor>> = BTreeMap::new();
    for file in contract.pool().files() {
        if let Some(name) = file_name(file.package_name()) {
            packages.entry(name).or_default().push(file);
        }
    }
    let printer = Printer { contract, options: MethodOptions::load(contract.pool()) };
    packages
        .into_iter()
        .map(|(name, mut files)| {
            files.sort_by_key(|file| base_name(file).to_owned());
            let texts: Vec<String> = files.iter().map(|file| printer.file(file)).collect();
            (name, texts.join("\n"))
        })
        .collect()
}

/// The capabilities as tab-separated values.
pub fn print_capabilities(contract: &Contract) -> String {
    let mut text = String::from("number\tname\tdisplay\tbit\tinternal_only\tdeprecated\n");
    for facts in contract.capabilities().iter() {
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{}",
            facts.number,
            facts.enum_name,
            facts.name,
            facts.bit,
            u8::from(facts.internal_only),
            u8::from(facts.deprecated)
        );
    }
    text
}

/// `chainguard.platform.iam` is `iam.v1.txt`; the packages of others and the capabilities have no text.
fn file_name(package: &str) -> Option<String> {
    if package.starts_with("google.") || package == "chainguard.capabilities" {
        return None;
    }
    let Some(platform) = package.strip_prefix("chainguard.platform.") else {
        return Some(format!("{}.txt", package.strip_prefix("chainguard.").unwrap_or(package)));
    };
    Some(if platform == "common" || platform.contains('.') {
        format!("{platform}.txt")
    } else {
        format!("{platform}.v1.txt")
    })
}

fn base_name(file: &FileDescriptor) -> &str {
    file.name().rsplit('/').next().unwrap_or_default()
}

struct Printer<'c> {
    contract: &'c Contract,
    options: MethodOptions,
}

impl Printer<'_> {
    fn file(&self, file: &FileDescriptor) -> String {
        let mut text = format!("### file {}\npackage {}\n", base_name(file), file.package_name());
        for service in file.services() {
            let _ = writeln!(text, "service {}", service.name());
            for method in service.methods() {
                self.method(&method, &mut text);
            }
        }
        for message in file.messages() {
            self.message(&message, &mut text);
        }
        for descriptor in file.enums() {
            enumeration(&descriptor, &mut text);
        }
        text
    }

    fn method(&self, method: &MethodDescriptor, text: &mut String) {
        let package = method.parent_service().package_name().to_owned();
        let info = self.contract.by_full_name(method.full_name()).expect("every method is in the table");
        let _ = writeln!(
            text,
            "  rpc {}({}) -> {}{}",
            method.name(),
            own(method.input().full_name(), &package),
            own(method.output().full_name(), &package),
            if method.is_server_streaming() { " (server streaming)" } else { "" }
        );
        for binding in &info.bindings {
            let body = match &binding.body {
                Body::None => String::new(),
                Body::Whole => "  body=*".into(),
                Body::Field(field) => format!("  body={field}"),
            };
            let _ = writeln!(text, "    http   {} {}{body}", binding.verb.name(), binding.template);
        }
        self.auth(method, info, text);
        if let Some(event) = info.wire_event() {
            let audience = if event.customer { "CUSTOMER" } else { "INTERNAL" };
            let _ = writeln!(
                text,
                "    event  {}  ext={}  audience={audience}",
                event.event_type,
                event.extensions.join(",")
            );
        }
        if let Some(hints) = tool_words(info) {
            let _ = writeln!(text, "    mcp    {hints}");
        }
    }

    fn auth(&self, method: &MethodDescriptor, info: &MethodInfo, text: &mut String) {
        let Auth::Capabilities { unscoped, .. } = info.auth else {
            if matches!(info.auth, Auth::Public) {
                text.push_str("    auth   none\n");
            }
            return;
        };
        let mut names = Vec::new();
        if let Some(Value::Message(iam)) = options::get(&method.options(), &self.options.iam)
            && let Some(Value::Message(rules)) = options::field(&iam, "enabled")
        {
            for number in options::enum_numbers(&rules, "capabilities") {
                names.extend(self.contract.capabilities().by_number(number).map(|facts| facts.name.clone()));
            }
        }
        let list = if names.is_empty() { "(authenticated)".into() } else { names.join("+") };
        let _ = writeln!(text, "    auth   {list}  {}", if unscoped { "unscoped" } else { "scoped" });
    }

    fn message(&self, message: &MessageDescriptor, text: &mut String) {
        let package = message.package_name();
        let reserved: Vec<String> = message
            .reserved_ranges()
            .map(|range| {
                if range.end - range.start == 1 {
                    range.start.to_string()
                } else {
                    format!("{}-{}", range.start, range.end - 1)
                }
            })
            .collect();
        let suffix = if reserved.is_empty() { String::new() } else { format!("   reserved {}", reserved.join(",")) };
        let _ = writeln!(text, "message {}{suffix}", own(message.full_name(), package));
        let declared = &message.descriptor_proto().field;
        for proto in declared {
            let field = message.get_field_by_name(proto.name()).expect("a declared field has a descriptor");
            self.field(&field, package, text);
        }
        for descriptor in message.child_enums() {
            enumeration(&descriptor, text);
        }
        for child in message.child_messages().filter(|child| !child.is_map_entry()) {
            self.message(&child, text);
        }
    }

    fn field(&self, field: &FieldDescriptor, package: &str, text: &mut String) {
        let optional = field.field_descriptor_proto().proto3_optional();
        let label = if field.is_list() {
            "repeated "
        } else if optional {
            "optional "
        } else {
            ""
        };
        let flags = self.flags(field, optional);
        let suffix = if flags.is_empty() { String::new() } else { format!("   [{}]", flags.join(", ")) };
        let _ =
            writeln!(text, "  {:<4}{:<32}{label}{}{suffix}", field.number(), field.name(), type_name(field, package));
    }

    fn flags(&self, field: &FieldDescriptor, optional: bool) -> Vec<String> {
        let behavior = options::extension(self.contract.pool(), "google.api.field_behavior");
        let mut flags = Vec::new();
        if let Some(Value::List(list)) = options::get(&field.options(), &behavior) {
            let descriptor =
                self.contract.pool().get_enum_by_name("google.api.FieldBehavior").expect("the enum is in the set");
            for number in list.iter().filter_map(Value::as_enum_number) {
                let name = descriptor.get_value(number).map(|value| value.name().to_lowercase()).unwrap_or_default();
                if name != "optional" {
                    flags.push(name);
                }
            }
        }
        if options::get(&field.options(), &self.options.iam_scope).and_then(|flag| flag.as_bool()) == Some(true) {
            flags.push("iam_scope".into());
        }
        if field.field_descriptor_proto().options.as_ref().is_some_and(prost_types::FieldOptions::deprecated) {
            flags.push("deprecated".into());
        }
        if let Some(oneof) = field.containing_oneof().filter(|_| !optional) {
            flags.push(format!("oneof={}", oneof.name()));
        }
        if field.json_name() != lower_camel(field.name()) {
            flags.push(format!("json_name={}", field.json_name()));
        }
        flags
    }
}

fn tool_words(info: &MethodInfo) -> Option<String> {
    let hints = info.tool.as_ref()?;
    let mut words = Vec::new();
    if hints.hidden {
        words.push("hidden");
    }
    if hints.read_only {
        words.push("read_only");
    }
    words.extend(hints.destructive.map(|yes| if yes { "destructive" } else { "non_destructive" }));
    if hints.idempotent {
        words.push("idempotent");
    }
    words.extend(hints.open_world.map(|yes| if yes { "open_world" } else { "closed_world" }));
    Some(words.join(" "))
}

fn enumeration(descriptor: &EnumDescriptor, text: &mut String) {
    let _ = writeln!(text, "enum {}", own(descriptor.full_name(), descriptor.package_name()));
    for proto in &descriptor.enum_descriptor_proto().value {
        let deprecated = if proto.options.as_ref().is_some_and(prost_types::EnumValueOptions::deprecated) {
            "   [deprecated]"
        } else {
            ""
        };
        let _ = writeln!(text, "  {:<4}{}{deprecated}", proto.number(), proto.name());
    }
}

fn type_name(field: &FieldDescriptor, package: &str) -> String {
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let part = |field: FieldDescriptor| type_name(&field, package);
            format!("map<{},{}>", part(entry.map_entry_key_field()), part(entry.map_entry_value_field()))
        }
        Kind::Message(message) => own(message.full_name(), package).into(),
        Kind::Enum(descriptor) => own(descriptor.full_name(), package).into(),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
}

/// The name without its own package.
fn own<'n>(full_name: &'n str, package: &str) -> &'n str {
    full_name.strip_prefix(package).and_then(|rest| rest.strip_prefix('.')).unwrap_or(full_name)
}

fn lower_camel(name: &str) -> String {
    let mut camel = String::new();
    let mut upper = false;
    for character in name.chars() {
        if character == '_' {
            upper = true;
        } else if upper {
            camel.extend(character.to_uppercase());
            upper = false;
        } else {
            camel.push(character);
        }
    }
    camel
}
