//! What refers to a manifest: signatures, attestations and the like.

use std::collections::{BTreeMap, HashMap};

use bowline_contract::bowline::registry::v1::rpc::content::ListReferrers;
use bowline_core::{Error, Uidp};
use bowline_store::{ReadTx, Row, Value};

use super::{Name, RefusalCode, Registry, RegistryClient, RegistryError};

/// Referrers of one page.
const PAGE: i64 = 500;
/// Maximum bytes of annotations of one page. A referrer with more on its own is listed without them.
const MAX_BYTES: i64 = 4 << 20;

/// A manifest that refers to another one.
#[derive(Clone, Debug)]
pub struct Referrer {
    pub digest: String,
    pub media_type: String,
    /// Size of the manifest in bytes.
    pub size: i64,
    /// What it is; empty where it does not say.
    pub artifact_type: String,
    /// Its annotations; left out where they are larger than a page.
    pub annotations: BTreeMap<String, String>,
}

/// Referrers in the order of their digests.
#[derive(Clone, Debug)]
pub struct Referrers {
    /// One page of them.
    pub referrers: Vec<Referrer>,
    pub has_more: bool,
}

impl Registry {
    /// What refers to this digest, whether or not that or the repository is there; only of one type if it is given.
    ///
    /// # Errors
    /// The client may not.
    pub async fn referrers(
        &self,
        client: &RegistryClient,
        name: &Name,
        digest: &str,
        artifact_type: Option<&str>,
        last: &str,
    ) -> Result<Referrers, RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let (digest, artifact_type, last) = (digest.to_owned(), artifact_type.map(String::from), last.to_owned());
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    let repo = match registry.readable::<ListReferrers>(tx, &client, &name).await {
                        Ok(repo) => repo,
                        // Who may know that there is none: a client would take a 404 for a registry without referrers.
                        Err(RegistryError::Refused(refusal)) if refusal.code == RefusalCode::NameUnknown => {
                            return Ok(Referrers { referrers: Vec::new(), has_more: false });
                        }
                        Err(error) => return Err(error),
                    };
                    let wanted =
                        ReferrerQuery { repo: &repo, subject: &digest, artifact_type: artifact_type.as_deref() };
                    let mut found = wanted.after(tx, &last).await?;
                    let shown = fitting(&found.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>());
                    let has_more = found.len() > shown;
                    found.truncate(shown);
                    let mut referrers: Vec<Referrer> = found.into_iter().map(|(referrer, _)| referrer).collect();
                    wanted.annotate(tx, &last, &mut referrers).await?;
                    Ok(Referrers { referrers, has_more })
                })
            })
            .await
    }
}

/// How many of the referrers, given the bytes of their annotations, fit on one page.
fn fitting(bytes: &[i64]) -> usize {
    let mut left = MAX_BYTES;
    let fits = bytes.iter().take(PAGE as usize).take_while(|bytes| {
        left -= if is_annotated(**bytes) { **bytes } else { 0 };
        left >= 0
    });
    fits.count()
}

/// Whether annotations of so many bytes are listed at all.
fn is_annotated(bytes: i64) -> bool {
    bytes <= MAX_BYTES
}

const BY_SUBJECT: &str = "repo_manifests_by_subject";

/// Which referrers are meant.
struct ReferrerQuery<'a> {
    repo: &'a Uidp,
    subject: &'a str,
    artifact_type: Option<&'a str>,
}

impl ReferrerQuery<'_> {
    /// Those after this digest, one more than a page has, without their annotations but with how long those are.
    async fn after(&self, tx: &mut ReadTx, last: &str) -> Result<Vec<(Referrer, i64)>, RegistryError> {
        let mut params =
            vec![Value::from(self.repo.as_str()), Value::from(self.subject), Value::from(last), Value::Int(PAGE + 1)];
        params.extend(self.artifact_type.map(Value::from));
        let filter = if self.artifact_type.is_some() { "AND r.artifact_type = $5" } else { "" };
        let sql = format!(
            "SELECT m.digest, m.media_type, length(m.content), r.artifact_type, octet_length(m.annotations)
             FROM repo_manifests r {} JOIN manifests m ON m.digest = r.digest
             WHERE r.repo = $1 AND r.subject = $2 AND r.digest > $3 AND r.subject <> '' {filter}
             ORDER BY r.digest LIMIT $4",
            tx.index_hint(BY_SUBJECT)
        );
        tx.query(&sql, &params, read).await
    }

    /// Adds their annotations to the referrers after this digest.
    async fn annotate(&self, tx: &mut ReadTx, last: &str, referrers: &mut [Referrer]) -> Result<(), RegistryError> {
        let Some(end) = referrers.last().map(|referrer| referrer.digest.clone()) else { return Ok(()) };
        let sql = format!(
            "SELECT m.digest, m.annotations FROM repo_manifests r {} JOIN manifests m ON m.digest = r.digest
             WHERE r.repo = $1 AND r.subject = $2 AND r.digest > $3 AND r.digest <= $4 AND r.subject <> ''
               AND octet_length(m.annotations) <= $5",
            tx.index_hint(BY_SUBJECT)
        );
        let params = [
            Value::from(self.repo.as_str()),
            Value::from(self.subject),
            Value::from(last),
            Value::from(&end),
            Value::Int(MAX_BYTES),
        ];
        let read = |row: &Row<'_>| Ok::<_, RegistryError>((row.text(0)?, row.text(1)?));
        let found: HashMap<String, String> = tx.query(&sql, &params, read).await?.into_iter().collect();
        for referrer in referrers {
            if let Some(annotations) = found.get(&referrer.digest) {
                referrer.annotations = serde_json::from_str(annotations).map_err(Error::internal)?;
            }
        }
        Ok(())
    }
}

fn read(row: &Row<'_>) -> Result<(Referrer, i64), RegistryError> {
    let referrer = Referrer {
        digest: row.text(0)?,
        media_type: row.text(1)?,
        size: row.int(2)?,
        artifact_type: row.text(3)?,
        annotations: BTreeMap::new(),
    };
    Ok((referrer, row.int(4)?))
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, fitting};

    #[test]
    fn a_page_ends_where_its_annotations_are_too_long() {
        let half = MAX_BYTES / 2;
        assert_eq!(fitting(&[]), 0);
        assert_eq!(fitting(&[2; 501]), 500);
        assert_eq!(fitting(&[MAX_BYTES, 2]), 1);
        assert_eq!(fitting(&[half, half, 2]), 2);
        assert_eq!(fitting(&[half, half + 1, 2]), 1);
        assert_eq!(fitting(&[MAX_BYTES + 1, half, half]), 3, "too long ones are not told");
    }
}
