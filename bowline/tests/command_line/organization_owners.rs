//! Who owns what files declare, how many calls that takes, and runs that end early.

use std::process::Stdio;
use std::time::Duration;

use bowline_testkit::{TestServer, each_engine};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::organization_support::{
    CHANGES, DONE, FAILED, NOT_ALLOWED, OperatorTerminal, PARTLY_APPLIED, USAGE, calls, labels,
};
use crate::registry::push;
use crate::support::{Terminal, ended, text};

const ROLE: &str = "kind: Role\npath: acme/auditor\nspec: {description: files, capabilities: [groups.list]}\n";

async fn what_others_own_stays_untouched(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    server.organization("acme").await;
    desk.call("v2.GroupsService.CreateGroup", &["group.name=unrelated"]).await;
    let made = desk.terminal.run(&["iam", "roles", "create", "acme/auditor", "--capabilities", "groups.list"]).await;
    ended(&made, DONE);
    let file = desk.write("role.yaml", ROLE);

    // Someone else's object is not changed, in whatever way it came.
    let plan = desk.diff(&file, &[], CHANGES).await;
    assert_eq!(plan["changes"][0]["notAllowed"], "not owned by these files");
    let refused = desk.run("apply", &file, &[]).await;
    ended(&refused, FAILED);
    assert!(text(&refused.stderr).contains("--take-over"), "{}", text(&refused.stderr));
    assert!(calls(&refused).iter().all(|method| method.starts_with("List")), "{:?}", calls(&refused));

    // Equal to the files it stays another's, and is not pruned.
    let same = desk.write("role.yaml", &ROLE.replace("description: files, ", ""));
    let plan = desk.diff(&same, &["--prune"], DONE).await;
    assert_eq!((&plan["unchanged"], &plan["notOwned"]), (&json!(1), &json!(1)));
    desk.write("role.yaml", ROLE);
    let taken = desk.apply(&file, &["--take-over"]).await;
    assert!(text(&taken.stderr).contains("updated Role acme/auditor"), "{}", text(&taken.stderr));
    desk.diff(&file, &[], DONE).await;

    // Another owner neither changes nor prunes it, until it takes it over: then the first one does not have it any more.
    let other = desk.write("other.yaml", &ROLE.replace("files", "other"));
    let plan = desk.diff(&other, &["--owner", "other"], CHANGES).await;
    assert_eq!(plan["changes"][0]["notAllowed"], "owned by files");
    desk.apply(&other, &["--owner", "other", "--take-over"]).await;
    let plan = desk.diff(&file, &[], CHANGES).await;
    assert_eq!(plan["changes"][0]["notAllowed"], "owned by other");
    ended(&desk.run("apply", &file, &["--owner", "No.Such"]).await, USAGE);
}

async fn an_owner_of_the_organization_applies(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let org = server.organization("acme").await;
    desk.terminal.sign_in_as(&server.actor("owner", &org).await);
    let binding = "---\nkind: Identity\npath: acme/build\nspec: {claimMatch: {issuer: \"https://ci.example.com\", subject: b}}\n---\nkind: RoleBinding\npath: acme\nspec: {identityUid: acme/build, roleUid: acme/auditor}\n---\nkind: Repository\npath: acme/web\n---\nkind: Readme\npath: acme/web\nspec: {content: x}\n";
    let file = desk.write("all.yaml", &format!("{ROLE}{binding}"));
    desk.apply(&file, &["--prune"]).await;
    desk.diff(&file, &["--prune"], DONE).await;
    assert!(desk.export("acme").await.contains("path: acme/web"));
    // Editors cannot record owners, and so change nothing.
    desk.terminal.sign_in_as(&server.actor("editor", &org).await);
    desk.write("all.yaml", "kind: Repository\npath: acme/other\n");
    let refused = desk.run("apply", &file, &[]).await;
    ended(&refused, NOT_ALLOWED);
    assert!(text(&refused.stderr).contains("nothing was changed"), "{}", text(&refused.stderr));
    assert!(!desk.export("acme").await.contains("acme/other"));
}

