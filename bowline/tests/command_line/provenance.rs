//! Signed statements about published packages, as the command line shows them.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_content::{Algorithm, Digest};
use bowline_testkit::python::{BOUNDARY, fields, file_name, sdist, wheel};
use bowline_testkit::sigstore::{PROVENANCE, PUBLISH, REPOSITORY, SIGNER, Sigstore, WORKFLOW, statement};
use bowline_testkit::{Actor, Engine, TestServer, npm};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::support::{Terminal, ended, text};

/// Sends a body to the package hosts as an actor, which must succeed.
async fn send(server: &TestServer, actor: &Actor, what: &str, content_type: &str, body: Vec<u8>) {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    let basic = STANDARD.encode(format!("_token:{}", actor.token.as_deref().expect("the actor has a token")));
    let headers = HeaderMap::from_iter([
        (AUTHORIZATION, format!("Basic {basic}").parse().expect("a header's value")),
        (CONTENT_TYPE, content_type.parse().expect("a header's value")),
    ]);
    let reply = server.anonymous().rest_with(verb, &format!("/libraries/{path}"), headers, body).await;
    assert!([200, 201].contains(&reply.status), "{what}: {}", reply.text());
}

/// The attestation of a kind about a file of Python.
fn attestation(sigstore: &Sigstore, kind: &str, (file, bytes): (&str, &[u8])) -> Value {
    let digest = Digest::of(Algorithm::Sha256, bytes);
    Sigstore::attestation(&sigstore.bundle(&SIGNER, &statement(file, &[("sha256", digest.hex())], kind)))
}

/// Publishes a file of a version with attestations to a group.
async fn publish(
    server: &TestServer,
    (actor, group): (&Actor, &str),
    (name, version): (&str, &str),
    (file, bytes): (&str, &[u8]),
    attestations: &Value,
) {
    let digest = Digest::of(Algorithm::Sha256, bytes);
    let form = fields(name, version, digest.hex()).field("attestations", &attestations.to_string());
    let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
    let body = form.file(file, bytes).end().0;
    send(server, actor, &format!("POST python/~{group}/legacy/"), &content_type, body).await;
}

/// Publishes a wheel with its provenance, signed by an instance of Sigstore that no server trusts.
pub(crate) async fn publish_signed(server: &TestServer, actor: &Actor, group: &str, name: &str, version: &str) {
    let (file, bytes) = (file_name(name, version), wheel(name, version, ""));
    let attestation = attestation(&Sigstore::new(), PROVENANCE, (&file, &bytes));
    publish(server, (actor, group), (name, version), (&file, &bytes), &json!([attestation])).await;
}

