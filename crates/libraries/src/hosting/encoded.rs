//! Single files of a stored document, without those beside them.

use bowline_contract::bowline::libraries::v1::{UpstreamDocument, UpstreamFile};
use bowline_core::{Error, Result};
use prost::Message as _;
use prost::bytes::Buf as _;
use prost::encoding::{self, DecodeContext};

/// Numbers of the fields of `UpstreamDocument` that have its files and since when it is known, and of `UpstreamFile` that has its
/// name.
const FILES: u32 = 1;
const KNOWN_SINCE: u32 = 6;
const NAME: u32 = 1;

/// An encoded document with the files of a name alone, of which there may be many thousands, and since when it is known.
pub(super) fn document_of(mut encoded: &[u8], name: &str) -> Result<UpstreamDocument> {
    // Fields are encoded in the order of their numbers, so the name comes first.
    let mut beginning = Vec::new();
    encoding::string::encode(NAME, &name.to_owned(), &mut beginning);
    let mut document = UpstreamDocument::default();
    while encoded.has_remaining() {
        let (field, wire_type) = encoding::decode_key(&mut encoded).map_err(Error::internal)?;
        if field == KNOWN_SINCE {
            let known_since = &mut document.known_since_micros;
            encoding::int64::merge(wire_type, known_since, &mut encoded, DecodeContext::default())
                .map_err(Error::internal)?;
            continue;
        }
        if field != FILES {
            encoding::skip_field(wire_type, field, &mut encoded, DecodeContext::default()).map_err(Error::internal)?;
            continue;
        }
        let file = prost::decode_length_delimiter(&mut encoded).map_err(Error::internal)?;
        let (file, rest) =
            encoded.split_at_checked(file).ok_or_else(|| Error::internal("a document ends too early"))?;
        if file.starts_with(&beginning) {
            document.files.push(UpstreamFile::decode(file).map_err(Error::internal)?);
        }
        encoded = rest;
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> UpstreamDocument {
        let file = |name: &str, version: &str| UpstreamFile {
            name: name.into(),
            version: version.into(),
            license: "x".repeat(300),
            ..UpstreamFile::default()
        };
        let files = vec![file("a-1.tgz", "1"), file("a-10.tgz", "10"), file("a-1.tgz", "1.0"), file("", "2")];
        let tags = [("latest".to_owned(), "a-1.tgz".to_owned())].into();
        UpstreamDocument { files, tags, known_since_micros: 7, ..UpstreamDocument::default() }
    }

    #[test]
    fn files_are_read_by_their_name() {
        let encoded = document().encode_to_vec();
        let versions = |name: &str| -> Vec<String> {
            document_of(&encoded, name).expect("files").files.into_iter().map(|file| file.version).collect()
        };
        assert_eq!(versions("a-1.tgz"), ["1", "1.0"]);
        assert_eq!(versions("a-10.tgz"), ["10"]);
        assert_eq!((versions("a-1"), versions("latest")), (vec![], vec![]));
        let whole = document_of(&encoded, "a-10.tgz").expect("files");
        assert_eq!((whole.files.as_slice(), whole.known_since_micros), (&document().files[1..2], 7));
    }

    #[test]
    fn a_damaged_document_is_refused() {
        let encoded = document().encode_to_vec();
        assert!(document_of(&encoded[..encoded.len() / 2], "b").is_err());
        assert!(document_of(&[0x0a, 0xff, 0x7f], "b").is_err());
    }
}
