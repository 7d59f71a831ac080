//! Lines with columns: aligned for people, tabs between cells for programs.

use serde_json::Value;

use crate::settings::{bold, stdout_columns, stdout_is_terminal};

/// Lines with columns, for people and programs.
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with only its head, in lower case.
    pub fn new(head: &[&'static str]) -> Table {
        Table { head: head.to_vec(), rows: Vec::new() }
    }

    /// A table of lines alone.
    pub fn without_head() -> Table {
        Table::new(&[])
    }

    /// Adds a line with these cells.
    pub fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Whether there are no lines below the head.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Each line as an object, with the head's words as names.
    pub(crate) fn objects(&self) -> Value {
        let object = |row: &Vec<String>| -> Value {
            self.head.iter().zip(row).map(|(name, cell)| (name.replace(' ', "_"), cell.as_str())).collect()
        };
        self.rows.iter().map(object).collect()
    }

    /// The column that names a line: its UIDP, else its name, else the first.
    pub(crate) fn names(&self) -> String {
        let column = ["uidp", "name"].iter().find_map(|name| self.head.iter().position(|head| head == name));
        let names = self.rows.iter().filter_map(|row| row.get(column.unwrap_or(0)));
        names.map(|name| plain(name) + "\n").collect()
    }

    /// The table as stdout takes it: aligned on a terminal, in blocks on one that is too narrow, with tabs elsewhere.
    pub fn text(&self) -> String {
        if self.is_wider_than(stdout_columns()) { self.blocks(true) } else { self.render(stdout_is_terminal()) }
    }

    /// Whether lines of aligned columns are wider than a terminal, whose reader would see wrapped cells. A last column
    /// beside one other is read as it is.
    pub(crate) fn is_wider_than(&self, columns: Option<usize>) -> bool {
        let widths = self.widths();
        let gaps = 2 * widths.len().saturating_sub(1);
        self.head.len() > 2 && columns.is_some_and(|columns| widths.iter().sum::<usize>() + gaps > columns)
    }

    /// A block of lines for each row: the head's word and the cell. Empty cells have none.
    pub(crate) fn blocks(&self, is_terminal: bool) -> String {
        let width = self.head.iter().map(|head| head.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { "\n" });
            for (head, cell) in self.head.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
                let head = bold(&format!("{:width$}", head.to_uppercase()), is_terminal);
                text.push_str(&format!("{head}  {}\n", plain(cell)));
            }
        }
        text
    }

    /// The table as text; with columns of one width each where it is for a terminal.
    pub(crate) fn render(&self, is_terminal: bool) -> String {
        let widths = if is_terminal { self.widths() } else { Vec::new() };
        let mut text = String::new();
        if !self.head.is_empty() {
            text.push_str(&bold(&line(&self.head, &widths).to_uppercase(), is_terminal));
            text.push('\n');
        }
        for row in &self.rows {
            text.push_str(&line(row, &widths));
            text.push('\n');
        }
        text
    }

    /// The lines without the head, in columns of these widths.
    pub(crate) fn render_rows(&self, widths: &[usize]) -> String {
        self.rows.iter().map(|row| line(row, widths) + "\n").collect()
    }

    /// Width of each column, in characters.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).chain([self.head.len()]).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain(self.head.get(column).map(|head| head.len())).max().unwrap_or(0)
        };
        (0..columns).map(width).collect()
    }

    /// Comma-separated values with a head (RFC 4180).
    pub(crate) fn csv(&self, has_head: bool) -> String {
        let mut text = String::new();
        if has_head && !self.head.is_empty() {
            text.push_str(&csv_line(self.head.iter().copied()));
        }
        for row in &self.rows {
            text.push_str(&csv_line(row.iter().map(String::as_str)));
        }
        text
    }
}

/// A cell is one line, controls no terminal and reorders no text beside it.
fn plain(cell: &str) -> String {
    cell.replace(|c: char| c.is_control() || is_bidi(c), " ")
}

/// Whether a character sets the direction of the text around it (Unicode's bidirectional controls).
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// One line: padded to the widths, or with tabs where there are none. The last cell is never padded.
fn line(cells: &[impl AsRef<str>], widths: &[usize]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| plain(cell.as_ref())).collect();
    if widths.is_empty() {
        return cells.join("\t");
    }
    let mut text = String::new();
    for (at, cell) in cells.iter().enumerate() {
        text.push_str(cell);
        if at + 1 < cells.len() {
            let gap = widths.get(at).copied().unwrap_or(0).saturating_sub(cell.chars().count()) + 2;
            text.extend(std::iter::repeat_n(' ', gap));
        }
    }
    text.trim_end().to_owned()
}

fn csv_line<'c>(cells: impl Iterator<Item = &'c str>) -> String {
    let quoted = cells.map(|cell| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_owned()
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line() {
        let mut table = Table::new(&["name", "last seen"]);
        table.push(["a\tb\u{1b}[2J\n".to_owned(), "x".into()]);
        assert_eq!(table.render(false), "NAME\tLAST SEEN\na b [2J \tx\n");
        assert_eq!(table.objects(), serde_json::json!([{"name": "a\tb\u{1b}[2J\n", "last_seen": "x"}]));
    }

    #[test]
    fn a_cell_reorders_no_text_beside_it() {
        let mut table = Table::new(&["name", "role"]);
        table.push(["eve\u{202e}\u{2066}".to_owned(), "viewer".into()]);
        assert_eq!(table.render(false), "NAME\tROLE\neve  \tviewer\n");
    }

    #[test]
    fn tables_that_are_too_wide_are_blocks() {
        let mut table = Table::new(&["uidp", "name", "e-mail"]);
        table.push(["0123456".to_owned(), "a".into(), "a@example.com".into()]);
        table.push(["0".to_owned(), "b".into(), String::new()]);
        assert_eq!(table.widths(), [7, 4, 13]);
        assert!(table.is_wider_than(Some(27)) && !table.is_wider_than(Some(28)) && !table.is_wider_than(None));
        assert_eq!(table.blocks(false), "UIDP    0123456\nNAME    a\nE-MAIL  a@example.com\n\nUIDP    0\nNAME    b\n");
    }

    #[test]
    fn columns_are_aligned_for_people_and_quoted_for_spreadsheets() {
        let mut table = Table::new(&["uidp", "name"]);
        table.push(["0123456".to_owned(), "é, \"x\"".into()]);
        table.push(["0".to_owned(), String::new()]);
        assert_eq!(table.render_rows(&table.widths()), "0123456  é, \"x\"\n0\n");
        assert_eq!(table.csv(true), "uidp,name\r\n0123456,\"é, \"\"x\"\"\"\r\n0,\r\n");
        assert_eq!(table.names(), "0123456\n0\n");
    }
}
