//! Directories with good and with hostile packages.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use proptest::prelude::*;

use super::*;

/// A tar archive of these files.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, bytes) in files {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        header[156] = b'0';
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        archive.extend(header);
        archive.extend(*bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.extend([0; 1024]);
    archive
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// A ZIP archive of these files; `says` is the length that the last one is said to unpack to.
fn zip(files: &[(&str, &[u8])], says: Option<u32>) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (index, (name, bytes)) in files.iter().enumerate() {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).expect("memory takes it");
        let packed = encoder.finish().expect("memory takes it");
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        let length = says.filter(|_| index + 1 == files.len()).unwrap_or(bytes.len() as u32);
        let mut facts = Vec::new();
        facts.extend([20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
        for number in [crc.sum(), packed.len() as u32, length] {
            facts.extend(number.to_le_bytes());
        }
        facts.extend((name.len() as u16).to_le_bytes());
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&facts);
        directory.extend([0; 12]);
        directory.extend((archive.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(&facts);
        archive.extend([0; 2]);
        archive.extend(name.as_bytes());
        archive.extend(packed);
    }
    let place = archive.len() as u32;
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    for _ in 0..2 {
        archive.extend((files.len() as u16).to_le_bytes());
    }
    archive.extend((directory.len() as u32).to_le_bytes());
    archive.extend(place.to_le_bytes());
    archive.extend([0; 2]);
    archive
}

/// The same archive with bytes before the record at its end, where a reader that goes back from there looks for the list.
fn with_gap(archive: &[u8]) -> Vec<u8> {
    let (members, end) = archive.split_at(archive.len() - 22);
    [members, &[0; 46], end].concat()
}

struct Directory(tempfile::TempDir);

impl Directory {
    fn of(files: &[(&str, Vec<u8>)]) -> Directory {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, bytes) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, bytes).expect("a file");
        }
        Directory(directory)
    }

    fn found(&self, layout: Layout) -> Vec<(String, Result<Package, Refusal>)> {
        let name = |path: PathBuf| path.strip_prefix(self.0.path()).expect("below").to_str().expect("UTF-8").to_owned();
        crate::walk(layout, self.0.path()).expect("a walk").map(|(path, found)| (name(path), found)).collect()
    }

    /// Why the only file is refused.
    fn refusal(&self, layout: Layout) -> String {
        let mut found = self.found(layout);
        assert_eq!(found.len(), 1);
        found.remove(0).1.expect_err("a refusal").to_string()
    }
}

const METADATA: &[u8] =
    b"Metadata-Version: 2.1\nName: Foo_Bar\nVersion: 1.0\nSummary: does\nLicense-Expression: MIT\n\n";

fn wheel(extra: &[(&str, &[u8])]) -> Vec<u8> {
    let mut files = vec![("foo_bar-1.0.dist-info/METADATA", METADATA)];
    files.extend(extra);
    zip(&files, None)
}

#[test]
fn wheels_and_source_distributions_say_what_they_are() {
    let source = gzip(&tar(&[("foo_bar-1.0/setup.py", b"x"), ("foo_bar-1.0/PKG-INFO", METADATA)]));
    let directory = Directory::of(&[
        ("foo_bar-1.0-py3-none-any.whl", wheel(&[])),
        ("deep/er/foo_bar-1.0.tar.gz", source),
        ("deep/foo_bar-1.0.zip", zip(&[("foo_bar-1.0/PKG-INFO", METADATA)], None)),
        ("README.md", b"x".to_vec()),
    ]);
    let found = directory.found(Layout::Python);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["README.md", "deep/er/foo_bar-1.0.tar.gz", "deep/foo_bar-1.0.zip", "foo_bar-1.0-py3-none-any.whl"]
    );
    assert!(matches!(found[0].1, Err(Refusal::Foreign)));
    for (name, package) in &found[1..] {
        let package = package.as_ref().unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        assert_eq!((package.name.as_str(), package.version.as_str()), ("Foo_Bar", "1.0"));
        assert_eq!((package.license.as_str(), package.description.as_str()), ("MIT", "does"));
        assert_eq!((package.files[0].sha256.len(), package.files[0].sha512.len()), (64, 128));
    }
}

#[test]
fn tarballs_of_npm_say_what_they_are() {
    let manifest =
        br#"{"name":"@s/n","version":"1.2.3","license":{"type":"ISC"},"scripts":{"install":"x"},"readme":"long"}"#;
    let long = "d/".repeat(60) + "file.js";
    let record = format!("{} path=package/{long}\n", long.len() + 18);
    let mut pax = tar(&[("package/pax", record.as_bytes())]);
    pax[156] = b'x';
    pax[148..156].fill(b' ');
    let sum: u32 = pax[..512].iter().map(|byte| u32::from(*byte)).sum();
    pax[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    pax.truncate(1024);
    let rest = tar(&[("short", b"1"), ("package/package.json", manifest)]);
    let directory = Directory::of(&[("n-1.2.3.tgz", gzip(&[pax, rest].concat()))]);
    let package = directory.found(Layout::Npm).remove(0).1.expect("a package");
    assert_eq!((package.name.as_str(), package.version.as_str(), package.license.as_str()), ("@s/n", "1.2.3", "ISC"));
    assert_eq!(package.file_count, 2);
    assert!(
        package.manifest.contains("hasInstallScript") && !package.manifest.contains("readme"),
        "{}",
        package.manifest
    );
}

#[test]
fn a_maven_repository_is_read_by_its_poms() {
    let pom =
        b"<project><groupId>org.example</groupId><artifactId>lib</artifactId><version>1.0</version></project>".to_vec();
    let moved = pom.clone();
    let directory = Directory::of(&[
        ("org/example/lib/1.0/lib-1.0.pom", pom),
        ("org/example/lib/1.0/lib-1.0.jar", b"jar".to_vec()),
        ("org/example/lib/1.0/lib-1.0.jar.sha1", b"x".to_vec()),
        ("org/other/lib/1.0/lib-1.0.pom", moved),
        ("lib.pom", b"<project/>".to_vec()),
    ]);
    let found = directory.found(Layout::Maven);
    let packages: Vec<&Package> = found.iter().filter_map(|(_, found)| found.as_ref().ok()).collect();
    assert_eq!(packages.len(), 1);
    assert_eq!((packages[0].name.as_str(), packages[0].version.as_str()), ("org.example:lib", "1.0"));
    let names: Vec<&str> = packages[0].files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["lib-1.0.jar", "lib-1.0.pom"]);
    let why = |name: &str| {
        let refusal = found.iter().find(|(found, _)| found == name).and_then(|(_, found)| found.as_ref().err());
        refusal.expect("a refusal").to_string()
    };
    assert!(why("org/other/lib/1.0/lib-1.0.pom").contains("org.other"));
    assert!(why("lib.pom").contains("group/artifact/version"));
}

