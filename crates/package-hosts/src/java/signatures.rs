//! Signatures beside files: bundles of Sigstore that plugins of Maven and Gradle publish as `FILE.sigstore.json`.
//!
//! Maven sends files at the same time, so a signature may come before its file. It says which bytes it is about: then the file
//! must have those.

use std::io::Read as _;

use axum::body::Body;
use axum::response::Response;
use bowline_content::{Digest, Stored};
use bowline_libraries::hosting::{FileAttestation, HostClient, JAVA_SIGNATURE, SubjectDigest, TrustedRoot};
use bowline_packages::FileSignature;

use crate::PackageHosts;
use crate::answers::Refused;
use crate::attestations::{STATEMENTS, set_state};
use crate::fetching::line;

impl PackageHosts {
    /// The signature that a stored file is, with who signed, by the trusted root of this server. Without one, it is not verified.
    ///
    /// # Errors
    /// It is no such signature, is about other bytes than those of the file beside it, or does not verify.
    pub(super) async fn java_signature(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (package, name): (&str, &str),
        of: (&Digest, &Stored),
    ) -> Result<FileAttestation, Refused> {
        let signed = name.strip_suffix(JAVA_SIGNATURE).unwrap_or(name);
        let there = self.hosting.own_java_file(client, scope, (package, signed)).await?;
        let (root, sha256) = (self.trusted_root.clone(), there.map(|there| there.sha256));
        let file = signed.to_owned();
        let read = move |source, _| {
            let mut text = Vec::new();
            std::io::Read::take(source, STATEMENTS as u64 + 1).read_to_end(&mut text)?;
            Ok(signature(&text, (&file, sha256), root.as_deref()))
        };
        let read = self.inspect(of, read).await?.map_err(|refusal| Refused::bad(line(&refusal.to_string())))?;
        read.map_err(|why| Refused::bad(format!("{name} {}", line(&why))))
    }

    /// The response to the publishing of a file: of a new signature, it says whether that was verified.
    pub(super) fn note_signature(&self, mut response: Response, name: &str, is_new: bool) -> Response {
        if !is_new || !name.ends_with(JAVA_SIGNATURE) {
            return response;
        }
        set_state(&mut response, self.trusted_root.is_some());
        if let Some(notice) = self.unverified_notice(true) {
            *response.body_mut() = Body::from(format!("published; {notice}\n"));
        }
        response
    }
}

/// The signature of a file, whose SHA-256 is known if it came before.
fn signature(
    text: &[u8],
    (file, sha256): (&str, Option<String>),
    root: Option<&TrustedRoot>,
) -> Result<FileAttestation, String> {
    let FileSignature { predicate_type, document, sha256: subject } = bowline_packages::file_signature(text)?;
    if document.len() > STATEMENTS {
        return Err(format!("has more than {STATEMENTS} bytes"));
    }
    let subject_sha256 = match (subject, sha256) {
        (Some(subject), Some(sha256)) if subject != sha256 => {
            return Err(format!("is about other bytes than those of {file}: its SHA-256 differs"));
        }
        (None, None) => {
            return Err(format!("does not say by a messageDigest which bytes it is about: send {file} before it"));
        }
        (Some(subject), _) | (None, Some(subject)) => subject,
    };
    let subject = SubjectDigest::Sha256(subject_sha256.clone());
    let signer = root
        .map(|root| root.file_signer(&document, &subject))
        .transpose()
        .map_err(|why| format!("does not verify by the trusted root of this server: {}", line(&why)))?;
    Ok(FileAttestation { predicate_type, document, signer, subject_sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_the_file_beside_it() {
        // In base64, 32 bytes of zero.
        let digest = format!("\"messageDigest\":{{\"algorithm\":\"SHA2_256\",\"digest\":\"{}=\"}},", "A".repeat(43));
        let bundle = |digest: &str| {
            format!(
                "{{\"mediaType\":\"x\",\"verificationMaterial\":{{\"certificate\":{{}}}},\
                 \"messageSignature\":{{{digest}\"signature\":\"AAAA\"}}}}"
            )
        };
        let of = |digest: &str, there: Option<String>| signature(bundle(digest).as_bytes(), ("a.jar", there), None);
        let zero = "00".repeat(32);
        for there in [None, Some(zero.clone())] {
            let read = of(&digest, there).expect("a signature");
            assert_eq!((read.subject_sha256.as_str(), read.signer), (zero.as_str(), None));
        }
        assert!(of(&digest, Some("ab".repeat(32))).is_err_and(|why| why.contains("other bytes than those of a.jar")));
        assert_eq!(of("", Some("ab".repeat(32))).expect("a signature").subject_sha256, "ab".repeat(32));
        assert!(of("", None).is_err_and(|why| why.contains("send a.jar before it")));
    }
}
