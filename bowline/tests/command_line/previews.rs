//! `access preview`, and `--dry-run` of commands that are made from the contract.

use bowline_testkit::{Engine, TestServer};
use serde_json::{Value, json};

use crate::support::{Terminal, ended, text};

/// An organization with an owner and a viewer at terminals.
async fn people(server: &TestServer) -> (String, Terminal, Terminal) {
    let organization = server.organization("acme").await;
    let (owner, viewer) = (Terminal::new(server), Terminal::new(server));
    owner.sign_in_as(&server.actor("owner", &organization).await);
    viewer.sign_in_as(&server.actor("viewer", &organization).await);
    (organization, owner, viewer)
}

/// The newest entry of the audit log.
async fn newest(owner: &Terminal) -> Value {
    owner.json(&["audit", "list", "--organization", "acme", "--limit", "1"]).await[0]["sequence"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_shows_the_changes_and_makes_none() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, owner, viewer) = people(&server).await;
    server.group(&organization, "team").await;
    server.repo(&organization, "nginx").await;
    server.identity(&organization, "build").await;
    let before = newest(&owner).await;
    for (arguments, lines) in [
        (
            &["iam", "groups", "create", "acme/web"][..],
            &["create\tGroup\tacme/(new)\tname\t\tweb\n", "send\tevent\tacme/(new)\t"][..],
        ),
        (
            &["iam", "groups", "update", "acme/team", "--description", "Builds"],
            &["update\tGroup\tacme/team\tdescription\t\tBuilds\n"],
        ),
        (&["iam", "groups", "delete", "acme/team"], &["delete\tGroup\tacme/team\tname\tteam\t\n"]),
        (&["registry", "repos", "create", "acme/app", "--description", "An app"], &["create\tRepo\tacme/(new)\t"]),
        (
            &["registry", "repos", "update", "acme/nginx", "--description", "Web"],
            &["update\tRepo\tacme/nginx\tdescription\t\tWeb\n"],
        ),
        (&["registry", "repos", "delete", "acme/nginx"], &["delete\tRepo\tacme/nginx\tname\tnginx\t\n"]),
        (&["registry", "policy", "set", "acme/nginx", "--public", "true"], &["\tpublic\tfalse\ttrue\n"]),
        (&["libraries", "policies", "create", "acme", "--name", "strict"], &["create\tLibraryPolicy\tacme/"]),
        (
            &[
                "iam",
                "role-bindings",
                "create",
                "--parent",
                "acme/team",
                "--identity",
                "acme/build",
                "--role",
                "editor",
            ],
            &["create\tRoleBinding\tacme/team/", "gain\tcapabilities\tacme/build\tat acme/team\t\t"],
        ),
    ] {
        let output = owner.run(&[arguments, &["--dry-run"]].concat()).await;
        let printed = ended(&output, 0) + "\n";
        assert!(printed.starts_with("CHANGE\tKIND\tRESOURCE\tFIELD\tBEFORE\tAFTER\n"), "{printed}");
        for line in lines {
            assert!(printed.contains(line), "{arguments:?}: {line:?} is missing: {printed}");
        }
        assert!(text(&output.stderr).contains("nothing was changed"), "{}", text(&output.stderr));
    }
    // What the call would be refused with, and no question before it.
    let refused = viewer.run(&["iam", "groups", "delete", "acme/team", "--dry-run"]).await;
    ended(&refused, 4);
    assert!(text(&refused.stderr).contains("access explain"), "{}", text(&refused.stderr));
    ended(&owner.run(&["iam", "groups", "get", "acme/team"]).await, 0);
    ended(&owner.run(&["iam", "groups", "get", "acme/web"]).await, 6);
    assert_eq!(newest(&owner).await, before, "a dry run is in the audit log");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_previewable_method_can_be_previewed_over_both_transports() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, owner, viewer) = people(&server).await;
    let team = server.group(&organization, "team").await;
    let uid = format!("uid={team}");
    let preview = ["access", "preview", "GroupsService.DeleteGroup", "-f", &uid];
    let document = owner.json(&preview).await;
    assert_eq!(document["method"], json!("chainguard.platform.iam.v2.GroupsService.DeleteGroup"));
    let change = &document["changes"][0];
    assert_eq!((&change["resource"], &change["before"]["content"]["name"]), (&json!(team), &json!("team")), "{change}");
    let shown = ended(&owner.run(&preview).await, 0);
    assert!(shown.contains("delete\tGroup\tacme/team\tname\tteam"), "{shown}");
    ended(&viewer.run(&preview).await, 4);
    for (method, named) in [("ListGroups", "ListGroups"), ("DeleteGruop", "did you mean DeleteGroup?")] {
        let refused = owner.run(&["access", "preview", method]).await;
        assert_ne!(refused.status.code(), Some(0));
        assert!(text(&refused.stderr).contains(named), "{method}: {}", text(&refused.stderr));
    }
    let unknown = owner.run(&["access", "preview", "GroupsService.DeleteGroup", "-f", "uidd=x"]).await;
    ended(&unknown, 2);
    assert!(text(&unknown.stderr).contains("did you mean uid?"), "{}", text(&unknown.stderr));
    server.stop().await;
}