async fn pruning_deletes_what_the_owner_has_alone(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    server.organization("acme").await;
    let more = "---\nkind: Group\npath: acme/old\n---\nkind: Repository\npath: acme/old/web\n---\nkind: Readme\npath: acme/old/web\nspec: {content: x}\n---\nkind: GroupPolicy\npath: acme\nspec: {byteQuota: 5}\n";
    let file = desk.write("all.yaml", &format!("{ROLE}{more}"));
    desk.apply(&file, &[]).await;
    let manual = ["iam", "roles", "create", "acme/manual", "--capabilities", "groups.list"];
    ended(&desk.terminal.run(&manual).await, DONE);

    // Without --prune it is only named.
    let file = desk.write("all.yaml", ROLE);
    let plan = desk.diff(&file, &[], DONE).await;
    assert_eq!(plan["notPruned"].as_array().map(Vec::len), Some(3), "{plan}");
    let plan = desk.diff(&file, &["--prune"], CHANGES).await;
    assert_eq!(labels(&plan, "delete"), ["GroupPolicy acme", "Repository acme/old/web", "Group acme/old"]);
    // Without a terminal and without --yes nothing is changed.
    let unconfirmed = desk.terminal.run(&["apply", "-f", &file, "--prune"]).await;
    ended(&unconfirmed, USAGE);
    desk.apply(&file, &["--prune"]).await;
    let plan = desk.diff(&file, &["--prune"], DONE).await;
    assert_eq!(plan["notPruned"], json!([]));
    assert!(desk.export("acme").await.contains("acme/manual"));
}

async fn renamed_objects_are_still_the_owners(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    server.organization("acme").await;
    let file = desk.write(
        "all.yaml",
        &format!("{ROLE}---\nkind: Group\npath: acme/team\n---\nkind: Group\npath: acme/team/inner\n"),
    );
    desk.apply(&file, &[]).await;
    ended(&desk.terminal.run(&["iam", "groups", "update", "acme/team", "--name", "squad"]).await, DONE);
    let plan = desk.diff(&file, &["--prune"], CHANGES).await;
    assert_eq!(labels(&plan, "update"), ["Group acme/team"], "{plan}");
    assert_eq!(plan["changes"].as_array().map(Vec::len), Some(1), "{plan}");
    desk.apply(&file, &["--prune"]).await;
    desk.diff(&file, &["--prune"], DONE).await;
}

async fn a_thousand_objects_take_a_thousand_calls(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let mut documents = String::from("kind: Group\npath: acme\n");
    for n in 0..333 {
        documents.push_str(&format!("---\nkind: Group\npath: acme/group-{n:03}\n"));
        documents
            .push_str(&format!("---\nkind: Role\npath: acme/role-{n:03}\nspec: {{capabilities: [groups.list]}}\n"));
        documents.push_str(&format!("---\nkind: Repository\npath: acme/group-{n:03}/repo\n"));
    }
    let file = desk.write("all.yaml", &documents);
    let created = calls(&desk.apply(&file, &[]).await).len();
    assert!(created <= 1020, "{created} calls for 1000 objects");
    let again = calls(&desk.apply(&file, &["--prune"]).await);
    assert!(again.len() <= 20 && again.iter().all(|method| method.starts_with("List")), "{again:?}");
    let changed = documents.replace("[groups.list]", "[roles.list]");
    desk.write("all.yaml", &changed);
    let updated = calls(&desk.apply(&file, &[]).await).len();
    assert!(updated <= 333 + 20, "{updated} calls for 333 changes");
}

