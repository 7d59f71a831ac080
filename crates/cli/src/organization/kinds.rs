//! The kinds of objects that files hold: where each is listed, and how it is created, changed and deleted.
//!
//! To add a kind, add a line. Its fields, and what may be written of them, follow from its message; what its UIDPs name
//! is in `REFERENCES`.

/// A kind of object.
#[derive(Debug)]
pub(super) struct Kind {
    /// Word of `kind:` in a document.
    pub(super) name: &'static str,
    /// Message whose fields `spec` has.
    pub(super) message: &'static str,
    /// Method that lists the objects of an organization.
    pub(super) list: &'static str,
    /// Method that creates one; for settings it is the update.
    pub(super) create: &'static str,
    /// Method that changes one, if its fields can be changed at all.
    pub(super) update: Option<&'static str>,
    /// Method that deletes one; settings are emptied instead.
    pub(super) delete: Option<&'static str>,
    /// What `path` is the path of.
    pub(super) path: PathOf,
    /// Kind of the container, or of the subject.
    pub(super) within: &'static str,
    /// Whether only organizations contain it.
    pub(super) is_of_organization: bool,
    /// Fields that distinguish objects with the same path.
    pub(super) keys: &'static [&'static str],
}

/// What the path of a document names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathOf {
    /// The object: the path of its container, and its name.
    Itself,
    /// What contains it: the object has no name.
    Container,
    /// The resource whose settings it holds. Both have the same UIDP.
    Subject,
}

impl Kind {
    /// Whether its path ends in its name.
    pub(super) fn is_named(&self) -> bool {
        self.path == PathOf::Itself
    }

    /// The field of the message that has the UIDP.
    pub(super) fn uid_field(&self) -> &'static str {
        if self.message.starts_with("chainguard.platform.libraries.") { "id" } else { "uid" }
    }
}

macro_rules! iam {
    ($service:literal, $method:literal) => {
        concat!("chainguard.platform.iam.v2.", $service, "Service.", $method)
    };
}

macro_rules! libraries {
    ($method:literal) => {
        concat!("chainguard.platform.libraries.", $method)
    };
}

const POLICIES: &str = "bowline.registry.v1.RegistryPolicies.ListPolicies";

/// A named resource of a group, with a method of each kind.
const NAMED: Kind = Kind {
    name: "",
    message: "",
    list: "",
    create: "",
    update: None,
    delete: None,
    path: PathOf::Itself,
    within: GROUP,
    is_of_organization: false,
    keys: &[],
};

pub(super) const GROUP: &str = "Group";
pub(super) const REPOSITORY: &str = "Repository";
pub(super) const README: &str = "Readme";

