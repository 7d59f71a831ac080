use std::convert::Infallible;

use futures_util::stream;

use super::*;

fn body(parts: &[&[u8]]) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + use<> {
    let parts: Vec<_> = parts.iter().map(|part| Ok(Bytes::copy_from_slice(part))).collect();
    stream::iter(parts)
}

fn content() -> (tempfile::TempDir, Content) {
    let directory = tempfile::tempdir().unwrap();
    let content = Content::open(directory.path()).unwrap();
    (directory, content)
}

async fn copies(content: &Content) -> Vec<(Digest, String)> {
    let mut copies = Vec::new();
    for (algorithm, first) in Content::directories() {
        copies.extend(content.copies(algorithm, first).await.unwrap());
    }
    copies
}

async fn whole(content: &Content, digest: &Digest, upload: &str) -> Vec<u8> {
    let reader = content.read(digest, upload).unwrap().unwrap();
    let size = reader.size();
    let chunks: Vec<_> = reader.stream(0, size).collect().await;
    chunks.into_iter().flat_map(|chunk| chunk.unwrap().to_vec()).collect()
}

#[tokio::test]
async fn a_blob_grows_by_parts_and_is_there_when_it_is_whole() {
    let (_directory, content) = content();
    for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
        let digest = Digest::of(algorithm, b"hello world");
        content.begin("aa01").unwrap();
        assert_eq!(content.append("aa01", None, body(&[b"hel", b"lo"]), algorithm, 100).await.unwrap(), 5);
        assert_eq!(content.uploaded("aa01").unwrap(), 5);
        assert!(content.read(&digest, "aa01").unwrap().is_none());
        assert_eq!(content.append("aa01", None, body(&[b" world"]), algorithm, 100).await.unwrap(), 11);
        assert_eq!(content.finish("aa01", &digest).await.unwrap(), 11);
        assert_eq!(whole(&content, &digest, "aa01").await, b"hello world");
        assert!(matches!(content.uploaded("aa01"), Err(ContentError::UnknownUpload)));
    }
}

#[tokio::test]
async fn an_upload_goes_on_after_a_restart_and_with_another_algorithm() {
    let (directory, content) = content();
    content.begin("aa02").unwrap();
    content.append("aa02", None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
    drop(content);
    let content = Content::open(directory.path()).unwrap();
    content.append("aa02", None, body(&[b" world"]), Algorithm::Sha256, 100).await.unwrap();
    let digest = Digest::of(Algorithm::Sha512, b"hello world");
    assert_eq!(content.finish("aa02", &digest).await.unwrap(), 11);
}

#[tokio::test]
async fn another_digest_leaves_nothing() {
    let (_directory, content) = content();
    content.begin("aa03").unwrap();
    content.append("aa03", None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
    let digest = Digest::of(Algorithm::Sha256, b"other");
    let refused = content.finish("aa03", &digest).await.unwrap_err();
    assert!(matches!(refused, ContentError::Mismatch { found } if found == Digest::of(Algorithm::Sha256, b"hello")));
    assert!(content.read(&digest, "aa03").unwrap().is_none());
    assert!(matches!(content.uploaded("aa03"), Err(ContentError::UnknownUpload)));
}

#[tokio::test]
async fn a_body_that_breaks_off_or_is_too_large_is_taken_back() {
    let (_directory, content) = content();
    content.begin("aa04").unwrap();
    content.append("aa04", None, body(&[b"12345"]), Algorithm::Sha256, 100).await.unwrap();
    let broken = stream::iter([Ok(Bytes::from_static(b"678")), Err(())]);
    let refused = content.append("aa04", None, broken, Algorithm::Sha256, 100).await.unwrap_err();
    assert!(matches!(refused, ContentError::Broken));
    assert_eq!(content.uploaded("aa04").unwrap(), 5);
    let refused = content.append("aa04", None, body(&[b"678", b"9"]), Algorithm::Sha256, 8).await.unwrap_err();
    assert!(matches!(refused, ContentError::TooLarge(8)));
    assert_eq!(content.uploaded("aa04").unwrap(), 5);
    content.append("aa04", None, body(&[b"6"]), Algorithm::Sha256, 8).await.unwrap();
    content.finish("aa04", &Digest::of(Algorithm::Sha256, b"123456")).await.unwrap();
}

#[tokio::test]
async fn one_request_at_a_time_writes_to_an_upload() {
    let (directory, content) = content();
    content.begin("aa05").unwrap();
    let (sender, receiver) = mpsc::channel::<Result<Bytes, Infallible>>(1);
    let slow =
        stream::unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|part| (part, receiver)) });
    let other = content.clone();
    let running = tokio::spawn(async move { other.append("aa05", None, slow, Algorithm::Sha256, 100).await });
    sender.send(Ok(Bytes::from_static(b"x"))).await.unwrap();
    while content.uploaded("aa05").unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    let refused = content.append("aa05", None, body(&[b"y"]), Algorithm::Sha256, 100).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    assert!(matches!(content.cancel("aa05"), Err(ContentError::Busy)));
    // Another process in the same directory.
    let other = Content::open(directory.path()).unwrap();
    let refused = other.append("aa05", None, body(&[b"y"]), Algorithm::Sha256, 100).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    let refused = other.finish("aa05", &Digest::of(Algorithm::Sha256, b"x")).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    assert!(matches!(other.cancel("aa05"), Err(ContentError::Busy)));
    drop(sender);
    assert_eq!(running.await.unwrap().unwrap(), 1);
    content.cancel("aa05").unwrap();
    assert!(matches!(content.uploaded("aa05"), Err(ContentError::UnknownUpload)));
}

