//! Names of resource kinds, as `ResourceInfo` and the audit log carry them.

pub const GROUP: &str = "iam.chainguard.dev/Group";
pub const ROLE: &str = "iam.chainguard.dev/Role";
pub const IDENTITY: &str = "iam.chainguard.dev/Identity";
pub const IDENTITY_PROVIDER: &str = "iam.chainguard.dev/IdentityProvider";
/// A mapping of a provider's group to a role.
pub const EXTERNAL_GROUP_ROLE_MAPPING: &str = "iam.chainguard.dev/ExternalGroupRoleMapping";
/// The SCIM token of an identity provider, which goes by the provider's UIDP.
pub const SCIM_TOKEN: &str = "iam.chainguard.dev/ScimToken";
pub const ROLE_BINDING: &str = "iam.chainguard.dev/RoleBinding";
pub const TERMS_ACCEPTANCE: &str = "iam.chainguard.dev/TermsAcceptance";
pub const REPO: &str = "registry.chainguard.dev/Repo";
/// An invitation into a group.
pub const GROUP_INVITE: &str = "iam.chainguard.dev/GroupInvite";
/// A group's accounts elsewhere.
pub const ACCOUNT_ASSOCIATION: &str = "iam.chainguard.dev/AccountAssociation";
/// A person that a directory provisions.
pub const SCIM_USER: &str = "bowline.dev/ScimUser";
pub const SUBSCRIPTION: &str = "events.chainguard.dev/Subscription";
/// A session of someone who signed in.
pub const SESSION: &str = "bowline.dev/Session";
/// How a person wants to see things.
pub const PREFERENCES: &str = "bowline.dev/Preferences";
/// A request for access to an organization, identified by its UIDP.
pub const ACCESS_REQUEST: &str = "bowline.dev/AccessRequest";
/// A link that works once.
pub const LINK: &str = "bowline.dev/Link";
pub const TAG: &str = "registry.chainguard.dev/Tag";
/// A manifest of a repository.
pub const MANIFEST: &str = "registry.chainguard.dev/Manifest";
/// How an image is run.
pub const IMAGE_CONFIG: &str = "registry.chainguard.dev/ImageConfig";
/// The charts that deploy a repository's image.
pub const DEPLOYMENT: &str = "registry.chainguard.dev/Deployment";
/// Settings of an organization's registry.
pub const REGISTRY_SETTINGS: &str = "registry.chainguard.dev/RegistrySettings";
pub const CHART: &str = "registry.chainguard.dev/Chart";
/// An SBOM that is attached to an image.
pub const SBOM: &str = "registry.chainguard.dev/Sbom";
/// A package of a catalogue.
pub const PACKAGE: &str = "registry.chainguard.dev/Package";
/// What owners set for a repository or a group.
pub const REGISTRY_POLICY: &str = "bowline.dev/RegistryPolicy";
/// Rules that images of a repository or a group must satisfy.
pub const IMAGE_POLICY: &str = "bowline.dev/ImagePolicy";
/// The release cycles of products.
pub const RELEASE_CYCLES: &str = "bowline.dev/ReleaseCycles";
/// What a scanner found in a manifest.
pub const SCAN_REPORT: &str = "bowline.dev/ScanReport";
/// A blob of a repository.
pub const BLOB: &str = "registry.chainguard.dev/Blob";
/// A file of a package that a group hosts.
pub const PACKAGE_FILE: &str = "bowline.dev/PackageFile";
/// A version of a package that a group hosts.
pub const PACKAGE_VERSION: &str = "bowline.dev/PackageVersion";
/// A name for a version of a package that a group hosts.
pub const PACKAGE_TAG: &str = "bowline.dev/PackageTag";
/// Names of packages that belong to an organization.
pub const PACKAGE_RESERVATION: &str = "bowline.dev/PackageReservation";
/// A version of a package that is installed for some time although something withholds it.
pub const PACKAGE_EXCEPTION: &str = "bowline.dev/PackageException";
/// Who must approve such exceptions.
pub const EXCEPTION_APPROVAL: &str = "bowline.dev/ExceptionApproval";
/// A time after which no package may have been published.
pub const PACKAGE_FREEZE: &str = "bowline.dev/PackageFreeze";
/// Another package index that an organization takes packages from.
pub const PACKAGE_UPSTREAM: &str = "bowline.dev/PackageUpstream";
/// A statement about a vulnerability.
pub const ADVISORY: &str = "vulnerabilities.chainguard.dev/Advisory";
/// What happened to an advisory.
pub const ADVISORY_EVENT: &str = "vulnerabilities.chainguard.dev/AdvisoryEvent";
/// How a group reviews and publishes its advisories.
pub const ADVISORY_SETTINGS: &str = "bowline.dev/AdvisorySettings";
/// An import of records of vulnerabilities.
pub const RECORD_IMPORT: &str = "bowline.dev/RecordImport";
/// A package of a language ecosystem.
pub const ARTIFACT: &str = "libraries.chainguard.dev/Artifact";
/// An ecosystem that an organization may use.
pub const LIBRARY_ENTITLEMENT: &str = "libraries.chainguard.dev/Entitlement";
/// What an organization refuses to download.
pub const LIBRARY_POLICY: &str = "libraries.chainguard.dev/LibraryPolicy";
/// A policy in force.
pub const LIBRARY_POLICY_BINDING: &str = "libraries.chainguard.dev/LibraryPolicyBinding";
/// The memory of what an organization was served, which goes by its UIDP.
pub const RESOLUTION_CACHE: &str = "libraries.chainguard.dev/ResolutionCache";
/// A report of a malicious package.
pub const MALWARE: &str = "libraries.chainguard.dev/MalwareBlockListEntry";
