//! Versions of JavaScript, Java, Go and Cargo packages and of generic files are listed, withdrawn and deleted through the API, as by their protocols.

use bowline_testkit::{Actor, RestReply, TestServer, cargo, each_engine, golang, maven, npm};
use serde_json::{Value, json};

use crate::support::*;

/// An ecosystem, with a package and three versions of it in their order.
struct Ecosystem {
    word: &'static str,
    package: &'static str,
    versions: [&'static str; 3],
}

const ECOSYSTEMS: [Ecosystem; 5] = [
    Ecosystem { word: "javascript", package: "@acme/tool", versions: ["1.9.0", "1.10.0", "2.0.0"] },
    Ecosystem { word: "java", package: "com.acme:tool", versions: ["1.9", "1.10", "2.0"] },
    Ecosystem { word: "go", package: "git.acme.example/tool", versions: ["v1.9.0", "v1.10.0", "v1.11.0"] },
    Ecosystem { word: "cargo", package: "tool", versions: ["1.9.0", "1.10.0", "2.0.0"] },
    Ecosystem { word: "generic", package: "tool", versions: ["1.9.0", "1.10.0", "2.0.0"] },
];

impl Ecosystem {
    fn client(&self, server: &TestServer, actor: &Actor) -> Client {
        let client = Client::of(server, actor);
        match self.word {
            "javascript" => client.javascript(),
            "java" => client.java(),
            "go" => client.go(),
            "generic" => client.files(),
            _ => client.cargo(),
        }
    }

    /// The ecosystem in the names of its roles: generic files have those of crates.
    fn role(&self) -> &'static str {
        if self.word == "generic" { "cargo" } else { self.word }
    }

    /// Sends a version, as a client of the protocol does.
    async fn put(&self, client: &Client, version: &str) -> RestReply {
        match self.word {
            "javascript" => {
                let bytes = npm::package(&npm::manifest(self.package, version));
                let document = npm::document(self.package, version, "latest", &bytes);
                client.put(&self.package.replace('/', "%2f"), &document).await
            }
            "java" => {
                let pom = maven::pom("com.acme", "tool", version, &maven::license("MIT"));
                client.send(&format!("PUT com/acme/tool/{version}/tool-{version}.pom"), &[], pom.as_bytes()).await
            }
            "go" => {
                let archive = golang::archive(self.package, version, &[]);
                client.send(&format!("PUT {}/@v/{version}.zip", self.package), &[], &archive).await
            }
            "generic" => client.send(&format!("PUT tool/{version}/tool.bin"), &[], version.as_bytes()).await,
            _ => {
                let archive = cargo::archive(self.package, version, "license = \"MIT\"\n");
                let body = cargo::body(&cargo::announced(self.package, version), &archive);
                client.send("PUT api/v1/crates/new", &[], &body).await
            }
        }
    }

    async fn publish(&self, client: &Client, version: &str) {
        let reply = self.put(client, version).await;
        assert!([200, 201].contains(&reply.status), "{}: {}", self.word, reply.text());
    }

    /// What a client of the protocol reads to choose a version.
    async fn list(&self, client: &Client) -> RestReply {
        let path = match self.word {
            "javascript" => "@acme%2ftool".to_owned(),
            "java" => "com/acme/tool/maven-metadata.xml".to_owned(),
            "go" => format!("{}/@v/list", self.package),
            "generic" => "tool/".to_owned(),
            _ => "to/ol/tool".to_owned(),
        };
        client.send(&format!("GET {path}"), &[], &[]).await
    }

    /// The path of a method of its service.
    fn path(&self, group: &str, verb: &str) -> String {
        let word = self.word;
        if verb == "versions" {
            format!("/{word}packages/v1/groups/{group}/versions")
        } else {
            format!("/{word}packages/v1/groups/{group}:{verb}")
        }
    }

    fn named(&self, version: &str) -> Value {
        json!({ "package": self.package, "version": version })
    }
}

async fn ok(actor: &Actor, verb: &str, path: &str, body: Value) -> Value {
    let reply = actor.rest(verb, path, Some(body).filter(|body| !body.is_null())).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

/// The versions of all pages, two on each.
async fn all(actor: &Actor, path: &str) -> Vec<Value> {
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let page = ok(actor, "GET", &format!("{path}?pageSize=2&pageToken={token}"), Value::Null).await;
        let versions = page["versions"].as_array().cloned().unwrap();
        assert!(versions.len() <= 2);
        seen.extend(versions);
        page["nextPageToken"].as_str().unwrap().clone_into(&mut token);
        if token.is_empty() {
            return seen;
        }
    }
}

fn versions_of(list: &[Value]) -> Vec<&str> {
    list.iter().map(|one| one["version"].as_str().unwrap()).collect()
}

