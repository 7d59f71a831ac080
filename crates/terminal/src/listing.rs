//! Long lists: printed page by page, whatever their length.

use serde_json::Value;

use crate::output::Form;
use crate::settings::{stdout_columns, stdout_is_terminal};
use crate::table::Table;
use crate::{TerminalError, print};

/// A list that is printed while its pages come. The first page decides how wide columns are, and whether the
/// terminal is wide enough for them.
pub struct Listing<'f> {
    form: &'f Form,
    head: Vec<&'static str>,
    widths: Vec<usize>,
    /// Whether the terminal is too narrow for columns.
    has_blocks: bool,
    pages: usize,
    elements: usize,
    /// Elements that a template, which sees the whole list, waits for.
    held: Vec<Value>,
}

impl<'f> Listing<'f> {
    /// A list without any element yet.
    pub fn new(form: &'f Form, head: &[&'static str]) -> Listing<'f> {
        Listing {
            form,
            head: head.to_vec(),
            widths: Vec::new(),
            has_blocks: false,
            pages: 0,
            elements: 0,
            held: Vec::new(),
        }
    }

    /// Prints a page: elements, and the cells of each.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn page(&mut self, elements: Vec<Value>, cells: impl Fn(&Value) -> Vec<String>) -> Result<(), TerminalError> {
        if self.form.is_table() {
            return self.print_rows(elements.iter().map(cells));
        }
        self.print_elements(elements)
    }

    /// Prints the lines of a page.
    pub(crate) fn print_rows(&mut self, rows: impl Iterator<Item = Vec<String>>) -> Result<(), TerminalError> {
        self.pages += 1;
        let mut table = Table::new(&self.head);
        rows.for_each(|row| table.push(row));
        print(&self.rows(&table))
    }

    /// Prints the elements of a page as a part of the document.
    pub(crate) fn print_elements(&mut self, elements: Vec<Value>) -> Result<(), TerminalError> {
        match self.form {
            Form::JsonPath(_) => self.held.extend(elements),
            Form::Name => print(&self.form.document(&Value::from(elements))?)?,
            Form::Yaml if !elements.is_empty() => {
                self.elements += elements.len();
                print(&self.form.document(&Value::from(elements))?)?;
            }
            Form::Yaml => {}
            _ => print(&self.array(&elements))?,
        }
        Ok(())
    }

    /// Prints what ends the list.
    ///
    /// # Errors
    /// Standard output cannot be written, or the template names what no element has.
    pub fn finish(self) -> Result<(), TerminalError> {
        match self.form {
            Form::JsonPath(_) => print(&self.form.document(&Value::from(self.held))?),
            Form::Json if self.elements > 0 => print("\n]\n"),
            Form::Json | Form::Yaml if self.elements == 0 => print("[]\n"),
            _ => Ok(()),
        }
    }

    fn rows(&mut self, table: &Table) -> String {
        let is_first = self.pages == 1;
        if *self.form == Form::Csv {
            return table.csv(is_first);
        }
        let is_terminal = stdout_is_terminal();
        if is_first {
            self.has_blocks = table.is_wider_than(stdout_columns());
        }
        if self.has_blocks {
            return format!("{}{}", if is_first { "" } else { "\n" }, table.blocks(is_terminal));
        }
        if is_first {
            self.widths = if is_terminal { table.widths() } else { Vec::new() };
            return table.render(is_terminal);
        }
        table.render_rows(&self.widths)
    }

    /// A part of a JSON array: an element is indented as a document of the whole array has it.
    fn array(&mut self, elements: &[Value]) -> String {
        let mut text = String::new();
        for element in elements {
            text.push_str(if self.elements == 0 { "[\n  " } else { ",\n  " });
            text.push_str(&format!("{element:#}").replace('\n', "\n  "));
            self.elements += 1;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_together_are_the_whole_document() {
        let all = [json!({"a": "x\ny", "b": [1]}), json!({}), json!("z")];
        let mut listing = Listing::new(&Form::Json, &[]);
        let text = listing.array(&all[..2]) + &listing.array(&all[2..]) + "\n]\n";
        assert_eq!(text, format!("{:#}\n", Value::from(all.to_vec())));
    }
}
