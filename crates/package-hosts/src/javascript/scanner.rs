//! The body of a publish, read while it arrives. A tarball lies in it as one long base64 text, in whatever order the members
//! come: it is decoded on its way into storage, and memory holds the other members alone.

use aws_lc_rs::digest::{Context, SHA256};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::answers::Refused;

/// Maximum bytes of all members but the file.
const REST: usize = 16 << 20;
/// Levels of nesting, as the JSON parser takes them.
const LEVELS: usize = 100;
/// Bytes of a key that are compared.
const KEY: usize = 512;
/// Where the file is: `_attachments`, its name, `data`.
const ATTACHMENTS: &[u8] = b"_attachments";
const DATA: &[u8] = b"data";
const SUFFIX: &[u8] = b".tgz";

/// A JSON text whose file is taken out while it is read.
pub(super) struct Scanner {
    /// The brackets that are open.
    levels: Vec<u8>,
    /// The keys of the outermost levels that lead here.
    keys: [Vec<u8>; 3],
    /// Whether the next text of an object is a key.
    is_key_next: bool,
    text: Text,
    rest: Vec<u8>,
    file: Option<Decoder>,
}

/// Which text the scanner is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Key { is_escaped: bool },
    Value { is_escaped: bool },
    File { is_escaped: bool },
}

/// What a body had, once it has been read to its end.
pub(super) struct Scanned {
    /// All members, with an empty text in place of the file.
    pub(super) rest: Vec<u8>,
    pub(super) file: Option<ScannedFile>,
}

/// The file of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScannedFile {
    /// SHA-256 in lower-case hex.
    pub(super) sha256: String,
    pub(super) size: u64,
}

impl Scanner {
    pub(super) fn new() -> Scanner {
        Scanner {
            levels: Vec::new(),
            keys: Default::default(),
            is_key_next: false,
            text: Text::Outside,
            rest: Vec::new(),
            file: None,
        }
    }

    /// Reads the next part of the body; returns the bytes of the file that are in it.
    pub(super) fn read(&mut self, part: &[u8]) -> Result<Bytes, Refused> {
        let mut decoded = Vec::new();
        let mut left = part;
        while let Some((&byte, after)) = left.split_first() {
            if let Text::File { is_escaped: false } = self.text {
                let plain = left.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(left.len());
                self.decode(&left[..plain], &mut decoded)?;
                left = &left[plain..];
                if let Some((&byte, after)) = left.split_first() {
                    self.text =
                        if byte == b'"' { self.end_of_file(&mut decoded)? } else { Text::File { is_escaped: true } };
                    left = after;
                }
                continue;
            }
            left = after;
            match self.text {
                Text::Outside => self.outside(byte)?,
                Text::Key { is_escaped } => self.text = self.key(byte, is_escaped)?,
                Text::Value { is_escaped } => self.text = self.value(byte, is_escaped)?,
                Text::File { .. } => {
                    // The slash is the one character of base64 that some encoders escape.
                    if byte != b'/' {
                        return Err(not_base64());
                    }
                    self.decode(b"/", &mut decoded)?;
                    self.text = Text::File { is_escaped: false };
                }
            }
        }
        Ok(decoded.into())
    }

    /// What the body had.
    pub(super) fn finish(self) -> Result<Scanned, Refused> {
        if self.text != Text::Outside || !self.levels.is_empty() {
            return Err(Refused::bad("the body is cut off: send it again"));
        }
        Ok(Scanned { rest: self.rest, file: self.file.map(Decoder::finish) })
    }

    /// Bytes of the other members so far.
    pub(super) fn rest_bytes(&self) -> usize {
        self.rest.len()
    }

