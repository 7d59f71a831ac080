//! From a name to a repository that the client may read, or push to.

use bowline_contract::Method;
use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::{ListCatalog, PushBlob};
use bowline_contract::v2::iam::rpc::groups_service::CreateGroup;
use bowline_contract::v2::registry::rpc::repos_service::CreateRepo;
use bowline_contract::v2::{iam, registry};
use bowline_core::{Reason, Uidp};
use bowline_identity::groups::{self, GroupInput};
use bowline_store::{ReadTx, Value, WriteTx, placeholders};
use serde_json::json;

use super::{Name, RefusalCode, Registry, RegistryClient, RegistryError};
use crate::paths;
use crate::repos::{self, RepoInput};

impl Registry {
    /// The repository of this name, if the client holds there what `M` needs or everyone may read it.
    pub(super) async fn readable<M: Method<Request = Interaction>>(
        &self,
        tx: &mut ReadTx,
        client: &RegistryClient,
        name: &Name,
    ) -> Result<Uidp, RegistryError> {
        let repo = self.existing::<M>(tx, client, name).await?;
        match client.visit.authorize_at::<M>(tx, &repo, Interaction::default()).await {
            Ok(_) => Ok(repo),
            Err(error) if error.reason() == Reason::PermissionDenied && is_public(tx, &repo).await? => Ok(repo),
            Err(error) => Err(self.refusal::<M>(client, name.as_str(), error)),
        }
    }

    /// The repository of this name, if the client may push to it: checked before bytes are accepted.
    pub(super) async fn readable_for_push(
        &self,
        tx: &mut ReadTx,
        client: &RegistryClient,
        name: &Name,
    ) -> Result<Uidp, RegistryError> {
        let repo = self.existing::<PushBlob>(tx, client, name).await?;
        match client.visit.authorize_at::<PushBlob>(tx, &repo, Interaction::default()).await {
            Ok(_) => Ok(repo),
            Err(error) => Err(self.refusal::<PushBlob>(client, name.as_str(), error)),
        }
    }

    /// The repository of this name, if the client holds there what `M` needs: for changes, which no one is
    /// free to do.
    pub(super) async fn changeable<M: Method<Request = Interaction>>(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
    ) -> Result<Uidp, RegistryError> {
        let repo = self.existing::<M>(tx, client, name).await?;
        match client.visit.authorize_change_at::<M>(tx, &repo, Interaction::default()).await {
            Ok(_) => Ok(repo),
            Err(error) => Err(self.refusal::<M>(client, name.as_str(), error)),
        }
    }

    /// The repository of this name, for any client; else what the client may know of its absence.
    pub(super) async fn existing<M: Method>(
        &self,
        tx: &mut ReadTx,
        client: &RegistryClient,
        name: &Name,
    ) -> Result<Uidp, RegistryError> {
        let place = paths::resolve(tx, name).await?;
        match place.as_ref().and_then(|place| place.repo.clone()) {
            Some(repo) => Ok(repo),
            None => Err(self.absent::<M>(tx, client, name, place.map(|place| place.group)).await?),
        }
    }

    /// The error for a repository that does not exist: only clients that may list its parent learn that.
    async fn absent<M: Method>(
        &self,
        tx: &mut ReadTx,
        client: &RegistryClient,
        name: &Name,
        group: Option<Uidp>,
    ) -> Result<RegistryError, RegistryError> {
        let grants = client.visit.grants(tx).await?;
        let may_list = match &group {
            Some(group) => client.visit.allows::<ListCatalog>(&grants, group.as_str())?,
            None => false,
        };
        Ok(if may_list { unknown(name) } else { self.denied::<M>(client, name.as_str()) })
    }

    /// The repository of this name for a push; it and the groups on the way are created if the client may.
    pub(super) async fn pushable(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
    ) -> Result<Uidp, RegistryError> {
        match self.pushable_there(tx, client, name).await? {
            Some(repo) => Ok(repo),
            None => self.created(tx, client, name).await,
        }
    }

