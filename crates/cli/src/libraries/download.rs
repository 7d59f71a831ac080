//! `bowline libraries download`: generic files of a version, each verified by the digest that the server lists.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bowline_client::{LazyClient, get_document, receive_file};
use bowline_terminal::{note, public_url};
use clap::Args;
use serde::Deserialize;

use super::configure::scope;
use super::publish_files::{hashed, part, version_of};
use crate::error::CliError;
use crate::session::Access;

/// Maximum bytes of the list of a version's files.
const LIST: usize = 8 << 20;

/// What is downloaded, and where to.
#[derive(Args)]
pub struct DownloadCommand {
    #[command(flatten)]
    access: Access,
    /// Package URL of the version, such as pkg:generic/tool@1.2.0
    #[arg(value_name = "PURL")]
    purl: String,
    /// Paths of files in the version [default: all of its files]
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Directory to download to, below which files have their paths
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// Address of the package hosts [default: /libraries of the API]
    #[arg(long, value_name = "URL")]
    libraries_url: Option<String>,
    /// Group that published it, by path or UIDP [default: the organization of the account]
    #[arg(long, value_name = "GROUP", value_parser = scope)]
    group: Option<String>,
}

/// The files of a version, as the host lists them.
#[derive(Deserialize)]
struct Listed {
    files: Vec<ListedFile>,
    withheld: Vec<WithheldFile>,
}

#[derive(Clone, Debug, Deserialize)]
struct ListedFile {
    path: String,
    sha256: String,
}

/// A file that a policy withholds.
#[derive(Deserialize)]
struct WithheldFile {
    path: String,
    message: String,
}

/// Runs `bowline libraries download`. Files that are there with the same bytes stay; others are never replaced.
///
/// # Errors
/// The package URL or the directory cannot be used, the server refuses, a policy withholds a file, or other bytes arrive.
pub(super) async fn run(command: DownloadCommand) -> Result<(), CliError> {
    let version = version_of(&command.purl)?;
    let session = command.access.session()?;
    let url = match &command.libraries_url {
        Some(url) => public_url("libraries-url", url)?,
        None => format!("{}/libraries", session.api),
    };
    let libraries = url.trim_end_matches('/');
    let base = format!("{libraries}/files/{}/{version}", command.group.as_deref().unwrap_or("~"));
    let token = session.token(libraries).await?;
    let list = get_document(&session.http, &format!("{base}/"), &token, "application/json", LIST).await;
    let list = list.map_err(|error| {
        if !error.is_absent() {
            return error.into();
        }
        let hint = "`bowline libraries files list GROUP` shows what a group published";
        CliError::NoFile { message: error.to_string(), hint }
    })?;
    let listed: Listed = serde_json::from_value(list).map_err(|error| {
        CliError::Document(format!("the list of files of {} cannot be read: {error}", command.purl))
    })?;
    for file in selected(&command, listed)? {
        let target = target(&command.to, &file.path)?;
        if is_there(&target, &file)? {
            note(&format!("{}: is there, with the same bytes\n", target.display()));
            continue;
        }
        // One may take long, so each has a token of its own.
        let token = session.token(libraries).await?;
        let address = format!("{base}/{}", address(&file.path)?);
        download(&session.http, (&address, &token), &file, &target).await?;
        note(&format!("{}: downloaded\n", target.display()));
    }
    Ok(())
}

/// The files to download.
fn selected(command: &DownloadCommand, listed: Listed) -> Result<Vec<ListedFile>, CliError> {
    let is_selected = |path: &String| command.paths.is_empty() || command.paths.contains(path);
    if let Some(withheld) = listed.withheld.iter().find(|file| is_selected(&file.path)) {
        let hint = "`bowline libraries why PURL` shows what decides about the version";
        return Err(CliError::NotDownloaded { message: format!("{}: {}", withheld.path, withheld.message), hint });
    }
    let absent = command.paths.iter().find(|path| listed.files.iter().all(|file| file.path != **path));
    if let Some(path) = absent {
        let message = format!("{} has no file {path}", command.purl);
        return Err(CliError::NoFile { message, hint: "without a path, all files of the version are downloaded" });
    }
    Ok(listed.files.into_iter().filter(|file| is_selected(&file.path)).collect())
}

