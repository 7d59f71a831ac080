//! `bowline libraries publish`: modules of Go, whose client does not publish, and generic files, which have none.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use bowline_client::put_file;
use bowline_formats::archive::zip_writer::Writer;
use bowline_packages::{GO_ARCHIVE, go_escaped, go_major, go_mod, is_go_version};
use bowline_terminal::{note, public_url};
use clap::{Args, Subcommand};

use super::configure::scope;
use super::publish_files::{self, FilesArgs};
use crate::error::CliError;
use crate::input;
use crate::session::Access;

/// `bowline libraries publish`.
#[derive(Subcommand)]
pub enum PublishCommand {
    /// Publish a version of a Go module: in a working tree of git, the files that it tracks
    Go(GoArgs),
    /// Publish generic files under a name and a version
    Files(FilesArgs),
}

/// What is published of a directory, and where.
#[derive(Args)]
pub struct GoArgs {
    #[command(flatten)]
    access: Access,
    /// Version, such as v1.2.0
    #[arg(value_name = "VERSION")]
    version: String,
    /// Directory of the module
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Address of the package hosts [default: /libraries of the API]
    #[arg(long, value_name = "URL")]
    libraries_url: Option<String>,
    /// Group to publish to, by path or UIDP [default: the organization of the account]
    #[arg(long, value_name = "GROUP", value_parser = scope)]
    group: Option<String>,
    /// Print the files of the archive, and publish nothing
    #[arg(long)]
    dry_run: bool,
}

/// Directories that are no part of a module: those of version control, and copies of other modules.
const SKIPPED: [&str; 5] = [".git", ".hg", ".svn", ".bzr", "vendor"];
/// Levels of directories below the module.
const LEVELS: usize = 64;

/// Runs `bowline libraries publish`.
///
/// # Errors
/// The directory is no module that can have the version, or the server refuses.
pub(super) async fn run(command: PublishCommand) -> Result<(), CliError> {
    match command {
        PublishCommand::Go(args) => go(args).await,
        PublishCommand::Files(args) => publish_files::run(args).await,
    }
}

async fn go(args: GoArgs) -> Result<(), CliError> {
    let (version, directory) = (&args.version, &args.directory);
    let path = directory.join("go.mod");
    let source = File::open(&path).map_err(|source| CliError::File { path: path.clone(), source })?;
    let module = go_mod(source).map_err(|refusal| CliError::Option(format!("{}: {refusal}", path.display())))?;
    if !is_go_version(version) {
        return Err(CliError::Option(format!("{version} is no version of a module: it must be as v1.2.3")));
    }
    go_major(&module, version).map_err(CliError::Option)?;
    let mut files = Vec::new();
    collect(directory, "", LEVELS, &mut files)?;
    if let Some(tracked) = tracked(directory)? {
        files.retain(|file| tracked.contains(file));
    }
    files.sort();
    if args.dry_run {
        return crate::print(&files.iter().flat_map(|file| [file.as_str(), "\n"]).collect::<String>());
    }
    let archive = archived(directory, &files, &format!("{module}@{version}/"))?;
    let session = args.access.session()?;
    let url = match &args.libraries_url {
        Some(url) => public_url("libraries-url", url)?,
        None => format!("{}/libraries", session.api),
    };
    let base = url.trim_end_matches('/');
    let token = session.token(base).await?;
    let scope = args.group.as_ref().map(|scope| format!("/{scope}")).unwrap_or_default();
    let address = format!("{base}/go{scope}/{}/@v/{}.zip", go_escaped(&module), go_escaped(version));
    let is_new = put_file(&session.http, &address, &token, archive).await?;
    let outcome = if is_new { "published" } else { "was published before, with the same files" };
    note(&format!("{module}@{version}: {outcome}\n"));
    Ok(())
}

