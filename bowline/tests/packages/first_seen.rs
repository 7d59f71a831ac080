//! Ages that count from when this server saw a version first: a mirror cannot say that a new version is old.

use std::time::Duration;

use bowline_core::Clock as _;
use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::{Actor, TestServer, each_engine, maven};
use serde_json::{Value, json};

use crate::fake_index::FakeIndex;
use crate::fake_proxy::FakeProxy;
use crate::fake_repository::FakeRepository;
use crate::support::*;
use crate::upstreams::installer;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// After so long, an upstream is requested again.
pub(crate) const LATER: Duration = Duration::from_secs(301);
const CRATE: (&str, &str) = ("to/ol/tool", "tool");
const ECOSYSTEMS: [&str; 4] = ["PYTHON", "JAVASCRIPT", "JAVA", "CARGO"];
pub(crate) const NEW_VERSIONS: &str = "FIRST_SEEN_NEW_VERSIONS";
pub(crate) const ALL: &str = "FIRST_SEEN_ALL";

/// Whether page, file and explanation withhold a version, of each ecosystem.
type Held = [[bool; 3]; 4];
const SERVED: Held = [[false; 3]; 4];
const HELD: Held = [[true; 3]; 4];

/// An organization with an upstream of each ecosystem, and a policy with a cooldown of 7 days in force for it.
struct Shop {
    index: FakeIndex,
    repository: FakeRepository,
    proxy: FakeProxy,
    org: String,
    policies: Vec<String>,
}

impl Shop {
    async fn open(server: &TestServer) -> Shop {
        let org = server.organization("acme").await;
        let owner = server.actor("owner", &org).await;
        let (index, repository, proxy) =
            (FakeIndex::start().await, FakeRepository::start().await, FakeProxy::start().await);
        index.serve(&owner, &org, "pypi", 0).await;
        index.npm_serve(&owner, &org).await;
        repository.serve(&owner, &org, "central", 0).await;
        proxy.serve_as("CARGO", &owner, &org, ("crates", 0)).await;
        let mut policies = Vec::new();
        for ecosystem in ECOSYSTEMS {
            let policy = json!({ "name": ecosystem, "cooldownDays": 7 });
            policies.push(match ecosystem {
                "CARGO" => bind_to_cargo(&owner, &org, "ENFORCED", policy).await,
                _ => bind_to(ecosystem, &owner, &org, "ENFORCED", policy).await,
            });
        }
        Shop { index, repository, proxy, org, policies }
    }

    /// Has the last of these versions at each upstream, which say that it is so many days old, and lists all of them.
    fn publish(&self, server: &TestServer, versions: &[&str], days: i64) {
        let version = versions.last().unwrap();
        self.index.publish(server, "foo", version, days);
        self.index.npm_publish(server, "foo", version, days);
        self.repository.publish(server, "lib", version, days, &maven::license("MIT"));
        self.list(server, versions, days);
    }

    /// Lists versions of Java and Cargo, which say that they are so many days old.
    fn list(&self, server: &TestServer, versions: &[&str], days: i64) {
        self.repository.list(server, "lib", versions);
        let crates: Vec<_> = versions.iter().map(|version| (*version, Some(days))).collect();
        self.proxy.publish_crates(server, CRATE, &crates);
    }

    async fn count_from(&self, server: &TestServer, source: &str) {
        let owner = server.actor("owner", &self.org).await;
        for policy in &self.policies {
            set_source(&owner, policy, source, 200).await;
        }
    }

    /// Reads the lists, and asks for a version by its page, its file and its explanation.
    async fn held(&self, server: &TestServer, version: &str) -> Held {
        let owner = server.actor("owner", &self.org).await;
        let client = Client::of(server, &owner);
        let get = async |client: Client, path: String| client.send(&format!("GET {path}"), &[], &[]).await;
        let page = client.project("foo").await;
        let named = |file: &Value| file["filename"] == file_name("foo", version);
        let at = page["files"].as_array().unwrap().iter().position(named).expect("a file");
        let document = client.javascript().document("foo").await;
        let list = get(client.java(), "org/pub/lib/maven-metadata.xml".into()).await;
        let actor = server.actor("libraries.cargo.pull", &self.org).await;
        let lines = Client::of(server, &actor).cargo().crate_lines(CRATE.0).await;
        let line = lines.iter().find(|line| line["vers"] == version).expect("a line");
        let files = [
            client.file(&page, at).await,
            get(client.javascript(), format!("foo/-/foo-{version}.tgz")).await,
            get(client.java(), format!("org/pub/lib/{version}/lib-{version}.jar")).await,
            get(Client::of(server, &actor).cargo(), format!("api/v1/crates/tool/{version}/download")).await,
        ];
        let pages = [
            page["files"][at]["yanked"].is_string(),
            document["versions"].get(version).is_none(),
            !list.text().contains(&format!("<version>{version}<")),
            line["yanked"] == true,
        ];
        let mut held = SERVED;
        for (at, file) in files.iter().enumerate() {
            assert!(matches!(file.status, 200 | 403), "{}: {}", ECOSYSTEMS[at], file.text());
            let why = self.why(&owner, at, version).await;
            held[at] = [pages[at], file.status == 403, why["allowed"] != true];
        }
        held
    }

