use std::io;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256, SHA512};
use bowline_authn::crypto::{KeyEncryptionKey, random_bytes};
use bowline_content::{Algorithm, Content, Digest};
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Micros, hex};
use bowline_registry::content::garbage::{self, BlobRow};
use bowline_store::{Db, DiskProbe, ErrorKind, MIGRATIONS, Room, SqliteOptions};
use bytes::Bytes;
use futures_util::stream::{BoxStream, iter, unfold};
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::io::AsyncReadExt as _;

use super::archive::{Archive, blob_name};
use super::sealed::Recipient;
use super::{FORMAT, MANIFEST_CONTEXT, Manifest, Scratch};
use crate::error::StartError;
use crate::garbage::{digest, refused};
use crate::transfer::transfer_rows;

/// How often the database is read again because a blob that it names was collected meanwhile.
const ATTEMPTS: u32 = 3;
/// Bytes that a copy of the database leaves free on its disk, about.
const RESERVE: u64 = 64 << 20;
/// Blobs that are written at once.
const AT_ONCE: usize = 4;
/// Bytes of a file that are read at once.
const PART: usize = 256 << 10;

/// What is backed up, and to where.
#[derive(Clone)]
pub(crate) struct Source<'a> {
    pub(crate) db: &'a Db,
    pub(crate) content: &'a Content,
    pub(crate) key: &'a KeyEncryptionKey,
    pub(crate) archive: &'a Archive,
    pub(crate) recipient: &'a Recipient,
    /// Has room for a copy of the database.
    pub(crate) work: &'a Path,
    pub(crate) now: Micros,
}

/// A backup that is done.
#[derive(Clone, Debug)]
pub(crate) struct Created {
    pub(crate) manifest: Manifest,
    /// Blobs that no backup had yet, and their bytes.
    pub(crate) new_blobs: u64,
    pub(crate) new_bytes: u64,
}

/// Makes a backup while the server may run. `told` is called with the current step.
///
/// # Errors
/// A blob is missing, or the database, the disk or the archive refuses.
pub(crate) async fn create(source: &Source<'_>, mut progress: impl FnMut(&str)) -> Result<Created, StartError> {
    for attempt in 1.. {
        let scratch = Scratch::below(source.work)?;
        let file = scratch.join("database");
        // The disk may be the server's: it keeps some room.
        let room = Arc::new(Room::new(&scratch.join(""), RESERVE, DiskProbe::default()));
        let options = SqliteOptions { room: Some(room.clone()), ..SqliteOptions::default() };
        let copy = Db::open_sqlite(&file, options).await?;
        copy.begin_filling(MIGRATIONS).await.map_err(|error| without_room(error.into(), source.work))?;
        let mut snapshot = source.db.snapshot().await?;
        let rows = transfer_rows(&mut snapshot, &copy, |table, rows| {
            room.look();
            progress(&format!("{rows} rows, {table}"));
        });
        let rows = rows.await.map_err(|error| without_room(error, source.work))?;
        drop(snapshot);
        copy.end_filling().await.map_err(|error| without_room(error.into(), source.work))?;
        match write_blobs(source, &copy, &mut progress).await? {
            Written::All(blobs) => {
                copy.close().await;
                return finish(source, &file, rows, blobs).await;
            }
            Written::Missing(digest) if attempt >= ATTEMPTS => {
                return Err(StartError::Unusable {
                    cause: format!("the blob {digest}, which an image needs, is missing"),
                    hint: "see what is wrong with: bowline registry verify; push the image again, or delete it".into(),
                });
            }
            // It may have been collected since the database was read, which then does not name it any more.
            Written::Missing(_) => copy.close().await,
        }
    }
    Err(StartError::Defect("attempts have an end".into()))
}

#[derive(Default)]
struct Blobs {
    digests: Vec<String>,
    bytes: u64,
    new: u64,
    new_bytes: u64,
    /// Rows that went from the copy.
    collected: u64,
}

enum Written {
    All(Blobs),
    /// A blob that an image needs has no bytes.
    Missing(String),
}

/// What became of one blob.
enum One {
    Known,
    New,
    /// No image needs it, and it was collected meanwhile.
    Collected,
    Missing,
}

async fn write_blobs(source: &Source<'_>, copy: &Db, progress: &mut impl FnMut(&str)) -> Result<Written, StartError> {
    let mut blobs = Blobs::default();
    let mut after = String::new();
    loop {
        let page = garbage::blobs(copy, &after).await?;
        let Some(last) = page.last() else { return Ok(Written::All(blobs)) };
        after.clone_from(&last.digest);
        let mut running = iter(page)
            .map(|row| async move { write_blob(source, &row).await.map(|outcome| (row, outcome)) })
            .buffered(AT_ONCE)
            .boxed_local();
        while let Some((row, outcome)) = running.try_next().await? {
            match outcome {
                One::Missing => return Ok(Written::Missing(row.digest)),
                One::Collected => {
                    // Its row goes from the copy as it went from the database: a restore would look for its bytes.
                    blobs.collected += garbage::drop_blobs(copy, &[row]).await?.len() as u64;
                    continue;
                }
                One::New => {
                    blobs.new += 1;
                    blobs.new_bytes += row.size;
                }
                One::Known => {}
            }
            blobs.bytes += row.size;
            blobs.digests.push(row.digest);
            progress(&format!("{} blobs, {} new, {} bytes", blobs.digests.len(), blobs.new, blobs.new_bytes));
        }
    }
}

