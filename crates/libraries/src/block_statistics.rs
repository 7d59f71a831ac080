//! Refused downloads in numbers: by day, policy, package, reason and ecosystem.
//!
//! One row counts a day's refusals of a package by a policy for a reason. It is written with the event, so that the
//! sums agree with the attempts of the events.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::libraries::v1 as ours;
use bowline_contract::bowline::libraries::v1::rpc::decisions::GetBlockStatistics;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::libraries as v1;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_resources::list::{micros, timestamp};
use bowline_store::{ReadTx, Row, Value, WriteTx, activity, placeholders};

use super::block_events::BlockedDownload;
use super::ecosystems::Language;
use super::require_organization;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.heavy_read::<GetBlockStatistics>(handler!(statistics))
}

/// Default number of days.
const USUAL_DAYS: i64 = 30;
/// Counts that one call reads.
const MOST_COUNTS: usize = 50_000;
/// Policies and packages of a response.
const MOST_SHOWN: usize = 100;
/// Old rows that one step deletes.
const PRUNED_AT_ONCE: i64 = 5000;

/// Adds one refusal to the day.
pub(super) async fn count(tx: &mut WriteTx, blocked: &BlockedDownload<'_>, day: i64) -> Result<()> {
    let sql = "INSERT INTO library_block_days (org, mode, day, ecosystem, policy, reason, package, attempts)
               VALUES ($1, $2, $3, $4, $5, $6, $7, 1)
               ON CONFLICT (org, mode, day, ecosystem, policy, reason, package)
               DO UPDATE SET attempts = library_block_days.attempts + 1";
    let params = [
        Value::from(blocked.organization.as_str()),
        Value::Int(blocked.mode as i64),
        Value::Int(day),
        Value::Int(blocked.subject.language.number()),
        Value::from(blocked.policy.as_str()),
        Value::from(blocked.refusal.reason()),
        Value::from(blocked.subject.name),
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

/// The counted refusals of one day.
struct Count {
    day: i64,
    language: Language,
    policy: String,
    reason: String,
    package: String,
    attempts: i64,
}

impl Count {
    fn read(row: &Row<'_>) -> Result<Count> {
        Ok(Count {
            day: row.int(0)?,
            language: Language::of_number(row.int(1)?)?,
            policy: row.text(2)?,
            reason: row.text(3)?,
            package: row.text(4)?,
            attempts: row.int(5)?,
        })
    }
}

async fn statistics(
    tx: &mut ReadTx,
    call: &Authorized<ours::GetBlockStatisticsRequest>,
) -> Result<ours::BlockStatistics> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let (first, last) = span(request, call.now())?;
    let mode = match request.mode() {
        v1::LibraryPolicyBindingMode::Unspecified => v1::LibraryPolicyBindingMode::Enforced,
        mode => mode,
    };
    let language = match request.ecosystem {
        0 => None,
        ecosystem => Some(Language::required("ecosystem", ecosystem)?),
    };
    let mut counts = read(tx, &organization, mode, (first, last)).await?;
    let counted_from = first_whole_day(&mut counts, first);
    counts.retain(|count| language.is_none_or(|language| count.language == language));
    let mut response = summed(&counts, (counted_from, last));
    response.incomplete = counted_from > first;
    if call.holds(organization.as_str(), Capability::CapLibrariesPolicyList) {
        name_policies(tx, &mut response.policies).await?;
    }
    Ok(response)
}

/// The first and the last day.
fn span(request: &ours::GetBlockStatisticsRequest, now: Micros) -> Result<(i64, i64)> {
    let last = activity::day_of(request.end_time.map_or(now, micros).min(now));
    let first = request.start_time.map_or(last - USUAL_DAYS + 1, |start| activity::day_of(micros(start)));
    if first > last {
        return Err(Error::invalid_field("startTime", "must not be after endTime, nor in the future"));
    }
    if last - first >= activity::DAYS {
        return Err(Error::invalid_field("startTime", format!("must be within {} days of endTime", activity::DAYS)));
    }
    Ok((first, last))
}

/// The counts of the days, the last day first, and one more than is counted if there are more.
async fn read(
    tx: &mut ReadTx,
    organization: &Uidp,
    mode: v1::LibraryPolicyBindingMode,
    (first, last): (i64, i64),
) -> Result<Vec<Count>> {
    let sql = "SELECT day, ecosystem, policy, reason, package, attempts FROM library_block_days
               WHERE org = $1 AND mode = $2 AND day >= $3 AND day <= $4 ORDER BY day DESC LIMIT $5";
    let params = [
        Value::from(organization.as_str()),
        Value::from(mode as i32),
        Value::Int(first),
        Value::Int(last),
        Value::Int(MOST_COUNTS as i64 + 1),
    ];
    tx.query(sql, &params, Count::read).await
}

/// Drops the day that was not read whole, and returns the first one that was.
fn first_whole_day(counts: &mut Vec<Count>, first: i64) -> i64 {
    if counts.len() <= MOST_COUNTS {
        return first;
    }
    let Some(cut) = counts.last().map(|count| count.day) else { return first };
    counts.retain(|count| count.day > cut);
    cut + 1
}

/// Refusals, and the packages that they were of.
#[derive(Default)]
struct Sum<'a> {
    attempts: i64,
    packages: BTreeSet<(Language, &'a str)>,
}

/// The refusals of some days by everything that they are counted by.
#[derive(Default)]
struct Sums<'a> {
    days: BTreeMap<i64, i64>,
    packages: BTreeMap<(Language, &'a str), i64>,
    policies: BTreeMap<&'a str, Sum<'a>>,
    reasons: BTreeMap<&'a str, Sum<'a>>,
    ecosystems: BTreeMap<Language, Sum<'a>>,
}

impl<'a> Sums<'a> {
    fn of(counts: &'a [Count]) -> Sums<'a> {
        let mut sums = Sums::default();
        for count in counts {
            let package = (count.language, count.package.as_str());
            *sums.days.entry(count.day).or_default() += count.attempts;
            *sums.packages.entry(package).or_default() += count.attempts;
            for sum in [
                sums.policies.entry(&count.policy).or_default(),
                sums.reasons.entry(&count.reason).or_default(),
                sums.ecosystems.entry(count.language).or_default(),
            ] {
                sum.attempts += count.attempts;
                sum.packages.insert(package);
            }
        }
        sums
    }
}

fn summed(counts: &[Count], (first, last): (i64, i64)) -> ours::BlockStatistics {
    let Sums { days, packages, policies, reasons, ecosystems } = Sums::of(counts);
    let by_policy = |policy: &str, sum: Sum<'_>| {
        let (attempts, packages) = (sum.attempts, number(sum.packages.len()));
        ours::BlockedByPolicy { policy: policy.into(), name: String::new(), attempts, packages }
    };
    let by_package = |(language, package): (Language, &str), attempts: i64| {
        let ecosystem = language.wire(false) as i32;
        ours::BlockedPackage { ecosystem, package: package.into(), attempts }
    };
    let by_reason = |reason: &str, sum: Sum<'_>| {
        let (attempts, packages) = (sum.attempts, number(sum.packages.len()));
        ours::BlockedByReason { reason: reason.into(), attempts, packages }
    };
    let by_ecosystem = |language: Language, sum: Sum<'_>| {
        let (ecosystem, packages) = (language.wire(false) as i32, number(sum.packages.len()));
        ours::BlockedByEcosystem { ecosystem, attempts: sum.attempts, packages }
    };
    ours::BlockStatistics {
        attempts: days.values().sum(),
        days: (first..=last).map(|day| blocked_day(day, &days)).collect(),
        package_count: number(packages.len()),
        policies: most(policies, |sum| sum.attempts, by_policy),
        packages: most(packages, |attempts| *attempts, by_package),
        reasons: most(reasons, |sum| sum.attempts, by_reason),
        ecosystems: most(ecosystems, |sum| sum.attempts, by_ecosystem),
        incomplete: false,
        counted_from: timestamp(activity::start_of(first)),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn blocked_day(day: i64, days: &BTreeMap<i64, i64>) -> ours::BlockedDay {
    let attempts = days.get(&day).copied().unwrap_or(0);
    ours::BlockedDay { day: timestamp(activity::start_of(day)), attempts }
}

/// Those with the most refusals, the first one first; equal ones by their keys.
fn most<K, V, T>(all: BTreeMap<K, V>, attempts: impl Fn(&V) -> i64, shown: impl Fn(K, V) -> T) -> Vec<T> {
    let mut all: Vec<(K, V)> = all.into_iter().collect();
    all.sort_by_key(|(_, value)| std::cmp::Reverse(attempts(value)));
    all.into_iter().take(MOST_SHOWN).map(|(key, value)| shown(key, value)).collect()
}

async fn name_policies(tx: &mut ReadTx, policies: &mut [ours::BlockedByPolicy]) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn count(day: i64, package: &str, attempts: i64) -> Count {
        let (policy, reason) = ("p".to_owned(), "COOLDOWN".to_owned());
        Count { day, language: Language::Python, policy, reason, package: package.into(), attempts }
    }

    #[test]
    fn a_day_that_was_not_read_whole_is_left_out() {
        let mut all: Vec<Count> = (0..=MOST_COUNTS).map(|at| count(9 - i64::from(at > 10), "a", 1)).collect();
        assert_eq!(first_whole_day(&mut all, 1), 9);
        assert_eq!(all.len(), 11);
        let mut all = vec![count(9, "a", 1)];
        assert_eq!((first_whole_day(&mut all, 1), all.len()), (1, 1));
    }

    #[test]
    fn a_package_counts_once_and_all_its_refusals() {
        let sums = summed(&[count(3, "a", 2), count(2, "a", 5), count(2, "b", 7)], (1, 3));
        assert_eq!(sums.days.iter().map(|day| day.attempts).collect::<Vec<_>>(), [0, 12, 2]);
        assert_eq!((sums.attempts, sums.package_count, sums.policies[0].packages), (14, 2, 2));
        let packages: Vec<(&str, i64)> = sums.packages.iter().map(|one| (&*one.package, one.attempts)).collect();
        assert_eq!(packages, [("a", 7), ("b", 7)]);
    }
}
