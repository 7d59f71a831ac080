//! Forms, encodings and parameters of REST requests, and the encoding of large responses.

use bowline_testkit::{TestServer, each_engine};
use std::io::Read as _;

use bowline_contract::{ApiVersion, Verb};
use serde_json::{Value, json};

use crate::support::{Refusal, call, machine, ok, send, token_of};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn where_post_creates_a_form_is_refused_and_json_labelled_as_one_is_json(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    for what in [
        "POST /iam/v2/groups".to_owned(),
        "POST /iam/v1/groups".into(),
        format!("POST /registry/v2/repos/{org}"),
        format!("POST /registry/v1/repos/{org}"),
        format!("PATCH /iam/v2/groups/{org}"),
    ] {
        let reply = send(&operator, &what, &[FORM], "name=globex").await;
        assert_eq!(reply.status, 415, "{what}: {}", reply.text());
        assert_eq!(Refusal(reply.json()).reason(), "UNSUPPORTED_MEDIA_TYPE", "{what}");
        assert_eq!(reply.header("accept"), Some("application/json"), "{what}");
    }
    let repos = ok(&operator, "GET /registry/v2/repos", Value::Null).await;
    assert_eq!(repos["repos"], json!([]));
    // curl sends JSON as a form by default.
    let made = send(&operator, "POST /iam/v2/groups", &[FORM], r#" {"name":"globex"}"#).await;
    assert_eq!((made.status, &made.json()["name"]), (200, &json!("globex")));
    // Nothing at all is the list still.
    let empty = send(&operator, "POST /iam/v2/groups", &[FORM], "").await;
    assert_eq!(empty.json()["totalCount"], "2", "{}", empty.text());
}

async fn forms_of_reading_calls_are_validated(server: &TestServer) {
    let org = server.organization("acme").await;
    server.repo(&org, "web").await;
    let operator = server.operator().await;
    let counts = "/iam/v2/identities:lookupIdentity";
    for (path, body, field) in [
        (counts, "issuer=https://a.example&subject=s&nonsense=1", "nonsense"),
        (counts, "issuer=https://a.example&subject=s&issuer=https://b.example", "issuer"),
        ("/sts/exchange", "aud=a&nonsense=1", "nonsense"),
        ("/auth/v1/ok", "x", "x"),
        ("/auth/v1/ok", "limit=3", "limit"),
    ] {
        let reply = send(&operator, &format!("POST {path}"), &[FORM], body).await;
        assert_eq!(reply.status, 400, "{path} {body}: {}", reply.text());
        assert_eq!(Refusal(reply.json()).fields(), [field], "{path} {body}");
    }
    for body in [r#"{"issuer":"https://a.example","subject":"s"}"#, "issuer=%zz", "[]"] {
        let reply = send(&operator, &format!("POST {counts}"), &[FORM], body).await;
        assert_eq!((reply.status, &reply.json()["code"]), (400, &json!(3)), "{body}: {}", reply.text());
    }
    let reply = operator
        .rest_with(
            "POST",
            counts,
            [FORM].into_iter().map(|(n, v)| (n.parse().expect("a name"), v.parse().expect("a value"))).collect(),
            vec![b'a', 0xff],
        )
        .await;
    assert_eq!((reply.status, &reply.json()["code"]), (400, &json!(3)), "{}", reply.text());
    // Parameters of the address continue being ignored where they are unknown.
    ok(&operator, "GET /auth/v1/ok?nonsense=1", Value::Null).await;
    assert_eq!(send(&operator, "POST /auth/v1/ok", &[FORM], "").await.status, 200);
}

async fn a_body_in_an_encoding_that_is_not_understood_is_refused(server: &TestServer) {
    let operator = server.operator().await;
    let json = ("content-type", "application/json");
    for (encoding, status) in
        [("gzip", 415), ("br", 415), ("identity, x", 415), ("identity", 200), ("Identity", 200), ("", 200)]
    {
        let name = format!("o{}", encoding.len());
        let body = json!({ "name": format!("{name}-{}", encoding.to_lowercase().len() + usize::from(encoding == "Identity")) });
        let headers = [json, ("content-encoding", encoding)];
        let reply = send(&operator, "POST /iam/v2/groups", &headers, &body.to_string()).await;
        assert_eq!(reply.status, status, "{encoding}: {}", reply.text());
        if status == 415 {
            assert_eq!(reply.header("accept-encoding"), Some("identity"));
            assert_eq!(Refusal(reply.json()).reason(), "UNSUPPORTED_ENCODING");
        }
    }
    // Without a body there is nothing to decode.
    assert_eq!(send(&operator, "GET /iam/v2/groups", &[("content-encoding", "gzip")], "").await.status, 200);
    // Beside the contract likewise.
    for path in ["/osv/v1/query", "/scim/v2/a/Users", "/v2/a/b/blobs/uploads/", "/oauth/token", "/token"] {
        let reply = send(&operator, &format!("POST {path}"), &[json, ("content-encoding", "gzip")], "{}").await;
        assert_eq!(reply.status, 415, "{path}: {}", reply.text());
    }
}

async fn a_parameter_of_one_value_may_come_once(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    for (what, field) in [
        ("GET /registry/v2/repos?page_size=1&page_size=2".to_owned(), "page_size"),
        ("GET /registry/v2/repos?page_size=1&pageSize=1".into(), "pageSize"),
        ("GET /registry/v2/repos?name=a&name=b".into(), "name"),
        (format!("GET /registry/v2/repos?uidp.descendants_of={org}&uidp.descendantsOf={org}"), "uidp.descendantsOf"),
        ("GET /registry/v1/repos?limit=1&limit=2".into(), "limit"),
        ("GET /registry/v1/repos?page_size=1&page=1&pageSize=2".into(), "pageSize"),
        (format!("PATCH /registry/v2/repos/{repo}?updateMask=name&update_mask=description"), "update_mask"),
        ("GET /sts/exchange?aud=a&identity=x&identity=y".into(), "identity"),
    ] {
        let body = if what.starts_with("PATCH") { json!({ "description": "d" }) } else { Value::Null };
        let reply = call(&operator, &what, body).await;
        assert_eq!(reply.status, 400, "{what}: {}", reply.text());
        assert_eq!(Refusal(reply.json()).fields(), [field], "{what}");
    }
    // Lists take as many as they have elements.
    let ids = ok(&operator, &format!("GET /registry/v2/repos?uidp.ids={repo}&uidp.ids={org}"), Value::Null).await;
    assert_eq!(ids["totalCount"], "1");
    // So do parameters that the method does not know.
    ok(&operator, "GET /registry/v2/repos?x=1&x=2", Value::Null).await;
}

async fn large_responses_are_compressed_for_callers_that_accept_it(server: &TestServer) {
    let org = server.organization("acme").await;
    for i in 0..60 {
        server.repo(&org, &format!("repository-{i:02}")).await;
    }
    let robot = machine(server, &org, "robot").await;
    let operator = server.operator().await;
    let gzip = ("accept-encoding", "gzip, br");
    for path in ["/registry/v2/repos?page_size=200", "/registry/v1/repos", "/openapi/v1.json", "/openapi/v2.json"] {
        let plain = send(&operator, &format!("GET {path}"), &[], "").await;
        let packed = send(&operator, &format!("GET {path}"), &[gzip], "").await;
        assert_eq!((plain.header("content-encoding"), packed.header("content-encoding")), (None, Some("gzip")));
        for reply in [&plain, &packed] {
            let vary = reply.header("vary").unwrap_or_default().to_ascii_lowercase();
            assert!(vary.contains("accept-encoding"), "{path}: {vary}");
            assert_eq!(reply.header("content-length"), Some(&*reply.body.len().to_string()), "{path}");
        }
        assert!(packed.body.len() * 3 < plain.body.len(), "{path}");
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&*packed.body).read_to_end(&mut unpacked).expect("gzip");
        assert_eq!(unpacked, plain.body, "{path}");
        let refused = send(&operator, &format!("GET {path}"), &[("accept-encoding", "gzip;q=0, *")], "").await;
        assert_eq!(refused.header("content-encoding"), None, "{path}");
    }
    // Small ones, errors and tokens travel as they are.
    let upstream = robot.actor.with_token(&server.idp().token("robot", server.base(), Value::Null));
    let exchange = format!("GET /sts/exchange?aud={}&identity={}", server.base(), robot.uid);
    let token = send(&upstream, &exchange, &[gzip], "").await;
    token_of(&token);
    let small = send(&operator, "GET /iam/v2/groups", &[gzip], "").await;
    let error = send(&operator, "GET /iam/v2/groups?page_size=x", &[gzip], "").await;
    for reply in [token, small, error] {
        assert_eq!(reply.header("content-encoding"), None, "{}", reply.text());
    }
}

