//! Advisories as they are stored.
//!
//! Whatever creates or changes an advisory goes through [`insert`], [`save`] and [`mark_deleted`], so that its aliases,
//! the words that free text is looked for in, and the counts are always right.

use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::SortKey;
use bowline_resources::kinds::ADVISORY;
use bowline_resources::list::{self, BY_CREATED, BY_UID, Listed, Order, Table};
use bowline_store::{ReadTx, Row, Value, WriteTx, placeholders};

use super::{publication, waiting};

const COLUMNS: &str =
    "uid, advisory_id, legacy_id, artifact_name, artifact_type, artifact_architecture, component_name,
    component_location, component_type, aliases, author, latest_event_type, latest_judgement_type, event_count,
    event_bytes, created_at, updated_at, deleted_at";
const BY_UPDATED: Order =
    Order { names: &["update_time", "updated_at", "updateTime", "updatedAt"], column: "updated_at" };
const BY_ALIASES: Order = Order { names: &["aliases"], column: "first_alias" };
const BY_DELETED: Order =
    Order { names: &["delete_time", "deleted_at", "deleteTime", "deletedAt"], column: "deleted_at" };
/// The last one leads to [`DELETED`].
const ORDERS: &[Order] = &[BY_UID, BY_CREATED, BY_UPDATED, BY_ALIASES, BY_DELETED];

/// All advisories: what those that are named by an id are looked for in.
pub(super) const ALL: Table = Table { name: "advisories", columns: COLUMNS, orders: ORDERS };
/// Those that are in use.
pub(super) const SHOWN: Table = Table { name: "shown_advisories", columns: COLUMNS, orders: ORDERS };
/// Those that are marked as deleted.
pub(super) const DELETED: Table = Table { name: "deleted_advisories", columns: COLUMNS, orders: ORDERS };

/// What an advisory is about, besides the vulnerability. A missing component is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) artifact_name: String,
    pub(crate) artifact_type: String,
    pub(crate) artifact_architecture: String,
    pub(crate) component_name: String,
    pub(crate) component_location: String,
    pub(crate) component_type: String,
}

/// An advisory as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdvisoryRow {
    pub(crate) uid: Uidp,
    pub(crate) advisory_id: String,
    /// Empty where it had none.
    pub(crate) legacy_id: String,
    pub(crate) subject: Subject,
    pub(crate) aliases: Vec<String>,
    pub(crate) author: String,
    /// Numbers of v1's `EventTypeFilter`; 0 while no event is approved.
    pub(crate) latest_event_type: i32,
    pub(crate) latest_statement_type: i32,
    pub(crate) event_count: i64,
    pub(crate) event_bytes: i64,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
    pub(crate) deleted_at: Option<Micros>,
}

impl Listed for AdvisoryRow {
    fn read(row: &Row<'_>) -> Result<AdvisoryRow> {
        Ok(AdvisoryRow {
            uid: list::stored_uid(row, &ALL)?,
            advisory_id: row.text(1)?,
            legacy_id: row.text(2)?,
            subject: Subject {
                artifact_name: row.text(3)?,
                artifact_type: row.text(4)?,
                artifact_architecture: row.text(5)?,
                component_name: row.text(6)?,
                component_location: row.text(7)?,
                component_type: row.text(8)?,
            },
            aliases: serde_json::from_str(&row.text(9)?).map_err(Error::internal)?,
            author: row.text(10)?,
            latest_event_type: row.int(11)? as i32,
            latest_statement_type: row.int(12)? as i32,
            event_count: row.int(13)?,
            event_bytes: row.int(14)?,
            created_at: row.int(15)?,
            updated_at: row.int(16)?,
            deleted_at: row.opt_int(17)?,
        })
    }

    fn uid(&self) -> &str {
        self.uid.as_str()
    }

    fn sort_key(&self, column: &str) -> SortKey {
        match column {
            "first_alias" => SortKey::Text(self.first_alias()),
            "updated_at" => SortKey::Int(self.updated_at),
            "deleted_at" => SortKey::Int(self.deleted_at.unwrap_or_default()),
            _ => SortKey::Int(self.created_at),
        }
    }
}

impl AdvisoryRow {
    fn first_alias(&self) -> String {
        self.aliases.first().map(|alias| folded(alias)).unwrap_or_default()
    }

    /// What free text is looked for in: a line each, so that no match spans two of them.
    fn words(&self) -> String {
        let subject = &self.subject;
        let mut words = format!("{}\n{}", subject.artifact_name, subject.component_name);
        for alias in &self.aliases {
            words.push('\n');
            words += alias;
        }
        words.to_lowercase()
    }
}

