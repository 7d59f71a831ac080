//! The commands of `bowline registry` that are made from the contract.

use super::table::{Cell, Column, Does, Kind, Resource, Verb, column};
use super::table_vulnerabilities::MATCHES_OF_IMAGES;

const IMAGE_COLUMNS: &[Column] = &[
    column("digest", "digest"),
    column("tags", "tags"),
    column("platforms", "platforms"),
    column("size", "size"),
    column("pushed", "pushTime"),
];
const IMAGE_WIDE: &[Column] = &[
    column("pulled", "pullTime"),
    column("signed", "signed"),
    column("sbom", "hasSbom"),
    column("critical", "findings.critical"),
    column("high", "findings.high"),
];

/// A resource of a repository, shown by itself.
const fn shown(name: &'static str, about: &'static str, verbs: &'static [Verb]) -> Resource {
    Resource { name, about, kind: Kind::Repo, columns: &[], wide: &[], verbs }
}

/// A resource whose one verb is the command itself.
const fn alone(name: &'static str, kind: Kind, columns: &'static [Column], verbs: &'static [Verb]) -> Resource {
    Resource { name, about: verbs[0].about, kind, columns, wide: &[], verbs }
}

const PACKAGES: &[Column] = &[
    column("name", "name"),
    column("version", "version"),
    column("license", "license"),
    column("origin", "origin"),
    column("purl", "purl"),
];
const MATCHES: &[Column] = &[
    column("repository", "repoName"),
    column("digest", "digest"),
    column("tags", "tags"),
    column("component", "component"),
    column("version", "version"),
    column("license", "license"),
];
const LICENSES: &[Column] = &[column("license", "license"), column("packages", "packages"), column("images", "images")];
const UNINDEXED: &[Column] =
    &[column("repository", "repoName"), column("digest", "digest"), column("reason", "reason")];
const SUMMARIES: &[Column] = &[
    column("uidp", "uid"),
    column("name", "name"),
    column("bytes", "size"),
    column("tags", "tags"),
    column("pushed", "pushTime"),
    column("pulled", "pullTime"),
];
const RETENTION_SUMS: &[Column] = &[
    column("uidp", "repoUid"),
    column("name", "repoName"),
    column("removed", "removed"),
    column("tags", "removedTags"),
    column("bytes", "removedBytes"),
    column("kept", "kept"),
    column("too large", "tooLarge"),
];
const POLICIES: &[Column] = &[
    column("uidp", "uid"),
    Column { head: "path", cell: Cell::NamesAt("uid") },
    column("public", "public"),
    column("immutable tags", "immutableTagPatterns"),
    column("quota", "byteQuota"),
    column("upstream", "upstream.url"),
];

/// Commands of `bowline registry repos` beside the handwritten ones.
pub(super) const REPOS: &[Resource] = &[alone(
    "search",
    Kind::Repo,
    SUMMARIES,
    &[Verb {
        name: "search",
        method: "bowline.registry.v1.Images.SearchRepos",
        about: "List repositories with their size, tags and last push and pull",
        does: Does::List,
        positional: "",
        example: "registry repos search --scope acme --query ng --order-by 'size desc'",
    }],
)];

/// Commands of `bowline registry retention` beside the handwritten ones.
pub(super) const RETENTION: &[Resource] = &[alone(
    "preview-group",
    Kind::Group,
    RETENTION_SUMS,
    &[Verb {
        name: "preview-group",
        method: "bowline.registry.v1.RegistryPolicies.PreviewGroupRetention",
        about: "Show how much the rules, or other rules, remove from each repository of a group",
        does: Does::List,
        positional: "parent",
        example: "registry retention preview-group acme --retention-keep-last 10",
    }],
)];

/// Commands of `bowline registry policy` beside the handwritten ones.
pub(super) const POLICY: &[Resource] = &[alone(
    "list",
    Kind::Group,
    POLICIES,
    &[Verb {
        name: "list",
        method: "bowline.registry.v1.RegistryPolicies.ListPolicies",
        about: "List the policies of a group and of everything below it",
        does: Does::List,
        positional: "uid",
        example: "registry policy list acme",
    }],
)];

