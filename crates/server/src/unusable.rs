//! What stops a start: the cause in one line, and the remedy in another.

use std::path::Path;

use bowline_store::{ErrorKind, StoreError};

use crate::error::StartError;
use crate::options::Options;

/// The database cannot be opened or brought up to date.
pub(crate) fn database(options: &Options, error: &StoreError) -> StartError {
    let message = error.message();
    let (cause, hint) = if options.database_url.is_some() {
        // The URL may hold a password, and is not repeated.
        (format!("cannot use the database at --database-url: {message}"), postgres_hint(error))
    } else {
        let file = options.database_file();
        (format!("cannot use the database {}: {message}", file.display()), sqlite_hint(error, &file))
    };
    StartError::Unusable { cause, hint }
}

/// What is to be filled is no empty database.
pub(crate) fn target(options: &Options, error: &StoreError) -> StartError {
    let location = match &options.database_url {
        Some(_) => "the database of --to".to_owned(),
        None => options.database_file().display().to_string(),
    };
    let hint = match error.kind() {
        ErrorKind::OtherConstraint => "name an empty place with --to".into(),
        ErrorKind::SchemaUnknown => "empty the place of --to, and run the command again".into(),
        _ => return database(options, error),
    };
    StartError::Unusable { cause: format!("{location} cannot be filled: {}", error.message()), hint }
}

const UNFINISHED: &str = "run the command that fills it again, which goes on where it ended";
const URL_FORM: &str = "postgres://<user>:<password>@<host>:5432/<database>?sslmode=disable";
const NEWER_PROGRAM: &str = "start the newer release that migrated the database, or restore a backup from before";

fn postgres_hint(error: &StoreError) -> String {
    match (error.sqlstate(), error.kind()) {
        (Some("28P01" | "28000"), _) => "correct user and password in --database-url, or pg_hba.conf".into(),
        (Some("3D000"), _) => {
            "make the database with: createdb <database>; or correct its name in --database-url".into()
        }
        (Some("42501"), _) => "make the user of --database-url the owner of the database".into(),
        // Migrations need one extension.
        (Some("0A000" | "58P01"), _) => {
            "install the extensions of PostgreSQL (package postgresql-contrib), which include pg_trgm".into()
        }
        (Some(code), _) if code.starts_with("53") => "free disk space or connections of the PostgreSQL server".into(),
        (_, ErrorKind::SchemaUnknown) => NEWER_PROGRAM.into(),
        (_, ErrorKind::Incomplete) => UNFINISHED.into(),
        (None, ErrorKind::Bug) => format!("write --database-url {URL_FORM}"),
        (_, ErrorKind::Corrupt) => "restore the database from a backup (docs/OPERATIONS.md, Backup and restore)".into(),
        _ => "start PostgreSQL, or correct host and port in --database-url".into(),
    }
}

fn sqlite_hint(error: &StoreError, file: &Path) -> String {
    match error.kind() {
        ErrorKind::Corrupt => {
            "restore the database, the key file and the blobs from one backup (docs/OPERATIONS.md, Backup and restore)"
                .into()
        }
        ErrorKind::SchemaUnknown => NEWER_PROGRAM.into(),
        ErrorKind::Incomplete => UNFINISHED.into(),
        ErrorKind::Unavailable => {
            format!(
                "check that this user may write {} and its directory, and that the disk is not full",
                file.display()
            )
        }
        _ => "report this with the lines above".into(),
    }
}

/// There is no key file where one must be.
pub(crate) fn missing_key(options: &Options, path: &Path) -> StartError {
    let file = options.database_file();
    let (what, hint) = match &options.database_url {
        None if file.exists() => (
            format!(", but there is a database {} whose secrets it protects", file.display()),
            "restore the key file from the backup of this database, or name it with --key-file; a new key would open nothing"
                .into(),
        ),
        _ => (
            String::new(),
            format!(
                "restore the key file that the database was made with, or name it with --key-file; for a new database make \
                 one with: head -c 32 /dev/urandom > {0} && chmod 600 {0}",
                path.display()
            ),
        ),
    };
    StartError::Unusable { cause: format!("there is no key file {}{what}", path.display()), hint }
}

/// A certificate or its key is not what the option needs.
pub(crate) fn tls(path: &Path, cause: &dyn std::fmt::Display, hint: &str) -> StartError {
    StartError::Unusable { cause: format!("{}: {cause}", path.display()), hint: hint.to_owned() }
}

/// The configuration file cannot be read.
pub(crate) fn configuration_file(path: &Path, error: &std::io::Error) -> StartError {
    StartError::Unusable {
        cause: format!("{}: {error}", path.display()),
        hint: "name a TOML file that this user may read with --config".into(),
    }
}

/// The configuration file is not valid TOML, or has something in it that is no option.
pub(crate) fn configuration(path: &Path, text: &str, error: &toml::de::Error) -> StartError {
    let location = match error.span() {
        Some(span) => {
            let line = text.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count() + 1;
            format!("{}:{line}", path.display())
        }
        None => path.display().to_string(),
    };
    // The list of all options is in the help.
    let message = error.message().split(", expected one of").next().unwrap_or_default().replace('\n', " ");
    StartError::Unusable {
        cause: format!("{location}: {message}"),
        hint: "correct that line; options are those of bowline serve --help without the dashes in front, such as listen = \"127.0.0.1:8080\"".into(),
    }
}
