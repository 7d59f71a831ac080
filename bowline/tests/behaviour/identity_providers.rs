//! Identity providers: secrets that no one sees again, masks, and who may say where sign-ins come from.

use bowline_contract::v2::iam::rpc::identity_providers_service::{GetIdentityProvider, UpdateIdentityProvider};
use bowline_contract::v2::iam::{GetIdentityProviderRequest, IdentityProvider, UpdateIdentityProviderRequest};
use bowline_core::{Error, Uidp};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{
    absent, assert_nowhere, call, each, holder, inventory, newest_event, ok, provider, provider_of, rejected, role,
    uid_of,
};

const ISSUER: &str = "https://login.example.com";

/// The stored secret of a provider, opened.
async fn secret(server: &TestServer, uid: &str) -> String {
    let storage = &server.server().parts().storage;
    let (uid, sought) = (Uidp::parse(uid).expect("a uid"), uid.to_owned());
    let sql = "SELECT client_secret FROM identity_providers WHERE uid = $1";
    let read = storage.db.read(move |tx| {
        let sought = sought.clone();
        Box::pin(async move {
            tx.query_opt(sql, &[bowline_store::Value::from(&sought)], |row| row.bytes(0).map_err(Error::from)).await
        })
    });
    let sealed = read.await.expect("the database answers").expect("the provider is there");
    if sealed.is_empty() {
        return String::new();
    }
    let opened = storage.wrapping_key.open(&format!("identity provider {uid}"), &sealed).expect("the secret opens");
    String::from_utf8(opened).expect("text")
}

async fn a_provider_is_the_same_in_both_versions(server: &TestServer) {
    let org = server.organization("acme").await;
    let (operator, viewer) = (server.operator().await, server.actor("viewer", &org).await);
    let create = format!("POST /iam/v2/identityProviders/{org}");
    let made = ok(&operator, &create, provider_of(server, "okta", ISSUER)).await;
    let uid = uid_of(&made);
    assert!(uid.starts_with(&format!("{org}/")));
    assert_eq!((&made["oidc"]["issuer"], &made["oidc"]["clientSecret"]), (&json!(ISSUER), &json!("")));
    assert_eq!(made["scim"]["credentialState"], "CREDENTIAL_STATE_NOT_ISSUED");
    assert_eq!(made["scim"]["endpointUrl"], format!("{}/scim/v2/{}", server.base(), uid.replace('/', ".")));
    let [kind, subject, group, _, body] = newest_event(server).await;
    assert_eq!(kind, "dev.chainguard.api.iam.identity_providers.created.v1");
    assert_eq!((subject, group), (uid.clone(), org.clone()));
    assert!(body.contains("okta") && !body.contains("hush"), "{body}");

    let got = ok(&viewer, &format!("GET /iam/v2/identityProviders/{uid}"), Value::Null).await;
    assert_eq!(got, made);
    let request = GetIdentityProviderRequest { uid: uid.clone() };
    assert_eq!(viewer.grpc::<GetIdentityProvider>(request).await.expect("it is there").name, "okta");
    // Lists leave the token's state out.
    let list = ok(&viewer, "GET /iam/v2/identityProviders?name=okta", Value::Null).await;
    let (listed, total) = (&list["identityProviders"][0], &list["totalCount"]);
    assert_eq!((&listed["uid"], total), (&json!(uid), &json!("1")));
    assert_eq!(listed["scim"]["endpointUrl"], made["scim"]["endpointUrl"]);
    assert_eq!(listed["scim"]["etag"].as_str().unwrap_or_default(), "");
    let v1 = ok(&viewer, &format!("GET /iam/v1/identityProviders?id={uid}"), Value::Null).await;
    assert_eq!((&v1["items"][0]["id"], &v1["items"][0]["oidc"]["issuer"]), (&json!(uid), &json!(ISSUER)));

    let v1 = provider_of(server, "okta", "https://other.example.com/");
    let twin = ok(&operator, &format!("POST /iam/v1/identityProviders/{org}"), v1).await;
    let twin = twin["id"].as_str().expect("an id").to_owned();
    let both = ok(&viewer, "GET /iam/v2/identityProviders?order_by=name", Value::Null).await;
    assert_eq!(each(&both["identityProviders"], "name"), ["okta", "okta"], "names need not be unique");
    for gone in [format!("DELETE /iam/v1/identityProviders/{twin}"), format!("DELETE /iam/v2/identityProviders/{uid}")]
    {
        ok(&operator, &gone, Value::Null).await;
        assert_eq!(call(&operator, &gone, Value::Null).await.status, 404);
    }
    let none = ok(&viewer, "GET /iam/v2/identityProviders", Value::Null).await;
    assert_eq!(none["totalCount"], "0");
}

