//! Examples: every command has one in its help, and the last line of each runs against a server or its storage.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use bowline_testkit::{Engine, TestServer, packages, python};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::examples_table::By::{Machine, Operator, Person};
use crate::examples_table::{NOT_RUN, STEPS};
use crate::provenance::publish_signed;
use crate::reference::mismatch;
use crate::registry::{push, push_chart, push_with_sbom};
use crate::resources;
use crate::statements::{CURL, URLLIB};
use crate::support::{Terminal, ended, offer_provider, signed_in, text};

/// The command lines of the examples by command, as the page of all options has them.
pub(crate) async fn examples(terminal: &Terminal) -> BTreeMap<String, Vec<String>> {
    let page = terminal.command().args(["man", "--markdown"]).output().await.expect("the binary runs");
    let page = ended(&page, 0);
    let sections = page.split("\n## `bowline ").skip(1);
    let examples = sections.map(|section| {
        let (name, rest) = section.split_once('`').expect("a heading");
        let block = rest.split("```sh\n").nth(1).and_then(|block| block.split("\n```").next()).unwrap_or_default();
        (name.to_owned(), block.lines().map(String::from).collect())
    });
    examples.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_has_an_example_that_a_test_runs() {
    let terminal = Terminal { home: tempfile::tempdir().expect("a directory"), api: String::new() };
    let examples = examples(&terminal).await;
    assert!(examples.len() > 150, "hardly any command was read: {}", examples.len());
    let own_tests = ["audit watch".to_owned()];
    let generated = resources::STEPS.iter().map(|(path, _)| path.join(" "));
    let here = STEPS.iter().map(|(path, ..)| (*path).to_owned());
    let run: BTreeSet<String> =
        generated.chain(here).chain(own_tests).chain(NOT_RUN.iter().map(|(path, _)| (*path).to_owned())).collect();
    let missing: Vec<&String> = examples.iter().filter(|(_, lines)| lines.is_empty()).map(|(name, _)| name).collect();
    assert!(missing.is_empty(), "commands without an example: {missing:?}");
    let untested: Vec<&String> = examples.keys().filter(|name| !run.contains(*name)).collect();
    assert!(untested.is_empty(), "no test runs the examples of {untested:?}");
    let unknown: Vec<&String> = run.iter().filter(|name| !examples.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "no such commands: {unknown:?}");
}

/// The schemas of all commands that print documents, by command.
pub(crate) async fn schemas(terminal: &Terminal) -> BTreeMap<String, Value> {
    let directory = terminal.home.path().join("schemas");
    let mut command = terminal.command();
    ended(&command.arg("schema").arg("--out").arg(&directory).output().await.expect("the binary runs"), 0);
    let files = std::fs::read_dir(directory).expect("a directory").map(|file| file.expect("a file").path());
    let schemas = files.map(|file| {
        let schema: Value = serde_json::from_slice(&std::fs::read(file).expect("a file")).expect("JSON");
        let title = schema["title"].as_str().expect("a title");
        (title.trim_start_matches("bowline ").trim_end_matches(" -o json").to_owned(), schema)
    });
    schemas.collect()
}

/// Files that the examples name.
fn write_files(home: &Path, identity_token: &str) {
    let write = |name: &str, content: &str| {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
        std::fs::write(path, content).expect("a file is written");
    };
    let vulnerability = json!({ "id": "CVE-2026-7", "severity": "High" });
    let artifact = json!({
        "name": "a", "version": "1", "type": "python", "purl": "pkg:pypi/a@1", "locations": [{ "path": "/a" }],
    });
    let grype = json!({
        "matches": [{ "vulnerability": vulnerability, "artifact": artifact }],
        "source": { "type": "image", "target": { "userInput": "example.com/acme/nginx:1.0" } },
        "descriptor": { "name": "grype", "version": "0.80.0", "timestamp": "2026-01-02T03:04:05Z" },
    });
    let trivy = json!({
        "SchemaVersion": 2, "ArtifactName": "example.com/acme/nginx:1.0", "ArtifactType": "container_image",
        "Results": [{ "Target": "a", "Class": "lang-pkgs", "Type": "python-pkg", "Vulnerabilities": [{
            "VulnerabilityID": "CVE-2026-8", "PkgName": "a", "InstalledVersion": "1", "Severity": "HIGH",
        }] }],
    });
    write("grype.json", &grype.to_string());
    write("trivy.json", &trivy.to_string());
    write("advisories/curl.yaml", CURL);
    write("advisories/urllib3.yaml", URLLIB);
    let record =
        json!({ "id": "GHSA-2222-3333-4444", "aliases": ["CVE-2026-1000"], "modified": "2026-01-01T00:00:00Z" });
    let of_crate = json!({
        "id": "GHSA-5555-6666-7777", "modified": "2026-01-01T00:00:00Z", "affected": [{
            "package": { "ecosystem": concat!("crates", ".io"), "name": "time" },
            "ranges": [{ "type": "SEMVER", "events": [{ "introduced": "0" }, { "fixed": "0.2.23" }] }],
        }],
    });
    write("records.jsonl", &format!("{record}\n{of_crate}\n"));
    write("python.json", r#"[{ "cycle": "3.13", "eol": "2029-10-31", "latest": "3.13.1" }]"#);
    let pom = "<project><groupId>org.example</groupId><artifactId>lib</artifactId><version>1</version></project>";
    write("maven/org/example/lib/1/lib-1.pom", pom);
    write("maven/org/example/lib/1/lib-1.jar", "jar");
    write("README.md", "# Ours\n");
    write(
        "uv.lock",
        "[[package]]\nname = \"requests\"\nversion = \"2.32.0\"\nsource = { registry = \"https://pypi.org/simple\" }\n",
    );
    std::fs::create_dir_all(home.join("web")).expect("a directory is made");
    write("web/.npmrc", "registry=https://packages.example.com/javascript/\n");
    std::fs::create_dir_all(home.join("tool")).expect("a directory is made");
    write("tool/go.mod", "module acme.example/tool\n");
    write("tool/tool.go", "package tool\n");
    write("token.jwt", identity_token);
    let test = json!({ "purl": "pkg:npm/left-pad@1.3.0", "expected": "EXPECTED_DECISION_REFUSED" });
    write("tests.json", &json!([test]).to_string());
    std::fs::create_dir_all(home.join("tools")).expect("a directory is made");
    std::fs::create_dir_all(home.join("out")).expect("a directory is made");
}

/// The words of a command line: what the examples call by usual names is what this test has.
fn words(line: &str, names: &BTreeMap<&str, String>) -> Vec<String> {
    let line = line.strip_prefix("bowline ").unwrap_or(line);
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().expect("a word").push(c),
        }
    }
    let replaced = |word: String| names.iter().fold(word, |word, (name, value)| word.replace(name, value));
    words.into_iter().map(replaced).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one scenario, step by step")]
async fn every_example_of_a_handwritten_command_works() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("acme").await;
    let identity = server.identity(&organization, "build").await;
    server.bind(&identity, &server.role("owner"), &organization).await;
    server.group(&organization, "team").await;
    let (owner, operator, person) = (Terminal::new(&server), Terminal::new(&server), Terminal::new(&server));
    offer_provider(&server).await;
    ended(&signed_in(&server, &person, &["--provider", "main", "--no-browser"], "ada").await, 0);
    owner.sign_in_as(&server.actor("owner", &organization).await);
    operator.sign_in_as(&server.operator().await);
    let settings = &server.server().parts().settings;
    let token = server.idp().token("build", &settings.auth_url, Value::Null);
    for terminal in [&owner, &operator] {
        write_files(terminal.home.path(), &token);
    }
    let examples = examples(&owner).await;
    let schemas = schemas(&owner).await;
    let mut names = BTreeMap::from([
        ("$IDENTITY", identity),
        ("$ORG", organization.clone()),
        ("$RESOURCE", organization.clone()),
        ("registry.example.com", settings.registry_audience.clone()),
        ("https://api.example.com", settings.base_url.clone()),
        ("/var/lib/bowline", "data".to_owned()),
    ]);
    for (name, arguments) in [
        ("$PERSON", ["auth", "status", "-o", "jsonpath={.identity}"]),
        ("$SESSION", ["iam", "sessions", "list", "-ojsonpath={[0].id}"]),
    ] {
        names.insert(name, ended(&person.run(&arguments).await, 0));
    }
    push_chart(&server, &owner, &format!("{organization}/shop"), "1", "r.example/app:1").await;
    let mut wrong = Vec::new();
    for (path, by, fills) in STEPS {
        if *path == "registry tags list" {
            push(&server, &owner, &format!("{organization}/nginx"), "1.0", "example").await;
            let other = push(&server, &owner, &format!("{organization}/nginx"), "1.1", "other").await;
            names.insert("$OTHER", other);
        }
        if *path == "libraries provenance" {
            let actor = server.anonymous().with_token(&ended(&owner.run(&["auth", "token"]).await, 0));
            publish_signed(&server, &actor, &organization, "signed", "1.0").await;
        }
        if *path == "libraries python list" {
            let actor = server.anonymous().with_token(&ended(&owner.run(&["auth", "token"]).await, 0));
            let group = organization.replace('/', ":");
            python::publish(&server, &actor, &group, "example", "1.0").await;
            packages::publish_javascript(&server, &actor, &group, "example", "1.0.0").await;
            packages::publish_java(&server, &actor, &group, "org.example:library", "1.0").await;
            packages::publish_go(&server, &actor, &group, "example.com/tool", "v1.0.0").await;
            packages::publish_crate(&server, &actor, &group, "example", "1.0.0").await;
        }
        if *path == "registry sboms get" {
            names.insert("$DIGEST", push_with_sbom(&server, &owner, &format!("{organization}/nginx"), "2.0").await);
        }
        if *path == "registry image-policy end-exception" {
            let get = ["registry", "image-policy", "get", "acme", "-o", "jsonpath={.exceptions[0].id}"];
            names.insert("$EXCEPTION", ended(&owner.run(&get).await, 0));
        }
        if *path == "libraries policies delete" {
            ended(&owner.run(&["libraries", "cargo-policies", "set", "acme", "--mode", "log"]).await, 0);
        }
        if *path == "feeds abort" {
            let begin = ["api", "BeginImport", "-f", "source=ghsa", "-f", "licence=CC-BY-4.0"];
            ended(&operator.run(&begin).await, 0);
        }
        if *path == "advisories batch-review" {
            let review = json!({ "uid": names["$EVENT"], "status": "REQUEST_CHANGES" });
            let file = owner.home.path().join("reviews.json");
            std::fs::write(file, json!([review]).to_string()).expect("a file is written");
        }
        if *path == "registry deployments get" {
            let repo = ended(&owner.run(&["registry", "repos", "get", "acme/nginx", "-o", "jsonpath={.uid}"]).await, 0);
            let charts = r#"charts=[{"repo": "https://charts.example.com", "chart": "nginx"}]"#;
            let parent = format!("parent_id={repo}");
            ended(&owner.run(&["api", "CreateDeployment", "-f", &parent, "-f", charts]).await, 0);
        }
        let lines = examples.get(*path).unwrap_or_else(|| panic!("no command {path}"));
        let mut line = lines.last().unwrap_or_else(|| panic!("no example of {path}")).clone();
        if *path == "access requests answer" {
            request_access(&operator, &person).await;
            line = line.replace("acme", "example.com");
        }
        let terminal = match by {
            Operator => &operator,
            Person => &person,
            _ => &owner,
        };
        let mut command = terminal.command();
        command.current_dir(terminal.home.path()).args(words(&line, &names));
        // Exports would write the file of the source that the import has no directory for.
        if *by != Machine && !line.contains("--api ") && !path.starts_with("context") {
            command.args(["--api", &terminal.api]);
        }
        if *path == "libraries import" {
            let mut whole = terminal.command();
            let import = ["libraries", "import", "maven", "--ecosystem", "java", "--api", &terminal.api];
            ended(&whole.args(import).current_dir(terminal.home.path()).output().await.expect("the binary runs"), 0);
        }
        let is_json = ["auth pull-token create", "libraries entitlements create"].contains(path);
        let is_checked = (is_json || fills.is_empty()) && !line.contains(" -o ") && !line.contains("--jq");
        let schema = schemas.get(*path).filter(|_| is_checked);
        if schema.is_some() {
            command.args(["-o", "json"]);
        }
        let output = command.output().await.expect("the binary runs");
        if output.status.code() != Some(0) {
            wrong.push(format!("{line}: {}", text(&output.stderr)));
        } else if let Some(schema) = schema {
            let document = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let why = mismatch(schema, schema, &document, "$");
            wrong.extend(why.map(|why| format!("{line}: not as its schema says: {why}")));
        }
        if !fills.is_empty() {
            let printed = text(&output.stdout);
            let value = match *path {
                "auth pull-token create" => {
                    let made: Value = serde_json::from_str(&printed).unwrap_or_default();
                    made["identity_id"].as_str().or(made["username"].as_str()).unwrap_or_default().to_owned()
                }
                "libraries entitlements create" => {
                    let made: Value = serde_json::from_str(&printed).unwrap_or_default();
                    made[0]["id"].as_str().unwrap_or_default().to_owned()
                }
                _ => printed.split_whitespace().last().unwrap_or_default().to_owned(),
            };
            names.insert(Box::leak(format!("${fills}").into_boxed_str()), value);
        }
    }
    server.stop().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Has a person request access to the organization of their address's domain, which is named like it.
async fn request_access(operator: &Terminal, person: &Terminal) {
    let create =
        ["api", "iam.v2.GroupsService.CreateGroup", "-f", "group.name=example.com", "-f", "group.verified=true"];
    let kind = ["-f", "group.kind=ORG_KIND_CUSTOMER", "--jq", ".uid"];
    let group = ended(&operator.run(&[&create[..], &kind[..]].concat()).await, 0);
    let group = format!("group_uid={}", group.trim().trim_matches('"'));
    ended(&person.run(&["api", "iam.v2.GroupsService.RequestGroupAccess", "-f", &group]).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_a_watch_prints_changes_until_it_is_stopped() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("acme").await;
    let owner = Terminal::new(&server);
    owner.sign_in_as(&server.actor("owner", &organization).await);
    let examples = examples(&owner).await;
    let line = examples["audit watch"].last().expect("an example");
    let mut command = owner.command();
    command.args(words(line, &BTreeMap::new())).args(["--api", &owner.api, "-o", "json"]);
    let mut watch = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("the binary runs");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    let first = lines.next_line().await.expect("a line").expect("a change");
    let entry: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!((&entry["sequence"], &entry["resource"]), (&json!("1"), &json!(organization)));
    watch.kill().await.expect("it runs until it is stopped");
    server.stop().await;
}