/// An owner of the organization `acme`, with a terminal.
async fn owner(server: &TestServer) -> (String, Actor, Terminal) {
    let organization = server.organization("acme").await;
    let (actor, terminal) = (server.actor("owner", &organization).await, Terminal::new(server));
    terminal.sign_in_as(&actor);
    (organization, actor, terminal)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_about_files_of_python_have_their_verified_signer() {
    let sigstore = Sigstore::new();
    let mut root = tempfile::NamedTempFile::new().expect("a file");
    write!(root, "{}", sigstore.trusted_root()).expect("room for a file");
    let trusted = |options: &mut bowline_server::Options| options.sigstore_trust_root = Some(root.path().to_owned());
    let server = TestServer::start_with(Engine::Sqlite, trusted).await;
    let (organization, actor, terminal) = owner(&server).await;
    let to = (&actor, organization.as_str());
    let (name, bytes) = (file_name("foo", "1.0"), wheel("foo", "1.0", ""));
    let built = attestation(&sigstore, PROVENANCE, (&name, &bytes));
    let published = attestation(&sigstore, PUBLISH, (&name, &bytes));
    publish(&server, to, ("foo", "1.0"), (&name, &bytes), &json!([built, published])).await;
    let source = sdist("foo", "1.0");
    let of_source = attestation(&sigstore, PROVENANCE, ("foo-1.0.tar.gz", &source));
    publish(&server, to, ("foo", "1.0"), ("foo-1.0.tar.gz", &source), &json!([of_source])).await;
    let (later, bytes) = (file_name("foo", "1.1"), wheel("foo", "1.1", ""));
    publish(&server, to, ("foo", "1.1"), (&later, &bytes), &json!([])).await;

    let shown = ended(&terminal.run(&["libraries", "provenance", "pkg:pypi/Foo@1.0.0"]).await, 0);
    let row = |file: &str, kind: &str| format!("{file}\t{kind}\t{WORKFLOW}\t{}\t{REPOSITORY}", SIGNER.issuer);
    let rows = [row(&name, PUBLISH), row(&name, PROVENANCE), row("foo-1.0.tar.gz", PROVENANCE)];
    assert_eq!(shown.lines().next(), Some("FILE\tSTATEMENT\tSIGNER\tISSUER\tSOURCE"));
    assert_eq!(shown.lines().count(), 4, "{shown}");
    for row in rows {
        assert!(shown.lines().any(|shown| shown == row), "{row}: {shown}");
    }
    let of_file = ["libraries", "provenance", "pkg:pypi/foo@1.0", "--group", &organization, "--file"];
    let listed = terminal.json(&[&of_file[..], &["foo-1.0.tar.gz"]].concat()).await;
    let wanted = json!({ "file": "foo-1.0.tar.gz", "statement": PROVENANCE, "signer": WORKFLOW, "issuer": SIGNER.issuer, "source": REPOSITORY });
    assert_eq!(listed, json!([wanted]));

    let bundle = ["libraries", "provenance", "pkg:pypi/foo@1.0", "--bundle"];
    let ambiguous = terminal.run(&bundle).await;
    assert_eq!(ended(&ambiguous, 2), "");
    let said = text(&ambiguous.stderr);
    assert!(
        said.contains("name one with --file: ") && said.contains(&name) && said.contains("foo-1.0.tar.gz"),
        "{said}"
    );
    let printed = ended(&terminal.run(&[&bundle[..], &["--file", &name]].concat()).await, 0);
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(printed["mediaType"], "application/vnd.dev.sigstore.bundle.v0.3+json");
    assert_eq!(Sigstore::attestation(&printed), built, "the provenance of the build");
    ended(&terminal.run(&[&bundle[..], &["--file", &name, "-o", "yaml"]].concat()).await, 2);

    for arguments in [
        &["libraries", "provenance", "pkg:pypi/foo@1.1"][..],
        &["libraries", "provenance", "pkg:pypi/foo@1.1", "--bundle"],
        &["libraries", "provenance", "pkg:pypi/foo@1.1", "--file", &later],
        &["libraries", "provenance", "pkg:pypi/foo@2.0"],
        &["libraries", "provenance", "pkg:pypi/absent@1.0"],
    ] {
        let absent = terminal.run(arguments).await;
        assert_eq!(ended(&absent, 6), "", "{arguments:?}");
        assert!(text(&absent.stderr).contains("uv publish"), "{arguments:?}: {}", text(&absent.stderr));
    }
    server.stop().await;
}

/// The document that publishes a version of npm, with the bundle of its provenance if there is one.
fn document(name: &str, version: &str, sigstore: Option<&Sigstore>) -> (Value, Value) {
    let bytes = npm::package(&npm::manifest(name, version));
    let mut document = npm::document(name, version, "latest", &bytes);
    let Some(sigstore) = sigstore else { return (document, Value::Null) };
    let purl = format!("pkg:npm/{}@{version}", name.replace('@', "%40"));
    let digest = Digest::of(Algorithm::Sha512, &bytes);
    let bundle = sigstore.bundle(&SIGNER, &statement(&purl, &[("sha512", digest.hex())], PROVENANCE));
    let data = bundle.to_string();
    document["_attachments"][format!("{name}-{version}.sigstore")] = json!({
        "content_type": "application/vnd.dev.sigstore.bundle.v0.3+json", "data": data, "length": data.len(),
    });
    (document, bundle)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_that_no_server_verified_have_no_signer() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, actor, terminal) = owner(&server).await;
    let sigstore = Sigstore::new();
    let (attested, bundle) = document("@acme/foo", "1.0.0", Some(&sigstore));
    let (plain, _) = document("@acme/foo", "1.1.0", None);
    for document in [attested, plain] {
        let what = format!("PUT javascript/~{organization}/@acme%2ffoo");
        send(&server, &actor, &what, "application/json", document.to_string().into_bytes()).await;
    }
    publish_signed(&server, &actor, &organization, "bar", "1.0").await;

    let of_npm = ["libraries", "provenance", "pkg:npm/%40acme/foo@1.0.0"];
    let shown = ended(&terminal.run(&of_npm).await, 0);
    assert_eq!(shown, format!("FILE\tSTATEMENT\tSIGNER\tISSUER\tSOURCE\nfoo-1.0.0.tgz\t{PROVENANCE}\tnot verified"));
    let wanted = json!({ "file": "foo-1.0.0.tgz", "statement": PROVENANCE, "signer": "not verified", "issuer": "", "source": "" });
    assert_eq!(terminal.json(&of_npm).await, json!([wanted]));
    let printed = ended(&terminal.run(&[&of_npm[..], &["--bundle", "--file", "foo-1.0.0.tgz"]].concat()).await, 0);
    assert_eq!(serde_json::from_str::<Value>(&printed).expect("JSON"), bundle);
    ended(&terminal.run(&[&of_npm[..], &["--file", "foo-1.1.0.tgz"]].concat()).await, 2);
    let of_python = terminal.json(&["libraries", "provenance", "pkg:pypi/bar@1.0"]).await;
    assert_eq!(of_python[0]["signer"], "not verified");

    let absent = terminal.run(&["libraries", "provenance", "pkg:npm/%40acme/foo@1.1.0"]).await;
    assert_eq!(ended(&absent, 6), "");
    let said = text(&absent.stderr);
    assert!(said.contains("has no attestations here") && said.contains("npm publish --provenance"), "{said}");
    for (purl, why) in [
        ("pkg:maven/org.example/foo@1.0", "as FILE.sigstore.json"),
        ("pkg:npm/foo", "has no version"),
        ("foo", "is no package URL"),
    ] {
        let refused = terminal.run(&["libraries", "provenance", purl]).await;
        ended(&refused, 2);
        assert!(text(&refused.stderr).contains(why), "{purl}: {}", text(&refused.stderr));
    }
    let other = server.organization("other").await;
    ended(&terminal.run(&[&of_npm[..], &["--group", &other]].concat()).await, 4);
    server.stop().await;
}