    /// The same without making it: absent if it is not there and the client may push to what would be.
    ///
    /// # Errors
    /// The client may not.
    pub(super) async fn pushable_there(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
    ) -> Result<Option<Uidp>, RegistryError> {
        let Some(place) = paths::resolve(tx, name).await? else {
            // A token whose identity is gone fails first, with its own error.
            client.visit.grants(tx).await?;
            return Err(self.denied::<PushBlob>(client, name.as_str()));
        };
        let at = place.repo.as_ref().unwrap_or(&place.group);
        let allowed = client.visit.authorize_change_at::<PushBlob>(tx, at, Interaction::default()).await;
        allowed.map_err(|error| self.refusal::<PushBlob>(client, name.as_str(), error))?;
        Ok(place.repo)
    }

    /// Whether everyone may pull from the repository of this name.
    pub async fn is_public(&self, name: &Name) -> Result<bool, RegistryError> {
        let name = name.clone();
        self.pipeline
            .db
            .read(move |tx| {
                Box::pin(async move {
                    match paths::resolve(tx, &name).await?.and_then(|place| place.repo) {
                        Some(repo) => Ok(is_public(tx, &repo).await?),
                        None => Ok(false),
                    }
                })
            })
            .await
    }

    /// The repository of a name that has none, created with the groups on the way if the client may.
    pub(super) async fn created(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
    ) -> Result<Uidp, RegistryError> {
        let place = paths::resolve(tx, name).await?.ok_or_else(|| unknown(name))?;
        let mut group = place.group;
        for missing in &place.missing {
            group = self.create_group(tx, client, name, &group, missing).await?;
        }
        self.create_repo(tx, client, name, &group, &place.last).await
    }

    async fn create_group(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
        parent: &Uidp,
        group: &str,
    ) -> Result<Uidp, RegistryError> {
        let request = iam::CreateGroupRequest {
            parent: parent.as_str().into(),
            group: Some(iam::Group { name: group.into(), ..iam::Group::default() }),
        };
        let call = client.visit.authorize_change_at::<CreateGroup>(tx, parent, request).await;
        let call = call.map_err(|error| self.refusal::<CreateGroup>(client, name.as_str(), error))?;
        let input = GroupInput { name: group.into(), ..GroupInput::default() };
        let changed = groups::create(tx, &call, parent.as_str(), input).await?;
        Ok(client.visit.record(tx, &call, changed).await?.uid)
    }

    async fn create_repo(
        &self,
        tx: &mut WriteTx,
        client: &RegistryClient,
        name: &Name,
        parent: &Uidp,
        last: &str,
    ) -> Result<Uidp, RegistryError> {
        let repo = registry::Repo { name: last.into(), ..registry::Repo::default() };
        let request = registry::CreateRepoRequest { parent: parent.as_str().into(), repo: Some(repo.clone()) };
        let call = client.visit.authorize_change_at::<CreateRepo>(tx, parent, request).await;
        let call = call.map_err(|error| self.refusal::<CreateRepo>(client, name.as_str(), error))?;
        let input = RepoInput { repo, prevent_existing: true, ..RepoInput::default() };
        let changed = repos::create(tx, &call, input).await?;
        let stored = client.visit.record(tx, &call, changed).await?;
        Ok(paths::stored(&stored.repo.uid)?)
    }
}

pub(super) fn unknown(name: &Name) -> RegistryError {
    let message = format!("repository does not exist \"{name}\"");
    RegistryError::about(RefusalCode::NameUnknown, message, json!({ "name": name.as_str() }))
}

/// Whether everyone may read the repository: what is set nearest to it decides.
pub(crate) async fn is_public(tx: &mut ReadTx, repo: &Uidp) -> bowline_core::Result<bool> {
    let params: Vec<Value<'_>> = repo.self_and_ancestors().map(Value::from).collect();
    let scopes = placeholders(1, params.len());
    let sql = format!("SELECT place, is_public FROM registry_policies WHERE place IN ({scopes})");
    let set: Vec<(String, bool)> =
        tx.query(&sql, &params, |row| Ok::<_, bowline_core::Error>((row.text(0)?, row.bool(1)?))).await?;
    Ok(set.into_iter().max_by_key(|(place, _)| place.len()).is_some_and(|(_, public)| public))
}