async fn openapi_documents_are_sent_once_to_callers_that_keep_them(server: &TestServer) {
    let caller = server.anonymous();
    for path in ["/openapi/v1.json", "/openapi/v2.json"] {
        let get = format!("GET {path}");
        let first = send(&caller, &get, &[], "").await;
        let etag = first.header("etag").expect("an ETag").to_owned();
        assert_eq!((first.status, etag.starts_with("W/\"")), (200, true), "{etag}");
        let packed = send(&caller, &get, &[("accept-encoding", "gzip")], "").await;
        assert_eq!(packed.header("etag"), Some(&*etag), "the tag is that of the content");
        for encoding in ["identity", "gzip"] {
            let headers = [("if-none-match", &*etag), ("accept-encoding", encoding)];
            let known = send(&caller, &get, &headers, "").await;
            assert_eq!((known.status, known.body.len()), (304, 0), "{path}");
            for header in ["etag", "cache-control", "vary"] {
                assert_eq!(known.header(header), first.header(header), "{path}: {header}");
            }
        }
        let changed = send(&caller, &get, &[("if-none-match", "W/\"other\"")], "").await;
        assert_eq!((changed.status, &changed.body), (200, &first.body), "{path}");
    }
}

async fn the_root_says_what_answers_there(server: &TestServer) {
    let reply = call(&server.anonymous(), "GET /", Value::Null).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{}", reply.text());
    let root = reply.json();
    assert_eq!((&root["name"], &root["version"]), (&json!("bowline"), &json!(env!("CARGO_PKG_VERSION"))));
    let documents = root["documents"].as_object().expect("documents").clone();
    assert_eq!(documents.len(), 3);
    for url in documents.values() {
        let url = url.as_str().expect("an address");
        let path = url.strip_prefix(server.base()).expect("an address of the server");
        ok(&server.anonymous(), &format!("GET {path}"), Value::Null).await;
    }
    assert_eq!(call(&server.anonymous(), "POST /", json!({})).await.header("allow"), Some("GET,HEAD"));
}

