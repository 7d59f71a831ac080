//! Half a million advisories, written past the server.

use std::path::PathBuf;
use std::sync::Arc;

use bowline_contract::v1::vulnerabilities::advisory_event as of;
use bowline_contract::v1::vulnerabilities::{AdvisoryEvent, EventTypeFilter, ReviewStatus};
use bowline_core::Uidp;
use bowline_store::{Db, StoreError, Value, WriteTx, counters};
use prost::Message as _;

use crate::Outcome;
use crate::environment::Environment;
use crate::seed::{self, spread};
use crate::table::complain;

const GROUPS: usize = 10;
/// Advisories of the group that publishes, a document each.
pub(super) const PUBLIC: usize = 1000;
/// Advisories of one transaction.
const BATCH: usize = 5000;
/// 2025-01-01, in microseconds.
const CREATED_AT: i64 = 1_735_689_600_000_000;

/// A directory with many advisories in one organization.
pub(super) struct Advisories {
    pub(super) directory: PathBuf,
    pub(super) org: String,
    /// The first group.
    pub(super) group: String,
    pub(super) count: usize,
}

pub(super) async fn advisories(environment: &Environment) -> Outcome<Advisories> {
    let count = environment.advisories;
    let directory = environment.cache.join(format!("advisories-{count}-{}", seed::schema()));
    let org = Uidp::root_from([0x0c; 20]);
    let group = |n: usize| org.child_from(spread(n as u64));
    let found = Advisories { directory, org: org.as_str().into(), group: group(0).as_str().into(), count };
    if found.directory.exists() {
        return Ok(found);
    }
    complain(&format!("preparing {count} advisories, once"));
    let draft = found.directory.with_extension("draft");
    let db = seed::create(&draft).await?;
    let mut groups: Vec<(Uidp, String)> = vec![(org.clone(), "half a million".into())];
    groups.extend((0..=GROUPS).map(|n| (group(n), format!("group-{n}"))));
    seed::groups(&db, groups).await?;
    publish(&db, group(GROUPS)).await?;
    let mut all: Vec<(Uidp, usize)> =
        (0..count).map(|n| (group(n % GROUPS).child_from(spread(n as u64 + 1_000_000_000)), n)).collect();
    all.extend((0..PUBLIC).map(|n| (group(GROUPS).child_from(spread(n as u64)), count + n)));
    all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    for batch in all.chunks(BATCH) {
        write(&db, batch.to_vec(), count).await?;
    }
    db.close().await;
    std::fs::rename(&draft, &found.directory)?;
    Ok(found)
}

async fn publish(db: &Db, group: Uidp) -> Outcome<()> {
    let written = db.write::<_, StoreError>(move |tx| {
        let group = group.clone();
        Box::pin(async move {
            let sql = "INSERT INTO advisory_settings (place, org, is_public, second_reviewer, revision, updated_at)
                       VALUES ($1, $2, TRUE, FALSE, 1, 0)";
            tx.execute(sql, &[Value::from(group.as_str()), Value::from(group.root_str())]).await
        })
    });
    written.await?;
    Ok(())
}

async fn write(db: &Db, batch: Vec<(Uidp, usize)>, count: usize) -> Outcome<()> {
    let batch = Arc::new(batch);
    db.write::<_, StoreError>(move |tx| {
        let batch = batch.clone();
        Box::pin(async move {
            for (uid, n) in batch.iter() {
                let name = if *n < count { format!("package-{}", n % 5000) } else { format!("public-{}", n - count) };
                advisory(tx, uid, *n, &name).await?;
            }
            counters::fold(tx, i64::MAX).await
        })
    })
    .await?;
    Ok(())
}

