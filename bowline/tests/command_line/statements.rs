//! Statements about vulnerabilities: files into a group, and a group into files.

use std::collections::BTreeMap;
use std::path::Path;

use bowline_testkit::{Actor, Engine, TestServer};
use serde_json::{Value, json};

use crate::support::{Terminal, ended, text};

pub(crate) const CURL: &str = "\
schema: bowline.advisories/v1
artifact:
  type: apk
  name: curl
advisories:
  - id: BWL-2222-2222-2222
    aliases: [CVE-2026-1000]
    events:
      - time: 2026-01-02T03:04:05Z
        type: detection/manual
      - time: 2026-01-03T00:00:00Z
        type: fixed
        data:
          version: 8.5.0-r1
  - id: BWL-2222-2222-3333
    aliases: [CVE-2026-1001, GHSA-2222-3333-4444]
    component:
      type: go-module
      name: golang.org/x/net
      location: usr/bin/curl
    events:
      - time: 2026-01-04T00:00:00Z
        type: false-positive
        data:
          reason: vulnerable-code-not-in-execution-path
          note: \"Nothing calls it: see the build.\"
  - aliases: []
";

pub(crate) const URLLIB: &str = "\
schema: bowline.advisories/v1
artifact:
  type: library
  name: urllib3
advisories:
  - id: BWL-2222-2222-4444
    aliases: [CVE-2026-1002]
    component: {type: python, name: urllib3}
    events:
      - time: 2026-02-01T00:00:00Z
        type: true-positive
        data: {note: Upgrade.}
";

/// An organization whose owner sits at the terminal.
async fn organization(server: &TestServer, name: &str) -> (String, Terminal, Actor) {
    let organization = server.organization(name).await;
    let terminal = Terminal::new(server);
    let owner = server.actor("owner", &organization).await;
    terminal.sign_in_as(&owner);
    (organization, terminal, owner)
}

/// Writes files below the terminal's home.
fn given(terminal: &Terminal, files: &[(&str, &str)]) -> String {
    let directory = terminal.home.path().join("given");
    for (name, content) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
        std::fs::write(path, content).expect("a file is written");
    }
    directory.to_string_lossy().into_owned()
}

/// Every file below a directory.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("below it").to_string_lossy().into_owned();
                found.insert(name, std::fs::read(path).expect("a file"));
            }
        }
    }
    found
}

