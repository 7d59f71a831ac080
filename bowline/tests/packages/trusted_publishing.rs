//! Workloads publish with the tokens that their CI systems sign: who they are is decided at the group of the upload.

use std::time::Duration;

use bowline_testkit::{RestReply, TestServer, each_engine, npm};
use serde_json::{Value, json};

use crate::support::*;

const MINT: &str = "POST /_/oidc/mint-token";
const NO_PUBLISHER: &str = "Permission denied: the group does not exist, or no identity that may publish there matches the token; \
                            compare issuer, subject, audience and claims, or send the identity's UIDP as the user name";
const SUBJECT: &str = "repo:acme/web:ref:refs/tags/v1.0";

/// An identity of a group that tokens of the issuer with these members assume, with a role at the group.
async fn trusted(server: &TestServer, group: &str, role: &str, claims: Value) -> String {
    let mut claims = claims;
    claims["issuer"] = json!(server.idp().issuer());
    let body = json!({ "name": "publisher", "claimMatch": claims });
    let created = server.operator().await.rest("POST", &format!("/iam/v2/identities/{group}"), Some(body)).await;
    assert_eq!(created.status, 200, "{}", created.text());
    let uid = created.json()["uid"].as_str().unwrap().to_owned();
    server.bind(&uid, &server.role(role), group).await;
    uid
}

/// A token as a CI system signs it, for the audience that publishers ask for.
async fn signed(server: &TestServer, subject: &str) -> String {
    let reply = Client::anonymous(server).send_from_root("GET /_/oidc/audience", &[], &[]).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    server.idp().token(subject, reply.json()["audience"].as_str().unwrap(), Value::Null)
}

async fn exchanged(server: &TestServer, token: &str) -> RestReply {
    let body = json!({ "token": token }).to_string();
    let headers = [("content-type", "application/json")];
    Client::anonymous(server).send_from_root(MINT, &headers, body.as_bytes()).await
}

/// The publishing token of a subject, which must be given.
async fn minted(server: &TestServer, subject: &str) -> String {
    let reply = exchanged(server, &signed(server, subject).await).await;
    assert_eq!((reply.status, reply.header("cache-control")), (200, Some("no-store")), "{}", reply.text());
    let body = reply.json();
    assert_eq!((&body["success"], &body["expires"]), (&json!(true), &json!(server.clock().seconds() + 900)));
    body["token"].as_str().unwrap().to_owned()
}

/// A publisher as twine and uv sign in.
fn with(server: &TestServer, token: &str) -> Client {
    Client::with(server, "__token__", token)
}

async fn upload(client: &Client, name: &str, version: &str) -> RestReply {
    let bytes = wheel(name, version, "License-Expression: MIT\n");
    client.upload(&form(name, version, &file_name(name, version), &bytes)).await
}

async fn a_workload_publishes_without_a_secret(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "web").await;
    let identity =
        trusted(server, &team, "libraries.python.push", json!({ "subjectPattern": "repo:acme/web:.+" })).await;
    let token = minted(server, SUBJECT).await;
    let client = with(server, &token).at(&format!("{org}:web"));
    assert_eq!(upload(&client, "foo", "1.0").await.status, 200);
    assert_eq!(upload(&client, "foo", "1.1").await.status, 200, "a token publishes every file of a release");
    assert_eq!(client.project("foo").await["versions"], json!(["1.0", "1.1"]));
    let sql = format!("SELECT count(*) FROM audit WHERE actor = '{identity}' AND method LIKE '%PublishFile'");
    assert_eq!(number(server, Box::leak(sql.into_boxed_str())).await, 2);

    let above = upload(&with(server, &token).at(&org), "foo", "2.0").await;
    assert_eq!(sentence(&above, 403), NO_PUBLISHER);
    let unnamed = upload(&with(server, &token), "foo", "2.0").await;
    assert!(sentence(&unnamed, 403).contains("put ~ and the path of a group"), "{}", unnamed.text());
    server.clock().advance(Duration::from_secs(900));
    assert_eq!(sentence(&upload(&client, "foo", "2.0").await, 401), "Unauthenticated: the token has expired");
}

