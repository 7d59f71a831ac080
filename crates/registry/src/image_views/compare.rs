//! What is different between two images.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Reason, Result, Uidp};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Value};
use serde_json::Value as Json;

use crate::attached::Documents;
use crate::sboms::{self, Candidates};
use crate::{images, vuln_counts};

/// Packages and findings that are shown.
const MAX_SHOWN: usize = 10_000;

/// Two images, and where their packages are read from.
pub(super) struct Pair {
    shown: own::ImageComparison,
    from: Option<Candidates>,
    to: Option<Candidates>,
}

/// What the database knows of one of the images.
struct Side {
    size: i64,
    layers: BTreeSet<String>,
    findings: BTreeSet<String>,
    config: BTreeMap<String, Json>,
}

pub(super) async fn find(tx: &mut ReadTx, call: &Authorized<own::CompareImagesRequest>) -> Result<Pair> {
    let (request, repo) = (call.request(), call.require_scope()?);
    let from = Side::load(tx, repo, &request.from_digest).await?;
    let to = Side::load(tx, repo, &request.to_digest).await?;
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
        one.difference(other).take(MAX_SHOWN).cloned().collect()
    };
    let shown = own::ImageComparison {
        from_size: from.size,
        to_size: to.size,
        packages: Vec::new(),
        findings_added: only(&to.findings, &from.findings),
        findings_removed: only(&from.findings, &to.findings),
        configuration: changed_members(&from.config, &to.config),
        shared_layers: i32::try_from(from.layers.intersection(&to.layers).count()).unwrap_or(i32::MAX),
        has_packages: Vec::new(),
    };
    let sources = sboms::sources(tx, repo, &request.from_digest).await?;
    Ok(Pair { shown, from: sources, to: sboms::sources(tx, repo, &request.to_digest).await? })
}

impl Side {
    async fn load(tx: &mut ReadTx, repo: &Uidp, digest: &String) -> Result<Side> {
        let manifest = images::require(tx, repo, digest).await?;
        let sql = "SELECT digest FROM manifest_references WHERE manifest = $1 AND kind = 2";
        let layers = tx.query(sql, &[Value::from(digest)], |row| row.text(0).map_err(Error::from)).await?;
        let reports = vuln_counts::newest(tx, repo, std::slice::from_ref(digest)).await?;
        let findings = reports.into_values().flat_map(|(_, ids)| ids.into_values().flatten()).collect();
        let config = match images::run_config(tx, digest).await {
            Ok(Json::Object(members)) => members.into_iter().collect(),
            Ok(_) => BTreeMap::new(),
            Err(error) if error.reason() == Reason::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Side { size: manifest.total_size, layers: layers.into_iter().collect(), findings, config })
    }
}

fn changed_members(from: &BTreeMap<String, Json>, to: &BTreeMap<String, Json>) -> Vec<own::ConfigChange> {
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let changed = names.into_iter().filter(|name| from.get(*name) != to.get(*name));
    let text = |side: &BTreeMap<String, Json>, name: &String| side.get(name).map(Json::to_string).unwrap_or_default();
    changed.map(|name| own::ConfigChange { name: name.clone(), from: text(from, name), to: text(to, name) }).collect()
}

/// Versions of packages by name: a package may be there in several.
type Versions = BTreeMap<String, BTreeSet<String>>;

impl Pair {
    /// Adds the packages that differ.
    pub(super) async fn compared(mut self, documents: &Documents) -> Result<own::ImageComparison> {
        let from = versions(documents, self.from).await?;
        let to = versions(documents, self.to).await?;
        self.shown.has_packages = vec![from.is_some(), to.is_some()];
        if let (Some(from), Some(to)) = (from, to) {
            self.shown.packages = changed_packages(&from, &to);
        }
        Ok(self.shown)
    }
}

async fn versions(documents: &Documents, sources: Option<Candidates>) -> Result<Option<Versions>> {
    let Some(sources) = sources else { return Ok(None) };
    let packages = documents.packages(sources).await?;
    let mut versions = Versions::new();
    for package in packages {
        versions.entry(package.name).or_default().insert(package.version);
    }
    Ok(Some(versions).filter(|versions| !versions.is_empty()))
}

fn changed_packages(from: &Versions, to: &Versions) -> Vec<own::PackageChange> {
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let changed = names.into_iter().filter(|name| from.get(*name) != to.get(*name));
    let text = |side: &Versions, name: &String| {
        side.get(name).map(|versions| versions.iter().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default()
    };
    let change = |name: &String| own::PackageChange {
        name: name.clone(),
        from_version: text(from, name),
        to_version: text(to, name),
    };
    changed.take(MAX_SHOWN).map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_shown() {
        let side = |packages: &[(&str, &str)]| {
            let mut versions = Versions::new();
            for (name, version) in packages {
                versions.entry((*name).into()).or_default().insert((*version).into());
            }
            versions
        };
        let changes = changed_packages(
            &side(&[("a", "1"), ("b", "1"), ("c", "1")]),
            &side(&[("a", "1"), ("b", "2"), ("d", "1")]),
        );
        let shown: Vec<[&str; 3]> =
            changes.iter().map(|one| [&*one.name, &*one.from_version, &*one.to_version]).collect();
        assert_eq!(shown, [["b", "1", "2"], ["c", "1", ""], ["d", "", "1"]]);
    }
}