async fn versions_are_listed_page_by_page(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    for ecosystem in &ECOSYSTEMS {
        let path = ecosystem.path(&org, "versions");
        let empty = ok(&owner, "GET", &path, Value::Null).await;
        assert_eq!(empty, json!({ "versions": [], "nextPageToken": "" }));
        let client = ecosystem.client(server, &owner);
        for version in [1, 2, 0].map(|at| ecosystem.versions[at]) {
            ecosystem.publish(&client, version).await;
        }
        let seen = all(&owner, &path).await;
        assert_eq!(versions_of(&seen), ecosystem.versions, "{}", ecosystem.word);
        let first = &seen[0];
        assert_eq!((&first["parent"], &first["package"]), (&json!(org), &json!(ecosystem.package)));
        assert_eq!(
            (&first["fileCount"], &first["yanked"], &first["deprecated"]),
            (&json!(1), &json!(false), &json!(""))
        );
        assert_eq!(
            first["license"],
            if ["go", "generic"].contains(&ecosystem.word) { "" } else { "MIT" },
            "{}",
            ecosystem.word
        );
        assert_ne!(first["sizeBytes"], "0", "{}", ecosystem.word);
        let other = ok(&owner, "GET", &format!("{path}?package=other"), Value::Null).await;
        assert_eq!(other["versions"], json!([]));
    }
    let crates =
        ok(&owner, "GET", &format!("{}?package=TOOL", ECOSYSTEMS[3].path(&org, "versions")), Value::Null).await;
    assert_eq!(crates["versions"].as_array().map(Vec::len), Some(3), "names of crates are in any case");
}

async fn a_deleted_version_is_gone_and_its_names_stay_used(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let operator = server.operator().await;
    for ecosystem in &ECOSYSTEMS {
        let web = server.group(&org, &format!("web-{}", ecosystem.word)).await;
        let client = ecosystem.client(server, &owner).at(&web.replace('/', ":"));
        for version in ecosystem.versions {
            ecosystem.publish(&client, version).await;
        }
        let delete = ecosystem.path(&web, "deleteVersion");
        let [lowest, middle, highest] = ecosystem.versions;
        ok(&owner, "POST", &delete, ecosystem.named(highest)).await;
        let list = ecosystem.list(&client).await;
        assert_eq!(list.status, 200, "{}", list.text());
        assert!(list.text().contains(middle) && !list.text().contains(highest), "{}", list.text());
        let seen = all(&owner, &ecosystem.path(&web, "versions")).await;
        assert_eq!(versions_of(&seen), [lowest, middle]);
        let again = ecosystem.put(&client, highest).await;
        assert_eq!((again.status, again.text().contains("was deleted")), (409, true), "{}", again.text());
        let twice = owner.rest("POST", &delete, Some(ecosystem.named(highest))).await;
        assert_eq!(twice.status, 404, "{}", twice.text());

        let kept = operator.rest("DELETE", &format!("/iam/v2/groups/{web}"), None).await;
        assert!(kept.status == 400 && kept.text().contains("packages"), "{}", kept.text());
        for version in [lowest, middle] {
            ok(&owner, "POST", &delete, ecosystem.named(version)).await;
        }
        assert_eq!(ecosystem.list(&client).await.status, 404, "{}", ecosystem.word);
        assert_eq!(all(&owner, &ecosystem.path(&web, "versions")).await, Vec::<Value>::new());
        let gone = operator.rest("DELETE", &format!("/iam/v2/groups/{web}"), None).await;
        assert_eq!(gone.status, 200, "{}", gone.text());
    }
    for table in ["hosted_versions", "hosted_manifests", "hosted_tags", "hosted_files", "repo_blobs"] {
        let sql: &'static str = format!("SELECT count(*) FROM {table}").leak();
        assert_eq!(number(server, sql).await, 0, "{table}");
    }
    let audited = "SELECT count(*) FROM audit WHERE method LIKE '%Packages.DeleteVersion' AND after_type IS NULL \
                   AND kind = 'bowline.dev/PackageVersion'";
    assert_eq!(number(server, audited).await, 15);
    let events = "SELECT count(*) FROM outbox WHERE event_type LIKE 'dev.bowline.libraries.%.deleted.v1' AND customer";
    assert_eq!(number(server, events).await, 15);
}