async fn the_group_of_the_upload_decides_who_publishes(server: &TestServer) {
    let (acme, evil) = (server.organization("acme").await, server.organization("evil").await);
    let claims = json!({ "subject": SUBJECT });
    trusted(server, &evil, "libraries.python.push", claims.clone()).await;
    let token = minted(server, SUBJECT).await;
    trusted(server, &acme, "libraries.python.pull", claims).await;
    let further = json!({ "subjectPattern": "repo:acme/.+", "claims": { "ref_type": "tag" } });
    let robot = trusted(server, &acme, "libraries.python.push", further).await;
    // One may only read, another needs a claim that is missing; nothing tells that from a group that does not exist.
    for group in [&*acme, "absent", &format!("{acme}:absent")] {
        assert_eq!(
            sentence(&upload(&with(server, &token).at(group), "foo", "1.0").await, 403),
            NO_PUBLISHER,
            "{group}"
        );
    }
    let tagged = server.idp().token(SUBJECT, server.base(), json!({ "ref_type": "tag" }));
    let tagged = exchanged(server, &tagged).await.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(upload(&with(server, &tagged).at(&acme), "foo", "1.0").await.status, 200);
    let sql = format!("SELECT count(*) FROM audit WHERE actor = '{robot}' AND method LIKE '%PublishFile'");
    assert_eq!(number(server, Box::leak(sql.into_boxed_str())).await, 1);
    assert_eq!(number(server, "SELECT count(*) FROM hosted_files").await, 1, "nothing went to the other organization");
}

async fn publishers_may_name_their_identity(server: &TestServer) {
    let org = server.organization("acme").await;
    let claims = json!({ "subject": SUBJECT });
    let both = [
        trusted(server, &org, "libraries.python.push", claims.clone()).await,
        trusted(server, &org, "libraries.python.push", claims).await,
    ];
    let token = minted(server, SUBJECT).await;
    for (identity, version) in both.iter().zip(["1.0", "1.1"]) {
        assert_eq!(upload(&Client::with(server, identity, &token).at(&org), "foo", version).await.status, 200);
        let sql = format!("SELECT count(*) FROM audit WHERE actor = '{identity}' AND method LIKE '%PublishFile'");
        assert_eq!(number(server, Box::leak(sql.into_boxed_str())).await, 1);
    }
    let other = server.identity(&org, "other").await;
    server.bind(&other, &server.role("owner"), &org).await;
    let elsewhere = server.organization("elsewhere").await;
    let foreign = trusted(server, &elsewhere, "owner", json!({ "subject": SUBJECT })).await;
    for user in [&other, &foreign, &org] {
        let refused = upload(&Client::with(server, user, &token).at(&org), "foo", "1.2").await;
        assert_eq!(sentence(&refused, 403), NO_PUBLISHER, "{user}");
    }
}

async fn a_publishing_token_opens_nothing_else(server: &TestServer) {
    let org = server.organization("acme").await;
    trusted(server, &org, "owner", json!({ "subject": SUBJECT })).await;
    let token = minted(server, SUBJECT).await;
    let api = server.anonymous().with_token(&token).rest("GET", "/iam/v2/groups", None).await;
    assert_eq!(api.status, 401, "{}", api.text());
    for audience in [server.base().to_owned(), format!("{}/libraries", server.base())] {
        let reply = server.exchange(&token, &[("aud", &audience), ("scopes", &org)]).await;
        assert_eq!(reply.status, 401, "{}", reply.text());
    }
    let registry = with(server, &token).send_from_root("GET /v2/", &[], &[]).await;
    assert!(matches!(registry.status, 401 | 403), "{}", registry.text());
    assert_eq!(exchanged(server, &token).await.json()["errors"][0]["code"], "invalid-publisher");
    // Nor another ecosystem, although the identity may.
    let npm = with(server, &token).javascript().at(&org);
    let document = npm::document("foo", "1.0.0", "latest", &npm::package(&npm::manifest("foo", "1.0.0")));
    let refused = npm.put("foo", &document).await;
    assert!(sentence(&refused, 403).contains("lacks a role such as libraries.javascript"), "{}", refused.text());
}

async fn without_a_good_token_no_group_is_told_from_another(server: &TestServer) {
    let org = server.organization("acme").await;
    trusted(server, &org, "libraries.python.push", json!({ "subject": SUBJECT })).await;
    let token = minted(server, SUBJECT).await;
    let forged = format!("{}A", &token[..token.len() - 1].trim_end_matches('A'));
    server.clock().advance(Duration::from_secs(900));
    for token in [token, forged] {
        let refused = |group: String| {
            let client = with(server, &token).at(&group);
            async move { sentence(&upload(&client, "foo", "1.0").await, 401) }
        };
        assert_eq!(refused(org.clone()).await, refused("absent".into()).await);
    }
    let odd = with(server, "x").at("a%00b").get("simple/foo/").await;
    assert_eq!(sentence(&odd, 400), "the path has a NUL");
}

