use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::error::ClientError;
use crate::files;

/// The configuration file that docker and similar clients share. Only `credHelpers` is changed here.
#[derive(Clone, Debug)]
pub struct DockerConfig {
    path: PathBuf,
    entries: Map<String, Value>,
}

impl DockerConfig {
    /// Reads the file; empty if there is none. A link is followed, so that it stays one.
    ///
    /// # Errors
    /// The file cannot be read, or is no JSON object.
    pub fn read(path: &Path) -> Result<DockerConfig, ClientError> {
        let path = match path.canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == ErrorKind::NotFound => path.into(),
            Err(source) => return Err(ClientError::File { path: path.into(), source }),
        };
        let entries = match files::read(&path)? {
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                ClientError::Usage(format!("{}: {error}; it is left as it is, correct it first", path.display()))
            })?,
            None => Map::new(),
        };
        Ok(DockerConfig { path, entries })
    }

    /// Names the helper that gives out credentials for a registry: the part of its command's name after
    /// `docker-credential-`.
    ///
    /// # Errors
    /// `credHelpers` holds something other than an object.
    pub fn use_helper(&mut self, registry: &str, helper: &str) -> Result<(), ClientError> {
        let helpers = self.entries.entry("credHelpers").or_insert_with(|| json!({}));
        let helpers = helpers.as_object_mut().ok_or_else(|| {
            ClientError::Usage(format!("{}: credHelpers is no object; correct it first", self.path.display()))
        })?;
        helpers.insert(registry.into(), helper.into());
        Ok(())
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self) -> Result<(), ClientError> {
        let text = format!("{:#}\n", Value::Object(self.entries.clone()));
        files::write_private(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_else_stays() {
        let home = tempfile::tempdir().unwrap();
        let (file, link) = (home.path().join("real.json"), home.path().join("config.json"));
        std::fs::write(&file, r#"{"auths":{"a":{"auth":"eA=="}},"credHelpers":{"b":"other"}}"#).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut config = DockerConfig::read(&link).unwrap();
        config.use_helper("registry.example", "bowline").unwrap();
        config.write().unwrap();
        assert!(link.is_symlink());
        let read: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let helpers = json!({"b": "other", "registry.example": "bowline"});
        assert_eq!(read, json!({"auths": {"a": {"auth": "eA=="}}, "credHelpers": helpers}));
    }

    #[test]
    fn what_is_no_configuration_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("config.json");
        for (text, complaint) in [("{\"auths\"", "config.json"), ("[]", "config.json"), ("", "config.json")] {
            std::fs::write(&path, text).unwrap();
            assert!(DockerConfig::read(&path).unwrap_err().to_string().contains(complaint));
        }
        std::fs::write(&path, r#"{"credHelpers":5}"#).unwrap();
        let refused = DockerConfig::read(&path).unwrap().use_helper("a", "b").unwrap_err();
        assert!(refused.to_string().contains("credHelpers is no object"));
    }
}