/// An alias as it is compared: without regard to letter case.
pub(crate) fn folded(alias: &str) -> String {
    alias.to_uppercase()
}

/// The advisory of this UIDP, also one that is marked as deleted.
pub(crate) async fn find(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<AdvisoryRow>> {
    let sql = format!("SELECT {COLUMNS} FROM advisories WHERE uid = $1");
    tx.query_opt(&sql, &[Value::from(uid.as_str())], AdvisoryRow::read).await
}

/// The advisory of this UIDP, also one that is marked as deleted.
///
/// # Errors
/// NOT_FOUND.
pub(crate) async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<AdvisoryRow> {
    find(tx, uid).await?.ok_or_else(|| Error::not_found(ADVISORY, uid.as_str()))
}

/// The advisories of these UIDPs, in the order of their UIDPs.
pub(crate) async fn load(tx: &mut ReadTx, uids: &[String]) -> Result<Vec<AdvisoryRow>> {
    let mut rows = Vec::with_capacity(uids.len());
    for uids in uids.chunks(LOADED_AT_ONCE) {
        let params: Vec<Value<'_>> = uids.iter().map(Value::from).collect();
        let sql =
            format!("SELECT {COLUMNS} FROM advisories WHERE uid IN ({}) ORDER BY uid", placeholders(1, params.len()));
        rows.extend(tx.query(&sql, &params, AdvisoryRow::read).await?);
    }
    Ok(rows)
}

/// Rows that one statement names.
pub(super) const LOADED_AT_ONCE: usize = 200;

/// The advisory in use of a group that is about this artifact, component and vulnerability, if there is one `besides`.
pub(crate) async fn find_same(
    tx: &mut ReadTx,
    group: &Uidp,
    subject: &Subject,
    aliases: &[String],
    besides: Option<&Uidp>,
) -> Result<Option<AdvisoryRow>> {
    if aliases.is_empty() {
        return Ok(None);
    }
    let below = bowline_core::UidRange::below(group.as_str());
    let folded: Vec<String> = aliases.iter().map(|alias| folded(alias)).collect();
    let mut params = vec![
        Value::from(group.as_str()),
        Value::from(&subject.artifact_name),
        Value::from(&subject.artifact_type),
        Value::from(&subject.artifact_architecture),
        Value::from(&subject.component_name),
        Value::from(&subject.component_location),
        Value::from(&subject.component_type),
        Value::from(&below.lower),
        Value::from(&below.upper),
        Value::from(besides.map_or("", Uidp::as_str)),
    ];
    let first = params.len() + 1;
    params.extend(folded.iter().map(Value::from));
    let sql = format!(
        "SELECT {COLUMNS} FROM advisories
         WHERE parent = $1 AND artifact_name = $2 AND artifact_type = $3 AND artifact_architecture = $4
           AND component_name = $5 AND component_location = $6 AND component_type = $7 AND deleted_at IS NULL
           AND uid IN (SELECT advisory FROM advisory_aliases
                       WHERE advisory >= $8 AND advisory < $9 AND advisory <> $10 AND alias IN ({}))
         ORDER BY uid LIMIT 1",
        placeholders(first, aliases.len())
    );
    tx.query_opt(&sql, &params, AdvisoryRow::read).await
}

/// Stores a new advisory.
///
/// # Errors
/// ALREADY_EXISTS if the organization has an advisory with its public identifier.
pub(crate) async fn insert(tx: &mut WriteTx, row: &AdvisoryRow) -> Result<()> {
    let aliases = serde_json::to_string(&row.aliases).map_err(Error::internal)?;
    let first_alias = row.first_alias();
    let sql = "INSERT INTO advisories (uid, parent, org, advisory_id, legacy_id, artifact_name, artifact_type,
                 artifact_architecture, component_name, component_location, component_type, aliases, first_alias,
                 author, latest_event_type, latest_judgement_type, event_count, event_bytes, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, 0, 0, 0, $15, $16)
               ON CONFLICT DO NOTHING";
    let subject = &row.subject;
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(row.uid.root_str()),
        Value::from(&row.advisory_id),
        Value::from(&row.legacy_id),
        Value::from(&subject.artifact_name),
        Value::from(&subject.artifact_type),
        Value::from(&subject.artifact_architecture),
        Value::from(&subject.component_name),
        Value::from(&subject.component_location),
        Value::from(&subject.component_type),
        Value::from(&aliases),
        Value::from(&first_alias),
        Value::from(&row.author),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Err(Error::already_exists(ADVISORY, &row.advisory_id));
    }
    insert_aliases(tx, row).await?;
    let words = row.words();
    let sql = "INSERT INTO advisory_words (advisory, words) VALUES ($1, $2)";
    tx.execute(sql, &[Value::from(row.uid.as_str()), Value::from(&words)]).await?;
    list::count(tx, &ALL, &row.uid, 1).await?;
    list::count(tx, &SHOWN, &row.uid, 1).await?;
    publication::note(tx, row.uid.parent_str()).await
}

