//! Names of resource kinds, as `ResourceInfo` and the audit log carry them.

/// A group.
pub(crate) const GROUP: &str = "iam.chainguard.dev/Group";
/// A role.
pub(crate) const ROLE: &str = "iam.chainguard.dev/Role";
/// An identity.
pub(crate) const IDENTITY: &str = "iam.chainguard.dev/Identity";
/// A role binding.
pub(crate) const ROLE_BINDING: &str = "iam.chainguard.dev/RoleBinding";
/// A repository.
pub(crate) const REPO: &str = "registry.chainguard.dev/Repo";
/// A subscription.
pub(crate) const SUBSCRIPTION: &str = "events.chainguard.dev/Subscription";
