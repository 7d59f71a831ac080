//! Lock files of pnpm, yarn and bun.

use bowline_formats::yaml::{self, YamlNode, YamlValue};
use serde_json::Value;

use super::Ecosystem;
use super::lock_files::LockFile;

/// Levels of nesting that lock files have at most.
const LEVELS: usize = 32;

/// `pnpm-lock.yaml`, whose packages are keys such as `@scope/name@1.0.0(peer@2.0.0)`.
pub(super) fn pnpm(text: &str) -> Result<LockFile, String> {
    let is_deep = |depth| if depth > LEVELS { Err("is nested too deeply".to_owned()) } else { Ok(()) };
    let documents = yaml::documents(text, is_deep).map_err(|error| format!("is no YAML: {error}"))?;
    let document = documents.last().ok_or("is empty")?;
    if member(document, "lockfileVersion").is_none() {
        return Err("has no lockfileVersion, so it is no lock file".into());
    }
    let packages = match member(document, "packages").map(|packages| &packages.value) {
        Some(YamlValue::Map(packages)) => packages.as_slice(),
        _ => &[],
    };
    let mut file = LockFile::new(Ecosystem::JavaScript);
    for (key, _, package) in packages {
        let key = key.split('(').next().unwrap_or_default().trim_start_matches('/');
        let (name, version) = split(key).unwrap_or((key, ""));
        let has_digest = member(package, "resolution").is_some_and(|found| member(found, "integrity").is_some());
        if has_digest && is_version(version) { file.pin("npm", name, version) } else { file.leave_out(name, version) }
    }
    Ok(file)
}

fn member<'a>(node: &'a YamlNode, name: &str) -> Option<&'a YamlNode> {
    let YamlValue::Map(members) = &node.value else { return None };
    members.iter().find(|(key, ..)| key == name).map(|(_, _, value)| value)
}

/// `yarn.lock`, in the form of yarn 1 or in that of all later ones.
pub(super) fn yarn(text: &str) -> Result<LockFile, String> {
    let is_of_yarn_1 = text.contains("# yarn lockfile v1");
    match text.lines().any(|line| line == "__metadata:") {
        true => Ok(later_yarn(text)),
        false if is_of_yarn_1 => Ok(first_yarn(text)),
        false => Err("has neither the mark of yarn 1 nor __metadata, so it is no lock file".into()),
    }
}

/// Entries say what they resolved to in one text: `"name@npm:1.0.0"`.
fn later_yarn(text: &str) -> LockFile {
    let mut file = LockFile::new(Ecosystem::JavaScript);
    for resolution in text.lines().filter_map(|line| line.strip_prefix("  resolution: ")) {
        let resolution = resolution.trim_matches('"');
        let (name, source) = split(resolution).unwrap_or((resolution, ""));
        match source.split_once(':') {
            Some(("npm", version)) => file.pin("npm", name, version.split("::").next().unwrap_or_default()),
            // Members of the project; and changes to packages that have entries of their own.
            Some(("workspace" | "patch", _)) => {}
            _ => file.leave_out(name, source),
        }
    }
    file
}

/// Entries begin with the ranges that they are for, and have a version and an address.
fn first_yarn(text: &str) -> LockFile {
    let mut file = LockFile::new(Ecosystem::JavaScript);
    let (mut name, mut version) = (String::new(), String::new());
    for line in text.lines().map(str::trim_end) {
        let value = |key: &str| line.strip_prefix("  ")?.strip_prefix(key)?.strip_prefix(' ');
        if !line.starts_with([' ', '#']) && line.ends_with(':') {
            leave_out_unresolved(&mut file, &name, &version);
            let range = line.trim_end_matches(':').split(", ").next().unwrap_or_default().trim_matches('"');
            let (asked, source) = split(range).unwrap_or((range, ""));
            // Another name for a package: what it is called itself counts.
            let real = source.strip_prefix("npm:").and_then(split).map(|(real, _)| real);
            (name, version) = (real.unwrap_or(asked).to_owned(), String::new());
        } else if let Some(found) = value("version") {
            found.trim_matches('"').clone_into(&mut version);
        } else if let Some(address) = value("resolved") {
            let address = address.trim_matches('"');
            let is_of_registry = address.starts_with("http") && is_version(&version);
            if is_of_registry {
                file.pin("npm", &name, &version);
            } else {
                file.leave_out(&name, address);
            }
            name.clear();
        }
    }
    leave_out_unresolved(&mut file, &name, &version);
    file
}

/// An entry without an address is a directory of the project, or a file.
fn leave_out_unresolved(file: &mut LockFile, name: &str, version: &str) {
    if !name.is_empty() {
        file.leave_out(name, version);
    }
}

