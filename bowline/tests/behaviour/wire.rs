//! The wire: spellings, paths, verbs, forms, headers, and the same errors over both transports.

use bowline_contract::google::rpc::{BadRequest, ErrorInfo, Help, PreconditionFailure, ResourceInfo};
use bowline_contract::v2::iam::rpc::groups_service::{CreateGroup, DeleteGroup, GetGroup};
use bowline_contract::v2::iam::{CreateGroupRequest, DeleteGroupRequest, GetGroupRequest, Group};
use bowline_testkit::{Actor, GrpcError, TestServer, each_engine};
use prost::Message as _;
use serde_json::{Value, json};

use crate::support::{Refusal, absent, call, ok, send, uid_of};

const FORM: &[(&str, &str)] = &[("content-type", "application/x-www-form-urlencoded")];

async fn both_spellings_and_the_pre_release_names_are_understood(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let operator = server.operator().await;
    for name in ["a", "b", "c"] {
        server.repo(&org, name).await;
    }
    let one = ok(&operator, "GET /registry/v2/repos?page_size=2&order_by=name&skip=1", Value::Null).await;
    let other = ok(&operator, "GET /registry/v2/repos?pageSize=2&orderBy=name&skip=1", Value::Null).await;
    assert_eq!(one["repos"], other["repos"]);
    for order in ["create_time", "created_at", "createTime", "createdAt"] {
        ok(&operator, &format!("GET /registry/v2/repos?order_by={order}+desc"), Value::Null).await;
    }
    for filter in ["uidp.descendants_of", "uidp.descendantsOf"] {
        let list = ok(&operator, &format!("GET /iam/v2/groups?{filter}={org}"), Value::Null).await;
        assert_eq!(list["totalCount"], "1", "{filter}");
    }
    let create = format!("POST /registry/v2/repos/{org}");
    for (name, member) in [("d", "activeTags"), ("e", "active_tags")] {
        let made = ok(&operator, &create, json!({ "name": name, member: ["latest"], "unknown": {} })).await;
        assert_eq!(made["activeTags"], json!(["latest"]));
    }
    // The pre-release segment and package are v2, in answers too.
    let beta = ok(&operator, "GET /registry/v2beta1/repos?order_by=name", Value::Null).await;
    assert_eq!(beta, ok(&operator, "GET /registry/v2/repos?order_by=name", Value::Null).await);
    let made = ok(&operator, &format!("POST /iam/v2beta1/groups/{team}"), json!({ "name": "squad" })).await;
    let request = GetGroupRequest { uid: uid_of(&made) }.encode_to_vec();
    let path = "/chainguard.platform.iam.v2beta1.GroupsService/GetGroup";
    let bytes = operator.grpc_raw(path, request).await.expect("the pre-release package is served");
    assert_eq!(Group::decode(bytes.as_slice()).expect("a group").name, "squad");
    assert_eq!(call(&operator, "GET /other/v2beta1/repos", Value::Null).await.status, 404);
}

