//! The SQL statements of lists.

use bowline_core::UidRange;
use bowline_store::Value;

use super::{Clause, Comparison, Selection, Table};

/// A statement built from static parts.
#[derive(Default)]
pub struct Query<'a> {
    /// The statement, with `$n` for its values.
    pub text: String,
    /// The values, in order.
    pub params: Vec<Value<'a>>,
}

impl<'a> Query<'a> {
    pub(super) fn new(table: &Table, selection: &'a Selection<'_>, range: &'a UidRange, by_org: bool) -> Query<'a> {
        let mut query = Query { text: format!("SELECT {} FROM {}", table.columns, table.name), params: Vec::new() };
        query.conditions(table, selection, range, by_org);
        query
    }

    pub(super) fn count(table: &Table, selection: &'a Selection<'_>, range: &'a UidRange) -> Query<'a> {
        let mut query = Query { text: format!("SELECT count(*) FROM {}", table.name), params: Vec::new() };
        query.conditions(table, selection, range, selection.filters.iter().any(|filter| filter.column == "name"));
        query
    }

    fn conditions(&mut self, table: &Table, selection: &'a Selection<'_>, range: &'a UidRange, by_org: bool) {
        let (lower, upper) = (self.param(Value::Text(&range.lower)), self.param(Value::Text(&range.upper)));
        self.text += &format!(" WHERE uid >= {lower} AND uid < {upper}");
        let by_name = selection.filters.iter().any(|filter| filter.column == "name");
        if let Some(parent) = &selection.parent {
            let parent = self.param(Value::Text(parent));
            self.text += &format!(" AND parent = {parent}");
        } else if by_org || by_name {
            match range.lower.get(..bowline_core::ROOT_LENGTH) {
                Some(org) => {
                    let org = self.param(Value::Text(org));
                    self.text += &format!(" AND org IN ({org}, '')");
                }
                None => self.text += " AND org IN (SELECT uid FROM groups WHERE parent = '' UNION ALL SELECT '')",
            }
        }
        for filter in &selection.filters {
            let value = self.param(filter.value);
            self.text += &format!(" AND {} = {value}", filter.column);
        }
        for condition in &selection.conditions {
            let value = self.param(condition.value);
            let comparison = match condition.comparison {
                Comparison::Not => "<>",
                Comparison::AtLeast => ">=",
            };
            self.text += &format!(" AND {} {comparison} {value}", condition.column);
        }
        for clause in &selection.clauses {
            self.text += " AND ";
            self.clause(table.name, clause);
        }
    }

    /// Appends a clause: `@` becomes the table's name, each `?` a placeholder for the next value.
    pub fn clause(&mut self, table: &str, clause: &Clause<'a>) {
        let mut values = clause.values.iter();
        for character in clause.text.chars() {
            match character {
                '@' => self.text += table,
                '?' => {
                    if let Some(value) = values.next() {
                        let place = self.param(*value);
                        self.text += &place;
                    }
                }
                other => self.text.push(other),
            }
        }
    }

    /// Adds a value and returns its placeholder, such as `$3`.
    pub fn param(&mut self, value: Value<'a>) -> String {
        self.params.push(value);
        format!("${}", self.params.len())
    }

    pub(super) fn limit(&mut self, limit: i64, offset: i64) {
        let (limit, offset) = (self.param(Value::Int(limit)), self.param(Value::Int(offset)));
        self.text += &format!(" LIMIT {limit} OFFSET {offset}");
    }
}
