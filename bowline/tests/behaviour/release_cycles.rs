//! Release cycles: the operator imports them, and they say which tags have reached the end of their life.

use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::digest;
use crate::support::{each, execute, image, number, ok, rejected};

const IMPORT: &str = "POST /releasecycles/v1/products:import";
const DAY: i64 = 86_400;

/// The day so many days from now, as a date.
fn date(server: &TestServer, days: i64) -> String {
    let mut text = rfc3339::text((server.clock().seconds() + days * DAY) * 1_000_000, Digits::Fewest);
    text.truncate(10);
    text
}

/// `python` with a supported version, one whose end was a month ago, one whose end was a year ago, and one whose end has no
/// date.
fn python(server: &TestServer) -> Value {
    json!({
        "name": "python",
        "aliases": ["cpython"],
        "cycles": [
            { "name": "3.13", "releaseDate": "2024-10-07", "endDate": date(server, 900), "latestVersion": "3.13.1" },
            { "name": "3.9", "endDate": date(server, -30), "latestVersion": "3.9.20", "lts": true },
            { "name": "3.8", "endDate": date(server, -365), "latestVersion": "3.8.20" },
            { "name": "2", "ended": true },
        ],
    })
}

async fn tag(operator: &Actor, repo: &str, name: &str) {
    let body = json!({ "name": name, "digest": digest('1') });
    ok(operator, &format!("POST /registry/v2/tags/{repo}"), body).await;
}

/// Status, grace, main package and cycle of each tag below a place, by name.
async fn states(actor: &Actor, place: &str) -> Vec<[String; 5]> {
    let list = ok(actor, &format!("GET /registry/v1/eoltags?uidp.descendantsOf={place}"), Value::Null).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut states: Vec<[String; 5]> = list["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|tag| {
            let version = &tag["mainPackageVersion"]["version"];
            [&tag["name"], &tag["tagStatus"], &tag["graceStatus"], &tag["mainPackageName"], version].map(text)
        })
        .collect();
    states.sort();
    states
}

async fn tags_are_at_the_end_of_their_life_by_the_cycle_of_their_version(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let [repo, other] = [server.repo(&org, "python-fips").await, server.repo(&org, "own-thing").await];
    for repo in [&repo, &other] {
        image(server, repo, &digest('1'), 1).await;
    }
    for name in ["3.13-dev", "3.9.20", "v3.8", "2.7", "latest"] {
        tag(&operator, &repo, name).await;
    }
    tag(&operator, &other, "3.8").await;
    let viewer = server.actor("viewer", &org).await;
    let active = |name: &str| [name, "TAG_ACTIVE", "GRACE_NOT_ELIGIBLE", "", ""].map(String::from);
    let names = ["2.7", "3.13-dev", "3.8", "3.9.20", "latest", "v3.8"];
    assert_eq!(states(&viewer, &org).await, names.map(active), "nothing is known yet");

    ok(&operator, IMPORT, json!({ "products": [python(server)] })).await;
    let state = |name: &str, status: &str, grace: &str, cycle: &str| {
        [name, status, grace, "python-fips", cycle].map(String::from)
    };
    let ended = |grace: &str, status: &str| {
        [
            state("2.7", "TAG_INACTIVE", "GRACE_NOT_ELIGIBLE", "2"),
            state("3.13-dev", "TAG_ACTIVE", "GRACE_NOT_ELIGIBLE", "3.13"),
            active("3.8"),
            state("3.9.20", status, grace, "3.9"),
            active("latest"),
            state("v3.8", "TAG_INACTIVE", "GRACE_EXPIRED", "3.8"),
        ]
    };
    assert_eq!(states(&viewer, &org).await, ended("GRACE_ELIGIBLE", "TAG_INACTIVE"));
    ok(&operator, &format!("PUT /registry/v1/settings/{org}"), json!({ "eolGracePeriod": true })).await;
    assert_eq!(states(&viewer, &org).await, ended("GRACE_ACTIVE", "TAG_IN_GRACE"));

    // What the image says counts before the names of repository and tag.
    let annotations = json!({ "dev.chainguard.package.main": "cpython", "org.opencontainers.image.version": "3.13.1" });
    let sql = "UPDATE manifests SET annotations = $1";
    execute(server, sql, &[&annotations.to_string()]).await;
    for [name, status, _, package, cycle] in states(&viewer, &org).await {
        assert_eq!([status.as_str(), &package, &cycle], ["TAG_ACTIVE", "cpython", "3.13"], "{name}");
    }
}

