//! Previews: what a call would do, without its being made.

use std::time::{Duration, Instant};

use bowline_store::{Cell, TransferTable, transfer_tables};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::audit_log::numbered;
use crate::preview_cases::{Case, World, cases, world};
use crate::support::{
    absent, call, each, execute, holder, image, machine, newest_event, number, ok, rejected, role, uid_of,
};

const PREVIEW: &str = "POST /preview/v1:preview";

/// The request of a preview of this method.
pub(crate) fn previewing(server: &TestServer, method: &str, fields: Value) -> Value {
    let contract = &server.server().parts().contract;
    let input = contract.by_full_name(method).expect("a method of the contract").input.full_name();
    let mut request = json!({ "@type": format!("type.googleapis.com/{input}") });
    for (name, value) in fields.as_object().expect("fields") {
        request[name] = value.clone();
    }
    json!({ "method": method, "request": request })
}

async fn preview(server: &TestServer, actor: &Actor, method: &str, fields: Value) -> Value {
    ok(actor, PREVIEW, previewing(server, method, fields)).await
}

/// All rows of all tables.
async fn tables(server: &TestServer) -> Vec<(TransferTable, Vec<Vec<Cell>>)> {
    let mut snapshot = server.server().parts().storage.db.snapshot().await.expect("a snapshot");
    let mut all = Vec::new();
    for table in transfer_tables().expect("the schema") {
        let rows = snapshot.page(&table, None, 100_000).await.expect("rows");
        all.push((table, rows));
    }
    all
}

