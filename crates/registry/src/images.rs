//! Manifests as the API looks at them: found through their repository, or not at all.

use bowline_core::{Error, Result, Uidp};
use bowline_resources::kinds::{IMAGE_CONFIG, MANIFEST};
use bowline_store::{ReadTx, Row, Value, WriteTx};
use serde_json::Value as Json;

/// What a manifest is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An image for one platform.
    Image,
    /// An index of images.
    Index,
    Other,
}

/// A manifest of a repository.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) digest: String,
    pub(crate) shape: Shape,
    /// Bytes of everything that it names, itself included.
    pub(crate) total_size: i64,
}

fn read(row: &Row<'_>) -> Result<Manifest> {
    Ok(Manifest { digest: row.text(0)?, shape: shape_of(row.int(1)?), total_size: row.int(2)? })
}

fn shape_of(number: i64) -> Shape {
    match number {
        1 => Shape::Image,
        2 => Shape::Index,
        _ => Shape::Other,
    }
}

/// The manifest of this digest, if the repository has it. What an index of the repository merely names is not
/// in it: anyone who pushes an index could name what belongs to others.
pub(crate) async fn find(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Option<Manifest>> {
    let sql = "SELECT m.digest, m.shape, m.total_size FROM repo_manifests r JOIN manifests m ON m.digest = r.digest
               WHERE r.repo = $1 AND r.digest = $2";
    tx.query_opt(sql, &[Value::from(repo.as_str()), Value::from(digest)], read).await
}

/// The same, which must be there.
pub(crate) async fn require(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Manifest> {
    find(tx, repo, digest).await?.ok_or_else(|| Error::not_found(MANIFEST, digest))
}

/// One image of an index: its architecture, and the manifest where the repository has it.
struct Member {
    architecture: String,
    manifest: Option<Manifest>,
}

/// What indexes give as the platform of what is no image, such as attestations.
const NO_PLATFORM: &str = "unknown";

async fn members(tx: &mut ReadTx, repo: &Uidp, index: &str) -> Result<Vec<Member>> {
    const MANIFEST_OF_INDEX: i64 = 3;
    let sql = "SELECT f.architecture, c.architecture, m.digest, m.shape, m.total_size
               FROM manifest_references f
               LEFT JOIN repo_manifests r ON r.repo = $2 AND r.digest = f.digest
               LEFT JOIN manifests m ON m.digest = r.digest
               LEFT JOIN image_configs c ON c.manifest = r.digest
               WHERE f.manifest = $1 AND f.kind = $3 ORDER BY f.place";
    let params = [Value::from(index), Value::from(repo.as_str()), Value::Int(MANIFEST_OF_INDEX)];
    let member = |row: &Row<'_>| {
        let named = row.text(0)?;
        let manifest = match row.opt_text(2)? {
            Some(digest) => Some(Manifest { digest, shape: shape_of(row.int(3)?), total_size: row.int(4)? }),
            None => None,
        };
        let architecture = if named.is_empty() { row.opt_text(1)?.unwrap_or_default() } else { named };
        Ok::<_, Error>(Member { architecture, manifest })
    };
    let mut members = tx.query(sql, &params, member).await?;
    members.retain(|member| !member.architecture.is_empty() && member.architecture != NO_PLATFORM);
    Ok(members)
}

/// The architectures that there is an image for, each once, in the order of the index.
pub(crate) async fn architectures(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Vec<String>> {
    let manifest = require(tx, repo, digest).await?;
    let all = match manifest.shape {
        Shape::Index => members(tx, repo, digest).await?.into_iter().map(|member| member.architecture).collect(),
        Shape::Image => architecture_of(tx, digest).await?.into_iter().collect(),
        Shape::Other => Vec::new(),
    };
    let mut once: Vec<String> = Vec::new();
    for architecture in all {
        if !once.contains(&architecture) {
            once.push(architecture);
        }
    }
    Ok(once)
}

/// The architecture of an image, where its config says one.
async fn architecture_of(tx: &mut ReadTx, manifest: &str) -> Result<Option<String>> {
    let sql = "SELECT architecture FROM image_configs WHERE manifest = $1 AND architecture <> ''";
    tx.query_opt(sql, &[Value::from(manifest)], |row| row.text(0).map_err(Error::from)).await
}

/// The architecture that is meant where none is named.
const USUAL_ARCHITECTURE: &str = "amd64";

/// The image for an architecture: the one of an index, or the image itself; with the architecture.
pub(crate) async fn for_architecture(
    tx: &mut ReadTx,
    repo: &Uidp,
    digest: &str,
    architecture: &str,
) -> Result<(Manifest, String)> {
    let manifest = require(tx, repo, digest).await?;
    let absent = |architecture_name: &str| Error::not_found(MANIFEST, format!("{digest} for {architecture_name}"));
    if manifest.shape == Shape::Index {
        let architecture_name = if architecture.is_empty() { USUAL_ARCHITECTURE } else { architecture };
        let members = members(tx, repo, digest).await?;
        let found = members.into_iter().find(|member| member.architecture == architecture_name);
        let found = found.and_then(|member| member.manifest).ok_or_else(|| absent(architecture_name))?;
        return Ok((found, architecture_name.to_owned()));
    }
    match architecture_of(tx, digest).await? {
        Some(own) if architecture.is_empty() || own == architecture => Ok((manifest, own)),
        None if architecture.is_empty() => Ok((manifest, String::new())),
        _ => Err(absent(architecture)),
    }
}

/// What the config of an image says of how it is run.
pub(crate) async fn run_config(tx: &mut ReadTx, manifest: &str) -> Result<Json> {
    let sql = "SELECT config FROM image_configs WHERE manifest = $1";
    let text = tx.query_opt(sql, &[Value::from(manifest)], |row| row.text(0).map_err(Error::from)).await?;
    let text = text.ok_or_else(|| Error::not_found(IMAGE_CONFIG, manifest))?;
    serde_json::from_str(&text).map_err(Error::internal)
}

/// The stored facts of the config of an image.
#[derive(Clone, Debug)]
pub(crate) struct ImageConfig {
    pub(crate) os: String,
    pub(crate) architecture: String,
    pub(crate) variant: String,
    /// JSON object: how the image is run.
    pub(crate) run: String,
}

/// Keeps what the config of an image says, with the first push that has it.
pub(crate) async fn put_image_config(tx: &mut WriteTx, manifest_digest: &str, config: &ImageConfig) -> Result<()> {
    let sql = "INSERT INTO image_configs (manifest, os, architecture, variant, config) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT DO NOTHING";
    let params = [
        Value::from(manifest_digest),
        Value::from(&config.os),
        Value::from(&config.architecture),
        Value::from(&config.variant),
        Value::from(&config.run),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