async fn the_secret_is_kept_and_never_shown(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let uid = provider(server, &org, "okta").await;
    assert_eq!(secret(server, &uid).await, "hush");
    let patch = format!("PATCH /iam/v2/identityProviders/{uid}");
    let masked = |mask: &str| format!("{patch}?update_mask={mask}");
    let oidc = |secret: Value| json!({ "issuer": ISSUER, "clientId": "client", "clientSecret": secret });
    let whole = |oidc: Value| json!({ "name": "okta", "defaultRole": server.role("viewer"), "oidc": oidc });
    let without = json!({ "issuer": ISSUER, "clientId": "client" });
    for (what, body, kept) in [
        // What is not said, or replaced with nothing, stays.
        (patch.clone(), json!({ "description": "d" }), "hush"),
        (patch.clone(), json!({ "oidc": { "clientId": "client" } }), "hush"),
        (masked("*"), whole(without.clone()), "hush"),
        (masked("*"), whole(oidc(json!(""))), "hush"),
        (masked("oidc"), json!({ "oidc": oidc(json!("")) }), "hush"),
        (format!("PUT /iam/v1/identityProviders/{uid}"), whole(without.clone()), "hush"),
        (format!("PUT /iam/v1/identityProviders/{uid}"), whole(oidc(json!(""))), "hush"),
        (masked("description"), json!({ "oidc": { "clientSecret": "not meant" } }), "hush"),
        // What is said counts.
        (patch.clone(), json!({ "oidc": { "clientSecret": "second" } }), "second"),
        (masked("oidc"), json!({ "oidc": oidc(json!("third")) }), "third"),
        (format!("PUT /iam/v1/identityProviders/{uid}"), whole(oidc(json!("fourth"))), "fourth"),
        // Named and empty takes it away.
        (patch.clone(), json!({ "oidc": { "clientSecret": "" } }), ""),
        (patch.clone(), json!({ "oidc": { "clientSecret": "fifth" } }), "fifth"),
        (masked("oidc.client_secret"), json!({}), ""),
        (masked("*"), whole(oidc(json!("hush again"))), "hush again"),
    ] {
        let answer = call(&operator, &what, body.clone()).await;
        assert_eq!(answer.status, 200, "{what} {body}: {}", answer.text());
        assert_eq!(answer.json()["oidc"]["clientSecret"], "", "{what} {body}");
        assert_eq!(secret(server, &uid).await, kept, "{what} {body}");
    }
    // Over gRPC a derived mask names the configuration as a whole.
    let got = operator.grpc::<GetIdentityProvider>(GetIdentityProviderRequest { uid: uid.clone() }).await;
    let provider = IdentityProvider { scim: None, ..got.expect("it is there") };
    let request = UpdateIdentityProviderRequest { identity_provider: Some(provider), update_mask: None };
    operator.grpc::<UpdateIdentityProvider>(request).await.expect("nothing changes");
    assert_eq!(secret(server, &uid).await, "hush again");
    for text in ["hush", "hush again", "second", "third", "fourth", "fifth"] {
        assert_nowhere(server, text, &["SELECT client_secret FROM identity_providers"]).await;
    }
}

