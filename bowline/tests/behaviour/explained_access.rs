//! Explanations of access: the path of a decision, who can help, and nothing that the reader may not list.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::people_support::{
    Own, actor, context, map, offered, own, people, plain, provision, sign_in, uid_of_provider, vouched,
};
use crate::support::{Machine, call, each, execute, holder, machine, ok, pages, rejected, role, uid_of};

/// What an explanation says first: whether it is allowed, and by what.
fn verdict(explanation: &Value) -> (bool, &str) {
    (explanation["allowed"].as_bool().expect("a verdict"), explanation["cause"].as_str().expect("a cause"))
}

fn outcomes(explanation: &Value) -> Vec<&str> {
    each(&explanation["steps"], "outcome")
}

fn explain(scope: &str, more: &str) -> String {
    format!("GET /iam/v1/access:explain?scope={scope}&{more}")
}

async fn a_refusal_leads_to_its_explanation_and_to_those_who_can_help(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let me = machine(server, &org, "worker").await;
    server.bind(&me.uid, &server.role("viewer"), &org).await;
    let boss = machine(server, &org, "boss").await;
    server.bind(&boss.uid, &server.role("owner"), &org).await;
    let create = format!("POST /iam/v2/groups/{team}");
    let refusal = rejected(&me.actor, &create, json!({ "name": "more" }), 403, "PERMISSION_DENIED").await;
    let link = refusal.detail("Help")["links"][0].clone();
    let url = link["url"].as_str().expect("a link").to_owned();
    assert!(url.starts_with(&format!("{}/iam/v1/access:explain?", server.base())), "{url}");
    let path = url.strip_prefix(server.base()).expect("a path of this server");
    let explanation = ok(&me.actor, &format!("GET {path}"), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_NOT_GIVEN"), "{explanation}");
    assert_eq!(explanation["missing"], json!(["groups.create"]));
    assert_eq!(outcomes(&explanation), ["ACCESS_OUTCOME_ROLE_LACKS"]);
    assert_eq!(
        (&explanation["steps"][0]["roleName"], &explanation["steps"][0]["group"]),
        (&json!("viewer"), &json!(org))
    );
    let grantor = &explanation["grantors"][0];
    assert_eq!((&grantor["identity"], &grantor["roleName"]), (&json!(boss.uid), &json!("owner")), "{explanation}");
    assert_eq!(explanation["grantors"].as_array().map(Vec::len), Some(1), "{explanation}");
    // V1 has no details.
    let old = call(&me.actor, "POST /iam/v1/groups", json!({ "parent": team, "group": { "name": "more" } })).await;
    assert!(old.status >= 400 && !old.text().contains("access:explain"), "{}", old.text());
    // Without the right to list bindings one learns of oneself alone.
    let pusher = holder(server, &org, "pusher", &org, &["CAP_REPO_LIST"]).await;
    let explanation = ok(&pusher.actor, &explain(&team, "capabilities=groups.create"), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_NOT_GIVEN"));
    assert_eq!(explanation["grantors"], json!([]));
    assert_eq!((&explanation["steps"][0]["binding"], &explanation["steps"][0]["groupName"]), (&json!(""), &json!("")));
    // An accepted binding is the answer, at once.
    server.bind(&me.uid, &server.role("owner"), &team).await;
    let explanation = ok(&me.actor, &format!("GET {path}"), Value::Null).await;
    assert_eq!(verdict(&explanation), (true, "ACCESS_CAUSE_GIVEN"));
    assert_eq!((&explanation["missing"], &explanation["grantors"]), (&json!([]), &json!([])));
    ok(&me.actor, &create, json!({ "name": "more" })).await;
}

async fn each_step_has_its_reason(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let below = server.group(&team, "below").await;
    let reader = machine(server, &org, "reader").await;
    server.bind(&reader.uid, &server.role("viewer"), &org).await;
    let me = machine(server, &org, "worker").await;
    server.bind(&me.uid, &server.role("registry.pull"), &org).await;
    server.bind(&me.uid, &server.role("owner"), &below).await;
    let of_me = format!("identity={}&method=chainguard.platform.iam.v2.GroupsService.CreateGroup", me.uid);
    let explanation = ok(&reader.actor, &explain(&team, &of_me), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_NOT_GIVEN"));
    assert_eq!(outcomes(&explanation), ["ACCESS_OUTCOME_ROLE_LACKS", "ACCESS_OUTCOME_BELOW_SCOPE"]);
    assert_eq!(explanation["steps"][1]["group"], json!(below));
    let explanation = ok(&reader.actor, &explain(&below, &of_me), Value::Null).await;
    assert_eq!(verdict(&explanation), (true, "ACCESS_CAUSE_GIVEN"));
    assert_eq!(explanation["steps"][1]["gives"], json!(["groups.create"]));
    // A token that was made for less.
    let narrowed = me.narrowed(server, &[("cap", "repo.list")]).await;
    let explanation = ok(&narrowed, &explain(&below, "capabilities=groups.create"), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_TOKEN_CAPABILITIES"));
    let narrowed = me.narrowed(server, &[("scopes", &below)]).await;
    let explanation = ok(&narrowed, &explain(&team, "capabilities=repo.list"), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_TOKEN_SCOPES"));
    assert_eq!(explanation["steps"], json!([]), "what is bound elsewhere is none of the token's business");
    // What the identity itself has come to.
    execute(server, "UPDATE identities SET expires_at = 1 WHERE uid = $1", &[&me.uid]).await;
    let explanation = ok(&reader.actor, &explain(&below, &of_me), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_EXPIRED"));
    execute(server, "UPDATE identities SET deactivated = (1 = 1) WHERE uid = $1", &[&me.uid]).await;
    let explanation = ok(&reader.actor, &explain(&below, &of_me), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_DEACTIVATED"));
    let invited = "ab".repeat(20);
    server.bind(&invited, &server.role("owner"), &org).await;
    let explanation =
        ok(&reader.actor, &explain(&org, &format!("identity={invited}&capabilities=repo.list")), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_NEVER_SIGNED_IN"));
    let explanation =
        ok(&reader.actor, &explain(&org, "method=bowline.feeds.v1.RecordImports.BeginImport"), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_OPERATOR_ONLY"));
    let explanation =
        ok(&reader.actor, &explain(&org, "method=chainguard.platform.auth.Auth.Validate"), Value::Null).await;
    assert_eq!(verdict(&explanation), (true, "ACCESS_CAUSE_NOTHING_NEEDED"));
    let operator = server.operator().await;
    let explanation = ok(&operator, &explain(&org, "capabilities=groups.delete"), Value::Null).await;
    assert_eq!(verdict(&explanation), (true, "ACCESS_CAUSE_OPERATOR"));
}

async fn sessions_and_directories_are_part_of_the_path(server: &TestServer) {
    let (org, other) = (server.organization("acme").await, server.organization("other").await);
    let provider = own(server, &org, Own { groups_claim: "groups", ..Own::default() }).await;
    map(server, &provider, "engineers", &server.role("viewer"), &org).await;
    let upstream = vouched(server, &provider, "ada", json!({ "groups": ["engineers"] })).await;
    let login = sign_in(server, &provider, &upstream).await;
    server.bind(login.identity.as_str(), &server.role("viewer"), &other).await;
    let issued = people(server).issue(&login.session, &upstream, &plain(server), &context(server)).await;
    let ada = actor(server, &issued.expect("a token").token);
    let explanation = ok(&ada, &explain(&org, "capabilities=groups.list"), Value::Null).await;
    assert_eq!(verdict(&explanation), (true, "ACCESS_CAUSE_GIVEN"), "{explanation}");
    assert_eq!(
        (outcomes(&explanation), &explanation["steps"][0]["bySession"]),
        (vec!["ACCESS_OUTCOME_GIVES"], &json!(true))
    );
    let explanation = ok(&ada, &explain(&other, "capabilities=groups.list"), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_PROVIDER_ORGANIZATION"));
    // A directory that has deactivated the person takes what is bound at and below its group.
    let team = server.group(&other, "team").await;
    let directory = own(server, &team, Own { scim: true, ..Own::default() }).await;
    provision(server, &directory, "bea", &crate::people_support::person(server, "bea")).await;
    let operators = offered(server).await;
    let upstream = vouched(server, &operators, "bea", Value::Null).await;
    let login = sign_in(server, &operators, &upstream).await;
    server.bind(login.identity.as_str(), &server.role("viewer"), &team).await;
    let issued = people(server).issue(&login.session, &upstream, &plain(server), &context(server)).await;
    let bea = actor(server, &issued.expect("a token").token);
    execute(server, "UPDATE scim_users SET active = (1 = 0) WHERE provider = $1", &[&uid_of_provider(&directory)])
        .await;
    let explanation = ok(&bea, &explain(&team, "capabilities=groups.list"), Value::Null).await;
    assert_eq!(verdict(&explanation), (false, "ACCESS_CAUSE_NOT_GIVEN"));
    assert_eq!(outcomes(&explanation), ["ACCESS_OUTCOME_DIRECTORY_DEACTIVATED"]);
    assert_eq!(call(&bea, &format!("GET /iam/v2/groups/{team}"), Value::Null).await.status, 403);
}

/// Someone who administrates a group alone, and a machine that lives there and has a role above.
async fn administrator(server: &TestServer) -> (String, String, Machine, Machine) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let admin = machine(server, &team, "admin").await;
    server.bind(&admin.uid, &server.role("owner"), &team).await;
    let worker = machine(server, &team, "worker").await;
    let secret = role(server, &org, "secret role", &["CAP_IAM_GROUPS_LIST"]).await;
    server.bind(&worker.uid, &secret, &org).await;
    (org, team, admin, worker)
}

async fn what_is_bound_above_has_no_name(server: &TestServer) {
    let (org, team, admin, worker) = administrator(server).await;
    let of_worker = format!("identity={}&capabilities=groups.list", worker.uid);
    let explanation = ok(&admin.actor, &explain(&team, &of_worker), Value::Null).await;
    assert_eq!(verdict(&explanation), (true, "ACCESS_CAUSE_GIVEN"), "it is what the server decides");
    let nameless = json!([{ "outcome": "ACCESS_OUTCOME_GIVES", "binding": "", "group": "", "groupName": "", "role": "",
                            "roleName": "", "gives": ["groups.list"], "bySession": false }]);
    assert_eq!(explanation["steps"], nameless);
    // What decides nothing is not mentioned.
    let explanation = ok(&admin.actor, &explain(&team, &of_worker.replace("list", "delete")), Value::Null).await;
    assert_eq!((verdict(&explanation), &explanation["steps"]), ((false, "ACCESS_CAUSE_NOT_GIVEN"), &json!([])));
    let entries = ok(&admin.actor, &format!("GET /iam/v1/access:effective?scope={team}"), Value::Null).await;
    assert_eq!(each(&entries["entries"], "identity"), [admin.uid.as_str()]);
    let entries = ok(&admin.actor, &format!("GET /iam/v1/access:of?identity={}", worker.uid), Value::Null).await;
    assert_eq!(entries["entries"], json!([]));
    // The worker itself reads its binding, and not the role that it may not list.
    let explanation = ok(&worker.actor, &explain(&team, "capabilities=groups.list"), Value::Null).await;
    assert_eq!((&explanation["steps"][0]["group"], &explanation["steps"][0]["role"]), (&json!(org), &json!("")));
    let entries = ok(&worker.actor, "GET /iam/v1/access:of", Value::Null).await;
    let entry = &entries["entries"][0];
    assert_eq!((&entry["group"], &entry["groupName"], &entry["role"]), (&json!(org), &json!("acme"), &json!("")));
    let other = explain(&team, &format!("identity={}&capabilities=groups.list", admin.uid));
    rejected(&worker.actor, &other, Value::Null, 403, "PERMISSION_DENIED").await;
}

async fn lists_of_access_have_pages_from_the_root_down(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let reader = machine(server, &org, "reader").await;
    server.bind(&reader.uid, &server.role("viewer"), &org).await;
    let mut expected = vec![reader.uid.clone()];
    for n in 0..3 {
        let someone = machine(server, &org, &format!("someone-{n}")).await.uid;
        server.bind(&someone, &server.role("viewer"), &team).await;
        server.bind(&someone, &server.role("editor"), &team).await;
        expected.extend([someone.clone(), someone]);
    }
    execute(server, "UPDATE identities SET expires_at = 1 WHERE uid = $1", &[&expected[1]]).await;
    let listed = pages(&reader.actor, &format!("GET /iam/v1/access:effective?scope={team}&page_size=2")).await;
    let entries = |page: &Value| page["entries"].as_array().expect("entries").clone();
    let seen: Vec<Value> = listed.iter().flat_map(entries).collect();
    let identities: Vec<String> = seen.iter().map(|entry| entry["identity"].as_str().expect("a uid").into()).collect();
    assert_eq!(identities[0], reader.uid);
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(sorted(identities), sorted(expected.clone()));
    assert!(seen.iter().all(|entry| entry["inherited"] == json!(entry["group"] == json!(org))), "{seen:?}");
    let ended = seen.iter().filter(|entry| entry["inactive"] == json!(true)).count();
    assert_eq!(ended, 2, "{seen:?}");
    let of_one = format!("GET /iam/v1/access:of?identity={}&pageSize=1", expected[1]);
    let page = ok(&reader.actor, &of_one, Value::Null).await;
    let next = page["nextPageToken"].as_str().expect("a token");
    let last = ok(&reader.actor, &format!("{of_one}&pageToken={next}"), Value::Null).await;
    assert_eq!(last["nextPageToken"], json!(""));
    let mut roles = [&page, &last].map(|page| page["entries"][0]["roleName"].as_str().expect("a name"));
    roles.sort_unstable();
    assert_eq!(roles, ["editor", "viewer"]);
    // A token belongs to its list and its caller.
    rejected(&server.operator().await, &format!("{of_one}&pageToken={next}"), Value::Null, 400, "PAGE_TOKEN_INVALID")
        .await;
}

async fn bad_questions_are_refused_in_words(server: &TestServer) {
    let org = server.organization("acme").await;
    let me = holder(server, &org, "worker", &org, &["CAP_IAM_GROUPS_LIST", "CAP_IAM_ROLE_BINDINGS_LIST"]).await.actor;
    let many = vec!["capabilities=groups.list"; 65].join("&");
    for (question, field) in [
        (String::new(), "method"),
        ("method=a.B.C&capabilities=groups.list".into(), "capabilities"),
        ("method=a.B.C".into(), "method"),
        ("capabilities=groups.list&capabilities=groups.none".into(), "capabilities[1]"),
        ("capabilities=".into(), "capabilities[0]"),
        (many, "capabilities"),
        ("capabilities=groups.list&identity=nonsense".into(), "identity"),
    ] {
        let refusal = rejected(&me, &explain(&org, &question), Value::Null, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{question}: {refusal:?}");
    }
    for scope in ["", "nonsense", "%00"] {
        rejected(&me, &explain(scope, "capabilities=groups.list"), Value::Null, 400, "INVALID_ARGUMENT").await;
    }
    let unknown = format!("{}/{}", org, "0".repeat(16));
    let explanation = ok(&me, &explain(&unknown, "capabilities=groups.list"), Value::Null).await;
    assert_eq!(verdict(&explanation), (true, "ACCESS_CAUSE_GIVEN"), "a scope need not exist");
    let created = ok(&server.operator().await, &format!("POST /iam/v2/groups/{org}"), json!({ "name": "team" })).await;
    let negative = format!("GET /iam/v1/access:of?pageSize=-1&identity={}", uid_of(&created));
    rejected(&me, &negative, Value::Null, 400, "INVALID_ARGUMENT").await;
}

each_engine!(
    a_refusal_leads_to_its_explanation_and_to_those_who_can_help,
    bad_questions_are_refused_in_words,
    each_step_has_its_reason,
    lists_of_access_have_pages_from_the_root_down,
    sessions_and_directories_are_part_of_the_path,
    what_is_bound_above_has_no_name
);