async fn versions_of_a_package_come_from_its_product(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let viewer = server.actor("viewer", &org).await;
    let get = |package: &str| format!("GET /registry/v1/versions/{package}");
    let unknown = viewer.rest("GET", "/registry/v1/versions/python", None).await;
    assert_eq!(unknown.status, 404);
    ok(&operator, IMPORT, json!({ "products": [python(server)] })).await;
    for package in ["python", "cpython", "python-3.13"] {
        let found = ok(&viewer, &get(package), Value::Null).await;
        assert_eq!(each(&found["versions"], "version"), ["3.13"], "{package}");
        assert_eq!(each(&found["eolVersions"], "version"), ["3.9", "3.8", "2"]);
        assert_eq!((&found["latestVersion"], &found["gracePeriodMonths"]), (&json!("3.13.1"), &json!(6)));
        assert_eq!(found["eolVersions"][0]["lts"], true);
        assert_eq!(found["versions"][0]["eolDate"], json!(date(server, 900)));
    }
    assert_eq!(ok(&viewer, &get("python-fips"), Value::Null).await["versions"][0]["fips"], true);
}

async fn imports_replace_products_and_remove_the_named(server: &TestServer) {
    let operator = server.operator().await;
    let product =
        |name: &str, aliases: &[&str]| json!({ "name": name, "aliases": aliases, "cycles": [{ "name": "1" }] });
    let body = json!({ "products": [product("a", &["b", "c"]), product("b", &["c"])] });
    let done = ok(&operator, IMPORT, body.clone()).await;
    assert_eq!((&done["added"], &done["changed"]), (&json!(["a", "b"]), &json!([])));
    let audited = "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/ReleaseCycles'";
    assert_eq!(number(server, audited).await, 1);
    let again = ok(&operator, IMPORT, body).await;
    assert_eq!((&again["added"], &again["changed"]), (&json!([]), &json!([])));
    assert_eq!(number(server, audited).await, 1, "an import that changes nothing is not audited");

    let body = json!({ "products": [product("b", &["d"])], "removedNames": ["a", "unknown"] });
    let done = ok(&operator, IMPORT, body).await;
    assert_eq!((&done["changed"], &done["removed"]), (&json!(["b"]), &json!(["a"])));
    let list = ok(&operator, "GET /releasecycles/v1/products?pageSize=1", Value::Null).await;
    assert_eq!((each(&list["products"], "name"), &list["nextPageToken"]), (vec!["b"], &json!("")));
    let aliases: Vec<(&str, u16)> = vec![("a", 404), ("b", 200), ("c", 404), ("d", 200)];
    for (name, expected) in aliases {
        let status = operator.rest("GET", &format!("/registry/v1/versions/{name}"), None).await.status;
        assert_eq!(status, expected, "{name}");
    }
}

async fn what_makes_no_sense_is_refused_and_only_the_operator_imports(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let cycle = |name: &str, end: &str| json!({ "name": name, "endDate": end });
    for (products, removed, field) in [
        (json!([{ "name": "a" }, { "name": "a" }]), json!([]), "products[1].name"),
        (json!([{ "name": "a" }]), json!(["a"]), "products[0].name"),
        (json!([{ "name": "A b" }]), json!([]), "products[0].name"),
        (json!([{ "name": "a", "cycles": [cycle("1", ""), cycle("1", "")] }]), json!([]), "products[0].cycles[1].name"),
        (json!([{ "name": "a", "cycles": [cycle("1", "2026-02-30")] }]), json!([]), "products[0].cycles[0].endDate"),
        (json!([{ "name": "a", "cycles": [cycle("1", "soon")] }]), json!([]), "products[0].cycles[0].endDate"),
    ] {
        let body = json!({ "products": products, "removedNames": removed });
        let refusal = rejected(&operator, IMPORT, body.clone(), 400, "INVALID_ARGUMENT").await;
        assert!(refusal.fields().iter().any(|one| one.contains(field)), "{body}: {refusal:?}");
    }
    let owner = server.actor("owner", &org).await;
    rejected(&owner, IMPORT, json!({ "products": [{ "name": "a" }] }), 403, "PERMISSION_DENIED").await;
    assert_eq!(number(server, "SELECT count(*) FROM release_products").await, 0);
}

each_engine!(
    tags_are_at_the_end_of_their_life_by_the_cycle_of_their_version,
    versions_of_a_package_come_from_its_product,
    imports_replace_products_and_remove_the_named,
    what_makes_no_sense_is_refused_and_only_the_operator_imports
);
