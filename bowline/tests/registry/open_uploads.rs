//! Open uploads: what they count for, how many there may be, and when they end.

use std::time::Duration;

use bowline_server::Options;
use bowline_testkit::{Actor, Engine, RestReply, TestServer, by_engine, each_engine, on_engine_with};
use serde_json::json;

use crate::slow::Slow;
use crate::support::*;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const MIB: usize = 1 << 20;

pub(crate) async fn quota(server: &TestServer, kind: &str, uid: &str, bytes: usize) {
    let path = format!("/registrypolicies/v1/{kind}/{uid}");
    let reply = server.operator().await.rest("PATCH", &path, Some(json!({ "byteQuota": bytes.to_string() }))).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
}

async fn patch(client: &Client, at: &str, body: &[u8]) -> RestReply {
    client.send(&format!("PATCH {at}"), &[], body).await
}

async fn end(client: &Client, at: &str) {
    assert_eq!(client.send(&format!("DELETE {at}"), &[], b"").await.status, 204);
}

/// An identity that pushes, whose tokens are renewed when time passes.
struct Pusher {
    subject: &'static str,
    identity: String,
}

impl Pusher {
    async fn of(server: &TestServer, org: &str, subject: &'static str) -> Pusher {
        let identity = server.identity(org, subject).await;
        server.bind(&identity, &server.role("registry.push"), org).await;
        Pusher { subject, identity }
    }

    async fn client(&self, server: &TestServer) -> Client {
        let actor: Actor = server.sign_in(self.subject, self.subject, &self.identity).await;
        Client::of(server, &actor).await
    }
}

async fn expire(server: &TestServer) -> i64 {
    server.server().parts().distribution.expire_uploads().await.expect("uploads expire");
    number(server, "SELECT count(*) FROM uploads").await
}

async fn open_uploads_count_against_each_quota_above_them(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (a, b) = (format!("{org}/team/a"), format!("{org}/team/b"));
    quota(server, "groups", &org, 100).await;
    client.blob(&a, &[1; 20]).await;
    let (first, second) = (client.begin(&a).await, client.begin(&b).await);
    assert_eq!(patch(&client, &first, &[2; 50]).await.status, 202);
    let refused = patch(&client, &second, &[3; 31]).await;
    assert_eq!(code(&refused, 403), "DENIED");
    let text = refused.text();
    assert!(text.contains(&format!("the blobs of {org} may have 100 bytes")) && text.contains("30 are left"), "{text}");
    assert_eq!(patch(&client, &second, &[3; 30]).await.status, 202, "what is left");
    assert_eq!(code(&patch(&client, &first, &[2; 1]).await, 403), "DENIED", "nothing is left");
    end(&client, &first).await;
    assert_eq!(patch(&client, &second, &[3; 50]).await.status, 202, "what a cancelled upload had taken");
    let whole = [3; 80];
    let finished = client.send(&format!("PUT {second}?digest={}", digest(&whole)), &[], b"").await;
    assert_eq!(finished.status, 201, "{}", finished.text());
    let repeated = format!("POST /v2/{a}/blobs/uploads/?digest={}", digest(&whole));
    assert_eq!(client.send(&repeated, &[], &whole).await.status, 201, "a blob that is there takes no room");
    let more = format!("POST /v2/{a}/blobs/uploads/?digest={}", digest(b"x"));
    assert_eq!(code(&client.send(&more, &[], b"x").await, 403), "DENIED");
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 0);
}

async fn a_body_counts_while_it_arrives_and_what_broke_off_counts_no_more(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    quota(server, "groups", &org, 40 * MIB).await;
    let (first, second) = (client.begin(&name).await, client.begin(&name).await);
    let what = format!("PATCH {first}");
    let mut slow = Slow::begin(server, &client, &what, "application/octet-stream", 39 * MIB).await;
    slow.send(&vec![1; 20 * MIB]).await;
    let noted = async || number(server, "SELECT max(bytes) FROM uploads").await;
    until("the growth is noted", async || noted().await >= 16 * MIB as i64).await;
    assert_eq!(code(&patch(&client, &second, &vec![2; 25 * MIB]).await, 403), "DENIED");
    drop(slow);
    until("the broken body is taken back", async || patch(&client, &first, b"").await.status == 202).await;
    assert_eq!(patch(&client, &first, b"x").await.status, 202);
    assert_eq!(noted().await, 1);
    assert_eq!(patch(&client, &second, &vec![2; 25 * MIB]).await.status, 202);
}

pub(crate) async fn until(what: &str, mut ask: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if ask().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not come to pass");
}

async fn an_identity_and_an_organization_have_so_many_uploads_open(engine: Engine) {
    let few = |options: &mut Options| {
        (options.uploads_per_identity, options.uploads_per_organization) = (Some(2), Some(3));
    };
    on_engine_with(engine, few, async |server| {
        let (org, client) = pusher(server, "acme").await;
        let (elsewhere, stranger) = pusher(server, "elsewhere").await;
        let begin =
            async |client: &Client, name: &str| client.send(&format!("POST /v2/{name}/blobs/uploads/"), &[], b"").await;
        let first = client.begin(&format!("{org}/a")).await;
        client.begin(&format!("{org}/b")).await;
        let refused = begin(&client, &format!("{org}/c")).await;
        assert_eq!(code(&refused, 429), "TOOMANYREQUESTS");
        assert!(refused.text().contains("this identity has 2 uploads open"), "{}", refused.text());
        let beside = crate::support::client(server, "registry.push", &org).await;
        beside.begin(&format!("{org}/a")).await;
        let refused = begin(&beside, &format!("{org}/a")).await;
        assert_eq!(code(&refused, 429), "TOOMANYREQUESTS");
        assert!(refused.text().contains("this organization has 3 uploads open"), "{}", refused.text());
        assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 3, "what was refused is not open");
        assert_eq!(number(server, "SELECT count(*) FROM repos").await, 2, "and makes no repository");
        assert_eq!(begin(&stranger, &format!("{elsewhere}/a")).await.status, 202, "others have their own");
        end(&client, &first).await;
        assert_eq!(begin(&beside, &format!("{org}/a")).await.status, 202);
        let whole = format!("POST /v2/{org}/a/blobs/uploads/?digest={}", digest(b"x"));
        assert_eq!(code(&client.send(&whole, &[], b"x").await, 429), "TOOMANYREQUESTS", "also in one request");
    })
    .await;
}

