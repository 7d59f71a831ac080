//! Fetches a file from an upstream, and stores it while clients follow.

use std::io::{Read, Seek};

use axum::http::{HeaderMap, StatusCode, header};
use bowline_authn::crypto::random_bytes;
use bowline_authn::guarded::{FetchError, Opened};
use bowline_content::{Algorithm, ContentError, Digest, Stored, Tail};
use bowline_core::{Error, hex};
use bowline_libraries::Language;
use bowline_libraries::hosting::{Checksums, FetchedFacts, MissingFile, OpenUpload};
use bowline_packages::{CARGO_ARCHIVE, Refusal};
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _, stream};
use tokio::sync::Mutex;
use url::Url;

use crate::PackageHosts;
use crate::answers::Refused;
use crate::checksums::{Hasher, hashed};
use crate::file_fetches::Fetch;
use crate::storing::{FILE, Growth, blob};

/// Bytes of core metadata that are read; of longer ones, nothing is known.
const METADATA: u64 = 1 << 20;

impl PackageHosts {
    /// Fetches a file, which others follow through `fetch`, and keeps it.
    pub(crate) async fn fetched(&self, fetch: &Fetch) -> Result<(), Problem> {
        let wanted = &fetch.file;
        match wanted.language {
            Language::Java | Language::Go => return self.fetched_whole(wanted).await,
            Language::Python | Language::JavaScript | Language::Cargo | Language::Generic => {}
        }
        let id = hex(&random_bytes::<16>());
        // The row is written while the upstream is asked: it would be waited for otherwise between the response and its first byte.
        let (response, begun) = tokio::join!(self.announced(wanted), self.hosting.begin_fetching(wanted, &id));
        let mut upload = begun?;
        let kept = match response {
            Ok((opened, size)) => self.stored(fetch, &mut upload, (&id, size), opened).await,
            Err(problem) => Err(problem),
        };
        if kept.is_err() {
            self.abandon(&id).await;
        }
        kept
    }

    /// The response with a file, and the length that the index or else the upstream says.
    async fn announced(&self, wanted: &MissingFile) -> Result<(Opened, Option<u64>), Problem> {
        let url = Url::parse(&wanted.url).map_err(|_| FetchError::InvalidUrl)?;
        let (opened, _) = self.fetching.client.get(&wanted.upstream, &url, &HeaderMap::new()).await?;
        if opened.status() != StatusCode::OK {
            return Err(FetchError::Status(opened.status().as_u16()).into());
        }
        let length = opened.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let length: Option<u64> = length.and_then(|text| text.parse().ok());
        match (wanted.size, length) {
            (Some(size), Some(length)) if size != length => {
                Err(Problem::Wrong("has another length than the index says"))
            }
            // Documents of npm and Cargo's index have no sizes.
            (size, length) => Ok((opened, size.or(length))),
        }
    }

    /// Fetches a file of which nothing says what it is before it is here, and keeps it, or notes that the upstream has none.
    async fn fetched_whole(&self, wanted: &MissingFile) -> Result<(), Problem> {
        let Some(opened) = self.opened(wanted).await? else { return Ok(()) };
        let id = hex(&random_bytes::<16>());
        let mut upload = self.hosting.begin_fetching(wanted, &id).await?;
        let kept = if wanted.language == Language::Go {
            self.stored_go(wanted, &mut upload, &id, opened).await
        } else {
            self.stored_java(wanted, &mut upload, &id, opened).await
        };
        if kept.is_err() {
            self.abandon(&id).await;
        }
        kept
    }

