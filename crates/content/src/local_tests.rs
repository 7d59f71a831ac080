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

async fn whole(content: &Content, digest: &Digest) -> Vec<u8> {
    let reader = content.read(digest).unwrap().unwrap();
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
        assert!(content.read(&digest).unwrap().is_none());
        assert_eq!(content.append("aa01", None, body(&[b" world"]), algorithm, 100).await.unwrap(), 11);
        assert_eq!(content.finish("aa01", &digest).await.unwrap(), 11);
        assert_eq!(whole(&content, &digest).await, b"hello world");
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
    assert!(content.read(&digest).unwrap().is_none());
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
    let (_directory, content) = content();
    content.begin("aa05").unwrap();
    let (sender, receiver) = mpsc::channel::<Result<Bytes, Infallible>>(1);
    let slow =
        stream::unfold(receiver, |mut receiver| async move { receiver.recv().await.map(|part| (part, receiver)) });
    let other = content.clone();
    let running = tokio::spawn(async move { other.append("aa05", None, slow, Algorithm::Sha256, 100).await });
    sender.send(Ok(Bytes::from_static(b"x"))).await.unwrap();
    tokio::task::yield_now().await;
    let refused = content.append("aa05", None, body(&[b"y"]), Algorithm::Sha256, 100).await.unwrap_err();
    assert!(matches!(refused, ContentError::Busy));
    assert!(matches!(content.cancel("aa05"), Err(ContentError::Busy)));
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
    assert_eq!(whole(&content, &digest).await, data);
    let reader = content.read(&digest).unwrap().unwrap();
    assert_eq!(reader.read_small(599_990, 10).unwrap(), data[599_990..]);
    assert!(reader.read_small(599_990, 11).is_err());
    let chunks: Vec<_> = reader.stream(1, 300_000).collect().await;
    let part: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.unwrap().to_vec()).collect();
    assert_eq!(part, data[1..300_001]);
    let mut stored = Vec::new();
    content.for_each(|digest| stored.push(digest)).unwrap();
    assert_eq!(stored, std::slice::from_ref(&digest));
    assert_eq!(content.rehash(&digest).await.unwrap(), Some(digest.clone()));
    assert!(content.delete(&digest).unwrap());
    assert!(!content.delete(&digest).unwrap());
    assert_eq!(content.rehash(&digest).await.unwrap(), None);
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
