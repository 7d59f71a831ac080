//! An organization as files: `export`, `diff` and `apply`.

use std::collections::BTreeSet;
use std::path::Path;

use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use serde_json::Value;

use crate::organization_support::{EVERYTHING, OperatorTerminal, calls, labels};
use crate::support::{ended, text};

async fn an_export_applied_elsewhere_exports_the_same(engine: Engine) {
    let server = TestServer::start(engine).await;
    let desk = OperatorTerminal::new(&server).await;
    let documents = EVERYTHING.matches("kind: ").count() - 1;
    let file = desk.write("all.yaml", EVERYTHING);
    let created = desk.apply(&file, &[]).await;
    let lines = text(&created.stderr);
    let count = lines.lines().filter(|line| line.starts_with("created ")).count();
    assert_eq!(count, documents, "{lines}");
    let first = desk.export("acme").await;

    let other_server = TestServer::start(engine).await;
    let other = OperatorTerminal::new(&other_server).await;
    for line in first.lines().filter_map(|line| line.trim().strip_prefix("fromFile: ")) {
        other.write(line.trim_matches('"'), "s3cret");
    }
    let copy = other.write("copy.yaml", &first);
    other.apply(&copy, &[]).await;
    let second = other.export("acme").await;
    assert_eq!(first, second);
    let uidp = first.split(|c: char| !c.is_ascii_hexdigit()).find(|word| word.len() == 40 && !word.starts_with("0123"));
    assert_eq!(uidp, None, "a UIDP of the server is in the export");

    // Nothing changes when it is applied again, and only lists are called.
    let again = other.apply(&copy, &["--prune"]).await;
    assert!(text(&again.stdout).contains("nothing to change"), "{}", text(&again.stdout));
    assert!(calls(&again).iter().all(|method| method.starts_with("List")), "{:?}", calls(&again));

    // A directory holds the same, as do the documents as they were written first.
    let directory = other.path("files");
    ended(&other.terminal.run(&["export", "acme", "--directory", &directory]).await, 0);
    for line in first.lines().filter_map(|line| line.trim().strip_prefix("fromFile: ")) {
        other.write(&format!("files/{}", line.trim_matches('"')), "s3cret");
    }
    assert!(Path::new(&directory).join("readmes/acme/base.md").exists());
    ended(&other.run("diff", &directory, &[]).await, 0);
    ended(&other.terminal.run(&["export", "acme", "--directory", &directory]).await, 2);
    ended(&other.terminal.run(&["export", "acme", "--directory", &directory, "--overwrite"]).await, 0);
    ended(&desk.run("diff", &file, &[]).await, 0);
    server.stop().await;
    other_server.stop().await;
}

/// Changes that someone makes past the files: a method, the object, its member of the request, and fields.
const CHANGES: &[(&str, &str, &str, &[&str])] = &[
    ("GroupsService.UpdateGroup", "Group acme/team", "group", &["group.description=other"]),
    ("GroupsService.UpdateGroup", "Group acme/team/inner", "group", &["group.name=renamed"]),
    ("RolesService.UpdateRole", "Role acme/auditor", "role", &["role.capabilities=roles.list"]),
    (
        "IdentitiesService.UpdateIdentity",
        "Identity acme/team/build",
        "identity",
        &["identity.claim_match.subject=y", "update_mask=claim_match.subject"],
    ),
    ("IdentitiesService.UpdateIdentity", "Identity acme/batch", "identity", &["identity.company=c"]),
    (
        "IdentityProvidersService.UpdateIdentityProvider",
        "IdentityProvider acme/sso",
        "identity_provider",
        &["identity_provider.oidc.client_id=other", "update_mask=oidc.client_id"],
    ),
    (
        "AccountAssociationsService.UpdateAccountAssociation",
        "AccountAssociation acme",
        "account_association",
        &["account_association.amazon.account=000000000000", "update_mask=amazon"],
    ),
    ("v2.ReposService.UpdateRepo", "Repository acme/base", "repo", &["repo.description=other"]),
    ("UpdateRepoReadme", "Readme acme/base", "repo_readme", &["repo_readme.content=other"]),
    ("UpdateRepoPolicy", "RepositoryPolicy acme/base", "policy", &["policy.byte_quota=5"]),
    ("UpdateGroupPolicy", "GroupPolicy acme/team", "policy", &["policy.retention={\"keepDays\":1}"]),
];

