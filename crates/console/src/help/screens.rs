//! What each screen is for: one paragraph.

/// The help of a screen.
pub(super) struct Screen {
    pub(super) path: &'static str,
    pub(super) title: &'static str,
    pub(super) text: &'static str,
}

const fn screen(path: &'static str, title: &'static str, text: &'static str) -> Screen {
    Screen { path, title, text }
}

/// All screens, in the order of the navigation.
pub(super) const SCREENS: &[Screen] = &[
    screen(
        "/console/",
        "Organizations",
        "The organizations in which you have a role. Choose one to see its home. To join another one, send your id, which is \
         on the page of your account, to one of its administrators, or redeem an invitation.",
    ),
    screen(
        "/console/home",
        "Home of an organization",
        "What needs attention, open findings, pulls, stored bytes, refused packages and the last changes of an organization or \
         group. Each figure leads to the list that it counts. A new organization has a list of first steps in their place.",
    ),
    screen(
        "/console/groups",
        "Groups",
        "Groups form a tree below each organization. A role that is given at a group is valid there and below. Groups cannot \
         be moved: create a new one, and move its content.",
    ),
    screen(
        "/console/group",
        "A group",
        "What is in a group, what its images store, and who changed something last. A group can be deleted once nothing is in \
         it: the refusal names what is left.",
    ),
    screen(
        "/console/identities",
        "Identities",
        "People and workloads that can have roles. A workload signs in with a token of its platform, such as GitHub Actions, \
         whose claims must match those of its identity; it needs no stored secret.",
    ),
    screen(
        "/console/identity",
        "An identity",
        "Who an identity is, which claims it is assumed with, and what it may do where. Deleting an identity ends its \
         tokens and its roles at once.",
    ),
    screen(
        "/console/roles",
        "Roles",
        "A role is a set of capabilities. Built-in roles cannot be changed. Custom roles belong to a group and can be given \
         there and below. A caller can give only roles within their own capabilities.",
    ),
    screen(
        "/console/role",
        "A role",
        "The capabilities of a role and the bindings that give it. A change of a custom role is valid at once for everyone who \
         has it.",
    ),
    screen(
        "/console/bindings",
        "Role bindings",
        "Which identity has which role in which group. A binding is valid at its group and below, from the moment of its \
         creation until it is removed. Filters take ids; the title of a name is its id.",
    ),
    screen(
        "/console/access",
        "Who has access",
        "Everyone who may do something in a group: by a role that was given there or in a group above. To remove inherited \
         access, remove the binding at the group that the row names.",
    ),
    screen(
        "/console/invites",
        "Invitations",
        "Open invitations and requests for access. The code of an invitation is shown once, when it is created. It gives its \
         role to the person who redeems it, as long as its creator could still give that role.",
    ),
    screen(
        "/console/providers",
        "Identity providers",
        "With which providers the people of an organization sign in, whether a directory provisions them (SCIM), and which of \
         the provider's groups give which role. Secrets of providers are never shown again.",
    ),
    screen(
        "/console/provider",
        "An identity provider",
        "An identity provider of an organization: how it is reached, the role of everyone who signs in with it, the \
         groups of it that have roles here, and its directory, which creates and blocks accounts over SCIM.",
    ),
    screen(
        "/console/first-run",
        "First steps of a server",
        "What a new server needs before people can sign in by name: an organization, an identity provider and a first \
         owner. The operator may go on without them.",
    ),
    screen(
        "/console/first-run/provider",
        "Connect an identity provider",
        "What this server must know of the provider, and the redirect address to register there. Nothing is saved on \
         this page, and nothing that is typed here is secret.",
    ),
    screen(
        "/console/first-run/test",
        "Test an identity provider",
        "The server reads the provider's discovery document and keys, as a sign-in would. A provider that it cannot \
         reach is not saved.",
    ),
    screen(
        "/console/first-run/save",
        "Save an identity provider",
        "The client secret is typed here, stored encrypted, and never shown again. From then on people can sign in \
         with the provider.",
    ),
    screen(
        "/console/first-run/person",
        "A first owner",
        "An invitation of an owner, as a link that works once within a day. The person who opens it signs in at the \
         provider.",
    ),
    screen(
        "/console/identities/new",
        "A new workload identity",
        "Where the workload runs. It signs in with the token that its platform gives it, so that no password is made \
         or stored. Nothing is created before the last steps.",
    ),
    screen(
        "/console/identities/new/facts",
        "Facts of a workload",
        "What the platform says of the workload, such as the repository and the branch. The narrower it is, the fewer \
         can act as the identity.",
    ),
    screen(
        "/console/identities/new/claims",
        "What matches",
        "Which tokens the identity would take, claim by claim, and which tokens of others nearby. A token that is \
         pasted here is compared and forgotten.",
    ),
    screen(
        "/console/identities/new/role",
        "Role of a workload",
        "What the workload may do, and where. Choose the narrowest role and group; more can be given at any time.",
    ),
    screen(
        "/console/identities/new/create",
        "Create the identity",
        "The whole identity, before it is created. It has no right until the next step gives it its role.",
    ),
    screen(
        "/console/identities/new/bind",
        "Give the role",
        "The role binding of the new identity. You can give only roles within your own capabilities.",
    ),
    screen(
        "/console/identities/new/connect",
        "Connect the workload",
        "Configuration to copy for the workload, with the addresses of this server, and whether it has got a first \
         token.",
    ),
    screen(
        "/console/why",
        "Why?",
        "Why someone may or may not call a method or use a capability at a place: which roles were looked at, what is missing, \
         and who can grant it. Each refusal of the console leads here.",
    ),
    screen(
        "/console/repositories",
        "Repositories",
        "Repositories of container images, with what they store. Order them by size, pulls or last push; filters run on the \
         server and are part of the address.",
    ),
    screen(
        "/console/repository",
        "A repository",
        "The images and tags of a repository, how to pull them, and where they come from. Sizes count what is stored here; \
         layers that images share are counted once in the quota.",
    ),
    screen(
        "/console/tags",
        "Tags",
        "The tags of a repository with the image that each one names now. The history of a tag shows the images that it named \
         before.",
    ),
    screen(
        "/console/tag-history",
        "History of a tag",
        "Which images a tag named, since when, and who or what moved it. An image of the history can be pulled by its digest \
         for as long as it is stored.",
    ),
    screen(
        "/console/image",
        "An image",
        "Platforms, layers, configuration, signatures and other artifacts of one image, and the vulnerabilities of its newest \
         scan. An image without a scan has unknown vulnerabilities, not none.",
    ),
    screen(
        "/console/image-packages",
        "Packages of an image",
        "The packages that the SBOM of an image lists. Without an SBOM there is no list: push one with the image, as an \
         artifact that refers to it.",
    ),
    screen(
        "/console/compare",
        "Compare images",
        "What differs between two images of a repository: packages, vulnerabilities, layers and configuration. Open it from \
         the page of an image or the history of a tag.",
    ),
    screen(
        "/console/policy",
        "Policy of a repository",
        "The rules that hold for a repository, with the group that each one comes from: immutable tags, retention, quota. The \
         preview of a retention rule names what it would remove.",
    ),
    screen(
        "/console/upstreams",
        "Upstreams",
        "Repositories whose content comes from another registry, with the outcome of the last check. A failing upstream keeps \
         what was fetched before.",
    ),
    screen(
        "/console/find",
        "Find images",
        "Images that contain a package, or one below a version, have a license, or have a vulnerability in their newest scan. \
         Packages and licenses come from attached SBOMs, so that an image without one is not found.",
    ),
    screen(
        "/console/licenses",
        "Licenses",
        "The licenses of the components of all images, with how many packages and images have each. Its export as CSV is a \
         report for a lawyer.",
    ),
    screen(
        "/console/unindexed-sboms",
        "SBOMs that are not indexed",
        "SBOMs that searches do not read, with the reason: too large, unreadable, or not read yet. A search does not find \
         their images.",
    ),
    screen(
        "/console/image-policies",
        "Image policies",
        "Rules that images must satisfy to be pulled: signatures, attestations, vulnerabilities, licenses, age and SBOMs. Those \
         of a repository and of the groups above it apply together, and log or enforce. An exception has an end and a reason.",
    ),
    screen(
        "/console/image-verdicts",
        "What image policies say",
        "Every tagged image with the rules that it fails, and whether a pull is refused now. From here an image is excepted, \
         with the digest filled in.",
    ),
    screen(
        "/console/matches",
        "Vulnerable components",
        "Components that attached SBOMs list and that imported records of vulnerabilities affect. It needs no scan, and \
         follows imports within seconds. Findings of scanners are on a page of their own.",
    ),
    screen(
        "/console/findings",
        "Findings",
        "Vulnerabilities of packages in images, from their newest scans, with the version that fixes each one. A finding is \
         settled by an advisory, by a newer image, or by removing the image.",
    ),
    screen(
        "/console/posture",
        "Posture",
        "Open findings by severity and day, in UTC. Days without data are hatched, not zero. Severities are those of the \
         scanner.",
    ),
    screen(
        "/console/advisories",
        "Advisories",
        "What your organization says about vulnerabilities of its packages, and how far the review of each statement is. \
         Approved statements are exported as VEX, and appear in findings.",
    ),
    screen(
        "/console/advisory",
        "An advisory",
        "The statements of an advisory in their order, each with its author and its review. Where a group requires a second \
         reviewer, the author of a statement cannot approve it.",
    ),
    screen(
        "/console/packages",
        "Packages",
        "Packages of libraries by ecosystem. Open one to see its versions, and what the policy of an organization decides \
         about each.",
    ),
    screen(
        "/console/package",
        "A package",
        "The versions of a package, their age, and what is known about each. Whether an organization gets a version is decided \
         by its policies when it is asked for.",
    ),
    screen(
        "/console/policies",
        "Package policies",
        "Which packages an organization gets: by age (cooldown), license, malware, and lists. A policy is in force where it is \
         bound; a binding that only logs refuses nothing, and shows what it would.",
    ),
    screen(
        "/console/exceptions",
        "Exceptions and freezes",
        "Single versions that an organization gets for some days although a cooldown, a report of malware or a freeze withholds \
         them, and times after which nothing may have been published. Block lists and licenses have no exceptions.",
    ),
    screen(
        "/console/decision",
        "Is a package allowed?",
        "What the policies of an organization decide about one package version, rule by rule, and until when a cooldown lasts.",
    ),
    screen(
        "/console/blocked",
        "Blocked packages",
        "Attempts to get a package that a policy refused, with the rule and the policy. An exemption lets a package through; it \
         has a reason and an end.",
    ),
    screen(
        "/console/audit",
        "Audit log",
        "Each change with who made it, the called method, and the resource before and after. Entries cannot be changed. Watch \
         live shows new entries as they come, while this tab is visible; rows wait while you read or select something here.",
    ),
    screen(
        "/console/audit-entry",
        "An entry of the audit log",
        "One change, field by field, with the hash that links the entry to the one before it. Secrets are not in snapshots. An \
         erased snapshot leaves its hash.",
    ),
    screen(
        "/console/audit-verify",
        "Verify the audit log",
        "Recomputes the hashes of an organization's entries. A chain that is whole shows that no entry between was changed; \
         that the end was not cut off or all of it recomputed, only a hash shows that you kept elsewhere.",
    ),
    screen(
        "/console/history",
        "History of a resource",
        "Everything that happened to one resource, the oldest first, also after it was deleted. Open an entry to see what \
         changed.",
    ),
    screen(
        "/console/subscriptions",
        "Subscriptions",
        "Addresses that get events of an organization, with what waits for each and since when. A failing address does not \
         hold up the others.",
    ),
    screen(
        "/console/deliveries",
        "Deliveries",
        "The last attempts to deliver events to one address, and events that were given up. Those can be sent again. Receivers \
         verify the token of each request: see the documentation of events.",
    ),
    screen(
        "/console/delivery",
        "A delivery",
        "One attempt: when it was made, how long it took, what the receiver returned (its beginning), and the event as long as \
         it is kept.",
    ),
    screen(
        "/console/search",
        "Search",
        "Finds groups, identities, repositories, advisories and packages by name, among what you may see. A pasted digest, \
         CVE, package URL or id leads to its page.",
    ),
    screen(
        "/console/me",
        "Your account",
        "Who you are, your roles, and where you are signed in. Ending a session ends its tokens. Your id is what an \
         administrator needs to give you a role.",
    ),
    screen(
        "/console/methods",
        "All methods",
        "Every method of the API, with a form for each. Methods that read can be called at once; others need changes to be \
         unlocked, which lasts 15 minutes.",
    ),
    screen(
        "/console/method",
        "A method",
        "The form of one method. Preview shows what a call would change, without changing it. The call is made as you, with \
         the same checks as from any other client.",
    ),
    screen(
        "/console/operator",
        "The server",
        "Health, version, storage, background tasks and keys of this server, for its operators. A task can be run now where it \
         has no turn of its own.",
    ),
    screen(
        "/console/organizations",
        "Organizations by size",
        "All organizations of this server, by what they store, for its operators. Quotas are set at an organization or group.",
    ),
    screen(
        "/console/help",
        "Help",
        "All screens, and all reasons of errors with what to do about each. The help of a screen is linked at its top.",
    ),
];