#[tokio::test]
async fn parts_of_a_blob_and_its_removal() {
    let (_directory, content) = content();
    let data: Vec<u8> = (0..600_000u32).map(|n| n as u8).collect();
    let digest = Digest::of(Algorithm::Sha256, &data);
    content.begin("aa06").unwrap();
    content.append("aa06", None, body(&[&data]), Algorithm::Sha256, 1 << 20).await.unwrap();
    content.finish("aa06", &digest).await.unwrap();
    assert_eq!(whole(&content, &digest, "aa06").await, data);
    let reader = content.read(&digest, "aa06").unwrap().unwrap();
    assert_eq!(reader.read_small(599_990, 10).unwrap(), data[599_990..]);
    assert!(reader.read_small(599_990, 11).is_err());
    let chunks: Vec<_> = reader.stream(1, 300_000).collect().await;
    let part: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.unwrap().to_vec()).collect();
    assert_eq!(part, data[1..300_001]);
    assert_eq!(copies(&content).await, [(digest.clone(), "aa06".to_owned())]);
    assert_eq!(content.size(&digest, "aa06").unwrap(), Some(600_000));
    assert_eq!(content.rehash(&digest, "aa06").await.unwrap(), Some(digest.clone()));
    assert!(content.delete(&digest, "aa06").unwrap());
    assert!(!content.delete(&digest, "aa06").unwrap());
    assert_eq!(content.size(&digest, "aa06").unwrap(), None);
    assert_eq!(content.rehash(&digest, "aa06").await.unwrap(), None);
}

#[test]
fn ids_are_no_paths() {
    let (_directory, content) = content();
    for id in ["", "..", "a/b", "../x", "a.b"] {
        assert!(matches!(content.begin(id), Err(ContentError::UnknownUpload)), "{id}");
    }
}

