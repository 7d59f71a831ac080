//! Projects of JavaScript: `package.json`, lock files, and settings of npm, yarn and bun.

use serde_json::Value as Json;
use toml::{Table, Value};
use url::Url;

use super::sources::{Installer, Sources};

/// The end of the host of the public registry, which npm replaces with its own when it installs from a lock file.
const REPLACED: &str = ".npmjs.org";
/// Hosts of repositories that dependencies name in short.
const SHORT: [&str; 4] = ["github:", "gitlab:", "bitbucket:", "gist:"];

pub(super) fn read(name: &str, text: &str) -> Option<Result<Sources, String>> {
    match name {
        "package.json" => Some(manifest(text)),
        "package-lock.json" | "npm-shrinkwrap.json" => Some(npm_lock(text)),
        ".npmrc" => Some(Ok(npmrc(text))),
        ".yarnrc" => Some(Ok(first_yarnrc(text))),
        ".yarnrc.yml" => Some(Ok(yarnrc(text))),
        "bunfig.toml" => Some(bunfig(text)),
        "yarn.lock" => Some(Ok(yarn_lock(text))),
        "pnpm-lock.yaml" => Some(Ok(pnpm_lock(text))),
        _ => None,
    }
}

fn manifest(text: &str) -> Result<Sources, String> {
    let document: Json = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    let mut found = Sources::of(Installer::Npm);
    for list in ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"] {
        for version in document[list].as_object().into_iter().flat_map(|list| list.values()).filter_map(Json::as_str) {
            if SHORT.iter().any(|host| version.starts_with(host)) || is_repository(version) {
                found.repository(Installer::Npm, version);
            } else {
                found.direct(Installer::Npm, version);
            }
        }
    }
    Ok(found)
}

/// Whether a version is `owner/repository`, which npm takes for one of GitHub.
fn is_repository(version: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    let is_pair = |(owner, name): (&str, &str)| plain(owner) && plain(name) && !owner.starts_with('.');
    version.split('#').next().and_then(|version| version.split_once('/')).is_some_and(is_pair)
}

fn npm_lock(text: &str) -> Result<Sources, String> {
    let document: Json = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    let mut found = Sources::of(Installer::Npm);
    let packages = document["packages"].as_object().into_iter().flat_map(|packages| packages.values());
    let resolved = packages.filter_map(|package| package["resolved"].as_str());
    for address in resolved.filter(|address| !is_replaced(address)) {
        found.locked(Installer::Npm, address);
    }
    Ok(found)
}

fn is_replaced(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| url.host_str().is_some_and(|host| host.ends_with(REPLACED)))
}

fn npmrc(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Npm);
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim();
        let address = value.trim().trim_matches('"');
        match key {
            "registry" => found.index(Installer::Npm, address),
            _ if key.starts_with('@') && key.ends_with(":registry") => found.further_index(Installer::Npm, address),
            _ => {}
        }
    }
    found
}

/// Lines such as `registry "https://host/"`.
fn first_yarnrc(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Npm);
    for line in text.lines() {
        let Some((key, value)) = line.trim().split_once(char::is_whitespace) else { continue };
        let address = value.trim().trim_matches('"');
        match key.trim_matches('"') {
            "registry" => found.index(Installer::Npm, address),
            key if key.ends_with(":registry") => found.further_index(Installer::Npm, address),
            _ => {}
        }
    }
    found
}

/// The registry of all packages, and those of scopes below `npmScopes`.
fn yarnrc(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Yarn);
    for line in text.lines() {
        let Some(value) = line.trim().strip_prefix("npmRegistryServer:") else { continue };
        let address = value.trim().trim_matches(['"', '\'']);
        if line.starts_with(char::is_whitespace) {
            found.further_index(Installer::Yarn, address);
        } else {
            found.index(Installer::Yarn, address);
        }
    }
    found
}

fn bunfig(text: &str) -> Result<Sources, String> {
    let settings: Table = text.parse().map_err(|error: toml::de::Error| format!("is no TOML: {}", error.message()))?;
    let install = settings.get("install").and_then(Value::as_table);
    let scopes = install.and_then(|install| install.get("scopes")).and_then(Value::as_table);
    let registry = install.and_then(|install| install.get("registry"));
    let address = |value: &'_ Value| {
        let url = value.as_str().or_else(|| value.as_table()?.get("url")?.as_str());
        url.unwrap_or_default().to_owned()
    };
    let mut found = Sources::of(Installer::Npm);
    if let Some(value) = registry {
        found.index(Installer::Npm, &address(value));
    }
    for value in scopes.into_iter().flat_map(|scopes| scopes.values()) {
        found.further_index(Installer::Npm, &address(value));
    }
    Ok(found)
}

/// Entries have a line `resolved "address#digest"` in the form of yarn 1, else `resolution: "name@source"`.
fn yarn_lock(text: &str) -> Sources {
    let is_later = text.lines().any(|line| line == "__metadata:");
    let installer = if is_later { Installer::Yarn } else { Installer::Npm };
    let mut found = Sources::of(installer);
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("resolved ") {
            found.locked(installer, address.trim_matches('"').split('#').next().unwrap_or_default());
        } else if let Some(resolution) = line.strip_prefix("resolution: ") {
            let resolution = resolution.trim_matches('"');
            let source = resolution.get(1..).and_then(|rest| rest.split_once('@')).map_or("", |(_, source)| source);
            found.direct(installer, source);
        }
    }
    found
}

/// Packages that do not come from the registry have their address as `tarball` or `repo`.
fn pnpm_lock(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Npm);
    for key in ["tarball: ", "repo: "] {
        for (at, _) in text.match_indices(key) {
            let value = text[at + key.len()..].split([',', '}', '\n']).next().unwrap_or_default();
            found.locked(Installer::Npm, value.trim().trim_matches(['"', '\'']));
        }
    }
    found
}
