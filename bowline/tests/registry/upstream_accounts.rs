//! Upstreams with an account: who gets its password, who does not, and who learns that it is wrong.

use std::time::Duration;

use bowline_testkit::{TestServer, each_engine};

use crate::fake_upstream::{FakeUpstream, Scheme, Seen, USERNAME, account, mirror_as};
use crate::support::*;

/// Someone who may push to an organization that mirrors the upstream with an account; what they pull.
async fn mirrored(server: &TestServer, upstream: &FakeUpstream, password: &str) -> (String, Client) {
    let (org, pusher) = pusher(server, "acme").await;
    mirror_as(server, &org, &upstream.base, USERNAME, password).await;
    (org, pusher)
}

async fn status(client: &Client, name: &str, tag: &str) -> u16 {
    client.get(&format!("/v2/{name}/manifests/{tag}")).await.status
}

/// The `authorization` headers of the requests whose path contains `part`.
fn proofs(seen: &[Seen], part: &str) -> Vec<String> {
    seen.iter().filter(|one| one.path.contains(part)).map(|one| one.proof.clone()).collect()
}

async fn a_token_of_the_account_is_asked_for_once_and_used_until_it_ends(server: &TestServer) {
    let upstream = FakeUpstream::start(Scheme::Bearer, Some(image(b"private"))).await;
    let (org, pusher) = mirrored(server, &upstream, "hush").await;
    let name = format!("{org}/app");
    assert_eq!(pusher.get(&format!("/v2/{name}/manifests/1")).await.json(), image(b"private"));
    let seen = upstream.seen();
    assert_eq!(proofs(&seen, "/token"), [account(USERNAME, "hush")]);
    let asked = seen.iter().find(|one| one.path.starts_with("/token")).unwrap();
    assert_eq!(asked.path, "/token?service=fake&scope=repository%3Aapp%3Apull&account=me");
    assert_eq!(proofs(&seen, "/manifests/"), ["", "Bearer token-1"], "the registry itself sees the token alone");

    assert_eq!(status(&pusher, &name, "2").await, 200);
    assert_eq!(proofs(&upstream.seen(), "/"), ["Bearer token-1"], "the token is still good");
    server.clock().advance(Duration::from_secs(291));
    assert_eq!(status(&pusher, &name, "3").await, 200);
    let seen = upstream.seen();
    assert_eq!(proofs(&seen, "/manifests/"), ["", "Bearer token-2"], "it ended, with a margin");
    // One that the upstream does not know any more is replaced.
    upstream.state().tokens.clear();
    assert_eq!(status(&pusher, &name, "4").await, 200);
    assert_eq!(proofs(&upstream.seen(), "/manifests/"), ["Bearer token-2", "Bearer token-3"]);
    // Another repository below has a token of its own.
    assert_eq!(status(&pusher, &format!("{org}/other"), "1").await, 200);
    assert_eq!(proofs(&upstream.seen(), "/manifests/"), ["", "Bearer token-4"]);
}

async fn basic_authentication_is_answered_when_it_is_asked_for(server: &TestServer) {
    let upstream = FakeUpstream::start(Scheme::Basic, Some(image(b"private"))).await;
    let (org, pusher) = mirrored(server, &upstream, "hush").await;
    assert_eq!(status(&pusher, &format!("{org}/app"), "1").await, 200);
    assert_eq!(proofs(&upstream.seen(), "/"), [String::new(), account(USERNAME, "hush")]);
}

async fn a_wrong_password_is_said_and_a_new_one_counts_at_once(server: &TestServer) {
    for (scheme, group) in [(Scheme::Basic, "basic"), (Scheme::Bearer, "bearer")] {
        let upstream = FakeUpstream::start(scheme, Some(image(b"private"))).await;
        let (org, pusher) = pusher(server, group).await;
        mirror_as(server, &org, &upstream.base, USERNAME, "no-secret").await;
        let name = format!("{org}/app");
        pusher.begin(&name).await;
        let refused = pusher.get(&format!("/v2/{name}/manifests/1")).await;
        assert_eq!(code(&refused, 502), "MANIFEST_UNKNOWN");
        assert!(refused.text().contains("refused the credentials (status 401)"), "{}", refused.text());
        let noted = texts(server, "SELECT message FROM upstream_syncs WHERE status = 3 ORDER BY checked_at").await;
        assert!(noted.iter().all(|text| text.contains("refused the credentials")) && !noted.is_empty(), "{noted:?}");
        let said = [vec![refused.text()], noted].concat().concat();
        assert!(!said.contains("no-secret") && !said.contains(&upstream.base), "{said}");
        // No one tries the wrong one again and again.
        upstream.seen();
        let again = pusher.get(&format!("/v2/{name}/manifests/2")).await;
        assert!(again.status == 502 && again.text().contains("refused the credentials"), "{}", again.text());
        assert_eq!(upstream.seen().len(), 0);

        mirror_as(server, &org, &upstream.base, USERNAME, "hush").await;
        assert_eq!(status(&pusher, &name, "1").await, 200);
        // The old token is not used for what has another password.
        mirror_as(server, &org, &upstream.base, USERNAME, "no-secret").await;
        assert_eq!(status(&pusher, &name, "3").await, 502);
        mirror_as(server, &org, &upstream.base, USERNAME, "hush").await;
        assert_eq!(status(&pusher, &name, "3").await, 200);
        let failed = "SELECT count(*) FROM upstream_syncs WHERE status = 3";
        assert_eq!(number(server, failed).await, 0, "it works again");
    }
}

