//! The kept sums of bytes are always those of the different blobs that are there.

use bowline_core::Error;
use bowline_store::counters::{Scope, total};
use bowline_testkit::{TestServer, each_engine};

use crate::support::*;

/// The migration that counts what is there already; one text for both engines.
const MIGRATION: &str = include_str!("../../../crates/store/migrations/sqlite/0009_blob_bytes.sql");

/// The kept sum of a place, and the sum over what is there.
async fn sums(server: &TestServer, place: &str) -> (i64, i64) {
    let place = place.to_owned();
    let db = &server.server().parts().storage.db;
    let read = db.read(move |tx| {
        Box::pin(async move {
            let kept = total(tx, "blob_bytes", &Scope::Subtree(&place)).await?;
            let sql = format!(
                "SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM blobs WHERE digest IN
                   (SELECT digest FROM repo_blobs WHERE repo || '/' LIKE '{place}/%')"
            );
            let counted = tx.query_opt(&sql, &[], |row| row.int(0).map_err(Error::from)).await?;
            Ok::<_, Error>((kept, counted.unwrap_or(0)))
        })
    });
    read.await.unwrap()
}

/// All at once: the server folds counts meanwhile.
async fn execute(server: &TestServer, statements: Vec<&'static str>) {
    let db = &server.server().parts().storage.db;
    let run = db.write(move |tx| {
        let statements = statements.clone();
        Box::pin(async move {
            for sql in statements {
                tx.execute(sql, &[]).await.map_err(Error::from)?;
            }
            Ok::<_, Error>(())
        })
    });
    run.await.unwrap();
}

async fn sums_follow_every_link(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let repos = ["a", "b", "team/a", "team/b", "team/low/a", "side/a"].map(|name| format!("{org}/{name}"));
    let blobs: [&[u8]; 3] = [&[1; 10], &[2; 200], &[3; 3000]];
    let mut seed = 7_u32;
    let mut draw = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) as usize % below
    };
    for repo in &repos {
        client.begin(repo).await;
    }
    let uids = texts(server, "SELECT uid FROM repos UNION SELECT uid FROM groups").await;
    let check = async |step: usize| {
        for place in &uids {
            let (kept, counted) = sums(server, place).await;
            assert_eq!(kept, counted, "{place} after step {step}");
        }
    };
    for step in 0..60 {
        let (repo, blob) = (&repos[draw(repos.len())], blobs[draw(blobs.len())]);
        if draw(5) < 3 {
            client.blob(repo, blob).await;
        } else {
            client.send(&format!("DELETE /v2/{repo}/blobs/{}", digest(blob)), &[], b"").await;
        }
        check(step).await;
    }
    for repo in &repos {
        client.blob(repo, blobs[2]).await;
    }
    check(60).await;
    let mut anew = vec![
        "DELETE FROM counts WHERE collection = 'blob_bytes'",
        "DELETE FROM count_deltas WHERE collection = 'blob_bytes'",
    ];
    anew.extend(MIGRATION.split(";\n").filter(|statement| statement.contains("INSERT")));
    execute(server, anew).await;
    check(61).await;
    for uid in texts(server, "SELECT uid FROM repos").await {
        let reply = server.operator().await.rest("DELETE", &format!("/registry/v2/repos/{uid}"), None).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        check(62).await;
    }
    assert_eq!(sums(server, &org).await, (0, 0));
}

each_engine!(multi_thread: sums_follow_every_link);
