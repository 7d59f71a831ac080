//! Where the bytes of blobs lie.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bowline_authn::crypto::random_bytes;
use bowline_content::{Content, ContentError, FullCheck};
use bowline_core::{Error, hex};
use bowline_registry::attached::BlobBytes;
use bowline_store::{BoxFuture, Db};
use futures_util::StreamExt as _;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};
use url::Url;

use crate::error::StartError;
use crate::facts;
use crate::garbage::refused;
use crate::options::Options;
use crate::storage::create_private_directory;

/// How long a request to the object store may take, and how long it is tried: clients wait meanwhile.
const REQUEST_TIME: &str = "60s";
const CONNECT_TIME: &str = "5s";
const RETRY_TIME: Duration = Duration::from_secs(10);
const RETRIES: usize = 4;

/// Where the bytes of blobs lie, which are those of one database: to another they would all be garbage.
///
/// # Errors
/// The storage cannot be created or written, or has the blobs of another database.
pub(crate) async fn content(options: &Options, db: &Db) -> Result<Content, StartError> {
    let own = facts::get_or_insert(db, "blobs_owner", hex(&random_bytes::<16>())).await?;
    content_of_owner(options, db, &own).await
}

/// The same for a database whose name as an owner is known.
///
/// # Errors
/// As [`content`].
pub(crate) async fn content_of_owner(options: &Options, db: &Db, own: &str) -> Result<Content, StartError> {
    let (content, location) = match &options.blob_url {
        Some(url) => in_bucket(url)?,
        None => in_directory(&options.data_dir(), db)?,
    };
    let owner = content.owner(own, &hex(&random_bytes::<8>())).await.map_err(|error| closed(&location, &error))?;
    if owner != own {
        return Err(StartError::Option(format!(
            "{location} has the blobs of another database: name another place with --data-dir or --blob-url; if this \
             database takes that one's place, and its blobs may go, remove {location}/owner"
        )));
    }
    Ok(content)
}

fn closed(location: &str, error: &ContentError) -> StartError {
    let what_to_do = match error {
        ContentError::Objects(_) => {
            "see to the bucket, to what the AWS_* variables name and permit, and that AWS_ALLOW_HTTP is true for an http:// endpoint"
        }
        _ => "make it writable",
    };
    StartError::Option(format!("blobs cannot be kept in {location}: {error}; {what_to_do}"))
}

fn in_directory(data_dir: &Path, db: &Db) -> Result<(Content, String), StartError> {
    create_private_directory(data_dir)?;
    let directory = data_dir.join("blobs");
    let location = directory.display().to_string();
    let database = db.clone();
    let is_full = FullCheck::new(move || database.is_full());
    let content = Content::open(&directory, is_full).map_err(|error| closed(&location, &error))?;
    Ok((content, location))
}

fn in_bucket(url: &str) -> Result<(Content, String), StartError> {
    let (store, prefix, location) = bucket("--blob-url", url)?;
    let content = Content::in_objects(store, &prefix, || hex(&random_bytes::<8>()));
    Ok((content.map_err(|error| closed(&location, &error))?, location))
}

/// A bucket of what speaks S3, the prefix in it, and how both are shown. Region, endpoint and credentials come from the variables that every tool for it reads.
pub(crate) fn bucket(named: &str, url: &str) -> Result<(Arc<dyn ObjectStore>, String, String), StartError> {
    let (bucket, prefix) = bucket_of(named, url)?;
    // The one provider of cryptography; a client may have installed it already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let location = format!("s3://{bucket}/{prefix}").trim_end_matches('/').to_owned();
    let retry = RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES, retry_timeout: RETRY_TIME };
    let store = AmazonS3Builder::from_env()
        .with_bucket_name(&bucket)
        .with_retry(retry)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), REQUEST_TIME)
        .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ConnectTimeout), CONNECT_TIME);
    let failed = |error| closed(&location, &ContentError::Objects(error));
    Ok((Arc::new(store.build().map_err(failed)?), prefix, location))
}

/// Bucket and prefix of the value of that name, which may hold what is secret, and is not repeated.
pub(crate) fn bucket_of(named: &str, url: &str) -> Result<(String, String), StartError> {
    let wrong =
        |what: &str| StartError::Option(format!("{named} {what}: write s3://<bucket> or s3://<bucket>/<prefix>"));
    let url = Url::parse(url).map_err(|_| wrong("is no URL"))?;
    if url.scheme() != "s3" {
        return Err(wrong("does not begin with s3://"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.port().is_some() {
        return Err(wrong("has more than a bucket; credentials and endpoint are read from AWS_* variables"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has more than a bucket and a prefix"));
    }
    let bucket = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("names no bucket"))?;
    Ok((bucket.to_owned(), url.path().trim_matches('/').to_owned()))
}

/// Reads small blobs from the registry's storage, for methods of the API about attached documents.
pub(crate) struct Blobs(pub(crate) Content);

impl BlobBytes for Blobs {
    fn read<'a>(
        &'a self,
        digest: &'a str,
        upload: &'a str,
        most: u64,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, Error>> {
        Box::pin(async move {
            let digest = crate::garbage::digest(digest)?;
            let Some(reader) = self.0.read(&digest, upload).await.map_err(refused)? else { return Ok(None) };
            if reader.size() > most {
                return Ok(None);
            }
            Ok(Some(whole(reader).await?))
        })
    }
}

async fn whole(reader: bowline_content::Reader) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(reader.size() as usize);
    let size = reader.size();
    let mut parts = reader.stream(0, size);
    while let Some(part) = parts.next().await {
        bytes.extend_from_slice(&part.map_err(Error::unavailable)?);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::bucket_of;

    #[test]
    fn a_bucket_and_a_prefix_and_nothing_else() {
        for (url, bucket, prefix) in
            [("s3://blobs", "blobs", ""), ("s3://blobs/", "blobs", ""), ("s3://blobs/a/b/", "blobs", "a/b")]
        {
            assert_eq!(bucket_of("--blob-url", url).unwrap(), (bucket.to_owned(), prefix.to_owned()));
        }
        for url in ["blobs", "gs://blobs", "s3://", "s3://key:secret@blobs", "s3://blobs:9000", "s3://blobs?secret=1"] {
            let refused = bucket_of("--blob-url", url).unwrap_err().to_string();
            assert!(refused.contains("s3://<bucket>") && !refused.contains("secret"), "{refused}");
        }
    }
}
