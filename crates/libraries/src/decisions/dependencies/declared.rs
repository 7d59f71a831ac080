//! What the stored manifest of a version declares to require when it runs.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::requirement::{self, NOT_UNDERSTOOD, RequiredVersions, VersionRequirement, shortened};
use crate::ecosystems::{Language, PUBLIC_CARGO};

const NOT_A_NAME: &str = "its name is not a name of a package";
const OF_ANOTHER: &str = "the requirement is of another registry";

/// The requirements of a manifest, each once; absent if it is not read as one.
pub(super) fn requirements(language: Language, manifest: &str) -> Option<Vec<VersionRequirement>> {
    let manifest: Map<String, Value> = serde_json::from_str(manifest).ok()?;
    let mut requirements = match language {
        Language::JavaScript => of_npm(&manifest),
        Language::Cargo => of_cargo(&manifest),
        Language::Java | Language::Python | Language::Go | Language::Generic => return None,
    };
    for requirement in &mut requirements {
        requirement.name = language.normalized(&requirement.name);
        requirement.text = shortened(&requirement.text);
        if language.validate_name(&requirement.name).is_err() {
            requirement.versions = RequiredVersions::Unclear(NOT_A_NAME);
        }
    }
    Some(requirements)
}

/// Dependencies of npm's, without those that are in the archive of the version itself. Of those of one name, optional ones count
/// before others, and peers last.
fn of_npm(manifest: &Map<String, Value>) -> Vec<VersionRequirement> {
    let member = |name: &str| manifest.get(name).and_then(Value::as_object).into_iter().flatten();
    let peers = manifest.get("peerDependenciesMeta");
    let is_optional_peer = |name: &str| peers.is_some_and(|peers| peers[name]["optional"] == true);
    let mut by_name: BTreeMap<&str, (&Value, bool)> = BTreeMap::new();
    for (name, text) in member("peerDependencies").filter(|(name, _)| !is_optional_peer(name)) {
        by_name.insert(name, (text, false));
    }
    for (list, is_optional) in [("dependencies", false), ("optionalDependencies", true)] {
        by_name.extend(member(list).map(|(name, text)| (name.as_str(), (text, is_optional))));
    }
    for list in ["bundleDependencies", "bundledDependencies"] {
        match manifest.get(list) {
            Some(Value::Bool(true)) => {
                by_name.retain(|name, _| !member("dependencies").any(|(other, _)| other == name));
            }
            Some(Value::Array(names)) => by_name.retain(|name, _| !names.iter().any(|other| other == name)),
            _ => {}
        }
    }
    let of = |(declared, (text, is_optional)): (&str, (&Value, bool))| {
        let Some(text) = text.as_str() else {
            let versions = RequiredVersions::Unclear(NOT_UNDERSTOOD);
            return VersionRequirement { name: declared.to_owned(), text: text.to_string(), is_optional, versions };
        };
        let (name, versions) = requirement::npm(declared, text);
        VersionRequirement { name: name.to_owned(), text: text.to_owned(), is_optional, versions }
    };
    by_name.into_iter().map(of).collect()
}

