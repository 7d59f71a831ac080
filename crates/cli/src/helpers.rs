//! This binary under the names by which other programs call it: links to it, and the server that it calls for them.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bowline_client::{ClientError, Contexts};
use bowline_terminal::say;

use crate::error::CliError;
use crate::session::{Session, variable};

/// Requests a token, so that a wrong audience fails at the set-up, and not with the first client. `users` are those whom
/// the sign-in is for, and `remedy` is what to do about a wrong audience.
pub(crate) async fn try_token(session: &Session, audience: &str, users: &str, remedy: &str) -> Result<(), ClientError> {
    match session.token(audience).await {
        Ok(_) => Ok(()),
        Err(ClientError::NotSignedIn(_) | ClientError::UnusableToken(_) | ClientError::Transport(_)) => {
            say(&format!(
                "whether {} gives tokens for {audience} was not tried: sign in with `bowline auth login`, whose sign-in \
                 {users} use\n",
                session.issuer.url()
            ));
            Ok(())
        }
        Err(ClientError::Refused { message, .. }) => Err(ClientError::Usage(format!(
            "{} gives no token for {audience}: {message}; {remedy}",
            session.issuer.url()
        ))),
        Err(other) => Err(other),
    }
}

/// The context of the server, by which helpers find it.
pub(crate) fn context_name(session: &Session, context: Option<&str>) -> Result<String, ClientError> {
    let known = Contexts::read(&session.contexts)?;
    let name = match context {
        Some(name) => Some(name),
        None => known.only(|context| context.api == session.api)?,
    };
    name.map(String::from).ok_or_else(|| missing(session))
}

/// No context has the address of the server.
pub(crate) fn missing(session: &Session) -> ClientError {
    ClientError::Usage(format!("store the server first, with: bowline context set NAME --api {}", session.api))
}

/// Makes a link to this binary, in a directory that an option names, else beside it. Other programs are not replaced.
pub(crate) fn link(name: &str, directory: Option<PathBuf>, option: &str) -> Result<PathBuf, CliError> {
    let failed = |path: &Path, source| CliError::File { path: path.into(), source };
    let binary = std::env::current_exe().map_err(|source| failed(Path::new("bowline"), source))?;
    let beside = || binary.parent().map(Path::to_path_buf);
    let directory = directory.or_else(beside).ok_or_else(|| CliError::Defect("a binary without a directory".into()))?;
    if !directory.is_dir() {
        let message = format!("{option} {}: there is no such directory; make it first", directory.display());
        return Err(CliError::Client(ClientError::Usage(message)));
    }
    let helper = directory.join(name);
    if is_left_behind(&helper, &binary) {
        std::fs::remove_file(&helper).map_err(|source| failed(&helper, source))?;
    }
    match std::os::unix::fs::symlink(&binary, &helper) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if is_same(&helper, &binary) {
                return Ok(helper);
            }
            let message = format!("{} is another program; take it away, or name {option}", helper.display());
            Err(CliError::Client(ClientError::Usage(message)))
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(CliError::Client(ClientError::Usage(
            format!("{}: {error}; name a directory of your own with {option}", directory.display()),
        ))),
        other => other.map(|()| helper.clone()).map_err(|source| failed(&helper, source)),
    }
}

/// Whether a dangling link is from a former path of the binary.
fn is_left_behind(link: &Path, binary: &Path) -> bool {
    let is_ours = |target: &PathBuf| target.file_name() == binary.file_name();
    !link.exists() && std::fs::read_link(link).is_ok_and(|target| is_ours(&target))
}

/// Whether two paths lead to the same file or directory.
fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Whether programs of the directory are found by name.
pub(crate) fn is_searched(directory: &Path) -> bool {
    variable("PATH").is_some_and(|path| std::env::split_paths(&path).any(|one| is_same(&one, directory)))
}

/// The program that is called by a name.
pub(crate) fn first_in_path(name: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&variable("PATH")?).map(|directory| directory.join(name)).find(is_program)
}

/// Whether a path leads to this binary.
pub(crate) fn is_this_binary(path: &Path) -> bool {
    std::env::current_exe().is_ok_and(|binary| is_same(path, &binary))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn linked(directory: &Path) -> Result<PathBuf, String> {
        link("keyring", Some(directory.into()), "--directory").map_err(|error| error.to_string())
    }

    #[test]
    fn a_link_to_this_binary_is_made_once() {
        let directory = tempfile::tempdir().unwrap();
        let made = linked(directory.path()).unwrap();
        assert_eq!(made, directory.path().join("keyring"));
        assert!(is_this_binary(&made));
        assert_eq!(linked(directory.path()).unwrap(), made);
        // A former path of the binary.
        std::fs::remove_file(&made).unwrap();
        let binary = std::env::current_exe().unwrap();
        symlink(Path::new("/no/such/place").join(binary.file_name().unwrap()), &made).unwrap();
        linked(directory.path()).unwrap();
        assert!(is_this_binary(&made));
        assert!(linked(&directory.path().join("none")).unwrap_err().contains("--directory"));
    }

    #[test]
    fn other_programs_of_the_name_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keyring");
        std::fs::write(&path, "another program").unwrap();
        assert!(linked(directory.path()).unwrap_err().contains("another program"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "another program");
        // One that is missing for now, such as on a disk that is not there.
        std::fs::remove_file(&path).unwrap();
        symlink("/no/such/place/keyring", &path).unwrap();
        assert!(linked(directory.path()).unwrap_err().contains("another program"));
        assert!(path.is_symlink());
    }
}
