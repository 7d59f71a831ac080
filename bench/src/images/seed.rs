//! Images with SBOMs of 300 components, written past the server.

use std::path::PathBuf;
use std::sync::Arc;

use bowline_core::Uidp;
use bowline_store::{Db, StoreError, Value, WriteTx};
use bowline_versions::{Scheme, order_key};

use crate::Outcome;
use crate::environment::Environment;
use crate::seed::{self, spread};
use crate::table::complain;

const REPOS: usize = 100;
/// Components of an image. The last is in every image, and each other package in one image of `SHARED`.
pub(super) const COMPONENTS: usize = 300;
const SHARED: usize = 66;
/// Versions of a package.
const VERSIONS: usize = 10;
/// The package in every image.
pub(super) const EVERYWHERE: &str = "npm/everywhere";
/// Packages with the license that is rare.
const RARE: usize = 2000;
/// Rows of one transaction, about.
const BATCH: usize = 30_000;
/// 2025-01-01, in microseconds.
const CREATED_AT: i64 = 1_735_689_600_000_000;

/// A directory with many images in one organization.
pub(super) struct Images {
    pub(super) directory: PathBuf,
    pub(super) org: String,
    /// Packages, without the one in every image.
    pub(super) packages: usize,
}

/// An image, and where it is.
#[derive(Clone)]
struct Image {
    number: usize,
    repo: Uidp,
    digest: String,
    /// Of the manifest of its SBOM, of the SBOM, and the key that components have.
    attached: String,
    sbom: String,
    key: Vec<u8>,
}

pub(super) async fn images(environment: &Environment, count: usize) -> Outcome<Images> {
    let directory = environment.cache.join(format!("images-{count}-{}", seed::schema()));
    let org = Uidp::root_from([0x0d; 20]);
    let found = Images { directory, org: org.as_str().into(), packages: (COMPONENTS - 1) * SHARED };
    if found.directory.exists() {
        return Ok(found);
    }
    complain(&format!("preparing {count} images of {COMPONENTS} components, once"));
    let draft = found.directory.with_extension("draft");
    let db = seed::create(&draft).await?;
    let group = org.child_from(spread(0));
    seed::groups(&db, vec![(org.clone(), "images".into()), (group.clone(), "group".into())]).await?;
    let repos: Vec<Uidp> = (0..REPOS).map(|n| group.child_from(spread(n as u64 + 1000))).collect();
    seed::repos(&db, repos.iter().enumerate().map(|(n, uid)| (uid.clone(), format!("repository-{n}"))).collect())
        .await?;
    let mut images: Vec<Image> = (0..count).map(|number| image(number, &repos[number % REPOS])).collect();
    // In the order of their trees, which so grow at their ends.
    images.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    for part in images.chunks(BATCH / COMPONENTS) {
        write(&db, part.to_vec(), |tx, image| Box::pin(components(tx, image))).await?;
    }
    images.sort_unstable_by(|a, b| (&a.repo, &a.key).cmp(&(&b.repo, &b.key)));
    for part in images.chunks(BATCH / 10) {
        write(&db, part.to_vec(), |tx, image| Box::pin(content(tx, image))).await?;
    }
    where_packages_are(&db, &images).await?;
    let sboms = "INSERT INTO version_sboms (package, version, sbom, origin)
                 SELECT package, version, sbom, origin FROM components ORDER BY package, version, sbom";
    execute(&db, sboms).await?;
    let versions = "INSERT INTO package_versions (package, version, origin, record_package, record_source, state)
                    SELECT DISTINCT package, version, origin, package, '', 0 FROM version_sboms";
    execute(&db, versions).await?;
    db.close().await;
    std::fs::rename(&draft, &found.directory)?;
    Ok(found)
}

fn image(number: usize, repo: &Uidp) -> Image {
    let bytes = |salt: u64| (0..4).flat_map(|part| spread(number as u64 * 64 + salt + part)).collect::<Vec<u8>>();
    let sbom = bytes(8);
    Image {
        number,
        repo: repo.clone(),
        digest: digest(&bytes(0)),
        attached: digest(&bytes(4)),
        key: sbom[..16].to_vec(),
        sbom: digest(&sbom),
    }
}

fn digest(bytes: &[u8]) -> String {
    bytes.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// The package that a component of an image is of, its version and its license.
fn component(image: usize, component: usize) -> (String, String, &'static str) {
    if component == COMPONENTS - 1 {
        return (EVERYWHERE.into(), format!("1.{}.0", image % VERSIONS), "MIT");
    }
    let package = component * SHARED + image % SHARED;
    let license = if package.is_multiple_of(RARE) { "GPL-3.0-only" } else { "MIT" };
    (package_name(package), format!("1.{}.0", image / SHARED % VERSIONS), license)
}

pub(super) fn package_name(package: usize) -> String {
    format!("npm/package-{package}")
}

async fn components(tx: &mut WriteTx, image: &Image) -> Result<(), StoreError> {
    let sql = "INSERT INTO components (sbom, number, package, name, version, version_key, purl, license)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    for number in 0..COMPONENTS {
        let (package, version, license) = component(image.number, number);
        let key = order_key(Scheme::of_purl_type("npm"), &version);
        let purl = format!("pkg:{package}@{version}");
        let params = [
            Value::from(&image.key),
            Value::Int(number as i64),
            Value::from(&package),
            Value::from(package.trim_start_matches("npm/")),
            Value::from(&version),
            Value::from(&key),
            Value::from(&purl),
            Value::from(license),
        ];
        tx.execute(sql, &params).await?;
    }
    Ok(())
}

