//! Stored data, backed up by `bowline backup` and filled in again by `bowline restore`.

use std::path::{Path, PathBuf};

use bowline_store::{Db, SqliteOptions, Value};
use bowline_testkit::{Database, Engine, engines};

use crate::moves::{arguments, killed_and_done, rejected, remove, seeded, some_blob};
use crate::opened::{Opened, Place, answers_are_those_of_before, bowline, ok, shown};

/// An archive, and the keys of its backups.
pub(crate) struct Vault {
    directory: PathBuf,
    identity: PathBuf,
    recipient: String,
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Vault {
    pub(crate) fn new(directory: &Path) -> Vault {
        let identity = directory.join("identity");
        let recipient = ok(&texts(&["backup", "keygen", &shown(&identity)]));
        Vault { directory: directory.join("archive"), identity, recipient: recipient.trim().to_owned() }
    }

    pub(crate) fn create(&self, source: &Place) -> Vec<String> {
        let words = ["backup", "create", "--to", &shown(&self.directory), "--recipient", &self.recipient];
        [texts(&words), source.arguments()].concat()
    }

    fn verify(&self, source: &Place) -> Vec<String> {
        [texts(&["backup", "verify"]), self.from(source)].concat()
    }

    pub(crate) fn restore(&self, source: &Place, to: &Place) -> Vec<String> {
        let mut words = [texts(&["restore"]), self.from(source)].concat();
        match &to.database {
            None => words.extend(["--to".into(), shown(&to.data)]),
            Some(url) => words.extend(["--to".into(), url.clone(), "--to-blobs".into(), shown(&to.data)]),
        }
        words
    }

    fn from(&self, source: &Place) -> Vec<String> {
        texts(&[
            "--from",
            &shown(&self.directory),
            "--identity",
            &shown(&self.identity),
            "--key-file",
            &shown(&source.key),
        ])
    }

    /// Files of the archive below a directory.
    fn files(&self, directory: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut left = vec![self.directory.join(directory)];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(std::fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path()));
            } else if path.is_file() {
                found.push(path);
            }
        }
        found.sort();
        found
    }
}

#[tokio::test]
async fn a_backup_of_a_running_server_restores_as_the_same_answers() {
    let (directory, source) = seeded();
    let vault = Vault::new(directory.path());
    let opened = Opened::start(&source, &directory.path().join("seeded_at"), None).await;
    let said = ok(&vault.create(&source));
    assert!(said.contains(" of them new"), "{said}");
    let token = opened.token.clone();
    opened.server.stop().await;
    assert!(ok(&vault.verify(&source)).contains("is whole"));
    let target = Place::directory(&directory.path().join("restored"));
    let said = ok(&vault.restore(&source, &target));
    assert!(said.contains("every row compared") && said.contains("bowline serve --data-dir"), "{said}");
    answers_are_those_of_before(directory.path(), &target, Some(token)).await;
}

#[tokio::test]
async fn a_backup_of_one_engine_restores_to_the_other() {
    if !engines().contains(&Engine::Postgres) {
        return;
    }
    let (directory, source) = seeded();
    let token = answers_are_those_of_before(directory.path(), &source, None).await;
    let vault = Vault::new(directory.path());
    ok(&vault.create(&source));
    let database = Database::of_dump("").await;
    let there = Place { data: directory.path().join("there"), key: source.key.clone(), database: Some(database.url()) };
    ok(&vault.restore(&source, &there));
    let opened = Opened::start(&there, &directory.path().join("seeded_at"), Some(token.clone())).await;
    let said = ok(&vault.create(&there));
    assert!(said.contains(" 0 of them new"), "the blobs are those of the first backup: {said}");
    opened.server.stop().await;
    let back = Place::directory(&directory.path().join("back"));
    ok(&vault.restore(&source, &back));
    answers_are_those_of_before(directory.path(), &back, Some(token)).await;
    database.remove().await;
}

#[tokio::test]
async fn a_second_backup_writes_no_blob_again_and_old_ones_are_removed() {
    let (directory, source) = seeded();
    let vault = Vault::new(directory.path());
    ok(&vault.create(&source));
    let blobs = vault.files("blobs");
    let times = |files: &[PathBuf]| -> Vec<_> {
        files.iter().map(|file| std::fs::metadata(file).expect("a file").modified().expect("a time")).collect()
    };
    let written = times(&blobs);
    assert!(!blobs.is_empty());
    // What no backup names, as one that was removed would leave.
    let unnamed = vault.directory.join(format!("blobs/00/sha256-{}", "0".repeat(64)));
    std::fs::create_dir_all(unnamed.parent().expect("a directory")).expect("a directory");
    std::fs::write(&unnamed, "x").expect("a file");
    // What a killed process was writing.
    let unfinished = vault.directory.join("blobs/00/sha256-01#1");
    std::fs::write(&unfinished, "x").expect("a file");
    let said = ok(&[vault.create(&source), texts(&["--keep", "1"])].concat());
    assert!(!unfinished.exists());
    assert!(said.contains(" 0 of them new") && said.contains("1 older backups removed, and 1 blobs"), "{said}");
    assert_eq!((vault.files("blobs"), times(&blobs)), (blobs, written));
    assert_eq!(ok(&texts(&["backup", "list", "--from", &shown(&vault.directory)])).lines().count(), 1);
    ok(&vault.verify(&source));
}

