//! What a verification of a chain reads at once, and that it waits for its turn before it reads.

use bowline_contract::bowline::audit::v1::VerifyChainRequest;
use bowline_contract::bowline::audit::v1::rpc::audit::VerifyChain;
use bowline_core::Reason;
use bowline_pipeline::Call;
use bowline_store::Engine;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::Value;

use crate::audit_log::numbered;
use crate::support::{call, execute, number, passed_on};

/// Adds rows with snapshots of this size to an organization's history.
async fn add_rows(server: &TestServer, org: &str, rows: usize, bytes: usize) {
    let snapshot = match server.server().parts().storage.db.engine() {
        Engine::Sqlite => format!("zeroblob({bytes})"),
        Engine::Postgres => format!("decode(repeat('00', {bytes}), 'hex')"),
    };
    let sql = format!(
        "INSERT INTO audit (at, org, actor, method, request_id, kind, resource, after_type, after_image)
         SELECT at, org, actor, method, request_id, kind, resource, after_type, {snapshot}
         FROM audit WHERE resource = $1 AND after_type IS NOT NULL ORDER BY id LIMIT 1"
    );
    for _ in 0..rows {
        execute(server, sql.clone().leak(), &[org]).await;
    }
    numbered(server).await;
}

async fn a_part_of_a_chain_has_eight_mebibytes_of_snapshots_at_most(server: &TestServer) {
    let org = server.organization("acme").await;
    let viewer = server.actor("viewer", &org).await;
    numbered(server).await;
    let last = "SELECT max(org_seq) FROM audit WHERE org = (SELECT org FROM audit WHERE method LIKE '%CreateGroup')";
    let small = number(server, last).await;
    add_rows(server, &org, 5, 3_000_000).await;
    add_rows(server, &org, 1, 9_000_000).await;
    let reply = call(&viewer, &format!("GET /audit/v1/chains/{org}:verify"), Value::Null).await;
    let lines: Vec<Value> = reply.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ends: Vec<i64> = lines
        .iter()
        .map(|line| line["sequence"].as_str().and_then(|text| text.parse().ok()).expect("a number"))
        .collect();
    assert_eq!(ends, [2, 4, 5, 6].map(|large| small + large), "{lines:?}");
    let last = lines.last().expect("an end");
    assert_eq!((&last["done"], &last["problem"]), (&Value::Bool(true), &Value::from("")));
}

/// A verification, as a transport passes it on.
fn verification(server: &TestServer, actor: &Actor, request: &VerifyChainRequest) -> Call {
    passed_on::<VerifyChain>(server, actor, request)
}

async fn a_verification_takes_its_turn_before_it_reads(server: &TestServer) {
    let org = server.organization("acme").await;
    let (owner, viewer) = (server.actor("owner", &org).await, server.actor("viewer", &org).await);
    numbered(server).await;
    let pipeline = &server.server().parts().pipeline;
    let whole = VerifyChainRequest { organization: org.clone(), ..VerifyChainRequest::default() };
    let running = pipeline.open_stream(verification(server, &owner, &whole)).await.expect("a stream");
    // Reading this one is refused: a caller that gets this refusal has read without a turn.
    let backwards = VerifyChainRequest { first: 5, last: 3, ..whole.clone() };
    let reason = async || {
        let opened = pipeline.open_stream(verification(server, &owner, &backwards)).await;
        opened.err().expect("a refusal").reason()
    };
    assert_eq!(reason().await, Reason::RateLimited);
    assert!(
        pipeline.open_stream(verification(server, &viewer, &whole)).await.is_ok(),
        "callers do not wait for others"
    );
    let stranger = server.stranger().await;
    let refused = pipeline.open_stream(verification(server, &stranger, &whole)).await.err().expect("a refusal");
    assert_eq!(refused.reason(), Reason::PermissionDenied);
    drop(running);
    assert_eq!(reason().await, Reason::InvalidArgument);
}

each_engine!(a_part_of_a_chain_has_eight_mebibytes_of_snapshots_at_most, a_verification_takes_its_turn_before_it_reads);
