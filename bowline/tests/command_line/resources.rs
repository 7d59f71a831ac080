//! Commands made from the contract: the example in the help of each runs against a server.

use std::collections::BTreeMap;

use bowline_server::TermsOption;
use bowline_testkit::{Engine, TestServer};
use serde_json::json;

use crate::examples::{examples, schemas};
use crate::reference::mismatch;
use crate::registry::push;
use crate::support::{Terminal, ended, text};

/// Words of a command line as a shell takes them: variables, and quotes around spaces.
fn words(line: &str, variables: &BTreeMap<&str, String>) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            c => words.last_mut().expect("a word").push(c),
        }
    }
    let value = |word: String| match word.strip_prefix('$') {
        Some(name) => variables.get(name).unwrap_or_else(|| panic!("no variable {name}")).clone(),
        None => word,
    };
    words.into_iter().map(value).collect()
}

/// An organization with an owner at the terminal, in the operator's eyes a verified one.
async fn owner(server: &TestServer) -> (String, Terminal) {
    let organization = server.organization("acme").await;
    let terminal = Terminal::new(server);
    terminal.sign_in_as(&server.actor("owner", &organization).await);
    server.group(&organization, "team").await;
    (organization, terminal)
}

/// The commands of a family in an order in which they work, and the variable that the output of some fills.
pub(crate) const STEPS: &[(&[&str], &str)] = &[
    (&["iam", "groups", "create"], "WEB"),
    (&["iam", "groups", "list"], ""),
    (&["iam", "groups", "get"], ""),
    (&["iam", "groups", "update"], ""),
    (&["iam", "roles", "create"], ""),
    (&["iam", "roles", "list"], ""),
    (&["iam", "roles", "get"], ""),
    (&["iam", "roles", "update"], ""),
    (&["iam", "roles", "delete"], ""),
    (&["iam", "identities", "create"], ""),
    (&["iam", "identities", "create", "oidc"], ""),
    (&["iam", "identities", "create", "github"], ""),
    (&["iam", "identities", "create", "gitlab"], ""),
    (&["iam", "identities", "create", "kubernetes"], ""),
    (&["iam", "identities", "create", "aws"], ""),
    (&["iam", "identities", "test-issuer"], ""),
    (&["iam", "identities", "list"], ""),
    (&["iam", "identities", "get"], ""),
    (&["access", "explain"], ""),
    (&["access", "list"], ""),
    (&["access", "of"], ""),
    (&["access", "requests", "list"], ""),
    (&["search"], ""),
    (&["iam", "identities", "update"], ""),
    (&["iam", "role-bindings", "create"], "BINDING"),
    (&["iam", "role-bindings", "list"], ""),
    (&["iam", "role-bindings", "get"], ""),
    (&["iam", "role-bindings", "update"], ""),
    (&["iam", "role-bindings", "delete"], ""),
    (&["iam", "identities", "delete"], ""),
    (&["iam", "invites", "create"], ""),
    (&["iam", "invites", "list"], "INVITE"),
    (&["iam", "invites", "get"], ""),
    (&["iam", "invites", "delete"], ""),
    (&["iam", "identity-providers", "create"], ""),
    (&["iam", "identity-providers", "list"], ""),
    (&["iam", "identity-providers", "get"], ""),
    (&["iam", "identity-providers", "update"], ""),
    (&["iam", "sessions", "of-provider"], ""),
    (&["iam", "identity-providers", "scim-token"], ""),
    (&["iam", "identity-providers", "scim-revoke"], ""),
    (&["iam", "group-mappings", "create"], "MAPPING"),
    (&["iam", "group-mappings", "list"], ""),
    (&["iam", "group-mappings", "get"], ""),
    (&["iam", "group-mappings", "delete"], ""),
    (&["iam", "identity-providers", "delete"], ""),
    (&["iam", "account-associations", "check"], ""),
    (&["iam", "account-associations", "create"], ""),
    (&["iam", "account-associations", "list"], ""),
    (&["iam", "account-associations", "get"], ""),
    (&["iam", "account-associations", "update"], ""),
    (&["iam", "account-associations", "delete"], ""),
    (&["iam", "terms", "accept"], ""),
    (&["iam", "terms", "list"], ""),
    (&["events", "subscriptions", "create"], "SUBSCRIPTION"),
    (&["events", "subscriptions", "list"], ""),
    (&["events", "subscriptions", "get"], ""),
    (&["events", "subscriptions", "test"], ""),
    (&["events", "subscriptions", "pause"], ""),
    (&["events", "subscriptions", "resume"], ""),
    (&["events", "attempts", "list"], ""),
    (&["events", "attempts", "get"], ""),
    (&["events", "deliveries", "status"], ""),
    (&["events", "deliveries", "list"], ""),
    (&["events", "deliveries", "redeliver"], ""),
    (&["events", "subscriptions", "delete"], ""),
    (&["audit", "list"], ""),
    (&["audit", "get"], ""),
    (&["audit", "history"], ""),
    (&["audit", "checkpoints"], ""),
    (&["audit", "export"], ""),
    (&["audit", "summary"], ""),
    (&["audit", "verify-chain"], ""),
    (&["registry", "settings", "get"], ""),
    (&["registry", "images", "preview-delete"], ""),
    (&["registry", "images", "delete"], ""),
    (&["registry", "usage", "get"], ""),
    (&["registry", "usage", "top"], ""),
    (&["registry", "activity"], ""),
    (&["registry", "upstreams", "list"], ""),
    (&["registry", "upstreams", "check"], ""),
    (&["registry", "upstreams", "fetch"], ""),
    (&["registry", "repos", "search"], ""),
    (&["registry", "policy", "list"], ""),
    (&["registry", "retention", "preview-group"], ""),
    (&["vulns", "posture"], ""),
    (&["vulns", "findings"], ""),
    (&["libraries", "explain"], ""),
    (&["libraries", "evaluate"], ""),
    (&["libraries", "preview"], ""),
    (&["libraries", "block-statistics"], ""),
    (&["registry", "effective-policy"], ""),
    (&["registry", "retention-runs"], ""),
    (&["registry", "settings", "set"], ""),
    (&["iam", "preferences", "update"], ""),
    (&["iam", "preferences", "get"], ""),
    (&["iam", "groups", "delete"], ""),
    (&["iam", "sessions", "list"], ""),
    (&["iam", "sessions", "end-all"], ""),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_works() {
    let terms =
        TermsOption { id: "terms-1".into(), label: "The terms".into(), url: "https://operator.example/terms-1".into() };
    let server = TestServer::start_with(Engine::Sqlite, |options| options.terms = vec![terms]).await;
    let (organization, terminal) = owner(&server).await;
    let digest = push(&server, &terminal, &format!("{organization}/app"), "v1", "an index").await;
    // No server has this name: the check of the upstream fails, and is a result all the same.
    let upstream = ["registry", "policy", "set", "acme/app", "--upstream", "https://registry.invalid/app"];
    ended(&terminal.run(&upstream).await, 0);
    let schemas = schemas(&terminal).await;
    let mut variables = BTreeMap::from([("ISSUER", server.idp().issuer().to_owned()), ("DIGEST", digest)]);
    let examples = examples(&terminal).await;
    let mut wrong = Vec::new();
    for (path, fills) in STEPS {
        let line = examples.get(&path.join(" ")).and_then(|lines| lines.first());
        let line =
            line.and_then(|line| line.strip_prefix("bowline ")).unwrap_or_else(|| panic!("no example: {path:?}"));
        let mut arguments = words(line, &variables);
        if *fills == "INVITE" {
            arguments.extend(["-o".to_owned(), "name".to_owned()]);
        }
        let schema = schemas.get(&path.join(" ")).filter(|schema| fills.is_empty() && schema.get("$comment").is_none());
        if schema.is_some() {
            arguments.extend(["-o".to_owned(), "json".to_owned()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = terminal.run(&arguments).await;
        if output.status.code() != Some(0) {
            wrong.push(format!("{line}: {}", text(&output.stderr)));
        } else if let Some(schema) = schema {
            let document = serde_json::from_slice(&output.stdout).unwrap_or_default();
            wrong.extend(mismatch(schema, schema, &document, "$").map(|why| format!("{line}: {why}")));
        }
        if !fills.is_empty() {
            variables.insert(fills, text(&output.stdout));
        }
    }
    server.stop().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_stand_for_uidps_and_tables_have_columns() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let web = ended(&terminal.run(&["iam", "groups", "create", "acme/team/web"]).await, 0);
    let listed = ended(&terminal.run(&["iam", "groups", "list", "--parent", "acme"]).await, 0);
    assert!(listed.starts_with("UIDP\tNAME\tGROUP\tDESCRIPTION\n"), "{listed}");
    assert!(listed.contains(&format!("{web}\tweb\tacme/team")), "{listed}");
    let direct = ended(&terminal.run(&["iam", "groups", "list", "--parent", "acme", "--direct"]).await, 0);
    assert!(direct.contains("\tteam\t") && !direct.contains("\tweb\t"), "{direct}");
    let limited = terminal.json(&["iam", "roles", "list", "--limit", "3"]).await;
    assert_eq!(limited.as_array().map(Vec::len), Some(3));
    let csv = ended(&terminal.run(&["iam", "groups", "list", "--parent", "acme", "-o", "csv"]).await, 0);
    assert!(csv.starts_with("uidp,name,group,description,verified,"), "{csv}");
    let names = ended(&terminal.run(&["iam", "groups", "list", "--parent", "acme/team", "-o", "name"]).await, 0);
    assert_eq!(names, web);
    let wide = ended(&terminal.run(&["iam", "groups", "list", "-o", "wide"]).await, 0);
    assert!(wide.starts_with("UIDP\tNAME\tGROUP\tDESCRIPTION\tVERIFIED\t"), "{wide}");

    let ci = [
        "iam",
        "identities",
        "create",
        "github",
        "acme/build",
        "--repo",
        "acme/site",
        "--role",
        "viewer,registry.push",
    ];
    let identity = terminal.json(&ci).await;
    assert_eq!(identity["claimMatch"]["subjectPattern"], json!("repo:acme/site:.+"));
    let bindings = ended(&terminal.run(&["iam", "role-bindings", "list", "--identity", "acme/build"]).await, 0);
    assert!(
        bindings.contains("\tbuild\tviewer\tacme") && bindings.contains("\tbuild\tregistry.push\tacme"),
        "{bindings}"
    );
    let updated = ["iam", "groups", "update", "acme/team/web", "--description", "", "--name", "site"];
    ended(&terminal.run(&updated).await, 0);
    let got = terminal.json(&["iam", "groups", "get", "acme/team/site"]).await;
    assert_eq!((&got["uid"], &got["description"]), (&json!(web), &json!("")));
    let entries = ended(&terminal.run(&["audit", "export", "--organization", "acme"]).await, 0);
    let first: serde_json::Value = serde_json::from_str(entries.lines().next().expect("an entry")).expect("JSON");
    assert_eq!((&first["sequence"], &first["resource"]), (&json!("1"), &json!(organization)));
    assert!(first["after"]["content"]["name"] == json!("acme"), "{first}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denial_names_the_command_that_explains_it() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, owner) = owner(&server).await;
    let viewer = Terminal::new(&server);
    viewer.sign_in_as(&server.actor("viewer", &organization).await);
    let denied = viewer.run(&["iam", "groups", "create", "acme/new"]).await;
    ended(&denied, 4);
    let message = text(&denied.stderr);
    let (_, hint) = message.split_once("hint: `bowline ").unwrap_or_else(|| panic!("no command: {message}"));
    let command: Vec<&str> = hint.split('`').next().unwrap_or_default().split(' ').collect();
    let explained = ended(&viewer.run(&command).await, 0);
    assert!(explained.contains("\nmissing\tgroups.create\n"), "{explained}");
    assert!(explained.contains("\nrole lacks\trole viewer at "), "{explained}");
    let allowed = ended(&owner.run(&command).await, 0);
    assert!(allowed.starts_with("FIELD\tVALUE\nallowed\ttrue\n"), "{allowed}");
    ended(&owner.run(&["registry", "repos", "create", "acme/app"]).await, 0);
    let of_a_repository = ["access", "explain", "--scope", "acme/app", "--method", "ReposService.DeleteRepo"];
    let explained = ended(&viewer.run(&of_a_repository).await, 0);
    assert!(explained.contains("\nneeded\trepo.delete\n"), "{explained}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_log_is_counted_verified_and_exported_in_parts() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    ended(&terminal.run(&["iam", "groups", "create", "acme/web"]).await, 0);
    let listed = ended(&terminal.run(&["audit", "list", "--organization", "acme", "--limit", "1"]).await, 0);
    let entry: Vec<&str> = listed.lines().nth(1).unwrap_or_default().split('\t').skip(2).collect();
    let [actor, rest @ ..] = entry.as_slice() else { panic!("no entry: {listed}") };
    assert!(actor.starts_with("acme/owner"), "{listed}");
    assert_eq!(rest, ["GroupsService.CreateGroup", "acme/web"], "{listed}");
    let counts = ended(&terminal.run(&["audit", "summary", "--organization", "acme"]).await, 0);
    assert!(counts.starts_with("DAY\tENTRIES\tKINDS\n"), "{counts}");
    let verified = ended(&terminal.run(&["audit", "verify-chain", "acme"]).await, 0);
    assert!(verified.starts_with("VERIFIED\tNEWEST\tERASED\tHASH\tPROBLEM\n"), "{verified}");
    let all = ended(&terminal.run(&["audit", "export", "--organization", "acme"]).await, 0);
    let later = ended(&terminal.run(&["audit", "export", "--organization", "acme", "--after", "1"]).await, 0);
    let (_, rest) = all.split_once('\n').expect("several entries");
    assert!(later.starts_with(rest), "{rest} is not the beginning of {later}");
    let own = ended(&terminal.run(&["audit", "export", "--resource", &organization]).await, 0);
    assert!(!own.is_empty() && own.lines().count() < all.lines().count(), "{own}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_has_a_line_for_each_result() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let listed = ended(&terminal.run(&["search", "team", "--kinds", "group", "--scope", "acme"]).await, 0);
    assert!(listed.starts_with("KIND\tNAME\tIN\tDETAIL\tUIDP\n"), "{listed}");
    assert!(listed.contains("\ngroup\tteam\tacme\t"), "{listed}");
    let names = ended(&terminal.run(&["search", &organization, "-o", "name"]).await, 0);
    assert_eq!(names, organization);
    let unknown = terminal.run(&["search", "team", "--kinds", "groop"]).await;
    assert!(text(&unknown.stderr).contains("group"), "{}", text(&unknown.stderr));
    ended(&unknown, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_have_words_and_codes() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let unknown = format!("{organization}/{}", "ab".repeat(8));
    for (arguments, code, named) in [
        (&["iam", "gruops", "list"][..], 2, "similar"),
        (&["iam", "groups", "lst"], 2, "similar"),
        (&["iam", "groups", "create", "acme/new", "--descripton", "y"], 2, "--description"),
        (&["iam", "groups", "get", "acme/none"], 6, "no group \"acme/none\""),
        (&["iam", "groups", "get", &unknown], 6, ""),
        (&["iam", "roles", "get", "nome"], 6, "no role \"nome\""),
        (&["iam", "roles", "get", "editr"], 6, "did you mean editor?"),
        (&["auth", "login", "--identity", "acme/build"], 2, "bowline iam identities get acme/build -o name"),
        (&["access", "explain", "--scope", "acme", "--method", "DeleteGruop"], 2, "did you mean DeleteGroup?"),
        (&["iam", "roles", "create", "acme/reader", "--capabilities", "groups.lst"], 2, "did you mean groups.list?"),
        (&["iam", "role-bindings", "get", "acme/x"], 2, "a role binding has no name"),
        (&["iam", "identities", "create", "ci"], 2, "names no group"),
        (&["iam", "groups", "update", "acme"], 2, "nothing to change"),
        (&["iam", "groups", "delete", "acme/team"], 2, "Delete the group acme/team with its role bindings"),
        (&["iam", "invites", "create", "--parent", "acme", "--role", "viewer", "--ttl", "soon"], 2, "--ttl soon"),
        (&["iam", "groups", "list", "-o", "xml"], 2, "there is no form \"xml\""),
    ] {
        let refused = terminal.run(arguments).await;
        ended(&refused, code);
        let message = text(&refused.stderr);
        assert!(message.contains(named), "{arguments:?}: {message}");
        assert!(message.contains("hint: ") || message.contains("--help"), "{arguments:?}: {message}");
    }
    let secret = ["iam", "identity-providers", "create", "acme/sso", "--oidc-client-secret", "hush"];
    ended(&terminal.run(&secret).await, 2);
    server.stop().await;
}
