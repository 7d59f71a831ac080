//! Names of resource kinds, as `ResourceInfo` and the audit log carry them.

/// A group.
pub(crate) const GROUP: &str = "iam.chainguard.dev/Group";
/// A role.
pub(crate) const ROLE: &str = "iam.chainguard.dev/Role";
/// An identity.
pub(crate) const IDENTITY: &str = "iam.chainguard.dev/Identity";
/// An identity provider.
pub(crate) const IDENTITY_PROVIDER: &str = "iam.chainguard.dev/IdentityProvider";
/// A mapping of a provider's group to a role.
pub(crate) const EXTERNAL_GROUP_ROLE_MAPPING: &str = "iam.chainguard.dev/ExternalGroupRoleMapping";
/// The SCIM token of an identity provider, which goes by the provider's UIDP.
pub(crate) const SCIM_TOKEN: &str = "iam.chainguard.dev/ScimToken";
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
/// A person that a directory provisions.
pub(crate) const SCIM_USER: &str = "bowline.dev/ScimUser";
/// A subscription.
pub(crate) const SUBSCRIPTION: &str = "events.chainguard.dev/Subscription";
/// A session of somebody who signed in.
pub(crate) const SESSION: &str = "bowline.dev/Session";
/// A link that works once.
pub(crate) const LINK: &str = "bowline.dev/Link";
/// A tag.
pub(crate) const TAG: &str = "registry.chainguard.dev/Tag";
/// A manifest of a repository.
pub(crate) const MANIFEST: &str = "registry.chainguard.dev/Manifest";
/// How an image is run.
pub(crate) const IMAGE_CONFIG: &str = "registry.chainguard.dev/ImageConfig";
/// The charts that deploy a repository's image.
pub(crate) const DEPLOYMENT: &str = "registry.chainguard.dev/Deployment";
/// Settings of an organization's registry.
pub(crate) const REGISTRY_SETTINGS: &str = "registry.chainguard.dev/RegistrySettings";
/// A Helm chart.
pub(crate) const CHART: &str = "registry.chainguard.dev/Chart";
/// An SBOM that is attached to an image.
pub(crate) const SBOM: &str = "registry.chainguard.dev/Sbom";
/// A package of a catalogue.
pub(crate) const PACKAGE: &str = "registry.chainguard.dev/Package";
/// What owners set for a repository or a group.
pub(crate) const REGISTRY_POLICY: &str = "bowline.dev/RegistryPolicy";
/// What a scanner found in a manifest.
pub(crate) const SCAN_REPORT: &str = "bowline.dev/ScanReport";
/// A blob of a repository.
pub(crate) const BLOB: &str = "registry.chainguard.dev/Blob";
/// A judgement about a vulnerability.
pub(crate) const ADVISORY: &str = "vulnerabilities.chainguard.dev/Advisory";
/// What happened to an advisory.
pub(crate) const ADVISORY_EVENT: &str = "vulnerabilities.chainguard.dev/AdvisoryEvent";
/// How a group reviews and publishes its advisories.
pub(crate) const ADVISORY_SETTINGS: &str = "bowline.dev/AdvisorySettings";
/// An import of records of vulnerabilities.
pub(crate) const RECORD_IMPORT: &str = "bowline.dev/RecordImport";
/// A package of a language ecosystem.
pub(crate) const ARTIFACT: &str = "libraries.chainguard.dev/Artifact";
/// An ecosystem that an organization may use.
pub(crate) const LIBRARY_ENTITLEMENT: &str = "libraries.chainguard.dev/Entitlement";
/// What an organization refuses to download.
pub(crate) const LIBRARY_POLICY: &str = "libraries.chainguard.dev/LibraryPolicy";
/// A policy in force.
pub(crate) const LIBRARY_POLICY_BINDING: &str = "libraries.chainguard.dev/LibraryPolicyBinding";
/// The memory of what an organization was served, which goes by its UIDP.
pub(crate) const RESOLUTION_CACHE: &str = "libraries.chainguard.dev/ResolutionCache";
/// A report of a malicious package.
pub(crate) const MALWARE: &str = "libraries.chainguard.dev/MalwareBlockListEntry";
