use std::convert::Infallible;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;

use super::*;
use crate::content::tests::Kept;
use crate::digest::Algorithm;

const SIZE: usize = 300_000;

fn bytes_of_a_blob() -> Vec<u8> {
    (0..SIZE).map(|at| (at % 251) as u8).collect()
}

/// An upload that grows by what the test sends.
struct Growth {
    tail: Tail,
    sender: mpsc::Sender<Result<Bytes, &'static str>>,
    writer: tokio::task::JoinHandle<Result<u64, ContentError>>,
}

fn begin(content: &Content, id: &'static str, digest: &Digest) -> Growth {
    content.begin(id).unwrap();
    let tail = content.tail(id, digest).unwrap();
    let (sender, receiver) = mpsc::channel(4);
    let body = futures_util::stream::unfold(receiver, async |mut receiver: mpsc::Receiver<_>| {
        receiver.recv().await.map(|part| (part, receiver))
    });
    let (content, followed) = (content.clone(), tail.clone());
    let writer = tokio::spawn(async move { content.append_followed(id, body, SIZE as u64, &followed).await });
    Growth { tail, sender, writer }
}

async fn read(stream: &mut BoxStream<'static, Result<Bytes, Error>>, wanted: usize) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < wanted {
        let part = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.expect("bytes arrive");
        read.extend_from_slice(&part.expect("a part").expect("no error"));
    }
    read
}

#[tokio::test]
async fn readers_get_what_has_arrived_and_the_end_once_it_is_verified() {
    for kept in Kept::places() {
        let (content, blob) = (kept.open(), bytes_of_a_blob());
        let digest = Digest::of(Algorithm::Sha256, &blob);
        let Growth { tail, sender, writer } = begin(&content, "aa01", &digest);
        let mut whole = tail.follower().stream(0, SIZE as u64);
        let mut part = tail.follower().stream(1000, 100);
        sender.send(Ok(Bytes::copy_from_slice(&blob[..100_000]))).await.unwrap();
        assert_eq!(read(&mut whole, 100_000).await, &blob[..100_000]);
        sender.send(Ok(Bytes::copy_from_slice(&blob[100_000..]))).await.unwrap();
        drop(sender);
        assert_eq!(writer.await.unwrap().unwrap(), SIZE as u64);
        let held = SIZE - HELD_BACK as usize;
        assert_eq!(read(&mut whole, held - 100_000).await, &blob[100_000..held]);
        assert!(whole.next().now_or_never().is_none() && part.next().now_or_never().is_none(), "the end waits");
        let stored = content.finish("aa01", &digest).await.unwrap();
        tail.finish(&stored.upload);
        assert_eq!(read(&mut whole, HELD_BACK as usize).await, &blob[held..]);
        assert_eq!(read(&mut part, 100).await, &blob[1000..1100]);
        assert!(whole.next().await.is_none() && part.next().await.is_none());
        // A reader that begins late reads what is stored.
        assert_eq!(read(&mut tail.follower().stream(7, 50), 50).await, &blob[7..57]);
    }
}

#[tokio::test]
async fn readers_of_an_early_tail_have_the_end_once_the_digest_is_right() {
    for kept in Kept::places() {
        let (content, blob) = (kept.open(), bytes_of_a_blob());
        let (size, right) = (SIZE as u64, Digest::of(Algorithm::Sha256, &blob));
        for (id, digest, size, is_right) in [
            ("aa07", right.clone(), None, true),
            ("aa08", right.clone(), Some(size), true),
            ("aa09", Digest::of(Algorithm::Sha256, b"others"), Some(size), false),
            ("aa0a", right.clone(), Some(size + 1), false),
        ] {
            content.begin(id).unwrap();
            let tail = content.tail(id, &digest).unwrap().early(size);
            let (whole, verified) = (tail.follower().stream(0, SIZE as u64), tail.follower().verified());
            let parts = blob.chunks(70_000).map(|part| Ok::<_, Infallible>(Bytes::copy_from_slice(part)));
            let body = futures_util::stream::iter(parts.collect::<Vec<_>>());
            content.append_followed(id, body, SIZE as u64, &tail).await.unwrap();
            // Also what cannot be kept.
            content.cancel(id).unwrap();
            tail.fail();
            let read = async { (verified.await, whole.collect::<Vec<_>>().await) };
            let (verified, parts) = tokio::time::timeout(Duration::from_secs(20), read).await.expect("readers end");
            assert_eq!(verified, is_right, "{id}");
            let sent: Vec<u8> = parts.iter().flatten().flat_map(|part| part.to_vec()).collect();
            assert_eq!(parts.iter().all(Result::is_ok), is_right, "{id}");
            assert!(if is_right { sent == blob } else { sent.len() <= SIZE - HELD_BACK as usize }, "{id}");
        }
    }
}