async fn masks_change_what_they_name_and_the_rule_never_changes(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let mut body = provider_of(server, "entra", ISSUER);
    body["oidc"]["correlationRule"] = json!("CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID");
    body["oidc"]["additionalScopes"] = json!(["openid", "profile"]);
    let made = ok(&operator, &format!("POST /iam/v2/identityProviders/{org}"), body.clone()).await;
    assert_eq!(made["oidc"]["additionalScopes"], json!(["openid", "profile"]));
    let uid = uid_of(&made);
    let patch = format!("PATCH /iam/v2/identityProviders/{uid}");
    let changed = ok(&operator, &patch, json!({ "oidc": { "groupsClaim": "groups" } })).await;
    assert_eq!((&changed["oidc"]["groupsClaim"], &changed["oidc"]["issuer"]), (&json!("groups"), &json!(ISSUER)));
    let changed = ok(
        &operator,
        &format!("{patch}?update_mask=name,oidc.pkce_enabled"),
        json!({ "name": "new", "description": "no", "oidc": { "pkceEnabled": true, "clientId": "no" } }),
    )
    .await;
    assert_eq!((&changed["name"], &changed["description"]), (&json!("new"), &json!("")));
    assert_eq!((&changed["oidc"]["pkceEnabled"], &changed["oidc"]["clientId"]), (&json!(true), &json!("client")));

    let rule = |name: &str| json!({ "oidc": { "correlationRule": format!("CORRELATION_RULE_{name}") } });
    ok(&operator, &patch, rule("OID_EQUALS_EXTERNAL_ID")).await;
    let put = format!("PUT /iam/v1/identityProviders/{uid}");
    let mut silent = body.clone();
    silent["oidc"].as_object_mut().expect("an object").remove("correlationRule");
    let replaced = ok(&operator, &put, silent).await;
    assert_eq!(replaced["oidc"]["correlationRule"], "CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID");
    let before = inventory(server).await;
    for name in ["SUB_EQUALS_EXTERNAL_ID", "UNSPECIFIED"] {
        let refusal = rejected(&operator, &patch, rule(name), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), ["oidc.correlationRule"]);
    }
    body["oidc"]["correlationRule"] = json!("CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID");
    assert_eq!(call(&operator, &put, body).await.status, 400);
    rejected(&operator, &format!("{patch}?update_mask=scim.enabled"), json!({}), 400, "INVALID_ARGUMENT").await;
    assert_eq!(inventory(server).await, before);
}

async fn what_is_no_provider_is_refused_and_changes_nothing(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let uid = provider(server, &org, "okta").await;
    let before = inventory(server).await;
    let cases: Vec<(&str, Value, &str)> = vec![
        ("oidc.issuer", json!("http://login.example.com"), "oidc.issuer"),
        ("oidc.issuer", json!("https://login.example.com?a"), "oidc.issuer"),
        ("oidc.issuer", json!("https://me@login.example.com"), "oidc.issuer"),
        ("oidc.issuer", json!("https://login.example.com/#x"), "oidc.issuer"),
        ("oidc.issuer", json!("login.example.com"), "oidc.issuer"),
        ("oidc.issuer", json!(format!("https://a.example/{}", "x".repeat(1024))), "oidc.issuer"),
        ("oidc.issuer", json!(""), "oidc.issuer"),
        ("oidc.clientId", json!(""), "oidc.clientId"),
        ("oidc.clientId", json!("a\nb"), "oidc.clientId"),
        ("oidc.groupsClaim", json!("x".repeat(257)), "oidc.groupsClaim"),
        ("oidc.additionalScopes", json!(["a b"]), "oidc.additionalScopes[0]"),
        ("oidc.additionalScopes", json!(["a", ""]), "oidc.additionalScopes[1]"),
        ("oidc.additionalScopes", json!(vec!["a"; 21]), "oidc.additionalScopes"),
        ("oidc.clientSecret", json!("x".repeat(4097)), "oidc.clientSecret"),
        ("name", json!("ab"), "name"),
        ("defaultRole", json!(""), "defaultRole"),
        ("defaultRole", json!("viewer"), "defaultRole"),
        ("defaultRole", json!(absent(&org)), "defaultRole"),
        ("oidc", Value::Null, "oidc"),
    ];
    for (at, value, field) in cases {
        let mut body = provider_of(server, "okta", ISSUER);
        match at.split_once('.') {
            Some((outer, inner)) => body[outer][inner] = value,
            None => body[at] = value,
        }
        for what in [
            format!("POST /iam/v2/identityProviders/{org}"),
            format!("PATCH /iam/v2/identityProviders/{uid}?update_mask=*"),
        ] {
            let refusal = rejected(&operator, &what, body.clone(), 400, "INVALID_ARGUMENT").await;
            let fields = refusal.fields();
            assert!(fields.iter().any(|found| found.starts_with(field)), "{what} {at}: {fields:?}");
        }
        for what in [format!("POST /iam/v1/identityProviders/{org}"), format!("PUT /iam/v1/identityProviders/{uid}")] {
            assert_eq!(call(&operator, &what, body.clone()).await.status, 400, "{what} {at}");
        }
    }
    assert_eq!(inventory(server).await, before);
    // Plain http is for this machine alone.
    ok(&operator, &format!("POST /iam/v2/identityProviders/{org}"), provider_of(server, "local", "http://127.0.0.1:9"))
        .await;
}

