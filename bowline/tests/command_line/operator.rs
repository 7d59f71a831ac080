//! Tokens and links of the local operator, who says why.

use std::path::Path;
use std::process::Output;

use tokio::process::Command;

use crate::support::{ended, text};

async fn run(home: &Path, arguments: &[&str], reason: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.env_clear().envs(reason.map(|reason| ("BOWLINE_OPERATOR_REASON", reason))).current_dir(home);
    command.args(arguments).output().await.expect("the binary runs")
}

#[tokio::test]
async fn a_token_and_a_link_of_the_operator_have_a_reason() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    ended(&run(home.path(), &["migrate"], None).await, 0);
    for command in ["token", "login-url"] {
        let issue = ["operator", command, "--base-url", "http://127.0.0.1:1"];
        let with = |reason| [&issue[..], &["--reason", reason]].concat();
        for arguments in [issue.to_vec(), with(""), with("  ")] {
            let output = run(home.path(), &arguments, None).await;
            assert_eq!(ended(&output, 2), "", "{arguments:?}");
            let said = text(&output.stderr);
            let lines: Vec<&str> = said.lines().collect();
            assert!(lines[0].starts_with("error: the reason is missing"), "{said}");
            assert!(lines[1].starts_with(&format!("hint: bowline operator {command} --reason \"")), "{said}");
        }
        let output = run(home.path(), &with("two\nlines"), None).await;
        assert!(text(&output.stderr).contains("one line"), "{}", text(&output.stderr));
        ended(&output, 2);
        for output in [
            run(home.path(), &with("sign-in is down"), None).await,
            run(home.path(), &issue, Some("nightly import")).await,
        ] {
            let printed = ended(&output, 0);
            assert!(printed.starts_with("ey") || printed.contains("/oauth/operator?code="), "{printed}");
        }
    }
}
