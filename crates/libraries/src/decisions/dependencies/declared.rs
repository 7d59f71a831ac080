//! What the stored manifest of a version declares to require when it runs.

use std::collections::{BTreeMap, HashMap, HashSet};

use bowline_packages::CUT;
use serde_json::{Map, Value};

use super::requirement::{self, NOT_UNDERSTOOD, RequiredVersions, VersionRequirement, shortened};
use crate::ecosystems::{Language, PUBLIC_CARGO};

const NOT_A_NAME: &str = "its name is not a name of a package";
/// Characters of a name; no registry has longer ones.
const NAME: usize = 214;
const OF_ANOTHER: &str = "the requirement is of another registry";
const EXTRAS: &str = "what its extras require is not followed";

/// The requirements of a manifest, each once, and so many at most; absent if it is not read as one.
pub(super) fn requirements(language: Language, manifest: &str, most: usize) -> Option<Vec<VersionRequirement>> {
    let manifest: Map<String, Value> = serde_json::from_str(manifest).ok()?;
    let mut requirements = match language {
        Language::JavaScript => of_npm(&manifest, most),
        Language::Cargo => of_cargo(&manifest, most),
        Language::Python => of_python(&manifest, most),
        Language::Java | Language::Go | Language::Generic => return None,
    };
    for requirement in &mut requirements {
        requirement.name = language.normalized(&requirement.name);
        requirement.text = shortened(&requirement.text);
        if requirement.name.len() > NAME || language.validate_name(&requirement.name).is_err() {
            requirement.name = shortened(&requirement.name);
            requirement.versions = RequiredVersions::Unclear(NOT_A_NAME);
        }
    }
    Some(requirements)
}

/// Dependencies of npm's, without those that are in the archive of the version itself. Of those of one name, optional ones count
/// before others, and peers last.
fn of_npm(manifest: &Map<String, Value>, most: usize) -> Vec<VersionRequirement> {
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
                let bundled: HashSet<&str> = member("dependencies").map(|(name, _)| name.as_str()).collect();
                by_name.retain(|name, _| !bundled.contains(name));
            }
            Some(Value::Array(names)) => {
                let bundled: HashSet<&str> = names.iter().filter_map(Value::as_str).collect();
                by_name.retain(|name, _| !bundled.contains(name));
            }
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
    by_name.into_iter().take(most).map(of).collect()
}

/// Requirements of a wheel, without those of its own extras. One that counts in some environments alone is optional, since no one
/// knows that of the client.
fn of_python(manifest: &Map<String, Value>, most: usize) -> Vec<VersionRequirement> {
    let list = manifest.get("requires_dist").and_then(Value::as_array).into_iter().flatten();
    let (mut requirements, mut texts) = (Vec::new(), HashSet::new());
    for text in list.filter_map(Value::as_str) {
        let required = requirement::python(text);
        if is_of_an_extra(required.marker) || !texts.insert(text) {
            continue;
        }
        if requirements.len() >= most {
            break;
        }
        let is_cut = text.ends_with(CUT);
        let of = |versions| {
            // The end of what is cut may say where it counts.
            let is_optional = is_cut || !required.marker.is_empty();
            VersionRequirement { name: required.name.to_owned(), text: text.to_owned(), is_optional, versions }
        };
        requirements.push(of(if is_cut { RequiredVersions::Unclear(NOT_UNDERSTOOD) } else { required.versions() }));
        if !required.extras.is_empty() {
            requirements.push(of(RequiredVersions::Unclear(EXTRAS)));
        }
    }
    requirements.truncate(most);
    requirements
}

/// Whether a marker lets a requirement count for extras alone: each of its alternatives names one.
fn is_of_an_extra(marker: &str) -> bool {
    let words: Vec<&str> = marker.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').collect();
    words.split(|word| *word == "or").all(|alternative| alternative.contains(&"extra"))
}

/// Dependencies of a line of cargo's index, without those that only development needs.
fn of_cargo(line: &Map<String, Value>, most: usize) -> Vec<VersionRequirement> {
    let enabled = enabled_by_default(line);
    let mut requirements: Vec<VersionRequirement> = Vec::new();
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    for dependency in line.get("deps").and_then(Value::as_array).into_iter().flatten() {
        let text = |member: &str| dependency.get(member).and_then(Value::as_str);
        if text("kind") == Some("dev") {
            continue;
        }
        let name = text("package").or(text("name")).unwrap_or_default().to_owned();
        let written = text("req").unwrap_or_default().to_owned();
        let is_declared_optional = dependency.get("optional") == Some(&Value::Bool(true));
        let is_optional = is_declared_optional && !enabled.contains(text("name").unwrap_or_default());
        // Of several systems, a crate may be required more than once.
        if let Some(place) = places.get(&(name.clone(), written.clone())) {
            requirements[*place].is_optional &= is_optional;
            continue;
        }
        if requirements.len() == most {
            break;
        }
        places.insert((name.clone(), written.clone()), requirements.len());
        // Those of the public registry come through the package hosts, which stand in its place.
        let is_of_other = text("registry").is_some_and(|registry| !registry.contains(PUBLIC_CARGO));
        let versions = if is_of_other { RequiredVersions::Unclear(OF_ANOTHER) } else { requirement::cargo(&written) };
        requirements.push(VersionRequirement { name, text: written, is_optional, versions });
    }
    requirements
}

