//! Pushes and pulls over the distribution protocol.

use std::collections::BTreeSet;

use bowline_server::StartError;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder};

use crate::clock::SECOND;
use crate::image::{Content, INDEX, Release};
use crate::world::World;

/// What was pushed to one repository already.
#[derive(Default)]
pub(crate) struct Pushed(BTreeSet<String>);

/// Pushes a release, and names it with these tags.
pub(crate) async fn push(
    world: &mut World,
    caller: &str,
    path: &str,
    release: &Release,
    tags: &[&str],
    pushed: &mut Pushed,
) -> Result<(), StartError> {
    world.pause(60, 1200);
    let token = world.token(caller).await?;
    let base = format!("{}/v2/{path}", world.base());
    for blob in &release.blobs {
        if pushed.0.insert(blob.digest.clone()) {
            let url = format!("{base}/blobs/uploads/?digest={}", blob.digest);
            let request = world.http().request(Method::POST, url).header(CONTENT_TYPE, "application/octet-stream");
            send(request.body(blob.bytes.clone()), &token, path).await?;
        }
    }
    for manifest in &release.manifests {
        put(world, &base, manifest, &manifest.digest, &token).await?;
    }
    for tag in tags {
        put(world, &base, &release.index, tag, &token).await?;
    }
    world.clock().advance(20 * SECOND);
    put(world, &base, &release.sbom, &release.sbom.digest, &token).await
}

/// Pulls the manifest of a tag.
pub(crate) async fn pull(world: &mut World, caller: &str, path: &str, tag: &str) -> Result<(), StartError> {
    let token = world.token(caller).await?;
    let url = format!("{}/v2/{path}/manifests/{tag}", world.base());
    let request = world.http().request(Method::GET, url).header(reqwest::header::ACCEPT, INDEX);
    send(request, &token, path).await
}

/// Removes a tag; the image stays until it is collected.
pub(crate) async fn untag(world: &mut World, caller: &str, path: &str, tag: &str) -> Result<(), StartError> {
    let token = world.token(caller).await?;
    let url = format!("{}/v2/{path}/manifests/{tag}", world.base());
    send(world.http().request(Method::DELETE, url), &token, path).await
}

async fn put(world: &World, base: &str, manifest: &Content, name: &str, token: &str) -> Result<(), StartError> {
    let url = format!("{base}/manifests/{name}");
    let request = world.http().request(Method::PUT, url).header(CONTENT_TYPE, manifest.media_type);
    send(request.body(manifest.bytes.clone()), token, base).await
}

async fn send(request: RequestBuilder, token: &str, path: &str) -> Result<(), StartError> {
    let refused = |why: String| StartError::Unusable {
        cause: format!("cannot make the demonstration data: the registry at {path}: {why}"),
        hint: "remove the directory of the demonstration and run the command again".into(),
    };
    let response = request.basic_auth("_token", Some(token)).send().await;
    let response = response.map_err(|error| refused(error.to_string()))?;
    let status = response.status();
    let body = response.text().await.map_err(|error| refused(error.to_string()))?;
    if status.is_success() { Ok(()) } else { Err(refused(format!("{status}: {body}"))) }
}
