//! Tags: names of manifests in a repository, and how they move.
//!
//! Pushes and API calls create, move and remove tags through [`put_tag`], [`delete_tag`] and
//! [`delete_tags_of_repo`] alone, so that the history and the counts are always right.

use bowline_contract::v1::registry as v1;
use bowline_contract::v2::registry as v2;
use bowline_core::{Error, Micros, Result, Uidp, hex};
use bowline_pipeline::{Change, ResourceSnapshot, SortKey};
use bowline_resources::kinds::TAG;
use bowline_resources::list::{self, BY_NAME, BY_UID, Listed, Order, Table, timestamp};
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::content::replication::upstream_tags;
use super::{components, limits};

const COLUMNS: &str = "uid, name, digest, deprecated, bundles, created_at, updated_at";
const ORDERS: &[Order] = &[
    BY_UID,
    BY_NAME,
    Order {
        names: &["update_time", "updated_at", "updateTime", "updatedAt", "last_updated", "lastUpdated"],
        column: "updated_at",
    },
];

pub(crate) const TABLE: Table = Table { name: "tags", columns: COLUMNS, orders: ORDERS };

/// The tags that no list hides: a view, counted on its own because most lists look at it.
pub(crate) const SHOWN: Table = Table { name: "shown_tags", columns: COLUMNS, orders: ORDERS };

/// What lists can leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hidden {
    No = 0,
    /// `sha256-<digest>...`: what refers to a manifest.
    Referrer = 1,
    /// A dated tag, such as `1.2-20260131`.
    Dated = 2,
    /// `...-rN`: a build of a package version.
    Epoch = 3,
}

impl Hidden {
    /// By the name alone.
    pub(crate) fn of(name: &str) -> Hidden {
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digest = name.strip_prefix("sha256-").and_then(|rest| rest.as_bytes().get(..64));
        if digest.is_some_and(|digest| digest.iter().copied().all(is_hex)) {
            return Hidden::Referrer;
        }
        let Some((_, end)) = name.rsplit_once('-') else { return Hidden::No };
        if end.len() == 8 && end.starts_with("20") && is_digits(end) {
            return Hidden::Dated;
        }
        if end.strip_prefix('r').is_some_and(is_digits) { Hidden::Epoch } else { Hidden::No }
    }
}

/// A tag as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagRow {
    pub(crate) uid: String,
    pub(crate) name: String,
    /// Empty for a tag that was announced and not pushed yet.
    pub(crate) digest: String,
    pub(crate) deprecated: bool,
    pub(crate) bundles: Vec<String>,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
}

impl Listed for TagRow {
    fn read(row: &Row<'_>) -> Result<TagRow> {
        Ok(TagRow {
            uid: row.text(0)?,
            name: row.text(1)?,
            digest: row.text(2)?,
            deprecated: row.bool(3)?,
            bundles: serde_json::from_str(&row.text(4)?).map_err(Error::internal)?,
            created_at: row.int(5)?,
            updated_at: row.int(6)?,
        })
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn sort_key(&self, column: &str) -> SortKey {
        match column {
            "name" => SortKey::Text(self.name.clone()),
            _ => SortKey::Int(self.updated_at),
        }
    }
}

impl TagRow {
    pub(crate) fn to_v1(&self) -> v1::Tag {
        v1::Tag {
            id: self.uid.clone(),
            name: self.name.clone(),
            digest: self.digest.clone(),
            last_updated: timestamp(self.updated_at),
            deprecated: self.deprecated,
            bundles: self.bundles.clone(),
        }
    }

