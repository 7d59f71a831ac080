use rusqlite::Connection;

use super::Cell;
use crate::error::StoreError;
use crate::schema::MIGRATIONS;

/// A table whose rows a transfer copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferTable {
    pub name: String,
    /// The columns that both engines have, in order.
    pub columns: Vec<String>,
    /// The columns of the key that pages are ordered by.
    pub key: Vec<String>,
}

impl TransferTable {
    /// The values of a row's key.
    pub fn key_of(&self, row: &[Cell]) -> Vec<Cell> {
        let at = |name: &String| self.columns.iter().position(|column| column == name);
        self.key.iter().filter_map(at).filter_map(|at| row.get(at).cloned()).collect()
    }
}

/// Rows about this program's work on one database: which server works with it, and its schema; and what triggers of the
/// target make again of other rows.
const LEFT_OUT: [&str; 5] = ["image_revisions", "leases", "scan_summaries", "schema_migrations", "search_names"];

/// The tables of this program's schema, those first that others refer to. What only one engine has (search indexes, the
/// transactions of PostgreSQL) is not in them: the target makes its own.
///
/// # Errors
/// A migration is wrong.
pub fn transfer_tables() -> Result<Vec<TransferTable>, StoreError> {
    let schema = Connection::open_in_memory()?;
    for migration in MIGRATIONS {
        schema.execute_batch(migration.sqlite)?;
    }
    let sql = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'
               ORDER BY (SELECT count(*) FROM pragma_foreign_key_list(name)), name";
    let names: Vec<String> =
        schema.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<Result<_, rusqlite::Error>>()?;
    let names = names.into_iter().filter(|name| !LEFT_OUT.contains(&name.as_str()));
    names.map(|name| describe(&schema, name)).collect()
}

fn describe(schema: &Connection, name: String) -> Result<TransferTable, StoreError> {
    let column = |sql: &str| -> Result<Vec<String>, rusqlite::Error> {
        schema.prepare(sql)?.query_map([&name], |row| row.get(0))?.collect()
    };
    let columns = column("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    let key = column("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?;
    if key.is_empty() {
        return Err(StoreError::bug(format!("the table {name} has no key that pages could be ordered by")));
    }
    Ok(TransferTable { name, columns, key })
}
