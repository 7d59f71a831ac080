//! Settings of the user, and variables, that say where installers take packages from.

use std::path::{Path, PathBuf};

use super::project::{self, File};
use super::sources::{Installer, Sources};
use super::{cargo, go, python};
use crate::error::CliError;
use crate::session::variable;

/// Variables that name the index of an installer.
const INDEXES: [(&str, Installer); 6] = [
    ("PIP_INDEX_URL", Installer::Pip),
    ("UV_DEFAULT_INDEX", Installer::Uv),
    ("UV_INDEX_URL", Installer::Uv),
    ("npm_config_registry", Installer::Npm),
    ("NPM_CONFIG_REGISTRY", Installer::Npm),
    ("YARN_NPM_REGISTRY_SERVER", Installer::Yarn),
];
/// Variables that name further ones, separated by spaces; uv's may have a name and an equals sign before them.
const FURTHER: [(&str, Installer); 3] =
    [("PIP_EXTRA_INDEX_URL", Installer::Pip), ("UV_EXTRA_INDEX_URL", Installer::Uv), ("UV_INDEX", Installer::Uv)];
/// Files of the user, below the home directory.
const FILES: [&str; 6] =
    [".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml", ".npmrc", ".yarnrc.yml", ".m2/settings.xml"];
/// Where Gradle has scripts that run before each build.
const SCRIPTS: &str = ".gradle/init.d";
const PDM: &str = ".config/pdm/config.toml";
/// Settings of the go command, and the variables that come before them.
const GO: &str = ".config/go/env";
const GO_VARIABLES: [&str; 3] = ["GOPROXY", "GOPRIVATE", "GONOPROXY"];

/// Files of cargo's settings, in its directory.
const CARGO: [&str; 2] = ["config.toml", "config"];

/// What counts beside a project.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Variables, each as a file of that name.
    pub(super) environment: Vec<File>,
    /// Files of the user.
    pub(super) home: Vec<File>,
}

impl Settings {
    /// The settings of this process and its user.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn read() -> Result<Settings, CliError> {
        let home = variable("HOME").map(PathBuf::from);
        let mut files = home.as_deref().map_or_else(|| Ok(Vec::new()), of_home)?;
        match (variable("CARGO_HOME"), home) {
            (Some(directory), _) => files.extend(of_cargo(Path::new(&directory), "$CARGO_HOME")?),
            (None, Some(home)) => files.extend(of_cargo(&home.join(".cargo"), "~/.cargo")?),
            (None, None) => {}
        }
        Ok(Settings { environment: of_environment(&variable), home: files })
    }
}

/// What variables say, each as a file of that name.
pub(super) fn of_environment(variable: &dyn Fn(&str) -> Option<String>) -> Vec<File> {
    let mut files = Vec::new();
    for (name, installer) in INDEXES {
        if let Some(value) = variable(name) {
            let mut found = Sources::of(installer);
            found.index(installer, &value);
            files.push(File::new(&format!("${name}"), String::new(), Ok(found)));
        }
    }
    for (name, installer) in FURTHER {
        if let Some(value) = variable(name) {
            let mut found = Sources::of(installer);
            for word in value.split_whitespace() {
                found.further_index(
                    installer,
                    word.split_once("=http").map_or(word, |(name, _)| &word[name.len() + 1..]),
                );
            }
            files.push(File::new(&format!("${name}"), String::new(), Ok(found)));
        }
    }
    for name in GO_VARIABLES {
        if let Some(value) = variable(name) {
            files.push(File::new(&format!("${name}"), String::new(), Ok(go::variable(name, &value))));
        }
    }
    files
}

pub(super) fn of_home(home: &Path) -> Result<Vec<File>, CliError> {
    let mut files = Vec::new();
    for name in FILES {
        let path = home.join(name);
        if path.is_file() {
            files.extend(project::file(&path, &format!("~/{name}"))?);
        }
    }
    files.extend(own(&home.join(PDM), &format!("~/{PDM}"), python::pdm_settings)?);
    files.extend(own(&home.join(GO), &format!("~/{GO}"), |text| Ok(go::settings(text)))?);
    let scripts = home.join(SCRIPTS);
    if scripts.is_dir() {
        let failed = |source| CliError::File { path: scripts.clone(), source };
        for entry in std::fs::read_dir(&scripts).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_file() && (name.ends_with(".gradle") || name.ends_with(".gradle.kts")) {
                files.extend(project::file(&path, &format!("~/{SCRIPTS}/{name}"))?);
            }
        }
    }
    Ok(files)
}

/// The settings of cargo in the directory that it has of its own.
///
/// # Errors
/// A file cannot be read.
pub(super) fn of_cargo(directory: &Path, shown: &str) -> Result<Vec<File>, CliError> {
    let mut files = Vec::new();
    for name in CARGO {
        files.extend(own(&directory.join(name), &format!("{shown}/{name}"), cargo::settings)?);
    }
    Ok(files)
}

/// A file whose name alone does not say what it has; absent if there is no such file.
fn own(path: &Path, shown: &str, read: impl Fn(&str) -> Result<Sources, String>) -> Result<Option<File>, CliError> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&crate::input::read(path, 1 << 20)?).into_owned();
    let found = read(&text);
    Ok(Some(File::new(shown, text, found)))
}
