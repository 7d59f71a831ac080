//! What publishers of crates change of what is there: versions that new lock files pass over, and versions that they delete.

use std::sync::Arc;

use bowline_contract::Method;
use bowline_contract::bowline::libraries::v1::CargoVersion;
use bowline_contract::bowline::libraries::v1::rpc::cargo_host::{DeleteVersion, UnyankVersion, YankVersion};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::Changed;
use bowline_resources::kinds::PACKAGE_VERSION;
use bowline_store::{Value, WriteTx};
use bowline_versions::order_key;

use super::protocols::{Cargo, Protocol};
use super::{HostClient, HostError, Hosting, repositories, summaries, versions, views};

/// A change of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CargoChange {
    /// New lock files pass over it.
    Yank,
    Unyank,
    /// It goes with its archive.
    Delete,
}

/// A version that is changed, as it is stored.
struct Target {
    repository: Uidp,
    named: CargoVersion,
    sort_key: Vec<u8>,
}

impl Hosting {
    /// Changes a version.
    ///
    /// # Errors
    /// The caller may not publish there, or the group has no such version.
    pub async fn change_crate(
        &self,
        client: &HostClient,
        path: Option<&str>,
        (name, version): (&str, &str),
        change: CargoChange,
    ) -> std::result::Result<(), HostError> {
        let name = Cargo::LANGUAGE.normalized(name);
        let job = Arc::new((client.clone(), path.map(str::to_owned), name, version.to_owned()));
        let written = self.pipeline.db.write(move |tx| {
            let job = job.clone();
            Box::pin(async move {
                let (client, path, name, version) = &*job;
                let group = views::group_to_publish::<Cargo>(tx, client, path.as_deref()).await?;
                let of = (&group, name.as_str(), version.as_str());
                let changed = match change {
                    CargoChange::Yank => authorize_and_mark::<YankVersion>(tx, client, of, true).await,
                    CargoChange::Unyank => authorize_and_mark::<UnyankVersion>(tx, client, of, false).await,
                    CargoChange::Delete => delete(tx, client, of).await,
                };
                changed.map_err(HostError::from)
            })
        });
        written.await
    }
}

async fn find(tx: &mut WriteTx, (group, name, version): (&Uidp, &str, &str)) -> Result<Target> {
    let missing = || Error::not_found(PACKAGE_VERSION, format!("{name}@{version}"));
    let language = Cargo::LANGUAGE;
    let repository = repositories::find(tx, group.as_str(), language.number()).await?.ok_or_else(missing)?.uid;
    let sort_key = order_key(language.scheme(), version);
    let sql = "SELECT yanked FROM hosted_versions
               WHERE repository = $1 AND package = $2 AND sort_key = $3 AND version = $4";
    let params = [Value::from(repository.as_str()), name.into(), Value::from(sort_key.as_slice()), version.into()];
    let yanked = tx.query_opt(sql, &params, |row| row.opt_text(0).map_err(Error::from)).await?.ok_or_else(missing)?;
    let named = named((group, name, version), yanked.is_some());
    Ok(Target { repository, named, sort_key })
}

fn named((group, name, version): (&Uidp, &str, &str), yanked: bool) -> CargoVersion {
    CargoVersion { parent: group.as_str().into(), package: name.into(), version: version.into(), yanked }
}

async fn authorize_and_mark<M: Method<Request = CargoVersion>>(
    tx: &mut WriteTx,
    client: &HostClient,
    of: (&Uidp, &str, &str),
    yanked: bool,
) -> Result<()> {
    let call = client.authorize_change::<M>(tx, of.0, named(of, yanked)).await?;
    let changed = set_yanked(tx, of, yanked, client.now()).await?;
    client.visit.record(tx, &call, changed).await
}

/// Has new lock files pass over a version, or not; its name is normalized.
///
/// # Errors
/// NOT_FOUND: the group has no such version.
pub(super) async fn set_yanked(
    tx: &mut WriteTx,
    of: (&Uidp, &str, &str),
    yanked: bool,
    now: Micros,
) -> Result<Changed<()>> {
    let (group, name, _) = of;
    let (target, after) = (find(tx, of).await?, named(of, yanked));
    if target.named == after {
        return Ok(Changed::nothing(()));
    }
    versions::set_yanked(tx, &target.repository, (name, &target.sort_key), yanked.then_some("")).await?;
    summaries::note_change(tx, (&target.repository, Cargo::LANGUAGE), name, 0, now).await?;
    let changed = Changed::one(PACKAGE_VERSION, &target.repository, Some(&target.named), Some(&after), ());
    Ok(changed.with_event(group, &after))
}

async fn delete(tx: &mut WriteTx, client: &HostClient, of: (&Uidp, &str, &str)) -> Result<()> {
    let call = client.authorize_change::<DeleteVersion>(tx, of.0, named(of, false)).await?;
    let changed = remove(tx, of, client.now()).await?;
    client.visit.record(tx, &call, changed).await
}

/// Removes a version of a group with its archive; its name is normalized.
///
/// # Errors
/// NOT_FOUND: the group has no such version.
pub(super) async fn remove(tx: &mut WriteTx, of: (&Uidp, &str, &str), now: Micros) -> Result<Changed<()>> {
    let (group, name, _) = of;
    let target = find(tx, of).await?;
    let gone = versions::remove(tx, &target.repository, (name, &target.sort_key), now).await?;
    summaries::note_change(tx, (&target.repository, Cargo::LANGUAGE), name, -gone, now).await?;
    let changed = Changed::one(PACKAGE_VERSION, &target.repository, Some(&target.named), None::<&CargoVersion>, ());
    Ok(changed.with_event(group, &target.named))
}
