//! Names for UIDPs: what the caller may list, in one read; the rest is absent like what does not exist.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, each, execute, machine, ok, person, provider, rejected, role};

const RESOLVE: &str = "POST /iam/v1/names:resolve";

async fn names_are_those_that_the_caller_may_list(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let repo = server.repo(&team, "repo").await;
    let own = role(server, &org, "our role", &["CAP_IAM_GROUPS_LIST"]).await;
    let idp = provider(server, &team, "our provider").await;
    let reader = machine(server, &team, "reader").await;
    server.bind(&reader.uid, &server.role("viewer"), &team).await;
    let ada = person(server, "ada", "ada@acme.example").await;
    let bea = person(server, "bea", "bea@acme.example").await;
    server.bind(&ada.uid, &server.role("viewer"), &team).await;
    server.bind(&bea.uid, &server.role("viewer"), &org).await;
    let viewer = server.role("viewer");
    let uids = json!([repo, org, team, own, idp, reader.uid, ada.uid, bea.uid, viewer, team, absent(&team)]);
    let names = ok(&reader.actor, RESOLVE, json!({ "uids": uids })).await;
    let kinds = each(&names["names"], "kind");
    assert_eq!(each(&names["names"], "uid"), [&*repo, &team, &idp, &reader.uid, &ada.uid, &viewer], "{names}");
    assert_eq!(each(&names["names"], "name")[..3], ["repo", "team", "our provider"]);
    assert_eq!(
        kinds,
        [
            "registry.chainguard.dev/Repo",
            "iam.chainguard.dev/Group",
            "iam.chainguard.dev/IdentityProvider",
            "iam.chainguard.dev/Identity",
            "iam.chainguard.dev/Identity",
            "iam.chainguard.dev/Role",
        ]
    );
    // What is hidden and what is not there give the same.
    let hidden = ok(&reader.actor, RESOLVE, json!({ "uids": [org, own, bea.uid] })).await;
    assert_eq!(hidden, ok(&reader.actor, RESOLVE, json!({ "uids": [absent(&org)] })).await);
    // A narrowed token reads no more than it was made for, and everyone reads themselves.
    let narrowed = reader.narrowed(server, &[("cap", "groups.list")]).await;
    let names = ok(&narrowed, RESOLVE, json!({ "uids": uids })).await;
    assert_eq!(each(&names["names"], "uid"), [&*team, &reader.uid, &viewer]);
    let names = ok(&server.operator().await, RESOLVE, json!({ "uids": uids })).await;
    assert_eq!(names["names"].as_array().map(Vec::len), Some(9), "{names}");
}

async fn bad_questions_for_names_are_refused(server: &TestServer) {
    let org = server.organization("acme").await;
    let me = machine(server, &org, "worker").await.actor;
    let many: Vec<&str> = vec![&org; 201];
    for (uids, field) in [(json!(many), "uids"), (json!(["team"]), "uids[0]"), (json!([]), "uids")] {
        let refusal = rejected(&me, RESOLVE, json!({ "uids": uids }), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{refusal:?}");
    }
    let full: Vec<String> = (0..200).map(|n| format!("{org}/{n:016x}")).collect();
    assert_eq!(ok(&me, RESOLVE, json!({ "uids": full })).await, json!({ "names": Value::Array(Vec::new()) }));
}

/// Bindings of one role to one identity at that many groups that need not exist.
const MANY: &str = "INSERT INTO role_bindings (uid, parent, org, identity, role, created_at)
    WITH RECURSIVE up(n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM up WHERE n < 1599)
    SELECT $1 || '/000000000000' || n || '/0000000000000000', $1 || '/000000000000' || n, $1, $2, $3, 0 FROM up";

async fn callers_with_very_many_bindings_resolve_few_people_at_once(server: &TestServer) {
    let org = server.organization("acme").await;
    let reader = machine(server, &org, "reader").await;
    let ada = person(server, "ada", "ada@acme.example").await;
    execute(server, MANY, &[&org, &reader.uid, &server.role("owner")]).await;
    let last = format!("{org}/0000000000001599");
    let bind = "INSERT INTO role_bindings (uid, parent, org, identity, role, created_at)
                VALUES ($1 || '/00000000000000aa', $1, $2, $3, $4, 0)";
    execute(server, bind, &[&last, &org, &ada.uid, &server.role("viewer")]).await;
    let people = |count: usize| -> Vec<String> {
        let others = (1..count).map(|n| format!("{n:040x}"));
        std::iter::once(ada.uid.clone()).chain(others).collect()
    };
    // 600 groups: 50,000 look-ups are 83 people.
    let names = ok(&reader.actor, RESOLVE, json!({ "uids": people(83) })).await;
    assert_eq!(each(&names["names"], "uid"), [ada.uid.as_str()], "{names}");
    let refusal = rejected(&reader.actor, RESOLVE, json!({ "uids": people(84) }), 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["uids"]);
    assert!(refusal.message().contains("at most 83 people"), "{refusal:?}");
    // Groups and their contents are not looked up by bindings.
    let inside: Vec<String> = (0..200).map(|n| format!("{org}/{n:016x}")).collect();
    ok(&reader.actor, RESOLVE, json!({ "uids": inside })).await;
}

each_engine!(
    callers_with_very_many_bindings_resolve_few_people_at_once,
    bad_questions_for_names_are_refused,
    names_are_those_that_the_caller_may_list
);
