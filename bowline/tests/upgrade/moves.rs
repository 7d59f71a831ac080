//! Stored data, moved from place to place by `bowline migrate`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bowline_store::{Db, SqliteOptions};
use bowline_testkit::{Database, Engine, engines};

use crate::opened::{
    Place, answers_are_those_of_before, bowline, ok, page_tokens_stay_valid, second_pages, shown, unpack,
};
use crate::versions;

/// How often a move is killed before it may end, unless `BOWLINE_MOVE_KILLS` says otherwise.
const KILLS: u64 = 5;

/// What a server might write between two runs.
const LATER_CHANGE: &str = "UPDATE groups SET description = 'changed between two runs'";

/// The newest stored data, unpacked and brought up to date.
pub(crate) fn seeded() -> (tempfile::TempDir, Place) {
    let newest = versions().pop().expect("a version");
    let directory = unpack(&newest.join("sqlite.tar.gz"));
    let place = Place::directory(&directory.path().join("data"));
    ok(&[vec!["migrate".into()], place.arguments()].concat());
    (directory, place)
}

pub(crate) fn arguments(from: &Place, to: &Place) -> Vec<String> {
    let mut arguments = vec!["migrate".to_owned()];
    for (option, place) in [("from", from), ("to", to)] {
        let name = |suffix: &str| format!("--{option}{suffix}");
        match &place.database {
            None => arguments.extend([name(""), shown(&place.data)]),
            Some(url) => arguments.extend([name(""), url.clone(), name("-blobs"), shown(&place.data)]),
        }
    }
    arguments.extend(["--key-file".into(), shown(&from.key)]);
    arguments
}

/// Runs what must be refused; what it said.
pub(crate) fn rejected(arguments: &[String]) -> String {
    let output = bowline(arguments);
    assert!(!output.status.success(), "{arguments:?} was done");
    String::from_utf8(output.stderr).expect("UTF-8")
}

fn database_file(place: &Place) -> Vec<u8> {
    std::fs::read(place.data.join("bowline.db")).expect("the database")
}

#[tokio::test]
async fn answers_and_tokens_survive_a_move_to_another_directory() {
    let (directory, source) = seeded();
    let token = answers_are_those_of_before(directory.path(), &source, None).await;
    let pages = second_pages(directory.path(), &source, &token).await;
    let before = database_file(&source);
    let target = Place::directory(&directory.path().join("moved"));
    let said = ok(&arguments(&source, &target));
    assert!(said.contains("every row compared") && said.contains("rows verified"), "{said}");
    assert_eq!(database_file(&source), before, "the source stays as it was");
    page_tokens_stay_valid(directory.path(), &target, &token, &pages).await;
    answers_are_those_of_before(directory.path(), &target, Some(token)).await;
}

#[tokio::test]
async fn answers_and_tokens_survive_a_move_to_postgres_and_back() {
    if !engines().contains(&Engine::Postgres) {
        return;
    }
    let (directory, source) = seeded();
    let token = answers_are_those_of_before(directory.path(), &source, None).await;
    let pages = second_pages(directory.path(), &source, &token).await;
    let (first, second) = (Database::of_dump("").await, Database::of_dump("").await);
    let on_postgres = |name: &str, database: &Database| Place {
        data: directory.path().join(name),
        key: source.key.clone(),
        database: Some(database.url()),
    };
    let there = on_postgres("there", &first);
    ok(&arguments(&source, &there));
    page_tokens_stay_valid(directory.path(), &there, &token, &pages).await;
    answers_are_those_of_before(directory.path(), &there, Some(token.clone())).await;
    let further = on_postgres("further", &second);
    ok(&arguments(&there, &further));
    answers_are_those_of_before(directory.path(), &further, Some(token.clone())).await;
    let back = Place::directory(&directory.path().join("back"));
    ok(&arguments(&further, &back));
    page_tokens_stay_valid(directory.path(), &back, &token, &pages).await;
    answers_are_those_of_before(directory.path(), &back, Some(token)).await;
    first.remove().await;
    second.remove().await;
}

fn kills() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the number of rounds is set from outside")]
    let set = std::env::var("BOWLINE_MOVE_KILLS");
    set.map_or(KILLS, |text| text.parse().expect("a number"))
}

/// Kills a command at all sorts of moments, then lets it end. A run that ends before it is killed counts for nothing:
/// `reset` makes what it made undone.
pub(crate) async fn killed_and_done(arguments: &[String], reset: impl AsyncFn()) {
    let (mut count, mut round, mut span) = (0, 0, 500);
    while count < kills() {
        let is_done = killed(arguments, 5 + round * 53 % span).await;
        round += 1;
        if is_done {
            reset().await;
            span = (span * 3 / 4).max(40);
        } else {
            count += 1;
        }
    }
    finished(arguments);
}

/// Runs a command to its end, also where the last kill came between its last write and its exit.
fn finished(arguments: &[String]) {
    let output = bowline(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || said.contains("there is a database already"), "{arguments:?}: {said}");
}

/// Kills a command after so many milliseconds; whether it had succeeded before.
async fn killed(arguments: &[String], after: u64) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    let command = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = command.spawn().expect("the binary runs");
    tokio::time::sleep(Duration::from_millis(after)).await;
    running.kill().expect("it is killed");
    running.wait().expect("it ends").success()
}