#[tokio::test]
async fn what_is_damaged_missing_or_foreign_is_named() {
    let (directory, source) = seeded();
    let vault = Vault::new(directory.path());
    let empty = directory.path().join("empty");
    let said =
        rejected(&Vault { directory: empty.clone(), ..Vault::new(&fresh(directory.path(), "a")) }.verify(&source));
    assert!(said.contains("there is no directory"), "{said}");
    std::fs::create_dir(&empty).expect("a directory");
    let said = rejected(&Vault { directory: empty, ..Vault::new(&fresh(directory.path(), "b")) }.verify(&source));
    assert!(said.contains("there is no backup"), "{said}");

    let said = rejected(
        &Vault { directory: source.data.clone(), ..Vault::new(&fresh(directory.path(), "d")) }.create(&source),
    );
    assert!(said.contains("is not empty, and no archive of backups"), "{said}");
    let blob = some_blob(&source.data.join("blobs/sha256"));
    let bytes = std::fs::read(&blob).expect("a blob");
    std::fs::write(&blob, vec![b'x'; bytes.len()]).expect("the blob is damaged");
    let said = rejected(&vault.create(&source));
    assert!(said.contains("its bytes have another digest") && said.contains("bowline registry verify"), "{said}");
    std::fs::remove_file(&blob).expect("the blob is removed");
    let said = rejected(&vault.create(&source));
    assert!(said.contains("which an image needs, is missing"), "{said}");
    assert!(vault.files("backups").is_empty(), "neither is a backup");
    std::fs::write(&blob, bytes).expect("the blob is whole");

    ok(&vault.create(&source));
    for (part, words) in [
        ("backups", "cannot be used: it is damaged, or encrypted to another key"),
        ("blobs", "of the backup are missing or damaged"),
    ] {
        // The list of digests is not secret: pruning alone reads it.
        for file in vault.files(part).into_iter().filter(|file| !file.ends_with("blobs")) {
            let bytes = std::fs::read(&file).expect("a file");
            let mut wrong = bytes.clone();
            let last = wrong.len() - 1;
            wrong[last] ^= 1;
            for wrong in [wrong, bytes[..last].to_vec(), b"foreign".to_vec()] {
                std::fs::write(&file, wrong).expect("it is damaged");
                let said = rejected(&vault.verify(&source));
                let is_named =
                    words.split('|').any(|words| said.contains(words)) || said.contains("no part of a backup");
                assert!(is_named && said.contains("hint: "), "{}: {said}", file.display());
            }
            std::fs::write(&file, bytes).expect("it is whole");
        }
    }
    ok(&vault.verify(&source));

    let other = Vault { directory: vault.directory.clone(), ..Vault::new(&fresh(directory.path(), "c")) };
    let said = rejected(&other.verify(&source));
    assert!(said.contains("it is damaged, or encrypted to another key") && said.contains("--identity"), "{said}");
    let key = directory.path().join("another-key");
    std::fs::copy(&source.key, &key).expect("a file with the right mode");
    std::fs::write(&key, "0".repeat(64)).expect("another key");
    let said = rejected(&vault.verify(&Place { key, ..source.clone() }));
    assert!(said.contains("was not made with this key file"), "{said}");
    let said = rejected(&vault.restore(&source, &source));
    assert!(said.contains("there is a database already"), "{said}");
    answers_are_those_of_before(directory.path(), &source, None).await;
}

fn fresh(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::create_dir(&path).expect("a directory");
    path
}

#[tokio::test]
async fn killed_backups_and_restores_are_done_by_a_second_run() {
    let (directory, source) = seeded();
    let vault = Vault::new(directory.path());
    killed_and_done(&vault.create(&source), async || {}).await;
    ok(&vault.verify(&source));
    let target = Place::directory(&directory.path().join("restored"));
    killed_and_done(&vault.restore(&source, &target), async || remove(&target.data)).await;
    answers_are_those_of_before(directory.path(), &target, None).await;
    answers_are_those_of_before(directory.path(), &source, None).await;
}

#[tokio::test]
async fn killed_backups_and_restores_of_postgres_are_done_by_a_second_run() {
    if !engines().contains(&Engine::Postgres) {
        return;
    }
    let (directory, source) = seeded();
    let (first, second) = (Database::of_dump("").await, Database::of_dump("").await);
    let on = |name: &str, database: &Database| Place {
        data: directory.path().join(name),
        key: source.key.clone(),
        database: Some(database.url()),
    };
    let (there, target) = (on("there", &first), on("restored", &second));
    ok(&arguments(&source, &there));
    let vault = Vault::new(directory.path());
    killed_and_done(&vault.create(&there), async || {}).await;
    ok(&vault.verify(&there));
    let reset = async || {
        remove(&target.data);
        second.clear().await;
    };
    killed_and_done(&vault.restore(&there, &target), reset).await;
    answers_are_those_of_before(directory.path(), &target, None).await;
    first.remove().await;
    second.remove().await;
}

