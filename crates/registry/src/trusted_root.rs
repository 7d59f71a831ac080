//! A trusted root of Sigstore: who certifies signers, and what proves when they signed.

use sigstore_verify::types::{
    Artifact, ArtifactDigest, Bundle, HashAlgorithm, Sha256Hash, Sha512Hash, SignatureContent,
};
use sigstore_verify::{Error, VerificationPolicy, VerificationResult, Verifier};

/// Maximum bytes of an identity or issuer.
const LONGEST_NAME: usize = 2048;

/// Certificate authorities with the logs or timestamp authorities that prove the time of a signature, ready to verify.
pub struct TrustedRoot {
    verifier: Verifier,
    has_logs: bool,
    has_certificate_logs: bool,
}

/// Who signed, as a certificate of a trusted authority says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedSigner {
    /// An e-mail address or a URI, such as that of a workflow.
    pub identity: String,
    /// Issuer of that identity.
    pub issuer: String,
    /// Of a workflow: the address of the repository that it built, and of its definition there, with a revision. Empty if the
    /// certificate does not say. The identity may be another repository's: that of a workflow which others call.
    pub source_repository: String,
    pub build_config: String,
}

/// The digest of what a statement is about, in hex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectDigest {
    Sha256(String),
    Sha512(String),
}

impl SubjectDigest {
    fn artifact(&self) -> Result<Artifact<'static>, sigstore_verify::types::Error> {
        let digest = match self {
            SubjectDigest::Sha256(hex) => ArtifactDigest::sha256(Sha256Hash::from_hex(hex)?),
            SubjectDigest::Sha512(hex) => ArtifactDigest::new(HashAlgorithm::Sha2512, Sha512Hash::from_hex(hex)?)?,
        };
        Ok(Artifact::Digest(digest))
    }
}

impl TrustedRoot {
    /// Reads a trusted root, in the JSON of Sigstore.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<TrustedRoot, String> {
        let root = sigstore_verify::trust_root::TrustedRoot::from_json(text)
            .map_err(|error| format!("is no trusted root in JSON: {error}"))?;
        if root.certificate_authorities.is_empty() {
            return Err("has no certificate authority".into());
        }
        if root.tlogs.is_empty() && root.timestamp_authorities.is_empty() {
            return Err(
                "has neither a transparency log nor a timestamp authority to prove when something was signed".into()
            );
        }
        let verifier = Verifier::new(&root).map_err(|error| format!("does not verify anything: {error}"))?;
        Ok(TrustedRoot { verifier, has_logs: !root.tlogs.is_empty(), has_certificate_logs: !root.ctlogs.is_empty() })
    }

    /// Who signed the statement of a bundle, in JSON, which is about a file with that digest.
    ///
    /// # Errors
    /// Why it proves nothing.
    pub fn signer(&self, bundle: &str, subject: &SubjectDigest) -> Result<CertifiedSigner, String> {
        let bundle = Bundle::from_json(bundle).map_err(|error| error.to_string())?;
        if !matches!(bundle.content, SignatureContent::DsseEnvelope(_)) {
            return Err("it has no statement in an envelope".into());
        }
        self.certified(&bundle, subject)
    }

    /// Who signed a file with that digest, by a bundle in JSON: the bytes themselves, or a statement about them.
    ///
    /// # Errors
    /// Why it proves nothing.
    pub fn file_signer(&self, bundle: &str, subject: &SubjectDigest) -> Result<CertifiedSigner, String> {
        let bundle = Bundle::from_json(bundle).map_err(|error| error.to_string())?;
        self.certified(&bundle, subject)
    }

    fn certified(&self, bundle: &Bundle, subject: &SubjectDigest) -> Result<CertifiedSigner, String> {
        let artifact = subject.artifact().map_err(|error| error.to_string())?;
        let verified = self.verify(artifact, bundle, VerificationPolicy::any_identity());
        let verified = verified.map_err(|error| error.to_string())?;
        let identity = verified.identity().map(|identity| identity.as_str().to_owned()).unwrap_or_default();
        let issuer = verified.issuer().unwrap_or_default().to_owned();
        if !is_plain(&identity) || !is_plain(&issuer) {
            return Err("its certificate names no identity with an issuer, in printable characters".into());
        }
        let claims = verified.certificate().map(|certificate| &certificate.ci_claims);
        let claim = |text: Option<&String>| text.filter(|text| is_plain(text)).cloned().unwrap_or_default();
        let source_repository = claim(claims.and_then(|claims| claims.source_repository_uri.as_ref()));
        let build_config = claim(claims.and_then(|claims| claims.build_config_uri.as_ref()));
        Ok(CertifiedSigner { identity, issuer, source_repository, build_config })
    }

    /// Verifies a bundle, with as much of a proof as the root has authorities for.
    pub(crate) fn verify(
        &self,
        artifact: Artifact<'_>,
        bundle: &Bundle,
        policy: VerificationPolicy,
    ) -> Result<VerificationResult, Error> {
        let policy = if self.has_logs { policy } else { policy.skip_tlog_unsafe() };
        let policy = if self.has_certificate_logs { policy } else { policy.skip_sct() };
        self.verifier.verify(artifact, bundle, &policy)
    }
}

/// Whether people can read a name, and databases store it.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}
