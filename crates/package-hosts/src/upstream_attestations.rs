//! Signed statements about files of upstreams: requested, and compared with the file before they are served.
//!
//! They are verified whenever they are served: a root that the operator sets later holds for what is stored, too.

use axum::http::header;
use bowline_libraries::Language;
use bowline_libraries::hosting::{
    Answer, Ask, FileAttestation, HostError, NewDocument, SubjectDigest, TrustedRoot, UpstreamDocument,
    UpstreamStatements,
};
use bowline_packages::Attestation;
use serde::de::IgnoredAny;

use crate::PackageHosts;
use crate::answers::Refused;
use crate::attestations::{STATEMENTS, verified};
use crate::fetching::{self, line, text_of};

const PYTHON: &str = "application/vnd.pypi.integrity.v1+json, application/json;q=0.5";
const NPM: &str = "application/json";

/// What the upstream answers to a request for the statements about a file.
pub(crate) async fn answer(hosts: &PackageHosts, ask: &Ask, address: &str) -> Result<Answer, String> {
    let accepted = if ask.language == Language::Python { PYTHON } else { NPM };
    let opened = match fetching::requested_page(hosts, ask, (address, accepted)).await? {
        Ok((opened, _)) => opened,
        Err(answer) => return Ok(answer),
    };
    let (etag, last_modified) = (text_of(&opened, header::ETAG), text_of(&opened, header::LAST_MODIFIED));
    let body = opened.whole(STATEMENTS).await.map_err(fetching::in_log)?;
    let statements = String::from_utf8(body.into()).map_err(|_| "its statements are not UTF-8")?;
    // What is no JSON at all is of a proxy in between rather than of the upstream.
    serde_json::from_str::<IgnoredAny>(&statements).map_err(|error| format!("its statements are no JSON: {error}"))?;
    let document = UpstreamDocument { statements, ..UpstreamDocument::default() };
    Ok(Answer::Document(Box::new(NewDocument { etag, last_modified, document, ..NewDocument::default() })))
}

impl PackageHosts {
    /// The statements of an upstream, which `read` finds in its JSON with what else it is for, with those who signed them.
    ///
    /// # Errors
    /// They are not about the file, or one does not verify by the trusted root, if there is one.
    pub(crate) async fn verified_statements<T: Send + 'static>(
        &self,
        of: UpstreamStatements,
        read: impl FnOnce(&UpstreamStatements) -> Result<(Vec<Attestation>, T), String> + Send + 'static,
    ) -> Result<(Vec<FileAttestation>, T), Refused> {
        let refused = format!("the upstream {} has statements about {} that are not served", of.upstream, of.file);
        let verifying = self.in_turn(&self.statements, move |root| {
            let (attestations, more) = read(&of)?;
            let subject = subject(&of.digest)?;
            let certified = attestations.into_iter().map(|attestation| certified(attestation, root, &subject));
            Ok((certified.collect::<Result<Vec<_>, String>>()?, more))
        });
        let outcome: Result<_, String> = verifying.await?;
        outcome.map_err(|why| HostError::Upstream(format!("{refused}: {}", line(&why))).into())
    }
}

/// The digest that statements must be about.
fn subject(digest: &str) -> Result<SubjectDigest, String> {
    match digest.split_once(':') {
        Some(("sha256", hex)) => Ok(SubjectDigest::Sha256(hex.to_owned())),
        Some(("sha512", hex)) => Ok(SubjectDigest::Sha512(hex.to_owned())),
        _ => Err("the file has no digest that they could be about".into()),
    }
}

/// A statement with who signed it. The public registry of npm signs that it published a version by a key of its own, of which no
/// root knows the owner: such a statement passes as unverified. Provenance does not.
fn certified(
    attestation: Attestation,
    root: Option<&TrustedRoot>,
    subject: &SubjectDigest,
) -> Result<FileAttestation, String> {
    let unverified = FileAttestation {
        predicate_type: attestation.predicate_type.clone(),
        document: attestation.document.clone(),
        signer: None,
        subject_sha256: String::new(),
    };
    if !attestation.is_certified && !unverified.is_provenance() {
        return Ok(unverified);
    }
    verified(attestation, root, subject)
}
