//! The chains of the audit log: gap-free under many writers, broken by any change, whole after pruning and erasing.

use std::time::Duration;

use bowline_core::Clock as _;
use bowline_pipeline::audit::{Findings, erase_snapshots, verify};
use bowline_pipeline::{Actor as Doer, OPERATOR};
use bowline_store::Engine;
use bowline_testkit::{TestServer, by_engine, each_engine};
use serde_json::{Value, json};

use crate::audit_log::numbered;
use crate::deliveries::until;
use crate::support::{execute, number, ok};

async fn verified(server: &TestServer, organization: Option<&str>) -> Findings {
    let findings = verify(&server.server().parts().storage.db, organization, |_| {}).await;
    findings.expect("the log can be read")
}

async fn sound(server: &TestServer, organization: Option<&str>) -> Findings {
    let findings = verified(server, organization).await;
    assert_eq!(findings.wrong, None, "{findings:?}");
    findings
}

async fn numbers_have_no_gap_under_32_writers(server: &TestServer) {
    let mut writers = tokio::task::JoinSet::new();
    let mut organizations = Vec::new();
    for n in 0..4 {
        organizations.push(server.organization(&format!("org {n}")).await);
    }
    let operator = server.operator().await;
    for writer in 0..32 {
        let path = format!("POST /registry/v2/repos/{}", organizations[writer % 4]);
        let operator = operator.clone();
        writers.spawn(async move {
            for n in 0..8 {
                ok(&operator, &path, json!({ "name": format!("r{writer}-{n}") })).await;
            }
        });
    }
    while let Some(joined) = writers.join_next().await {
        joined.expect("a writer ends well");
    }
    numbered(server).await;
    let rows = number(server, "SELECT count(*) FROM audit").await;
    assert!(rows >= 256 + 4);
    let findings = sound(server, None).await;
    assert_eq!((findings.rows, findings.first, findings.last, findings.waiting), (rows, 1, rows, 0));
    assert_eq!(number(server, "SELECT max(seq) FROM audit").await, rows);
    for organization in &organizations {
        let findings = sound(server, Some(organization)).await;
        assert_eq!((findings.rows, findings.last), (65, 65), "the group and its repositories");
    }
}

/// What changes one row, and what changes it back; the row is the third of the organization.
const TAMPERING: &[(&str, &str)] = &[
    ("at = at + 1", "at = at - 1"),
    ("actor = actor || 'x'", "actor = substr(actor, 1, length(actor) - 1)"),
    ("method = method || 'x'", "method = substr(method, 1, length(method) - 1)"),
    ("request_id = request_id || 'x'", "request_id = substr(request_id, 1, length(request_id) - 1)"),
    ("kind = kind || 'x'", "kind = substr(kind, 1, length(kind) - 1)"),
    ("resource = resource || 'x'", "resource = substr(resource, 1, length(resource) - 1)"),
    ("org = org || 'x'", "org = substr(org, 1, length(org) - 1)"),
    ("before_type = before_type || 'x'", "before_type = substr(before_type, 1, length(before_type) - 1)"),
    ("after_type = NULL", "after_type = before_type"),
    ("seq = seq + 100000", "seq = seq - 100000"),
    ("org_seq = org_seq + 100000", "org_seq = org_seq - 100000"),
    (
        "after_image = before_image, before_image = after_image",
        "after_image = before_image, before_image = after_image",
    ),
    ("after_hash = before_hash, before_hash = after_hash", "after_hash = before_hash, before_hash = after_hash"),
    (
        "after_hash = before_hash, before_hash = after_hash, after_image = before_image, before_image = after_image",
        "after_hash = before_hash, before_hash = after_hash, after_image = before_image, before_image = after_image",
    ),
    ("hash = org_hash, org_hash = hash", "hash = org_hash, org_hash = hash"),
];

