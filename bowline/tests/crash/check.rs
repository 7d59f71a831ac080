//! What must hold after a crash, read from the database in one snapshot.
//!
//! The audit log is the pivot. Rows are what it says was created and not deleted; every change in it has
//! its event in the outbox and the other way round; counts are those of the rows. So whatever a request
//! left is whole. That acknowledged requests left something, each at most once, and that no one else did,
//! is compared with what the writers sent.

use std::collections::{BTreeMap, BTreeSet};

use bowline_core::Error;
use bowline_pipeline::OPERATOR;
use bowline_store::counters::{self, Scope};
use bowline_store::{Db, Engine, ReadTx};

use crate::client::Reply;
use crate::writer::{Ground, Sent};

const COLLECTIONS: [(&str, &str); 4] = [
    ("groups", "iam.chainguard.dev/Group"),
    ("identities", "iam.chainguard.dev/Identity"),
    ("role_bindings", "iam.chainguard.dev/RoleBinding"),
    ("repos", "registry.chainguard.dev/Repo"),
];

/// What commands and the start itself do has rows in the audit log, under names that are no methods, and no events.
const COMMANDS: &str = "bowline ";

#[derive(Debug)]
struct AuditRow {
    request_id: String,
    method: String,
    kind: String,
    resource: String,
    is_creation: bool,
    is_deletion: bool,
    at: i64,
}

/// What is counted: totals by collection, and by collection and parent.
type Counts = BTreeMap<(String, String), i64>;

struct Snapshot {
    audit: Vec<AuditRow>,
    /// Method, subject and time of every event.
    events: Vec<(String, String, i64)>,
    /// UIDP and parent by collection.
    rows: BTreeMap<&'static str, Vec<(String, String)>>,
    counts: Counts,
    damage: Vec<String>,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) acknowledged: u64,
    pub(crate) open_and_present: u64,
    pub(crate) open_and_absent: u64,
}

/// # Panics
/// Something is missing, or there by half.
pub(crate) async fn check(db: &Db, ground: &Ground, sent: &[&Sent]) -> Seen {
    let groups = ground.groups.clone();
    let read = db.read(move |tx| Box::pin(async move { Snapshot::read(tx, &groups).await })).await;
    let snapshot = read.expect("the database can be read");
    assert_eq!(snapshot.damage, Vec::<String>::new(), "the file is damaged");
    let findings = bowline_pipeline::audit::verify(db, None, |_| {}).await.expect("the audit log can be read");
    assert_eq!(findings.wrong, None, "the chain of the audit log is broken");
    snapshot.audit_agrees_with_rows();
    snapshot.audit_agrees_with_events();
    snapshot.counts_agree_with_rows(&ground.groups);
    snapshot.agrees_with_writers(sent)
}

