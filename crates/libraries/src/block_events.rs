//! Downloads that policies refused, or would have: written by the fronts that serve downloads, summed into one row for each version,
//! policy, mode and reason.

use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::library_policy_block_events::ListBlockEvents;
use bowline_core::{Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Direction, Handlers, PageRequest, SortKey, handler};
use bowline_resources::list::{
    self, BY_UID, Comparison, Condition, Filter, Listed, Listing, Order, Selection, Table, timestamp,
};
use bowline_store::activity::{self, Activity, ActivityKind};
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::Message;

use super::ecosystems::Language;
use super::policies::{self, Mode};
use super::policy::decide::{Refusal, Subject};
use super::policy::purl;
use super::{block_statistics, policy_bindings};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListBlockEvents>(handler!(list))
}

const TABLE: Table = Table {
    name: "library_block_events",
    columns: "uid, purl, ecosystem, mode, reason, policy, published_at, cooldown_days, unblocks_at, first_blocked_at, \
              last_blocked_at, attempts",
    orders: &[BY_UID, Order { names: &["last_blocked_at"], column: "last_blocked_at" }],
};

/// How far back a list looks that does not say.
const DEFAULT_REACH: Micros = 30 * 24 * 3600 * 1_000_000;

struct BlockEventRow {
    shown: v1::LibraryPolicyBlockEvent,
    last_blocked_at: Micros,
}

impl Listed for BlockEventRow {
    fn read(row: &Row<'_>) -> Result<BlockEventRow> {
        let last_blocked_at = row.int(10)?;
        let shown = v1::LibraryPolicyBlockEvent {
            id: list::stored_uid(row, &TABLE)?.as_str().into(),
            purl: row.text(1)?,
            ecosystem: Language::of_number(row.int(2)?)?.own().as_str_name().into(),
            mode: row.int(3)? as i32,
            reason: row.text(4)?,
            policy: row.text(5)?,
            publish_date: row.opt_int(6)?.and_then(timestamp),
            cooldown_days: row.int(7)? as i32,
            unblocks_at: row.opt_int(8)?.and_then(timestamp),
            first_blocked_at: timestamp(row.int(9)?),
            last_blocked_at: timestamp(last_blocked_at),
            attempt_count: i32::try_from(row.int(11)?).unwrap_or(i32::MAX),
        };
        Ok(BlockEventRow { shown, last_blocked_at })
    }

    fn uid(&self) -> &str {
        &self.shown.id
    }

    fn sort_key(&self, _column: &str) -> SortKey {
        SortKey::Int(self.last_blocked_at)
    }
}

/// A download that a policy refused, or would have refused.
pub struct BlockedDownload<'a> {
    /// Whose download it was.
    pub organization: &'a Uidp,
    /// The requested package or version.
    pub subject: Subject<'a>,
    /// The policy that decided; absent for freezes.
    pub policy: Option<&'a Uidp>,
    /// What its binding does.
    pub mode: Mode,
    pub refusal: &'a Refusal,
    /// How often it was tried.
    pub attempts: i64,
}

impl BlockedDownload<'_> {
    /// UIDP of the policy as rows have it: empty for freezes.
    pub(super) fn policy_uid(&self) -> &str {
        self.policy.map(Uidp::as_str).unwrap_or_default()
    }
}

