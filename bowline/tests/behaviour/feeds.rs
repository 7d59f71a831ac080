//! Imports of records: staged, and then visible all at once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::feeds_support::{begin, commit, found, import, record, stage, sweep_all, with_aliases};
use crate::support::{holder, number, ok, rejected};

/// Rows of each table that a record has one of.
const COUNTED: [&str; 3] =
    ["SELECT count(*) FROM records", "SELECT count(*) FROM record_bodies", "SELECT count(*) FROM record_affects"];

async fn staged_records_are_invisible_until_the_import_is_committed(server: &TestServer) {
    let operator = server.operator().await;
    let anonymous = server.anonymous();
    let first = begin(&operator, "test", false).await;
    let staged = stage(&operator, &first, &[record("A-1", "flask", "2"), record("A-2", "flask", "3")], &[]).await;
    assert_eq!((&staged["staged"], &staged["refused"]), (&json!(2), &json!([])));
    assert_eq!(found(&anonymous, "flask", "1").await, Vec::<String>::new());
    let path = format!("/feeds/bowline/v1/imports/{first}");
    let preview = ok(&operator, &format!("GET {path}"), Value::Null).await;
    assert_eq!((&preview["added"], &preview["state"]), (&json!("2"), &json!("IMPORT_STATE_OPEN")));

    let committed = commit(&operator, &first).await;
    assert_eq!((&committed["added"], &committed["state"]), (&json!("2"), &json!("IMPORT_STATE_COMMITTED")));
    assert_eq!(found(&anonymous, "flask", "1").await, ["A-1", "A-2"]);
    assert_eq!(found(&anonymous, "Flask", "2").await, ["A-2"]);

    // The next one changes one record, removes the other, and brings a third: all of it in one step.
    let second = begin(&operator, "test", true).await;
    let records = [record("A-1", "flask", "9"), record("A-3", "flask", "3")];
    let staged = stage(&operator, &second, &records, &["A-2", "A-9"]).await;
    assert_eq!((&staged["staged"], &staged["removed"]), (&json!(2), &json!(1)));
    assert_eq!(found(&anonymous, "flask", "1").await, ["A-1", "A-2"]);
    let listed = ok(&operator, &format!("GET /feeds/bowline/v1/imports/{second}/staged"), Value::Null).await;
    let listed: Vec<(&str, bool)> = listed["records"]
        .as_array()
        .expect("records")
        .iter()
        .map(|record| (record["id"].as_str().unwrap_or_default(), record["digest"] == json!("")))
        .collect();
    assert_eq!(listed, [("A-1", false), ("A-2", true), ("A-3", false)]);
    let committed = commit(&operator, &second).await;
    assert_eq!(
        (&committed["added"], &committed["changed"], &committed["removed"]),
        (&json!("1"), &json!("1"), &json!("1"))
    );
    assert_eq!(found(&anonymous, "flask", "8").await, ["A-1"]);
    assert_eq!(found(&anonymous, "flask", "1").await, ["A-1", "A-3"]);

    // What was replaced goes in the background, and changes nothing for readers.
    assert_eq!(number(server, "SELECT count(*) FROM records").await, 4);
    sweep_all(server).await;
    for counted in COUNTED {
        assert_eq!(number(server, counted).await, 2, "{counted}");
    }
    assert_eq!(found(&anonymous, "flask", "1").await, ["A-1", "A-3"]);
    let sources = ok(&operator, "GET /feeds/bowline/v1/sources", Value::Null).await;
    let source = &sources["sources"][0];
    assert_eq!(
        (&source["name"], &source["licence"], &source["records"], &source["generation"]),
        (&json!("test"), &json!("CC0-1.0"), &json!("2"), &json!("2"))
    );

    assert_eq!(number(server, "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/RecordImport'").await, 4);
    let told =
        "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.feeds.import.committed.v1' AND NOT customer";
    assert_eq!(number(server, told).await, 2);
}

async fn importing_the_same_again_writes_nothing(server: &TestServer) {
    let operator = server.operator().await;
    let records: Vec<Value> = (0..30).map(|i| record(&format!("A-{i}"), "flask", "2")).collect();
    import(server, "test", &records).await;
    let rows = "SELECT CAST(sum(n) AS BIGINT) FROM records";
    let before = number(server, rows).await;
    let again = begin(&operator, "test", true).await;
    let staged = stage(&operator, &again, &records, &[]).await;
    assert_eq!((&staged["staged"], &staged["unchanged"]), (&json!(0), &json!(30)));
    let committed = commit(&operator, &again).await;
    assert_eq!((&committed["added"], &committed["changed"]), (&json!("0"), &json!("0")));
    assert_eq!(number(server, rows).await, before);
    assert_eq!(number(server, "SELECT generation FROM record_sources").await, 1);
    let told = "SELECT count(*) FROM outbox WHERE event_type LIKE 'dev.bowline.feeds.%'";
    assert_eq!(number(server, told).await, 1);

    // Anyone who brings an import sees the same digests, and need not send anything.
    let listed = ok(&operator, "GET /feeds/bowline/v1/sources/test/records?pageSize=20", Value::Null).await;
    assert_eq!((listed["records"].as_array().map(Vec::len), &listed["more"]), (Some(20), &json!(true)));
    let last = listed["records"][19]["id"].as_str().expect("an id");
    let path = format!("GET /feeds/bowline/v1/sources/test/records?pageSize=20&afterId={last}");
    let rest = ok(&operator, &path, Value::Null).await;
    assert_eq!((rest["records"].as_array().map(Vec::len), &rest["more"]), (Some(10), &json!(false)));

    // Another licence is another content.
    let body = json!({ "source": "test", "licence": "MIT" });
    let other = ok(&operator, "POST /feeds/bowline/v1/imports", body).await;
    let staged = stage(&operator, other["uid"].as_str().expect("a uid"), &records[..2], &[]).await;
    assert_eq!(staged["staged"], json!(2));
}

