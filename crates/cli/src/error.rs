use std::path::PathBuf;

use bowline_client::{ClientError, LookupKind};
use bowline_terminal::TerminalError;

/// Why a command does not do its work: what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// An option does not make sense.
    #[error("{0}")]
    Option(String),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// A value on the command line, or the terminal.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    #[error("{0}")]
    Refused(#[from] bowline_core::Error),
    /// The call of the server failed.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// Files were left out of an import.
    #[error("files that were skipped, for the reasons above: {0}; the others were taken in")]
    Skipped(usize),
    /// Records were left out of an import.
    #[error("records that were left out, for the reasons above: {0}; the others were taken in")]
    LeftOut(usize),
    /// Records were left out of an export.
    #[error("records that were left out, for the reasons above: {0}; the others were written")]
    NotExported(usize),
    /// There are no records for an export.
    #[error("no record here is about {0}: import a source that has some with `bowline feeds import osv`")]
    NoRecords(String),
    /// An import changed the records while they were exported.
    #[error("records were imported during the export, and nothing was written")]
    RecordsChanged,
    /// The server has no record of some vulnerabilities.
    #[error("no record here is about {}: check the spelling, or import a source that does with `bowline feeds import`", .0.join(", "))]
    Unknown(Vec<String>),
    /// The audit log is not what it was when it was written.
    #[error("the audit log is not verified: {0}")]
    Unverified(String),
    /// A document that cannot be read, or not all of it.
    #[error("{0}")]
    Document(String),
    /// The server does not have what the files have; the plan was printed.
    #[error("the server differs from the files")]
    Differs,
    /// Files would change objects of others.
    #[error("nothing was changed, because the files do not own or cannot change: {0}")]
    NotOwned(String),
    /// Some changes were made before one failed.
    #[error("{done} of {planned} changes were made; then {cause}{left}")]
    Partial { done: usize, planned: usize, cause: String, left: String },
    /// Versions that a lock file pins, which the policy in force refuses; they were printed.
    #[error("versions that the policy in force refuses: {0}")]
    WouldBeRefused(usize),
    /// Versions that a version requires, all of which the policy in force withholds; they were printed.
    #[error("required versions that the policy in force withholds: {0}")]
    Held(usize),
    /// What a version requires is not stored on the server.
    #[error("{0}")]
    NotStored(String),
    /// There is no such version of generic files, or no file of a path in it.
    #[error("{message}")]
    NoFile { message: String, hint: &'static str },
    /// A file was not downloaded.
    #[error("{message}")]
    NotDownloaded { message: String, hint: &'static str },
    /// Ways around the package hosts; they were printed.
    #[error("sources of packages beside the package hosts: {0}")]
    Bypassed(usize),
    /// A version of a package has no signed statements here.
    #[error("{message}")]
    NotAttested { message: String, hint: &'static str },
    /// A defect of the program.
    #[error("defect: {0}")]
    Defect(String),
}

impl CliError {
    /// What to do about it, where the message does not say so itself.
    pub fn hint(&self) -> Option<String> {
        match self {
            CliError::File { source, .. } | CliError::Client(ClientError::File { source, .. }) => {
                Some(file_hint(source))
            }
            CliError::Terminal(error) => error.hint(),
            CliError::Client(error) => denial_hint(error).or_else(|| client_hint(error).map(String::from)),
            CliError::Option(_) => Some("--help of the command describes its options".into()),
            CliError::Skipped(_) | CliError::LeftOut(_) => {
                Some("--report FILE writes them to a file; mend them, and import again".into())
            }
            CliError::Unverified(_) => {
                Some("compare with an export or checkpoints that are stored elsewhere, and tell the operator".into())
            }
            CliError::Document(_) => Some("mend the document, and run the command again".into()),
            CliError::Defect(_) => Some("report it with the command and the output of `bowline version`".into()),
            CliError::NotOwned(_) => Some(
                "the plan says why for each; --take-over makes the files the owner of what has another or none".into(),
            ),
            CliError::Partial { .. } => Some("mend the cause and run the command again: it continues".into()),
            CliError::WouldBeRefused(_) => {
                Some("pin others, or wait; `bowline libraries why PURL` shows what decides about one".into())
            }
            CliError::Held(_) => Some(
                "wait, or request an exception for each where the reason allows one, which block lists and licenses do not: `bowline libraries exceptions request`".into(),
            ),
            CliError::NotStored(_) => {
                Some("install the version through the package host, so that the documents of its packages are stored".into())
            }
            CliError::Bypassed(_) => Some(
                "remove them, or add an upstream for each with `bowline libraries upstreams set`, so that policies apply".into(),
            ),
            CliError::NotAttested { hint, .. }
            | CliError::NoFile { hint, .. }
            | CliError::NotDownloaded { hint, .. } => Some((*hint).into()),
            CliError::NotExported(_) => Some("query them with `bowline vulns get ID`, or in the OSV query API".into()),
            CliError::RecordsChanged => Some("run the command again".into()),
            CliError::Refused(_) | CliError::Unknown(_) | CliError::NoRecords(_) | CliError::Differs => None,
        }
    }

    /// Whether the output says all of it: it is a result, and no failure.
    pub fn is_result(&self) -> bool {
        matches!(self, CliError::Differs)
    }

    /// The exit code of a process that ends with it: 2 wrong usage, 3 not signed in, 4 not allowed, 5 the server cannot
    /// be reached, 6 not found, 7 the server differs from files, 8 a part was done, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Client(error) if error.is_unauthenticated() => 3,
            CliError::Client(error) if error.is_permission_denied() => 4,
            CliError::Client(error) if error.is_transport() => 5,
            CliError::Client(error) if error.is_absent() => 6,
            CliError::Unknown(_)
            | CliError::NoRecords(_)
            | CliError::NotAttested { .. }
            | CliError::NotStored(_)
            | CliError::NoFile { .. } => 6,
            CliError::Differs => 7,
            CliError::Partial { .. } => 8,
            CliError::Option(_) | CliError::Client(ClientError::Usage(_) | ClientError::NoServer) => 2,
            CliError::Terminal(error) => error.exit_code(),
            _ => 1,
        }
    }
}

fn file_hint(source: &std::io::Error) -> String {
    match source.kind() {
        std::io::ErrorKind::PermissionDenied => "let the user that runs bowline read and write it".into(),
        std::io::ErrorKind::NotFound => "check the path; relative ones begin at the current directory".into(),
        _ => "check the file, and the disk that it is on".into(),
    }
}

/// The command that explains why capabilities are missing. Only what needs no quotes in a shell is a part of it.
fn denial_hint(error: &ClientError) -> Option<String> {
    let ClientError::Refused { code: 7, facts, .. } = error else { return None };
    let capabilities = facts.get("capability")?.replace(", ", ",");
    let scope = facts.get("scope")?;
    let is_plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ['.', ',', '/', '_'].contains(&c))
    };
    if !is_plain(&capabilities) || !is_plain(scope) {
        return None;
    }
    Some(format!(
        "`bowline access explain --scope {scope} --capabilities {capabilities}` shows why, and who can grant it"
    ))
}