async fn every_v2_list_has_its_paging_members_in_both_spellings(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let contract = &server.server().parts().contract;
    let mut lists = 0;
    for method in contract.methods().iter().filter(|method| method.version == ApiVersion::V2) {
        let has = |name: &str| method.output.get_field_by_name(name).is_some();
        let Some(binding) = method.bindings.iter().find(|binding| binding.verb == Verb::Get) else { continue };
        if !has("next_page_token") || !has("total_count") {
            continue;
        }
        let template = binding.template.to_string();
        let (path, parameters) = match template.as_str() {
            "/libraries/v2/artifacts" => (template.clone(), "ecosystems=ECOSYSTEM_PYTHON"),
            "/libraries/v2/artifacts/{artifact_id=*}/versions"
            | "/images/v1/repos/{repo_uid=**}/images/{digest}/packages" => continue,
            _ => (template.replace("{group=**}", &org).replace("{parent=**}", &org), ""),
        };
        assert!(!path.contains('{'), "{path}: give this test a value for the variable");
        let both = ok(&operator, &format!("GET {path}?{parameters}&page_size=1"), Value::Null).await;
        let one = ok(&operator, &format!("GET {path}?{parameters}&pageSize=1"), Value::Null).await;
        let members = |value: &Value| -> Vec<String> {
            value.as_object().expect("an object").keys().filter(|name| !name.contains('_')).cloned().collect()
        };
        assert_eq!(members(&both), members(&one), "{path}");
        assert_eq!(both["nextPageToken"], both["next_page_token"], "{path}");
        let total = both["totalCount"].as_str().map(|total| json!(total.parse::<i64>().expect("a number")));
        assert_eq!(both.get("total_count").cloned(), total, "{path}: {both}");
        assert!(one.get("total_count").is_none() && one.get("next_page_token").is_none(), "{path}: {one}");
        lists += 1;
    }
    assert!(lists >= 15, "{lists}");
}

each_engine!(
    where_post_creates_a_form_is_refused_and_json_labelled_as_one_is_json,
    forms_of_reading_calls_are_validated,
    a_body_in_an_encoding_that_is_not_understood_is_refused,
    a_parameter_of_one_value_may_come_once,
    large_responses_are_compressed_for_callers_that_accept_it,
    openapi_documents_are_sent_once_to_callers_that_keep_them,
    the_root_says_what_answers_there,
    every_v2_list_has_its_paging_members_in_both_spellings
);
