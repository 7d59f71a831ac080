//! What can be done where: links of each page to the forms of methods, with what the page is about filled in.
//!
//! All links are shown to all: the call decides who may, and a refusal leads to its explanation.

use bowline_contract::bowline::advisories::v1::rpc::advisory_transfers::ImportAdvisories;
use bowline_contract::bowline::events::v1::rpc::deliveries_service::{Pause, Redeliver, Resume, TestDelivery};
use bowline_contract::bowline::iam::v1::rpc::access_requests::AnswerAccessRequest;
use bowline_contract::bowline::iam::v1::rpc::matchers::{TestClaims, TestIssuer};
use bowline_contract::bowline::libraries::v1::rpc::decisions::{EvaluatePolicy, PreviewPolicy};
use bowline_contract::bowline::operator::v1::rpc::operator::{GrantOperator, RotateKeys, RunTask};
use bowline_contract::bowline::people::v1::rpc::sessions::{EndAllSessions, UpdatePreferences};
use bowline_contract::bowline::registry::v1::rpc::images::DeleteImages;
use bowline_contract::bowline::registry::v1::rpc::registry_policies::{
    ApplyRetention, PreviewRetention, UpdateGroupPolicy, UpdateRepoPolicy,
};
use bowline_contract::bowline::registry::v1::rpc::replication::{CheckUpstream, FetchNow};
use bowline_contract::bowline::vulnerabilities::v1::rpc::advisory_settings_service::UpdateAdvisorySettings;
use bowline_contract::v1::libraries::rpc::library_policies::CreatePolicy;
use bowline_contract::v1::libraries::rpc::library_policy_bindings::CreateBinding;
use bowline_contract::v1::libraries::rpc::resolution_cache::Zap;
use bowline_contract::v1::vulnerabilities::rpc::advisories;
use bowline_contract::v2::events::rpc::subscriptions_service::{CreateSubscription, DeleteSubscription};
use bowline_contract::v2::iam::rpc::external_group_role_mappings_service::CreateExternalGroupRoleMapping;
use bowline_contract::v2::iam::rpc::group_invites_service::CreateGroupInvite;
use bowline_contract::v2::iam::rpc::groups_service::{CreateGroup, DeleteGroup, RequestGroupAccess, UpdateGroup};
use bowline_contract::v2::iam::rpc::identities_service::{CreateIdentity, DeleteIdentity, UpdateIdentity};
use bowline_contract::v2::iam::rpc::identity_providers_service::{
    CreateIdentityProvider, DeleteIdentityProvider, UpdateIdentityProvider,
};
use bowline_contract::v2::iam::rpc::role_bindings_service::CreateRoleBinding;
use bowline_contract::v2::iam::rpc::roles_service::{CreateRole, DeleteRole, UpdateRole};
use bowline_contract::v2::iam::rpc::terms_service::AcceptTerms;
use bowline_contract::v2::registry::rpc::repos_service::{CreateRepo, DeleteRepo, UpdateRepo, UpdateRepoReadme};
use bowline_contract::v2::registry::rpc::tags_service::CreateTag;
use maud::{Markup, html};

use crate::components::{action, edit};
use crate::pages::wizard::START;
use crate::query::address;
use crate::visit::Visit;

/// The links of the page that a visit shows; nothing for a page without any.
pub(crate) fn of(visit: &Visit) -> Markup {
    let links = match visit.path.strip_prefix("/console/").unwrap_or_default() {
        "" | "groups" | "group" => groups(visit),
        "identities" | "identity" | "roles" | "role" | "bindings" | "access" | "invites" | "providers" | "provider" => {
            access(visit)
        }
        "repositories" | "repository" | "tags" | "image" | "policy" => images(visit),
        "advisories" | "advisory" | "findings" => advisories_of(visit),
        "policies" | "blocked" | "decision" => packages(visit),
        "subscriptions" | "deliveries" => subscriptions(visit),
        "me" | "operator" => people(visit),
        _ => Vec::new(),
    };
    html! { @if !links.is_empty() { ul.actions aria-label="Actions" { @for link in &links { li { (link) } } } } }
}

