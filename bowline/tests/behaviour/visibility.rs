//! What callers see: what they may look at, and no more of what that refers to.

use bowline_contract::v2::iam::ListRoleBindingsRequest;
use bowline_contract::v2::iam::rpc::role_bindings_service::ListRoleBindings;
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, each, holder, machine, ok, rejected, role};

async fn references_are_filled_in_only_where_they_are_readable(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let custom = role(server, &org, "secret role", &["CAP_REPO_LIST"]).await;
    let friend = server.identity(&org, "friend").await;
    let bindings =
        [server.bind(&friend, &custom, &team).await, server.bind(&friend, &server.role("viewer"), &team).await];
    let blind = holder(server, &org, "blind", &team, &["CAP_IAM_ROLE_BINDINGS_LIST"]).await;
    let get = |binding: &str| format!("GET /iam/v2/roleBindings/{binding}");
    for binding in &bindings {
        let seen = ok(&blind.actor, &get(binding), Value::Null).await;
        assert_eq!(seen["identityUid"], friend.as_str());
        for member in ["identity", "group"] {
            assert!(seen[member]["name"].as_str().unwrap_or_default().is_empty(), "{member}: {seen}");
            assert!(seen[member]["subject"].as_str().unwrap_or_default().is_empty(), "{member}: {seen}");
        }
    }
    let seen = ok(&blind.actor, &get(&bindings[0]), Value::Null).await;
    assert!(seen["role"]["name"].as_str().unwrap_or_default().is_empty(), "{seen}");
    assert_eq!(seen["roleUid"], custom.as_str());
    let seen = ok(&blind.actor, &get(&bindings[1]), Value::Null).await;
    assert_eq!(seen["role"]["name"], "viewer", "everybody reads the built-in roles");

    let list = blind.actor.grpc::<ListRoleBindings>(ListRoleBindingsRequest::default()).await.expect("a list");
    assert_eq!(list.role_bindings.len(), 3);
    for binding in &list.role_bindings {
        let is_own = binding.identity_uid == blind.uid;
        let identity = binding.identity.clone().unwrap_or_default();
        assert_eq!(!identity.subject.is_empty(), is_own, "one's own identity is always readable: {binding:?}");
        assert_eq!(binding.group.clone().unwrap_or_default().name, "", "{binding:?}");
    }
    let v1 = ok(&blind.actor, "GET /iam/v1/rolebindings", Value::Null).await;
    for item in v1["items"].as_array().expect("items") {
        assert_eq!(item["group"]["name"], "", "{item}");
        let is_own = item["identity"] == blind.uid.as_str();
        assert_eq!(item["claimMatchSubject"].as_str().unwrap_or_default().is_empty(), !is_own, "{item}");
    }

    let viewer = server.actor("viewer", &org).await;
    let seen = ok(&viewer, &get(&bindings[0]), Value::Null).await;
    assert_eq!(seen["identity"]["subject"], "friend");
    assert_eq!(seen["identity"]["issuer"], server.idp().issuer());
    assert_eq!((&seen["group"]["name"], &seen["role"]["name"]), (&json!("team"), &json!("secret role")));
}

