//! What `serve` prints when it is up.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

const SERVE: &str = "serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --log off";

/// The lines that a command prints up to the last of the greeting, in a directory of its own: a server in a terminal may
/// live on for a moment after its terminal.
async fn greeting(mut command: Command) -> String {
    let home = tempfile::tempdir().expect("a directory");
    command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(home.path()).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = command.spawn().expect("the command runs");
    let mut lines = BufReader::new(running.stdout.take().expect("a pipe")).lines();
    let mut printed = String::new();
    while !printed.contains("groups create") {
        printed += lines.next_line().await.expect("a line").expect("the server starts").trim_end();
        printed.push('\n');
    }
    running.kill().await.expect("the server ends");
    printed
}

/// A server whose output is a pipe.
fn piped(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.args(arguments.split(' '));
    command
}

/// A server in a terminal.
fn in_terminal(arguments: &str) -> Command {
    let mut command = Command::new("script");
    command.args(["-qefc", &format!("{} {arguments}", env!("CARGO_BIN_EXE_bowline")), "/dev/null"]);
    command
}

#[tokio::test]
async fn a_server_says_where_everything_is_and_how_to_begin() {
    let printed = greeting(piped(SERVE)).await;
    for part in
        ["  API        http://127.0.0.1:", "  console    http://127.0.0.1:", "/console\n", "./bowline-data/bowline.db"]
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let command = "\n  bowline operator login-url --reason \"first look\" --data-dir ./bowline-data\n";
    assert!(printed.contains(command) && !printed.contains("code="), "a log is no place for a sign-in: {printed}");
    let printed = greeting(piped(&format!("{SERVE} --console false"))).await;
    assert!(!printed.contains("console") && !printed.contains("login-url"), "{printed}");
}

#[tokio::test]
async fn only_a_terminal_of_a_loopback_server_shows_a_sign_in_link() {
    let printed = greeting(in_terminal(SERVE)).await;
    assert!(printed.contains("/oauth/operator?code=") && !printed.contains("login-url"), "{printed}");
    let everywhere = SERVE.replacen("127.0.0.1:0", "0.0.0.0:0", 1) + " --base-url http://127.0.0.1:1";
    let printed = greeting(in_terminal(&everywhere)).await;
    assert!(printed.contains("login-url") && !printed.contains("code="), "{printed}");
}
