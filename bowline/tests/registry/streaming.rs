//! Blobs of an upstream reach clients while they arrive: one request for all, and never a wrong byte at the end.

use std::time::Duration;

use bowline_core::{Clock as _, Error};
use bowline_store::Value as Sql;
use bowline_testkit::{Engine, TestServer, by_engine, each_engine};

use crate::hostile::{Conduct, Hostile, LAYER_BYTES, Pull, mirrored};
use crate::open_uploads::until;
use crate::support::*;

const HELD: usize = 64 * 1024;
const HALF: usize = LAYER_BYTES / 2;

async fn bytes_reach_clients_as_they_arrive(server: &TestServer) {
    let upstream = Hostile::start().await;
    let org = server.organization("acme").await;
    let (layer, reader) = mirrored(server, &upstream, &org).await;
    let address = server.server().address();
    upstream.opens_to(HALF);
    let get = format!("GET {layer}");
    let mut first = Pull::begin(server, address, &reader, &get, "").await;
    first.reach(HALF).await;
    assert_eq!((first.status(), first.header("content-length")), (200, Some(&*LAYER_BYTES.to_string())));
    assert_eq!(first.header("docker-content-digest"), Some(&*upstream.layer_digest()));
    // Others join where they want, and the one that began it goes away.
    let mut second = Pull::begin(server, address, &reader, &get, "").await;
    let mut part = Pull::begin(server, address, &reader, &get, "range: bytes=1000-1000999\r\n").await;
    drop(first);
    second.reach(HALF).await;
    part.reach(1_000_000 - HELD).await;
    assert_eq!(
        (part.status(), part.header("content-range")),
        (206, Some(&*format!("bytes 1000-1000999/{LAYER_BYTES}")))
    );
    let head = tokio::spawn({
        let (reader, layer) = (reader.clone(), layer.clone());
        async move { reader.send(&format!("HEAD {layer}"), &[], &[]).await }
    });
    let fresh = reader.send(&get, &[("if-none-match", &format!("\"{}\"", upstream.layer_digest()))], &[]).await;
    assert_eq!(fresh.status, 304, "a client that has it needs no bytes");
    upstream.opens_to(LAYER_BYTES - 1);
    second.reach(LAYER_BYTES - HELD - 1).await;
    assert!(!head.is_finished() && number(server, "SELECT count(*) FROM blobs").await == 0);
    upstream.opens_to(usize::MAX);
    assert!(second.is_complete().await && part.is_complete().await);
    assert!(second.body == upstream.layer && part.body == upstream.layer[1000..1_001_000]);
    assert_eq!(head.await.unwrap().status, 200, "a push may name what a HEAD has found");
    assert_eq!((upstream.asked(), number(server, "SELECT count(*) FROM uploads").await), (1, 0));
    assert_eq!(reader.get(&layer).await.body, upstream.layer);
    assert_eq!((upstream.asked(), number(server, "SELECT count(*) FROM blobs").await), (1, 1));
}

async fn a_slow_client_holds_no_one_up(server: &TestServer) {
    let upstream = Hostile::start().await;
    let org = server.organization("acme").await;
    let (layer, reader) = mirrored(server, &upstream, &org).await;
    let (address, get) = (server.server().address(), format!("GET {layer}"));
    let mut slow = Pull::begin(server, address, &reader, &get, "").await;
    let whole = reader.get(&layer).await;
    assert!(whole.body == upstream.layer, "another client does not wait for it");
    assert!(slow.is_complete().await && slow.body == upstream.layer);
    assert_eq!(upstream.asked(), 1);
}

