//! Audits: what is known of the versions that a project has, in both forms that clients of npm ask for.
//!
//! The newer one, which npm, pnpm 12, yarn 4 and bun send, names versions by package. The older one, of yarn 1 and pnpm 10,
//! is the tree of a project. Of names that are the organization's own, nothing is said: records are about public packages.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bowline_core::Error;
use bowline_libraries::Language;
use bowline_libraries::hosting::HostClient;
use bowline_vulnerabilities::records::{Query, RecordLookup};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::advisories::{Advisory, ECOSYSTEM};
use super::objects::Few;
use crate::PackageHosts;
use crate::answers::Refused;

/// Maximum bytes of a body, packed and unpacked.
const BODY: usize = 4 << 20;
/// Maximum number of packages of a project, and of versions of all of them.
const PACKAGES: usize = 20_000;
const VERSIONS: usize = 40_000;
/// Versions that one read of the records looks for, and bytes of a version.
const AT_ONCE: usize = 1000;
const VERSION: usize = 256;
/// Records of one answer, and paths of a version in it.
const RECORDS: usize = 2000;
const PATHS: usize = 20;

/// Versions of packages, by name.
type Versions = BTreeMap<String, BTreeSet<String>>;

/// A project, or what it depends on, in the older form.
#[derive(Deserialize)]
#[serde(expecting = "a package as an object")]
struct Node {
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    dependencies: Few<Node, PACKAGES>,
}

/// Where the versions of a project lie in its tree, by name and version.
type Paths = BTreeMap<(String, String), Vec<String>>;

impl PackageHosts {
    /// What is known of versions by package.
    pub(super) async fn advisories(
        self: &Arc<Self>,
        client: &HostClient,
        scope: Option<&str>,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Value, Refused> {
        self.hosting.require_javascript_reader(client, scope).await?;
        let asked: Few<Vec<String>, PACKAGES> = self.audited(headers, body).await?;
        let versions: Versions = asked.0.into_iter().map(|(name, of)| (name, of.into_iter().collect())).collect();
        let found = self.known(client, scope, versions).await?;
        serde_json::to_value(found).map_err(|error| Error::internal(error).into())
    }

    /// The same of a tree.
    pub(super) async fn report(
        self: &Arc<Self>,
        client: &HostClient,
        scope: Option<&str>,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Value, Refused> {
        self.hosting.require_javascript_reader(client, scope).await?;
        let project: Node = self.audited(headers, body).await?;
        let mut paths = Paths::new();
        walk(&project, "", &mut paths);
        let mut versions = Versions::new();
        for (name, version) in paths.keys() {
            versions.entry(name.clone()).or_default().insert(version.clone());
        }
        let found = self.known(client, scope, versions).await?;
        Ok(reported(&found, &paths))
    }

    /// The body of an audit, which clients may pack, read on a thread that may wait.
    async fn audited<T: DeserializeOwned + Send + 'static>(
        self: &Arc<Self>,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<T, Refused> {
        let too_long = || {
            Refused::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {BODY} bytes, or broke off"))
        };
        let bytes = axum::body::to_bytes(body, BODY).await.map_err(|_| too_long())?;
        let is_packed = headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
        let turn = self.archives.clone().acquire_owned().await.map_err(Error::internal)?;
        let reading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let mut text = Vec::new();
            if is_packed {
                let mut decoder = GzDecoder::new(&bytes[..]).take(BODY as u64 + 1);
                decoder.read_to_end(&mut text).map_err(|_| Refused::bad("the body is no gzip"))?;
            } else {
                text.extend_from_slice(&bytes);
            }
            if text.len() > BODY {
                return Err(too_long());
            }
            serde_json::from_slice(&text).map_err(|error| Refused::bad(format!("the body is no audit: {error}")))
        });
        reading.await.map_err(Error::internal)?
    }

