//! The changes that `golden_events.rs` makes: one for each type of event.

use serde_json::{Value, json};

use crate::contents::digest;

#[path = "golden_steps_libraries.rs"]
mod libraries;

/// Who makes a change.
#[derive(Clone, Copy)]
pub(crate) enum Caller {
    Operator,
    /// Someone with a token of the operator's provider, and not registered yet.
    Newcomer,
    /// Someone registered, without a role, whose address is of the organization's domain.
    Applicant,
}

/// One change. `{name}` in it stands for what is known by that name.
pub(crate) struct Step {
    /// The type of the event that it emits, in the middle.
    pub(crate) kind: &'static str,
    pub(crate) caller: Caller,
    /// Verb and path.
    pub(crate) what: &'static str,
    pub(crate) body: Value,
    /// What later steps need: where the answer has it, and the name it goes by.
    pub(crate) keeps: Vec<(&'static str, &'static str)>,
}

impl Step {
    pub(crate) fn event_type(&self) -> String {
        if self.kind.starts_with("dev.") { self.kind.into() } else { format!("dev.chainguard.api.{}.v1", self.kind) }
    }

    fn by(self, caller: Caller) -> Step {
        Step { caller, ..self }
    }

    fn keeping(mut self, pointer: &'static str, name: &'static str) -> Step {
        self.keeps.push((pointer, name));
        self
    }
}

fn step(kind: &'static str, what: &'static str, body: Value) -> Step {
    Step { kind, caller: Caller::Operator, what, body, keeps: Vec::new() }
}

/// All of them, in an order in which each has what it needs.
pub(crate) fn steps() -> Vec<Step> {
    let topics = [
        groups_roles_identities(),
        role_bindings(),
        repositories(),
        registry(),
        transfers(),
        vulnerabilities(),
        subscriptions(),
        libraries::steps(),
        account_associations(),
        identity_providers(),
        scim(),
        mappings(),
        people(),
        endings(),
    ];
    topics.into_iter().flatten().collect()
}

fn groups_roles_identities() -> Vec<Step> {
    let group = json!({ "name": "team", "description": "d" });
    let role = json!({ "name": "reader", "capabilities": ["CAP_REPO_LIST"] });
    let claims = json!({ "issuer": "https://issuer.example.com", "subject": "workload" });
    let identity = json!({ "name": "machine", "claimMatch": claims });
    vec![
        step("iam.group.created", "POST /iam/v2/groups/{org}", group).keeping("/uid", "team"),
        step("iam.group.updated", "PATCH /iam/v2/groups/{team}", json!({ "description": "other" })),
        step("iam.roles.created", "POST /iam/v2/roles/{team}", role).keeping("/uid", "role"),
        step("iam.roles.updated", "PATCH /iam/v2/roles/{role}", json!({ "description": "reads" })),
        step("iam.identity.created", "POST /iam/v2/identities/{team}", identity).keeping("/uid", "machine"),
        step("iam.identity.updated", "PATCH /iam/v2/identities/{machine}", json!({ "description": "d" })),
    ]
}

fn role_bindings() -> Vec<Step> {
    let binding = |identity: &str| json!({ "identityUid": identity, "roleUid": "{role}" });
    let request = |identity: &str| json!({ "roleBinding": binding(identity) });
    let batch = json!({ "parent": "{team}", "requests": [request("{machine}"), request("{other}")] });
    vec![
        step("iam.rolebindings.created", "POST /iam/v2/roleBindings/{team}", binding("{machine}"))
            .keeping("/uid", "binding"),
        step("iam.rolebindings.updated", "PATCH /iam/v2/roleBindings/{binding}", json!({ "identityUid": "{other}" })),
        step("iam.rolebindings.deleted", "DELETE /iam/v2/roleBindings/{binding}", Value::Null),
        step("iam.rolebindings.created.batch", "POST /iam/v2/roleBindings:batchCreate", batch),
    ]
}

fn repositories() -> Vec<Step> {
    vec![
        step("platform.registry.repo.created", "POST /registry/v2/repos/{team}", json!({ "name": "web" }))
            .keeping("/uid", "repo"),
        step("platform.registry.repo.updated", "PATCH /registry/v2/repos/{repo}", json!({ "description": "d" })),
        step("platform.registry.repo.deleted", "DELETE /registry/v2/repos/{repo}", Value::Null),
    ]
}

