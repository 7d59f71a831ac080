//! The two texts of every migration describe one schema.
//!
//! Both catalogs are read after a migration from nothing and written as lines; the lines must be the same.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bowline_store::{Db, Engine, MIGRATIONS, Row, StoreError, Value};
use common::Fixture;

/// Where the engines differ on purpose; a line that is no difference any more must go.
const KNOWN: &[&str] = &[
    // Each engine finds free text by trigrams in its own way: SQLite's is no index, but a virtual table.
    "postgres: index advisory_words_search on advisory_words (words)",
    "postgres: index search_names_search on search_names (name)",
    // The second column of a primary key, which the catalogue of SQLite does not tell from a numbered one.
    "postgres: delivery_attempts.number int not null",
    "sqlite: delivery_attempts.number int not null, numbered",
    // Rows are numbered in the order of their transactions; SQLite has one at a time, which its row ids show.
    "postgres: audit.txid int not null, with a default",
    "postgres: index audit_unnumbered on audit (txid, id) where seq IS NULL",
    "postgres: index hosted_files_by_crate on hosted_files (replace(lower(package), '_'::text, '-'::text), repository)",
    "postgres: index hosted_files_by_folded on hosted_files (lower(package), repository)",
    "postgres: index upstream_files_by_crate on upstream_files (upstream, replace(package, '_'::text, '-'::text))",
    "postgres: index outbox_unnumbered on outbox (txid, id) where seq IS NULL",
    "postgres: outbox.id int not null, numbered",
    "postgres: outbox.seq int",
    "postgres: outbox.txid int not null, with a default",
    "postgres: primary key of outbox (id)",
    "postgres: unique index outbox_by_seq on outbox (seq)",
    "sqlite: outbox.seq int not null, numbered",
    "sqlite: primary key of outbox (seq)",
    // The same expression; SQLite's catalogue does not show it.
    "postgres: index advisories_by_folded_id on advisories (upper(advisory_id))",
    "sqlite: index advisories_by_folded_id on advisories (an expression)",
    "postgres: index repo_manifests_by_pulled on repo_manifests (repo, COALESCE(last_pulled_at, 0::bigint), digest)",
    "sqlite: index hosted_files_by_crate on hosted_files (an expression, repository)",
    "sqlite: index hosted_files_by_folded on hosted_files (an expression, repository)",
    "sqlite: index upstream_files_by_crate on upstream_files (upstream, an expression)",
    "sqlite: index repo_manifests_by_pulled on repo_manifests (repo, an expression, digest)",
    // One text makes the migrator's own table on both, and SQLite lets keys of such tables be null.
    "postgres: schema_migrations.version int not null",
    "sqlite: schema_migrations.version int",
];

/// The migrator's own table: made by one text for both engines, and never sorted by its text.
const MIGRATOR: &str = "schema_migrations";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_engines_have_the_same_schema() {
    let Some(on_postgres) = Fixture::postgres().await else {
        return;
    };
    let on_sqlite = Fixture::sqlite();
    let (sqlite, postgres) = (described(on_sqlite).await, described(on_postgres).await);
    assert!(sqlite.len() > 100, "hardly anything was read: {sqlite:#?}");
    let only = |engine: &str, here: &BTreeSet<String>, there: &BTreeSet<String>| {
        here.difference(there).map(|line| format!("{engine}: {line}")).collect::<Vec<_>>()
    };
    let mut differences = only("postgres", &postgres, &sqlite);
    differences.extend(only("sqlite", &sqlite, &postgres));
    differences.sort();
    let mut known = KNOWN.to_vec();
    known.sort_unstable();
    assert_eq!(differences, known, "left: what the catalogs say; right: the differences that are meant");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_on_postgres_compares_bytewise() {
    let Some(fixture) = Fixture::postgres().await else {
        return;
    };
    let sql = "SELECT CAST(c.relname AS TEXT), CAST(a.attname AS TEXT), CAST(k.collname AS TEXT)
        FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid
        JOIN pg_collation k ON k.oid = a.attcollation
        WHERE c.relnamespace = CAST('public' AS regnamespace) AND c.relkind IN ('r', 'i')
          AND a.attnum > 0 AND NOT a.attisdropped";
    let columns = inspected(fixture, move |db| {
        Box::pin(async move { rows(&db, sql, |row| Ok((row.text(0)?, row.text(1)?, row.text(2)?))).await })
    })
    .await;
    assert!(columns.len() > 100, "hardly anything was read: {columns:#?}");
    let wrong: Vec<_> = columns.iter().filter(|(table, _, collation)| table != MIGRATOR && collation != "C").collect();
    assert!(wrong.is_empty(), "columns and index columns without COLLATE \"C\": {wrong:#?}");
}

/// Without it SQLite keeps whatever it is given, and the declared types mean nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_on_sqlite_is_strict_and_every_index_bytewise() {
    let sql = "SELECT 'table ' || name FROM pragma_table_list
        WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite%' AND NOT strict
        UNION ALL
        SELECT 'index ' || i.name FROM sqlite_schema i JOIN pragma_index_xinfo(i.name) c
        WHERE i.type = 'index' AND c.coll <> 'BINARY'";
    let loose =
        inspected(Fixture::sqlite(), move |db| Box::pin(async move { rows(&db, sql, |row| row.text(0)).await })).await;
    assert_eq!(loose, [format!("table {MIGRATOR}")]);
}