/// Most are about an apk and of one architecture; one in a hundred waits for its review.
async fn advisory(tx: &mut WriteTx, uid: &Uidp, n: usize, name: &str) -> Result<(), StoreError> {
    let is_fixed = n % 10 < 6;
    let is_rare = n % 1000 == 999;
    let latest = match (is_rare, is_fixed) {
        (true, _) => EventTypeFilter::PendingUpstreamFix,
        (false, true) => EventTypeFilter::Fixed,
        (false, false) => EventTypeFilter::Detection,
    };
    let alias = format!("CVE-{}-{}", 2018 + n % 9, n % 100_000);
    let component = format!("example.com/module-{}", n % 20_000);
    let (aliases, words) = (format!("[\"{alias}\"]"), format!("{name}\n{component}\n{}", alias.to_lowercase()));
    let texts = [public_id(n), if n.is_multiple_of(2) { format!("OLD-{n}") } else { String::new() }, location(n)];
    let sql = "INSERT INTO advisories (uid, parent, org, advisory_id, legacy_id, artifact_name, artifact_type,
                 artifact_architecture, component_name, component_location, component_type, aliases, first_alias, author,
                 latest_event_type, latest_judgement_type, latest_event_at, event_count, event_bytes, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'bot', $14, $14, $15, 2, 100, $15, $15)";
    let params = [
        Value::from(uid.as_str()),
        Value::from(uid.parent_str()),
        Value::from(uid.root_str()),
        Value::from(&texts[0]),
        Value::from(&texts[1]),
        Value::from(name),
        Value::from(if n.is_multiple_of(50) { "image" } else { "apk" }),
        Value::from(if n.is_multiple_of(3) { "aarch64" } else { "x86_64" }),
        Value::from(&component),
        Value::from(&texts[2]),
        Value::from(if n.is_multiple_of(20) { "python" } else { "go-module" }),
        Value::from(&aliases),
        Value::from(&alias),
        Value::from(latest as i32),
        Value::Int(CREATED_AT + n as i64),
    ];
    tx.execute(sql, &params).await?;
    let sql = "INSERT INTO advisory_aliases (alias, advisory) VALUES ($1, $2)";
    tx.execute(sql, &[Value::from(&alias), Value::from(uid.as_str())]).await?;
    let sql = "INSERT INTO advisory_words (advisory, words) VALUES ($1, $2)";
    tx.execute(sql, &[Value::from(uid.as_str()), Value::from(&words)]).await?;
    let manual = of::Detection { r#type: Some(of::detection::Type::Manual(of::detection::Manual {})) };
    event(tx, uid, 1, (of::Type::Detection(manual), EventTypeFilter::Detection), ReviewStatus::Approved, n).await?;
    let (second, state) = (second(latest), if n % 100 == 7 { ReviewStatus::Pending } else { ReviewStatus::Approved });
    event(tx, uid, 2, second, state, n).await?;
    for table in ["advisories", "shown_advisories"] {
        counters::record(tx, table, uid.as_str(), 1).await?;
        counters::record(tx, &format!("{table}/children"), uid.parent_str(), 1).await?;
    }
    Ok(())
}

fn second(latest: EventTypeFilter) -> (of::Type, EventTypeFilter) {
    match latest {
        EventTypeFilter::Fixed => {
            let fixed = of::Fixed { fixed_version: "1.2.3-r4".into(), ..of::Fixed::default() };
            (of::Type::Fixed(fixed), latest)
        }
        EventTypeFilter::PendingUpstreamFix => {
            (of::Type::PendingUpstreamFix(of::PendingUpstreamFix::default()), latest)
        }
        _ => {
            let kind = EventTypeFilter::TruePositiveDetermination;
            (of::Type::TruePositiveDetermination(of::TruePositiveDetermination::default()), kind)
        }
    }
}

async fn event(
    tx: &mut WriteTx,
    advisory: &Uidp,
    which: u8,
    (kind, filter): (of::Type, EventTypeFilter),
    state: ReviewStatus,
    n: usize,
) -> Result<(), StoreError> {
    let uid = advisory.child_from([which; 8]);
    let body = AdvisoryEvent { r#type: Some(kind), ..AdvisoryEvent::default() }.encode_to_vec();
    let (author, reviewer) = (format!("author-{}", n % 300), format!("reviewer-{}", n % 20));
    let sql = "INSERT INTO advisory_events (uid, advisory, org, type, state, author, reviewer, at, created_at, body)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9)";
    let params = [
        Value::from(uid.as_str()),
        Value::from(advisory.as_str()),
        Value::from(advisory.root_str()),
        Value::from(filter as i32),
        Value::from(state as i32),
        Value::from(&author),
        Value::from(if state == ReviewStatus::Approved { reviewer.as_str() } else { "" }),
        Value::Int(CREATED_AT + i64::from(which)),
        Value::from(&body),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

fn location(n: usize) -> String {
    format!("/usr/bin/tool-{}", n % 1000)
}

/// Another one for each number.
fn public_id(n: usize) -> String {
    const SYMBOLS: &[u8; 20] = b"23456789cfghjmpqrvwx";
    let symbol = |at: u32| char::from(SYMBOLS[n / 20_usize.pow(at) % 20]);
    let group = |first: u32| -> String { (first..first + 4).rev().map(symbol).collect() };
    format!("BWL-2222-{}-{}", group(4), group(0))
}
