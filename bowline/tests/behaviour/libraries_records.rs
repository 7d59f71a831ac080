//! Records of malware on the list of packages that are withheld.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::feeds_support::{begin, commit, import, record, stage, sweep_all};
use crate::libraries::{UPSTREAM, import as import_versions, texts, version};
use crate::support::{number, ok};

/// A record of malware in an npm package.
fn malware(id: &str, package: &str, versions: &[&str], events: &Value) -> Value {
    let ranges = if events.is_null() { json!([]) } else { json!([{ "type": "SEMVER", "events": events }]) };
    json!({
        "schema_version": "1.7.0",
        "id": id,
        "published": "2026-01-01T00:00:00Z",
        "modified": "2026-01-02T03:04:05Z",
        "summary": format!("Malicious code in {package} (npm)"),
        "details": "Sends the environment away.",
        "affected": [{ "package": { "ecosystem": "npm", "name": package }, "ranges": ranges, "versions": versions }],
    })
}

/// Identifier, package and version of each entry, in order.
async fn listed(actor: &Actor) -> Vec<String> {
    let list = ok(actor, "GET /libraries/v1/malware/blocklist?pageSize=1000", Value::Null).await;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    assert_eq!(list["totalCount"], json!(items.len().to_string()));
    let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
    let mut shown: Vec<String> = items
        .iter()
        .map(|item| [text(item, "malid"), text(item, "packageName"), text(item, "version")].join(" "))
        .collect();
    shown.sort_unstable();
    shown
}

/// A whole import in which other records of the source are removed.
async fn again(server: &TestServer, source: &str, records: &[Value], removed: &[&str]) {
    let operator = server.operator().await;
    let open = begin(&operator, source, true).await;
    stage(&operator, &open, records, removed).await;
    commit(&operator, &open).await;
    sweep_all(server).await;
}

async fn records_of_malware_come_on_the_list_and_leave_it_with_their_records(server: &TestServer) {
    let operator = server.operator().await;
    let everything = json!([{ "introduced": "0" }]);
    let records = [
        malware("MAL-2026-1", "left-evil", &["1.0.0", "1.0.1"], &Value::Null),
        malware("MAL-2026-2", "@evil/pad", &[], &everything),
        malware("MAL-2026-3", "ranged", &[], &json!([{ "introduced": "1.0.0" }, { "fixed": "1.2.0" }])),
        record("PYSEC-2026-1", "flask", "2"),
    ];
    import(server, "test", &records).await;
    assert_eq!(listed(&operator).await, Vec::<String>::new(), "the commit itself does not grow with the import");
    sweep_all(server).await;
    let first = [
        "MAL-2026-1 left-evil 1.0.0",
        "MAL-2026-1 left-evil 1.0.1",
        "MAL-2026-2 @evil/pad ",
        "MAL-2026-3 ranged >=1.0.0 <1.2.0",
    ];
    assert_eq!(listed(&operator).await, first);
    let path = "GET /libraries/v1/malware/blocklist?packageName=@evil/pad";
    let entry = ok(&operator, path, Value::Null).await["items"][0].clone();
    assert_eq!(
        entry,
        json!({
            "packageName": "@evil/pad", "version": "", "scope": "MALWARE_SCOPE_PACKAGE", "malid": "MAL-2026-2",
            "source": "test", "blockedAt": "2026-01-01T00:00:00Z", "ecosystem": "npm",
            "reason": ["Malicious code in @evil/pad (npm)"], "description": "Sends the environment away.",
        })
    );

    // One is withdrawn, one is changed, one is gone, and one is new.
    let mut withdrawn = records[0].clone();
    withdrawn["withdrawn"] = json!("2026-01-03T00:00:00Z");
    let news = [
        withdrawn,
        malware("MAL-2026-2", "@evil/pad", &["7.0.0"], &Value::Null),
        malware("MAL-2026-4", "new", &[], &everything),
    ];
    again(server, "test", &news, &["MAL-2026-3"]).await;
    assert_eq!(listed(&operator).await, ["MAL-2026-2 @evil/pad 7.0.0", "MAL-2026-4 new "]);
    assert_eq!(number(server, "SELECT count(*) FROM records").await, 4, "what was replaced was cleared away");
    again(server, "test", &[], &["MAL-2026-2", "MAL-2026-4"]).await;
    assert_eq!(listed(&operator).await, Vec::<String>::new());
}

