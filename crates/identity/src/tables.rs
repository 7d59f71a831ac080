//! The tables that this crate owns.

use bowline_store::tables::{OnDelete, TableDeclaration, message_with_ids, own_id, reference, value};

/// Every table of this crate, with what its columns hold.
pub const TABLES: &[TableDeclaration] = &[
    TableDeclaration {
        name: "access_requests",
        columns: &[
            reference("identity", "identities", OnDelete::Delete),
            reference("group_uid", "groups", OnDelete::Delete),
        ],
    },
    TableDeclaration {
        name: "account_associations",
        columns: &[
            reference("uid", "groups", OnDelete::Hook),
            reference("parent", "groups", OnDelete::Hook),
            own_id("org"),
            value("name"),
            value("description"),
            message_with_ids("spec", "chainguard.platform.iam.v2.AccountAssociation", &["uid"]),
        ],
    },
    TableDeclaration {
        name: "default_roles_given",
        columns: &[
            reference("provider", "identity_providers", OnDelete::Delete),
            reference(
                "person",
                "identities",
                OnDelete::Keep("a person who registers again does not get the role again"),
            ),
            reference("binding", "role_bindings", OnDelete::Keep("says which binding it was")),
        ],
    },
    TableDeclaration {
        name: "external_group_role_mappings",
        columns: &[
            own_id("uid"),
            reference("parent", "identity_providers", OnDelete::Hook),
            own_id("org"),
            value("external_group"),
            reference("role", "roles", OnDelete::Hook),
            reference("scope", "groups", OnDelete::Hook),
        ],
    },
    TableDeclaration {
        name: "group_invites",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Hook),
            own_id("org"),
            reference("role", "roles", OnDelete::Hook),
            value("email"),
            value("key_id"),
            reference("inviter", "identities", OnDelete::Keep("an invitation without its inviter gives nothing")),
            value("promised"),
            reference("narrowing", "groups", OnDelete::Keep("a narrowing to what is gone gives nothing")),
        ],
    },
    TableDeclaration {
        name: "operators",
        columns: &[
            reference("identity", "identities", OnDelete::Delete),
            value("role"),
            reference("granted_by", "identities", OnDelete::Keep("a record of who granted it")),
        ],
    },
    TableDeclaration {
        name: "groups",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Restrict("groups", None)),
            own_id("org"),
            value("name"),
            value("description"),
            value("resource_limits"),
        ],
    },
    TableDeclaration { name: "headless_sessions", columns: &[value("code"), value("public_key"), value("sealed")] },
    TableDeclaration {
        name: "identities",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Restrict("identities", None)),
            own_id("org"),
            value("name"),
            value("description"),
            value("email"),
            value("email_unverified"),
            value("company"),
            message_with_ids("relationship", "chainguard.platform.iam.v2.Identity", &["uid"]),
            value("issuer"),
            value("subject"),
        ],
    },
    TableDeclaration {
        name: "identity_metadata",
        columns: &[
            reference("identity", "identities", OnDelete::Delete),
            message_with_ids("metadata", "chainguard.platform.iam.v2.IdentityMetadata", &["uid"]),
        ],
    },
    TableDeclaration {
        name: "identity_providers",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Restrict("identity providers", None)),
            own_id("org"),
            value("name"),
            value("description"),
            reference("default_role", "roles", OnDelete::Hook),
            value("issuer"),
            value("client_id"),
            value("client_secret"),
            value("additional_scopes"),
            value("groups_claim"),
        ],
    },
    TableDeclaration {
        name: "mail_queue",
        columns: &[value("id"), value("recipient"), value("subject"), value("body")],
    },
    TableDeclaration { name: "one_time_links", columns: &[value("hash"), value("purpose")] },
    TableDeclaration {
        name: "preferences",
        columns: &[reference("identity", "identities", OnDelete::Delete), value("time_zone")],
    },
    TableDeclaration {
        name: "refresh_tokens",
        columns: &[
            value("hash"),
            value("family"),
            reference("session", "sessions", OnDelete::Hook),
            reference("identity", "identities", OnDelete::Hook),
            value("audiences"),
            reference("narrowing", "groups", OnDelete::Keep("a narrowing to what is gone gives nothing")),
        ],
    },
    TableDeclaration {
        name: "role_bindings",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Hook),
            own_id("org"),
            reference("identity", "identities", OnDelete::Hook),
            reference("role", "roles", OnDelete::Hook),
        ],
    },
    TableDeclaration {
        name: "roles",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Restrict("roles", None)),
            own_id("org"),
            value("name"),
            value("description"),
            value("capabilities"),
        ],
    },
    TableDeclaration {
        name: "scim_tokens",
        columns: &[reference("provider", "identity_providers", OnDelete::Hook), value("hash"), value("previous_hash")],
    },
    TableDeclaration {
        name: "scim_users",
        columns: &[
            own_id("uid"),
            reference("provider", "identity_providers", OnDelete::Hook),
            own_id("org"),
            value("external_id"),
            value("user_name"),
            reference("person", "identities", OnDelete::Keep("a directory may provision people who never signed in")),
            value("resource"),
        ],
    },
    TableDeclaration {
        name: "session_groups",
        columns: &[reference("session", "sessions", OnDelete::Hook), value("external_group")],
    },
    TableDeclaration {
        name: "sessions",
        columns: &[
            own_id("id"),
            reference("identity", "identities", OnDelete::Hook),
            reference("provider", "identity_providers", OnDelete::Hook),
            value("cookie_hash"),
        ],
    },
    TableDeclaration {
        name: "terms_acceptances",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Hook),
            own_id("org"),
            value("document"),
            reference("accepted_by", "identities", OnDelete::Keep("a record of the past")),
        ],
    },
];
