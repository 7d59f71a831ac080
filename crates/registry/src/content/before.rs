//! What is asked before the body of a request is read.

use bowline_contract::bowline::registry::v1::Interaction;
use bowline_contract::bowline::registry::v1::rpc::content::{PushBlob, PushManifest};
use bowline_core::Uidp;
use bowline_store::ReadTx;

use super::{Name, Registry, RegistryClient, RegistryError, StoredBlob, blobs};
use crate::paths;

impl Registry {
    /// Refuses unless the visitor may push manifests to the repository, or to where it would be. The push itself checks
    /// again.
    ///
    /// # Errors
    /// The visitor may not.
    pub async fn may_push_manifest(&self, visitor: &RegistryClient, name: &Name) -> Result<(), RegistryError> {
        let (registry, visitor, name) = (self.clone(), visitor.clone(), name.clone());
        let read = self
            .pipeline
            .db
            .read(move |tx| Box::pin(async move { registry.manifest_path(tx, &visitor, &name).await.map(|_| ()) }));
        read.await
    }

    /// The config that a manifest names, if the repository that it is pushed to has it.
    ///
    /// # Errors
    /// The visitor may not push manifests there.
    pub async fn config_of_push(
        &self,
        visitor: &RegistryClient,
        name: &Name,
        digest: &str,
    ) -> Result<Option<StoredBlob>, RegistryError> {
        let (registry, visitor, name, digest) = (self.clone(), visitor.clone(), name.clone(), digest.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            Box::pin(async move {
                match registry.manifest_path(tx, &visitor, &name).await? {
                    Some(repo) => blobs::find_in(tx, &repo, &digest).await,
                    None => Ok(None),
                }
            })
        });
        read.await
    }

    /// The repository that a manifest is pushed to, absent while it is not there; checked at the deepest group then.
    async fn manifest_path(
        &self,
        tx: &mut ReadTx,
        visitor: &RegistryClient,
        name: &Name,
    ) -> Result<Option<Uidp>, RegistryError> {
        let Some(place) = paths::resolve(tx, name).await? else {
            // A token whose identity is gone is told so first.
            visitor.visit.grants(tx).await?;
            return Err(self.denied::<PushManifest>(visitor, name.as_str()));
        };
        let at = place.repo.as_ref().unwrap_or(&place.group);
        let allowed = visitor.visit.authorize_at::<PushBlob>(tx, at, Interaction::default()).await;
        allowed.map_err(|error| self.refusal::<PushBlob>(visitor, name.as_str(), error))?;
        let allowed = visitor.visit.authorize_at::<PushManifest>(tx, at, Interaction::default()).await;
        allowed.map_err(|error| self.refusal::<PushManifest>(visitor, name.as_str(), error))?;
        Ok(place.repo)
    }
}
