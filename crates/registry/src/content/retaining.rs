//! Retention in the background, by the rules of each group and repository.

use std::collections::BTreeSet;

use bowline_contract::Method;
use bowline_contract::bowline::registry::v1::RegistryPolicy;
use bowline_contract::bowline::registry::v1::rpc::registry_policies::ApplyRetention;
use bowline_core::{Error, UidRange, Uidp};
use bowline_pipeline::{Actor, Changed, OPERATOR, record_audit, record_event};
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::Message;

use super::Registry;
use crate::{paths, retention};

impl Registry {
    /// Removes everything that the rules of retention do not keep now; how many manifests. A repository in which that
    /// fails is left for the next time.
    pub async fn retain(&self) -> Result<u64, Error> {
        let repos = self.pipeline.db.read(|tx| Box::pin(ruled(tx))).await?;
        let mut removed = 0;
        for repo in repos {
            match self.retain_in(&repo).await {
                Ok(count) => removed += count,
                Err(error) => tracing::warn!(%repo, %error, "retention stopped in a repository; trying again later"),
            }
        }
        Ok(removed)
    }

    async fn retain_in(&self, repo: &Uidp) -> Result<u64, Error> {
        let (place, now) = (repo.clone(), self.pipeline.clock.now());
        // Removing images works on a full disk.
        let db = self.pipeline.db.from_reserve();
        let waiting =
            self.pipeline.read_deferring(move |tx| Box::pin(async move { retention::waiting(tx, &place, now).await }));
        let mut remaining = waiting.await?;
        let mut removed = 0;
        while remaining > 0 {
            let (registry, repo, now) = (self.clone(), repo.clone(), self.pipeline.clock.now());
            let draw = bowline_authn::crypto::random_bytes();
            let (gone, left) = self
                .pipeline
                .write_deferring_on(&db, move |tx| {
                    let (registry, repo) = (registry.clone(), repo.clone());
                    Box::pin(async move { registry.retain_some(tx, &repo, now, draw).await })
                })
                .await?;
            removed += gone as u64;
            remaining = if gone == 0 { 0 } else { left };
        }
        Ok(removed)
    }

    /// One transaction of it: how many manifests went, and how many are still to go.
    async fn retain_some(
        &self,
        tx: &mut WriteTx,
        repo: &Uidp,
        now: i64,
        draw: [u8; 32],
    ) -> Result<(usize, usize), Error> {
        let (outcome, changes) = retention::remove(tx, repo, now, draw).await?;
        let actor = Actor { subject: OPERATOR, request_id: "retention", method: ApplyRetention::FULL_NAME };
        for change in &changes {
            record_audit(tx, now, &actor, change).await?;
        }
        let (gone, left) = (outcome.removed.len(), usize::try_from(outcome.remaining).unwrap_or(0));
        let info = self.pipeline.contract.by_full_name(ApplyRetention::FULL_NAME);
        if let (Some(info), Some(event)) = (info, Changed::nothing(()).with_event(repo, &outcome).event)
            && gone > 0
        {
            record_event(tx, info, now, &actor, None, &event).await?;
        }
        Ok((gone, left))
    }
}

/// The repositories with rules of their own or of a group above.
async fn ruled(tx: &mut ReadTx) -> Result<BTreeSet<Uidp>, Error> {
    let read = |row: &Row<'_>| {
        let policy = RegistryPolicy::decode(row.bytes(1)?.as_slice()).map_err(Error::internal)?;
        Ok::<_, Error>((row.text(0)?, policy.retention.as_ref().is_some_and(retention::has_rules)))
    };
    let places = tx.query("SELECT place, policy FROM registry_policies ORDER BY place", &[], read).await?;
    let mut repos = BTreeSet::new();
    for (place, _) in places.into_iter().filter(|(_, has_rules)| *has_rules) {
        let UidRange { lower, upper } = UidRange::of(&paths::stored(&place)?);
        let sql = "SELECT uid FROM repos WHERE uid >= $1 AND uid < $2";
        let read = |row: &Row<'_>| paths::stored(&row.text(0)?);
        repos.extend(tx.query(sql, &[Value::from(&lower), Value::from(&upper)], read).await?);
    }
    Ok(repos)
}
