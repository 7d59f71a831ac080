//! Which images SBOMs are about, and their tags: a few statements for all of a page.

use std::collections::{BTreeMap, BTreeSet};

use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::sbom_id;
use super::write::INDEXED;
use crate::attached;
use crate::content::is_digest;
use crate::tags::Hidden;

/// A repository, and the digest of something in it.
pub type InRepo = (String, String);

/// Keys that one statement names.
const AT_ONCE: usize = 200;
/// Indexes that are looked into for one statement.
const MAX_INDEXES: i64 = 200;
/// Tags that one statement reads, and tags of an image that are shown.
const MAX_TAGS: i64 = 20_000;
const SHOWN_TAGS: usize = 50;

/// Begins a statement that joins these keys, as the table `wanted`.
pub(super) fn with_keys(wanted: &[InRepo]) -> Sql<'_> {
    let mut sql = Sql::new("WITH wanted (repo, digest) AS (VALUES ");
    for (at, (repo, digest)) in wanted.iter().enumerate() {
        sql.bind(if at == 0 { "(" } else { ", (" }, repo).bind(", ", digest).push(")");
    }
    sql.push(") ");
    sql
}

pub(super) fn pair(row: &Row<'_>) -> Result<InRepo> {
    Ok((row.text(0)?, row.text(1)?))
}

/// The images that each SBOM is about, of those that its repository has; SBOMs are named by their blobs.
pub async fn images(tx: &mut ReadTx, sboms: &BTreeSet<InRepo>) -> Result<BTreeMap<InRepo, BTreeSet<String>>> {
    let sboms: Vec<InRepo> = sboms.iter().cloned().collect();
    let mut found: BTreeMap<InRepo, BTreeSet<String>> = BTreeMap::new();
    for part in sboms.chunks(AT_ONCE) {
        for (sbom, image) in images_of(tx, part).await? {
            found.entry(sbom).or_default().insert(image);
        }
    }
    Ok(found)
}

async fn images_of(tx: &mut ReadTx, sboms: &[InRepo]) -> Result<Vec<(InRepo, String)>> {
    let mut sql = with_keys(sboms);
    sql.push(
        "SELECT w.repo, w.digest, r.digest, r.subject FROM wanted w CROSS JOIN manifest_references f
         JOIN repo_manifests r ON r.repo = w.repo AND r.digest = f.manifest WHERE f.digest = w.digest AND f.kind = 2",
    );
    let read = |row: &Row<'_>| Ok::<_, Error>((pair(row)?, row.text(2)?, row.text(3)?));
    let (mut about, mut unnamed): (_, BTreeMap<InRepo, Vec<InRepo>>) = (Vec::new(), BTreeMap::new());
    for (sbom, manifest, subject) in tx.query(&sql.text, &sql.params, read).await? {
        if subject.is_empty() {
            unnamed.entry((sbom.0.clone(), manifest)).or_default().push(sbom);
        } else {
            about.push((sbom, subject));
        }
    }
    let manifests: Vec<InRepo> = unnamed.keys().cloned().collect();
    for part in manifests.chunks(AT_ONCE) {
        for (manifest, image) in by_tags(tx, part).await?.into_iter().chain(by_indexes(tx, part).await?) {
            let sboms = unnamed.get(&manifest).into_iter().flatten();
            about.extend(sboms.map(|sbom| (sbom.clone(), image.clone())));
        }
    }
    let images: BTreeSet<InRepo> = about.iter().map(|(sbom, image)| (sbom.0.clone(), image.clone())).collect();
    let held = held(tx, images.into_iter().collect()).await?;
    about.retain(|(sbom, image)| held.contains(&(sbom.0.clone(), image.clone())));
    Ok(about)
}

/// Numbers of the indexed SBOMs that are about an image.
///
/// # Errors
/// Those of the database.
pub async fn sboms_of(tx: &mut ReadTx, repo: &Uidp, image: &str) -> Result<Vec<Vec<u8>>> {
    let manifests = attached::manifests(tx, repo, image).await?;
    if manifests.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new(
        "SELECT DISTINCT f.digest FROM manifest_references f CROSS JOIN repo_manifests r
         WHERE r.digest = f.manifest AND f.kind = 2 AND lower(f.media_type) LIKE '%json%'",
    );
    sql.bind(" AND r.repo = ", repo.as_str()).bind_list(" AND f.manifest IN ", manifests.iter().map(Value::from));
    let blobs = tx.query(&sql.text, &sql.params, |row| row.text(0).map_err(Error::from)).await?;
    let ids: Vec<Vec<u8>> = blobs.iter().filter_map(|digest| sbom_id(digest)).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new("SELECT sbom FROM repo_sboms");
    sql.bind(" WHERE repo = ", repo.as_str()).bind(" AND state = ", INDEXED);
    sql.bind_list(" AND sbom IN ", ids.iter().map(Value::from)).push(" ORDER BY sbom");
    tx.query(&sql.text, &sql.params, |row| row.bytes(0).map_err(Error::from)).await
}

