//! Mail: who gets it, what it says, and what becomes of it while the relay is away.

use std::time::Duration;

use bowline_testkit::{MailSink, TestServer};
use serde_json::json;

use crate::support::{log, machine, number, ok, person};

async fn with_sink(test: impl AsyncFn(&TestServer, &MailSink)) {
    log();
    // A relay of its own for each engine: what one server sends must not be counted for the other.
    for engine in bowline_testkit::engines() {
        let relay = MailSink::start().await;
        let server = TestServer::start_with(engine, |options| {
            options.smtp_url = Some(relay.url());
            options.mail_from = Some("Bowline <bowline@server.example>".into());
        })
        .await;
        test(&server, &relay).await;
        server.stop().await;
    }
}

async fn asked(server: &TestServer, name: &str) -> String {
    let body = json!({ "name": "acme.example", "verified": true, "kind": "ORG_KIND_CUSTOMER" });
    let operator = server.operator().await;
    let org = ok(&operator, "POST /iam/v2/groups", body).await["uid"].as_str().expect("a uid").to_owned();
    let owner = person(server, "owner", "owner@acme.example").await;
    server.bind(&owner.uid, &server.role("owner"), &org).await;
    // Neither a viewer, nor an owner of a group in it, nor a machine, nor an owner without an address gets
    // mail.
    let team = server.group(&org, "team").await;
    for (subject, email, role, place) in [
        ("viewer", "viewer@acme.example", "viewer", &org),
        ("lead", "lead@acme.example", "owner", &team),
        ("silent", "", "owner", &org),
    ] {
        let member = person(server, subject, email).await;
        server.bind(&member.uid, &server.role(role), place).await;
    }
    let robot = machine(server, &org, "robot").await;
    server.bind(&robot.uid, &server.role("owner"), &org).await;
    let me = person(server, name, "me@acme.example").await;
    ok(&me.actor, &format!("POST /iam/v2/groups/{org}:requestGroupAccess"), json!({})).await;
    org
}

/// The text without the line ends that quoted-printable puts in.
fn unfolded(text: &str) -> String {
    text.replace("=\n", "").replace("=3D", "=")
}

#[tokio::test]
async fn owners_get_a_mail_with_the_requester_and_the_next_step() {
    with_sink(async |server, sink| {
        let org = asked(server, "Zoe O'Neill\r\nBcc: x@evil.example").await;
        let mails = sink.mails(1).await;
        assert_eq!(mails[0].to, ["owner@acme.example"]);
        assert_eq!(mails[0].from, "bowline@server.example");
        let text = unfolded(&mails[0].text);
        let (head, body) = text.split_once("\n\n").expect("headers and a body");
        assert!(head.contains("Subject: Access to acme.example was requested"), "{head}");
        assert!(head.contains("Auto-Submitted: auto-generated"), "{head}");
        assert!(!head.contains("evil"), "{head}");
        assert!(body.contains("me@acme.example") && body.contains("Zoe O'NeillBcc xevilexample"), "{body}");
        assert!(body.contains(&format!("role-bindings create --parent={org} --identity=")), "{body}");
        assert!(body.contains(server.base()), "{body}");
        for _ in 0..100 {
            if number(server, "SELECT count(*) FROM mail_queue").await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("what was sent stays in the queue");
    })
    .await;
}

#[tokio::test]
async fn mail_waits_for_the_relay_and_not_for_ever() {
    with_sink(async |server, sink| {
        sink.refuse(true);
        asked(server, "me").await;
        sink.attempted(1).await;
        server.clock().advance(Duration::from_secs(59));
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(sink.attempts(), 1, "it is left in peace for a minute");
        server.clock().advance(Duration::from_secs(1));
        sink.attempted(2).await;
        server.clock().advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(sink.attempts(), 2, "then for two");
        sink.refuse(false);
        server.clock().advance(Duration::from_secs(60));
        assert_eq!(sink.mails(1).await[0].to, ["owner@acme.example"]);
    })
    .await;
}

#[tokio::test]
async fn after_a_day_mail_is_given_up() {
    with_sink(async |server, sink| {
        sink.refuse(true);
        asked(server, "me").await;
        sink.attempted(1).await;
        assert_eq!(number(server, "SELECT count(*) FROM mail_queue").await, 1);
        server.clock().advance(Duration::from_secs(24 * 3600));
        sink.attempted(2).await;
        for _ in 0..100 {
            if number(server, "SELECT count(*) FROM mail_queue").await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it is still there");
    })
    .await;
}
