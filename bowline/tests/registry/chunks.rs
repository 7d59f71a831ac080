//! Uploads in chunks, resumed, broken off, cancelled.

use crate::support::*;
use bowline_testkit::{TestServer, each_engine};

async fn chunks_make_a_blob_and_can_be_resumed(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let at = client.begin(&name).await;
    let reply = client.send(&format!("PATCH {at}"), &[("content-range", "0-4")], b"hello").await;
    assert_eq!((reply.status, header(&reply, "range").as_str()), (202, "0-4"));
    let reply = client.get(&at).await;
    assert_eq!((reply.status, header(&reply, "range").as_str()), (204, "0-4"));
    // Out of order: from the start again, and with a gap.
    for range in ["0-4", "7-11"] {
        let reply = client.send(&format!("PATCH {at}"), &[("content-range", range)], b"xxxxx").await;
        assert_eq!(code(&reply, 416), "BLOB_UPLOAD_INVALID");
        assert_eq!((header(&reply, "range"), header(&reply, "location")), ("0-4".into(), at.clone()));
    }
    let reply = client.send(&format!("PATCH {at}"), &[("content-range", "5-5")], b" ").await;
    assert_eq!(reply.status, 202);
    let digest = digest(b"hello world");
    let put = format!("PUT {at}?digest={digest}");
    let reply = client.send(&put, &[("content-range", "6-10")], b"world").await;
    assert_eq!((reply.status, header(&reply, "location")), (201, format!("/v2/{name}/blobs/{digest}")));
    assert_eq!(client.get(&format!("/v2/{name}/blobs/{digest}")).await.body, b"hello world");
    assert_eq!(code(&client.get(&at).await, 404), "BLOB_UPLOAD_UNKNOWN");
}

async fn a_part_of_another_length_than_promised_changes_nothing(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let at = client.begin(&name).await;
    client.send(&format!("PATCH {at}"), &[], b"hello").await;
    for range in ["5-20", "5-6"] {
        let reply = client.send(&format!("PATCH {at}"), &[("content-range", range)], b" world").await;
        assert_eq!(code(&reply, 400), "SIZE_INVALID", "{range}");
        assert_eq!(header(&client.get(&at).await, "range"), "0-4", "{range}");
    }
    for range in ["bytes 5-10/11", "10-5", "x"] {
        let reply = client.send(&format!("PATCH {at}"), &[("content-range", range)], b" world").await;
        assert_eq!(code(&reply, 400), "BLOB_UPLOAD_INVALID", "{range}");
    }
    let reply = client.send(&format!("PUT {at}?digest={}", digest(b"hello")), &[], b"").await;
    assert_eq!(reply.status, 201, "{}", reply.text());
}

async fn another_digest_is_refused_and_leaves_nothing(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let other = digest(b"other");
    let whole = client.send(&format!("POST /v2/{name}/blobs/uploads/?digest={other}"), &[], b"hello").await;
    assert_eq!(code(&whole, 400), "DIGEST_INVALID");
    let at = client.begin(&name).await;
    client.send(&format!("PATCH {at}"), &[], b"hello").await;
    assert_eq!(code(&client.send(&format!("PUT {at}"), &[], b"").await, 400), "DIGEST_INVALID");
    assert_eq!(code(&client.send(&format!("PUT {at}?digest=md5:ab"), &[], b"").await, 400), "DIGEST_INVALID");
    assert_eq!(code(&client.send(&format!("PUT {at}?digest={other}"), &[], b"").await, 400), "DIGEST_INVALID");
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM blobs").await, 0);
    assert_eq!(code(&client.get(&format!("/v2/{name}/blobs/{other}")).await, 404), "BLOB_UNKNOWN");
}

async fn sha512_is_a_digest_as_well(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let digest = bowline_content::Digest::of(bowline_content::Algorithm::Sha512, b"hello");
    let at = client.begin(&name).await;
    client.send(&format!("PATCH {at}"), &[], b"hello").await;
    let reply = client.send(&format!("PUT {at}?digest={digest}"), &[], b"").await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert_eq!(client.get(&format!("/v2/{name}/blobs/{digest}")).await.body, b"hello");
    let manifest = image(b"hello");
    client.blob(&name, CONFIG_BYTES).await;
    client.blob(&name, b"hello").await;
    let bytes = manifest.to_string();
    let digest = bowline_content::Digest::of(bowline_content::Algorithm::Sha512, bytes.as_bytes());
    let reply = client.put(&name, digest.as_str(), &manifest).await;
    assert_eq!((reply.status, header(&reply, "docker-content-digest")), (201, digest.as_str().to_owned()));
}

async fn an_upload_belongs_to_who_began_it_and_ends_after_a_day(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let other = crate::support::client(server, "registry.push", &org).await;
    let at = client.begin(&name).await;
    for what in ["GET", "PATCH", "PUT", "DELETE"] {
        let path = if what == "PUT" { format!("{at}?digest={}", digest(b"")) } else { at.clone() };
        let reply = other.send(&format!("{what} {path}"), &[], b"").await;
        assert_eq!(code(&reply, 404), "BLOB_UPLOAD_UNKNOWN", "{what}");
    }
    let elsewhere = at.replace("/app/", "/other/");
    client.begin(&format!("{org}/other")).await;
    assert_eq!(code(&client.get(&elsewhere).await, 404), "BLOB_UPLOAD_UNKNOWN");
    assert_eq!(client.send(&format!("DELETE {at}"), &[], b"").await.status, 204);
    assert_eq!(code(&client.get(&at).await, 404), "BLOB_UPLOAD_UNKNOWN");
    let at = client.begin(&name).await;
    let id = at.rsplit('/').next().unwrap();
    server.clock().advance(std::time::Duration::from_secs(24 * 3600));
    let door = &server.server().parts().distribution;
    door.expire_uploads().await.expect("uploads expire");
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
    assert_eq!(id.len(), 32);
}

each_engine!(
    multi_thread:
    chunks_make_a_blob_and_can_be_resumed,
    a_part_of_another_length_than_promised_changes_nothing,
    another_digest_is_refused_and_leaves_nothing,
    sha512_is_a_digest_as_well,
    an_upload_belongs_to_who_began_it_and_ends_after_a_day
);
