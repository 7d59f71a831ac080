//! Files that are wrong, names that are ambiguous, and secrets.

use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::organization_support::{OperatorTerminal, calls, labels};
use crate::support::{ended, text};

/// Documents that are wrong, and what is said of each.
const WRONG: &[(&str, &[&str])] = &[
    ("kind: Grup\npath: acme\n", &["all.yaml:1: kind: there is no kind \"Grup\"; did you mean Group?"]),
    ("kind: Group\n", &["all.yaml:1: path: is required"]),
    ("kind: Group\npath: acme\nspek: {}\n", &["all.yaml:3: spek: unknown member; did you mean spec?"]),
    (
        "kind: Group\npath: acme\nspec:\n  descripton: x\n",
        &["all.yaml:4: spec.descripton: unknown field; did you mean description?"],
    ),
    ("kind: Group\npath: acme\nspec: {createTime: x}\n", &["all.yaml:3: spec.createTime: is set by the server"]),
    ("kind: Group\npath: acme\nspec: {name: x}\n", &["spec.name: the name is the end of `path`"]),
    ("kind: Group\npath: a\n", &["all.yaml:1: path: name must have 3 to 63 characters"]),
    ("kind: Group\npath: acme//x\n", &["all.yaml:2: path: \"acme//x\" must be names"]),
    ("kind: Role\npath: auditor\n", &["all.yaml:2: path: \"auditor\" must begin with the path of a group"]),
    (
        "kind: Role\npath: acme/x\nspec:\n  capabilities:\n    - groups.list\n    - groups.lst\n",
        &["all.yaml:6: spec.capabilities[1]: there is no capability \"groups.lst\"; did you mean groups.list?"],
    ),
    ("kind: Group\npath: acme\nspec: [a]\n", &["all.yaml:3: spec: must have members"]),
    ("kind: Group\npath: acme\nspec: {verified: maybe}\n", &["spec.verified: \"maybe\" is neither true nor false"]),
    ("kind: GroupPolicy\npath: acme\nspec: {byteQuota: lots}\n", &["spec.byteQuota: \"lots\" is not a number"]),
    (
        "kind: IdentityProvider\npath: acme/sso\nspec:\n  oidc:\n    clientSecret: plain\n",
        &["all.yaml:5: spec.oidc.clientSecret: is a secret: write it to a file"],
    ),
    (
        "kind: IdentityProvider\npath: acme/sso\nspec:\n  oidc:\n    clientSecret: {fromFile: absent.txt}\n",
        &["all.yaml:5: spec.oidc.clientSecret: ", "absent.txt"],
    ),
    // A proposal of files must not publish others of the machine that compares it.
    (
        "kind: Group\npath: acme\nspec: {description: {fromFile: /proc/self/environ}}\n",
        &["all.yaml:3: spec.description: /proc/self/environ: not below the directory of the documents"],
    ),
    (
        "kind: Group\npath: acme\nspec: {description: {fromFile: ../../../../etc/passwd}}\n",
        &["all.yaml:3: spec.description: ", "etc/passwd"],
    ),
    ("kind: Group\n  path: acme\n", &["all.yaml:2: not readable as YAML: "]),
    (
        "kind: Group\npath: acme\n---\nkind: Group\npath: acme\n",
        &["all.yaml:4: path: Group acme is described twice: here, and at", "all.yaml:1"],
    ),
    (
        "kind: Group\npath: acme\n---\nkind: RoleBinding\npath: acme\nspec:\n  identityUid: acme/absent\n  roleUid: viewr\n",
        &[
            "all.yaml:7: spec.identityUid: there is no Identity \"acme/absent\"",
            "all.yaml:8: spec.roleUid: there is no Role",
        ],
    ),
    ("kind: Group\npath: nowhere/team\n", &["all.yaml:1: path: there is no Group \"nowhere\""]),
    ("kind: Group\npath: acme\n---\nkind: RoleBinding\npath: acme\n", &["all.yaml:4: spec: identityUid is required"]),
    ("kind: Group\npath: acme\nuid: 0123\n", &["all.yaml:3: uid: \"0123\" is not a UIDP"]),
    (
        "kind: Group\npath: acme\n---\nkind: Repository\npath: acme/x\nspec: {bundles: [bse]}\n",
        &["all.yaml:6: spec.bundles[0]: "],
    ),
    ("", &["the files have no documents"]),
];

