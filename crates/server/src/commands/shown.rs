//! Forms of an answer: tables for people, JSON for programs.

use clap::{Args, ValueEnum};
use serde_json::Value;

/// `-o table|json`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
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
    /// The answer in the form that was asked for.
    pub(crate) fn of(self, table: &Table, json: impl FnOnce() -> Value) -> String {
        match self.output {
            Form::Table => table.to_string(),
            Form::Json => format!("{:#}\n", json()),
        }
    }

    /// A list in the form that was asked for; in JSON an object per line, named by the table's head.
    pub(crate) fn list(self, table: &Table) -> String {
        self.of(table, || table.objects())
    }
}

/// Lines for people.
pub(crate) struct Table {
    head: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with only its head, in lower case.
    pub(crate) fn new(head: &'static [&'static str]) -> Table {
        Table { head, rows: Vec::new() }
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = String>) {
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
        // A cell is one line, and tells the terminal nothing else.
        let plain = |cell: &String| cell.replace(|c: char| c.is_control(), " ");
        writeln!(out, "{}", self.head.join("\t").to_uppercase())?;
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