async fn paging_members_come_in_both_spellings_unless_one_was_asked_for(server: &TestServer) {
    let org = server.organization("acme").await;
    for name in ["a", "b", "c"] {
        server.repo(&org, name).await;
    }
    let operator = server.operator().await;
    let strict = [("accept", "application/json;names=proto3")];
    let page = async |query: &str, headers: &[(&'static str, &str)]| {
        let reply = send(&operator, &format!("GET /registry/v2/repos?{query}"), headers, "").await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{}", reply.text());
        let mut members: Vec<String> = reply.json().as_object().expect("an object").keys().cloned().collect();
        members.sort();
        (members, reply.json())
    };
    let (members, first) = page("page_size=2", &[]).await;
    assert_eq!(members, ["nextPageToken", "next_page_token", "repos", "skipped", "totalCount", "total_count"]);
    assert_eq!((&first["totalCount"], &first["total_count"]), (&json!("3"), &json!(3)));
    assert_eq!(first["nextPageToken"], first["next_page_token"]);
    let token = first["nextPageToken"].as_str().expect("a token").to_owned();
    let (members, last) = page(&format!("page_size=2&page_token={token}"), &[]).await;
    assert_eq!(members, ["repos", "skipped", "totalCount", "total_count"], "{last}");
    let plain = ["nextPageToken", "repos", "skipped", "totalCount"];
    assert_eq!(page("pageSize=2", &[]).await.0, plain);
    assert_eq!(page("page_size=2", &strict).await.0, plain);
    assert_eq!(page(&format!("page_size=2&page_token={token}"), &strict).await.0, ["repos", "skipped", "totalCount"]);
    let (members, _) = page(&format!("page_size=2&pageToken={token}"), &[]).await;
    assert_eq!(members, ["repos", "skipped", "totalCount"]);
}

async fn reads_take_forms_and_wrong_verbs_get_the_allowed_ones(server: &TestServer) {
    let org = server.organization("acme").await;
    server.repo(&org, "web").await;
    let operator = server.operator().await;
    let list = "/libraries/v2/artifacts";
    let by_form = send(&operator, &format!("POST {list}"), FORM, "ecosystems=ECOSYSTEM_PYTHON&page_size=5").await;
    assert_eq!(by_form.status, 200, "{}", by_form.text());
    let by_query = format!("GET {list}?ecosystems=ECOSYSTEM_PYTHON&page_size=5");
    assert_eq!(by_form.json(), ok(&operator, &by_query, Value::Null).await);
    let charset = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
    assert_eq!(send(&operator, "POST /registry/v1/repos", &charset, "").await.status, 200);
    let look = "/iam/v2/identities:lookupIdentity";
    let by_form = send(&operator, &format!("POST {look}"), FORM, "issuer=https://a.example&subject=s").await;
    assert_eq!(
        by_form.json(),
        ok(&operator, &format!("GET {look}?issuer=https://a.example&subject=s"), Value::Null).await
    );
    for (what, allowed) in [
        (format!("POST {look}"), "GET, HEAD"),
        ("PUT /auth/v1/ok".into(), "GET, HEAD"),
        ("POST /auth/v1/ok".into(), "GET, HEAD"),
        (format!("PUT /registry/v2/repos/{org}"), "DELETE, GET, HEAD, PATCH, POST"),
        (format!("GET /iam/v1/groups/{org}"), "DELETE, POST, PUT"),
    ] {
        let reply = send(&operator, &what, &[("content-type", "application/json")], "{}").await;
        assert_eq!(reply.status, 405, "{what}: {}", reply.text());
        assert_eq!(reply.json()["code"], 12);
        let mut verbs: Vec<&str> = reply.header("allow").unwrap_or_default().split(", ").collect();
        verbs.sort_unstable();
        assert_eq!(verbs.join(", "), allowed, "{what}");
    }
    for path in ["/nothing", "/iam/v2/nothing", "/iam/v3/groups", "/registry/v2"] {
        let reply = call(&operator, &format!("GET {path}"), Value::Null).await;
        assert_eq!((reply.status, &reply.json()["code"]), (404, &json!(5)), "{path}: {}", reply.text());
    }
    let error =
        operator.grpc_raw("/chainguard.platform.iam.v2.GroupsService/Nothing", Vec::new()).await.expect_err("none");
    assert_eq!(error.code, 12);
    // A method without a handler still authorizes the caller.
    let what = format!("POST /apko/v1/resolve/{org}");
    for (actor, status) in [(&server.anonymous(), 401), (&operator, 501)] {
        let reply = call(actor, &what, json!({})).await;
        assert_eq!(reply.status, status, "{}", reply.text());
    }
}

async fn request_ids_go_in_and_come_out(server: &TestServer) {
    let operator = server.operator().await;
    let list = "GET /iam/v2/groups";
    for (given, kept) in [("abc-1.2", true), ("with space", false), ("", false), (&"x".repeat(129), false)] {
        let reply = send(&operator, list, &[("x-request-id", given)], "").await;
        let id = reply.header("x-request-id").unwrap_or_default();
        assert_eq!(id == given, kept && !given.is_empty(), "{given:?} became {id:?}");
        assert!(!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic()));
    }
    assert_eq!(
        send(&operator, list, &[("cgrequestid", "from-sdk")], "").await.header("x-request-id"),
        Some("from-sdk")
    );
    let ids: Vec<String> = [send(&operator, list, &[], "").await, send(&server.anonymous(), list, &[], "").await]
        .iter()
        .map(|reply| reply.header("x-request-id").unwrap_or_default().to_owned())
        .collect();
    assert!(ids[0].len() == 32 && ids[1].len() == 32 && ids[0] != ids[1], "{ids:?}");
}

async fn an_empty_success_is_empty_in_v2_and_an_object_in_v1(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    for (version, body) in [("v2", ""), ("v1", "{}")] {
        let repo = server.repo(&org, "web").await;
        let reply = call(&operator, &format!("DELETE /registry/{version}/repos/{repo}"), Value::Null).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, body), "{version}");
    }
    // Defaults are written out, and a missing body is an empty one.
    let repo = server.repo(&org, "web").await;
    let reply = send(&operator, &format!("PATCH /registry/v2/repos/{repo}"), &[], "").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let members = reply.json();
    for (member, value) in
        [("description", json!("")), ("bundles", json!([])), ("catalogTier", json!("CATALOG_TIER_UNSPECIFIED"))]
    {
        assert_eq!(members[member], value, "{member}");
    }
}

