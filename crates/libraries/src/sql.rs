//! Statements that are put together from static parts.

use bowline_store::Value;

/// A statement and its parameters.
#[derive(Default)]
pub(super) struct Sql<'a> {
    pub(super) text: String,
    pub(super) params: Vec<Value<'a>>,
}

impl<'a> Sql<'a> {
    pub(super) fn new(text: &str) -> Sql<'a> {
        Sql { text: text.into(), params: Vec::new() }
    }

    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text += text;
        self
    }

    /// Text in front of a parameter.
    pub(super) fn bind(&mut self, text: &str, value: impl Into<Value<'a>>) -> &mut Self {
        self.params.push(value.into());
        self.text += text;
        self.text += &format!("${}", self.params.len());
        self
    }

    /// Parameters in parentheses, for `IN`; there must be one at least.
    pub(super) fn bind_list(&mut self, text: &str, values: impl Iterator<Item = Value<'a>>) -> &mut Self {
        self.text += text;
        for (index, value) in values.enumerate() {
            self.bind(if index == 0 { "(" } else { ", " }, value);
        }
        self.push(")")
    }
}

/// A pattern of `LIKE … ESCAPE '\'` that finds the text anywhere, or only where it begins.
pub(super) fn like(text: &str, from_start: bool) -> String {
    let mut pattern = String::from(if from_start { "" } else { "%" });
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
