//! Moves, backups and restores whose disk has too little room, until it has more.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bowline_store::{Db, SqliteOptions, Value};

use crate::backups::Vault;
use crate::moves::{arguments, rejected, seeded};
use crate::opened::{Place, answers_are_those_of_before, ok, shown};

/// Bytes of the blob that does not fit.
const LARGE: usize = 20 << 20;

/// A file system in memory, until it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Absent where this process may not mount.
    fn mount(directory: PathBuf, size: &str) -> Option<SmallDisk> {
        std::fs::create_dir(&directory).expect("a directory");
        let options = format!("size={size},mode=700");
        mount(&["-t", "tmpfs", "-o", &options, "none"], &directory).then_some(SmallDisk(directory))
    }

    fn grow(&self) {
        assert!(mount(&["-o", "remount,size=200m"], &self.0), "it is mounted again");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn mount(options: &[&str], directory: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(options).arg(directory).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A blob that lies where a push would have put it.
async fn add_large_blob(source: &Place) {
    let bytes = vec![7; LARGE];
    let hex = bowline_core::hex(&bowline_authn::crypto::sha256(&bytes));
    let directory = source.data.join("blobs/sha256").join(&hex[..2]);
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::write(directory.join(&hex), bytes).expect("a blob");
    let db = Db::open_sqlite(&source.data.join("bowline.db"), SqliteOptions::default()).await.expect("the database");
    let added = db.write(move |tx| {
        let digest = format!("sha256:{hex}");
        Box::pin(async move {
            let sql = "INSERT INTO blobs (digest, size, created_at, upload) VALUES ($1, $2, 1, '')";
            tx.execute(sql, &[Value::from(&digest), Value::Int(LARGE as i64)]).await
        })
    });
    assert_eq!(added.await.expect("a row"), 1);
    db.close().await;
}

#[tokio::test]
async fn a_full_disk_is_named_and_the_next_run_goes_on() {
    let (directory, source) = seeded();
    add_large_blob(&source).await;
    let vault = Vault::new(directory.path());
    let disk = |name: &str, size: &str| SmallDisk::mount(directory.path().join(name), size);
    let Some(archive) = disk("archive", "4m") else { return };
    let said = rejected(&vault.create(&source));
    assert!(said.contains("No space left on device") && said.contains("hint: see to the disk"), "{said}");
    archive.grow();
    ok(&vault.create(&source));

    let target = Place::directory(&directory.path().join("target/data"));
    for (what, command) in [("restore", vault.restore(&source, &target)), ("move", arguments(&source, &target))] {
        let disk = disk("target", "12m").expect("it can mount");
        let said = rejected(&command);
        let causes = ["No space left on device", "no room left", "database or disk is full"];
        let is_named = causes.iter().any(|cause| said.contains(cause));
        assert!(is_named && said.contains("hint: "), "{what}: {said}");
        disk.grow();
        ok(&command);
        answers_are_those_of_before(directory.path(), &target, None).await;
        drop(disk);
        std::fs::remove_dir(directory.path().join("target")).expect("an empty directory");
    }

    let _work = disk("work", "2m").expect("it can mount");
    let work = ["--work-dir".to_owned(), shown(&directory.path().join("work"))];
    let said = rejected(&[vault.create(&source), work.to_vec()].concat());
    assert!(said.contains("has no room for a copy of the database") && said.contains("--work-dir"), "{said}");
    answers_are_those_of_before(directory.path(), &source, None).await;
}
