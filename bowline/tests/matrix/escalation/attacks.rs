//! What an attacker asks for: each request tries to give more than its caller has.

use bowline_contract::{Contract, MethodInfo, Verb};

/// A request that would give rights away. Names of the world stand in braces.
pub(super) struct Attack {
    /// The verb and the path.
    pub(super) what: &'static str,
    pub(super) body: &'static str,
    /// What of the request gives more, where a method has several ways.
    pub(super) by: &'static str,
}

const fn attack(what: &'static str, by: &'static str, body: &'static str) -> Attack {
    Attack { what, body, by }
}

/// More than a narrow caller holds.
const WIDE: &str =
    r#"{"name":"{name}","capabilities":["CAP_REPO_LIST","CAP_REPO_DELETE","CAP_IAM_ROLE_BINDINGS_CREATE"]}"#;
const WIDE_V1: &str = r#"{"name":"{name}","capabilities":["repo.list","repo.delete","role_bindings.create"]}"#;
const OWNER_FOR_PUPPET: &str = r#"{"identityUid":"{puppet}","roleUid":"{owner}"}"#;
const OWNER_FOR_PUPPET_V1: &str = r#"{"identity":"{puppet}","role":"{owner}"}"#;
const CLAIMS: &str = r#"{"name":"{name}","claimMatch":{"issuer":"{issuer}","subject":"{evil}"}}"#;
const PATTERNS: &str = r#"{"name":"{name}","claimMatch":{"issuer":"{issuer}","subjectPattern":"evil.*"}}"#;
const KEYS: &str =
    r#"{"name":"{name}","staticKeys":{"issuer":"https://evil.example","subject":"{evil}","issuerKeys":"{keys}"}}"#;
const KEYS_V1: &str =
    r#"{"name":"{name}","static":{"issuer":"https://evil.example","subject":"{evil}","issuerKeys":"{keys}"}}"#;
const AWS: &str =
    r#"{"name":"{name}","awsIdentity":{"awsAccount":"123456789012","arn":"arn:aws:iam::123456789012:role/evil"}}"#;
const SERVICE: &str = r#"{"name":"{name}","servicePrincipal":"SERVICE_PRINCIPAL_COSIGNED"}"#;
const SERVICE_V1: &str = r#"{"name":"{name}","servicePrincipal":"COSIGNED"}"#;
const OWNER_BY_PROVIDER: &str =
    r#"{"name":"{name}","defaultRole":"{owner}","oidc":{"issuer":"{issuer}","clientId":"own"}}"#;
const EVIL_CLIENT: &str = r#"{"name":"{name}","defaultRole":"{default}","oidc":{"issuer":"{issuer}","clientId":"evil-client","groupsClaim":"groups"}}"#;
const EVIL_ISSUER: &str =
    r#"{"name":"{name}","defaultRole":"{default}","oidc":{"issuer":"https://evil.example","clientId":"good-client"}}"#;
const EVIL_GROUPS: &str = r#"{"name":"{name}","defaultRole":"{default}","oidc":{"issuer":"{issuer}","clientId":"good-client","groupsClaim":"nicknames"}}"#;
const SOURCE: &str = r#"{"name":"{name}","sync_config":{"source":"registry.example.com/evil"}}"#;
const UPSTREAM: &str = r#"{"upstream":{"url":"https://registry.example.com/evil"}}"#;
const ASSOCIATION: &str =
    r#"{"name":"{name}","amazon":{"account":"123456789012"},"chainguard":{"serviceBindings":{"INGESTER":"{boss}"}}}"#;
const CHARTS: &str = r#"{"charts":[{"repo":"oci://evil.example","source":"evil"}]}"#;

