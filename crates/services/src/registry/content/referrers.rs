//! What refers to a manifest: signatures, attestations and the like.

use std::collections::BTreeMap;

use bowline_contract::bowline::registry::v1::rpc::content::ListReferrers;
use bowline_core::Error;
use bowline_store::{Row, Value};

use super::{Name, Registry, RegistryError, Visitor};

/// Referrers of one page.
const PAGE: i64 = 500;

/// A manifest that refers to another one.
#[derive(Clone, Debug)]
pub struct Referrer {
    /// Its digest.
    pub digest: String,
    /// Its media type.
    pub media_type: String,
    /// Its bytes.
    pub size: i64,
    /// What it is; empty where it does not say.
    pub artifact_type: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Referrers in the order of their digests.
#[derive(Clone, Debug)]
pub struct Referrers {
    /// One page of them.
    pub referrers: Vec<Referrer>,
    /// Whether more follow.
    pub has_more: bool,
}

impl Registry {
    /// What refers to this digest, whether or not that is there itself; only of one type if it is given.
    ///
    /// # Errors
    /// The visitor may not, or there is no such repository.
    pub async fn referrers(
        &self,
        visitor: &Visitor,
        name: &Name,
        digest: &str,
        artifact_type: Option<&str>,
        last: &str,
    ) -> Result<Referrers, RegistryError> {
        let (registry, visitor, name) = (self.clone(), visitor.clone(), name.clone());
        let (digest, artifact_type, last) = (digest.to_owned(), artifact_type.map(String::from), last.to_owned());
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    let repo = registry.readable::<ListReferrers>(tx, &visitor, &name).await?;
                    let mut params = vec![
                        Value::from(repo.as_str()),
                        Value::from(&digest),
                        Value::from(&last),
                        Value::Int(PAGE + 1),
                    ];
                    let mut filter = "";
                    if let Some(artifact_type) = &artifact_type {
                        params.push(Value::from(artifact_type));
                        filter = "AND r.artifact_type = $5";
                    }
                    let sql = format!(
                        "SELECT m.digest, m.media_type, length(m.content), r.artifact_type, m.annotations
                         FROM repo_manifests r JOIN manifests m ON m.digest = r.digest
                         WHERE r.repo = $1 AND r.subject = $2 AND r.digest > $3 AND r.subject <> '' {filter}
                         ORDER BY r.digest LIMIT $4"
                    );
                    let mut referrers = tx.query(&sql, &params, read).await?;
                    let has_more = referrers.len() as i64 > PAGE;
                    referrers.truncate(PAGE as usize);
                    Ok(Referrers { referrers, has_more })
                })
            })
            .await
    }
}

fn read(row: &Row<'_>) -> Result<Referrer, RegistryError> {
    let annotations = row.text(4)?;
    Ok(Referrer {
        digest: row.text(0)?,
        media_type: row.text(1)?,
        size: row.int(2)?,
        artifact_type: row.text(3)?,
        annotations: serde_json::from_str(&annotations).map_err(Error::internal)?,
    })
}