async fn an_import_that_is_given_up_leaves_nothing(server: &TestServer) {
    let operator = server.operator().await;
    import(server, "test", &[record("A-1", "flask", "2"), record("A-2", "flask", "2")]).await;
    let second = begin(&operator, "test", true).await;
    stage(&operator, &second, &[record("A-1", "flask", "9"), record("A-3", "flask", "9")], &["A-2"]).await;
    let abort = format!("POST /feeds/bowline/v1/imports/{second}:abort");
    let aborted = ok(&operator, &abort, json!({})).await;
    assert_eq!(aborted["state"], json!("IMPORT_STATE_ABORTED"));
    assert_eq!(ok(&operator, &abort, json!({})).await, aborted);
    assert_eq!(found(&operator, "flask", "1").await, ["A-1", "A-2"]);
    for counted in COUNTED {
        assert_eq!(number(server, counted).await, 2, "{counted}");
    }
    let staged = json!({ "records": [] });
    let what = format!("POST /feeds/bowline/v1/imports/{second}/records");
    rejected(&operator, &what, staged, 400, "FAILED_PRECONDITION").await;

    // The same generation is used again, and what was given up does not come back with it.
    let third = begin(&operator, "test", false).await;
    stage(&operator, &third, &[record("A-4", "flask", "2")], &[]).await;
    commit(&operator, &third).await;
    assert_eq!(found(&operator, "flask", "1").await, ["A-1", "A-2", "A-4"]);
}

async fn an_import_continues_where_it_stopped_and_expires_when_abandoned(server: &TestServer) {
    let operator = server.operator().await;
    let first = begin(&operator, "test", false).await;
    stage(&operator, &first, &[record("A-1", "flask", "2")], &[]).await;
    assert_eq!(begin(&operator, "test", false).await, first);
    let body = json!({ "source": "test", "licence": "MIT" });
    let refusal = rejected(&operator, "POST /feeds/bowline/v1/imports", body, 400, "FAILED_PRECONDITION").await;
    assert_eq!(refusal.detail("PreconditionFailure")["violations"][0]["type"], "IMPORT_OPEN");

    server.clock().advance(std::time::Duration::from_secs(25 * 3600));
    sweep_all(server).await;
    let operator = server.operator().await;
    let import = ok(&operator, &format!("GET /feeds/bowline/v1/imports/{first}"), Value::Null).await;
    assert_eq!(import["state"], json!("IMPORT_STATE_ABORTED"));
    assert_eq!(number(server, "SELECT count(*) FROM records").await, 0);
    assert_ne!(begin(&operator, "test", false).await, first);
    let imports = ok(&operator, "GET /feeds/bowline/v1/imports?source=test&pageSize=1", Value::Null).await;
    let token = imports["nextPageToken"].as_str().expect("a token");
    let path = format!("GET /feeds/bowline/v1/imports?source=test&pageSize=1&pageToken={token}");
    assert_eq!(ok(&operator, &path, Value::Null).await["imports"][0]["uid"], json!(first));
}

async fn who_begins_an_import_again_takes_it_over(server: &TestServer) {
    let operator = server.operator().await;
    let uid = begin(&operator, "feed", true).await;
    let records = |id: &str| json!([STANDARD.encode(record(id, "jinja2", "3.1.3").to_string())]);
    let stage = format!("POST /feeds/bowline/v1/imports/{uid}/records");
    ok(&operator, &stage, json!({ "attempt": 1, "records": records("T-1") })).await;
    assert_eq!(begin(&operator, "feed", true).await, uid);
    let read = ok(&operator, &format!("GET /feeds/bowline/v1/imports/{uid}"), Value::Null).await;
    assert_eq!(read["attempt"], json!("2"));

    let commit = format!("POST /feeds/bowline/v1/imports/{uid}:commit");
    for (what, body) in
        [(&stage, json!({ "attempt": 1, "records": records("T-2") })), (&commit, json!({ "attempt": 1 }))]
    {
        let refusal = rejected(&operator, what, body, 400, "FAILED_PRECONDITION").await;
        assert!(refusal.message().contains("begun the import again"), "{refusal:?}");
    }
    ok(&operator, &stage, json!({ "attempt": 2, "records": records("T-3") })).await;
    ok(&operator, &commit, json!({ "attempt": 2 })).await;
    assert_eq!(found(&operator, "jinja2", "3.1.2").await, ["T-1", "T-3"]);
}

