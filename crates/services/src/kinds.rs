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
/// A session of somebody who signed in.
pub(crate) const SESSION: &str = "bowline.dev/Session";
/// A link that works once.
pub(crate) const LINK: &str = "bowline.dev/Link";
