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
use bowline_libraries::hosting::{HostClient, Npm};
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
/// Records of one answer; paths of a version in it, and bytes of all paths.
const RECORDS: usize = 2000;
const PATHS: usize = 20;
const PATH_BYTES: usize = 4 << 20;

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

/// Where some versions of a project lie in its tree, by name and version.
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
        self.hosting.require_reader::<Npm>(client, scope).await?;
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
        self.hosting.require_reader::<Npm>(client, scope).await?;
        let project: Node = self.audited(headers, body).await?;
        let mut versions = Versions::new();
        walk(&project, &mut Vec::new(), &mut |path, version| {
            if let Some(name) = path.last() {
                versions.entry((*name).to_owned()).or_default().insert(version.to_owned());
            }
        });
        let count = versions.values().map(BTreeSet::len).sum();
        let found = self.known(client, scope, versions).await?;
        Ok(reported(&found, &paths_of(&project, &found), count))
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
        if affected.len() > RECORDS {
            return Err(Refused::bad(format!(
                "more than {RECORDS} records affect these versions: ask for fewer packages"
            )));
        }
        let names = affected.keys().map(|(name, _)| name.clone()).collect();
        let own = self.hosting.own_javascript_names(client, scope, names).await?;
        affected.retain(|(name, _), _| !own.contains(name));
        let mut found: BTreeMap<String, Vec<Advisory>> = BTreeMap::new();
        for ((name, id), versions) in affected {
            // A record may have gone meanwhile.
            let Ok(body) = records.get(id).await? else { continue };
            let of = name.clone();
            // Some records are long.
            let reading = tokio::task::spawn_blocking(move || {
                let parsed = bowline_osv::parse(&body).map_err(Error::internal)?;
                Ok::<_, Error>(Advisory::of(&parsed.record, &body, &of, &versions))
            });
            found.entry(name).or_default().push(reading.await.map_err(Error::internal)??);
        }
        Ok(found)
    }
}

fn query(name: &str, version: &str) -> Query {
    Query { ecosystem: ECOSYSTEM.into(), name: name.into(), version: Some(version.into()), after: String::new() }
}

/// Visits each version below a node, with the names that lead to it.
fn walk<'a>(node: &'a Node, path: &mut Vec<&'a str>, visit: &mut impl FnMut(&[&'a str], &'a str)) {
    for (name, dependency) in &node.dependencies.0 {
        path.push(name);
        if let Some(version) = &dependency.version {
            visit(path, version);
        }
        walk(dependency, path, visit);
        path.pop();
    }
}

/// Where the affected versions lie, as far as there is room: a short tree can have very long paths.
fn paths_of(project: &Node, found: &BTreeMap<String, Vec<Advisory>>) -> Paths {
    let (mut paths, mut room) = (Paths::new(), PATH_BYTES);
    walk(project, &mut Vec::new(), &mut |path, version| {
        let Some((name, advisories)) = path.last().and_then(|name| found.get_key_value(*name)) else { return };
        if advisories.iter().all(|advisory| !advisory.versions.contains(version)) {
            return;
        }
        let of = paths.entry((name.clone(), version.to_owned())).or_default();
        let length: usize = path.iter().map(|name| name.len() + 1).sum();
        if of.len() < PATHS && length <= room {
            room -= length;
            of.push(path.join(">"));
        }
    });
    paths
}

/// The older form of an answer.
fn reported(found: &BTreeMap<String, Vec<Advisory>>, paths: &Paths, count: usize) -> Value {
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
            "vulnerabilities": counts, "dependencies": count, "devDependencies": 0, "optionalDependencies": 0,
            "totalDependencies": count,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_hostile_tree_have_a_bound() {
        let leaves: Vec<String> = (0..20_000).map(|n| format!("\"l{n}\":{{\"version\":\"1\"}}")).collect();
        let mut text = format!("{{\"dependencies\":{{{}}}}}", leaves.join(","));
        for _ in 0..40 {
            text = format!("{{\"dependencies\":{{\"{}\":{text}}}}}", "x".repeat(1000));
        }
        let project: Node = serde_json::from_str(&text).expect("a tree");
        let advisory = Advisory { versions: BTreeSet::from(["1".into()]), ..Advisory::default() };
        let found = (0..20_000).map(|n| (format!("l{n}"), vec![advisory.clone()])).collect();
        let paths = paths_of(&project, &found);
        let bytes: usize = paths.values().flatten().map(String::len).sum();
        assert!(paths.len() == 20_000 && bytes <= PATH_BYTES, "{bytes}");
    }
}
