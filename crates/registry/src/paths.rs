//! Names of repositories on the registry host: an organization, groups, and the repository, by name or UIDP.

use bowline_core::{ROOT_LENGTH, Result, SEGMENT_LENGTH, Uidp};
use bowline_store::{ReadTx, Value};

/// Maximum characters of a name: room for the deepest UIDP.
const LONGEST: usize = 1200;

/// The name of a repository, as a client wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(String);

impl Name {
    /// Parses a name of two parts at least; absent if the text is not one.
    pub fn parse(text: &str) -> Option<Name> {
        let is_name = text.len() <= LONGEST && text.contains('/') && text.split('/').all(is_part);
        is_name.then(|| Name(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The repository's own name, without the groups above it.
    pub(super) fn repo(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.as_str(), |(_, repo)| repo)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lower-case letters and digits, with one `.`, one or two `_`, or any number of `-` between them.
pub(super) fn is_part(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    let mut separators = bytes.split(|byte| is_word(*byte)).filter(|separator| !separator.is_empty());
    is_word(*first)
        && is_word(*last)
        && separators
            .all(|separator| matches!(separator, b"." | b"_" | b"__") || separator.iter().all(|byte| *byte == b'-'))
}

/// How far a name leads into the hierarchy.
#[derive(Debug)]
pub(super) struct PartialPath {
    /// The deepest group of the name that there is.
    pub(super) group: Uidp,
    /// Names of the groups below it that there are not.
    pub(super) missing: Vec<String>,
    pub(super) last: String,
    /// The repository, if it is there.
    pub(super) repo: Option<Uidp>,
}

/// Follows a name; absent if there is no such organization.
///
/// Who may know what is there is not checked here: a refusal is the same either way.
pub(super) async fn resolve(tx: &mut ReadTx, name: &Name) -> Result<Option<PartialPath>> {
    let mut parts = name.as_str().split('/');
    let (first, last) = (parts.next().unwrap_or_default(), parts.next_back().unwrap_or_default());
    let Some(mut group) = organization(tx, first).await? else { return Ok(None) };
    let mut missing: Vec<String> = Vec::new();
    for part in parts {
        let found = if missing.is_empty() { child(tx, GROUPS, &group, part).await? } else { None };
        match found {
            Some(found) => group = found,
            None => missing.push(part.into()),
        }
    }
    let repo = if missing.is_empty() { child(tx, REPOS, &group, last).await? } else { None };
    Ok(Some(PartialPath { group, missing, last: last.into(), repo }))
}

/// The group that these parts lead to: an organization, and groups below it, by name or UIDP; absent if one does not exist.
///
/// # Errors
/// Those of the database.
pub async fn group_of(tx: &mut ReadTx, parts: &[&str]) -> Result<Option<Uidp>> {
    let (first, below) = match parts {
        [] => return Ok(None),
        [first, below @ ..] => (first, below),
    };
    let Some(mut group) = organization(tx, first).await? else { return Ok(None) };
    for part in below {
        match child(tx, GROUPS, &group, part).await? {
            Some(found) => group = found,
            None => return Ok(None),
        }
    }
    Ok(Some(group))
}

async fn organization(tx: &mut ReadTx, part: &str) -> Result<Option<Uidp>> {
    if part.len() == ROOT_LENGTH && Uidp::is_valid(part) {
        let sql = "SELECT uid FROM groups WHERE uid = $1 AND parent = ''";
        return one(tx, sql, &[Value::from(part)]).await;
    }
    one(tx, "SELECT uid FROM groups WHERE name = $1 AND parent = '' AND verified", &[Value::from(part)]).await
}

/// A table, and its index of names below a group.
type NameIndex = (&'static str, &'static str);
const GROUPS: NameIndex = ("groups", "groups_name");
const REPOS: NameIndex = ("repos", "repos_name");

/// A group or repository below a group: a part that looks like the end of a UIDP is one, since no name may.
async fn child(tx: &mut ReadTx, (table, by_name): NameIndex, parent: &Uidp, part: &str) -> Result<Option<Uidp>> {
    let uid = format!("{parent}/{part}");
    if part.len() == SEGMENT_LENGTH && Uidp::is_valid(&uid) {
        return one(tx, &format!("SELECT uid FROM {table} WHERE uid = $1"), &[Value::from(&uid)]).await;
    }
    let by_name = tx.index_hint(by_name);
    // The index of groups by their names leaves out those that have no parent.
    let sql = format!("SELECT uid FROM {table} {by_name} WHERE parent = $1 AND name = $2 AND parent <> ''");
    one(tx, &sql, &[Value::from(parent.as_str()), Value::from(part)]).await
}

async fn one(tx: &mut ReadTx, sql: &str, params: &[Value<'_>]) -> Result<Option<Uidp>> {
    let found = tx.query_opt(sql, params, |row| row.text(0).map_err(bowline_core::Error::from)).await?;
    found.map(|uid| stored(&uid)).transpose()
}

/// A UIDP out of the database.
pub(super) fn stored(uid: &str) -> Result<Uidp> {
    Uidp::parse(uid).map_err(|_| bowline_core::Error::internal(format!("the database holds the damaged uid {uid}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_distribution_protocol() {
        for name in
            ["a/b", "acme/a.b/c_d/e__f/g---h", "0/1", "0123456789abcdef0123456789abcdef01234567/0123456789abcdef"]
        {
            assert!(Name::parse(name).is_some(), "{name}");
        }
        let long = format!("a/{}", "b".repeat(LONGEST));
        for name in [
            "", "a", "/a/b", "a/b/", "a//b", "A/b", "a/B", "a/..", "../a", "a/.", "a/b c", "a/-b", "a/b-", "a/b..c",
            "a/b___c", "a/b._c", "a/b\0", "a/b%2fc", "a\\b/c", "a/é", &long,
        ] {
            assert!(Name::parse(name).is_none(), "{name:?}");
        }
    }
}
