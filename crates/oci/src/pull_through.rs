//! What is not here, or may be out of date, and comes from another registry.

use axum::http::{Method, StatusCode, header};
use bowline_authn::guarded::Opened;
use bowline_content::Digest;
use bowline_registry::content::{
    Config, MAX_MANIFEST_BYTES, MEDIA_TYPES, Manifest, Name, PulledManifest, PushedManifest, Reference, RefusalCode,
    RegistryError, StoredBlob, UpstreamBlob, UpstreamConfig,
};

use crate::answer::{CONTENT_DIGEST, Refused};
use crate::manifests::{CONFIG_BYTES, digest_of};
use crate::upstream::{Problem, Unanswered};
use crate::{Distribution, DistributionRequest};

impl Distribution {
    /// A manifest: what is here, after asking the source or the upstream where a tag may have moved; else what they
    /// have.
    pub(crate) async fn available_manifest(
        &self,
        request: &DistributionRequest,
        name: &Name,
        reference: &Reference,
    ) -> Result<PulledManifest, Refused> {
        let found = self.registry.pull_manifest(&request.client, name, reference).await;
        let is_fetched = match (&found, reference) {
            (Ok(pulled), Reference::Tag(tag)) if pulled.is_replicated => {
                self.refreshed(request, name, tag, &pulled.manifest.digest).await?
            }
            (Err(error), _) if is_absent(error) => self.supplied(request, name, reference).await?,
            (Ok(_) | Err(_), _) => false,
        };
        if is_fetched {
            return Ok(self.registry.pull_manifest(&request.client, name, reference).await?);
        }
        Ok(found?)
    }

    /// Whether a manifest that was not found is here now, because the source or the upstream had it.
    async fn supplied(
        &self,
        request: &DistributionRequest,
        name: &Name,
        reference: &Reference,
    ) -> Result<bool, Refused> {
        if self.registry.sync_manifest(&request.client, name, reference).await? {
            return Ok(true);
        }
        let Some(upstream) = self.registry.upstream_of(&request.client, name, reference).await? else {
            // Another request may have copied it after this one had looked.
            return match self.registry.pull_manifest(&request.client, name, reference).await {
                Err(error) if !is_absent(&error) => Err(error.into()),
                found => Ok(found.is_ok()),
            };
        };
        let lock = self.upstream.single_flight(&format!("{name} {reference:?}"));
        let _only = lock.lock().await;
        // Another request may have fetched it meanwhile.
        if self.registry.pull_manifest(&request.client, name, reference).await.is_ok() {
            return Ok(true);
        }
        self.fetched_manifest(request, name, reference, &upstream).await
    }

    /// Whether a local tag was moved, because the source or the upstream has moved it. If the upstream does
    /// not respond, or its response cannot be stored, the tag stays.
    async fn refreshed(
        &self,
        request: &DistributionRequest,
        name: &Name,
        tag: &str,
        digest: &str,
    ) -> Result<bool, Refused> {
        match self.registry.sync_manifest(&request.client, name, &Reference::Tag(tag.into())).await {
            Ok(false) => {}
            Ok(true) => return Ok(true),
            Err(error) => return self.left(request, name, tag, Some(&format!("{error:?}"))).await,
        }
        if self.registry.stale(&request.client, name, tag).await?.is_none() {
            return Ok(false);
        }
        let lock = self.upstream.single_flight(&format!("{name} {:?}", Reference::Tag(tag.into())));
        let _only = lock.lock().await;
        // Another request may have asked the upstream meanwhile, and moved the tag.
        let Some(upstream) = self.registry.stale(&request.client, name, tag).await? else { return Ok(true) };
        let looked = self.upstream.ask(Method::HEAD, &upstream, &format!("manifests/{tag}"), &accepted()).await;
        let now = match looked {
            Ok(opened) => stated_digest(&opened),
            Err(unanswered) => return self.left(request, name, tag, Some(&unanswered.problem.to_string())).await,
        };
        if now.as_deref() == Some(digest) {
            return self.left(request, name, tag, None).await;
        }
        match self.fetched_manifest(request, name, &Reference::Tag(tag.into()), &upstream).await {
            Ok(is_fetched) => Ok(is_fetched),
            Err(refused) => self.left(request, name, tag, Some(&format!("{:?}", refused.error))).await,
        }
    }

    /// Records that the upstream was asked about a tag that stays as it is.
    async fn left(
        &self,
        request: &DistributionRequest,
        name: &Name,
        tag: &str,
        problem: Option<&str>,
    ) -> Result<bool, Refused> {
        if let Some(problem) = problem {
            tracing::warn!(%name, tag, problem, "the upstream request failed; serving what is stored here");
        }
        self.registry.note_upstream(&request.client, name, Some(tag), problem).await?;
        Ok(false)
    }

