//! Refused downloads in numbers.

use std::time::Duration;

use bowline_contract::bowline::libraries::v1::GetBlockStatisticsRequest;
use bowline_contract::bowline::libraries::v1::rpc::decisions::GetBlockStatistics;
use bowline_core::{Clock as _, Error, Uidp};
use bowline_libraries::age::Age;
use bowline_libraries::decide::{Refusal, Subject};
use bowline_libraries::{BlockedDownload, Language, Mode, prune_block_statistics, record_blocked_download};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{each, execute, holder, number, ok, rejected, same_over_grpc};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Records so many refused downloads of a version.
pub(crate) async fn block(
    server: &TestServer,
    org: &str,
    policy: &str,
    refused: (Language, &str, &str, Mode, Refusal),
    n: u8,
) {
    let now = server.clock().now();
    let (org, policy) = (Uidp::parse(org).expect("a UIDP"), Uidp::parse(policy).expect("a UIDP"));
    let (language, name, version, mode, refusal) = refused;
    let (name, version) = (name.to_owned(), version.to_owned());
    let db = &server.server().parts().storage.db;
    for _ in 0..n {
        let new = org.child_from(bowline_authn::crypto::random_bytes::<8>());
        let (org, policy, refusal) = (org.clone(), policy.clone(), refusal.clone());
        let (name, version) = (name.clone(), version.clone());
        let written = db.write(move |tx| {
            let (org, policy, refusal, new) = (org.clone(), policy.clone(), refusal.clone(), new.clone());
            let (name, version) = (name.clone(), version.clone());
            Box::pin(async move {
                let (license, is_malware, age) = ("MIT", false, Age::UNKNOWN);
                let subject = Subject {
                    language,
                    name: &name,
                    version: &version,
                    license,
                    is_malware,
                    age,
                    vulnerabilities: &[],
                    is_own: false,
                };
                let blocked = BlockedDownload {
                    organization: &org,
                    subject,
                    policy: Some(&policy),
                    mode,
                    refusal: &refusal,
                    attempts: 1,
                };
                record_blocked_download(tx, &blocked, &new, now).await
            })
        });
        written.await.expect("a row");
    }
}

fn what(org: &str, query: &str) -> String {
    format!("GET /librarydecisions/v1/organizations/{org}:blockStatistics?{query}")
}

pub(crate) async fn policy(server: &TestServer, org: &str, name: &str) -> String {
    let made =
        ok(&server.operator().await, &format!("POST /libraries/v1/policies/{org}"), json!({ "name": name })).await;
    made["id"].as_str().expect("an id").into()
}

fn attempts(rows: &Value) -> Vec<&str> {
    each(rows, "attempts")
}

/// Two policies that refused: yesterday and today, in two ecosystems, one download only recorded.
async fn filled(server: &TestServer) -> (String, [String; 2]) {
    let org = server.organization("acme").await;
    let policies = [policy(server, &org, "strict").await, policy(server, &org, "loose").await];
    let [strict, loose] = &policies;
    let cooldown = || Refusal::Cooldown { days: 7, until: None, first_seen_at: None };
    let license = || Refusal::License("MIT".into());
    block(server, &org, strict, (Language::Java, "a:b", "1", Mode::Enforced, cooldown()), 2).await;
    server.clock().advance(DAY);
    block(server, &org, strict, (Language::Java, "a:b", "1", Mode::Enforced, cooldown()), 1).await;
    block(server, &org, strict, (Language::Java, "a:b", "2", Mode::Enforced, license()), 1).await;
    block(server, &org, loose, (Language::Python, "requests", "1", Mode::Enforced, Refusal::Malware), 3).await;
    block(server, &org, loose, (Language::Python, "six", "1", Mode::Log, Refusal::Malware), 1).await;
    (org, policies)
}

async fn refused_downloads_are_counted_by_day_policy_package_reason_and_ecosystem(server: &TestServer) {
    let (org, [strict, loose]) = filled(server).await;
    let owner = server.actor("owner", &org).await;
    let shown = ok(&owner, &what(&org, ""), Value::Null).await;
    let days = attempts(&shown["days"]);
    assert_eq!((days.len(), &days[28..]), (30, &["2", "5"][..]));
    assert_eq!((&shown["attempts"], &shown["packageCount"]), (&json!("7"), &json!(2)));
    assert_eq!((&shown["incomplete"], &shown["countedFrom"]), (&json!(false), &shown["days"][0]["day"]));
    assert_eq!(
        shown["policies"],
        json!([
            { "policy": strict, "name": "strict", "attempts": "4", "packages": 1 },
            { "policy": loose, "name": "loose", "attempts": "3", "packages": 1 }
        ])
    );
    assert_eq!(
        (each(&shown["packages"], "package"), attempts(&shown["packages"])),
        (vec!["a:b", "requests"], vec!["4", "3"])
    );
    assert_eq!(each(&shown["reasons"], "reason"), ["COOLDOWN", "MALWARE_DETECTED", "LICENSE"]);
    assert_eq!(attempts(&shown["reasons"]), ["3", "3", "1"]);
    assert_eq!(
        (each(&shown["ecosystems"], "ecosystem"), attempts(&shown["ecosystems"])),
        (vec!["JAVA", "PYTHON"], vec!["4", "3"])
    );

    let request = GetBlockStatisticsRequest { parent: org.clone(), ..Default::default() };
    same_over_grpc::<GetBlockStatistics>(server, &owner, request, &shown).await;

    let logged = ok(&owner, &what(&org, "mode=LIBRARY_POLICY_BINDING_MODE_LOG"), Value::Null).await;
    assert_eq!(each(&logged["packages"], "package"), ["six"]);
    let python = ok(&owner, &what(&org, "ecosystem=PYTHON"), Value::Null).await;
    assert_eq!((attempts(&python["packages"]), &python["attempts"]), (vec!["3"], &json!("3")));
    let yesterday = server.clock().now() - 24 * 3600 * 1_000_000;
    let end = bowline_core::rfc3339::text(yesterday, bowline_core::rfc3339::Digits::SixOrNone);
    let early = ok(&owner, &what(&org, &format!("start_time={end}&end_time={end}")), Value::Null).await;
    assert_eq!(attempts(&early["days"]), ["2"]);
    agrees_with_the_activity(server, &owner, &org).await;
}

