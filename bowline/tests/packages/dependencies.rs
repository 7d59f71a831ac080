//! What a version requires, and what of that policies withhold: of upstreams, of groups, and of crates.

use std::time::Duration;

use bowline_core::Clock as _;
use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::{Actor, RestReply, TestServer, cargo, each_engine, npm};
use serde_json::{Value, json};

use crate::fake_index::{FakeIndex, set_upstream};
use crate::fake_proxy::FakeProxy;
use crate::overrides::with_capabilities;
use crate::support::*;

const DAY: u64 = 24 * 3600;
const NOT_STORED: &str = "no version of it is stored here";

/// An organization with an upstream of npm, someone who may publish there, and its owner.
async fn installer(server: &TestServer, index: &FakeIndex) -> (String, Client, Actor) {
    let (org, client) = npm_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    index.npm_serve(&owner, &org).await;
    (org, client, owner)
}

/// Lets a version at the upstream require others.
fn require(index: &FakeIndex, (name, version): (&str, &str), member: &str, required: Value) {
    index.state().documents.get_mut(name).expect("a package")["versions"][version][member] = required;
}

async fn explain(caller: &Actor, org: &str, purl: &str) -> RestReply {
    let purl = purl.replace('%', "%25");
    let path = format!("/librarydecisions/v1/organizations/{org}:explainDependencies?purl={purl}");
    caller.rest("GET", &path, None).await
}

/// Package, state, chosen version and why it is not known of each requirement; they must be all.
async fn shown(caller: &Actor, org: &str, purl: &str) -> Vec<(String, String, String, String)> {
    let reply = explain(caller, org, purl).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = reply.json();
    assert_eq!((&body["purl"], &body["incomplete"]), (&json!(purl), &json!(false)), "{body}");
    let text = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let of = |one: &Value| {
        let state = text(one, "state").trim_start_matches("DEPENDENCY_STATE_").to_owned();
        let chosen = text(one, "chosen").rsplit_once('@').map(|(_, version)| version.to_owned());
        (text(one, "purl"), state, chosen.unwrap_or_default(), text(one, "unknownBecause"))
    };
    body["dependencies"].as_array().expect("a list").iter().map(of).collect()
}

fn rows(list: &[(&str, &str, &str, &str)]) -> Vec<(String, String, String, String)> {
    list.iter().map(|(a, b, c, d)| ((*a).into(), (*b).into(), (*c).into(), (*d).into())).collect()
}

