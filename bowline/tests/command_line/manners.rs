//! How the command line treats the person in front of it.

use bowline_testkit::{Engine, TestServer};
use serde_json::json;

use crate::examples::examples;
use crate::support::{Terminal, ended, text};

/// An organization with an owner at the terminal.
async fn owner(server: &TestServer) -> (String, Terminal) {
    let organization = server.organization("acme").await;
    let terminal = Terminal::new(server);
    terminal.sign_in_as(&server.actor("owner", &organization).await);
    (organization, terminal)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_context_says_that_it_is_the_current_one() {
    let home = tempfile::tempdir().expect("a directory");
    let terminal = Terminal { home, api: "https://api.example.com".into() };
    let first = terminal.run(&["context", "set", "one"]).await;
    ended(&first, 0);
    assert_eq!(text(&first.stderr), "the context one is stored and is the current one now");
    let second = terminal.run(&["context", "set", "two"]).await;
    assert!(text(&second.stderr).ends_with(", in place of one"), "{}", text(&second.stderr));
    let quiet = terminal.run(&["context", "set", "one", "--quiet"]).await;
    assert_eq!(text(&quiet.stderr), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_can_come_from_a_variable_or_a_file() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let elsewhere = Terminal::new(&server);
    let operator = server.operator().await;
    let owner_token = std::fs::read_to_string(terminal.kept(&terminal.api, "oidc-token")).expect("a token");
    let file = elsewhere.home.path().join("token");
    std::fs::write(&file, operator.token.expect("a token")).expect("a file is written");
    let file = file.to_str().expect("UTF-8").to_owned();
    let status = ["auth", "status", "--api", &elsewhere.api, "-o", "jsonpath={.identity}"];
    let by_variable = elsewhere.command().args(status).env("BOWLINE_TOKEN", &owner_token).output().await;
    assert!(ended(&by_variable.expect("the binary runs"), 0).starts_with(&organization));
    // The file goes before the variable.
    let both =
        elsewhere.command().args(status).args(["--token-file", &file]).env("BOWLINE_TOKEN", &owner_token).output();
    assert_eq!(ended(&both.await.expect("the binary runs"), 0), "0".repeat(40));
    let registry = server.server().parts().settings.registry_audience.clone();
    let token = elsewhere.run(&["auth", "token", "--audience", &registry, "--token-file", &file]).await;
    assert!(ended(&token, 0).contains('.'));
    ended(&elsewhere.run(&["auth", "status"]).await, 3);
    let shown = ended(&elsewhere.run(&["auth", "status", "--token-file", &file]).await, 0);
    assert!(shown.contains("the operator, who may do everything"), "{shown}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_names_every_role() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("acme").await;
    let terminal = Terminal::new(&server);
    let actor = server.actor("owner", &organization).await;
    server.bind(&actor.identity, &server.role("registry.push"), &organization).await;
    terminal.sign_in_as(&actor);
    let shown = ended(&terminal.run(&["auth", "status"]).await, 0);
    for role in ["owner", "registry.push"] {
        assert!(shown.contains(&format!("{role}\tacme\t{organization}")), "{shown}");
    }
    assert!(!shown.contains("capabilities)"), "{shown}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_that_containers_use_are_taken() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let team = server.group(&organization, "team").await;
    let app = server.repo(&team, "app").await;
    let nginx = server.repo(&organization, "nginx").await;
    for (path, uid) in [
        ("acme/team/app".to_owned(), &app),
        (format!("{organization}/team/app"), &app),
        (format!("{team}/app"), &app),
        (format!("{organization}/nginx"), &nginx),
    ] {
        let got = terminal.json(&["registry", "repos", "get", &path]).await;
        assert_eq!(got["uid"], json!(uid), "{path}");
    }
    let listed = ended(&terminal.run(&["registry", "repos", "list", "--parent", "acme/team", "-o", "name"]).await, 0);
    assert_eq!(listed, app);
    let by_uid = ["registry", "repos", "get", &format!("{organization}/{}", "0".repeat(16))];
    for missing in [&["registry", "repos", "get", "acme/team/none"][..], &by_uid] {
        let refused = terminal.run(missing).await;
        ended(&refused, 6);
        assert!(text(&refused.stderr).contains("\nhint: "), "{}", text(&refused.stderr));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pull_tokens_say_how_long_they_last() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (_, terminal) = owner(&server).await;
    // The command line has the machine's clock.
    for (ttl, left) in [("90m", " minutes"), ("30h", " hours"), ("30d", " days")] {
        let create =
            ["auth", "pull-token", "create", "--parent", "acme", "--ttl", ttl, "--name", &format!("for-{ttl}")];
        ended(&terminal.run(&create).await, 0);
        let listed = ended(&terminal.run(&["auth", "pull-token", "list", "--parent", "acme"]).await, 0);
        let line = listed.lines().find(|line| line.contains(&format!("for-{ttl}\tin "))).unwrap_or_default();
        assert!(line.contains(left), "{listed}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn talk_is_as_loud_as_it_should_be() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    server.repo(&organization, "one").await;
    let loud = terminal.run(&["registry", "repos", "list", "acme", "--verbose"]).await;
    ended(&loud, 0);
    assert!(text(&loud.stderr).contains("ReposService.ListRepos over gRPC: "), "{}", text(&loud.stderr));
    let quiet = terminal.run(&["registry", "repos", "delete", "acme/one", "--yes", "--quiet"]).await;
    ended(&quiet, 0);
    assert_eq!(text(&quiet.stderr), "");
    let plain = text(&terminal.run(&["registry", "repos", "get", "acme/one"]).await.stderr);
    assert!(plain.starts_with("error: ") && !plain.contains('\u{1b}'), "{plain}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_stand_below_their_own_heading() {
    let home = tempfile::tempdir().expect("a directory");
    let terminal = Terminal { home, api: String::new() };
    let help = terminal.command().args(["keys", "revoke", "--help"]).output().await.expect("the binary runs");
    let help = ended(&help, 0);
    let storage = help.find("Storage of the server:").expect("the heading");
    for own in ["[KID]", "--all", "--algorithm"] {
        let at = help.rfind(&format!("  {own}")).unwrap_or_else(|| panic!("{own} is missing: {help}"));
        assert!(at < storage, "{own} stands below the storage's heading: {help}");
    }
    // Spellings of before are taken, and not shown.
    let import = terminal.command().args(["feeds", "import", "osv", "--help"]).output().await.expect("the binary runs");
    let import = ended(&import, 0);
    assert!(import.contains("--license ") && !import.contains("licence"), "{import}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn help_fits_a_terminal_of_80_columns() {
    let home = tempfile::tempdir().expect("a directory");
    let terminal = Terminal { home, api: String::new() };
    let commands: Vec<String> = examples(&terminal).await.into_keys().collect();
    let mut wide = Vec::new();
    for command in commands.iter().map(String::as_str).chain([""]) {
        let words = command.split(' ').filter(|word| !word.is_empty()).chain(["--help"]);
        let help = terminal.command().env("COLUMNS", "80").args(words).output().await.expect("the binary runs");
        let help = ended(&help, 0);
        // The parser does not wrap the line of all required options; terminals do.
        let lines = help.lines().filter(|line| line.chars().count() > 80 && !line.starts_with("Usage: "));
        wide.extend(lines.map(|line| format!("{command}: {line}")));
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn colors_are_for_terminals_without_no_color() {
    let home = tempfile::tempdir().expect("a directory");
    let terminal = Terminal { home, api: "http://127.0.0.1:1".into() };
    let line = format!("{} iam groups list --api {}", env!("CARGO_BIN_EXE_bowline"), terminal.api);
    for (no_color, is_red) in [(None, true), (Some("1"), false), (Some(""), true)] {
        // A terminal of its own, in which the command runs.
        let mut command = tokio::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env_clear().env("HOME", terminal.home.path()).env("TERM", "xterm");
        command.envs(no_color.map(|value| ("NO_COLOR", value))).stdin(std::process::Stdio::null());
        let output = command.output().await.expect("script, of util-linux, runs");
        let printed = text(&output.stdout);
        assert!(printed.contains("not signed in"), "{printed}");
        assert_eq!(printed.contains("\u{1b}[1;31merror:"), is_red, "NO_COLOR={no_color:?}: {printed}");
        assert_eq!(printed.contains('\u{1b}'), is_red, "NO_COLOR={no_color:?}: {printed}");
    }
}

/// What a shell is offered for the last of these words.
async fn candidates(terminal: &Terminal, words: &[&str]) -> Vec<String> {
    let mut shell = terminal.command();
    shell.env("BOWLINE_COMPLETE", "fish").env("BOWLINE_API", &terminal.api).args(["--", "bowline"]).args(words);
    let offered = ended(&shell.output().await.expect("the binary runs"), 0);
    offered.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shells_complete_names_of_the_server() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    server.group(&organization, "team").await;
    server.repo(&organization, "nginx").await;
    let sink = ["events", "subscriptions", "create", "--parent", "acme", "--sink", "https://hooks.example.com/b"];
    let subscription = ended(&terminal.run(&sink).await, 0);
    for (words, candidate) in [
        (&["iam", "groups", "get", "ac"][..], "acme"),
        (&["iam", "groups", "get", "acme/t"], "acme/team"),
        (&["iam", "roles", "list", "--parent", "acme/"], "acme/team"),
        (&["iam", "identities", "get", "acme/"], "acme/team/"),
        (&["iam", "role-bindings", "create", "--role", "registry.pu"], "registry.pull"),
        (&["registry", "repos", "get", "acme/n"], "acme/nginx"),
        (&["registry", "repos", "list", "ac"], "acme"),
        (&["events", "subscriptions", "get", &subscription[..4]], &subscription),
    ] {
        let offered = candidates(&terminal, words).await;
        assert!(offered.iter().any(|one| one == candidate), "{words:?}: {offered:?}");
    }
    // The server that the line names is asked, in place of the variable's.
    let of_line = ["iam", "groups", "get", "--api", &terminal.api, "ac"];
    let mut shell = terminal.command();
    shell
        .env("BOWLINE_COMPLETE", "fish")
        .env("BOWLINE_API", "http://127.0.0.1:1")
        .args(["--", "bowline"])
        .args(of_line);
    let offered = ended(&shell.output().await.expect("the binary runs"), 0);
    assert!(offered.starts_with("acme"), "{offered}");
    // Without a sign-in, a server, or a name that begins so, there is nothing, and no message.
    for words in [&["iam", "groups", "get", "zz"][..], &["iam", "groups", "get", "zz/"]] {
        assert!(candidates(&terminal, words).await.is_empty(), "{words:?}");
    }
    let elsewhere = Terminal::new(&server);
    assert!(candidates(&elsewhere, &["iam", "groups", "get", "ac"]).await.is_empty());
    let home = tempfile::tempdir().expect("a directory");
    let nowhere = Terminal { home, api: "http://127.0.0.1:1".into() };
    assert!(candidates(&nowhere, &["iam", "groups", "get", "ac"]).await.is_empty());
    server.stop().await;
}
