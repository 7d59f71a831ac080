//! Limit of the patterns of immutable tags that are in force at one repository: those of its own policy and
//! of the groups above it. The limit is enforced when a policy is written, so that no push finds it exceeded.

use bowline_contract::bowline::registry::v1::RegistryPolicy;
use bowline_core::{Error, Result, UidRange, Uidp};
use bowline_store::{ReadTx, Row, Value};
use prost::Message;

use super::limits;

/// Patterns that may be in force at one repository.
const MAX_IN_FORCE: usize = 64;
/// Maximum number of policies with patterns below the one that is written: each is read then.
const MAX_BELOW: i64 = 10_000;

/// The number of a policy's patterns, as the column has it.
pub(super) fn number(policy: &RegistryPolicy) -> i64 {
    i64::try_from(policy.immutable_tag_patterns.len()).unwrap_or(i64::MAX)
}

/// Rejects so many patterns at `place` if some repository at or below it would have too many.
///
/// # Errors
/// QUOTA_EXCEEDED.
pub(super) async fn require(tx: &mut ReadTx, scope: &Uidp, here: usize) -> Result<()> {
    let holding = limits::policies(tx, scope).await?;
    let above = holding.iter().filter(|policy| policy.uid != scope.as_str());
    let above: usize = above.map(|policy| policy.immutable_tag_patterns.len()).sum();
    let below = deepest(&below(tx, scope).await?);
    if above + here + below > MAX_IN_FORCE {
        let text = format!(
            "{} immutable tag patterns would be in force at one repository: {above} of the groups above {scope}, {here} \
             of this policy and {below} of policies below it, and {MAX_IN_FORCE} are the most; merge patterns, or \
             remove some there",
            above + here + below
        );
        return Err(Error::quota(scope.as_str(), text));
    }
    Ok(())
}

/// The policies with patterns below `place`, by UIDP, and how many each has.
async fn below(tx: &mut ReadTx, scope: &Uidp) -> Result<Vec<(String, usize)>> {
    let UidRange { lower, upper } = UidRange::below(scope.as_str());
    // Policies of earlier versions were not counted when they were written.
    let sql = "SELECT place, tag_patterns, CASE WHEN tag_patterns IS NULL THEN policy END FROM registry_policies
               WHERE place >= $1 AND place < $2 AND (tag_patterns IS NULL OR tag_patterns > 0)
               ORDER BY place LIMIT $3";
    let read = |row: &Row<'_>| {
        let count = if let Some(count) = row.opt_int(1)? {
            usize::try_from(count).unwrap_or(0)
        } else {
            let policy = RegistryPolicy::decode(row.bytes(2)?.as_slice()).map_err(Error::internal)?;
            policy.immutable_tag_patterns.len()
        };
        Ok::<_, Error>((row.text(0)?, count))
    };
    let params = [Value::from(&lower), Value::from(&upper), Value::Int(MAX_BELOW + 1)];
    let found = tx.query(sql, &params, read).await?;
    if found.len() as i64 > MAX_BELOW {
        let text = format!(
            "more than {MAX_BELOW} policies below {scope} have immutable tag patterns; set patterns further down, or \
             remove some there"
        );
        return Err(Error::quota(scope.as_str(), text));
    }
    Ok(found)
}

/// The most patterns on a path from the top to any of these policies, which are in the order of their UIDPs.
fn deepest(scopes: &[(String, usize)]) -> usize {
    let mut most = 0;
    let mut way: Vec<(&str, usize)> = Vec::new();
    for (scope, count) in scopes {
        let is_below = |above: &str| scope.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
        while way.last().is_some_and(|(above, _)| !is_below(above)) {
            way.pop();
        }
        let sum = way.last().map_or(0, |(_, sum)| *sum) + count;
        way.push((scope, sum));
        most = most.max(sum);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_way_down_counts() {
        let scopes =
            |list: &[(&str, usize)]| list.iter().map(|(scope, n)| ((*scope).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(deepest(&[]), 0);
        let tree = [("a", 1), ("a/b", 10), ("a/b/c", 100), ("a/bb", 5), ("a/d/e/f", 1000), ("b", 7)];
        assert_eq!(deepest(&scopes(&tree)), 1001);
        assert_eq!(deepest(&scopes(&tree[..4])), 111);
    }
}
