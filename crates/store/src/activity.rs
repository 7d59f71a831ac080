//! Activity by day: pulls, pushes, bytes and blocked packages, by scope and identity.
//!
//! Writers append to `activity_deltas` ([`record`]), without contention. In the background, [`fold`] sums them
//! into `activity_days`, at the scope and everything above it, and [`prune`] deletes days that are too old.

use std::collections::BTreeMap;

use crate::error::StoreError;
use crate::sql::placeholders;
use crate::tx::{ReadTx, WriteTx};
use crate::value::Value;

/// What is counted. The numbers are those of the tables and of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActivityKind {
    Pulls = 1,
    Pushes = 2,
    Bytes = 3,
    BlockedPackages = 4,
}

/// Microseconds of a day.
const DAY: i64 = 24 * 3600 * 1_000_000;
/// Days that are kept.
pub const DAYS: i64 = 400;
/// Old rows that one step deletes.
const PRUNED_AT_ONCE: i64 = 5000;

/// One row that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Activity<'a> {
    /// UIDP of the repository or the organization.
    pub scope: &'a str,
    /// UIDP of the identity; empty where that is not recorded.
    pub identity: &'a str,
    /// Day that the time lies in, see [`day_of`].
    pub day: i64,
    pub kind: ActivityKind,
}

/// Days since the epoch, of UTC.
pub fn day_of(micros: i64) -> i64 {
    micros.div_euclid(DAY)
}

/// The start of a day in microseconds; of one that begins outside of them, their first or last.
pub fn start_of(day: i64) -> i64 {
    day.saturating_mul(DAY)
}

/// Appends a count to `activity_deltas`.
///
/// # Errors
/// Those of the statement.
pub async fn record(tx: &mut WriteTx, activity: &Activity<'_>, n: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO activity_deltas (scope, identity, day, kind, n) VALUES ($1, $2, $3, $4, $5)";
    let Activity { scope, identity, day, kind } = *activity;
    let params = [scope.into(), identity.into(), day.into(), (kind as i64).into(), n.into()];
    tx.execute(sql, &params).await.map(|_| ())
}

/// Moves up to `limit` deltas, the oldest first, into the days and returns how many. One caller at a time, under a lease.
///
/// # Errors
/// Those of the statements.
pub async fn fold(tx: &mut WriteTx, limit: i64) -> Result<u64, StoreError> {
    let sql = "SELECT id, scope, identity, day, kind, n FROM activity_deltas ORDER BY id LIMIT $1";
    let read = |row: &crate::Row<'_>| {
        let key = (row.text(1)?, row.text(2)?, row.int(3)?, row.int(4)?);
        Ok::<_, StoreError>((row.int(0)?, key, row.int(5)?))
    };
    let deltas = tx.query(sql, &[limit.into()], read).await?;
    let Some(last) = deltas.last().map(|delta| delta.0) else { return Ok(0) };
    let mut sums: BTreeMap<(&str, i64, &str, i64), i64> = BTreeMap::new();
    for (_, (scope, identity, day, kind), n) in &deltas {
        for above in self_and_above(scope) {
            *sums.entry((above, *kind, "", *day)).or_default() += n;
        }
        if !identity.is_empty() {
            let root = scope.split('/').next().unwrap_or(scope);
            *sums.entry((scope, *kind, identity, *day)).or_default() += n;
            if root != scope {
                *sums.entry((root, *kind, identity, *day)).or_default() += n;
            }
        }
    }
    let sql = "INSERT INTO activity_days (scope, kind, identity, day, n) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (scope, kind, identity, day) DO UPDATE SET n = activity_days.n + excluded.n";
    for ((scope, kind, identity, day), n) in &sums {
        let params: [Value<'_>; 5] = [(*scope).into(), (*kind).into(), (*identity).into(), (*day).into(), (*n).into()];
        tx.execute(sql, &params).await?;
    }
    tx.execute("DELETE FROM activity_deltas WHERE id <= $1", &[last.into()]).await
}

