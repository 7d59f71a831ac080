//! The SQL statements of lists.

use bowline_core::UidRange;
use bowline_store::{Sql, Value};

use super::{Clause, Comparison, Selection, Table};

/// Reads the rows of a selection in one range.
pub(super) fn select<'a>(table: &Table, selection: &'a Selection<'_>, range: &'a UidRange, by_org: bool) -> Sql<'a> {
    let mut sql = Sql::new(format!("SELECT {} FROM {}", table.columns, table.name));
    conditions(&mut sql, table, selection, range, by_org);
    sql
}

/// Counts the rows of a selection in one range.
pub(super) fn count<'a>(table: &Table, selection: &'a Selection<'_>, range: &'a UidRange) -> Sql<'a> {
    let mut sql = Sql::new(format!("SELECT count(*) FROM {}", table.name));
    conditions(&mut sql, table, selection, range, selection.filters.iter().any(|filter| filter.column == "name"));
    sql
}

fn conditions<'a>(sql: &mut Sql<'a>, table: &Table, selection: &'a Selection<'_>, range: &'a UidRange, by_org: bool) {
    sql.bind(" WHERE uid >= ", Value::Text(&range.lower)).bind(" AND uid < ", Value::Text(&range.upper));
    let by_name = selection.filters.iter().any(|filter| filter.column == "name");
    if let Some(parent) = &selection.parent {
        sql.bind(" AND parent = ", Value::Text(parent));
    } else if by_org || by_name {
        match range.lower.get(..bowline_core::ROOT_LENGTH) {
            Some(org) => sql.bind(" AND org IN (", Value::Text(org)).push(", '')"),
            None => sql.push(" AND org IN (SELECT uid FROM groups WHERE parent = '' UNION ALL SELECT '')"),
        };
    }
    for filter in &selection.filters {
        sql.bind(&format!(" AND {} = ", filter.column), filter.value);
    }
    for condition in &selection.conditions {
        let comparison = match condition.comparison {
            Comparison::Not => "<>",
            Comparison::AtLeast => ">=",
            Comparison::Below => "<",
        };
        sql.bind(&format!(" AND {} {comparison} ", condition.column), condition.value);
    }
    for clause in &selection.clauses {
        push_clause(sql.push(" AND "), table.name, clause);
    }
}

/// Appends a clause: `@` becomes the table's name, each `?` a placeholder for the next value.
pub fn push_clause<'a>(sql: &mut Sql<'a>, table: &str, clause: &Clause<'a>) {
    let mut values = clause.values.iter();
    for character in clause.text.chars() {
        match character {
            '@' => sql.text += table,
            '?' => {
                if let Some(value) = values.next() {
                    sql.bind("", *value);
                }
            }
            other => sql.text.push(other),
        }
    }
}

pub(super) fn limit(sql: &mut Sql<'_>, limit: i64, offset: i64) {
    sql.bind(" LIMIT ", Value::Int(limit)).bind(" OFFSET ", Value::Int(offset));
}
