//! The package index of Python: pages of projects, their files, and uploads.

pub(crate) mod documents;
mod negotiation;
mod pages;
mod target;
mod upload;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::Response;
use bowline_formats::percent::{self, NOT_UNRESERVED};
use bowline_fronts::encoding::accepts_gzip;
use bowline_fronts::range;
use bowline_fronts::request::is_shown;
use bowline_libraries::hosting::{HostClient, HostError, RenderedPage};

use crate::PackageHosts;
use crate::answers::{Refused, set, typed};
use negotiation::Form;

pub(crate) use target::{Target, name};

/// Seconds since an upstream confirmed a page that it cannot be asked for now.
const STALE: HeaderName = HeaderName::from_static("x-bowline-stale");

impl PackageHosts {
    /// The answer to a request of the index.
    pub(crate) async fn python(
        self: &Arc<Self>,
        client: &HostClient,
        request: Request,
        scope: Option<&str>,
        target: Target,
    ) -> Result<Response, Refused> {
        let (head, body) = request.into_parts();
        match (&head.method, target) {
            (&Method::POST, Target::Upload) => self.upload(client, scope, &head.headers, body).await,
            (_, Target::Upload) => Err(wrong_verb("POST")),
            (&Method::GET | &Method::HEAD, target) => {
                let mut response = self.read(client, &head.method, &head.headers, scope, target).await?;
                set(&mut response, header::VARY, "Accept, Accept-Encoding, Authorization");
                Ok(response)
            }
            _ => Err(wrong_verb("GET, HEAD")),
        }
    }

    async fn read(
        self: &Arc<Self>,
        client: &HostClient,
        method: &Method,
        headers: &HeaderMap,
        scope: Option<&str>,
        target: Target,
    ) -> Result<Response, Refused> {
        match target {
            Target::Base => Ok(self.moved(scope, "")),
            Target::Projects => {
                let form = Form::of(headers)?;
                let names = self.hosting.python_projects(client, scope).await?;
                Ok(page(headers, form, pages::projects(form, &names)?))
            }
            Target::Project { name, is_canonical: false } => Ok(self.moved(scope, &format!("{name}/"))),
            Target::Project { name, .. } => {
                let form = Form::of(headers)?;
                let made_by = (form.content_type(), pages::project(form));
                let look = || self.hosting.python_page(client, scope, &name, made_by);
                let (rendered, stale) = self.until_here(look).await.map_err(|error| match error {
                    // uv takes a 403 of an index for wrong credentials, and shows the text of a 409.
                    HostError::Withheld(withheld) => Refused::withheld(StatusCode::CONFLICT, &withheld),
                    error => error.into(),
                })?;
                let mut response = page(headers, form, rendered);
                if let Some(stale) = stale {
                    set(&mut response, STALE, &(stale / 1_000_000).to_string());
                }
                Ok(response)
            }
            Target::File { .. } if is_shown(headers) => {
                let text = "browsers do not show files of packages; download them with an installer, such as pip";
                Err(Refused::new(StatusCode::FORBIDDEN, text))
            }
            Target::File { sha256, name, is_metadata } => {
                let look = || self.hosting.python_file(client, scope, (&sha256, &name), is_metadata);
                let is_whole = *method == Method::GET && !headers.contains_key(header::RANGE);
                let source = self.file_source(look, is_whole && !is_metadata).await?;
                self.file(method, headers, source).await
            }
            Target::Upload => Err(wrong_verb("POST")),
        }
    }

    /// A redirect to the page of a project, or to the list of projects.
    fn moved(&self, scope: Option<&str>, project: &str) -> Response {
        let scope = scope.map(|scope| format!("/~{}", percent::encode(scope, NOT_UNRESERVED))).unwrap_or_default();
        let mut response = typed(StatusCode::MOVED_PERMANENTLY, "text/plain", "");
        set(&mut response, header::LOCATION, &format!("{}/python{scope}/simple/{project}", self.url));
        response
    }
}

/// A page in a form, compressed where the client can take that, unless it has it.
fn page(headers: &HeaderMap, form: Form, page: RenderedPage) -> Response {
    let compressed = page.gzip.filter(|_| accepts_gzip(headers));
    // Other bytes have another tag.
    let tag = if compressed.is_some() { format!("{}-gzip", page.tag) } else { page.tag };
    let is_compressed = compressed.is_some();
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = if range::is_not_modified(known, &tag) {
        typed(StatusCode::NOT_MODIFIED, form.content_type(), "")
    } else {
        typed(StatusCode::OK, form.content_type(), compressed.unwrap_or(page.text))
    };
    if is_compressed {
        set(&mut response, header::CONTENT_ENCODING, "gzip");
    }
    set(&mut response, header::ETAG, &format!("\"{tag}\""));
    // Policies and what others publish change it at any time.
    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
    response
}

fn wrong_verb(allowed: &str) -> Refused {
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, format!("only {allowed} are possible here"))
        .with_header(header::ALLOW, allowed)
}
