//! Provenance of a file, as indexes of Python serve it (PEP 740): its attestations by who signed them.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;
use bowline_core::Error;
use bowline_libraries::hosting::{
    Attestations, CertifiedSigner, FileAttestation, HostClient, Python, UpstreamStatements,
};
use bowline_packages::Attestation;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::PackageHosts;
use crate::answers::Refused;
use crate::attestations::{document, require_accepted};
use crate::pages::note_age;

const MEDIA_TYPE: &str = "application/vnd.pypi.integrity.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const JSON: &str = "application/json";
/// Issuers of identities in certificates, with the address that identities of their workflows begin with.
const GITHUB: (&str, &str) = ("https://token.actions.githubusercontent.com", "https://github.com/");
const GITLAB: (&str, &str) = ("https://gitlab.com", "https://gitlab.com/");
const GOOGLE: &str = "https://accounts.google.com";

impl PackageHosts {
    /// The provenance of a file of a version; with `is_bundle` one of its attestations as a bundle of Sigstore, that of its
    /// build if it has one.
    pub(super) async fn python_provenance(
        self: &Arc<Self>,
        client: &HostClient,
        headers: &HeaderMap,
        scope: Option<&str>,
        file: (&str, &str, &str),
        is_bundle: bool,
    ) -> Result<Response, Refused> {
        let media_type = if is_bundle { BUNDLE } else { MEDIA_TYPE };
        require_accepted(headers, &[media_type, JSON])?;
        let look = || self.hosting.attestations::<Python>(client, scope, file);
        let (mut attestations, upstream, stale) = match self.until_here(look).await? {
            Attestations::Hosted(attestations) => (attestations, None, None),
            Attestations::Upstream(of) => {
                let stale = of.stale;
                let (attestations, document) = self.verified_statements(of, read).await?;
                (attestations, Some(document), stale)
            }
        };
        if is_bundle {
            let at = attestations.iter().position(FileAttestation::is_provenance).unwrap_or_default();
            attestations = vec![attestations.swap_remove(at)];
        }
        // Where no one verified who signed, the publishers are those that the upstream names.
        let named = upstream.filter(|_| attestations.iter().any(|attestation| attestation.signer.is_none()));
        let write = move |attestations: &[FileAttestation]| match named {
            _ if is_bundle => bundle(attestations),
            Some(document) => Ok(document),
            None => provenance(attestations),
        };
        let mut response = self.shown_attestations(headers, media_type, attestations, write).await?;
        note_age(&mut response, stale);
        Ok(response)
    }
}

/// The attestations in the provenance of an upstream, and the whole as it names publishers.
fn read(of: &UpstreamStatements) -> Result<(Vec<Attestation>, String), String> {
    let sha256 = of.digest.strip_prefix("sha256:").ok_or("the file has no SHA-256 that it could be about")?;
    let provenance = bowline_packages::python_provenance(&of.text, &of.file, sha256)?;
    Ok((provenance.attestations, provenance.document))
}

/// The one attestation as a bundle.
fn bundle(attestations: &[FileAttestation]) -> Result<String, Refused> {
    let damaged = |why| Error::internal(format!("an attestation is damaged: {why}"));
    let [attestation] = attestations else { return Err(damaged("it is not one".to_owned()).into()) };
    Ok(bowline_packages::python_bundle(&attestation.document).map_err(damaged)?)
}

/// What an index says of a file, by PEP 740.
#[derive(Serialize)]
struct Provenance {
    version: u8,
    attestation_bundles: Vec<AttestationBundle>,
}

/// The attestations of one signer.
#[derive(Serialize)]
struct AttestationBundle {
    publisher: Value,
    attestations: Vec<Box<RawValue>>,
}

/// Attestations by who signed them, in their order.
fn provenance(attestations: &[FileAttestation]) -> Result<String, Refused> {
    let mut of_signers: Vec<(Option<&CertifiedSigner>, Vec<Box<RawValue>>)> = Vec::new();
    for attestation in attestations {
        let (signer, document) = (attestation.signer.as_ref(), document(attestation)?);
        match of_signers.iter_mut().find(|(other, _)| *other == signer) {
            Some((_, documents)) => documents.push(document),
            None => of_signers.push((signer, vec![document])),
        }
    }
    let bundle = |(signer, attestations)| AttestationBundle { publisher: publisher(signer), attestations };
    let provenance = Provenance { version: 1, attestation_bundles: of_signers.into_iter().map(bundle).collect() };
    Ok(serde_json::to_string(&provenance).map_err(Error::internal)?)
}

