//! The database and what opens its secrets.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use bowline_authn::claims::{AccessClaims, TokenClass, mint};
use bowline_authn::crypto::{KeyEncryptionKey, random_bytes};
use bowline_authn::keys::{Algorithm, KeyRing};
use bowline_contract::bowline::operator::v1::BreakGlass;
use bowline_contract::bowline::operator::v1::rpc::local_operator::IssueToken;
use bowline_contract::{Contract, Method as _};
use bowline_core::{Clock, Error, Micros};
use bowline_pipeline::{Actor, Change, EventBody, OPERATOR, ResourceSnapshot, record_audit, record_event};
use bowline_store::{BoxFuture, Db, MIGRATIONS, PostgresOptions, Room, SchemaState, SqliteOptions};
use rustix::process::geteuid;

use crate::error::StartError;
use crate::options::{Options, require_file};
use crate::{blobs, facts, keys, limits, serving, unusable};

/// The opened, migrated database, and the key that wraps its secrets.
pub struct Storage {
    pub db: Db,
    /// Wraps signing keys and secrets.
    pub wrapping_key: KeyEncryptionKey,
    /// Signature algorithm of the first signing key, if there is none yet.
    pub token_algorithm: Algorithm,
    /// How many migrations this start applied.
    pub migrated: u32,
    /// The data directory, locked as long as a server works with its embedded database.
    lock: Option<File>,
}

impl Storage {
    /// Opens the database, making it if need be, and brings its schema up to date. An embedded one belongs to one server
    /// at a time, until [`Storage::close`] or the end of the process.
    ///
    /// # Errors
    /// Another server has the embedded database; it or the key file cannot be opened, or is of a newer version.
    pub fn open(options: &Options) -> BoxFuture<'_, Result<Storage, StartError>> {
        Box::pin(async move {
            // Before anything is made.
            if let Some(url) = &options.blob_url {
                blobs::bucket_of("--blob-url", url)?;
            }
            let mut lock = None;
            if options.database_url.is_none() {
                create_private_directory(&options.data_dir())?;
                lock = Some(lock_directory(&options.data_dir())?);
                let path = options.key_file()?;
                // A database without its key is half a backup: another key opens nothing in it.
                if options.key_file.is_none() && !path.exists() && !options.database_file().exists() {
                    write_key(&path, sync_directory)?;
                }
            }
            let wrapping_key = wrapping_key(options)?;
            let db = connect(options, Room::look).await?;
            let migrated = db.migrate(MIGRATIONS).await.map_err(|error| unusable::database(options, &error))?;
            Ok(Storage { db, wrapping_key, token_algorithm: options.token_algorithm(), migrated, lock })
        })
    }

    /// Opens the database of a server, which must be there already, and makes nothing.
    ///
    /// # Errors
    /// There is no database where the options say, or another version's; or it or the key file cannot be opened.
    pub async fn open_existing(options: &Options) -> Result<Storage, StartError> {
        let location = match &options.database_url {
            Some(_) => "at --database-url".to_owned(),
            None => format!("in {}", options.data_dir().display()),
        };
        let absent = || {
            StartError::Option(format!(
                "there is no database {location}; name the server's --data-dir, --database-url or --config, or make one \
                 with: bowline migrate"
            ))
        };
        if options.database_url.is_none() && !options.database_file().exists() {
            return Err(absent());
        }
        let wrapping_key = wrapping_key(options)?;
        // Only the operator's commands work beside a server, and they need room on a full disk too.
        let db = connect(options, Room::make_way).await?.from_reserve();
        match db.schema_state(MIGRATIONS).await.map_err(|error| unusable::database(options, &error))? {
            SchemaState::Current => {
                let token_algorithm = options.token_algorithm();
                Ok(Storage { db, wrapping_key, token_algorithm, migrated: 0, lock: None })
            }
            SchemaState::Absent => Err(absent()),
            SchemaState::Older => Err(StartError::Option(format!(
                "the database {location} is older than this program: start its server with this version, or run: bowline migrate"
            ))),
        }
    }

    /// The same while no server runs: for what a running server would not notice. On a shared database the transaction of
    /// the change looks again, see `serving::require_stopped_until_commit`.
    ///
    /// # Errors
    /// As [`Storage::open_existing`], or a server works with the database.
    pub async fn open_stopped(options: &Options, now: Micros) -> Result<Storage, StartError> {
        let mut storage = Storage::open_existing(options).await?;
        if options.database_url.is_none() {
            storage.lock = Some(lock_directory(&options.data_dir())?);
        } else {
            let read = storage.db.read(move |tx| Box::pin(async move { serving::require_stopped(tx, now).await }));
            read.await?;
        }
        Ok(storage)
    }

    /// Finishes what is queued and disconnects; then another server may have the database.
    pub async fn close(&self) {
        self.db.close().await;
        if let Some(Err(error)) = self.lock.as_ref().map(File::unlock) {
            tracing::warn!(%error, "the data directory stays locked until this process ends");
        }
    }
}

