//! The package index of Python: pages of projects, their files, and uploads.

pub(crate) mod documents;
mod negotiation;
mod pages;
mod provenance;
mod target;
mod upload;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use bowline_fronts::request::is_shown;
use bowline_libraries::hosting::{HostClient, HostError};

use crate::PackageHosts;
use crate::answers::{Refused, set, typed};
use crate::pages::{at_scope, note_age, page};
use crate::targets::wrong_verb;
use negotiation::Form;

pub(crate) use target::Target;

impl crate::targets::Target for Target {
    const WORD: &'static str = "python";

    fn parse(parts: &[&str]) -> Option<Target> {
        target::of_parts(parts)
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
        match (&head.method, self) {
            (&Method::POST, Target::Upload) => hosts.upload(client, scope, &head.headers, body).await,
            (_, Target::Upload) => Err(wrong_verb("POST")),
            (&Method::GET | &Method::HEAD, target) => {
                let mut response = hosts.read(client, &head.method, &head.headers, scope, target).await?;
                set(&mut response, header::VARY, "Accept, Accept-Encoding, Authorization");
                Ok(response)
            }
            _ => Err(wrong_verb("GET, HEAD")),
        }
    }
}

impl PackageHosts {
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
                Ok(page(headers, form.content_type(), pages::projects(form, &names)?))
            }
            Target::Project { name, is_canonical: false } => Ok(self.moved(scope, &format!("{name}/"))),
            Target::Project { name, .. } => {
                let form = Form::of(headers)?;
                let base = format!("{}/python{}", self.url, at_scope(scope));
                let look = || {
                    let below = base.clone();
                    let render = move |project: &_| pages::project(form, project, &below);
                    self.hosting.python_page(client, scope, &name, (form.content_type(), &base), render)
                };
                let (rendered, stale) = self.until_here(look).await.map_err(|error| match error {
                    // uv takes a 403 of an index for wrong credentials, and shows the text of a 409.
                    HostError::Withheld(withheld) => Refused::withheld(StatusCode::CONFLICT, &withheld),
                    error => error.into(),
                })?;
                let mut response = page(headers, form.content_type(), rendered);
                note_age(&mut response, stale);
                Ok(response)
            }
            Target::File { .. } if is_shown(headers) => {
                let text = "browsers do not show files of packages; download them with an installer, such as pip";
                Err(Refused::new(StatusCode::FORBIDDEN, text))
            }
            Target::File { file, is_metadata } => {
                let look = || self.hosting.python_file(client, scope, &file, is_metadata);
                let is_whole = *method == Method::GET && !headers.contains_key(header::RANGE);
                let source = self.file_source(look, is_whole && !is_metadata).await?;
                self.file(method, headers, source).await
            }
            Target::Provenance { project, version, file, is_bundle } => {
                self.python_provenance(client, headers, scope, (&project, &version, &file), is_bundle).await
            }
            Target::Upload => Err(wrong_verb("POST")),
        }
    }

    /// A redirect to the page of a project, or to the list of projects.
    fn moved(&self, scope: Option<&str>, project: &str) -> Response {
        let mut response = typed(StatusCode::MOVED_PERMANENTLY, "text/plain", "");
        set(&mut response, header::LOCATION, &format!("{}/python{}/simple/{project}", self.url, at_scope(scope)));
        response
    }
}
