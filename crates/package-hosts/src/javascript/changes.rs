//! What clients change of packages that are there: warnings, tags, versions that they take back.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::StatusCode;
use bowline_core::{Error, Reason};
use bowline_libraries::hosting::HostClient;

use super::document::Document;
use crate::PackageHosts;
use crate::answers::Refused;

/// Maximum bytes of a version in a body.
const VERSION: usize = 1024;

impl PackageHosts {
    /// Applies a document that a client read, changed and sent back. Without a revision in the address it sets warnings alone;
    /// with one, versions that it has no more are deleted.
    pub(super) async fn change_package(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (name, revision): (&str, Option<&str>),
        document: Document,
    ) -> Result<(), Refused> {
        let warnings = document.warnings().ok_or_else(|| {
            Refused::bad(
                "the document has no versions: who may publish is a matter of roles, such as libraries.javascript.push, and \
                 a whole package is deleted by npm unpublish",
            )
        })?;
        let Some(revision) = revision else {
            let revision = document.revision.as_deref();
            return Ok(self.hosting.deprecate_javascript(client, scope, (name, revision), warnings).await?);
        };
        let remaining: BTreeSet<String> = warnings.into_keys().collect();
        Ok(self.hosting.delete_javascript(client, scope, (name, revision), Some(remaining)).await?)
    }

    /// Lets a tag stand for the version that the body is.
    pub(super) async fn set_tag(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (name, tag): (&str, &str),
        body: Body,
    ) -> Result<(), Refused> {
        let bytes = axum::body::to_bytes(body, VERSION).await.map_err(|_| {
            Refused::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {VERSION} bytes, or broke off"))
        })?;
        let version: String =
            serde_json::from_slice(&bytes).map_err(|_| Refused::bad("the body must be a version as a JSON string"))?;
        Ok(self.hosting.tag_javascript(client, scope, (name, tag), Some(&version)).await?)
    }

    /// Confirms that a file is gone, which clients ask for after they took its version out of the document.
    pub(super) async fn require_deleted(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        name: &str,
        file: &str,
    ) -> Result<(), Refused> {
        let _turn = self.whole.acquire().await.map_err(Error::internal)?;
        match self.hosting.own_javascript_package(client, scope, name).await {
            Ok(own) if own.packument.versions.iter().any(|version| version.file == file) => Err(Refused::new(
                StatusCode::CONFLICT,
                format!("{file} is a file of a version that is there: delete that with npm unpublish"),
            )),
            Ok(_) => Ok(()),
            Err(error) => {
                let refused = Refused::from(error);
                if refused.reason() == Reason::NotFound { Ok(()) } else { Err(refused) }
            }
        }
    }
}
