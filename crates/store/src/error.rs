//! What can go wrong, by kind.

use std::error::Error;
use std::fmt;

use rusqlite::ffi;
use tokio_postgres::error::SqlState;

/// What a failure means to the caller. Constraint names are deliberately not
/// part of it: the two engines name them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A row with this key exists already.
    UniqueViolation,
    /// A referenced row is missing, or a row to delete is still referenced.
    ForeignKeyViolation,
    /// A NOT NULL or CHECK constraint refused the row.
    OtherConstraint,
    /// A concurrent transaction won; [`crate::Db::write`] retries these itself.
    Serialization,
    /// Read-only, I/O error, connection lost, pool timeout: the same call may work later.
    Unavailable,
    /// The disk has no room left.
    Full,
    /// A row does not decode as the type the program expects, or the file is damaged.
    Corrupt,
    /// The schema is that of a newer program, or of none that this one knows.
    SchemaUnknown,
    /// A transfer fills the database and has not ended.
    Incomplete,
    /// A dry run needs more rows or time than it has ([`crate::DryRunLimits`]).
    OverBudget,
    /// Other writes left a dry run no turn that was long enough: the same call may work later.
    GaveWay,
    /// Syntax, wrong parameters, a pending future, a panic: the program is wrong.
    Bug,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UniqueViolation => "unique violation",
            Self::ForeignKeyViolation => "foreign key violation",
            Self::OtherConstraint => "constraint violation",
            Self::Serialization => "serialization failure",
            Self::Unavailable => "storage unavailable",
            Self::Full => "storage full",
            Self::Corrupt => "corrupt data",
            Self::SchemaUnknown => "unknown schema",
            Self::Incomplete => "incomplete database",
            Self::OverBudget => "over budget",
            Self::GaveWay => "gave way to writes",
            Self::Bug => "storage bug",
        })
    }
}

/// A storage failure. `Display` is fit for logs (it never holds parameter values); the engine's own error is
/// the `source()`.
#[derive(Debug)]
pub struct StoreError {
    kind: ErrorKind,
    message: String,
    /// SQLite's result code, which decides how the writer recovers.
    sqlite: Option<rusqlite::ErrorCode>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl StoreError {
    /// What the failure means.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message without the kind.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// PostgreSQL's code of the failure, if the server sent one.
    pub fn sqlstate(&self) -> Option<&str> {
        let mut next = self.source();
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
                return error.code().map(SqlState::code);
            }
            next = error.source();
        }
        None
    }

    /// An error of the program's own making, for example a value in a row that
    /// does not parse ([`ErrorKind::Corrupt`]).
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), sqlite: None, source: None }
    }

    pub(crate) fn bug(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bug, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    pub(crate) fn full(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Full, message)
    }

    pub(crate) fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Names the statement; its text is static, so no values leak.
    pub(crate) fn in_statement(mut self, sql: &str) -> Self {
        use fmt::Write;
        let _ = write!(self.message, " in {sql:?}");
        self
    }

    /// A copy without the source, for the other callers of a failed group.
    pub(crate) fn replicate(&self) -> Self {
        Self { sqlite: self.sqlite, ..Self::new(self.kind, self.message.clone()) }
    }

    pub(crate) fn sqlite_code(&self) -> Option<rusqlite::ErrorCode> {
        self.sqlite
    }

    /// Whether a write was refused because the database or the transaction is
    /// read-only, which is a bug inside a `ReadTx`.
    pub(crate) fn is_read_only(&self) -> bool {
        let postgres = self
            .source
            .as_deref()
            .and_then(|source| source.downcast_ref::<tokio_postgres::Error>())
            .and_then(tokio_postgres::Error::code);
        self.sqlite == Some(rusqlite::ErrorCode::ReadOnly) || postgres == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let failure = match &error {
            rusqlite::Error::SqliteFailure(failure, _) | rusqlite::Error::SqlInputError { error: failure, .. } => {
                Some(*failure)
            }
            _ => None,
        };
        let message = match failure {
            Some(failure) if failure.extended_code == ffi::SQLITE_IOERR_GETTEMPPATH => {
                "there is no directory for temporary files: name one with the environment variable TMPDIR".into()
            }
            _ => error.to_string(),
        };
        Self {
            sqlite: failure.map(|failure| failure.code),
            ..Self::new(failure.map_or(ErrorKind::Bug, sqlite_kind), message)
        }
        .with_source(error)
    }
}

fn sqlite_kind(failure: ffi::Error) -> ErrorKind {
    use rusqlite::ErrorCode as C;
    match failure.code {
        C::ConstraintViolation => match failure.extended_code {
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID => {
                ErrorKind::UniqueViolation
            }
            ffi::SQLITE_CONSTRAINT_FOREIGNKEY => ErrorKind::ForeignKeyViolation,
            // A STRICT table refused the type: PostgreSQL refuses it as a wrong parameter.
            ffi::SQLITE_CONSTRAINT_DATATYPE => ErrorKind::Bug,
            _ => ErrorKind::OtherConstraint,
        },
        C::DiskFull => ErrorKind::Full,
        // The index of the log could not grow.
        C::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => ErrorKind::Full,
        C::ReadOnly
        | C::SystemIoFailure
        | C::CannotOpen
        | C::DatabaseBusy
        | C::DatabaseLocked
        | C::FileLockingProtocolFailed
        | C::OutOfMemory
        | C::PermissionDenied
        | C::OperationAborted
        | C::OperationInterrupted
        | C::SchemaChanged => ErrorKind::Unavailable,
        C::DatabaseCorrupt | C::NotADatabase => ErrorKind::Corrupt,
        _ => ErrorKind::Bug,
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        let (kind, message) = match error.as_db_error() {
            Some(db) => (
                postgres_kind(db.code()),
                // Not the detail: it quotes values.
                format!("{} (SQLSTATE {})", db.message(), db.code().code()),
            ),
            None if error.is_closed() || has_io_source(&error) => (ErrorKind::Unavailable, chain(&error)),
            None => (ErrorKind::Bug, chain(&error)),
        };
        Self::new(kind, message).with_source(error)
    }
}

fn postgres_kind(code: &SqlState) -> ErrorKind {
    let code = code.code();
    match code {
        "23505" => ErrorKind::UniqueViolation,
        "23503" | "23001" => ErrorKind::ForeignKeyViolation,
        "40001" | "40P01" => ErrorKind::Serialization,
        "53100" => ErrorKind::Full,
        "25006" | "55P03" => ErrorKind::Unavailable,
        "XX001" | "XX002" => ErrorKind::Corrupt,
        _ => match code.get(..2) {
            Some("23") => ErrorKind::OtherConstraint,
            // Connection, transaction rollback, resources, operator intervention, system.
            Some("08" | "40" | "53" | "57" | "58") => ErrorKind::Unavailable,
            _ => ErrorKind::Bug,
        },
    }
}

fn has_io_source(error: &(dyn Error + 'static)) -> bool {
    let mut next = error.source();
    while let Some(source) = next {
        if source.is::<std::io::Error>() {
            return true;
        }
        next = source.source();
    }
    false
}

/// The engine's `Display` says "db error"; its sources say which one.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let part = source.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        next = source.source();
    }
    text
}
