//! What an SBOM costs its push, and what an image policy costs pulls.

use std::time::Instant;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::image_policies::UpdateImagePolicy;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::repos_service::ListRepos;

use bytes::Bytes;
use http::HeaderValue;
use prost_types::FieldMask;
use serde_json::json;

use super::pulls::{TURNS, turn};
use super::wire::{Content, Side, Wire};
use super::{KIB, image, known, manifest, side_of};
use crate::Outcome;
use crate::environment::Environment;
use crate::exchange::data_place;
use crate::issuer::Issuer;
use crate::sample::{Sample, median};
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

/// Components of an SBOM.
const COMPONENTS: usize = 2000;
/// Pushes of each kind.
const PUSHES: usize = 60;

const SBOM: &str = "application/vnd.cyclonedx+json";
/// Nobody looks into content of this type.
const OTHER: &str = "application/octet-stream";

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir_in(data_place(environment)?)?;
    let server = Server::start(environment, &directory.path().join("data")).await?;
    let issuer = Issuer::start().await?;
    let mut world = World::prepare(&server, &issuer, None).await?;
    let side = side_of(&mut world, &server, &issuer).await?;
    let mut wire = Wire::open(&side).await?;
    let subject = push_image(&mut wire).await?;
    let [with, without] = pushes(&mut wire, &subject).await?;
    let line = "push with an SBOM of 2,000 components: more than of other content";
    table.row(line, Unit::Milliseconds, Target::AtMost(30.0), with - without);
    note(&format!("medians of {PUSHES}: {with:.2} ms, and {without:.2} ms for as many bytes"));

    let token = world.puller(&server, &issuer).await?;
    let puller = Side { token: Some(HeaderValue::from_str(&format!("Bearer {token}"))?), ..side };
    let repos = v2::ListReposRequest { name: Some("app".into()), ..v2::ListReposRequest::default() };
    let repo = world.call::<ListRepos>(&repos).await?.repos.pop().ok_or("the repository is not there")?.uid;
    let mut figures = [Vec::new(), Vec::new()];
    for _ in 0..=TURNS {
        for (rules, figures) in [Vec::new(), vec![requires_an_sbom()]].into_iter().zip(&mut figures) {
            let policy = own::ImagePolicy { uid: repo.clone(), rules, ..own::ImagePolicy::default() };
            let update_mask = Some(FieldMask { paths: vec!["rules".into()] });
            world
                .call::<UpdateImagePolicy>(&own::UpdateImagePolicyRequest { policy: Some(policy), update_mask })
                .await?;
            figures.push(turn(&server, &puller).await?);
        }
    }
    let [without, with] = figures.map(|figures| median(figures[1..].to_vec()));
    let line = "processor time of a pull under an image policy, of one without";
    table.row(line, Unit::Percent, Target::AtMost(105.0), with / without * 100.0);
    note(&format!("{with:.3} and {without:.3} seconds per 1,000 pulls of a manifest, median of {TURNS} turns"));
    Ok(())
}

fn requires_an_sbom() -> own::ImageRule {
    own::ImageRule {
        name: "sbom".into(),
        mode: own::ImagePolicyMode::Enforce.into(),
        sbom: Some(own::SbomRequirement {}),
        ..own::ImageRule::default()
    }
}

/// The image that is pulled, and its descriptor.
async fn push_image(wire: &mut Wire) -> Outcome<serde_json::Value> {
    let blobs = [known(3, KIB), known(4, 4 * KIB)];
    let content = manifest(&blobs[0].1, KIB, &[(&blobs[1].1, 4 * KIB)]);
    image(wire, "pulled", blobs).await?;
    let (size, digest) = (content.len(), Content::whole(content).digest());
    Ok(json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": size }))
}

/// Milliseconds of a push of an SBOM, and of as many bytes that are none, by turns: the medians.
async fn pushes(wire: &mut Wire, subject: &serde_json::Value) -> Outcome<[f64; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..PUSHES {
        for (media_type, times) in [SBOM, OTHER].into_iter().zip(&mut times) {
            // Each is pushed for the first time.
            let content = Content::whole(sbom(number, media_type));
            let started = Instant::now();
            attach(wire, subject, content, media_type).await?;
            times.push(started.elapsed().as_nanos() as u64);
        }
    }
    Ok(times.map(|times| Sample::new(times).milliseconds(0.5)))
}

async fn attach(wire: &mut Wire, subject: &serde_json::Value, content: Content, media_type: &str) -> Outcome<()> {
    let (digest, size) = (content.digest(), content.end.len());
    wire.push_blob(&digest, content).await?;
    let (empty, config) = (Content::whole(Bytes::from_static(b"{}")), "application/vnd.oci.empty.v1+json");
    let config_digest = empty.digest();
    if !wire.has_blob(&config_digest).await? {
        wire.push_blob(&config_digest, empty).await?;
    }
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": media_type,
        "config": { "mediaType": config, "digest": config_digest, "size": 2 },
        "layers": [{ "mediaType": media_type, "digest": digest, "size": size }],
        "subject": subject,
    });
    let bytes = Bytes::from(manifest.to_string());
    let reference = Content::whole(bytes.clone()).digest();
    wire.push_manifest(&reference, bytes).await
}

fn sbom(number: usize, comment: &str) -> Bytes {
    let component = |n: usize| {
        let (name, version) = (format!("package-{n}"), format!("1.{number}.0"));
        json!({
            "type": "library", "name": name, "version": version, "purl": format!("pkg:npm/{name}@{version}"),
            "licenses": [{ "license": { "id": "MIT" } }],
        })
    };
    let components: Vec<_> = (0..COMPONENTS).map(component).collect();
    let document = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components,
        "metadata": { "component": { "type": "container", "name": comment } },
    });
    document.to_string().into()
}
