//! Who owns what: an inventory for each owner in each organization. See docs/adr/0014-owners-of-declared-objects.md.
//!
//! The wire contract has no labels. An inventory is the read-me of an empty repository of the organization; it holds
//! hashes, so that readers of the registry learn no names from it.

use std::collections::{BTreeMap, BTreeSet};

use bowline_authn::crypto::sha256;
use bowline_client::{Api, ClientError};
use bowline_contract::Contract;
use bowline_core::hex;
use serde_json::json;

use super::kinds::{self, KINDS};
use super::schema::Members;
use super::server::text;
use crate::dynamic;

/// Names of the repositories with inventories begin so.
const PREFIX: &str = "owned-by-";

/// First line of an inventory.
const HEAD: &str = "# Inventory of bowline apply";

/// Longest name of an owner.
pub(super) const OWNER_LENGTH: usize = 40;

/// Most bytes of one inventory; a read-me has at most 262,144 characters.
const CHUNK_BYTES: usize = 250_000;

/// What an owner owns: by kind and hash of the label the hash of the UIDP, which is empty until the object exists.
pub(super) type Entries = BTreeMap<(&'static str, String), String>;

/// The key of an object in [`Entries`].
pub(super) fn key(kind: &'static str, label: &str) -> (&'static str, String) {
    (kind, hash(label))
}

/// The inventories of an organization.
#[derive(Default)]
pub(super) struct Inventories {
    by_owner: BTreeMap<String, Entries>,
    /// Owners by kind and hash of the UIDP, or of the label where the UIDP is not recorded.
    owners: BTreeMap<(&'static str, bool, String), String>,
    repositories: BTreeSet<String>,
}

impl Inventories {
    /// The inventories among the repositories of an organization.
    pub(super) fn read(root: &str, repositories: &[Members]) -> Inventories {
        let mut inventories = Inventories::default();
        for repository in repositories {
            let (uid, name, readme) = (text(repository, "id"), text(repository, "name"), text(repository, "readme"));
            let is_own = uid.rsplit_once('/').is_some_and(|(parent, _)| parent == root);
            // Who may rename a repository is not who may write a read-me: the name counts only with the content that names
            // the same owner.
            let owner = name
                .strip_prefix(PREFIX)
                .and_then(owner_of_part)
                .filter(|owner| is_own && readme.starts_with(&head(owner)));
            let Some(owner) = owner else { continue };
            for ((kind, label), uid) in readme.lines().filter_map(entry) {
                let (has_uid, hash) = if uid.is_empty() { (false, &label) } else { (true, &uid) };
                inventories.owners.insert((kind, has_uid, hash.clone()), owner.to_owned());
                inventories.by_owner.entry(owner.to_owned()).or_default().insert((kind, label), uid);
            }
            inventories.repositories.insert(uid);
        }
        inventories
    }

    /// Kinds of what is owned.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.by_owner.values().flat_map(BTreeMap::keys).map(|(kind, _)| *kind)
    }

    /// UIDPs of the repositories with inventories.
    pub(super) fn repositories(&self) -> impl Iterator<Item = &str> {
        self.repositories.iter().map(String::as_str)
    }

    /// What an owner owns.
    pub(super) fn of(&self, owner: &str) -> Entries {
        self.by_owner.get(owner).cloned().unwrap_or_default()
    }

    /// The owner that has recorded this very object.
    pub(super) fn owner_of_uid(&self, kind: &'static str, uid: &str) -> Option<&str> {
        self.owners.get(&(kind, true, hash(uid))).map(String::as_str)
    }

    /// The owner of an object, if one is recorded: of the object itself, or of its label by a run that was interrupted
    /// before it recorded what it created.
    pub(super) fn owner(&self, kind: &'static str, label: &str, uid: &str) -> Option<&str> {
        let planned = || self.owners.get(&(kind, false, hash(label))).map(String::as_str);
        self.owner_of_uid(kind, uid).or_else(planned)
    }

    /// Hash of the UIDP that an owner's object of this label had.
    pub(super) fn recorded_uid(&self, owner: &str, kind: &'static str, label: &str) -> Option<String> {
        self.by_owner.get(owner)?.get(&key(kind, label)).filter(|uid| !uid.is_empty()).cloned()
    }
}

/// The owner of a part of an inventory: `files`, and `files.2` where it continues.
fn owner_of_part(name: &str) -> Option<&str> {
    let (owner, part) = name.split_once('.').map_or((name, None), |(owner, part)| (owner, Some(part)));
    part.is_none_or(|part| part.parse::<u32>().is_ok()).then_some(owner)
}

fn entry(line: &str) -> Option<((&'static str, String), String)> {
    let mut words = line.split(' ');
    let kind = kinds::kind(words.next()?)?.name;
    let label = words.next()?.to_owned();
    Some(((kind, label), words.next().unwrap_or_default().to_owned()))
}

/// Requires a name of an owner that a repository's name can end in.
///
/// # Errors
/// It has other characters, or too many.
pub(super) fn validate_owner(owner: &str) -> Result<(), ClientError> {
    let is_valid = !owner.is_empty()
        && owner.len() <= OWNER_LENGTH
        && owner.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let refused = || format!("--owner {owner:?}: 1 to {OWNER_LENGTH} lower-case letters, digits and hyphens");
    if is_valid { Ok(()) } else { Err(ClientError::Usage(refused())) }
}

/// Writes an owner's inventory of an organization, which may have been in `before` parts.
///
/// # Errors
/// The server refuses: recording needs `repo.create`, `repo.update` and `repo.internal.admin`.
pub(super) async fn write(
    api: &Api,
    contract: &Contract,
    root: &str,
    owner: &str,
    (before, after): (&Entries, &Entries),
) -> Result<(), ClientError> {
    // It creates the repository or replaces its read-me, in one call.
    let method = dynamic::method(contract, "chainguard.platform.registry.Registry.CreateRepo")?;
    let mut parts = parts(owner, after);
    // Parts of a longer inventory are emptied.
    parts.resize(parts.len().max(self::parts(owner, before).len()), head(owner));
    for (at, readme) in parts.into_iter().enumerate() {
        let name = if at == 0 { format!("{PREFIX}{owner}") } else { format!("{PREFIX}{owner}.{}", at + 1) };
        let description = format!("Inventory of bowline apply --owner {owner}; holds no images");
        let request = json!({
            "parent_id": root, "repo": { "name": name, "description": description, "readme": readme },
        });
        if let serde_json::Value::Object(request) = request {
            dynamic::call_sparse(api, method, &request).await?;
        }
    }
    Ok(())
}

fn head(owner: &str) -> String {
    format!(
        "{HEAD}\n\nFiles own objects of this organization: `bowline apply --owner {owner}` changes and deletes them. \
         It writes this list of hashes; do not edit it.\n\n```text\n"
    )
}

fn parts(owner: &str, entries: &Entries) -> Vec<String> {
    let mut parts = vec![head(owner)];
    for kind in KINDS {
        for ((name, label), uid) in entries.iter().filter(|((name, _), _)| *name == kind.name) {
            let line = format!("{name} {label} {uid}");
            if parts.last().is_none_or(|part| part.len() + line.len() > CHUNK_BYTES) {
                parts.push(head(owner));
            }
            if let Some(part) = parts.last_mut() {
                part.push_str(line.trim_end());
                part.push('\n');
            }
        }
    }
    parts
}

/// A short hash of a text.
pub(super) fn hash(text: &str) -> String {
    hex(sha256(text.as_bytes()).get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(name: &str, readme: &str) -> Members {
        json!({"id": format!("aa/{name}"), "name": name, "readme": readme}).as_object().unwrap().clone()
    }

    #[test]
    fn inventories_are_read_as_written() {
        let created = (key("Group", "Group acme"), hash("aa"));
        let planned = (key("Role", "Role acme/x"), String::new());
        let entries = Entries::from([created, planned]);
        let parts = parts("files", &entries);
        let [readme] = parts.as_slice() else { panic!("{parts:?}") };
        assert!(!readme.contains("acme/x"), "{readme}");
        let read = Inventories::read("aa", &[repository("owned-by-files", readme), repository("nginx", HEAD)]);
        assert_eq!(read.of("files"), entries);
        assert_eq!(read.owner("Group", "Group renamed", "aa"), Some("files"));
        assert_eq!(read.owner("Group", "Group acme", "bb"), None, "another group took the name");
        assert_eq!(read.owner("Role", "Role acme/x", "aa/cc"), Some("files"));
        assert_eq!(read.repositories().collect::<Vec<_>>(), ["aa/owned-by-files"]);
        // Neither another text, nor an inventory under another name.
        for (name, readme) in [
            ("owned-by-x", "# Of a person"),
            ("y", readme),
            ("owned-by-x", readme),
            ("owned-by-files.x", readme),
            ("owned-by-x.files", readme),
        ] {
            let foreign = Inventories::read("aa", &[repository(name, readme)]);
            assert!(foreign.repositories().next().is_none(), "{name}");
        }
    }

    #[test]
    fn large_inventories_have_parts() {
        let many: Entries = (0..10_000).map(|n| (key("Group", &n.to_string()), hash(&format!("u{n}")))).collect();
        let parts = parts("files", &many);
        assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= CHUNK_BYTES), "{}", parts.len());
        let repositories: Vec<Members> =
            parts.iter().enumerate().map(|(n, part)| repository(&format!("owned-by-files.{n}"), part)).collect();
        assert_eq!(Inventories::read("aa", &repositories).of("files"), many);
    }

    #[test]
    fn owners_have_plain_names() {
        assert!(validate_owner("team-1").is_ok());
        for wrong in ["", "Team", "a.b", &"a".repeat(41)] {
            assert!(validate_owner(wrong).is_err(), "{wrong}");
        }
    }
}
