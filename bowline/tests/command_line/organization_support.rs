//! What tests of an organization as files share: an organization with everything, and the operator at a terminal.

use std::path::Path;
use std::process::Output;

use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::TestServer;
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

// Exit codes of the commands (docs/COMMAND-LINE.md).
pub(crate) const DONE: i32 = 0;
pub(crate) const FAILED: i32 = 1;
pub(crate) const USAGE: i32 = 2;
pub(crate) const NOT_ALLOWED: i32 = 4;
pub(crate) const CHANGES: i32 = 7;
pub(crate) const PARTLY_APPLIED: i32 = 8;

/// UIDP of a person, as documents have it.
const PERSON: &str = "0123456789abcdef0123456789abcdef01234567";

/// A terminal at which the operator is signed in, with files to apply.
pub(crate) struct OperatorTerminal {
    pub(crate) terminal: Terminal,
}

impl OperatorTerminal {
    pub(crate) async fn new(server: &TestServer) -> OperatorTerminal {
        let terminal = Terminal::new(server);
        terminal.sign_in_as(&server.operator().await);
        let desk = OperatorTerminal { terminal };
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
