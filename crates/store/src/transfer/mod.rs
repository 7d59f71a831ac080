//! All rows of a database in another one, whatever their engines: a [`Snapshot`] is read page by page, and
//! [`crate::Db::insert_rows`] writes the pages into a database that [`crate::Db::begin_filling`] has made.
//!
//! Rows come in the order of their keys, so that an interrupted transfer resumes after the last key of a
//! table in the target. Then [`crate::Db::build_indexes`] makes the indexes, which the target has not had so far.
//! Until [`crate::Db::end_filling`] no server opens it.

mod fill;
mod indexes;
mod snapshot;
mod tables;

use rusqlite::types::ValueRef;
use tokio_postgres::types::Type;

use crate::error::{ErrorKind, StoreError};
use crate::row::{Engines, Row};
use crate::value::Value;

pub use fill::{Filling, end_filling};
pub use snapshot::Snapshot;
pub use tables::{TransferTable, transfer_tables};

/// One value of a row. Booleans are 0 and 1, as SQLite has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Cell {
    /// The value in column `i`, of whichever type it is.
    fn read(row: &Row<'_>, i: usize) -> Result<Cell, StoreError> {
        match row.0 {
            Engines::Sqlite(sqlite) => match sqlite.get_ref(i) {
                Ok(ValueRef::Null) => Ok(Cell::Null),
                Ok(ValueRef::Integer(int)) => Ok(Cell::Int(int)),
                Ok(ValueRef::Blob(bytes)) => Ok(Cell::Bytes(bytes.to_vec())),
                Ok(ValueRef::Text(_)) => Ok(Cell::Text(row.text(i)?)),
                Ok(ValueRef::Real(_)) | Err(_) => Err(unreadable(i)),
            },
            Engines::Postgres(postgres) => {
                let kind = postgres.columns().get(i).ok_or_else(|| unreadable(i))?.type_();
                match *kind {
                    Type::BOOL => row.opt_bool(i).map(|flag| flag.map_or(Cell::Null, |flag| Cell::Int(flag.into()))),
                    Type::BYTEA => row.opt_bytes(i).map(|bytes| bytes.map_or(Cell::Null, Cell::Bytes)),
                    Type::TEXT => row.opt_text(i).map(|text| text.map_or(Cell::Null, Cell::Text)),
                    _ => row.opt_int(i).map(|int| int.map_or(Cell::Null, Cell::Int)),
                }
            }
        }
    }

    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Cell::Null => Value::OptInt(None),
            Cell::Int(int) => Value::Int(*int),
            Cell::Text(text) => Value::Text(text),
            Cell::Bytes(bytes) => Value::Bytes(bytes),
        }
    }

    /// What it takes in memory, about.
    pub fn size(&self) -> usize {
        match self {
            Cell::Null | Cell::Int(_) => 8,
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => bytes.len(),
        }
    }
}

fn unreadable(i: usize) -> StoreError {
    StoreError::new(ErrorKind::Corrupt, format!("column {i} holds what no table of this program does"))
}
