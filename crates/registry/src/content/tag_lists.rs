//! Tags of a repository in order, and how one moved.

use bowline_contract::bowline::registry::v1::rpc::content::ListTags;
use bowline_core::{Error, Micros};
use bowline_store::Value;

use super::{Name, Registry, RegistryClient, RegistryError};
use crate::tags;

/// Tags of one page at most.
const PAGE: i64 = 10_000;

#[derive(Clone, Debug)]
pub struct TagPage {
    pub tags: Vec<String>,
    pub has_more: bool,
}

/// One move of a tag.
#[derive(Clone, Debug)]
pub struct Moved {
    pub at: Micros,
    pub digest: String,
}

impl Registry {
    /// The tags after `last`, at most `wanted`.
    ///
    /// # Errors
    /// The client may not, or there is no such repository.
    pub async fn tags(
        &self,
        client: &RegistryClient,
        name: &Name,
        limit: Option<u64>,
        last: &str,
    ) -> Result<TagPage, RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let last = last.to_owned();
        let limit = limit.map_or(PAGE, |limit| PAGE.min(i64::try_from(limit).unwrap_or(PAGE)));
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    let repo = registry.readable::<ListTags>(tx, &client, &name).await?;
                    let sql =
                        "SELECT name FROM tags WHERE parent = $1 AND name > $2 AND digest <> '' ORDER BY name LIMIT $3";
                    let params = [Value::from(repo.as_str()), Value::from(&last), Value::Int(limit + 1)];
                    let mut tags = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
                    let has_more = tags.len() as i64 > limit;
                    tags.truncate(limit as usize);
                    Ok(TagPage { tags, has_more })
                })
            })
            .await
    }

    /// History of a tag, the oldest move first; between two times if they are given. It has no more moves
    /// than `tags::moves` returns.
    ///
    /// # Errors
    /// The client may not, or there is no such repository.
    pub async fn tag_history(
        &self,
        client: &RegistryClient,
        name: &Name,
        tag: &str,
        start: Option<Micros>,
        end: Option<Micros>,
    ) -> Result<Vec<Moved>, RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let tag = tag.to_owned();
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    let repo = registry.readable::<ListTags>(tx, &client, &name).await?;
                    let moves = tags::moves(tx, &repo, &tag, (start, end)).await?;
                    Ok(moves.into_iter().map(|(at, digest)| Moved { at, digest }).collect())
                })
            })
            .await
    }
}