    /// Whether the upstream had the manifest, which is here then.
    async fn fetched_manifest(
        &self,
        request: &DistributionRequest,
        name: &Name,
        reference: &Reference,
        upstream: &UpstreamConfig,
    ) -> Result<bool, Refused> {
        let (Reference::Tag(text) | Reference::Digest(text)) = reference;
        let path = format!("manifests/{text}");
        let opened = match self.upstream.ask(Method::GET, upstream, &path, &accepted()).await {
            Ok(opened) => opened,
            Err(Unanswered { problem: Problem::Absent, .. }) => return Ok(false),
            Err(unanswered) => return Err(self.without(request, name, &unanswered).await?),
        };
        let (stated, content_type) = (stated_digest(&opened), text_of(&opened, header::CONTENT_TYPE));
        let whole = opened.whole(MAX_MANIFEST_BYTES).await;
        let content = whole.map_err(|error| away(error.into(), RefusalCode::ManifestUnknown))?.to_vec();
        let named = match (reference, stated) {
            (Reference::Tag(_), Some(stated)) => Reference::Digest(stated),
            _ => reference.clone(),
        };
        let digest = digest_of(&named, &content)?;
        let manifest = Manifest::read(&content, content_type.as_deref())?;
        let config = self.config_there(upstream, &manifest).await.map(|bytes| Config::read(&manifest, &bytes));
        let (digest, reference) = (digest.as_str().into(), reference.clone());
        let mut fetched = PushedManifest::new(reference, digest, manifest, content);
        fetched.config = config;
        let client = request.client.renewed()?;
        self.registry.keep_manifest(&client, name, fetched).await?;
        Ok(true)
    }

    /// The refusal of what the upstream would have had to give, after its problem was noted if it is a new one.
    async fn without(
        &self,
        request: &DistributionRequest,
        name: &Name,
        unanswered: &Unanswered,
    ) -> Result<Refused, Refused> {
        if unanswered.is_new {
            let problem = unanswered.problem.to_string();
            tracing::warn!(%name, problem, "the upstream request failed");
            self.registry.note_upstream(&request.client, name, None, Some(&problem)).await?;
        }
        Ok(away(unanswered.problem, RefusalCode::ManifestUnknown))
    }

    /// The config that an image names, to be looked into; an image without one is an image none the less.
    async fn config_there(&self, upstream: &UpstreamConfig, manifest: &Manifest) -> Option<Vec<u8>> {
        let digest = Digest::parse(manifest.config()?).ok()?;
        let opened = self.upstream.ask(Method::GET, upstream, &format!("blobs/{digest}"), "*/*").await.ok()?;
        let bytes = opened.whole(CONFIG_BYTES as usize).await.ok()?;
        (Digest::of(digest.algorithm(), &bytes) == digest).then(|| bytes.to_vec())
    }

    /// A blob: what is here, else what the upstream has of the blobs that a manifest here names.
    pub(crate) async fn available_blob(
        &self,
        request: &DistributionRequest,
        name: &Name,
        digest: &Digest,
    ) -> Result<AvailableBlob, Refused> {
        let found = self.registry.pull_blob(&request.client, name, digest.as_str()).await;
        match found {
            Err(error) if is_absent(&error) => {
                if self.registry.sync_blob(&request.client, name, digest.as_str()).await? {
                    let stored = self.registry.pull_blob(&request.client, name, digest.as_str()).await?;
                    return Ok(AvailableBlob::Here(stored));
                }
                match self.registry.blob_upstream(&request.client, name, digest.as_str()).await? {
                    Some(blob) => Ok(AvailableBlob::Upstream(blob)),
                    // It may have been stored after it was looked for.
                    None => match self.registry.pull_blob(&request.client, name, digest.as_str()).await {
                        Ok(stored) => Ok(AvailableBlob::Here(stored)),
                        Err(_) => Err(error.into()),
                    },
                }
            }
            found => Ok(AvailableBlob::Here(found?)),
        }
    }
}

/// Where a blob is.
pub(crate) enum AvailableBlob {
    Here(StoredBlob),
    Upstream(UpstreamBlob),
}

fn is_absent(error: &RegistryError) -> bool {
    let absent = [RefusalCode::ManifestUnknown, RefusalCode::NameUnknown, RefusalCode::BlobUnknown];
    matches!(error, RegistryError::Refused(refusal) if absent.contains(&refusal.code))
}

/// The `accept` header: every media type that can be stored.
pub(crate) fn accepted() -> String {
    MEDIA_TYPES.join(", ")
}

fn text_of(opened: &Opened, name: header::HeaderName) -> Option<String> {
    opened.headers().get(name)?.to_str().ok().map(String::from)
}

/// The digest that the upstream says its response has.
pub(crate) fn stated_digest(opened: &Opened) -> Option<String> {
    text_of(opened, CONTENT_DIGEST)
}

/// The refusal of missing content whose upstream failed.
pub(crate) fn away(problem: Problem, absent: RefusalCode) -> Refused {
    let status = match problem {
        Problem::Absent => StatusCode::NOT_FOUND,
        Problem::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
        Problem::Away(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_GATEWAY,
    };
    let message = format!("it is not here, and the upstream request failed: {problem}");
    let refused = Refused::of_upstream(status.as_u16(), absent, message);
    match problem {
        Problem::Busy { .. } | Problem::Away(_) => refused.with_retry_after((problem.rest() / 1_000_000) as u64),
        _ => refused,
    }
}
