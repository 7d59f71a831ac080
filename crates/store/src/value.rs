//! Parameters of statements, for either engine.

use std::error::Error;

use bytes::BytesMut;
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// One statement parameter. NULL is always typed, because PostgreSQL infers the
/// type of every parameter when it prepares the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A text that is present.
    Text(&'a str),
    /// A text or NULL.
    OptText(Option<&'a str>),
    Int(i64),
    /// A 64-bit integer or NULL.
    OptInt(Option<i64>),
    /// A boolean (an integer column on SQLite).
    Bool(bool),
    /// Bytes that are present.
    Bytes(&'a [u8]),
    OptBytes(Option<&'a [u8]>),
}

macro_rules! from {
    ($($source:ty => |$x:ident| $value:expr;)*) => {
        $(impl<'a> From<$source> for Value<'a> {
            fn from($x: $source) -> Self {
                $value
            }
        })*
    };
}

from! {
    &'a str => |x| Value::Text(x);
    &'a String => |x| Value::Text(x);
    Option<&'a str> => |x| Value::OptText(x);
    Option<&'a String> => |x| Value::OptText(x.map(String::as_str));
    &'a Option<String> => |x| Value::OptText(x.as_deref());
    i64 => |x| Value::Int(x);
    i32 => |x| Value::Int(i64::from(x));
    u32 => |x| Value::Int(i64::from(x));
    Option<i64> => |x| Value::OptInt(x);
    bool => |x| Value::Bool(x);
    &'a [u8] => |x| Value::Bytes(x);
    &'a Vec<u8> => |x| Value::Bytes(x);
    Option<&'a [u8]> => |x| Value::OptBytes(x);
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match *self {
            Value::Text(text) | Value::OptText(Some(text)) => ValueRef::Text(text.as_bytes()),
            Value::Int(int) | Value::OptInt(Some(int)) => ValueRef::Integer(int),
            Value::Bool(flag) => ValueRef::Integer(i64::from(flag)),
            Value::Bytes(bytes) | Value::OptBytes(Some(bytes)) => ValueRef::Blob(bytes),
            Value::OptText(None) | Value::OptInt(None) | Value::OptBytes(None) => ValueRef::Null,
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match *self {
            Value::Text(text) => text.to_sql_checked(ty, out),
            Value::OptText(text) => text.to_sql_checked(ty, out),
            Value::Int(int) | Value::OptInt(Some(int)) => integer(int, ty, out),
            Value::OptInt(None) => Ok(IsNull::Yes),
            Value::Bool(flag) => flag.to_sql_checked(ty, out),
            Value::Bytes(bytes) => bytes.to_sql_checked(ty, out),
            Value::OptBytes(bytes) => bytes.to_sql_checked(ty, out),
        }
    }

    // Which types fit depends on the variant, so `to_sql` checks.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Narrow integer parameters (an `int4` inferred from a literal beside it) are
/// accepted as long as the value fits.
fn integer(int: i64, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
    match *ty {
        // Rows that are transferred have integers, which is what SQLite stores.
        Type::BOOL => (int != 0).to_sql(ty, out),
        Type::INT2 => i16::try_from(int)?.to_sql(ty, out),
        Type::INT4 => i32::try_from(int)?.to_sql(ty, out),
        _ => int.to_sql_checked(ty, out),
    }
}