/// Where a file goes. A path that leads out of the directory is refused, whatever the server says.
fn target(directory: &Path, path: &str) -> Result<PathBuf, CliError> {
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\\', ':', '\0']);
    if !path.split('/').all(is_plain) {
        return Err(CliError::Document(format!(
            "the server lists a file {path:?}, which is no path below a directory"
        )));
    }
    Ok(directory.join(path))
}

/// The path of a file, as addresses have it.
fn address(path: &str) -> Result<String, CliError> {
    Ok(path.split('/').map(part).collect::<Result<Vec<_>, _>>()?.join("/"))
}

/// Whether a file is there with the listed bytes.
///
/// # Errors
/// It is there with others.
fn is_there(target: &Path, file: &ListedFile) -> Result<bool, CliError> {
    let failed = |source| CliError::File { path: target.to_owned(), source };
    let mut opened = match File::open(target) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        opened => opened.map_err(failed)?,
    };
    if hashed(&mut opened).map_err(failed)? == file.sha256 {
        return Ok(true);
    }
    let message = format!("{} is there with other bytes, and stays", target.display());
    Err(CliError::NotDownloaded { message, hint: "move it away, or choose another directory with --to" })
}

/// Downloads a file beside its target, where it appears once it is whole and verified, and replaces nothing.
async fn download(
    http: &LazyClient,
    (address, token): (&str, &str),
    file: &ListedFile,
    target: &Path,
) -> Result<(), CliError> {
    let failed = |source| CliError::File { path: target.to_owned(), source };
    let directory = target.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(failed)?;
    // With the permissions of any new file: others may read it, as the mask of the process says.
    let permissions = Permissions::from_mode(0o666);
    let mut partial = tempfile::Builder::new().permissions(permissions).tempfile_in(directory).map_err(failed)?;
    let sha256 = receive_file(http, address, token, (partial.as_file_mut(), target)).await?;
    require_listed(&sha256, file)?;
    partial.persist_noclobber(target).map_err(|error| failed(error.error))?;
    Ok(())
}

fn require_listed(sha256: &str, file: &ListedFile) -> Result<(), CliError> {
    if sha256 == file.sha256 {
        return Ok(());
    }
    let message = format!("{}: the bytes have the SHA-256 {sha256}, and {} is listed", file.path, file.sha256);
    Err(CliError::NotDownloaded { message, hint: "try again; if it happens twice, tell the operator" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_directory() {
        let below = |path| target(Path::new("out"), path);
        assert_eq!(below("linux/amd64/tool").expect("a path"), Path::new("out/linux/amd64/tool"));
        for path in ["../tool", "a/../../b", "/etc/passwd", "a//b", "", "a/.", "a\\b", "c:", "a\0b"] {
            assert!(matches!(below(path), Err(CliError::Document(_))), "{path}");
        }
    }

    #[test]
    fn files_with_other_bytes_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("abc");
        let listed = |sha256: &str| ListedFile { path: "abc".into(), sha256: sha256.into() };
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(!is_there(&path, &listed(digest)).expect("no file"));
        std::fs::write(&path, "abc").expect("a file is written");
        assert!(is_there(&path, &listed(digest)).expect("the file"));
        let refused = is_there(&path, &listed(&"0".repeat(64))).expect_err("other bytes");
        assert!(matches!(refused, CliError::NotDownloaded { .. }), "{refused}");
        assert!(require_listed(digest, &listed(digest)).is_ok() && require_listed("00", &listed(digest)).is_err());
    }
}