async fn what_is_no_token_of_a_known_issuer_is_refused(server: &TestServer) {
    let org = server.organization("acme").await;
    let mut codes = Vec::new();
    // Before an identity trusts it, the issuer is not even asked for its keys.
    let unknown = exchanged(server, &server.idp().token(SUBJECT, server.base(), Value::Null)).await;
    assert_eq!(server.idp().requests(), 0);
    assert!(
        unknown.json()["message"].as_str().unwrap().starts_with("no identity trusts exactly the issuer"),
        "{}",
        unknown.text()
    );
    trusted(server, &org, "libraries.python.push", json!({ "subject": SUBJECT })).await;
    let idp = server.idp();
    let own = server.operator().await.token.unwrap();
    for token in [idp.expired(SUBJECT, server.base()), idp.other_key(SUBJECT, server.base()), own, "x".into()] {
        codes.push(exchanged(server, &token).await);
    }
    codes.push(unknown);
    for body in ["", "[]", "{}", "{\"token\":1}"] {
        codes.push(Client::anonymous(server).send_from_root(MINT, &[], body.as_bytes()).await);
    }
    let codes: Vec<String> = codes
        .iter()
        .map(|reply| {
            assert_eq!(reply.status, 422, "{}", reply.text());
            let body = reply.json();
            assert_eq!(body["errors"][0]["description"], body["message"]);
            body["errors"][0]["code"].as_str().unwrap().to_owned()
        })
        .collect();
    let (token, payload) = ("invalid-token", "invalid-payload");
    let publisher = "invalid-publisher";
    assert_eq!(codes, [token, token, publisher, token, publisher, payload, payload, payload, payload]);
    // An audience of others passes no identity.
    let foreign = exchanged(server, &idp.token(SUBJECT, "https://elsewhere.example", Value::Null)).await;
    let token = foreign.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(upload(&with(server, &token).at(&org), "foo", "1.0").await.status, 403);
}

async fn npm_gets_its_token_for_the_one_of_the_ci_system(server: &TestServer) {
    let org = server.organization("acme").await;
    let identity = trusted(server, &org, "libraries.javascript.push", json!({ "subject": SUBJECT })).await;
    let host = server.base().split("://").nth(1).unwrap().split(':').next().unwrap();
    let signed = server.idp().token(SUBJECT, &format!("npm:{host}"), Value::Null);
    let path = "POST /-/npm/v1/oidc/token/exchange/package/@acme%2ffoo";
    let anonymous = Client::anonymous(server);
    let bearer = format!("Bearer {signed}");
    let reply = anonymous.send_from_root(path, &[("authorization", &bearer)], &[]).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let token = format!("Bearer {}", reply.json()["token"].as_str().unwrap());
    let client = anonymous.javascript().at(&org);
    let document = npm::document("@acme/foo", "1.0.0", "latest", &npm::package(&npm::manifest("@acme/foo", "1.0.0")));
    let headers = [("authorization", &*token), ("content-type", "application/json")];
    let published = client.send("PUT @acme%2ffoo", &headers, document.to_string().as_bytes()).await;
    assert_eq!(published.status, 201, "{}", published.text());
    assert_eq!(client.send("GET @acme%2ffoo", &headers, &[]).await.status, 200);
    assert_eq!(anonymous.send_from_root(path, &[], &[]).await.status, 422);
    // It publishes, and changes nothing that is published.
    let revision =
        client.send("GET @acme%2ffoo?write=true", &headers, &[]).await.json()["_rev"].as_str().unwrap().to_owned();
    let unpublished = client.send(&format!("DELETE @acme%2ffoo/-rev/{revision}"), &headers, &[]).await;
    assert!(sentence(&unpublished, 403).contains("changes nothing that is published"), "{}", unpublished.text());
    let tagged = client.send("PUT -/package/@acme%2ffoo/dist-tags/next", &headers, b"\"1.0.0\"").await;
    assert!(sentence(&tagged, 403).contains("changes nothing that is published"), "{}", tagged.text());
    // A change of the identity holds at once.
    let path = format!("/iam/v2/identities/{identity}");
    let operator = server.operator().await;
    let mut changed = operator.rest("GET", &path, None).await.json();
    changed["claimMatch"]["subject"] = json!("repo:acme/other");
    assert_eq!(operator.rest("PATCH", &path, Some(changed)).await.status, 200);
    assert_eq!(sentence(&client.send("GET @acme%2ffoo", &headers, &[]).await, 403), NO_PUBLISHER);
}

each_engine!(
    a_workload_publishes_without_a_secret,
    the_group_of_the_upload_decides_who_publishes,
    publishers_may_name_their_identity,
    a_publishing_token_opens_nothing_else,
    without_a_good_token_no_group_is_told_from_another,
    what_is_no_token_of_a_known_issuer_is_refused,
    npm_gets_its_token_for_the_one_of_the_ci_system,
);