    fn keep(&mut self, byte: u8) -> Result<(), Refused> {
        if self.rest.len() >= REST {
            let text = format!("the body has more than {REST} bytes beside the file");
            return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        self.rest.push(byte);
        Ok(())
    }

    fn outside(&mut self, byte: u8) -> Result<(), Refused> {
        let is_object = self.levels.last() == Some(&b'{');
        match byte {
            b'{' | b'[' => {
                if self.levels.len() >= LEVELS {
                    return Err(Refused::bad("the body is nested too deeply"));
                }
                if let Some(key) = self.keys.get_mut(self.levels.len()) {
                    key.clear();
                }
                self.levels.push(byte);
                self.is_key_next = byte == b'{';
            }
            b'}' | b']' => {
                self.levels.pop();
                self.is_key_next = false;
            }
            b',' => self.is_key_next = is_object,
            b':' => self.is_key_next = false,
            b'"' if self.is_key_next => {
                if let Some(key) = self.keys.get_mut(self.levels.len() - 1) {
                    key.clear();
                }
                self.text = Text::Key { is_escaped: false };
            }
            b'"' if self.is_file() => {
                if self.file.is_some() {
                    return Err(Refused::bad("the body has two files: publish one version at a time"));
                }
                self.file = Some(Decoder::new());
                self.text = Text::File { is_escaped: false };
                self.keep(byte)?;
            }
            b'"' => self.text = Text::Value { is_escaped: false },
            _ => {}
        }
        if self.text == (Text::File { is_escaped: false }) { Ok(()) } else { self.keep(byte) }
    }

    /// Whether the text that begins is a file.
    fn is_file(&self) -> bool {
        let [attachments, name, data] = &self.keys;
        self.levels == b"{{{" && attachments == ATTACHMENTS && data == DATA && name.ends_with(SUFFIX)
    }

    fn key(&mut self, byte: u8, is_escaped: bool) -> Result<Text, Refused> {
        self.keep(byte)?;
        if byte == b'"' && !is_escaped {
            self.is_key_next = false;
            return Ok(Text::Outside);
        }
        if let Some(key) = self.keys.get_mut(self.levels.len() - 1)
            && key.len() < KEY
        {
            key.push(byte);
        }
        Ok(Text::Key { is_escaped: byte == b'\\' && !is_escaped })
    }

    fn value(&mut self, byte: u8, is_escaped: bool) -> Result<Text, Refused> {
        self.keep(byte)?;
        if byte == b'"' && !is_escaped {
            return Ok(Text::Outside);
        }
        Ok(Text::Value { is_escaped: byte == b'\\' && !is_escaped })
    }

    fn decode(&mut self, encoded: &[u8], decoded: &mut Vec<u8>) -> Result<(), Refused> {
        let decoder = self.file.as_mut().ok_or_else(not_base64)?;
        decoder.decode(encoded, decoded)
    }

    fn end_of_file(&mut self, decoded: &mut Vec<u8>) -> Result<Text, Refused> {
        let decoder = self.file.as_mut().ok_or_else(not_base64)?;
        decoder.end(decoded)?;
        self.keep(b'"')?;
        Ok(Text::Outside)
    }
}

/// Decodes base64 that arrives in parts.
struct Decoder {
    /// Characters that are no whole group yet.
    group: Vec<u8>,
    is_padded: bool,
    sha256: Context,
    size: u64,
}

impl Decoder {
    fn new() -> Decoder {
        Decoder { group: Vec::new(), is_padded: false, sha256: Context::new(&SHA256), size: 0 }
    }

    fn decode(&mut self, encoded: &[u8], decoded: &mut Vec<u8>) -> Result<(), Refused> {
        let missing = (4 - self.group.len()) % 4;
        let (first, rest) = encoded.split_at(missing.min(encoded.len()));
        self.group.extend_from_slice(first);
        if self.group.len() == 4 {
            let group = std::mem::take(&mut self.group);
            self.groups(&group, decoded)?;
        }
        let (whole, left) = rest.split_at(rest.len() / 4 * 4);
        self.groups(whole, decoded)?;
        self.group.extend_from_slice(left);
        Ok(())
    }

    /// Decodes whole groups, of which only the last one of all may be padded.
    fn groups(&mut self, encoded: &[u8], decoded: &mut Vec<u8>) -> Result<(), Refused> {
        if encoded.is_empty() {
            return Ok(());
        }
        if self.is_padded {
            return Err(not_base64());
        }
        let start = decoded.len();
        STANDARD.decode_vec(encoded, decoded).map_err(|_| not_base64())?;
        self.is_padded = encoded.ends_with(b"=");
        self.sha256.update(&decoded[start..]);
        self.size += (decoded.len() - start) as u64;
        Ok(())
    }

    /// Decodes the last group, which some encoders do not pad.
    fn end(&mut self, decoded: &mut Vec<u8>) -> Result<(), Refused> {
        let mut group = std::mem::take(&mut self.group);
        if !group.is_empty() {
            group.resize(4, b'=');
            self.groups(&group, decoded)?;
        }
        Ok(())
    }

