//! What was removed after a backup, by the audit log of a database that survived; a restore leaves the grants out.

use bowline_core::{Error, Micros, Uidp, hex};
use bowline_identity::{ACCESS_KINDS, GRANT_KINDS, remove_grant};
use bowline_pipeline::{Actor, OPERATOR, record_audit};
use bowline_store::{Db, Row, Value, WriteTx, end_filling};

use crate::error::StartError;

/// Rows that are read at once.
const PAGE: i64 = 500;
/// A signing key is not deleted when it is revoked.
const REVOKED: &str = "bowline keys revoke";

/// A row of an audit log that says that something was taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    pub(crate) kind: String,
    pub(crate) uid: String,
    pub(crate) actor: String,
    pub(crate) at: Micros,
}

impl Removal {
    /// Whether a restore leaves it out.
    pub(crate) fn is_grant(&self) -> bool {
        GRANT_KINDS.contains(&self.kind.as_str())
    }

    fn is_access(&self, method: &str) -> bool {
        self.is_grant() || ACCESS_KINDS.contains(&self.kind.as_str()) || method == REVOKED
    }
}

/// What the audit log of `survivor` says was removed since the backup that `restored` was filled with.
///
/// # Errors
/// The log does not continue where that of the backup ends, or a database refuses.
pub(crate) async fn removed_since(restored: &Db, survivor: &Db) -> Result<Vec<Removal>, StartError> {
    let (newest, hash) = head(restored).await?;
    if newest > 0 && hash_at(survivor, newest).await? != hash {
        return Err(StartError::Unusable {
            cause: format!("the audit log of --audit-from does not have the row {newest} of the backup"),
            hint: "name the database that the backup was made of, or restore without --audit-from".into(),
        });
    }
    let (mut removals, mut after) = (Vec::new(), 0);
    loop {
        let page = page(survivor, newest, after).await?;
        let Some((last, ..)) = page.last() else { return Ok(removals) };
        after = *last;
        removals
            .extend(page.into_iter().filter_map(|(_, method, removal)| removal.is_access(&method).then_some(removal)));
    }
}

async fn head(db: &Db) -> Result<(i64, Option<Vec<u8>>), StartError> {
    let read = db.read(|tx| {
        Box::pin(async move {
            let sql = "SELECT seq, hash FROM audit WHERE seq IS NOT NULL ORDER BY seq DESC LIMIT 1";
            tx.query_opt(sql, &[], |row| Ok::<_, Error>((row.int(0)?, row.opt_bytes(1)?))).await
        })
    });
    Ok(read.await?.unwrap_or((0, None)))
}

async fn hash_at(db: &Db, seq: i64) -> Result<Option<Vec<u8>>, StartError> {
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT hash FROM audit WHERE seq = $1";
            tx.query_opt(sql, &[Value::Int(seq)], |row| row.opt_bytes(0).map_err(Error::from)).await
        })
    });
    Ok(read.await?.flatten())
}

/// Rows after the id, each with its method, of those that the backup does not have.
async fn page(db: &Db, newest: i64, after: i64) -> Result<Vec<(i64, String, Removal)>, StartError> {
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT id, method, kind, resource, actor, at FROM audit
                       WHERE id > $1 AND (seq IS NULL OR seq > $2)
                         AND (before_type IS NOT NULL AND after_type IS NULL OR method = $3)
                       ORDER BY id LIMIT $4";
            let params = [Value::Int(after), Value::Int(newest), Value::Text(REVOKED), Value::Int(PAGE)];
            tx.query(sql, &params, removal).await
        })
    });
    Ok(read.await?)
}

fn removal(row: &Row<'_>) -> Result<(i64, String, Removal), Error> {
    let removal = Removal { kind: row.text(2)?, uid: row.text(3)?, actor: row.text(4)?, at: row.int(5)? };
    Ok((row.int(0)?, row.text(1)?, removal))
}

/// Ends a restore in one transaction: removes those grants, and the mark that stops servers from opening the database.
/// Returns how many grants it had.
///
/// # Errors
/// The database refuses.
pub(crate) async fn end_without(db: &Db, removals: &[Removal], now: Micros) -> Result<u64, StartError> {
    let grants: Vec<Removal> = removals.iter().filter(|removal| removal.is_grant()).cloned().collect();
    let id: String = hex(&bowline_authn::crypto::random_bytes::<16>());
    let db = db.from_reserve();
    let ended = db.write(move |tx| {
        let (grants, id) = (grants.clone(), id.clone());
        Box::pin(async move {
            end_filling(tx).await?;
            let mut removed = 0;
            for grant in &grants {
                removed += remove(tx, grant, &id, now).await?;
            }
            Ok::<_, Error>(removed)
        })
    });
    Ok(ended.await?)
}

async fn remove(tx: &mut WriteTx, grant: &Removal, id: &str, now: Micros) -> Result<u64, Error> {
    let actor = Actor { subject: OPERATOR, request_id: id, method: "bowline restore" };
    let uid = Uidp::parse(&grant.uid).map_err(Error::internal)?;
    let changes = remove_grant(tx, &grant.kind, &uid).await?;
    for change in &changes {
        record_audit(tx, now, &actor, change).await?;
    }
    Ok(changes.len() as u64)
}
