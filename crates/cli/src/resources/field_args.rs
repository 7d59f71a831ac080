//! Fields of requests as flags.

use std::path::Path;

use bowline_client::ClientError;
use bowline_contract::{Contract, Docs, MethodInfo};
use bowline_core::rfc3339::{self, Digits};
use bowline_terminal::seconds;
use clap::{Arg, ArgAction, ArgMatches};
use prost_reflect::{FieldDescriptor, Kind as Type, MessageDescriptor};

use super::names;
use super::table::{Does, Kind, Verb};
use crate::dynamic::short_enum_name;
use crate::session::Session;
use crate::{complete, input};

/// Paging, masks and filters of the hierarchy: the commands fill them.
const FILLED: [&str; 6] = ["page_size", "page_token", "skip", "update_mask", "uidp", "parent"];

/// Texts that are read from a file: secrets, which arguments would show to every process, and documents.
const OF_FILES: [&str; 4] = ["client_secret", "issuer_keys", "password", "token"];

/// Largest such file, in bytes.
const FILE_BYTES: u64 = 1 << 20;

/// `--issuer` is the server's own.
const ISSUER: &str = "issuer-url";

/// Longest time from now, in seconds: ten years.
const LONGEST: i64 = 3650 * 86400;

/// A field of a request that a flag fills.
pub(super) struct FieldArg {
    /// Path of the field in the request.
    pub(super) path: String,
    /// Whether the value is the content of a file.
    is_of_file: bool,
    field: FieldDescriptor,
    flag: String,
    help: String,
    is_required: bool,
}

/// Whether what contains a new resource is an identity provider, and not a group.
pub(super) fn parent_is_provider(verb: &Verb) -> bool {
    verb.method.contains("ExternalGroupRoleMapping")
}

/// The flags of a method.
pub(super) fn fields(contract: &Contract, method: &MethodInfo, verb: &Verb) -> Vec<FieldArg> {
    let resource = method.resource_field().map(|field| field.name().to_owned());
    let mut fields = Vec::new();
    let collector = Collector { contract, verb, is_update: matches!(verb.does, Does::Update) };
    collector.collect(&method.input, "", "", resource.as_deref(), &mut fields);
    fields
}

struct Collector<'c> {
    contract: &'c Contract,
    verb: &'c Verb,
    is_update: bool,
}

impl Collector<'_> {
    /// The fields of a message: `path` and `flag` are what comes before their names.
    fn collect(
        &self,
        message: &MessageDescriptor,
        path: &str,
        flag: &str,
        resource: Option<&str>,
        out: &mut Vec<FieldArg>,
    ) {
        for field in message.fields() {
            let name = field.name();
            let full = format!("{path}{name}");
            if full == self.verb.positional || (path.is_empty() && FILLED.contains(&name)) {
                continue;
            }
            // A form of REST alone.
            if matches!(self.verb.does, Does::Export) && name == "format" {
                continue;
            }
            let Some(facts) = self.contract.field_rules().facts(&field) else { continue };
            match field.kind() {
                // The resource's own fields need no word before them.
                Type::Message(inner) if path.is_empty() && resource == Some(name) => {
                    self.collect(&inner, &format!("{full}."), "", None, out);
                }
                Type::Message(inner) if is_structure(&field, &inner) => {
                    let flag = format!("{flag}{}-", name.replace('_', "-"));
                    self.collect(&inner, &format!("{full}."), &flag, None, out);
                }
                // A map of messages, or a document without a form, is for `bowline api --input`.
                Type::Message(inner) if !is_text(&inner) && !is_text_map(&field, &inner) && !is_messages(&field) => {}
                _ => out.push(FieldArg {
                    flag: if full == "issuer" { ISSUER.into() } else { format!("{flag}{}", flag_name(&field)) },
                    help: help(&field),
                    is_of_file: OF_FILES.contains(&name) || is_messages(&field),
                    // What has a default is not required; a part of an optional message neither.
                    is_required: facts.required && !self.is_update && flag.is_empty() && !field.is_list(),
                    path: full,
                    field,
                }),
            }
        }
    }
}

impl FieldArg {
    /// The argument that clap parses.
    pub(super) fn argument(&self) -> Arg {
        let argument = Arg::new(self.id()).long(self.flag.clone()).help(self.help.clone());
        let argument = argument.required(self.is_required);
        let argument = match self.kind().and_then(names::subject) {
            Some(subject) => argument.add(complete::completer(subject)),
            None => argument,
        };
        match self.field.kind() {
            Type::Bool if !self.field.is_list() => {
                argument.value_name("true|false").num_args(0..=1).require_equals(true).default_missing_value("true")
            }
            _ if self.is_of_file => argument.value_name("FILE"),
            _ if self.field.is_map() => argument.value_name("KEY=VALUE").action(ArgAction::Append),
            _ if self.field.is_list() => {
                argument.value_name("VALUE,...").action(ArgAction::Append).value_delimiter(',')
            }
            _ => argument.value_name(self.value_name()),
        }
    }

