//! One result row, read by wanted type.

use rusqlite::types::ValueRef;
use tokio_postgres::types::{FromSql, Type};

use crate::error::{ErrorKind, StoreError};

/// One result row of either engine. Columns are read by position and wanted
/// type; a column that holds something else is [`ErrorKind::Corrupt`].
pub struct Row<'a>(pub(crate) Engines<'a>);

pub(crate) enum Engines<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl Row<'_> {
    /// The text in column `i`.
    pub fn text(&self, i: usize) -> Result<String, StoreError> {
        self.with_text(i, str::to_owned)
    }

    /// Lends the text in column `i` without copying it.
    pub fn with_text<T>(&self, i: usize, f: impl FnOnce(&str) -> T) -> Result<T, StoreError> {
        self.text_ref(i)?.map(f).ok_or_else(|| null(i))
    }

    /// The text in column `i`, or `None` for NULL.
    pub fn opt_text(&self, i: usize) -> Result<Option<String>, StoreError> {
        Ok(self.text_ref(i)?.map(str::to_owned))
    }

    /// The integer in column `i`.
    pub fn int(&self, i: usize) -> Result<i64, StoreError> {
        self.opt_int(i)?.ok_or_else(|| null(i))
    }

    /// The integer in column `i`, or `None` for NULL.
    pub fn opt_int(&self, i: usize) -> Result<Option<i64>, StoreError> {
        match self.0 {
            Engines::Sqlite(row) => match sqlite_column(row, i)? {
                ValueRef::Integer(int) => Ok(Some(int)),
                ValueRef::Null => Ok(None),
                other => Err(mismatch(i, "an integer", &other.data_type())),
            },
            Engines::Postgres(row) => Ok(postgres_column::<PgInt>(row, i)?.map(|int| int.0)),
        }
    }

    /// The boolean in column `i` (0 or 1 on SQLite).
    pub fn bool(&self, i: usize) -> Result<bool, StoreError> {
        match self.0 {
            Engines::Sqlite(row) => match sqlite_column(row, i)? {
                ValueRef::Integer(0) => Ok(false),
                ValueRef::Integer(1) => Ok(true),
                other => Err(mismatch(i, "a boolean", &other.data_type())),
            },
            Engines::Postgres(row) => postgres_column::<bool>(row, i)?.ok_or_else(|| null(i)),
        }
    }

    /// The boolean in column `i` of PostgreSQL, or `None` for NULL.
    pub(crate) fn opt_bool(&self, i: usize) -> Result<Option<bool>, StoreError> {
        match self.0 {
            Engines::Sqlite(_) => Ok(Some(self.bool(i)?)),
            Engines::Postgres(row) => postgres_column(row, i),
        }
    }

    /// The bytes in column `i`.
    pub fn bytes(&self, i: usize) -> Result<Vec<u8>, StoreError> {
        self.opt_bytes(i)?.ok_or_else(|| null(i))
    }

    /// Lends the bytes in column `i` without copying them.
    pub fn with_bytes<T>(&self, i: usize, f: impl FnOnce(&[u8]) -> T) -> Result<T, StoreError> {
        self.bytes_ref(i)?.map(f).ok_or_else(|| null(i))
    }

    /// The bytes in column `i`, or `None` for NULL.
    pub fn opt_bytes(&self, i: usize) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.bytes_ref(i)?.map(<[u8]>::to_vec))
    }

    fn bytes_ref(&self, i: usize) -> Result<Option<&[u8]>, StoreError> {
        match self.0 {
            Engines::Sqlite(row) => match sqlite_column(row, i)? {
                ValueRef::Blob(bytes) => Ok(Some(bytes)),
                ValueRef::Null => Ok(None),
                other => Err(mismatch(i, "bytes", &other.data_type())),
            },
            Engines::Postgres(row) => postgres_column(row, i),
        }
    }

    fn text_ref(&self, i: usize) -> Result<Option<&str>, StoreError> {
        match self.0 {
            Engines::Sqlite(row) => match sqlite_column(row, i)? {
                ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => Ok(Some(text)),
                    Err(error) => Err(mismatch(i, "UTF-8 text", &error)),
                },
                ValueRef::Null => Ok(None),
                other => Err(mismatch(i, "text", &other.data_type())),
            },
            Engines::Postgres(row) => postgres_column(row, i),
        }
    }
}

fn sqlite_column<'r>(row: &'r rusqlite::Row<'_>, i: usize) -> Result<ValueRef<'r>, StoreError> {
    row.get_ref(i).map_err(|_| no_column(i))
}

fn postgres_column<'r, T: FromSql<'r>>(row: &'r tokio_postgres::Row, i: usize) -> Result<Option<T>, StoreError> {
    if i >= row.len() {
        return Err(no_column(i));
    }
    row.try_get(i).map_err(|error| mismatch(i, "another type", &error))
}

/// Literals and `length()` are `int4` on PostgreSQL; any width is read as an integer.
struct PgInt(i64);

impl<'a> FromSql<'a> for PgInt {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(PgInt(match *ty {
            Type::INT2 => i64::from(i16::from_sql(ty, raw)?),
            Type::INT4 => i64::from(i32::from_sql(ty, raw)?),
            _ => i64::from_sql(ty, raw)?,
        }))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT2 | Type::INT4 | Type::INT8)
    }
}

fn null(i: usize) -> StoreError {
    StoreError::new(ErrorKind::Corrupt, format!("column {i} is NULL"))
}

fn no_column(i: usize) -> StoreError {
    StoreError::new(ErrorKind::Bug, format!("the row has no column {i}"))
}

fn mismatch(i: usize, wanted: &str, found: &dyn std::fmt::Display) -> StoreError {
    StoreError::new(ErrorKind::Corrupt, format!("column {i}: wanted {wanted}, found {found}"))
}
