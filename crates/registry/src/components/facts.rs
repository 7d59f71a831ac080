//! What the SBOMs of an image say in sum.

use std::collections::BTreeSet;

use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::extract::{MAX_LICENSE_KEYS, license_keys};
use super::sbom_id;
use super::write::INDEXED;

/// What is known of some SBOMs of a repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct SbomFacts {
    /// Number of those whose components are known.
    pub(crate) indexed: usize,
    /// Number of those that were not read yet or cannot be.
    pub(crate) unindexed: usize,
    /// Number of their components.
    pub(crate) components: usize,
    /// Licenses, whole and by the parts of expressions, in lower case.
    pub(crate) licenses: BTreeSet<String>,
    /// Name of a component without a license that can be compared, if there is one.
    pub(crate) unlicensed: Option<String>,
}

/// Texts that SBOMs have in place of a license.
const NO_LICENSE: [&str; 3] = ["", "none", "noassertion"];

/// What the SBOMs among these blobs say.
pub(crate) async fn sbom_facts(tx: &mut ReadTx, repo: &Uidp, blobs: &[String]) -> Result<SbomFacts> {
    let mut facts = SbomFacts::default();
    if blobs.is_empty() {
        return Ok(facts);
    }
    let ids: Vec<Vec<u8>> = blobs.iter().filter_map(|digest| sbom_id(digest)).collect();
    let mut sql = Sql::new("SELECT sbom, state FROM repo_sboms");
    sql.bind(" WHERE repo = ", repo.as_str()).bind_list(" AND sbom IN ", ids.iter().map(Value::from));
    let read = |row: &Row<'_>| Ok::<_, Error>((row.bytes(0)?, row.int(1)?));
    for (sbom, state) in tx.query(&sql.text, &sql.params, read).await? {
        if state != INDEXED {
            facts.unindexed += 1;
            continue;
        }
        facts.indexed += 1;
        let sql = "SELECT license, min(name), count(*) FROM components WHERE sbom = $1 GROUP BY license";
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?, row.int(2)?));
        for (license, name, count) in tx.query(sql, &[Value::from(&sbom)], read).await? {
            facts.components += usize::try_from(count).unwrap_or(0);
            let keys = license_keys(&license);
            let says_nothing = keys.is_empty() || keys.iter().all(|key| NO_LICENSE.contains(&key.as_str()));
            // Not all parts of a longer expression are keys.
            if says_nothing || keys.len() >= MAX_LICENSE_KEYS {
                facts.unlicensed.get_or_insert(name);
            }
            facts.licenses.extend(keys);
        }
    }
    Ok(facts)
}
