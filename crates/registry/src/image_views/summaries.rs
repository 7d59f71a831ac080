//! The summaries of images in lists: a few statements for a whole page.

use std::collections::BTreeMap;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_core::{Error, Result, Uidp};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value};

use crate::vuln_counts;

/// Tags of an image that are shown.
const SHOWN_TAGS: usize = 50;
/// Referrers, tags and members that one page reads.
const MAX_ROWS: i64 = 20_000;

/// What is attached to an image, by the type of the artifact or the end of the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Badge {
    Signature,
    Sbom,
    Attestation,
}

impl Badge {
    fn of_artifact(artifact_type: &str) -> Option<Badge> {
        let has = |part: &str| artifact_type.contains(part);
        if has("sbom") || has("spdx") || has("cyclonedx") {
            Some(Badge::Sbom)
        } else if has("in-toto") || has("attestation") || has("slsa") {
            Some(Badge::Attestation)
        } else if has("signature") || has("sigstore") || has("cosign") {
            Some(Badge::Signature)
        } else {
            None
        }
    }

    fn of_tag(end: &str) -> Option<Badge> {
        match end {
            ".sig" => Some(Badge::Signature),
            ".sbom" => Some(Badge::Sbom),
            ".att" => Some(Badge::Attestation),
            _ => None,
        }
    }

    fn put(self, summary: &mut own::ImageSummary) {
        match self {
            Badge::Signature => summary.signed = true,
            Badge::Sbom => summary.has_sbom = true,
            Badge::Attestation => summary.has_attestation = true,
        }
    }
}

/// The images of these digests that the repository has, in the given order.
pub(super) async fn summaries(tx: &mut ReadTx, repo: &Uidp, digests: &[String]) -> Result<Vec<own::ImageSummary>> {
    if digests.is_empty() {
        return Ok(Vec::new());
    }
    let mut images = manifests(tx, repo, digests).await?;
    if images.is_empty() {
        return Ok(Vec::new());
    }
    tags(tx, repo, &mut images).await?;
    platforms(tx, repo, &mut images).await?;
    referrers(tx, repo, &mut images).await?;
    referrer_tags(tx, repo, &mut images).await?;
    for (digest, (created_at, ids)) in vuln_counts::newest(tx, repo, digests).await? {
        if let Some(image) = images.get_mut(&digest) {
            let count = |severity: Severity| ids.get(&(severity as i32)).map_or(0, |ids| ids.len() as i32);
            image.findings = Some(own::FindingCounts {
                report_time: timestamp(created_at),
                critical: count(Severity::Critical),
                high: count(Severity::High),
                medium: count(Severity::Medium),
                low: count(Severity::Low),
                negligible: count(Severity::Negligible),
                unknown: count(Severity::Unknown),
            });
        }
    }
    Ok(digests.iter().filter_map(|digest| images.remove(digest)).collect())
}

type Summaries = BTreeMap<String, own::ImageSummary>;

/// Parameters of a statement about these digests in a repository, and their positions, from `$2` on.
pub(super) fn about<'a>(repo: &'a Uidp, digests: impl Iterator<Item = &'a String>) -> (Vec<Value<'a>>, String) {
    let mut params = vec![Value::from(repo.as_str())];
    params.extend(digests.map(Value::from));
    let positions: Vec<String> = (2..=params.len()).map(|n| format!("${n}")).collect();
    (params, positions.join(", "))
}

async fn manifests(tx: &mut ReadTx, repo: &Uidp, digests: &[String]) -> Result<Summaries> {
    let (params, positions) = about(repo, digests.iter());
    let sql = format!(
        "SELECT m.digest, m.media_type, r.artifact_type, m.total_size, r.pushed_at, r.last_pulled_at
         FROM repo_manifests r JOIN manifests m ON m.digest = r.digest WHERE r.repo = $1 AND r.digest IN ({positions})"
    );
    let read = |row: &Row<'_>| {
        let digest = row.text(0)?;
        let summary = own::ImageSummary {
            digest: digest.clone(),
            media_type: row.text(1)?,
            artifact_type: row.text(2)?,
            size: row.int(3)?,
            push_time: timestamp(row.int(4)?),
            pull_time: row.opt_int(5)?.and_then(timestamp),
            ..own::ImageSummary::default()
        };
        Ok::<_, Error>((digest, summary))
    };
    Ok(tx.query(&sql, &params, read).await?.into_iter().collect())
}

