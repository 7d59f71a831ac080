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
