//! SBOMs as they are attached to images: plain, in an in-toto statement, or in an envelope around one. Nothing is
//! verified here: anyone who relies on a signature verifies it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
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

/// The members that identify the format of a JSON document.
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

/// Maximum number of elements of all lists of a document: one of three bytes, `{},`, takes about a hundred in memory.
const MAX_ELEMENTS: usize = 200_000;

/// Reads a document whose lists are not too long; absent if it cannot be read.
pub(super) fn bounded<T: DeserializeOwned>(text: &str) -> Option<T> {
    is_bounded(text).then(|| serde_json::from_str(text).ok())?
}

/// Whether the lists of a document are not too long.
pub(super) fn is_bounded(text: &str) -> bool {
    elements(text) <= MAX_ELEMENTS
}

/// Number of elements of all lists of a JSON document, an empty list counted as one: from brackets and
/// commas, before anything is parsed.
fn elements(text: &str) -> usize {
    let (mut elements, mut within, mut is_text, mut is_escaped) = (0, Vec::new(), false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'[' | b'{' => {
                within.push(byte);
                elements += usize::from(byte == b'[');
            }
            b']' | b'}' => {
                within.pop();
            }
            b',' => elements += usize::from(within.last() == Some(&b'[')),
            _ => {}
        }
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_lists_are_counted_wherever_they_stand() {
        for (text, count) in [
            ("{}", 0),
            ("[]", 1),
            (r#"{"a":[1,2,3],"b":{"c":[{},{"x":1,"y":2}]}}"#, 5),
            (r#"{"a":"[,,,]","b":["\\",",","\",[,"]}"#, 3),
            ("]],[,", 2),
        ] {
            assert_eq!(elements(text), count, "{text}");
        }
        let list = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert_eq!(bounded::<Vec<u8>>(&list(MAX_ELEMENTS)).map(|list| list.len()), Some(MAX_ELEMENTS));
        assert!(bounded::<Vec<u8>>(&list(MAX_ELEMENTS + 1)).is_none());
    }

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
