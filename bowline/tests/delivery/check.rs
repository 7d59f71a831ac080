//! What the sinks got against what the log says they must get.

use std::collections::{BTreeSet, HashSet};

use bowline_core::Error;
use bowline_store::{Db, Value};

use crate::sinks::Sinks;

/// How much was looked at.
#[derive(Debug, Default)]
#[expect(dead_code, reason = "read where it is printed")]
pub(crate) struct Seen {
    events: usize,
    deliveries: usize,
    repeated: usize,
    attempts: u64,
    failures: u64,
}

/// How the two differ.
pub(crate) enum Unlike {
    /// So many deliveries have not come yet.
    Missing(usize),
    /// Something came that must not, or too early.
    Wrong(String),
}

struct Row {
    group: String,
    subject: String,
}

/// Every subscription's first deliveries are what came into its group after its own creation, in order.
pub(crate) async fn compare(db: &Db, sinks: &Sinks) -> Result<Seen, Unlike> {
    let log = log(db).await;
    let (attempts, failures) = sinks.attempts();
    let mut seen = Seen { events: log.len(), attempts, failures, ..Seen::default() };
    let mut missing = 0;
    for (subscription, accepted) in sinks.accepted() {
        let group = subscription.rsplit_once('/').expect("a subscription is in a group").0;
        let is_within = |row: &&Row| row.group == group || row.group.starts_with(&format!("{group}/"));
        let mut later = log.iter().skip_while(|row| row.subject != subscription);
        assert!(later.next().is_some(), "the log tells of the subscription {subscription}");
        let wanted: Vec<&str> = later.filter(is_within).map(|row| row.subject.as_str()).collect();
        let mut known = HashSet::new();
        let first: Vec<&str> = accepted.iter().map(String::as_str).filter(|subject| known.insert(*subject)).collect();
        if !wanted.starts_with(&first) {
            let at = wanted.iter().zip(&first).position(|(wanted, came)| wanted != came);
            return Err(Unlike::Wrong(format!("{subscription}: at {at:?} of {} another event came", wanted.len())));
        }
        missing += wanted.len() - first.len();
        seen.deliveries += first.len();
        seen.repeated += accepted.len() - first.len();
    }
    if missing == 0 { Ok(seen) } else { Err(Unlike::Missing(missing)) }
}

async fn log(db: &Db) -> Vec<Row> {
    let mut all = Vec::new();
    let mut last = 0;
    loop {
        let page = db.read(move |tx| {
            Box::pin(async move {
                let sql = "SELECT seq, group_uid, subject FROM outbox WHERE seq > $1 ORDER BY seq LIMIT 5000";
                let read = |row: &bowline_store::Row<'_>| Ok((row.int(0)?, row.text(1)?, row.text(2)?));
                tx.query(sql, &[Value::Int(last)], read).await
            })
        });
        let page: Result<Vec<(i64, String, String)>, Error> = page.await;
        let page = page.expect("the outbox is read");
        let Some((newest, _, _)) = page.last() else { return all };
        last = *newest;
        all.extend(page.into_iter().map(|(_, group, subject)| Row { group, subject }));
    }
}

/// Every repository has one row in the audit log and one in the outbox, and all acknowledged ones are there.
pub(crate) async fn rows(db: &Db, acknowledged: &[String]) {
    let repos = texts(db, "SELECT uid FROM repos").await;
    let audited = texts(db, "SELECT resource FROM audit WHERE kind LIKE 'registry%' AND before_image IS NULL").await;
    let told = texts(db, "SELECT subject FROM outbox WHERE event_type LIKE '%repo.created%'").await;
    let set = |texts: &[String]| texts.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(repos.len(), audited.len(), "one row of the audit log for each repository");
    assert_eq!(repos.len(), told.len(), "one event for each repository");
    assert!(set(&repos) == set(&audited) && set(&repos) == set(&told), "the same repositories everywhere");
    assert!(set(acknowledged).is_subset(&set(&repos)), "what was acknowledged is there");
    assert!(texts(db, "SELECT event_id FROM dead_letters").await.is_empty());
}

async fn texts(db: &Db, sql: &'static str) -> Vec<String> {
    let read =
        db.read(move |tx| Box::pin(async move { tx.query(sql, &[], |row| row.text(0).map_err(Error::from)).await }));
    read.await.expect("the database answers")
}
