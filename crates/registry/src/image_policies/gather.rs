//! Reads what a decision about an image depends on: from the database in a transaction, then from blobs after it.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::{ReadTx, Row, Value, placeholders};
use prost::Message as _;

use super::evidence::{AppliedPolicy, Evidence, FindingFacts, ImageFacts, ReportFacts, Reports};
use super::exempt;
use super::layers::{Annotated, Kind};
use crate::attached::{self, Documents, Layer};
use crate::components;
use crate::images::{self, Shape};
use crate::scan_reports::parse::Finding;

/// Members of an index that are looked at, and images among them that are evaluated.
const MAX_MEMBERS: i64 = 200;
const MAX_IMAGES: usize = 32;
/// Indexes that name an image, whose signatures count for it.
const MAX_INDEXES: i64 = 20;
/// Attached manifests of one digest, and documents of all, that are looked at.
const MAX_MANIFESTS: i64 = 50;
const MAX_DOCUMENTS: usize = 200;
/// Maximum bytes of an attached manifest, of a document, of all documents, and of the findings of all reports.
const MAX_MANIFEST: i64 = 256 << 10;
const MAX_DOCUMENT: u64 = 16 << 20;
const MAX_DOCUMENT_BYTES: u64 = 48 << 20;
const MAX_FINDING_BYTES: i64 = 64 << 20;

/// Which parts of the evidence the rules need.
#[derive(Clone, Copy, Debug, Default)]
struct Needs {
    documents: bool,
    reports: bool,
    sboms: bool,
}

impl Needs {
    fn of(policies: &[own::ImagePolicy]) -> Needs {
        let any = |is: fn(&own::ImageRule) -> bool| policies.iter().flat_map(|policy| &policy.rules).any(is);
        Needs {
            documents: any(|rule| rule.signature.is_some() || rule.attestation.is_some()),
            reports: any(|rule| rule.vulnerability.is_some()),
            sboms: any(|rule| rule.license.is_some() || rule.sbom.is_some()),
        }
    }
}

/// Bytes of findings that may still be read for one response.
pub(crate) struct FindingBytes(i64);

impl FindingBytes {
    pub(crate) fn new() -> FindingBytes {
        FindingBytes(MAX_FINDING_BYTES)
    }

    /// Whether half of them are used.
    pub(crate) fn is_low(&self) -> bool {
        self.0 < MAX_FINDING_BYTES / 2
    }
}

/// What the database has; the rest is in blobs.
pub(crate) struct Gathered {
    policies: Vec<own::ImagePolicy>,
    evidence: Evidence,
    documents: Vec<(Layer, Kind)>,
    /// Layers that must be JSON documents for the exemption to hold.
    probes: Vec<Layer>,
    /// JSON of the findings of reports, by the position of the image and time.
    findings: Vec<(usize, Micros, String)>,
}

/// The policies that apply to a repository, from the organization down to it.
pub(crate) async fn policies(tx: &mut ReadTx, repo: &Uidp) -> Result<Vec<own::ImagePolicy>> {
    let params: Vec<Value<'_>> = repo.self_and_ancestors().map(Value::from).collect();
    let scopes = placeholders(1, params.len());
    let sql = format!("SELECT scope, policy FROM image_policies WHERE scope IN ({scopes}) ORDER BY scope");
    let read = |row: &Row<'_>| {
        let policy = own::ImagePolicy::decode(row.bytes(1)?.as_slice()).map_err(Error::internal)?;
        Ok::<_, Error>(own::ImagePolicy { uid: row.text(0)?, ..policy })
    };
    tx.query(&sql, &params, read).await
}

/// Gathers what these policies need to decide about an image that the repository has.
pub(crate) async fn gather(
    tx: &mut ReadTx,
    repo: &Uidp,
    digest: &str,
    policies: Vec<own::ImagePolicy>,
    left: &mut FindingBytes,
) -> Result<Gathered> {
    let manifest = images::require(tx, repo, digest).await?;
    let needs = Needs::of(&policies);
    let mut gathered = Gathered {
        policies,
        evidence: Evidence { repo: repo.as_str().into(), ..Evidence::default() },
        documents: Vec::new(),
        probes: Vec::new(),
        findings: Vec::new(),
    };
    if gathered.policies.iter().all(|policy| policy.rules.is_empty()) {
        return Ok(gathered);
    }
    if let Some(probes) = exempt::probes(tx, repo, digest).await? {
        gathered.evidence.is_exempt = true;
        gathered.probes = probes;
    }
    let indexes = indexes(tx, repo, digest).await?;
    gathered.evidence.covering = indexes.iter().cloned().chain([digest.to_owned()]).collect();
    if needs.documents {
        let covering = gathered.evidence.covering.clone();
        for about in &covering {
            gathered.attached(tx, repo, about).await?;
        }
    }
    let (mut units, mut fallbacks) = (vec![digest.to_owned()], indexes);
    if manifest.shape == Shape::Index {
        (units, gathered.evidence.has_more_images) = members(tx, repo, digest).await?;
        fallbacks = vec![digest.to_owned()];
        gathered.evidence.has_more_images |= units.len() > MAX_IMAGES;
        units.truncate(MAX_IMAGES);
    }
    for unit in units {
        gathered.image(tx, repo, unit, &fallbacks, needs, left).await?;
    }
    Ok(gathered)
}

