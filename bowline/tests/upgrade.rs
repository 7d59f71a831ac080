//! Data of earlier versions, made with their binaries by `upgrade/seed`: opened, migrated, moved to other places, and
//! answered as they answered.
//!
//! A directory of `upgrade/` is named after the day and the commit whose binary made what is in it. What may differ is in
//! `CHANGED` of `upgrade/opened.rs`, with the reason.

#[path = "upgrade/backups.rs"]
mod backups;
#[path = "upgrade/moves.rs"]
mod moves;
#[path = "upgrade/opened.rs"]
mod opened;
#[path = "upgrade/small_disks.rs"]
mod small_disks;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bowline_store::{Db, MIGRATIONS, SqliteOptions};
use bowline_testkit::{Database, Engine, engines};

use opened::{Place, answers_are_those_of_before, bowline, read, shown, unpack};

/// What a later release would leave in the database.
const LATER_MIGRATION: &str = "INSERT INTO schema_migrations VALUES (9000, 'of a later release', 0)";

/// The stored versions.
fn versions() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upgrade");
    let entries =
        std::fs::read_dir(directory).expect("the stored versions").map(|entry| entry.expect("an entry").path());
    let mut versions: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    versions.sort();
    versions
}

#[tokio::test]
async fn data_directories_of_earlier_versions_answer_as_before() {
    for version in versions() {
        let directory = unpack(&version.join("sqlite.tar.gz"));
        let place = Place::directory(&directory.path().join("data"));
        answers_are_those_of_before(directory.path(), &place, None).await;
    }
}

#[tokio::test]
async fn databases_of_earlier_versions_answer_as_before() {
    if !engines().contains(&Engine::Postgres) {
        return;
    }
    for version in versions() {
        let directory = unpack(&version.join("postgres.tar.gz"));
        let database = Database::of_dump(&read(&directory.path().join("dump.sql"))).await;
        let mut place = Place::directory(&directory.path().join("data"));
        place.database = Some(database.url());
        answers_are_those_of_before(directory.path(), &place, None).await;
        database.remove().await;
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().expect("a scratch directory is made");
    let data = directory.path().join("data");
    std::fs::create_dir(&data).expect("a data directory is made");
    let file = data.join("bowline.db");
    let db = Db::open_sqlite(&file, SqliteOptions::default()).await.expect("a database");
    db.migrate(MIGRATIONS).await.expect("the schema");
    let later = db.write(|tx| Box::pin(async move { tx.execute(LATER_MIGRATION, &[]).await }));
    let _: u64 = later.await.expect("a later migration");
    db.close().await;
    std::fs::write(data.join("key"), [7; 32]).expect("a key");
    std::fs::set_permissions(data.join("key"), std::fs::Permissions::from_mode(0o600)).expect("a private key");
    let before = std::fs::read(&file).expect("the database");

    let output = bowline(&["serve", "--listen", "127.0.0.1:0", "--data-dir", &shown(&data)].map(String::from));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("the database is newer than this program: it is at schema version 9000"), "{said}");
    assert!(said.contains("start the newer release that migrated the database"), "{said}");
    assert_eq!(std::fs::read(&file).expect("the database"), before, "the database is left alone");
}

#[test]
fn there_is_a_version_to_upgrade_from() {
    assert!(!versions().is_empty());
}
