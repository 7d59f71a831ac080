//! Archives that cargo makes and builds.

use std::cell::RefCell;
use std::io::Read;
use std::thread::Builder;

use toml::{Table, Value};

use crate::{Refusal, archives, line};

/// Maximum bytes of the archive of a version.
pub const CARGO_ARCHIVE: u64 = 256 << 20;
/// Bytes of the stack on which a `Cargo.toml` is read; those that are not used cost nothing.
const STACK: usize = 256 << 20;

/// An archive, as the `Cargo.toml` in it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrateArchive {
    /// Its name as it is written.
    pub name: String,
    /// Version as it is written.
    pub version: String,
    /// Licence that it declares; empty if it names a file or nothing.
    pub license: String,
    /// The library outside of Rust that it links to; empty without.
    pub links: String,
    /// The oldest compiler that it needs; empty if it does not say.
    pub rust_version: String,
}

/// Reads an archive of `packed` bytes, all of which lies in one directory that is called as the version is.
///
/// # Errors
/// It cannot be read, is damaged or hostile.
pub fn crate_archive(source: impl Read, packed: u64) -> Result<CrateArchive, Refusal> {
    let (directory, is_alone) = (RefCell::new(String::new()), std::cell::Cell::new(true));
    let is_manifest = |path: &str| {
        let first = path.split('/').next().unwrap_or_default();
        let mut directory = directory.borrow_mut();
        if directory.is_empty() {
            first.clone_into(&mut directory);
        }
        is_alone.set(is_alone.get() && *directory == first);
        path.split_once('/').is_some_and(|(_, file)| file == "Cargo.toml")
    };
    let found = archives::of_whole_tarball(source, packed, is_manifest)?;
    let bytes = found.bytes.ok_or_else(|| Refusal::damaged("has no Cargo.toml in its directory"))?;
    let read = read(&bytes)?;
    let wanted = format!("{}-{}", read.name, read.version);
    if *directory.borrow() != wanted || !is_alone.get() {
        return Err(Refusal::damaged(format!("must have its files in one directory {wanted:?}")));
    }
    Ok(read)
}

/// Reads a `Cargo.toml` on a thread of its own: the parser takes some of the stack for each table that lies in another, of which
/// it takes 80 in 80 names each.
fn read(bytes: &[u8]) -> Result<CrateArchive, Refusal> {
    std::thread::scope(|scope| {
        let reading =
            Builder::new().name("cargo-toml".into()).stack_size(STACK).spawn_scoped(scope, || parse(bytes))?;
        reading.join().map_err(|_| Refusal::damaged("has a Cargo.toml that cannot be read"))?
    })
}

/// What a `Cargo.toml` says, as cargo writes it into archives: nothing is inherited from a workspace.
fn parse(bytes: &[u8]) -> Result<CrateArchive, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::damaged("has a Cargo.toml that is not UTF-8"))?;
    let manifest: Table = text.parse().map_err(|error: toml::de::Error| {
        Refusal::damaged(format!("has a Cargo.toml that does not parse: {}", error.message()))
    })?;
    let package = manifest.get("package").or_else(|| manifest.get("project")).and_then(Value::as_table);
    let member = |name: &str| {
        let text = package.and_then(|package| package.get(name)).and_then(Value::as_str);
        line(text.unwrap_or_default(), 256)
    };
    let (name, version) = (member("name"), member("version"));
    if name.is_empty() || version.is_empty() {
        return Err(Refusal::damaged("has a Cargo.toml without a name or a version"));
    }
    let (license, links, rust_version) = (member("license"), member("links"), member("rust-version"));
    Ok(CrateArchive { name, version, license, links, rust_version })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// A gzipped tarball of these files.
    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (path, text) in files {
            let mut header = [0; 512];
            header[..path.len()].copy_from_slice(path.as_bytes());
            header[100..107].copy_from_slice(b"0000644");
            header[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
            header[156] = b'0';
            header[257..263].copy_from_slice(b"ustar\0");
            header[148..156].fill(b' ');
            let sum: u32 = header.iter().copied().map(u32::from).sum();
            header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
            tar.extend(header);
            tar.extend(text.as_bytes());
            tar.resize(tar.len().next_multiple_of(512), 0);
        }
        tar.resize(tar.len() + 1024, 0);
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&tar).expect("memory");
        packed.finish().expect("memory")
    }

    fn of(files: &[(&str, &str)]) -> Result<CrateArchive, String> {
        let bytes = archive(files);
        crate_archive(bytes.as_slice(), bytes.len() as u64).map_err(|refusal| refusal.to_string())
    }

    const TEXT: &str = "[package]\nname = \"Foo_bar\"\nversion = \"1.0.0+b\"\nlicense = \"MIT\"\nlinks = \"z\"\nrust-version = \"1.70\"\n";

    #[test]
    fn an_archive_says_what_it_is() {
        let read = of(&[("Foo_bar-1.0.0+b/Cargo.toml", TEXT), ("Foo_bar-1.0.0+b/src/Cargo.toml", "x")]);
        let wanted = CrateArchive {
            name: "Foo_bar".into(),
            version: "1.0.0+b".into(),
            license: "MIT".into(),
            links: "z".into(),
            rust_version: "1.70".into(),
        };
        assert_eq!(read, Ok(wanted));
    }

    #[test]
    fn tables_that_are_very_deep_take_no_stack_of_others() {
        let deep = |tables: usize, names: usize| {
            let name = vec!["a"; names].join(".");
            format!("{TEXT}x = {}1{}\n", format!("{{{name} = ").repeat(tables), "}".repeat(tables))
        };
        // All that the parser takes, more than it takes, and texts that it does not take and reads all the same.
        for text in
            [deep(79, 79), deep(200, 200), format!("{}]", deep(79, 79)), format!("{TEXT}x = {}", "[".repeat(100_000))]
        {
            drop(of(&[("Foo_bar-1.0.0+b/Cargo.toml", &text)]));
        }
        assert!(of(&[("Foo_bar-1.0.0+b/Cargo.toml", &deep(2, 20))]).is_ok());
    }

    #[test]
    fn what_is_no_archive_of_a_version_is_refused() {
        for (files, wanted) in [
            (&[("Foo_bar-1.0.0/Cargo.toml", TEXT)][..], "must have its files in one directory \"Foo_bar-1.0.0+b\""),
            (&[("Foo_bar-1.0.0+b/Cargo.toml", TEXT), ("other/a", "")], "must have its files in one directory"),
            (&[("Foo_bar-1.0.0+b/Cargo.toml", TEXT), ("Foo_bar-1.0.0+b/Cargo.toml", TEXT)], "has metadata twice"),
            (&[("a-1.0.0/src/lib.rs", "")], "has no Cargo.toml"),
            (&[("a-1.0.0/Cargo.toml", "[package]\nname = \"a\"\n")], "without a name or a version"),
            (&[("a-1.0.0/Cargo.toml", "[package")], "does not parse"),
        ] {
            let refused = of(files).expect_err(wanted);
            assert!(refused.contains(wanted), "{refused}");
        }
        assert!(crate_archive(&b"no archive"[..], 10).is_err());
    }
}
