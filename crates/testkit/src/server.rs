use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::identity::claim_match::{Iss, Sub};
use bowline_contract::v2::iam::identity::{ClaimMatch, Relationship};
use bowline_contract::v2::iam::rpc::groups_service::CreateGroup;
use bowline_contract::v2::iam::rpc::identities_service::CreateIdentity;
use bowline_contract::v2::iam::rpc::role_bindings_service::CreateRoleBinding;
use bowline_contract::v2::registry;
use bowline_contract::v2::registry::rpc::repos_service::CreateRepo;
use bowline_server::{Options, Server, TokenAlgorithm, mint_operator_token};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::actor::{Actor, RestReply};
use crate::browser::Browser;
use crate::clock::TestClock;
use crate::engine::{Database, Engine};
use crate::idp::IdentityProvider;
use crate::template;
use crate::wire::Wire;

/// The operator's fixed subject.
const OPERATOR: &str = "0000000000000000000000000000000000000000";

/// A server with a database, a clock and an issuer of its own.
pub struct TestServer {
    server: Server,
    options: Options,
    base: String,
    clock: TestClock,
    idp: IdentityProvider,
    wire: Arc<Wire>,
    named: AtomicUsize,
    // Dropped after the server that uses them, in this order.
    database: Option<Database>,
    directory: TempDir,
}

impl TestServer {
    /// Starts a server on that engine.
    pub async fn start(engine: Engine) -> TestServer {
        TestServer::start_with(engine, |_| {}).await
    }