/// Waits until the background has numbered and counted everything, so that it changes nothing more by itself.
async fn settled(server: &TestServer) {
    numbered(server).await;
    for _ in 0..400 {
        if number(server, "SELECT count(*) FROM count_deltas").await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("counts were not added up in 10 s");
}

const IAM: &str = "chainguard.platform.iam.v2";

/// Without what differs from one call to the next: drawn UIDPs, and times.
fn comparable(mut snapshot: Value, is_new: bool) -> Value {
    if let Some(content) = snapshot["content"].as_object_mut() {
        content.retain(|name, _| !name.ends_with("Time") && !(is_new && (name == "uid" || name == "id")));
    }
    let content = snapshot["content"].take();
    json!([snapshot["type"], content])
}

async fn a_preview_changes_no_table_and_agrees_with_the_call(server: &TestServer) {
    let world = world(server).await;
    let operator = server.operator().await;
    for case in cases(&world, &server.role("viewer")) {
        settled(server).await;
        let before = tables(server).await;
        let previewed = ok(&operator, PREVIEW, case.body(server)).await;
        for ((table, before), (_, after)) in before.iter().zip(&tables(server).await) {
            assert!(before == after, "{} changed {}:\n{before:?}\n{after:?}", case.method, table.name);
        }
        let last = number(server, "SELECT coalesce(max(seq), 0) FROM audit").await;
        ok(&operator, &case.real.0, case.real.1.clone()).await;
        numbered(server).await;
        let list = "GET /audit/v1/entries?order_by=seq%20asc&page_size=50&page_token=";
        let entries = ok(&operator, list, Value::Null).await;
        let mut made = Vec::new();
        for entry in entries["entries"].as_array().expect("entries") {
            let sequence: i64 = entry["globalSequence"].as_str().and_then(|n| n.parse().ok()).expect("a number");
            if sequence > last {
                made.push(ok(&operator, &format!("GET /audit/v1/entries/{sequence}"), Value::Null).await);
            }
        }
        assert!(!made.is_empty(), "{}", case.method);
        let changes = previewed["changes"].as_array().expect("changes");
        assert_eq!(changes.len(), made.len(), "{}: {changes:?} {made:?}", case.method);
        for (change, entry) in changes.iter().zip(&made) {
            let is_new = change["before"].is_null();
            assert_eq!(change["kind"], entry["kind"], "{}", case.method);
            assert!(is_new || change["resource"] == entry["resource"], "{}: {change} {entry}", case.method);
            for side in ["before", "after"] {
                let [change, entry] = [change, entry].map(|of| comparable(of[side].clone(), is_new));
                assert_eq!(change, entry, "{} {side}", case.method);
            }
        }
        let event = &previewed["events"][0];
        let [kind, _, group, ..] = newest_event(server).await;
        assert_eq!((&event["type"], &event["group"]), (&json!(kind), &json!(group)), "{}", case.method);
    }
}

#[expect(clippy::too_many_lines, reason = "one row a case")]
async fn what_would_be_refused_is_refused_alike(server: &TestServer) {
    let world = world(server).await;
    let World { org, team, custom, repo, .. } = &world;
    let weak = holder(server, org, "weak", org, &["CAP_IAM_ROLES_UPDATE", "CAP_REPO_LIST"]).await.actor;
    let operator = server.operator().await;
    let nowhere = absent(org);
    let cases = [
        (
            &weak,
            Case::new(
                "chainguard.platform.iam.v2.RolesService.UpdateRole",
                json!({ "role": { "uid": custom, "capabilities": ["CAP_REPO_LIST", "CAP_REPO_CREATE"] }, "updateMask": "capabilities" }),
                format!("PATCH /iam/v2/roles/{custom}?updateMask=capabilities"),
                json!({ "capabilities": ["CAP_REPO_LIST", "CAP_REPO_CREATE"] }),
            ),
        ),
        (
            &weak,
            Case::new(
                "chainguard.platform.iam.v2.GroupsService.DeleteGroup",
                json!({ "uid": nowhere }),
                format!("DELETE /iam/v2/groups/{nowhere}"),
                Value::Null,
            ),
        ),
        (
            &operator,
            Case::new(
                "chainguard.platform.iam.v2.GroupsService.DeleteGroup",
                json!({ "uid": nowhere }),
                format!("DELETE /iam/v2/groups/{nowhere}"),
                Value::Null,
            ),
        ),
        (
            &operator,
            Case::new(
                "chainguard.platform.iam.v2.GroupsService.DeleteGroup",
                json!({ "uid": team }),
                format!("DELETE /iam/v2/groups/{team}"),
                Value::Null,
            ),
        ),
        (
            &operator,
            Case::new(
                "chainguard.platform.iam.Groups.Delete",
                json!({ "id": team }),
                format!("DELETE /iam/v1/groups/{team}"),
                Value::Null,
            ),
        ),
        (
            &operator,
            Case::new(
                "chainguard.platform.registry.v2.ReposService.CreateRepo",
                json!({ "parent": team, "repo": { "name": "web" } }),
                format!("POST /registry/v2/repos/{team}"),
                json!({ "name": "web" }),
            ),
        ),
        (
            &operator,
            Case::new(
                "chainguard.platform.iam.v2.GroupsService.CreateGroup",
                json!({ "parent": org, "group": { "name": "x" } }),
                format!("POST /iam/v2/groups/{org}"),
                json!({ "name": "x" }),
            ),
        ),
        (
            &operator,
            Case::new(
                "bowline.registry.v1.RegistryPolicies.UpdateRepoPolicy",
                json!({ "policy": { "uid": repo, "byteQuota": "-1" } }),
                format!("PATCH /registrypolicies/v1/repos/{repo}"),
                json!({ "byteQuota": "-1" }),
            ),
        ),
    ];
    for (actor, case) in cases {
        let previewed = call(actor, PREVIEW, case.body(server)).await;
        let real = call(actor, &case.real.0, case.real.1.clone()).await;
        assert_ne!(real.status, 200, "{}", case.method);
        assert_eq!((previewed.status, previewed.json()), (real.status, real.json()), "{}", case.method);
    }
    let stranger = server.anonymous();
    rejected(&stranger, PREVIEW, json!({}), 401, "UNAUTHENTICATED").await;
}

async fn only_some_methods_can_be_previewed(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let secrets = "chainguard.platform.iam.v2.GroupInvitesService.CreateGroupInvite";
    for (method, fields) in [
        (secrets, json!({ "parent": org })),
        ("chainguard.platform.iam.v2.GroupsService.ListGroups", json!({})),
        ("bowline.preview.v1.Previews.Preview", json!({})),
        ("bowline.audit.v1.Audit.WatchEntries", json!({})),
    ] {
        let refusal = rejected(&owner, PREVIEW, previewing(server, method, fields), 501, "UNIMPLEMENTED").await;
        assert!(refusal.message().contains("cannot be previewed"), "{refusal:?}");
    }
    let group = "type.googleapis.com/chainguard.platform.iam.v2.DeleteGroupRequest";
    for (body, field) in [
        (json!({ "request": { "@type": group } }), "method"),
        (json!({ "method": "no.such.Method", "request": { "@type": group } }), "method"),
        (json!({ "method": "bowline.registry.v1.Content.PullManifest", "request": { "@type": group } }), "method"),
        (
            json!({ "method": "chainguard.platform.iam.v2.RolesService.DeleteRole", "request": { "@type": group } }),
            "request",
        ),
        (json!({ "method": "chainguard.platform.iam.v2.RolesService.DeleteRole" }), "request"),
    ] {
        let refusal = rejected(&owner, PREVIEW, body.clone(), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{body}");
    }
}

async fn gained_and_lost_capabilities_are_listed_as_far_as_they_are_visible(server: &TestServer) {
    let World { org, team, custom, bound, binding, .. } = world(server).await;
    let operator = server.operator().await;
    // Held at the organization already: widening the role at the team gives nothing new.
    let above = role(server, &org, "above", &["CAP_REPO_CREATE"]).await;
    let other = machine(server, &org, "other").await.uid;
    server.bind(&other, &custom, &team).await;
    server.bind(&other, &above, &org).await;
    let update = format!("{IAM}.RolesService.UpdateRole");
    let wider = json!({ "role": { "uid": custom, "capabilities": ["CAP_REPO_LIST", "CAP_REPO_CREATE"] }, "updateMask": "capabilities" });
    let seen = preview(server, &operator, &update, wider.clone()).await;
    let mut expected = vec![
        json!({ "identity": bound, "scope": team, "gained": ["repo.create"], "lost": ["tag.list"] }),
        json!({ "identity": other, "scope": team, "gained": [], "lost": ["tag.list"] }),
    ];
    expected.sort_by_key(|one| one["identity"].as_str().map(String::from));
    assert_eq!(seen["capabilityChanges"], json!(expected));
    assert_eq!(seen["capabilityChangesIncomplete"], false);

    // Who may not list the binding above does not learn of it; who may list none learns of no identity.
    let updates = ["CAP_IAM_ROLES_UPDATE", "CAP_IAM_ROLES_LIST", "CAP_REPO_LIST", "CAP_REPO_CREATE", "CAP_TAG_LIST"];
    let blind = holder(server, &org, "blind", &org, &updates).await;
    let seen = preview(server, &blind.actor, &update, wider.clone()).await;
    assert_eq!((each(&seen["changes"], "resource"), &seen["capabilityChanges"]), (vec![custom.as_str()], &json!([])));
    let lists = role(server, &org, "lists", &["CAP_IAM_ROLE_BINDINGS_LIST"]).await;
    server.bind(&blind.uid, &lists, &team).await;
    let seen = preview(server, &blind.actor, &update, wider).await;
    let gained: Vec<&Value> =
        seen["capabilityChanges"].as_array().expect("a list").iter().map(|one| &one["gained"]).collect();
    assert_eq!(gained, [&json!(["repo.create"]); 2], "{seen}");

    let delete = format!("{IAM}.RoleBindingsService.DeleteRoleBinding");
    let seen = preview(server, &operator, &delete, json!({ "uid": binding })).await;
    let lost = json!([{ "identity": bound, "scope": team, "gained": [], "lost": ["repo.list", "tag.list"] }]);
    assert_eq!(seen["capabilityChanges"], lost);
    let delete = format!("{IAM}.IdentitiesService.DeleteIdentity");
    let seen = preview(server, &operator, &delete, json!({ "uid": bound })).await;
    assert_eq!(seen["capabilityChanges"], lost);
    assert_eq!(each(&seen["changes"], "resource"), [&bound, &binding]);
    let create = format!("{IAM}.RoleBindingsService.CreateRoleBinding");
    let bind = json!({ "parent": org, "roleBinding": { "identityUid": bound, "roleUid": custom } });
    let seen = preview(server, &operator, &create, bind).await;
    let gained = json!([{ "identity": bound, "scope": org, "gained": ["repo.list", "tag.list"], "lost": [] }]);
    assert_eq!(seen["capabilityChanges"], gained);
}

async fn a_role_that_many_have_is_compared_and_the_list_is_bounded(server: &TestServer) {
    let World { team, custom, .. } = world(server).await;
    let many = "INSERT INTO role_bindings (uid, parent, org, identity, role, created_at)
                WITH RECURSIVE up(n) AS (SELECT 10000 UNION ALL SELECT n + 1 FROM up WHERE n < 19999)
                SELECT $1 || '/00000000000' || n, $1, $2, $1 || '/10000000000' || n, $3, 0 FROM up";
    let org = team.split('/').next().expect("a root");
    execute(server, many, &[&team, org, &custom]).await;
    let fields = json!({ "role": { "uid": custom, "capabilities": ["CAP_REPO_LIST"] }, "updateMask": "capabilities" });
    let operator = server.operator().await;
    let began = Instant::now();
    let seen = preview(server, &operator, &format!("{IAM}.RolesService.UpdateRole"), fields).await;
    // What is wanted of a released build on an idle machine is a hundredth of that.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(seen["capabilityChanges"].as_array().map(Vec::len), Some(1000));
    assert_eq!((&seen["moreCapabilityChanges"], &seen["capabilityChangesIncomplete"]), (&json!(9001), &json!(false)));
}

async fn a_policy_shows_what_retention_would_remove(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let digests: Vec<String> = (0..3).map(|n| format!("sha256:{n:064}")).collect();
    for (n, digest) in digests.iter().enumerate() {
        image(server, &repo, digest, 100).await;
        let tag = json!({ "name": format!("v{n}"), "digest": digest });
        ok(&server.operator().await, &format!("POST /registry/v2/tags/{repo}"), tag).await;
    }
    let rules =
        json!({ "policy": { "uid": repo, "retention": { "keepPatterns": ["v0"] } }, "updateMask": "retention" });
    let method = "bowline.registry.v1.RegistryPolicies.UpdateRepoPolicy";
    let seen = preview(server, &server.operator().await, method, rules.clone()).await;
    let tags: Vec<&Value> =
        seen["retention"]["removed"].as_array().expect("manifests").iter().map(|one| &one["tags"]).collect();
    assert_eq!(tags, [&json!(["v1"]), &json!(["v2"])], "{seen}");
    let needed = ["CAP_REPO_UPDATE", "CAP_REPO_LIST", "CAP_MANIFEST_DELETE", "CAP_TAG_DELETE"];
    let keeper = holder(server, &org, "keeper", &org, &needed).await.actor;
    assert_eq!(preview(server, &keeper, method, rules).await["retention"], Value::Null);
    assert_eq!(uid_of(&ok(&keeper, &format!("GET /registrypolicies/v1/repos/{repo}"), Value::Null).await), repo);
}

each_engine!(
    a_preview_changes_no_table_and_agrees_with_the_call,
    what_would_be_refused_is_refused_alike,
    only_some_methods_can_be_previewed,
    gained_and_lost_capabilities_are_listed_as_far_as_they_are_visible,
    a_role_that_many_have_is_compared_and_the_list_is_bounded,
    a_policy_shows_what_retention_would_remove,
);
