//! What waits until the task that matches compares the vulnerabilities of images again.
//!
//! Every change of an image, of what is attached to it and of where that is found out notes the image or the SBOM, whether
//! or not it comes to something: two pushes that complete each other do not see each other.

use std::collections::BTreeSet;

use bowline_core::{Error, Result, Uidp};
use bowline_store::{Sql, Value, WriteTx};

use super::links::{self, InRepo};
use super::write::INDEXED;
use crate::attached;
use crate::content::{Manifest, is_digest};

/// Rows that one statement inserts.
const AT_ONCE: usize = 100;

/// Notes an SBOM of a repository.
pub(super) async fn note_sbom(tx: &mut WriteTx, repo: &str, sbom: &[u8]) -> Result<()> {
    let sql = "INSERT INTO waiting_sboms (repo, sbom, noted) VALUES ($1, $2, 1)
               ON CONFLICT (repo, sbom) DO UPDATE SET noted = waiting_sboms.noted + 1";
    tx.execute(sql, &[Value::from(repo), Value::from(sbom)]).await?;
    Ok(())
}

/// Notes SBOMs in all repositories that have them. It is for the task that matches: what it notes and has noted before waits
/// for a step of its own, so that the number stays.
///
/// # Errors
/// Those of the database.
pub async fn note_sboms(tx: &mut WriteTx, sboms: &[Vec<u8>]) -> Result<()> {
    for part in sboms.chunks(AT_ONCE) {
        let mut sql =
            Sql::new("INSERT INTO waiting_sboms (repo, sbom, noted) SELECT repo, sbom, 1 FROM repo_sboms WHERE");
        sql.bind(" state = ", INDEXED).bind_list(" AND sbom IN ", part.iter().map(Value::from));
        sql.push(" ORDER BY repo, sbom ON CONFLICT (repo, sbom) DO NOTHING");
        tx.execute(&sql.text, &sql.params).await?;
    }
    Ok(())
}

/// Notes images.
///
/// # Errors
/// Those of the database.
pub async fn note_images(tx: &mut WriteTx, images: &BTreeSet<InRepo>) -> Result<()> {
    let images: Vec<&InRepo> = images.iter().collect();
    for part in images.chunks(AT_ONCE) {
        let mut sql = Sql::new("INSERT INTO waiting_images (repo, digest, noted) VALUES ");
        for (at, (repo, digest)) in part.iter().enumerate() {
            sql.bind(if at == 0 { "(" } else { ", (" }, repo).bind(", ", digest).push(", 1)");
        }
        sql.push(" ON CONFLICT (repo, digest) DO UPDATE SET noted = waiting_images.noted + 1");
        tx.execute(&sql.text, &sql.params).await?;
    }
    Ok(())
}

/// Notes a pushed manifest, which may be an image, and the images that it names what is about.
pub(crate) async fn note_pushed(
    tx: &mut WriteTx,
    repo: &Uidp,
    digest: &str,
    (manifest, content): (&Manifest, &[u8]),
) -> Result<()> {
    let subjects = if manifest.is_index() { attached::subjects_in(content) } else { Vec::new() };
    let subjects = subjects.into_iter().map(|(_, image)| image).filter(|image| is_digest(image));
    let digests = subjects.chain([digest.to_owned()]);
    note_images(tx, &digests.map(|digest| (repo.as_str().to_owned(), digest)).collect()).await
}

/// Notes a manifest that is about to be removed, and the images that its SBOMs are about.
pub(crate) async fn note_removed(tx: &mut WriteTx, repo: &Uidp, digest: &str) -> Result<()> {
    let sql =
        "SELECT digest FROM manifest_references WHERE manifest = $1 AND kind = 2 AND lower(media_type) LIKE '%json%'";
    let sboms = tx.query(sql, &[Value::from(digest)], |row| row.text(0).map_err(Error::from)).await?;
    let in_repo = |digest: String| (repo.as_str().to_owned(), digest);
    let mut noted = BTreeSet::from([in_repo(digest.to_owned())]);
    let subjects = attached::subjects_of(tx, digest).await?.into_iter().filter(|image| is_digest(image));
    noted.extend(subjects.map(in_repo));
    let images = links::images(tx, &sboms.into_iter().map(in_repo).collect()).await?;
    noted.extend(images.into_values().flatten().map(in_repo));
    note_images(tx, &noted).await
}

/// Notes the image that a tag such as `sha256-<digest>.att` names.
pub(crate) async fn note_tag(tx: &mut WriteTx, repo: &Uidp, name: &str) -> Result<()> {
    match links::image_of_tag(name) {
        Some(image) => note_images(tx, &BTreeSet::from([(repo.as_str().to_owned(), image)])).await,
        None => Ok(()),
    }
}

/// Notes all images of a repository that is deleted, also those that the task looks at now and has written nothing of.
pub(crate) async fn note_repo(tx: &mut WriteTx, repo: &Uidp) -> Result<()> {
    let waiting = "UPDATE waiting_images SET noted = noted + 1 WHERE repo = $1";
    tx.execute(waiting, &[Value::from(repo.as_str())]).await?;
    let sql = "INSERT INTO waiting_images (repo, digest, noted)
               SELECT DISTINCT repo, digest, 1 FROM image_findings WHERE repo = $1
               ON CONFLICT (repo, digest) DO UPDATE SET noted = waiting_images.noted + 1";
    tx.execute(sql, &[Value::from(repo.as_str())]).await?;
    Ok(())
}
