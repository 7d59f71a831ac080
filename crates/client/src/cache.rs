use std::path::{Path, PathBuf};

use crate::error::ClientError;
use crate::{files, jwt};

/// The cached tokens of one audience.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    pub token: Option<String>,
    pub refresh_token: Option<String>,
}

impl Tokens {
    /// The access token if it lasts for another minute.
    pub fn fresh(&self, now: i64) -> Option<String> {
        let lasts = |token: &&String| jwt::claims(token).is_some_and(|claims| claims.exp > now + LEEWAY);
        self.token.as_ref().filter(lasts).cloned()
    }
}

/// Tokens on disk, where the public Go SDK looks for them: one directory per audience under
/// `<cache>/chainguard`, with an `oidc-token` and a `refresh-token`.
#[derive(Clone, Debug)]
pub struct TokenCache {
    root: PathBuf,
}

/// Seconds that a token must still last to be used.
const LEEWAY: i64 = 60;

impl TokenCache {
    /// A cache below the user's cache directory.
    pub fn new(user_cache: &Path) -> TokenCache {
        TokenCache { root: user_cache.join("chainguard") }
    }

    fn directory(&self, audience: &str) -> PathBuf {
        self.root.join(audience.replace('/', "-"))
    }

    /// The cached tokens of an audience, fresh or not.
    ///
    /// # Errors
    /// A file exists and cannot be read.
    pub fn read(&self, audience: &str) -> Result<Tokens, ClientError> {
        let directory = self.directory(audience);
        let read = |name: &str| files::read(&directory.join(name)).map(|text| text.map(|text| text.trim().to_owned()));
        Ok(Tokens { token: read("oidc-token")?, refresh_token: read("refresh-token")? })
    }

    /// Keeps tokens for an audience. A refresh token that is absent takes a former one away.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, audience: &str, tokens: &Tokens) -> Result<(), ClientError> {
        let directory = self.directory(audience);
        for (name, value) in [("oidc-token", &tokens.token), ("refresh-token", &tokens.refresh_token)] {
            match value {
                Some(text) => files::write_private(&directory.join(name), text)?,
                None => {
                    files::remove(&directory.join(name))?;
                }
            }
        }
        Ok(())
    }

    /// Removes the cached tokens of an audience; returns whether there were any.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(&self, audience: &str) -> Result<bool, ClientError> {
        let directory = self.directory(audience);
        let token = files::remove(&directory.join("oidc-token"))?;
        let refresh_token = files::remove(&directory.join("refresh-token"))?;
        // Directories of other identities may be inside; then it stays.
        let _ = std::fs::remove_dir(&directory);
        Ok(token || refresh_token)
    }

    /// Directory names of the audiences with cached tokens.
    ///
    /// # Errors
    /// The directory exists and cannot be read.
    pub fn cached(&self) -> Result<Vec<String>, ClientError> {
        let failed = |source| ClientError::File { path: self.root.clone(), source };
        let entries = match std::fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed(source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            if entry.path().join("oidc-token").exists() || entry.path().join("refresh-token").exists() {
                names.extend(entry.file_name().into_string().ok());
            }
        }
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_where_the_sdk_looks_and_private() {
        let home = tempfile::tempdir().unwrap();
        let cache = TokenCache::new(home.path());
        let tokens = Tokens { token: Some("a.b.c".into()), refresh_token: Some("r".into()) };
        cache.write("http://127.0.0.1:8080", &tokens).unwrap();
        let directory = home.path().join("chainguard/http:--127.0.0.1:8080");
        assert_eq!(std::fs::read_to_string(directory.join("oidc-token")).unwrap(), "a.b.c");
        assert_eq!(cache.read("http://127.0.0.1:8080").unwrap(), tokens);
        assert_eq!(cache.cached().unwrap(), ["http:--127.0.0.1:8080"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&directory), mode(&directory.join("refresh-token"))), (0o700, 0o600));
        }
        cache.write("http://127.0.0.1:8080", &Tokens { refresh_token: None, ..tokens }).unwrap();
        assert_eq!(cache.read("http://127.0.0.1:8080").unwrap().refresh_token, None);
        assert!(cache.remove("http://127.0.0.1:8080").unwrap());
        assert!(!cache.remove("http://127.0.0.1:8080").unwrap());
        assert_eq!(cache.cached().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_token_about_to_end_is_not_fresh() {
        use base64::Engine as _;
        let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(br#"{"exp":1000}"#);
        let token = format!("e30.{payload}.x");
        let tokens = Tokens { token: Some(token.clone()), refresh_token: None };
        assert_eq!(tokens.fresh(939), Some(token));
        assert_eq!(tokens.fresh(940), None);
        assert_eq!(Tokens::default().fresh(0), None);
    }
}