pub(super) const REGISTRY: &[Resource] = &[
    Resource {
        name: "settings",
        about: "Settings of the registry of an organization",
        kind: Kind::Group,
        columns: &[],
        wide: &[],
        verbs: &[
            Verb {
                name: "get",
                method: "chainguard.platform.registry.Registry.GetRegistrySettings",
                about: "Show the settings of an organization",
                does: Does::Get,
                positional: "registry_id",
                example: "registry settings get acme",
            },
            Verb {
                name: "set",
                method: "chainguard.platform.registry.Registry.UpdateRegistrySettings",
                about: "Replace the settings of an organization: what is not named is off",
                does: Does::Call,
                positional: "registry_id",
                example: "registry settings set acme --unique-tags",
            },
        ],
    },
    Resource {
        name: "images",
        about: "Images of a repository, by digest",
        kind: Kind::Repo,
        columns: IMAGE_COLUMNS,
        wide: IMAGE_WIDE,
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.registry.v1.Images.ListImages",
                about: "List images, the most recently pushed first",
                does: Does::List,
                positional: "repo_uid",
                example: "registry images list acme/nginx",
            },
            Verb {
                name: "get",
                method: "bowline.registry.v1.Images.GetImage",
                about: "Show one image: its layers, history, members and referrers",
                does: Does::Get,
                positional: "repo_uid",
                example: "registry images get acme/nginx --digest $DIGEST",
            },
            Verb {
                name: "packages",
                method: "bowline.registry.v1.Images.ListPackages",
                about: "List the packages of an image, by its SBOM",
                does: Does::ListOf(PACKAGES),
                positional: "repo_uid",
                example: "registry images packages acme/nginx --digest $DIGEST",
            },
            Verb {
                name: "diff",
                method: "bowline.registry.v1.Images.CompareImages",
                about: "Compare two images: packages, findings, size and configuration",
                does: Does::Get,
                positional: "repo_uid",
                example: "registry images diff acme/nginx --from-digest $DIGEST --to-digest $OTHER",
            },
            Verb {
                name: "preview-delete",
                method: "bowline.registry.v1.Images.PreviewDelete",
                about: "Show what a deletion would remove: tags, members of indexes, referrers",
                does: Does::Get,
                positional: "repo_uid",
                example: "registry images preview-delete acme/app --digests $DIGEST",
            },
            Verb {
                name: "delete",
                method: "bowline.registry.v1.Images.DeleteImages",
                about: "Delete images with their tags, members and referrers, all or none",
                does: Does::Ask("Delete these images with their tags, members and referrers"),
                positional: "repo_uid",
                example: "registry images delete acme/app --digests $DIGEST --yes",
            },
        ],
    },
    alone(
        "find",
        Kind::Scope,
        MATCHES,
        &[Verb {
            name: "find",
            method: "bowline.registry.v1.Components.FindImages",
            about: "List images with a component, a license or a vulnerability",
            does: Does::List,
            positional: "",
            example: "registry find --package pkg:maven/org.apache.logging.log4j/log4j-core --below 2.17.1",
        }],
    ),
    MATCHES_OF_IMAGES,
    alone(
        "licenses",
        Kind::Scope,
        LICENSES,
        &[Verb {
            name: "licenses",
            method: "bowline.registry.v1.Components.ListLicenses",
            about: "List the licenses of components, with how many packages and images have each",
            does: Does::List,
            positional: "scope",
            example: "registry licenses acme -o csv",
        }],
    ),
    alone(
        "unindexed-sboms",
        Kind::Scope,
        UNINDEXED,
        &[Verb {
            name: "unindexed-sboms",
            method: "bowline.registry.v1.Components.ListUnindexedSboms",
            about: "List SBOMs that searches do not find, and why",
            does: Does::List,
            positional: "scope",
            example: "registry unindexed-sboms acme",
        }],
    ),
    shown(
        "sboms",
        "SBOMs that are attached to images",
        &[Verb {
            name: "get",
            method: "chainguard.platform.registry.Registry.GetRawSbom",
            about: "Print the SBOM of an image, as it was attached",
            does: Does::Text("rawSbom"),
            positional: "repo_id",
            example: "registry sboms get acme/nginx --digest $DIGEST",
        }],
    ),
    shown(
        "vuln-reports",
        "Reports of scanners about images",
        &[Verb {
            name: "get",
            method: "chainguard.platform.registry.Registry.GetVulnReport",
            about: "Show the newest report about an image",
            does: Does::Get,
            positional: "repo_id",
            example: "registry vuln-reports get acme/nginx --digest $DIGEST",
        }],
    ),
    shown(
        "deployments",
        "Helm charts that are attached to a repository",
        &[Verb {
            name: "get",
            method: "chainguard.platform.registry.Registry.GetDeployment",
            about: "Show the charts; `bowline api CreateDeployment` and `UpdateDeployment` attach them",
            does: Does::Get,
            positional: "repo_id",
            example: "registry deployments get acme/nginx",
        }],
    ),
    Resource {
        name: "usage",
        about: "How much is stored, and who pulls and pushes the most",
        kind: Kind::Scope,
        columns: &[column("uidp", "uid"), column("name", "name"), column("amount", "amount")],
        wide: &[],
        verbs: &[
            Verb {
                name: "get",
                method: "bowline.registry.v1.Statistics.GetUsage",
                about: "Show how much is stored at and below a group or a repository, as quotas count it",
                does: Does::Get,
                positional: "scope",
                example: "registry usage get acme",
            },
            Verb {
                name: "top",
                method: "bowline.registry.v1.Statistics.ListTopUsage",
                about: "List the children that store the most, or the identities that pull or push the most",
                does: Does::List,
                positional: "scope",
                example: "registry usage top acme/app --order pulls-by-identity",
            },
        ],
    },
    alone(
        "activity",
        Kind::Scope,
        &[column("day", "day"), column("amount", "amount")],
        &[Verb {
            name: "activity",
            method: "bowline.registry.v1.Statistics.ListActivity",
            about: "List pulls, pushes, bytes or blocked packages by day",
            does: Does::List,
            positional: "scope",
            example: "registry activity acme --kind pushes",
        }],
    ),
    Resource {
        name: "upstreams",
        about: "Repositories that are filled from an upstream, and their last check",
        kind: Kind::Repo,
        columns: &[
            column("uidp", "repoUid"),
            column("name", "repoName"),
            column("status", "status"),
            column("checked", "checkTime"),
            column("error", "error"),
        ],
        wide: &[],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.registry.v1.Replication.ListUpstreams",
                about: "List the repositories of a group that have checked an upstream",
                does: Does::List,
                positional: "parent",
                example: "registry upstreams list acme",
            },
            Verb {
                name: "check",
                method: "bowline.registry.v1.Replication.CheckUpstream",
                about: "Request a tag from the upstream of a repository, as a pull would",
                does: Does::Call,
                positional: "repo_uid",
                example: "registry upstreams check acme/app",
            },
            Verb {
                name: "fetch",
                method: "bowline.registry.v1.Replication.FetchNow",
                about: "Let the next pull of each tag check the upstream",
                does: Does::Call,
                positional: "repo_uid",
                example: "registry upstreams fetch acme/app",
            },
        ],
    },
    alone(
        "effective-policy",
        Kind::Repo,
        &[],
        &[Verb {
            name: "effective-policy",
            method: "bowline.registry.v1.RegistryPolicies.GetEffectivePolicy",
            about: "Show the policy of a repository, and where each value comes from",
            does: Does::Get,
            positional: "repo_uid",
            example: "registry effective-policy acme/app",
        }],
    ),
    alone(
        "retention-runs",
        Kind::Repo,
        &[
            column("time", "time"),
            column("removed", "removed"),
            column("tags", "removedTags"),
            column("bytes", "removedBytes"),
            column("remaining", "remaining"),
        ],
        &[Verb {
            name: "retention-runs",
            method: "bowline.registry.v1.RegistryPolicies.ListRetentionRuns",
            about: "List what retention has removed, the newest run first",
            does: Does::List,
            positional: "repo_uid",
            example: "registry retention-runs acme/app",
        }],
    ),
];