/// Deletions past the files: a method, its field, the object, and what goes along with it.
const DELETIONS: &[(&str, &str, &str, &[&str])] = &[
    ("v2.RoleBindingsService.DeleteRoleBinding", "uid", "RoleBinding acme/team (acme/team/build, registry.push)", &[]),
    (
        "v2.ExternalGroupRoleMappingsService.DeleteExternalGroupRoleMapping",
        "uid",
        "GroupMapping acme/sso (staff, acme/auditor, acme)",
        &[],
    ),
    (
        "v2.SubscriptionsService.DeleteSubscription",
        "uid",
        "Subscription acme/team (https://hooks.example.com/…#3ecd3003)",
        &[],
    ),
    ("v2.ReposService.DeleteRepo", "uid", "Repository acme/team/follower", &["RepositoryPolicy acme/team/follower"]),
    ("libraries.Entitlements.Delete", "id", "LibraryEntitlement acme (JAVA)", &[]),
    ("DeleteBinding", "id", "LibraryPolicyBinding acme (JAVASCRIPT, LIBRARY_POLICY_BINDING_MODE_LOG)", &[]),
    ("DeletePolicy", "id", "LibraryPolicy acme/strict", &[]),
];

/// The paths of webhooks are often secrets, and plans are printed in the logs of CI jobs.
async fn addresses_of_webhooks_are_shown_by_their_hosts(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let document = |path: &str| {
        format!(
            "kind: Group\npath: acme\n---\nkind: Subscription\npath: acme\nspec: {{sink: \"https://hooks.example.com/{path}\"}}\n"
        )
    };
    let file = desk.write("all.yaml", &document("hush-1"));
    let mut printed = Vec::new();
    for form in ["table", "json", "name"] {
        printed.push(text(&desk.run("diff", &file, &["-o", form]).await.stdout));
    }
    let made = desk.run("apply", &file, &[]).await;
    printed.push(ended(&made, 0) + &text(&made.stderr));
    desk.write("all.yaml", &document("hush-2"));
    printed.push(ended(&desk.run("diff", &file, &["--prune"]).await, 7));
    for text in &printed {
        assert!(!text.contains("hush") && text.contains("(https://hooks.example.com/…#"), "{text}");
    }
    let hashes: BTreeSet<&str> = printed[4].split('#').skip(1).filter_map(|rest| rest.get(..8)).collect();
    assert_eq!(hashes.len(), 2, "{}", printed[4]);
}

async fn each_kind_of_change_is_shown_and_repaired(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let file = desk.write("all.yaml", EVERYTHING);
    desk.apply(&file, &[]).await;
    for (method, label, member, fields) in CHANGES {
        let uid = format!("{member}.uid={}", uid_of(&desk, label).await);
        desk.call(method, &[&[uid.as_str()], *fields].concat()).await;
    }
    let plan = desk.diff(&file, &["--prune"], 7).await;
    let expected: BTreeSet<String> = CHANGES.iter().map(|(_, label, ..)| (*label).to_owned()).collect();
    assert_eq!(labels(&plan, "update").into_iter().collect::<BTreeSet<_>>(), expected, "{plan}");
    assert_eq!(labels(&plan, "create").len() + labels(&plan, "delete").len(), 0, "{plan}");
    let shown = ended(&desk.run("diff", &file, &[]).await, 7);
    for words in ["description: \"other\" -> \"A team\"", "name: \"renamed\" -> \"inner\"", "company: \"c\" -> none"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    desk.apply(&file, &["--prune"]).await;
    desk.diff(&file, &["--prune"], 0).await;

    for (method, field, label, _) in DELETIONS {
        let uid = uid_of(&desk, label).await;
        desk.call(method, &[&format!("{field}={uid}")]).await;
    }
    let plan = desk.diff(&file, &["--prune"], 7).await;
    let gone = DELETIONS.iter().flat_map(|(_, _, label, along)| [&[*label], *along].concat());
    let expected: BTreeSet<String> = gone.map(String::from).collect();
    assert_eq!(labels(&plan, "create").into_iter().collect::<BTreeSet<_>>(), expected, "{plan}");
    desk.apply(&file, &["--prune"]).await;
    desk.diff(&file, &["--prune"], 0).await;
}

/// Edits of the files: what they have now, and what they get.
const EDITS: &[(&str, &str)] = &[
    ("description: The organization, ", ""),
    ("{description: Reads, capabilities: [CAP_IAM_ROLES_LIST, groups.list]}", "{capabilities: [groups.list]}"),
    ("subjectPattern: \"repo:acme/.+\", audience: bowline, claims: {ref: main}", "subject: other"),
    (
        "awsIdentity: {awsAccount: \"123456789012\", arnPattern: \"arn:aws:sts::123456789012:assumed-role/batch/.+\", userIdPattern: \"[A-Z0-9]+:.+\"}",
        "claimMatch: {issuer: \"https://ci.example.com\", subject: batch}",
    ),
    (", additionalScopes: [email], groupsClaim: groups", ""),
    ("  google: {projectId: p, projectNumber: \"7\"}\n", ""),
    ("sync_config: {source: acme/base}", "bundles: [base]"),
    ("  bundles: [base, fips]\n  aliases: [\"nginx:latest\"]\n", ""),
    ("contents: {packages: [curl]}, ", ""),
    ("byteQuota: \"1000000\", retention: {keepLast: 5, keepPatterns: [\"release-.*\"]}", "retention: {keepDays: 2}"),
    ("policy: POLICY_CHAINGUARD_AND_UPSTREAM, cooldownDays: 3", "policy: POLICY_CHAINGUARD, cooldownDays: 4"),
    ("cooldownDays: 0, blockList: [{purl: \"pkg:npm/left-pad\"}], ", ""),
    ("mode: LIBRARY_POLICY_BINDING_MODE_LOG", "mode: LIBRARY_POLICY_BINDING_MODE_ENFORCED"),
    ("roleUid: registry.push", "roleUid: registry.pull"),
    ("https://hooks.example.com/bowline", "https://hooks.example.com/other"),
];

async fn edits_of_the_files_are_applied(server: &TestServer) {
    let desk = OperatorTerminal::new(server).await;
    let file = desk.write("all.yaml", EVERYTHING);
    desk.apply(&file, &[]).await;
    let edited = EDITS.iter().fold(EVERYTHING.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    });
    desk.write("all.yaml", &edited);
    let plan = desk.diff(&file, &["--prune"], 7).await;
    // A binding, a policy's binding and a subscription are other objects now.
    assert_eq!((labels(&plan, "create").len(), labels(&plan, "delete").len()), (3, 3), "{plan}");
    // Two edits are of one repository.
    assert_eq!(labels(&plan, "update").len(), EDITS.len() - 4, "{plan}");
    desk.apply(&file, &["--prune"]).await;
    desk.diff(&file, &["--prune"], 0).await;
    let export = desk.export("acme").await;
    for gone in ["awsIdentity", "sync_config", "left-pad", "projectNumber", "curl"] {
        assert!(!export.contains(gone), "{gone}: {export}");
    }
}

