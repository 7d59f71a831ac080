//! Forms of output: tables for people, documents for programs.

use std::marker::PhantomData;
use std::str::FromStr;

use bowline_contract::Contract;
use bowline_formats::yaml;
use bowline_transcode::{JsonOptions, MessageId, Tables};
use clap::Args;
use prost::{Message, Name};
use prost_types::Timestamp;
use serde_json::Value;

use crate::TerminalError;
use crate::json_path::JsonPath;
use crate::listing::Listing;
use crate::nearest::suggestion;
use crate::table::Table;

/// `-o table|wide|json|yaml|csv|name|jsonpath=TEMPLATE`.
#[derive(Args, Clone, Debug)]
pub struct Output {
    /// Form of the output: table, wide, json, yaml, csv, name, jsonpath=TEMPLATE
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Form,
}

/// Form of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines with a head: aligned on a terminal, cells between tabs elsewhere
    Table,
    /// The same with all columns
    Wide,
    /// A JSON document, as the API writes it
    Json,
    /// The same document as YAML
    Yaml,
    /// Comma-separated values with a head
    Csv,
    /// UIDPs, or names of resources without a UIDP, one per line
    Name,
    /// Values of the JSON document
    JsonPath(JsonPath),
}

const FORMS: [&str; 7] = ["table", "wide", "json", "yaml", "csv", "name", "jsonpath="];

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Form, String> {
        if let Some(template) = text.strip_prefix("jsonpath=") {
            return template.parse().map(Form::JsonPath);
        }
        Ok(match text {
            "table" => Form::Table,
            "wide" => Form::Wide,
            "json" => Form::Json,
            "yaml" => Form::Yaml,
            "csv" => Form::Csv,
            "name" => Form::Name,
            other => return Err(format!("there is no form {other:?}{}", suggestion(other, FORMS))),
        })
    }
}

impl Form {
    /// Whether the form has a table's columns, and not the document.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self, Form::Table | Form::Wide | Form::Csv)
    }

    /// A document in this form.
    ///
    /// # Errors
    /// The template names what the document does not have.
    pub fn document(&self, value: &Value) -> Result<String, TerminalError> {
        Ok(match self {
            Form::Yaml => yaml::render(value),
            Form::Name => names(value),
            Form::JsonPath(template) => template.render(value).map_err(TerminalError::Absent)?,
            Form::Table | Form::Wide | Form::Csv | Form::Json => format!("{value:#}\n"),
        })
    }

    /// A table in this form, or the document that it shows.
    ///
    /// # Errors
    /// The template names what the document does not have.
    pub fn render(
        &self,
        table: &Table,
        document: impl FnOnce() -> Result<Value, TerminalError>,
    ) -> Result<String, TerminalError> {
        match self {
            Form::Table | Form::Wide => Ok(table.text()),
            Form::Csv => Ok(table.csv(true)),
            Form::Name | Form::Json | Form::Yaml | Form::JsonPath(_) => self.document(&document()?),
        }
    }
}

/// What names each object of a document: its UIDP, else its name.
fn names(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(names).collect(),
        object => {
            let name = ["uid", "id", "uidp", "name"].iter().find_map(|member| object.get(member)?.as_str());
            name.map(|name| format!("{name}\n")).unwrap_or_default()
        }
    }
}

impl Output {
    /// The form that was chosen.
    pub fn form(&self) -> &Form {
        &self.output
    }

