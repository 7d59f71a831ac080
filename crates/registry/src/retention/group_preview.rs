//! How much retention would remove from each repository of a group.

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Micros, Result, UidRange, Uidp};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest};
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Row, Value};
use prost::Message;

use super::{MAX_PREVIEWED, Plan, has_rules, stored_size};
use crate::{limits, paths};

/// Repositories on a page.
const AT_ONCE: usize = 20;
/// The one order of the list.
const ORDERS: &[&[&str]] = &[&["repo_uid"]];

pub(super) async fn preview(
    tx: &mut ReadTx,
    call: &Authorized<own::PreviewGroupRetentionRequest>,
) -> Result<own::PreviewGroupRetentionResponse> {
    let group = call.require_scope()?;
    require_group(tx, group).await?;
    let request = call.request();
    let rest = own::PreviewGroupRetentionRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, ORDERS, (0, Direction::Ascending))?;
    let after = page.cursor.as_ref().map_or("", |cursor| cursor.uid.as_str());
    let repos = repositories(tx, group, after, page.size.min(AT_ONCE)).await?;
    let tried = request.retention.as_ref().map(|retention| (group, retention));
    let mut repositories: Vec<own::RetentionSum> = Vec::new();
    let mut left = MAX_PREVIEWED;
    for (uid, name) in repos.shown {
        let repo = paths::stored(&uid)?;
        let size = stored_size(tx, &repo).await?;
        // The first one is read whatever it costs, so that each page has one; a repository that is too large costs nothing.
        let cost = if size > MAX_PREVIEWED { 0 } else { size };
        if cost > left && !repositories.is_empty() {
            break;
        }
        left -= cost;
        let sum = if size > MAX_PREVIEWED {
            own::RetentionSum { too_large: true, ..own::RetentionSum::default() }
        } else {
            sum_of(tx, &repo, tried, call.now()).await?
        };
        repositories.push(own::RetentionSum { repo_uid: uid, repo_name: name, ..sum });
    }
    let is_whole = repositories.len() == repos.read && !repos.more;
    let last = repositories.last().filter(|_| !is_whole);
    let next_page_token = last.map(|last| page.next_token(call, None, last.repo_uid.clone())).unwrap_or_default();
    Ok(own::PreviewGroupRetentionResponse { repositories, next_page_token })
}

/// Some repositories of a group.
struct Repositories {
    shown: Vec<(String, String)>,
    read: usize,
    /// Whether further repositories follow these.
    more: bool,
}

async fn repositories(tx: &mut ReadTx, group: &Uidp, after: &str, most: usize) -> Result<Repositories> {
    let range = UidRange::below(group.as_str());
    let sql = "SELECT uid, name FROM repos WHERE uid >= $1 AND uid < $2 AND uid > $3 ORDER BY uid LIMIT $4";
    let params =
        [Value::from(&range.lower), Value::from(&range.upper), Value::from(after), Value::Int(most as i64 + 1)];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let mut shown: Vec<(String, String)> = tx.query(sql, &params, read).await?;
    let more = shown.len() > most;
    shown.truncate(most);
    Ok(Repositories { read: shown.len(), shown, more })
}

/// The sum of one repository by the rules in force, with those that are tried in place of a group's.
async fn sum_of(
    tx: &mut ReadTx,
    repo: &Uidp,
    tried: Option<(&Uidp, &own::Retention)>,
    now: Micros,
) -> Result<own::RetentionSum> {
    let mut holding = limits::policies(tx, repo).await?;
    if let Some((group, retention)) = tried {
        let (uid, retention) = (group.as_str().to_owned(), Some(retention.clone()));
        if let Some(policy) = holding.iter_mut().find(|policy| policy.uid == uid) {
            policy.retention = retention;
        } else {
            // From the root down.
            let at = holding.partition_point(|policy| policy.uid < uid);
            holding.insert(at, own::RegistryPolicy { uid, retention, ..own::RegistryPolicy::default() });
        }
    }
    let from = holding.iter().rev().find(|policy| policy.retention.as_ref().is_some_and(has_rules));
    let retention_from = from.map(|policy| policy.uid.clone()).unwrap_or_default();
    let plan = Plan::by(tx, repo, &holding, None, now).await?;
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let removed = || plan.shown.iter().zip(&plan.marks).filter(|(_, mark)| **mark).map(|(manifest, _)| manifest);
    Ok(own::RetentionSum {
        retention_from,
        removed: number(removed().count()),
        removed_tags: number(removed().map(|manifest| manifest.tags.len()).sum()),
        removed_bytes: removed().fold(0, |sum, manifest| manifest.size.saturating_add(sum)),
        kept: number(plan.stored.len() - plan.doomed()),
        ..own::RetentionSum::default()
    })
}