/// Locks the directory itself: no one can take the lock away as they can a file. Commands work beside a server; a second
/// server would not know what the first has in memory.
pub(crate) fn lock_directory(directory: &Path) -> Result<File, StartError> {
    let failed = |source| StartError::File { path: directory.into(), source };
    let file = File::open(directory).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::Option(format!(
            "another server works with {}: stop it, or give this one another --data-dir; several servers on the same \
             data need --database-url and --blob-url",
            directory.display()
        ))),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

pub(crate) async fn connect(options: &Options, prepare: impl FnOnce(&Room)) -> Result<Db, StartError> {
    let opened = if let Some(url) = &options.database_url {
        let max_connections = limits::database_connections(options)?;
        Db::open_postgres(url, PostgresOptions { max_connections, ..PostgresOptions::default() }).await
    } else {
        let room = Arc::new(options.room());
        prepare(&room);
        let mmap_size = limits::database_map(options);
        let sqlite = SqliteOptions { room: Some(room), mmap_size, ..SqliteOptions::default() };
        Db::open_sqlite(&options.database_file(), sqlite).await
    };
    opened.map_err(|error| unusable::database(options, &error))
}

/// The key from its file.
fn wrapping_key(options: &Options) -> Result<KeyEncryptionKey, StartError> {
    let path = options.key_file()?;
    read_key(&path).map_err(|error| match error {
        StartError::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            unusable::missing_key(options, &path)
        }
        error => error,
    })
}

/// The key of a file, which no one else may read.
pub(crate) fn read_key(path: &Path) -> Result<KeyEncryptionKey, StartError> {
    let bytes = require_file(path)?;
    require_private(path)?;
    let key = match bytes.len() {
        32 => bytes,
        _ => from_hex(&bytes).ok_or_else(|| StartError::Unusable {
            cause: format!("{}: a key file has 32 bytes or 64 hexadecimal characters", path.display()),
            hint: "restore the key file that this database was made with, or name it with --key-file".into(),
        })?,
    };
    KeyEncryptionKey::from_bytes(&key).map_err(|error| StartError::Sealed(error.to_string()))
}

/// A key that others can read protects nothing.
pub(crate) fn require_private(path: &Path) -> Result<(), StartError> {
    let metadata = std::fs::metadata(path).map_err(|source| StartError::File { path: path.into(), source })?;
    if is_private(metadata.permissions().mode(), metadata.uid() == 0 && !geteuid().is_root()) {
        return Ok(());
    }
    Err(StartError::Unusable {
        cause: format!("{}: others can read the key", path.display()),
        hint: format!("run: chmod 600 {}", path.display()),
    })
}

/// Whether a file's mode keeps others out. Secrets that are mounted into a container belong to root and are readable
/// through the group: their user has no other way to them.
fn is_private(mode: u32, is_mounted: bool) -> bool {
    mode & if is_mounted { 0o037 } else { 0o077 } == 0
}

/// Makes a directory that no one else may look into; one that is there already stays as it is.
pub(crate) fn create_private_directory(path: &Path) -> Result<(), StartError> {
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(|source| StartError::File { path: path.into(), source })
}

/// Writes a new key beside its final path and links it there, so that two first starts agree on one. Then the
/// key's name is made durable: a machine that fails later must not leave a database whose key is gone.
pub(crate) fn write_key(path: &Path, sync_directory: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), StartError> {
    let hex: String = bowline_core::hex(&random_bytes::<32>());
    link_key(path, format!("{hex}\n").as_bytes(), sync_directory)
}

/// Links a key to its path, whole or not at all, unless there is one.
fn link_key(
    path: &Path,
    contents: &[u8],
    sync_directory: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), StartError> {
    let failed = |source| StartError::File { path: path.into(), source };
    let suffix: String = bowline_core::hex(&random_bytes::<8>());
    let draft = path.with_extension(suffix);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(failed)?;
    file.write_all(contents).and_then(|()| file.sync_all()).map_err(failed)?;
    let linked = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft).map_err(failed)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        // Also where another start linked it: this one relies on the key as well.
        _ => {
            // The parent of a name alone is empty: the current directory.
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            sync_directory(parent.unwrap_or(Path::new("."))).map_err(failed)
        }
    }
}

