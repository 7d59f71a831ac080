use bowline_contract::Contract;
use bowline_transcode::Tables;
use serde_json::{Value, json};

use crate::terraform;

/// What the suite of Terraform applies: the words in capitals are replaced there.
const PRINTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/terraform/printed.tf");

fn printed(method: &str, request: &Value) -> Option<String> {
    let contract = Contract::load();
    let tables = Tables::new(contract.pool());
    let method = contract.by_full_name(method).unwrap();
    let mut wire = Vec::new();
    let id = tables.message(method.input.full_name()).unwrap();
    tables.from_json(id, request.to_string().as_bytes(), &mut wire).unwrap();
    terraform(&contract, &tables, method, &wire)
}

fn identities() -> Vec<(&'static str, Value)> {
    let claims = json!({
        "issuer": "https://issuer.example.com", "subject_pattern": "repo:acme/my\\.site:.+", "audience": "here",
        "claims": { "environment": "production" }, "claim_patterns": { "ref": "refs/heads/.*" },
    });
    let aws = json!({
        "aws_account": "123456789012", "arn_pattern": "arn:aws:sts::123456789012:assumed-role/build/.+",
        "user_id_pattern": "[A-Z0-9]+:.+",
    });
    vec![
        (
            "iam.v2.IdentitiesService.CreateIdentity",
            json!({ "parent": "PARENT", "identity": { "name": "printed job", "claim_match": claims } }),
        ),
        (
            "iam.v2.IdentitiesService.CreateIdentity",
            json!({ "parent": "PARENT", "identity": { "name": "printed aws", "aws_identity": aws } }),
        ),
        (
            "iam.v2.IdentitiesService.CreateIdentity",
            json!({ "parent": "PARENT",
                    "identity": { "name": "printed service", "service_principal": "SERVICE_PRINCIPAL_INGESTER" } }),
        ),
    ]
}

fn requests() -> Vec<(&'static str, Value)> {
    let provider = json!({
        "name": "printed sso", "default_role": "ROLE",
        "oidc": { "issuer": "https://sso.example.com", "client_id": "client", "additional_scopes": ["email"] },
    });
    let association = json!({
        "name": "printed accounts", "amazon": { "account": "123456789012" },
        "google": { "project_id": "project", "project_number": "1234" },
        "azure": { "tenant_id": "tenant", "client_ids": { "web": "one" } },
    });
    let repo = json!({
        "name": "printed-app", "description": "${not a template} %{nor this}", "catalog_tier": "CATALOG_TIER_APPLICATION",
        "bundles": ["featured"], "aliases": ["registry.example.com/app:latest"], "active_tags": ["1"],
    });
    let binding = json!({ "identity_uid": "IDENTITY", "role_uid": "ROLE" });
    let invite = json!({ "role_uid": "ROLE", "ttl": "604800s", "email": "ada@example.com" });
    let mut all = vec![(
        "iam.v2.GroupsService.CreateGroup",
        json!({ "parent": "PARENT", "group": { "name": "printed", "description": "a \"b\" \u{e9}\u{1f600}" } }),
    )];
    all.extend(identities());
    all.extend([
        (
            "iam.v2.RolesService.CreateRole",
            json!({ "parent": "PARENT", "role": { "name": "printed role",
                    "capabilities": ["CAP_IAM_GROUPS_LIST", "CAP_REPO_LIST"] } }),
        ),
        ("iam.v2.RoleBindingsService.CreateRoleBinding", json!({ "parent": "PARENT", "role_binding": binding })),
        (
            "iam.v2.IdentityProvidersService.CreateIdentityProvider",
            json!({ "parent": "PARENT", "identity_provider": provider }),
        ),
        ("iam.v2.GroupInvitesService.CreateGroupInvite", json!({ "parent": "PARENT", "group_invite": invite })),
        (
            "iam.v2.AccountAssociationsService.CreateAccountAssociation",
            json!({ "parent": "PARENT", "account_association": association }),
        ),
        ("registry.v2.ReposService.CreateRepo", json!({ "parent": "PARENT", "repo": repo })),
        (
            "registry.v2.TagsService.CreateTag",
            json!({ "parent": "REPO", "tag": { "name": "printed", "digest": format!("sha256:{}", "0".repeat(64)) } }),
        ),
        (
            "events.v2.SubscriptionsService.CreateSubscription",
            json!({ "parent": "PARENT", "subscription": { "sink": "https://sink.example.com/printed" } }),
        ),
    ]);
    all
}

/// `UPDATE_GOLDEN=1` writes the file again.
#[test]
fn the_suite_of_terraform_applies_what_is_printed() {
    let blocks: Vec<String> = requests()
        .iter()
        .map(|(method, request)| printed(&format!("chainguard.platform.{method}"), request).expect(method))
        .collect();
    let text = format!(
        "# What the console prints for requests that create: `UPDATE_GOLDEN=1 cargo test -p bowline-calls` writes it.\n\n{}\n",
        blocks.join("\n\n")
    );
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    if is_update {
        std::fs::write(PRINTED, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(PRINTED).unwrap(), text);
}

#[test]
fn readers_are_imported() {
    let one = json!({ "uid": "ab/cd" });
    let of = |method: &str| printed(&format!("chainguard.platform.{method}"), &one);
    assert_eq!(of("iam.v2.GroupsService.GetGroup").unwrap(), "terraform import chainguard_group.this ab/cd");
    assert_eq!(of("registry.v2.TagsService.GetTag").unwrap(), "terraform import chainguard_image_tag.this ab/cd");
    assert_eq!(of("iam.v2.GroupInvitesService.GetGroupInvite"), None, "the provider reads nothing of one");
    assert_eq!(of("iam.v2.GroupsService.DeleteGroup"), None);
    let hostile = json!({ "uid": "x\n$(y)" });
    assert_eq!(printed("chainguard.platform.iam.v2.GroupsService.GetGroup", &hostile), None);
}

#[test]
fn nothing_leaves_its_quotes_or_is_left_out_unsaid() {
    let role = json!({ "parent": "\"}\n${file(\"/etc/passwd\")}", "role": { "name": "1 \" }", "capabilities": [] } });
    let text = printed("chainguard.platform.iam.v2.RolesService.CreateRole", &role).unwrap();
    assert!(text.starts_with("resource \"chainguard_role\" \"this1____\" {\n"), "{text}");
    assert!(text.contains(r#"parent_id = "\"}\n$${file(\"/etc/passwd\")}""#), "{text}");
    let invite = json!({ "parent": "g", "group_invite": { "role_uid": "r", "ttl": "1s", "single_use": true } });
    let text = printed("chainguard.platform.iam.v2.GroupInvitesService.CreateGroupInvite", &invite).unwrap();
    assert!(text.contains("# The provider has no argument for group_invite.single_use."), "{text}");
    let provider = json!({ "parent": "g", "identity_provider": { "name": "sso", "default_role": "r",
        "oidc": { "issuer": "https://i", "client_id": "c", "client_secret": "hush" } } });
    let text =
        printed("chainguard.platform.iam.v2.IdentityProvidersService.CreateIdentityProvider", &provider).unwrap();
    assert!(text.contains("client_secret = var.client_secret\n") && !text.contains("hush"), "{text}");
    let overlay =
        json!({ "parent": "g", "repo": { "name": "r", "custom_overlay": { "environment": { "\n}": "x" } } } });
    let text = printed("chainguard.platform.registry.v2.ReposService.CreateRepo", &overlay).unwrap();
    assert!(
        text.contains("# The provider has no argument for repo.custom_overlay.") && !text.contains("\n}\n"),
        "{text}"
    );
}
