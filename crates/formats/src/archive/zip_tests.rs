use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::*;

const LIMITS: Limits = Limits { members: 20, member: 8 << 20, unpacked: u64::MAX, times: 200, always: 64 << 20 };

/// Writes an archive as the tests want it: sizes may lie.
struct Writer {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    entries: u16,
    method: u16,
    flags: u16,
}

fn writer() -> Writer {
    Writer { bytes: Vec::new(), directory: Vec::new(), entries: 0, method: 8, flags: 0 }
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
        for number in [20_u16, self.flags, self.method, 0, 0] {
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

/// Paths with their contents, or why there is none.
type Contents = Vec<(String, Result<Vec<u8>, String>)>;

fn contents(file: File, limits: Limits) -> Result<Contents, String> {
    let mut archive = Archive::open(file, limits).map_err(|broken| broken.to_string())?;
    let members = archive.members().to_vec();
    let read = |member: Member| {
        let content = archive.content(&member).map_err(|broken| broken.to_string());
        (member.path, content)
    };
    Ok(members.into_iter().map(read).collect())
}

fn refusal(file: File) -> String {
    contents(file, LIMITS).expect_err("it is refused")
}

#[test]
fn members_are_unpacked_and_checked() {
    let archive = writer().add("a/b.json", b"{}", None).add("c/", b"", None).add("c.json", b"[1]", None);
    let found = contents(archive.finish("a comment PK\x05\x06"), LIMITS).unwrap();
    let wanted = [("a/b.json", &b"{}"[..]), ("c/", b""), ("c.json", b"[1]")];
    assert_eq!(found, wanted.map(|(path, content)| (path.to_owned(), Ok(content.to_vec()))));
}

#[test]
fn archives_that_unpackers_read_differently_are_refused() {
    for path in ["../x", "/x", "a/../x", "a\\x", "C:x"] {
        assert!(refusal(writer().add(path, b"", None).finish("")).contains("leaves its directory"), "{path}");
    }
    assert!(refusal(writer().add("x", b"1", None).add("x", b"2", None).finish("")).contains("twice"));
    let mut gap = writer().add("x", b"", None);
    gap.directory.extend([0; 46]);
    assert!(refusal(gap.finish("")).contains("does not parse"));
    let many = (0..21).fold(writer(), |archive, i| archive.add(&i.to_string(), b"", None));
    assert!(refusal(many.finish("")).contains("more than 20 members"));
}

#[test]
fn members_that_lie_say_nothing_of_the_others() {
    let mut archive = writer().add("lies", &[b' '; 200], Some(10)).add("long", b"{}", Some(100));
    archive.method = 9;
    archive = archive.add("method", b"{}", None);
    (archive.method, archive.flags) = (8, 1);
    archive = archive.add("secret", b"{}", None);
    archive.flags = 0;
    let small = Limits { member: 50, ..LIMITS };
    let found = contents(archive.add("good", b"{}", None).finish(""), small).unwrap();
    let reasons: Vec<&str> =
        found.iter().map(|(_, content)| content.as_ref().map_or_else(String::as_str, |_| "read")).collect();
    assert_eq!(
        reasons,
        [
            "is not what its checksum and length say",
            "has 100 bytes; at most 50 are read",
            "is packed by method 9; only deflate is understood",
            "is encrypted",
            "read",
        ]
    );
}

#[test]
fn bombs_are_refused_by_what_they_say_and_by_what_they_do() {
    assert!(refusal(writer().add("a", b"{}", Some(u32::MAX - 1)).finish("")).contains("unpacks to"));
    let zeros = vec![0; 8 << 20];
    let told = (0..12).fold(writer(), |archive, i| archive.add(&i.to_string(), &zeros, None));
    assert!(refusal(told.finish("")).contains("unpacks to"));
}

#[test]
fn other_files_are_no_archives() {
    for bytes in [&b""[..], b"PK", &[0; 100], b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0"] {
        assert!(Archive::open(file(bytes), LIMITS).is_err());
    }
    let good = writer().add("a.json", b"{}", None);
    let mut bytes = good.bytes.clone();
    bytes.extend(&good.directory[..20]);
    assert!(Archive::open(file(&bytes), LIMITS).is_err());
}
