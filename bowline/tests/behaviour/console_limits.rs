//! What one page of the web console may take: time, bytes, its turn among other pages, and the rate of its caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_testkit::{Browser, Engine, TestServer, each_engine, engines, on_engine_with};
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::console::{COOKIE, headers, is_signed_in};
use crate::console_support::{browser_of_operator, enter_at, page, with_provider};
use crate::contents::{Manifest, digest, store};
use crate::deliveries::until;
use crate::support::number;

/// Locks the table that the page of upstreams reads, so that its call waits until the returned signal is given. The
/// embedded engine reads on the thread of the caller, and nothing makes it wait.
async fn hold_upstreams(server: &TestServer) -> Arc<Notify> {
    let (release, is_held) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (gate, held, db) = (release.clone(), is_held.clone(), server.server().parts().storage.db.clone());
    tokio::spawn(async move {
        let locked = db.write(move |tx| {
            let (gate, held) = (gate.clone(), held.clone());
            Box::pin(async move {
                tx.execute("LOCK TABLE upstream_syncs IN ACCESS EXCLUSIVE MODE", &[]).await?;
                held.store(true, Ordering::SeqCst);
                gate.notified().await;
                Ok::<_, bowline_core::Error>(())
            })
        });
        locked.await.expect("the lock ends");
    });
    until("the lock", async || is_held.load(Ordering::SeqCst)).await;
    release
}

/// Calls that wait for the table.
async fn waiting(server: &TestServer) -> i64 {
    let sql = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'upstream_syncs'::regclass
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    number(server, sql).await
}