fn self_and_above(scope: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(scope), |scope| scope.rsplit_once('/').map(|(above, _)| above))
}

/// Deletes some days that are older than what is kept, and returns how many rows.
///
/// # Errors
/// Those of the statement.
pub async fn prune(tx: &mut WriteTx, now: i64) -> Result<u64, StoreError> {
    let sql = "SELECT scope, kind, identity, day FROM activity_days WHERE day < $1 ORDER BY day LIMIT $2";
    let params = [(day_of(now) - DAYS).into(), PRUNED_AT_ONCE.into()];
    let read = |row: &crate::Row<'_>| Ok::<_, StoreError>((row.text(0)?, row.int(1)?, row.text(2)?, row.int(3)?));
    let old = tx.query(sql, &params, read).await?;
    let sql = "DELETE FROM activity_days WHERE scope = $1 AND kind = $2 AND identity = $3 AND day = $4";
    for (scope, kind, identity, day) in &old {
        tx.execute(sql, &[scope.into(), (*kind).into(), identity.into(), (*day).into()]).await?;
    }
    Ok(old.len() as u64)
}

/// What happened at and below a scope on each day of a span on which something did.
///
/// # Errors
/// Those of the statement.
pub async fn days(
    tx: &mut ReadTx,
    scope: &str,
    kind: ActivityKind,
    (first, last): (i64, i64),
) -> Result<BTreeMap<i64, i64>, StoreError> {
    let sql = "SELECT day, n FROM activity_days
               WHERE scope = $1 AND kind = $2 AND identity = '' AND day >= $3 AND day <= $4";
    let params = [scope.into(), (kind as i64).into(), first.into(), last.into()];
    let rows = tx.query(sql, &params, |row| Ok::<_, StoreError>((row.int(0)?, row.int(1)?))).await?;
    Ok(rows.into_iter().collect())
}

/// What happened at and below each of these scopes on the days of a span on which something did: scope, day, count.
///
/// # Errors
/// Those of the statement.
pub async fn days_of_scopes(
    tx: &mut ReadTx,
    scopes: &[&str],
    kind: ActivityKind,
    (first, last): (i64, i64),
) -> Result<Vec<(String, i64, i64)>, StoreError> {
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT scope, day, n FROM activity_days
         WHERE kind = $1 AND identity = '' AND day >= $2 AND day <= $3 AND scope IN ({})",
        placeholders(4, scopes.len())
    );
    let mut params: Vec<Value<'_>> = vec![(kind as i64).into(), first.into(), last.into()];
    params.extend(scopes.iter().map(|scope| Value::from(*scope)));
    tx.query(&sql, &params, |row| Ok::<_, StoreError>((row.text(0)?, row.int(1)?, row.int(2)?))).await
}

/// The identities that did the most at a repository or in an organization since a day, the first one first.
///
/// # Errors
/// Those of the statement.
pub async fn most_active(
    tx: &mut ReadTx,
    scope: &str,
    kind: ActivityKind,
    (since, limit): (i64, i64),
) -> Result<Vec<(String, i64)>, StoreError> {
    let sql = "SELECT identity, CAST(sum(n) AS BIGINT) FROM activity_days
               WHERE scope = $1 AND kind = $2 AND identity <> '' AND day >= $3
               GROUP BY identity ORDER BY 2 DESC, 1 LIMIT $4";
    let params = [scope.into(), (kind as i64).into(), since.into(), limit.into()];
    tx.query(sql, &params, |row| Ok::<_, StoreError>((row.text(0)?, row.int(1)?))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_where_times_can_be_however_early_or_late_they_are() {
        for time in [i64::MIN, -1, 0, 1, DAY - 1, DAY, i64::MAX] {
            let start = start_of(day_of(time));
            assert!(start <= time && time.saturating_sub(start) < DAY, "{time}: {start}");
        }
        assert_eq!((day_of(-1), start_of(-1), start_of(2)), (-1, -DAY, 2 * DAY));
    }
}