/// Who signed, in the form that clients verify certificates by: a workflow by the repository that it built and its definition
/// there. The identity may be that of a workflow of another repository, which was called.
fn publisher(signer: Option<&CertifiedSigner>) -> Value {
    let Some(signer) = signer else { return json!({ "kind": "unverified", "claims": null }) };
    let CertifiedSigner { identity, issuer, source_repository, build_config: _ } = signer;
    let claims = json!({ "identity": identity, "issuer": issuer, "source_repository": source_repository });
    if let Some((repository, workflow)) = workflow(signer, GITHUB, "/.github/workflows/") {
        return json!({ "kind": "GitHub", "repository": repository, "workflow": workflow, "environment": null,
                       "claims": claims });
    }
    if let Some((repository, path)) = workflow(signer, GITLAB, "//") {
        return json!({ "kind": "GitLab", "repository": repository, "workflow_filepath": path, "environment": null,
                       "claims": claims });
    }
    if issuer == GOOGLE {
        return json!({ "kind": "Google", "email": identity, "claims": claims });
    }
    json!({ "kind": issuer, "claims": claims })
}

/// Repository and definition of a workflow of a forge. The address of the definition is that of the repository, a separator, its
/// path, and its revision after an @.
fn workflow<'a>(
    signer: &'a CertifiedSigner,
    (of_forge, address): (&str, &str),
    separator: &str,
) -> Option<(&'a str, &'a str)> {
    let CertifiedSigner { identity: _, issuer, source_repository, build_config } = signer;
    let repository = source_repository.strip_prefix(address).filter(|_| issuer == of_forge)?;
    let definition = build_config.strip_prefix(source_repository.as_str())?.strip_prefix(separator)?;
    // Names of tags may have an @, too.
    let (path, _) = definition.split_once("@refs/").or_else(|| definition.rsplit_once('@'))?;
    Some((repository, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(identity: &str, issuer: &str, source: &str, build: &str) -> CertifiedSigner {
        let (source_repository, build_config) = (source.into(), build.into());
        CertifiedSigner { identity: identity.into(), issuer: issuer.into(), source_repository, build_config }
    }

    fn of(identity: &str, issuer: &str, source: &str, build: &str) -> Value {
        publisher(Some(&signer(identity, issuer, source, build)))
    }

    #[test]
    fn publishers_have_the_form_that_clients_verify_by() {
        let (app, release) = ("https://github.com/acme/app", "/.github/workflows/release.yml@refs/tags/@acme/app@1.0");
        // The workflow that signed is another repository's, which calls it.
        let shared = "https://github.com/acme/ci/.github/workflows/shared.yml@refs/heads/main";
        let github = of(shared, GITHUB.0, app, &format!("{app}{release}"));
        assert_eq!(
            (&github["kind"], &github["repository"], &github["workflow"]),
            (&json!("GitHub"), &json!("acme/app"), &json!("release.yml"))
        );
        assert_eq!(
            (&github["claims"]["identity"], &github["claims"]["source_repository"]),
            (&json!(shared), &json!(app))
        );
        let project = "https://gitlab.com/acme/sub/app";
        let gitlab = of("x", GITLAB.0, project, &format!("{project}//.gitlab-ci.yml@0123abcd"));
        assert_eq!(
            (&gitlab["kind"], &gitlab["repository"], &gitlab["workflow_filepath"]),
            (&json!("GitLab"), &json!("acme/sub/app"), &json!(".gitlab-ci.yml"))
        );
        assert_eq!(of("dana@acme.example", GOOGLE, "", "")["email"], "dana@acme.example");
        for other in [
            // The address of a forge proves nothing where another issuer names it.
            of(shared, "https://ci.acme.example", app, &format!("{app}{release}")),
            // What was built is not known, or its definition lies elsewhere.
            of(shared, GITHUB.0, "", ""),
            of(shared, GITHUB.0, app, shared),
            of(shared, GITHUB.0, app, &format!("{app}-other{release}")),
        ] {
            assert_eq!((&other["kind"], other.get("repository")), (&other["claims"]["issuer"], None), "{other}");
        }
        assert_eq!(publisher(None), json!({ "kind": "unverified", "claims": null }));
    }

    #[test]
    fn attestations_of_one_signer_are_together() {
        let signer = |identity: &str| signer(identity, "i", "", "");
        let attestation = |predicate_type: &str, signer: Option<CertifiedSigner>| FileAttestation {
            predicate_type: predicate_type.into(),
            document: json!({ "of": predicate_type }).to_string(),
            signer,
            subject_sha256: String::new(),
        };
        let all = [attestation("a", Some(signer("x"))), attestation("b", None), attestation("c", Some(signer("x")))];
        let provenance: Value = serde_json::from_str(&provenance(&all).expect("a provenance")).expect("JSON");
        let bundles = provenance["attestation_bundles"].as_array().expect("bundles");
        assert_eq!(bundles.len(), 2);
        assert_eq!(bundles[0]["attestations"], json!([{ "of": "a" }, { "of": "c" }]));
        assert_eq!(bundles[1]["publisher"]["kind"], "unverified");
    }
}
