//! The tables that this crate owns.

use bowline_store::tables::{OnDelete, TableDeclaration, message, message_with_ids, own_id, reference, value};

/// Why rows of SBOMs outlive their repository: there may be many.
const SBOMS_GO_LATER: &str = "garbage collection deletes it; no search reads it without the repository's manifests";

/// Why findings outlive their repository: as for SBOMs.
const FINDINGS_CLOSE_LATER: &str = "the task that matches deletes it; no search reads it without the image";

/// Every table of this crate, with what its columns hold.
pub const TABLES: &[TableDeclaration] = &[
    TableDeclaration { name: "blobs", columns: &[value("digest"), value("upload")] },
    TableDeclaration { name: "changed_versions", columns: &[value("package"), value("version"), value("after")] },
    TableDeclaration { name: "chart_images", columns: &[value("manifest"), value("repository")] },
    TableDeclaration { name: "charts", columns: &[value("manifest"), value("problem")] },
    TableDeclaration {
        name: "component_licenses",
        columns: &[value("license"), reference("repo", "repos", OnDelete::Keep(SBOMS_GO_LATER)), value("sbom")],
    },
    TableDeclaration {
        name: "component_packages",
        columns: &[value("package"), reference("repo", "repos", OnDelete::Keep(SBOMS_GO_LATER)), value("sbom")],
    },
    TableDeclaration {
        name: "components",
        columns: &[
            value("sbom"),
            value("package"),
            value("name"),
            value("version"),
            value("version_key"),
            value("purl"),
            value("license"),
            value("origin"),
        ],
    },
    TableDeclaration {
        name: "deployments",
        columns: &[
            reference("repo", "repos", OnDelete::Delete),
            message_with_ids("deployment", "chainguard.platform.registry.Deployment", &["id"]),
        ],
    },
    TableDeclaration {
        name: "image_configs",
        columns: &[value("manifest"), value("os"), value("architecture"), value("variant"), value("config")],
    },
    TableDeclaration {
        name: "image_findings",
        columns: &[
            reference("repo", "repos", OnDelete::Keep(FINDINGS_CLOSE_LATER)),
            value("digest"),
            value("vulnerability"),
            value("package"),
            value("version"),
            value("component"),
            value("purl"),
        ],
    },
    TableDeclaration {
        name: "image_policies",
        columns: &[
            reference("scope", "repos", OnDelete::Delete),
            reference("scope", "groups", OnDelete::Delete),
            own_id("org"),
            message_with_ids(
                "policy",
                "bowline.registry.v1.ImagePolicy",
                &["uid", "exceptions.id", "exceptions.repo_uid"],
            ),
        ],
    },
    TableDeclaration { name: "image_revisions", columns: &[reference("repo", "repos", OnDelete::Delete)] },
    TableDeclaration {
        name: "manifest_references",
        columns: &[
            value("manifest"),
            value("digest"),
            value("media_type"),
            value("os"),
            value("architecture"),
            value("variant"),
        ],
    },
    TableDeclaration {
        name: "manifests",
        columns: &[
            value("digest"),
            value("media_type"),
            value("artifact_type"),
            value("config_digest"),
            value("subject"),
            value("annotations"),
            value("content"),
        ],
    },
    TableDeclaration {
        name: "package_versions",
        columns: &[
            value("package"),
            value("version"),
            value("origin"),
            value("record_package"),
            value("record_source"),
        ],
    },
    TableDeclaration {
        name: "passed_pulls",
        columns: &[
            reference("repo", "repos", OnDelete::Delete),
            value("digest"),
            reference("caller", "identities", OnDelete::Keep("deleted when its time is over")),
        ],
    },
    TableDeclaration {
        name: "registry_policies",
        columns: &[
            reference("place", "repos", OnDelete::Delete),
            reference("place", "groups", OnDelete::Delete),
            own_id("org"),
            message_with_ids("policy", "bowline.registry.v1.RegistryPolicy", &["uid"]),
            value("upstream_password"),
        ],
    },
    TableDeclaration { name: "registry_settings", columns: &[reference("org", "groups", OnDelete::Delete)] },
    TableDeclaration {
        name: "repo_blobs",
        columns: &[
            reference("repo", "repos", OnDelete::Delete),
            reference("repo", "package_repositories", OnDelete::Hook),
            value("digest"),
            own_id("org"),
        ],
    },
    TableDeclaration {
        name: "repo_manifests",
        columns: &[
            reference("repo", "repos", OnDelete::Delete),
            value("digest"),
            own_id("org"),
            value("subject"),
            value("artifact_type"),
            reference("last_pulled_by", "identities", OnDelete::Keep("it says who pulled")),
        ],
    },
    TableDeclaration { name: "release_product_names", columns: &[value("name"), value("product")] },
    TableDeclaration {
        name: "release_products",
        columns: &[value("name"), message("product", "bowline.registry.v1.ReleaseProduct")],
    },
    TableDeclaration { name: "repo_readmes", columns: &[reference("repo", "repos", OnDelete::Hook), value("content")] },
    TableDeclaration {
        name: "repo_sboms",
        columns: &[reference("repo", "repos", OnDelete::Keep(SBOMS_GO_LATER)), value("sbom"), value("digest")],
    },
    TableDeclaration {
        name: "repos",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Restrict("repos", None)),
            own_id("org"),
            value("name"),
            value("description"),
            message_with_ids("spec", "chainguard.platform.registry.v2.Repo", &["uid", "sync_config.source"]),
            reference("source", "repos", OnDelete::Keep("a synchronization from what is gone fails, and says so")),
            reference("synced_from", "repos", OnDelete::Keep("a synchronization from what is gone fails, and says so")),
        ],
    },
    TableDeclaration {
        name: "retention_runs",
        columns: &[reference("repo", "repos", OnDelete::Delete), own_id("org"), value("id")],
    },
    TableDeclaration {
        name: "scan_reports",
        columns: &[
            reference("repo", "repos", OnDelete::Delete),
            value("digest"),
            own_id("org"),
            value("scanner_version"),
            value("findings"),
            value("raw"),
            value("summary"),
        ],
    },
    TableDeclaration {
        name: "scan_summaries",
        columns: &[
            reference("repo", "repos", OnDelete::Keep("a trigger deletes the summary with its report")),
            value("digest"),
            value("summary"),
        ],
    },
    TableDeclaration {
        name: "tag_history",
        columns: &[
            reference("repo", "repos", OnDelete::Keep("the history of tags stays")),
            value("name"),
            own_id("id"),
            value("digest"),
        ],
    },
    TableDeclaration {
        name: "tags",
        columns: &[
            own_id("uid"),
            reference("parent", "repos", OnDelete::Hook),
            own_id("org"),
            value("name"),
            value("digest"),
            value("bundles"),
        ],
    },
    TableDeclaration { name: "unmatched_sboms", columns: &[value("sbom")] },
    TableDeclaration {
        name: "uploads",
        columns: &[
            value("id"),
            reference("repo", "repos", OnDelete::Delete),
            reference("repo", "groups", OnDelete::Delete),
            reference("identity", "identities", OnDelete::Keep("counts for its quota until it ends")),
        ],
    },
    TableDeclaration {
        name: "upstream_syncs",
        columns: &[reference("repo", "repos", OnDelete::Delete), own_id("org"), value("message")],
    },
    TableDeclaration { name: "upstream_tags", columns: &[reference("repo", "repos", OnDelete::Delete), value("tag")] },
    TableDeclaration { name: "upstream_generations", columns: &[reference("repo", "repos", OnDelete::Delete)] },
    TableDeclaration {
        name: "version_sboms",
        columns: &[value("package"), value("version"), value("sbom"), value("origin")],
    },
    TableDeclaration {
        name: "waiting_images",
        columns: &[reference("repo", "repos", OnDelete::Keep(FINDINGS_CLOSE_LATER)), value("digest")],
    },
    TableDeclaration {
        name: "waiting_sboms",
        columns: &[reference("repo", "repos", OnDelete::Keep(FINDINGS_CLOSE_LATER)), value("sbom")],
    },
];
