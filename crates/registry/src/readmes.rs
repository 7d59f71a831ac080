//! Read-mes of repositories: a resource of its own in v2, a field in the first.

use std::collections::HashMap;

use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::repos_service::{GetRepoReadme, UpdateRepoReadme};
use bowline_core::{Error, Reason, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, ResourceSnapshot, handler};
use bowline_resources::kinds::REPO;
use bowline_resources::list;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use super::repos::{self, RepoRow};
use super::{readme_html, shapes};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<GetRepoReadme>(handler!(get)).write::<UpdateRepoReadme>(handler!(update_v2))
}

/// A read-me after a write, and what the write changed.
pub(super) struct Written {
    pub(super) content: String,
    pub(super) change: Option<Change>,
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetRepoReadmeRequest>) -> Result<v2::RepoReadme> {
    let uid = call.require_scope()?;
    let sql = "SELECT m.content FROM repos r LEFT JOIN repo_readmes m ON m.repo = r.uid WHERE r.uid = $1";
    let found = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.opt_text(0).map_err(Error::from)).await?;
    let content = found.ok_or_else(|| Error::not_found(REPO, uid.as_str()))?.unwrap_or_default();
    Ok(readme(uid, content))
}

async fn update_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::UpdateRepoReadmeRequest>,
) -> Result<Changed<v2::RepoReadme>> {
    let uid = call.require_scope()?;
    let repo = repos::require(tx, uid).await?;
    let stored = find(tx, uid).await?;
    let given = call.request().repo_readme.clone().unwrap_or_default().content;
    let wanted = if call.mask().covers("content") { given } else { stored.clone() };
    let written = write(tx, uid, stored, wanted, "content").await?;
    let event = shapes::to_v1(repo, written.content.clone());
    let response = readme(uid, written.content);
    match written.change {
        None => Ok(Changed::nothing(response)),
        Some(change) => Ok(Changed::many(vec![change], response).with_event(uid, &event)),
    }
}

/// Writes what a call of v1 says of the read-me. What such a call leaves out it clears,
/// but callers who may not write read-mes must be able to change the rest of a repository.
pub(super) async fn write_v1<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    uid: &Uidp,
    stored: String,
    wanted: Option<String>,
) -> Result<Written> {
    let Some(wanted) = wanted.filter(|wanted| *wanted != stored) else {
        return Ok(Written { content: stored, change: None });
    };
    if wanted.is_empty() && !call.holds(uid.as_str(), Capability::CapRepoInternalAdmin) {
        return Ok(Written { content: stored, change: None });
    }
    call.require_all(uid.as_str(), &list::capability(call, Capability::CapRepoInternalAdmin))?;
    write(tx, uid, stored, wanted, "readme").await
}

/// Stores a read-me; `field` is what the caller knows it as.
async fn write(tx: &mut WriteTx, uid: &Uidp, stored: String, wanted: String, field: &str) -> Result<Written> {
    if wanted == stored {
        return Ok(Written { content: stored, change: None });
    }
    if !readme_html::is_safe(&wanted) {
        return Err(Error::invalid_field(field, "readme contained unsafe html content"));
    }
    if wanted.is_empty() {
        delete(tx, uid).await?;
    } else {
        let sql = "INSERT INTO repo_readmes (repo, content) VALUES ($1, $2)
                   ON CONFLICT (repo) DO UPDATE SET content = excluded.content";
        tx.execute(sql, &[Value::from(uid.as_str()), Value::from(&wanted)]).await?;
    }
    let snapshot = |content: String| (!content.is_empty()).then(|| ResourceSnapshot::of(&readme(uid, content)));
    let (before, after) = (snapshot(stored), snapshot(wanted.clone()));
    let change = Change { kind: REPO, uid: uid.as_str().into(), before, after };
    Ok(Written { content: wanted, change: Some(change) })
}

pub(super) async fn delete(tx: &mut WriteTx, uid: &Uidp) -> Result<()> {
    tx.execute("DELETE FROM repo_readmes WHERE repo = $1", &[Value::from(uid.as_str())]).await?;
    Ok(())
}

/// The read-me of a repository, empty where there is none.
pub(super) async fn find(tx: &mut ReadTx, uid: &Uidp) -> Result<String> {
    let sql = "SELECT content FROM repo_readmes WHERE repo = $1";
    let found = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.text(0).map_err(Error::from)).await?;
    Ok(found.unwrap_or_default())
}

/// Repositories whose read-mes are read at a time.
const CHUNK: usize = 200;
/// Bytes that the read-mes of a whole list may have.
const WHOLE_LIST_BYTES: usize = 100 << 20;

/// The read-mes of these repositories, by UIDP.
pub(super) async fn of_all(tx: &mut ReadTx, rows: &[RepoRow]) -> Result<HashMap<String, String>> {
    let pair = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let mut contents = HashMap::new();
    let mut bytes = 0;
    for chunk in rows.chunks(CHUNK) {
        let placeholders: Vec<String> = (1..=chunk.len()).map(|n| format!("${n}")).collect();
        let sql = format!("SELECT repo, content FROM repo_readmes WHERE repo IN ({})", placeholders.join(", "));
        let uids: Vec<Value<'_>> = chunk.iter().map(|row| Value::from(&row.uid)).collect();
        for (uid, content) in tx.query(&sql, &uids, pair).await? {
            bytes += content.len();
            contents.insert(uid, content);
        }
        if bytes > WHOLE_LIST_BYTES {
            return Err(Error::new(
                Reason::RequestTooLarge,
                "The whole list is larger than 100 MB: narrow it with a filter, or page through the second version of this method",
            ));
        }
    }
    Ok(contents)
}

fn readme(uid: &Uidp, content: String) -> v2::RepoReadme {
    v2::RepoReadme { uid: uid.as_str().into(), content }
}
