use std::path::PathBuf;

use bowline_client::ClientError;
use bowline_contract::bowline::registry::v1::Upstream;

use crate::input;

/// Most bytes of a file with a password; the server takes fewer characters.
const PASSWORD_FILE: u64 = 1 << 20;

/// What a person changes of an upstream.
#[derive(Debug, Default)]
pub(crate) struct UpstreamChange {
    /// Its address; empty to take it away.
    pub(crate) url: Option<String>,
    pub(crate) tags: Option<Vec<String>>,
    /// Name of the account; empty for none.
    pub(crate) username: Option<String>,
    /// File with the account's password.
    pub(crate) password_file: Option<PathBuf>,
}

impl UpstreamChange {
    /// Whether anything is to change.
    pub(crate) fn is_given(&self) -> bool {
        self.url.is_some() || self.tags.is_some() || self.username.is_some() || self.password_file.is_some()
    }

    /// The upstream with what was named changed; absent for none.
    ///
    /// # Errors
    /// There is no upstream to change, or the password's file is not readable.
    pub(crate) fn applied(self, before: Option<Upstream>) -> Result<Option<Upstream>, ClientError> {
        let Self { url, tags, username, password_file } = self;
        if url.as_deref() == Some("") {
            let is_alone = tags.is_none() && username.is_none() && password_file.is_none();
            let refusal = "--upstream \"\" takes the upstream away: leave the other options of it out";
            return if is_alone { Ok(None) } else { Err(ClientError::Usage(refusal.into())) };
        }
        let mut upstream = match (before, url) {
            (before, Some(url)) => Upstream { url, ..before.unwrap_or_default() },
            (Some(before), None) => before,
            (None, None) => {
                return Err(ClientError::Usage("there is no upstream to change: name one with --upstream".into()));
            }
        };
        if let Some(patterns) = tags {
            upstream.tag_patterns = patterns.into_iter().filter(|pattern| !pattern.is_empty()).collect();
        }
        if let Some(username) = username {
            upstream.username = username;
        }
        if let Some(path) = password_file {
            upstream.password = password(input::read(&path, PASSWORD_FILE)?, &path.display().to_string())?;
        }
        Ok(Some(upstream))
    }
}

/// A password, without the line break that editors put at its end; some are documents of many lines.
fn password(bytes: Vec<u8>, place: &str) -> Result<String, ClientError> {
    let text = String::from_utf8(bytes).map_err(|_| ClientError::Usage(format!("{place}: the password is no text")))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(ClientError::Usage(format!("{place}: must hold the password"))),
        password => Ok(password.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_stays() {
        let before = Upstream {
            url: "https://a.example".into(),
            tag_patterns: vec!["1".into()],
            username: "me".into(),
            has_password: true,
            ..Upstream::default()
        };
        let named = |change: UpstreamChange| change.applied(Some(before.clone())).unwrap();
        let tags = UpstreamChange { tags: Some(vec![String::new()]), ..UpstreamChange::default() };
        assert_eq!(named(tags), Some(Upstream { tag_patterns: vec![], ..before.clone() }));
        let other = UpstreamChange { url: Some("https://b.example".into()), ..UpstreamChange::default() };
        assert_eq!(named(other), Some(Upstream { url: "https://b.example".into(), ..before.clone() }));
        let none = UpstreamChange { url: Some(String::new()), ..UpstreamChange::default() };
        assert_eq!(named(none), None);
        let username = || UpstreamChange { username: Some("x".into()), ..UpstreamChange::default() };
        assert!(username().applied(None).is_err());
        assert!(UpstreamChange { url: Some(String::new()), ..username() }.applied(None).is_err());
    }

    #[test]
    fn passwords_out_of_files() {
        assert_eq!(password(b"hush\r\n".to_vec(), "f").unwrap(), "hush");
        assert_eq!(password(b"{\n}\n".to_vec(), "f").unwrap(), "{\n}");
        for bytes in [b"\n".to_vec(), vec![0xff]] {
            assert!(password(bytes, "f").is_err());
        }
    }
}