const KEEPER: &[&str] = &[
    "CAP_IAM_IDENTITY_PROVIDERS_CREATE",
    "CAP_IAM_IDENTITY_PROVIDERS_UPDATE",
    "CAP_IAM_IDENTITY_PROVIDERS_LIST",
    "CAP_IAM_IDENTITY_PROVIDERS_DELETE",
    "CAP_IAM_ROLE_BINDINGS_CREATE",
    "CAP_IAM_ROLES_LIST",
    "CAP_REPO_LIST",
];

async fn a_provider_gives_no_more_than_who_sets_it_up_holds(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let keeper = holder(server, &org, "keeper", &org, KEEPER).await.actor;
    let operator = server.operator().await;
    let small = role(server, &org, "small", &["CAP_REPO_LIST"]).await;
    let of_team = role(server, &team, "of team", &["CAP_REPO_LIST"]).await;
    let create = format!("POST /iam/v2/identityProviders/{org}");
    let body = |role: &str| {
        let mut body = provider_of(server, "okta", ISSUER);
        body["defaultRole"] = json!(role);
        body
    };
    let before = inventory(server).await;
    for wide in [server.role("viewer"), server.role("owner")] {
        rejected(&keeper, &create, body(&wide), 403, "PERMISSION_DENIED").await;
        let v1 = format!("POST /iam/v1/identityProviders/{org}");
        assert_eq!(call(&keeper, &v1, body(&wide)).await.status, 403);
    }
    // A role of a group below reaches nothing here.
    assert_eq!(rejected(&keeper, &create, body(&of_team), 400, "INVALID_ARGUMENT").await.fields(), ["defaultRole"]);
    assert_eq!(inventory(server).await, before);
    // Nor does a role that the keeper holds: an issuer is the owners' to name.
    rejected(&keeper, &create, body(&small), 403, "PERMISSION_DENIED").await;
    let uid = uid_of(&ok(&operator, &create, body(&small)).await);

    let patch = format!("PATCH /iam/v2/identityProviders/{uid}");
    let elsewhere = [json!({ "oidc": { "groupsClaim": "mine" } })];
    rejected(&keeper, &patch, json!({ "defaultRole": server.role("viewer") }), 403, "PERMISSION_DENIED").await;
    // The stored secret is shown to no other issuer.
    let bare = json!({ "oidc": { "issuer": "https://evil.example.com" } });
    assert_eq!(rejected(&operator, &patch, bare, 400, "INVALID_ARGUMENT").await.fields(), ["oidc.clientSecret"]);
    for change in &elsewhere {
        ok(&keeper, &patch, change.clone()).await;
    }
    ok(&keeper, &patch, json!({ "oidc": { "groupsClaim": "" } })).await;
    // Someone else maps a group to more, or makes the default role wider: now it is theirs to move.
    let mapping = json!({ "externalGroupId": "admins", "roleUid": server.role("viewer") });
    let mapping = uid_of(&ok(&operator, &format!("POST /iam/v2/externalGroupRoleMappings/{uid}"), mapping).await);
    let refuse_all = async || {
        let before = inventory(server).await;
        for change in &elsewhere {
            rejected(&keeper, &patch, change.clone(), 403, "PERMISSION_DENIED").await;
        }
        let v1 = provider_of(server, "okta", "https://evil.example.com");
        assert_eq!(call(&keeper, &format!("PUT /iam/v1/identityProviders/{uid}"), v1).await.status, 403);
        assert_eq!(inventory(server).await, before);
    };
    refuse_all().await;
    ok(&keeper, &patch, json!({ "description": "harmless", "oidc": { "issuer": ISSUER, "pkceEnabled": true } })).await;
    ok(&operator, &format!("DELETE /iam/v2/externalGroupRoleMappings/{mapping}"), Value::Null).await;
    ok(&operator, &patch, json!({ "defaultRole": server.role("viewer") })).await;
    refuse_all().await;
    // Down again, it is the keeper's to give.
    ok(&keeper, &patch, json!({ "defaultRole": small })).await;
    ok(&keeper, &patch, elsewhere[0].clone()).await;
}

