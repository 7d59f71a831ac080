//! Pushes and pulls, whole and in chunks.

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_image_goes_in_and_comes_out() {
    on_each_engine(async |server| {
        let (org, client) = pusher(server, "acme").await;
        let name = format!("{org}/tools/app");
        let manifest = client.image(&name, "latest", b"a layer").await;
        let digest = digest_of(&manifest);
        for reference in ["latest", &digest] {
            let reply = client.get(&format!("/v2/{name}/manifests/{reference}")).await;
            assert_eq!((reply.status, reply.json()), (200, manifest.clone()), "{}", reply.text());
            assert_eq!(header(&reply, "docker-content-digest"), digest);
            assert_eq!(header(&reply, "content-type"), IMAGE);
            assert_eq!(header(&reply, "etag"), format!("\"{digest}\""));
        }
        let blob = client.get(&format!("/v2/{name}/blobs/{}", crate::support::digest(b"a layer"))).await;
        assert_eq!((blob.status, blob.body.as_slice()), (200, &b"a layer"[..]));
        assert_eq!(number(server, "SELECT count(*) FROM repos WHERE name = 'app'").await, 1);
        assert_eq!(number(server, "SELECT count(*) FROM groups WHERE name = 'tools'").await, 1);
    })
    .await;
}