async fn whatever_is_changed_is_found(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    for text in ["a", "b"] {
        ok(&operator, &format!("PATCH /registry/v2/repos/{repo}"), json!({ "description": text })).await;
    }
    server.repo(&org, "last").await;
    numbered(server).await;
    sound(server, None).await;
    // Once the resource is another one, the row is found by its number.
    let id = number(server, "SELECT min(id) FROM audit WHERE method LIKE '%UpdateRepo'").await;
    for (change, back) in TAMPERING {
        let statement = |what: &str| -> &'static str { format!("UPDATE audit SET {what} WHERE id = {id}").leak() };
        execute(server, statement(change), &[]).await;
        let findings = verified(server, None).await;
        assert!(findings.wrong.is_some(), "{change}: not found");
        execute(server, statement(back), &[]).await;
        sound(server, None).await;
    }
    // Of one organization: its own chain shows it.
    let change: &'static str = format!("UPDATE audit SET actor = actor || 'x' WHERE id = {id}").leak();
    execute(server, change, &[]).await;
    let wrong = verified(server, Some(&org)).await.wrong.expect("it is found");
    assert!(wrong.starts_with("row 3:"), "{wrong}");
    let back: &'static str =
        format!("UPDATE audit SET actor = substr(actor, 1, length(actor) - 1) WHERE id = {id}").leak();
    execute(server, back, &[]).await;
    sound(server, Some(&org)).await;
    // A row that is gone, in the middle or at the end.
    execute(server, "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)", &[]).await;
    let wrong = verified(server, None).await.wrong.expect("it is found");
    assert!(wrong.contains("should end at row"), "{wrong}");
    let delete: &'static str = format!("DELETE FROM audit WHERE id = {id}").leak();
    execute(server, delete, &[]).await;
    let wrong = verified(server, None).await.wrong.expect("it is found");
    assert!(wrong.contains("is missing"), "{wrong}");
}

async fn rows_from_before_the_chains_are_numbered_and_hashed_too(server: &TestServer) {
    let org = server.organization("acme").await;
    let sql = "INSERT INTO audit (at, org, actor, method, request_id, kind, resource, after_type, after_image)
                   SELECT at, org, actor, method, request_id, kind, resource, after_type, after_image
                   FROM audit WHERE resource = $1 ORDER BY id LIMIT 1";
    execute(server, sql, &[&org]).await;
    numbered(server).await;
    sound(server, None).await;
    let same =
        "SELECT count(DISTINCT after_hash) FROM audit WHERE after_image IS NOT NULL AND method LIKE '%CreateGroup'";
    assert_eq!(number(server, same).await, 1);
    assert_eq!(
        number(server, "SELECT count(*) FROM audit WHERE after_image IS NOT NULL AND after_hash IS NULL").await,
        0
    );
}

async fn rows_that_came_with_a_dump_of_another_server_are_numbered_before_others(server: &TestServer) {
    if server.server().parts().storage.db.engine() == Engine::Sqlite {
        return;
    }
    let org = server.organization("acme").await;
    numbered(server).await;
    for (table, of, columns) in [
        ("audit", "resource", "at, org, actor, method, request_id, kind, resource"),
        (
            "outbox",
            "subject",
            "at, event_type, customer, org, group_uid, subject, method, actor, extensions, body_type, body",
        ),
    ] {
        // One transaction of this server's own, and two that it comes to in years.
        let copy = format!(
            "INSERT INTO {table} ({columns}, txid)
                 SELECT {columns}, n FROM (SELECT {columns} FROM {table} WHERE {of} = $1 ORDER BY id LIMIT 1) AS one
                 CROSS JOIN (VALUES (pg_current_xact_id()::text::bigint), (2 * FOREIGN), (FOREIGN)) AS ids (n)"
        );
        let waiting: &'static str = format!("SELECT count(*) FROM {table} WHERE seq IS NULL").leak();
        until("numbers", async || number(server, waiting).await == 0).await;
        execute(server, copy.replace("FOREIGN", "2000000000000000000").leak(), &[&org]).await;
        until("all numbers", async || number(server, waiting).await == 0).await;
        for (back, foreign) in [(0, 0), (1, 2), (2, 1)] {
            let order =
                format!("SELECT txid / 2000000000000000000 FROM {table} ORDER BY seq DESC LIMIT 1 OFFSET {back}");
            assert_eq!(number(server, order.leak()).await, foreign, "{table}: {back} before the last");
        }
    }
    sound(server, None).await;
}