/// The UIDP of an object of the test's organization.
async fn uid_of(desk: &OperatorTerminal, label: &str) -> String {
    let (kind, path) = label.split_once(' ').expect("a path");
    let name = path.split(' ').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let only = |list: Value, matches: &dyn Fn(&Value) -> bool| {
        let items =
            list.as_object().and_then(|page| page.values().find_map(Value::as_array)).cloned().unwrap_or_default();
        let found = items.into_iter().find(|item| matches(item)).unwrap_or_else(|| panic!("no {label}"));
        found["uid"].as_str().or(found["id"].as_str()).expect("a UIDP").to_owned()
    };
    let named = |item: &Value| item["name"] == name;
    let any = |_: &Value| true;
    let org =
        only(desk.call("v2.GroupsService.ListGroups", &["uidp.in_root=true"]).await, &|item| item["name"] == "acme");
    let below = format!("uidp.descendants_of={org}");
    let parent = format!("parent_id={org}");
    match kind {
        "Group" | "GroupPolicy" if name == "acme" => org,
        "Group" | "GroupPolicy" => only(desk.call("v2.GroupsService.ListGroups", &[&below]).await, &named),
        "Role" => only(desk.call("v2.RolesService.ListRoles", &[&below]).await, &named),
        "Identity" => only(desk.call("v2.IdentitiesService.ListIdentities", &[&below]).await, &named),
        "IdentityProvider" => {
            only(desk.call("v2.IdentityProvidersService.ListIdentityProviders", &[&below]).await, &named)
        }
        "AccountAssociation" => org,
        "RoleBinding" => {
            let push = |item: &Value| item["role"]["name"] == "registry.push";
            only(desk.call("v2.RoleBindingsService.ListRoleBindings", &[&below]).await, &push)
        }
        "GroupMapping" => {
            only(desk.call("v2.ExternalGroupRoleMappingsService.ListExternalGroupRoleMappings", &[&below]).await, &any)
        }
        "Repository" | "Readme" | "RepositoryPolicy" => {
            only(desk.call("v2.ReposService.ListRepos", &[&below]).await, &named)
        }
        "LibraryEntitlement" => only(desk.call("libraries.Entitlements.List", &[&parent]).await, &any),
        "LibraryPolicy" => only(desk.call("LibraryPolicies.ListPolicies", &[&parent]).await, &named),
        "LibraryPolicyBinding" => only(desk.call("ListBindings", &[&parent]).await, &any),
        "Subscription" => only(desk.call("v2.SubscriptionsService.ListSubscriptions", &[&below]).await, &any),
        other => panic!("no list of {other}"),
    }
}

by_engine!(multi_thread: an_export_applied_elsewhere_exports_the_same);
each_engine!(
    multi_thread:
    each_kind_of_change_is_shown_and_repaired,
    edits_of_the_files_are_applied,
    addresses_of_webhooks_are_shown_by_their_hosts
);
