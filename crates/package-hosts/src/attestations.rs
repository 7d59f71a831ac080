//! Signed statements about files: verified while a file is published, and served to those who verify them again.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bowline_core::Error;
use bowline_libraries::hosting::{FileAttestation, SubjectDigest};
use bowline_packages::Attestation;
use serde_json::Value;

use crate::PackageHosts;
use crate::answers::{Refused, set};
use crate::fetching::line;
use crate::pages::{page, rendered};

/// Maximum bytes of the statements about a file.
pub(crate) const STATEMENTS: usize = 256 << 10;
/// Says of statements that no one verified them.
const STATE: HeaderName = HeaderName::from_static("x-bowline-attestations");

impl PackageHosts {
    /// Statements about a file with those who signed them, by the trusted root of this server. Without one, none is verified.
    ///
    /// # Errors
    /// One does not verify.
    pub(crate) async fn verify_attestations(
        &self,
        attestations: Vec<Attestation>,
        subject: SubjectDigest,
    ) -> Result<Vec<FileAttestation>, Refused> {
        let (Some(root), false) = (self.trusted_root.clone(), attestations.is_empty()) else {
            let unverified = |Attestation { predicate_type, document, .. }| FileAttestation {
                predicate_type,
                document,
                signer: None,
            };
            return Ok(attestations.into_iter().map(unverified).collect());
        };
        // Signatures take processor time: on a thread that may wait, and not on many.
        let turn = self.archives.clone().acquire_owned().await.map_err(Error::internal)?;
        let verifying = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let verified = attestations.into_iter().map(|Attestation { predicate_type, document, bundle }| {
                let signer = root.signer(&bundle, &subject).map_err(|why| {
                    Refused::bad(format!(
                        "the attestation {predicate_type} does not verify by the trusted root of this server: {}",
                        line(&why)
                    ))
                })?;
                Ok(FileAttestation { predicate_type, document, signer: Some(signer) })
            });
            verified.collect()
        });
        verifying.await.map_err(Error::internal)?
    }

    /// What is said to those who publish statements that no one can verify here.
    pub(crate) fn unverified_notice(&self, has_attestations: bool) -> Option<&'static str> {
        let notice = "the attestations are stored, but not verified: this server has no trusted root";
        (has_attestations && self.trusted_root.is_none()).then_some(notice)
    }
}

/// Statements about a file, in JSON of a media type.
pub(crate) fn shown(
    headers: &HeaderMap,
    media_type: &str,
    attestations: &[FileAttestation],
    body: &Value,
) -> Result<Response, Refused> {
    let mut response = page(headers, media_type, rendered(body.to_string())?);
    let is_verified = attestations.iter().all(|attestation| attestation.signer.is_some());
    set(&mut response, STATE, if is_verified { "verified" } else { "unverified" });
    Ok(response)
}

/// The JSON of a stored statement.
pub(crate) fn document(attestation: &FileAttestation) -> Result<Value, Refused> {
    let damaged = |error| Error::internal(format!("an attestation {} is damaged: {error}", attestation.predicate_type));
    Ok(serde_json::from_str(&attestation.document).map_err(damaged)?)
}

/// Refuses clients that take none of some media types.
pub(crate) fn require_accepted(headers: &HeaderMap, media_types: &[&str]) -> Result<(), Refused> {
    let values: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| text(value)).collect();
    let accepted = values.join(",");
    let takes = |part: &str| {
        let media_type = part.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        matches!(media_type.as_str(), "*/*" | "application/*") || media_types.contains(&media_type.as_str())
    };
    if accepted.trim().is_empty() || accepted.split(',').any(takes) {
        return Ok(());
    }
    Err(Refused::new(StatusCode::NOT_ACCEPTABLE, format!("this is {}: accept it", media_types.join(" or "))))
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}
