//! Migrated and empty databases that those of tests are copies of: migrating takes longer than most tests.
//!
//! That of PostgreSQL is made once for a schema and stays on the server, so that the next run finds it; that of SQLite is made once
//! by each process.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use bowline_server::Options;
use bowline_store::{Db, MIGRATIONS, PostgresOptions, SqliteOptions};
use tokio::sync::OnceCell;
use tokio_postgres::Client;

/// Key of the databases of tests.
const KEY: [u8; 32] = [7; 32];

/// Key of the lock that the maker of a template holds.
const MAKING: i64 = 0x626f_776c_696e_6500;

/// Makes a database of this name that has the newest schema and no rows.
pub(crate) async fn copy(admin: &Client, url: impl Fn(&str) -> String, name: &str) {
    let template = template(admin, url).await;
    // The files as they are, instead of each page through the log of a server that is thrown away.
    execute(admin, &format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY = FILE_COPY")).await;
}

/// The template's name, after it was made if this schema has none yet.
async fn template(admin: &Client, url: impl Fn(&str) -> String) -> String {
    let mut hasher = DefaultHasher::new();
    for migration in MIGRATIONS {
        migration.postgres.hash(&mut hasher);
    }
    let name = format!("bowline_template_{:016x}", hasher.finish());
    if !is_there(admin, &name).await {
        execute(admin, &format!("SELECT pg_advisory_lock({MAKING})")).await;
        if !is_there(admin, &name).await {
            make(admin, url, &name).await;
        }
        execute(admin, &format!("SELECT pg_advisory_unlock({MAKING})")).await;
    }
    name
}

/// It gets its name when it is whole: what a killed test leaves is begun again.
async fn make(admin: &Client, url: impl Fn(&str) -> String, name: &str) {
    let draft = "bowline_template_draft";
    execute(admin, &format!("DROP DATABASE IF EXISTS {draft} WITH (FORCE)")).await;
    execute(admin, &format!("CREATE DATABASE {draft}")).await;
    let db = Db::open_postgres(&url(draft), PostgresOptions::default()).await.expect("the template opens");
    db.migrate(MIGRATIONS).await.expect("the template is migrated");
    db.close().await;
    execute(admin, &format!("ALTER DATABASE {draft} RENAME TO {name}")).await;
}

async fn is_there(admin: &Client, name: &str) -> bool {
    let sql = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)";
    admin.query_one(sql, &[&name]).await.expect("the databases are listed").get(0)
}

async fn execute(admin: &Client, statement: &str) {
    admin.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

/// Makes the embedded database of a server, with its key, where these options have it.
pub(crate) async fn embed(options: &Options) {
    static MADE: OnceCell<Vec<u8>> = OnceCell::const_new();
    let directory = options.data_dir();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory).expect("the data directory is made");
    write(&directory.join("bowline.db"), MADE.get_or_init(migrated).await);
    if options.key_file.is_none() {
        write_key(&directory.join("key"));
    }
}

/// The bytes of a migrated file of SQLite.
async fn migrated() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a scratch directory is made");
    let path = directory.path().join("bowline.db");
    let db = Db::open_sqlite(&path, SqliteOptions::default()).await.expect("the template opens");
    db.migrate(MIGRATIONS).await.expect("the template is migrated");
    // The last one to close it copies the log into the file.
    db.close().await;
    std::fs::read(&path).expect("the template is read")
}

/// Writes the key of a database.
pub(crate) fn write_key(path: &Path) {
    write(path, &KEY);
}

fn write(path: &Path, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new();
    let file = file.write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(bytes)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