async fn tags(tx: &mut ReadTx, repo: &Uidp, images: &mut Summaries) -> Result<()> {
    let rows = {
        let (params, positions) = about(repo, images.keys());
        let sql = format!(
            "SELECT digest, name FROM tags {} WHERE parent = $1 AND digest IN ({positions}) ORDER BY digest, name
             LIMIT {MAX_ROWS}",
            tx.index_hint("tags_by_digest")
        );
        tx.query(&sql, &params, |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await?
    };
    for (digest, name) in rows {
        if let Some(image) = images.get_mut(&digest).filter(|image| image.tags.len() < SHOWN_TAGS) {
            image.tags.push(name);
        }
    }
    Ok(())
}

/// Platforms: of an index those of its images, whose bytes are its own; of an image that of its config.
async fn platforms(tx: &mut ReadTx, repo: &Uidp, images: &mut Summaries) -> Result<()> {
    let (members, own) = {
        let (params, positions) = about(repo, images.keys());
        let sql = format!(
            "SELECT f.manifest, f.os, f.architecture, f.variant, coalesce(m.total_size, 0)
             FROM manifest_references f
             LEFT JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.digest
             LEFT JOIN manifests m ON m.digest = r.digest
             WHERE f.manifest IN ({positions}) AND f.kind = 3 ORDER BY f.manifest, f.place LIMIT {MAX_ROWS}"
        );
        let read =
            |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, [row.text(1)?, row.text(2)?, row.text(3)?], row.int(4)?));
        let members = tx.query(&sql, &params, read).await?;
        let sql = format!(
            "SELECT manifest, os, architecture, variant FROM image_configs WHERE $1 <> '' AND manifest IN ({positions})"
        );
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, [row.text(1)?, row.text(2)?, row.text(3)?]));
        (members, tx.query(&sql, &params, read).await?)
    };
    for (digest, platform, size) in members {
        if let Some(image) = images.get_mut(&digest) {
            image.size += size;
            add_platform(image, &platform);
        }
    }
    for (digest, platform) in own {
        if let Some(image) = images.get_mut(&digest) {
            add_platform(image, &platform);
        }
    }
    Ok(())
}

fn add_platform(image: &mut own::ImageSummary, parts: &[String; 3]) {
    if let Some(platform) = platform(parts)
        && !image.platforms.contains(&platform)
    {
        image.platforms.push(platform);
    }
}

/// A platform as one text; absent for what is no image, such as attestations.
pub(super) fn platform(parts: &[String; 3]) -> Option<String> {
    const NO_PLATFORM: &str = "unknown";
    let is_known = |part: &&String| !part.is_empty() && part.as_str() != NO_PLATFORM;
    let known: Vec<&str> = parts.iter().filter(is_known).map(String::as_str).collect();
    (!known.is_empty()).then(|| known.join("/"))
}

async fn referrers(tx: &mut ReadTx, repo: &Uidp, images: &mut Summaries) -> Result<()> {
    let rows = {
        let (params, positions) = about(repo, images.keys());
        let sql = format!(
            "SELECT DISTINCT subject, artifact_type FROM repo_manifests {}
             WHERE repo = $1 AND subject IN ({positions}) AND subject <> '' LIMIT {MAX_ROWS}",
            tx.index_hint("repo_manifests_by_subject")
        );
        tx.query(&sql, &params, |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await?
    };
    for (subject, artifact_type) in rows {
        if let (Some(image), Some(badge)) = (images.get_mut(&subject), Badge::of_artifact(&artifact_type)) {
            badge.put(image);
        }
    }
    Ok(())
}

/// Older tools attach by tags, such as `sha256-<digest>.sig`.
async fn referrer_tags(tx: &mut ReadTx, repo: &Uidp, images: &mut Summaries) -> Result<()> {
    let mut by_tag: BTreeMap<String, (String, Badge)> = BTreeMap::new();
    for digest in images.keys() {
        for end in [".sig", ".sbom", ".att"] {
            let badge = Badge::of_tag(end).map(|badge| (digest.clone(), badge));
            by_tag.extend(badge.map(|badge| (format!("{}{end}", digest.replace(':', "-")), badge)));
        }
    }
    let names = {
        let (params, positions) = about(repo, by_tag.keys());
        let sql = format!("SELECT name FROM tags WHERE parent = $1 AND name IN ({positions})");
        tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?
    };
    for name in names {
        let Some((digest, badge)) = by_tag.get(&name) else { continue };
        if let Some(image) = images.get_mut(digest) {
            badge.put(image);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Badge;

    #[test]
    fn artifacts_are_known_by_their_type() {
        for (artifact_type, badge) in [
            ("application/vnd.dev.cosign.artifact.sig.v1+json", Some(Badge::Signature)),
            ("application/vnd.cncf.notary.signature", Some(Badge::Signature)),
            ("application/vnd.dev.sigstore.bundle.v0.3+json", Some(Badge::Signature)),
            ("application/spdx+json", Some(Badge::Sbom)),
            ("application/vnd.cyclonedx+json", Some(Badge::Sbom)),
            ("application/vnd.in-toto+json", Some(Badge::Attestation)),
            ("application/vnd.example.report", None),
            ("", None),
        ] {
            assert_eq!(Badge::of_artifact(artifact_type), badge, "{artifact_type}");
        }
    }
}
