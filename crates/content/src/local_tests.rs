//! What holds of directories alone: files are locked, and threads wait for the disk.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::tests::{Kept, body, idle, locations, open_body, under_way, whole};
use super::*;

fn local(content: &Content) -> &Arc<Local> {
    match &content.backend {
        BlobBackend::Local(local) => local,
        BlobBackend::Objects(_) => panic!("not a directory"),
    }
}

#[tokio::test]
async fn one_server_writes_to_an_uploads_file_at_a_time() {
    let (kept, content) = Kept::directory();
    content.begin("aa08").unwrap();
    let (sender, slow) = open_body();
    let first = content.clone();
    let running = tokio::spawn(async move { first.append("aa08", None, slow, Algorithm::Sha256, 100).await });
    sender.send(Bytes::from_static(b"x")).await.unwrap();
    while content.uploaded("aa08").await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    let other = kept.open();
    let refused = other.append("aa08", None, body(&[b"y"]), Algorithm::Sha256, 100).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    let refused = other.finish("aa08", &Digest::of(Algorithm::Sha256, b"x")).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    assert!(matches!(other.cancel("aa08"), Err(ContentError::Busy)));
    drop(sender);
    assert_eq!(running.await.unwrap().unwrap(), 1);
    content.cancel("aa08").unwrap();
    assert!(matches!(content.uploaded("aa08").await, Err(ContentError::UnknownUpload)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_finish_blocks_further_writes() {
    let (kept, content) = Kept::directory();
    let data = vec![7; 8 << 20];
    let digest = Digest::of(Algorithm::Sha512, &data);
    content.begin("aa0d").unwrap();
    content.append("aa0d", None, body(&[&data]), Algorithm::Sha256, 1 << 30).await.unwrap();
    let (other, named) = (content.clone(), digest.clone());
    // It has to read all of it, since another algorithm was expected.
    let running = tokio::spawn(async move { other.finish("aa0d", &named).await });
    while !under_way(&content).is_busy("aa0d") {
        tokio::task::yield_now().await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let refused = content.append("aa0d", None, body(&[b"x"]), Algorithm::Sha256, 1 << 30).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    idle(&content, "aa0d").await;
    let refused = content.append("aa0d", None, body(&[b"x"]), Algorithm::Sha256, 1 << 30).await.unwrap_err();
    assert!(matches!(refused, ContentError::UnknownUpload));
    assert_eq!(kept.open().rehash(&digest, "aa0d").await.unwrap(), Some(digest));
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_stays_as_it_is() {
    let (_kept, content) = Kept::directory();
    content.begin("aa0e").unwrap();
    content.append("aa0e", None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
    let locked = File::open(local(&content).upload("aa0e")).unwrap();
    locked.lock().unwrap();
    let refused = content.append("aa0e", None, body(&[b"x"]), Algorithm::Sha256, 100).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    drop(locked);
    assert_eq!(content.append("aa0e", Some(5), body(&[b"!"]), Algorithm::Sha256, 100).await.unwrap(), 6);
    assert_eq!(content.uploads().await.unwrap(), ["aa0e"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn senders_that_are_slow_hold_no_threads() {
    let (_kept, content) = Kept::directory();
    // More than there are threads for what blocks.
    let mut senders = Vec::new();
    let mut running = tokio::task::JoinSet::new();
    for n in 0..600 {
        let (id, content) = (format!("{n:04x}"), content.clone());
        content.begin(&id).unwrap();
        let (sender, parts) = open_body();
        running.spawn(async move { content.append(&id, None, parts, Algorithm::Sha256, 100).await });
        sender.send(Bytes::from_static(b"x")).await.unwrap();
        senders.push(sender);
    }
    let another = tokio::task::spawn_blocking(|| ());
    tokio::time::timeout(std::time::Duration::from_secs(20), another).await.expect("a thread is free").unwrap();
    drop(senders);
    while let Some(appended) = running.join_next().await {
        assert_eq!(appended.unwrap().unwrap(), 1);
    }
}

#[tokio::test]
async fn a_file_without_an_upload_in_its_name_is_a_copy_too() {
    let (_kept, content) = Kept::directory();
    let digest = Digest::of(Algorithm::Sha256, b"hello");
    let place = local(&content).blob(&digest, "");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(&place, "hello").unwrap();
    assert_eq!(whole(&content, &digest, "").await, b"hello");
    let [location] = locations(&content).await.try_into().unwrap();
    assert_eq!((&location.digest, location.key.as_str()), (&Some(digest), ""));
    content.delete_at(&location).await.unwrap();
    assert_eq!(locations(&content).await, []);
}

/// Permissions of everything in a directory, by path below it.
fn modes(directory: &Path, below: &str, modes: &mut Vec<(String, u32)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let name = format!("{below}/{}", name.to_str().unwrap());
        modes.push((name.clone(), std::fs::metadata(&path).unwrap().permissions().mode() & 0o777));
        if path.is_dir() {
            self::modes(&path, &name, modes);
        }
    }
}

#[tokio::test]
async fn only_the_owner_reads_blobs_and_uploads_also_in_a_directory_that_was_open_to_others() {
    let kept = tempfile::tempdir().unwrap();
    let blobs = kept.path().join("blobs");
    let shard = blobs.join("sha256/ab");
    for directory in [&blobs, &blobs.join("uploads"), &blobs.join("sha256"), &shard] {
        std::fs::create_dir(directory).unwrap();
        std::fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    }
    for file in [blobs.join("owner"), blobs.join("uploads/aa01"), shard.join("ab".repeat(32))] {
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
    }
    let content = Content::open(&blobs, FullCheck::new(|| false)).unwrap();
    content.begin("aa02").unwrap();
    content.begin("aa03").unwrap();
    content.append("aa03", None, body(&[b"a blob"]), Algorithm::Sha256, 100).await.unwrap();
    content.finish("aa03", &Digest::of(Algorithm::Sha256, b"a blob")).await.unwrap();
    assert_eq!(content.owner("ff", "draft").await.unwrap(), "x");
    let mut found = vec![(String::new(), std::fs::metadata(&blobs).unwrap().permissions().mode() & 0o777)];
    modes(&blobs, "", &mut found);
    assert!(found.len() >= 10, "{found:?}");
    for (name, mode) in found {
        let is_directory = blobs.join(name.trim_start_matches('/')).is_dir();
        assert_eq!(mode, if is_directory { 0o700 } else { 0o600 }, "{name}");
    }
}

/// Replicas of one database pass the same candidate.
#[test]
fn replicas_that_start_together_write_the_owner_once() {
    for _ in 0..100 {
        let kept = tempfile::tempdir().unwrap();
        let blobs = kept.path().join("blobs");
        std::thread::scope(|scope| {
            let blobs = &blobs;
            let owner = |replica: u8| {
                let local = Local::open(blobs, FullCheck::new(|| false))?;
                local.owner("aa", &replica.to_string())
            };
            let replicas: Vec<_> = (0..4).map(|replica| scope.spawn(move || owner(replica))).collect();
            for replica in replicas {
                assert_eq!(replica.join().unwrap().unwrap(), "aa");
            }
        });
        let names: Vec<_> = std::fs::read_dir(&blobs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "the owner and the directory of uploads: {names:?}");
    }
}