async fn a_young_dependency_is_held_until_an_older_one_satisfies(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.npm_publish(server, "app", "1.0.0", 30);
    index.npm_publish(server, "@pub/lib", "1.1.0", 2);
    index.npm_publish(server, "deep", "1.0.0", 30);
    require(&index, ("app", "1.0.0"), "dependencies", json!({ "@pub/lib": "^1.0.0" }));
    require(&index, ("@pub/lib", "1.1.0"), "dependencies", json!({ "deep": "~1.0.0", "absent": "1" }));
    let (org, client, owner) = installer(server, &index).await;
    for name in ["app", "@pub%2flib", "deep"] {
        client.document(name).await;
    }
    index.seen();
    let purl = "pkg:npm/app@1.0.0";
    let below = [("pkg:npm/absent", "UNKNOWN", "", NOT_STORED), ("pkg:npm/deep", "ALLOWED", "1.0.0", "")];
    let with =
        |lib: (&'static str, &'static str)| rows(&[("pkg:npm/%40pub/lib", lib.0, lib.1, ""), below[0], below[1]]);
    assert_eq!(shown(&owner, &org, purl).await, with(("ALLOWED", "1.1.0")), "no policy is in force");
    bind_to("JAVASCRIPT", &owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    assert_eq!(shown(&owner, &org, purl).await, with(("HELD", "1.1.0")));
    let first = explain(&owner, &org, purl).await.json()["dependencies"][0].clone();
    let facts = (&first["requirement"], &first["requiredBy"], &first["optional"]);
    assert_eq!(facts, (&json!("^1.0.0"), &json!(purl), &json!(false)), "{first}");
    let decision = &first["withheld"];
    let facts = (&decision["purl"], &decision["reason"], decision["allowedTime"].is_string());
    assert_eq!(facts, (&json!("pkg:npm/%40pub/lib@1.1.0"), &json!("COOLDOWN"), true), "{first}");

    // The freshly published older version is there once the document was requested again.
    index.npm_publish(server, "@pub/lib", "1.0.5", 30);
    index.state().documents.get_mut("@pub/lib").expect("a document")["dist-tags"]["latest"] = json!("1.1.0");
    server.clock().advance(Duration::from_secs(301));
    client.document("@pub%2flib").await;
    index.seen();
    let lib = ("pkg:npm/%40pub/lib", "OLDER", "1.0.5", "");
    assert_eq!(shown(&owner, &org, purl).await, rows(&[lib]), "1.0.5 requires nothing");
    let decision = explain(&owner, &org, purl).await.json()["dependencies"][0]["withheld"].clone();
    assert_eq!(decision["purl"], "pkg:npm/%40pub/lib@1.1.0");
    assert_eq!(index.seen(), Vec::<String>::new(), "nothing is requested");
    server.clock().advance(Duration::from_secs(6 * DAY));
    let owner = server.actor("owner", &org).await;
    assert_eq!(shown(&owner, &org, purl).await, with(("ALLOWED", "1.1.0")));
}

async fn what_is_no_requirement_of_a_registry_is_unknown(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.npm_publish(server, "app", "1.0.0", 30);
    index.npm_publish(server, "real", "2.0.0", 30);
    let required =
        json!({ "alias": "npm:real@2", "git": "acme/git", "new": "^3", "odd": ">=1.0.0,<2.0.0", "real": "next" });
    require(&index, ("app", "1.0.0"), "dependencies", required);
    require(&index, ("app", "1.0.0"), "optionalDependencies", json!({ "new": "^3" }));
    let (org, client, owner) = installer(server, &index).await;
    client.document("app").await;
    client.document("real").await;
    let wanted = [
        ("pkg:npm/real", "ALLOWED", "2.0.0", ""),
        ("pkg:npm/git", "UNKNOWN", "", "the requirement is of no registry"),
        ("pkg:npm/new", "UNKNOWN", "", NOT_STORED),
        ("pkg:npm/odd", "UNKNOWN", "", "the requirement is not understood"),
        ("pkg:npm/real", "UNKNOWN", "", "no stored version satisfies it"),
    ];
    assert_eq!(shown(&owner, &org, "pkg:npm/app@1.0.0").await, rows(&wanted));
    let list = explain(&owner, &org, "pkg:npm/app@1.0.0").await.json()["dependencies"].clone();
    let optional: Vec<bool> = list.as_array().unwrap().iter().map(|one| one["optional"] == true).collect();
    assert_eq!(optional, [false, false, true, false, false]);

    for absent in ["pkg:npm/app@1.0.1", "pkg:npm/absent@1.0.0"] {
        let reply = explain(&owner, &org, absent).await;
        let text = format!("Not found: what {absent} requires is not stored here");
        assert_eq!((reply.status, &reply.json()["message"]), (404, &json!(text)));
    }
    for (other, word) in [("pkg:maven/a/b@1", "java"), ("pkg:golang/a.example/b@v1.0.0", "go")] {
        let reply = explain(&owner, &org, other).await;
        let text = format!("dependencies of {word} are not stored");
        assert!(reply.status == 400 && reply.text().contains(&text), "{}", reply.text());
    }
    for wrong in ["pkg:npm/app", "app"] {
        assert_eq!(explain(&owner, &org, wrong).await.status, 400, "{wrong}");
    }
}

async fn own_packages_are_shown_to_those_who_may_list_them(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.npm_publish(server, "app", "1.0.0", 30);
    require(&index, ("app", "1.0.0"), "dependencies", json!({ "@acme/own": "latest" }));
    let (org, client, owner) = installer(server, &index).await;
    let mut manifest = npm::manifest("@acme/own", "1.2.0");
    manifest["dependencies"] = json!({ "app": "1.x" });
    let document = npm::document("@acme/own", "1.2.0", "latest", &npm::package(&manifest));
    let reply = client.put("@acme%2fown", &document).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    client.document("app").await;
    let (app, own) = ("pkg:npm/app@1.0.0", "pkg:npm/%40acme/own@1.2.0");
    let to_own = ("pkg:npm/%40acme/own", "ALLOWED", "1.2.0", "");
    let to_app = ("pkg:npm/app", "ALLOWED", "1.0.0", "");
    assert_eq!(shown(&owner, &org, app).await, rows(&[to_own, to_app]));
    assert_eq!(shown(&owner, &org, own).await, rows(&[to_app, to_own]));
    let list = json!({ "name": "rules", "cooldownDays": 7, "blockList": [{ "purl": "pkg:npm/%40acme/own@1.2.0" }] });
    bind_to("JAVASCRIPT", &owner, &org, "ENFORCED", list).await;
    let held = ("pkg:npm/%40acme/own", "HELD", "1.2.0", "");
    assert_eq!(shown(&owner, &org, app).await, rows(&[held, to_app]), "a cooldown is not about own packages");

    // To others an own name is like one that no one has.
    let reader = with_capabilities(server, &org, &["libraries.policy.list", "libraries.policy.binding.list"]).await;
    let unknown = ("pkg:npm/%40acme/own", "UNKNOWN", "", NOT_STORED);
    assert_eq!(shown(&reader, &org, app).await, rows(&[unknown]));
    assert_eq!(explain(&reader, &org, own).await.status, 404);

    let other = server.organization("other").await;
    let stranger = server.actor("owner", &other).await;
    assert_eq!(explain(&stranger, &org, app).await.status, 403);
    assert_eq!(explain(&stranger, &other, app).await.status, 404, "another organization has its own documents");
    assert_eq!(explain(&owner, &other, app).await.status, 403);
}

async fn packages_behind_an_account_are_shown_to_those_who_may_list_them(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.npm_publish(server, "app", "1.0.0", 30);
    index.npm_publish(server, "@partner/secret", "1.0.0", 30);
    require(&index, ("app", "1.0.0"), "dependencies", json!({ "@partner/secret": "^1" }));
    let (org, client, owner) = installer(server, &index).await;
    for name in ["app", "@partner%2fsecret"] {
        client.document(name).await;
    }
    let reader = with_capabilities(server, &org, &["libraries.policy.list", "libraries.policy.binding.list"]).await;
    let (app, secret) = ("pkg:npm/app@1.0.0", ("pkg:npm/%40partner/secret", "ALLOWED", "1.0.0", ""));
    assert_eq!(shown(&reader, &org, app).await, rows(&[secret]), "anyone may read that upstream");
    let account = json!({
        "name": "npmjs", "ecosystem": "JAVASCRIPT", "url": format!("{}/npm/", index.base), "username": "me",
        "password": "hush",
    });
    let set = set_upstream(&owner, &org, account).await;
    assert_eq!(set.0, 200, "{}", set.1);
    for name in ["app", "@partner%2fsecret"] {
        client.document(name).await;
    }
    assert_eq!(shown(&owner, &org, app).await, rows(&[secret]));
    let reply = explain(&reader, &org, app).await;
    assert!(reply.status == 404 && !reply.text().contains("secret"), "{}", reply.text());
}

/// A line of an index whose version was published so many days before the clock of the server.
fn line(server: &TestServer, (name, version): (&str, &str), days: i64, more: Value) -> String {
    let at = server.clock().now() - days * 24 * 3600 * 1_000_000;
    let mut line = json!({
        "name": name, "vers": version, "deps": [], "features": {}, "cksum": "ab".repeat(32), "yanked": false,
        "pubtime": rfc3339::text(at, Digits::Fewest),
    });
    for (member, value) in more.as_object().expect("members") {
        line[member] = value.clone();
    }
    line.to_string()
}

fn dependency(name: &str, req: &str, kind: &str, optional: bool) -> Value {
    json!({
        "name": name, "req": req, "features": [], "optional": optional, "default_features": true, "target": null,
        "kind": kind, "registry": null,
    })
}

async fn crates_require_others(server: &TestServer) {
    let proxy = FakeProxy::start().await;
    proxy.put("config.json", json!({ "dl": "https://a.example/dl" }).to_string().as_bytes());
    let deps = json!({ "deps": [
        dependency("util", "^1.0", "normal", false),
        dependency("test-util", "1", "dev", false),
        dependency("gone", "1", "build", true),
    ] });
    let lines = [line(server, ("pub_lib", "1.0.0"), 30, deps)];
    proxy.put("pu/b_/pub_lib", lines.join("\n").as_bytes());
    let yanked = json!({ "yanked": true });
    let lines = [
        line(server, ("util", "1.0.0"), 30, json!({})),
        line(server, ("util", "1.1.0"), 2, json!({})),
        line(server, ("util", "1.2.0"), 30, yanked.clone()),
    ];
    proxy.put("ut/il/util", lines.join("\n").as_bytes());
    proxy.put("go/ne/gone", line(server, ("gone", "1.0.0"), 30, yanked).as_bytes());
    let (org, client) = cargo_publisher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    proxy.serve_as("CARGO", &owner, &org, ("public", 0)).await;
    let mut announced = cargo::announced("own", "0.1.0");
    announced["deps"] = json!([
        { "name": "pub_lib", "version_req": "1", "registry": format!("https://a.example/{}-index", concat!("crates", ".io")) },
        { "name": "other", "version_req": "1", "registry": "sparse+https://a.example/" },
    ]);
    let archive = cargo::archive("own", "0.1.0", "license = \"MIT\"\n");
    let reply = client.send("PUT api/v1/crates/new", &[], &cargo::body(&announced, &archive)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    for path in ["pu/b_/pub_lib", "ut/il/util", "go/ne/gone"] {
        client.crate_lines(path).await;
    }
    let gone = ("pkg:cargo/gone", "UNKNOWN", "", "each version that satisfies it is yanked");
    let wanted = |util: (&'static str, &'static str)| {
        rows(&[
            ("pkg:cargo/pub_lib", "ALLOWED", "1.0.0", ""),
            ("pkg:cargo/other", "UNKNOWN", "", "the requirement is of another registry"),
            ("pkg:cargo/util", util.0, util.1, ""),
            gone,
        ])
    };
    let own = "pkg:cargo/own@0.1.0";
    assert_eq!(shown(&owner, &org, own).await, wanted(("ALLOWED", "1.1.0")));
    bind_to_cargo(&owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    assert_eq!(shown(&owner, &org, own).await, wanted(("OLDER", "1.0.0")));
    let list = explain(&owner, &org, own).await.json()["dependencies"].clone();
    assert_eq!((&list[2]["optional"], &list[3]["optional"]), (&json!(false), &json!(true)), "{list}");
    assert_eq!(list[2]["withheld"]["purl"], "pkg:cargo/util@1.1.0");
}

/// Has a wheel at the index whose core metadata have these lines, too; its file's name.
fn wheel_of(index: &FakeIndex, server: &TestServer, (name, version): (&str, &str), days: i64, more: &str) -> String {
    index.publish(server, name, version, days);
    let (bytes, text, file) = (wheel(name, version, more), metadata(name, version, more), file_name(name, version));
    let mut state = index.state();
    let page = state.pages.get_mut(name).expect("a project").last_mut().expect("a file");
    page["hashes"]["sha256"] = json!(sha256(&bytes));
    page["size"] = json!(bytes.len());
    page["core-metadata"]["sha256"] = json!(sha256(text.as_bytes()));
    state.files.insert(format!("{file}.metadata"), text.into_bytes());
    state.files.insert(file.clone(), bytes);
    file
}

/// An index with a wheel that requires others, and those.
async fn index_of_app(server: &TestServer) -> FakeIndex {
    let index = FakeIndex::start().await;
    let requires = "License-Expression: MIT\nRequires-Dist: Pub_Lib[fast] (>=1.0)\nRequires-Dist: pre~=2.0\n\
                    Requires-Dist: win>=1; sys_platform == 'win32'\nRequires-Dist: tool; extra == 'dev'\n\
                    Requires-Dist: direct @ https://a.example/direct-1.0-py3-none-any.whl\nRequires-Dist: odd>=x\n";
    wheel_of(&index, server, ("app", "1.0"), 30, requires);
    wheel_of(&index, server, ("pub-lib", "1.0"), 30, "License-Expression: MIT\nRequires-Dist: deep\n");
    wheel_of(&index, server, ("pub-lib", "1.1"), 2, "License-Expression: MIT\n");
    for (name, version) in [("pre", "2.0"), ("pre", "2.1rc1"), ("deep", "1.0a1"), ("gone", "1.0")] {
        index.publish(server, name, version, 30);
    }
    index
}

async fn wheels_require_others(server: &TestServer) {
    let index = index_of_app(server).await;
    let (org, owner, client) = crate::upstreams::installer(server, &index).await;
    let app = "pkg:pypi/app@1.0";
    let missing = explain(&owner, &org, app).await;
    assert_eq!(missing.status, 404, "{}", missing.text());
    for name in ["pub-lib", "pre", "deep"] {
        client.project(name).await;
    }
    // Of one the whole wheel was requested, of the others their metadata.
    assert_eq!(client.file(&client.project("app").await, 0).await.status, 200);
    for (name, at) in [("pub-lib", 0), ("pub-lib", 1), ("pre", 0), ("deep", 0)] {
        let page = client.project(name).await;
        let address = page["files"][at]["url"].as_str().unwrap().strip_prefix("../../").unwrap().to_owned();
        assert_eq!(client.get(&format!("{address}.metadata")).await.status, 200, "{address}");
    }
    index.seen();
    let extras = ("pkg:pypi/pub-lib", "UNKNOWN", "", "what its extras require is not followed");
    let rest = [
        ("pkg:pypi/pre", "ALLOWED", "2.0", ""),
        ("pkg:pypi/win", "UNKNOWN", "", NOT_STORED),
        ("pkg:pypi/direct", "UNKNOWN", "", "the requirement is of no registry"),
        ("pkg:pypi/odd", "UNKNOWN", "", "the requirement is not understood"),
    ];
    let wanted = |lib: (&'static str, &'static str),
                  more: &[(&'static str, &'static str, &'static str, &'static str)]| {
        rows(&[&[("pkg:pypi/pub-lib", lib.0, lib.1, ""), extras], &rest[..], more].concat())
    };
    assert_eq!(shown(&owner, &org, app).await, wanted(("ALLOWED", "1.1"), &[]));
    let list = explain(&owner, &org, app).await.json()["dependencies"].clone();
    let optional: Vec<bool> = list.as_array().unwrap().iter().map(|one| one["optional"] == true).collect();
    assert_eq!(optional, [false, false, false, true, false, false]);
    assert_eq!(list[0]["requirement"], "Pub_Lib[fast] (>=1.0)");
    bind(&owner, &org, "ENFORCED", json!({ "name": "cooldown", "cooldownDays": 7 })).await;
    let deep = [("pkg:pypi/deep", "ALLOWED", "1.0a1", "")];
    assert_eq!(shown(&owner, &org, app).await, wanted(("OLDER", "1.0"), &deep), "no release of deep is there");
    assert_eq!(index.seen(), Vec::<String>::new(), "nothing is requested");

    // A yanked version is passed over.
    index.state().pages.get_mut("pub-lib").expect("a project")[0]["yanked"] = json!("broken");
    server.clock().advance(Duration::from_secs(301));
    client.project("pub-lib").await;
    assert_eq!(shown(&owner, &org, app).await, wanted(("HELD", "1.1"), &[]));

    // Another index at the address answers for itself.
    index.serve(&owner, &org, "pypi", 1).await;
    assert_eq!(explain(&owner, &org, app).await.status, 200, "only the position is another");
    let other = FakeIndex::start().await;
    for (name, version) in [("pre", "2.0"), ("deep", "1.0a1")] {
        other.publish(server, name, version, 30);
    }
    other.serve(&owner, &org, "pypi", 1).await;
    assert_eq!(number(server, "SELECT count(*) FROM upstream_requirements").await, 0);
    for name in ["pre", "deep"] {
        client.project(name).await;
    }

    // The same of a package of a group.
    let own = Client::of(server, &server.actor("libraries.python.push", &org).await);
    let bytes = wheel("own", "3.0", "License-Expression: MIT\nRequires-Dist: pre<2\nRequires-Dist: deep!=1.0a1\n");
    let reply = own.upload(&form("own", "3.0", &file_name("own", "3.0"), &bytes)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let none = "no stored version satisfies it";
    let wanted = rows(&[("pkg:pypi/pre", "UNKNOWN", "", none), ("pkg:pypi/deep", "UNKNOWN", "", none)]);
    assert_eq!(shown(&owner, &org, "pkg:pypi/own@3.0").await, wanted);
}

each_engine!(
    wheels_require_others,
    a_young_dependency_is_held_until_an_older_one_satisfies,
    what_is_no_requirement_of_a_registry_is_unknown,
    own_packages_are_shown_to_those_who_may_list_them,
    packages_behind_an_account_are_shown_to_those_who_may_list_them,
    crates_require_others,
);