async fn an_issuer_or_a_client_at_it_is_given_by_owners_alone(server: &TestServer) {
    let org = server.organization("acme").await;
    let idp = provider(server, &org, "login").await;
    let capabilities = [
        "CAP_IAM_IDENTITY_PROVIDERS_CREATE",
        "CAP_IAM_IDENTITY_PROVIDERS_UPDATE",
        "CAP_IAM_IDENTITY_PROVIDERS_LIST",
        "CAP_IAM_ROLE_BINDINGS_CREATE",
    ];
    let keeper = holder(server, &org, "keeper", &org, &capabilities).await;
    server.bind(&keeper.uid, &server.role("viewer"), &org).await;
    let keeper = keeper.actor;
    let owner = server.actor("owner", &org).await;
    let body = provider_of(server, "mine", "https://login.example.com");
    let before = inventory(server).await;
    rejected(&keeper, &format!("POST /iam/v2/identityProviders/{org}"), body.clone(), 403, "PERMISSION_DENIED").await;
    let v1 = json!({ "name": "mine", "defaultRole": server.role("viewer"),
                     "oidc": { "issuer": "https://login.example.com", "clientId": "client", "clientSecret": "hush" } });
    assert_eq!(call(&keeper, &format!("POST /iam/v1/identityProviders/{org}"), v1.clone()).await.status, 403);
    let what = format!("PATCH /iam/v2/identityProviders/{idp}");
    for oidc in
        [json!({ "issuer": "https://other.example.com", "clientSecret": "hush" }), json!({ "clientId": "other" })]
    {
        rejected(&keeper, &what, json!({ "oidc": oidc }), 403, "PERMISSION_DENIED").await;
    }
    assert_eq!(inventory(server).await, before);
    // A repeated value is no change, and neither is a name.
    let repeated = json!({ "description": "ours", "oidc": { "clientId": "client" } });
    ok(&keeper, &what, repeated).await;
    ok(&owner, &what, json!({ "oidc": { "clientId": "other" } })).await;
    ok(&owner, &format!("POST /iam/v2/identityProviders/{org}"), body).await;
}

each_engine!(
    a_provider_is_the_same_in_both_versions,
    the_secret_is_kept_and_never_shown,
    masks_change_what_they_name_and_the_rule_never_changes,
    what_is_no_provider_is_refused_and_changes_nothing,
    a_provider_gives_no_more_than_who_sets_it_up_holds,
    an_issuer_or_a_client_at_it_is_given_by_owners_alone
);