    fn finish(self) -> ScannedFile {
        ScannedFile { sha256: bowline_core::hex(self.sha256.finish().as_ref()), size: self.size }
    }
}

fn not_base64() -> Refused {
    Refused::bad("the file in _attachments is not base64")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body in parts of a length: the rest, and the file.
    fn scanned(body: &str, length: usize) -> Result<(String, Option<Vec<u8>>), Refused> {
        let (mut scanner, mut bytes) = (Scanner::new(), Vec::new());
        for part in body.as_bytes().chunks(length) {
            bytes.extend_from_slice(&scanner.read(part)?);
        }
        let scanned = scanner.finish()?;
        if let Some(file) = &scanned.file {
            assert_eq!(file.sha256, bowline_core::hex(&bowline_authn::crypto::sha256(&bytes)));
            assert_eq!(file.size, bytes.len() as u64);
        }
        Ok((String::from_utf8(scanned.rest).expect("UTF-8"), scanned.file.map(|_| bytes)))
    }

    #[test]
    fn the_file_is_taken_out_in_any_order_of_members() {
        let file: Vec<u8> = (0..=255).collect();
        let data = STANDARD.encode(&file);
        let bodies = [
            (
                "{\"a\":[{\"_attachments\":{\"x.tgz\":{\"data\":\"no\"}}}],\"_attachments\":{\"b-1.tgz\":{\"length\":3,\"data\":\"",
                "\"}},\"z\":\"\\\"}\"}",
            ),
            (
                "{\"_attachments\" : { \"@a/b-1.tgz\" : { \"data\" :\"",
                "\", \"content_type\":\"x\" } }, \"name\":\"b\"}",
            ),
        ];
        for (before, after) in bodies {
            for (data, length) in
                [(data.clone(), 1), (data.replace('/', "\\/"), 3), (data.clone(), 7), (data.clone(), 4096)]
            {
                let (rest, found) = scanned(&format!("{before}{data}{after}"), length).expect("a body");
                assert_eq!((rest, found), (format!("{before}{after}"), Some(file.clone())));
            }
        }
        let unpadded = scanned("{\"_attachments\":{\"b.tgz\":{\"data\":\"YWI\"}}}", 5).expect("a body");
        assert_eq!(unpadded.1.as_deref(), Some(&b"ab"[..]));
    }

    #[test]
    fn other_texts_stay() {
        for body in [
            "{}",
            "{\"_attachments\":{\"b.sigstore\":{\"data\":\"{}\"}}}",
            "{\"x\":{\"b.tgz\":{\"data\":\"YWI=\"}}}",
            "{\"_attachments\":[{\"data\":\"YWI=\"}]}",
            "{\"_attachments\":{\"b.tgz\":[\"data\",\"YWI=\"]}}",
            "{\"_attachments\":{\"b.tgz\":{\"data\":{\"data\":\"YWI=\"}}}}",
            "{\"_attachments\":{\"b.tgz\":{\"x\":[{\"data\":\"YWI=\"}]}}}",
            "[{\"_attachments\":{\"b.tgz\":{\"data\":\"YWI=\"}}}]",
        ] {
            assert_eq!(scanned(body, 2).expect(body), (body.to_owned(), None));
        }
    }

    #[test]
    fn what_is_no_body_is_refused() {
        let file = |data: &str| format!("{{\"_attachments\":{{\"b.tgz\":{{\"data\":\"{data}\"}}}}}}");
        let two = "{\"_attachments\":{\"b.tgz\":{\"data\":\"YWI=\"},\"c.tgz\":{\"data\":\"YWI=\"}}}";
        for body in [
            &file("YW"[..1].repeat(5).as_str()),
            &file("YWI=YWI="),
            &file("Y W I"),
            &file("YWI\\u003d"),
            two,
            "{\"a\":",
            "{\"a\":\"b",
            "{\"_attachments\":{\"b.tgz\":{\"data\":\"YWI",
            &"[".repeat(LEVELS + 1),
        ] {
            assert!(scanned(body, 3).is_err(), "{body}");
        }
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(REST));
        assert!(scanned(&long, 1 << 20).is_err());
    }

    #[test]
    fn no_text_panics() {
        for body in ["\"", "}", "]}", ",\"a\"", "{\"a\"}\"b\":\"", ":\"\"", "\"\"\"\"", "{,\"a\":1]\"", "}\"a\""] {
            for length in [1, 100] {
                drop(scanned(body, length));
            }
        }
    }
}