    pub(crate) fn to_v2(&self) -> v2::Tag {
        v2::Tag {
            uid: self.uid.clone(),
            name: self.name.clone(),
            digest: self.digest.clone(),
            update_time: timestamp(self.updated_at),
            deprecated: self.deprecated,
            bundles: self.bundles.clone(),
        }
    }
}

/// A tag after it was put.
#[derive(Debug)]
pub(crate) struct PutTag {
    /// Absent if the tag is new.
    pub(crate) before: Option<TagRow>,
    /// The same as before if the tag was at the digest already.
    pub(crate) after: TagRow,
}

impl PutTag {
    /// For the audit log; nothing if nothing changed.
    pub(crate) fn change(&self) -> Option<Change> {
        (self.before.as_ref() != Some(&self.after)).then(|| change(self.before.as_ref(), Some(&self.after)))
    }
}

/// What happened to a tag, for the audit log.
pub(crate) fn change(before: Option<&TagRow>, after: Option<&TagRow>) -> Change {
    let uid = after.or(before).map(|row| row.uid.clone()).unwrap_or_default();
    let snapshot = |row: Option<&TagRow>| row.map(|row| ResourceSnapshot::of(&row.to_v2()));
    Change { kind: TAG, uid, before: snapshot(before), after: snapshot(after) }
}

/// The tag of this UIDP.
pub(crate) async fn find(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<TagRow>> {
    let sql = format!("SELECT {COLUMNS} FROM tags WHERE uid = $1");
    tx.query_opt(&sql, &[Value::from(uid.as_str())], TagRow::read).await
}

/// The tag of this name in a repository.
pub(crate) async fn find_by_name(tx: &mut ReadTx, repo: &Uidp, name: &str) -> Result<Option<TagRow>> {
    let sql = format!("SELECT {COLUMNS} FROM tags WHERE parent = $1 AND name = $2");
    tx.query_opt(&sql, &[Value::from(repo.as_str()), Value::from(name)], TagRow::read).await
}

/// Creates or moves a tag. The caller has checked the permission, and that the digest is in the repository.
/// `draw` makes the UIDP of a new tag and distinguishes moves at the same time.
///
/// # Errors
/// FAILED_PRECONDITION for the move of an immutable one.
pub(crate) async fn put_tag(
    tx: &mut WriteTx,
    repo: &Uidp,
    name: &str,
    digest: &str,
    at: Micros,
    draw: [u8; 32],
) -> Result<PutTag> {
    let Some(before) = find_by_name(tx, repo, name).await? else {
        let (uid, after) = new_row(repo, name, digest, at, draw);
        insert(tx, repo, &uid, &after, draw).await?;
        return Ok(PutTag { before: None, after });
    };
    let mut after = before.clone();
    if before.digest == digest {
        upstream_tags::forget(tx, repo, name).await?;
    } else {
        digest.clone_into(&mut after.digest);
        after.updated_at = at;
        save(tx, repo, &before, &after, draw).await?;
    }
    Ok(PutTag { before: Some(before), after })
}

/// A tag that is not stored yet.
pub(super) fn new_row(repo: &Uidp, name: &str, digest: &str, at: Micros, draw: [u8; 32]) -> (Uidp, TagRow) {
    let uid = repo.child_from(std::array::from_fn(|i| draw[i]));
    let row = TagRow {
        uid: uid.as_str().into(),
        name: name.into(),
        digest: digest.into(),
        deprecated: false,
        bundles: Vec::new(),
        created_at: at,
        updated_at: at,
    };
    (uid, row)
}

pub(super) async fn insert(tx: &mut WriteTx, repo: &Uidp, uid: &Uidp, row: &TagRow, draw: [u8; 32]) -> Result<()> {
    let sql = "INSERT INTO tags (uid, parent, org, name, digest, deprecated, bundles, hidden, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING";
    let bundles = bundles_text(row)?;
    let params = [
        Value::from(&row.uid),
        Value::from(repo.as_str()),
        Value::from(repo.root_str()),
        Value::from(&row.name),
        Value::from(&row.digest),
        Value::Bool(row.deprecated),
        Value::from(&bundles),
        Value::Int(Hidden::of(&row.name) as i64),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Err(Error::already_exists(TAG, &row.name));
    }
    count(tx, uid, &row.name, 1).await?;
    components::note_tag(tx, repo, &row.name).await?;
    upstream_tags::forget(tx, repo, &row.name).await?;
    if row.digest.is_empty() {
        return Ok(());
    }
    record(tx, repo, &row.name, &row.digest, row.updated_at, draw).await
}

/// Counts a tag that came (1) or went (-1).
async fn count(tx: &mut WriteTx, uid: &Uidp, name: &str, delta: i64) -> Result<()> {
    if Hidden::of(name) == Hidden::No {
        list::count(tx, &SHOWN, uid, delta).await?;
    }
    list::count(tx, &TABLE, uid, delta).await
}

/// Writes a changed tag. A new name or digest is recorded in the history, the first push included; other fields are
/// not. An immutable tag may get its first digest, but no other.
pub(super) async fn save(tx: &mut WriteTx, repo: &Uidp, before: &TagRow, after: &TagRow, draw: [u8; 32]) -> Result<()> {
    let is_moved = (&before.name, &before.digest) != (&after.name, &after.digest);
    if is_moved && !before.digest.is_empty() {
        limits::require_movable(tx, repo, &before.name).await?;
    }
    let sql = "UPDATE tags SET name = $2, digest = $3, deprecated = $4, bundles = $5, hidden = $6, updated_at = $7
               WHERE uid = $1";
    let bundles = bundles_text(after)?;
    let params = [
        Value::from(&after.uid),
        Value::from(&after.name),
        Value::from(&after.digest),
        Value::Bool(after.deprecated),
        Value::from(&bundles),
        Value::Int(Hidden::of(&after.name) as i64),
        Value::Int(after.updated_at),
    ];
    tx.execute(sql, &params).await?;
    if is_moved {
        components::note_tag(tx, repo, &before.name).await?;
        components::note_tag(tx, repo, &after.name).await?;
        upstream_tags::forget(tx, repo, &before.name).await?;
        upstream_tags::forget(tx, repo, &after.name).await?;
    }
    if before.name != after.name {
        let uid = uid_of(after)?;
        count(tx, &uid, &before.name, -1).await?;
        count(tx, &uid, &after.name, 1).await?;
        record(tx, repo, &before.name, "", after.updated_at, draw).await?;
    }
    if is_moved && !after.digest.is_empty() {
        record(tx, repo, &after.name, &after.digest, after.updated_at, draw).await?;
    }
    Ok(())
}

/// Removes a tag; what it was, absent if there is none.
///
/// # Errors
/// FAILED_PRECONDITION for an immutable one.
pub(crate) async fn delete_tag(
    tx: &mut WriteTx,
    repo: &Uidp,
    name: &str,
    at: Micros,
    draw: [u8; 32],
) -> Result<Option<TagRow>> {
    let Some(row) = find_by_name(tx, repo, name).await? else { return Ok(None) };
    limits::require_movable(tx, repo, name).await?;
    remove(tx, repo, &row, at, draw).await?;
    Ok(Some(row))
}

/// Removes all tags of a repository that is being deleted, immutable ones too, and returns them. Their
/// history stays.
pub(crate) async fn delete_tags_of_repo(
    tx: &mut WriteTx,
    repo: &Uidp,
    at: Micros,
    draw: [u8; 32],
) -> Result<Vec<TagRow>> {
    let sql = format!("SELECT {COLUMNS} FROM tags WHERE parent = $1 ORDER BY uid");
    let rows = tx.query(&sql, &[Value::from(repo.as_str())], TagRow::read).await?;
    for row in &rows {
        remove(tx, repo, row, at, draw).await?;
    }
    Ok(rows)
}

async fn remove(tx: &mut WriteTx, repo: &Uidp, row: &TagRow, at: Micros, draw: [u8; 32]) -> Result<()> {
    tx.execute("DELETE FROM tags WHERE uid = $1", &[Value::from(&row.uid)]).await?;
    count(tx, &uid_of(row)?, &row.name, -1).await?;
    components::note_tag(tx, repo, &row.name).await?;
    upstream_tags::forget(tx, repo, &row.name).await?;
    record(tx, repo, &row.name, "", at, draw).await
}

/// Adds to the history that the tag is at this digest from now on, or nowhere.
async fn record(tx: &mut WriteTx, repo: &Uidp, name: &str, digest: &str, at: Micros, draw: [u8; 32]) -> Result<()> {
    let sql = "INSERT INTO tag_history (repo, name, at, id, digest) VALUES ($1, $2, $3, $4, $5)";
    let id = hex(&draw[16..]);
    let params = [Value::from(repo.as_str()), Value::from(name), Value::Int(at), Value::from(&id), Value::from(digest)];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Maximum number of moves of one response.
const MAX_MOVES: i64 = 1000;

/// Moves of a tag in a period, the oldest first; removals are not moves. If there are too many, the oldest
/// are returned if the period has a beginning, so that a caller can continue from there, else the newest.
pub(crate) async fn moves(
    tx: &mut ReadTx,
    repo: &Uidp,
    name: &str,
    (start, end): (Option<Micros>, Option<Micros>),
) -> Result<Vec<(Micros, String)>> {
    let order = if start.is_some() { "at, id" } else { "at DESC, id DESC" };
    let sql = format!(
        "SELECT at, digest FROM tag_history
         WHERE repo = $1 AND name = $2 AND at >= $3 AND at <= $4 AND digest <> '' ORDER BY {order} LIMIT $5"
    );
    let params = [
        Value::from(repo.as_str()),
        Value::from(name),
        Value::Int(start.unwrap_or(i64::MIN)),
        Value::Int(end.unwrap_or(i64::MAX)),
        Value::Int(MAX_MOVES),
    ];
    let mut moves = tx.query(&sql, &params, |row| Ok::<_, Error>((row.int(0)?, row.text(1)?))).await?;
    if start.is_none() {
        moves.reverse();
    }
    Ok(moves)
}

pub(super) fn uid_of(row: &TagRow) -> Result<Uidp> {
    Uidp::parse(&row.uid).map_err(|_| Error::internal(format!("tags holds the damaged uid {}", row.uid)))
}

fn bundles_text(row: &TagRow) -> Result<String> {
    serde_json::to_string(&row.bundles).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::Hidden;

    #[test]
    fn what_lists_hide_is_seen_by_the_name() {
        let digest = "0123456789abcdef".repeat(4);
        for (name, hidden) in [
            ("latest", Hidden::No),
            ("1.2.3", Hidden::No),
            (&format!("sha256-{digest}"), Hidden::Referrer),
            (&format!("sha256-{digest}.sig"), Hidden::Referrer),
            (&format!("sha256-{}", &digest[1..]), Hidden::No),
            (&format!("sha256-{}", digest.to_uppercase()), Hidden::No),
            ("latest-20240229", Hidden::Dated),
            ("latest-19991231", Hidden::No),
            ("20240229", Hidden::No),
            ("1.2.3-r0", Hidden::Epoch),
            ("1.2.3-r12-20240229", Hidden::Dated),
            ("1.2.3-r", Hidden::No),
            ("1.2.3-rc1", Hidden::No),
            ("r1", Hidden::No),
        ] {
            assert_eq!(Hidden::of(name), hidden, "{name}");
        }
    }
}
