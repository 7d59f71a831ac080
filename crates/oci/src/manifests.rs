//! Manifests and tags over HTTP.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use bowline_content::{Algorithm, Digest};
use bowline_registry::content::{
    Config, MAX_MANIFEST_BYTES, Manifest, Name, PushedManifest, Reference, RefusalCode, RegistryClient,
};
use futures_util::StreamExt as _;

use crate::answer::{Answer, CONTENT_DIGEST, Refused, empty, set, typed, wrong_verb};
use crate::{Distribution, DistributionRequest, body};

/// Maximum bytes of a config that is looked into.
pub(crate) const CONFIG_BYTES: u64 = 4 << 20;
/// Tags that one push may give.
const MAX_TAGS: usize = 20;
/// How long a manifest may take to arrive: it is small.
const MANIFEST_TIME: Duration = Duration::from_secs(60);

impl Distribution {
    pub(crate) async fn manifest(
        &self,
        request: &DistributionRequest,
        body: Body,
        name: &Name,
        reference: &Reference,
    ) -> Answer {
        match request.method {
            Method::GET | Method::HEAD => self.pull_manifest(request, name, reference).await,
            Method::PUT => self.push_manifest(request, body, name, reference).await,
            Method::DELETE => {
                self.registry.delete_manifest(&request.client, name, reference).await?;
                Ok(empty(StatusCode::ACCEPTED))
            }
            _ => Err(wrong_verb("GET, HEAD, PUT, DELETE")),
        }
    }

    async fn pull_manifest(&self, request: &DistributionRequest, name: &Name, reference: &Reference) -> Answer {
        let is_get = request.method == Method::GET;
        let mut pulled = self.available_manifest(request, name, reference).await?;
        if is_get {
            self.registry.require_allowed(&request.client, name, &mut pulled).await?;
            self.registry.note_pull(&request.client, name, reference, &pulled);
        }
        let found = pulled.manifest;
        let is_not_modified =
            bowline_fronts::range::is_not_modified(request.header(header::IF_NONE_MATCH), &found.digest);
        let length = found.content.len();
        let mut response = if is_not_modified {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            let mut response = typed(StatusCode::OK, &found.media_type, found.content);
            set(&mut response, header::CONTENT_LENGTH, &length.to_string());
            response
        };
        if !is_get {
            *response.body_mut() = Body::empty();
        }
        set(&mut response, CONTENT_DIGEST, &found.digest);
        set(&mut response, header::ETAG, &format!("\"{}\"", found.digest));
        Ok(response)
    }

    async fn push_manifest(
        &self,
        request: &DistributionRequest,
        body: Body,
        name: &Name,
        reference: &Reference,
    ) -> Answer {
        let tags = further_tags(request, reference)?;
        self.registry.may_push_manifest(&request.client, name).await?;
        let content_type = request.header(header::CONTENT_TYPE).map(String::from);
        let content = body::whole(body, MAX_MANIFEST_BYTES, MANIFEST_TIME).await?;
        let client = request.client.renewed()?;
        let digest = digest_of(reference, &content)?;
        let manifest = Manifest::read(&content, content_type.as_deref())?;
        let config = self.config(&client, name, &manifest).await?.map(|bytes| Config::read(&manifest, &bytes));
        let subject = manifest.subject().to_owned();
        let mut response = empty(StatusCode::CREATED);
        for tag in &tags {
            let value = HeaderValue::from_str(tag).map_err(bowline_core::Error::internal)?;
            response.headers_mut().append(HeaderName::from_static("oci-tag"), value);
        }
        let (reference, stored) = (reference.clone(), digest.as_str().into());
        let mut pushed = PushedManifest::new(reference, stored, manifest, content);
        (pushed.tags, pushed.config) = (tags, config);
        self.registry.push_manifest(&client, name, pushed).await?;
        set(&mut response, header::LOCATION, &format!("/v2/{name}/manifests/{digest}"));
        set(&mut response, CONTENT_DIGEST, digest.as_str());
        if !subject.is_empty() {
            set(&mut response, HeaderName::from_static("oci-subject"), &subject);
        }
        Ok(response)
    }

    /// The config that an image names, if the repository has it and it is not too large.
    async fn config(
        &self,
        client: &RegistryClient,
        name: &Name,
        manifest: &Manifest,
    ) -> Result<Option<Vec<u8>>, Refused> {
        let Some(digest) = manifest.config().and_then(|digest| Digest::parse(digest).ok()) else { return Ok(None) };
        let found = self.registry.config_of_push(client, name, digest.as_str()).await?;
        let Some(blob) = found else { return Ok(None) };
        let Some(reader) = self.intact(&digest, &blob).await? else { return Ok(None) };
        let size = reader.size();
        if size > CONFIG_BYTES {
            return Ok(None);
        }
        let mut bytes = Vec::with_capacity(size as usize);
        let mut parts = std::pin::pin!(reader.stream(0, size));
        while let Some(part) = parts.next().await {
            bytes.extend_from_slice(&part.map_err(bowline_content::ContentError::from)?);
        }
        Ok(Some(bytes))
    }
}

/// The tags that a push by digest gives the manifest as well.
fn further_tags(request: &DistributionRequest, reference: &Reference) -> Result<Vec<String>, Refused> {
    let tags: Vec<&String> = request.query.iter().filter(|(name, _)| name == "tag").map(|(_, tag)| tag).collect();
    if tags.is_empty() {
        return Ok(Vec::new());
    }
    if let Reference::Tag(_) = reference {
        let message = "tags are given as parameters where the manifest is pushed by its digest";
        return Err(Refused::new(RefusalCode::ManifestInvalid, message));
    }
    if tags.len() > MAX_TAGS {
        let message = format!("at most {MAX_TAGS} tags at once: push the manifest again for the others");
        return Err(Refused::new(RefusalCode::ManifestInvalid, message).with_status(StatusCode::URI_TOO_LONG));
    }
    let tag = |text: &String| match Reference::parse(text) {
        Some(Reference::Tag(tag)) => Ok(tag),
        _ => Err(Refused::new(RefusalCode::ManifestInvalid, format!("{text:?} is no tag"))),
    };
    tags.into_iter().map(tag).collect()
}

/// The digest of what was sent, which must be the one that it was sent under.
pub(crate) fn digest_of(reference: &Reference, content: &[u8]) -> Result<Digest, Refused> {
    let wanted = match reference {
        Reference::Tag(_) => return Ok(Digest::of(Algorithm::Sha256, content)),
        Reference::Digest(text) => Digest::parse(text)
            .map_err(|error| Refused::new(RefusalCode::DigestInvalid, format!("the digest {error}")))?,
    };
    let found = Digest::of(wanted.algorithm(), content);
    if found == wanted {
        return Ok(found);
    }
    Err(Refused::new(RefusalCode::DigestInvalid, format!("the manifest has the digest {found}")))
}
