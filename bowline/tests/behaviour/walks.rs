//! Walks over many rows while others write: what exists throughout with an unchanged sort key comes exactly
//! once, in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bowline_contract::v2::registry::rpc::repos_service::{CreateRepo, DeleteRepo, ListRepos, UpdateRepo};
use bowline_contract::v2::registry::{
    CreateRepoRequest, DeleteRepoRequest, ListReposRequest, ListReposResponse, Repo, UpdateRepoRequest,
};
use bowline_core::{Clock as _, Error};
use bowline_store::{Value, WriteTx, counters};
use bowline_testkit::{Actor, Engine, TestServer, by_engine};
use tokio::task::JoinSet;

use crate::support::number;

/// A stored repository, as much as a walk sorts by.
#[derive(Clone, Debug)]
struct Row {
    uid: String,
    name: String,
    created_at: i64,
}

/// What the writers do to a row while the walk continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    IsDeleted,
    IsRenamed,
}

fn fate(position: usize) -> Fate {
    match position % 10 {
        0 => Fate::IsDeleted,
        1 => Fate::IsRenamed,
        _ => Fate::Stays,
    }
}

#[expect(clippy::disallowed_methods, reason = "how large the test is, the environment says")]
fn rows_on(engine: Engine) -> usize {
    let asked = std::env::var("BOWLINE_WALK_ROWS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(match engine {
        Engine::Sqlite => 20_000,
        Engine::Postgres => 5_000,
    })
}

async fn every_row_that_stays_comes_exactly_once_and_in_order(engine: Engine) {
    crate::support::log();
    let server = TestServer::start(engine).await;
    let rows = Arc::new(fill(&server, rows_on(engine)).await);
    let operator = server.operator().await;
    let stop = Arc::new(AtomicBool::new(false));
    let writes = Arc::new(AtomicUsize::new(0));
    let writers = start_writers(&server, &operator, &rows, &stop, &writes);
    for order in ["uid", "name", "created_at desc", "uid desc"] {
        let done_before = writes.load(Ordering::SeqCst);
        let walked = walk(&operator, order).await;
        validate(order, &rows, &walked);
        let done = writes.load(Ordering::SeqCst) - done_before;
        assert!(done > 0, "{order}: nothing was written during the walk");
    }
    stop.store(true, Ordering::SeqCst);
    writers.join_all().await;
    let page = operator.grpc::<ListRepos>(ListReposRequest::default()).await.expect("a page");
    let stored = number(&server, "SELECT count(*) FROM repos").await;
    assert_eq!(page.total_count, Some(stored), "the kept count is the true one");
    server.stop().await;
}

/// Stores repositories in three groups, with counters, as fast as the engine takes them.
async fn fill(server: &TestServer, count: usize) -> Vec<Row> {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let squad = server.group(&team, "squad").await;
    let parents = [org, team, squad];
    let now = server.clock().now();
    let rows: Vec<Row> = (0..count)
        .map(|i| {
            // Scattered, so that no order is the order of insertion.
            let scatter = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Row {
                uid: format!("{}/{scatter:016x}", parents[i % 3]),
                name: format!("repo-{:05}-{i}", scatter.rotate_left(17) % 20_000),
                // Many share a time.
                created_at: now - 3_600_000_000 + (scatter % (count as u64 / 7 + 1)) as i64,
            }
        })
        .collect();
    for batch in rows.chunks(1000) {
        let batch = batch.to_vec();
        let written = server.server().parts().storage.db.write(move |tx| {
            let batch = batch.clone();
            Box::pin(async move { insert(tx, &batch).await })
        });
        written.await.expect("the rows are stored");
    }
    rows
}

async fn insert(tx: &mut WriteTx, rows: &[Row]) -> Result<(), Error> {
    let sql = "INSERT INTO repos (uid, parent, org, name, description, spec, created_at, updated_at)
               VALUES ($1, $2, $3, $4, '', $5, $6, $6)";
    let mut in_group: BTreeMap<&str, i64> = BTreeMap::new();
    for row in rows {
        let parent = row.uid.rsplit_once('/').map_or("", |(parent, _)| parent);
        let org = parent.split('/').next().unwrap_or_default();
        let params = [
            Value::from(&row.uid),
            Value::from(parent),
            Value::from(org),
            Value::from(&row.name),
            Value::Bytes(&[]),
            Value::Int(row.created_at),
        ];
        tx.execute(sql, &params).await?;
        counters::record(tx, "repos", &row.uid, 1).await?;
        *in_group.entry(parent).or_default() += 1;
    }
    for (parent, count) in in_group {
        counters::record(tx, "repos/children", parent, count).await?;
    }
    Ok(())
}