async fn no_lie_is_completed_or_stored(server: &TestServer) {
    let upstream = Hostile::start().await;
    let org = server.organization("acme").await;
    let (layer, reader) = mirrored(server, &upstream, &org).await;
    let (address, get) = (server.server().address(), format!("GET {layer}"));
    let lies = [
        Conduct::WrongByte(0),
        Conduct::WrongByte(LAYER_BYTES - 1),
        Conduct::Length(LAYER_BYTES - 1),
        Conduct::Length(LAYER_BYTES + 1),
        Conduct::Length(10),
        Conduct::BreaksOff(HALF),
        Conduct::BreaksOff(LAYER_BYTES - 1),
    ];
    for (round, lie) in lies.into_iter().enumerate() {
        upstream.behaves(lie);
        upstream.opens_to(10);
        let begun = async || Pull::begin(server, address, &reader, &get, "").await;
        let small = async || Pull::begin(server, address, &reader, &get, "range: bytes=5-9\r\n").await;
        let opened = async {
            until("it is asked", async || upstream.asked() > round).await;
            upstream.opens_to(usize::MAX);
        };
        let (mut one, mut other, few, ()) = tokio::join!(begun(), begun(), small(), opened);
        for pull in [&mut one, &mut other] {
            assert!(pull.status() == 502 || !pull.is_complete().await, "{lie:?}: {}", pull.head);
        }
        assert!((400..600).contains(&few.status()), "{lie:?}: {}", few.head);
        assert_eq!(upstream.asked(), round + 1, "{lie:?}: one request for all of them");
        // Nor is it asked again at once.
        let refused = reader.get(&layer).await;
        assert_eq!(code(&refused, 502), "BLOB_UNKNOWN", "{lie:?}");
        assert!(refused.text().contains("upstream"), "{}", refused.text());
        assert_eq!(upstream.asked(), round + 1, "{lie:?}");
        assert_eq!(number(server, "SELECT count(*) FROM blobs").await, 0, "{lie:?}");
        until("nothing is left", async || number(server, "SELECT count(*) FROM uploads").await == 0).await;
        server.clock().advance(Duration::from_secs(11));
    }
    upstream.behaves(Conduct::Unannounced);
    assert!(reader.get(&layer).await.body == upstream.layer, "what holds is served all the same");
}

async fn what_an_upstream_refuses_is_refused_with_its_reason(server: &TestServer) {
    let upstream = Hostile::start().await;
    let org = server.organization("acme").await;
    let (layer, reader) = mirrored(server, &upstream, &org).await;
    for (conduct, status, name, text) in [
        (Conduct::Status(429, Some(20)), 429, "TOOMANYREQUESTS", "refused too many requests"),
        (Conduct::Status(503, None), 502, "BLOB_UNKNOWN", "status 503"),
        (Conduct::Status(404, None), 404, "BLOB_UNKNOWN", "does not have it either"),
        (Conduct::Redirects, 502, "BLOB_UNKNOWN", "not allowed"),
        (Conduct::Announces(LAYER_BYTES + 1), 502, "BLOB_UNKNOWN", "more bytes"),
        (Conduct::Announces(LAYER_BYTES - 1), 502, "BLOB_UNKNOWN", "fewer bytes"),
    ] {
        upstream.behaves(conduct);
        let before = upstream.asked();
        for _ in 0..2 {
            let refused = reader.get(&layer).await;
            assert_eq!(code(&refused, status), name, "{conduct:?}");
            assert!(refused.text().contains(text), "{conduct:?}: {}", refused.text());
            assert_eq!(header(&refused, "retry-after"), if status == 429 { "20" } else { "" });
        }
        assert_eq!(upstream.asked(), before + 1, "{conduct:?}");
        server.clock().advance(Duration::from_secs(61));
    }
}