#[test]
fn every_migration_file_is_a_migration_of_both_engines() {
    let files = |engine: &str| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(engine);
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<BTreeSet<String>>()
    };
    let sqlite = files("sqlite");
    assert_eq!(sqlite, files("postgres"));
    let known: BTreeSet<String> =
        MIGRATIONS.iter().map(|migration| format!("{:04}_{}.sql", migration.version, migration.name)).collect();
    let forgotten: Vec<_> = sqlite.difference(&known).collect();
    assert!(forgotten.is_empty(), "no migration of src/schema.rs has this version and name: {forgotten:?}");
}

type Job<T> = bowline_store::BoxFuture<'static, T>;

/// Migrates a fresh database, looks at it and removes it, even if the look failed.
async fn inspected<T: Send + 'static>(fixture: Fixture, look: impl FnOnce(Db) -> Job<T> + Send + 'static) -> T {
    let fixture = Arc::new(fixture);
    let shared = Arc::clone(&fixture);
    let outcome = tokio::spawn(async move {
        let db = shared.open().await;
        db.migrate(MIGRATIONS).await.unwrap();
        let seen = look(db.clone()).await;
        db.close().await;
        seen
    })
    .await;
    Arc::into_inner(fixture).unwrap().remove().await;
    outcome.unwrap()
}

async fn rows<T: Send + 'static>(db: &Db, sql: &'static str, read: fn(&Row<'_>) -> Result<T, StoreError>) -> Vec<T> {
    db.read(move |tx| Box::pin(async move { tx.query(sql, &[], read).await }))
        .await
        .unwrap_or_else(|error: StoreError| panic!("{error}: {sql}"))
}

/// The whole schema, a line for each column, primary key and index.
async fn described(fixture: Fixture) -> BTreeSet<String> {
    inspected(fixture, |db| {
        Box::pin(async move {
            let (columns, keys, indexes) = match db.engine() {
                Engine::Sqlite => (SQLITE_COLUMNS, SQLITE_KEYS, SQLITE_INDEXES),
                Engine::Postgres => (POSTGRES_COLUMNS, POSTGRES_KEYS, POSTGRES_INDEXES),
            };
            let mut lines = rows(&db, columns, column).await;
            lines.extend(rows(&db, keys, key).await);
            lines.extend(rows(&db, indexes, index).await);
            let count = lines.len();
            let lines = BTreeSet::from_iter(lines);
            assert_eq!(lines.len(), count, "two lines are the same: {lines:#?}");
            lines
        })
    })
    .await
}

/// Table, column, type, whether it may not be null, whether the engine numbers it, whether it has a default.
fn column(row: &Row<'_>) -> Result<String, StoreError> {
    let (table, name, kind) = (row.text(0)?, row.text(1)?, row.text(2)?);
    let kind = match kind.as_str() {
        "TEXT" | "text" => "text",
        "INTEGER" | "BIGINT" | "bigint" => "int",
        "BOOLEAN" | "boolean" => "bool",
        "BLOB" | "bytea" => "bytes",
        other => panic!("{table}.{name} has the type {other}, which the store does not read"),
    };
    let flag = |at, text| row.int(at).map(|set| if set == 0 { "" } else { text });
    let (filled, numbered) = (flag(3, " not null")?, flag(4, ", numbered")?);
    let default = flag(5, ", with a default")?;
    Ok(format!("{table}.{name} {kind}{filled}{numbered}{default}"))
}