    /// The decision about a version of an ecosystem.
    async fn why(&self, owner: &Actor, ecosystem: usize, version: &str) -> Value {
        let name = ["pypi/foo", "npm/foo", "maven/org.pub/lib", "cargo/tool"][ecosystem];
        why(owner, &self.org, &format!("pkg:{name}@{version}")).await
    }
}

/// The decision about a version.
pub(crate) async fn why(owner: &Actor, org: &str, purl: &str) -> Value {
    let path = format!("/librarydecisions/v1/organizations/{org}:explainPackage?purl={purl}");
    owner.rest("GET", &path, None).await.json()["decision"].clone()
}

/// Sets from when on a policy counts; the response, which has this status.
pub(crate) async fn set_source(owner: &Actor, policy: &str, source: &str, status: u16) -> Value {
    let path = format!("/policyages/v1/policies/{policy}:setRule");
    let body = json!({ "ageSource": format!("AGE_SOURCE_{source}") });
    let reply = owner.rest("POST", &path, Some(body)).await;
    assert_eq!(reply.status, status, "{}", reply.text());
    reply.json()
}

/// Someone who installs, whose token is new.
pub(crate) async fn renewed(server: &TestServer, org: &str) -> Client {
    Client::of(server, &server.actor("libraries.python.pull", org).await)
}

async fn a_backdated_version_waits_from_when_it_was_seen(server: &TestServer) {
    let shop = Shop::open(server).await;
    shop.publish(server, &["1.0.0"], 300);
    shop.count_from(server, NEW_VERSIONS).await;
    assert_eq!(shop.held(server, "1.0.0").await, SERVED, "of the first list, the upstream's word counts");

    server.clock().advance(LATER);
    shop.publish(server, &["1.0.0", "1.1.0"], 200);
    let seen = rfc3339::text(server.clock().now(), Digits::Fewest);
    assert_eq!(shop.held(server, "1.1.0").await, HELD);
    assert_eq!(shop.held(server, "1.0.0").await, SERVED);
    let owner = server.actor("owner", &shop.org).await;
    for at in 0..ECOSYSTEMS.len() {
        let why = shop.why(&owner, at, "1.1.0").await;
        assert_eq!((&why["reason"], &why["firstSeenTime"]), (&json!("COOLDOWN"), &json!(seen)), "{why}");
        assert_eq!((&why["countedTime"], why["publishTime"] == json!(seen)), (&json!(seen), false), "{why}");
    }
    let page = renewed(server, &shop.org).await.project("foo").await;
    let sentence = page["files"][1]["yanked"].as_str().unwrap();
    let beginning = "Blocked by policy PYTHON: pkg:pypi/foo@1.1.0 was first seen here 20";
    assert!(sentence.starts_with(beginning), "{sentence}");
    assert!(sentence.contains(", less than 7 days ago; allowed from 20"), "{sentence}");

    // Pages that are kept end with the cooldown.
    server.clock().advance((DAY * 7).saturating_sub(Duration::from_secs(100)));
    assert_eq!(shop.held(server, "1.1.0").await, HELD);
    server.clock().advance(Duration::from_secs(100));
    assert_eq!(shop.held(server, "1.1.0").await, SERVED);
}

async fn without_a_rule_the_upstream_is_believed(server: &TestServer) {
    let shop = Shop::open(server).await;
    shop.publish(server, &["1.0.0"], 300);
    shop.held(server, "1.0.0").await;
    server.clock().advance(LATER);
    shop.publish(server, &["1.0.0", "1.1.0"], 200);
    assert_eq!(shop.held(server, "1.1.0").await, SERVED);
    // A rule is in force with the next request, and so is its end.
    for (source, held) in [(NEW_VERSIONS, HELD), ("UPSTREAM", SERVED), (ALL, HELD), ("UNSPECIFIED", SERVED)] {
        shop.count_from(server, source).await;
        assert_eq!(shop.held(server, "1.1.0").await, held, "{source}");
    }
}

