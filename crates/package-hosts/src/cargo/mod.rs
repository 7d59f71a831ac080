//! The registry of Cargo: its sparse index, archives, publishing, and versions that new lock files pass over.
//!
//! Cargo sends its token as it is, without a scheme. It shows a refusal of an index or a file if it is plain text, and one of a
//! change if it is a list of errors. What a policy withholds stays in the index as if its publishers had yanked it: new lock files pass
//! over it, and those that have it get the reason at the download.

mod index;
mod publish;
mod target;
pub(crate) mod upstream_documents;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_fronts::request::is_shown;
use bowline_libraries::hosting::{Cargo, CargoChange, HostClient};
use serde_json::{Value, json};

use crate::PackageHosts;
use crate::answers::{Refused, set, typed};
use crate::pages::{at_scope, note_age, page};
use crate::targets::wrong_verb;

pub(crate) use target::Target;

const JSON: &str = "application/json";
/// The user name that a token without one is taken for a password of.
const USER: &[u8] = b"_token:";
const TEXT: &str = "text/plain; charset=utf-8";

impl crate::targets::Target for Target {
    const WORD: &'static str = "cargo";

    fn parse(parts: &[&str]) -> Option<Target> {
        Some(target::of_parts(parts))
    }

    fn name(verb: &Method, path: &str) -> &'static str {
        target::name(verb, path)
    }

    fn shown(path: &str, refused: Refused) -> Refused {
        if target::has_errors(path) { refused.with_errors() } else { refused.with_plain_text() }
    }

    /// `cargo login` leads people to the address, where the console is.
    fn challenge(base: &str) -> Option<String> {
        Some(format!("Cargo login_url=\"{base}/console\""))
    }

    fn headers(mut headers: HeaderMap) -> HeaderMap {
        let bare = headers.get(header::AUTHORIZATION).filter(|value| !value.as_bytes().contains(&b' '));
        let basic = bare.map(|token| format!("Basic {}", STANDARD.encode([USER, token.as_bytes()].concat())));
        if let Some(Ok(mut basic)) = basic.map(HeaderValue::try_from) {
            basic.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, basic);
        }
        headers
    }

    async fn answer(
        self,
        hosts: &Arc<PackageHosts>,
        client: &HostClient,
        request: Request,
        scope: Option<&str>,
    ) -> Result<Response, Refused> {
        let (head, body) = request.into_parts();
        let change = |name: String, version: String, change| async move {
            hosts.hosting.change_crate(client, scope, (&name, &version), change).await?;
            Ok(answered(&json!({ "ok": true })))
        };
        match (head.method.as_str(), self) {
            (_, Target::Missing(sentence)) => Err(Refused::new(StatusCode::NOT_FOUND, sentence)),
            (_, Target::Elsewhere) => Err(nowhere()),
            ("PUT", Target::New) => hosts.put_crate(client, scope, body).await,
            ("DELETE", Target::Yank { name, version, is_set: true }) => change(name, version, CargoChange::Yank).await,
            ("PUT", Target::Yank { name, version, is_set: false }) => change(name, version, CargoChange::Unyank).await,
            ("DELETE", Target::Version { name, version }) => change(name, version, CargoChange::Delete).await,
            ("GET" | "HEAD", target) => {
                let mut response = hosts.read_cargo(client, &head.method, &head.headers, scope, target).await?;
                set(&mut response, header::VARY, "Accept-Encoding, Authorization");
                Ok(response)
            }
            (_, target) => Err(wrong_verb(target.verbs())),
        }
    }
}

impl PackageHosts {
    async fn read_cargo(
        self: &Arc<Self>,
        client: &HostClient,
        method: &Method,
        headers: &HeaderMap,
        scope: Option<&str>,
        target: Target,
    ) -> Result<Response, Refused> {
        match target {
            Target::Config => {
                self.hosting.require_reader::<Cargo>(client, scope).await?;
                let base = format!("{}/cargo{}", self.url, at_scope(scope));
                Ok(answered(&json!({ "dl": format!("{base}/api/v1/crates"), "api": base, "auth-required": true })))
            }
            Target::Index { name } => {
                let look = || self.hosting.cargo_index(client, scope, &name, index::rendered);
                let (rendered, stale) = self.until_here(look).await?;
                let mut response = page(headers, TEXT, rendered);
                note_age(&mut response, stale);
                Ok(response)
            }
            Target::File { .. } if is_shown(headers) => {
                let text = "browsers do not show files of packages; download them with cargo";
                Err(Refused::new(StatusCode::FORBIDDEN, text))
            }
            Target::File { name, version } => {
                let look = || self.hosting.cargo_file(client, scope, (&name, &version));
                let is_whole = *method == Method::GET && !headers.contains_key(header::RANGE);
                let source = self.file_source(look, is_whole).await?;
                self.file(method, headers, source).await
            }
            target => Err(wrong_verb(target.verbs())),
        }
    }
}

fn answered(body: &Value) -> Response {
    let mut response = typed(StatusCode::OK, JSON, body.to_string());
    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
    response
}

fn nowhere() -> Refused {
    let text = "there is nothing at this path of the crates: give cargo the address as sparse+ and the address of the \
                registry, with a slash at its end";
    Refused::new(StatusCode::NOT_FOUND, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Target as _;

    #[test]
    fn a_token_without_a_scheme_is_a_password() {
        for (sent, wanted) in
            [("abc", "Basic X3Rva2VuOmFiYw=="), ("Bearer abc", "Bearer abc"), ("Basic YTpi", "Basic YTpi")]
        {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(sent))]);
            assert_eq!(Target::headers(headers)[header::AUTHORIZATION], wanted);
        }
        assert!(Target::headers(HeaderMap::new()).is_empty());
    }
}
