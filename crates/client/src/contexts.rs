use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::ClientError;
use crate::files;

/// One server that the command line knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Context {
    /// Address of the API.
    pub api: String,
    /// Address of the token exchange; the API's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Identity to assume with the surroundings' own token, where nothing else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// The servers that the command line knows, by name, and which one is meant: a TOML file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Contexts {
    /// The context that is meant when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// All of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, Context>,
}

impl Contexts {
    /// The file's contexts; none if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Contexts, ClientError> {
        let Some(text) = files::read(path)? else {
            return Ok(Contexts::default());
        };
        toml::from_str(&text).map_err(|error| ClientError::Usage(format!("{}: {}", path.display(), error.message())))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ClientError> {
        let text = toml::to_string(self).map_err(|error| ClientError::Usage(error.to_string()))?;
        files::write_private(path, &text)
    }

    /// The named context, or the current one; absent if none is current.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn find(&self, name: Option<&str>) -> Result<Option<&Context>, ClientError> {
        let Some(name) = name.or(self.current.as_deref()) else {
            return Ok(None);
        };
        let known = || self.contexts.keys().cloned().collect::<Vec<_>>().join(", ");
        let missing = || ClientError::Usage(format!("there is no context {name:?}; known: {}", known()));
        self.contexts.get(name).map(Some).ok_or_else(missing)
    }

    /// The usual place of the file in the user's configuration directory.
    pub fn usual_path(user_configuration: &Path) -> PathBuf {
        user_configuration.join("bowline").join("contexts.toml")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survive_the_file() {
        let home = tempfile::tempdir().unwrap();
        let path = Contexts::usual_path(home.path());
        assert_eq!(Contexts::read(&path).unwrap(), Contexts::default());
        let context = Context { api: "https://api.example".into(), issuer: None, identity: None };
        let contexts =
            Contexts { current: Some("here".into()), contexts: BTreeMap::from([("here".into(), context.clone())]) };
        contexts.write(&path).unwrap();
        let read = Contexts::read(&path).unwrap();
        assert_eq!(read, contexts);
        assert_eq!(read.find(None).unwrap(), Some(&context));
        assert!(read.find(Some("there")).unwrap_err().to_string().contains("known: here"));
        std::fs::write(&path, "current = 5").unwrap();
        assert!(Contexts::read(&path).is_err());
    }
}
