//! Clients of the index of Python, and distributions to publish.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_content::{Algorithm, Digest};
use bowline_core::Error;
use bowline_package_hosts::PackageHosts;
pub(crate) use bowline_testkit::python::{BOUNDARY, Form, file_name, metadata, sdist, wheel, zip};
use bowline_testkit::{Actor, RestReply, Streamed, TestServer, cargo, golang, maven, npm};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

pub(crate) const JSON: &str = "application/vnd.pypi.simple.v1+json";

/// Longest wait until something is stored.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Someone who installs and publishes, by a user name and a password.
#[derive(Clone)]
pub(crate) struct Client {
    hosts: Arc<PackageHosts>,
    anonymous: Actor,
    authorization: Option<String>,
    /// The word of the protocol.
    word: &'static str,
    /// Below which it is: `/libraries/python`, with a group.
    base: String,
}

impl Client {
    /// The actor, whose API token is its password.
    pub(crate) fn of(server: &TestServer, actor: &Actor) -> Client {
        Client::with(server, "_token", actor.token.as_deref().expect("the actor has a token"))
    }

    pub(crate) fn with(server: &TestServer, user: &str, password: &str) -> Client {
        let authorization = Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))));
        Client { authorization, ..Client::anonymous(server) }
    }

    pub(crate) fn anonymous(server: &TestServer) -> Client {
        let hosts = server.server().parts().package_hosts.clone();
        let base = "/libraries/python".into();
        Client { hosts, anonymous: server.anonymous(), authorization: None, word: "python", base }
    }

    /// The same in the protocol of npm.
    pub(crate) fn javascript(&self) -> Client {
        self.in_protocol("javascript")
    }

    /// The same in the protocol of Maven.
    pub(crate) fn java(&self) -> Client {
        self.in_protocol("java")
    }

    /// The same in the protocol of Go.
    pub(crate) fn go(&self) -> Client {
        self.in_protocol("go")
    }

    /// The same in the protocol of Cargo.
    pub(crate) fn cargo(&self) -> Client {
        self.in_protocol("cargo")
    }

    fn in_protocol(&self, word: &'static str) -> Client {
        Client { word, base: self.base.replacen(self.word, word, 1), ..self.clone() }
    }

    /// The same at the host of generic files, in the caller's organization.
    pub(crate) fn files(&self) -> Client {
        Client { word: "files", base: "/libraries/files/~".into(), ..self.clone() }
    }

    /// The same with another header of credentials.
    pub(crate) fn authorized(&self, authorization: &str) -> Client {
        Client { authorization: Some(authorization.into()), ..self.clone() }
    }

    /// The header of its credentials.
    pub(crate) fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// The same at a group.
    pub(crate) fn at(&self, group: &str) -> Client {
        Client { base: format!("/libraries/{}/~{group}", self.word), ..self.clone() }
    }

    /// Sends `"VERB path"`, below the index.
    pub(crate) async fn send(&self, what: &str, headers: &[(&'static str, &str)], body: &[u8]) -> RestReply {
        let (verb, path) = what.split_once(' ').expect("a verb and a path");
        self.send_from_root(&format!("{verb} {}/{path}", self.base), headers, body).await
    }

    /// The same of a whole path. What was fetched for the response is stored then, for the test to look at.
    pub(crate) async fn send_from_root(&self, what: &str, headers: &[(&'static str, &str)], body: &[u8]) -> RestReply {
        let (verb, path) = what.split_once(' ').expect("a verb and a path");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a header's value"));
        }
        if let Some(value) = &self.authorization {
            map.insert(AUTHORIZATION, value.parse().expect("a header's value"));
        }
        let reply = self.anonymous.rest_with(verb, path, map, body.to_vec()).await;
        let stored = async {
            while reply.status == 200 && self.hosts.fetches_under_way() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, stored).await.expect("what was fetched for a response is stored in time");
        reply
    }

    pub(crate) async fn get(&self, path: &str) -> RestReply {
        self.send(&format!("GET {path}"), &[("accept", JSON)], &[]).await
    }

    /// The page of a project, which must be there.
    pub(crate) async fn project(&self, name: &str) -> Value {
        let reply = self.get(&format!("simple/{name}/")).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    pub(crate) async fn upload(&self, form: &Form) -> RestReply {
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        self.send("POST legacy/", &[("content-type", &content_type)], &form.0).await
    }

    /// Publishes a wheel of this version, which must succeed; its bytes.
    pub(crate) async fn publish(&self, name: &str, version: &str) -> Vec<u8> {
        let bytes = wheel(name, version, "License-Expression: MIT\n");
        let reply = self.upload(&form(name, version, &file_name(name, version), &bytes)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        bytes
    }

    /// The same while it arrives.
    pub(crate) async fn open(&self, page: &Value, at: usize) -> Streamed {
        self.open_at(page["files"][at]["url"].as_str().unwrap().strip_prefix("../../").unwrap()).await
    }

    /// What lies at a path, while it arrives.
    pub(crate) async fn open_at(&self, address: &str) -> Streamed {
        let mut headers = HeaderMap::new();
        let authorization = self.authorization.as_deref().expect("an account");
        headers.insert(AUTHORIZATION, authorization.parse().expect("a header's value"));
        let opened = self.anonymous.watch_rest(&format!("{}/{address}", self.base), headers).await;
        assert_eq!(opened.status, 200);
        opened
    }

    /// The file of a project's page at this place in its list.
    pub(crate) async fn file(&self, page: &Value, at: usize) -> RestReply {
        let address = page["files"][at]["url"].as_str().unwrap().strip_prefix("../../").unwrap();
        self.send(&format!("GET {address}"), &[], &[]).await
    }
}

/// The fields of an upload without the file.
pub(crate) fn fields(name: &str, version: &str, bytes: &[u8]) -> Form {
    bowline_testkit::python::fields(name, version, &sha256(bytes))
}

/// A whole upload, as twine sends it.
pub(crate) fn form(name: &str, version: &str, file: &str, bytes: &[u8]) -> Form {
    fields(name, version, bytes).file(file, bytes).end()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Digest::of(Algorithm::Sha256, bytes).hex().to_owned()
}

/// One number out of the database.
pub(crate) async fn number(server: &TestServer, sql: &'static str) -> i64 {
    let db = &server.server().parts().storage.db;
    let read =
        db.read(|tx| Box::pin(async move { tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await }));
    read.await.expect("the database answers").expect("a row")
}

/// The files of blobs and uploads.
pub(crate) fn stored_files(server: &TestServer) -> usize {
    fn below(directory: &std::path::Path) -> usize {
        let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
        let of = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.unwrap().path();
            if path.is_dir() { below(&path) } else { 1 }
        };
        entries.map(of).sum()
    }
    let blobs = server.data_dir().join("blobs");
    ["sha256", "uploads"].iter().map(|part| below(&blobs.join(part))).sum()
}

/// An organization, and someone who may publish there.
pub(crate) async fn publisher(server: &TestServer, name: &str) -> (String, Client) {
    let org = server.organization(name).await;
    let actor = server.actor("libraries.python.push", &org).await;
    (org, Client::of(server, &actor))
}

/// What a refusal says, which must have this status: the same in every member that a client shows.
pub(crate) fn sentence(reply: &RestReply, status: u16) -> String {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    let body = reply.json();
    assert_eq!((&body["status"], &body["detail"]), (&Value::from(status), &body["error"]), "{body}");
    assert_eq!(body["detail"], body["message"], "{body}");
    body["detail"].as_str().unwrap().to_owned()
}

/// Makes a policy and binds it to Python; its UIDP.
pub(crate) async fn bind(owner: &Actor, org: &str, mode: &str, policy: Value) -> String {
    bind_to("PYTHON", owner, org, mode, policy).await
}

/// The same of any ecosystem.
pub(crate) async fn bind_to(ecosystem: &str, owner: &Actor, org: &str, mode: &str, policy: Value) -> String {
    let created = owner.rest("POST", &format!("/libraries/v1/policies/{org}"), Some(policy)).await;
    assert_eq!(created.status, 200, "{}", created.text());
    let uid = created.json()["id"].as_str().unwrap().to_owned();
    let binding =
        json!({ "policy": uid, "ecosystem": ecosystem, "mode": format!("LIBRARY_POLICY_BINDING_MODE_{mode}") });
    let bound = owner.rest("POST", &format!("/libraries/v1/policy-bindings/{org}"), Some(binding)).await;
    assert_eq!(bound.status, 200, "{}", bound.text());
    uid
}

/// Package URL, reason and attempts of the downloads that were refused, or would have been.
pub(crate) async fn blocked(owner: &Actor, server: &TestServer, org: &str, mode: &str) -> Vec<(String, String, i64)> {
    server.server().parts().package_hosts.flush_notes(|| *b"12345678").await;
    let path = format!("/libraries/v1/blocked-packages?parentId={org}&mode=LIBRARY_POLICY_BINDING_MODE_{mode}");
    let reply = owner.rest("GET", &path, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let items = reply.json()["items"].as_array().cloned().unwrap_or_default();
    let of = |item: &Value| {
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        (text("purl"), text("reason"), item["attemptCount"].as_i64().unwrap_or_default())
    };
    items.iter().map(of).collect()
}

/// Imports records of vulnerabilities.
pub(crate) async fn import_records(server: &TestServer, records: &[Value]) {
    let operator = server.operator().await;
    let post = async |path: String, body: Value| {
        let reply = operator.rest("POST", &format!("/feeds/bowline/v1/imports{path}"), Some(body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    let begin = json!({ "source": "ghsa", "licence": "CC-BY-4.0", "url": "https://example.com", "full": true });
    let uid = post(String::new(), begin).await["uid"].as_str().unwrap().to_owned();
    let records: Vec<String> = records.iter().map(|record| STANDARD.encode(record.to_string())).collect();
    post(format!("/{uid}/records"), json!({ "records": records })).await;
    post(format!("/{uid}:commit"), json!({})).await;
}

/// An organization, and someone who may publish JavaScript packages there.
pub(crate) async fn npm_publisher(server: &TestServer, name: &str) -> (String, Client) {
    let org = server.organization(name).await;
    let actor = server.actor("libraries.javascript.push", &org).await;
    (org, Client::of(server, &actor).javascript())
}

/// An organization, and someone who may publish Java packages there.
pub(crate) async fn java_publisher(server: &TestServer, name: &str) -> (String, Client) {
    let org = server.organization(name).await;
    let actor = server.actor("libraries.java.push", &org).await;
    (org, Client::of(server, &actor).java())
}

/// An organization, and someone who may publish Go modules there.
pub(crate) async fn go_publisher(server: &TestServer, name: &str) -> (String, Client) {
    let org = server.organization(name).await;
    let actor = server.actor("libraries.go.push", &org).await;
    (org, Client::of(server, &actor).go())
}

/// An organization, and someone who may publish crates there.
pub(crate) async fn cargo_publisher(server: &TestServer, name: &str) -> (String, Client) {
    let org = server.organization(name).await;
    let actor = server.actor("libraries.cargo.push", &org).await;
    (org, Client::of(server, &actor).cargo())
}

/// An organization, and someone who may publish generic files there.
pub(crate) async fn files_publisher(server: &TestServer, name: &str) -> (String, Client) {
    let org = server.organization(name).await;
    let actor = server.actor("libraries.cargo.push", &org).await;
    (org, Client::of(server, &actor).files())
}

/// Puts a policy in force for crates; its UIDP.
pub(crate) async fn bind_to_cargo(owner: &Actor, org: &str, mode: &str, policy: Value) -> String {
    bind_own("CARGO", owner, org, mode, policy).await
}

/// Puts a policy in force for crates or generic files; its UIDP.
pub(crate) async fn bind_own(ecosystem: &str, owner: &Actor, org: &str, mode: &str, policy: Value) -> String {
    let created = owner.rest("POST", &format!("/libraries/v1/policies/{org}"), Some(policy)).await;
    assert_eq!(created.status, 200, "{}", created.text());
    let uid = created.json()["id"].as_str().unwrap().to_owned();
    let body = json!({ "mode": format!("CARGO_POLICY_MODE_{mode}"), "policy": uid, "ecosystem": ecosystem });
    let bound = owner.rest("POST", &format!("/cargopolicies/v1/organizations/{org}:setPolicy"), Some(body)).await;
    assert_eq!(bound.status, 200, "{}", bound.text());
    uid
}

impl Client {
    /// Publishes a version of a crate, which must succeed; its bytes.
    pub(crate) async fn cargo_publish(&self, name: &str, version: &str) -> Vec<u8> {
        let bytes = cargo::archive(name, version, "license = \"MIT\"\n");
        let body = cargo::body(&cargo::announced(name, version), &bytes);
        let reply = self.send("PUT api/v1/crates/new", &[], &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        bytes
    }

    /// The lines of the index of a crate at a path, which must be there.
    pub(crate) async fn crate_lines(&self, path: &str) -> Vec<Value> {
        let reply = self.send(&format!("GET {path}"), &[], &[]).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.text().lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
    }

    /// Publishes a version of a module, whose path addresses have so; this must succeed.
    pub(crate) async fn go_publish(&self, module: &str, path: &str, version: &str) {
        let archive = golang::archive(module, version, &[]);
        let reply = self.send(&format!("PUT {path}/@v/{version}.zip"), &[], &archive).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
    }

    /// Publishes a version with a JAR and a POM, which has more members; this must succeed.
    pub(crate) async fn java_publish(&self, group: &str, artifact: &str, version: &str, more: &str) {
        let base = format!("PUT {}/{artifact}/{version}/{artifact}-{version}", group.replace('.', "/"));
        let (jar, pom) = (format!("jar of {artifact} {version}"), maven::pom(group, artifact, version, more));
        for (end, bytes) in [("jar", jar), ("pom", pom)] {
            let reply = self.send(&format!("{base}.{end}"), &[], bytes.as_bytes()).await;
            assert_eq!(reply.status, 201, "{}", reply.text());
        }
    }

    /// Sends a document as npm does.
    pub(crate) async fn put(&self, path: &str, document: &Value) -> RestReply {
        let headers = [("content-type", "application/json")];
        self.send(&format!("PUT {path}"), &headers, document.to_string().as_bytes()).await
    }

    /// Publishes a version under a tag, which must succeed; its bytes.
    pub(crate) async fn npm_publish(&self, name: &str, version: &str, tag: &str) -> Vec<u8> {
        let bytes = npm::package(&npm::manifest(name, version));
        let reply = self.put(&name.replace('/', "%2f"), &npm::document(name, version, tag, &bytes)).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        bytes
    }

    /// The whole document of a package, which must be there.
    pub(crate) async fn document(&self, path: &str) -> Value {
        let reply = self.send(&format!("GET {path}"), &[], &[]).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// The file of a version in a document.
    pub(crate) async fn npm_file(&self, server: &TestServer, document: &Value, version: &str) -> RestReply {
        let address = document["versions"][version]["dist"]["tarball"].as_str().unwrap();
        let path = address.strip_prefix(server.base()).expect("an address of this server");
        self.send_from_root(&format!("GET {path}"), &[], &[]).await
    }
}
