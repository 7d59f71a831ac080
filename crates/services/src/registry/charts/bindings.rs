//! Which charts use the images of a repository.

use std::collections::BTreeSet;

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::ListChartsByImageRepo;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers};
use bowline_store::{ReadTx, Row, Value};

use super::images::last_part;
use crate::registry::paths::{self, Name};
use crate::registry::{repos, sources};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListChartsByImageRepo>(|tx, call| Box::pin(list(tx, call)))
}

type Call = Authorized<v1::ListChartsByImageRepoRequest>;

/// Pairs of a chart and a repository that are looked at for one answer.
const MOST: i64 = 10_000;

/// A chart and a repository of images that it names.
struct Pair {
    chart: String,
    repository: String,
}

/// The charts that the caller may see and that name the repository itself, or what it is synchronized from.
async fn list(tx: &mut ReadTx, call: &Call) -> Result<v1::ListChartsByImageRepoResponse> {
    let repo = call.place()?;
    let name = repos::require(tx, repo).await?.name;
    let source = source_of(tx, repo).await?;
    let mut charts = BTreeSet::new();
    let last_parts = last_parts(tx, repo, &name, &source).await?;
    for pair in pairs(tx, call, &last_parts).await? {
        let meant = meant(tx, call, &pair.repository).await?;
        if meant.is_some_and(|meant| meant == repo.as_str() || meant == source) {
            charts.insert(pair.chart);
        }
    }
    let binding = |chart_repo| v1::ChartImageBinding { chart_repo, ..v1::ChartImageBinding::default() };
    Ok(v1::ListChartsByImageRepoResponse { chart_image_bindings: charts.into_iter().map(binding).collect() })
}

/// What the repository is synchronized from, empty if it is not.
async fn source_of(tx: &mut ReadTx, repo: &Uidp) -> Result<String> {
    let sql = "SELECT synced_from FROM repos WHERE uid = $1";
    let found = tx.query_opt(sql, &[Value::from(repo.as_str())], |row| row.text(0).map_err(Error::from)).await?;
    Ok(found.unwrap_or_default())
}

/// What a name of the repository, or of its source, can end with.
async fn last_parts(tx: &mut ReadTx, repo: &Uidp, name: &str, source: &str) -> Result<BTreeSet<String>> {
    let mut parts = BTreeSet::from([name.to_owned(), last_part(repo.as_str()).to_owned()]);
    if !source.is_empty() {
        parts.insert(last_part(source).to_owned());
        let sql = "SELECT name FROM repos WHERE uid = $1";
        parts.extend(tx.query_opt(sql, &[Value::from(source)], |row| row.text(0).map_err(Error::from)).await?);
    }
    Ok(parts)
}

/// The charts of repositories that the caller may see, which name a repository with such an end.
async fn pairs(tx: &mut ReadTx, call: &Call, last_parts: &BTreeSet<String>) -> Result<Vec<Pair>> {
    let places: Vec<String> = (4..last_parts.len() + 4).map(|n| format!("${n}")).collect();
    let sql = format!(
        "SELECT DISTINCT c.name, i.repository FROM chart_images i
         JOIN repo_manifests r ON r.digest = i.manifest AND r.repo >= $1 AND r.repo < $2
         JOIN repos c ON c.uid = r.repo
         WHERE i.name IN ({}) ORDER BY c.name, i.repository LIMIT $3",
        places.join(", ")
    );
    let mut found: Vec<Pair> = Vec::new();
    for range in call.visible() {
        let mut params = vec![Value::from(&range.lower), Value::from(&range.upper), Value::Int(MOST)];
        params.extend(last_parts.iter().map(Value::from));
        let read = |row: &Row<'_>| Ok::<_, Error>(Pair { chart: row.text(0)?, repository: row.text(1)? });
        found.extend(tx.query(&sql, &params, read).await?);
    }
    Ok(found)
}

/// The repository that a chart means, as the source of a synchronization is stored.
async fn meant(tx: &mut ReadTx, call: &Call, repository: &str) -> Result<Option<String>> {
    let name = sources::on_own_host(call, repository);
    if let Some(name) = name.or(Some(repository)).and_then(Name::parse)
        && let Some(uid) = paths::resolve(tx, &name).await?.and_then(|place| place.repo)
    {
        return Ok(Some(uid.as_str().to_owned()));
    }
    Ok(if name.is_some() { None } else { sources::address(repository) })
}
