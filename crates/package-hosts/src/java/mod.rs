//! The repository of Maven, which Maven, Gradle, sbt and others speak: files by their paths, lists, and publishing.

pub(crate) mod fetched;
mod lists;
mod publish;
mod signatures;
mod target;
pub(crate) mod upstream_lists;

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::Response;
use bowline_core::Error;
use bowline_fronts::request::is_shown;
use bowline_libraries::hosting::{Checksums, File, HostClient, HostError};

use crate::PackageHosts;
use crate::answers::{Refused, set, typed};
use crate::checksums::Hasher;
use crate::file_fetches::FileSource;
use crate::pages::{note_age, page, rendered};
use crate::targets::wrong_verb;
use target::Checksum;

pub(crate) use target::Target;

const SHA1: HeaderName = HeaderName::from_static("x-checksum-sha1");
const MD5: HeaderName = HeaderName::from_static("x-checksum-md5");

impl crate::targets::Target for Target {
    const WORD: &'static str = "java";

    fn parse(parts: &[&str]) -> Option<Target> {
        Some(target::of_parts(parts))
    }

    fn name(verb: &Method, path: &str) -> &'static str {
        target::name(verb, path)
    }

    async fn answer(
        self,
        hosts: &Arc<PackageHosts>,
        client: &HostClient,
        request: Request,
        scope: Option<&str>,
    ) -> Result<Response, Refused> {
        hosts.answer_java(client, request, scope, self).await.map_err(Refused::with_plain_absence)
    }
}

impl PackageHosts {
    async fn answer_java(
        self: &Arc<Self>,
        client: &HostClient,
        request: Request,
        scope: Option<&str>,
        target: Target,
    ) -> Result<Response, Refused> {
        let (head, body) = request.into_parts();
        match (head.method.as_str(), target) {
            ("GET" | "HEAD", target) => {
                let mut response = self.read_java(client, &head.method, &head.headers, scope, target).await?;
                set(&mut response, header::VARY, "Accept-Encoding, Authorization");
                Ok(response)
            }
            ("PUT", target @ (Target::File { .. } | Target::List { .. } | Target::Elsewhere)) => {
                self.put_java(client, scope, target, body).await
            }
            ("DELETE", Target::Version { package, version }) => {
                self.hosting.delete_java_version(client, scope, (&package, &version)).await?;
                Ok(typed(StatusCode::NO_CONTENT, "text/plain", ""))
            }
            (_, target) => Err(wrong_verb(target.verbs())),
        }
    }

    async fn read_java(
        self: &Arc<Self>,
        client: &HostClient,
        method: &Method,
        headers: &HeaderMap,
        scope: Option<&str>,
        target: Target,
    ) -> Result<Response, Refused> {
        match target {
            Target::Base => {
                Ok(typed(StatusCode::OK, "text/plain; charset=utf-8", "a repository for Maven and Gradle\n"))
            }
            Target::List { directory, checksum } => self.list(client, headers, scope, (&directory, checksum)).await,
            Target::File { .. } if is_shown(headers) => {
                let text = "browsers do not show files of packages; download them with an installer, such as mvn";
                Err(Refused::new(StatusCode::FORBIDDEN, text))
            }
            Target::File { package, name, checksum } => {
                let look = || self.hosting.java_file(client, scope, &package, &name);
                let source = match self.file_source(look, false).await {
                    Err(HostError::WithheldIfThere(withheld, file)) => {
                        return Err(self.withheld_java(&withheld, &file).await);
                    }
                    source => source?,
                };
                // Nothing says how long files of upstreams are, so they are whole before they are served.
                let FileSource::Stored(file) = source else { return Err(Refused::bad("the file is on its way")) };
                match checksum {
                    Some(checksum) => {
                        let sha256 = file.digest.trim_start_matches("sha256:");
                        let digest = rendered(digest_text(sha256, &file.checksums, checksum))?;
                        Ok(page(headers, "text/plain", digest))
                    }
                    None => self.java_file(method, headers, file).await,
                }
            }
            Target::Version { .. } | Target::Elsewhere => Err(nowhere()),
        }
    }

    /// A list, or the digest of the text that it has now.
    async fn list(
        self: &Arc<Self>,
        client: &HostClient,
        headers: &HeaderMap,
        scope: Option<&str>,
        (directory, checksum): (&[String], Option<Checksum>),
    ) -> Result<Response, Refused> {
        let look = || self.hosting.java_metadata(client, scope, directory);
        let list = self.until_here(look).await.map_err(|error| match error {
            // As for the pages of other installers.
            HostError::Withheld(withheld) => Refused::withheld(StatusCode::CONFLICT, &withheld),
            error => error.into(),
        })?;
        let stale = list.stale;
        // Some artifacts have thousands of versions.
        let making = tokio::task::spawn_blocking(move || {
            let xml = lists::xml(&list);
            let Some(checksum) = checksum else { return rendered(&xml) };
            let mut hasher = Hasher::new();
            hasher.update(xml.as_bytes());
            let (sha256, checksums) = hasher.finish();
            rendered(digest_text(&sha256, &checksums, checksum))
        });
        let content_type = if checksum.is_some() { "text/plain" } else { "application/xml" };
        let mut response = page(headers, content_type, making.await.map_err(Error::internal)??);
        note_age(&mut response, stale);
        Ok(response)
    }

    async fn java_file(&self, method: &Method, headers: &HeaderMap, file: File) -> Result<Response, Refused> {
        let (checksums, published_at) = (file.checksums.clone(), file.published_at);
        let mut response = self.file(method, headers, FileSource::Stored(file)).await?;
        set(&mut response, SHA1, &checksums.sha1);
        set(&mut response, MD5, &checksums.md5);
        // By this, another server of this kind knows the age of a version.
        if let Some(micros) = published_at.and_then(|micros| u64::try_from(micros).ok()) {
            let at = UNIX_EPOCH + Duration::from_micros(micros);
            set(&mut response, header::LAST_MODIFIED, &httpdate::fmt_http_date(at));
        }
        Ok(response)
    }
}

/// A digest of a file in lower-case hex.
fn digest_text<'a>(sha256: &'a str, others: &'a Checksums, checksum: Checksum) -> &'a str {
    match checksum {
        Checksum::Md5 => &others.md5,
        Checksum::Sha1 => &others.sha1,
        Checksum::Sha256 => sha256,
        Checksum::Sha512 => &others.sha512,
    }
}

fn nowhere() -> Refused {
    let text =
        "there is nothing at this path of the java packages: files lie at group/artifact/version/artifact-version.ext";
    Refused::new(StatusCode::NOT_FOUND, text)
}

fn nowhere_of(file: &str) -> Refused {
    Refused::new(StatusCode::NOT_FOUND, format!("Not found: package \"{file}\" does not exist"))
}