/// Asks for the same page so many times at once.
fn ask(browser: &Arc<Browser>, path: &str, times: usize) -> Vec<tokio::task::JoinHandle<u16>> {
    let one = |_| {
        let (browser, path) = (browser.clone(), path.to_owned());
        tokio::spawn(async move { browser.get(&path).await.status })
    };
    (0..times).map(one).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_takes_too_long_is_given_up() {
    on_engine_with(
        Engine::Postgres,
        |options| options.request_timeout = Some("1s".into()),
        async |server| {
            let org = server.organization("acme").await;
            let browser = browser_of_operator(server).await;
            let path = format!("/console/upstreams?in={org}");
            page(&browser, &path).await;
            let release = hold_upstreams(server).await;
            let reply = browser.get(&path).await;
            assert_eq!((reply.status, reply.header("retry-after")), (504, Some("1")), "{}", reply.text());
            assert!(reply.text().contains("the page took longer than 1 s"), "{}", reply.text());
            release.notify_one();
            page(&browser, &path).await;
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_four_pages_made_at_a_time() {
    on_engine_with(
        Engine::Postgres,
        |_| {},
        async |server| {
            with_provider(server).await;
            let org = server.organization("acme").await;
            let path = format!("/console/upstreams?in={org}");
            let (one, other) =
                (Arc::new(browser_of_operator(server).await), Arc::new(browser_of_operator_again(server).await));
            let release = hold_upstreams(server).await;
            let first = ask(&one, &path, 6);
            until("four calls", async || waiting(server).await == 4).await;
            let second = ask(&other, &path, 1);
            until("the call of another session", async || waiting(server).await >= 5).await;
            assert_eq!(waiting(server).await, 5, "two pages wait for their turn");
            // Those that do not even fit into the queue are told so.
            let statuses = ask(&one, &path, 40);
            until("refusals", async || statuses.iter().filter(|one| one.is_finished()).count() >= 14).await;
            assert_eq!(waiting(server).await, 5);
            release.notify_one();
            for made in first.into_iter().chain(second) {
                assert_eq!(made.await.expect("a page"), 200);
            }
            let mut refused = 0;
            for made in statuses {
                refused += usize::from(made.await.expect("a page") == 429);
            }
            assert_eq!(refused, 14, "32 are made or wait: 6 and 26 of these");
        },
    )
    .await;
}

/// Another session of the operator, by a link of its own.
async fn browser_of_operator_again(server: &TestServer) -> Browser {
    let browser = server.browser();
    let code = crate::console_support::operator_link(server, 11).await;
    browser.post("/oauth/operator", &[("code", &code), ("answer", "console")]).await;
    assert!(is_signed_in(&browser).await);
    browser
}

async fn a_page_that_is_too_large_names_its_calls(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    // Each quotation mark takes six bytes of a page, and each ampersand five.
    let large = |number: usize| (format!("{number:03}{}", "\"".repeat(1000)), Value::from("&".repeat(1000)));
    let run = Value::Object((0..200).map(large).collect::<Map<_, _>>()).to_string();
    for (character, run) in [('1', run.as_str()), ('2', "{}")] {
        let config = Some(("amd64", run));
        store(server, &repo, &Manifest { digest: &digest(character), shape: 1, size: 1, names: &[], config }).await;
    }
    let browser = browser_of_operator(server).await;
    let path = format!("/console/compare?repo={repo}&from={}&to={}", digest('1'), digest('2'));
    let reply = browser.get(&path).await;
    assert_eq!(reply.status, 400, "{}", reply.text().len());
    let text = reply.text();
    assert!(text.contains("This page would have ") && text.contains("<code>curl "), "{text}");
    assert!(text.len() < 64 << 10, "{}", text.len());
}

async fn heads_are_answered_like_pages(server: &TestServer) {
    let browser = browser_of_operator(server).await;
    let cookie = format!("{COOKIE}={}", browser.cookies()[COOKIE]);
    let head = async |path: &str, sent: &[(&'static str, &str)]| {
        server.anonymous().rest_with("HEAD", path, headers(sent), Vec::new()).await
    };
    let shown = head("/console/me", &[("cookie", &cookie)]).await;
    assert_eq!((shown.status, shown.text().len()), (200, 0));
    assert!(shown.header("content-security-policy").is_some() && shown.header("cache-control") == Some("no-store"));
    assert_eq!(head("/console/me", &[]).await.status, 303, "without a session");
    assert_eq!(head("/console/nothing", &[("cookie", &cookie)]).await.status, 404);
    server.clock().advance(Duration::from_secs(9 * 60));
    head("/console/me", &[("cookie", &cookie), ("sec-fetch-site", "cross-site")]).await;
    server.clock().advance(Duration::from_secs(2 * 60));
    assert!(!is_signed_in(&browser).await, "one that another site asks for keeps no session from ending");
}

/// A form without a session is read for as long as a page may take, and so many bytes of one network are in memory.
#[tokio::test(flavor = "multi_thread")]
async fn forms_that_do_not_arrive_hold_no_memory() {
    let server = TestServer::start_with(engines()[0], |options| options.request_timeout = Some("2s".into())).await;
    with_provider(&server).await;
    let browser = server.browser();
    enter_at(&server, &browser, "ada", "/console/").await;
    let cookie = format!("cookie: {COOKIE}={}\r\n", browser.cookies()[COOKIE]);
    // Six that begin to arrive, while others hold what they may: those without a session do not take it from this one.
    let (of_session, of_network) =
        tokio::join!(unfinished(&server, &cookie, 700_000), unfinished(&server, "", 700_000));
    let statuses = |answers: &[String]| -> Vec<String> {
        let mut statuses: Vec<String> = answers.iter().map(|answer| answer[9..12].to_owned()).collect();
        statuses.sort();
        statuses
    };
    assert_eq!(statuses(&of_session), ["429", "504", "504", "504", "504", "504"], "five of them fit into 4 MiB");
    assert_eq!(statuses(&of_network), ["429", "429", "429", "429", "429", "504"], "one of them fits into 1 MiB");
    let small = unfinished(&server, "", 60_000).await;
    assert!(statuses(&small).iter().all(|status| status == "504"), "{small:?}");
    let refused = of_network.iter().find(|answer| answer[9..].starts_with("429")).expect("a refusal");
    for part in
        ["content-security-policy:", "x-content-type-options: nosniff", "no-store", "text/html", "retry-after: 1"]
    {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    server.stop().await;
}

/// The beginnings of the responses to six forms of so many bytes, of which only the first ones arrive.
async fn unfinished(server: &TestServer, cookie: &str, bytes: usize) -> Vec<String> {
    let address = server.server().address();
    let head = format!(
        "POST /console/method HTTP/1.1\r\nhost: {address}\r\nsec-fetch-site: same-origin\r\n{cookie}\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {bytes}\r\n\r\nname="
    );
    let answers = (0..6).map(|_| async {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("the beginning is sent");
        let mut buffer = [0; 1200];
        let read = tokio::time::timeout(Duration::from_secs(30), stream.read_exact(&mut buffer)).await;
        read.expect("a response").expect("a head");
        String::from_utf8_lossy(&buffer).into_owned()
    });
    futures_util::future::join_all(answers).await
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_and_requests_of_other_sites_are_counted() {
    let server = TestServer::start_with(engines()[0], |options| {
        options.rate_limit_address = Some(20);
        options.rate_limit_principal = Some(1);
    })
    .await;
    with_provider(&server).await;
    let browser = server.browser();
    enter_at(&server, &browser, "ada", "/console/").await;
    let cookie = format!("{COOKIE}={}", browser.cookies()[COOKIE]);
    let status = async |sent: &[(&'static str, &str)]| {
        server.anonymous().rest_with("HEAD", "/console/why", headers(sent), Vec::new()).await.status
    };
    let limited_after = async |sent: &[(&'static str, &str)], before: u16| {
        for _ in 0..5000 {
            match status(sent).await {
                429 => return,
                other => assert_eq!(other, before),
            }
        }
        panic!("{sent:?} is never limited");
    };
    let foreign = [("cookie", cookie.as_str()), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
    limited_after(&foreign, 403).await;
    assert_eq!(status(&[("cookie", &cookie)]).await, 200, "they are none of the caller's");
    limited_after(&[("cookie", &cookie)], 200).await;
    server.stop().await;
}

each_engine!(multi_thread: a_page_that_is_too_large_names_its_calls, heads_are_answered_like_pages);
