//! What publishers of Go's modules delete.

use bowline_contract::bowline::libraries::v1::GoVersion;
use bowline_contract::bowline::libraries::v1::rpc::go_host::DeleteVersion;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::Changed;
use bowline_resources::kinds::PACKAGE_VERSION;
use bowline_store::{Value, WriteTx};
use bowline_versions::order_key;

use super::protocols::{Go, Protocol};
use super::{HostClient, HostError, Hosting, repositories, summaries, versions, views};

impl Hosting {
    /// Deletes a version with its archive.
    ///
    /// # Errors
    /// The caller may not publish there, or the group has no such version.
    pub async fn delete_go_version(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (module, version): (&str, &str),
    ) -> std::result::Result<(), HostError> {
        let job = (client.clone(), path.map(str::to_owned), module.to_owned(), version.to_owned());
        let job = std::sync::Arc::new(job);
        let written = self.pipeline.db.write(move |tx| {
            let job = job.clone();
            Box::pin(async move {
                let (client, path, module, version) = &*job;
                let group = views::group_to_publish::<Go>(tx, client, path.as_deref()).await?;
                delete(tx, client, &group, (module, version)).await.map_err(HostError::from)
            })
        });
        written.await
    }
}

async fn delete(tx: &mut WriteTx, client: &HostClient, group: &Uidp, of: (&str, &str)) -> Result<()> {
    let call = client.authorize_change::<DeleteVersion>(tx, group, named(group, of)).await?;
    let changed = remove(tx, group, of, client.now()).await?;
    client.visit.record(tx, &call, changed).await
}

fn named(group: &Uidp, (module, version): (&str, &str)) -> GoVersion {
    GoVersion { parent: group.as_str().into(), package: module.into(), version: version.into() }
}

/// Removes a version of a group with its archive.
///
/// # Errors
/// NOT_FOUND: the group has no such version.
pub(super) async fn remove(
    tx: &mut WriteTx,
    group: &Uidp,
    (module, version): (&str, &str),
    now: Micros,
) -> Result<Changed<()>> {
    let missing = || Error::not_found(PACKAGE_VERSION, format!("{module}@{version}"));
    let language = Go::LANGUAGE;
    let repository = repositories::find(tx, group.as_str(), language.number()).await?.ok_or_else(missing)?.uid;
    let sort_key = order_key(language.scheme(), version);
    let sql = "SELECT 1 FROM hosted_versions WHERE repository = $1 AND package = $2 AND sort_key = $3 AND version = $4";
    let params = [Value::from(repository.as_str()), module.into(), Value::from(sort_key.as_slice()), version.into()];
    tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.ok_or_else(missing)?;
    let gone = versions::remove(tx, &repository, (module, &sort_key), now).await?;
    summaries::note_change(tx, (&repository, language), module, -gone, now).await?;
    let named = named(group, (module, version));
    let changed = Changed::one(PACKAGE_VERSION, &repository, Some(&named), None::<&GoVersion>, ());
    Ok(changed.with_event(group, &named))
}
