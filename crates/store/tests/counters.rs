//! Kept counts against a naive model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_store::counters::{Scope, fold, record, seek, seek_within, total};
use bowline_store::{Db, StoreError};
use common::{Fixture, MIGRATIONS};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const COLLECTION: &str = "things";

#[derive(Clone, Debug)]
enum Step {
    /// Inserts the uid, or deletes it if it is there.
    Toggle(String),
    Fold(i64),
    Count(String),
    /// Bounds, skip, and how many rows may be left over.
    Seek(String, String, i64, i64),
}

/// Few segments, so that paths meet; buckets with several children.
fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(aa|ab|b0|ff)(0|1|f){2}",
        1 => "[0-9a-f]{4}",
        1 => "(aa|ff)",
    ]
}

fn uid() -> impl Strategy<Value = String> {
    prop::collection::vec(segment(), 1..4).prop_map(|segments| segments.join("/"))
}

/// Uids, subtree ends, bare prefixes and cut segments.
fn bound() -> impl Strategy<Value = String> {
    (uid(), 0..6).prop_map(|(uid, form)| match form {
        0 => format!("{uid}/"),
        1 => format!("{uid}0"),
        2 => uid[..uid.len() - 1].to_owned(),
        3 => format!("{uid}~"),
        4 => String::new(),
        _ => uid,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => uid().prop_map(Step::Toggle),
        1 => (1_i64..40).prop_map(Step::Fold),
        1 => uid().prop_map(Step::Count),
        2 => (bound(), bound(), 0_i64..60, 0_i64..20).prop_map(|(a, b, skip, enough)| {
            Step::Seek(a, b, skip, enough)
        }),
    ]
}

async fn count(db: &Db, scope: Scope<'static>) -> i64 {
    db.read(move |tx| Box::pin(async move { total(tx, COLLECTION, &scope).await })).await.unwrap()
}

async fn check(db: &Db, steps: &[Step]) {
    let mut model = BTreeSet::new();
    for step in steps.iter().cloned() {
        match step {
            Step::Toggle(uid) => {
                let delta = if model.remove(&uid) { -1 } else { 1 };
                if delta == 1 {
                    model.insert(uid.clone());
                }
                db.write(move |tx| {
                    let uid = uid.clone();
                    Box::pin(async move { record(tx, COLLECTION, &uid, delta).await })
                })
                .await
                .unwrap();
            }
            Step::Fold(limit) => {
                db.write(move |tx| Box::pin(fold(tx, limit))).await.unwrap();
            }
            Step::Count(uid) => {
                let below = format!("{uid}/");
                let below = model.iter().filter(|other| other.starts_with(&below)).count() as i64;
                let itself = i64::from(model.contains(&uid));
                // Leaked: a test's closures want 'static.
                let uid: &'static str = uid.leak();
                assert_eq!(count(db, Scope::Below(uid)).await, below, "{uid}");
                assert_eq!(count(db, Scope::Subtree(uid)).await, below + itself, "{uid}");
                assert_eq!(count(db, Scope::All).await, model.len() as i64);
            }
            Step::Seek(lower, upper, skip, enough) => {
                let (from, to) = (lower.clone(), upper.clone());
                let found = db
                    .read(move |tx| {
                        Box::pin(async move { seek_within(tx, COLLECTION, &from, &to, skip, enough).await })
                    })
                    .await
                    .unwrap();
                let rest = |from: &str, skip: i64| -> Vec<&String> {
                    let inside = model.iter().filter(|uid| uid.as_str() >= from && **uid < upper);
                    inside.skip(skip as usize).collect()
                };
                assert_eq!(
                    rest(&found.start_uid_prefix, found.remaining),
                    rest(&lower, skip),
                    "{lower:?} {upper:?} {skip} {found:?}"
                );
                assert!(found.start_uid_prefix >= lower && found.remaining <= skip);
                assert!(found.remaining <= enough, "{lower:?} {upper:?} {skip} {found:?}");
            }
        }
    }
}

fn property(fixture: &Fixture, runtime: &tokio::runtime::Runtime, cases: u32) {
    let db = runtime.block_on(async {
        let db = fixture.open().await;
        db.migrate(MIGRATIONS).await.unwrap();
        db
    });
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    let outcome = TestRunner::new(config).run(&prop::collection::vec(step(), 1..150), |steps| {
        runtime.block_on(async {
            db.write(|tx| {
                Box::pin(async move {
                    tx.execute("DELETE FROM counts", &[]).await?;
                    tx.execute("DELETE FROM count_deltas", &[]).await
                })
            })
            .await
            .unwrap();
            check(&db, &steps).await;
        });
        Ok(())
    });
    runtime.block_on(db.close());
    outcome.unwrap();
}

#[test]
fn agrees_with_a_model_on_sqlite() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    property(&Fixture::sqlite(), &runtime, 100);
}

#[test]
fn agrees_with_a_model_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(fixture) = runtime.block_on(Fixture::postgres()) else {
        return;
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        property(&fixture, &runtime, 8);
    }));
    runtime.block_on(fixture.remove());
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// A spread-out identifier of `digits` hexadecimal digits.
fn hex(i: u64, digits: usize) -> String {
    let mixed = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = mixed ^ (mixed >> 29);
    format!("{:016x}", mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9)).repeat(3)[..digits].to_owned()
}

/// By hand: `cargo test --release -p bowline-store --test counters -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a million rows; a measurement"]
async fn a_skip_over_a_million_is_fast() {
    const N: u64 = 1_000_000;
    let fixture = Fixture::sqlite();
    let db = fixture.open().await;
    db.migrate(MIGRATIONS).await.unwrap();
    let root = hex(7, 40);
    let (mut recording, mut folding) = (Duration::ZERO, Duration::ZERO);
    for chunk in 0..N / 10_000 {
        let start = std::time::Instant::now();
        let parent = root.clone();
        db.write(move |tx| {
            let parent = parent.clone();
            Box::pin(async move {
                for i in chunk * 10_000..(chunk + 1) * 10_000 {
                    record(tx, COLLECTION, &format!("{parent}/{}", hex(i, 16)), 1).await?;
                }
                Ok::<_, StoreError>(())
            })
        })
        .await
        .unwrap();
        recording += start.elapsed();
        let start = std::time::Instant::now();
        // The last thousands stay pending.
        let limit = if chunk + 1 == N / 10_000 { 5_000 } else { 10_000 };
        db.write(move |tx| Box::pin(fold(tx, limit))).await.unwrap();
        folding += start.elapsed();
    }
    println!("recording {recording:?}, folding {folding:?}");
    let mut uids: Vec<_> = (0..N).map(|i| format!("{root}/{}", hex(i, 16))).collect();
    uids.sort();
    uids.dedup();
    for skip in [1_i64, 4_000, 500_000, 900_000, 999_999] {
        for _ in 0..2 {
            let (lower, upper) = (format!("{root}/"), format!("{root}0"));
            let start = std::time::Instant::now();
            let found = db
                .read(move |tx| Box::pin(async move { seek(tx, COLLECTION, &lower, &upper, skip).await }))
                .await
                .unwrap();
            println!("skip {skip}: {:?}, remaining {}", start.elapsed(), found.remaining);
            let at = uids.partition_point(|uid| *uid < found.start_uid_prefix) as i64;
            assert_eq!(at + found.remaining, skip);
            assert!(found.remaining <= 4_400);
        }
    }
    let root: &'static str = root.leak();
    let start = std::time::Instant::now();
    assert_eq!(count(&db, Scope::Below(root)).await, N as i64);
    println!("total: {:?}", start.elapsed());
    db.close().await;
}