#[test]
fn hostile_archives_are_refused_with_their_reason() {
    let name = "foo_bar-1.0-py3-none-any.whl";
    let zeros = vec![0; 40 << 20];
    for (bytes, reason) in [
        (wheel(&[("../../etc/passwd", b"x")]), "leaves its directory"),
        (wheel(&[("/etc/passwd", b"x")]), "leaves its directory"),
        (wheel(&[("a\\..\\b", b"x")]), "leaves its directory"),
        (wheel(&[("foo_bar-1.0.dist-info/METADATA", METADATA)]), "twice"),
        (wheel(&[("x.dist-info/METADATA", METADATA)]), "metadata twice"),
        (wheel(&[("zeros", &zeros)]), "unpacks to"),
        (zip(&[("foo_bar-1.0.dist-info/METADATA", METADATA)], Some(2 << 20)), "at most 1048576 are read"),
        (zip(&[("foo_bar-1.0.dist-info/METADATA", METADATA)], Some(5)), "checksum"),
        (zip(&[("foo_bar-1.0.dist-info/METADATA", b"Name: other\nVersion: 1.0\n")], None), "metadata say other"),
        (zip(&[("readme", b"x")], None), "no metadata"),
        (b"PK".to_vec(), "no ZIP archive"),
        (wheel(&[])[..100].to_vec(), "no ZIP archive"),
        (with_gap(&wheel(&[])), "between the list of its members and its end"),
    ] {
        let refusal = Directory::of(&[(name, bytes)]).refusal(Layout::Python);
        assert!(refusal.contains(reason), "{reason}: {refusal}");
    }
    for (bytes, reason) in [
        (gzip(&tar(&[("../x", b"x")])), "leaves its directory"),
        (gzip(&tar(&[("package/zeros", &zeros)])), "unpacks to"),
        (gzip(&tar(&[("package/package.json", b"{")])), "does not parse"),
        (gzip(&tar(&[("package/x", b"x")])), "no package.json"),
        (gzip(&tar(&[("package/package.json", b"{}"), ("package/package.json", b"{}")])), "metadata twice"),
        (gzip(&tar(&[("package/package.json", b"{}"), ("other/package.json", b"{}")])), "metadata twice"),
        (gzip(&tar(&[("package/package.json", b"{}"), ("./package/.//package.json", b"{}")])), "metadata twice"),
        (gzip(&tar(&[("package/package.json", b"{}"), ("./package.json", b"{}")])), "metadata twice"),
        (gzip(&tar(&[("package/package.json", &vec![b' '; 2 << 20])])), "at most 1048576 are read"),
        (gzip(&tar(&[("package/x", &[1; 2000])])[..900]), "cut off"),
        (b"no archive".to_vec(), "no gzipped tar archive"),
    ] {
        let refusal = Directory::of(&[("x-1.tgz", bytes)]).refusal(Layout::Npm);
        assert!(refusal.contains(reason), "{reason}: {refusal}");
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let directory = Directory::of(&[("a/x.txt", Vec::new())]);
    std::os::unix::fs::symlink(directory.0.path(), directory.0.path().join("a/round")).expect("a link");
    let found = directory.found(Layout::Npm);
    assert_eq!(found.len(), 2);
    assert!(found[0].1.as_ref().is_err_and(|refusal| refusal.to_string().contains("links are not followed")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damage_is_rejected_or_harmless(at in 0..2000_usize, flip in 1..=255_u8, cut in prop::option::of(0..2000_usize)) {
        let tarball = tar(&[("package/package.json", br#"{"name":"n","version":"1.0.0"}"#)]);
        for (name, layout, mut bytes) in [
            ("foo_bar-1.0-py3-none-any.whl", Layout::Python, wheel(&[("a", b"b")])),
            ("n-1.tgz", Layout::Npm, gzip(&tarball)),
        ] {
            let length = bytes.len();
            bytes[at % length] ^= flip;
            if let Some(cut) = cut {
                bytes.truncate(cut % length);
            }
            for (_, found) in Directory::of(&[(name, bytes)]).found(layout) {
                if let Ok(package) = found {
                    prop_assert!(["Foo_Bar", "n"].contains(&package.name.as_str()), "{}", package.name);
                }
            }
        }
    }
}