/// The clients of two servers of a database are one request, also while the upstream is slow.
async fn a_hundred_clients_of_two_servers_are_one_request(engine: Engine) {
    let server = TestServer::start(engine).await;
    let second = if engine == Engine::Postgres { Some(server.beside().await) } else { None };
    let upstream = Hostile::start().await;
    let org = server.organization("acme").await;
    let (layer, reader) = mirrored(&server, &upstream, &org).await;
    let addresses = [server.server().address(), second.as_ref().unwrap_or(server.server()).address()];
    let get = format!("GET {layer}");

    // First it breaks off, which all of them notice.
    for (conduct, is_good) in
        [(Conduct::BreaksOff(HALF), false), (Conduct::WrongByte(HALF), false), (Conduct::Honest, true)]
    {
        upstream.behaves(conduct);
        upstream.opens_to(HALF);
        let before = upstream.asked();
        let pulls = (0..100).map(|n| {
            let (server, reader, get) = (&server, &reader, &get);
            async move {
                let mut pull = Pull::begin(server, addresses[n % 2], reader, get, "").await;
                let is_complete = pull.is_complete().await;
                (pull.status(), is_complete, pull.body)
            }
        });
        let opened = async {
            until("it is asked", async || upstream.asked() > before).await;
            until("both servers have clients", async || {
                let others = second.as_ref().map_or(1, |second| second.parts().distribution.fetches_under_way());
                others == 1 && server.server().parts().distribution.fetches_under_way() == 1
            })
            .await;
            for at in (HALF..LAYER_BYTES).step_by(LAYER_BYTES / 8) {
                upstream.opens_to(at);
                tokio::task::yield_now().await;
            }
            upstream.opens_to(usize::MAX);
        };
        let (pulled, ()) = tokio::join!(futures_util::future::join_all(pulls), opened);
        for (status, is_complete, body) in pulled {
            if is_good {
                assert!(status == 200 && is_complete && body == upstream.layer, "{conduct:?}: {status}");
            } else {
                assert!(status >= 500 || !is_complete, "{conduct:?}: {status}");
            }
        }
        assert_eq!(upstream.asked(), before + 1, "{conduct:?}");
        server.clock().advance(Duration::from_secs(11));
    }
    assert_eq!(number(&server, "SELECT count(*) FROM blobs").await, 1);
    if let Some(second) = second {
        second.stop().await;
    }
    server.stop().await;
}

/// A server that dies with a fetch under way leaves it to the others.
async fn another_server_takes_over(engine: Engine) {
    if engine == Engine::Sqlite {
        // An embedded database has one server.
        return;
    }
    let server = TestServer::start(engine).await;
    let upstream = Hostile::start().await;
    let org = server.organization("acme").await;
    let (layer, reader) = mirrored(&server, &upstream, &org).await;
    hold_lease(&server, &layer).await;
    let waiting = tokio::spawn({
        let (reader, layer) = (reader.clone(), layer.clone());
        async move { reader.get(&layer).await }
    });
    until("it waits", async || server.server().parts().distribution.fetches_under_way() == 1).await;
    assert_eq!(upstream.asked(), 0);
    server.clock().advance(Duration::from_secs(16));
    assert!(waiting.await.unwrap().body == upstream.layer);
    assert_eq!(upstream.asked(), 1);
    server.stop().await;
}

/// What a server leaves that dies with a fetch of this layer under way.
async fn hold_lease(server: &TestServer, layer: &str) {
    let digest = layer.rsplit('/').next().unwrap();
    let name = format!("fetch {} {digest}", repo_uid(server, "app").await);
    let end = server.clock().now() + 15_000_000;
    let written = server.server().parts().storage.db.write(move |tx| {
        let name = name.clone();
        Box::pin(async move {
            let sql = "INSERT INTO leases (name, holder, until) VALUES ($1, 'dead', $2)";
            tx.execute(sql, &[Sql::from(&name), Sql::Int(end)]).await.map_err(Error::from)
        })
    });
    written.await.expect("the database takes it");
}

each_engine!(
    multi_thread:
    bytes_reach_clients_as_they_arrive,
    a_slow_client_holds_no_one_up,
    no_lie_is_completed_or_stored,
    what_an_upstream_refuses_is_refused_with_its_reason
);

by_engine!(multi_thread: a_hundred_clients_of_two_servers_are_one_request, another_server_takes_over);
