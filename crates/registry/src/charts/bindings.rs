//! Which charts use the images of a repository.

use std::collections::{BTreeSet, HashMap};

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::ListChartsByImageRepo;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_store::{ReadTx, Row, Value};

use crate::content::replication::sources::{self, Source};
use crate::repos;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListChartsByImageRepo>(handler!(list))
}

type Call = Authorized<v1::ListChartsByImageRepoRequest>;

/// Maximum number of charts of one response.
const MAX_CHARTS: i64 = 1000;

/// The charts that the caller may see and that name the repository itself, or what it is synchronized from.
async fn list(tx: &mut ReadTx, call: &Call) -> Result<v1::ListChartsByImageRepoResponse> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    let mut names = spellings(tx, call, repo).await?;
    match sources::of(tx, repo, call.now()).await? {
        Some(Source::Here(source)) => names.extend(spellings(tx, call, &source).await?),
        Some(Source::There(address)) => names.extend(address.strip_prefix("https://").map(String::from)),
        None => {}
    }
    let charts = charts(tx, call, &names).await?;
    let binding = |chart_repo| v1::ChartImageBinding { chart_repo, ..v1::ChartImageBinding::default() };
    Ok(v1::ListChartsByImageRepoResponse { chart_image_bindings: charts.into_iter().map(binding).collect() })
}

/// How charts name a repository here, with the registry's host and without: by UIDPs alone, or by names below the
/// organization. A mixture of both is not looked for.
async fn spellings(tx: &mut ReadTx, call: &Call, repo: &Uidp) -> Result<BTreeSet<String>> {
    let uids: Vec<&str> = repo.self_and_ancestors().collect();
    let places: Vec<String> = (1..=uids.len()).map(|n| format!("${n}")).collect();
    let places = places.join(", ");
    let sql = format!(
        "SELECT uid, name, verified FROM groups WHERE uid IN ({places})
         UNION ALL SELECT uid, name, FALSE FROM repos WHERE uid IN ({places})"
    );
    let params: Vec<Value<'_>> = uids.iter().map(|uid| Value::from(*uid)).collect();
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, (row.text(1)?, row.bool(2)?)));
    let named: HashMap<String, (String, bool)> = tx.query(&sql, &params, read).await?.into_iter().collect();
    let mut below: Vec<&str> = uids.iter().filter_map(|uid| named.get(*uid)).map(|(name, _)| name.as_str()).collect();
    below.reverse();
    let names = below.get(1..).unwrap_or_default().join("/");
    let mut paths = BTreeSet::from([repo.as_str().to_owned(), format!("{}/{names}", repo.root_str())]);
    if let Some((organization, true)) = named.get(repo.root_str()) {
        paths.insert(format!("{organization}/{names}"));
    }
    let host = &call.settings().registry_audience;
    Ok(paths.iter().flat_map(|path| [path.clone(), format!("{host}/{path}")]).collect())
}

/// Names of the repositories that the caller may see with charts that use images of one of these.
async fn charts(tx: &mut ReadTx, call: &Call, spellings: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let places: Vec<String> = (4..spellings.len() + 4).map(|n| format!("${n}")).collect();
    let sql = format!(
        "SELECT DISTINCT c.name FROM chart_images i
         JOIN repo_manifests r ON r.digest = i.manifest AND r.repo >= $1 AND r.repo < $2
         JOIN repos c ON c.uid = r.repo
         WHERE i.repository IN ({}) ORDER BY c.name LIMIT $3",
        places.join(", ")
    );
    let mut found = BTreeSet::new();
    for range in call.visible() {
        let left = MAX_CHARTS - found.len() as i64;
        let mut params = vec![Value::from(&range.lower), Value::from(&range.upper), Value::Int(left)];
        params.extend(spellings.iter().map(Value::from));
        found.extend(tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?);
    }
    Ok(found)
}
