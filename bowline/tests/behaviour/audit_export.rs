//! Export, verification and summary of the audit log.

use bowline_contract::bowline::audit::v1::ExportEntriesRequest;
use bowline_contract::bowline::audit::v1::rpc::audit::ExportEntries;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::deliveries::{create_group, until};
use crate::support::{call, each, execute, ok, rejected};

/// The lines of a stream that ends.
async fn lines(actor: &Actor, path: &str) -> Vec<Value> {
    let reply = call(actor, &format!("GET {path}"), Value::Null).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-ndjson")), "{}", reply.text());
    reply.text().lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// An organization in which that many groups were made, all of whose entries have numbers.
async fn history(server: &TestServer, name: &str, groups: usize) -> String {
    let org = server.organization(name).await;
    let operator = server.operator().await;
    for n in 0..groups {
        create_group(&operator, &org, &format!("group {n}")).await;
    }
    let path = format!("GET /audit/v1/checkpoints?organization={org}");
    until("the numbers", async || {
        ok(&operator, &path, Value::Null).await["sequence"] == json!(format!("{}", groups + 1))
    })
    .await;
    org
}

async fn an_export_has_every_entry_once_and_ends(server: &TestServer) {
    let org = history(server, "acme", 450).await;
    let owner = server.actor("owner", &org).await;
    let path = format!("/audit/v1/entries:export?organization={org}");
    let entries = lines(&owner, &path).await;
    let numbers: Vec<String> = each(&json!(entries), "sequence").into_iter().map(String::from).collect();
    let wanted: Vec<String> = (1..=numbers.len()).map(|n| n.to_string()).collect();
    assert!(numbers.len() >= 451, "{}", numbers.len());
    assert_eq!(numbers, wanted);
    assert_eq!(entries[1]["after"]["content"]["name"], "group 0", "images come along");
    assert_eq!(entries[1]["globalSequence"], "0", "which the operator alone sees");
    let rest = lines(&owner, &format!("{path}&after=450")).await;
    assert_eq!(each(&json!(rest), "sequence")[0], "451");
    let mut stream = owner
        .watch_grpc::<ExportEntries>(ExportEntriesRequest {
            organization: org.clone(),
            after: 449,
            ..Default::default()
        })
        .await;
    let first = stream.message::<bowline_contract::bowline::audit::v1::Entry>().await.expect("an entry");
    assert_eq!(first.sequence, 450);
    let csv = call(&owner, &format!("GET {path}&format=csv"), Value::Null).await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    let text = csv.text();
    assert!(text.starts_with("sequence,global_sequence,organization,time,actor,method,"), "{text:.200}");
    assert!(text.lines().count() > 451 && text.ends_with("\r\n"));
    rejected(&owner, &format!("GET {path}&format=xml"), Value::Null, 400, "INVALID_ARGUMENT").await;
    rejected(&owner, &format!("GET {path}&after=-1"), Value::Null, 400, "INVALID_ARGUMENT").await;
}

async fn an_export_shows_what_the_caller_may_see(server: &TestServer) {
    let org = history(server, "acme", 3).await;
    let team = server.group(&org, "team").await;
    let operator = server.operator().await;
    create_group(&operator, &team, "below").await;
    let narrow = server.actor("viewer", &team).await;
    let path = format!("/audit/v1/entries:export?organization={org}");
    until("their numbers", async || lines(&operator, &path).await.len() >= 7).await;
    let seen = lines(&narrow, &path).await;
    assert!(!seen.is_empty() && each(&json!(seen), "resource").iter().all(|uid| uid.starts_with(&team)), "{seen:?}");
    let outsider = server.actor("owner", &server.organization("other").await).await;
    rejected(&outsider, &format!("GET {path}"), Value::Null, 403, "PERMISSION_DENIED").await;
    rejected(&narrow, "GET /audit/v1/entries:export", Value::Null, 400, "INVALID_ARGUMENT").await;
    assert!(lines(&operator, "/audit/v1/entries:export").await.len() > seen.len(), "the whole server's");
    let hostile = format!("{path}&kind=registry.chainguard.dev/Repo");
    assert_eq!(lines(&narrow, &hostile).await.len(), 0);
}

async fn a_chain_is_verified_in_slices_and_damage_is_named(server: &TestServer) {
    let org = history(server, "acme", 1100).await;
    let viewer = server.actor("viewer", &org).await;
    let path = format!("/audit/v1/chains/{org}:verify");
    let progress = lines(&viewer, &path).await;
    assert!(progress.len() >= 3, "{progress:?}");
    assert_eq!((&progress[0]["sequence"], &progress[0]["done"]), (&json!("500"), &json!(false)));
    let last = progress.last().expect("an end");
    assert_eq!((&last["done"], &last["problem"], &last["sequence"]), (&json!(true), &json!(""), &last["newest"]));
    let checkpoint = ok(&viewer, &format!("GET /audit/v1/checkpoints?organization={org}"), Value::Null).await;
    assert_eq!(last["hash"].as_str().map(str::len), checkpoint["hash"].as_str().map(str::len));
    let part = lines(&viewer, &format!("{path}?first=3&last=7")).await;
    assert_eq!((part.len(), &part[0]["sequence"], &part[0]["done"]), (1, &json!("7"), &json!(true)));
    execute(server, "UPDATE audit SET request_id = 'x' WHERE org = $1 AND org_seq = 700", &[&org]).await;
    let damaged = lines(&viewer, &path).await;
    let last = damaged.last().expect("an end");
    let problem = "entry 700: its hash in the chain of its organization is not what its columns make";
    assert_eq!((&last["done"], &last["problem"], &last["sequence"]), (&json!(true), &json!(problem), &json!("699")));
    assert_eq!(lines(&viewer, &format!("{path}?first=701")).await.last().expect("an end")["problem"], "");
    execute(server, "DELETE FROM audit WHERE org = $1 AND org_seq = 600", &[&org]).await;
    let damaged = lines(&viewer, &path).await;
    let problem = damaged.last().expect("an end")["problem"].as_str().expect("a text").to_owned();
    assert!(problem.starts_with("entry 601:") && problem.contains("number 600 is missing"), "{problem}");
}

async fn a_verification_is_for_who_may_read_the_organization(server: &TestServer) {
    let org = history(server, "acme", 1).await;
    let team = server.group(&org, "team").await;
    let path = format!("GET /audit/v1/chains/{org}:verify");
    for actor in [server.actor("owner", &server.organization("other").await).await, server.actor("owner", &team).await]
    {
        rejected(&actor, &path, Value::Null, 403, "PERMISSION_DENIED").await;
    }
    let owner = server.actor("owner", &org).await;
    for query in ["first=-1", "first=5&last=3"] {
        rejected(&owner, &format!("{path}?{query}"), Value::Null, 400, "INVALID_ARGUMENT").await;
    }
}

async fn a_summary_counts_by_day_and_kind(server: &TestServer) {
    let org = history(server, "acme", 5).await;
    server.repo(&org, "repo").await;
    server.clock().advance(std::time::Duration::from_secs(24 * 3600));
    let operator = server.operator().await;
    create_group(&operator, &org, "later").await;
    let path = format!("GET /audit/v1/summary?organization={org}");
    let sum = async |actor: &Actor| {
        let days = ok(actor, &path, Value::Null).await["days"].as_array().cloned().unwrap_or_default();
        let count = |kind: &str| {
            let kinds = days.iter().flat_map(|day| day["kinds"].as_array().cloned().unwrap_or_default());
            let counts = kinds.filter(|one| one["kind"] == kind).map(|one| one["entries"].clone());
            counts.map(|text| text.as_str().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0)).sum::<i64>()
        };
        (days.len(), count("iam.chainguard.dev/Group"), count("registry.chainguard.dev/Repo"))
    };
    until("the numbers", async || sum(&operator).await == (2, 7, 1)).await;
    let owner = server.actor("owner", &org).await;
    assert_eq!(sum(&owner).await.1, 7);
    // A role without repo.list sees no repositories, even in counts.
    let role =
        crate::support::role(server, &org, "auditor", &["CAP_IAM_ROLE_BINDINGS_LIST", "CAP_IAM_GROUPS_LIST"]).await;
    let auditor = server.identity(&org, "auditor").await;
    server.bind(&auditor, &role, &org).await;
    let auditor = server.sign_in("auditor", "auditor", &auditor).await;
    assert_eq!(sum(&auditor).await, (2, 7, 0));
    let narrow = server.actor("owner", &server.group(&org, "team").await).await;
    rejected(&narrow, &path, Value::Null, 403, "PERMISSION_DENIED").await;
    for query in ["start_time=2020-01-01T00:00:00Z", "end_time=1960-01-02T00:00:00Z"] {
        rejected(&owner, &format!("{path}&{query}"), Value::Null, 400, "INVALID_ARGUMENT").await;
    }
    assert!(!ok(&operator, "GET /audit/v1/summary", Value::Null).await["days"].as_array().expect("days").is_empty());
}

each_engine!(
    an_export_has_every_entry_once_and_ends,
    an_export_shows_what_the_caller_may_see,
    a_chain_is_verified_in_slices_and_damage_is_named,
    a_verification_is_for_who_may_read_the_organization,
    a_summary_counts_by_day_and_kind
);