/// Copies the key of one storage to the data of another.
///
/// # Errors
/// Another key is there, or a file cannot be read or written.
pub(crate) fn add_key(from: &Path, to: &Path) -> Result<(), StartError> {
    let bytes = require_file(from)?;
    link_key(to, &bytes, sync_directory)?;
    if require_file(to)? == bytes {
        return Ok(());
    }
    Err(StartError::Unusable {
        cause: format!("{}: another key is there", to.display()),
        hint: "name an empty place".into(),
    })
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn from_hex(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    if text.len() != 64 {
        return None;
    }
    (0..32).map(|i| u8::from_str_radix(text.get(i * 2..i * 2 + 2)?, 16).ok()).collect()
}

/// A token of the operator, with its row in the audit log; with a reason, even an empty one, also with an event.
///
/// # Errors
/// The storage fails, or has no signing key.
pub async fn mint_operator_token(
    storage: &Storage,
    clock: &dyn Clock,
    issuer: Option<String>,
    audience: Option<String>,
    lifetime_seconds: i64,
    reason: Option<&str>,
) -> Result<String, StartError> {
    // The operator needs a token most when the disk is full.
    let (db, now) = (storage.db.from_reserve(), clock.now());
    let ring: KeyRing = keys::load_or_create(&db, &storage.wrapping_key, storage.token_algorithm, now).await?;
    let known = facts::read(&storage.db).await?;
    let issuer = issuer.or(known.get("auth_url").cloned()).ok_or_else(|| {
        StartError::Option("the server has not started yet; start it once, or name its address with --auth-url".into())
    })?;
    let audience = audience.or(known.get("api_audience").cloned()).unwrap_or_else(|| issuer.clone());
    let seconds = now.div_euclid(1_000_000);
    let key = ring.signing_key(seconds).ok_or_else(|| StartError::Defect("no key signs at this time".into()))?;
    let claims = AccessClaims {
        iss: issuer,
        sub: OPERATOR.into(),
        aud: vec![audience],
        exp: seconds + lifetime_seconds,
        iat: seconds,
        jti: bowline_core::hex(&random_bytes::<16>()),
        ..AccessClaims::default()
    };
    let token = mint(TokenClass::Access, &claims, key);
    let expire_time = Some(prost_types::Timestamp { seconds: claims.exp, nanos: 0 });
    let made = reason.map(|reason| BreakGlass { reason: reason.to_owned(), expire_time, operator: OPERATOR.into() });
    audit_issuance(&db, now, claims.jti, made).await?;
    Ok(token)
}

/// Records that a token was made, and why, with the event of it.
async fn audit_issuance(db: &Db, now: Micros, id: String, made: Option<BreakGlass>) -> Result<(), StartError> {
    let contract = Contract::load();
    let job = Arc::new((id, made, contract));
    db.write(move |tx| {
        let job = job.clone();
        Box::pin(async move {
            let (id, made, contract) = &*job;
            let actor = Actor { subject: OPERATOR, request_id: id, method: "bowline operator token" };
            let snapshot = made.as_ref().map(ResourceSnapshot::of);
            let change = Change {
                kind: "iam.chainguard.dev/Identity",
                uid: OPERATOR.into(),
                before: None,
                after: snapshot.clone(),
            };
            record_audit(tx, now, &actor, &change).await?;
            let Some(body) = snapshot else { return Ok(()) };
            let method = contract.by_full_name(IssueToken::FULL_NAME);
            let method = method.ok_or_else(|| Error::internal("the contract lacks the operator's tokens"))?;
            let event = EventBody { subject: OPERATOR.into(), group: String::new(), body, extensions: Vec::new() };
            record_event(tx, method, now, &actor, None, &event).await
        })
    })
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_key_is_private_to_its_owner_or_to_the_group_of_a_mounted_secret() {
        for (mode, of_this_user, mounted) in [
            (0o100_600, true, true),
            (0o100_400, true, true),
            (0o100_440, false, true),
            (0o100_460, false, false),
            (0o100_444, false, false),
            (0o100_604, false, false),
        ] {
            assert_eq!((is_private(mode, false), is_private(mode, true)), (of_this_user, mounted), "{mode:o}");
        }
    }

    #[test]
    fn the_directory_of_a_new_key_is_synced_when_the_key_has_its_name() {
        let kept = tempfile::tempdir().unwrap();
        let path = kept.path().join("key");
        for start in ["the first", "another that came second"] {
            let mut synced = Vec::new();
            let sync = |directory: &Path| {
                assert_eq!(names(directory), ["key"], "{start}: the key is there, and its draft is not");
                synced.push(directory.to_owned());
                sync_directory(directory)
            };
            write_key(&path, sync).unwrap();
            assert_eq!(synced, [kept.path()], "{start}");
        }
        assert_eq!(from_hex(&std::fs::read(&path).unwrap()).unwrap().len(), 32);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_key_whose_name_is_not_durable_stops_the_start() {
        let kept = tempfile::tempdir().unwrap();
        let refused = write_key(&kept.path().join("key"), |_| Err(io::Error::other("the disk fails")));
        assert!(refused.unwrap_err().to_string().contains("the disk fails"));
    }
}
