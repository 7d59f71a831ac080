use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::*;

/// Writes an archive as the tests want it: sizes may lie.
struct Writer {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
}

fn writer() -> Writer {
    Writer { bytes: Vec::new(), directory: Vec::new(), entries: 0 }
}

impl Writer {
    fn add(mut self, name: &str, content: &[u8], declared: Option<u32>) -> Writer {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        let packed = encoder.finish().unwrap();
        let mut crc = Crc::new();
        crc.update(content);
        let offset = self.bytes.len() as u32;
        let size = declared.unwrap_or(content.len() as u32);
        let mut common = Vec::new();
        for number in [20_u16, 0, 8, 0, 0] {
            common.extend(number.to_le_bytes());
        }
        for number in [crc.sum(), packed.len() as u32, size] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend(0_u16.to_le_bytes());
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&common);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(packed);
        self.directory.extend(b"PK\x01\x02\x14\x00");
        self.directory.extend(&common);
        self.directory.extend([0; 10]);
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.entries += 1;
        self
    }

    fn finish(mut self, comment: &str) -> File {
        let offset = self.bytes.len() as u32;
        self.bytes.extend(&self.directory);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend([self.entries.to_le_bytes(), self.entries.to_le_bytes()].concat());
        self.bytes.extend((self.directory.len() as u32).to_le_bytes());
        self.bytes.extend(offset.to_le_bytes());
        self.bytes.extend((comment.len() as u16).to_le_bytes());
        self.bytes.extend(comment.as_bytes());
        file(&self.bytes)
    }
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A name, with the bytes or why there are none.
type Named = (String, std::result::Result<Vec<u8>, String>);

fn all(file: File, most: u64) -> Result<Vec<Named>> {
    let mut archive = Archive::open(file)?;
    let mut entries = Vec::new();
    while let Some(entry) = archive.next(|name| name.contains(".json"), most)? {
        entries.push((entry.name, entry.content));
    }
    Ok(entries)
}

#[test]
fn entries_are_unpacked_and_checked() {
    let archive = writer().add("a/b.json", b"{}", None).add("read.me", b"?", None).add("c.json", b"[1]", None);
    let entries = all(archive.finish("a comment PK\x05\x06"), 100).unwrap();
    assert_eq!(entries, [("a/b.json".to_owned(), Ok(b"{}".to_vec())), ("c.json".to_owned(), Ok(b"[1]".to_vec()))]);
}

#[test]
fn entries_that_lie_or_climb_are_left_out() {
    let archive = writer()
        .add("../x.json", b"{}", None)
        .add("/x.json", b"{}", None)
        .add("large.json", &[b' '; 200], None)
        .add("lies.json", &[b' '; 200], Some(10));
    let reasons: Vec<String> =
        all(archive.finish(""), 100).unwrap().into_iter().map(|(_, content)| content.unwrap_err()).collect();
    assert_eq!(
        reasons,
        [
            "its path leads out of the archive",
            "its path leads out of the archive",
            "it has 200 bytes; at most 100 are read",
            "it has more than the 100 bytes that are read",
        ]
    );
}

#[test]
fn bombs_are_refused_by_what_they_say_and_by_what_they_do() {
    let declared = writer().add("a.json", b"{}", Some(u32::MAX - 1)).finish("");
    assert!(all(declared, 100).unwrap_err().to_string().contains("far more"));
    let mut quiet = writer();
    let zeros = vec![0; 8 << 20];
    for i in 0..12 {
        quiet = quiet.add(&format!("{i}.json"), &zeros, Some(1));
    }
    assert!(all(quiet.finish(""), 8 << 20).unwrap_err().to_string().contains("far more"));
}

#[test]
fn other_files_are_no_archives() {
    for bytes in [&b""[..], b"PK", &[0; 100], b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0"] {
        assert!(Archive::open(file(bytes)).is_err());
    }
    let good = writer().add("a.json", b"{}", None);
    let mut bytes = good.bytes.clone();
    bytes.extend(&good.directory[..20]);
    assert!(Archive::open(file(&bytes)).is_err());
}
