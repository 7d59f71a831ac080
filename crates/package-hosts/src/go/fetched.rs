//! Files of other proxies: fetched whole, since nothing says what they are before, and pinned.

use bowline_authn::guarded::Opened;
use bowline_content::{Digest, Stored};
use bowline_libraries::hosting::{FetchedFacts, MissingFile, OpenUpload};
use bowline_packages::{GO_ARCHIVE, GO_MOD, Refusal, go_archive, go_mod};

use crate::PackageHosts;
use crate::fetched::Problem;
use crate::storing::blob;

impl PackageHosts {
    /// Stores a file that is fetched, and keeps it if it is one of its version.
    pub(crate) async fn stored_go(
        &self,
        wanted: &MissingFile,
        upload: &mut OpenUpload,
        id: &str,
        opened: Opened,
    ) -> Result<(), Problem> {
        let most = if is_go_mod(&wanted.name) { GO_MOD } else { GO_ARCHIVE };
        let (sha256, _) = self.append_whole(upload, id, opened, most).await?;
        if !wanted.digest.is_empty() && wanted.digest != format!("sha256:{sha256}") {
            return Err(Problem::Wrong("has other bytes than before"));
        }
        let digest = Digest::parse(&format!("sha256:{sha256}")).map_err(|_| Problem::Wrong("has no digest"))?;
        let stored = self.content.finish(id, &digest).await?;
        let kept = self.keep_go(wanted, (&digest, id), &stored).await;
        if kept.as_ref().is_err_and(Problem::is_certain) {
            self.drop_bytes(&digest, &stored.upload).await;
        }
        kept
    }

    async fn keep_go(
        &self,
        wanted: &MissingFile,
        (digest, id): (&Digest, &str),
        stored: &Stored,
    ) -> Result<(), Problem> {
        let (module, version, name) = wanted.coordinates();
        let (module, version, is_mod) = (module.to_owned(), version.to_owned(), is_go_mod(name));
        let read = move |source, size| {
            if is_mod { go_mod(source).map(drop) } else { go_archive(source, size, &module, &version).map(drop) }
        };
        self.inspect((digest, stored), read).await?.map_err(|refusal| {
            tracing::warn!(file = wanted.name, %refusal, "a file of an upstream is not what it should be");
            Problem::Wrong(what_is_wrong(&refusal))
        })?;
        let found = wanted.clone().with_digest(digest.hex());
        let replaced = self.hosting.keep_fetched(&found, (&blob(stored), id), &FetchedFacts::default()).await?;
        self.drop_replaced(&replaced).await;
        Ok(())
    }
}

fn is_go_mod(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| end == "mod")
}

fn what_is_wrong(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Hostile(_) => "is an archive that no one should unpack",
        Refusal::Unreadable(_) | Refusal::Damaged(_) | Refusal::Foreign => "is not a file of this version",
    }
}
