//! An organization as files: `export`, `diff` and `apply`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::{Engine, TestServer, by_engine, each_engine};
use serde_json::Value;

use crate::support::{Terminal, ended, text};

/// An organization with at least one of everything.
pub(crate) const EVERYTHING: &str = r#"
kind: Group
path: acme
spec: {description: The organization, kind: ORG_KIND_CUSTOMER, verified: true}
---
kind: Group
path: acme/team
spec: {description: A team}
---
kind: Group
path: acme/team/inner
---
kind: Role
path: acme/auditor
spec: {description: Reads, capabilities: [CAP_IAM_ROLES_LIST, groups.list]}
---
kind: Identity
path: acme/team/build
spec:
  description: Builds
  claimMatch: {issuer: "https://ci.example.com", subjectPattern: "repo:acme/.+", audience: bowline, claims: {ref: main}}
---
kind: Identity
path: acme/patterns
spec: {claimMatch: {issuerPattern: "https://ci\\.example\\.com/.*", subject: x, audiencePattern: "a|b", claimPatterns: {ref: "v.+"}}}
---
kind: Identity
path: acme/cluster
spec: {staticKeys: {issuer: "https://k8s.example.com", subject: "system:serviceaccount:a:b", issuerKeys: '{"keys":[]}', audiences: [bowline]}}
---
kind: Identity
path: acme/batch
spec: {awsIdentity: {awsAccount: "123456789012", arnPattern: "arn:aws:sts::123456789012:assumed-role/batch/.+", userIdPattern: "[A-Z0-9]+:.+"}}
---
kind: Identity
path: acme/service
spec: {servicePrincipal: SERVICE_PRINCIPAL_INGESTER}
---
kind: IdentityProvider
path: acme/sso
spec:
  description: Staff
  defaultRole: viewer
  oidc: {issuer: "https://sso.example.com", clientId: bowline, clientSecret: {fromFile: secret.txt}, additionalScopes: [email], groupsClaim: groups}
---
kind: GroupMapping
path: acme/sso
spec: {externalGroupId: staff, roleUid: acme/auditor, scope: acme}
---
kind: AccountAssociation
path: acme
spec:
  name: clouds
  amazon: {account: "123456789012"}
  google: {projectId: p, projectNumber: "7"}
  chainguard: {serviceBindings: {INGESTER: acme/service}}
---
kind: AccountAssociation
path: acme/team
spec: {name: azure, azure: {tenantId: 00000000-0000-0000-0000-000000000001, clientIds: {a: 00000000-0000-0000-0000-000000000002}}}
---
kind: RoleBinding
path: acme/team
spec: {identityUid: acme/team/build, roleUid: registry.push}
---
kind: RoleBinding
path: acme
spec: {identityUid: acme/batch, roleUid: acme/auditor}
---
kind: RoleBinding
path: acme
spec: {identityUid: 0123456789abcdef0123456789abcdef01234567, roleUid: viewer}
---
kind: Repository
path: acme/team/follower
spec: {description: Follows, sync_config: {source: acme/base}}
---
kind: Repository
path: acme/base
spec:
  description: Base
  catalogTier: CATALOG_TIER_BASE
  bundles: [base, fips]
  aliases: ["nginx:latest"]
  activeTags: ["1", latest]
  customOverlay: {contents: {packages: [curl]}, environment: {A: "1"}, accounts: {runAs: "65532", users: [{username: u, uid: 7}]}}
---
kind: Readme
path: acme/base
spec: {content: {fromFile: base.md}}
---
kind: RepositoryPolicy
path: acme/team/follower
spec: {public: true, immutableTagPatterns: ["v.*"], byteQuota: "1000000", retention: {keepLast: 5, keepPatterns: ["release-.*"]}}
---
kind: RepositoryPolicy
path: acme/base
spec: {upstream: {url: "https://registry.example.com/nginx", tagPatterns: ["1.*"], username: u, password: {fromFile: secret.txt}}}
---
kind: GroupPolicy
path: acme/team
spec: {retention: {keepDays: 30}}
---
kind: GroupPolicy
path: acme
spec: {byteQuota: "5000000000"}
---
kind: LibraryEntitlement
path: acme
spec: {ecosystem: JAVA, policy: POLICY_CHAINGUARD_AND_UPSTREAM, cooldownDays: 3}
---
kind: LibraryPolicy
path: acme/strict
spec: {description: d, cooldownDays: 0, blockList: [{purl: "pkg:npm/left-pad"}], blockedLicenses: [GPL-3.0-only]}
---
kind: LibraryPolicyBinding
path: acme
spec: {policy: acme/strict, ecosystem: JAVASCRIPT, mode: LIBRARY_POLICY_BINDING_MODE_LOG}
---
kind: Subscription
path: acme/team
spec: {sink: "https://hooks.example.com/bowline"}
"#;

/// UIDP of a person, as documents have it.
const PERSON: &str = "0123456789abcdef0123456789abcdef01234567";

