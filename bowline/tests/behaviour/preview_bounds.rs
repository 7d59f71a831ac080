//! Previews and the one writer: what a client gives up stays counted until it has run.

use std::time::Duration;

use bowline_contract::Method as _;
use bowline_contract::bowline::preview::v1::PreviewRequest;
use bowline_contract::bowline::preview::v1::rpc::previews::Preview;
use bowline_contract::v2::iam::rpc::groups_service::{CreateGroup, ListGroups};
use bowline_contract::v2::iam::{CreateGroupRequest, Group};
use bowline_pipeline::Call;
use bowline_store::Load;
use bowline_testkit::{Actor, Engine, TestServer, each_engine};
use prost::Message as _;
use serde_json::json;

use crate::previews::previewing;
use crate::support::{Refusal, call, execute, number, passed_on};

/// Messages that wait for the writer.
fn waiting(server: &TestServer) -> u64 {
    match server.server().parts().storage.db.load() {
        Load::Sqlite(load) => load.waiting,
        Load::Postgres(_) => 0,
    }
}

/// A preview of a new group, as a transport passes it on.
fn preview(server: &TestServer, actor: &Actor, parent: &str) -> Call {
    let group = Group { name: "previewed".into(), ..Group::default() };
    let request = CreateGroupRequest { parent: parent.into(), group: Some(group) };
    let type_url = "type.googleapis.com/chainguard.platform.iam.v2.CreateGroupRequest".to_owned();
    let request = prost_types::Any { type_url, value: request.encode_to_vec() };
    let request = PreviewRequest { method: CreateGroup::FULL_NAME.into(), request: Some(request) };
    passed_on::<Preview>(server, actor, &request)
}

/// On PostgreSQL no writer is shared.
#[tokio::test]
async fn previews_that_clients_give_up_do_not_pile_up_before_the_writer_of_sqlite() {
    let server = &TestServer::start(Engine::Sqlite).await;
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let pipeline = &server.server().parts().pipeline;
    assert!(pipeline.dispatch(preview(server, &operator, &org)).await.result.is_ok());

    let release = server.hold_writer().await;
    let before = waiting(server);
    for _ in 0..24 {
        let call = pipeline.dispatch(preview(server, &operator, &org));
        assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err(), "a held writer answers nothing");
    }
    // Two at once; besides them wait rounds of the background, each of which waits for its end.
    let queued = waiting(server) - before;
    assert!((2..12).contains(&queued), "{queued} messages wait for the writer after 24 previews");

    let queued = pipeline.dispatch(preview(server, &operator, &org));
    tokio::pin!(queued);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut queued).await.is_err());
    release.send(()).expect("the writer waits");
    assert!(queued.await.result.is_ok(), "their permits came back with the ends of their dry runs");
}

async fn the_access_line_of_a_preview_names_the_previewed_method(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let pipeline = &server.server().parts().pipeline;
    let outcome = pipeline.dispatch(preview(server, &operator, &org)).await;
    assert_eq!(outcome.previewed, CreateGroup::FULL_NAME);
    // What callers send as a name gets into no log unless it is one.
    let named = PreviewRequest { method: "x\nmethod=forged".into(), request: None };
    let call = Call { payload: named.encode_to_vec().into(), ..preview(server, &operator, &org) };
    let outcome = pipeline.dispatch(call).await;
    assert_eq!((outcome.result.is_err(), outcome.previewed.as_str()), (true, ""));
    let list = pipeline.contract.by_full_name(ListGroups::FULL_NAME).expect("a method").index;
    let call = Call { method: list, payload: bytes::Bytes::new(), ..preview(server, &operator, &org) };
    assert_eq!(pipeline.dispatch(call).await.previewed, "");
}

/// More rows than a preview may read and change.
const MANY: i64 = 60_000;

async fn a_preview_of_too_many_rows_says_so_and_changes_nothing(server: &TestServer) {
    let org = server.organization("acme").await;
    let identity = server.identity(&org, "robot").await;
    let many = "INSERT INTO role_bindings (uid, parent, org, identity, role, created_at)
                WITH RECURSIVE up(n) AS (SELECT 100000 UNION ALL SELECT n + 1 FROM up WHERE n < 159999)
                SELECT $1 || '/0000000000' || n || '/0000000000' || n, $1 || '/0000000000' || n, $1, $2, $3, 0 FROM up";
    execute(server, many, &[&org, &identity, &server.role("viewer")]).await;
    let method = "chainguard.platform.iam.v2.IdentitiesService.DeleteIdentity";
    let body = previewing(server, method, json!({ "uid": identity }));
    let operator = server.operator().await;
    let reply = call(&operator, "POST /preview/v1:preview", body).await;
    let refusal = Refusal(reply.json());
    let gave_way = reply.status == 503 && matches!(server.server().parts().storage.db.load(), Load::Sqlite(_));
    if gave_way {
        // The background writes before a preview of SQLite has come to so many rows.
        assert!(refusal.message().contains("other writes left the preview too little time"), "{refusal:?}");
    } else {
        let violation = &refusal.detail("PreconditionFailure")["violations"][0];
        assert_eq!((reply.status, &violation["type"]), (400, &json!("PREVIEW_TOO_LARGE")), "{refusal:?}");
    }
    // Of the rows or of the time; with the rows so far in all cases.
    assert!(refusal.message().contains("rows"), "{refusal:?}");
    assert_eq!(number(server, "SELECT count(*) FROM role_bindings").await, MANY);
    assert_eq!(number(server, "SELECT count(*) FROM identities").await, 1);
}

each_engine!(
    a_preview_of_too_many_rows_says_so_and_changes_nothing,
    the_access_line_of_a_preview_names_the_previewed_method,
);