/// Digests of the indexes of the repository that name a manifest, the newest first.
async fn indexes(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<Vec<String>> {
    let sql = "SELECT f.manifest FROM manifest_references f
               JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.manifest
               WHERE f.digest = $2 AND f.kind = 3 ORDER BY r.pushed_at DESC, f.manifest LIMIT $3";
    let params = [Value::from(repo.as_str()), Value::from(digest), Value::Int(MAX_INDEXES)];
    tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await
}

/// Digests of the images that an index names and the repository has, and whether there are too many.
async fn members(tx: &mut ReadTx, repo: &Uidp, index: &str) -> Result<(Vec<String>, bool)> {
    let sql = "SELECT f.digest FROM manifest_references f
               JOIN repo_manifests r ON r.repo = $1 AND r.digest = f.digest
               WHERE f.manifest = $2 AND f.kind = 3 ORDER BY f.place LIMIT $3";
    let params = [Value::from(repo.as_str()), Value::from(index), Value::Int(MAX_MEMBERS + 1)];
    let all: Vec<String> = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
    let has_more = all.len() as i64 > MAX_MEMBERS;
    let mut found = BTreeSet::new();
    for member in all {
        // What is no image is not evaluated: by what it is, not by the platform that the index gives it.
        if exempt::probes(tx, repo, &member).await?.is_none() {
            found.insert(member);
        }
    }
    Ok((found.into_iter().collect(), has_more))
}

impl Gathered {
    /// Adds the signatures and attestations that are attached to a digest, by their subject or a tag of cosign.
    async fn attached(&mut self, tx: &mut ReadTx, repo: &Uidp, about: &str) -> Result<()> {
        let sql = format!(
            "SELECT found.digest, CASE WHEN CAST(length(m.content) AS BIGINT) <= $6 THEN m.content END FROM (
               SELECT r.digest, r.pushed_at FROM repo_manifests r {}
               WHERE r.repo = $1 AND r.subject = $2 AND r.subject <> ''
               UNION
               SELECT r.digest, r.pushed_at FROM tags t JOIN repo_manifests r ON r.repo = t.parent AND r.digest = t.digest
               WHERE t.parent = $1 AND t.name IN ($3, $4)) found
             JOIN manifests m ON m.digest = found.digest ORDER BY found.pushed_at DESC, found.digest LIMIT $5",
            tx.index_hint("repo_manifests_by_subject")
        );
        let name = about.replace(':', "-");
        let (signature, attestation) = (format!("{name}.sig"), format!("{name}.att"));
        let params = [
            Value::from(repo.as_str()),
            Value::from(about),
            Value::from(&signature),
            Value::from(&attestation),
            Value::Int(MAX_MANIFESTS + 1),
            Value::Int(MAX_MANIFEST),
        ];
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.opt_bytes(1)?));
        let mut found = tx.query(&sql, &params, read).await?;
        self.evidence.has_more_documents |= found.len() as i64 > MAX_MANIFESTS;
        found.truncate(MAX_MANIFESTS as usize);
        for (manifest, content) in found {
            let Some(content) = content else {
                self.evidence.has_more_documents = true;
                continue;
            };
            let annotated = Annotated::read(&content);
            for layer in attached::layers(tx, repo, &manifest).await? {
                for kind in annotated.kinds(&layer) {
                    self.documents.push((layer.clone(), kind));
                }
            }
        }
        Ok(())
    }

    /// Adds what is known of an image; where it has no report or SBOM of its own, those of indexes that name it.
    async fn image(
        &mut self,
        tx: &mut ReadTx,
        repo: &Uidp,
        digest: String,
        fallbacks: &[String],
        needs: Needs,
        left: &mut FindingBytes,
    ) -> Result<()> {
        let sql = "SELECT pushed_at FROM repo_manifests WHERE repo = $1 AND digest = $2";
        let params = [Value::from(repo.as_str()), Value::from(&digest)];
        let pushed_at = tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await?.unwrap_or_default();
        let mut facts = ImageFacts { pushed_at, ..ImageFacts::default() };
        let at = self.evidence.images.len();
        let sources: Vec<&String> = [&digest].into_iter().chain(fallbacks).collect();
        for source in &sources {
            if needs.reports && facts.reports.newest.is_empty() && !facts.reports.has_unread {
                facts.reports = self.reports(tx, repo, source, at, left).await?;
            }
            if needs.sboms && facts.sboms.indexed + facts.sboms.unindexed == 0 {
                facts.sboms = sboms(tx, repo, source).await?;
            }
        }
        facts.digest = digest;
        self.evidence.images.push(facts);
        Ok(())
    }

    /// The newest report of each scanner. Their findings are read after the transaction.
    async fn reports(
        &mut self,
        tx: &mut ReadTx,
        repo: &Uidp,
        digest: &str,
        image: usize,
        left: &mut FindingBytes,
    ) -> Result<Reports> {
        let sql =
            "SELECT scanner, max(created_at) FROM scan_summaries WHERE repo = $1 AND digest = $2 GROUP BY scanner";
        let params = [Value::from(repo.as_str()), Value::from(digest)];
        let newest = tx.query(sql, &params, |row| Ok::<_, Error>((row.int(0)?, row.int(1)?))).await?;
        let mut reports = Reports::default();
        for (scanner, at) in newest {
            let sql = "SELECT CASE WHEN CAST(length(findings) AS BIGINT) <= $5 THEN findings END FROM scan_reports
                       WHERE repo = $1 AND digest = $2 AND scanner = $3 AND created_at = $4";
            let key = [Value::from(repo.as_str()), Value::from(digest), Value::Int(scanner), Value::Int(at)];
            let params: Vec<Value<'_>> = key.into_iter().chain([Value::Int(left.0)]).collect();
            match tx.query_opt(sql, &params, |row| row.opt_text(0).map_err(Error::from)).await?.flatten() {
                Some(findings) => {
                    left.0 -= findings.len() as i64;
                    reports.newest.push(ReportFacts { at, findings: Vec::new() });
                    self.findings.push((image, at, findings));
                }
                None => reports.has_unread = true,
            }
        }
        Ok(reports)
    }
}

