//! `bowline libraries publish files`: files of any kind, under a name and a version.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use bowline_client::stream_file;
use bowline_core::hex;
use bowline_formats::percent::{self, NOT_UNRESERVED};
use bowline_formats::purl::PackageUrl;
use bowline_terminal::{note, public_url};
use clap::Args;

use super::configure::scope;
use crate::error::CliError;
use crate::session::Access;

/// What is published, and where.
#[derive(Args)]
pub struct FilesArgs {
    #[command(flatten)]
    access: Access,
    /// Package URL of the version, such as pkg:generic/tool@1.2.0
    #[arg(value_name = "PURL")]
    purl: String,
    /// Files, each of which is published under its own name
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Directory of the version to publish to, such as linux/amd64 [default: the version itself]
    #[arg(long, value_name = "PATH")]
    below: Option<String>,
    /// Address of the package hosts [default: /libraries of the API]
    #[arg(long, value_name = "URL")]
    libraries_url: Option<String>,
    /// Group to publish to, by path or UIDP [default: the organization of the account]
    #[arg(long, value_name = "GROUP", value_parser = scope)]
    group: Option<String>,
}

/// Runs `bowline libraries publish files`.
///
/// # Errors
/// The package URL or a file cannot be used, or the server refuses.
pub(super) async fn run(args: FilesArgs) -> Result<(), CliError> {
    let version = version_of(&args.purl)?;
    let paths = args.files.iter().map(|file| path_of(file, args.below.as_deref())).collect::<Result<Vec<_>, _>>()?;
    let different: BTreeSet<&String> = paths.iter().collect();
    if different.len() < paths.len() {
        return Err(CliError::Option(
            "two of the files have the same name: publish them with different --below".into(),
        ));
    }
    let session = args.access.session()?;
    let url = match &args.libraries_url {
        Some(url) => public_url("libraries-url", url)?,
        None => format!("{}/libraries", session.api),
    };
    let base = url.trim_end_matches('/');
    let group = args.group.as_deref().unwrap_or("~");
    for (file, path) in args.files.iter().zip(&paths) {
        // One may take long, so each has a token of its own.
        let token = session.token(base).await?;
        let failed = |source| CliError::File { path: file.clone(), source };
        let mut opened = File::open(file).map_err(failed)?;
        let sha256 = hashed(&mut opened).map_err(failed)?;
        let address = format!("{base}/files/{group}/{version}/{path}");
        let is_new = stream_file(&session.http, &address, &token, (opened, &sha256)).await?;
        let outcome = if is_new { "published" } else { "was published before, with the same bytes" };
        note(&format!("{}/{path}: {outcome}\n", args.purl));
    }
    Ok(())
}

/// Name and version of a package URL, as addresses have them.
pub(super) fn version_of(text: &str) -> Result<String, CliError> {
    let refused = |why: String| CliError::Option(format!("{text}: {why}; write it as pkg:generic/tool@1.2.0"));
    let purl = PackageUrl::parse(text).map_err(|error| refused(format!("is no package URL: {error}")))?;
    let PackageUrl { kind, namespace, name, version, qualifiers, subpath } = purl;
    let is_plain = namespace.is_empty() && qualifiers.is_empty() && subpath.is_empty() && !version.is_empty();
    if kind != "generic" || !is_plain {
        return Err(refused("must be of the type generic, with a name, a version, and nothing else".into()));
    }
    Ok(format!("{}/{}", part(&name)?, part(&version)?))
}

/// The path of a file in its version, as addresses have it.
fn path_of(file: &Path, below: Option<&str>) -> Result<String, CliError> {
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| CliError::Option(format!("{}: has no name in UTF-8", file.display())))?;
    let directories = below.into_iter().flat_map(|below| below.trim_matches('/').split('/'));
    let parts: Vec<String> = directories.chain([name]).map(part).collect::<Result<_, _>>()?;
    Ok(parts.join("/"))
}

/// A part of an address. Points alone would lead to another version.
pub(super) fn part(text: &str) -> Result<String, CliError> {
    match text {
        "" | "." | ".." => Err(CliError::Option(format!("{text:?} cannot be a part of an address: leave it out"))),
        text => Ok(percent::encode(text, NOT_UNRESERVED)),
    }
}

/// The SHA-256 of a file in hex; it is at its beginning again afterwards.
pub(super) fn hashed(file: &mut File) -> std::io::Result<String> {
    let (mut context, mut part) = (Context::new(&SHA256), vec![0; 1 << 16]);
    loop {
        let length = file.read(&mut part)?;
        if length == 0 {
            file.rewind()?;
            return Ok(hex(context.finish().as_ref()));
        }
        context.update(part.get(..length).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_url_names_a_version() {
        assert_eq!(version_of("pkg:generic/tool@1.2.0%2Bb").expect("a version"), "tool/1.2.0%2Bb");
        for wrong in
            ["tool@1.0", "pkg:npm/tool@1.0", "pkg:generic/tool", "pkg:generic/a/tool@1", "pkg:generic/tool@1?a=b"]
        {
            assert!(
                matches!(version_of(wrong), Err(CliError::Option(text)) if text.contains("pkg:generic/tool@1.2.0")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_file_keeps_its_name() {
        let of = |file: &str, below| path_of(Path::new(file), below).expect(file);
        assert_eq!(of("dist/tool.tar.gz", None), "tool.tar.gz");
        assert_eq!(of("tool", Some("linux/amd64/")), "linux/amd64/tool");
        assert_eq!(of("a b", None), "a%20b", "the server says what is wrong with it");
        assert!(path_of(Path::new(".."), None).is_err());
        assert!(path_of(Path::new("a"), Some("../2.0")).is_err() && path_of(Path::new("a"), Some("a//b")).is_err());
        assert!(version_of("pkg:generic/tool@..").is_err());
    }

    #[test]
    fn a_file_is_hashed_and_read_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("abc");
        std::fs::write(&path, "abc").expect("a file is written");
        let mut file = File::open(path).expect("a file");
        assert!(hashed(&mut file).expect("a digest").starts_with("ba7816bf8f01cfea"));
        let mut text = String::new();
        file.read_to_string(&mut text).expect("its bytes");
        assert_eq!(text, "abc");
    }
}