/// Removes a directory that may be there.
pub(crate) fn remove(directory: &Path) {
    if directory.exists() {
        std::fs::remove_dir_all(directory).expect("it is removed");
    }
}

#[tokio::test]
async fn a_killed_move_goes_on_and_no_server_opens_what_is_not_whole() {
    let (directory, source) = seeded();
    let before = database_file(&source);
    let target = Place::directory(&directory.path().join("moved"));
    killed_and_done(&arguments(&source, &target), async || remove(&target.data)).await;
    assert_eq!(database_file(&source), before, "the source stays as it was");
    answers_are_those_of_before(directory.path(), &target, None).await;
}

#[tokio::test]
async fn a_killed_move_to_postgres_goes_on() {
    if !engines().contains(&Engine::Postgres) {
        return;
    }
    let (directory, source) = seeded();
    let database = Database::of_dump("").await;
    let target =
        Place { data: directory.path().join("there"), key: source.key.clone(), database: Some(database.url()) };
    let reset = async || {
        remove(&target.data);
        database.clear().await;
    };
    killed_and_done(&arguments(&source, &target), reset).await;
    answers_are_those_of_before(directory.path(), &target, None).await;
    database.remove().await;
}

#[tokio::test]
async fn a_damaged_or_missing_blob_stops_a_move_until_it_is_whole_again() {
    let (directory, source) = seeded();
    let target = Place::directory(&directory.path().join("moved"));
    let blob = some_blob(&source.data.join("blobs/sha256"));
    let bytes = std::fs::read(&blob).expect("a blob");
    for wrong in [Some(vec![b'x'; bytes.len()]), None] {
        match &wrong {
            Some(wrong) => std::fs::write(&blob, wrong).expect("the blob is damaged"),
            None => std::fs::remove_file(&blob).expect("the blob is removed"),
        }
        let said = rejected(&arguments(&source, &target));
        assert!(said.contains("cannot be copied from file") && said.contains("bowline registry verify"), "{said}");
        let said = rejected(&["serve".into(), "--data-dir".into(), shown(&target.data)]);
        assert!(said.contains("a transfer into the database has not ended"), "{said}");
        assert!(said.contains("hint: run the command that fills it again"), "{said}");
    }
    std::fs::write(&blob, bytes).expect("the blob is whole");
    ok(&arguments(&source, &target));
    answers_are_those_of_before(directory.path(), &target, None).await;
}

/// A blob that was pushed, not the smallest.
pub(crate) fn some_blob(directory: &Path) -> std::path::PathBuf {
    let entries = |path: &Path| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(path).expect("a directory");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    };
    let blobs = entries(directory).into_iter().flat_map(|shard| entries(&shard));
    blobs.max_by_key(|path| std::fs::metadata(path).expect("a blob").len()).expect("a blob")
}

#[tokio::test]
async fn a_target_that_is_not_empty_and_a_wrong_key_are_refused() {
    let (directory, source) = seeded();
    let said = rejected(&arguments(&source, &source));
    assert!(said.contains("the same place"), "{said}");

    let (_other, target) = seeded();
    let before = database_file(&target);
    let said = rejected(&arguments(&source, &target));
    assert!(said.contains("there is a database already") && said.contains("name an empty place"), "{said}");
    assert_eq!(database_file(&target), before, "what was there stays as it was");

    let key = directory.path().join("another-key");
    std::fs::copy(&source.key, &key).expect("a file with the right mode");
    std::fs::write(&key, "0".repeat(64)).expect("another key");
    let target = Place::directory(&directory.path().join("moved"));
    let said = rejected(&arguments(&Place { key, ..source.clone() }, &target));
    assert!(said.contains("the key file does not open what is stored"), "{said}");
    assert!(!target.data.exists(), "nothing was made");

    for (from, to, words) in [
        ("mysql://host/db", "moved", "--from is no URL of PostgreSQL"),
        ("data", "postgres://host/db", "name their place with --to-blobs"),
        ("nowhere", "moved", "there is no database in nowhere"),
    ] {
        let said = rejected(&["migrate", "--from", from, "--to", to].map(String::from));
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn what_a_server_wrote_meanwhile_is_noticed() {
    let (directory, source) = seeded();
    let target = Place::directory(&directory.path().join("moved"));
    // Far enough that the rows are there, and the blobs are not.
    let blob = some_blob(&source.data.join("blobs/sha256"));
    let bytes = std::fs::read(&blob).expect("a blob");
    std::fs::remove_file(&blob).expect("the blob is removed");
    rejected(&arguments(&source, &target));
    std::fs::write(&blob, bytes).expect("the blob is whole");
    let file = source.data.join("bowline.db");
    let db = Db::open_sqlite(&file, SqliteOptions::default()).await.expect("the database");
    let changed = db.write(|tx| Box::pin(async move { tx.execute(LATER_CHANGE, &[]).await }));
    let rows: u64 = changed.await.expect("a change");
    assert!(rows > 0, "a row that has been copied already is changed");
    db.close().await;
    let said = rejected(&arguments(&source, &target));
    assert!(said.contains("rows of the table groups are not those of the source"), "{said}");
    assert!(said.contains("empty the target, and run the command again"), "{said}");
}