#[tokio::test]
async fn a_part_starts_where_the_upload_ends() {
    let (_directory, content) = content();
    content.begin("aa07").unwrap();
    content.append("aa07", Some(0), body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
    for start in [0, 4, 6] {
        let refused = content.append("aa07", Some(start), body(&[b"x"]), Algorithm::Sha256, 100).await.unwrap_err();
        assert!(matches!(refused, ContentError::OutOfOrder { uploaded: 5 }), "{start}");
    }
    assert_eq!(content.append("aa07", Some(5), body(&[b"!"]), Algorithm::Sha256, 100).await.unwrap(), 6);
}

/// A body that goes on as long as somebody sends.
fn open_body() -> (mpsc::Sender<Bytes>, impl Stream<Item = Result<Bytes, Infallible>> + Send) {
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    let next =
        |mut receiver: mpsc::Receiver<Bytes>| async move { receiver.recv().await.map(|part| (Ok(part), receiver)) };
    (sender, stream::unfold(receiver, next))
}

/// Waits until nothing writes to the upload any more.
async fn idle(content: &Content, id: &str) {
    while content.shared.lock().busy.contains(id) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_goes_away_is_taken_back() {
    let (_directory, content) = content();
    content.begin("aa08").unwrap();
    content.append("aa08", None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
    let (sender, parts) = open_body();
    let other = content.clone();
    let running = tokio::spawn(async move { other.append("aa08", None, parts, Algorithm::Sha256, 100).await });
    sender.send(Bytes::from_static(b" world")).await.unwrap();
    while content.uploaded("aa08").unwrap() == 5 {
        tokio::task::yield_now().await;
    }
    running.abort();
    idle(&content, "aa08").await;
    assert_eq!(content.uploaded("aa08").unwrap(), 5);
    assert_eq!(content.finish("aa08", &Digest::of(Algorithm::Sha256, b"hello")).await.unwrap(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_nobody_waits_for_lets_nobody_write() {
    let (directory, content) = content();
    let data = vec![7; 8 << 20];
    let digest = Digest::of(Algorithm::Sha512, &data);
    content.begin("aa09").unwrap();
    content.append("aa09", None, body(&[&data]), Algorithm::Sha256, 1 << 30).await.unwrap();
    let (other, named) = (content.clone(), digest.clone());
    // It has to read all of it, since another algorithm was expected.
    let running = tokio::spawn(async move { other.finish("aa09", &named).await });
    while !content.shared.lock().busy.contains("aa09") {
        tokio::task::yield_now().await;
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let refused = content.append("aa09", None, body(&[b"x"]), Algorithm::Sha256, 1 << 30).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    idle(&content, "aa09").await;
    let refused = content.append("aa09", None, body(&[b"x"]), Algorithm::Sha256, 1 << 30).await.unwrap_err();
    assert!(matches!(refused, ContentError::UnknownUpload));
    let other = Content::open(directory.path()).unwrap();
    assert_eq!(other.rehash(&digest, "aa09").await.unwrap(), Some(digest));
}

#[tokio::test]
async fn what_cannot_be_opened_stays_as_it_is() {
    let (_directory, content) = content();
    content.begin("aa0a").unwrap();
    content.append("aa0a", None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
    let locked = File::open(content.shared.upload("aa0a")).unwrap();
    locked.lock().unwrap();
    let refused = content.append("aa0a", None, body(&[b"x"]), Algorithm::Sha256, 100).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    drop(locked);
    assert_eq!(content.append("aa0a", Some(5), body(&[b"!"]), Algorithm::Sha256, 100).await.unwrap(), 6);
    assert_eq!(content.uploads().await.unwrap(), ["aa0a"]);
}

#[tokio::test]
async fn two_uploads_of_one_digest_share_no_file() {
    let (_directory, content) = content();
    let digest = Digest::of(Algorithm::Sha256, b"hello");
    for id in ["bb01", "bb02"] {
        content.begin(id).unwrap();
        content.append(id, None, body(&[b"hello"]), Algorithm::Sha256, 100).await.unwrap();
        content.finish(id, &digest).await.unwrap();
    }
    assert_eq!(copies(&content).await.len(), 2);
    assert!(content.delete(&digest, "bb01").unwrap());
    assert_eq!(whole(&content, &digest, "bb02").await, b"hello");
    assert!(content.read(&digest, "").unwrap().is_none());
}