async fn clients_that_go_away_at_once_have_no_more_uploads_open_than_others(engine: Engine) {
    let few = |options: &mut Options| options.uploads_per_identity = Some(2);
    on_engine_with(engine, few, async |server| {
        let (org, client) = pusher(server, "acme").await;
        let name = format!("{org}/app");
        // As many as may be open: of uploads that begin at the same time, each may count the others and be refused.
        let open = [client.begin(&name).await, client.begin(&name).await];
        let what = format!("POST /v2/{name}/blobs/uploads/");
        for _ in 0..40 {
            drop(Slow::begin(server, &client, &what, "application/octet-stream", 0).await);
        }
        assert_eq!(code(&client.send(&what, &[], b"").await, 429), "TOOMANYREQUESTS");
        let count = async || number(server, "SELECT count(*) FROM uploads").await;
        until("the limit is kept", async || count().await == 2).await;
        for at in open {
            end(&client, &at).await;
        }
    })
    .await;
}

async fn an_upload_ends_when_it_has_not_grown_for_a_while(server: &TestServer) {
    let org = server.organization("acme").await;
    let pusher = Pusher::of(server, &org, "pusher").await;
    let name = format!("{org}/app");
    let client = pusher.client(server).await;
    let (idle, growing) = (client.begin(&name).await, client.begin(&name).await);
    for round in 1..=3 {
        // Just short of the time that an upload may rest.
        server.clock().advance(HOUR.saturating_sub(Duration::from_secs(1)));
        assert!(expire(server).await >= 1);
        let client = pusher.client(server).await;
        let grown = patch(&client, &growing, b"x").await;
        assert_eq!((grown.status, header(&grown, "range")), (202, format!("0-{}", round - 1)), "{}", grown.text());
    }
    let client = pusher.client(server).await;
    assert_eq!(number(server, "SELECT count(*) FROM uploads").await, 1);
    assert_eq!(code(&patch(&client, &idle, b"x").await, 404), "BLOB_UPLOAD_UNKNOWN", "it rested for hours");
    let finished = client.send(&format!("PUT {growing}?digest={}", digest(b"xxx")), &[], b"").await;
    assert_eq!(finished.status, 201, "{}", finished.text());
    let rested = client.begin(&name).await;
    assert_eq!(patch(&client, &rested, b"acknowledged").await.status, 202);
    server.clock().advance(HOUR + 15 * MINUTE);
    assert_eq!(expire(server).await, 0);
    assert!(server.server().parts().content.uploads().await.unwrap().is_empty(), "its bytes went too");
    let client = pusher.client(server).await;
    assert_eq!(code(&client.get(&rested).await, 404), "BLOB_UPLOAD_UNKNOWN");
}

async fn one_long_body_keeps_its_upload_and_one_after_the_end_is_not_acknowledged(engine: Engine) {
    let short = |options: &mut Options| options.upload_idle = Some("5m".into());
    on_engine_with(engine, short, async |server| {
        let (org, client) = pusher(server, "acme").await;
        let name = format!("{org}/app");
        let at = client.begin(&name).await;
        let what = format!("PATCH {at}");
        let begin = async |what: &str| Slow::begin(server, &client, what, "application/octet-stream", 10).await;
        let has = async |range: &str| header(&client.get(&at).await, "range") == range;
        let mut slow = begin(&what).await;
        slow.send(b"x").await;
        for round in 1..9 {
            slow.send(b"x").await;
            until("the part arrives", async || has(&format!("0-{round}")).await).await;
            server.clock().advance(2 * MINUTE);
            assert_eq!(expire(server).await, 1, "it grows");
        }
        slow.send(b"x").await;
        let answer = slow.answer().await;
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");

        // Silent for too long: the upload is gone, and the rest of the body is not taken for good.
        let mut late = begin(&what).await;
        late.send(b"x").await;
        until("the part arrives", async || has("0-10").await).await;
        server.clock().advance(10 * MINUTE);
        assert_eq!(expire(server).await, 0);
        late.send(&[b'x'; 9]).await;
        let answer = late.answer().await;
        assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("BLOB_UPLOAD_UNKNOWN"), "{answer}");
    })
    .await;
}

each_engine!(
    multi_thread:
    open_uploads_count_against_each_quota_above_them,
    a_body_counts_while_it_arrives_and_what_broke_off_counts_no_more,
    an_upload_ends_when_it_has_not_grown_for_a_while
);

by_engine!(
    multi_thread:
    an_identity_and_an_organization_have_so_many_uploads_open,
    clients_that_go_away_at_once_have_no_more_uploads_open_than_others,
    one_long_body_keeps_its_upload_and_one_after_the_end_is_not_acknowledged
);