    /// The response with such a file; absent if the upstream has none, which is noted.
    async fn opened(&self, wanted: &MissingFile) -> Result<Option<Opened>, Problem> {
        let url = Url::parse(&wanted.url).map_err(|_| FetchError::InvalidUrl)?;
        let (opened, _) = self.fetching.client.get(&wanted.upstream, &url, &HeaderMap::new()).await?;
        match opened.status() {
            StatusCode::OK => Ok(Some(opened)),
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                self.hosting.note_absent(wanted);
                Ok(None)
            }
            status => Err(FetchError::Status(status.as_u16()).into()),
        }
    }

    /// Stores at most so many bytes of a response; their digests.
    pub(crate) async fn append_whole(
        &self,
        upload: &mut OpenUpload,
        id: &str,
        opened: Opened,
        most: u64,
    ) -> Result<(String, Checksums), Problem> {
        self.content.begin(id)?;
        let limit = most.min(upload.room().unwrap_or(most));
        let quota = upload.exceeded_quota().filter(|_| limit < most);
        let hasher = Mutex::new(Hasher::new());
        let growth = Mutex::new(Growth { upload, size: 0, error: None });
        let parts = self.noted(hashed(parts(opened), &hasher), &growth);
        let appended = self.content.append(id, None, parts, Algorithm::Sha256, limit).await;
        if let Some(error) = growth.into_inner().error {
            return Err(error.into());
        }
        match (appended, quota) {
            (Err(ContentError::TooLarge(_)), Some(quota)) => Err(quota.into()),
            (Err(ContentError::TooLarge(_)), None) => Err(Problem::Wrong("is too long")),
            (Err(ContentError::Interrupted), _) => Err(FetchError::Interrupted.into()),
            (appended, _) => {
                appended?;
                Ok(hasher.into_inner().finish())
            }
        }
    }

    async fn stored(
        &self,
        fetch: &Fetch,
        upload: &mut OpenUpload,
        (id, size): (&str, Option<u64>),
        opened: Opened,
    ) -> Result<(), Problem> {
        let wanted = &fetch.file;
        let digest = Digest::parse(&wanted.digest).map_err(|_| Problem::Wrong("has no digest"))?;
        self.content.begin(id)?;
        let tail = FailedUnlessFinished { tail: self.content.tail(id, &digest)?.early(size), fetch };
        let most = if wanted.language == Language::Cargo { CARGO_ARCHIVE } else { FILE };
        fetch.arrives(tail.tail.follower(), size.filter(|size| *size <= most));
        let limit = size.unwrap_or(most).min(upload.room().unwrap_or(most)).min(most);
        let (quota, is_short_of_room) = (upload.exceeded_quota(), upload.room().is_some_and(|room| room <= limit));
        let growth = Mutex::new(Growth { upload, size: 0, error: None });
        let parts = self.noted(parts(opened), &growth);
        let appended = self.content.append_followed(id, parts, limit, &tail.tail).await;
        if let Some(error) = growth.into_inner().error {
            return Err(error.into());
        }
        let length = match (appended, quota) {
            (Err(ContentError::TooLarge(_)), Some(quota)) if is_short_of_room => return Err(quota.into()),
            (Err(ContentError::TooLarge(_)), _) if wanted.size.is_none() => return Err(Problem::Wrong("is too long")),
            (Err(ContentError::TooLarge(_)), _) => return Err(Problem::Wrong("is longer than the index says")),
            (Err(ContentError::Interrupted), _) => return Err(FetchError::Interrupted.into()),
            (appended, _) => appended?,
        };
        if wanted.size.is_some_and(|size| size != length) {
            return Err(Problem::Wrong("is shorter than the index says"));
        }
        let stored = match self.content.finish(id, &digest).await {
            Err(ContentError::Mismatch { .. }) => return Err(Problem::Wrong("has another digest than the index says")),
            stored => stored?,
        };
        let kept = self.keep(wanted, id, &digest, &stored).await;
        match &kept {
            Ok(()) => tail.tail.finish(&stored.upload),
            Err(problem) if problem.is_certain() => self.drop_bytes(&digest, &stored.upload).await,
            Err(_) => {}
        }
        kept
    }

    async fn keep(&self, wanted: &MissingFile, id: &str, digest: &Digest, stored: &Stored) -> Result<(), Problem> {
        let facts = if wanted.is_metadata {
            FetchedFacts { requirements: self.requirements(digest, stored).await, ..FetchedFacts::default() }
        } else {
            self.declared(wanted, digest, stored).await?
        };
        let replaced = self.hosting.keep_fetched(wanted, (&blob(stored), id), &facts).await?;
        self.drop_replaced(&replaced).await;
        Ok(())
    }

    /// What the core metadata of a wheel say that it requires; absent if they cannot be read, which is no reason not to serve them.
    async fn requirements(&self, digest: &Digest, stored: &Stored) -> Option<Vec<String>> {
        let reader = self.content.read(digest, &stored.upload).await.ok().flatten()?;
        let size = reader.size();
        let parts = reader.stream(0, Some(size).filter(|size| *size <= METADATA)?);
        let bytes = parts.try_fold(Vec::new(), async |mut bytes, part| {
            bytes.extend_from_slice(&part);
            Ok(bytes)
        });
        bowline_packages::requirements_of_metadata(&bytes.await.ok()?).ok().flatten()
    }

    /// What a file declares. Where no policy is about licenses, nothing if the file cannot be read.
    async fn declared(&self, wanted: &MissingFile, digest: &Digest, stored: &Stored) -> Result<FetchedFacts, Problem> {
        let (name, language) = (wanted.name.clone(), wanted.language);
        let read = move |source, size| of_file(language, source, size, &name);
        match self.inspect((digest, stored), read).await? {
            Ok(facts) => Ok(facts),
            Err(_) if !wanted.is_free_to_stream => Err(Problem::Wrong("is no archive whose license can be read")),
            Err(refusal) => {
                tracing::info!(file = wanted.name, %refusal, "what a fetched file declares is not known");
                Ok(FetchedFacts::default())
            }
        }
    }
}

