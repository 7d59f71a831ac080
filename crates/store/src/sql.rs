//! Statements that are put together from static parts and parameters.

use crate::Value;

/// A statement and its parameters, in the order of their `$n`.
#[derive(Default)]
pub struct Sql<'a> {
    /// The text, with `$n` for each parameter.
    pub text: String,
    /// The parameters, in order.
    pub params: Vec<Value<'a>>,
}

impl<'a> Sql<'a> {
    /// A statement that begins with this text.
    pub fn new(text: impl Into<String>) -> Sql<'a> {
        Sql { text: text.into(), params: Vec::new() }
    }

    /// Adds text to the statement.
    pub fn push(&mut self, text: &str) -> &mut Self {
        self.text += text;
        self
    }

    /// Adds text and a parameter after it.
    pub fn bind(&mut self, text: &str, value: impl Into<Value<'a>>) -> &mut Self {
        let parameter = self.param(value);
        self.push(text).push(&parameter)
    }

    /// Adds text and parameters in parentheses, for `IN`; there must be one at least.
    pub fn bind_list(&mut self, text: &str, values: impl Iterator<Item = Value<'a>>) -> &mut Self {
        self.push(text);
        for (index, value) in values.enumerate() {
            self.bind(if index == 0 { "(" } else { ", " }, value);
        }
        self.push(")")
    }

    /// Adds a parameter and returns its `$n`, for text that follows.
    pub fn param(&mut self, value: impl Into<Value<'a>>) -> String {
        self.params.push(value.into());
        format!("${}", self.params.len())
    }
}

/// `count` placeholders from `$first` on, separated by commas, for `IN` and `VALUES`.
pub fn placeholders(first: usize, count: usize) -> String {
    let all: Vec<String> = (first..first + count).map(|n| format!("${n}")).collect();
    all.join(", ")
}

/// A pattern of `LIKE … ESCAPE '\'` that matches the text anywhere, or only at the beginning.
pub fn like(text: &str, from_start: bool) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_in_their_order() {
        let mut sql = Sql::new("SELECT 1 FROM t WHERE ");
        sql.bind("a = ", Value::Int(1)).bind_list(" AND b IN ", [2, 3].map(Value::Int).into_iter());
        let last = sql.param(Value::Int(4));
        sql.push(" OR c = ").push(&last);
        assert_eq!(sql.text, "SELECT 1 FROM t WHERE a = $1 AND b IN ($2, $3) OR c = $4");
        assert_eq!(sql.params.len(), 4);
    }

    #[test]
    fn placeholders_begin_where_they_are_needed() {
        assert_eq!(placeholders(3, 2), "$3, $4");
        assert_eq!(placeholders(1, 0), "");
    }

    #[test]
    fn patterns_match_their_text_literally() {
        assert_eq!(like("50%_\\", false), "%50\\%\\_\\\\%");
        assert_eq!(like("a", true), "a%");
    }
}