/// Exports into a new directory: its files, and what was said.
async fn export(terminal: &Terminal, format: &str, group: &str, more: &[&str]) -> (BTreeMap<String, Vec<u8>>, String) {
    let count = std::fs::read_dir(terminal.home.path()).expect("the home").count();
    let out = terminal.home.path().join(format!("out-{format}-{count}"));
    let out_text = out.to_string_lossy().into_owned();
    let usual = ["--publisher", "Acme", "--namespace", "https://example.com/vex", "--distribution", "wolfi"];
    let arguments = [&["feeds", "export", format, "--group", group, "-o", &out_text], &usual[..], more].concat();
    let output = terminal.run(&arguments).await;
    ended(&output, 0);
    (files(&out), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one scenario, step by step")]
async fn statements_come_in_and_go_out_in_every_format_as_the_same_bytes() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, terminal, _) = organization(&server, "acme").await;
    let directory = given(&terminal, &[("apk/curl.yaml", CURL), ("library/urllib3.yaml", URLLIB)]);
    let import = ["feeds", "import", "yaml", &directory, "--group", "acme", "--approved"];
    let dry = ended(&terminal.run(&[&import[..], &["--dry-run"]].concat()).await, 0);
    assert!(dry.starts_with("OUTCOME\tADVISORY\t") && dry.matches("created\t").count() == 3, "{dry}");
    let first = terminal.run(&import).await;
    assert_eq!(ended(&first, 0).lines().nth(1), Some("3\t0\t0\t0\t1\t0\t4"));
    assert!(text(&first.stderr).contains("advisories[2]: has neither id nor aliases"), "{}", text(&first.stderr));
    let again = terminal.run(&import).await;
    assert_eq!(ended(&again, 0).lines().nth(1), Some("0\t0\t3\t0\t1\t0\t0"));
    ended(&terminal.run(&[&import[..], &["--strict"]].concat()).await, 1);

    for (format, expected) in [
        ("yaml", &["apk/curl.yaml", "library/urllib3.yaml"][..]),
        (
            "openvex",
            &[
                ".well-known/vex-repository.json",
                "all.json",
                "apk/curl.openvex.json",
                "index.json",
                "library/urllib3.openvex.json",
                "vex-repository.zip",
            ],
        ),
        ("cyclonedx", &["apk/curl.cdx.json", "library/urllib3.cdx.json"]),
        (
            "csaf",
            &[
                "2026/vex-apk-curl.json",
                "2026/vex-apk-curl.json.sha256",
                "2026/vex-apk-curl.json.sha512",
                "2026/vex-library-urllib3.json",
                "2026/vex-library-urllib3.json.sha256",
                "2026/vex-library-urllib3.json.sha512",
                "changes.csv",
                "index.txt",
                "provider-metadata.json",
            ],
        ),
        ("secdb", &["security.json"]),
        ("osv", &["PyPI/BWL-2222-2222-4444.json", "PyPI/all.zip", "PyPI/modified_id.csv", "ecosystems.txt"]),
    ] {
        let (written, _) = export(&terminal, format, "acme", &[]).await;
        assert_eq!(written.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{format}");
        assert_eq!(export(&terminal, format, "acme", &[]).await.0, written, "{format}: the same bytes each time");
        if format == "osv" {
            continue;
        }
        // Another organization gets what the export says, and says the same.
        let (_, other, _) = organization(&server, &format!("other-{format}")).await;
        let copies: Vec<(&str, &str)> = written
            .iter()
            .filter(|(name, _)| name.ends_with("json") || name.ends_with("yaml"))
            .map(|(name, bytes)| (name.as_str(), std::str::from_utf8(bytes).expect("UTF-8")))
            .collect();
        let directory = given(&other, &copies);
        let group = format!("other-{format}");
        let import = ["feeds", "import", format, &directory, "--group", &group, "--approved", "--source", "acme"];
        ended(&other.run(&[&import[..], &["--strict"]].concat()).await, 0);
        let (copy, _) = export(&other, format, &group, &[]).await;
        if format == "yaml" {
            assert_eq!(copy.len(), written.len());
            continue;
        }
        for (name, bytes) in &written {
            let same = copy.get(name).map(|bytes| String::from_utf8_lossy(bytes));
            assert_eq!(same, Some(String::from_utf8_lossy(bytes)), "{format}: {name}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn findings_of_scanners_wait_for_a_review_and_do_not_leave() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal, owner) = organization(&server, "acme").await;
    let found = json!({
        "vulnerability": { "id": "CVE-2026-7" },
        "artifact": { "name": "a", "version": "1", "type": "python", "purl": "pkg:pypi/a@1", "locations": [{ "path": "/a" }] }
    });
    let report = json!({
        "matches": [found, 1], "source": { "type": "image", "target": { "userInput": "example.com/acme/nginx:1.2" } },
        "descriptor": { "version": "0.80.0", "timestamp": "2026-01-02T03:04:05Z" }
    });
    let directory = given(&terminal, &[("grype.json", &report.to_string())]);
    let file = format!("{directory}/grype.json");
    let told = terminal.home.path().join("told.json").to_string_lossy().into_owned();
    let import = ["feeds", "import", "grype", &file, "--group", &organization, "--report", &told];
    assert_eq!(ended(&terminal.run(&import).await, 0).lines().nth(1), Some("1\t0\t0\t0\t1\t0\t1"));
    let told: Value = serde_json::from_slice(&std::fs::read(&told).expect("a report")).expect("JSON");
    assert_eq!((&told["created"], &told["problems"][0]["position"]), (&json!(1), &json!("matches[1]")), "{told}");
    assert_eq!(ended(&terminal.run(&import).await, 0).lines().nth(1), Some("0\t0\t1\t0\t1\t0\t0"));
    let listed = owner.rest("GET", "/vulnerabilities/v1/advisories", None).await.json();
    assert_eq!(listed["items"][0]["events"][0]["status"], json!("PENDING"));
    assert_eq!(listed["items"][0]["artifactName"], json!("example.com/acme/nginx"));
    for format in ["secdb", "openvex", "csaf", "cyclonedx", "osv", "yaml"] {
        let (written, _) = export(&terminal, format, "acme", &[]).await;
        let all: Vec<u8> = written.into_values().flatten().collect();
        let all = String::from_utf8_lossy(&all);
        assert!(!all.contains("CVE-2026-7") && !all.contains("nginx"), "{format}: {all}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_handed_on_is_left_out_and_said() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, terminal, _) = organization(&server, "acme").await;
    let database = "packages:\n- pkg:\n    name: curl\n    secfixes:\n      8.5.0-r1: [CVE-2026-1 GHSA-2222-2222-2222]\n      '0':\n      - CVE-2026-2\n";
    let directory = given(&terminal, &[("main.yaml", database), ("broken.json", "{")]);
    let import = ["feeds", "import", "secdb", &directory, "--group", "acme", "--approved"];
    let licence = ["--licence", "CC BY-NC-ND 4.0", "--source", "somebody"];
    assert_eq!(
        ended(&terminal.run(&[&import[..], &licence].concat()).await, 0).lines().nth(1),
        Some("2\t0\t0\t0\t1\t0\t2")
    );
    let (written, said) = export(&terminal, "secdb", "acme", &[]).await;
    assert!(said.contains("2 statements were left out") && said.contains("--include-restricted"), "{said}");
    let database: Value = serde_json::from_slice(&written["security.json"]).expect("JSON");
    assert_eq!(database["packages"], json!([]));
    let (written, _) = export(&terminal, "secdb", "acme", &["--include-restricted"]).await;
    let database: Value = serde_json::from_slice(&written["security.json"]).expect("JSON");
    let fixes = &database["packages"][0]["pkg"]["secfixes"];
    // Before the known ids stands the one that the server made.
    for (version, known) in [("0", " CVE-2026-2"), ("8.5.0-r1", " CVE-2026-1 GHSA-2222-2222-2222")] {
        let ids = fixes[version][0].as_str().expect("ids");
        assert!(ids.starts_with("BWL-") && ids.ends_with(known) && ids.len() == 18 + known.len(), "{ids}");
    }

    let single = format!("{directory}/broken.json");
    ended(&terminal.run(&["feeds", "import", "secdb", &single, "--group", "acme"]).await, 1);
    ended(&terminal.run(&["feeds", "export", "secdb", "--group", "acme", "-o", &directory]).await, 2);
    ended(&terminal.run(&["feeds", "import", "secdb", &directory, "--group", "nobody"]).await, 6);
    server.stop().await;
}
