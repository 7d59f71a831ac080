//! The organization: its groups, people, roles, workloads, provider and invitations.

use std::collections::BTreeMap;

use bowline_contract::Contract;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v2::iam::identity::claim_match::{Aud, Iss, Sub};
use bowline_contract::v2::iam::identity::{ClaimMatch, Relationship, StaticKeys};
use bowline_contract::v2::iam::identity_provider::{Configuration, Oidc};
use bowline_contract::v2::iam::rpc::external_group_role_mappings_service::CreateExternalGroupRoleMapping;
use bowline_contract::v2::iam::rpc::group_invites_service::CreateGroupInvite;
use bowline_contract::v2::iam::rpc::groups_service::CreateGroup;
use bowline_contract::v2::iam::rpc::identities_service::CreateIdentity;
use bowline_contract::v2::iam::rpc::identity_providers_service::CreateIdentityProvider;
use bowline_contract::v2::iam::rpc::role_bindings_service::CreateRoleBinding;
use bowline_contract::v2::iam::rpc::roles_service::CreateRole;
use bowline_contract::v2::iam::{
    CreateExternalGroupRoleMappingRequest, CreateGroupInviteRequest, CreateGroupRequest, CreateIdentityProviderRequest,
    CreateIdentityRequest, CreateRoleBindingRequest, CreateRoleRequest, ExternalGroupRoleMapping, Group, GroupInvite,
    Identity, IdentityProvider, OrgKind, Role, RoleBinding,
};
use bowline_server::StartError;

use crate::people::ISSUER;
use crate::world::{OPERATOR, World};

pub(crate) const NAME: &str = "acme";
/// The owner of the organization.
pub(crate) const OWNER: &str = "ada.park";
/// The analyst who writes advisories.
pub(crate) const ANALYST: &str = "cy.lindqvist";
/// The other person, who reviews advisories.
pub(crate) const REVIEWER: &str = "dee.okafor";
/// Changes repositories and policies.
pub(crate) const EDITOR: &str = "ben.ortiz";
/// Stores reports of scans.
pub(crate) const SCANNER: &str = "image-scanner";

const GROUPS: &[(&str, &str)] = &[
    ("platform", "Shared images and the gateway"),
    ("payments", "Everything that moves money"),
    ("web", "The shop"),
    ("data", "Events, the warehouse and its analysts"),
    ("security", "Advisories and their review"),
    ("upstreams", "Images of other registries, fetched on demand"),
];

/// Name, description, role, and the group that it is bound at; empty for the organization.
const PEOPLE: &[(&str, &str, &str, &str)] = &[
    (EDITOR, "Platform engineer", "editor", ""),
    (ANALYST, "Security analyst", "advisories.creator", "security"),
    (REVIEWER, "Head of product security", "advisories.admin", "security"),
    ("eli.novak", "Payments engineer", "editor", "payments"),
    ("fay.tanaka", "Web engineer", "registry.editor", "web"),
    ("gus.moreau", "Data engineer", "editor", "data"),
    ("hana.weiss", "Auditor", "viewer", ""),
    ("ivo.brandt", "Support engineer", "support reader", ""),
];

/// Roles that people have besides: person, role, group.
const MORE_ROLES: &[(&str, &str, &str)] = &[
    (EDITOR, "release manager", ""),
    ("hana.weiss", "advisories.viewer", "security"),
    ("eli.novak", "release manager", "payments"),
];

/// Machines that sign in while the directory is filled: name, description, role, group.
const MACHINES: &[(&str, &str, &str, &str)] = &[
    ("ci-platform", "Builds of the platform group", "registry.push", "platform"),
    ("ci-payments", "Builds of the payments group", "registry.push", "payments"),
    ("ci-web", "Builds of the web group", "registry.push", "web"),
    ("ci-data", "Builds of the data group", "registry.push", "data"),
    (SCANNER, "Scans images every week", "scan publisher", ""),
    ("cluster-production", "The production cluster", "registry.pull", ""),
    ("cluster-staging", "The staging cluster", "registry.pull", ""),
];

const GITHUB: &str = "https://token.actions.githubusercontent.com";
const GITLAB: &str = "https://gitlab.acme.example";
const KUBERNETES: &str = "https://kubernetes.acme.example/production";

