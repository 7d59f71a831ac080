//! SBOMs as they are attached to images: plain, in an in-toto statement, or in an envelope around one. Nothing is
//! verified here: whoever relies on a signature verifies it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

/// How an SBOM is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Spdx,
    CycloneDx,
}

/// An SBOM, byte for byte.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) format: Format,
    pub(super) text: String,
}

/// A bundle holds an envelope, the envelope a statement, the statement a document.
const LAYERS: usize = 4;

/// The SBOM in these bytes; absent if there is none.
pub(super) fn document(bytes: &[u8]) -> Option<Document> {
    within(std::str::from_utf8(bytes).ok()?, LAYERS)
}

/// The members that tell what a JSON document is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Probe<'a> {
    spdx_version: Option<String>,
    bom_format: Option<String>,
    payload: Option<String>,
    #[serde(borrow)]
    dsse_envelope: Option<&'a RawValue>,
    #[serde(borrow)]
    predicate: Option<&'a RawValue>,
}

fn within(text: &str, layers: usize) -> Option<Document> {
    let layers = layers.checked_sub(1)?;
    let probe: Probe<'_> = serde_json::from_str(text).ok()?;
    let found = |format| Some(Document { format, text: text.to_owned() });
    if probe.spdx_version.is_some() {
        return found(Format::Spdx);
    }
    if probe.bom_format.as_deref() == Some("CycloneDX") {
        return found(Format::CycloneDx);
    }
    if let Some(inner) = probe.dsse_envelope.or(probe.predicate) {
        return within(inner.get(), layers);
    }
    let payload = STANDARD.decode(probe.payload?).ok()?;
    within(std::str::from_utf8(&payload).ok()?, layers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(inner: &str) -> String {
        format!(r#"{{"payloadType":"application/vnd.in-toto+json","payload":"{}"}}"#, STANDARD.encode(inner))
    }

    #[test]
    fn documents_are_found_byte_for_byte_in_what_surrounds_them() {
        let spdx = r#"{ "spdxVersion": "SPDX-2.3",  "name":"x" }"#;
        let statement = format!(r#"{{"_type":"x","predicateType":"https://spdx.dev/Document","predicate":{spdx}}}"#);
        let bundle = format!(r#"{{"mediaType":"x","dsseEnvelope":{}}}"#, envelope(&statement));
        for text in [spdx, &statement, &envelope(&statement), &bundle] {
            let found = document(text.as_bytes()).expect("a document");
            assert_eq!((found.format, &*found.text), (Format::Spdx, spdx), "{text}");
        }
        let found = document(br#"{"bomFormat":"CycloneDX"}"#).expect("a document");
        assert_eq!(found.format, Format::CycloneDx);
    }

    #[test]
    fn what_is_none_is_none() {
        let nested = (0..6).fold(r#"{"spdxVersion":"x"}"#.to_owned(), |inner, _| envelope(&inner));
        for text in ["", "[]", "{}", "no JSON", r#"{"predicate":7}"#, r#"{"payload":"%"}"#, &nested] {
            assert!(document(text.as_bytes()).is_none(), "{text}");
        }
        assert!(document(b"\xff").is_none());
    }
}
