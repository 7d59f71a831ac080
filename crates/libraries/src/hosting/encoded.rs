//! Single files of a stored document, without those beside them.

use bowline_contract::bowline::libraries::v1::UpstreamFile;
use bowline_core::{Error, Result};
use prost::Message as _;
use prost::bytes::Buf as _;
use prost::encoding::{self, DecodeContext};

/// Numbers of the fields of `UpstreamDocument` that has its files, and of `UpstreamFile` that has its name.
const FILES: u32 = 1;
const NAME: u32 = 1;

/// The files of a name in an encoded document, of which there may be many thousands.
pub(super) fn files_named(mut encoded: &[u8], name: &str) -> Result<Vec<UpstreamFile>> {
    // Fields are encoded in the order of their numbers, so the name comes first.
    let mut beginning = Vec::new();
    encoding::string::encode(NAME, &name.to_owned(), &mut beginning);
    let mut files = Vec::new();
    while encoded.has_remaining() {
        let (field, wire_type) = encoding::decode_key(&mut encoded).map_err(Error::internal)?;
        if field != FILES {
            encoding::skip_field(wire_type, field, &mut encoded, DecodeContext::default()).map_err(Error::internal)?;
            continue;
        }
        let file = prost::decode_length_delimiter(&mut encoded).map_err(Error::internal)?;
        let (file, rest) =
            encoded.split_at_checked(file).ok_or_else(|| Error::internal("a document ends too early"))?;
        if file.starts_with(&beginning) {
            files.push(UpstreamFile::decode(file).map_err(Error::internal)?);
        }
        encoded = rest;
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use bowline_contract::bowline::libraries::v1::UpstreamDocument;

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
        UpstreamDocument { files, tags, ..UpstreamDocument::default() }
    }

    #[test]
    fn files_are_read_by_their_name() {
        let encoded = document().encode_to_vec();
        let versions = |name: &str| -> Vec<String> {
            files_named(&encoded, name).expect("files").into_iter().map(|file| file.version).collect()
        };
        assert_eq!(versions("a-1.tgz"), ["1", "1.0"]);
        assert_eq!(versions("a-10.tgz"), ["10"]);
        assert_eq!((versions("a-1"), versions("latest")), (vec![], vec![]));
        let whole = files_named(&encoded, "a-10.tgz").expect("files");
        assert_eq!(whole, document().files[1..2]);
    }

    #[test]
    fn a_damaged_document_is_refused() {
        let encoded = document().encode_to_vec();
        assert!(files_named(&encoded[..encoded.len() / 2], "b").is_err());
        assert!(files_named(&[0x0a, 0xff, 0x7f], "b").is_err());
    }
}
