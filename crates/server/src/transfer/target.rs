use std::fs::File;
use std::path::{Path, PathBuf};

use bowline_content::Content;
use bowline_store::{Db, Filling, MIGRATIONS, Room};
use bowline_terminal::say;

use crate::blobs::{bucket_of, content_of_owner};
use crate::error::StartError;
use crate::options::Options;
use crate::storage::{add_key, connect, create_private_directory, lock_directory};
use crate::unusable;

/// What is filled: a database, and where the bytes of its blobs go.
pub(crate) struct Target {
    pub(crate) db: Db,
    pub(crate) content: Content,
    /// The directory, which no server may take meanwhile.
    _lock: Option<File>,
}

/// What `--{option}` and `--{option}-blobs` name: a data directory, or a database with a storage for blobs
/// beside it.
///
/// # Errors
/// One is neither, or the storage for blobs is missing.
pub(crate) fn location(
    option: &str,
    location: &str,
    blobs: Option<&str>,
    key_file: Option<PathBuf>,
) -> Result<Options, StartError> {
    let is_url = |text: &str| text.contains("://");
    let mut options = Options { key_file, ..Options::default() };
    if is_url(location) {
        if !location.starts_with("postgres://") && !location.starts_with("postgresql://") {
            return Err(StartError::Option(format!(
                "--{option} is no URL of PostgreSQL: write a directory, or postgres://<user>:<password>@<host>:5432/<database>"
            )));
        }
        options.database_url = Some(location.to_owned());
        if blobs.is_none() {
            return Err(StartError::Option(format!(
                "--{option} is a database, which has no blobs in it: name their place with --{option}-blobs"
            )));
        }
    } else {
        options.data_dir = Some(PathBuf::from(location));
    }
    match blobs {
        Some(url) if is_url(url) => {
            bucket_of(&format!("--{option}-blobs"), url)?;
            options.blob_url = Some(url.to_owned());
        }
        Some(_) if !is_url(location) => {
            return Err(StartError::Option(format!(
                "--{option}-blobs must be s3://<bucket>/<prefix>: blobs of a directory are in it"
            )));
        }
        Some(directory) => options.data_dir = Some(PathBuf::from(directory)),
        None => {}
    }
    Ok(options)
}

/// Opens an empty storage, or one that an interrupted run has begun to fill. A directory gets the key file;
/// `owner` is the name under which the database owns its blobs.
///
/// # Errors
/// It is not empty, or cannot be written.
pub(crate) async fn open_target(to: &Options, key: &Path, owner: &str) -> Result<Target, StartError> {
    let mut lock = None;
    if to.database_url.is_none() {
        create_private_directory(&to.data_dir())?;
        lock = Some(lock_directory(&to.data_dir())?);
    }
    let db = connect(to, Room::look).await?;
    let begun = db.begin_filling(MIGRATIONS).await.map_err(|error| unusable::target(to, &error))?;
    if begun == Filling::Resumed {
        say("the target has rows of an interrupted run, which goes on\n");
    }
    if to.database_url.is_none() {
        add_key(key, &to.data_dir().join("key"))?;
    }
    let content = content_of_owner(to, &db, owner).await?;
    Ok(Target { db, content, _lock: lock })
}

/// How a server is started on what was filled. URLs may hold a password, and are not repeated.
pub(crate) fn start_line(to: &Options, key: &Path) -> String {
    let blobs = if to.blob_url.is_some() { " --blob-url <the value of --to-blobs>" } else { "" };
    if to.database_url.is_none() {
        return format!("bowline serve --data-dir {}{blobs}", to.data_dir().display());
    }
    let directory = match &to.data_dir {
        Some(directory) => format!(" --data-dir {}", directory.display()),
        None => String::new(),
    };
    format!("bowline serve --database-url <the value of --to>{directory}{blobs} --key-file {}", key.display())
}
