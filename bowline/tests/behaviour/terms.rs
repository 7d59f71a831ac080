//! Terms: an organization accepts what the operator wants accepted, and before that nothing in it changes.

use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::groups_service::UpdateGroup;
use bowline_contract::v2::iam::rpc::terms_service::AcceptTerms;
use bowline_server::{Options, TermsOption};
use bowline_testkit::{Actor, Engine, TestServer, by_engine, on_engine_with};
use serde_json::{Value, json};

use crate::support::{call, each, inventory, machine, number, ok, rejected, uid_of};

fn documents(options: &mut Options) {
    let document = |id: &str| TermsOption {
        id: id.into(),
        label: format!("The {id}"),
        url: format!("https://operator.example/{id}"),
    };
    options.terms = vec![document("terms-1"), document("privacy-1")];
}

fn required(options: &mut Options) {
    documents(options);
    options.terms_required = true;
}

/// That a call is refused for want of acceptance, naming these documents.
async fn gated(actor: &Actor, what: &str, body: Value, missing: &[&str]) {
    let reply = call(actor, what, body).await;
    assert_eq!(reply.status, 400, "{what}: {}", reply.text());
    let json = reply.json();
    assert_eq!((json["code"].as_i64(), json["message"].as_str()), (Some(9), Some("terms not accepted")), "{what}");
    let wanted = "type.googleapis.com/chainguard.platform.iam.TermsNotAcceptedDetail";
    let details = json["details"].as_array().cloned().unwrap_or_default();
    let detail = details.iter().find(|detail| detail["@type"] == wanted).unwrap_or(&Value::Null);
    assert_eq!(each(&detail["missing"], "id"), missing, "{what}: {json}");
    assert_eq!(detail["missing"][0]["label"], format!("The {}", missing[0]));
    assert_eq!(detail["missing"][0]["url"], format!("https://operator.example/{}", missing[0]));
}

async fn rows(server: &TestServer) -> (i64, i64, i64) {
    (
        number(server, "SELECT count(*) FROM terms_acceptances").await,
        number(server, "SELECT count(*) FROM audit WHERE kind = 'iam.chainguard.dev/TermsAcceptance'").await,
        number(
            server,
            "SELECT count(*) FROM outbox WHERE event_type = 'dev.chainguard.api.iam.terms.accepted.v1' AND customer
             AND body_type = 'chainguard.platform.iam.AcceptTermsRequest' AND group_uid = org AND org <> ''",
        )
        .await,
    )
}

async fn an_organization_accepts_once_and_says_who_and_when(engine: Engine) {
    on_engine_with(engine, documents, async |server| {
        let org = server.organization("acme").await;
        let owner = server.actor("owner", &org).await;
        let accept = format!("POST /iam/v2/terms/{org}");
        let answer = ok(&owner, &accept, json!({ "documentIds": ["terms-1", "terms-1"] })).await;
        assert_eq!(answer, json!({ "group": org, "documentIds": ["terms-1"] }));
        assert_eq!(rows(server).await, (1, 1, 1));
        // Again, by another caller, in the other version: nothing changes, and there is no event.
        let other = server.actor("owner", &org).await;
        let answer = ok(&other, &format!("POST /iam/v1/terms/{org}"), json!({ "documentIds": ["terms-1"] })).await;
        assert_eq!(answer, json!({ "group": org, "documentIds": ["terms-1"] }));
        assert_eq!(rows(server).await, (1, 1, 1));
        // Over gRPC, the one as before and another.
        server.clock().advance(std::time::Duration::from_secs(1));
        let document_ids = vec!["terms-1".into(), "privacy-1".into()];
        let request = v2::AcceptTermsRequest { group: org.clone(), document_ids };
        other.grpc::<AcceptTerms>(request).await.expect("it is accepted");
        assert_eq!(rows(server).await, (2, 2, 2));

        let list = ok(&other, &format!("GET /iam/v2/terms/{org}?order_by=created_at"), Value::Null).await;
        assert_eq!(
            (each(&list["termsAcceptances"], "docId"), &list["totalCount"]),
            (vec!["terms-1", "privacy-1"], &json!("2"))
        );
        assert_eq!(each(&list["termsAcceptances"], "acceptedBy"), [&owner.identity, &other.identity]);
        assert_eq!(each(&list["termsAcceptances"], "orgUid"), [&org, &org]);
        assert!(list["termsAcceptances"][0]["createTime"].is_string(), "{list}");
        let first = ok(&other, &format!("GET /iam/v2/terms/{org}?page_size=1&order_by=created_at"), Value::Null).await;
        let token = first["nextPageToken"].as_str().expect("there is more");
        let path = format!("GET /iam/v2/terms/{org}?page_size=1&order_by=created_at&page_token={token}");
        assert_eq!(each(&ok(&other, &path, Value::Null).await["termsAcceptances"], "docId"), ["privacy-1"]);
        let list = ok(&other, &format!("GET /iam/v1/terms/{org}"), Value::Null).await;
        assert_eq!(list["items"].as_array().map(Vec::len), Some(2), "{list}");
        assert!(each(&list["items"], "acceptedBy").contains(&owner.identity.as_str()));
        // Nothing changes as long as nothing is required.
        ok(&owner, &format!("PATCH /iam/v2/groups/{org}"), json!({ "description": "d" })).await;
    })
    .await;
}