/// What is in a repository: a manifest is in it already.
fn registry() -> Vec<Step> {
    // A report of Grype that found nothing.
    let report = "eyJtYXRjaGVzIjogW10sICJkZXNjcmlwdG9yIjogeyJ2ZXJzaW9uIjogIjAuOSJ9fQ==";
    let chart = json!({ "sourceRepoId": "{charted}", "tag": "1.0.0" });
    let scan = json!({ "digest": digest('a'), "scanner": "SCANNER_NAME_GRYPE", "report": report });
    vec![
        step("platform.registry.tag.created", "POST /registry/v1/tags/{scanned}", json!({ "name": "latest" }))
            .keeping("/id", "tag"),
        step("platform.registry.tag.updated", "PUT /registry/v1/tags/{tag}", json!({ "name": "stable" })),
        step("platform.registry.tag.deleted", "DELETE /registry/v1/tags/{tag}", Value::Null),
        step("platform.registry.chart.added", "POST /registry/v1/repos/{org}:addChart", chart)
            .keeping("/repos/0/id", "added"),
        step("dev.bowline.registry.scan_report.stored.v1", "POST /scans/v1/repos/{scanned}/reports", scan),
        step(
            "dev.bowline.registry.images.deleted.v1",
            "POST /images/v1/repos/{scanned}:deleteImages",
            json!({ "digests": [digest('b')] }),
        ),
        step(
            "dev.bowline.registry.policy.updated.v1",
            "PATCH /registrypolicies/v1/repos/{scanned}",
            json!({ "public": true, "retention": { "keepPatterns": ["release-.*"] } }),
        ),
        step(
            "dev.bowline.registry.image_policy.updated.v1",
            "PATCH /imagepolicies/v1/scopes/{scanned}",
            json!({ "graceDays": 7, "rules": [{ "name": "listed", "mode": "IMAGE_POLICY_MODE_LOG", "sbom": {} }] }),
        ),
        step(
            "dev.bowline.registry.image_exception.created.v1",
            "POST /imagepolicies/v1/scopes/{scanned}/exceptions",
            json!({ "digest": digest('a'), "expireTime": "{tomorrow}", "justification": "j" }),
        )
        .keeping("/exceptions/0/id", "exception"),
        step(
            "dev.bowline.registry.image_exception.deleted.v1",
            "DELETE /imagepolicies/v1/scopes/{scanned}/exceptions/{exception}",
            Value::Null,
        ),
        step(
            "dev.bowline.registry.retention.applied.v1",
            "POST /registrypolicies/v1/repos/{scanned}:applyRetention",
            json!({}),
        ),
    ]
}

/// Advisories that an import brings.
fn transfers() -> Vec<Step> {
    let events = json!([{ "fixed": { "fixedVersion": "8.5.0-r1" } }]);
    let advisory =
        json!({ "artifactType": "apk", "artifactName": "curl", "aliases": ["CVE-2026-1"], "events": events });
    let body = json!({ "advisories": [advisory], "source": "https://example.com/security.json", "licence": "CC0-1.0" });
    vec![step("dev.bowline.advisories.imported.v1", "POST /advisorytransfers/v1/groups/{org}/import", body)]
}

fn vulnerabilities() -> Vec<Step> {
    let advisory = json!({
        "advisoryId": "CGA-2345-6789-cfgh", "artifactType": "apk", "artifactName": "curl",
        "artifactArchitecture": "x86_64", "componentName": "libcurl", "aliases": ["CVE-2026-1"],
    });
    let fixed = json!({ "fixed": { "fixedVersion": "8.1-r0" }, "findings": "e30=" });
    let events = "POST /vulnerabilities/v1/advisories/{advisory}/events";
    let changed = json!({ "artifactType": "apk", "artifactName": "curl", "aliases": ["CVE-2026-1", "CVE-2026-2"] });
    vec![
        step(
            "dev.bowline.vulnerabilities.advisory.created.v1",
            "POST /vulnerabilities/v1/advisories",
            json!({ "parentId": "{team}", "advisory": advisory }),
        )
        .keeping("/id", "advisory"),
        step("dev.bowline.vulnerabilities.advisory_event.created.v1", events, json!({ "advisoryEvent": fixed }))
            .keeping("/id", "advisory event"),
        step(
            "dev.bowline.vulnerabilities.advisory_event.reviewed.batch.v1",
            "POST /advisoryreviews/v1/groups/{team}:batchReviewEvents",
            json!({ "reviews": [{ "uid": "{advisory event}", "status": "REQUEST_CHANGES" }] }),
        ),
        step(
            "dev.bowline.vulnerabilities.advisory_event.updated.v1",
            "PUT /vulnerabilities/v1/advisory_events/{advisory event}",
            json!({ "status": "APPROVED" }),
        ),
        step(
            "dev.bowline.vulnerabilities.advisory.updated.v1",
            "PUT /vulnerabilities/v1/advisories/{advisory}",
            changed,
        ),
        step(
            "dev.bowline.vulnerabilities.advisory.deleted.v1",
            "DELETE /vulnerabilities/v1/advisories/{advisory}",
            Value::Null,
        ),
        step(
            "dev.bowline.vulnerabilities.settings.updated.v1",
            "PATCH /advisorysettings/v1/groups/{team}",
            json!({ "public": true, "secondReviewerRequired": true }),
        ),
    ]
}

fn subscriptions() -> Vec<Step> {
    let hook = json!({ "sink": "https://a.example/x?secret=1" });
    vec![
        step("events.subscription.created", "POST /events/v2/subscriptions/{team}", hook).keeping("/uid", "hook"),
        step(
            "dev.bowline.events.subscription.paused.v1",
            "POST /events/bowline/v1/subscriptions/{hook}:pause",
            json!({}),
        ),
        step(
            "dev.bowline.events.subscription.resumed.v1",
            "POST /events/bowline/v1/subscriptions/{hook}:resume",
            json!({}),
        ),
        step("events.subscription.deleted", "DELETE /events/v2/subscriptions/{hook}", Value::Null),
    ]
}

