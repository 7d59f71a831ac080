//! What the killed servers leave their data in.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use bowline_store::{Db, PostgresOptions, SqliteOptions};
use tempfile::TempDir;

/// A data directory of its own, and for PostgreSQL a database of its own, which stays behind a failure to be
/// looked at: `bowline_crash_*`.
pub(crate) struct Storage {
    directory: TempDir,
    database: Option<Database>,
}

struct Database {
    admin: String,
    name: String,
}

impl Database {
    /// The admin's URL with this database instead.
    fn url(&self) -> String {
        let (base, options) = self.admin.split_once('?').unwrap_or((&self.admin, ""));
        let server = base.rsplit_once('/').expect("a URL with a database").0;
        format!("{server}/{}?{options}", self.name).trim_end_matches('?').to_owned()
    }
}

impl Storage {
    pub(crate) async fn create(postgres: Option<&str>) -> Storage {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let key = directory.path().join("shared-key");
        std::fs::write(&key, "7b".repeat(32)).expect("a key file");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("a private key file");
        let database = match postgres {
            None => None,
            Some(admin) => {
                let tail = directory.path().file_name().expect("a name").to_string_lossy().to_lowercase();
                let name: String = tail.chars().filter(char::is_ascii_alphanumeric).collect();
                let database = Database { admin: admin.to_owned(), name: format!("bowline_crash_{name}") };
                administrate(admin, &format!("CREATE DATABASE {}", database.name)).await;
                Some(database)
            }
        };
        Storage { directory, database }
    }

    /// Options that make the binary use this storage.
    pub(crate) fn options(&self) -> Vec<String> {
        let path = |name: &str| self.directory.path().join(name).to_string_lossy().into_owned();
        match &self.database {
            None => vec!["--data-dir".into(), path("data")],
            Some(database) => {
                let storage = ["--database-url".into(), database.url(), "--key-file".into(), path("shared-key")];
                storage.into_iter().chain(["--data-dir".into(), path("data")]).collect()
            }
        }
    }

    /// Variables of its servers: where blobs are if not in the data directory, each storage in a place of its own.
    pub(crate) fn environment(&self) -> Option<(&'static str, String)> {
        let name = self.directory.path().file_name().expect("a name").to_string_lossy().into_owned();
        let bucket = std::env::var_os("BOWLINE_TEST_OBJECTS").and_then(|bucket| bucket.into_string().ok());
        bucket.map(|bucket| ("BOWLINE_BLOB_URL", format!("{bucket}/{name}")))
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// The database, past the server.
    pub(crate) async fn open(&self) -> Db {
        let opened = match &self.database {
            None => {
                let path = self.directory.path().join("data").join("bowline.db");
                Db::open_sqlite(&path, SqliteOptions::default()).await
            }
            Some(database) => Db::open_postgres(&database.url(), PostgresOptions::default()).await,
        };
        opened.expect("the database opens")
    }

    pub(crate) async fn drop_database(self) {
        if let Some(database) = &self.database {
            administrate(&database.admin, &format!("DROP DATABASE {} WITH (FORCE)", database.name)).await;
        }
    }
}

async fn administrate(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("PostgreSQL answers");
    let task = tokio::spawn(connection);
    client.batch_execute(sql).await.expect(sql);
    task.abort();
}
