//! Advisories that wait until the task that matches compares the findings that they are about.

use std::collections::BTreeSet;

use bowline_core::{Result, Uidp};
use bowline_store::{Value, WriteTx};

use super::rows::folded;

/// Notes an advisory that changed, with the ids of vulnerabilities that it has or had.
pub(super) async fn note<'a>(
    tx: &mut WriteTx,
    advisory: &Uidp,
    aliases: impl IntoIterator<Item = &'a String>,
) -> Result<()> {
    let aliases: BTreeSet<String> = aliases.into_iter().map(|alias| folded(alias)).collect();
    let aliases = aliases.into_iter().collect::<Vec<_>>().join(" ");
    let sql = "INSERT INTO waiting_advisories (advisory, aliases, noted) VALUES ($1, $2, 1)
               ON CONFLICT (advisory) DO UPDATE SET aliases = waiting_advisories.aliases || ' ' || excluded.aliases,
                 after_repo = '', after_digest = '', noted = waiting_advisories.noted + 1";
    tx.execute(sql, &[Value::from(advisory.as_str()), Value::from(&aliases)]).await?;
    Ok(())
}