fn account_associations() -> Vec<Step> {
    let installations = json!([{ "installationId": "7", "name": "seven" }]);
    let everything = json!({
        "name": "accounts",
        "description": "all of them",
        "amazon": { "account": "123456789012" },
        "google": { "projectId": "p", "projectNumber": "42" },
        "azure": { "tenantId": "t", "clientIds": { "b": "2", "a": "1" } },
        "chainguard": { "serviceBindings": { "INGESTER": "x" } },
        "github": { "appInstallations": { "10": { "installations": installations } } },
    });
    vec![
        step("iam.account_associations.created", "POST /iam/v2/accountAssociations/{team}", everything),
        step(
            "iam.account_associations.updated",
            "PATCH /iam/v2/accountAssociations/{team}",
            json!({ "description": "d" }),
        ),
        step("iam.account_associations.deleted", "DELETE /iam/v2/accountAssociations/{team}", Value::Null),
    ]
}

/// What no event may hold.
pub(crate) const CLIENT_SECRET: &str = "hush";

fn identity_providers() -> Vec<Step> {
    let oidc = json!({
        "issuer": "https://login.example.com",
        "clientId": "client",
        "clientSecret": CLIENT_SECRET,
        "additionalScopes": ["email"],
        "groupsClaim": "groups",
        "correlationRule": "CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID",
        "pkceEnabled": true,
    });
    let provider = json!({ "name": "okta", "description": "d", "defaultRole": "{viewer}", "oidc": oidc });
    vec![
        step("iam.identity_providers.created", "POST /iam/v2/identityProviders/{org}", provider)
            .keeping("/uid", "provider"),
        step(
            "iam.identity_providers.updated",
            "PATCH /iam/v2/identityProviders/{provider}",
            json!({ "name": "other", "oidc": { "clientSecret": CLIENT_SECRET } }),
        ),
    ]
}

fn scim() -> Vec<Step> {
    vec![
        step(
            "iam.identity_providers.scim_token.generated",
            "POST /iam/v2/identityProviders/{provider}:generateScimToken",
            json!({ "neverExpires": true }),
        )
        .keeping("/etag", "first etag"),
        step(
            "iam.identity_providers.scim_token.regenerated",
            "POST /iam/v2/identityProviders/{provider}:regenerateScimToken",
            json!({ "etag": "{first etag}", "overlap": "60s" }),
        )
        .keeping("/etag", "second etag"),
        step(
            "iam.identity_providers.scim_enabled.updated",
            "POST /iam/v2/identityProviders/{provider}:setScimEnabled",
            json!({ "etag": "{second etag}", "enabled": true }),
        ),
        step(
            "iam.identity_providers.scim_token.revoked",
            "POST /iam/v2/identityProviders/{provider}:revokeScimToken",
            json!({}),
        ),
    ]
}

fn mappings() -> Vec<Step> {
    let mapping = json!({ "externalGroupId": "Admins", "roleUid": "{viewer}" });
    vec![
        step("iam.external_group_role_mappings.created", "POST /iam/v2/externalGroupRoleMappings/{provider}", mapping)
            .keeping("/uid", "mapping"),
        step(
            "iam.external_group_role_mappings.deleted",
            "DELETE /iam/v2/externalGroupRoleMappings/{mapping}",
            Value::Null,
        ),
        step(
            "iam.external_group_role_mappings.deleted.batch",
            "POST /iam/v2/externalGroupRoleMappings:batchDelete",
            json!({ "parent": "{spare provider}", "names": ["{first mapping}", "{second mapping}"] }),
        ),
    ]
}

fn people() -> Vec<Step> {
    let invite = json!({ "roleUid": "{viewer}", "email": "Ada@acme.example", "ttl": "3600s", "singleUse": true });
    vec![
        step("iam.group_invite.created", "POST /iam/v2/groupInvites/{org}", invite)
            .keeping("/uid", "invite")
            .keeping("/code", "code"),
        step("auth.registered", "POST /auth/v1/register", json!({ "code": "{code}" })).by(Caller::Newcomer),
        step("iam.group_invite.deleted", "DELETE /iam/v2/groupInvites/{invite}", Value::Null),
        step("dev.bowline.iam.group_access.requested.v1", "POST /iam/v2/groups/{org}:requestGroupAccess", json!({}))
            .by(Caller::Applicant),
        step("iam.terms.accepted", "POST /iam/v2/terms/{org}", json!({ "documentIds": ["terms-1"] })),
    ]
}

/// What was needed up to here goes.
fn endings() -> Vec<Step> {
    vec![
        step("iam.identity_providers.deleted", "DELETE /iam/v2/identityProviders/{provider}", Value::Null),
        step("iam.identity.deleted", "DELETE /iam/v1/identities/{machine}", Value::Null),
        step("iam.roles.deleted", "DELETE /iam/v2/roles/{spare}", Value::Null),
        step("iam.group.deleted", "DELETE /iam/v2/groups/{empty}", Value::Null),
    ]
}