    fn value_name(&self) -> &'static str {
        match self.field.kind() {
            Type::Message(message) if message.full_name() == "google.protobuf.Duration" => "TIME",
            Type::Message(message) if message.full_name() == "google.protobuf.Timestamp" => "TIME|DATE",
            _ if self.kind().is_some() => "NAME",
            _ => "VALUE",
        }
    }

    /// What the field's UIDPs name, if it has such.
    pub(super) fn kind(&self) -> Option<Kind> {
        if self.field.kind() != Type::String {
            return None;
        }
        match self.field.name() {
            "role_uid" | "role" | "default_role" => Some(Kind::Role),
            "identity_uid" | "identity" | "actor" => Some(Kind::Identity),
            "group_uid" | "group" | "organization" | "within" | "registry_id" => Some(Kind::Group),
            "scope" => Some(Kind::Scope),
            "identity_provider_uid" => Some(Kind::IdentityProvider),
            _ => None,
        }
    }

    /// Id of the argument: no other argument's begins so.
    fn id(&self) -> String {
        format!("request.{}", self.path)
    }

    /// Whether the field holds the name of a method.
    pub(super) fn names_method(&self) -> bool {
        self.field.name() == "method"
    }

    /// The texts that were given; absent if the flag was not.
    ///
    /// # Errors
    /// An invalid time, or a file that cannot be read.
    pub(super) fn given(&self, matches: &ArgMatches) -> Result<Option<Vec<String>>, ClientError> {
        let Some(values) = matches.get_many::<String>(&self.id()) else { return Ok(None) };
        values.map(|text| self.value(text)).collect::<Result<_, _>>().map(Some)
    }

    fn value(&self, text: &str) -> Result<String, ClientError> {
        let refused = |error: bowline_terminal::TerminalError| ClientError::Usage(error.to_string());
        if self.is_of_file {
            let not_text = |_| ClientError::Usage(format!("--{} {text}: must be UTF-8", self.flag));
            let content = String::from_utf8(input::read(Path::new(text), FILE_BYTES)?).map_err(not_text)?;
            return Ok(content.trim_end_matches('\n').to_owned());
        }
        match self.field.kind() {
            Type::Message(message) if message.full_name() == "google.protobuf.Duration" => {
                Ok(format!("{}s", seconds(&self.flag, text, LONGEST).map_err(refused)?))
            }
            // A time, or how long from now.
            Type::Message(message) if message.full_name() == "google.protobuf.Timestamp" && !text.contains('T') => {
                let at = Session::now() + seconds(&self.flag, text, LONGEST).map_err(refused)?;
                Ok(rfc3339::text(at * 1_000_000, Digits::Fewest))
            }
            _ => Ok(text.to_owned()),
        }
    }

    /// Path and text of a map's entry, `KEY=VALUE`.
    ///
    /// # Errors
    /// The text has no `=`.
    pub(super) fn entry(&self, text: &str) -> Result<(String, String), ClientError> {
        if !self.field.is_map() {
            return Ok((self.path.clone(), text.to_owned()));
        }
        let refused = || ClientError::Usage(format!("--{} {text}: looks like KEY=VALUE", self.flag));
        let (key, value) = text.split_once('=').ok_or_else(refused)?;
        Ok((format!("{}.{key}", self.path), value.to_owned()))
    }

    /// Whether an empty value empties the list.
    pub(super) fn is_list(&self) -> bool {
        self.field.is_list()
    }
}

/// A message whose fields are flags of their own.
fn is_structure(field: &FieldDescriptor, message: &MessageDescriptor) -> bool {
    !field.is_list() && !field.is_map() && !is_text(message) && !message.full_name().starts_with("google.protobuf.")
}

fn is_text(message: &MessageDescriptor) -> bool {
    ["google.protobuf.Timestamp", "google.protobuf.Duration"].contains(&message.full_name())
}

/// A list of messages: a JSON array in a file.
fn is_messages(field: &FieldDescriptor) -> bool {
    field.is_list() && field.kind().as_message().is_some_and(|message| !is_text(message))
}

fn is_text_map(field: &FieldDescriptor, entry: &MessageDescriptor) -> bool {
    field.is_map() && !matches!(entry.map_entry_value_field().kind(), Type::Message(_))
}

/// `role_uid` is `--role`, since names are taken too.
fn flag_name(field: &FieldDescriptor) -> String {
    let name = field.name();
    let name = name.strip_suffix("_uid").unwrap_or(name).replace('_', "-");
    match name.as_str() {
        "client-secret" | "issuer-keys" | "password" => format!("{name}-file"),
        // --token-file is that of the caller.
        "token" => "identity-token-file".into(),
        _ if is_messages(field) => format!("{name}-file"),
        _ => name,
    }
}

fn help(field: &FieldDescriptor) -> String {
    thread_local! {
        static DOCS: Docs = Docs::load();
    }
    let text = DOCS.with(|docs| docs.of(field.full_name())).replace(['`'], "");
    let text = text.trim_end_matches('.').to_owned();
    if is_messages(field) {
        return format!("{text}; a JSON array");
    }
    let Type::Enum(values) = field.kind() else { return text };
    if values.full_name() == "chainguard.capabilities.Capability" {
        return format!("{text}, such as groups.list");
    }
    let names: Vec<String> = values.values().skip(1).map(|value| short_enum_name(&values, value.name())).collect();
    format!("{text} [{}]", names.join(", "))
}