/// Workloads by the claims of their issuer: name, issuer, subject (`~` before a pattern), role, group.
const WORKLOADS: &[(&str, &str, &str, &str, &str)] = &[
    ("github-gateway", GITHUB, "repo:acme/gateway:ref:refs/heads/main", "registry.push", "platform"),
    ("github-base", GITHUB, "~repo:acme/base:ref:refs/tags/v[0-9.]+", "registry.push", "platform"),
    ("github-storefront", GITHUB, "repo:acme/storefront:environment:production", "registry.push", "web"),
    ("github-checkout", GITHUB, "~repo:acme/checkout:.*", "registry.push", "web"),
    ("github-renovate", GITHUB, "repo:acme/renovate:ref:refs/heads/main", "viewer", ""),
    ("gitlab-payments-api", GITLAB, "project_path:payments/api:ref_type:branch:ref:main", "registry.push", "payments"),
    ("gitlab-ledger", GITLAB, "~project_path:payments/ledger:ref_type:tag:ref:v.*", "registry.push", "payments"),
    ("gitlab-warehouse", GITLAB, "project_path:data/warehouse:ref_type:branch:ref:main", "registry.push", "data"),
    ("k8s-payments", KUBERNETES, "system:serviceaccount:payments:default", "registry.pull", "payments"),
    ("k8s-web", KUBERNETES, "system:serviceaccount:web:default", "registry.pull", "web"),
    ("k8s-data", KUBERNETES, "~system:serviceaccount:data:[a-z-]+", "registry.pull", "data"),
    ("k8s-admission", KUBERNETES, "system:serviceaccount:security:admission", "support reader", ""),
];

/// Roles of the organization's own.
const ROLES: &[(&str, &str, &[Capability])] = &[
    (
        "scan publisher",
        "Stores reports of scanners, and reads what they are about",
        &[
            Capability::CapVulnReportCreate,
            Capability::CapVulnReportList,
            Capability::CapRepoList,
            Capability::CapTagList,
            Capability::CapManifestList,
        ],
    ),
    (
        "release manager",
        "Removes old releases, and sets how long they are kept",
        &[
            Capability::CapRepoList,
            Capability::CapRepoUpdate,
            Capability::CapManifestList,
            Capability::CapManifestDelete,
            Capability::CapTagList,
            Capability::CapTagDelete,
        ],
    ),
    (
        "support reader",
        "Reads repositories, tags and findings",
        &[
            Capability::CapIamGroupsList,
            Capability::CapRepoList,
            Capability::CapTagList,
            Capability::CapManifestList,
            Capability::CapVulnReportList,
            Capability::CapAdvisoriesList,
        ],
    ),
];

/// What the other parts need of the organization.
pub(crate) struct Organization {
    pub(crate) uid: String,
    groups: BTreeMap<&'static str, String>,
    roles: BTreeMap<String, String>,
}

impl Organization {
    /// The UIDP of a group; of the organization for an empty name.
    pub(crate) fn group(&self, name: &str) -> Result<String, StartError> {
        let group = if name.is_empty() { Some(&self.uid) } else { self.groups.get(name) };
        group.cloned().ok_or_else(|| StartError::Defect(format!("the demonstration has no group {name}")))
    }

    fn role(&self, name: &str) -> Result<String, StartError> {
        let role = self.roles.get(name).cloned();
        role.ok_or_else(|| StartError::Defect(format!("the demonstration has no role {name}")))
    }
}

/// Creates the organization with the operator, and everything in it with its owner, within three days.
pub(crate) async fn create(world: &mut World) -> Result<Organization, StartError> {
    world.move_to(0, 8);
    let organization = Group {
        name: NAME.into(),
        description: "Acme, an organization that does not exist".into(),
        verified: true,
        kind: OrgKind::Customer as i32,
        ..Group::default()
    };
    let request = CreateGroupRequest { parent: String::new(), group: Some(organization) };
    let uid = world.call::<CreateGroup>(OPERATOR, request).await?.uid;
    let roles = Contract::load().built_in_roles().iter().map(|role| (role.name.clone(), role.uid.clone())).collect();
    let mut made = Organization { uid, groups: BTreeMap::new(), roles };
    member(world, &made, OPERATOR, (OWNER, "Head of platform", "owner", "")).await?;
    for (name, description) in GROUPS {
        let group = Group { name: (*name).into(), description: (*description).into(), ..Group::default() };
        let request = CreateGroupRequest { parent: made.uid.clone(), group: Some(group) };
        made.groups.insert(name, world.call::<CreateGroup>(OWNER, request).await?.uid);
    }
    for (name, description, capabilities) in ROLES {
        let capabilities = capabilities.iter().map(|capability| *capability as i32).collect();
        let role = Role { name: (*name).into(), description: (*description).into(), capabilities, ..Role::default() };
        let request = CreateRoleRequest { parent: made.uid.clone(), role: Some(role) };
        made.roles.insert((*name).into(), world.call::<CreateRole>(OWNER, request).await?.uid);
    }
    world.move_to(0, 13);
    for member_of in PEOPLE.iter().chain(MACHINES) {
        member(world, &made, OWNER, *member_of).await?;
    }
    for (name, role, group) in MORE_ROLES {
        let identity = world.identity(name)?;
        bind(world, &made, OWNER, &identity, (role, group)).await?;
    }
    provider(world, &made).await?;
    world.move_to(1, 9);
    for workload in WORKLOADS {
        claims(world, &made, *workload).await?;
    }
    Ok(made)
}

