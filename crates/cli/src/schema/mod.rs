//! `bowline schema COMMAND`: the JSON Schema of what a command prints with `-o json`, derived from the contract.

mod table;

use std::path::{Path, PathBuf};

use bowline_client::ClientError;
use bowline_contract::{Contract, Docs, MethodInfo};
use bowline_terminal::{Table, suggestion};
use clap::Args;
use prost_reflect::MessageDescriptor;
use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::{dynamic, organization, print, resources};

const EXAMPLE: &str = "Example:\n  bowline schema registry repos get";

/// `bowline schema`.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct SchemaCommand {
    /// The command, without options, such as: iam groups list [default: the list of commands]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Directory to write the schemas of all commands to; made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// What a command prints.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// The response of a method.
    Response(&'static str),
    /// An array of the elements that a method lists.
    List(&'static str),
    /// Each message that a method streams, as a document of its own in a line.
    Lines(&'static str),
    /// An array of objects with these texts.
    Rows(&'static [&'static str]),
    /// One object with these members.
    Object(&'static [&'static str]),
    /// The plan of files: what differs from the server.
    Plan,
}

/// Runs `bowline schema`.
///
/// # Errors
/// The command is unknown or prints no document, or a file cannot be written.
pub fn run(command: &SchemaCommand) -> Result<(), CliError> {
    let contract = Contract::load();
    if let Some(directory) = &command.out {
        return write_all(&contract, directory);
    }
    let name = command.command.join(" ");
    let name = name.trim_start_matches("bowline ");
    if name.is_empty() {
        let mut list = Table::new(&["command"]);
        all().for_each(|(command, _)| list.push([command]));
        return print(&list.text());
    }
    let shape = all().find(|(command, _)| command == name).map(|(_, shape)| shape);
    let unknown = || {
        let names: Vec<String> = all().map(|(command, _)| command).collect();
        let near = suggestion(name, names.iter().map(String::as_str));
        ClientError::Usage(format!("no command {name:?} prints a document{near}; `bowline schema` lists those that do"))
    };
    let shape = shape.ok_or_else(unknown)?;
    print(&format!("{:#}\n", document(&contract, &Docs::load(), name, shape)?))
}

/// All commands that print documents, with what they print.
fn all() -> impl Iterator<Item = (String, Shape)> {
    let handwritten = table::SHAPES.iter().map(|(command, shape)| ((*command).to_owned(), *shape));
    handwritten.chain(resources::shapes())
}

fn write_all(contract: &Contract, directory: &Path) -> Result<(), CliError> {
    let failed = |path: &Path, source| CliError::File { path: path.into(), source };
    std::fs::create_dir_all(directory).map_err(|source| failed(directory, source))?;
    let docs = Docs::load();
    for (command, shape) in all() {
        let path = directory.join(format!("{}.json", command.replace(' ', "-")));
        let text = format!("{:#}\n", document(contract, &docs, &command, shape)?);
        std::fs::write(&path, text).map_err(|source| failed(&path, source))?;
    }
    Ok(())
}

fn document(contract: &Contract, docs: &Docs, command: &str, shape: Shape) -> Result<Value, ClientError> {
    let response = |message: &MessageDescriptor| bowline_schemas::response(contract, docs, message);
    let mut schema = match shape {
        Shape::Response(name) | Shape::Lines(name) => response(&dynamic::method(contract, name)?.output),
        Shape::List(name) => array(response(&element(dynamic::method(contract, name)?)?)),
        Shape::Rows(heads) => array(object(heads, &json!({ "type": "string" }))),
        Shape::Object(members) => object(members, &json!({})),
        Shape::Plan => organization::plan_schema(),
    };
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = format!("bowline {command} -o json").into();
    if matches!(shape, Shape::Lines(_)) {
        schema["$comment"] = "Each line is such a document.".into();
    }
    Ok(schema)
}

/// An array of what a schema describes; definitions stay at the root, which references name.
fn array(mut items: Value) -> Value {
    let definitions = items.as_object_mut().and_then(|members| members.remove("$defs"));
    let mut schema = json!({ "type": "array", "items": items });
    if let Some(definitions) = definitions {
        schema["$defs"] = definitions;
    }
    schema
}

fn object(members: &[&str], value: &Value) -> Value {
    let properties: Map<String, Value> = members.iter().map(|name| ((*name).to_owned(), value.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": members })
}

/// The message of a list's elements.
fn element(method: &MethodInfo) -> Result<MessageDescriptor, ClientError> {
    let message = dynamic::list_field(method).and_then(|field| field.kind().as_message().cloned());
    message.ok_or_else(|| ClientError::Usage(format!("{} lists no messages", method.full_name)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_has_one_schema() {
        let (contract, docs) = (Contract::load(), Docs::load());
        let mut names = BTreeSet::new();
        for (command, shape) in all() {
            let schema =
                document(&contract, &docs, &command, shape).unwrap_or_else(|error| panic!("{command}: {error}"));
            assert!(schema.get("type").is_some() || schema.get("$ref").is_some(), "{command}: {schema}");
            assert!(names.insert(command.clone()), "{command} is there twice");
        }
        assert!(names.contains("iam groups list") && names.contains("registry repos get"), "{names:?}");
    }

    #[test]
    fn definitions_stay_at_the_root() {
        let (contract, docs) = (Contract::load(), Docs::load());
        let schema = document(&contract, &docs, "x", Shape::List("GroupsService.ListGroups")).unwrap();
        assert_eq!(schema["items"]["$ref"], "#/$defs/chainguard.platform.iam.v2.Group");
        assert!(schema["$defs"]["chainguard.platform.iam.v2.Group"]["properties"].get("uid").is_some());
    }
}