/// The operator at a terminal, with files.
pub(crate) struct Desk {
    pub(crate) terminal: Terminal,
}

impl Desk {
    pub(crate) async fn new(server: &TestServer) -> Desk {
        let terminal = Terminal::new(server);
        terminal.keep(&server.operator().await);
        let desk = Desk { terminal };
        register_person(server).await;
        desk.write("secret.txt", "s3cret\n");
        desk.write("base.md", "# Base\n\nText with `code`.\n");
        desk
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.terminal.home.path().join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.terminal.home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
        std::fs::write(path, content).expect("a file is written");
        self.path(name)
    }

    /// Runs `diff` or `apply` on a file.
    pub(crate) async fn run(&self, command: &str, file: &str, more: &[&str]) -> Output {
        let file = if Path::new(file).is_absolute() { file.to_owned() } else { self.path(file) };
        self.terminal.run(&[&[command, "-f", &file, "--yes", "--verbose"], more].concat()).await
    }

    pub(crate) async fn apply(&self, file: &str, more: &[&str]) -> Output {
        let output = self.run("apply", file, more).await;
        ended(&output, 0);
        output
    }

    /// The plan of `diff`, which ends with this code.
    pub(crate) async fn diff(&self, file: &str, more: &[&str], code: i32) -> Value {
        let printed = ended(&self.run("diff", file, &[more, &["-o", "json"]].concat()).await, code);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    /// A call as the operator.
    pub(crate) async fn call(&self, method: &str, fields: &[&str]) -> Value {
        let fields: Vec<&str> = fields.iter().flat_map(|field| ["-f", field]).collect();
        let output = self.terminal.run(&[&["api", method], fields.as_slice()].concat()).await;
        let printed = ended(&output, 0);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    pub(crate) async fn export(&self, path: &str) -> String {
        let output = self.terminal.run(&["export", path]).await;
        ended(&output, 0);
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

/// A person who has signed in once, with the same issuer and subject on every server.
async fn register_person(server: &TestServer) {
    let written = server.server().parts().storage.db.write(|tx| {
        Box::pin(async move {
            let sql = "INSERT INTO identities (uid, parent, org, name, description, email, email_unverified, company,
                                               relationship_type, relationship, issuer, subject, deactivated,
                                               created_at, updated_at)
                       VALUES ($1, '', $1, 'ada', '', '', '', '', 0, $2, 'https://sso.example.com', 'ada', $3, 0, 0)";
            let params = [Sql::from(PERSON), Sql::Bytes(b""), Sql::Bool(false)];
            tx.execute(sql, &params).await?;
            Ok::<_, Error>(())
        })
    });
    written.await.expect("the person is stored");
}

/// Methods that a command called, by their short names.
pub(crate) fn calls(output: &Output) -> Vec<String> {
    let lines = text(&output.stderr);
    let called = lines.lines().filter_map(|line| line.split_once(" over ").map(|(method, _)| method));
    called.map(|method| method.rsplit('.').next().unwrap_or_default().to_owned()).collect()
}

/// Labels of a plan's changes with an action.
pub(crate) fn labels(plan: &Value, action: &str) -> Vec<String> {
    let changes = plan["changes"].as_array().expect("changes").iter().filter(|change| change["action"] == action);
    changes.map(|change| change["object"].as_str().expect("a label").to_owned()).collect()
}

async fn an_export_applied_elsewhere_exports_the_same(engine: Engine) {
    let server = TestServer::start(engine).await;
    let desk = Desk::new(&server).await;
    let documents = EVERYTHING.matches("kind: ").count() - 1;
    let file = desk.write("all.yaml", EVERYTHING);
    let created = desk.apply(&file, &[]).await;
    let lines = text(&created.stderr);
    let count = lines.lines().filter(|line| line.starts_with("created ")).count();
    assert_eq!(count, documents, "{lines}");
    let first = desk.export("acme").await;

    let other_server = TestServer::start(engine).await;
    let other = Desk::new(&other_server).await;
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
        "Subscription acme/team (https://hooks.example.com/bowline)",
        &[],
    ),
    ("v2.ReposService.DeleteRepo", "uid", "Repository acme/team/follower", &["RepositoryPolicy acme/team/follower"]),
    ("libraries.Entitlements.Delete", "id", "LibraryEntitlement acme (JAVA)", &[]),
    ("DeleteBinding", "id", "LibraryPolicyBinding acme (JAVASCRIPT, LIBRARY_POLICY_BINDING_MODE_LOG)", &[]),
    ("DeletePolicy", "id", "LibraryPolicy acme/strict", &[]),
];

async fn each_kind_of_change_is_shown_and_repaired(server: &TestServer) {
    let desk = Desk::new(server).await;
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

/// The UIDP of an object of the test's organization.
async fn uid_of(desk: &Desk, label: &str) -> String {
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
each_engine!(multi_thread: each_kind_of_change_is_shown_and_repaired);
