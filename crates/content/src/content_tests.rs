use std::convert::Infallible;

use futures_util::stream;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;

use super::*;
use crate::local::FullCheck;

/// Where content is kept while a test opens it, once or again.
pub(crate) enum Kept {
    Directory(tempfile::TempDir),
    Objects(Arc<InMemory>),
}

impl Kept {
    pub(crate) fn places() -> [Kept; 2] {
        [Kept::Directory(tempfile::tempdir().unwrap()), Kept::Objects(Arc::default())]
    }

    pub(crate) fn directory() -> (Kept, Content) {
        let [directory, _] = Kept::places();
        let content = directory.open();
        (directory, content)
    }

    pub(crate) fn open(&self) -> Content {
        match self {
            Kept::Directory(directory) => Content::open(directory.path(), FullCheck::new(|| false)).unwrap(),
            Kept::Objects(store) => Content::in_objects(store.clone(), "some/where", drawn).unwrap(),
        }
    }
}

fn drawn() -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    format!("{:016x}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

pub(crate) fn body(parts: &[&[u8]]) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + use<> {
    let parts: Vec<_> = parts.iter().map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    stream::iter(parts)
}

pub(super) async fn locations(content: &Content) -> Vec<BlobLocation> {
    let mut locations = Vec::new();
    for shard in content.shards() {
        locations.extend(content.locations(shard).await.unwrap());
    }
    locations.sort();
    locations
}

pub(super) async fn whole(content: &Content, digest: &Digest, upload: &str) -> Vec<u8> {
    let reader = content.read(digest, upload).await.unwrap().unwrap();
    let size = reader.size();
    let chunks: Vec<_> = reader.stream(0, size).collect().await;
    chunks.into_iter().flat_map(|chunk| chunk.unwrap().to_vec()).collect()
}

#[tokio::test]
async fn a_blob_grows_by_parts_and_is_there_when_it_is_whole() {
    for kept in Kept::places() {
        let content = kept.open();
        for (id, algorithm) in [("aa01", Algorithm::Sha256), ("aa02", Algorithm::Sha512)] {
            let digest = Digest::of(algorithm, b"hello world");
            content.begin(id).unwrap();
            assert_eq!(content.append(id, None, body(&[b"hel", b"lo"]), algorithm, 100).await.unwrap(), 5);
            assert_eq!(content.uploaded(id).await.unwrap(), 5);
            assert!(content.read(&digest, id).await.unwrap().is_none());
            assert_eq!(content.append(id, None, body(&[b" world"]), algorithm, 100).await.unwrap(), 11);
            let stored = content.finish(id, &digest).await.unwrap();
            assert_eq!(stored.size, 11);
            assert_eq!(whole(&content, &digest, &stored.upload).await, b"hello world");
        }
        // Nothing is left of the bodies that they came in.
        assert_eq!(locations(&content).await.len(), 2);
    }
}

#[tokio::test]
async fn a_blob_of_nothing_is_a_blob() {
    for kept in Kept::places() {
        let content = kept.open();
        let digest = Digest::of(Algorithm::Sha256, b"");
        content.begin("aa03").unwrap();
        assert_eq!(content.append("aa03", None, body(&[]), Algorithm::Sha256, 100).await.unwrap(), 0);
        let stored = content.finish("aa03", &digest).await.unwrap();
        assert_eq!(whole(&content, &digest, &stored.upload).await, b"");
        assert_eq!(content.size(&digest, &stored.upload).await.unwrap(), Some(0));
    }
}

#[tokio::test]
async fn an_upload_goes_on_after_a_restart_and_with_another_algorithm() {
    for kept in Kept::places() {
        let content = kept.open();
        content.begin("aa04").unwrap();
        content.append("aa04", None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
        let content = kept.open();
        content.append("aa04", None, body(&[b" world"]), Algorithm::Sha256, 100).await.unwrap();
        let digest = Digest::of(Algorithm::Sha512, b"hello world");
        let stored = content.finish("aa04", &digest).await.unwrap();
        assert_eq!(content.rehash(&digest, &stored.upload).await.unwrap(), Some(digest));
    }
}

#[tokio::test]
async fn another_digest_leaves_nothing() {
    for kept in Kept::places() {
        let content = kept.open();
        content.begin("aa05").unwrap();
        content.append("aa05", None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
        let digest = Digest::of(Algorithm::Sha256, b"other");
        let refused = content.finish("aa05", &digest).await.unwrap_err();
        assert!(
            matches!(refused, ContentError::Mismatch { actual } if actual == Digest::of(Algorithm::Sha256, b"hello"))
        );
        assert_eq!(locations(&content).await, []);
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_or_is_too_large_is_taken_back() {
    for kept in Kept::places() {
        let content = kept.open();
        content.begin("aa06").unwrap();
        content.append("aa06", None, body(&[b"12345"]), Algorithm::Sha256, 100).await.unwrap();
        let broken = stream::iter([Ok(Bytes::from_static(b"678")), Err(())]);
        let refused = content.append("aa06", None, broken, Algorithm::Sha256, 100).await.unwrap_err();
        assert!(matches!(refused, ContentError::Interrupted));
        assert_eq!(content.uploaded("aa06").await.unwrap(), 5);
        let refused = content.append("aa06", None, body(&[b"678", b"9"]), Algorithm::Sha256, 8).await.unwrap_err();
        assert!(matches!(refused, ContentError::TooLarge(8)));
        assert_eq!(content.uploaded("aa06").await.unwrap(), 5);
        content.append("aa06", None, body(&[b"6"]), Algorithm::Sha256, 8).await.unwrap();
        content.finish("aa06", &Digest::of(Algorithm::Sha256, b"123456")).await.unwrap();
    }
}

#[tokio::test]
async fn one_request_of_a_server_writes_to_an_upload_at_a_time() {
    for kept in Kept::places() {
        let content = kept.open();
        content.begin("aa07").unwrap();
        let (sender, slow) = open_body();
        let other = content.clone();
        let running = tokio::spawn(async move { other.append("aa07", None, slow, Algorithm::Sha256, 100).await });
        sender.send(Bytes::from_static(b"x")).await.unwrap();
        while !under_way(&content).is_busy("aa07") {
            tokio::task::yield_now().await;
        }
        let refused = content.append("aa07", None, body(&[b"y"]), Algorithm::Sha256, 100).await.unwrap_err();
        assert!(matches!(refused, ContentError::Busy));
        assert!(matches!(content.cancel("aa07"), Err(ContentError::Busy)));
        drop(sender);
        assert_eq!(running.await.unwrap().unwrap(), 1);
        content.cancel("aa07").unwrap();
    }
}

#[tokio::test]
async fn servers_that_write_to_one_place_of_an_upload_spoil_it() {
    let [_, kept] = Kept::places();
    let (one, other) = (kept.open(), kept.open());
    one.begin("aa09").unwrap();
    let (sender, slow) = open_body();
    let first = one.clone();
    let running = tokio::spawn(async move { first.append("aa09", None, slow, Algorithm::Sha256, 100).await });
    sender.send(Bytes::from_static(b"first")).await.unwrap();
    while !under_way(&one).is_busy("aa09") {
        tokio::task::yield_now().await;
    }
    other.append("aa09", None, body(&[b"other"]), Algorithm::Sha256, 100).await.unwrap();
    drop(sender);
    running.await.unwrap().unwrap();
    for text in [b"first", b"other"] {
        let refused = one.finish("aa09", &Digest::of(Algorithm::Sha256, text)).await.unwrap_err();
        assert!(matches!(refused, ContentError::Torn));
    }
}

#[tokio::test]
async fn parts_of_a_blob_and_its_removal() {
    // More than an object store takes at once.
    let data: Vec<u8> = (0..20_000_000u32).map(|n| n as u8).collect();
    let digest = Digest::of(Algorithm::Sha256, &data);
    for kept in Kept::places() {
        let content = kept.open();
        content.begin("aa0a").unwrap();
        let parts: Vec<&[u8]> = data.chunks(1 << 20).collect();
        content.append("aa0a", None, body(&parts), Algorithm::Sha256, 1 << 30).await.unwrap();
        let upload = content.finish("aa0a", &digest).await.unwrap().upload;
        assert_eq!(whole(&content, &digest, &upload).await, data);
        let reader = content.read(&digest, &upload).await.unwrap().unwrap();
        assert_eq!(reader.read_small(19_999_990, 10).await.unwrap(), data[19_999_990..]);
        assert!(reader.read_small(20_000_000, 1).await.is_err());
        let chunks: Vec<_> = reader.stream(1, 300_000).collect().await;
        let part: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.unwrap().to_vec()).collect();
        assert_eq!(part, data[1..300_001]);
        let [location] = locations(&content).await.try_into().unwrap();
        assert_eq!((location.key.as_str(), location.open_upload.as_str()), (upload.as_str(), "aa0a"));
        assert_eq!(content.size_at(&location).await.unwrap(), Some(20_000_000));
        assert_eq!(content.size(&digest, &upload).await.unwrap(), Some(20_000_000));
        assert_eq!(content.rehash(&digest, &upload).await.unwrap(), Some(digest.clone()));
        content.delete(&digest, &upload).await.unwrap();
        content.delete_at(&location).await.unwrap();
        assert_eq!(content.size(&digest, &upload).await.unwrap(), None);
        assert_eq!(content.rehash(&digest, &upload).await.unwrap(), None);
        assert_eq!(locations(&content).await, []);
    }
}

#[test]
fn ids_are_no_paths() {
    for kept in Kept::places() {
        let content = kept.open();
        for id in ["", "..", "a/b", "../x", "a.b"] {
            assert!(matches!(content.begin(id), Err(ContentError::UnknownUpload)), "{id}");
        }
    }
}

#[tokio::test]
async fn what_an_object_store_has_besides_is_no_copy() {
    let [_, kept] = Kept::places();
    let content = kept.open();
    let Kept::Objects(store) = &kept else { panic!("no objects") };
    for key in ["some/where/owner", "some/where/blobs/aa/zz/0-1", "some/where/blobs/aa/aa01/x/y", "blobs/aa/aa01/0-1"] {
        store.put(&key.into(), "x".into()).await.unwrap();
    }
    assert_eq!(locations(&content).await, []);
    let digest = Digest::of(Algorithm::Sha256, b"x");
    for upload in ["", "aa01", "../owner", "zz/0-1", "aa/../../../owner"] {
        assert!(content.read(&digest, upload).await.unwrap().is_none(), "{upload}");
    }
}

#[tokio::test]
async fn a_part_starts_where_the_upload_ends() {
    for kept in Kept::places() {
        let content = kept.open();
        content.begin("aa0b").unwrap();
        content.append("aa0b", Some(0), body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
        for start in [0, 4, 6] {
            let refused = content.append("aa0b", Some(start), body(&[b"x"]), Algorithm::Sha256, 100).await.unwrap_err();
            assert!(matches!(refused, ContentError::OutOfOrder { uploaded: 5 }), "{start}");
        }
        assert_eq!(content.append("aa0b", Some(5), body(&[b"!"]), Algorithm::Sha256, 100).await.unwrap(), 6);
    }
}

/// A body that continues as long as someone sends.
pub(super) fn open_body() -> (mpsc::Sender<Bytes>, impl Stream<Item = Result<Bytes, Infallible>> + Send) {
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    let next =
        |mut receiver: mpsc::Receiver<Bytes>| async move { receiver.recv().await.map(|part| (Ok(part), receiver)) };
    (sender, stream::unfold(receiver, next))
}

pub(super) fn under_way(content: &Content) -> &Arc<crate::under_way::UnderWay> {
    match &content.backend {
        BlobBackend::Local(local) => &local.under_way,
        BlobBackend::Objects(objects) => &objects.under_way,
    }
}

/// Waits until nothing writes to the upload any more.
pub(super) async fn idle(content: &Content, id: &str) {
    while under_way(content).is_busy(id) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_goes_away_is_taken_back() {
    for kept in Kept::places() {
        let content = kept.open();
        content.begin("aa0c").unwrap();
        content.append("aa0c", None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
        let (sender, parts) = open_body();
        let other = content.clone();
        let running = tokio::spawn(async move { other.append("aa0c", None, parts, Algorithm::Sha256, 100).await });
        sender.send(Bytes::from_static(b" world")).await.unwrap();
        while !under_way(&content).is_busy("aa0c") {
            tokio::task::yield_now().await;
        }
        running.abort();
        idle(&content, "aa0c").await;
        assert_eq!(content.uploaded("aa0c").await.unwrap(), 5);
        assert_eq!(content.finish("aa0c", &Digest::of(Algorithm::Sha256, b"hello")).await.unwrap().size, 5);
    }
}

#[tokio::test]
async fn two_uploads_of_one_digest_share_nothing() {
    for kept in Kept::places() {
        let content = kept.open();
        let digest = Digest::of(Algorithm::Sha256, b"hello");
        let mut uploads = Vec::new();
        for id in ["bb01", "bb02"] {
            content.begin(id).unwrap();
            content.append(id, None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
            uploads.push(content.finish(id, &digest).await.unwrap().upload);
        }
        assert_eq!(locations(&content).await.len(), 2);
        content.delete(&digest, &uploads[0]).await.unwrap();
        assert_eq!(whole(&content, &digest, &uploads[1]).await, b"hello");
        assert!(content.read(&digest, &uploads[0]).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn content_has_one_owner() {
    for kept in Kept::places() {
        let content = kept.open();
        assert_eq!(content.owner("aa", "draft-aa").await.unwrap(), "aa");
        assert_eq!(content.owner("bb", "draft-bb").await.unwrap(), "aa");
        assert_eq!(kept.open().owner("cc", "draft-cc").await.unwrap(), "aa");
    }
}
