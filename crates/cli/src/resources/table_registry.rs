//! The commands of `bowline registry` that are made from the contract.

use super::table::{Column, Does, Kind, Resource, Verb, column};

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
                name: "diff",
                method: "bowline.registry.v1.Images.CompareImages",
                about: "Compare two images: packages, findings, size and configuration",
                does: Does::Get,
                positional: "repo_uid",
                example: "registry images diff acme/nginx --from-digest $DIGEST --to-digest $OTHER",
            },
        ],
    },
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
];
