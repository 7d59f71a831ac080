//! Schema migrations, applied in their order.

use crate::db::{Backend, Db};
use crate::error::{ErrorKind, StoreError};
use crate::tx::{Inner, WriteTx};

/// One step of the schema, in two texts because types, identity columns and
/// collations differ. Each may hold several statements.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its position in the order; versions only grow.
    pub version: i64,
    /// What it does, for people.
    pub name: &'static str,
    /// The text for SQLite.
    pub sqlite: &'static str,
    /// The text for PostgreSQL.
    pub postgres: &'static str,
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)";
const APPLIED: &str = "SELECT version FROM schema_migrations ORDER BY version";
const RECORD_SQLITE: &str = "INSERT INTO schema_migrations (version, name, applied_at)
    VALUES ($1, $2, CAST(unixepoch('subsec') * 1000000 AS INTEGER))";
const RECORD_POSTGRES: &str = "INSERT INTO schema_migrations (version, name, applied_at)
    VALUES ($1, $2, CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT))";

const HAS_TABLE_SQLITE: &str = "SELECT count(*) FROM sqlite_master WHERE name = 'schema_migrations'";
const HAS_TABLE_POSTGRES: &str = "SELECT count(*) FROM information_schema.tables
    WHERE table_name = 'schema_migrations' AND table_schema = current_schema()";

/// How a database's schema stands to the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaState {
    /// There is no schema: the database is empty, or another program's.
    Absent,
    /// The schema lacks migrations of this version.
    Older,
    /// It is the program's.
    Current,
}

/// Marks a database that a transfer fills: no server accepts its schema until the transfer ends. Removes the
/// rows that migrations have made, which those of the source replace.
pub(crate) const FILLING: Migration = Migration {
    version: i64::MAX,
    name: "being filled",
    sqlite: "DELETE FROM revisions",
    postgres: "DELETE FROM revisions",
};

/// Any number does that nothing else in the database uses: "bowline" in ASCII.
const LOCK: &str = "SELECT pg_advisory_lock(27707106428284517)";
const UNLOCK: &str = "SELECT pg_advisory_unlock(27707106428284517)";

impl Db {
    /// Looks at the schema without changing anything. Refuses a database newer than the program.
    pub async fn schema_state(&self, migrations: &[Migration]) -> Result<SchemaState, StoreError> {
        let has_table = match &self.backend {
            Backend::Sqlite(_) => HAS_TABLE_SQLITE,
            Backend::Postgres(_) => HAS_TABLE_POSTGRES,
        };
        let migrations = migrations.to_vec();
        let read = self.read(move |tx| {
            Box::pin(async move {
                let tables: Option<i64> = tx.query_opt(has_table, &[], |row| row.int(0)).await?;
                if tables.is_none_or(|tables| tables == 0) {
                    return Ok(SchemaState::Absent);
                }
                let applied: Vec<i64> = tx.query(APPLIED, &[], |row| row.int(0)).await?;
                Ok(match missing(&applied, &migrations)? {
                    _ if applied.is_empty() => SchemaState::Absent,
                    [] => SchemaState::Current,
                    _ => SchemaState::Older,
                })
            })
        });
        read.await
    }

    /// Applies what is missing, all of it or nothing, under a lock; returns how
    /// many were applied. Refuses a database newer than the program.
    pub async fn migrate(&self, migrations: &[Migration]) -> Result<u32, StoreError> {
        if !migrations.is_sorted_by(|a, b| a.version < b.version) {
            return Err(StoreError::bug("migration versions must grow"));
        }
        let migrations = migrations.to_vec();
        match &self.backend {
            // The write group's BEGIN IMMEDIATE is the lock.
            Backend::Sqlite(_) => {
                self.from_reserve()
                    .write(move |tx| {
                        let migrations = migrations.clone();
                        Box::pin(async move { apply(tx, &migrations).await })
                    })
                    .await
            }
            Backend::Postgres(postgres) => {
                let postgres = postgres.clone();
                // The lock comes before the transaction: one that waited for a lock
                // inside would look at the schema as it was before the wait.
                let task = tokio::spawn(async move {
                    let tx = postgres.connect().await?;
                    tx.execute_batch("SET statement_timeout = 0").await?;
                    tx.execute_batch(LOCK).await?;
                    tx.execute_batch("BEGIN").await?;
                    let mut tx = WriteTx::new(Inner::Postgres(tx));
                    let applied = apply(&mut tx, &migrations).await?;
                    // Dropping the connection on an error above gives up the lock as well.
                    if let Some(tx) = tx.into_postgres() {
                        tx.execute_batch("COMMIT").await?;
                        tx.execute_batch("RESET statement_timeout").await?;
                        tx.finish(UNLOCK).await?;
                    }
                    Ok(applied)
                });
                task.await.unwrap_or_else(|_| Err(StoreError::bug("the migration panicked")))
            }
        }
    }
}

async fn apply(tx: &mut WriteTx, migrations: &[Migration]) -> Result<u32, StoreError> {
    let on_sqlite = matches!(tx.inner, Inner::Sqlite(_));
    tx.execute_batch(TABLE).await?;
    let applied: Vec<i64> = tx.query(APPLIED, &[], |row| row.int(0)).await?;
    let missing = missing(&applied, migrations)?;
    for migration in missing {
        let (text, record) =
            if on_sqlite { (migration.sqlite, RECORD_SQLITE) } else { (migration.postgres, RECORD_POSTGRES) };
        tx.execute_batch(text).await?;
        tx.execute(record, &[migration.version.into(), migration.name.into()]).await?;
        // Of an empty database the last line says all.
        if !applied.is_empty() {
            tracing::info!(version = migration.version, name = migration.name, "schema migrated");
        }
    }
    if let (true, Some(last)) = (applied.is_empty(), missing.last()) {
        tracing::info!(version = last.version, "schema created");
    }
    Ok(missing.len() as u32)
}

/// The migrations that a database still needs.
fn missing<'a>(applied: &[i64], migrations: &'a [Migration]) -> Result<&'a [Migration], StoreError> {
    let known = migrations.last().map_or(0, |last| last.version);
    if known != FILLING.version && applied.last() == Some(&FILLING.version) {
        return Err(StoreError::new(ErrorKind::Incomplete, "a transfer into the database has not ended"));
    }
    if let Some(newest) = applied.last().filter(|newest| **newest > known) {
        return Err(StoreError::new(
            ErrorKind::SchemaUnknown,
            format!(
                "the database is newer than this program: it is at schema version {newest}, \
                 the program knows up to {known}"
            ),
        ));
    }
    let prefix = migrations.iter().map(|migration| migration.version);
    if !prefix.take(applied.len()).eq(applied.iter().copied()) {
        return Err(StoreError::new(
            ErrorKind::SchemaUnknown,
            format!("the database has schema versions {applied:?}, which this program does not know in that order"),
        ));
    }
    Ok(&migrations[applied.len()..])
}