async fn sboms(tx: &mut ReadTx, repo: &Uidp, digest: &str) -> Result<components::SbomFacts> {
    let mut blobs = BTreeSet::new();
    for manifest in attached::manifests(tx, repo, digest).await? {
        blobs.extend(attached::layers(tx, repo, &manifest).await?.into_iter().map(|layer| layer.digest));
    }
    let blobs: Vec<String> = blobs.into_iter().collect();
    components::sbom_facts(tx, repo, &blobs).await
}

impl Documents {
    /// Reads what was gathered, and decides on a thread that serves no one.
    ///
    /// # Errors
    /// Blobs cannot be read.
    pub(crate) async fn decide(&self, gathered: Gathered, now: Micros) -> Result<super::Decision> {
        let Gathered { policies, mut evidence, documents, probes, findings } = gathered;
        let _permit = self.permit().await?;
        for probe in probes {
            let is_document = probe.size <= MAX_DOCUMENT && exempt::is_json(&self.read(&probe).await?);
            evidence.is_exempt &= is_document;
        }
        let mut left = MAX_DOCUMENT_BYTES;
        let mut read: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (layer, kind) in documents {
            if !read.contains_key(&layer.digest) {
                if evidence.documents.len() >= MAX_DOCUMENTS || layer.size > MAX_DOCUMENT.min(left) {
                    evidence.has_more_documents = true;
                    continue;
                }
                left -= layer.size;
                // Bytes that are lost prove nothing, and hold nothing up.
                match self.read(&layer).await {
                    Ok(bytes) => drop(read.insert(layer.digest.clone(), bytes)),
                    Err(error) => {
                        tracing::warn!(digest = layer.digest, %error, "an attached document could not be read");
                        evidence.has_more_documents = true;
                        continue;
                    }
                }
            }
            let bytes = read.get(&layer.digest).cloned().unwrap_or_default();
            evidence.documents.push(kind.of(bytes));
        }
        self.work(move || {
            evidence.add_findings(findings)?;
            let applied = policies.into_iter().map(|policy| AppliedPolicy::new(policy.uid.clone(), policy));
            Ok(super::decide::decide(&applied.collect::<Vec<_>>(), &evidence, now))
        })
        .await?
    }
}

impl Evidence {
    fn add_findings(&mut self, findings: Vec<(usize, Micros, String)>) -> Result<()> {
        for (image, at, findings) in findings {
            let findings: Vec<Finding> = serde_json::from_str(&findings).map_err(Error::internal)?;
            let reports = self.images.get_mut(image).map(|image| &mut image.reports.newest);
            if let Some(report) = reports.and_then(|reports| reports.iter_mut().find(|report| report.at == at)) {
                report.findings.extend(findings.into_iter().map(FindingFacts::of));
            }
        }
        Ok(())
    }
}

impl FindingFacts {
    fn of(finding: Finding) -> FindingFacts {
        FindingFacts {
            has_fix: finding.has_fix(),
            id: finding.id,
            package: finding.package,
            severity: finding.severity,
            fix_since: finding.fix_since,
        }
    }
}