async fn the_details_of_errors_are_the_same_over_both_transports(server: &TestServer) {
    let org = server.organization("acme").await;
    server.group(&org, "team").await;
    let (operator, stranger) = (server.operator().await, server.stranger().await);
    let get = async |actor: &Actor, uid: &str| {
        actor.grpc::<GetGroup>(GetGroupRequest { uid: uid.into() }).await.expect_err("refused")
    };
    let create = async |actor: &Actor, name: &str| {
        let group = Group { name: name.into(), ..Group::default() };
        let request = CreateGroupRequest { parent: org.clone(), group: Some(group) };
        actor.grpc::<CreateGroup>(request).await.expect_err("refused")
    };
    let delete = operator.grpc::<DeleteGroup>(DeleteGroupRequest { uid: org.clone() }).await.expect_err("refused");
    let missing = absent(&org);
    let cases: Vec<(GrpcError, &Actor, String, Value)> = vec![
        (get(&operator, &missing).await, &operator, format!("GET /iam/v2/groups/{missing}"), Value::Null),
        (get(&stranger, &org).await, &stranger, format!("GET /iam/v2/groups/{org}"), Value::Null),
        (get(&operator, "x").await, &operator, "GET /iam/v2/groups/x".into(), Value::Null),
        (create(&operator, "A").await, &operator, format!("POST /iam/v2/groups/{org}"), json!({ "name": "A" })),
        (create(&operator, "team").await, &operator, format!("POST /iam/v2/groups/{org}"), json!({ "name": "team" })),
        (delete, &operator, format!("DELETE /iam/v2/groups/{org}"), Value::Null),
    ];
    for (grpc, actor, what, body) in cases {
        let reply = call(actor, &what, body).await;
        let rest = Refusal(reply.json());
        assert_eq!(
            (rest.0["code"].as_i64(), rest.message()),
            (Some(grpc.code.into()), grpc.message.as_str()),
            "{what}"
        );
        assert_eq!((grpc.status.code, &grpc.status.message), (grpc.code, &grpc.message), "{what}");
        assert_eq!(as_json(&grpc), rest.0["details"], "{what}");
    }
}

/// The details as REST writes them, made from the bytes that gRPC carried.
fn as_json(error: &GrpcError) -> Value {
    let details = error.status.details.iter().map(|any| {
        let bytes = any.value.as_slice();
        let mut json = match any.type_url.rsplit('.').next().unwrap_or_default() {
            "ErrorInfo" => {
                let info = ErrorInfo::decode(bytes).expect("an ErrorInfo");
                let mut json = json!({ "reason": info.reason, "domain": info.domain });
                if !info.metadata.is_empty() {
                    json["metadata"] = json!(info.metadata);
                }
                json
            }
            "BadRequest" => {
                let violations = BadRequest::decode(bytes).expect("a BadRequest").field_violations;
                let one = |v: &bowline_contract::google::rpc::bad_request::FieldViolation| {
                    json!({ "field": v.field, "description": v.description })
                };
                json!({ "fieldViolations": violations.iter().map(one).collect::<Vec<_>>() })
            }
            "ResourceInfo" => {
                let info = ResourceInfo::decode(bytes).expect("a ResourceInfo");
                json!({ "resourceType": info.resource_type, "resourceName": info.resource_name, "description": info.description })
            }
            "PreconditionFailure" => {
                let violations = PreconditionFailure::decode(bytes).expect("a PreconditionFailure").violations;
                let one = |v: &bowline_contract::google::rpc::precondition_failure::Violation| {
                    json!({ "type": v.r#type, "subject": v.subject, "description": v.description })
                };
                json!({ "violations": violations.iter().map(one).collect::<Vec<_>>() })
            }
            "Help" => {
                let links = Help::decode(bytes).expect("a Help").links;
                let one = |link: &bowline_contract::google::rpc::help::Link| {
                    json!({ "description": link.description, "url": link.url })
                };
                json!({ "links": links.iter().map(one).collect::<Vec<_>>() })
            }
            other => panic!("{other}"),
        };
        json["@type"] = json!(any.type_url);
        json
    });
    details.collect()
}

async fn only_streams_go_on_after_an_event(server: &TestServer) {
    let operator = server.operator().await;
    for id in ["7", "no number"] {
        let reply = send(&operator, "GET /iam/v2/groups", &[("last-event-id", id)], "").await;
        assert_eq!(reply.status, 200, "{id}: {}", reply.text());
    }
}

each_engine!(
    both_spellings_and_the_pre_release_names_are_understood,
    paging_members_come_in_both_spellings_unless_one_was_asked_for,
    reads_take_forms_and_wrong_verbs_get_the_allowed_ones,
    request_ids_go_in_and_come_out,
    an_empty_success_is_empty_in_v2_and_an_object_in_v1,
    the_details_of_errors_are_the_same_over_both_transports,
    only_streams_go_on_after_an_event
);
