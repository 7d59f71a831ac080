//! Tags of JavaScript packages: names for versions, of which `latest` is the one that is installed without a version.

use std::collections::BTreeMap;

use bowline_contract::bowline::libraries::v1::JavascriptTag;
use bowline_contract::bowline::libraries::v1::rpc::javascript_host::SetTag;
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::{Change, ResourceSnapshot};
use bowline_resources::kinds::PACKAGE_TAG;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use bowline_versions::order_key;

use super::HostClient;
use super::publishing::NewFile;
use crate::ecosystems::Language;

/// Tags that a package may have.
const TAGS: usize = 1000;
/// The tag that every package has.
pub(super) const LATEST: &str = "latest";

/// The tags of a package with the versions that they stand for.
pub(super) async fn of_package(tx: &mut ReadTx, repository: &Uidp, package: &str) -> Result<BTreeMap<String, String>> {
    let sql = "SELECT t.tag, v.version FROM hosted_tags t JOIN hosted_versions v
                 ON v.repository = t.repository AND v.package = t.package AND v.sort_key = t.sort_key
               WHERE t.repository = $1 AND t.package = $2";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let rows = tx.query(sql, &[Value::from(repository.as_str()), Value::from(package)], read).await?;
    Ok(rows.into_iter().collect())
}

/// When a tag of a package was last set; absent without tags.
pub(super) async fn changed_at(tx: &mut ReadTx, repository: &Uidp, package: &str) -> Result<Option<Micros>> {
    let sql = "SELECT max(updated_at) FROM hosted_tags WHERE repository = $1 AND package = $2";
    let params = [Value::from(repository.as_str()), Value::from(package)];
    Ok(tx.query_opt(sql, &params, |row| row.opt_int(0).map_err(Error::from)).await?.flatten())
}

/// Sets the tag that a new version is published under, and `latest` for the first one. What changed.
pub(super) async fn set_for_new(
    tx: &mut WriteTx,
    client: &HostClient,
    (group, repository): (&Uidp, &Uidp),
    file: &NewFile,
    tag: &str,
) -> Result<Vec<Change>> {
    let before = of_package(tx, repository, &file.package).await?;
    require_room(&before, tag)?;
    let mut changes = Vec::new();
    let is_first = !before.contains_key(LATEST) && tag != LATEST;
    for tag in [Some(tag), is_first.then_some(LATEST)].into_iter().flatten() {
        let new = named(group, &file.package, tag, &file.version);
        client.visit.authorize_change_at::<SetTag>(tx, group, new.clone()).await?;
        changes.push(set(tx, repository, before.get(tag), &new, client.now()).await?);
    }
    Ok(changes)
}

/// Refuses one tag too many: all of them are in each document.
pub(super) fn require_room(before: &BTreeMap<String, String>, tag: &str) -> Result<()> {
    if before.len() < TAGS || before.contains_key(tag) {
        return Ok(());
    }
    let text = format!("the package has {TAGS} tags: remove some with npm dist-tag rm");
    Err(Error::new(Reason::FailedPrecondition, text))
}

/// Lets a tag stand for a version, which must be there; `before` is the version that it stood for.
pub(super) async fn set(
    tx: &mut WriteTx,
    repository: &Uidp,
    before: Option<&String>,
    tag: &JavascriptTag,
    now: Micros,
) -> Result<Change> {
    let sort_key = order_key(Language::JavaScript.scheme(), &tag.version);
    let sql = "INSERT INTO hosted_tags (repository, package, tag, sort_key, updated_at) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (repository, package, tag) DO UPDATE SET sort_key = excluded.sort_key,
                 updated_at = excluded.updated_at";
    let params = [
        Value::from(repository.as_str()),
        Value::from(&tag.package),
        Value::from(&tag.tag),
        Value::from(sort_key.as_slice()),
        Value::Int(now),
    ];
    tx.execute(sql, &params).await?;
    let before = before.map(|version| JavascriptTag { version: version.clone(), ..tag.clone() });
    Ok(change(repository, before.as_ref(), Some(tag)))
}

/// Removes a tag from its package.
pub(super) async fn remove(tx: &mut WriteTx, repository: &Uidp, tag: &JavascriptTag) -> Result<Change> {
    let sql = "DELETE FROM hosted_tags WHERE repository = $1 AND package = $2 AND tag = $3";
    let params = [Value::from(repository.as_str()), Value::from(&tag.package), Value::from(&tag.tag)];
    tx.execute(sql, &params).await?;
    Ok(change(repository, Some(tag), None))
}

/// A tag, for the audit log and the event.
pub(super) fn named(group: &Uidp, package: &str, tag: &str, version: &str) -> JavascriptTag {
    JavascriptTag { parent: group.as_str().into(), package: package.into(), tag: tag.into(), version: version.into() }
}

fn change(repository: &Uidp, before: Option<&JavascriptTag>, after: Option<&JavascriptTag>) -> Change {
    Change {
        kind: PACKAGE_TAG,
        uid: repository.as_str().into(),
        before: before.map(ResourceSnapshot::of),
        after: after.map(ResourceSnapshot::of),
    }
}

/// The version that `latest` stands for among some: the highest release, or without one the highest of all. They are in the
/// order of versions.
pub(super) fn highest<'a>(versions: impl DoubleEndedIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let is_release = |version: &&str| !version.split('+').next().unwrap_or_default().contains('-');
    let mut from_highest = versions.rev();
    let first = from_highest.clone().next();
    from_highest.find(is_release).or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_a_thousand_tags() {
        let mut tags: BTreeMap<String, String> = (1..TAGS).map(|n| (format!("t{n}"), "1.0.0".into())).collect();
        assert!(require_room(&tags, "new").is_ok());
        tags.insert("new".into(), "1.0.0".into());
        assert!(require_room(&tags, "newer").is_err() && require_room(&tags, "new").is_ok());
    }

    #[test]
    fn latest_is_the_highest_release() {
        for (versions, wanted) in [
            (&["1.0.0", "1.1.0", "2.0.0-rc.1"][..], Some("1.1.0")),
            (&["1.0.0", "1.1.0+linux-x64"], Some("1.1.0+linux-x64")),
            (&["1.0.0-a", "1.0.0-b"], Some("1.0.0-b")),
            (&[], None),
        ] {
            assert_eq!(highest(versions.iter().copied()), wanted, "{versions:?}");
        }
    }
}