#[tokio::test]
async fn no_reader_completes_when_an_upload_fails() {
    for kept in Kept::places() {
        let (content, blob) = (kept.open(), bytes_of_a_blob());
        let digest = Digest::of(Algorithm::Sha256, &blob);
        for how in ["it breaks off", "it is too long", "all writers are gone"] {
            let id = match how {
                "it breaks off" => "aa02",
                "it is too long" => "aa03",
                _ => "aa04",
            };
            let Growth { tail, sender, writer } = begin(&content, id, &digest);
            let mut reader = tail.follower().stream(0, SIZE as u64);
            sender.send(Ok(Bytes::copy_from_slice(&blob[..100_000]))).await.unwrap();
            read(&mut reader, 100_000).await;
            match how {
                "it breaks off" => sender.send(Err("broken")).await.unwrap(),
                "it is too long" => sender.send(Ok(Bytes::from(blob.clone()))).await.unwrap(),
                _ => {}
            }
            drop(sender);
            let written = writer.await.unwrap();
            assert_eq!(written.is_ok(), how == "all writers are gone", "{how}: {written:?}");
            drop(tail);
            let rest: Vec<_> = reader.collect().await;
            assert!(rest.last().is_some_and(Result::is_err), "{how}");
            let sent: usize = rest.iter().flatten().map(Bytes::len).sum();
            assert!(100_000 + sent <= SIZE - HELD_BACK as usize, "{how}");
        }
    }
}

#[tokio::test]
async fn a_reader_that_falls_behind_the_window_reads_what_is_stored() {
    let [_, kept] = Kept::places();
    let content = kept.open();
    let blob: Vec<u8> = (0..3 * WINDOW).map(|at| (at % 241) as u8).collect();
    let digest = Digest::of(Algorithm::Sha256, &blob);
    content.begin("aa05").unwrap();
    let tail = content.tail("aa05", &digest).unwrap();
    let slow = tail.follower().stream(0, blob.len() as u64);
    let parts: Vec<_> = blob.chunks(1 << 20).map(|part| Ok::<_, Infallible>(Bytes::copy_from_slice(part))).collect();
    let body = futures_util::stream::iter(parts);
    content.append_followed("aa05", body, blob.len() as u64, &tail).await.unwrap();
    let TailBytes::Window(window) = &*tail.bytes else { panic!("an object store has a window") };
    assert!(window.lock().unwrap().size <= WINDOW, "memory is bounded");
    let stored = content.finish("aa05", &digest).await.unwrap();
    tail.finish(&stored.upload);
    let read: Vec<_> = slow.map(|part| part.unwrap().to_vec()).collect::<Vec<_>>().await.concat();
    assert!(read == blob, "every byte, in order");
}

#[tokio::test]
async fn another_process_follows_the_file_until_it_is_removed() {
    let (kept, content) = Kept::directory();
    let (other, blob) = (kept.open(), bytes_of_a_blob());
    let digest = Digest::of(Algorithm::Sha256, &blob);
    assert!(other.tail_elsewhere("aa06", &digest).unwrap().is_none());
    assert!(other.tail_elsewhere("../owner", &digest).unwrap().is_none(), "ids only");
    let Growth { sender, writer, .. } = begin(&content, "aa06", &digest);
    sender.send(Ok(Bytes::copy_from_slice(&blob[..100_000]))).await.unwrap();
    let tail = other.tail_elsewhere("aa06", &digest).unwrap().unwrap();
    while tail.measure().unwrap() != Some(100_000) {
        tokio::task::yield_now().await;
    }
    let mut reader = tail.follower().stream(0, SIZE as u64);
    assert_eq!(read(&mut reader, 100_000).await, &blob[..100_000]);
    sender.send(Ok(Bytes::copy_from_slice(&blob[100_000..]))).await.unwrap();
    drop(sender);
    writer.await.unwrap().unwrap();
    let stored = content.finish("aa06", &digest).await.unwrap();
    assert_eq!(tail.measure().unwrap(), Some(SIZE as u64), "a blob that was moved to its place is still there");
    tail.finish(&stored.upload);
    assert_eq!(read(&mut reader, SIZE - 100_000).await, &blob[100_000..]);
    content.delete(&digest, &stored.upload).await.unwrap();
    assert_eq!(tail.measure().unwrap(), None);
}
