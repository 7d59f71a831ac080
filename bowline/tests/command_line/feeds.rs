//! Records brought from files: what is new, what is removed, and what stays because it cannot be read.

use bowline_testkit::{Engine, TestServer};

use crate::support::{Terminal, ended, text};

fn record(id: &str) -> String {
    format!(r#"{{"id":"{id}","modified":"2026-01-01T00:00:00Z"}}"#)
}

/// Which of the two records the server knows.
async fn known(operator: &Terminal) -> Vec<String> {
    let output = operator.run(&["vulns", "get", "A-1", "A-2"]).await;
    let table = text(&output.stdout);
    let is_whole = table.lines().count() == 3;
    ended(&output, if is_whole { 0 } else { 6 });
    assert!(is_whole || text(&output.stderr).contains("no record here is about A-2"), "{}", text(&output.stderr));
    let ids = table.lines().skip(1).filter_map(|line| line.split('\t').next());
    ids.map(String::from).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_cannot_be_read_is_not_removed() {
    let server = TestServer::start(Engine::Sqlite).await;
    let operator = Terminal::new(&server);
    operator.sign_in_as(&server.operator().await);
    let path = operator.home.path().join("all.jsonl");
    let file = path.to_str().expect("UTF-8").to_owned();
    let import = ["feeds", "import", "osv", &file, "--full", "--source", "test", "--licence", "CC0-1.0"];
    let write = |lines: &[&str]| std::fs::write(&path, lines.join("\n")).expect("a file is written");
    let (first, second) = (record("A-1"), record("A-2"));
    write(&[&first, &second]);
    ended(&operator.run(&import).await, 0);

    // The id of this record cannot be read.
    write(&[&first, "{"]);
    let uncertain = operator.run(&import).await;
    ended(&uncertain, 1);
    let said = text(&uncertain.stderr);
    assert!(said.contains("left out: all.jsonl:2: ") && said.contains("not removed: 1 records"), "{said}");
    assert_eq!(known(&operator).await, ["A-1", "A-2"]);

    // This one says so.
    write(&[&first, r#"{"id":"A-2"}"#]);
    ended(&operator.run(&import).await, 1);
    assert_eq!(known(&operator).await, ["A-1", "A-2"]);

    write(&[&first]);
    ended(&operator.run(&import).await, 0);
    assert_eq!(known(&operator).await, ["A-1"]);
    server.stop().await;
}

fn of_crate(id: &str, name: &str, fixed: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","modified":"2026-01-01T00:00:00Z","affected":[{{"package":{{"ecosystem":"{}","name":"{name}"}},"ranges":[{{"type":"SEMVER","events":[{{"introduced":"0"}},{{"fixed":"{fixed}"}}]}}]}}]{more}}}"#,
        concat!("crates", ".io")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_about_crates_are_exported_without_a_sign_in() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (operator, anyone) = (Terminal::new(&server), Terminal::new(&server));
    operator.sign_in_as(&server.operator().await);
    let import = async |source: &str, lines: &[String]| {
        let path = operator.home.path().join(format!("{source}.jsonl"));
        std::fs::write(&path, lines.join("\n")).expect("a file is written");
        let file = path.to_str().expect("UTF-8");
        let output =
            operator.run(&["feeds", "import", "osv", file, "--source", source, "--licence", "CC-BY-4.0"]).await;
        ended(&output, 0);
    };
    let directory = anyone.home.path().join("db");
    let out = directory.to_str().expect("UTF-8").to_owned();
    let export = ["feeds", "export", "rustsec", "-o", &out, "--replace"];
    let none = anyone.run(&export).await;
    ended(&none, 6);
    assert!(!directory.exists() && text(&none.stderr).contains("feeds import osv"), "{}", text(&none.stderr));

    let many: Vec<String> =
        (0..450).map(|i| of_crate(&format!("M-{i}"), &format!("many-{}", i % 7), "1.0.0", "")).collect();
    import("many", &many).await;
    let withdrawn = of_crate("W-1", "gone", "1.0.0", r#","withdrawn":"2026-01-01T00:00:00Z""#);
    import(
        "first",
        &[of_crate("GHSA-1", "Time", "0.2.23", ""), of_crate("X-1", "bytes", "soon", ""), withdrawn, record("A-1")],
    )
    .await;
    // The newest record of an id is the one that counts, also where it is about another crate.
    let newer = of_crate("GHSA-1", "Time", "0.3.0", "").replace("2026-01-01", "2026-02-01");
    import("second", &[newer]).await;
    let written = anyone.run(&export).await;
    ended(&written, 1);
    let errors = text(&written.stderr);
    assert!(errors.contains("skipped X-1 (bytes): \"soon\" is no semantic version"), "{errors}");
    assert_eq!(text(&written.stdout).lines().last(), Some("451\t1"));
    let read = |path: &str| std::fs::read_to_string(directory.join(path)).expect("a file of the export");
    let advisory = read("crates/Time/GHSA-1.md");
    assert!(
        advisory.contains("patched = [\">= 0.3.0\"]") && advisory.contains("license = \"CC-BY-4.0\""),
        "{advisory}"
    );
    assert_eq!(read("sources.txt"), "source\tlicence\trecords\nmany\tCC-BY-4.0\t450\nsecond\tCC-BY-4.0\t1\n");
    assert!(!directory.join("crates/gone").exists());

    import("first", &[of_crate("X-1", "bytes", "2.0.0", "")]).await;
    ended(&anyone.run(&export).await, 0);
    assert!(read("crates/bytes/X-1.md").contains("patched = [\">= 2.0.0\"]"));
    let refused = anyone.run(&export[..5]).await;
    ended(&refused, 2);
    std::fs::write(directory.join("mine"), "").expect("a file is written");
    ended(&anyone.run(&export).await, 2);
    assert!(directory.join("mine").exists() && directory.join("crates/Time").exists());
    server.stop().await;
}