async fn each_ecosystem_has_its_own_callers(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let elsewhere = server.organization("other").await;
    let stranger = server.actor("owner", &elsewhere).await;
    let viewer = server.actor("viewer", &org).await;
    for (at, ecosystem) in ECOSYSTEMS.iter().enumerate() {
        ecosystem.publish(&ecosystem.client(server, &owner), ecosystem.versions[0]).await;
        let reader = server.actor(&format!("libraries.{}.pull", ecosystem.role()), &org).await;
        let publisher = server.actor(&format!("libraries.{}.push", ecosystem.role()), &org).await;
        let another = ECOSYSTEMS[usize::from(at == 0)].role();
        let of_another = server.actor(&format!("libraries.{another}.push"), &org).await;
        let (list, delete) = (ecosystem.path(&org, "versions"), ecosystem.path(&org, "deleteVersion"));
        let named = || Some(ecosystem.named(ecosystem.versions[0]));
        for (caller, may_list) in [(&reader, true), (&publisher, true), (&of_another, false), (&viewer, false)] {
            let listed = caller.rest("GET", &list, None).await;
            assert_eq!(listed.status, if may_list { 200 } else { 403 }, "{}: {}", ecosystem.word, listed.text());
        }
        for caller in [&reader, &of_another, &viewer, &stranger] {
            let refused = caller.rest("POST", &delete, named()).await;
            assert_eq!(refused.status, 403, "{}: {}", ecosystem.word, refused.text());
        }
        let refused = stranger.rest("GET", &list, None).await;
        assert_eq!((refused.status, refused.text().contains(ecosystem.package)), (403, false), "{}", refused.text());
        let deleted = publisher.rest("POST", &delete, named()).await;
        assert_eq!(deleted.status, 200, "{}", deleted.text());
    }
}

async fn warnings_and_marks_come_and_go(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let [javascript, _, _, cargo, _] = &ECOSYSTEMS;
    let client = javascript.client(server, &owner);
    for version in javascript.versions {
        javascript.publish(&client, version).await;
    }
    let highest = javascript.versions[2];
    let mut warned = javascript.named(highest);
    warned["deprecated"] = json!("It loses data.");
    let shown = ok(&owner, "POST", &javascript.path(&org, "deprecateVersion"), warned.clone()).await;
    assert_eq!((&shown["deprecated"], &shown["yanked"]), (&json!("It loses data."), &json!(false)));
    assert_eq!(client.document("@acme%2ftool").await["versions"][highest]["deprecated"], "It loses data.");
    ok(&owner, "POST", &javascript.path(&org, "deprecateVersion"), warned.clone()).await;
    warned["deprecated"] = json!("");
    let empty = owner.rest("POST", &javascript.path(&org, "deprecateVersion"), Some(warned)).await;
    assert_eq!(empty.status, 400, "{}", empty.text());
    let shown = ok(&owner, "POST", &javascript.path(&org, "undeprecateVersion"), javascript.named(highest)).await;
    assert_eq!(shown["deprecated"], "");
    let document = client.document("@acme%2ftool").await;
    assert_eq!(document["versions"][highest].get("deprecated"), None);
    assert_eq!(document["dist-tags"]["latest"], highest);
    ok(&owner, "POST", &javascript.path(&org, "deleteVersion"), javascript.named(highest)).await;
    assert_eq!(client.document("@acme%2ftool").await["dist-tags"]["latest"], javascript.versions[1]);

    let client = cargo.client(server, &owner);
    cargo.publish(&client, "1.9.0").await;
    for (verb, yanked) in [("yankVersion", true), ("yankVersion", true), ("unyankVersion", false)] {
        let shown = ok(&owner, "POST", &cargo.path(&org, verb), json!({ "package": "Tool", "version": "1.9.0" })).await;
        assert_eq!(shown["yanked"], yanked, "{verb}");
        assert_eq!(client.crate_lines("to/ol/tool").await[0]["yanked"], yanked, "{verb}");
    }
    for (event, wanted) in [("javascript.versions.deprecated", 2), ("cargo.version.yanked", 1)] {
        let sql = format!("SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.{event}.v1'").leak();
        assert_eq!(number(server, sql).await, wanted, "{event}");
    }
}

async fn a_snapshot_is_one_version(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let java = &ECOSYSTEMS[1];
    let client = java.client(server, &owner);
    let build = async |number: u32| {
        let pom = maven::pom("com.acme", "tool", "1.0-SNAPSHOT", &format!("<name>{number}</name>"));
        let path = format!("PUT com/acme/tool/1.0-SNAPSHOT/tool-1.0-20260102.03040{number}-{number}.pom");
        let put = client.send(&path, &[], pom.as_bytes()).await;
        assert_eq!(put.status, 201, "{}", put.text());
    };
    build(1).await;
    build(2).await;
    let seen = all(&owner, &java.path(&org, "versions")).await;
    assert_eq!((versions_of(&seen), &seen[0]["fileCount"]), (vec!["1.0-SNAPSHOT"], &json!(2)));
    ok(&owner, "POST", &java.path(&org, "deleteVersion"), java.named("1.0-SNAPSHOT")).await;
    assert_eq!(java.list(&client).await.status, 404);
    build(3).await;
    let seen = all(&owner, &java.path(&org, "versions")).await;
    assert_eq!((versions_of(&seen), &seen[0]["fileCount"]), (vec!["1.0-SNAPSHOT"], &json!(1)));
}

each_engine!(
    versions_are_listed_page_by_page,
    a_deleted_version_is_gone_and_its_names_stay_used,
    each_ecosystem_has_its_own_callers,
    warnings_and_marks_come_and_go,
    a_snapshot_is_one_version,
);
