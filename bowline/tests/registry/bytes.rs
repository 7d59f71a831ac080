//! The files of blobs and uploads: losses are reported and can be pushed again, and nothing stays for ever.

use std::path::{Path, PathBuf};

use bowline_testkit::{TestServer, each_engine};

use crate::support::*;

/// The files below a directory.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// The files of blobs and uploads.
pub(crate) fn kept(server: &TestServer) -> Vec<PathBuf> {
    let blobs = server.data_dir().join("blobs");
    ["sha256", "sha512", "uploads"].iter().flat_map(|part| files(&blobs.join(part))).collect()
}

fn blob_file(server: &TestServer, digest: &str) -> PathBuf {
    let hex = digest.strip_prefix("sha256:").unwrap();
    let all = files(&server.data_dir().join("blobs/sha256"));
    let mut of: Vec<_> = all.into_iter().filter(|path| path.to_string_lossy().contains(hex)).collect();
    assert_eq!(of.len(), 1, "{of:?}");
    of.remove(0)
}

async fn a_blob_that_lost_its_bytes_is_unknown_until_it_is_pushed_again(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (name, other) = (format!("{org}/app"), format!("{org}/other"));
    client.image(&name, "1", b"a layer").await;
    let digest = digest(b"a layer");
    let blob = format!("/v2/{name}/blobs/{digest}");
    let head = async || client.send(&format!("HEAD {blob}"), &[], b"").await.status;
    for damage in [
        &(|path: &Path| std::fs::remove_file(path).unwrap()) as &dyn Fn(&Path),
        &|path| std::fs::write(path, b"a lay").unwrap(),
        &|path| std::fs::write(path, b"a layer and more").unwrap(),
    ] {
        assert_eq!(head().await, 200);
        damage(&blob_file(server, &digest));
        assert_eq!(head().await, 404);
        assert_eq!(code(&client.get(&blob).await, 404), "BLOB_UNKNOWN");
        let mount = format!("POST /v2/{other}/blobs/uploads/?mount={digest}&from={name}");
        assert_eq!(client.send(&mount, &[], b"").await.status, 202, "it is to be pushed");
        client.blob(&other, b"a layer").await;
        assert_eq!(client.get(&blob).await.body, b"a layer");
        blob_file(server, &digest);
    }
}

async fn files_of_uploads_end_with_their_rows(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let uploads = server.data_dir().join("blobs/uploads");
    client.begin(&format!("{org}/gone")).await;
    let stays = client.begin(&format!("{org}/stays")).await;
    let door = &server.server().parts().distribution;
    door.expire_uploads().await.expect("uploads expire");
    assert_eq!(files(&uploads).len(), 2);
    let repo = repo_uid(server, "gone").await;
    let operator = server.operator().await;
    assert_eq!(operator.rest("DELETE", &format!("/registry/v2/repos/{repo}"), None).await.status, 200);
    door.expire_uploads().await.expect("uploads expire");
    let id = stays.rsplit('/').next().unwrap();
    assert_eq!(files(&uploads), [uploads.join(id)]);
    assert_eq!(client.send(&format!("PATCH {stays}"), &[], b"x").await.status, 202);
    server.clock().advance(std::time::Duration::from_secs(24 * 3600));
    door.expire_uploads().await.expect("uploads expire");
    assert_eq!(files(&uploads), Vec::<PathBuf>::new());
}

each_engine!(
    multi_thread:
    a_blob_that_lost_its_bytes_is_unknown_until_it_is_pushed_again,
    files_of_uploads_end_with_their_rows
);
