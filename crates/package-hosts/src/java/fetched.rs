//! Files of other repositories: fetched whole, since nothing says what they are before.
//!
//! Bytes are compared with the SHA-1 that the upstream says, and pinned: a file that is here is never asked for again.

use axum::http::{HeaderMap, Method, StatusCode};
use bowline_authn::guarded::{FetchError, Opened};
use bowline_content::{Digest, Stored};
use bowline_core::Micros;
use bowline_libraries::hosting::{FetchedFacts, MissingFile, OpenUpload, Withheld, java_pom_name};
use bowline_packages::{MAX_METADATA, Pom};
use url::Url;

use super::upstream_lists::{self, modified_at};
use super::{SHA1, nowhere_of};
use crate::PackageHosts;
use crate::answers::Refused;
use crate::fetched::Problem;
use crate::fetching::text_of;
use crate::storing::{FILE, blob};

/// Bytes of a digest beside a file, with the name that some write after it.
const DIGEST: usize = 1024;

impl PackageHosts {
    /// Stores a file that is fetched, and keeps it if its SHA-1 is the one that the upstream says.
    pub(crate) async fn stored_java(
        &self,
        wanted: &MissingFile,
        upload: &mut OpenUpload,
        id: &str,
        opened: Opened,
    ) -> Result<(), Problem> {
        let (said, published_at) = (text_of(&opened, SHA1), modified_at(opened.headers()));
        let is_pom = is_pom(wanted);
        let most = if is_pom { MAX_METADATA } else { FILE };
        let (sha256, checksums) = self.append_whole(upload, id, opened, most).await?;
        let said = if said.is_empty() { self.sha1_beside(wanted).await? } else { Some(said) };
        if said.is_some_and(|said| !said.eq_ignore_ascii_case(&checksums.sha1)) {
            return Err(Problem::Wrong("has another SHA-1 than the upstream says"));
        }
        let digest = Digest::parse(&format!("sha256:{sha256}")).map_err(|_| Problem::Wrong("has no digest"))?;
        let stored = self.content.finish(id, &digest).await?;
        let published_at = if is_pom { Some(self.published_at(wanted, published_at).await) } else { published_at };
        let found = wanted.clone().with_bytes(&sha256, published_at);
        let mut facts = FetchedFacts { checksums, ..FetchedFacts::default() };
        let kept = self.keep_java(&found, &mut facts, (&digest, id), &stored, is_pom).await;
        if kept.as_ref().is_err_and(Problem::is_certain) {
            self.drop_bytes(&digest, &stored.upload).await;
        }
        kept
    }

    /// Since when a version is public at the latest. Where its POM has no date, a list that has the version tells when it changed
    /// last; without one, the version is public from now on.
    async fn published_at(&self, wanted: &MissingFile, dated: Option<Micros>) -> Micros {
        let now = self.pipeline.clock.now();
        if let Some(dated) = dated {
            return dated;
        }
        let (package, version, name) = wanted.coordinates();
        match upstream_lists::listed_at(self, &wanted.upstream, (package, version)).await {
            Ok(listed) => listed.unwrap_or(now),
            Err(problem) => {
                tracing::info!(file = name, problem, "no one says since when a version is public");
                now
            }
        }
    }

    async fn keep_java(
        &self,
        found: &MissingFile,
        facts: &mut FetchedFacts,
        (digest, id): (&Digest, &str),
        stored: &Stored,
        is_pom: bool,
    ) -> Result<(), Problem> {
        if is_pom {
            let pom = self.pom((digest, stored), found.coordinates()).await?;
            let pom = pom.map_err(|_| Problem::Wrong("is no POM of this version"))?;
            (facts.license, facts.parent_pom) = (pom.license(), pom.parent);
        }
        let replaced = self.hosting.keep_fetched(found, (&blob(stored), id), facts).await?;
        self.drop_replaced(&replaced).await;
        Ok(())
    }

    /// A POM that is stored, which must be that of the version.
    pub(super) async fn pom(
        &self,
        of: (&Digest, &Stored),
        (package, version, _): (&str, &str, &str),
    ) -> Result<Result<Pom, bowline_packages::Refusal>, Refused> {
        let (group, artifact) = package.split_once(':').unwrap_or((package, ""));
        let (group, artifact, version) = (group.to_owned(), artifact.to_owned(), version.to_owned());
        let read = move |source, _| {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::Read::take(source, MAX_METADATA + 1), &mut bytes)?;
            let pom = Pom::read(&bytes)?;
            pom.require_match(&group, &artifact, &version)?;
            Ok(pom)
        };
        self.inspect(of, read).await
    }

    /// The SHA-1 that lies beside a file; absent where none does.
    async fn sha1_beside(&self, wanted: &MissingFile) -> Result<Option<String>, Problem> {
        let url = Url::parse(&format!("{}.sha1", wanted.url)).map_err(|_| FetchError::InvalidUrl)?;
        let (opened, _) = self.fetching.client.get(&wanted.upstream, &url, &HeaderMap::new()).await?;
        match opened.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                tracing::info!(file = wanted.name, "the upstream says no SHA-1 of a file");
                return Ok(None);
            }
            status => return Err(FetchError::Status(status.as_u16()).into()),
        }
        let body = opened.whole(DIGEST).await?;
        let text = String::from_utf8_lossy(&body);
        Ok(Some(text.split_ascii_whitespace().next().unwrap_or_default().to_owned()))
    }

    /// The answer to who asks for a withheld file that is not here. Builds end where what does not exist is refused, so the
    /// upstream is asked whether it does.
    pub(super) async fn withheld_java(&self, withheld: &Withheld, file: &MissingFile) -> Refused {
        let Ok(url) = Url::parse(&file.url) else { return Refused::withheld(StatusCode::FORBIDDEN, withheld) };
        let Ok(_slot) = self.slot(file.upstream.organization()).await else {
            return Refused::withheld(StatusCode::FORBIDDEN, withheld);
        };
        let asked = self.fetching.client.send(&file.upstream, Method::HEAD, &url, &HeaderMap::new()).await;
        let is_absent = asked.is_ok_and(|(opened, _)| matches!(opened.status().as_u16(), 404 | 410));
        if !is_absent {
            return Refused::withheld(StatusCode::FORBIDDEN, withheld);
        }
        self.hosting.note_absent(file);
        nowhere_of(&file.name)
    }
}

/// Whether a file is the POM of its version.
fn is_pom(wanted: &MissingFile) -> bool {
    let (package, version, name) = wanted.coordinates();
    name == java_pom_name(package, version)
}
