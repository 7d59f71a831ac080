//! Blobs in a directory.

use std::collections::HashSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::content::{BlobLocation, is_id};
use crate::digest::{Algorithm, Digest};
use crate::error::ContentError;
use crate::files::{self, hash_of, remove, sync_directory};
use crate::reader::Reader;
use crate::under_way::UnderWay;
use crate::writing::Hold;

/// Reports whether uploads must stop because the disk is nearly full.
#[derive(Clone)]
pub struct FullCheck(Arc<dyn Fn() -> bool + Send + Sync>);

impl FullCheck {
    /// Calls `is_full` for every part of a body.
    pub fn new(is_full: impl Fn() -> bool + Send + Sync + 'static) -> FullCheck {
        FullCheck(Arc::new(is_full))
    }

    /// # Errors
    /// The disk is nearly full.
    pub(crate) fn require_room(&self) -> Result<(), ContentError> {
        if (self.0)() { Err(ContentError::Storage(ErrorKind::StorageFull.into())) } else { Ok(()) }
    }
}

impl std::fmt::Debug for FullCheck {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FullCheck")
    }
}

/// The name of a file is the digest and the id of the upload that brought it, so that two uploads of one
/// digest never share a file, and removing one leaves the other. The id is empty where the digest alone is
/// the name.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) is_full: FullCheck,
    blobs: PathBuf,
    uploads: PathBuf,
    pub(crate) under_way: Arc<UnderWay>,
    /// Directories of blobs whose names are durable.
    made: Mutex<HashSet<PathBuf>>,
}

impl Local {
    pub(crate) fn open(directory: &Path, is_full: FullCheck) -> Result<Local, ContentError> {
        let (blobs, uploads) = (directory.to_owned(), directory.join("uploads"));
        files::create_private_directory(&uploads)?;
        files::make_private(&blobs)?;
        sync_directory(&blobs)?;
        Ok(Local { is_full, blobs, uploads, under_way: Arc::default(), made: Mutex::default() })
    }

    pub(crate) fn owner(&self, candidate: &str, draft: &str) -> Result<String, ContentError> {
        let (path, draft) = (self.blobs.join("owner"), self.blobs.join(format!("owner-{draft}")));
        if files::size(&path)?.is_none() {
            files::write_new(&draft, candidate)?;
            match std::fs::hard_link(&draft, &path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                linked => linked?,
            }
            remove(&draft)?;
            sync_directory(&self.blobs)?;
        }
        Ok(std::fs::read_to_string(&path)?.trim().to_owned())
    }

    pub(crate) fn upload(&self, id: &str) -> PathBuf {
        self.uploads.join(id)
    }

    /// Path of the replica that an upload brought.
    pub(crate) fn blob(&self, digest: &Digest, upload: &str) -> PathBuf {
        let directory = files::directory_of(&self.blobs, digest);
        if upload.is_empty() {
            directory.join(digest.hex())
        } else {
            directory.join(format!("{}-{upload}", digest.hex()))
        }
    }

    /// Creates the directory that `place` is in, if needed; its name is durable when this returns.
    pub(crate) fn make_directory(&self, place: &Path) -> Result<(), ContentError> {
        let directory = place.parent().unwrap_or(place);
        let made = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !made().contains(directory) {
            files::make_directory(&self.blobs, directory)?;
            made().insert(directory.to_owned());
        }
        Ok(())
    }

    pub(crate) fn begin(&self, id: &str) -> Result<(), ContentError> {
        self.is_full.require_room()?;
        files::create_private(&self.upload(id)).map(|_| ())
    }

    /// Opens an upload's file to read it while others write; absent without such an upload.
    pub(crate) fn open_upload(&self, id: &str) -> Result<Option<File>, ContentError> {
        match File::open(self.upload(id)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn uploaded(&self, id: &str) -> Result<u64, ContentError> {
        files::size(&self.upload(id))?.ok_or(ContentError::UnknownUpload)
    }

    pub(crate) fn cancel(self: &Arc<Self>, id: &str) -> Result<(), ContentError> {
        let hold = Hold::take(self, id)?;
        match hold.open() {
            Err(ContentError::UnknownUpload) => Ok(()),
            Err(error) => Err(error),
            Ok(_locked) => hold.remove(),
        }
    }

    /// Ids of the uploads that have a file.
    pub(crate) fn uploads(&self) -> Result<Vec<String>, ContentError> {
        Ok(files::names(&self.uploads)?.into_iter().filter(|name| is_id(name)).collect())
    }

    pub(crate) fn read(&self, digest: &Digest, upload: &str) -> Result<Option<Reader>, ContentError> {
        match File::open(self.blob(digest, upload)) {
            Ok(file) => {
                let size = file.metadata()?.len();
                Ok(Some(Reader::of_file(file, size)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn size(&self, digest: &Digest, upload: &str) -> Result<Option<u64>, ContentError> {
        files::size(&self.blob(digest, upload))
    }

    pub(crate) fn rehash(&self, digest: &Digest, upload: &str) -> Result<Option<Digest>, ContentError> {
        match File::open(self.blob(digest, upload)) {
            Ok(file) => Ok(Some(hash_of(file, digest.algorithm())?.finish())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The replicas in the directory of digests with this first byte.
    pub(crate) fn locations(&self, algorithm: Algorithm, first: u8) -> Result<Vec<BlobLocation>, ContentError> {
        let location = |name: String| {
            let (hex, upload) = name.split_once('-').unwrap_or((&name, ""));
            let digest = Digest::parse(&format!("{}:{hex}", algorithm.as_str())).ok()?;
            let is_location = upload.is_empty() || is_id(upload);
            is_location.then(|| BlobLocation {
                digest: Some(digest),
                key: upload.to_owned(),
                open_upload: upload.to_owned(),
            })
        };
        let directory = files::directory(&self.blobs, algorithm, first);
        Ok(files::names(&directory)?.into_iter().filter_map(location).collect())
    }
}
