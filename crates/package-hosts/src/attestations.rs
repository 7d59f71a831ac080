//! Signed statements about files: verified while a file is published, and served to those who verify them again.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bowline_core::Error;
use bowline_libraries::hosting::{FileAttestation, SubjectDigest, TrustedRoot};
use bowline_packages::Attestation;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::PackageHosts;
use crate::answers::{Refused, set};
use crate::fetching::line;
use crate::pages::{page, rendered};

/// Maximum bytes of the statements about a file.
pub(crate) const STATEMENTS: usize = 256 << 10;
/// Says of statements that no one verified them.
const STATE: HeaderName = HeaderName::from_static("x-bowline-attestations");

impl PackageHosts {
    /// The statements about a file that `read` finds, with those who signed them, by the trusted root of this server. Without one,
    /// none is verified.
    ///
    /// # Errors
    /// They cannot be read, or one does not verify.
    pub(crate) async fn verified_attestations(
        &self,
        read: impl FnOnce() -> Result<Vec<Attestation>, String> + Send + 'static,
        subject: SubjectDigest,
    ) -> Result<Vec<FileAttestation>, Refused> {
        let verifying = self.in_turn(&self.archives, move |root| {
            let attestations = read().map_err(|why| line(&why))?;
            if attestations.iter().map(|attestation| attestation.document.len()).sum::<usize>() > STATEMENTS {
                return Err(format!("the attestations have more than {STATEMENTS} bytes"));
            }
            attestations.into_iter().map(|attestation| verified(attestation, root, &subject)).collect()
        });
        verifying.await?.map_err(Refused::bad)
    }

    /// Does work with statements of others, which take memory and signatures processor time: on a thread that may wait, in a turn
    /// of some, of which readers have others than publishers. It is given the trusted root, if there is one.
    pub(crate) async fn in_turn<T: Send + 'static>(
        &self,
        turns: &Arc<Semaphore>,
        work: impl FnOnce(Option<&TrustedRoot>) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let root = self.trusted_root.clone();
        let turn = turns.clone().acquire_owned().await.map_err(Error::internal)?;
        let working = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(root.as_deref())
        });
        Ok(working.await.map_err(Error::internal)?)
    }

    /// What is said to those who publish statements that no one can verify here.
    pub(crate) fn unverified_notice(&self, has_attestations: bool) -> Option<&'static str> {
        let notice = "the attestations are stored, but not verified: this server has no trusted root";
        (has_attestations && self.trusted_root.is_none()).then_some(notice)
    }

    /// The statements about a file in JSON of a media type, which `write` makes.
    pub(crate) async fn shown_attestations(
        &self,
        headers: &HeaderMap,
        media_type: &str,
        attestations: Vec<FileAttestation>,
        write: impl FnOnce(&[FileAttestation]) -> Result<String, Refused> + Send + 'static,
    ) -> Result<Response, Refused> {
        let is_verified = attestations.iter().all(|attestation| attestation.signer.is_some());
        let _turn = self.whole.acquire().await.map_err(Error::internal)?;
        let writing = tokio::task::spawn_blocking(move || Ok::<_, Refused>(rendered(&write(&attestations)?)?));
        let mut response = page(headers, media_type, writing.await.map_err(Error::internal)??);
        set(&mut response, STATE, state(is_verified));
        Ok(response)
    }
}

/// Whether all statements of a response were verified, for machines.
fn state(is_verified: bool) -> &'static str {
    if is_verified { "verified" } else { "unverified" }
}

/// Notes beside a response whether what was published with the request was verified.
pub(crate) fn set_state(response: &mut Response, is_verified: bool) {
    set(response, STATE, state(is_verified));
}

/// A statement with who signed it.
///
/// # Errors
/// It does not verify, as a sentence.
pub(crate) fn verified(
    Attestation { predicate_type, document, bundle, is_certified: _ }: Attestation,
    root: Option<&TrustedRoot>,
    subject: &SubjectDigest,
) -> Result<FileAttestation, String> {
    let signer = root.map(|root| root.signer(&bundle, subject)).transpose().map_err(|why| {
        format!("the attestation {predicate_type} does not verify by the trusted root of this server: {}", line(&why))
    })?;
    Ok(FileAttestation { predicate_type, document, signer, subject_sha256: String::new() })
}

/// The JSON of a stored statement as it is: clients read it, and nothing here does.
pub(crate) fn document(attestation: &FileAttestation) -> Result<Box<RawValue>, Refused> {
    let damaged = |error| Error::internal(format!("an attestation {} is damaged: {error}", attestation.predicate_type));
    Ok(RawValue::from_string(attestation.document.clone()).map_err(damaged)?)
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
