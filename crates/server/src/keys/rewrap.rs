//! Sealing everything again with another key file.

use std::sync::Arc;

use bowline_authn::crypto::KeyEncryptionKey;
use bowline_core::{Error, Micros};
use bowline_pipeline::{Actor, Change, OPERATOR, record_audit};
use bowline_services::sealed::{SEALED_COLUMNS, SEALED_FOR_MINUTES, SealedColumn};
use bowline_store::{Db, Row, Value, WriteTx};

use super::{key_context, secret_context, shared};
use crate::error::StartError;
use crate::serving;

/// The sealed columns of the server itself.
const OWN_COLUMNS: [SealedColumn; 2] = [
    SealedColumn { table: "signing_keys", key: "kid", column: "sealed", context: key_context },
    SealedColumn { table: "secrets", key: "name", column: "sealed", context: secret_context },
];

/// Every column of sealed values.
fn columns() -> impl Iterator<Item = SealedColumn> {
    OWN_COLUMNS.into_iter().chain(SEALED_COLUMNS)
}

/// Seals everything that one key opens with another, in one transaction; how many values there were. Sign-ins that are
/// under way begin again.
pub(crate) async fn rewrap(
    db: &Db,
    from: &KeyEncryptionKey,
    to: &KeyEncryptionKey,
    now: Micros,
) -> Result<u64, StartError> {
    let (from, to) = (shared(from)?, shared(to)?);
    db.write(move |tx| {
        let (from, to) = (from.clone(), to.clone());
        Box::pin(async move {
            serving::require_stopped_until_commit(tx, now).await?;
            let mut values = 0;
            for column in columns() {
                values += rewrap_column(tx, column, &from, &to).await?;
            }
            for table in SEALED_FOR_MINUTES {
                tx.execute(&format!("DELETE FROM {table}"), &[]).await?;
            }
            let actor = Actor { subject: OPERATOR, request_id: "key file", method: "bowline keys rewrap" };
            let change = Change { kind: "bowline.dev/KeyFile", uid: OPERATOR.into(), before: None, after: None };
            record_audit(tx, now, &actor, &change).await?;
            Ok(values)
        })
    })
    .await
}

async fn rewrap_column(
    tx: &mut WriteTx,
    column: SealedColumn,
    from: &Arc<KeyEncryptionKey>,
    to: &Arc<KeyEncryptionKey>,
) -> Result<u64, StartError> {
    let SealedColumn { table, key, column, context } = column;
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.bytes(1)?));
    let rows = tx.query(&format!("SELECT {key}, {column} FROM {table}"), &[], read).await?;
    let mut values = 0;
    for (id, sealed) in rows.into_iter().filter(|(_, sealed)| !sealed.is_empty()) {
        let context = context(&id);
        let opened = from.open(&context, &sealed);
        let plain = opened.map_err(|error| StartError::Sealed(format!("{context}: {error}")))?;
        let sql = format!("UPDATE {table} SET {column} = $1 WHERE {key} = $2");
        tx.execute(&sql, &[Value::Bytes(&to.seal(&context, &plain)), Value::from(&id)]).await?;
        values += 1;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use bowline_authn::crypto::random_bytes;
    use bowline_store::{MIGRATIONS, SqliteOptions};

    use super::*;

    /// Names of columns that hold secrets, in tables that a migration makes or changes.
    fn secret_columns(sql: &str) -> Vec<(String, String)> {
        let mut table = String::new();
        let mut found = Vec::new();
        for line in sql.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["CREATE" | "ALTER", "TABLE", name, rest @ ..] => {
                    table = (*name).to_owned();
                    if let ["ADD", "COLUMN", column, "BLOB", ..] = rest {
                        found.push((table.clone(), (*column).to_owned()));
                    }
                }
                [column, "BLOB", ..] => found.push((table.clone(), (*column).to_owned())),
                _ => {}
            }
        }
        found.retain(|(_, column)| ["sealed", "secret", "password"].iter().any(|word| column.contains(word)));
        found
    }

    #[test]
    fn every_sealed_column_is_sealed_again() {
        let known: Vec<(String, String)> =
            columns().map(|column| (column.table.to_owned(), column.column.to_owned())).collect();
        let mut seen = 0;
        for (table, column) in MIGRATIONS.iter().flat_map(|migration| secret_columns(migration.sqlite)) {
            // Sealed for the public key of the client that fetches it.
            if table == "headless_sessions" {
                continue;
            }
            seen += 1;
            assert!(known.contains(&(table.clone(), column.clone())), "{table}.{column} is not sealed again");
        }
        assert_eq!(seen, known.len());
    }

    #[tokio::test]
    async fn a_server_that_started_since_the_first_look_is_seen_in_the_transaction() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open_sqlite(&directory.path().join("bowline.db"), SqliteOptions::default()).await.unwrap();
        db.migrate(MIGRATIONS).await.unwrap();
        let [from, to] = [(); 2].map(|()| KeyEncryptionKey::from_bytes(&random_bytes::<32>()).unwrap());
        let started = db.write(|tx| {
            Box::pin(async move {
                let sql = "INSERT INTO leases (name, holder, until) VALUES ('server a', '', 20)";
                Ok::<_, Error>(tx.execute(sql, &[]).await?)
            })
        });
        started.await.unwrap();
        let refused = rewrap(&db, &from, &to, 19).await.unwrap_err();
        assert!(refused.to_string().contains("a server works with this database"), "{refused}");
        // Its lease has ended: it was killed.
        assert_eq!(rewrap(&db, &from, &to, 20).await.unwrap(), 0);
        db.close().await;
    }
}