fn groups(visit: &Visit) -> Vec<Markup> {
    let (scope, uid) = (visit.scope(), visit.query.text("uid"));
    if visit.path == "/console/" {
        return vec![action::<CreateGroup>(visit, "Create an organization", &[])];
    }
    if visit.path == "/console/groups" {
        return vec![action::<CreateGroup>(visit, "Create a group", &[("parent", &scope)])];
    }
    vec![
        edit::<UpdateGroup>(visit, "Edit", &[("group.uid", &uid)]),
        action::<CreateGroup>(visit, "Create a group below", &[("parent", &uid)]),
        edit::<UpdateGroupPolicy>(visit, "Edit the registry policy", &[("policy.uid", &uid)]),
        edit::<UpdateAdvisorySettings>(visit, "Edit the advisory settings", &[("settings.uid", &uid)]),
        action::<AcceptTerms>(visit, "Accept terms", &[("group", &uid)]),
        action::<RequestGroupAccess>(visit, "Ask for access", &[("group_uid", &uid)]),
        action::<DeleteGroup>(visit, "Delete", &[("uid", &uid)]),
    ]
}

fn access(visit: &Visit) -> Vec<Markup> {
    let (scope, uid) = (visit.scope(), visit.query.text("uid"));
    let parent = [("parent", scope.as_str())];
    match visit.path {
        "/console/identities" => vec![
            html! { a.action href=(address(START, &[("in", &scope)])) { "Let a workload sign in" } },
            action::<CreateIdentity>(visit, "Create an identity", &parent),
            action::<TestClaims>(visit, "Test claims", &parent),
            action::<TestIssuer>(visit, "Test an issuer", &parent),
        ],
        "/console/identity" => vec![
            edit::<UpdateIdentity>(visit, "Edit", &[("identity.uid", &uid)]),
            action::<CreateRoleBinding>(visit, "Give it a role", &[("role_binding.identity_uid", &uid)]),
            action::<DeleteIdentity>(visit, "Delete", &[("uid", &uid)]),
        ],
        "/console/roles" => vec![action::<CreateRole>(visit, "Create a role", &parent)],
        "/console/role" => vec![
            edit::<UpdateRole>(visit, "Edit", &[("role.uid", &uid)]),
            action::<CreateRoleBinding>(visit, "Give it to an identity", &[("role_binding.role_uid", &uid)]),
            action::<DeleteRole>(visit, "Delete", &[("uid", &uid)]),
        ],
        "/console/invites" => vec![
            action::<CreateGroupInvite>(visit, "Create an invitation", &parent),
            action::<AnswerAccessRequest>(visit, "Answer a request for access", &[("group", &scope)]),
        ],
        "/console/providers" => vec![
            action::<CreateIdentityProvider>(visit, "Create an identity provider", &parent),
            action::<CreateExternalGroupRoleMapping>(visit, "Map a group to a role", &[]),
            action::<TestIssuer>(visit, "Test an issuer", &parent),
        ],
        "/console/provider" => vec![
            edit::<UpdateIdentityProvider>(visit, "Edit", &[("identity_provider.uid", &uid)]),
            action::<CreateExternalGroupRoleMapping>(visit, "Map a group to a role", &[("parent", &uid)]),
            action::<DeleteIdentityProvider>(visit, "Delete", &[("uid", &uid)]),
        ],
        _ => vec![action::<CreateRoleBinding>(visit, "Add a role binding", &parent)],
    }
}

