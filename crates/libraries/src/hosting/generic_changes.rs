//! What publishers of generic files delete, and how many files a version may have.

use bowline_contract::bowline::libraries::v1::GenericVersion;
use bowline_contract::bowline::libraries::v1::rpc::files_host::DeleteVersion;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::Changed;
use bowline_resources::kinds::PACKAGE_VERSION;
use bowline_store::{Value, WriteTx};
use bowline_versions::order_key;

use super::protocols::{Generic, Protocol};
use super::{HostClient, HostError, Hosting, repositories, summaries, versions, views};

/// Files of a version: they are listed and deleted together.
const FILES: i64 = 1_000;

impl Hosting {
    /// Deletes a version with its files.
    ///
    /// # Errors
    /// The caller may not publish there, or the group has no such version.
    pub async fn delete_generic_version(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (name, version): (&str, &str),
    ) -> std::result::Result<(), HostError> {
        let job = (client.clone(), path.map(str::to_owned), name.to_owned(), version.to_owned());
        let job = std::sync::Arc::new(job);
        let written = self.pipeline.db.write(move |tx| {
            let job = job.clone();
            Box::pin(async move {
                let (client, path, name, version) = &*job;
                let group = views::group_to_publish::<Generic>(tx, client, path.as_deref()).await?;
                delete(tx, client, &group, (name, version)).await.map_err(HostError::from)
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

fn named(group: &Uidp, (name, version): (&str, &str)) -> GenericVersion {
    GenericVersion { parent: group.as_str().into(), package: name.into(), version: version.into(), file_count: 0 }
}

/// Removes a version of a group with its files.
///
/// # Errors
/// NOT_FOUND: the group has no such version.
pub(super) async fn remove(
    tx: &mut WriteTx,
    group: &Uidp,
    (name, version): (&str, &str),
    now: Micros,
) -> Result<Changed<()>> {
    let missing = || Error::not_found(PACKAGE_VERSION, format!("{name}@{version}"));
    let language = Generic::LANGUAGE;
    let repository = repositories::find(tx, group.as_str(), language.number()).await?.ok_or_else(missing)?.uid;
    let sort_key = order_key(language.scheme(), version);
    let sql = "SELECT 1 FROM hosted_versions WHERE repository = $1 AND package = $2 AND sort_key = $3 AND version = $4";
    let params = [Value::from(repository.as_str()), name.into(), Value::from(sort_key.as_slice()), version.into()];
    tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.ok_or_else(missing)?;
    let gone = versions::remove(tx, &repository, (name, &sort_key), now).await?;
    summaries::note_change(tx, (&repository, language), name, -gone, now).await?;
    let deleted =
        GenericVersion { file_count: i32::try_from(gone).unwrap_or(i32::MAX), ..named(group, (name, version)) };
    let changed = Changed::one(PACKAGE_VERSION, &repository, Some(&deleted), None::<&GenericVersion>, ());
    Ok(changed.with_event(group, &deleted))
}

/// Refuses a further file of a version that has as many as it may have.
///
/// # Errors
/// QUOTA_EXCEEDED.
pub(super) async fn require_room(
    tx: &mut WriteTx,
    (group, repository): (&Uidp, &Uidp),
    (name, version, sort_key): (&str, &str, &[u8]),
) -> Result<()> {
    let sql = "SELECT count(*) FROM hosted_files
               WHERE repository = $1 AND package = $2 AND sort_key = $3 AND deleted_at IS NULL";
    let params = [Value::from(repository.as_str()), Value::from(name), Value::from(sort_key)];
    let count = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or_default();
    if count < FILES {
        return Ok(());
    }
    let text = format!(
        "{name} {version} has {FILES} files, and a version may have no more: publish the file under another version, or pack \
         several into an archive"
    );
    Err(Error::quota(group.as_str(), text))
}
