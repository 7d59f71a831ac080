//! Refused downloads in numbers: by day, policy, package, reason and ecosystem.
//!
//! One row counts a day's refusals of a package by a policy for a reason. It is written with the event, so that the
//! sums agree with the attempts of the events.

use std::collections::BTreeMap;

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::decisions::GetBlockStatistics;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::libraries as v1;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::days::{DayLimits, day_span};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx, activity, placeholders};

use super::block_events::BlockedDownload;
use super::ecosystems::Language;
use super::require_organization;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.heavy_read::<GetBlockStatistics>(handler!(statistics))
}

const DAYS: DayLimits = DayLimits { usual: 30, max: activity::DAYS };
/// Rows that one call sums, and those of the newest day however many it has.
const MAX_COUNTS: i64 = 200_000;
/// Policies and packages of a response.
const MAX_SHOWN: i64 = 100;
/// Old rows that one step deletes.
const PRUNED_AT_ONCE: i64 = 5000;

/// Adds one refusal to the day.
pub(super) async fn count(tx: &mut WriteTx, blocked: &BlockedDownload<'_>, day: i64) -> Result<()> {
    let sql = "INSERT INTO library_block_days (org, mode, day, ecosystem, policy, reason, package, attempts)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
               ON CONFLICT (org, mode, day, ecosystem, policy, reason, package)
               DO UPDATE SET attempts = library_block_days.attempts + excluded.attempts";
    let params = [
        Value::from(blocked.organization.as_str()),
        Value::Int(blocked.mode as i64),
        Value::Int(day),
        Value::Int(blocked.subject.language.number()),
        Value::from(blocked.policy_uid()),
        Value::from(blocked.refusal.reason()),
        Value::from(blocked.subject.name),
        Value::Int(blocked.attempts),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Deletes some days that are older than activity is stored, and returns how many rows.
///
/// # Errors
/// Those of the database.
pub async fn prune(tx: &mut WriteTx, now: Micros) -> Result<u64> {
    let key = "org, mode, day, ecosystem, policy, reason, package";
    let sql = format!(
        "DELETE FROM library_block_days WHERE ({key}) IN
           (SELECT {key} FROM library_block_days WHERE day < $1 ORDER BY day LIMIT $2)"
    );
    let params = [Value::Int(activity::day_of(now) - activity::DAYS), Value::Int(PRUNED_AT_ONCE)];
    Ok(tx.execute(&sql, &params).await?)
}

async fn statistics(
    tx: &mut ReadTx,
    call: &Authorized<own::GetBlockStatisticsRequest>,
) -> Result<own::BlockStatistics> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let (first, last) = day_span(request.start_time, request.end_time, call.now(), DAYS)?;
    let mode = match request.mode() {
        v1::LibraryPolicyBindingMode::Unspecified => v1::LibraryPolicyBindingMode::Enforced,
        mode => mode,
    };
    let language = match request.ecosystem {
        0 => None,
        ecosystem => Some(Language::required_own("ecosystem", ecosystem)?),
    };
    let mut counts = Counts { organization, mode, language, first, last };
    counts.first = counts.first_counted(tx).await?;
    let mut response = counts.summed(tx).await?;
    response.incomplete = counts.first > first;
    if call.holds(counts.organization.as_str(), Capability::CapLibrariesPolicyList) {
        name_policies(tx, &mut response.policies).await?;
    }
    Ok(response)
}

/// The rows that are summed.
struct Counts {
    organization: Uidp,
    mode: v1::LibraryPolicyBindingMode,
    /// One of the ecosystems, or all.
    language: Option<Language>,
    first: i64,
    last: i64,
}

/// A value with its refusals, and the number of packages that they were of.
type Sum<K> = (K, i64, i32);

impl Counts {
    /// A statement over the rows, with what stands before and behind its table and conditions.
    fn sql(&self, before: &str, behind: &str) -> Sql<'_> {
        let mut sql = Sql::new(format!("{before} FROM library_block_days"));
        sql.bind(" WHERE org = ", self.organization.as_str()).bind(" AND mode = ", self.mode as i32);
        sql.bind(" AND day >= ", self.first).bind(" AND day <= ", self.last);
        if let Some(language) = self.language {
            sql.bind(" AND ecosystem = ", language.number());
        }
        sql.push(behind);
        sql
    }

    /// The first day that is counted: all days, or as many whole ones as the bound has room for.
    async fn first_counted(&self, tx: &mut ReadTx) -> Result<i64> {
        let mut days = [None; 2];
        for (day, offset) in days.iter_mut().zip([0, MAX_COUNTS]) {
            let mut sql = self.sql("SELECT day", " ORDER BY day DESC LIMIT 1");
            sql.bind(" OFFSET ", offset);
            *day = tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?;
        }
        let [Some(newest), Some(cut)] = days else { return Ok(self.first) };
        Ok(newest.min(cut + 1))
    }

    async fn summed(&self, tx: &mut ReadTx) -> Result<own::BlockStatistics> {
        let days = self.by_day(tx).await?;
        let policies = self.by(tx, "policy", |row| Ok(row.text(0)?)).await?;
        let reasons = self.by(tx, "reason", |row| Ok(row.text(0)?)).await?;
        let ecosystems = self.by(tx, "ecosystem", |row| Language::of_number(row.int(0)?)).await?;
        let by_policy = |(policy, attempts, packages): Sum<String>| own::BlockedByPolicy {
            policy,
            name: String::new(),
            attempts,
            packages,
        };
        let by_reason = |(reason, attempts, packages): Sum<String>| own::BlockedByReason { reason, attempts, packages };
        let by_ecosystem = |(language, attempts, packages): Sum<Language>| own::BlockedByEcosystem {
            ecosystem: language.own() as i32,
            attempts,
            packages,
        };
        Ok(own::BlockStatistics {
            attempts: days.values().sum(),
            days: (self.first..=self.last).map(|day| blocked_day(day, &days)).collect(),
            package_count: self.package_count(tx).await?,
            policies: policies.into_iter().map(by_policy).collect(),
            packages: self.by_package(tx).await?,
            reasons: reasons.into_iter().map(by_reason).collect(),
            ecosystems: ecosystems.into_iter().map(by_ecosystem).collect(),
            incomplete: false,
            counted_from: timestamp(activity::start_of(self.first)),
        })
    }

    async fn by_day(&self, tx: &mut ReadTx) -> Result<BTreeMap<i64, i64>> {
        let sql = self.sql("SELECT day, CAST(sum(attempts) AS BIGINT)", " GROUP BY day");
        let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.int(1)?));
        Ok(tx.query(&sql.text, &sql.params, read).await?.into_iter().collect())
    }

    /// Values of a column, those with the most refusals first; equal ones by their order.
    async fn by<K: Send>(
        &self,
        tx: &mut ReadTx,
        column: &str,
        key: impl Fn(&Row<'_>) -> Result<K> + Send,
    ) -> Result<Vec<Sum<K>>> {
        let before = format!(
            "SELECT counted, CAST(sum(attempts) AS BIGINT), count(*)
             FROM (SELECT {column} AS counted, sum(attempts) AS attempts"
        );
        let behind = format!(
            " GROUP BY {column}, ecosystem, package) AS packages GROUP BY counted ORDER BY 2 DESC, 1 LIMIT {MAX_SHOWN}"
        );
        let sql = self.sql(&before, &behind);
        let read = move |row: &Row<'_>| Ok::<_, Error>((key(row)?, row.int(1)?, number(row.int(2)?)));
        tx.query(&sql.text, &sql.params, read).await
    }

    /// The packages with the most refusals, the first one first; equal ones by ecosystem and name.
    async fn by_package(&self, tx: &mut ReadTx) -> Result<Vec<own::BlockedPackage>> {
        let before = "SELECT ecosystem, package, CAST(sum(attempts) AS BIGINT)";
        let behind = format!(" GROUP BY ecosystem, package ORDER BY 3 DESC, 1, 2 LIMIT {MAX_SHOWN}");
        let sql = self.sql(before, &behind);
        let read = |row: &Row<'_>| {
            let ecosystem = Language::of_number(row.int(0)?)?.own() as i32;
            Ok::<_, Error>(own::BlockedPackage { ecosystem, package: row.text(1)?, attempts: row.int(2)? })
        };
        tx.query(&sql.text, &sql.params, read).await
    }

    async fn package_count(&self, tx: &mut ReadTx) -> Result<i32> {
        let before = "SELECT count(*) FROM (SELECT DISTINCT ecosystem, package";
        let sql = self.sql(before, ") AS packages");
        let count = tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?;
        Ok(number(count.unwrap_or_default()))
    }
}

fn number(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn blocked_day(day: i64, days: &BTreeMap<i64, i64>) -> own::BlockedDay {
    let attempts = days.get(&day).copied().unwrap_or(0);
    own::BlockedDay { day: timestamp(activity::start_of(day)), attempts }
}

async fn name_policies(tx: &mut ReadTx, policies: &mut [own::BlockedByPolicy]) -> Result<()> {
    if policies.is_empty() {
        return Ok(());
    }
    let sql = format!("SELECT uid, name FROM library_policies WHERE uid IN ({})", placeholders(1, policies.len()));
    let names: BTreeMap<String, String> = {
        let params: Vec<Value<'_>> = policies.iter().map(|policy| Value::from(&policy.policy)).collect();
        let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
        tx.query(&sql, &params, read).await?.into_iter().collect()
    };
    for policy in policies {
        policy.name = names.get(&policy.policy).cloned().unwrap_or_default();
    }
    Ok(())
}