fn images(visit: &Visit) -> Vec<Markup> {
    let (scope, uid, repo, digest) =
        (visit.scope(), visit.query.text("uid"), visit.query.text("repo"), visit.query.text("digest"));
    match visit.path {
        "/console/repositories" => vec![action::<CreateRepo>(visit, "Create a repository", &[("parent", &scope)])],
        "/console/repository" => vec![
            edit::<UpdateRepo>(visit, "Edit", &[("repo.uid", &uid)]),
            edit::<UpdateRepoReadme>(visit, "Edit the readme", &[("repo_readme.uid", &uid)]),
            edit::<UpdateRepoPolicy>(visit, "Edit the policy", &[("policy.uid", &uid)]),
            action::<CreateTag>(visit, "Tag an image", &[("parent", &uid)]),
            action::<CheckUpstream>(visit, "Check the upstream", &[("repo_uid", &uid)]),
            action::<FetchNow>(visit, "Fetch now", &[("repo_uid", &uid)]),
            action::<DeleteRepo>(visit, "Delete", &[("uid", &uid)]),
        ],
        "/console/tags" => vec![action::<CreateTag>(visit, "Tag an image", &[("parent", &repo)])],
        "/console/policy" => vec![
            edit::<UpdateRepoPolicy>(visit, "Edit", &[("policy.uid", &repo)]),
            action::<PreviewRetention>(visit, "Preview retention", &[("repo_uid", &repo)]),
            action::<ApplyRetention>(visit, "Apply retention", &[("repo_uid", &repo)]),
        ],
        _ => vec![
            action::<CreateTag>(visit, "Tag this image", &[("parent", &repo), ("tag.digest", &digest)]),
            action::<bowline_contract::bowline::registry::v1::rpc::images::PreviewDelete>(
                visit,
                "Preview the deletion",
                &[("repo_uid", &repo), ("digests", &digest)],
            ),
            action::<DeleteImages>(visit, "Delete", &[("repo_uid", &repo), ("digests", &digest)]),
        ],
    }
}

fn advisories_of(visit: &Visit) -> Vec<Markup> {
    let (scope, uid) = (visit.scope(), visit.query.text("uid"));
    match visit.path {
        "/console/advisory" => vec![
            action::<advisories::CreateAdvisoryEvent>(visit, "Add an event", &[("parent_id", &uid)]),
            edit::<advisories::Update>(visit, "Edit", &[("id", &uid)]),
            action::<advisories::Delete>(visit, "Delete", &[("id", &uid)]),
        ],
        _ => vec![
            action::<advisories::Create>(visit, "Create an advisory", &[("parent_id", &scope)]),
            action::<ImportAdvisories>(visit, "Import advisories", &[("parent", &scope)]),
        ],
    }
}

fn packages(visit: &Visit) -> Vec<Markup> {
    let scope = visit.scope();
    let (parent, parent_id) = ([("parent", scope.as_str())], [("parent_id", scope.as_str())]);
    vec![
        action::<CreatePolicy>(visit, "Create a policy", &parent_id),
        action::<CreateBinding>(visit, "Apply a policy to an ecosystem", &parent_id),
        action::<EvaluatePolicy>(visit, "Evaluate a draft", &parent),
        action::<PreviewPolicy>(visit, "Preview a draft over the last events", &parent),
        action::<Zap>(visit, "Purge the resolution cache", &parent_id),
    ]
}

fn subscriptions(visit: &Visit) -> Vec<Markup> {
    let (scope, uid) = (visit.scope(), visit.query.text("uid"));
    let one = [("uid", uid.as_str())];
    match visit.path {
        "/console/subscriptions" => {
            vec![action::<CreateSubscription>(visit, "Create a subscription", &[("parent", &scope)])]
        }
        _ => vec![
            action::<TestDelivery>(visit, "Send a test event", &one),
            action::<Pause>(visit, "Pause", &one),
            action::<Resume>(visit, "Resume", &one),
            action::<Redeliver>(visit, "Deliver all again", &[("uid", &uid), ("all", "true")]),
            action::<DeleteSubscription>(visit, "Delete", &one),
        ],
    }
}

fn people(visit: &Visit) -> Vec<Markup> {
    match visit.path {
        "/console/me" => vec![
            edit::<UpdatePreferences>(visit, "Edit your preferences", &[]),
            action::<EndAllSessions>(visit, "End all other sessions", &[("keep_current", "true")]),
        ],
        _ => vec![
            action::<RunTask>(visit, "Run a task", &[]),
            action::<RotateKeys>(visit, "Rotate the signing keys", &[]),
            action::<GrantOperator>(visit, "Make someone an operator", &[]),
        ],
    }
}
