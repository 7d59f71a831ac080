//! The registry of npm, which npm, pnpm, yarn and bun speak: documents of packages, their files, tags, and publishing.

mod advisories;
mod audit;
mod changes;
mod document;
mod documents;
mod objects;
mod publish;
mod scanner;
mod target;
pub(crate) mod upstream_documents;
mod upstream_keys;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::Response;
use bowline_core::Error;
use bowline_fronts::request::is_shown;
use bowline_libraries::hosting::{
    Attestations, FileName, HostClient, HostError, Npm, Packument, RenderedPage, UpstreamStatements,
};
use bowline_packages::Attestation;
use serde_json::{Value, json};

use crate::PackageHosts;
use crate::answers::{Refused, phrase, set, typed};
use crate::pages::{at_scope, note_age, page};
use crate::targets::wrong_verb;
use documents::Form;

pub(crate) use target::Target;

/// How long a request for keys waits for the lists of upstreams, all at once.
const KEYS_BUDGET: Duration = Duration::from_secs(5);
/// What npm prints beside a response.
const NOTICE: HeaderName = HeaderName::from_static("npm-notice");

impl crate::targets::Target for Target {
    const WORD: &'static str = "javascript";

    fn parse(parts: &[&str]) -> Option<Target> {
        target::of_parts(parts)
    }

    fn name(verb: &Method, path: &str) -> &'static str {
        target::name(verb, path)
    }

    fn takes_gzip(&self) -> bool {
        matches!(self, Target::Audit { .. })
    }

    async fn answer(
        self,
        hosts: &Arc<PackageHosts>,
        client: &HostClient,
        request: Request,
        scope: Option<&str>,
    ) -> Result<Response, Refused> {
        let (head, body) = request.into_parts();
        if let Target::Missing(sentence) = self {
            return Err(Refused::new(StatusCode::NOT_FOUND, sentence));
        }
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        if is_read {
            let is_own = is_for_writing(head.uri.query());
            let mut response =
                hosts.read_javascript(client, &head.method, &head.headers, scope, (self, is_own)).await?;
            set(&mut response, header::VARY, "Accept, Accept-Encoding, Authorization");
            return Ok(response);
        }
        match (head.method.as_str(), self) {
            ("PUT", Target::Package { name, revision }) => {
                let notice = hosts.put_package(client, scope, (&name, revision.as_deref()), body).await?;
                let mut response = answered(StatusCode::CREATED, &json!({ "ok": true }));
                if let Some(notice) = notice {
                    set(&mut response, NOTICE, notice);
                }
                Ok(response)
            }
            ("DELETE", Target::Package { name, revision: Some(revision) }) => {
                hosts.hosting.delete_javascript(client, scope, (&name, &revision), None).await?;
                Ok(answered(StatusCode::OK, &json!({ "ok": true })))
            }
            ("DELETE", Target::File { name, file, revision: Some(_) }) => {
                hosts.require_deleted(client, scope, &name, &file).await?;
                Ok(answered(StatusCode::OK, &json!({ "ok": true })))
            }
            ("PUT" | "POST", Target::Tag { name, tag }) => {
                hosts.set_tag(client, scope, (&name, &tag), body).await?;
                Ok(answered(StatusCode::CREATED, &json!({ "ok": true })))
            }
            ("POST", Target::Audit { is_report }) => {
                let known = if is_report {
                    hosts.report(client, scope, &head.headers, body).await?
                } else {
                    hosts.advisories(client, scope, &head.headers, body).await?
                };
                Ok(answered(StatusCode::OK, &known))
            }
            ("DELETE", Target::Tag { name, tag }) => {
                hosts.hosting.tag_javascript(client, scope, (&name, &tag), None).await?;
                Ok(answered(StatusCode::OK, &json!({ "ok": true })))
            }
            (_, target) => Err(wrong_verb(target.verbs())),
        }
    }
}

impl PackageHosts {
    async fn read_javascript(
        self: &Arc<Self>,
        client: &HostClient,
        method: &Method,
        headers: &HeaderMap,
        scope: Option<&str>,
        (target, is_own): (Target, bool),
    ) -> Result<Response, Refused> {
        match target {
            Target::Base | Target::Ping => Ok(answered(StatusCode::OK, &json!({}))),
            Target::Whoami => Ok(answered(StatusCode::OK, &json!({ "username": client.subject() }))),
            Target::Package { name, revision: None } if is_own => {
                let _turn = self.whole.acquire().await.map_err(Error::internal)?;
                let own = self.hosting.own_javascript_package(client, scope, &name).await?;
                let base = self.javascript_base(scope);
                let making = tokio::task::spawn_blocking(move || documents::own(&own, &base));
                Ok(typed(StatusCode::OK, documents::FULL, making.await.map_err(Error::internal)??))
            }
            Target::Package { name, revision: None } => self.document(client, headers, scope, &name).await,
            Target::Version { name, version } => self.version(client, scope, (&name, version)).await,
            Target::Keys => self.javascript_keys(client, scope).await,
            Target::Attestations { name, version } => {
                self.javascript_attestations(client, headers, scope, (&name, &version)).await
            }
            Target::Tags { name } => {
                let package = self.whole_package(client, scope, &name).await?;
                Ok(answered(StatusCode::OK, &json!(package.tags)))
            }
            Target::File { .. } if is_shown(headers) => {
                let text = "browsers do not show files of packages; download them with an installer, such as npm";
                Err(Refused::new(StatusCode::FORBIDDEN, text))
            }
            Target::File { name, file, revision: None } => {
                let file = FileName { name: file, digest: None };
                let look = || self.hosting.javascript_file(client, scope, &name, &file);
                let is_whole = *method == Method::GET && !headers.contains_key(header::RANGE);
                let source = self.file_source(look, is_whole).await?;
                self.file(method, headers, source).await
            }
            target => Err(wrong_verb(target.verbs())),
        }
    }