impl Snapshot {
    async fn read(tx: &mut ReadTx, groups: &[String]) -> Result<Snapshot, Error> {
        let sql = "SELECT request_id, method, kind, resource, before_type, after_type, at FROM audit";
        let audit = tx.query(sql, &[], |row| {
            let (before, after) = (row.opt_text(4)?, row.opt_text(5)?);
            Ok::<_, Error>(AuditRow {
                request_id: row.text(0)?,
                method: row.text(1)?,
                kind: row.text(2)?,
                resource: row.text(3)?,
                is_creation: before.is_none() && after.is_some(),
                is_deletion: before.is_some() && after.is_none(),
                at: row.int(6)?,
            })
        });
        let audit = audit.await?;
        let sql = "SELECT method, subject, at FROM outbox";
        let events = tx.query(sql, &[], |row| Ok::<_, Error>((row.text(0)?, row.text(1)?, row.int(2)?))).await?;
        let mut rows = BTreeMap::new();
        for (table, _) in COLLECTIONS {
            let sql = format!("SELECT uid, parent FROM {table}");
            let found = tx.query(&sql, &[], |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await?;
            rows.insert(table, found);
        }
        let counts = counts(tx, groups).await?;
        Ok(Snapshot { audit, events, rows, counts, damage: damage(tx).await? })
    }

    /// Rows are what was created and not deleted.
    fn audit_agrees_with_rows(&self) {
        for (table, kind) in COLLECTIONS {
            let mut expected = BTreeSet::new();
            // The operator has no row; entries about it are the tokens that were made for it.
            let of_kind = || self.audit.iter().filter(|row| row.kind == kind && row.resource != OPERATOR);
            for row in of_kind().filter(|row| row.is_creation) {
                assert!(expected.insert(row.resource.as_str()), "{} was created twice", row.resource);
            }
            for row in of_kind().filter(|row| row.is_deletion) {
                assert!(expected.remove(row.resource.as_str()), "{} was deleted, but never created", row.resource);
            }
            let found: BTreeSet<&str> = self.rows[table].iter().map(|(uid, _)| uid.as_str()).collect();
            let only =
                |a: &BTreeSet<&str>, b: &BTreeSet<&str>| a.difference(b).map(ToString::to_string).collect::<Vec<_>>();
            let (missing, unexplained) = (only(&expected, &found), only(&found, &expected));
            assert!(missing.is_empty(), "{table}: in the audit log, but not in the table: {missing:?}");
            assert!(unexplained.is_empty(), "{table}: in the table, but not in the audit log: {unexplained:?}");
        }
    }

    /// Every change has its event, and every event its change.
    fn audit_agrees_with_events(&self) {
        let changes = self.audit.iter().filter(|row| !row.method.starts_with(COMMANDS));
        let mut changes: Vec<_> = changes.map(|row| (row.method.clone(), row.resource.clone(), row.at)).collect();
        // Tokens of the operator have events, and are made by commands.
        let mut events: Vec<_> = self.events.iter().filter(|event| event.1 != OPERATOR).cloned().collect();
        changes.sort();
        events.sort();
        let differs = changes.iter().zip(&events).find(|(change, event)| change != event);
        assert_eq!(differs, None, "audit log and outbox differ");
        assert_eq!(changes.len(), events.len(), "audit log and outbox differ in length");
    }

    fn counts_agree_with_rows(&self, groups: &[String]) {
        let mut expected = Counts::new();
        for (table, rows) in &self.rows {
            let total = rows.len() as i64;
            expected.insert(((*table).to_owned(), String::new()), total);
            for group in groups {
                let below = format!("{group}/");
                let inside = rows.iter().filter(|(uid, _)| uid.starts_with(&below)).count() as i64;
                let children = rows.iter().filter(|(_, parent)| parent == group).count() as i64;
                expected.insert(((*table).to_owned(), group.clone()), inside);
                expected.insert((format!("{table}/children"), group.clone()), children);
            }
        }
        assert_eq!(self.counts, expected, "kept counts and rows differ");
    }

    fn agrees_with_writers(&self, sent: &[&Sent]) -> Seen {
        let mut by_request: BTreeMap<&str, Vec<&AuditRow>> = BTreeMap::new();
        for row in self.audit.iter().filter(|row| !row.method.starts_with(COMMANDS)) {
            by_request.entry(&row.request_id).or_default().push(row);
        }
        let mut seen = Seen::default();
        for sent in sent {
            let rows = by_request.remove(sent.request_id.as_str()).unwrap_or_default();
            assert!(rows.len() <= 1, "{sent:?} has {} rows in the audit log", rows.len());
            match (&sent.reply, rows.first()) {
                (Reply::Done(uid), Some(row)) => {
                    seen.acknowledged += 1;
                    let (uid, created) = sent.mutation.deletes().map_or((uid.as_str(), true), |uid| (uid, false));
                    assert_eq!(
                        (&*row.resource, row.is_creation, row.is_deletion),
                        (uid, created, !created),
                        "{sent:?}"
                    );
                }
                (Reply::Done(_), None) => panic!("acknowledged, but lost: {sent:?}"),
                (Reply::Refused(_), Some(_)) => panic!("refused, but done: {sent:?}"),
                (Reply::Refused(why), None) => assert!(is_fair(why), "{sent:?}"),
                (Reply::Lost, Some(_)) => seen.open_and_present += 1,
                (Reply::Lost, None) => seen.open_and_absent += 1,
            }
        }
        assert!(by_request.is_empty(), "nobody asked for {by_request:?}");
        seen
    }
}

/// Under contention a write may be given up; no other refusal has a reason here.
fn is_fair(refusal: &str) -> bool {
    refusal.starts_with("503") || refusal.starts_with("14:")
}

async fn counts(tx: &mut ReadTx, groups: &[String]) -> Result<Counts, Error> {
    let mut counts = Counts::new();
    for (table, _) in COLLECTIONS {
        let total = counters::total(tx, table, &Scope::All).await?;
        counts.insert((table.to_owned(), String::new()), total);
        let children = format!("{table}/children");
        for group in groups {
            let below = counters::total(tx, table, &Scope::Below(group)).await?;
            counts.insert((table.to_owned(), group.clone()), below);
            let with_below = counters::total(tx, &children, &Scope::Subtree(group)).await?;
            let only_below = counters::total(tx, &children, &Scope::Below(group)).await?;
            counts.insert((children.clone(), group.clone()), with_below - only_below);
        }
    }
    Ok(counts)
}

async fn damage(tx: &mut ReadTx) -> Result<Vec<String>, Error> {
    if tx.engine() == Engine::Postgres {
        return Ok(Vec::new());
    }
    let found = tx.query("PRAGMA quick_check", &[], |row| row.text(0).map_err(Error::from)).await?;
    Ok(found.into_iter().filter(|line| line != "ok").collect())
}
