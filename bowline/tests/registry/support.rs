//! Clients of the registry, and images to push.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_content::{Algorithm, Digest};
use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, RestReply, TestServer};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

pub(crate) const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Someone at the registry, with a token for it or without.
#[derive(Clone)]
pub(crate) struct Client {
    actor: Actor,
}

/// The headers of a request.
pub(crate) type Headers<'a> = &'a [(&'static str, &'a str)];

impl Client {
    /// Exchanges the actor's API token for one of the registry, as clients do.
    pub(crate) async fn of(server: &TestServer, actor: &Actor) -> Client {
        let token = actor.token.clone().expect("the actor has a token");
        let reply = basic(server, "_token", &token, "/token?service=x").await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        Client::with(server, reply.json()["token"].as_str().unwrap())
    }

    pub(crate) fn with(server: &TestServer, token: &str) -> Client {
        Client { actor: server.anonymous().with_token(token) }
    }

    pub(crate) fn anonymous(server: &TestServer) -> Client {
        Client { actor: server.anonymous() }
    }

    pub(crate) fn token(&self) -> String {
        self.actor.token.clone().unwrap()
    }

    /// Sends `"VERB /path"`.
    pub(crate) async fn send(&self, what: &str, headers: Headers<'_>, body: &[u8]) -> RestReply {
        let (verb, path) = what.split_once(' ').expect("a verb and a path");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a header's value"));
        }
        self.actor.rest_with(verb, path, map, body.to_vec()).await
    }

    pub(crate) async fn get(&self, path: &str) -> RestReply {
        self.send(&format!("GET {path}"), &[], &[]).await
    }

    /// Pushes a blob at once; its digest.
    pub(crate) async fn blob(&self, name: &str, content: &[u8]) -> String {
        let digest = digest(content);
        let reply = self.send(&format!("POST /v2/{name}/blobs/uploads/?digest={digest}"), &[], content).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        digest
    }

    /// Begins an upload; where it continues.
    pub(crate) async fn begin(&self, name: &str) -> String {
        let reply = self.send(&format!("POST /v2/{name}/blobs/uploads/"), &[], &[]).await;
        assert_eq!(reply.status, 202, "{}", reply.text());
        header(&reply, "location")
    }

    pub(crate) async fn put(&self, name: &str, reference: &str, manifest: &Value) -> RestReply {
        let media_type = manifest["mediaType"].as_str().unwrap_or(IMAGE).to_owned();
        let what = format!("PUT /v2/{name}/manifests/{reference}");
        self.send(&what, &[("content-type", &media_type)], manifest.to_string().as_bytes()).await
    }

    /// Pushes an image of one layer; its manifest.
    pub(crate) async fn image(&self, name: &str, reference: &str, layer: &[u8]) -> Value {
        let manifest = image(layer);
        self.blob(name, CONFIG_BYTES).await;
        self.blob(name, layer).await;
        let reply = self.put(name, reference, &manifest).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        assert_eq!(header(&reply, "docker-content-digest"), digest_of(&manifest));
        manifest
    }
}

/// One number out of the database.
pub(crate) async fn number(server: &TestServer, sql: &'static str) -> i64 {
    let db = &server.server().parts().storage.db;
    let read =
        db.read(|tx| Box::pin(async move { tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await }));
    read.await.expect("the database answers").expect("a row")
}

/// Texts out of the database.
pub(crate) async fn texts(server: &TestServer, sql: &'static str) -> Vec<String> {
    let db = &server.server().parts().storage.db;
    let read = db.read(|tx| Box::pin(async move { tx.query(sql, &[], |row| row.text(0).map_err(Error::from)).await }));
    read.await.expect("the database answers")
}

/// Changes the database behind the server's back.
pub(crate) async fn execute(server: &TestServer, sql: &'static str) {
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| Box::pin(async move { tx.execute(sql, &[]).await.map_err(Error::from) }));
    written.await.expect("the database takes it");
}

/// Lets everyone pull from a repository or below a group.
pub(crate) async fn publish(server: &TestServer, place: &str, is_public: bool) {
    let (place, org) = (place.to_owned(), place.split('/').next().unwrap().to_owned());
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let (place, org) = (place.clone(), org.clone());
        Box::pin(async move {
            let sql =
                "INSERT INTO registry_policies (place, org, is_public, policy, updated_at) VALUES ($1, $2, $3, $4, 0)";
            let params = [Sql::from(&place), Sql::from(&org), Sql::Bool(is_public), Sql::Bytes(&[])];
            tx.execute(sql, &params).await.map_err(Error::from)
        })
    });
    written.await.expect("the database takes it");
}

/// Sends a user name and a password.
pub(crate) async fn basic(server: &TestServer, user: &str, password: &str, path: &str) -> RestReply {
    let mut headers = HeaderMap::new();
    let value = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    headers.insert(AUTHORIZATION, value.parse().unwrap());
    server.anonymous().rest_with("GET", path, headers, Vec::new()).await
}

pub(crate) const CONFIG_BYTES: &[u8] = br#"{"os":"linux","architecture":"arm64","variant":"v8","config":{}}"#;

pub(crate) fn descriptor(media_type: &str, content: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": digest(content), "size": content.len() })
}

pub(crate) fn image(layer: &[u8]) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": IMAGE,
        "config": descriptor(CONFIG, CONFIG_BYTES),
        "layers": [descriptor(LAYER, layer)],
    })
}

pub(crate) fn digest(content: &[u8]) -> String {
    Digest::of(Algorithm::Sha256, content).as_str().to_owned()
}

pub(crate) fn digest_of(manifest: &Value) -> String {
    digest(manifest.to_string().as_bytes())
}

pub(crate) fn header(reply: &RestReply, name: &str) -> String {
    reply.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

/// The code of a refusal, which must have this status.
pub(crate) fn code(reply: &RestReply, status: u16) -> String {
    assert_eq!(reply.status, status, "{}", reply.text());
    let body = reply.json();
    assert_eq!(body["errors"].as_array().map(Vec::len), Some(1), "{body}");
    body["errors"][0]["code"].as_str().unwrap().to_owned()
}

/// Someone with these roles at these groups, at the registry.
pub(crate) async fn client(server: &TestServer, role: &str, group: &str) -> Client {
    Client::of(server, &server.actor(role, group).await).await
}

/// UIDP of the only repository of this name.
pub(crate) async fn repo_uid(server: &TestServer, name: &'static str) -> String {
    let db = &server.server().parts().storage.db;
    let read = db.read(move |tx| {
        Box::pin(async move {
            let sql = "SELECT uid FROM repos WHERE name = $1";
            tx.query_opt(sql, &[Sql::from(name)], |row| row.text(0).map_err(Error::from)).await
        })
    });
    read.await.expect("the database answers").expect("a repository")
}

/// An organization, and someone who may push there.
pub(crate) async fn pusher(server: &TestServer, name: &str) -> (String, Client) {
    let org = server.organization(name).await;
    let actor = server.actor("registry.push", &org).await;
    let client = Client::of(server, &actor).await;
    (org, client)
}
