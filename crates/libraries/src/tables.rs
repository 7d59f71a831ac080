//! The tables that this crate owns.

use bowline_store::tables::{OnDelete, TableDeclaration, message, message_with_ids, own_id, reference, value};

/// Every table of this crate, with what its columns hold.
pub const TABLES: &[TableDeclaration] = &[
    TableDeclaration {
        name: "hosted_attestations",
        columns: &[
            reference("repository", "package_repositories", OnDelete::Hook),
            value("package"),
            value("file"),
            value("predicate_type"),
            value("sort_key"),
            value("document"),
            value("identity"),
            value("issuer"),
            value("source_repository"),
            value("build_config"),
            value("subject_sha256"),
        ],
    },
    TableDeclaration {
        name: "hosted_files",
        columns: &[
            reference("repository", "package_repositories", OnDelete::Hook),
            value("package"),
            value("name"),
            value("sort_key"),
            value("sha256"),
            value("metadata_sha256"),
            value("requires_python"),
            value("md5"),
            value("sha1"),
            value("sha512"),
        ],
    },
    TableDeclaration {
        name: "hosted_manifests",
        columns: &[
            reference("repository", "package_repositories", OnDelete::Hook),
            value("package"),
            value("sort_key"),
            value("manifest"),
            value("sha1"),
            value("sha512"),
            value("signature_keyid"),
            value("signature"),
        ],
    },
    TableDeclaration {
        name: "hosted_packages",
        columns: &[
            reference("repository", "package_repositories", OnDelete::Hook),
            value("package"),
            value("id"),
            value("folded"),
            value("latest"),
            value("license"),
        ],
    },
    TableDeclaration {
        name: "hosted_tags",
        columns: &[
            reference("repository", "package_repositories", OnDelete::Hook),
            value("package"),
            value("tag"),
            value("sort_key"),
        ],
    },
    TableDeclaration {
        name: "hosted_versions",
        columns: &[
            reference("repository", "package_repositories", OnDelete::Hook),
            value("package"),
            value("sort_key"),
            value("version"),
            value("license"),
            value("yanked"),
            value("packaging"),
            value("parent_pom"),
        ],
    },
    TableDeclaration { name: "library_artifact_counts", columns: &[] },
    TableDeclaration {
        name: "library_artifacts",
        columns: &[
            value("id"),
            value("name"),
            value("folded"),
            value("description"),
            value("license"),
            value("latest"),
            value("latest_built"),
        ],
    },
    TableDeclaration {
        name: "library_block_days",
        columns: &[
            reference("org", "groups", OnDelete::Delete),
            reference("policy", "library_policies", OnDelete::Keep("a record of the past")),
            value("reason"),
            value("package"),
        ],
    },
    TableDeclaration {
        name: "library_block_events",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Hook),
            own_id("org"),
            value("purl"),
            value("package"),
            value("reason"),
            reference("policy", "library_policies", OnDelete::Keep("a record of the past")),
        ],
    },
    TableDeclaration { name: "library_cuda", columns: &[value("artifact"), value("cuda_version")] },
    TableDeclaration {
        name: "library_entitlements",
        columns: &[own_id("uid"), reference("parent", "groups", OnDelete::Hook), own_id("org")],
    },
    TableDeclaration {
        name: "library_files",
        columns: &[value("artifact"), value("version"), value("name"), value("sha256"), value("sha512")],
    },
    TableDeclaration {
        name: "library_malware",
        columns: &[
            value("ecosystem"),
            value("package"),
            value("version"),
            value("malid"),
            value("spelled"),
            value("source"),
            value("reason"),
            value("description"),
            value("ranges"),
        ],
    },
    TableDeclaration {
        name: "library_policies",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Hook),
            own_id("org"),
            value("name"),
            message_with_ids("policy", "chainguard.platform.libraries.LibraryPolicy", &["id"]),
        ],
    },
    TableDeclaration {
        name: "library_policy_bindings",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Hook),
            own_id("org"),
            reference("policy", "library_policies", OnDelete::Hook),
        ],
    },
    TableDeclaration {
        name: "library_policy_tests",
        columns: &[
            reference("policy", "library_policies", OnDelete::Hook),
            message("tests", "bowline.libraries.v1.PolicyTestList"),
        ],
    },
    TableDeclaration {
        name: "library_policy_vulnerabilities",
        columns: &[
            reference("policy", "library_policies", OnDelete::Hook),
            message("rule", "bowline.libraries.v1.VulnerabilityRule"),
        ],
    },
    TableDeclaration {
        name: "library_resolutions",
        columns: &[
            reference("org", "groups", OnDelete::Delete),
            value("registry"),
            value("package"),
            value("version"),
            value("digest"),
        ],
    },
    TableDeclaration { name: "library_trigrams", columns: &[value("trigram"), value("folded"), value("artifact")] },
    TableDeclaration {
        name: "library_versions",
        columns: &[
            value("artifact"),
            value("sort_key"),
            value("version"),
            value("description"),
            value("license"),
            value("metadata"),
        ],
    },
    TableDeclaration { name: "library_watermarks", columns: &[reference("org", "groups", OnDelete::Delete)] },
    TableDeclaration {
        name: "library_zaps",
        columns: &[
            reference("org", "groups", OnDelete::Delete),
            value("idempotency_key"),
            message_with_ids("summary", "chainguard.platform.libraries.ZapResolutionCacheSummary", &["id"]),
        ],
    },
    TableDeclaration { name: "package_origins", columns: &[value("org"), value("origin"), value("package")] },
    TableDeclaration {
        name: "package_repositories",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Restrict("packages", Some("file_count > 0"))),
        ],
    },
    TableDeclaration {
        name: "package_exception_approvals",
        columns: &[reference("parent", "groups", OnDelete::Delete)],
    },
    TableDeclaration {
        name: "package_exceptions",
        columns: &[
            own_id("uid"),
            reference("parent", "groups", OnDelete::Delete),
            value("package"),
            value("purl"),
            value("justification"),
            reference("requester", "identities", OnDelete::Keep("who requested it, also once they are gone")),
            reference("approver", "identities", OnDelete::Keep("who approved it, also once they are gone")),
        ],
    },
    TableDeclaration {
        name: "package_freezes",
        columns: &[
            reference("parent", "groups", OnDelete::Delete),
            value("justification"),
            reference("set_by", "identities", OnDelete::Keep("who set it, also once they are gone")),
        ],
    },
    TableDeclaration {
        name: "package_reservations",
        columns: &[reference("parent", "groups", OnDelete::Delete), value("pattern")],
    },
    TableDeclaration { name: "package_signing_keys", columns: &[value("keyid"), value("public_key"), value("sealed")] },
    TableDeclaration {
        name: "package_upstreams",
        columns: &[
            own_id("uid"),
            // Of a deleted one, the files are removed within seconds.
            reference("parent", "groups", OnDelete::Restrict("package upstreams", None)),
            value("name"),
            value("url"),
            value("username"),
            value("password"),
        ],
    },
    TableDeclaration {
        name: "upstream_documents",
        columns: &[
            reference("upstream", "package_upstreams", OnDelete::Hook),
            value("package"),
            value("etag"),
            value("last_modified"),
            message("document", "bowline.libraries.v1.UpstreamDocument"),
            value("manifests"),
        ],
    },
    TableDeclaration {
        name: "upstream_files",
        columns: &[
            reference("upstream", "package_upstreams", OnDelete::Hook),
            value("package"),
            value("name"),
            value("version"),
            value("license"),
            value("sha256"),
            value("sha512"),
            value("md5"),
            value("sha1"),
            value("parent_pom"),
        ],
    },
    TableDeclaration {
        name: "upstream_known_versions",
        columns: &[
            reference("upstream", "package_upstreams", OnDelete::Hook),
            value("package"),
            message("document", "bowline.libraries.v1.UpstreamDocument"),
        ],
    },
    TableDeclaration {
        name: "upstream_requirements",
        columns: &[
            reference("upstream", "package_upstreams", OnDelete::Hook),
            value("package"),
            value("sort_key"),
            value("manifest"),
        ],
    },
];
