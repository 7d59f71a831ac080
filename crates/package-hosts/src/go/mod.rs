//! The module proxy, which the go command speaks: versions, what is known of one, files, and the database of checksums.
//!
//! The go command shows a refusal only if it is plain text, and takes 404 and 410 alone for absence: with other statuses it does not
//! look elsewhere, so what a policy withholds is refused with 403.

mod checksums;
pub(crate) mod fetched;
mod publish;
mod target;
pub(crate) mod upstream_documents;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use bowline_core::rfc3339::{self, Digits};
use bowline_fronts::request::is_shown;
use bowline_libraries::hosting::{GoInfo, HostClient};
use serde_json::json;

use crate::PackageHosts;
use crate::answers::{Refused, set, typed};
use crate::pages::{note_age, page, rendered};
use crate::targets::wrong_verb;
use target::Kind;

pub(crate) use target::Target;

impl crate::targets::Target for Target {
    const WORD: &'static str = "go";

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
        hosts.answer_go(client, request, scope, self).await
    }

    fn shown(_path: &str, refused: Refused) -> Refused {
        refused.with_plain_text()
    }
}

impl PackageHosts {
    async fn answer_go(
        self: &Arc<Self>,
        client: &HostClient,
        request: Request,
        scope: Option<&str>,
        target: Target,
    ) -> Result<Response, Refused> {
        let (head, body) = request.into_parts();
        match (head.method.as_str(), target) {
            ("GET" | "HEAD", target) => {
                let mut response = self.read_go(client, (&head.method, &head.headers), scope, target).await?;
                set(&mut response, header::VARY, "Accept-Encoding, Authorization");
                Ok(response)
            }
            ("PUT", Target::File { module, version, kind: Kind::Zip }) => {
                self.put_go(client, scope, (&module, &version), body).await
            }
            ("DELETE", Target::File { module, version, kind: Kind::Zip }) => {
                self.hosting.delete_go_version(client, scope, (&module, &version)).await?;
                Ok(typed(StatusCode::NO_CONTENT, "text/plain", ""))
            }
            (_, target) => Err(wrong_verb(target.verbs())),
        }
    }

    async fn read_go(
        self: &Arc<Self>,
        client: &HostClient,
        (method, headers): (&Method, &HeaderMap),
        scope: Option<&str>,
        target: Target,
    ) -> Result<Response, Refused> {
        match target {
            Target::Base => {
                Ok(typed(StatusCode::OK, "text/plain; charset=utf-8", "a proxy for Go modules: set it as GOPROXY\n"))
            }
            Target::List { module } => {
                let list = self.until_here(|| self.hosting.go_versions(client, scope, &module)).await?;
                let lines = list.versions.iter().flat_map(|version| [version.as_str(), "\n"]).collect::<String>();
                let mut response = page(headers, "text/plain; charset=utf-8", rendered(&lines)?);
                note_age(&mut response, list.stale);
                Ok(response)
            }
            Target::Info { module, query } => {
                let info = self.until_here(|| self.hosting.go_info(client, scope, &module, &query)).await?;
                Ok(page(headers, "application/json", rendered(&json(&info))?))
            }
            Target::File { kind: Kind::Zip, .. } if is_shown(headers) => {
                let text = "browsers do not show files of packages; download them with the go command";
                Err(Refused::new(StatusCode::FORBIDDEN, text))
            }
            Target::File { module, version, kind } => {
                let name = kind.name(&version);
                let look = || self.hosting.go_file(client, scope, &module, &name);
                // Nothing says what files of upstreams are, so they are whole before they are served.
                let source = self.file_source(look, false).await?;
                self.file(method, headers, source).await
            }
            Target::Checksums { database, path } => self.checksums(client, scope, (&database, &path)).await,
            Target::Elsewhere => Err(nowhere()),
        }
    }
}

/// What is known of a version, as clients read it.
fn json(info: &GoInfo) -> String {
    let mut members = json!({ "Version": info.version });
    if info.time > 0 {
        members["Time"] = rfc3339::text(info.time, Digits::Fewest).into();
    }
    members.to_string()
}

fn nowhere() -> Refused {
    let text = "there is nothing at this path of the go packages: versions of modules lie at module/@v/list";
    Refused::new(StatusCode::NOT_FOUND, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_shown_with_its_time_if_that_is_known() {
        let info = |time| json(&GoInfo { version: "v1.0.0".into(), time });
        assert_eq!(info(1_700_000_000_000_000), r#"{"Time":"2023-11-14T22:13:20Z","Version":"v1.0.0"}"#);
        assert_eq!(info(0), r#"{"Version":"v1.0.0"}"#);
    }
}
