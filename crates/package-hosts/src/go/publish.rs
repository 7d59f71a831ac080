//! Publishing: the archive of a version, as the go command unpacks it. What is known of the version follows from it.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bowline_authn::crypto::random_bytes;
use bowline_content::{Digest, Stored};
use bowline_core::{Error, hex};
use bowline_fronts::body::parts;
use bowline_libraries::hosting::{Checksums, Go, HostClient, NewBlob, NewFile, Published, Publishing};
use bowline_packages::{go_archive, go_major};
use tokio::sync::Mutex;

use super::target::Kind;
use crate::PackageHosts;
use crate::answers::{Refused, typed};
use crate::checksums::{Hasher, hashed};
use crate::storing::{blob, has_no_row};

impl PackageHosts {
    /// Publishes the archive of a version.
    pub(super) async fn put_go(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (module, version): (&str, &str),
        body: Body,
    ) -> Result<Response, Refused> {
        go_major(module, version).map_err(Refused::bad)?;
        let id = hex(&random_bytes::<16>());
        let mut publishing = self.hosting.begin_publishing::<Go>(client, scope, &id).await?;
        let received = self.receive_go(client, &mut publishing, (module, version), &id, body).await;
        if !matches!(received, Ok(true)) {
            self.abandon(&id).await;
        }
        let status = if received? { StatusCode::CREATED } else { StatusCode::OK };
        Ok(typed(status, "text/plain; charset=utf-8", "published\n"))
    }

    /// Stores and publishes an archive; false if it is there with the same bytes.
    async fn receive_go(
        &self,
        client: &HostClient,
        publishing: &mut Publishing,
        of: (&str, &str),
        id: &str,
        body: Body,
    ) -> Result<bool, Refused> {
        self.content.begin(id)?;
        let hasher = Mutex::new(Hasher::new());
        self.append_published(publishing, id, hashed(parts(body, None), &hasher)).await?;
        let client = client.renewed()?;
        let (sha256, _) = hasher.into_inner().finish();
        let invalid = |_| Error::internal("a digest of this server does not parse");
        let digest = Digest::parse(&format!("sha256:{sha256}")).map_err(invalid)?;
        let stored = self.content.finish(id, &digest).await?;
        let published = self.publish_go(&client, publishing, of, (&digest, id), &stored).await;
        if has_no_row(&published) {
            self.drop_bytes(&digest, &stored.upload).await;
        }
        match published? {
            Published::Same => Ok(false),
            Published::New(replaced) => {
                self.drop_replaced(&replaced).await;
                Ok(true)
            }
        }
    }

    async fn publish_go(
        &self,
        client: &HostClient,
        publishing: &Publishing,
        (module, version): (&str, &str),
        (digest, id): (&Digest, &str),
        stored: &Stored,
    ) -> Result<Published, Refused> {
        let (of, named) = (module.to_owned(), version.to_owned());
        let read = move |source, size| go_archive(source, size, &of, &named);
        let go_mod = self.inspect((digest, stored), read).await?;
        let refused = |refusal| Refused::bad(format!("the archive {refusal}"));
        let go_mod = go_mod.map_err(refused)?;
        let named = bowline_packages::go_mod(&*go_mod).map_err(refused)?;
        if named != module {
            let text = format!(
                "the archive has a go.mod of the module {named:?}: publish it under that path, or set the path of a copy by `go mod edit \
                 -module`"
            );
            return Err(Refused::bad(text));
        }
        let metadata = self.store_part(client, publishing, go_mod).await?;
        let file = NewFile {
            name: Kind::Zip.name(version),
            package: module.into(),
            version: version.into(),
            license: String::new(),
            requires_python: String::new(),
            content: NewBlob { sha256: digest.hex().into(), blob: blob(stored), upload: id.into() },
            metadata: Some(metadata),
            manifest: None,
            checksums: Checksums::default(),
            pom: None,
        };
        self.publish_with_part::<Go>(client, publishing, &file).await
    }
}