/// An identity that signs in with the demonstration's own key, and its role.
async fn member(
    world: &mut World,
    organization: &Organization,
    by: &str,
    (name, description, role, group): (&str, &str, &str, &str),
) -> Result<(), StartError> {
    let keys =
        StaticKeys { issuer: ISSUER.into(), subject: name.into(), issuer_keys: world.jwks(), ..StaticKeys::default() };
    let identity =
        create_identity(world, organization, by, (name, description), Relationship::StaticKeys(keys)).await?;
    world.know(name, &identity);
    bind(world, organization, by, &identity, (role, group)).await
}

/// A workload that its issuer's tokens stand for.
async fn claims(
    world: &mut World,
    organization: &Organization,
    (name, issuer, subject, role, group): (&str, &str, &str, &str, &str),
) -> Result<(), StartError> {
    let subject = match subject.strip_prefix('~') {
        Some(pattern) => Sub::SubjectPattern(pattern.into()),
        None => Sub::Subject(subject.into()),
    };
    let claims = ClaimMatch {
        iss: Some(Iss::Issuer(issuer.into())),
        sub: Some(subject),
        aud: Some(Aud::Audience("https://api.acme.example".into())),
        ..ClaimMatch::default()
    };
    let about = (name, "Signs in with the token of its issuer");
    let identity = create_identity(world, organization, OWNER, about, Relationship::ClaimMatch(claims)).await?;
    bind(world, organization, OWNER, &identity, (role, group)).await
}

async fn create_identity(
    world: &mut World,
    organization: &Organization,
    by: &str,
    (name, description): (&str, &str),
    relationship: Relationship,
) -> Result<String, StartError> {
    let identity = Identity {
        name: name.into(),
        description: description.into(),
        relationship: Some(relationship),
        ..Identity::default()
    };
    let request = CreateIdentityRequest { parent: organization.uid.clone(), identity: Some(identity) };
    Ok(world.call::<CreateIdentity>(by, request).await?.uid)
}

async fn bind(
    world: &mut World,
    organization: &Organization,
    by: &str,
    identity: &str,
    (role, group): (&str, &str),
) -> Result<(), StartError> {
    let binding =
        RoleBinding { identity_uid: identity.into(), role_uid: organization.role(role)?, ..RoleBinding::default() };
    let request = CreateRoleBindingRequest { parent: organization.group(group)?, role_binding: Some(binding) };
    world.call::<CreateRoleBinding>(by, request).await?;
    Ok(())
}

/// The provider that people of the organization would sign in with, and what its groups may do.
async fn provider(world: &mut World, organization: &Organization) -> Result<(), StartError> {
    let oidc = Oidc {
        issuer: "https://login.acme.example".into(),
        client_id: "bowline".into(),
        client_secret: "not-a-secret-of-anything".into(),
        additional_scopes: vec!["email".into(), "profile".into(), "groups".into()],
        groups_claim: "groups".into(),
        ..Oidc::default()
    };
    let provider = IdentityProvider {
        name: "acme login".into(),
        description: "Sign-in of all people of Acme".into(),
        default_role: organization.role("viewer")?,
        configuration: Some(Configuration::Oidc(oidc)),
        ..IdentityProvider::default()
    };
    let request = CreateIdentityProviderRequest { parent: organization.uid.clone(), identity_provider: Some(provider) };
    let provider = world.call::<CreateIdentityProvider>(OWNER, request).await?.uid;
    for (group, role) in [("platform-engineers", "editor"), ("product-security", "advisories.viewer")] {
        let mapping = ExternalGroupRoleMapping {
            external_group_id: group.into(),
            role_uid: organization.role(role)?,
            ..ExternalGroupRoleMapping::default()
        };
        let request = CreateExternalGroupRoleMappingRequest {
            parent: provider.clone(),
            external_group_role_mapping: Some(mapping),
        };
        world.call::<CreateExternalGroupRoleMapping>(OWNER, request).await?;
    }
    Ok(())
}

/// Invitations that are open when the history ends.
pub(crate) async fn invite(world: &mut World, organization: &Organization) -> Result<(), StartError> {
    for (email, role, group) in
        [("jo.castillo@acme.example", "viewer", ""), ("kim.sato@acme.example", "editor", "payments")]
    {
        let invite = GroupInvite {
            role_uid: organization.role(role)?,
            email: email.into(),
            ttl: Some(prost_types::Duration { seconds: 7 * 24 * 3600, nanos: 0 }),
            single_use: true,
            ..GroupInvite::default()
        };
        let request = CreateGroupInviteRequest { parent: organization.group(group)?, group_invite: Some(invite) };
        world.call::<CreateGroupInvite>(OWNER, request).await?;
    }
    Ok(())
}
