//! Lines of the index, one for each version: as they are published, as upstreams send them, and as they are served.

use std::collections::BTreeMap;
use std::io::Write as _;

use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Error, Micros, Result};
use bowline_libraries::Language;
use bowline_libraries::hosting::{CargoIndex, CargoVersion, RenderedPage, crate_file};
use semver::VersionReq;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::target::is_version;
use crate::pages::PageWriter;

/// Dependencies and features of a version; characters of a name, of a requirement and of an address.
const DEPENDENCIES: usize = 5_000;
const FEATURES: usize = 5_000;
const TEXT: usize = 512;

/// What cargo sends of a new version. What it says of people and documents beside that is not kept.
#[derive(Debug, Deserialize)]
pub(super) struct NewVersion {
    pub(super) name: String,
    #[serde(rename = "vers")]
    pub(super) version: String,
    #[serde(default)]
    deps: Vec<Dependency>,
    #[serde(default)]
    features: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    version_req: String,
    #[serde(default)]
    features: Vec<String>,
    #[serde(default)]
    optional: bool,
    #[serde(default = "yes")]
    default_features: bool,
    target: Option<String>,
    #[serde(default)]
    kind: Kind,
    /// Address of the index that it is in; absent for this one.
    registry: Option<String>,
    explicit_name_in_toml: Option<String>,
    artifact: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Normal,
    Dev,
    Build,
}

impl Kind {
    fn word(&self) -> &'static str {
        match self {
            Kind::Normal => "normal",
            Kind::Dev => "dev",
            Kind::Build => "build",
        }
    }
}

fn yes() -> bool {
    true
}

impl NewVersion {
    /// Refuses what no index can have.
    ///
    /// # Errors
    /// What is wrong, as a part of a sentence.
    pub(super) fn validate(&self) -> std::result::Result<(), String> {
        if self.deps.len() > DEPENDENCIES || self.features.len() > FEATURES {
            return Err(format!("has more than {DEPENDENCIES} dependencies or {FEATURES} features"));
        }
        self.deps.iter().try_for_each(Dependency::validate)?;
        let mut names = self.features.iter().flat_map(|(name, needs)| needs.iter().chain([name]));
        match names.find(|name| !is_line(name)) {
            Some(name) => Err(format!("has the feature {name:?}, which is no name")),
            None => Ok(()),
        }
    }

    /// Its line of the index, without what is beside it: what the archive says of itself counts.
    pub(super) fn line(&self, (links, rust_version): (&str, &str)) -> Value {
        // Old versions of cargo do not know these, and pass over the version.
        let is_new = |need: &String| need.starts_with("dep:") || need.contains("?/");
        let (new, old): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.features.iter().partition(|(_, needs)| needs.iter().any(is_new));
        let mut line = json!({
            "name": self.name,
            "vers": self.version,
            "deps": self.deps.iter().map(Dependency::line).collect::<Vec<_>>(),
            "features": old,
        });
        if !new.is_empty() {
            line["features2"] = json!(new);
            line["v"] = 2.into();
        }
        for (member, text) in [("links", links), ("rust_version", rust_version)] {
            if !text.is_empty() {
                line[member] = text.into();
            }
        }
        line
    }
}

impl Dependency {
    fn validate(&self) -> std::result::Result<(), String> {
        let name = &self.name;
        let known = self.explicit_name_in_toml.as_ref().unwrap_or(name);
        let texts = [self.target.as_ref(), self.registry.as_ref()].into_iter().flatten().chain(&self.features);
        if Language::Cargo.validate_name(name).is_err() || !is_line(known) {
            return Err(format!("needs {name:?}, which is not the name of a crate"));
        }
        if self.version_req.len() > TEXT || VersionReq::parse(&self.version_req).is_err() {
            return Err(format!("needs {name} {:?}, which is no requirement of versions", self.version_req));
        }
        if self.artifact.is_some() {
            return Err(format!("needs the artifacts of {name}, which stable versions of cargo do not know"));
        }
        match texts.into_iter().find(|text| !is_line(text)) {
            Some(text) => Err(format!("needs {name} in a way that cannot be read: {text:?}")),
            None => Ok(()),
        }
    }

    fn line(&self) -> Value {
        let mut line = json!({
            "name": self.explicit_name_in_toml.as_ref().unwrap_or(&self.name),
            "req": self.version_req,
            "features": self.features,
            "optional": self.optional,
            "default_features": self.default_features,
            "target": self.target,
            "kind": self.kind.word(),
        });
        if let Some(registry) = &self.registry {
            line["registry"] = registry.as_str().into();
        }
        if self.explicit_name_in_toml.is_some() {
            line["package"] = self.name.as_str().into();
        }
        line
    }
}

/// Whether a text is one line of some length.
fn is_line(text: &str) -> bool {
    !text.is_empty() && text.len() <= TEXT && !text.contains(char::is_control)
}

/// A version as an upstream has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UpstreamLine {
    /// The name as it is spelled.
    pub(super) name: String,
    pub(super) version: String,
    /// Name of its archive, as rows have it.
    pub(super) file: String,
    pub(super) sha256: String,
    pub(super) yanked: bool,
    /// When it became public; 0 if the upstream does not say.
    pub(super) published_micros: Micros,
    /// The line without what is beside it here, as JSON.
    pub(super) manifest: String,
}

/// Members of a line that cargo reads, apart from those that are beside it here.
const MEMBERS: [&str; 8] = ["name", "vers", "deps", "features", "features2", "links", "v", "rust_version"];

/// Reads a line of the index of a crate, which is named in lower case; absent if the version cannot be used.
pub(super) fn read(line: &str, package: &str) -> Option<UpstreamLine> {
    let mut line: Map<String, Value> = serde_json::from_str(line).ok()?;
    let text = |member: &str| line.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, version, sha256) = (text("name"), text("vers"), text("cksum").to_ascii_lowercase());
    let is_digest = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    if Language::Cargo.validate_name(&name).is_err()
        || Language::Cargo.normalized(&name) != package
        || !is_version(&version)
        || !is_digest
    {
        return None;
    }
    let yanked = line.get("yanked") == Some(&Value::Bool(true));
    let published_micros = rfc3339::parse_micros(&text("pubtime")).filter(|micros| *micros > 0).unwrap_or_default();
    line.retain(|member, _| MEMBERS.contains(&member.as_str()));
    let file = crate_file(&name, &version);
    Some(UpstreamLine {
        name,
        version,
        file,
        sha256,
        yanked,
        published_micros,
        manifest: Value::Object(line).to_string(),
    })
}

/// The index of a crate as it is served.
pub(super) fn rendered(index: &CargoIndex) -> Result<RenderedPage> {
    let mut writer = PageWriter::new();
    for version in &index.versions {
        writer.write_all((served(version)? + "\n").as_bytes()).map_err(Error::internal)?;
    }
    writer.page()
}

fn served(version: &CargoVersion) -> Result<String> {
    let mut line: Map<String, Value> = serde_json::from_str(&version.manifest).map_err(Error::internal)?;
    line.insert("cksum".into(), version.sha256.as_str().into());
    line.insert("yanked".into(), version.yanked.into());
    if let Some(at) = version.published_at {
        // Cargo reads times of whole seconds; rounded down, none would be too old for those that choose by them.
        let second = at.div_euclid(1_000_000) * 1_000_000;
        line.insert("pubtime".into(), rfc3339::text(second, Digits::Fewest).into());
    }
    Ok(Value::Object(line).to_string())
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