    /// Starts a server with other options than the usual ones.
    pub async fn start_with(engine: Engine, change: impl FnOnce(&mut Options)) -> TestServer {
        let directory = tempfile::tempdir().expect("a scratch directory is made");
        let database = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(Database::create().await),
        };
        let mut options = options(&directory, database.as_ref());
        change(&mut options);
        if options.database_url.is_none() {
            template::embed(&options).await;
        }
        let clock = TestClock::default();
        let idp = IdentityProvider::start(clock.clone()).await;
        let (server, base, wire) = start(&options, &clock).await;
        let named = AtomicUsize::new(0);
        TestServer { server, options, base, clock, idp, wire, named, database, directory }
    }

    /// Starts another server of the same PostgreSQL database, blobs and key. Callers know both by the same public
    /// address, and tokens of the one are good at the other.
    pub async fn beside(&self) -> Server {
        let options = Options { base_url: Some(self.base.clone()), ..self.options.clone() };
        let server = Server::start(&options, Arc::new(self.clock.clone())).await;
        server.unwrap_or_else(|error| panic!("the second server does not start: {error}"))
    }

    /// The same data in another server, at another address, after the first one was stopped in good order.
    pub async fn restarted(self) -> TestServer {
        self.restarted_with(|_| {}).await
    }

    /// The same with other options.
    pub async fn restarted_with(self, change: impl FnOnce(&mut Options)) -> TestServer {
        let TestServer { server, mut options, clock, idp, wire, named, database, directory, .. } = self;
        drop(wire);
        server.stop().await;
        change(&mut options);
        let (server, base, wire) = start(&options, &clock).await;
        TestServer { server, options, base, clock, idp, wire, named, database, directory }
    }

    /// The same after the server was stopped and something was done to its storage, which a command finds by these
    /// arguments; it gives the key file from then on.
    pub async fn restarted_after(self, meanwhile: impl AsyncFnOnce(Vec<String>) -> std::path::PathBuf) -> TestServer {
        let storage = self.storage_arguments();
        let TestServer { server, mut options, clock, idp, wire, named, database, directory, .. } = self;
        drop(wire);
        server.stop().await;
        options.key_file = Some(meanwhile(storage).await);
        let (server, base, wire) = start(&options, &clock).await;
        TestServer { server, options, base, clock, idp, wire, named, database, directory }
    }

    /// What names the server's storage to its commands.
    pub fn storage_arguments(&self) -> Vec<String> {
        let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
        let mut arguments = vec!["--data-dir".to_owned(), path(&self.data_dir())];
        if let (Some(url), Some(key)) = (&self.options.database_url, &self.options.key_file) {
            arguments.extend(["--database-url".to_owned(), url.clone(), "--key-file".to_owned(), path(key)]);
        }
        arguments
    }

    /// The server's data directory.
    pub fn data_dir(&self) -> std::path::PathBuf {
        self.directory.path().join("data")
    }

    /// The public address of the API, which is the audience of its tokens as well.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The page of metrics of the admin listener.
    pub async fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.server.admin_address()).await.expect("a connection");
        let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("text");
        let (_, page) = text.split_once("\r\n\r\n").expect("a head");
        page.to_owned()
    }

    /// Holds the one writer of an embedded database until the sender sends or is dropped.
    pub async fn hold_writer(&self) -> mpsc::Sender<()> {
        let (release, gate) = mpsc::channel::<()>();
        let (gate, is_held) = (Arc::new(Mutex::new(gate)), Arc::new(AtomicBool::new(false)));
        let (held, db) = (is_held.clone(), self.server.parts().storage.db.clone());
        tokio::spawn(async move {
            let write = db.write(move |_| {
                held.store(true, Ordering::SeqCst);
                let _ = gate.lock().expect("the gate").recv();
                Box::pin(async { Ok::<_, bowline_core::Error>(()) })
            });
            write.await.expect("the write ends");
        });
        while !is_held.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        release
    }

    pub fn clock(&self) -> &TestClock {
        &self.clock
    }

    /// The issuer that actors have their tokens from.
    pub fn idp(&self) -> &IdentityProvider {
        &self.idp
    }

    /// The operator, with a token that is good for an hour from now.
    pub async fn operator(&self) -> Actor {
        let parts = self.server.parts();
        let token = mint_operator_token(&parts.storage, &self.clock, None, None, 3600, None).await;
        let token = token.unwrap_or_else(|error| panic!("no token of the operator: {error}"));
        Actor::new("operator", Some(token), OPERATOR, self.wire.clone())
    }

    /// Someone without a token.
    pub fn anonymous(&self) -> Actor {
        Actor::new("anonymous", None, "", self.wire.clone())
    }

    /// A browser without cookies.
    pub fn browser(&self) -> Browser {
        Browser::new(self.wire.clone())
    }

    pub async fn organization(&self, name: &str) -> String {
        self.group("", name).await
    }

    pub async fn group(&self, parent: &str, name: &str) -> String {
        let group = v2::Group { name: name.into(), ..v2::Group::default() };
        let request = v2::CreateGroupRequest { parent: parent.into(), group: Some(group) };
        let created = self.operator().await.grpc::<CreateGroup>(request).await;
        created.unwrap_or_else(|error| panic!("group {name}: {error:?}")).uid
    }

    pub async fn repo(&self, parent: &str, name: &str) -> String {
        let repo = registry::Repo { name: name.into(), ..registry::Repo::default() };
        let request = registry::CreateRepoRequest { parent: parent.into(), repo: Some(repo) };
        let created = self.operator().await.grpc::<CreateRepo>(request).await;
        created.unwrap_or_else(|error| panic!("repository {name}: {error:?}")).uid
    }

    /// A new identity in `parent` that tokens of the issuer with this subject may assume.
    pub async fn identity(&self, parent: &str, subject: &str) -> String {
        let claims = ClaimMatch {
            iss: Some(Iss::Issuer(self.idp.issuer().into())),
            sub: Some(Sub::Subject(subject.into())),
            ..ClaimMatch::default()
        };
        let identity = v2::Identity {
            name: subject.into(),
            relationship: Some(Relationship::ClaimMatch(claims)),
            ..v2::Identity::default()
        };
        let request = v2::CreateIdentityRequest { parent: parent.into(), identity: Some(identity) };
        let created = self.operator().await.grpc::<CreateIdentity>(request).await;
        created.unwrap_or_else(|error| panic!("identity {subject}: {error:?}")).uid
    }

    /// Binds a role to an identity; returns the binding's UIDP.
    pub async fn bind(&self, identity: &str, role_uid: &str, group: &str) -> String {
        let binding =
            v2::RoleBinding { identity_uid: identity.into(), role_uid: role_uid.into(), ..v2::RoleBinding::default() };
        let request = v2::CreateRoleBindingRequest { parent: group.into(), role_binding: Some(binding) };
        let created = self.operator().await.grpc::<CreateRoleBinding>(request).await;
        created.unwrap_or_else(|error| panic!("role {role_uid} at {group}: {error:?}")).uid
    }

    /// The UIDP of a built-in role.
    pub fn role(&self, name: &str) -> String {
        let roles = self.server.parts().contract.built_in_roles();
        let role = roles.iter().find(|role| role.name == name);
        role.unwrap_or_else(|| panic!("there is no built-in role {name}")).uid.clone()
    }

    /// Someone of the group's organization who has that built-in role at the group.
    pub async fn actor(&self, role: &str, group: &str) -> Actor {
        let organization = group.split('/').next().unwrap_or(group);
        let subject = self.subject(role);
        let identity = self.identity(organization, &subject).await;
        self.bind(&identity, &self.role(role), group).await;
        self.sign_in(role, &subject, &identity).await
    }

    /// Someone of an organization of their own who may do nothing anywhere.
    pub async fn stranger(&self) -> Actor {
        let subject = self.subject("stranger");
        let organization = self.organization(&subject).await;
        let identity = self.identity(&organization, &subject).await;
        self.sign_in("stranger", &subject, &identity).await
    }

    /// A new access token for an identity that tokens with this subject may assume.
    pub async fn sign_in(&self, name: &str, subject: &str, identity: &str) -> Actor {
        let upstream = self.idp.token(subject, &self.server.parts().settings.auth_url, serde_json::Value::Null);
        let reply = self.exchange(&upstream, &[("aud", &self.base), ("identity", identity)]).await;
        assert_eq!(reply.status, 200, "{name} signs in: {}", reply.text());
        let token = reply.json()["token"].as_str().map(String::from);
        Actor::new(name, Some(token.expect("an exchange gives a token")), identity, self.wire.clone())
    }

    /// Exchanges a token, over REST.
    pub async fn exchange(&self, upstream: &str, params: &[(&str, &str)]) -> RestReply {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        self.anonymous().with_token(upstream).rest_with("POST", "/sts/exchange", headers, form.into_bytes()).await
    }

    /// Stops the server in good order and removes its database.
    pub async fn stop(self) {
        let TestServer { server, wire, database, .. } = self;
        drop(wire);
        server.stop().await;
        if let Some(database) = database {
            database.remove().await;
        }
    }

    fn subject(&self, name: &str) -> String {
        let number = self.named.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", name.replace('_', "-"))
    }
}

async fn start(options: &Options, clock: &TestClock) -> (Server, String, Arc<Wire>) {
    let server = Server::start(options, Arc::new(clock.clone())).await;
    let server = server.unwrap_or_else(|error| panic!("the server does not start: {error}"));
    let base = server.parts().settings.base_url.clone();
    let wire = Arc::new(Wire::new(server.address(), &base));
    (server, base, wire)
}

fn options(directory: &TempDir, database: Option<&Database>) -> Options {
    let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let mut options = Options {
        data_dir: Some(directory.path().join("data")),
        listen: Some(loopback),
        admin_listen: Some(loopback),
        rate_limit_address: Some(0),
        // An RSA key takes as long to make as the rest of the start.
        token_algorithm: Some(TokenAlgorithm::Es256),
        disk_reserve: Some(1),
        ..Options::default()
    };
    if let Some(database) = database {
        let key = directory.path().join("key");
        template::write_key(&key);
        options.key_file = Some(key);
        options.database_url = Some(database.url());
    }
    options
}