    /// What is known of some versions, by package.
    async fn known(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        versions: Versions,
    ) -> Result<BTreeMap<String, Vec<Advisory>>, Refused> {
        let is_version = |version: &str| !version.is_empty() && version.len() <= VERSION;
        let queries: Vec<Query> = versions
            .iter()
            .filter(|(name, _)| Language::JavaScript.validate_name(name).is_ok())
            .flat_map(|(name, versions)| versions.iter().map(move |version| (name, version)))
            .filter(|(_, version)| is_version(version))
            .map(|(name, version)| query(name, version))
            .collect();
        if queries.len() > VERSIONS {
            return Err(Refused::bad(format!("an audit has at most {VERSIONS} versions")));
        }
        let records = RecordLookup::new(self.pipeline.db.clone());
        // The versions of a package that a record affects.
        let mut affected: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for part in queries.chunks(AT_ONCE) {
            for (query, results) in part.iter().zip(records.ids(part.to_vec()).await?) {
                for found in results.matches {
                    let of = affected.entry((query.name.clone(), found.id)).or_default();
                    of.extend(query.version.clone());
                }
            }
        }
        let names = affected.keys().map(|(name, _)| name.clone()).collect();
        let own = self.hosting.own_javascript_names(client, scope, names).await?;
        affected.retain(|(name, _), _| !own.contains(name));
        if affected.len() > RECORDS {
            return Err(Refused::bad(format!(
                "more than {RECORDS} records affect these versions: ask for fewer packages"
            )));
        }
        let mut found: BTreeMap<String, Vec<Advisory>> = BTreeMap::new();
        for ((name, id), versions) in affected {
            // A record may have gone meanwhile.
            let Ok(body) = records.get(id).await? else { continue };
            let parsed = bowline_osv::parse(&body).map_err(Error::internal)?;
            let advisory = Advisory::of(&parsed.record, &body, &name, &versions);
            found.entry(name).or_default().push(advisory);
        }
        Ok(found)
    }
}

fn query(name: &str, version: &str) -> Query {
    Query { ecosystem: ECOSYSTEM.into(), name: name.into(), version: Some(version.into()), after: String::new() }
}

/// Notes where each version lies below a node.
fn walk(node: &Node, path: &str, paths: &mut Paths) {
    for (name, dependency) in &node.dependencies.0 {
        let below = if path.is_empty() { name.clone() } else { format!("{path}>{name}") };
        if let Some(version) = &dependency.version {
            let of = paths.entry((name.clone(), version.clone())).or_default();
            if of.len() < PATHS {
                of.push(below.clone());
            }
        }
        walk(dependency, &below, paths);
    }
}

/// The older form of an answer.
fn reported(found: &BTreeMap<String, Vec<Advisory>>, paths: &Paths) -> Value {
    let (mut advisories, mut actions) = (serde_json::Map::new(), Vec::new());
    let mut counts = BTreeMap::from(["info", "low", "moderate", "high", "critical"].map(|severity| (severity, 0)));
    for (name, advisory) in found.iter().flat_map(|(name, of)| of.iter().map(move |advisory| (name, advisory))) {
        // One record may be about several packages, and advisories of this form are about one each.
        let id = if advisories.contains_key(&advisory.id.to_string()) {
            format!("{}-{name}", advisory.id)
        } else {
            advisory.id.to_string()
        };
        let of_package = paths.iter().filter(|((of, version), _)| of == name && advisory.versions.contains(version));
        let findings: Vec<Value> =
            of_package.clone().map(|((_, version), paths)| json!({ "version": version, "paths": paths })).collect();
        let resolves: Vec<Value> = of_package
            .flat_map(|(_, paths)| paths)
            .map(|path| json!({ "id": id, "path": path, "dev": false, "optional": false, "bundled": false }))
            .collect();
        *counts.entry(advisory.severity).or_default() += resolves.len();
        actions.push(json!({ "action": "review", "module": name, "resolves": resolves }));
        let ids = |start: &str| if advisory.record.starts_with(start) { vec![&advisory.record] } else { Vec::new() };
        advisories.insert(
            id.clone(),
            json!({
                "id": id, "findings": findings, "module_name": name, "title": advisory.title,
                "url": advisory.url, "severity": advisory.severity, "vulnerable_versions": advisory.vulnerable_versions,
                "patched_versions": advisory.patched, "cwe": advisory.cwe, "cvss": advisory.cvss, "cves": ids("CVE-"),
                "github_advisory_id": ids("GHSA-").first(), "overview": "", "recommendation": "", "references": "",
            }),
        );
    }
    json!({
        "actions": actions, "advisories": advisories, "muted": [],
        "metadata": {
            "vulnerabilities": counts, "dependencies": paths.len(), "devDependencies": 0, "optionalDependencies": 0,
            "totalDependencies": paths.len(),
        },
    })
}
