//! The comparison with the platform's command line: its rows name commands that exist, and no row is missing.

use std::collections::BTreeSet;
use std::path::Path;

use bowline_testkit::{Engine, TestServer};

use crate::support::{Terminal, ended};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/COMMAND-COMPARISON.md");
    std::fs::read_to_string(path).expect("the page")
}

/// The texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The rows of the tables: the cells of each.
fn rows(page: &str) -> Vec<Vec<String>> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_that_the_comparison_names_exists() {
    let home = tempfile::tempdir().expect("a directory");
    let terminal = Terminal { home, api: String::new() };
    let listed = terminal.command().args(["man", "--markdown"]).output().await.expect("the binary runs");
    let listed = ended(&listed, 0);
    let sections = listed.split("\n## `bowline ").skip(1);
    let known: BTreeSet<&str> = sections.filter_map(|section| section.split('`').next()).collect();
    let exists = |command: &str| known.contains(command);
    let has_commands = |group: &str| known.iter().any(|command| command.starts_with(&format!("{group} ")));
    let (mut wrong, mut theirs) = (Vec::new(), BTreeSet::new());
    for row in rows(&page()) {
        match row.as_slice() {
            [name, here, verdict] => {
                let is_left_out = verdict.starts_with("left out: ");
                let has_verdict = is_left_out || verdict.starts_with("has") || verdict.starts_with("differs: ");
                if !has_verdict || is_left_out != here.is_empty() || !theirs.insert(name.clone()) {
                    wrong.push(format!("{name}: must be there once, and have, differ or be left out, with a reason"));
                }
                let missing = quoted(here).filter(|command| !exists(command) && !command.starts_with("api "));
                wrong.extend(missing.map(|command| format!("{name}: there is no command {command:?}")));
            }
            [here, _] => {
                let missing = quoted(here).filter(|name| !exists(name) && !has_commands(name));
                wrong.extend(missing.map(|name| format!("only here: there is no command {name:?}")));
            }
            other => wrong.push(format!("not a row of the tables: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let summary = page();
    assert!(summary.contains(&format!("all {} commands", theirs.len())), "the page counts other than {}", theirs.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_method_that_the_comparison_names_can_be_called() {
    let server = TestServer::start(Engine::Sqlite).await;
    let terminal = Terminal::new(&server);
    let ours = rows(&page()).into_iter().filter_map(|row| row.get(1).cloned());
    let of = |cell: String| quoted(&cell).filter_map(|text| text.strip_prefix("api ")).map(String::from).collect();
    let methods: Vec<String> = ours.flat_map::<Vec<String>, _>(of).collect();
    for method in &methods {
        ended(&terminal.run(&["api", "--describe", method]).await, 0);
    }
    assert!(!methods.is_empty());
    server.stop().await;
}