/// Dependencies of a line of cargo's index, without those that only development needs.
fn of_cargo(line: &Map<String, Value>) -> Vec<VersionRequirement> {
    let mut requirements: Vec<VersionRequirement> = Vec::new();
    for dependency in line.get("deps").and_then(Value::as_array).into_iter().flatten() {
        let text = |member: &str| dependency.get(member).and_then(Value::as_str);
        if text("kind") == Some("dev") {
            continue;
        }
        let name = text("package").or(text("name")).unwrap_or_default().to_owned();
        let written = text("req").unwrap_or_default().to_owned();
        let is_optional = dependency.get("optional") == Some(&Value::Bool(true));
        // Of several systems, a crate may be required more than once.
        if let Some(same) = requirements.iter_mut().find(|other| other.name == name && other.text == written) {
            same.is_optional &= is_optional;
            continue;
        }
        // Those of the public registry come through the package hosts, which stand in its place.
        let is_of_other = text("registry").is_some_and(|registry| !registry.contains(PUBLIC_CARGO));
        let versions = if is_of_other { RequiredVersions::Unclear(OF_ANOTHER) } else { requirement::cargo(&written) };
        requirements.push(VersionRequirement { name, text: written, is_optional, versions });
    }
    requirements
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(language: Language, manifest: &Value) -> Vec<(String, String, bool, bool)> {
        let read = requirements(language, &manifest.to_string()).expect("a manifest");
        let of = |one: VersionRequirement| {
            (one.name, one.text, one.is_optional, !matches!(one.versions, RequiredVersions::Unclear(_)))
        };
        read.into_iter().map(of).collect()
    }

    fn wanted(list: &[(&str, &str, bool, bool)]) -> Vec<(String, String, bool, bool)> {
        list.iter()
            .map(|(name, text, optional, is_clear)| ((*name).into(), (*text).into(), *optional, *is_clear))
            .collect()
    }

    #[test]
    fn npm_declares_dependencies_and_peers() {
        let manifest = json!({
            "dependencies": { "a": "^1", "b": "^1", "both": "^1", "in": "1", "real": "npm:@x/y@2", "git": "acme/git", "odd": 7 },
            "optionalDependencies": { "b": "^1" },
            "peerDependencies": { "peer": ">=1", "maybe": ">=1", "both": ">=1" },
            "peerDependenciesMeta": { "maybe": { "optional": true } },
            "devDependencies": { "dev": "1" },
            "bundleDependencies": ["in"],
        });
        let list = [
            ("a", "^1", false, true),
            ("b", "^1", true, true),
            ("both", "^1", false, true),
            ("git", "acme/git", false, false),
            ("odd", "7", false, false),
            ("peer", ">=1", false, true),
            ("@x/y", "npm:@x/y@2", false, true),
        ];
        assert_eq!(shown(Language::JavaScript, &manifest), wanted(&list));
        let bundled =
            json!({ "dependencies": { "a": "1" }, "peerDependencies": { "p": "1" }, "bundledDependencies": true });
        assert_eq!(shown(Language::JavaScript, &bundled), wanted(&[("p", "1", false, true)]));
    }

    #[test]
    fn cargo_declares_what_is_not_for_development() {
        let of = |name: &str, more: Value| {
            let mut dependency =
                json!({ "name": name, "req": "^1", "optional": false, "kind": "normal", "registry": null });
            for (member, value) in more.as_object().expect("members") {
                dependency[member] = value.clone();
            }
            dependency
        };
        let line = json!({ "deps": [
            of("A", json!({ "optional": true })),
            of("dev", json!({ "kind": "dev" })),
            of("build", json!({ "kind": "build" })),
            of("alias", json!({ "package": "real" })),
            of("A", json!({ "optional": false, "target": "cfg(unix)" })),
            of("public", json!({ "registry": format!("https://a.example/{PUBLIC_CARGO}-index") })),
            of("other", json!({ "registry": "sparse+https://a.example/" })),
            of("../a", json!({})),
        ] });
        let list = [
            ("a", "^1", false, true),
            ("build", "^1", false, true),
            ("real", "^1", false, true),
            ("public", "^1", false, true),
            ("other", "^1", false, false),
            ("../a", "^1", false, false),
        ];
        assert_eq!(shown(Language::Cargo, &line), wanted(&list));
    }

    #[test]
    fn what_is_no_manifest_has_no_requirements() {
        assert!(requirements(Language::JavaScript, "[]").is_none() && requirements(Language::Cargo, "{").is_none());
        assert_eq!(shown(Language::JavaScript, &json!({ "dependencies": [], "peerDependenciesMeta": 3 })), []);
        assert_eq!(shown(Language::Cargo, &json!({ "deps": {} })), []);
    }
}