/// The kinds, in the order in which their objects are created: what is referred to comes first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: GROUP,
        message: "chainguard.platform.iam.v2.Group",
        list: iam!("Groups", "ListGroups"),
        create: iam!("Groups", "CreateGroup"),
        update: Some(iam!("Groups", "UpdateGroup")),
        delete: Some(iam!("Groups", "DeleteGroup")),
        ..NAMED
    },
    Kind {
        name: "Role",
        message: "chainguard.platform.iam.v2.Role",
        list: iam!("Roles", "ListRoles"),
        create: iam!("Roles", "CreateRole"),
        update: Some(iam!("Roles", "UpdateRole")),
        delete: Some(iam!("Roles", "DeleteRole")),
        ..NAMED
    },
    Kind {
        name: "Identity",
        message: "chainguard.platform.iam.v2.Identity",
        list: iam!("Identities", "ListIdentities"),
        create: iam!("Identities", "CreateIdentity"),
        update: Some(iam!("Identities", "UpdateIdentity")),
        delete: Some(iam!("Identities", "DeleteIdentity")),
        ..NAMED
    },
    Kind {
        name: "IdentityProvider",
        message: "chainguard.platform.iam.v2.IdentityProvider",
        list: iam!("IdentityProviders", "ListIdentityProviders"),
        create: iam!("IdentityProviders", "CreateIdentityProvider"),
        update: Some(iam!("IdentityProviders", "UpdateIdentityProvider")),
        delete: Some(iam!("IdentityProviders", "DeleteIdentityProvider")),
        ..NAMED
    },
    Kind {
        name: "GroupMapping",
        message: "chainguard.platform.iam.v2.ExternalGroupRoleMapping",
        list: iam!("ExternalGroupRoleMappings", "ListExternalGroupRoleMappings"),
        create: iam!("ExternalGroupRoleMappings", "CreateExternalGroupRoleMapping"),
        delete: Some(iam!("ExternalGroupRoleMappings", "DeleteExternalGroupRoleMapping")),
        path: PathOf::Container,
        within: "IdentityProvider",
        keys: &["externalGroupId", "roleUid", "scope"],
        ..NAMED
    },
    Kind {
        name: "AccountAssociation",
        message: "chainguard.platform.iam.v2.AccountAssociation",
        list: iam!("AccountAssociations", "ListAccountAssociations"),
        create: iam!("AccountAssociations", "CreateAccountAssociation"),
        update: Some(iam!("AccountAssociations", "UpdateAccountAssociation")),
        delete: Some(iam!("AccountAssociations", "DeleteAccountAssociation")),
        path: PathOf::Subject,
        ..NAMED
    },
    Kind {
        name: "RoleBinding",
        message: "chainguard.platform.iam.v2.RoleBinding",
        list: iam!("RoleBindings", "ListRoleBindings"),
        create: iam!("RoleBindings", "CreateRoleBinding"),
        update: Some(iam!("RoleBindings", "UpdateRoleBinding")),
        delete: Some(iam!("RoleBindings", "DeleteRoleBinding")),
        path: PathOf::Container,
        keys: &["identityUid", "roleUid"],
        ..NAMED
    },
    Kind {
        name: REPOSITORY,
        message: "chainguard.platform.registry.v2.Repo",
        list: "chainguard.platform.registry.v2.ReposService.ListRepos",
        create: "chainguard.platform.registry.v2.ReposService.CreateRepo",
        update: Some("chainguard.platform.registry.v2.ReposService.UpdateRepo"),
        delete: Some("chainguard.platform.registry.v2.ReposService.DeleteRepo"),
        ..NAMED
    },
    Kind {
        name: README,
        message: "chainguard.platform.registry.v2.RepoReadme",
        // The only list that has the texts.
        list: "chainguard.platform.registry.Registry.ListRepos",
        create: "chainguard.platform.registry.v2.ReposService.UpdateRepoReadme",
        update: Some("chainguard.platform.registry.v2.ReposService.UpdateRepoReadme"),
        path: PathOf::Subject,
        within: REPOSITORY,
        ..NAMED
    },
    Kind {
        name: "RepositoryPolicy",
        message: "bowline.registry.v1.RegistryPolicy",
        list: POLICIES,
        create: "bowline.registry.v1.RegistryPolicies.UpdateRepoPolicy",
        update: Some("bowline.registry.v1.RegistryPolicies.UpdateRepoPolicy"),
        path: PathOf::Subject,
        within: REPOSITORY,
        ..NAMED
    },
    Kind {
        name: "GroupPolicy",
        message: "bowline.registry.v1.RegistryPolicy",
        list: POLICIES,
        create: "bowline.registry.v1.RegistryPolicies.UpdateGroupPolicy",
        update: Some("bowline.registry.v1.RegistryPolicies.UpdateGroupPolicy"),
        path: PathOf::Subject,
        ..NAMED
    },
    Kind {
        name: "LibraryEntitlement",
        message: "chainguard.platform.libraries.Entitlement",
        list: libraries!("Entitlements.List"),
        create: libraries!("Entitlements.Create"),
        // It replaces what there is of an ecosystem.
        update: Some(libraries!("Entitlements.Create")),
        delete: Some(libraries!("Entitlements.Delete")),
        path: PathOf::Container,
        is_of_organization: true,
        keys: &["ecosystem"],
        ..NAMED
    },
    Kind {
        name: "LibraryPolicy",
        message: "chainguard.platform.libraries.LibraryPolicy",
        list: libraries!("LibraryPolicies.ListPolicies"),
        create: libraries!("LibraryPolicies.CreatePolicy"),
        update: Some(libraries!("LibraryPolicies.UpdatePolicy")),
        delete: Some(libraries!("LibraryPolicies.DeletePolicy")),
        is_of_organization: true,
        ..NAMED
    },
    Kind {
        name: "LibraryPolicyBinding",
        message: "chainguard.platform.libraries.LibraryPolicyBinding",
        list: libraries!("LibraryPolicyBindings.ListBindings"),
        create: libraries!("LibraryPolicyBindings.CreateBinding"),
        update: Some(libraries!("LibraryPolicyBindings.UpdateBinding")),
        delete: Some(libraries!("LibraryPolicyBindings.DeleteBinding")),
        path: PathOf::Container,
        is_of_organization: true,
        keys: &["ecosystem", "mode"],
        ..NAMED
    },
    Kind {
        name: "Subscription",
        message: "chainguard.platform.events.v2.Subscription",
        list: "chainguard.platform.events.v2.SubscriptionsService.ListSubscriptions",
        create: "chainguard.platform.events.v2.SubscriptionsService.CreateSubscription",
        delete: Some("chainguard.platform.events.v2.SubscriptionsService.DeleteSubscription"),
        path: PathOf::Container,
        keys: &["sink"],
        ..NAMED
    },
];