async fn a_first_list_counts_from_when_it_was_seen_if_the_policy_says_so(server: &TestServer) {
    let shop = Shop::open(server).await;
    shop.publish(server, &["1.0.0"], 300);
    shop.count_from(server, ALL).await;
    assert_eq!(shop.held(server, "1.0.0").await, HELD);
    shop.count_from(server, NEW_VERSIONS).await;
    assert_eq!(shop.held(server, "1.0.0").await, SERVED);
    shop.count_from(server, ALL).await;
    server.clock().advance(DAY * 7);
    assert_eq!(shop.held(server, "1.0.0").await, SERVED);
}

async fn a_version_that_was_gone_is_not_new(server: &TestServer) {
    let shop = Shop::open(server).await;
    shop.publish(server, &["1.0.0"], 300);
    shop.count_from(server, NEW_VERSIONS).await;
    shop.held(server, "1.0.0").await;
    server.clock().advance(LATER);
    shop.publish(server, &["1.0.0", "1.1.0"], 200);
    assert_eq!(shop.held(server, "1.1.0").await, HELD);

    // It is read that there is nothing, or less than before.
    server.clock().advance(DAY * 3);
    let pages = shop.index.state().pages.clone();
    let documents = shop.index.state().documents.clone();
    shop.index.state().pages.clear();
    shop.index.state().documents.clear();
    shop.repository.list(server, "lib", &["1.0.0"]);
    shop.proxy.state().forget(CRATE.0);
    let owner = server.actor("owner", &shop.org).await;
    let client = Client::of(server, &owner);
    assert_eq!(client.get("simple/foo/").await.status, 404);
    assert_eq!(client.javascript().send("GET foo", &[], &[]).await.status, 404);
    let list = client.java().send("GET org/pub/lib/maven-metadata.xml", &[], &[]).await;
    assert!(!list.text().contains("<version>1.1.0<"), "{}", list.text());
    let actor = server.actor("libraries.cargo.pull", &shop.org).await;
    let index = Client::of(server, &actor).cargo().send(&format!("GET {}", CRATE.0), &[], &[]).await;
    assert_eq!(index.status, 404, "{}", index.text());

    server.clock().advance(LATER);
    shop.index.state().pages = pages;
    shop.index.state().documents = documents;
    shop.list(server, &["1.0.0", "1.1.0"], 200);
    assert_eq!(shop.held(server, "1.1.0").await, HELD);
    assert_eq!(shop.held(server, "1.0.0").await, SERVED, "nor is one of the first list");
    server.clock().advance((DAY * 4).saturating_sub(LATER));
    assert_eq!(shop.held(server, "1.1.0").await, SERVED, "seven days after it came first");
}

