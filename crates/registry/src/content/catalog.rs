//! All repositories that the client may list, by the names that they are pulled with.

use std::collections::HashMap;

use bowline_contract::bowline::registry::v1::rpc::content::ListCatalog;
use bowline_contract::v2::iam::rpc::groups_service::GetGroup;
use bowline_core::{CapabilitySet, Error, Uidp, just_after};
use bowline_pipeline::Grants;
use bowline_store::{ReadTx, Row, Value};

use super::lookup::unknown;
use super::{Name, Registry, RegistryClient, RegistryError};
use crate::paths::{self, is_part};

/// Repositories of one page at most.
const PAGE: u64 = 1000;

/// Repositories, in an order that stays the same.
#[derive(Clone, Debug)]
pub struct CatalogPage {
    pub repositories: Vec<String>,
    pub has_more: bool,
}

impl Registry {
    /// The repositories after `last` that the client may list, at most `wanted`.
    ///
    /// # Errors
    /// The client's identity is gone, or `last` is not one of its repositories.
    pub async fn catalog(
        &self,
        client: &RegistryClient,
        limit: Option<u64>,
        last: Option<&Name>,
    ) -> Result<CatalogPage, RegistryError> {
        let (registry, client, last) = (self.clone(), client.clone(), last.cloned());
        let limit = limit.unwrap_or(PAGE).min(PAGE) as usize;
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    let after = match &last {
                        None => String::new(),
                        Some(last) => just_after(registry.listed(tx, &client, last).await?.as_str()),
                    };
                    let mut rows = visible(tx, &client, &after, limit + 1).await?;
                    let has_more = rows.len() > limit;
                    rows.truncate(limit);
                    let mut groups = Groups::new(tx, &client).await?;
                    let mut repositories = Vec::with_capacity(rows.len());
                    for (uid, name) in rows {
                        repositories.push(groups.full_name(tx, &uid, &name).await?);
                    }
                    Ok(CatalogPage { repositories, has_more })
                })
            })
            .await
    }

    async fn listed(&self, tx: &mut ReadTx, client: &RegistryClient, name: &Name) -> Result<Uidp, RegistryError> {
        let repo = paths::resolve(tx, name).await?.and_then(|place| place.repo);
        let grants = client.visit.grants(tx).await?;
        match repo {
            Some(repo) if client.visit.allows::<ListCatalog>(&grants, repo.as_str())? => Ok(repo),
            _ => Err(unknown(name)),
        }
    }
}

async fn visible(
    tx: &mut ReadTx,
    client: &RegistryClient,
    after: &str,
    limit: usize,
) -> Result<Vec<(Uidp, String)>, RegistryError> {
    let grants = client.visit.grants(tx).await?;
    let mut rows: Vec<(Uidp, String)> = Vec::new();
    for range in grants.visible(&client.visit.needed::<ListCatalog>()?) {
        let lower = range.lower.as_str().max(after);
        if rows.len() >= limit || lower >= range.upper.as_str() {
            continue;
        }
        let sql = "SELECT uid, name FROM repos WHERE uid >= $1 AND uid < $2 ORDER BY uid LIMIT $3";
        let params = [Value::from(lower), Value::from(&range.upper), Value::Int((limit - rows.len()) as i64)];
        let found = tx.query(sql, &params, |row| Ok::<_, Error>((paths::stored(&row.text(0)?)?, row.text(1)?)));
        rows.extend(found.await?);
    }
    Ok(rows)
}

/// Parts of names that groups stand for.
struct Groups {
    parts: HashMap<String, String>,
    grants: Grants,
    /// What it takes to see the name of a group.
    needed: CapabilitySet,
}

impl Groups {
    async fn new(tx: &mut ReadTx, client: &RegistryClient) -> Result<Groups, RegistryError> {
        let (grants, needed) = (client.visit.grants(tx).await?, client.visit.needed::<GetGroup>()?);
        Ok(Groups { parts: HashMap::new(), grants, needed })
    }

    /// The name with which the repository is pulled: names where the protocol can spell them and the client may
    /// read them, UIDPs elsewhere.
    async fn full_name(&mut self, tx: &mut ReadTx, uid: &Uidp, name: &str) -> Result<String, RegistryError> {
        let mut above: Vec<&str> = uid.self_and_ancestors().skip(1).collect();
        above.reverse();
        let mut parts = Vec::with_capacity(above.len() + 1);
        for group in above {
            parts.push(self.part(tx, group).await?);
        }
        parts.push(part_of(uid.as_str(), Some(name)));
        Ok(parts.join("/"))
    }

    async fn part(&mut self, tx: &mut ReadTx, group: &str) -> Result<String, RegistryError> {
        if let Some(part) = self.parts.get(group) {
            return Ok(part.clone());
        }
        let sql = "SELECT name, verified, parent FROM groups WHERE uid = $1";
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.bool(1)?, row.text(2)?));
        let found = tx.query_opt(sql, &[Value::from(group)], read).await?;
        let named = found.filter(|(_, verified, parent)| *verified || !parent.is_empty());
        let name = named.map(|(name, _, _)| name).filter(|_| self.grants.allows(group, &self.needed));
        let part = part_of(group, name.as_deref());
        self.parts.insert(group.to_owned(), part.clone());
        Ok(part)
    }
}

fn part_of(uid: &str, name: Option<&str>) -> String {
    let last = uid.rsplit('/').next().unwrap_or(uid);
    name.filter(|name| is_part(name)).unwrap_or(last).to_owned()
}