    /// A list of messages in the chosen form, to be printed page by page.
    ///
    /// # Errors
    /// A defect: the messages are not in the contract.
    pub fn pages<M: Message + Name>(&self, head: &[&'static str]) -> Result<Pages<'_, M>, TerminalError> {
        let writer = if self.output.is_table() { None } else { Some(Writer::new::<M>()?) };
        Ok(Pages { listing: Listing::new(&self.output, head), writer, messages: PhantomData })
    }

    /// A list in the chosen form; as a document an object per line, named by the table's head.
    ///
    /// # Errors
    /// The template names what the document does not have.
    pub fn list(&self, table: &Table) -> Result<String, TerminalError> {
        match self.output {
            Form::Name => Ok(table.names()),
            _ => self.output.render(table, || Ok(table.objects())),
        }
    }

    /// A message in the chosen form: the table, or the message as the API writes it.
    ///
    /// # Errors
    /// A defect: the message is not in the contract. The template names what the message does not have.
    pub fn message<M: Message + Name>(&self, table: &Table, message: &M) -> Result<String, TerminalError> {
        self.output.render(table, || Writer::new::<M>()?.value(message))
    }

    /// Several messages in the chosen form.
    ///
    /// # Errors
    /// A defect: the messages are not in the contract. The template names what the messages do not have.
    pub fn messages<M: Message + Name>(&self, table: &Table, messages: &[M]) -> Result<String, TerminalError> {
        self.output.render(table, || {
            let writer = Writer::new::<M>()?;
            messages.iter().map(|message| writer.value(message)).collect()
        })
    }
}

/// A list of messages that is printed while its pages come.
pub struct Pages<'o, M> {
    listing: Listing<'o>,
    /// Absent for tables.
    writer: Option<Writer>,
    messages: PhantomData<fn(&M)>,
}

impl<M: Message + Name> Pages<'_, M> {
    /// Prints a page: the messages, and the cells of each.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn page(&mut self, messages: &[M], cells: impl Fn(&M) -> Vec<String>) -> Result<(), TerminalError> {
        match &self.writer {
            None => self.listing.print_rows(messages.iter().map(cells)),
            Some(writer) => {
                let elements = messages.iter().map(|message| writer.value(message)).collect::<Result<_, _>>()?;
                self.listing.print_elements(elements)
            }
        }
    }

    /// Prints what ends the list.
    ///
    /// # Errors
    /// Standard output cannot be written, or the template names what no element has.
    pub fn finish(self) -> Result<(), TerminalError> {
        self.listing.finish()
    }
}

/// Writes messages of one type as JSON.
struct Writer {
    tables: Tables,
    id: MessageId,
}

impl Writer {
    fn new<M: Name>() -> Result<Writer, TerminalError> {
        let tables = Tables::new(Contract::load().pool());
        let unknown = || TerminalError::Defect(format!("{} is no message of the contract", M::full_name()));
        let id = tables.message(&M::full_name()).ok_or_else(unknown)?;
        Ok(Writer { tables, id })
    }

    fn value(&self, message: &impl Message) -> Result<Value, TerminalError> {
        let options = JsonOptions { proto_names: false, emit_defaults: true };
        let mut json = Vec::new();
        let written = self.tables.to_json(self.id, &message.encode_to_vec(), &options, &mut json);
        written.map_err(|error| TerminalError::Defect(error.to_string()))?;
        serde_json::from_slice(&json).map_err(|error| TerminalError::Defect(error.to_string()))
    }
}

/// A message as the API writes it, for a document that has several.
///
/// # Errors
/// A defect: the message is not in the contract.
pub fn json<M: Message + Name>(message: &M) -> Result<Value, TerminalError> {
    Writer::new::<M>()?.value(message)
}

/// A time for people; empty where there is none.
pub fn time(time: Option<Timestamp>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn forms_have_names_and_mistakes_the_nearest() {
        for name in ["table", "wide", "json", "yaml", "csv", "name", "jsonpath={.a}"] {
            assert!(name.parse::<Form>().is_ok(), "{name}");
        }
        assert_eq!("jsn".parse::<Form>().unwrap_err(), "there is no form \"jsn\"; did you mean json?");
        assert!("jsonpath={".parse::<Form>().is_err());
    }

    #[test]
    fn names_are_uidps_or_names() {
        let list = json!([{"uid": "u", "name": "n"}, {"name": "n"}, {"id": "i"}, {}]);
        assert_eq!(Form::Name.document(&list).unwrap(), "u\nn\ni\n");
    }
}
