//! Output formats: tables for people, JSON for programs.

use bowline_contract::Contract;
use bowline_transcode::{JsonOptions, MessageId, Tables};
use clap::{Args, ValueEnum};
use prost::{Message, Name};
use prost_types::Timestamp;
use serde_json::Value;

use crate::TerminalError;

/// `-o table|json`.
#[derive(Args, Clone, Copy, Debug)]
pub struct Output {
    /// Form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Form,
}

/// Form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Lines with a head, cells between tabs
    Table,
    /// A JSON document
    Json,
}

impl Output {
    /// Renders a list: the table, or a JSON array of an object per row, with the head's names.
    pub fn list(self, table: &Table) -> String {
        match self.output {
            Form::Table => table.to_string(),
            Form::Json => format!("{:#}\n", table.objects()),
        }
    }

    /// Renders a message: the table, or the message as JSON, as the API writes it.
    ///
    /// # Errors
    /// A defect: the contract does not have the message.
    pub fn message<M: Message + Name>(self, table: &Table, message: &M) -> Result<String, TerminalError> {
        match self.output {
            Form::Table => Ok(table.to_string()),
            Form::Json => Ok(format!("{:#}\n", Writer::new::<M>()?.value(message)?)),
        }
    }

    /// Renders several messages: the table, or a JSON array.
    ///
    /// # Errors
    /// A defect: the contract does not have the message.
    pub fn messages<M: Message + Name>(self, table: &Table, messages: &[M]) -> Result<String, TerminalError> {
        if self.output == Form::Table {
            return Ok(table.to_string());
        }
        let writer = Writer::new::<M>()?;
        let values: Result<Vec<Value>, TerminalError> = messages.iter().map(|message| writer.value(message)).collect();
        Ok(format!("{:#}\n", Value::from(values?)))
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

/// A time for people; empty where there is none.
pub fn time(time: Option<Timestamp>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

/// A table for people.
pub struct Table {
    head: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with this head, in lower case.
    pub fn new(head: &'static [&'static str]) -> Table {
        Table { head, rows: Vec::new() }
    }

    /// An empty table without a head.
    pub fn without_head() -> Table {
        Table::new(&[])
    }

    /// Adds a line.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    fn objects(&self) -> Value {
        let object = |row: &Vec<String>| -> Value {
            self.head.iter().zip(row).map(|(name, cell)| (name.replace(' ', "_"), cell.as_str())).collect()
        };
        self.rows.iter().map(object).collect()
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A cell is one line without control characters, so that it cannot control the terminal.
        let plain = |cell: &String| cell.replace(|c: char| c.is_control(), " ");
        if !self.head.is_empty() {
            writeln!(out, "{}", self.head.join("\t").to_uppercase())?;
        }
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(plain).collect();
            writeln!(out, "{}", cells.join("\t"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line() {
        let mut table = Table::new(&["name", "last seen"]);
        table.push(["a\tb\u{1b}[2J\n".to_owned(), "x".into()]);
        assert_eq!(table.to_string(), "NAME\tLAST SEEN\na b [2J \tx\n");
        assert_eq!(table.objects(), serde_json::json!([{"name": "a\tb\u{1b}[2J\n", "last_seen": "x"}]));
    }
}
