//! Provenance of a file, as indexes of Python serve it (PEP 740): its attestations by who signed them.

use axum::http::HeaderMap;
use axum::response::Response;
use bowline_core::Error;
use bowline_libraries::hosting::{CertifiedSigner, FileAttestation, HostClient, Python};
use serde_json::{Value, json};

use crate::PackageHosts;
use crate::answers::Refused;
use crate::attestations::{document, require_accepted, shown};

const MEDIA_TYPE: &str = "application/vnd.pypi.integrity.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const JSON: &str = "application/json";
/// How the type of each kind of provenance begins.
const PROVENANCE: &str = "https://slsa.dev/provenance/";
/// Issuers of identities in certificates, with the address that identities of their workflows begin with.
const GITHUB: (&str, &str) = ("https://token.actions.githubusercontent.com", "https://github.com/");
const GITLAB: (&str, &str) = ("https://gitlab.com", "https://gitlab.com/");
const GOOGLE: &str = "https://accounts.google.com";

impl PackageHosts {
    /// The provenance of a file of a version; with `is_bundle` one of its attestations as a bundle of Sigstore, that of its
    /// build if it has one.
    pub(super) async fn python_provenance(
        &self,
        client: &HostClient,
        headers: &HeaderMap,
        scope: Option<&str>,
        file: (&str, &str, &str),
        is_bundle: bool,
    ) -> Result<Response, Refused> {
        let media_type = if is_bundle { BUNDLE } else { MEDIA_TYPE };
        require_accepted(headers, &[media_type, JSON])?;
        let attestations = self.hosting.attestations::<Python>(client, scope, file).await?;
        if is_bundle {
            let is_provenance = |one: &&FileAttestation| one.predicate_type.starts_with(PROVENANCE);
            let chosen = attestations.iter().find(is_provenance).or(attestations.first());
            let chosen = chosen.ok_or_else(|| Error::internal("a file has no attestation"))?;
            let damaged = |why: String| Error::internal(format!("an attestation of {} is damaged: {why}", file.2));
            let bundle = bowline_packages::python_bundle(&chosen.document).map_err(damaged)?;
            let bundle: Value = serde_json::from_str(&bundle).map_err(|error| damaged(error.to_string()))?;
            return shown(headers, media_type, std::slice::from_ref(chosen), &bundle);
        }
        shown(headers, media_type, &attestations, &provenance(&attestations)?)
    }
}

/// Attestations by who signed them, in their order.
fn provenance(attestations: &[FileAttestation]) -> Result<Value, Refused> {
    let mut of_signers: Vec<(Option<&CertifiedSigner>, Vec<Value>)> = Vec::new();
    for attestation in attestations {
        let (signer, document) = (attestation.signer.as_ref(), document(attestation)?);
        match of_signers.iter_mut().find(|(other, _)| *other == signer) {
            Some((_, documents)) => documents.push(document),
            None => of_signers.push((signer, vec![document])),
        }
    }
    let bundle = |(signer, documents)| json!({ "publisher": publisher(signer), "attestations": documents });
    let bundles: Vec<Value> = of_signers.into_iter().map(bundle).collect();
    Ok(json!({ "version": 1, "attestation_bundles": bundles }))
}

/// Who signed, in the form that clients verify certificates by.
fn publisher(signer: Option<&CertifiedSigner>) -> Value {
    let Some(CertifiedSigner { identity, issuer }) = signer else {
        return json!({ "kind": "unverified", "claims": null });
    };
    let claims = json!({ "identity": identity, "issuer": issuer });
    if let Some((repository, workflow)) = workflow(identity, issuer, GITHUB, "/.github/workflows/") {
        return json!({ "kind": "GitHub", "repository": repository, "workflow": workflow, "environment": null,
                       "claims": claims });
    }
    if let Some((repository, path)) = workflow(identity, issuer, GITLAB, "//") {
        return json!({ "kind": "GitLab", "repository": repository, "workflow_filepath": path, "environment": null,
                       "claims": claims });
    }
    if issuer == GOOGLE {
        return json!({ "kind": "Google", "email": identity, "claims": claims });
    }
    json!({ "kind": issuer, "claims": claims })
}

/// Repository and workflow of an identity of a forge, which has the address of the workflow and, after an @, its revision.
fn workflow<'a>(
    identity: &'a str,
    issuer: &str,
    (of_forge, address): (&str, &str),
    separator: &str,
) -> Option<(&'a str, &'a str)> {
    let path = identity.strip_prefix(address).filter(|_| issuer == of_forge)?;
    let (repository, rest) = path.split_once(separator)?;
    Some((repository, rest.split_once('@')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(identity: &str, issuer: &str) -> Value {
        publisher(Some(&CertifiedSigner { identity: identity.into(), issuer: issuer.into() }))
    }

    #[test]
    fn publishers_have_the_form_that_clients_verify_by() {
        let github = of("https://github.com/acme/app/.github/workflows/release.yml@refs/tags/v1", GITHUB.0);
        assert_eq!(
            (&github["kind"], &github["repository"], &github["workflow"]),
            (&json!("GitHub"), &json!("acme/app"), &json!("release.yml"))
        );
        let gitlab = of("https://gitlab.com/acme/sub/app//.gitlab-ci.yml@refs/heads/main", GITLAB.0);
        assert_eq!(
            (&gitlab["kind"], &gitlab["repository"], &gitlab["workflow_filepath"]),
            (&json!("GitLab"), &json!("acme/sub/app"), &json!(".gitlab-ci.yml"))
        );
        assert_eq!(of("dana@acme.example", GOOGLE)["email"], "dana@acme.example");
        // The address of a forge proves nothing where another issuer names it.
        let other =
            of("https://github.com/acme/app/.github/workflows/release.yml@refs/tags/v1", "https://ci.acme.example");
        assert_eq!((&other["kind"], other.get("repository")), (&json!("https://ci.acme.example"), None));
        assert_eq!(other["claims"]["issuer"], "https://ci.acme.example");
        assert_eq!(publisher(None), json!({ "kind": "unverified", "claims": null }));
    }

    #[test]
    fn attestations_of_one_signer_are_together() {
        let signer = |identity: &str| CertifiedSigner { identity: identity.into(), issuer: "i".into() };
        let attestation = |predicate_type: &str, signer: Option<CertifiedSigner>| FileAttestation {
            predicate_type: predicate_type.into(),
            document: json!({ "of": predicate_type }).to_string(),
            signer,
        };
        let all = [attestation("a", Some(signer("x"))), attestation("b", None), attestation("c", Some(signer("x")))];
        let provenance = provenance(&all).expect("a provenance");
        let bundles = provenance["attestation_bundles"].as_array().expect("bundles");
        assert_eq!(bundles.len(), 2);
        assert_eq!(bundles[0]["attestations"], json!([{ "of": "a" }, { "of": "c" }]));
        assert_eq!(bundles[1]["publisher"]["kind"], "unverified");
    }
}