/// Table, columns.
fn key(row: &Row<'_>) -> Result<String, StoreError> {
    Ok(format!("primary key of {} ({})", row.text(0)?, row.text(1)?))
}

/// Name, table, columns, whether it is unique, the condition of a partial one or nothing.
fn index(row: &Row<'_>) -> Result<String, StoreError> {
    let unique = if row.int(3)? == 0 { "" } else { "unique " };
    // PostgreSQL writes the condition again: with a cast at every literal, and in parentheses.
    let condition = row.text(4)?.replace("::text", "").replace(['(', ')'], "").trim().to_owned();
    let partial = if condition.is_empty() { "" } else { " where " };
    let (name, table, columns) = (row.text(0)?, row.text(1)?, row.text(2)?);
    Ok(format!("{unique}index {name} on {table} ({columns}){partial}{condition}"))
}

/// A bool is an INTEGER that its own check holds to 0 and 1; the rowid is numbered and never null, and so
/// are the keys of tables without one not null.
const SQLITE_COLUMNS: &str = "SELECT t.name, c.name,
        CASE WHEN instr(s.sql, c.name || ' INTEGER NOT NULL CHECK (' || c.name || ' IN (0, 1))') > 0
             THEN 'BOOLEAN' ELSE c.type END,
        c.\"notnull\" OR c.pk > 0 AND (t.wr OR c.type = 'INTEGER'),
        c.pk > 0 AND c.type = 'INTEGER' AND NOT t.wr,
        c.dflt_value IS NOT NULL
    FROM pragma_table_list t JOIN sqlite_schema s ON s.name = t.name JOIN pragma_table_xinfo(t.name) c
    WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite%'";

/// Tables only: what a virtual one is kept in is its own affair.
const SQLITE_KEYS: &str = "SELECT name, group_concat(part, ', ') FROM (
        SELECT s.name AS name, c.name AS part FROM pragma_table_list s JOIN pragma_table_xinfo(s.name) c
        WHERE s.schema = 'main' AND s.type = 'table' AND s.name NOT LIKE 'sqlite%' AND c.pk > 0 ORDER BY s.name, c.pk)
    GROUP BY name";

const SQLITE_INDEXES: &str = "SELECT name, tbl, group_concat(part, ', '), is_unique, condition FROM (
        SELECT i.name AS name, s.name AS tbl, i.\"unique\" AS is_unique,
            coalesce(c.name, 'an expression') || CASE WHEN c.\"desc\" THEN ' DESC' ELSE '' END AS part,
            CASE WHEN i.partial THEN substr(d.sql, instr(d.sql, ' WHERE ') + 7) ELSE '' END AS condition
        FROM sqlite_schema s JOIN pragma_index_list(s.name) i JOIN pragma_index_xinfo(i.name) c
        LEFT JOIN sqlite_schema d ON d.name = i.name
        WHERE s.type = 'table' AND i.origin <> 'pk' AND c.key ORDER BY i.name, c.seqno)
    GROUP BY name";

const POSTGRES_COLUMNS: &str = "SELECT CAST(t.relname AS TEXT), CAST(a.attname AS TEXT),
        format_type(a.atttypid, a.atttypmod),
        CAST(CAST(a.attnotnull AS INT) AS BIGINT),
        CAST(CAST(a.attidentity <> '' AS INT) AS BIGINT),
        CAST(CAST(a.atthasdef AS INT) AS BIGINT)
    FROM pg_attribute a JOIN pg_class t ON t.oid = a.attrelid
    WHERE t.relnamespace = CAST('public' AS regnamespace) AND t.relkind = 'r'
      AND a.attnum > 0 AND NOT a.attisdropped";

