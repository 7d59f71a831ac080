//! What a group has of the advisories of a batch.

use std::collections::BTreeSet;

use bowline_contract::v1::vulnerabilities as v1;
use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Value, placeholders};

use super::super::events;
use super::super::rows::{self, LOADED_AT_ONCE, folded};
use super::plan::{Entry, names};

/// The advisories in use of the group that may be those of the batch, with all their events.
pub(super) async fn entries(tx: &mut ReadTx, group: &Uidp, given: &[v1::Advisory]) -> Result<Vec<Entry>> {
    let artifacts: BTreeSet<&str> = given.iter().map(|advisory| advisory.artifact_name.as_str()).collect();
    let artifacts: Vec<&str> = artifacts.into_iter().collect();
    let names: BTreeSet<String> = given.iter().flat_map(names).collect();
    let names: Vec<String> = names.into_iter().collect();
    let mut uids: BTreeSet<String> = BTreeSet::new();
    for names in names.chunks(LOADED_AT_ONCE) {
        uids.extend(named(tx, group, &artifacts, names).await?);
    }
    let uids: Vec<String> = uids.into_iter().collect();
    let rows = rows::load(tx, &uids).await?;
    let uids: Vec<&str> = rows.iter().map(|row| row.uid.as_str()).collect();
    let mut events = events::load(tx, &uids).await?;
    let entry = |row: rows::AdvisoryRow| {
        let events = events.remove(row.uid.as_str()).unwrap_or_default();
        let kinds = events.into_iter().filter_map(|event| Some((event.body.r#type?, event.at)));
        Entry::of(row, kinds.collect())
    };
    Ok(rows.into_iter().map(entry).collect())
}

/// UIDPs of the group's advisories about these artifacts that go by one of these names.
async fn named(tx: &mut ReadTx, group: &Uidp, artifacts: &[&str], names: &[String]) -> Result<Vec<String>> {
    let below = bowline_core::UidRange::below(group.as_str());
    let folded: Vec<String> = names.iter().map(|name| folded(name)).collect();
    let mut params = vec![
        Value::from(group.as_str()),
        Value::from(&below.lower),
        Value::from(&below.upper),
        Value::from(group.root_str()),
    ];
    let (first_alias, first_id) = (5, 5 + names.len());
    params.extend(folded.iter().map(Value::from));
    params.extend(names.iter().map(Value::from));
    params.extend(artifacts.iter().copied().map(Value::from));
    let sql = format!(
        "SELECT uid FROM advisories
         WHERE parent = $1 AND deleted_at IS NULL
           AND uid IN (SELECT advisory FROM advisory_aliases
                       WHERE advisory >= $2 AND advisory < $3 AND alias IN ({aliases})
                       UNION ALL
                       SELECT uid FROM advisories WHERE org = $4 AND advisory_id IN ({ids}))
           AND artifact_name IN ({artifacts})",
        aliases = placeholders(first_alias, names.len()),
        ids = placeholders(first_id, names.len()),
        artifacts = placeholders(first_id + names.len(), artifacts.len())
    );
    tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await
}

/// Which of the public ids of the batch the organization uses already.
pub(super) async fn taken(tx: &mut ReadTx, group: &Uidp, given: &[v1::Advisory]) -> Result<BTreeSet<String>> {
    let ids: BTreeSet<&str> = given.iter().map(|one| one.advisory_id.as_str()).filter(|id| !id.is_empty()).collect();
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut params = vec![Value::from(group.root_str())];
    params.extend(ids.iter().copied().map(Value::from));
    let sql = format!(
        "SELECT advisory_id FROM advisories WHERE org = $1 AND advisory_id IN ({})",
        placeholders(2, ids.len())
    );
    let found = tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    Ok(found.into_iter().collect())
}