/// Stores what an update changed: whatever a caller says of an advisory.
pub(crate) async fn save(tx: &mut WriteTx, before: &AdvisoryRow, after: &AdvisoryRow) -> Result<()> {
    let aliases = serde_json::to_string(&after.aliases).map_err(Error::internal)?;
    let first_alias = after.first_alias();
    let sql =
        "UPDATE advisories SET legacy_id = $1, artifact_name = $2, artifact_type = $3, artifact_architecture = $4,
                 component_name = $5, component_location = $6, component_type = $7, aliases = $8, first_alias = $9,
                 updated_at = $10
               WHERE uid = $11";
    let subject = &after.subject;
    let params = [
        Value::from(&after.legacy_id),
        Value::from(&subject.artifact_name),
        Value::from(&subject.artifact_type),
        Value::from(&subject.artifact_architecture),
        Value::from(&subject.component_name),
        Value::from(&subject.component_location),
        Value::from(&subject.component_type),
        Value::from(&aliases),
        Value::from(&first_alias),
        Value::Int(after.updated_at),
        Value::from(after.uid.as_str()),
    ];
    tx.execute(sql, &params).await?;
    if before.aliases != after.aliases {
        delete_aliases(tx, before).await?;
        insert_aliases(tx, after).await?;
    }
    let words = after.words();
    if before.words() != words {
        let sql = "UPDATE advisory_words SET words = $1 WHERE advisory = $2";
        tx.execute(sql, &[Value::from(&words), Value::from(after.uid.as_str())]).await?;
    }
    waiting::note(tx, &after.uid, before.aliases.iter().chain(&after.aliases)).await?;
    publication::note(tx, after.uid.parent_str()).await
}

/// Marks an advisory as deleted: lists leave it out from then on.
pub(crate) async fn mark_deleted(tx: &mut WriteTx, row: &AdvisoryRow, at: Micros) -> Result<()> {
    let sql = "UPDATE advisories SET deleted_at = $1, updated_at = $1 WHERE uid = $2";
    tx.execute(sql, &[Value::Int(at), Value::from(row.uid.as_str())]).await?;
    list::count(tx, &SHOWN, &row.uid, -1).await?;
    list::count(tx, &DELETED, &row.uid, 1).await?;
    waiting::note(tx, &row.uid, &row.aliases).await?;
    publication::note(tx, row.uid.parent_str()).await
}

async fn insert_aliases(tx: &mut WriteTx, row: &AdvisoryRow) -> Result<()> {
    if row.aliases.is_empty() {
        return Ok(());
    }
    let folded: Vec<String> = row.aliases.iter().map(|alias| folded(alias)).collect();
    let mut params = vec![Value::from(row.uid.as_str())];
    params.extend(folded.iter().map(Value::from));
    // SQLite numbers parameters as they first appear: the advisory comes first.
    let values: Vec<String> = (2..=params.len()).map(|n| format!("($1, ${n})")).collect();
    let sql =
        format!("INSERT INTO advisory_aliases (advisory, alias) VALUES {} ON CONFLICT DO NOTHING", values.join(", "));
    tx.execute(&sql, &params).await?;
    Ok(())
}

pub(super) async fn delete_aliases(tx: &mut WriteTx, row: &AdvisoryRow) -> Result<()> {
    if row.aliases.is_empty() {
        return Ok(());
    }
    let folded: Vec<String> = row.aliases.iter().map(|alias| folded(alias)).collect();
    let mut params = vec![Value::from(row.uid.as_str())];
    params.extend(folded.iter().map(Value::from));
    let sql = format!(
        "DELETE FROM advisory_aliases WHERE advisory = $1 AND alias IN ({})",
        placeholders(2, row.aliases.len())
    );
    tx.execute(&sql, &params).await?;
    Ok(())
}
