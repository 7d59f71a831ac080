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
    /// Identity to assume with the ambient token by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Registry host for which the credential helper has credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
}

/// The known servers by name, and the current one: the content of a TOML file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Contexts {
    /// The context to use if no name is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub contexts: BTreeMap<String, Context>,
}

impl Contexts {
    /// Reads the file; a missing file has no contexts.
    ///
    /// # Errors
    /// The file cannot be read or parsed.
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
    /// No context has that name.
    pub fn find(&self, name: Option<&str>) -> Result<Option<&Context>, ClientError> {
        let Some(name) = name.or(self.current.as_deref()) else {
            return Ok(None);
        };
        let known = || self.contexts.keys().cloned().collect::<Vec<_>>().join(", ");
        let missing = || ClientError::Usage(format!("there is no context {name:?}; known: {}", known()));
        self.contexts.get(name).map(Some).ok_or_else(missing)
    }

    /// Name of the context that satisfies `answers`: the current one if it does, else the only one that does.
    ///
    /// # Errors
    /// Several contexts satisfy it, and the current one does not.
    pub fn only(&self, answers: impl Fn(&Context) -> bool) -> Result<Option<&str>, ClientError> {
        let all = || self.contexts.iter().filter(|(_, context)| answers(context)).map(|(name, _)| name.as_str());
        if let Some(current) = all().find(|name| self.current.as_deref() == Some(*name)) {
            return Ok(Some(current));
        }
        let names: Vec<&str> = all().collect();
        match names.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(only)),
            several => Err(ClientError::Usage(format!(
                "which of the contexts {} is meant? Choose with: bowline context use NAME",
                several.join(", ")
            ))),
        }
    }

    /// Default path of the file in the user's configuration directory.
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
        let context = Context { api: "https://api.example".into(), issuer: None, identity: None, registry: None };
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

    #[test]
    fn the_current_one_answers_first() {
        let context = |api: &str| Context { api: api.into(), issuer: None, identity: None, registry: None };
        let all = [("one", "a"), ("two", "b"), ("three", "b")];
        let contexts = all.iter().map(|(name, api)| ((*name).into(), context(api))).collect();
        let mut known = Contexts { current: Some("one".into()), contexts };
        assert_eq!(known.only(|context| context.api == "a").unwrap(), Some("one"));
        assert_eq!(known.only(|context| context.api == "c").unwrap(), None);
        let refused = known.only(|context| context.api == "b").unwrap_err();
        assert!(refused.to_string().contains("three, two"), "{refused}");
        known.current = Some("two".into());
        assert_eq!(known.only(|context| context.api == "b").unwrap(), Some("two"));
    }
}
