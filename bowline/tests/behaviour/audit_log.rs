//! Reading the audit log: who sees which entries, what they say, pages, and the history of a resource.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_contract::bowline::audit::v1 as audit;
use bowline_contract::bowline::audit::v1::rpc::audit::{GetEntry, ListEntries};
use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, each, holder, number, ok, pages, rejected, uid_of};

/// Waits until every row has its number.
pub(crate) async fn numbered(server: &TestServer) {
    for _ in 0..400 {
        if number(server, "SELECT count(*) FROM audit WHERE seq IS NULL").await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("rows of the audit log got no numbers in 10 s");
}

/// All entries that the caller is shown, page by page.
async fn entries(actor: &Actor, query: &str) -> Vec<Value> {
    let pages = pages(actor, &format!("GET /audit/v1/entries?{query}")).await;
    pages.iter().flat_map(|page| page["entries"].as_array().cloned().unwrap_or_default()).collect()
}

fn numbers(entries: &[Value], member: &str) -> Vec<i64> {
    entries.iter().map(|entry| entry[member].as_str().and_then(|n| n.parse().ok()).expect("a number")).collect()
}

async fn an_owner_reads_their_organization_without_gaps_and_no_other(server: &TestServer) {
    let (ours, theirs) = (server.organization("ours").await, server.organization("theirs").await);
    let owner = server.actor("owner", &ours).await;
    for name in ["a", "b", "c"] {
        server.repo(&theirs, name).await;
        server.repo(&ours, name).await;
    }
    numbered(server).await;
    let seen = entries(&owner, &format!("organization={ours}&page_size=2")).await;
    let count = seen.len() as i64;
    assert_eq!(numbers(&seen, "sequence"), (1..=count).rev().collect::<Vec<_>>(), "newest first, no gap");
    assert!(seen.iter().all(|entry| entry["organization"] == ours.as_str()), "{seen:?}");
    assert!(seen.iter().all(|entry| entry["globalSequence"] == "0" && entry["globalHash"] == ""), "{seen:?}");
    let oldest_first = entries(&owner, &format!("organization={ours}&order_by=seq%20asc&page_size=3")).await;
    assert_eq!(numbers(&oldest_first, "sequence"), (1..=count).collect::<Vec<_>>());
    for what in ["entries", "checkpoints", "entries/1", "entries:watch"] {
        let path = format!("GET /audit/v1/{what}?organization={theirs}");
        rejected(&owner, &path, Value::Null, 403, "PERMISSION_DENIED").await;
    }
    rejected(&owner, "GET /audit/v1/entries", Value::Null, 400, "INVALID_ARGUMENT").await;
    rejected(&owner, &format!("GET /audit/v1/history/{theirs}"), Value::Null, 403, "PERMISSION_DENIED").await;

    let operator = server.operator().await;
    numbered(server).await;
    let all = entries(&operator, "page_size=7").await;
    let count = all.len() as i64;
    assert_eq!(numbers(&all, "globalSequence"), (1..=count).rev().collect::<Vec<_>>());
    let theirs = entries(&operator, &format!("organization={theirs}")).await;
    assert_eq!(theirs.len(), 4, "the group and its repositories: {theirs:?}");
}

async fn entries_are_shown_by_capability_and_place(server: &TestServer) {
    let org = server.organization("acme").await;
    let (team, other) = (server.group(&org, "team").await, server.group(&org, "other").await);
    server.repo(&team, "web").await;
    server.repo(&other, "web").await;
    let groups_only = holder(server, &org, "groups", &org, &["CAP_IAM_GROUPS_LIST"]).await;
    let bindings = holder(server, &org, "bindings", &org, &["CAP_IAM_ROLE_BINDINGS_LIST"]).await;
    let both = holder(server, &org, "both", &org, &["CAP_IAM_ROLE_BINDINGS_LIST", "CAP_IAM_GROUPS_LIST"]).await;
    let in_team = holder(server, &org, "in team", &team, &["CAP_IAM_ROLE_BINDINGS_LIST", "CAP_REPO_LIST"]).await;
    numbered(server).await;
    let list = format!("GET /audit/v1/entries?organization={org}");
    let refusal = rejected(&groups_only.actor, &list, Value::Null, 403, "PERMISSION_DENIED").await;
    assert!(refusal.message().contains("role_bindings.list"), "{}", refusal.message());
    let kinds = async |actor: &Actor| -> BTreeSet<String> {
        let seen = entries(actor, &format!("organization={org}")).await;
        seen.iter().map(|entry| entry["kind"].as_str().unwrap_or_default().into()).collect()
    };
    let set = |kinds: &[&str]| kinds.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
    assert_eq!(kinds(&bindings.actor).await, set(&["iam.chainguard.dev/RoleBinding"]));
    assert_eq!(kinds(&both.actor).await, set(&["iam.chainguard.dev/Group", "iam.chainguard.dev/RoleBinding"]));
    let seen = entries(&in_team.actor, &format!("organization={org}")).await;
    assert_eq!(seen.len(), 2, "the binding and the repository of the team: {seen:?}");
    assert!(seen.iter().all(|entry| entry["resource"].as_str().expect("a UIDP").starts_with(&team)), "{seen:?}");
    rejected(&in_team.actor, &format!("GET /audit/v1/entries?within={other}"), Value::Null, 403, "PERMISSION_DENIED")
        .await;
    rejected(
        &in_team.actor,
        &format!("GET /audit/v1/checkpoints?organization={org}"),
        Value::Null,
        403,
        "PERMISSION_DENIED",
    )
    .await;
    // An entry that is not shown is not found either.
    rejected(&in_team.actor, &format!("GET /audit/v1/entries/1?organization={org}"), Value::Null, 404, "NOT_FOUND")
        .await;
    rejected(&in_team.actor, "GET /audit/v1/entries/1", Value::Null, 400, "INVALID_ARGUMENT").await;
}

async fn an_entry_says_from_what_to_what(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let repo = uid_of(&ok(&owner, &format!("POST /registry/v2/repos/{org}"), json!({ "name": "web" })).await);
    ok(&owner, &format!("PATCH /registry/v2/repos/{repo}"), json!({ "description": "new" })).await;
    ok(&owner, &format!("DELETE /registry/v2/repos/{repo}"), Value::Null).await;
    numbered(server).await;
    let history = ok(&owner, &format!("GET /audit/v1/history/{repo}"), Value::Null).await;
    let methods = each(&history["entries"], "method");
    let service = "chainguard.platform.registry.v2.ReposService";
    assert_eq!(methods, ["CreateRepo", "UpdateRepo", "DeleteRepo"].map(|name| format!("{service}.{name}")));
    let [created, updated, deleted] = [0, 1, 2].map(|at| &history["entries"][at]);
    assert!(created["before"].is_null() && deleted["after"].is_null(), "{history}");
    let content = |side: &Value| side["content"].clone();
    assert_eq!(content(&created["after"])["name"], "web");
    assert_eq!(content(&created["after"]), content(&updated["before"]));
    assert_eq!(content(&updated["after"])["description"], "new");
    assert_eq!(content(&updated["after"]), content(&deleted["before"]));
    assert_eq!(content(&deleted["before"])["@type"], "type.googleapis.com/chainguard.platform.registry.v2.Repo");
    assert_eq!(updated["actor"], owner.identity.as_str());
    assert_eq!(updated["before"]["hash"], created["after"]["hash"]);

    let path = format!("GET /audit/v1/entries/{}?organization={org}", updated["sequence"].as_str().expect("text"));
    assert_eq!(ok(&owner, &path, Value::Null).await, *updated);
    let sequence = updated["sequence"].as_str().and_then(|n| n.parse().ok()).expect("a number");
    let request = audit::GetEntryRequest { sequence, organization: org.clone() };
    let entry = owner.grpc::<GetEntry>(request).await.expect("an entry");
    assert_eq!(entry.method, format!("{service}.UpdateRepo"));
    let any = entry.after.and_then(|image| image.content).expect("an image");
    let repo: bowline_contract::v2::registry::Repo = any.to_msg().expect("a repository");
    assert_eq!(repo.description, "new");
    rejected(&owner, &format!("GET /audit/v1/entries/9999?organization={org}"), Value::Null, 404, "NOT_FOUND").await;
    rejected(&owner, &format!("GET /audit/v1/entries/0?organization={org}"), Value::Null, 400, "INVALID_ARGUMENT")
        .await;
}

async fn filters_narrow_and_all_must_hold(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let team = server.group(&org, "team").await;
    let before = server.clock().seconds() + 1;
    server.clock().advance(Duration::from_secs(30 * 60));
    let repo = server.repo(&team, "web").await;
    ok(&owner, &format!("PATCH /registry/v2/repos/{repo}"), json!({ "description": "d" })).await;
    numbered(server).await;
    let count = async |query: &str| entries(&owner, &format!("organization={org}&{query}")).await.len();
    assert_eq!(count(&format!("resource={repo}")).await, 2);
    assert_eq!(count(&format!("within={team}")).await, 3);
    let update = "chainguard.platform.registry.v2.ReposService.UpdateRepo";
    assert_eq!(count(&format!("method={update}")).await, 1);
    assert_eq!(count(&format!("method={update}&kind=iam.chainguard.dev/Group")).await, 0);
    assert_eq!(count("kind=iam.chainguard.dev/Group").await, 2);
    let time = rfc3339::text(before * 1_000_000, Digits::Fewest);
    let (all, early, late) =
        (count("").await, count(&format!("end_time={time}")).await, count(&format!("start_time={time}")).await);
    assert_eq!(early + late, all, "{early} before {time}, {late} since");
    assert!(early > 0 && late >= 2);
    assert_eq!(count(&format!("start_time={time}&resource={repo}")).await, 2);
    assert_eq!(count(&format!("end_time={time}&resource={repo}")).await, 0);
    let operator = server.operator().await;
    numbered(server).await;
    let of_method = entries(&operator, &format!("method={update}")).await;
    assert_eq!(of_method.len(), 1);
    let by_actor = entries(&operator, &format!("actor={}", of_method[0]["actor"].as_str().expect("text"))).await;
    assert!(!by_actor.is_empty() && by_actor.iter().all(|entry| entry["actor"] == of_method[0]["actor"]));
    let wrong = format!("GET /audit/v1/entries?organization={org}&resource={}", "0".repeat(40));
    rejected(&owner, &wrong, Value::Null, 400, "INVALID_ARGUMENT").await;
    for bad in ["resource=x", "order_by=name", "page_size=-1", "page_token=x", "actor=../x"] {
        let path = format!("GET /audit/v1/entries?organization={org}&{bad}");
        assert_eq!(call(&owner, &path, Value::Null).await.status, 400, "{bad}");
    }
}

async fn pages_hold_every_entry_once_while_writers_write(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let (owner, path) = (owner.clone(), format!("POST /registry/v2/repos/{org}"));
        writers.spawn(async move {
            for n in 0..25 {
                ok(&owner, &path, json!({ "name": format!("r{writer}-{n}") })).await;
            }
        });
    }
    let mut walks = 0;
    while !writers.is_empty() {
        let seen = entries(&owner, &format!("organization={org}&page_size=9")).await;
        let sequence = numbers(&seen, "sequence");
        let first = sequence.first().copied().unwrap_or(0);
        assert_eq!(sequence, (1..=first).rev().collect::<Vec<_>>(), "each once, down to the first");
        walks += 1;
        while writers.try_join_next().is_some() {}
    }
    assert!(walks > 1, "the walks did not run beside the writers");
    numbered(server).await;
    let request = audit::ListEntriesRequest {
        organization: org.clone(),
        kind: "registry.chainguard.dev/Repo".into(),
        page_size: 200,
        order_by: "seq asc".into(),
        ..audit::ListEntriesRequest::default()
    };
    let list = owner.grpc::<ListEntries>(request).await.expect("a list");
    assert_eq!(list.entries.len(), 100);
    assert!(list.entries.is_sorted_by(|a, b| a.sequence < b.sequence));
}

