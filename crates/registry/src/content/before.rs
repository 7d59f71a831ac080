//! Checks before the body of a request is read.

use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::{PushBlob, PushManifest};
use bowline_core::Uidp;
use bowline_store::ReadTx;

use super::{Manifest, Name, Registry, RegistryClient, RegistryError, StoredBlob, blobs};
use crate::components::{self, ReadSbom};
use crate::paths;

impl Registry {
    /// Refuses unless the client may push manifests to the repository, or to where it would be. The push itself checks
    /// again.
    ///
    /// # Errors
    /// The client may not.
    pub async fn may_push_manifest(&self, client: &RegistryClient, name: &Name) -> Result<(), RegistryError> {
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let read = self
            .pipeline
            .db
            .read(move |tx| Box::pin(async move { registry.manifest_path(tx, &client, &name).await.map(|_| ()) }));
        read.await
    }

    /// The config that a manifest names, if the repository that it is pushed to has it.
    ///
    /// # Errors
    /// The client may not push manifests there.
    pub async fn config_of_push(
        &self,
        client: &RegistryClient,
        name: &Name,
        digest: &str,
    ) -> Result<Option<StoredBlob>, RegistryError> {
        let (registry, client, name, digest) = (self.clone(), client.clone(), name.clone(), digest.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                match registry.manifest_path(tx, &client, &name).await? {
                    Some(repo) => Ok(blobs::find_in(tx, &repo, &digest).await?),
                    None => Ok(None),
                }
            })
        });
        read.await
    }

    /// The SBOMs among the layers of a manifest, read before the transaction of its push.
    pub(super) async fn sboms_of_push(
        &self,
        client: &RegistryClient,
        name: &Name,
        manifest: &Manifest,
    ) -> Result<Vec<ReadSbom>, RegistryError> {
        if !components::may_have_sboms(manifest) {
            return Ok(Vec::new());
        }
        let (registry, client, name) = (self.clone(), client.clone(), name.clone());
        let manifest = manifest.clone();
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                match registry.manifest_path(tx, &client, &name).await? {
                    Some(repo) => Ok::<_, RegistryError>(components::unread(tx, &repo, &manifest).await?),
                    None => Ok(Vec::new()),
                }
            })
        });
        Ok(self.documents.read_pushed(read.await?).await)
    }

    /// The repository that a manifest is pushed to, absent while it is not there; checked at the deepest group then.
    async fn manifest_path(
        &self,
        tx: &mut ReadTx,
        client: &RegistryClient,
        name: &Name,
    ) -> Result<Option<Uidp>, RegistryError> {
        let Some(place) = paths::resolve(tx, name).await? else {
            // A token whose identity is gone fails first, with its own error.
            client.visit.grants(tx).await?;
            return Err(self.denied::<PushManifest>(client, name.as_str()));
        };
        let at = place.repo.as_ref().unwrap_or(&place.group);
        let allowed = client.visit.authorize_at::<PushBlob>(tx, at, Interaction::default()).await;
        allowed.map_err(|error| self.refusal::<PushBlob>(client, name.as_str(), error))?;
        let allowed = client.visit.authorize_at::<PushManifest>(tx, at, Interaction::default()).await;
        allowed.map_err(|error| self.refusal::<PushManifest>(client, name.as_str(), error))?;
        Ok(place.repo)
    }
}
