//! The query API of OSV.

use bowline_testkit::{Engine, TestServer, by_engine, each_engine, on_engine_with};
use serde_json::{Value, json};

use crate::console::headers;
use crate::feeds_support::{found, ids, import, record, refused_by_osv, with_aliases};
use crate::support::{call, ok};

async fn a_record_is_answered_as_it_was_brought(server: &TestServer) {
    let mut brought = with_aliases(record("A-1", "flask", "2"), &["CVE-2026-1"]);
    brought["database_specific"] = json!({ "snake_case": [1, null, "é"] });
    brought["member_of_the_future"] = json!(true);
    import(server, "test", std::slice::from_ref(&brought)).await;
    let anonymous = server.anonymous();
    assert_eq!(ok(&anonymous, "GET /osv/v1/vulns/A-1", Value::Null).await, brought);
    let reply = call(&anonymous, "GET /osv/v1/vulns/A-1", Value::Null).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(
        ok(&anonymous, "POST /osv/v1/query", json!({ "package": { "purl": "pkg:pypi/Flask@1.9" } })).await,
        json!({ "vulns": [brought] })
    );
    let message = refused_by_osv(&anonymous, "GET /osv/v1/vulns/CVE-2026-1", Value::Null, 404, 5).await;
    assert!(message.ends_with("it is in A-1"), "{message}");
    refused_by_osv(&anonymous, "GET /osv/v1/vulns/A-2", Value::Null, 404, 5).await;
}

async fn packages_are_found_by_the_order_of_their_ecosystem(server: &TestServer) {
    let mut debian = record("D-1", "curl", "7.88.1-10+deb12u5");
    debian["affected"][0]["package"]["ecosystem"] = json!("Debian:12");
    let mut withdrawn = record("A-2", "flask", "9");
    withdrawn["withdrawn"] = json!("2026-01-03T00:00:00Z");
    import(server, "test", &[record("A-1", "flask", "1.10"), debian, withdrawn]).await;
    let anonymous = server.anonymous();
    for (version, expected) in [("1.9", true), ("1.10rc1", true), ("1.10", false), ("1.10.0", false), ("2", false)] {
        assert_eq!(found(&anonymous, "flask", version).await == ["A-1"], expected, "{version}");
    }
    for (ecosystem, version, expected) in [
        ("Debian:12", "7.88.1-10+deb12u4", true),
        ("Debian:12", "7.88.1-10+deb12u5", false),
        ("Debian:11", "7.88.1-10+deb12u4", false),
        ("Debian", "7.88.1-10", true),
    ] {
        let query = json!({ "package": { "ecosystem": ecosystem, "name": "curl" }, "version": version });
        let found = ids(&ok(&anonymous, "POST /osv/v1/query", query).await);
        assert_eq!(found == ["D-1"], expected, "{ecosystem} {version}");
    }
    let any = json!({ "package": { "ecosystem": "PyPI", "name": "flask" } });
    assert_eq!(ids(&ok(&anonymous, "POST /osv/v1/query", any).await), ["A-1"]);
    assert!(ok(&anonymous, "GET /osv/v1/vulns/A-2", Value::Null).await["withdrawn"].is_string());
}

async fn a_batch_is_answered_in_its_order_with_ids_alone(server: &TestServer) {
    let records: Vec<Value> = (0..5).map(|i| record(&format!("A-{i}"), &format!("p{}", i % 2), "2")).collect();
    import(server, "test", &records).await;
    let query =
        |name: &str, version: &str| json!({ "package": { "ecosystem": "PyPI", "name": name }, "version": version });
    let queries = json!({ "queries": [query("p1", "1"), query("none", "1"), query("P0", "1.5"), query("p1", "2")] });
    let modified = "2026-01-02T03:04:05Z";
    let expected = json!({ "results": [
        { "vulns": [{ "id": "A-1", "modified": modified }, { "id": "A-3", "modified": modified }] },
        {},
        { "vulns": [{ "id": "A-0", "modified": modified }, { "id": "A-2", "modified": modified }, { "id": "A-4", "modified": modified }] },
        {},
    ] });
    assert_eq!(ok(&server.anonymous(), "POST /osv/v1/querybatch", queries).await, expected);
}

