//! Tar archives, good and damaged.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { members: 10, member: 1 << 20, unpacked: 1 << 30, times: 100, always: 1 << 20 };

fn member(path: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut block = vec![0; BLOCK as usize];
    block[..path.len()].copy_from_slice(path.as_bytes());
    block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    block[156] = kind;
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block.extend_from_slice(content);
    block.resize(block.len().next_multiple_of(BLOCK as usize), 0);
    block
}

fn gzip(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&parts.concat()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// Paths of files with their contents; those of other members without.
fn read(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>, ArchiveError> {
    let mut reader = Reader::gzipped(archive, archive.len() as u64, LIMITS);
    let mut found = Vec::new();
    while let Some(member) = reader.next_member()? {
        found.push((member.path, if member.is_file { reader.content()? } else { Vec::new() }));
    }
    Ok(found)
}

#[test]
fn members_come_with_their_content_and_their_long_names() {
    let long = "d/".repeat(90) + "file";
    let record = format!("{} path={long}\n", long.len() + 10);
    let archive = gzip(&[
        member("a/", b'5', b""),
        member("a/x", b'0', b"content"),
        member("a/link", b'2', b""),
        member("pax", b'x', record.as_bytes()),
        member("short", b'0', &[1; 600]),
        vec![0; 1024],
    ]);
    let found = read(&archive).expect("an archive");
    let wanted = [("a/", &b""[..]), ("a/x", b"content"), ("a/link", b""), (&long, &[1; 600])];
    assert_eq!(found, wanted.map(|(path, content)| (path.to_owned(), content.to_vec())));
}

#[test]
fn members_that_are_not_read_are_passed_over() {
    let archive = gzip(&[member("a", b'0', &[1; 5000]), member("b", b'0', b"2")]);
    let mut reader = Reader::gzipped(archive.as_slice(), archive.len() as u64, LIMITS);
    let paths: Vec<String> =
        std::iter::from_fn(|| reader.next_member().expect("whole").map(|member| member.path)).collect();
    assert_eq!(paths, ["a", "b"]);
}

#[test]
fn an_archive_without_its_end_is_found_out() {
    // Zeros after the last member, as tar pads archives, so that all members are read before the end is.
    let whole = gzip(&[member("a", b'0', b"1"), vec![0; 64 << 10]]);
    let read = |packed: &[u8]| {
        let mut reader = Reader::gzipped(packed, packed.len() as u64, LIMITS);
        assert_eq!(reader.next_member().expect("whole").expect("a member").path, "a");
        assert_eq!(reader.next_member().expect("whole"), None);
        reader.finish()
    };
    assert!(read(&whole).is_ok());
    assert!(matches!(read(&whole[..whole.len() - 4]), Err(ArchiveError::Damaged(_))));
}

#[test]
fn damaged_and_hostile_archives_are_distinguished() {
    let mut changed = member("a", b'0', b"");
    changed[0] = b'b';
    let cut = gzip(&[member("a", b'0', b"1")[..600].to_vec()]);
    for damaged in [b"no gzip".to_vec(), gzip(&[changed]), cut] {
        assert!(matches!(read(&damaged), Err(ArchiveError::Damaged(_))));
    }
    let many: Vec<Vec<u8>> = (0..11).map(|i| member(&i.to_string(), b'0', b"")).collect();
    let large = member("a", b'0', &vec![1; (1 << 20) + 1]);
    let zeros = vec![member("a", b'2', &vec![0; 40 << 20])];
    for hostile in [gzip(&many), gzip(&[large]), gzip(&zeros), gzip(&[member("../a", b'0', b"")])] {
        assert!(matches!(read(&hostile), Err(ArchiveError::Hostile(_))));
    }
}

proptest! {
    #[test]
    fn noise_does_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let _ = read(&bytes);
        let _ = read(&gzip(&[bytes]));
    }
}