/// UIDPs of a list of v2.
async fn uids(opened: &Opened, path: &str) -> Vec<String> {
    let list = opened.json(path).await;
    let items = list.as_object().and_then(|fields| fields.values().find_map(|field| field.as_array()));
    let items = items.unwrap_or_else(|| panic!("{path}: {list}"));
    items.iter().map(|item| item["uid"].as_str().expect("a UIDP").to_owned()).collect()
}

#[tokio::test]
async fn grants_that_were_removed_after_the_backup_stay_removed_where_the_audit_log_survived() {
    let (directory, source) = seeded();
    let vault = Vault::new(directory.path());
    let seeded_at = directory.path().join("seeded_at");
    ok(&vault.create(&source));
    let opened = Opened::start(&source, &seeded_at, None).await;
    let lists = ["/iam/v2/roleBindings", "/iam/v2/groupInvites", "/iam/v2/externalGroupRoleMappings"];
    let mut removed = Vec::new();
    for list in lists {
        let uid = uids(&opened, list).await.pop().expect("a grant of each kind");
        opened.delete(&format!("{list}/{uid}")).await;
        removed.push(uid);
    }
    let identity = uids(&opened, "/iam/v2/identities").await.pop().expect("an identity");
    opened.delete(&format!("/iam/v2/identities/{identity}")).await;
    opened.server.stop().await;

    let restored = |name: &str| Place { key: source.key.clone(), ..Place::directory(&directory.path().join(name)) };
    let without = restored("without");
    let survived = texts(&["--audit-from", &shown(&source.data)]);
    let said = ok(&[vault.restore(&source, &without), survived.clone()].concat());
    assert!(said.contains("grants were removed after the backup, and are left out"), "{said}");
    assert!(removed.iter().chain([&identity]).all(|uid| said.contains(uid.as_str())), "{said}");
    let with = restored("with");
    let said = ok(&[vault.restore(&source, &with), survived, texts(&["--with-removed-grants"])].concat());
    assert!(said.contains("and are back"), "{said}");
    let unasked = restored("unasked");
    let said = ok(&vault.restore(&source, &unasked));
    assert!(said.contains("to leave them out, restore with --audit-from"), "{said}");

    for (place, are_back) in [(&without, false), (&with, true), (&unasked, true)] {
        let opened = Opened::start(place, &seeded_at, None).await;
        for (list, uid) in lists.iter().zip(&removed) {
            assert_eq!(uids(&opened, list).await.contains(uid), are_back, "{place:?} {uid}");
        }
        assert!(uids(&opened, "/iam/v2/identities").await.contains(&identity));
        opened.server.stop().await;
        ok(&[texts(&["audit", "verify"]), place.arguments()].concat());
    }

    let unrelated = directory.path().join("unrelated");
    ok(&texts(&["migrate", "--data-dir", &shown(&unrelated)]));
    for (from, words) in
        [(unrelated, "does not have the row"), (directory.path().join("nowhere"), "there is no database")]
    {
        let target = restored("refused");
        let said = rejected(&[vault.restore(&source, &target), texts(&["--audit-from", &shown(&from)])].concat());
        assert!(said.contains(words) && said.contains("--audit-from"), "{said}");
    }
}

#[tokio::test]
async fn a_blob_that_no_image_needs_may_be_gone_and_others_are_left_out_when_asked() {
    let (directory, source) = seeded();
    let db = Db::open_sqlite(&source.data.join("bowline.db"), SqliteOptions::default()).await.expect("the database");
    let unlinked = format!("sha256:{}", "0".repeat(64));
    let added = db.write(move |tx| {
        let unlinked = unlinked.clone();
        Box::pin(async move {
            let sql = "INSERT INTO blobs (digest, size, created_at, upload) VALUES ($1, 7, 1, '')";
            tx.execute(sql, &[Value::from(&unlinked)]).await
        })
    });
    assert_eq!(added.await.expect("a row"), 1);
    db.close().await;
    let vault = Vault::new(directory.path());
    ok(&vault.create(&source));
    assert!(ok(&vault.verify(&source)).contains("is whole"));

    let lost = vault.files("blobs").pop().expect("a blob");
    std::fs::remove_file(lost).expect("a blob of the archive is lost");
    let said = rejected(&vault.verify(&source));
    assert!(said.contains("1 blobs of the backup are missing or damaged"), "{said}");
    let target = Place::directory(&directory.path().join("restored"));
    let said = rejected(&vault.restore(&source, &target));
    assert!(said.contains("it is not there") && said.contains("--skip-bad-blobs"), "{said}");
    let said = ok(&[vault.restore(&source, &target), texts(&["--skip-bad-blobs"])].concat());
    assert!(
        said.contains("1 blobs are missing or damaged, and were left out") && said.contains("it is not there"),
        "{said}"
    );
    let verified = bowline(&[texts(&["registry", "verify"]), target.arguments()].concat());
    assert!(String::from_utf8_lossy(&verified.stdout).contains(" 1 bad"), "the server names it too");
}
