use std::io;

use bowline_authn::crypto::random_bytes;
use bowline_content::{Content, ContentError, Digest};
use bowline_core::hex;
use bowline_registry::content::garbage::{self, BlobRow};
use bowline_store::{BoxFuture, Db};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};

use crate::error::StartError;
use crate::garbage::{digest, refused};

/// Blobs that are copied at once.
const AT_ONCE: usize = 8;

/// Where the bytes of blobs are read.
pub(crate) trait BlobSource: Sync {
    /// The bytes of a blob; absent if they are not there.
    fn open<'a>(&'a self, row: &'a BlobRow, digest: &'a Digest)
    -> BoxFuture<'a, Result<Option<BlobBytes>, StartError>>;

    /// What a person finds the blob by.
    fn shown(&self, row: &BlobRow, digest: &Digest) -> String;

    /// What to do about a blob that is missing or damaged.
    fn remedy(&self) -> &'static str;
}

/// Bytes as they are read.
pub(crate) type BlobBytes = BoxStream<'static, io::Result<Bytes>>;

impl BlobSource for Content {
    fn open<'a>(
        &'a self,
        row: &'a BlobRow,
        digest: &'a Digest,
    ) -> BoxFuture<'a, Result<Option<BlobBytes>, StartError>> {
        Box::pin(async move {
            let reader = self.read(digest, &row.upload).await.map_err(refused)?;
            Ok(reader.map(|reader| {
                let size = reader.size();
                reader.stream(0, size)
            }))
        })
    }

    fn shown(&self, row: &BlobRow, digest: &Digest) -> String {
        Content::shown(self, digest, &row.upload)
    }

    fn remedy(&self) -> &'static str {
        "see what is wrong with: bowline registry verify; push the image again, or delete it, and run the command again, \
         which goes on; or leave such blobs out with --skip-bad-blobs"
    }
}

/// What was done for blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transferred {
    pub(crate) blobs: u64,
    pub(crate) bytes: u64,
    /// What is wrong with those that were left out, a line each.
    pub(crate) bad: Vec<String>,
}

/// What becomes of a blob that is missing or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadBlobs {
    /// It ends the work.
    Stop,
    /// The others go on; it is named.
    Skip,
}

/// Copies the bytes of every blob of a database that are in `from` and not yet in `to`, and stores their new
/// locations. Their digests are compared on the way. `told` is called with the number of blobs so far.
///
/// # Errors
/// A blob is missing or damaged, if that is to end the work, or either side refuses.
pub(crate) async fn transfer_blobs(
    (source, from): (&Db, &dyn BlobSource),
    (target, to): (&Db, &Content),
    bad_blobs: BadBlobs,
    mut progress: impl FnMut(&Transferred),
) -> Result<Transferred, StartError> {
    let mut done = Transferred::default();
    let mut after = String::new();
    loop {
        let page = garbage::blobs(source, &after).await?;
        let Some(last) = page.last() else { return Ok(done) };
        after.clone_from(&last.digest);
        let mut running =
            stream::iter(page).map(|row| transfer_one(row, from, (target, to))).buffer_unordered(AT_ONCE).boxed_local();
        while let Some(outcome) = running.try_next().await? {
            match outcome {
                Ok(bytes) => {
                    done.blobs += 1;
                    done.bytes += bytes;
                }
                Err(bad) if bad_blobs == BadBlobs::Stop => return Err(bad),
                Err(bad) => done.bad.push(bad.to_string()),
            }
            progress(&done);
        }
    }
}

/// Copies a blob unless it is there: its size, or what is wrong with it.
///
/// # Errors
/// Either side refuses.
async fn transfer_one(
    row: BlobRow,
    from: &dyn BlobSource,
    (target, to): (&Db, &Content),
) -> Result<Result<u64, StartError>, StartError> {
    let expected = digest(&row.digest)?;
    let Some(known) = garbage::blob(target, &row.digest).await? else {
        return Err(StartError::Defect(format!("the row of the blob {} was not copied", row.digest)));
    };
    let there = to.size(&expected, &known.upload).await.map_err(|error| unwritten(&row.digest, &error))?;
    if there == Some(row.size) {
        return Ok(Ok(row.size));
    }
    let bad = |cause: &dyn std::fmt::Display| StartError::Unusable {
        cause: format!("the blob {} cannot be copied from {}: {cause}", row.digest, from.shown(&row, &expected)),
        hint: from.remedy().into(),
    };
    let Some(bytes) = from.open(&row, &expected).await? else { return Ok(Err(bad(&"it is not there"))) };
    let upload = match write(to, &expected, bytes, row.size).await {
        Ok(upload) => upload,
        Err(error @ (ContentError::Mismatch { .. } | ContentError::Interrupted | ContentError::TooLarge(_))) => {
            return Ok(Err(bad(&error)));
        }
        Err(error) => return Err(unwritten(&row.digest, &error)),
    };
    garbage::set_upload(target, &row.digest, &upload).await?;
    Ok(Ok(row.size))
}

/// Writes a blob; what brought its bytes.
async fn write(to: &Content, expected: &Digest, bytes: BlobBytes, size: u64) -> Result<String, ContentError> {
    let id: String = hex(&random_bytes::<16>());
    to.begin(&id)?;
    to.append(&id, Some(0), bytes, expected.algorithm(), size).await?;
    Ok(to.finish(&id, expected).await?.upload)
}

fn unwritten(digest: &str, cause: &ContentError) -> StartError {
    StartError::Unusable {
        cause: format!("the blob {digest} cannot be written to the target: {cause}"),
        hint: "see to the disk or the bucket of the target, and run the command again, which goes on".into(),
    }
}