    /// The keys that signatures of what the caller sees are verified with.
    async fn javascript_keys(self: &Arc<Self>, client: &HostClient, scope: Option<&str>) -> Result<Response, Refused> {
        let requests = self.hosting.key_requests(client, scope).await?;
        self.request_once(requests, KEYS_BUDGET).await?;
        Ok(json_text(documents::keys(self.hosting.javascript_keys(client, scope).await?)?))
    }

    /// What is attested of a version, with who signed it where that was verified.
    async fn javascript_attestations(
        self: &Arc<Self>,
        client: &HostClient,
        headers: &HeaderMap,
        scope: Option<&str>,
        (name, version): (&str, &str),
    ) -> Result<Response, Refused> {
        let file = javascript_file(name, version);
        let look = || self.hosting.attestations::<Npm>(client, scope, (name, version, &file));
        let (attestations, stale) = match self.until_here(look).await? {
            Attestations::Hosted(attestations) => (attestations, None),
            Attestations::Upstream(of) => {
                let stale = of.stale;
                (self.verified_statements(of, upstream_statements).await?.0, stale)
            }
        };
        let mut response =
            self.shown_attestations(headers, documents::FULL, attestations, documents::attestations).await?;
        note_age(&mut response, stale);
        Ok(response)
    }

    /// A package with all its versions. No one waits for a turn while an upstream is asked.
    async fn whole_package(
        self: &Arc<Self>,
        client: &HostClient,
        scope: Option<&str>,
        name: &str,
    ) -> Result<Packument, Refused> {
        let look = || async {
            let _turn = self.whole.acquire().await.map_err(Error::internal)?;
            self.hosting.javascript_package(client, scope, name).await
        };
        Ok(self.until_here(look).await?)
    }

    /// A version of a package alone, which a version or a tag names.
    async fn version(
        self: &Arc<Self>,
        client: &HostClient,
        scope: Option<&str>,
        (name, named): (&str, String),
    ) -> Result<Response, Refused> {
        let package = self.whole_package(client, scope, name).await?;
        let base = self.javascript_base(scope);
        let _turn = self.whole.acquire().await.map_err(Error::internal)?;
        let making = tokio::task::spawn_blocking(move || {
            Ok::<_, HostError>(documents::version(&package, package.version(&named)?, &base)?)
        });
        Ok(json_text(making.await.map_err(Error::internal)??))
    }

    /// The document of a package in the form that the client asks for.
    async fn document(
        self: &Arc<Self>,
        client: &HostClient,
        headers: &HeaderMap,
        scope: Option<&str>,
        name: &str,
    ) -> Result<Response, Refused> {
        let (form, base) = (Form::of(headers), self.javascript_base(scope));
        let look = || {
            let below = base.clone();
            let render = move |package: &_| documents::rendered(package, form, &below);
            self.hosting.javascript_page(client, scope, name, (form.content_type(), &base), render)
        };
        let found: Result<(RenderedPage, _), HostError> = self.until_here(look).await;
        let (rendered, stale) = found.map_err(|error| match error {
            // As for other installers: a 403 of a document is taken for wrong credentials.
            HostError::Withheld(withheld) => Refused::withheld(StatusCode::CONFLICT, &withheld),
            error => error.into(),
        })?;
        let notice = rendered.notice.clone();
        let mut response = page(headers, form.content_type(), rendered);
        note_age(&mut response, stale);
        if let Some(notice) = notice {
            set(&mut response, NOTICE, &phrase(&notice));
        }
        Ok(response)
    }

    /// The address that those of packages are below.
    fn javascript_base(&self, scope: Option<&str>) -> String {
        format!("{}/javascript{}", self.url, at_scope(scope))
    }
}

/// The statements that an upstream has about a version.
fn upstream_statements(of: &UpstreamStatements) -> Result<(Vec<Attestation>, ()), String> {
    let sha512 = of.digest.strip_prefix("sha512:").ok_or("the file has no SHA-512 that they could be about")?;
    Ok((bowline_packages::npm_attestations(&of.text, &of.package, &of.version, sha512)?, ()))
}

/// Name of the file of a version.
fn javascript_file(name: &str, version: &str) -> String {
    format!("{}-{version}.tgz", name.rsplit('/').next().unwrap_or(name))
}

/// Whether a client reads a document in order to change it.
fn is_for_writing(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair == "write=true"))
}

fn answered(status: StatusCode, body: &Value) -> Response {
    let mut response = json_text(body.to_string());
    *response.status_mut() = status;
    response
}

fn json_text(text: String) -> Response {
    let mut response = typed(StatusCode::OK, documents::FULL, text);
    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
    response
}