async fn what_was_pruned_leaves_a_checkpoint_that_verifies(engine: bowline_testkit::Engine) {
    let server = TestServer::start_with(engine, |options| options.audit_retention = Some(30)).await;
    let org = server.organization("acme").await;
    for name in ["a", "b", "c"] {
        server.repo(&org, name).await;
    }
    numbered(&server).await;
    let before = number(&server, "SELECT count(*) FROM audit").await;
    server.clock().advance(Duration::from_secs(40 * 24 * 3600));
    // The newest stays in any case.
    let pruned = "SELECT coalesce(max(pruned_rows), 0) FROM audit_chains WHERE org = ''";
    for _ in 0..400 {
        if number(&server, pruned).await == before - 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(number(&server, pruned).await, before - 1);
    let findings = sound(&server, None).await;
    assert_eq!((findings.rows, findings.first, findings.last), (1, before, before));
    server.repo(&org, "d").await;
    numbered(&server).await;
    let findings = sound(&server, None).await;
    assert_eq!((findings.first, findings.last), (before, number(&server, "SELECT max(seq) FROM audit").await));
    sound(&server, Some(&org)).await;
    let operator = server.operator().await;
    numbered(&server).await;
    let checkpoint = ok(&operator, &format!("GET /audit/v1/checkpoints?organization={org}"), Value::Null).await;
    let list = ok(&operator, &format!("GET /audit/v1/entries?organization={org}"), Value::Null).await;
    assert_eq!(checkpoint["hash"], list["entries"][0]["hash"]);
    assert_eq!(checkpoint["sequence"], list["entries"][0]["sequence"]);
    let left = list["entries"].as_array().expect("a list").len() as i64;
    let text = |value: &Value| value.as_str().and_then(|n| n.parse::<i64>().ok()).expect("a number");
    assert_eq!(text(&checkpoint["prunedSequence"]) + left, text(&checkpoint["sequence"]));
    assert_eq!(checkpoint["prunedEntries"], checkpoint["prunedSequence"]);
    execute(&server, "UPDATE audit_chains SET pruned_hash = hash WHERE org = ''", &[]).await;
    assert!(verified(&server, None).await.wrong.is_some(), "a false checkpoint is found");
    server.stop().await;
}

async fn erased_images_leave_the_chain_whole(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    ok(&operator, &format!("PATCH /registry/v2/repos/{repo}"), json!({ "description": "personal" })).await;
    numbered(server).await;
    let (resource, now) = (repo.clone(), server.clock().now());
    let erased = server.server().parts().storage.db.write(move |tx| {
        let resource = resource.clone();
        Box::pin(async move {
            let actor = Doer { subject: OPERATOR, request_id: "r", method: "bowline audit erase" };
            erase_snapshots(tx, &resource, &actor, now).await
        })
    });
    let erased = erased.await.expect("the images go");
    assert_eq!((erased.rows, erased.waiting), (2, 0));
    numbered(server).await;
    let findings = sound(server, None).await;
    assert_eq!(findings.erased, 3, "after, before and after");
    sound(server, Some(&org)).await;
    let history = ok(&operator, &format!("GET /audit/v1/history/{repo}"), Value::Null).await;
    let entries = history["entries"].as_array().expect("a list");
    assert_eq!(entries.len(), 3, "two changes, and the erasure itself");
    assert!(entries[..2].iter().all(|entry| entry["after"]["content"].is_null()), "{history}");
    assert!(entries[..2].iter().all(|entry| entry["after"]["hash"] != ""), "{history}");
    assert!(!history.to_string().contains("personal"));
}

each_engine!(
    numbers_have_no_gap_under_32_writers,
    whatever_is_changed_is_found,
    rows_from_before_the_chains_are_numbered_and_hashed_too,
    rows_that_came_with_a_dump_of_another_server_are_numbered_before_others,
    erased_images_leave_the_chain_whole
);

by_engine!(what_was_pruned_leaves_a_checkpoint_that_verifies);