async fn long_answers_come_in_pages(server: &TestServer) {
    let operator = server.operator().await;
    let import = crate::feeds_support::begin(&operator, "test", false).await;
    for part in 0..3 {
        let records: Vec<Value> = (0..400).map(|i| record(&format!("A-{:04}", part * 400 + i), "busy", "2")).collect();
        crate::feeds_support::stage(&operator, &import, &records, &[]).await;
    }
    crate::feeds_support::commit(&operator, &import).await;
    let anonymous = server.anonymous();
    let package = json!({ "ecosystem": "PyPI", "name": "busy" });
    let first = ok(&anonymous, "POST /osv/v1/query", json!({ "package": package, "version": "1" })).await;
    assert_eq!(ids(&first).len(), 1000);
    let token = &first["next_page_token"];
    let second = json!({ "package": package, "version": "1", "page_token": token });
    let second = ok(&anonymous, "POST /osv/v1/query", second).await;
    assert_eq!((ids(&second).len(), &second["next_page_token"]), (200, &Value::Null));
    assert_eq!(ids(&second)[0], "A-1000");
    let batch = json!({ "queries": [{ "package": package, "version": "1", "page_token": token }] });
    let batch = ok(&anonymous, "POST /osv/v1/querybatch", batch).await;
    assert_eq!(ids(&batch["results"][0]), ids(&second));
    let one = json!({ "package": package, "version": "1" });
    let other = json!({ "package": package, "version": "2" });
    let batch = json!({ "queries": [one, other, one] });
    let batch = ok(&anonymous, "POST /osv/v1/querybatch", batch).await;
    assert_eq!(ids(&batch["results"][0]), ids(&first));
    assert_eq!((&batch["results"][1], &batch["results"][2]), (&json!({}), &batch["results"][0]));
}

async fn of_two_sources_the_newer_record_is_shown_and_each_id_once(server: &TestServer) {
    let old = record("A-1", "flask", "2");
    let mut new = record("A-1", "flask", "3");
    new["modified"] = json!("2026-02-01T00:00:00Z");
    import(server, "first", std::slice::from_ref(&old)).await;
    import(server, "second", std::slice::from_ref(&new)).await;
    import(server, "third", &[old]).await;
    let anonymous = server.anonymous();
    assert_eq!(ok(&anonymous, "GET /osv/v1/vulns/A-1", Value::Null).await, new);
    assert_eq!(found(&anonymous, "flask", "1").await, ["A-1"]);
}

async fn what_makes_no_sense_is_refused_in_the_form_of_the_api(server: &TestServer) {
    let anonymous = server.anonymous();
    let query = "POST /osv/v1/query";
    for body in [
        json!({}),
        json!({ "package": { "name": "a" } }),
        json!({ "package": { "ecosystem": "PyPI" } }),
        json!({ "package": { "purl": "flask" } }),
        json!({ "package": { "purl": "pkg:docker/a@1" } }),
        json!({ "package": { "purl": "pkg:pypi/a@1" }, "version": "1" }),
        json!({ "package": { "purl": "pkg:pypi/a", "name": "a", "ecosystem": "PyPI" } }),
        json!({ "commit": "6879efc2c1596d11a6a6ad296f80063b558d5e0f" }),
        json!({ "package": { "name": "a", "ecosystem": "PyPI" }, "page_token": "?" }),
        json!({ "package": 7 }),
        json!([]),
    ] {
        refused_by_osv(&anonymous, query, body.clone(), 400, 3).await;
    }
    let one = json!({ "package": { "name": "a", "ecosystem": "PyPI" } });
    let many = json!({ "queries": vec![one.clone(); 1001] });
    refused_by_osv(&anonymous, "POST /osv/v1/querybatch", many, 400, 3).await;
    let wrong = json!({ "queries": [one, {}] });
    let message = refused_by_osv(&anonymous, "POST /osv/v1/querybatch", wrong, 400, 3).await;
    assert!(message.starts_with("queries[1]: "), "{message}");
    refused_by_osv(&anonymous, "GET /osv/v1/vulns/..%2F..%2Fx", Value::Null, 400, 3).await;
    refused_by_osv(&anonymous, "GET /osv/v1/query", Value::Null, 405, 12).await;
    refused_by_osv(&anonymous, "GET /osv/v1/nothing", Value::Null, 404, 5).await;
}