/// The activity of the organization is that of both modes.
async fn agrees_with_the_activity(server: &TestServer, owner: &Actor, org: &str) {
    while number(server, "SELECT count(*) FROM activity_deltas").await > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let activity = format!("GET /statistics/v1/activity/{org}?kind=ACTIVITY_KIND_BLOCKED_PACKAGES");
    let activity = ok(owner, &activity, Value::Null).await;
    assert_eq!(each(&activity["days"], "amount")[28..], ["2", "6"]);
}

async fn what_cannot_be_counted_is_refused_and_names_need_their_capability(server: &TestServer) {
    let (org, _) = filled(server).await;
    let team = server.group(&org, "team").await;
    let operator = server.operator().await;
    for (query, field) in [
        ("start_time=1971-01-01T00:00:00Z", "startTime"),
        ("start_time=2200-01-01T00:00:00Z", "startTime"),
        ("start_time=1960-01-01T00:00:00Z&end_time=1960-01-02T00:00:00Z", "startTime"),
        ("end_time=1960-01-02T00:00:00Z", "endTime"),
        ("ecosystem=DOTNET", "ecosystem"),
    ] {
        let refusal = rejected(&operator, &what(&org, query), Value::Null, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{query}");
    }
    rejected(&operator, &what(&team, ""), Value::Null, 400, "INVALID_ARGUMENT").await;
    rejected(&server.stranger().await, &what(&org, ""), Value::Null, 403, "PERMISSION_DENIED").await;
    let needed = ["CAP_LIBRARIES_POLICY_BLOCK_EVENT_LIST"];
    let reader = holder(server, &org, "reader", &org, &needed).await.actor;
    let shown = ok(&reader, &what(&org, ""), Value::Null).await;
    assert_eq!(each(&shown["policies"], "name"), ["", ""], "names of policies need the right to list them");
}

/// Refusals of so many packages, on a day before today.
const MANY: &str = "INSERT INTO library_block_days (org, mode, day, ecosystem, policy, reason, package, attempts)
    WITH RECURSIVE up(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < CAST(CAST($3 AS TEXT) AS BIGINT))
    SELECT $1, 1, CAST(CAST($2 AS TEXT) AS BIGINT), 3, 'p', 'COOLDOWN', 'package-' || n, 2 FROM up";

async fn a_day_is_counted_however_many_packages_it_has(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let today = server.clock().now() / (24 * 3600 * 1_000_000);
    let day = |ago: i64| (today - ago).to_string();
    execute(server, MANY, &[&org, &day(1), "60000"]).await;
    let shown = ok(&owner, &what(&org, ""), Value::Null).await;
    assert_eq!((&shown["attempts"], &shown["packageCount"]), (&json!("120000"), &json!(60000)));
    assert_eq!((&shown["incomplete"], &shown["policies"][0]["packages"]), (&json!(false), &json!(60000)));
    let packages = shown["packages"].as_array().expect("packages");
    assert_eq!((packages.len(), &packages[0]["package"]), (100, &json!("package-1")));
    // Beyond the bound, days are left out, but for the newest one with refusals.
    execute(server, MANY, &[&org, &day(3), "200000"]).await;
    let shown = ok(&owner, &what(&org, ""), Value::Null).await;
    assert_eq!((&shown["attempts"], &shown["incomplete"]), (&json!("120000"), &json!(true)));
    assert_eq!((shown["days"].as_array().map(Vec::len), &shown["days"][0]["day"]), (Some(3), &shown["countedFrom"]));
    execute(server, "DELETE FROM library_block_days WHERE day = CAST(CAST($1 AS TEXT) AS BIGINT)", &[&day(1)]).await;
    execute(server, MANY, &[&org, &day(4), "10"]).await;
    let shown = ok(&owner, &what(&org, ""), Value::Null).await;
    assert_eq!((&shown["attempts"], &shown["incomplete"]), (&json!("400000"), &json!(true)));
    assert_eq!(attempts(&shown["days"]), ["400000", "0", "0", "0"]);
}

async fn counts_end_with_their_organization_and_their_time(server: &TestServer) {
    let (org, _) = filled(server).await;
    let counts = "SELECT count(*) FROM library_block_days";
    assert_eq!(number(server, counts).await, 5);
    execute(server, "UPDATE library_block_days SET day = day - 500 WHERE reason = $1", &["LICENSE"]).await;
    let now = server.clock().now();
    let db = &server.server().parts().storage.db;
    let pruned = db.write(move |tx| Box::pin(async move { prune_block_statistics(tx, now).await }));
    assert_eq!(pruned.await.map_err(|error: Error| error.to_string()), Ok(1));
    let operator = server.operator().await;
    ok(&operator, &format!("DELETE /iam/v2/groups/{org}"), Value::Null).await;
    assert_eq!(number(server, counts).await, 0);
}

each_engine!(
    refused_downloads_are_counted_by_day_policy_package_reason_and_ecosystem,
    what_cannot_be_counted_is_refused_and_names_need_their_capability,
    a_day_is_counted_however_many_packages_it_has,
    counts_end_with_their_organization_and_their_time,
);