/// The manifests of an image and of its SBOM, and the licenses of its repository.
async fn content(tx: &mut WriteTx, image: &Image) -> Result<(), StoreError> {
    let (repo, org) = (image.repo.as_str(), image.repo.root_str());
    for (digest, subject) in [(&image.digest, ""), (&image.attached, image.digest.as_str())] {
        let sql = "INSERT INTO manifests (digest, media_type, artifact_type, config_digest, subject, shape, total_size,
                     annotations, content, created_at)
                   VALUES ($1, 'application/vnd.oci.image.manifest.v1+json', '', '', $2, 1, 2, '{}', $3, $4)";
        let params = [Value::from(digest), Value::from(subject), Value::Bytes(b"{}"), Value::Int(CREATED_AT)];
        tx.execute(sql, &params).await?;
        let sql = "INSERT INTO repo_manifests (repo, digest, org, subject, artifact_type, pushed_at)
                   VALUES ($1, $2, $3, $4, '', $5)";
        let params = [repo.into(), digest.into(), org.into(), subject.into(), Value::Int(CREATED_AT)];
        tx.execute(sql, &params).await?;
    }
    let sql =
        "INSERT INTO manifest_references (manifest, place, kind, digest, media_type, size, os, architecture, variant)
               VALUES ($1, 1, 2, $2, 'application/vnd.cyclonedx+json', 2, '', '', '')";
    tx.execute(sql, &[Value::from(&image.attached), Value::from(&image.sbom)]).await?;
    let sql = "INSERT INTO repo_sboms (repo, sbom, digest, state) VALUES ($1, $2, $3, 0)";
    tx.execute(sql, &[repo.into(), Value::from(&image.key), Value::from(&image.sbom)]).await?;
    let has_rare = (0..COMPONENTS).any(|number| component(image.number, number).2 != "MIT");
    let rare = has_rare.then_some("gpl-3.0-only");
    for license in ["mit"].into_iter().chain(rare) {
        let sql = "INSERT INTO component_licenses (license, repo, sbom) VALUES ($1, $2, $3)";
        tx.execute(sql, &[license.into(), repo.into(), Value::from(&image.key)]).await?;
    }
    Ok(())
}

/// The images of each package, in the order of the table.
async fn where_packages_are(db: &Db, images: &[Image]) -> Outcome<()> {
    let mut packages: Vec<(String, usize, usize)> = Vec::new();
    for number in 0..COMPONENTS - 1 {
        packages.extend((0..SHARED).map(|rest| (package_name(number * SHARED + rest), number, rest)));
    }
    packages.sort_unstable();
    let of = |rest: usize| images.iter().filter(move |image| image.number % SHARED == rest);
    let by_rest: Vec<Vec<(String, Vec<u8>)>> = (0..SHARED)
        .map(|rest| of(rest).map(|image| (image.repo.as_str().into(), image.key.clone())).collect())
        .collect();
    let all = images.iter().map(|image| (image.repo.as_str().to_owned(), image.key.clone())).collect();
    let mut rows = Vec::new();
    let everywhere = (EVERYWHERE.to_owned(), COMPONENTS - 1, &all);
    let packages = packages.into_iter().map(|(package, number, rest)| (package, number, &by_rest[rest]));
    for (package, number, images) in std::iter::once(everywhere).chain(packages) {
        rows.extend(images.iter().map(|(repo, key)| (package.clone(), repo.clone(), key.clone(), number)));
        if rows.len() >= BATCH {
            let batch = std::mem::take(&mut rows);
            write(db, batch, |tx, row| Box::pin(package_row(tx, row))).await?;
        }
    }
    write(db, rows, |tx, row| Box::pin(package_row(tx, row))).await
}

async fn package_row(
    tx: &mut WriteTx,
    (package, repo, key, number): &(String, String, Vec<u8>, usize),
) -> Result<(), StoreError> {
    let sql = "INSERT INTO component_packages (package, repo, sbom, number) VALUES ($1, $2, $3, $4)";
    tx.execute(sql, &[package.into(), repo.into(), Value::from(key), Value::Int(*number as i64)]).await?;
    Ok(())
}

/// Writes rows in one transaction.
async fn write<T: Send + Sync + 'static>(
    db: &Db,
    rows: Vec<T>,
    insert: for<'a> fn(&'a mut WriteTx, &'a T) -> bowline_store::BoxFuture<'a, Result<(), StoreError>>,
) -> Outcome<()> {
    let rows = Arc::new(rows);
    let written = db.write::<_, StoreError>(move |tx| {
        let rows = rows.clone();
        Box::pin(async move {
            for row in rows.iter() {
                insert(tx, row).await?;
            }
            Ok(())
        })
    });
    Ok(written.await?)
}

async fn execute(db: &Db, sql: &'static str) -> Outcome<()> {
    let done = db.write::<_, StoreError>(move |tx| Box::pin(async move { tx.execute(sql, &[]).await.map(|_| ()) }));
    Ok(done.await?)
}