async fn an_account_that_may_not_pull_is_no_missing_image(server: &TestServer) {
    let upstream = FakeUpstream::start(Scheme::Basic, Some(image(b"private"))).await;
    let (org, pusher) = mirrored(server, &upstream, "hush").await;
    upstream.state().status = Some((403, None));
    let refused = pusher.get(&format!("/v2/{org}/app/manifests/1")).await;
    assert_eq!(code(&refused, 502), "MANIFEST_UNKNOWN");
    assert!(refused.text().contains("to the credentials (status 403)"), "{}", refused.text());
    // It may be about this one thing.
    upstream.state().status = None;
    assert_eq!(status(&pusher, &format!("{org}/app"), "2").await, 200);
}

async fn an_upstream_that_wants_an_account_says_so_to_who_has_none(server: &TestServer) {
    let upstream = FakeUpstream::start(Scheme::Basic, Some(image(b"private"))).await;
    let (org, pusher) = pusher(server, "acme").await;
    crate::mirrors::mirror(server, &org, upstream.base.clone(), &[]).await;
    let refused = pusher.get(&format!("/v2/{org}/app/manifests/1")).await;
    assert!(refused.status == 502 && refused.text().contains("requires credentials"), "{}", refused.text());
    // A registry that gives everyone a token, with which this is not to be seen, says that it is not there.
    upstream.state().scheme = Scheme::Bearer;
    assert_eq!(code(&pusher.get(&format!("/v2/{org}/other/manifests/1")).await, 404), "NAME_UNKNOWN");
}

async fn redirects_to_another_origin_get_nothing_of_the_account(server: &TestServer) {
    for (scheme, group) in [(Scheme::Basic, "basic"), (Scheme::Bearer, "bearer")] {
        let upstream = FakeUpstream::start(scheme, None).await;
        let elsewhere = FakeUpstream::start(Scheme::Open, Some(image(b"private"))).await;
        upstream.state().elsewhere = Some(elsewhere.base.clone());
        let (org, pusher) = pusher(server, group).await;
        mirror_as(server, &org, &upstream.base, USERNAME, "hush").await;
        let name = format!("{org}/app");
        assert_eq!(status(&pusher, &name, "1").await, 200);
        assert_eq!(proofs(&elsewhere.seen(), "/"), [""]);
        // Nor when it asks for it.
        for (asks, tag) in [(Scheme::Basic, "2"), (Scheme::Bearer, "3")] {
            elsewhere.state().scheme = asks;
            assert_eq!(status(&pusher, &name, tag).await, 502);
            let seen = elsewhere.seen();
            let is_nothing = |proof: &String| proof.is_empty() || proof == "Bearer token-1";
            assert!(!seen.is_empty() && proofs(&seen, "/manifests/").iter().all(is_nothing), "{seen:?}");
            assert!(proofs(&seen, "/token").iter().all(String::is_empty), "{seen:?}");
            assert!(seen.iter().all(|one| !one.path.contains("account=")), "{seen:?}");
        }
    }
}

each_engine!(
    multi_thread:
    a_token_of_the_account_is_asked_for_once_and_used_until_it_ends,
    basic_authentication_is_answered_when_it_is_asked_for,
    a_wrong_password_is_said_and_a_new_one_counts_at_once,
    an_account_that_may_not_pull_is_no_missing_image,
    an_upstream_that_wants_an_account_says_so_to_who_has_none,
    redirects_to_another_origin_get_nothing_of_the_account
);
