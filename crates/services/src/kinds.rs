//! Names of resource kinds, as `ResourceInfo` and the audit log carry them.

/// A group.
pub(crate) const GROUP: &str = "iam.chainguard.dev/Group";
/// A role.
pub(crate) const ROLE: &str = "iam.chainguard.dev/Role";
/// An identity.
pub(crate) const IDENTITY: &str = "iam.chainguard.dev/Identity";
/// A role binding.
pub(crate) const ROLE_BINDING: &str = "iam.chainguard.dev/RoleBinding";
/// An accepted document.
pub(crate) const TERMS_ACCEPTANCE: &str = "iam.chainguard.dev/TermsAcceptance";
/// A repository.
pub(crate) const REPO: &str = "registry.chainguard.dev/Repo";
/// An invitation into a group.
pub(crate) const GROUP_INVITE: &str = "iam.chainguard.dev/GroupInvite";
/// A group's accounts elsewhere.
pub(crate) const ACCOUNT_ASSOCIATION: &str = "iam.chainguard.dev/AccountAssociation";
/// A tag.
pub(crate) const TAG: &str = "registry.chainguard.dev/Tag";
/// A manifest of a repository.
pub(crate) const MANIFEST: &str = "registry.chainguard.dev/Manifest";
/// A blob of a repository.
pub(crate) const BLOB: &str = "registry.chainguard.dev/Blob";