async fn generations_in_quick_succession_are_all_synchronized(server: &TestServer) {
    let operator = server.operator().await;
    // More than one step takes, so that a step ends between two ids.
    let records: Vec<Value> =
        (0..300).map(|i| malware(&format!("MAL-2026-{i}"), &format!("evil-{i}"), &["1.0.0"], &Value::Null)).collect();
    import(server, "test", &records).await;
    let second = begin(&operator, "test", true).await;
    let removed: Vec<String> = (0..299).map(|i| format!("MAL-2026-{i}")).collect();
    let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
    stage(&operator, &second, &[malware("MAL-2027-1", "late", &["1.0.0"], &Value::Null)], &removed).await;
    crate::feeds_support::sweep_once(server).await;
    assert_eq!(number(server, "SELECT count(*) FROM library_malware").await, 128, "one step");
    commit(&operator, &second).await;
    sweep_all(server).await;
    assert_eq!(listed(&operator).await, ["MAL-2026-299 evil-299 1.0.0", "MAL-2027-1 late 1.0.0"]);
    let behind = "SELECT count(*) FROM record_sources WHERE malware_generation < generation OR malware_after <> ''";
    assert_eq!(number(server, behind).await, 0);
}

async fn of_two_sources_the_newer_record_fills_the_list(server: &TestServer) {
    let operator = server.operator().await;
    let old = malware("MAL-2026-1", "evil", &["1.0.0"], &Value::Null);
    let mut new = malware("MAL-2026-1", "evil", &["2.0.0"], &Value::Null);
    new["modified"] = json!("2026-02-01T00:00:00Z");
    import(server, "first", &[old]).await;
    import(server, "second", std::slice::from_ref(&new)).await;
    sweep_all(server).await;
    assert_eq!(listed(&operator).await, ["MAL-2026-1 evil 2.0.0"]);
    again(server, "second", &[], &["MAL-2026-1"]).await;
    assert_eq!(listed(&operator).await, ["MAL-2026-1 evil 1.0.0"], "the other source still has it");
}

async fn entries_of_the_operator_stay(server: &TestServer) {
    let operator = server.operator().await;
    let own = |version: &str| {
        json!({
            "ecosystem": "npm", "packageName": "evil", "version": version, "malid": "MAL-2026-1",
            "scope": "MALWARE_SCOPE_VERSION", "source": "operator"
        })
    };
    let entries = json!({ "entries": [own("1.0.0"), own("9.0.0")] });
    ok(&operator, "POST /catalog/v1/malware:import", entries).await;
    import(server, "test", &[malware("MAL-2026-1", "evil", &["1.0.0", "1.0.1"], &Value::Null)]).await;
    sweep_all(server).await;
    let both = ["MAL-2026-1 evil 1.0.0", "MAL-2026-1 evil 1.0.1", "MAL-2026-1 evil 9.0.0"];
    let sources = async || {
        let list = ok(&operator, "GET /libraries/v1/malware/blocklist?source=operator", Value::Null).await;
        texts(&list["items"], "version").len()
    };
    assert_eq!((listed(&operator).await, sources().await), (both.map(String::from).to_vec(), 2));

    // Taking the operator's entries back leaves what the record says, of which nothing can be taken back.
    let remove = json!({ "malids": ["MAL-2026-1"] });
    assert_eq!(ok(&operator, "POST /catalog/v1/malware:remove", remove.clone()).await["removed"], 2);
    assert_eq!((listed(&operator).await, sources().await), (both[..2].iter().map(|s| String::from(*s)).collect(), 0));
    assert_eq!(ok(&operator, "POST /catalog/v1/malware:remove", remove).await["removed"], 0);

    // What the operator says of it is the operator's from then on.
    let made = ok(&operator, "POST /catalog/v1/malware:import", json!({ "entries": [own("1.0.1")] })).await;
    assert_eq!(made["updated"], 1);
    again(server, "test", &[], &["MAL-2026-1"]).await;
    assert_eq!(listed(&operator).await, ["MAL-2026-1 evil 1.0.1"]);
}

async fn versions_in_a_range_of_a_record_are_shown_as_malicious(server: &TestServer) {
    let operator = server.operator().await;
    let versions = ["0.9.0", "1.0.0", "1.1.9", "1.2.0", "2.0.0"];
    import_versions(&operator, &versions.map(|number| version("JAVASCRIPT", "ranged", number, UPSTREAM))).await;
    let range = json!([{ "introduced": "1.0.0" }, { "fixed": "1.2.0" }]);
    import(server, "test", &[malware("MAL-2026-1", "ranged", &["2.0.0"], &range)]).await;
    sweep_all(server).await;
    let path = "GET /libraries/v1/npm/packages/versions?packageName=ranged";
    let list = ok(&operator, path, Value::Null).await;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let malicious: Vec<&str> = items
        .iter()
        .filter(|item| item["malwareMalicious"] == true)
        .filter_map(|item| item["version"].as_str())
        .collect();
    assert_eq!(malicious, ["2.0.0", "1.1.9", "1.0.0"]);
}

each_engine!(
    records_of_malware_come_on_the_list_and_leave_it_with_their_records,
    generations_in_quick_succession_are_all_synchronized,
    of_two_sources_the_newer_record_fills_the_list,
    entries_of_the_operator_stay,
    versions_in_a_range_of_a_record_are_shown_as_malicious
);
