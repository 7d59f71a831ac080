//! Calls that are previewed and made.

use bowline_testkit::TestServer;
use serde_json::{Value, json};

use crate::previews::previewing;
use crate::support::{machine, role};

/// A call in both forms: to be previewed, and to be made.
pub(crate) struct Case {
    pub(crate) method: &'static str,
    /// Fields of the request message.
    request: Value,
    /// `"VERB /path"` and body of the call itself.
    pub(crate) real: (String, Value),
}

impl Case {
    pub(crate) fn new(method: &'static str, request: Value, real: String, body: Value) -> Case {
        Case { method, request, real: (real, body) }
    }

    /// The request of the preview.
    pub(crate) fn body(&self, server: &TestServer) -> Value {
        previewing(server, self.method, self.request.clone())
    }
}

/// A place with something of everything that the cases are about.
pub(crate) struct World {
    pub(crate) org: String,
    pub(crate) team: String,
    pub(crate) custom: String,
    pub(crate) repo: String,
    pub(crate) bound: String,
    pub(crate) binding: String,
}

pub(crate) async fn world(server: &TestServer) -> World {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let repo = server.repo(&team, "web").await;
    let custom = role(server, &org, "custom", &["CAP_REPO_LIST", "CAP_TAG_LIST"]).await;
    let bound = machine(server, &team, "robot").await.uid;
    let binding = server.bind(&bound, &custom, &team).await;
    World { org, team, custom, repo, bound, binding }
}

/// Calls that succeed one after the other.
#[expect(clippy::too_many_lines, reason = "one row a case")]
pub(crate) fn cases(world: &World, viewer: &str) -> Vec<Case> {
    let World { org, team, custom, repo, bound, binding } = world;
    let advisory_settings =
        json!({ "settings": { "uid": team, "secondReviewerRequired": true }, "updateMask": "secondReviewerRequired" });
    let policy = json!({ "uid": repo, "public": true, "byteQuota": "1000" });
    vec![
        Case::new(
            "chainguard.platform.iam.v2.GroupsService.CreateGroup",
            json!({ "parent": org, "group": { "name": "new" } }),
            format!("POST /iam/v2/groups/{org}"),
            json!({ "name": "new" }),
        ),
        Case::new(
            "chainguard.platform.iam.v2.GroupsService.UpdateGroup",
            json!({ "group": { "uid": team, "description": "ours" }, "updateMask": "description" }),
            format!("PATCH /iam/v2/groups/{team}?updateMask=description"),
            json!({ "description": "ours" }),
        ),
        Case::new(
            "chainguard.platform.iam.v2.RolesService.UpdateRole",
            json!({ "role": { "uid": custom, "capabilities": ["CAP_REPO_LIST", "CAP_REPO_CREATE"] }, "updateMask": "capabilities" }),
            format!("PATCH /iam/v2/roles/{custom}?updateMask=capabilities"),
            json!({ "capabilities": ["CAP_REPO_LIST", "CAP_REPO_CREATE"] }),
        ),
        Case::new(
            "chainguard.platform.iam.v2.RoleBindingsService.UpdateRoleBinding",
            json!({ "roleBinding": { "uid": binding, "roleUid": viewer }, "updateMask": "roleUid" }),
            format!("PATCH /iam/v2/roleBindings/{binding}?updateMask=roleUid"),
            json!({ "roleUid": viewer }),
        ),
        Case::new(
            "bowline.registry.v1.RegistryPolicies.UpdateRepoPolicy",
            json!({ "policy": policy, "updateMask": "public,byteQuota" }),
            format!("PATCH /registrypolicies/v1/repos/{repo}?updateMask=public,byteQuota"),
            json!({ "public": true, "byteQuota": "1000" }),
        ),
        Case::new(
            "chainguard.platform.registry.v2.ReposService.UpdateRepo",
            json!({ "repo": { "uid": repo, "description": "ours" }, "updateMask": "description" }),
            format!("PATCH /registry/v2/repos/{repo}?updateMask=description"),
            json!({ "description": "ours" }),
        ),
        Case::new(
            "chainguard.platform.registry.v2.ReposService.DeleteRepo",
            json!({ "uid": repo }),
            format!("DELETE /registry/v2/repos/{repo}"),
            Value::Null,
        ),
        Case::new(
            "chainguard.platform.iam.Roles.Create",
            json!({ "parentId": org, "role": { "name": "first", "capabilities": ["repo.list"] } }),
            format!("POST /iam/v1/roles/{org}"),
            json!({ "name": "first", "capabilities": ["repo.list"] }),
        ),
        Case::new(
            "bowline.vulnerabilities.v1.AdvisorySettingsService.UpdateAdvisorySettings",
            advisory_settings,
            format!("PATCH /advisorysettings/v1/groups/{team}?updateMask=secondReviewerRequired"),
            json!({ "secondReviewerRequired": true }),
        ),
        Case::new(
            "chainguard.platform.iam.v2.IdentitiesService.DeleteIdentity",
            json!({ "uid": bound }),
            format!("DELETE /iam/v2/identities/{bound}"),
            Value::Null,
        ),
        Case::new(
            "chainguard.platform.iam.v2.GroupsService.DeleteGroup",
            json!({ "uid": team }),
            format!("DELETE /iam/v2/groups/{team}"),
            Value::Null,
        ),
    ]
}
