//! Libraries: the catalogue filled from a directory, and what organizations say of it.

use std::path::Path;

use bowline_testkit::{Engine, TestServer, npm, packages};
use serde_json::json;

use crate::support::{Terminal, ended, text};

/// An operator and an owner of the organization `acme`, each with a terminal.
async fn people(server: &TestServer) -> (Terminal, Terminal) {
    let organization = server.organization("acme").await;
    let (operator, owner) = (Terminal::new(server), Terminal::new(server));
    operator.sign_in_as(&server.operator().await);
    owner.sign_in_as(&server.actor("owner", &organization).await);
    (operator, owner)
}

/// A version in a Maven repository.
fn artifact(repository: &Path, artifact: &str, version: &str) {
    let directory = repository.join(format!("org/example/{artifact}/{version}"));
    std::fs::create_dir_all(&directory).expect("a directory is made");
    let pom = format!(
        "<project><groupId>org.example</groupId><artifactId>{artifact}</artifactId><version>{version}</version>\
         <description>about {artifact}</description></project>"
    );
    std::fs::write(directory.join(format!("{artifact}-{version}.pom")), pom).expect("a file is written");
    std::fs::write(directory.join(format!("{artifact}-{version}.jar")), "jar").expect("a file is written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_is_imported_once_and_skipped_files_are_listed() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (operator, owner) = people(&server).await;
    let repository = tempfile::tempdir().expect("a scratch directory is made");
    for version in ["1.9", "1.10", "2.0-SNAPSHOT"] {
        artifact(repository.path(), "lib", version);
    }
    artifact(repository.path(), "other", "1");
    let directory = repository.path().to_str().expect("UTF-8").to_owned();
    let import = ["libraries", "import", &directory, "--ecosystem", "java"];
    let numbers = |created: &str, unchanged: &str| json!([{ "created": created, "updated": "0", "unchanged": unchanged, "files": "8", "skipped": "0", "other_files": "4" }]);
    assert_eq!(operator.json(&[&import[..], &["--dry-run"]].concat()).await, numbers("4", "0"));
    assert_eq!(operator.json(&["libraries", "artifacts"]).await, json!([]), "a dry run changes nothing");
    assert_eq!(operator.json(&import).await, numbers("4", "0"));
    assert_eq!(operator.json(&import).await, numbers("0", "4"));

    // An operator at a terminal where no one has signed in.
    let (stranger, token) = (Terminal::new(&server), server.operator().await.token.expect("a token"));
    let file = stranger.home.path().join("operator.token");
    std::fs::write(&file, format!("{token}\n")).expect("a file is written");
    let named = [&import[..], &["--token-file", file.to_str().expect("UTF-8")]].concat();
    ended(&stranger.run(&import).await, 3);
    assert_eq!(stranger.json(&named).await, numbers("0", "4"));

    let refused = owner.run(&import).await;
    ended(&refused, 4);
    assert!(text(&refused.stderr).contains("ermission denied"), "{}", text(&refused.stderr));
    let listed = ended(&owner.run(&["libraries", "artifacts", "LIB", "--ecosystem", "java"]).await, 0);
    let row = "java:org.example:lib\tjava\torg.example:lib\t1.10\t3\tabout lib";
    assert_eq!(listed, format!("ID\tECOSYSTEM\tNAME\tLATEST\tVERSIONS\tDESCRIPTION\n{row}"));
    let versions = ended(&owner.run(&["libraries", "versions", "java:org.example:lib"]).await, 0);
    let order: Vec<&str> = versions.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(order, ["2.0-SNAPSHOT", "1.10", "1.9"]);

    std::fs::write(repository.path().join("org/example/lib/1.9/lib-1.9.pom"), "<project>").expect("a file is written");
    let skipped = operator.run(&import).await;
    let said = text(&skipped.stderr);
    ended(&skipped, 1);
    assert!(said.contains("skipped: org/example/lib/1.9/lib-1.9.pom: is no POM"), "{said}");
    ended(&operator.run(&["libraries", "import", "/nowhere/at/all", "--ecosystem", "java"]).await, 2);

    // What the server refuses keeps nothing else out.
    artifact(repository.path(), "im!possible", "1");
    artifact(repository.path(), "new", "1");
    let refused = operator.run(&import).await;
    let said = text(&refused.stderr);
    ended(&refused, 1);
    assert!(said.contains("skipped: org.example:im!possible 1: "), "{said}");
    let versions = ended(&owner.run(&["libraries", "versions", "java:org.example:new"]).await, 0);
    assert_eq!(versions.lines().count(), 2, "{versions}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entitlements_policies_and_bindings() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, owner) = people(&server).await;
    let entitle =
        ["libraries", "entitlements", "create", "acme", "--ecosystem", "python", "--upstream", "--cooldown-days", "3"];
    ended(&owner.run(&entitle).await, 0);
    let entitlements = owner.json(&["libraries", "entitlements", "list", "acme"]).await;
    assert_eq!((&entitlements[0]["ecosystem"], &entitlements[0]["cooldownDays"]), (&json!("PYTHON"), &json!(3)));

    let says = [
        "--block",
        "pkg:npm/left-pad,pkg:pypi/Evil_Thing",
        "--block-licenses",
        "AGPL-3.0-only",
        "--cooldown-days",
        "14",
    ];
    let create = [&["libraries", "policies", "create", "acme", "--name", "strict"][..], &says].concat();
    let policy = ended(&owner.run(&create).await, 0);
    let allow = [
        "--allow-young",
        "pkg:npm/@ours/",
        "--allow-malware",
        "pkg:npm/test-virus",
        "--because",
        "a test",
        "--block",
        "",
    ];
    let shown = ended(&owner.run(&[&["libraries", "policies", "update", &policy][..], &allow].concat()).await, 0);
    for line in [
        "cooldown days\t14",
        "allow\tpkg:npm/%40ours/ (young)",
        "allow\tpkg:npm/test-virus (reported) a test",
        "block license\tAGPL-3.0-only",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    assert!(!shown.contains("evil"), "{shown}");
    let unjustified = ["libraries", "policies", "update", &policy, "--allow-malware", "pkg:npm/x"];
    ended(&owner.run(&unjustified).await, 2);
    ended(&owner.run(&["libraries", "policies", "update", &policy, "--cooldown-days", "31"]).await, 1);
    assert_eq!(owner.json(&["libraries", "policies", "list", "acme"]).await.as_array().map(Vec::len), Some(1));

    let bind = ["libraries", "bindings", "create", "acme", "--policy", &policy, "--ecosystem", "npm", "--mode", "log"];
    let binding = ended(&owner.run(&bind).await, 0);
    ended(&owner.run(&bind).await, 1);
    let listed = ended(&owner.run(&["libraries", "bindings", "list", "acme"]).await, 0);
    assert!(listed.contains(&format!("{binding}\tjavascript\tlog\t{policy}\t")), "{listed}");
    let bound = owner.run(&["libraries", "policies", "delete", &policy, "--yes"]).await;
    ended(&bound, 1);
    assert!(text(&bound.stderr).contains(&binding), "{}", text(&bound.stderr));
    ended(&owner.run(&["libraries", "bindings", "delete", &binding, "--yes"]).await, 0);
    ended(&owner.run(&["libraries", "policies", "delete", &policy, "--yes"]).await, 0);
    assert_eq!(owner.json(&["libraries", "blocked", "acme"]).await, json!([]));
    let id = entitlements[0]["id"].as_str().expect("an id");
    ended(&owner.run(&["libraries", "entitlements", "delete", id, "--yes"]).await, 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malware_and_the_memory_of_choices() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (operator, owner) = people(&server).await;
    let add = ["libraries", "malware", "add", "--id", "MAL-1", "--ecosystem", "npm", "--package", "left-evil"];
    ended(&owner.run(&add).await, 4);
    for _ in 0..2 {
        ended(&operator.run(&add).await, 0);
    }
    let listed = ended(&owner.run(&["libraries", "malware", "list", "evil"]).await, 0);
    assert!(listed.contains("npm\tleft-evil\t*\tMAL-1\toperator\t"), "{listed}");
    ended(&operator.run(&["libraries", "malware", "remove", "MAL-1"]).await, 0);
    assert_eq!(owner.json(&["libraries", "malware", "list"]).await, json!([]));

    let zapped = owner.json(&["libraries", "cache", "zap", "acme", "--ecosystem", "python"]).await;
    assert_eq!(zapped["results"][0]["generation"], "2");
    let dry = owner.json(&["libraries", "cache", "zap", "acme", "--dry-run"]).await;
    assert_eq!((&dry["dryRun"], dry["results"].as_array().map(Vec::len)), (&json!(true), Some(4)));
    ended(&owner.run(&["libraries", "cache", "opt-out", "acme", "--ecosystem", "java"]).await, 0);
    let status = ended(&owner.run(&["libraries", "cache", "status", "acme"]).await, 0);
    assert!(status.contains("java\t1\t0\ttrue\t") && status.contains("python\t2\t1\tfalse\t"), "{status}");
    assert_eq!(owner.json(&["libraries", "cache", "list", "acme"]).await, json!([]));
    ended(&owner.run(&["libraries", "cache", "zap", "acme", "--version", "1"]).await, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_a_version_is_refused() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (operator, owner) = people(&server).await;
    let why = ["libraries", "why", "pkg:pypi/evil@1.0"];
    let shown = ended(&owner.run(&why).await, 0);
    assert_eq!(shown, "FIELD\tVALUE\npackage\tpkg:pypi/evil@1.0\nallowed\tyes\nknown\tno");
    let create = ["libraries", "policies", "create", "acme", "--name", "strict", "--block", "pkg:pypi/evil"];
    let policy = ended(&owner.run(&create).await, 0);
    let bind = ["libraries", "bindings", "create", "acme", "--policy", &policy, "--ecosystem", "python"];
    ended(&owner.run(&bind).await, 0);
    let shown = ended(&owner.run(&why).await, 0);
    for line in ["allowed\tno", "reason\tBLOCK_LIST", "because of\tpkg:pypi/evil", "policy\tstrict"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let named = owner.json(&[&why[..], &["--organization", "acme"]].concat()).await;
    assert_eq!((&named["decision"]["reason"], &named["policy"]), (&json!("BLOCK_LIST"), &json!(policy)), "{named}");

    // A lock file is checked by the same policy.
    let directory = tempfile::tempdir().expect("a scratch directory is made");
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file is written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let bad = write("requirements.txt", "Evil==1.0\ngood==2.0\n-e ./here\n");
    let refused = owner.run(&["libraries", "check", &bad]).await;
    let shown = ended(&refused, 1);
    assert_eq!(
        shown,
        "PACKAGE\tREASON\tBECAUSE OF\tALLOWED FROM\tFIXED IN\npkg:pypi/evil@1.0\tBLOCK_LIST\tpkg:pypi/evil"
    );
    let said = text(&refused.stderr);
    for part in [
        "not checked: -e ./here",
        "so its age is not checked: pkg:pypi/good@2.0",
        "by the policy strict: 2 versions",
        "policy in force refuses: 1",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let good = write("poetry.lock", "[[package]]\nname = \"good\"\nversion = \"2.0\"\n");
    assert_eq!(owner.json(&["libraries", "check", &good]).await, json!([]));
    let other = write("package-lock.json", r#"{"packages":{"node_modules/x":{"version":"1.0.0"}}}"#);
    let unbound = owner.run(&["libraries", "check", &other]).await;
    ended(&unbound, 0);
    assert!(text(&unbound.stderr).contains("no policy is in force"), "{}", text(&unbound.stderr));
    ended(&owner.run(&["libraries", "check", &write("Cargo.lock", "")]).await, 2);

    server.organization("other").await;
    let several = operator.run(&why).await;
    ended(&several, 2);
    let said = text(&several.stderr);
    assert!(
        said.contains("name one with --organization: ") && said.contains("acme") && said.contains("other"),
        "{said}"
    );
    ended(&owner.run(&["libraries", "why", "left-pad"]).await, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_shows_what_a_version_requires() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, owner) = people(&server).await;
    let actor = server.anonymous().with_token(&ended(&owner.run(&["auth", "token"]).await, 0));
    let organization = owner.json(&["iam", "groups", "get", "acme"]).await["uid"].as_str().expect("a UIDP").to_owned();
    let mut app = npm::manifest("app", "1.0.0");
    app["dependencies"] = json!({ "lib": "^1.0.0", "free": "1.x" });
    packages::publish_manifest(&server, &actor, &organization, &app).await;
    packages::publish_javascript(&server, &actor, &organization, "lib", "1.0.0").await;
    packages::publish_javascript(&server, &actor, &organization, "free", "1.0.0").await;
    let why = ["libraries", "why", "pkg:npm/app@1.0.0", "--deps"];
    let shown = owner.run(&why).await;
    assert!(!ended(&shown, 0).contains("PACKAGE\t"));
    assert!(text(&shown.stderr).contains("2 requirements of 2 packages: 0 held, 0 older, 0 unknown"));

    let create = ["libraries", "policies", "create", "acme", "--name", "strict", "--block", "pkg:npm/lib@1.0.0"];
    let policy = ended(&owner.run(&create).await, 0);
    let bind = ["libraries", "bindings", "create", "acme", "--policy", &policy, "--ecosystem", "javascript"];
    ended(&owner.run(&bind).await, 0);
    let refused = owner.run(&why).await;
    let shown = ended(&refused, 1);
    let held = "pkg:npm/lib\t^1.0.0\tpkg:npm/app@1.0.0\theld\t1.0.0\tBLOCK_LIST";
    assert!(shown.contains("\n\nPACKAGE\tREQUIREMENT\t") && shown.contains(held), "{shown}");
    assert!(!shown.contains("pkg:npm/free") && text(&refused.stderr).contains("policy in force withholds: 1"));
    let all = ended(&owner.run(&[&why[..], &["--all", "-o", "csv"]].concat()).await, 1);
    assert!(all.starts_with("package,requirement,required by,state,") && all.contains("pkg:npm/free,1.x"), "{all}");
    let document = owner.run(&[&why[..], &["-o", "json"]].concat()).await;
    let document: serde_json::Value = serde_json::from_slice(&document.stdout).expect("JSON");
    let states = document["dependencies"]["dependencies"].as_array().map(Vec::len);
    assert_eq!((&document["explanation"]["purl"], states), (&json!("pkg:npm/app@1.0.0"), Some(2)), "{document}");

    let absent = owner.run(&["libraries", "why", "pkg:npm/absent@1.0.0", "--deps"]).await;
    assert!(ended(&absent, 6).contains("package\tpkg:npm/absent@1.0.0"));
    assert!(text(&absent.stderr).contains("is not stored here"), "{}", text(&absent.stderr));
    ended(&owner.run(&["libraries", "why", "pkg:npm/app@1.0.0", "--all"]).await, 2);
    server.stop().await;
}