async fn write_blob(source: &Source<'_>, row: &BlobRow) -> Result<One, StartError> {
    let name = blob_name(&row.digest);
    if source.archive.has(&name, row.size).await? {
        return Ok(One::Known);
    }
    let expected = digest(&row.digest)?;
    let mut reader = source.content.read(&expected, &row.upload).await.map_err(refused)?;
    if reader.is_none()
        && let Some(now) = garbage::blob(source.db, &row.digest).await?
    {
        // Another push brought its bytes again.
        reader = source.content.read(&expected, &now.upload).await.map_err(refused)?;
    }
    match reader {
        Some(reader) => {
            let size = reader.size();
            source.archive.write(source.recipient, &name, checked(reader.stream(0, size), expected)).await?;
            Ok(One::New)
        }
        None if row.is_linked => Ok(One::Missing),
        None => Ok(One::Collected),
    }
}

/// The stream, which fails at its end if its bytes have another digest: a damaged blob is found now, and not when the backup
/// is needed.
fn checked(bytes: BoxStream<'static, io::Result<Bytes>>, expected: Digest) -> BoxStream<'static, io::Result<Bytes>> {
    let algorithm = match expected.algorithm() {
        Algorithm::Sha256 => &SHA256,
        Algorithm::Sha512 => &SHA512,
    };
    unfold(Some((bytes, Context::new(algorithm), expected)), |state| async move {
        let (mut bytes, mut context, expected) = state?;
        match bytes.next().await {
            Some(Ok(part)) => {
                context.update(&part);
                Some((Ok(part), Some((bytes, context, expected))))
            }
            Some(Err(error)) => Some((Err(error), None)),
            None if hex(context.finish().as_ref()) == *expected.hex() => None,
            None => Some((Err(io::Error::new(io::ErrorKind::InvalidData, "its bytes have another digest")), None)),
        }
    })
    .boxed()
}

fn without_room(error: StartError, work: &Path) -> StartError {
    match error {
        StartError::Storage(error) if error.kind() == ErrorKind::Full => StartError::Unusable {
            cause: format!("{} has no room for a copy of the database", work.display()),
            hint: "free some, or name another directory with --work-dir".into(),
        },
        error => error,
    }
}

/// Writes the database, the list of blobs, and last what makes a backup of them.
async fn finish(source: &Source<'_>, file: &Path, rows: u64, blobs: Blobs) -> Result<Created, StartError> {
    let name = name(source.now);
    let (sha256, bytes) = hash(file).await.map_err(|error| StartError::File { path: file.into(), source: error })?;
    let database = format!("backups/{name}/database");
    source.archive.write(source.recipient, &database, read_file(file).await?).await?;
    let digests = blobs.digests.join("\n");
    source.archive.write_text(&format!("backups/{name}/blobs"), digests).await?;
    let manifest = Manifest {
        format: FORMAT,
        name: name.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        at: time(source.now),
        rows: rows - blobs.collected,
        blobs: blobs.digests.len() as u64,
        blob_bytes: blobs.bytes,
        database_sha256: sha256,
        database_bytes: bytes,
    };
    let json = serde_json::to_vec(&manifest).map_err(|error| StartError::Defect(error.to_string()))?;
    let sealed = Bytes::from(source.key.seal(MANIFEST_CONTEXT, &json));
    source.archive.write(source.recipient, &format!("backups/{name}/manifest"), iter([Ok(sealed)]).boxed()).await?;
    Ok(Created { manifest, new_blobs: blobs.new, new_bytes: blobs.new_bytes })
}

/// A name that sorts by time and no other backup has.
fn name(now: Micros) -> String {
    let suffix: String = hex(&random_bytes::<3>());
    format!("{}-{suffix}", time(now).replace(':', ""))
}

fn time(now: Micros) -> String {
    rfc3339::text(now - now.rem_euclid(1_000_000), Digits::SixOrNone)
}

/// Hexadecimal SHA-256 of a file, and its bytes.
pub(super) async fn hash(file: &Path) -> io::Result<(String, u64)> {
    let (mut context, mut bytes) = (Context::new(&SHA256), 0);
    let mut parts = parts(tokio::fs::File::open(file).await?);
    while let Some(part) = parts.try_next().await? {
        context.update(&part);
        bytes += part.len() as u64;
    }
    Ok((hex(context.finish().as_ref()), bytes))
}

async fn read_file(file: &Path) -> Result<BoxStream<'static, io::Result<Bytes>>, StartError> {
    let opened = tokio::fs::File::open(file).await;
    opened.map(parts).map_err(|error| StartError::File { path: file.into(), source: error })
}

fn parts(file: tokio::fs::File) -> BoxStream<'static, io::Result<Bytes>> {
    unfold(Some(file), |file| async move {
        let mut file = file?;
        let mut part = vec![0; PART];
        match file.read(&mut part).await {
            Ok(0) => None,
            Ok(read) => {
                part.truncate(read);
                Some((Ok(Bytes::from(part)), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}