async fn only_an_organization_accepts_and_only_what_there_is(engine: Engine) {
    on_engine_with(engine, documents, async |server| {
        let org = server.organization("acme").await;
        let team = server.group(&org, "team").await;
        let owner = server.actor("owner", &org).await;
        let before = inventory(server).await;
        for (place, ids, field) in [
            (&team, json!(["terms-1"]), "group"),
            (&org, json!(["terms-1", "nothing"]), "documentIds[1]"),
            (&org, json!([]), "documentIds"),
            (&org, json!(["x".repeat(129)]), "documentIds[0]"),
        ] {
            for version in ["v1", "v2"] {
                let what = format!("POST /iam/{version}/terms/{place}");
                let refusal = rejected(&owner, &what, json!({ "documentIds": ids }), 400, "INVALID_ARGUMENT").await;
                assert_eq!(refusal.fields(), [field], "{version}");
            }
        }
        let viewer = server.actor("viewer", &org).await;
        let what = format!("POST /iam/v2/terms/{org}");
        let viewer_may = call(&viewer, &what, json!({ "documentIds": ["terms-1"] })).await;
        assert_eq!(viewer_may.status, 403, "{}", viewer_may.text());
        // What a viewer and its rows need came after the count.
        let after = inventory(server).await;
        assert_eq!((after[0], after[4]), (before[0], before[4]));
        assert_eq!(rows(server).await, (0, 0, 0));
        // A group in it has accepted nothing itself, one that is not there even less.
        let list = ok(&owner, &format!("GET /iam/v2/terms/{team}"), Value::Null).await;
        assert_eq!(list["termsAcceptances"], json!([]));
        let absent = format!("{org}/00000000000000ff");
        rejected(&owner, &format!("GET /iam/v2/terms/{absent}"), Value::Null, 404, "NOT_FOUND").await;
        assert_eq!(ok(&owner, &format!("GET /iam/v1/terms/{absent}"), Value::Null).await["items"], json!([]));
    })
    .await;
}

async fn nothing_changes_in_an_organization_that_has_not_accepted(engine: Engine) {
    on_engine_with(engine, required, async |server| {
        let org = server.organization("acme").await;
        let team = server.group(&org, "team").await;
        let repo = server.repo(&team, "web").await;
        let friend = machine(server, &org, "friend").await;
        let owner = server.actor("owner", &org).await;
        let both = ["terms-1", "privacy-1"];
        let before = inventory(server).await;
        // Each kind of write: scoped by path or body, unscoped, of both versions, deep below.
        let binding = json!({ "identityUid": friend.uid, "roleUid": server.role("viewer") });
        for (what, body) in [
            (format!("PATCH /iam/v2/groups/{org}"), json!({ "description": "d" })),
            (format!("PUT /iam/v1/groups/{team}"), json!({ "name": "team" })),
            (format!("POST /iam/v2/groups/{org}"), json!({ "name": "below" })),
            (format!("POST /iam/v1/groups/{team}"), json!({ "name": "below" })),
            (format!("POST /iam/v2/roleBindings/{team}"), binding),
            (format!("POST /registry/v2/repos/{team}"), json!({ "name": "other" })),
            (format!("POST /registry/v1/repos/{org}"), json!({ "name": "other" })),
            (format!("PATCH /registry/v2/repos/{repo}/readme"), json!({ "content": "x" })),
        ] {
            // The read-me needs a capability that an owner has and an editor has not.
            gated(&owner, &what, body, &both).await;
        }
        assert_eq!(inventory(server).await, before);
        let group = v2::Group { uid: org.clone(), description: "d".into(), ..v2::Group::default() };
        let request = v2::UpdateGroupRequest { group: Some(group), update_mask: None };
        let error = owner.grpc::<UpdateGroup>(request).await.expect_err("nothing is accepted");
        assert_eq!((error.code, error.message.as_str()), (9, "terms not accepted"));
        let detail: v1::TermsNotAcceptedDetail = error.detail().expect("the documents");
        assert_eq!(detail.missing.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), both);

        // A caller without the permission gets that error, whatever else is wrong.
        let (stranger, what) = (server.stranger().await, format!("PATCH /iam/v2/groups/{org}"));
        rejected(&stranger, &what, json!({ "description": "d" }), 403, "PERMISSION_DENIED").await;
        rejected(&owner, &what, json!({ "name": "/" }), 400, "INVALID_ARGUMENT").await;
        // Reading and the operator continue.
        ok(&owner, &format!("GET /iam/v2/groups/{org}"), Value::Null).await;
        ok(&server.operator().await, &what, json!({ "description": "d" })).await;
    })
    .await;
}