/// Every method that changes who may do what, or what is served.
#[rustfmt::skip]
pub(super) const ATTACKS: &[Attack] = &[
    attack("POST /iam/v2/roles/{team}", "", WIDE),
    attack("PATCH /iam/v2/roles/{used}", "bound", WIDE),
    attack("PATCH /iam/v2/roles/{promised}", "promised", WIDE),
    attack("PATCH /iam/v2/roles/{mapped}", "mapped", WIDE),
    attack("PATCH /iam/v2/roles/{default}", "default", WIDE),
    attack("DELETE /iam/v2/roles/{used}", "", ""),
    attack("POST /iam/v1/roles/{team}", "", WIDE_V1),
    attack("PUT /iam/v1/roles/{used}", "bound", WIDE_V1),
    attack("PUT /iam/v1/roles/{promised}", "promised", WIDE_V1),
    attack("DELETE /iam/v1/roles/{promised}", "", ""),
    attack("POST /iam/v2/roleBindings/{team}", "", OWNER_FOR_PUPPET),
    attack("POST /iam/v2/roleBindings:batchCreate", "",
        r#"{"parent":"{team}","requests":[{"parent":"{team}","roleBinding":{"identityUid":"{puppet}","roleUid":"{owner}"}}]}"#),
    attack("PATCH /iam/v2/roleBindings/{puppet_binding}", "role", r#"{"roleUid":"{owner}"}"#),
    attack("PATCH /iam/v2/roleBindings/{boss_binding}", "identity", r#"{"identityUid":"{puppet}"}"#),
    attack("DELETE /iam/v2/roleBindings/{puppet_binding}", "", ""),
    attack("POST /iam/v1/rolebindings/{team}", "", OWNER_FOR_PUPPET_V1),
    attack("POST /iam/v1/rolebindings/batch/{team}", "", r#"[{"identity":"{puppet}","role":"{owner}"}]"#),
    attack("PUT /iam/v1/rolebindings/{puppet_binding}", "role", OWNER_FOR_PUPPET_V1),
    attack("PUT /iam/v1/rolebindings/{boss_binding}", "identity", OWNER_FOR_PUPPET_V1),
    attack("DELETE /iam/v1/rolebindings/{puppet_binding}", "", ""),
    attack("POST /iam/v1/accessRequests/{team}:answer", "", OWNER_FOR_PUPPET_V1),
    attack("POST /iam/v2/groupInvites/{team}", "", r#"{"roleUid":"{owner}","ttl":"3600s"}"#),
    attack("DELETE /iam/v2/groupInvites/{invite}", "", ""),
    attack("POST /iam/v1/group_invites/{team}", "", r#"{"role":"{owner}","ttl":"3600s"}"#),
    attack("DELETE /iam/v1/group_invites/{invite}", "", ""),
    attack("POST /iam/v2/identities/{team}", "claims", CLAIMS),
    attack("POST /iam/v2/identities/{team}", "keys", KEYS),
    attack("POST /iam/v2/identities/{team}", "patterns", PATTERNS),
    attack("POST /iam/v2/identities/{team}", "AWS", AWS),
    attack("POST /iam/v2/identities/{team}", "service principal", SERVICE),
    attack("PATCH /iam/v2/identities/{boss}", "claims", CLAIMS),
    attack("PATCH /iam/v2/identities/{boss}", "patterns", PATTERNS),
    attack("PATCH /iam/v2/identities/{boss}", "keys", KEYS),
    attack("PATCH /iam/v2/identities/{boss}", "AWS", AWS),
    attack("PATCH /iam/v2/identities/{boss}", "service principal", SERVICE),
    attack("DELETE /iam/v2/identities/{boss}", "", ""),
    attack("POST /iam/v1/identities/{team}", "claims", CLAIMS),
    attack("POST /iam/v1/identities/{team}", "patterns", PATTERNS),
    attack("POST /iam/v1/identities/{team}", "keys", KEYS_V1),
    attack("POST /iam/v1/identities/{team}", "AWS", AWS),
    attack("POST /iam/v1/identities/{team}", "service principal", SERVICE_V1),
    attack("PUT /iam/v1/identities/{boss}", "claims", CLAIMS),
    attack("PUT /iam/v1/identities/{boss}", "patterns", PATTERNS),
    attack("PUT /iam/v1/identities/{boss}", "keys", KEYS_V1),
    attack("PUT /iam/v1/identities/{boss}", "service principal", SERVICE_V1),
    attack("PUT /iam/v1/identities/{boss}", "AWS", AWS),
    attack("DELETE /iam/v1/identities/{boss}", "", ""),
    attack("POST /iam/v2/identityProviders/{team}", "default role", OWNER_BY_PROVIDER),
    attack("POST /iam/v2/identityProviders/{team}", "client", EVIL_CLIENT),
    attack("PATCH /iam/v2/identityProviders/{provider}", "default role", r#"{"defaultRole":"{owner}"}"#),
    attack("PATCH /iam/v2/identityProviders/{provider}", "client", r#"{"oidc":{"clientId":"evil-client"}}"#),
    attack("PATCH /iam/v2/identityProviders/{provider}", "issuer", r#"{"oidc":{"issuer":"https://evil.example"}}"#),
    attack("PATCH /iam/v2/identityProviders/{provider}", "groups claim", r#"{"oidc":{"groupsClaim":"nicknames"}}"#),
    attack("DELETE /iam/v2/identityProviders/{directory}", "", ""),
    attack("POST /iam/v1/identityProviders/{team}", "default role", OWNER_BY_PROVIDER),
    attack("POST /iam/v1/identityProviders/{team}", "client", EVIL_CLIENT),
    attack("PUT /iam/v1/identityProviders/{provider}", "default role", OWNER_BY_PROVIDER),
    attack("PUT /iam/v1/identityProviders/{provider}", "client", EVIL_CLIENT),
    attack("PUT /iam/v1/identityProviders/{provider}", "issuer", EVIL_ISSUER),
    attack("PUT /iam/v1/identityProviders/{provider}", "groups claim", EVIL_GROUPS),
    attack("DELETE /iam/v1/identityProviders/{directory}", "", ""),
    attack("POST /iam/v2/identityProviders/{provider}:generateScimToken", "", "{}"),
    attack("POST /iam/v2/identityProviders/{directory}:regenerateScimToken", "", r#"{"etag":"{etag}"}"#),
    attack("POST /iam/v2/identityProviders/{directory}:revokeScimToken", "", "{}"),
    attack("POST /iam/v2/identityProviders/{directory}:setScimEnabled", "", r#"{"etag":"{etag}","enabled":false}"#),
    attack("POST /iam/v1/identityProviders/{provider}:generateScimToken", "", "{}"),
    attack("POST /iam/v1/identityProviders/{directory}:regenerateScimToken", "", r#"{"etag":"{etag}"}"#),
    attack("POST /iam/v1/identityProviders/{directory}:revokeScimToken", "", "{}"),
    attack("POST /iam/v1/identityProviders/{directory}:setScimEnabled", "", r#"{"etag":"{etag}","enabled":false}"#),
    attack("POST /iam/v2/externalGroupRoleMappings/{provider}", "", r#"{"externalGroupId":"evil-group","roleUid":"{owner}"}"#),
    attack("DELETE /iam/v2/externalGroupRoleMappings/{mapping}", "", ""),
    attack("POST /iam/v2/externalGroupRoleMappings:batchDelete", "", r#"{"parent":"{provider}","names":["{mapping}"]}"#),
    attack("POST /iam/v1/externalGroupRoleMappings/{provider}", "", r#"{"externalGroupId":"evil-group","roleUidp":"{owner}"}"#),
    attack("DELETE /iam/v1/externalGroupRoleMappings/{mapping}", "", ""),
    attack("POST /iam/v1/externalGroupRoleMappings:batchDelete", "", r#"{"parentId":"{provider}","ids":["{mapping}"]}"#),
    attack("POST /iam/v2/groups/{team}", "", r#"{"name":"{name}"}"#),
    attack("PATCH /iam/v2/groups/{team}", "", r#"{"name":"{name}"}"#),
    attack("DELETE /iam/v2/groups/{child}", "", ""),
    attack("POST /iam/v1/groups/{team}", "", r#"{"name":"{name}"}"#),
    attack("PUT /iam/v1/groups/{team}", "", r#"{"name":"{name}"}"#),
    attack("DELETE /iam/v1/groups/{child}", "", ""),
    attack("POST /iam/v2/accountAssociations/{team}", "", ASSOCIATION),
    attack("PATCH /iam/v2/accountAssociations/{associated}", "", ASSOCIATION),
    attack("DELETE /iam/v2/accountAssociations/{associated}", "", ""),
    attack("POST /iam/v1/account_associations/{team}", "", ASSOCIATION),
    attack("PUT /iam/v1/account_associations/{associated}", "", ASSOCIATION),
    attack("DELETE /iam/v1/account_associations/{associated}", "", ""),
    attack("POST /registry/v2/repos/{team}", "source", SOURCE),
    attack("PATCH /registry/v2/repos/{repo}", "source", r#"{"sync_config":{"source":"registry.example.com/evil"}}"#),
    attack("DELETE /registry/v2/repos/{repo}", "", ""),
    attack("POST /registry/v1/repos/{team}", "source", SOURCE),
    attack("PUT /registry/v1/repos/{repo}", "source", SOURCE),
    attack("DELETE /registry/v1/repos/{repo}", "", ""),
    attack("PATCH /registrypolicies/v1/repos/{repo}", "public", r#"{"public":true}"#),
    attack("PATCH /registrypolicies/v1/repos/{repo}", "upstream", UPSTREAM),
    attack("PATCH /registrypolicies/v1/repos/{repo}", "retention", r#"{"retention":{"keepLast":1}}"#),
    attack("PATCH /registrypolicies/v1/groups/{team}", "public", r#"{"public":true}"#),
    attack("PATCH /registrypolicies/v1/groups/{team}", "upstream", UPSTREAM),
    attack("PATCH /registrypolicies/v1/groups/{team}", "retention", r#"{"retention":{"keepLast":1}}"#),
    attack("PUT /registry/v1/settings/{org}", "", r#"{"uniqueTags":true}"#),
    attack("POST /registry/v1/repos/{repo}/deployment", "", CHARTS),
    attack("PUT /registry/v1/repos/{repo}/deployment", "", CHARTS),
    attack("PATCH /advisorysettings/v1/groups/{team}", "public", r#"{"public":true}"#),
    attack("POST /events/v2/subscriptions/{team}", "", r#"{"sink":"https://evil.example"}"#),
    attack("POST /events/v1/subscriptions/{team}", "", r#"{"sink":"https://evil.example"}"#),
];

/// The method that a request reaches.
pub(super) fn method<'c>(contract: &'c Contract, what: &str) -> &'c MethodInfo {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    let verbs = [Verb::Get, Verb::Put, Verb::Post, Verb::Delete, Verb::Patch];
    let verb = verbs.into_iter().find(|known| known.name() == verb).expect("a verb");
    let found = contract.routes().find(Some(verb), path);
    contract.method(found.unwrap_or_else(|miss| panic!("{what}: {miss:?}")).method)
}