fn of_file(language: Language, source: impl Read + Seek, size: u64, name: &str) -> Result<FetchedFacts, Refusal> {
    let (license, requirements) = match language {
        Language::JavaScript => (bowline_packages::tarball_license(source, size)?, None),
        Language::Cargo => (bowline_packages::crate_archive(source, size)?.license, None),
        // They have no upstreams.
        Language::Generic => (String::new(), None),
        Language::Python | Language::Java | Language::Go => {
            let read = bowline_packages::distribution(source, size, name)?;
            (read.license, read.requirements)
        }
    };
    Ok(FetchedFacts { license, requirements, ..FetchedFacts::default() })
}

/// Why a file cannot be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("{0}")]
    Upstream(#[from] FetchError),
    /// It is not what the index says.
    #[error("it {0}")]
    Wrong(&'static str),
    #[error("{0}")]
    Here(#[from] Error),
}

impl From<ContentError> for Problem {
    fn from(error: ContentError) -> Problem {
        Refused::from(error).into()
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Problem {
        Problem::Here(refused.into_error())
    }
}

impl Problem {
    /// Whether nothing names the bytes for sure.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Problem::Upstream(_) | Problem::Wrong(_) => true,
            Problem::Here(error) => crate::answers::is_certain(error),
        }
    }

    /// What clients are told.
    pub(crate) fn sentence(&self, wanted: &MissingFile) -> String {
        let (file, upstream) = (&wanted.name, &wanted.upstream.name);
        match self {
            Problem::Upstream(error) => format!("{file} cannot be fetched from the upstream {upstream}: {error}"),
            Problem::Wrong(why) => format!("{file} of the upstream {upstream} {why}, so it is not served"),
            Problem::Here(error) => format!("{file} cannot be stored: {}", error.message()),
        }
    }
}

/// Ends the readers of a file with an error unless they may have all of it; those who come later wait for the outcome.
struct FailedUnlessFinished<'a> {
    tail: Tail,
    fetch: &'a Fetch,
}

impl Drop for FailedUnlessFinished<'_> {
    fn drop(&mut self) {
        self.fetch.arrives_no_more();
        self.tail.fail();
    }
}

/// The body of a response, part by part.
pub(crate) fn parts(opened: Opened) -> impl Stream<Item = Result<Bytes, FetchError>> + Send {
    stream::try_unfold(opened, async |mut opened| Ok(opened.chunk().await?.map(|part| (part, opened))))
}
