//! Projects of Rust: manifests, lock files, and settings of cargo.

use toml::{Table, Value};

use super::python::{at, document, text_at};
use super::sources::{Installer, Sources};

/// Indexes of the public registry, which lock files name whatever replaces it.
const PUBLIC: [&str; 2] =
    [concat!("https://github.com/rust-lang/crates", ".io-index"), concat!("https://index.crates", ".io")];
/// Names of lists of dependencies, the last two in their old spelling.
const LISTS: [&str; 5] =
    ["dependencies", "dev-dependencies", "build-dependencies", "dev_dependencies", "build_dependencies"];
/// Keys under which settings say where a source or registry has its packages.
const ADDRESSES: [&str; 5] = ["registry", "index", "git", "directory", "local-registry"];
/// Sources that replace each other, one after another.
const REPLACEMENTS: usize = 8;

/// What a file says, by its path: settings are those of a directory `.cargo`.
pub(super) fn read(path: &str, text: &str) -> Option<Result<Sources, String>> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "Cargo.toml" => Some(document(text).map(|manifest| of_manifest(&manifest))),
        "Cargo.lock" => Some(document(text).map(|lock| locked(&lock))),
        "config.toml" | "config" if directory.rsplit('/').next() == Some(".cargo") => Some(settings(text)),
        _ => None,
    }
}

/// Dependencies in repositories of git, or in an index that the manifest names by its address.
fn of_manifest(manifest: &Table) -> Sources {
    let mut found = Sources::of(Installer::Cargo);
    let workspace = manifest.get("workspace").and_then(Value::as_table);
    for part in [Some(manifest), workspace].into_iter().flatten().chain(tables(manifest, "target")) {
        for list in LISTS.iter().filter_map(|name| part.get(*name)?.as_table()) {
            add_dependencies(list, &mut found);
        }
    }
    add_patches(manifest, &mut found);
    found
}

/// What a manifest or settings put in place of dependencies, wherever those are named.
fn add_patches(document: &Table, found: &mut Sources) {
    for list in tables(document, "patch").chain(document.get("replace").and_then(Value::as_table)) {
        add_dependencies(list, found);
    }
}

fn add_dependencies(list: &Table, found: &mut Sources) {
    for dependency in list.values().filter_map(Value::as_table) {
        let member = |name: &str| text_at(dependency, &[name]).unwrap_or_default();
        found.direct(Installer::Cargo, member("git"));
        found.further_index(Installer::Cargo, plain(member("registry-index")));
    }
}

/// The packages of a lock file with their sources, which those of the project do not have.
fn locked(lock: &Table) -> Sources {
    let mut found = Sources::of(Installer::Cargo);
    let packages = lock.get("package").and_then(Value::as_array).into_iter().flatten();
    for source in packages.filter_map(|package| text_at(package.as_table()?, &["source"])) {
        match source.strip_prefix("git+") {
            Some(repository) => {
                found.direct(Installer::Cargo, repository.split(['?', '#']).next().unwrap_or_default());
            }
            None if PUBLIC.contains(&plain(source).trim_end_matches('/')) => {}
            None => found.locked(Installer::Cargo, plain(source)),
        }
    }
    found
}

/// Settings: what replaces the public registry, the other sources and registries, and patches.
///
/// # Errors
/// The text is no TOML; one sentence that begins after the name of the file.
pub(super) fn settings(text: &str) -> Result<Sources, String> {
    let settings = document(text)?;
    let mut found = Sources::of(Installer::Cargo);
    let public = text_at(&settings, &["source", "crates-io", "replace-with"]).map(|name| resolve(&settings, name));
    found.index(Installer::Cargo, public.unwrap_or_default());
    for source in tables(&settings, "source").chain(tables(&settings, "registries")) {
        let Some(address) = address_of(source) else { continue };
        if source.contains_key("replace-with") {
            found.replace(address);
        } else if address.contains("://") && Some(address) != public {
            found.further_index(Installer::Cargo, address);
        }
    }
    add_patches(&settings, &mut found);
    Ok(found)
}

/// Where a source or registry leads, by its name: to the address of what replaces it in the end. The name itself where these
/// settings do not have it.
fn resolve<'a>(settings: &'a Table, mut name: &'a str) -> &'a str {
    for _ in 0..REPLACEMENTS {
        let of = |list: &str| at(settings, &[list, name]).and_then(Value::as_table);
        let source = of("source");
        let Some(next) = source.and_then(|source| text_at(source, &["replace-with"])) else {
            return [source, of("registries")].into_iter().flatten().find_map(address_of).unwrap_or(name);
        };
        name = next;
    }
    name
}

/// Where a source or registry has its packages: an address, or a directory.
fn address_of(source: &Table) -> Option<&str> {
    ADDRESSES.into_iter().find_map(|key| text_at(source, &[key])).map(plain)
}

/// An address without the protocol of the index, which is no part of it.
fn plain(address: &str) -> &str {
    ["sparse+", "registry+"].into_iter().find_map(|kind| address.strip_prefix(kind)).unwrap_or(address)
}

/// The tables of a table that a document has.
fn tables<'a>(document: &'a Table, name: &str) -> impl Iterator<Item = &'a Table> {
    let members = document.get(name).and_then(Value::as_table);
    members.into_iter().flat_map(|members| members.values()).filter_map(Value::as_table)
}