/// One who creates, one who deletes, one who renames.
fn start_writers(
    server: &TestServer,
    operator: &Actor,
    rows: &Arc<Vec<Row>>,
    stop: &Arc<AtomicBool>,
    writes: &Arc<AtomicUsize>,
) -> JoinSet<()> {
    let mut writers = JoinSet::new();
    for task in 0..3 {
        let (operator, rows, stop, writes) = (operator.clone(), rows.clone(), stop.clone(), writes.clone());
        let clock = server.clock().clone();
        writers.spawn(async move {
            for round in 0_usize.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                // New rows are newer than all that was there.
                clock.advance(Duration::from_micros(50));
                let at = round.wrapping_mul(7919) % rows.len() / 10 * 10;
                let written = match task {
                    0 => create(&operator, &rows, round).await,
                    1 => delete(&operator, &rows[at].uid).await,
                    _ => rename(&operator, &rows[(at + 1).min(rows.len() - 1)], round).await,
                };
                writes.fetch_add(usize::from(written), Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
    }
    writers
}

async fn create(operator: &Actor, rows: &[Row], round: usize) -> bool {
    let like = &rows[round.wrapping_mul(31) % rows.len()];
    let parent = like.uid.rsplit_once('/').map_or("", |(parent, _)| parent);
    let repo = Repo { name: format!("{}-new-{round}", like.name), ..Repo::default() };
    let request = CreateRepoRequest { parent: parent.into(), repo: Some(repo) };
    operator.grpc::<CreateRepo>(request).await.is_ok()
}

async fn delete(operator: &Actor, uid: &str) -> bool {
    operator.grpc::<DeleteRepo>(DeleteRepoRequest { uid: uid.into() }).await.is_ok()
}

/// To and fro over the whole alphabet.
async fn rename(operator: &Actor, row: &Row, round: usize) -> bool {
    assert!(row.uid.len() > 40);
    let letter = char::from(b'a' + (round % 26) as u8);
    let suffix = &row.uid[row.uid.len() - 16..];
    let repo = Repo { uid: row.uid.clone(), name: format!("{letter}-{suffix}-x"), ..Repo::default() };
    let request = UpdateRepoRequest { repo: Some(repo), ..UpdateRepoRequest::default() };
    operator.grpc::<UpdateRepo>(request).await.is_ok()
}

async fn walk(operator: &Actor, order: &str) -> Vec<String> {
    let mut uids = Vec::new();
    let mut request = ListReposRequest { page_size: 200, order_by: order.into(), ..ListReposRequest::default() };
    loop {
        let page: ListReposResponse = operator.grpc::<ListRepos>(request.clone()).await.expect("a page");
        assert!(page.repos.len() <= 200);
        uids.extend(page.repos.into_iter().map(|repo| repo.uid));
        if page.next_page_token.is_empty() {
            return uids;
        }
        request.page_token = page.next_page_token;
    }
}

/// Compares the walk with what must have been in it.
fn validate(order: &str, rows: &[Row], walked: &[String]) {
    // A renamed row keeps its place in every order but that of names.
    let keeps = |position: usize| match fate(position) {
        Fate::Stays => true,
        Fate::IsRenamed => order != "name",
        Fate::IsDeleted => false,
    };
    let mut expected: Vec<&Row> = rows.iter().enumerate().filter(|(at, _)| keeps(*at)).map(|(_, row)| row).collect();
    match order {
        "name" => expected.sort_by(|a, b| (&a.name, &a.uid).cmp(&(&b.name, &b.uid))),
        "created_at desc" => expected.sort_by(|a, b| (b.created_at, &b.uid).cmp(&(a.created_at, &a.uid))),
        "uid desc" => expected.sort_by(|a, b| b.uid.cmp(&a.uid)),
        _ => expected.sort_by(|a, b| a.uid.cmp(&b.uid)),
    }
    let wanted: std::collections::HashSet<&str> = expected.iter().map(|row| row.uid.as_str()).collect();
    let found: Vec<&str> = walked.iter().map(String::as_str).filter(|uid| wanted.contains(uid)).collect();
    assert_eq!(found.len(), expected.len(), "{order}: rows are missing or come twice");
    let wrong = found.iter().zip(&expected).position(|(found, expected)| *found != expected.uid);
    assert_eq!(wrong, None, "{order}: the first row out of its place");
}

by_engine!(multi_thread: every_row_that_stays_comes_exactly_once_and_in_order);