/// The files of a module, by their paths in it: without links, and without directories that are modules of their own.
fn collect(directory: &Path, above: &str, levels: usize, files: &mut Vec<String>) -> Result<(), CliError> {
    let failed = |source| CliError::File { path: directory.to_owned(), source };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (name, kind) = (entry.file_name(), entry.file_type().map_err(failed)?);
        let Some(name) = name.to_str() else {
            return Err(CliError::Option(format!("{}: its name is not UTF-8", entry.path().display())));
        };
        let path = format!("{above}{name}");
        if kind.is_dir() && !SKIPPED.contains(&name) && !entry.path().join("go.mod").exists() {
            let deeper = levels.checked_sub(1);
            let deeper = deeper.ok_or_else(|| CliError::Option(format!("{path}: too many directories")))?;
            collect(&entry.path(), &format!("{path}/"), deeper, files)?;
        } else if kind.is_file() && !SKIPPED.contains(&name) {
            files.push(path);
        }
    }
    Ok(())
}

/// The files that git tracks in a directory, by their paths in it: others, such as those with secrets, are not published. Absent
/// outside of a working tree.
fn tracked(directory: &Path) -> Result<Option<BTreeSet<String>>, CliError> {
    let whole = directory.canonicalize().map_err(|source| CliError::File { path: directory.to_owned(), source })?;
    // In a further working tree it is a file.
    let has_git = |above: &Path| above.join(".git/HEAD").exists() || above.join(".git").is_file();
    if !whole.ancestors().any(has_git) {
        return Ok(None);
    }
    let listed = Command::new("git").arg("-C").arg(&whole).args(["ls-files", "-z", "--cached"]).output();
    let failed = |why: &str| CliError::Option(format!("git cannot list what it tracks of {}: {why}", whole.display()));
    let listed = listed.map_err(|error| failed(&error.to_string()))?;
    if !listed.status.success() {
        return Err(failed(String::from_utf8_lossy(&listed.stderr).trim()));
    }
    let paths = String::from_utf8(listed.stdout).map_err(|_| failed("a path is not UTF-8"))?;
    Ok(Some(paths.split('\0').filter(|path| !path.is_empty()).map(String::from).collect()))
}

/// The archive of files, all of which lie below a prefix.
fn archived(directory: &Path, files: &[String], prefix: &str) -> Result<Vec<u8>, CliError> {
    let mut left = GO_ARCHIVE;
    let mut writer = Writer::new(Vec::new());
    for file in files {
        let path = directory.join(file);
        let bytes = input::read(&path, left)?;
        left -= bytes.len() as u64;
        writer.add(&format!("{prefix}{file}"), &bytes).map_err(|source| CliError::File { path, source })?;
    }
    writer.finish().map_err(|source| CliError::File { path: directory.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_files_of_the_module_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
            std::fs::write(path, text).expect("a file is written");
        };
        write("go.mod", "module acme.example/tool\n");
        write("sub/x.go", "package sub\n");
        write("vendor/other/x.go", "package other\n");
        write(".git/config", "");
        write("nested/go.mod", "module acme.example/tool/nested\n");
        write("nested/x.go", "package nested\n");
        let mut files = Vec::new();
        collect(directory.path(), "", LEVELS, &mut files).expect("files");
        files.sort();
        assert_eq!(files, ["go.mod", "sub/x.go"]);
        assert_eq!(tracked(directory.path()).expect("no working tree"), None);
        let archive = archived(directory.path(), &files, "acme.example/tool@v1.0.0/").expect("an archive");
        let length = archive.len() as u64;
        let read = bowline_packages::go_archive(std::io::Cursor::new(archive), length, "acme.example/tool", "v1.0.0");
        assert_eq!(read.expect("an archive"), b"module acme.example/tool\n");
    }

    #[test]
    fn what_git_does_not_track_is_not_published() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("go.mod"), "module acme.example/tool\n").expect("a file is written");
        std::fs::write(directory.path().join(".env"), "SECRET=x\n").expect("a file is written");
        let git = |words: &[&str]| {
            let status = Command::new("git").arg("-C").arg(directory.path()).args(words).status().expect("git runs");
            assert!(status.success(), "{words:?}");
        };
        git(&["init", "-q"]);
        git(&["add", "go.mod"]);
        let found = tracked(directory.path()).expect("git lists files").expect("a working tree");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["go.mod"]);
    }
}
