//! Checks of upstreams that callers of the API make.

use std::time::Duration;

use bowline_testkit::{Actor, Engine, RestReply, TestServer, each_engine};
use serde_json::{Value, json};

use crate::fake_upstream::{FakeUpstream, Scheme, USERNAME, account, mirror_as};
use crate::support::*;

async fn check(actor: &Actor, repo: &str) -> RestReply {
    actor.rest("POST", &format!("/replication/v1/repos/{repo}:checkUpstream"), Some(json!({}))).await
}

/// The outcome, without the beginning that all of them have.
async fn outcome(actor: &Actor, repo: &str) -> (String, Value) {
    let reply = check(actor, repo).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let checked = reply.json();
    (checked["outcome"].as_str().unwrap().replace("UPSTREAM_OUTCOME_", ""), checked)
}

/// The error of the repository's last check, as the list of upstreams has it.
async fn listed(server: &TestServer, org: &str) -> Vec<String> {
    let path = format!("/replication/v1/groups/{org}/upstreams");
    let list = server.operator().await.rest("GET", &path, None).await.json();
    let upstreams = list["upstreams"].as_array().unwrap().clone();
    upstreams.iter().map(|one| one["error"].as_str().unwrap().to_owned()).collect()
}

async fn an_upstream_is_checked_as_a_pull_would(server: &TestServer) {
    let upstream = FakeUpstream::start(Scheme::Basic, Some(image(b"private"))).await;
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "app").await;
    let editor = server.actor("editor", &org).await;
    let reply = check(&editor, &repo).await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert!(reply.text().contains("REPOSITORY_WITHOUT_UPSTREAM"), "{}", reply.text());
    mirror_as(server, &org, &upstream.base, USERNAME, "wrong").await;
    let (failed, checked) = outcome(&editor, &repo).await;
    assert_eq!((failed.as_str(), &checked["repeatedResult"]), ("FAILED", &json!(false)));
    let problem = checked["problem"].as_str().unwrap();
    assert!(problem.contains("refused the credentials") && !problem.contains("127.0.0.1"), "{problem}");
    assert!(!reply.text().contains("wrong"), "{}", reply.text());
    assert_eq!(listed(server, &org).await, [problem]);
    // The same again asks no one.
    upstream.seen();
    let (failed, checked) = outcome(&editor, &repo).await;
    assert_eq!((failed.as_str(), &checked["repeatedResult"]), ("FAILED", &json!(true)));
    assert!(upstream.seen().is_empty());

    mirror_as(server, &org, &upstream.base, USERNAME, "hush").await;
    let (present, checked) = outcome(&editor, &repo).await;
    let seen = (present.as_str(), &checked["tag"], &checked["digest"], &checked["problem"]);
    assert_eq!(seen, ("PRESENT", &json!("latest"), &json!(digest_of(&image(b"private"))), &json!("")));
    let paths: Vec<(String, String)> = upstream.seen().into_iter().map(|one| (one.path, one.proof)).collect();
    let path = "/v2/app/manifests/latest".to_owned();
    assert_eq!(paths, [(path.clone(), String::new()), (path, account(USERNAME, "hush"))]);
    assert_eq!(listed(server, &org).await, [""]);
    assert_eq!(number(server, "SELECT count(*) FROM tags").await, 0, "nothing was fetched");

    upstream.state().manifest = None;
    let (absent, checked) = outcome(&editor, &repo).await;
    assert_eq!((absent.as_str(), &checked["problem"], &checked["digest"]), ("ABSENT", &json!(""), &json!("")));
    assert_eq!(listed(server, &org).await, [""], "it responded");
    server.clock().advance(Duration::from_secs(61));
    upstream.state().status = Some((502, None));
    let editor = server.actor("editor", &org).await;
    let (failed, checked) = outcome(&editor, &repo).await;
    assert_eq!(failed, "FAILED");
    assert!(checked["problem"].as_str().unwrap().contains("502"), "{checked}");
}

async fn a_replicated_tag_is_asked_for_and_callers_need_the_right_to_change(server: &TestServer) {
    let upstream = FakeUpstream::start(Scheme::Open, Some(image(b"public"))).await;
    let (org, pusher) = pusher(server, "acme").await;
    mirror_as(server, &org, &upstream.base, "", "").await;
    for tag in ["v2", "v1"] {
        assert_eq!(pusher.get(&format!("/v2/{org}/app/manifests/{tag}")).await.status, 200);
    }
    let repo = repo_uid(server, "app").await;
    let editor = server.actor("editor", &org).await;
    let (present, checked) = outcome(&editor, &repo).await;
    assert_eq!((present.as_str(), &checked["tag"]), ("PRESENT", &json!("v1")));
    upstream.seen();
    for actor in [server.actor("viewer", &org).await, server.stranger().await] {
        assert_eq!(check(&actor, &repo).await.status, 403);
        assert_eq!(check(&actor, &format!("{org}/00000000000000ff")).await.status, 403);
    }
    assert_eq!(check(&editor, &format!("{org}/00000000000000ff")).await.status, 404);
    assert!(upstream.seen().is_empty());
    // Ten at once, and one more each second.
    let mut made = 1;
    let refused = loop {
        let reply = check(&editor, &repo).await;
        if reply.status != 200 {
            break reply;
        }
        made += 1;
        assert!(made < 60, "no limit");
    };
    assert!(made >= 10, "{made}");
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (429, true), "{}", refused.text());
    let other = server.actor("owner", &org).await;
    assert_eq!(check(&other, &repo).await.status, 429, "also of the organization");
}

/// On PostgreSQL no writer is shared.
#[tokio::test]
async fn a_check_beyond_the_limit_takes_no_turn_of_the_writer_of_sqlite() {
    let server = TestServer::start(Engine::Sqlite).await;
    let upstream = FakeUpstream::start(Scheme::Open, Some(image(b"public"))).await;
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "app").await;
    mirror_as(&server, &org, &upstream.base, "", "").await;
    let editor = server.actor("editor", &org).await;
    let refused = async || check(&editor, &repo).await.status == 429;
    for made in 0.. {
        if refused().await {
            break;
        }
        assert!(made < 60, "no limit");
    }
    let release = server.hold_writer().await;
    let mut is_refused = false;
    for _ in 0..3 {
        // One more is allowed each second, and its result waits for the writer.
        is_refused |= tokio::time::timeout(Duration::from_secs(1), refused()).await == Ok(true);
    }
    drop(release);
    assert!(is_refused, "refusals wait for the writer");
    server.stop().await;
}

each_engine!(
    an_upstream_is_checked_as_a_pull_would,
    a_replicated_tag_is_asked_for_and_callers_need_the_right_to_change
);