async fn an_address_over_its_rate_limit_gets_the_time_to_wait(engine: Engine) {
    on_engine_with(
        engine,
        |options| options.osv_rate = Some(1),
        async |server| {
            let anonymous = server.anonymous();
            let mut refusals = 0;
            for _ in 0..15 {
                let reply = call(&anonymous, "GET /osv/v1/vulns/A-1", Value::Null).await;
                if reply.status == 429 {
                    assert!(reply.header("retry-after").is_some());
                    refusals += 1;
                }
            }
            assert!(refusals >= 3, "{refusals}");
        },
    )
    .await;
}

async fn a_host_of_its_own_serves_the_api_at_its_root(engine: Engine) {
    on_engine_with(
        engine,
        |options| options.osv_url = Some("http://osv.example".into()),
        async |server| {
            let brought = record("A-1", "flask", "2");
            import(server, "test", std::slice::from_ref(&brought)).await;
            let query = json!({ "package": { "purl": "pkg:pypi/flask@1" } });
            let send = async |host: &str, verb: &str, path: &str, body: &Value| {
                let sent = headers(&[("host", host), ("content-type", "application/json")]);
                let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
                server.anonymous().rest_with(verb, path, sent, body).await
            };
            for (host, path) in [
                ("osv.example", "/v1/query"),
                ("OSV.example", "/v1/query?key=x"),
                ("osv.example", "/osv/v1/query"),
                ("elsewhere.example", "/osv/v1/query"),
            ] {
                let reply = send(host, "POST", path, &query).await;
                assert_eq!((reply.status, reply.json()["vulns"][0]["id"].as_str()), (200, Some("A-1")), "{host}{path}");
            }
            let batch = json!({ "queries": [query] });
            assert_eq!(send("osv.example", "POST", "/v1/querybatch", &batch).await.status, 200);
            assert_eq!(send("osv.example", "GET", "/v1/vulns/A-1", &Value::Null).await.json(), brought);
            // Nothing else is served there, and errors have the form of this API.
            for path in ["/", "/v1/nothing", "/iam/v2/groups", "/v2/", "/console", "/.well-known/openid-configuration"]
            {
                let reply = send("osv.example", "GET", path, &Value::Null).await;
                assert_eq!(
                    (reply.status, reply.json()["message"].as_str()),
                    (404, Some("there is nothing here")),
                    "{path}"
                );
            }
            let hashes = send("osv.example", "POST", "/v1experimental/determineversion", &json!({})).await;
            assert_eq!((hashes.status, hashes.json()["code"].as_i64()), (501, Some(12)), "{}", hashes.text());
            assert_eq!(send("elsewhere.example", "POST", "/v1/query", &query).await.status, 404);
        },
    )
    .await;
}

async fn names_of_ecosystems_are_validated(server: &TestServer) {
    import(server, "test", &[record("A-1", "flask", "2")]).await;
    // Also one that is validated apart from the connection.
    let long = "a".repeat(5000);
    let names = [("", 400), ("%00", 400), ("PyPI%2F%2F", 400), ("a%25", 400), (&*long, 400), ("PyPI", 200)];
    for (ecosystem, status) in names {
        let path = format!("/records/v1/packages?ecosystem={ecosystem}");
        let reply = server.anonymous().rest("GET", &path, None).await;
        assert_eq!(reply.status, status, "{ecosystem}: {}", reply.text());
        if status == 200 {
            assert_eq!(reply.json()["packages"][0]["name"], "flask");
        }
    }
}

each_engine!(
    names_of_ecosystems_are_validated,
    a_record_is_answered_as_it_was_brought,
    packages_are_found_by_the_order_of_their_ecosystem,
    a_batch_is_answered_in_its_order_with_ids_alone,
    long_answers_come_in_pages,
    of_two_sources_the_newer_record_is_shown_and_each_id_once,
    what_makes_no_sense_is_refused_in_the_form_of_the_api
);

by_engine!(a_host_of_its_own_serves_the_api_at_its_root, an_address_over_its_rate_limit_gets_the_time_to_wait);