/// `bun.lock`, JSON with commas at the end of lists.
pub(super) fn bun(text: &str) -> Result<LockFile, String> {
    let document: Value =
        serde_json::from_str(&without_last_commas(text)).map_err(|error| format!("is no JSON: {error}"))?;
    let packages = document["packages"].as_object().ok_or("has no packages, so it is no lock file")?;
    let mut file = LockFile::new(Ecosystem::JavaScript);
    for (key, package) in packages {
        let resolved = package[0].as_str().unwrap_or_default();
        match split(resolved) {
            Some((name, version)) if is_version(version) => file.pin("npm", name, version),
            Some((_, version)) if version.starts_with("workspace:") => {}
            _ => file.leave_out(key, resolved),
        }
    }
    Ok(file)
}

/// Name and version of `name@version`, where a name may begin with `@`; of old pnpm also `name/version`.
fn split(text: &str) -> Option<(&str, &str)> {
    let at = text.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
    let at = at.or_else(|| text.rfind('/'))?;
    Some((&text[..at], &text[at + 1..]))
}

fn is_version(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// The text without commas before brackets that close, outside of its texts.
fn without_last_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut is_text, mut is_escaped) = (false, false);
    for c in text.chars() {
        if !is_text && matches!(c, '}' | ']') {
            let end = out.trim_end();
            if end.ends_with(',') {
                out.truncate(end.len() - 1);
            }
        }
        is_text ^= c == '"' && !is_escaped;
        is_escaped = is_text && c == '\\' && !is_escaped;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(file: Result<LockFile, String>) -> (Vec<String>, Vec<String>) {
        let file = file.expect("a lock file");
        (file.versions.into_iter().collect(), file.others.into_iter().collect())
    }

    fn pins() -> Vec<String> {
        ["pkg:npm/%40s/a@1.0.0", "pkg:npm/b@2.0.0-rc.1"].map(String::from).to_vec()
    }

    #[test]
    fn lock_files_of_pnpm() {
        let newer = "lockfileVersion: '9.0'\npackages:\n  '@s/a@1.0.0':\n    resolution: {integrity: sha512-x}\n  \
                     b@2.0.0-rc.1(c@1.0.0):\n    resolution: {integrity: sha512-x}\n  g@https://h/g.tgz:\n    resolution: \
                     {tarball: https://h/g.tgz}\nsnapshots: {}\n";
        assert_eq!(lists(pnpm(newer)), (pins(), vec!["g (https://h/g.tgz)".into()]));
        let older = "lockfileVersion: 5.4\npackages:\n  /@s/a/1.0.0:\n    resolution: {integrity: sha512-x}\n  \
                     /b/2.0.0-rc.1:\n    resolution: {integrity: sha512-x}\n";
        assert_eq!(lists(pnpm(older)), (pins(), Vec::new()));
        assert_eq!(lists(pnpm("lockfileVersion: '9.0'\n")), (Vec::new(), Vec::new()));
        assert!(pnpm("a: b").is_err() && pnpm("a: [").is_err());
    }

    #[test]
    fn lock_files_of_yarn() {
        let first = "# yarn lockfile v1\n\n\"@s/a@^1.0.0\", \"@s/a@~1.0.0\":\n  version \"1.0.0\"\n  resolved \
                     \"https://h/a.tgz#ab\"\n  dependencies:\n    version \"^9\"\n\nalias@npm:b@^2:\n  version \
                     \"2.0.0-rc.1\"\n  resolved \"https://h/b.tgz\"\n\n\"g@git+ssh://h/g\":\n  version \"1.0.0\"\n  resolved \
                     \"git+ssh://h/g#ab\"\n\n\"f@file:../f\":\n  version \"1.0.0\"\n";
        let others = ["f (1.0.0)", "g (git+ssh://h/g#ab)"].map(String::from).to_vec();
        assert_eq!(lists(yarn(first)), (pins(), others));
        let later = "__metadata:\n  version: 8\n\n\"@s/a@npm:^1.0.0\":\n  version: 1.0.0\n  resolution: \
                     \"@s/a@npm:1.0.0\"\n\n\"b@npm:^2\":\n  version: 2.0.0-rc.1\n  resolution: \
                     \"b@npm:2.0.0-rc.1::__archiveUrl=x\"\n\n\"app@workspace:.\":\n  version: 0.0.0-use.local\n  resolution: \
                     \"app@workspace:.\"\n\n\"g@https://h/g.git\":\n  version: 1.0.0\n  resolution: \"g@https://h/g.git#commit=ab\"\n";
        assert_eq!(lists(yarn(later)), (pins(), vec!["g (https://h/g.git#commit=ab)".into()]));
        assert!(yarn("{}").is_err());
    }

    #[test]
    fn lock_files_of_bun() {
        let text = "{\n  \"lockfileVersion\": 1,\n  \"packages\": {\n    \"@s/a\": [\"@s/a@1.0.0\", \"\", {}, \"sha512-x\"],\n    \
                    \"b\": [\"b@2.0.0-rc.1\", \"\", { \"os\": \"a,]\", }, \"sha512-x\",],\n    \"web\": \
                    [\"web@workspace:web\"],\n    \"g\": [\"g@github:h/g#ab\", {},],\n  },\n}\n";
        assert_eq!(lists(bun(text)), (pins(), vec!["g (g@github:h/g#ab)".into()]));
        assert!(bun("{}").is_err() && bun("").is_err());
    }
}