async fn a_broken_file_changes_nothing(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let mut missing = Vec::new();
    for (content, words) in WRONG {
        let file = desk.write("all.yaml", content);
        let refused = desk.run("apply", &file, &[]).await;
        ended(&refused, 1);
        let said = text(&refused.stderr);
        let unsaid = words.iter().filter(|words| !said.contains(**words));
        missing.extend(unsaid.map(|words| format!("{words:?} is not said of {content}: {said}")));
        assert!(calls(&refused).iter().all(|method| method.starts_with("List")), "{said}");
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    // Unless its directory is named.
    let elsewhere = tempfile::tempdir().expect("a directory");
    std::fs::write(elsewhere.path().join("text"), "from elsewhere").expect("a file is written");
    let document =
        format!("kind: Group\npath: acme\nspec: {{description: {{fromFile: {}/text}}}}\n", elsewhere.path().display());
    let file = desk.write("all.yaml", &document);
    ended(&desk.run("diff", &file, &[]).await, 1);
    let allowed = desk.run("diff", &file, &["--from-directory", &elsewhere.path().display().to_string()]).await;
    assert!(text(&allowed.stdout).contains("from elsewhere"), "{}", text(&allowed.stderr));
    // All faults are named at once, and JSON is read too.
    let file = desk.write("all.json", "{\"kind\": \"Group\",\n \"path\": \"acme\", \"spec\": {\"a\": 1,\n \"b\": 2}}");
    let said = text(&desk.run("diff", &file, &[]).await.stderr);
    assert!(said.contains("all.json:2: spec.a: ") && said.contains("all.json:3: spec.b: "), "{said}");
    desk.write("all.json", "[{\"kind\": \"Group\", \"path\": \"acme\"}]");
    desk.apply(&file, &[]).await;
    ended(&desk.run("diff", "no-such-file.yaml", &[]).await, 1);
    ended(&desk.terminal.run(&["export", "acme/no-such"]).await, 6);
    ended(&desk.terminal.run(&["export", "no-such"]).await, 6);
}

async fn ambiguous_names_are_refused_with_both(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let org = server.organization("acme").await;
    let first = server.identity(&org, "twin").await;
    let second = server.identity(&org, "twin").await;
    let document =
        "kind: Identity\npath: acme/twin\nspec: {claimMatch: {issuer: \"https://ci.example.com\", subject: x}}\n";
    let file = desk.write("all.yaml", document);
    let refused = desk.run("apply", &file, &[]).await;
    ended(&refused, 1);
    let said = text(&refused.stderr);
    assert!(said.contains(&first) && said.contains(&second), "{said}");

    let binding = format!(
        "{document}uid: {second}\n---\nkind: RoleBinding\npath: acme\nspec: {{identityUid: acme/twin, roleUid: viewer}}\n"
    );
    desk.write("all.yaml", &binding);
    desk.apply(&file, &["--take-over"]).await;
    let bindings = desk.call("v2.RoleBindingsService.ListRoleBindings", &[&format!("identity={second}")]).await;
    assert_eq!(bindings["roleBindings"].as_array().map(Vec::len), Some(1));
    // A UIDP of another server is unknown here.
    desk.write("all.yaml", &format!("{document}uid: {org}/0000000000000000\n"));
    let refused = desk.run("apply", &file, &[]).await;
    assert!(text(&refused.stderr).contains("uid: no Identity has it"), "{}", text(&refused.stderr));
    // Two organizations of a name are told apart in the same way.
    let twin = server.organization("acme").await;
    let document = "kind: Group\npath: acme\nspec: {description: d}\n";
    desk.write("all.yaml", document);
    let said = text(&desk.run("apply", &file, &[]).await.stderr);
    assert!(said.contains(&org) && said.contains(&twin), "{said}");
    desk.write("all.yaml", &format!("{document}uid: {twin}\n"));
    desk.apply(&file, &["--take-over"]).await;
}

async fn secrets_are_written_and_never_compared(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let document = "kind: Group\npath: acme\n---\nkind: IdentityProvider\npath: acme/sso\nspec:\n  defaultRole: viewer\n  oidc: {issuer: \"https://sso.example.com\", clientId: c, clientSecret: {fromFile: secret.txt}}\n---\nkind: Repository\npath: acme/web\n---\nkind: RepositoryPolicy\npath: acme/web\nspec: {upstream: {url: \"https://registry.example.com\", username: u, password: {fromFile: secret.txt}}}\n";
    let file = desk.write("all.yaml", document);
    let applied = desk.apply(&file, &[]).await;
    assert!(!text(&applied.stdout).contains("s3cret") && !text(&applied.stderr).contains("s3cret"));
    let plan = desk.diff(&file, &[], 0).await;
    assert_eq!(labels(&plan, "unknown"), ["IdentityProvider acme/sso", "RepositoryPolicy acme/web"]);
    assert_eq!(plan["changes"][0]["unknown"], json!(["oidc.clientSecret"]));
    assert!(ended(&desk.run("diff", &file, &[]).await, 0).contains("oidc.clientSecret: unknown"));
    let plan = desk.diff(&file, &["--write-secrets"], 7).await;
    assert_eq!(labels(&plan, "update").len(), 2, "{plan}");
    let field = json!({ "path": "oidc.clientSecret", "fromFile": "secret.txt", "unknown": true });
    assert_eq!(plan["changes"][0]["fields"], json!([field]));
    let shown = ended(&desk.run("diff", &file, &["--write-secrets"]).await, 7);
    assert!(shown.contains("oidc.clientSecret: unknown -> from secret.txt"), "{shown}");
    let written = desk.apply(&file, &["--write-secrets"]).await;
    assert!(calls(&written).contains(&"UpdateIdentityProvider".to_owned()));
    // A new address of the upstream needs the password again, which goes along.
    desk.write("all.yaml", &document.replace("https://registry.example.com", "https://other.example.com"));
    desk.apply(&file, &[]).await;
    desk.diff(&file, &[], 0).await;
    let export = desk.export("acme").await;
    assert!(export.contains("fromFile: ") && !export.contains("s3cret"), "{export}");
}

async fn pull_tokens_are_no_part_of_it(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let file = desk.write("all.yaml", "kind: Group\npath: acme\n");
    desk.apply(&file, &[]).await;
    let before = desk.export("acme").await;
    ended(&desk.terminal.run(&["auth", "pull-token", "create", "--parent", "acme"]).await, 0);
    assert_eq!(desk.export("acme").await, before);
}

async fn the_examples_of_the_help_work(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let file = desk.write("all.yaml", "kind: Group\npath: acme\nspec: {description: d}\n");
    desk.apply(&file, &[]).await;
    for command in ["export", "diff", "apply"] {
        let help =
            ended(&desk.terminal.command().args([command, "--help"]).output().await.expect("the binary runs"), 0);
        let (_, example) = help.split_once("Example:\n  bowline ").unwrap_or_else(|| panic!("no example: {help}"));
        let words = example.lines().next().unwrap_or_default().split(' ');
        let mut run = desk.terminal.command();
        run.current_dir(desk.terminal.home.path()).args(words).args(["--api", &desk.terminal.api]);
        ended(&run.output().await.expect("the binary runs"), 0);
    }
}

each_engine!(
    multi_thread: a_broken_file_changes_nothing,
    ambiguous_names_are_refused_with_both,
    secrets_are_written_and_never_compared,
    pull_tokens_are_no_part_of_it,
    the_examples_of_the_help_work,
);