async fn broken_records_and_second_contents_are_refused_one_by_one(server: &TestServer) {
    let operator = server.operator().await;
    let import = begin(&operator, "test", false).await;
    let records = [
        record("A-1", "flask", "2"),
        json!({ "id": "A-2" }),
        record("A-1", "flask", "3"),
        record("A-1", "flask", "2"),
        with_aliases(record("A-3", "flask", "2"), &["A-4"]),
        with_aliases(record("A-4", "flask", "2"), &["A-3"]),
    ];
    let staged = stage(&operator, &import, &records, &[]).await;
    assert_eq!((&staged["staged"], &staged["unchanged"]), (&json!(3), &json!(1)));
    let refusals: Vec<(i64, &str)> = staged["refused"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["index"].as_i64().unwrap_or(-1), one["reason"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(refusals[0], (1, "`modified` is missing"));
    assert_eq!((refusals.len(), refusals[1].0), (2, 2));
    let staged = stage(&operator, &import, &[record("A-1", "flask", "4")], &[]).await;
    assert_eq!((&staged["staged"], &staged["refused"][0]["id"]), (&json!(0), &json!("A-1")));
    commit(&operator, &import).await;
    assert_eq!(found(&operator, "flask", "1").await, ["A-1", "A-3", "A-4"]);
    assert_eq!(found(&operator, "flask", "2").await, Vec::<String>::new());
}

async fn what_makes_no_sense_in_an_import_is_refused(server: &TestServer) {
    let operator = server.operator().await;
    let imports = "POST /feeds/bowline/v1/imports";
    for (body, field) in [
        (json!({ "source": "Über", "licence": "MIT" }), "source"),
        (json!({ "source": "", "licence": "MIT" }), "source"),
        (json!({ "source": "a", "licence": "" }), "licence"),
        (json!({ "source": "a", "licence": "a\nb" }), "licence"),
        (json!({ "source": "a", "licence": "MIT", "url": "file:///x" }), "url"),
    ] {
        let refusal = rejected(&operator, imports, body.clone(), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field], "{body}");
    }
    let partial = begin(&operator, "test", false).await;
    let stage = format!("POST /feeds/bowline/v1/imports/{partial}/records");
    for (body, field) in [
        (json!({ "removedIds": ["A-1"] }), "removedIds"),
        (json!({ "removedIds": ["../a"] }), "removedIds[0]"),
        (json!({ "records": vec!["e30="; 1001] }), "records"),
    ] {
        let refusal = rejected(&operator, &stage, body, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field]);
    }
    let nowhere = "0000000000000000000000000000000000000000/00000000000000ff";
    for what in ["GET {}", "GET {}/staged", "POST {}/records", "POST {}:commit", "POST {}:abort"] {
        let what = what.replace("{}", &format!("/feeds/bowline/v1/imports/{nowhere}"));
        let body = if what.starts_with("GET") { Value::Null } else { json!({}) };
        rejected(&operator, &what, body, 404, "NOT_FOUND").await;
    }
    let compared = json!({ "source": "fresh", "licence": "MIT", "generation": "7" });
    let refusal = rejected(&operator, imports, compared, 400, "FAILED_PRECONDITION").await;
    assert_eq!(refusal.detail("PreconditionFailure")["violations"][0]["type"], "SOURCE_CHANGED");
}

async fn only_the_operator_imports_records(server: &TestServer) {
    let org = server.organization("acme").await;
    let capabilities = ["CAP_VULN_CREATE", "CAP_VULN_REPORT_LIST"];
    let clerk = holder(server, &org, "clerk", &org, &capabilities).await.actor;
    let body = json!({ "source": "test", "licence": "MIT" });
    rejected(&clerk, "POST /feeds/bowline/v1/imports", body, 403, "PERMISSION_DENIED").await;
    for path in ["sources", "imports", "sources/test/records"] {
        rejected(&clerk, &format!("GET /feeds/bowline/v1/{path}"), Value::Null, 403, "PERMISSION_DENIED").await;
    }
    assert_eq!(number(server, "SELECT count(*) FROM record_sources").await, 0);
}

each_engine!(
    staged_records_are_invisible_until_the_import_is_committed,
    importing_the_same_again_writes_nothing,
    an_import_that_is_given_up_leaves_nothing,
    an_import_continues_where_it_stopped_and_expires_when_abandoned,
    who_begins_an_import_again_takes_it_over,
    broken_records_and_second_contents_are_refused_one_by_one,
    what_makes_no_sense_in_an_import_is_refused,
    only_the_operator_imports_records
);
