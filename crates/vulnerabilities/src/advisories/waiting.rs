//! Advisories that wait until the task that matches compares the findings that they are about.

use std::collections::BTreeSet;

use bowline_core::{Result, Uidp};
use bowline_store::{Sql, WriteTx};

use super::rows::folded;

/// Rows that one statement inserts.
const AT_ONCE: usize = 100;

/// Notes an advisory that changed, with the ids of vulnerabilities that it has or had.
pub(super) async fn note<'a>(
    tx: &mut WriteTx,
    advisory: &Uidp,
    aliases: impl IntoIterator<Item = &'a String>,
) -> Result<()> {
    let aliases: BTreeSet<String> = aliases.into_iter().map(|alias| folded(alias)).collect();
    let aliases: Vec<String> = aliases.into_iter().collect();
    for part in aliases.chunks(AT_ONCE) {
        let mut sql = Sql::new("INSERT INTO waiting_advisories (advisory, alias, noted) VALUES ");
        for (at, alias) in part.iter().enumerate() {
            sql.bind(if at == 0 { "(" } else { ", (" }, advisory.as_str()).bind(", ", alias).push(", 1)");
        }
        sql.push(" ON CONFLICT (advisory, alias) DO UPDATE SET after_repo = '', after_digest = '',");
        sql.push(" noted = waiting_advisories.noted + 1");
        tx.execute(&sql.text, &sql.params).await?;
    }
    Ok(())
}