async fn lists_show_what_is_visible_and_hierarchy_filters_are_authorized(server: &TestServer) {
    let org = server.organization("acme").await;
    let foreign = server.organization("globex").await;
    let (team, other) = (server.group(&org, "team").await, server.group(&org, "other").await);
    let squad = server.group(&team, "squad").await;
    for (parent, name) in [(&org, "a"), (&team, "b"), (&squad, "c"), (&other, "d"), (&foreign, "e")] {
        server.repo(parent, name).await;
    }
    let viewer = server.actor("viewer", &team).await;
    let list = async |query: &str| {
        let list = ok(&viewer, &format!("GET /registry/v2/repos?order_by=name&{query}"), Value::Null).await;
        let names = each(&list["repos"], "name").join("");
        assert_eq!(list["totalCount"], names.len().to_string(), "{query}");
        names
    };
    for (query, names) in [
        (String::new(), "bc"),
        (format!("uidp.descendants_of={team}"), "bc"),
        (format!("uidp.children_of={team}"), "b"),
        (format!("uidp.descendantsOf={org}"), "bc"),
        (format!("uidp.children_of={org}"), ""),
        (format!("uidp.descendants_of={squad}"), "c"),
        (format!("uidp.descendants_of={team}&name=c"), "c"),
        (format!("uidp.children_of={team}&uidp.descendants_of={squad}"), ""),
        (format!("uidp.ids={}", absent(&team)), ""),
        ("name=d".into(), ""),
    ] {
        assert_eq!(list(&query).await, names, "{query}");
    }
    for filter in ["descendants_of", "children_of", "ancestors_of"] {
        let what = |place: &str| format!("GET /registry/v2/repos?uidp.{filter}={place}");
        for place in [&other, &foreign, &absent(&org)] {
            rejected(&viewer, &what(place), Value::Null, 403, "PERMISSION_DENIED").await;
        }
        let refusal = rejected(&viewer, &what(&absent(&team)), Value::Null, 404, "NOT_FOUND").await;
        assert_eq!(refusal.detail("ResourceInfo")["resourceName"], absent(&team).as_str());
    }
    // The named group itself is not its own descendant, and organizations are in the root.
    let groups = ok(&viewer, &format!("GET /iam/v2/groups?uidp.descendants_of={team}"), Value::Null).await;
    assert_eq!(each(&groups["groups"], "uid"), [squad.as_str()]);
    let operator = server.operator().await;
    let roots = ok(&operator, "GET /iam/v2/groups?uidp.in_root=true&order_by=name", Value::Null).await;
    assert_eq!(each(&roots["groups"], "name"), ["acme", "globex"]);
    let above = ok(&operator, &format!("GET /iam/v2/groups?uidp.ancestors_of={squad}"), Value::Null).await;
    assert_eq!(each(&above["groups"], "uid"), [org.as_str(), team.as_str()]);

    let stranger = server.stranger().await;
    for collection in ["registry/v2/repos", "iam/v2/groups", "iam/v2/roleBindings"] {
        let list = ok(&stranger, &format!("GET /{collection}"), Value::Null).await;
        assert_eq!(list["totalCount"], "0", "{collection}");
    }
}

async fn one_may_always_read_ones_own_identity(server: &TestServer) {
    let org = server.organization("acme").await;
    server.identity(&org, "neighbour").await;
    let alone = machine(server, &org, "alone").await;
    let list = ok(&alone.actor, "GET /iam/v2/identities", Value::Null).await;
    assert_eq!(each(&list["identities"], "uid"), [alone.uid.as_str()]);
    let list = ok(&alone.actor, "GET /iam/v1/identities", Value::Null).await;
    assert_eq!(each(&list["items"], "id"), [alone.uid.as_str()]);
    let own = ok(&alone.actor, &format!("GET /iam/v2/identities/{}", alone.uid), Value::Null).await;
    assert_eq!(own["name"], "alone");
}

async fn a_lookup_is_computed_and_says_nothing_of_who_is_here(server: &TestServer) {
    let stranger = server.stranger().await;
    let look = "GET /iam/v2/identities:lookupIdentity?issuer=https://accounts.example.com&subject=1";
    let first = ok(&stranger, look, Value::Null).await;
    assert_eq!(first, ok(&server.operator().await, look, Value::Null).await);
    let uid = first["uid"].as_str().expect("a uid");
    assert_eq!((uid.len(), first.as_object().map(serde_json::Map::len)), (40, Some(1)));
    let other = ok(&stranger, &look.replace("subject=1", "subject=2"), Value::Null).await;
    assert_ne!(first, other);
    let v1 = look.replace("/iam/v2/identities:lookupIdentity", "/iam/v1/identities/lookup");
    assert_eq!(ok(&stranger, &v1, Value::Null).await["id"], uid);
    for what in [look.replace("issuer=https://accounts.example.com&", ""), v1.replace("subject=1", "")] {
        rejected(&stranger, &what, Value::Null, 400, "INVALID_ARGUMENT").await;
    }
    // A role can be bound to the person before they come.
    let org = server.organization("acme").await;
    server.bind(uid, &server.role("viewer"), &org).await;
}

each_engine!(
    references_are_filled_in_only_where_they_are_readable,
    lists_show_what_is_visible_and_hierarchy_filters_are_authorized,
    one_may_always_read_ones_own_identity,
    a_lookup_is_computed_and_says_nothing_of_who_is_here
);
