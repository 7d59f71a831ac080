//! The events of findings that open and close.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::vulnerabilities::v1::rpc::finding_changes::{CloseFindings, OpenFindings};
use bowline_contract::bowline::vulnerabilities::v1::{ChangedFinding, ClosingReason, ImageFindings};
use bowline_contract::{Contract, Method};
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::{ANONYMOUS, Actor, EventBody, OPERATOR, ResourceSnapshot, record_event};
use bowline_registry::components::{PackageVersion, repo_names, tags};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

use super::image_findings::{BestMatch, ComponentNames, FindingKey, Reasons, WaitingImage};

/// Findings that one event names.
const NAMED: usize = 100;

/// The events of an image: absent where nothing opened or closed, or the repository is gone.
#[derive(Default)]
pub(super) struct Events {
    pub(super) closed: Option<ImageFindings>,
    pub(super) opened: Option<ImageFindings>,
}

/// What the event of findings that opened says; they are in order. None if there are none, or the repository is gone.
pub(super) async fn opened(
    tx: &mut ReadTx,
    image: &WaitingImage,
    findings: &[(FindingKey, BestMatch)],
) -> Result<Option<ImageFindings>> {
    let Some(about) = about(tx, image, findings.len()).await? else { return Ok(None) };
    let named = &findings[..findings.len().min(NAMED)];
    let mut names = record_names(tx, named).await?;
    let finding = |(key, best): &(FindingKey, BestMatch)| {
        let (aliases, source) = names.remove(&(key.version.clone(), best.record_id.clone())).unwrap_or_default();
        ChangedFinding {
            vulnerability: key.vulnerability.clone(),
            aliases: aliases.split_whitespace().map(String::from).collect(),
            component: best.component.clone(),
            version: key.version.version.clone(),
            purl: best.purl.clone(),
            severity: best.severity,
            fixed_version: best.fixed_version.clone(),
            record_id: best.record_id.clone(),
            source,
            closing_reason: ClosingReason::Unspecified as i32,
        }
    };
    Ok(Some(ImageFindings { findings: named.iter().map(finding).collect(), ..about }))
}

/// What the event of findings that closed says, as [`opened`].
pub(super) async fn closed(
    tx: &mut ReadTx,
    image: &WaitingImage,
    findings: &[(FindingKey, ComponentNames)],
    reasons: &Reasons<'_>,
) -> Result<Option<ImageFindings>> {
    let Some(about) = about(tx, image, findings.len()).await? else { return Ok(None) };
    let finding = |(key, names): &(FindingKey, ComponentNames)| ChangedFinding {
        vulnerability: key.vulnerability.clone(),
        // Findings of earlier versions have no names where the SBOM was gone.
        component: if names.purl.is_empty() { key.version.package.clone() } else { names.component.clone() },
        purl: names.purl.clone(),
        version: key.version.version.clone(),
        closing_reason: reasons.of(key) as i32,
        ..ChangedFinding::default()
    };
    Ok(Some(ImageFindings { findings: findings.iter().take(NAMED).map(finding).collect(), ..about }))
}

/// The image of an event about so many findings.
async fn about(tx: &mut ReadTx, image: &WaitingImage, count: usize) -> Result<Option<ImageFindings>> {
    if count == 0 {
        return Ok(None);
    }
    let Some(repo_name) = repo_names(tx, &BTreeSet::from([image.repo.as_str()])).await?.remove(&image.repo) else {
        return Ok(None);
    };
    let tags = tags(tx, &BTreeSet::from([image.key()])).await?.remove(&image.key()).unwrap_or_default();
    let sql = "SELECT last_pulled_at, last_pulled_by FROM repo_manifests WHERE repo = $1 AND digest = $2";
    let params = [Value::from(&image.repo), Value::from(&image.digest)];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.opt_int(0)?, row.text(1)?));
    let (at, by) = tx.query_opt(sql, &params, read).await?.unwrap_or_default();
    Ok(Some(ImageFindings {
        repo_uid: image.repo.clone(),
        repo_name,
        digest: image.digest.clone(),
        tags,
        last_pulled_at: at.and_then(timestamp),
        last_pulled_by: if by == ANONYMOUS { String::new() } else { by },
        findings: Vec::new(),
        finding_count: i32::try_from(count).map_err(Error::internal)?,
    }))
}

/// The other ids that the records of these findings name, and the names of their sources.
async fn record_names(
    tx: &mut ReadTx,
    findings: &[(FindingKey, BestMatch)],
) -> Result<BTreeMap<(PackageVersion, String), (String, String)>> {
    let mut sql = Sql::new("WITH wanted (package, version, record_id) AS (VALUES ");
    for (at, (key, best)) in findings.iter().enumerate() {
        sql.bind(if at == 0 { "(" } else { ", (" }, &key.version.package).bind(", ", &key.version.version);
        sql.bind(", ", &best.record_id).push(")");
    }
    sql.push(
        ") SELECT w.package, w.version, w.record_id, m.aliases, r.name FROM wanted w
         CROSS JOIN package_matches m CROSS JOIN record_sources r
         WHERE m.package = w.package AND m.version = w.version AND m.record_id = w.record_id AND r.number = m.source",
    );
    let read =
        |row: &Row<'_>| Ok::<_, Error>(((PackageVersion::read(row)?, row.text(2)?), (row.text(3)?, row.text(4)?)));
    Ok(tx.query(&sql.text, &sql.params, read).await?.into_iter().collect())
}

impl Events {
    /// Writes them; what closed comes first.
    pub(super) async fn record(&self, tx: &mut WriteTx, contract: &Contract, now: Micros) -> Result<()> {
        for (method, findings) in [(CloseFindings::FULL_NAME, &self.closed), (OpenFindings::FULL_NAME, &self.opened)] {
            let Some(findings) = findings else { continue };
            let info = contract.by_full_name(method);
            let info = info.ok_or_else(|| Error::internal(format!("{method} is not in the contract")))?;
            let actor = Actor { subject: OPERATOR, request_id: "matching", method };
            let group = findings.repo_uid.rsplit_once('/').map_or("", |(group, _)| group);
            let event = EventBody {
                subject: findings.repo_uid.clone(),
                group: group.into(),
                body: ResourceSnapshot::of(findings),
                extensions: Vec::new(),
            };
            record_event(tx, info, now, &actor, None, &event).await?;
        }
        Ok(())
    }
}