async fn what_was_forgotten_is_not_new(server: &TestServer) {
    let index = FakeIndex::start().await;
    index.publish(server, "foo", "1.0", 300);
    index.publish(server, "bar", "1.0", 300);
    let (org, owner, client) = installer(server, &index).await;
    let policy = bind(&owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    set_source(&owner, &policy, NEW_VERSIONS, 200).await;
    client.project("foo").await;
    // As many as there may be, each younger than the first.
    let db = &server.server().parts().storage.db;
    let filled = db.write(|tx| {
        Box::pin(async move {
            let sql =
                "INSERT INTO upstream_documents (upstream, package, etag, last_modified, serial, document, fetched_at)
                       WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
                       SELECT upstream, 'p' || i, '', '', 0, document, fetched_at + i
                       FROM n, upstream_documents WHERE package = 'foo'";
            tx.execute(sql, &[]).await.map_err(bowline_core::Error::from)
        })
    });
    assert_eq!(filled.await.unwrap(), 9999);
    client.project("bar").await;
    assert_eq!(number(server, "SELECT count(*) FROM upstream_documents WHERE package = 'foo'").await, 0);
    assert_eq!(number(server, "SELECT count(*) FROM upstream_known_versions").await, 10);
    index.publish(server, "foo", "1.1", 200);
    let page = client.project("foo").await;
    let yanked = |at: usize| page["files"][at]["yanked"].is_string();
    assert_eq!((yanked(0), yanked(1)), (false, true), "{page}");
    assert_eq!((client.file(&page, 0).await.status, client.file(&page, 1).await.status), (200, 403));
    assert_eq!(number(server, "SELECT count(*) FROM upstream_known_versions WHERE package = 'foo'").await, 0);
}

/// Of Maven, versions are requested without a list: it is read before the first of them, where a policy needs it.
async fn a_version_of_java_that_its_list_lacks_is_new(server: &TestServer) {
    let (org, repository) = (server.organization("acme").await, FakeRepository::start().await);
    let owner = server.actor("owner", &org).await;
    repository.serve(&owner, &org, "central", 0).await;
    let policy = bind_to("JAVA", &owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    let client = Client::of(server, &owner).java();
    let jar = async |client: &Client, name: &str, version: &str| {
        client.send(&format!("GET org/pub/{name}/{version}/{name}-{version}.jar"), &[], &[]).await.status
    };
    for (name, version) in [("lib", "1.0"), ("lib", "1.1"), ("lone", "1.0")] {
        repository.publish(server, name, version, 200, &maven::license("MIT"));
    }
    repository.list(server, "lib", &["1.0"]);
    set_source(&owner, &policy, NEW_VERSIONS, 200).await;
    assert_eq!((jar(&client, "lib", "1.1").await, jar(&client, "lib", "1.0").await), (403, 200));
    let seen = repository.seen();
    let lists = || seen.iter().filter(|seen| *seen == "GET org/pub/lib/maven-metadata.xml");
    assert_eq!((seen.first(), lists().count()), (lists().next(), 1), "{seen:?}");
    assert_eq!(jar(&client, "lone", "1.0").await, 403, "there is no list that has it");
    let why = why(&owner, &org, "pkg:maven/org.pub/lib@1.1").await;
    assert_eq!((&why["reason"], why["firstSeenTime"].is_string()), (&json!("COOLDOWN"), true), "{why}");
    set_source(&owner, &policy, ALL, 200).await;
    assert_eq!((jar(&client, "lib", "1.0").await, jar(&client, "lone", "1.0").await), (403, 403));

    // The list that has it later says nothing else.
    server.clock().advance(DAY * 6);
    let client = Client::of(server, &server.actor("libraries.java.pull", &org).await).java();
    repository.list(server, "lib", &["1.0", "1.1"]);
    repository.list(server, "lone", &["1.0"]);
    for name in ["lib", "lone"] {
        let list = client.send(&format!("GET org/pub/{name}/maven-metadata.xml"), &[], &[]).await;
        assert_eq!((list.status, jar(&client, name, "1.0").await), (409, 403), "{}", list.text());
    }
    server.clock().advance(DAY);
    let client = Client::of(server, &server.actor("libraries.java.pull", &org).await).java();
    for (name, version) in [("lib", "1.1"), ("lone", "1.0")] {
        let list = client.send(&format!("GET org/pub/{name}/maven-metadata.xml"), &[], &[]).await;
        assert!(list.text().contains(&format!("<version>{version}<")), "{}", list.text());
        assert_eq!(jar(&client, name, version).await, 200);
    }
}

async fn without_a_rule_no_list_of_java_is_read(server: &TestServer) {
    let (org, repository) = (server.organization("acme").await, FakeRepository::start().await);
    let owner = server.actor("owner", &org).await;
    repository.serve(&owner, &org, "central", 0).await;
    repository.publish(server, "lib", "1.0", 200, &maven::license("MIT"));
    repository.publish(server, "lib", "1.1", 200, &maven::license("MIT"));
    repository.list(server, "lib", &["1.0", "1.1"]);
    let policy = bind_to("JAVA", &owner, &org, "ENFORCED", json!({ "name": "rules" })).await;
    let client = Client::of(server, &owner).java();
    let jar =
        async |version: &str| client.send(&format!("GET org/pub/lib/{version}/lib-{version}.jar"), &[], &[]).await;
    assert_eq!(jar("1.0").await.status, 200);
    let seen = repository.seen();
    assert!(!seen.is_empty() && !seen.iter().any(|path| path.ends_with("maven-metadata.xml")), "{seen:?}");
    // What it lists first is not new, and neither is what came before.
    set_source(&owner, &policy, NEW_VERSIONS, 200).await;
    assert_eq!((jar("1.0").await.status, jar("1.1").await.status), (200, 200));
    let seen = repository.seen();
    assert!(seen.iter().any(|path| path.ends_with("maven-metadata.xml")), "{seen:?}");
}

each_engine!(
    a_backdated_version_waits_from_when_it_was_seen,
    without_a_rule_the_upstream_is_believed,
    a_first_list_counts_from_when_it_was_seen_if_the_policy_says_so,
    a_version_that_was_gone_is_not_new,
    what_was_forgotten_is_not_new,
    a_version_of_java_that_its_list_lacks_is_new,
    without_a_rule_no_list_of_java_is_read,
);