async fn an_interrupted_run_continues(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let mut documents = String::from("kind: Group\npath: acme\n");
    (0..100).for_each(|n| documents.push_str(&format!("---\nkind: Group\npath: acme/group-{n:03}\n")));
    let file = desk.write("all.yaml", &documents);
    let mut command = desk.terminal.command();
    command.args(["apply", "-f", &file, "--yes", "--api", &desk.terminal.api]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = BufReader::new(running.stderr.take().expect("a pipe")).lines();
    for _ in 0..10 {
        tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await.expect("in time").expect("a line");
    }
    running.start_kill().expect("it is stopped");
    running.wait().await.expect("it ends");

    let plan = desk.diff(&file, &["--prune"], CHANGES).await;
    let left = labels(&plan, "create").len();
    assert!(left > 0 && left < 100, "{left}");
    assert_eq!(plan["changes"].as_array().map(Vec::len), Some(left), "only what is missing: {plan}");
    desk.apply(&file, &["--prune"]).await;
    desk.diff(&file, &["--prune"], DONE).await;
    let removed = desk.write("all.yaml", "kind: Group\npath: acme\n");
    let plan = desk.diff(&removed, &["--prune"], CHANGES).await;
    assert_eq!(labels(&plan, "delete").len(), 100, "all of it is owned");
}

async fn a_failure_names_what_was_not_done(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let policy = "---\nkind: LibraryPolicy\npath: acme/strict\nspec: {blockList: [{purl: nonsense}]}\n";
    let rest = "---\nkind: Subscription\npath: acme\nspec: {sink: \"https://hooks.example.com/x\"}\n";
    let file = desk.write("all.yaml", &format!("kind: Group\npath: acme\n---\n{ROLE}{policy}{rest}"));
    let failed = desk.run("apply", &file, &[]).await;
    ended(&failed, PARTLY_APPLIED);
    let said = text(&failed.stderr);
    for words in [
        "created Role acme/auditor",
        "2 of 4 changes were made",
        "LibraryPolicy acme/strict",
        "not made: LibraryPolicy acme/strict, Subscription acme",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    desk.write(
        "all.yaml",
        &format!("kind: Group\npath: acme\n---\n{ROLE}{}{rest}", policy.replace("nonsense", "pkg:npm/x")),
    );
    desk.apply(&file, &[]).await;
    desk.diff(&file, &[], DONE).await;

    // If nothing was done, the cause decides the code.
    let groups = desk.call("v2.GroupsService.ListGroups", &["name=acme"]).await;
    let viewer = server.actor("viewer", groups["groups"][0]["uid"].as_str().expect("a UIDP")).await;
    desk.terminal.sign_in_as(&viewer);
    desk.write("all.yaml", "kind: Role\npath: acme/new\nspec: {capabilities: [groups.list]}\n");
    ended(&desk.run("apply", &file, &[]).await, NOT_ALLOWED);
}

async fn what_was_refused_is_not_claimed(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    server.organization("acme").await;
    let policy = "---\nkind: LibraryPolicy\npath: acme/strict\nspec: {blockList: [{purl: nonsense}]}\n";
    let file = desk.write("all.yaml", &format!("{ROLE}{policy}"));
    ended(&desk.run("apply", &file, &[]).await, PARTLY_APPLIED);
    // Someone makes it by hand: it is theirs, with a document and without.
    let create = ["libraries", "policies", "create", "acme", "--name", "strict", "--cooldown-days", "14"];
    ended(&desk.terminal.run(&create).await, DONE);
    desk.write("all.yaml", &format!("{ROLE}{}", policy.replace("nonsense", "pkg:npm/x")));
    let plan = desk.diff(&file, &[], CHANGES).await;
    assert_eq!(plan["changes"][0]["notAllowed"], "not owned by these files", "{plan}");
    desk.write("all.yaml", ROLE);
    let plan = desk.diff(&file, &["--prune"], DONE).await;
    assert_eq!(plan["notPruned"], json!([]), "{plan}");
}

async fn images_are_deleted_only_on_request(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let org = server.organization("acme").await;
    let file = desk.write("all.yaml", &format!("{ROLE}---\nkind: Repository\npath: acme/app\n"));
    desk.apply(&file, &[]).await;
    let owner = Terminal::new(server);
    owner.sign_in_as(&server.actor("owner", &org).await);
    push(server, &owner, &format!("{org}/app"), "v1", "an index").await;
    // Renamed in the file, it is another repository.
    desk.write("all.yaml", &format!("{ROLE}---\nkind: Repository\npath: acme/api\n"));
    let plan = desk.diff(&file, &["--prune"], CHANGES).await;
    let deletion = plan["changes"].as_array().and_then(|changes| changes.last()).expect("a change");
    assert_eq!(deletion["notAllowed"], "has images (1 tag); --delete-images deletes them too", "{plan}");
    ended(&desk.run("apply", &file, &["--prune"]).await, FAILED);
    assert!(!desk.export("acme").await.contains("acme/api"), "nothing was changed");
    desk.apply(&file, &["--prune", "--delete-images"]).await;
    desk.diff(&file, &["--prune"], DONE).await;
}

async fn a_run_without_changes_mends_the_inventory_once(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    server.organization("acme").await;
    let both = desk.write("all.yaml", &format!("{ROLE}---\nkind: Group\npath: acme/gone\n"));
    desk.apply(&both, &[]).await;
    ended(&desk.terminal.run(&["iam", "groups", "delete", "acme/gone", "--yes"]).await, DONE);
    let file = desk.write("all.yaml", ROLE);
    let writes =
        |output: &std::process::Output| calls(output).iter().filter(|method| !method.starts_with("List")).count();
    assert_eq!(writes(&desk.apply(&file, &[]).await), 1);
    assert_eq!(writes(&desk.apply(&file, &[]).await), 0);
}

each_engine!(
    multi_thread: what_others_own_stays_untouched,
    an_owner_of_the_organization_applies,
    pruning_deletes_what_the_owner_has_alone,
    renamed_objects_are_still_the_owners,
    a_thousand_objects_take_a_thousand_calls,
    an_interrupted_run_continues,
    a_failure_names_what_was_not_done,
    what_was_refused_is_not_claimed,
    images_are_deleted_only_on_request,
    a_run_without_changes_mends_the_inventory_once,
);