const POSTGRES_KEYS: &str = "SELECT CAST(t.relname AS TEXT),
        string_agg(pg_get_indexdef(i.indexrelid, part.n, true), ', ' ORDER BY part.n)
    FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
    CROSS JOIN LATERAL generate_series(1, CAST(i.indnkeyatts AS INT)) AS part (n)
    WHERE t.relnamespace = CAST('public' AS regnamespace) AND i.indisprimary
    GROUP BY t.relname";

const POSTGRES_INDEXES: &str = "SELECT CAST(x.relname AS TEXT), CAST(t.relname AS TEXT),
        string_agg(pg_get_indexdef(i.indexrelid, part.n, true)
            || CASE WHEN (i.indoption[part.n - 1] & 1) = 1 THEN ' DESC' ELSE '' END, ', ' ORDER BY part.n),
        CAST(CAST(i.indisunique AS INT) AS BIGINT),
        coalesce(pg_get_expr(i.indpred, i.indrelid), '')
    FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
    CROSS JOIN LATERAL generate_series(1, CAST(i.indnkeyatts AS INT)) AS part (n)
    WHERE t.relnamespace = CAST('public' AS regnamespace) AND NOT i.indisprimary
    GROUP BY x.relname, t.relname, i.indisunique, i.indpred, i.indrelid";

/// What was on record before there were chains stays, and waits for its number.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_the_audit_log_survive_their_migration() {
    let mut fixtures = vec![Fixture::sqlite()];
    fixtures.extend(Fixture::postgres().await);
    for fixture in fixtures {
        let db = fixture.open().await;
        let before: Vec<_> = MIGRATIONS.iter().filter(|migration| migration.version < 5).copied().collect();
        db.migrate(&before).await.unwrap();
        let insert = "INSERT INTO audit (at, org, actor, method, request_id, kind, resource, after_type, after_image)
            VALUES ($1, 'o', 'a', 'm', 'r', 'k', 'u', 't', $2)";
        db.write(move |tx| {
            Box::pin(async move {
                for n in 1..=3_i64 {
                    tx.execute(insert, &[n.into(), (&[7_u8][..]).into()]).await?;
                }
                Ok::<_, StoreError>(())
            })
        })
        .await
        .unwrap();
        db.migrate(MIGRATIONS).await.unwrap();
        let sql = "SELECT id, at, after_image FROM audit WHERE seq IS NULL AND hash IS NULL ORDER BY id";
        let kept = rows(&db, sql, |row| Ok((row.int(0)?, row.int(1)?, row.bytes(2)?))).await;
        assert_eq!(kept, [(1, 1, vec![7]), (2, 2, vec![7]), (3, 3, vec![7])]);
        db.close().await;
        fixture.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redelivery_requests_survive_their_move_to_a_table() {
    let mut fixtures = vec![Fixture::sqlite()];
    fixtures.extend(Fixture::postgres().await);
    for fixture in fixtures {
        let db = fixture.open().await;
        db.migrate(&MIGRATIONS[..7]).await.unwrap();
        let buried: Result<(), StoreError> = db
            .write(|tx| {
                Box::pin(async move {
                    let sql = "INSERT INTO dead_letters (subscription, event_id, seq, at, died_at, last_error,
                                 redeliver_at, event_type, group_uid, subject, method, actor, extensions, body_type, body)
                               VALUES ('s', $1, $2, 0, 0, '', $3, '', '', '', '', '', '', '', $4)";
                    for (id, seq, asked) in [("a", 1, None), ("b", 2, Some(7)), ("c", 3, Some(8))] {
                        tx.execute(sql, &[id.into(), Value::Int(seq), Value::OptInt(asked), Value::Bytes(b"x")]).await?;
                    }
                    Ok(())
                })
            })
            .await;
        buried.unwrap();
        db.migrate(MIGRATIONS).await.unwrap();
        let wishes: Result<Vec<(String, i64)>, StoreError> = db
            .read(|tx| {
                let sql = "SELECT event_id, asked_at FROM redeliveries WHERE subscription = 's' ORDER BY seq";
                Box::pin(tx.query(sql, &[], |row| Ok((row.text(0)?, row.int(1)?))))
            })
            .await;
        assert_eq!(wishes.unwrap(), [("b".into(), 7), ("c".into(), 8)]);
        db.close().await;
        fixture.remove().await;
    }
}
