//! The host of generic files, which any client of HTTP speaks: files of any kind below a group, a name, a version and a path.
//!
//! Clients such as curl show what they receive, so refusals are problem documents, and lists are JSON. Nothing is read of the files:
//! they are served as attachments, whatever they are.

mod digests;
mod lists;
mod publish;
mod target;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, Method, StatusCode, header};
use axum::response::Response;
use bowline_core::Error;
use bowline_fronts::request::is_shown;
use bowline_libraries::hosting::HostClient;

use crate::PackageHosts;
use crate::answers::{Refused, set, typed};
use crate::file_fetches::FileSource;
use crate::pages::{page, rendered};
use crate::targets::wrong_verb;

pub(crate) use target::Target;

/// Digests of a whole file, whichever part of it is sent: as RFC 9530 has them, and as RFC 3230 had them.
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
const DIGEST: HeaderName = HeaderName::from_static("digest");

impl crate::targets::Target for Target {
    const WORD: &'static str = "files";
    const BEGINS_WITH_GROUP: bool = true;

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
        let (head, body) = request.into_parts();
        match (head.method.as_str(), self) {
            (_, Target::Wrong(sentence)) => Err(Refused::bad(sentence)),
            (_, Target::Elsewhere) => Err(nowhere()),
            ("GET" | "HEAD", target) => {
                let mut response = hosts.read_generic(client, &head, scope, target).await?;
                set(&mut response, header::VARY, "Accept-Encoding, Authorization");
                Ok(response)
            }
            ("PUT", Target::File { name, version, path }) => {
                hosts.put_generic(client, scope, (&name, &version, &path), (&head.headers, body)).await
            }
            ("DELETE", Target::Version { name, version }) => {
                hosts.hosting.delete_generic_version(client, scope, (&name, &version)).await?;
                Ok(typed(StatusCode::NO_CONTENT, "text/plain", ""))
            }
            (_, target) => Err(wrong_verb(target.verbs())),
        }
    }
}

impl PackageHosts {
    async fn read_generic(
        self: &Arc<Self>,
        client: &HostClient,
        head: &Parts,
        scope: Option<&str>,
        target: Target,
    ) -> Result<Response, Refused> {
        match target {
            Target::Name { name } => {
                let after = lists::after(head.uri.query()).map_err(Refused::bad)?;
                let listed = self.hosting.generic_versions(client, scope, &name, after.as_deref()).await?;
                let making = tokio::task::spawn_blocking(move || rendered(&lists::versions(&name, &listed)));
                Ok(page(&head.headers, "application/json", making.await.map_err(Error::internal)??))
            }
            Target::Version { name, version } => {
                let listed = self.hosting.generic_files(client, scope, (&name, &version)).await?;
                let making = tokio::task::spawn_blocking(move || rendered(&lists::files((&name, &version), &listed)));
                Ok(page(&head.headers, "application/json", making.await.map_err(Error::internal)??))
            }
            Target::File { .. } if is_shown(&head.headers) => {
                let text = "browsers do not show files of packages; download them with a client such as curl";
                Err(Refused::new(StatusCode::FORBIDDEN, text))
            }
            Target::File { name, version, path } => {
                let look = || self.hosting.generic_file(client, scope, (&name, &version, &path));
                let source = self.file_source(look, false).await?;
                let digest = match &source {
                    FileSource::Stored(file) => file.digest.clone(),
                    FileSource::Arriving { digest, .. } => digest.clone(),
                };
                let response = self.file(&head.method, &head.headers, source).await?;
                Ok(described(response, &digest, &path))
            }
            target => Err(wrong_verb(target.verbs())),
        }
    }
}

/// The response with a file, or a part of it, with what it is called and the digest of the whole.
fn described(mut response: Response, digest: &str, path: &str) -> Response {
    if let Some(encoded) = digest.strip_prefix("sha256:").and_then(digests::base64_of) {
        set(&mut response, REPR_DIGEST, &format!("sha-256=:{encoded}:"));
        set(&mut response, DIGEST, &format!("sha-256={encoded}"));
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    set(&mut response, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\""));
    response
}

fn nowhere() -> Refused {
    let text = "there is nothing at this path of the generic files: they lie at GROUP/NAME/VERSION/PATH, and GROUP/NAME/ lists the \
                versions of a name";
    Refused::new(StatusCode::NOT_FOUND, text)
}