/// The images that manifests are about by tags such as `sha256-<digest>.att`.
async fn by_tags(tx: &mut ReadTx, manifests: &[InRepo]) -> Result<Vec<(InRepo, String)>> {
    let mut sql = with_keys(manifests);
    let hint = tx.index_hint("tags_by_digest");
    sql.push(&format!(
        "SELECT t.parent, t.digest, t.name FROM wanted w CROSS JOIN tags t {hint}
         WHERE t.parent = w.repo AND t.digest = w.digest"
    ));
    sql.bind(" AND t.hidden = ", Hidden::Referrer as i64).push(&format!(" LIMIT {MAX_TAGS}"));
    let rows = tx.query(&sql.text, &sql.params, |row| Ok::<_, Error>((pair(row)?, row.text(2)?))).await?;
    Ok(rows.into_iter().filter_map(|(manifest, name)| Some((manifest, image_of_tag(&name)?))).collect())
}

pub(super) fn image_of_tag(name: &str) -> Option<String> {
    let name = name.strip_suffix(".sbom").or_else(|| name.strip_suffix(".att"))?;
    Some(name.replacen('-', ":", 1)).filter(|digest| is_digest(digest))
}

/// The images that manifests are about by annotations of an index that names both.
async fn by_indexes(tx: &mut ReadTx, manifests: &[InRepo]) -> Result<Vec<(InRepo, String)>> {
    let mut sql = with_keys(manifests);
    sql.push(&format!(
        "SELECT w.repo, w.digest, m.content FROM wanted w CROSS JOIN manifest_references f
         JOIN repo_manifests r ON r.repo = w.repo AND r.digest = f.manifest JOIN manifests m ON m.digest = f.manifest
         WHERE f.digest = w.digest AND f.kind = 3 LIMIT {MAX_INDEXES}"
    ));
    let rows = tx.query(&sql.text, &sql.params, |row| Ok::<_, Error>((pair(row)?, row.bytes(2)?))).await?;
    let mut about = Vec::new();
    for (manifest, index) in rows {
        let named = attached::subjects_in(&index).into_iter().find(|(member, _)| *member == manifest.1);
        about.extend(named.map(|(_, image)| (manifest, image)));
    }
    Ok(about)
}

/// Those of these manifests that their repositories have.
async fn held(tx: &mut ReadTx, manifests: Vec<InRepo>) -> Result<BTreeSet<InRepo>> {
    let mut held = BTreeSet::new();
    for part in manifests.chunks(AT_ONCE) {
        let mut sql = with_keys(part);
        sql.push(
            "SELECT w.repo, w.digest FROM wanted w CROSS JOIN repo_manifests r
             WHERE r.repo = w.repo AND r.digest = w.digest",
        );
        held.extend(tx.query(&sql.text, &sql.params, pair).await?);
    }
    Ok(held)
}

/// The first tags of these images and of the indexes that they are members of.
pub async fn tags(tx: &mut ReadTx, images: &BTreeSet<InRepo>) -> Result<BTreeMap<InRepo, Vec<String>>> {
    let images: Vec<InRepo> = images.iter().cloned().collect();
    let mut tags: BTreeMap<InRepo, BTreeSet<String>> = BTreeMap::new();
    for part in images.chunks(AT_ONCE) {
        let hint = tx.index_hint("tags_by_digest");
        let shown = format!("t.hidden <> {}", Hidden::Referrer as i64);
        let mut own = with_keys(part);
        own.push(&format!(
            "SELECT w.repo, w.digest, t.name FROM wanted w CROSS JOIN tags t {hint}
             WHERE t.parent = w.repo AND t.digest = w.digest AND {shown} LIMIT {MAX_TAGS}"
        ));
        let mut of_indexes = with_keys(part);
        of_indexes.push(&format!(
            "SELECT w.repo, w.digest, t.name FROM wanted w CROSS JOIN manifest_references f
             JOIN tags t {hint} ON t.parent = w.repo AND t.digest = f.manifest
             WHERE f.digest = w.digest AND f.kind = 3 AND {shown} LIMIT {MAX_TAGS}"
        ));
        for sql in [own, of_indexes] {
            let read = |row: &Row<'_>| Ok::<_, Error>((pair(row)?, row.text(2)?));
            for (image, tag) in tx.query(&sql.text, &sql.params, read).await? {
                tags.entry(image).or_default().insert(tag);
            }
        }
    }
    Ok(tags.into_iter().map(|(image, tags)| (image, tags.into_iter().take(SHOWN_TAGS).collect())).collect())
}

/// The names of these repositories.
pub async fn repo_names(tx: &mut ReadTx, repos: &BTreeSet<&str>) -> Result<BTreeMap<String, String>> {
    if repos.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut sql = Sql::new("SELECT uid, name FROM repos WHERE ");
    sql.bind_list("uid IN ", repos.iter().map(|repo| Value::from(*repo)));
    Ok(tx.query(&sql.text, &sql.params, pair).await?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_referrers_name_their_images() {
        let hex = "a".repeat(64);
        for suffix in ["sbom", "att"] {
            assert_eq!(image_of_tag(&format!("sha256-{hex}.{suffix}")), Some(format!("sha256:{hex}")));
        }
        for name in ["latest", "sha256-12.att"].into_iter().map(String::from).chain([format!("sha256-{hex}.sig")]) {
            assert_eq!(image_of_tag(&name), None, "{name}");
        }
    }
}
