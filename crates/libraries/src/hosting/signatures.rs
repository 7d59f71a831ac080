//! Which signatures a document shows of a version.
//!
//! Those of the upstream, if they are of the bytes that are served and clients can verify them; else that of this server, which
//! says that these are the bytes that it serves for this name and version.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_contract::bowline::libraries::v1::{OwnSignature, UpstreamManifest};
use bowline_core::Result;
use serde_json::Value;

use super::javascript::{Packument, PackumentVersion};

/// A signature of a version as documents show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSignature {
    pub keyid: String,
    /// In DER, as base64.
    pub sig: String,
}

impl From<OwnSignature> for VersionSignature {
    fn from(OwnSignature { keyid, signature }: OwnSignature) -> VersionSignature {
        VersionSignature { keyid, sig: STANDARD.encode(signature) }
    }
}

impl Packument {
    /// The signatures of a version. Each names a key that is listed and had not expired when the version was published, since
    /// clients refuse all packages for one that does not.
    ///
    /// # Errors
    /// INTERNAL: the key of this server does not sign.
    pub fn signatures(&self, version: &PackumentVersion, manifest: &UpstreamManifest) -> Result<Vec<VersionSignature>> {
        let (usable, published_at) = (&self.signing.usable, version.published_at);
        // Stored signatures are of the file of the manifest.
        if version.is_as_described {
            let mut theirs = of_upstream(&manifest.signatures);
            theirs.retain(|signature| usable.verify_upstream(&signature.keyid, published_at));
            if !theirs.is_empty() {
                return Ok(theirs);
            }
            let own = manifest.own_signature.clone();
            if let Some(own) = own.filter(|own| usable.verify_own(&own.keyid, published_at)) {
                return Ok(vec![own.into()]);
            }
        }
        let Some(signer) = &self.signing.signer else { return Ok(Vec::new()) };
        Ok(vec![signer.sign((&self.name, &version.version), &version.integrity)?.into()])
    }
}

/// The signatures that an upstream said of a version, without those that are none.
fn of_upstream(json: &str) -> Vec<VersionSignature> {
    let parsed: Vec<Value> = serde_json::from_str(json).unwrap_or_default();
    let text = |value: &Value, member: &str| value.get(member).and_then(Value::as_str).map(str::to_owned);
    let signature = |value: &Value| Some(VersionSignature { keyid: text(value, "keyid")?, sig: text(value, "sig")? });
    parsed.iter().filter_map(signature).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_signature_is_left_out() {
        let keyids = |json: &str| -> Vec<String> { of_upstream(json).into_iter().map(|one| one.keyid).collect() };
        assert_eq!(
            keyids(r#"[{"keyid":"a","sig":"x"},{"keyid":"b"},7,{"sig":"x"},{"keyid":"c","sig":"y","z":1}]"#),
            ["a", "c"]
        );
        assert_eq!((keyids(""), keyids("{}"), keyids("[")), (vec![], vec![], vec![]));
    }
}