/// The names of optional dependencies that the default features of a crate enable.
fn enabled_by_default(line: &Map<String, Value>) -> HashSet<&str> {
    let features = |list: &str| line.get(list).and_then(Value::as_object).into_iter().flatten();
    let of: HashMap<&str, &Value> = ["features", "features2"]
        .into_iter()
        .flat_map(features)
        .map(|(name, enables)| (name.as_str(), enables))
        .collect();
    let (mut seen, mut next) = (HashSet::from(["default"]), vec!["default"]);
    while let Some(feature) = next.pop() {
        for enables in of.get(feature).and_then(|list| list.as_array()).into_iter().flatten().filter_map(Value::as_str)
        {
            // A weak one enables a feature of a dependency if something else enables that.
            let (dependency, feature_of) = enables.split_once('/').unwrap_or((enables, ""));
            if !feature_of.is_empty() && dependency.ends_with('?') {
                continue;
            }
            let enabled = dependency.strip_prefix("dep:").unwrap_or(dependency);
            if seen.insert(enabled) {
                next.push(enabled);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(language: Language, manifest: &Value) -> Vec<(String, String, bool, bool)> {
        let read = requirements(language, &manifest.to_string(), 100).expect("a manifest");
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
    fn wheels_declare_what_counts_without_their_extras() {
        let manifest = json!({ "requires_dist": [
            "B_c>=1", "d[x]~=2.0", "e; python_version < '3.9'", "f; extra == 'dev'",
            "g; (os_name == 'nt') and extra=='dev'", "h; os_name == 'nt' or extra == 'dev'", "", 7,
            "B_c>=1", "i; extra == 'all' or (extra == 'dev' and os_name == 'nt')", "j>=1; os_name\u{2026}", "k>=2.1\u{2026}",
        ] });
        let list = [
            ("b-c", "B_c>=1", false, true),
            ("d", "d[x]~=2.0", false, true),
            ("d", "d[x]~=2.0", false, false),
            ("e", "e; python_version < '3.9'", true, true),
            ("h", "h; os_name == 'nt' or extra == 'dev'", true, true),
            ("", "", false, false),
            ("j", "j>=1; os_name\u{2026}", true, false),
            ("k", "k>=2.1\u{2026}", true, false),
        ];
        assert_eq!(shown(Language::Python, &manifest), wanted(&list));
        let many: Vec<String> = (0..100).map(|number| format!("a{number}[x]")).collect();
        let many = json!({ "requires_dist": many });
        assert_eq!(requirements(Language::Python, &many.to_string(), 7).expect("a manifest").len(), 7);
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
    fn default_features_enable_optional_crates() {
        let of = |name: &str| json!({ "name": name, "req": "^1", "optional": true, "kind": "normal" });
        let line = json!({
            "deps": [of("tls"), of("named"), of("of-feature"), of("weak"), of("off")],
            "features": { "default": ["std", "named"], "std": ["of-feature/alloc", "weak?/alloc"], "other": ["off"] },
            "features2": { "std2": [], "named": ["dep:named", "dep:tls"] },
        });
        let optional: Vec<bool> = shown(Language::Cargo, &line).into_iter().map(|one| one.2).collect();
        assert_eq!(optional, [false, false, false, true, true]);
    }

    #[test]
    fn no_more_requirements_are_read_than_are_wanted() {
        let npm = json!({ "dependencies": { "a": "1", "b": "1", "c": "1" } }).to_string();
        let of = |name: &str| json!({ "name": name, "req": "^1", "optional": false, "kind": "normal" });
        let cargo = json!({ "deps": [of("a"), of("a"), of("b"), of("c")] }).to_string();
        for (language, manifest) in [(Language::JavaScript, npm), (Language::Cargo, cargo)] {
            assert_eq!(requirements(language, &manifest, 2).map(|list| list.len()), Some(2));
        }
        let long = json!({ "dependencies": { "a".repeat(9000): "1" } });
        let read = requirements(Language::JavaScript, &long.to_string(), 9).expect("a manifest");
        assert!(read[0].name.len() < 300 && matches!(read[0].versions, RequiredVersions::Unclear(NOT_A_NAME)));
    }

    #[test]
    fn what_is_no_manifest_has_no_requirements() {
        assert!(requirements(Language::JavaScript, "[]", 9).is_none());
        assert!(requirements(Language::Cargo, "{", 9).is_none());
        assert_eq!(shown(Language::JavaScript, &json!({ "dependencies": [], "peerDependenciesMeta": 3 })), []);
        assert_eq!(shown(Language::Cargo, &json!({ "deps": {} })), []);
    }
}