async fn tokens_and_keys_are_not_in_the_log(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let token = owner.token.clone().expect("a token");
    let (_, signature) = token.rsplit_once('.').expect("a token has three parts");
    let signature = signature.as_bytes().to_vec();
    let read = server.server().parts().storage.db.read(|tx| {
        Box::pin(async move {
            let sql = "SELECT actor, method, request_id, kind, resource, before_image, after_image FROM audit";
            tx.query(sql, &[], |row| {
                let mut all = Vec::new();
                for column in 0..5 {
                    all.extend(row.text(column)?.into_bytes());
                }
                all.extend(row.opt_bytes(5)?.unwrap_or_default());
                all.extend(row.opt_bytes(6)?.unwrap_or_default());
                Ok::<_, bowline_core::Error>(all)
            })
            .await
        })
    });
    for row in read.await.expect("the log can be read") {
        assert!(!row.windows(signature.len()).any(|part| part == signature), "a token is in the log");
    }
}

each_engine!(
    an_owner_reads_their_organization_without_gaps_and_no_other,
    entries_are_shown_by_capability_and_place,
    an_entry_says_from_what_to_what,
    filters_narrow_and_all_must_hold,
    pages_hold_every_entry_once_while_writers_write,
    tokens_and_keys_are_not_in_the_log
);