/// Fields with the UIDP of another object, and its kind. Files have paths there.
pub(super) const REFERENCES: &[(&str, &str)] = &[
    ("chainguard.platform.iam.v2.IdentityProvider.default_role", "Role"),
    ("chainguard.platform.iam.v2.ExternalGroupRoleMapping.role_uid", "Role"),
    ("chainguard.platform.iam.v2.ExternalGroupRoleMapping.scope", GROUP),
    ("chainguard.platform.iam.v2.RoleBinding.identity_uid", "Identity"),
    ("chainguard.platform.iam.v2.RoleBinding.role_uid", "Role"),
    ("chainguard.platform.iam.v2.AccountAssociation.Chainguard.service_bindings", "Identity"),
    ("chainguard.platform.registry.v2.SyncConfig.source", REPOSITORY),
    ("chainguard.platform.libraries.LibraryPolicyBinding.policy", "LibraryPolicy"),
];

/// Fields that have a value of the server's where a file leaves them out: those are not compared.
pub(super) const DEFAULTED: &[&str] = &[
    // Set by the operator, and inherited by the groups below an organization.
    "chainguard.platform.iam.v2.Group.kind",
    "chainguard.platform.iam.v2.Group.verified",
    // 365 days from the creation.
    "chainguard.platform.iam.v2.Identity.StaticKeys.expiration_time",
    "chainguard.platform.iam.v2.IdentityProvider.OIDC.correlation_rule",
    "chainguard.platform.libraries.Entitlement.policy",
    "chainguard.platform.libraries.Entitlement.cooldown_days",
];

/// Fields that a synchronized repository has from its source, and that cannot be written there.
pub(super) const INHERITED: &[&str] = &["catalogTier", "bundles", "aliases", "activeTags"];

/// Fields that responses never have, where the contract says so in words alone.
pub(super) const WRITE_ONLY: &[&str] = &["chainguard.platform.iam.v2.IdentityProvider.OIDC.client_secret"];

/// The kind of this name.
pub(super) fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Position of a kind in the order of creation.
pub(super) fn rank(kind: &Kind) -> usize {
    KINDS.iter().position(|known| known.name == kind.name).unwrap_or(KINDS.len())
}

#[cfg(test)]
mod tests {
    use bowline_contract::Contract;

    use super::*;

    /// Methods that create something which files do not hold, and why.
    const OTHERS: &[(&str, &str)] = &[
        ("GroupInvitesService.CreateGroupInvite", "a secret with an end"),
        ("RoleBindingsService.BatchCreateRoleBindings", "the same as single bindings"),
        ("TagsService.CreateTag", "content, not configuration"),
        ("AWSMarketplaceSubscriptions.Create", "a vendor's sales"),
    ];

    #[test]
    fn every_resource_that_can_be_created_is_a_kind_or_has_a_reason() {
        let contract = Contract::load();
        let packages = [
            "chainguard.platform.iam.v2.",
            "chainguard.platform.events.v2.",
            "chainguard.platform.registry.v2.",
            "chainguard.platform.libraries.",
        ];
        let is_creation = |name: &str| name.rsplit('.').next().is_some_and(|method| method.contains("Create"));
        let created = contract.methods().iter().filter(|method| is_creation(&method.full_name));
        let created = created.filter(|method| packages.iter().any(|package| method.full_name.starts_with(package)));
        let missing: Vec<&str> = created
            .filter(|method| !KINDS.iter().any(|kind| kind.create == method.full_name))
            .filter(|method| !OTHERS.iter().any(|(name, why)| *name == method.short_name() && !why.is_empty()))
            .map(|method| method.full_name.as_str())
            .collect();
        assert!(missing.is_empty(), "no kind and no reason: {missing:?}");
    }
}