/// Adds the attempts. `new` is the UIDP of the row if this is the first of its kind: a child of the organization.
///
/// # Errors
/// Those of the database.
pub async fn record(tx: &mut WriteTx, blocked: &BlockedDownload<'_>, new: &Uidp, now: Micros) -> Result<()> {
    let (subject, refusal) = (&blocked.subject, blocked.refusal);
    let (days, until) = match refusal {
        Refusal::Cooldown { days, until, .. } => (*days, *until),
        Refusal::Blocked(_)
        | Refusal::License(_)
        | Refusal::Malware
        | Refusal::Frozen { .. }
        | Refusal::Vulnerable(_) => (0, None),
    };
    let purl = purl::of_version(subject.language, subject.name, subject.version);
    let sql = "INSERT INTO library_block_events (uid, parent, org, purl, package, ecosystem, mode, reason, policy, published_at,
                                                 cooldown_days, unblocks_at, first_blocked_at, last_blocked_at, attempts)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14)
               ON CONFLICT (parent, purl, mode, reason, policy) DO UPDATE SET
                 published_at = excluded.published_at, cooldown_days = excluded.cooldown_days,
                 unblocks_at = excluded.unblocks_at, last_blocked_at = excluded.last_blocked_at,
                 attempts = library_block_events.attempts + excluded.attempts
               RETURNING uid";
    let params = [
        Value::from(new.as_str()),
        Value::from(blocked.organization.as_str()),
        Value::from(blocked.organization.root_str()),
        Value::from(&purl),
        Value::from(subject.name),
        Value::Int(subject.language.number()),
        Value::Int(blocked.mode as i64),
        Value::from(refusal.reason()),
        Value::from(blocked.policy_uid()),
        Value::OptInt(subject.age.published_at),
        Value::from(days),
        Value::OptInt(until),
        Value::Int(now),
        Value::Int(blocked.attempts),
    ];
    let stored = tx.query_opt(sql, &params, |row| row.text(0).map_err(bowline_core::Error::from)).await?;
    let (scope, day) = (blocked.organization.as_str(), activity::day_of(now));
    activity::record(tx, &Activity { scope, identity: "", day, kind: ActivityKind::BlockedPackages }, blocked.attempts)
        .await?;
    block_statistics::count(tx, blocked, day).await?;
    if stored.as_deref() == Some(new.as_str()) {
        list::count(tx, &TABLE, new, 1).await?;
    }
    Ok(())
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v1::LibraryPolicyBlockEventFilter>,
) -> Result<v1::LibraryPolicyBlockEventList> {
    let request = call.request();
    let parent = Some(request.parent_id.clone()).filter(|parent| !parent.is_empty());
    let ranges = policies::within(call, &request.parent_id);
    let conditions = vec![policy_bindings::in_contract()];
    let mut selection = Selection { ranges, parent, filters: Vec::new(), conditions, clauses: Vec::new() };
    if request.ecosystem != 0 {
        selection.filters.push(Filter { column: "ecosystem", value: Value::from(request.ecosystem) });
    }
    let rest = v1::LibraryPolicyBlockEventFilter { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let mode = match request.mode() {
        v1::LibraryPolicyBindingMode::Unspecified | v1::LibraryPolicyBindingMode::Enforced => Mode::Enforced,
        v1::LibraryPolicyBindingMode::Log => Mode::Log,
    };
    let since = request.since.map(list::micros);
    let query = BlockEventQuery { selection, mode, package: &request.package_name, since, page };
    let Listing { items, next_page_token, total_count, skipped } = query.page(tx, call).await?;
    Ok(v1::LibraryPolicyBlockEventList { items, next_page_token, total_count, skipped })
}

/// What a page of refused downloads is read by.
pub(super) struct BlockEventQuery<'a> {
    /// The rows that the list has, before the other fields narrow it.
    pub(super) selection: Selection<'a>,
    pub(super) mode: Mode,
    /// Only this package; empty for any.
    pub(super) package: &'a str,
    /// Only what was refused since then; the last 30 days without it.
    pub(super) since: Option<Micros>,
    pub(super) page: PageRequest,
}

impl BlockEventQuery<'_> {
    /// Reads the page, the latest first.
    pub(super) async fn page<T>(
        self,
        tx: &mut ReadTx,
        call: &Authorized<T>,
    ) -> Result<Listing<v1::LibraryPolicyBlockEvent>> {
        let BlockEventQuery { mut selection, mode, package, since, page } = self;
        selection.filters.push(Filter { column: "mode", value: Value::Int(mode as i64) });
        if !package.is_empty() {
            selection.filters.push(Filter { column: "package", value: Value::from(package) });
        }
        let value = Value::Int(since.unwrap_or(call.now() - DEFAULT_REACH));
        selection.conditions.push(Condition { column: "last_blocked_at", comparison: Comparison::AtLeast, value });
        let latest = (1, Direction::Descending);
        let listing = list::page::<_, BlockEventRow>(tx, call, &TABLE, &selection, &page, latest).await?;
        Ok(Listing {
            items: listing.items.into_iter().map(|row| row.shown).collect(),
            next_page_token: listing.next_page_token,
            total_count: listing.total_count,
            skipped: listing.skipped,
        })
    }
}

/// Forgets what an organization was refused that is deleted.
pub(super) async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<()> {
    let sql = "DELETE FROM library_block_events WHERE parent = $1 RETURNING uid";
    let gone = tx.query(sql, &[Value::from(group.as_str())], |row| list::stored_uid(row, &TABLE)).await?;
    for uid in gone {
        list::count(tx, &TABLE, &uid, -1).await?;
    }
    Ok(())
}