/// What to do about an error of a call, by its cause.
fn client_hint(error: &ClientError) -> Option<&'static str> {
    Some(match error {
        // The message of these names the command.
        ClientError::NotSignedIn(_) | ClientError::NoServer => return None,
        ClientError::UnusableToken(_) | ClientError::Refused { code: 16, .. } => "sign in with: bowline auth login",
        ClientError::Refused { code: 3, .. } => {
            "mend the field that is named; --help of the command lists what it takes"
        }
        ClientError::NotFound { kind: LookupKind::Role, .. } => {
            "`bowline iam roles list` shows the roles that you may see"
        }
        ClientError::NotFound { kind: LookupKind::Identity, .. } => {
            "`bowline iam identities list` shows the identities that you may see"
        }
        ClientError::Refused { code: 5, .. } | ClientError::NotFound { .. } => {
            "paths look like organization/group/name; `bowline iam groups list` shows the groups that you may see"
        }
        ClientError::Refused { code: 6, .. } => "choose another name, or change what is there",
        ClientError::Refused { code: 7, .. } => {
            "`bowline auth status` shows your roles; an owner can grant one that has the capability"
        }
        ClientError::Refused { code: 8, .. } => "wait a moment and try again, or ask the operator for a higher limit",
        ClientError::Refused { code: 9, .. } => "do first what the message names",
        ClientError::Refused { code: 12, .. } => {
            "this server does not offer it; `bowline contract status` lists what it does"
        }
        ClientError::Refused { .. } => "try again; the server's log has the details",
        ClientError::Transport(_) => "see that the server runs, and that `bowline context list` has its address",
        ClientError::NoHttp2 => "call the method over REST, or let the proxy pass HTTP/2",
        ClientError::NotTheApi(_) => {
            "see that the address is a Bowline server's, and that no proxy responds instead of it"
        }
        ClientError::Usage(_) => "--help of the command describes what it takes",
        ClientError::File { .. } => "check the file, and the disk that it is on",
        ClientError::SignIn(_) => "begin again with: bowline auth login",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(code: i32, facts: &[(&str, &str)]) -> ClientError {
        let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ClientError::Refused { code, message: "no".into(), facts }
    }

    #[test]
    fn a_denial_names_the_command_that_explains_it() {
        let hint = |facts: &[(&str, &str)]| CliError::from(denied(7, facts)).hint().unwrap();
        assert_eq!(
            hint(&[("capability", "repo.create, groups.list"), ("scope", "ab/cd")]),
            "`bowline access explain --scope ab/cd --capabilities repo.create,groups.list` shows why, and who can grant it"
        );
        for other in [&[("capability", "a.b"), ("scope", "")][..], &[("capability", "$(x)"), ("scope", "ab")], &[]] {
            assert!(!hint(other).contains("explain"), "{other:?}");
        }
    }

    #[test]
    fn each_cause_has_its_exit_code_and_a_hint() {
        let refused = |code| CliError::from(denied(code, &[]));
        let causes = [
            (CliError::from(ClientError::Usage("no".into())), 2),
            (CliError::from(TerminalError::Unconfirmed("no".into())), 2),
            (CliError::from(ClientError::UnusableToken("no".into())), 3),
            (refused(16), 3),
            (refused(7), 4),
            (CliError::from(ClientError::Transport("no".into())), 5),
            (CliError::from(ClientError::NotTheApi(502)), 5),
            (CliError::from(ClientError::not_found(LookupKind::Other, "no")), 6),
            (refused(5), 6),
            (CliError::NotAttested { message: "no".into(), hint: "publish" }, 6),
            (refused(6), 1),
            (refused(13), 1),
        ];
        for (error, code) in causes {
            assert_eq!(error.exit_code(), code, "{error:?}");
            assert!(error.hint().is_some(), "{error:?}");
        }
        for error in [ClientError::NotSignedIn("sign in with: bowline auth login".into()), ClientError::NoServer] {
            let error = CliError::from(error);
            assert!([2, 3].contains(&error.exit_code()) && error.hint().is_none(), "{error:?}");
        }
    }

    #[test]
    fn hints_depend_on_what_was_looked_up_and_not_on_the_message() {
        let hint = |kind| CliError::from(ClientError::not_found(kind, "there is no role \"x\"")).hint().unwrap();
        assert!(hint(LookupKind::Role).contains("iam roles list"));
        assert!(hint(LookupKind::Identity).contains("iam identities list"));
        for kind in [LookupKind::Group, LookupKind::Repository, LookupKind::Other] {
            assert!(hint(kind).contains("iam groups list"), "{kind:?}");
        }
    }
}
