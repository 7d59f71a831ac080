//! Declarations of tables: the crate that writes a table owns it, and declares it once.
//!
//! A declaration classifies every column of text or bytes: it holds the row's id, the id of another row, a message with
//! fields that are ids, or none of these. A reference says what becomes of the row when the other one is deleted, and
//! [`delete_rows`] and [`find_restricting`] do it. A test compares the declarations with both engines' catalogues, so that a
//! new table or column fails until its owner has decided.

mod own;

use crate::{ReadTx, StoreError, Value, WriteTx};

pub use own::TABLES;

/// A table, as its owner declares it.
#[derive(Clone, Copy, Debug)]
pub struct TableDeclaration {
    pub name: &'static str,
    /// Its columns of text and bytes.
    pub columns: &'static [ColumnDeclaration],
}

/// A column of text or bytes.
#[derive(Clone, Copy, Debug)]
pub struct ColumnDeclaration {
    pub name: &'static str,
    /// What is in it.
    pub holds: Holds,
}

/// What a column holds.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    /// The row's own id, or a part of it that an index needs. A UIDP contains the ids of its ancestors.
    OwnId,
    /// The id of a row of another table.
    Reference(&'static str, OnDelete),
    /// An encoded message: its full name, and the paths of its fields that hold ids, which outlive what they name.
    Message(&'static str, &'static [&'static str]),
    Value,
}

/// What becomes of a row when the row that it refers to is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// It is deleted too, without an audit entry.
    Delete,
    /// It is deleted by its owner's code, which has more to do, such as audit entries and counts.
    Hook,
    /// The referenced row cannot be deleted. The plural of the kind for the error, and the condition for rows that count, if
    /// not all.
    Restrict(&'static str, Option<&'static str>),
    /// This row stays, and its reference dangles; the reason.
    Keep(&'static str),
}

/// The row's own id.
pub const fn own_id(name: &'static str) -> ColumnDeclaration {
    ColumnDeclaration { name, holds: Holds::OwnId }
}

/// The id of a row of `table`.
pub const fn reference(name: &'static str, table: &'static str, on_delete: OnDelete) -> ColumnDeclaration {
    ColumnDeclaration { name, holds: Holds::Reference(table, on_delete) }
}

/// An encoded message without ids.
pub const fn message(name: &'static str, type_name: &'static str) -> ColumnDeclaration {
    ColumnDeclaration { name, holds: Holds::Message(type_name, &[]) }
}

/// An encoded message whose fields of these paths hold ids.
pub const fn message_with_ids(
    name: &'static str,
    type_name: &'static str,
    paths: &'static [&'static str],
) -> ColumnDeclaration {
    ColumnDeclaration { name, holds: Holds::Message(type_name, paths) }
}

pub const fn value(name: &'static str) -> ColumnDeclaration {
    ColumnDeclaration { name, holds: Holds::Value }
}

impl TableDeclaration {
    /// References to rows of `table`: the column, and what becomes of the row.
    pub fn references(&self, table: &str) -> impl Iterator<Item = (&'static str, OnDelete)> {
        self.columns.iter().filter_map(move |column| match column.holds {
            Holds::Reference(to, on_delete) if to == table => Some((column.name, on_delete)),
            _ => None,
        })
    }
}

/// Deletes the rows that go with the row `id` of `table`.
///
/// # Errors
/// Those of the statements.
pub async fn delete_rows(
    tx: &mut WriteTx,
    tables: &[TableDeclaration],
    table: &str,
    id: &str,
) -> Result<(), StoreError> {
    for declared in tables {
        for (column, on_delete) in declared.references(table) {
            if on_delete == OnDelete::Delete {
                let sql = format!("DELETE FROM {} WHERE {column} = $1", declared.name);
                tx.execute(&sql, &[Value::from(id)]).await?;
            }
        }
    }
    Ok(())
}

/// The plural of the first kind that prevents the deletion of row `id` of `table`.
///
/// # Errors
/// Those of the statements.
pub async fn find_restricting(
    tx: &mut ReadTx,
    tables: &[TableDeclaration],
    table: &str,
    id: &str,
) -> Result<Option<&'static str>, StoreError> {
    for declared in tables {
        for (column, on_delete) in declared.references(table) {
            let OnDelete::Restrict(kind, condition) = on_delete else { continue };
            let condition = condition.map(|condition| format!(" AND {condition}")).unwrap_or_default();
            let sql = format!("SELECT 1 FROM {} WHERE {column} = $1{condition} LIMIT 1", declared.name);
            if tx.query_opt(&sql, &[Value::from(id)], |row| row.int(0)).await?.is_some() {
                return Ok(Some(kind));
            }
        }
    }
    Ok(None)
}
