//! Publishing: the archive of a version, as the go command unpacks it. What is known of the version follows from it.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use bowline_authn::crypto::random_bytes;
use bowline_core::hex;
use bowline_libraries::hosting::{Checksums, Go, HostClient, NewFile, Published, Publishing};
use bowline_packages::{GO_ARCHIVE, go_archive, go_major};

use super::target::Kind;
use crate::PackageHosts;
use crate::answers::{Refused, typed};
use crate::storing::Received;

impl PackageHosts {
    /// Publishes the archive of a version.
    pub(super) async fn put_go(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (module, version): (&str, &str),
        body: Body,
    ) -> Result<Response, Refused> {
        if !module.contains('/') {
            let text = format!(
                "a group publishes no module {module:?}, since all below it would be the organization's: add a directory, such as \
                 {module}/tool"
            );
            return Err(Refused::bad(text));
        }
        go_major(module, version).map_err(Refused::bad)?;
        let id = hex(&random_bytes::<16>());
        let mut publishing = self.hosting.begin_publishing::<Go>(client, scope, &id).await?;
        let published = self.receive_go(client, &mut publishing, (module, version), &id, body).await;
        if !matches!(published, Ok(true)) {
            self.abandon(&id).await;
        }
        let status = if published? { StatusCode::CREATED } else { StatusCode::OK };
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
        let received = self.receive_whole(client, publishing, id, (body, GO_ARCHIVE)).await?;
        let published = self.publish_go(publishing, of, &received).await;
        self.settled(&received, published).await
    }

    async fn publish_go(
        &self,
        publishing: &Publishing,
        (module, version): (&str, &str),
        received: &Received,
    ) -> Result<Published, Refused> {
        let (of, named) = (module.to_owned(), version.to_owned());
        let read = move |source, size| go_archive(source, size, &of, &named);
        let go_mod = self.inspect((&received.digest, &received.stored), read).await?;
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
        let metadata = self.store_part(&received.client, publishing, go_mod).await?;
        let file = NewFile {
            name: Kind::Zip.name(version),
            package: module.into(),
            version: version.into(),
            license: String::new(),
            requires_python: String::new(),
            content: received.content.clone(),
            metadata: Some(metadata),
            manifest: None,
            requirements: None,
            checksums: Checksums::default(),
            pom: None,
            attestations: Vec::new(),
        };
        self.publish_with_part::<Go>(&received.client, publishing, &file).await
    }
}