async fn accepting_and_leaving_are_always_open(engine: Engine) {
    on_engine_with(engine, required, async |server| {
        let org = server.organization("acme").await;
        let (team, doomed) = (server.group(&org, "team").await, server.group(&org, "doomed").await);
        let repo = server.repo(&team, "web").await;
        let friend = machine(server, &org, "friend").await;
        let binding = server.bind(&friend.uid, &server.role("viewer"), &team).await;
        let owner = server.actor("owner", &org).await;
        for what in [
            format!("DELETE /registry/v2/repos/{repo}"),
            format!("DELETE /iam/v1/rolebindings/{binding}"),
            format!("DELETE /iam/v2/identities/{}", friend.uid),
            format!("DELETE /iam/v2/groups/{doomed}"),
        ] {
            assert_eq!(call(&owner, &what, Value::Null).await.status, 200, "{what}");
        }
        let (accept, update) = (format!("POST /iam/v2/terms/{org}"), format!("PATCH /iam/v2/groups/{team}"));
        ok(&owner, &accept, json!({ "documentIds": ["privacy-1"] })).await;
        gated(&owner, &update, json!({ "description": "d" }), &["terms-1"]).await;
        ok(&owner, &accept, json!({ "documentIds": ["terms-1"] })).await;
        ok(&owner, &update, json!({ "description": "d" })).await;
        let below = uid_of(&ok(&owner, &format!("POST /iam/v2/groups/{team}"), json!({ "name": "below" })).await);
        // What one accepted opens no other.
        let other = server.organization("other").await;
        let other = server.actor("owner", &other).await;
        let place = other.identity.rsplit_once('/').expect("a machine lives in a group").0.to_owned();
        gated(
            &other,
            &format!("PATCH /iam/v2/groups/{place}"),
            json!({ "description": "d" }),
            &["terms-1", "privacy-1"],
        )
        .await;
        ok(&owner, &format!("PATCH /iam/v2/groups/{below}"), json!({ "description": "d" })).await;
    })
    .await;
}

async fn acceptances_go_with_the_organization(engine: Engine) {
    on_engine_with(engine, documents, async |server| {
        let org = server.organization("acme").await;
        let operator = server.operator().await;
        let body = json!({ "documentIds": ["terms-1", "privacy-1"] });
        ok(&operator, &format!("POST /iam/v2/terms/{org}"), body).await;
        assert_eq!(call(&operator, &format!("DELETE /iam/v2/groups/{org}"), Value::Null).await.status, 200);
        // Two came, two went.
        assert_eq!(rows(server).await, (0, 4, 1));
    })
    .await;
}

#[tokio::test]
async fn what_is_required_must_be_there() {
    let options = Options { terms_required: true, ..Options::default() };
    let directory = tempfile::tempdir().expect("a scratch directory is made");
    let options =
        Options { data_dir: Some(directory.path().into()), listen: Some(([127, 0, 0, 1], 0).into()), ..options };
    let started = bowline_server::Server::start(&options, std::sync::Arc::new(bowline_core::SystemClock)).await;
    let error = started.err().expect("there is nothing to accept").to_string();
    assert!(error.contains("[[terms]]"), "{error}");
}

by_engine!(
    an_organization_accepts_once_and_says_who_and_when,
    only_an_organization_accepts_and_only_what_there_is,
    nothing_changes_in_an_organization_that_has_not_accepted,
    accepting_and_leaving_are_always_open,
    acceptances_go_with_the_organization
);
