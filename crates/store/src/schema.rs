//! The migrations, in order. One change per file, one text per engine, never edited after a release.

use crate::Migration;
use crate::counters::COUNTERS_MIGRATION;

/// Every migration of this binary.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "identity_and_registry",
        sqlite: include_str!("../migrations/sqlite/0001_identity_and_registry.sql"),
        postgres: include_str!("../migrations/postgres/0001_identity_and_registry.sql"),
    },
    Migration { version: 2, name: "counters", sqlite: COUNTERS_MIGRATION.0, postgres: COUNTERS_MIGRATION.1 },
    Migration {
        version: 3,
        name: "identity_whole",
        sqlite: include_str!("../migrations/sqlite/0003_identity_whole.sql"),
        postgres: include_str!("../migrations/postgres/0003_identity_whole.sql"),
    },
    Migration {
        version: 4,
        name: "events",
        sqlite: include_str!("../migrations/sqlite/0004_events.sql"),
        postgres: include_str!("../migrations/postgres/0004_events.sql"),
    },
    Migration {
        version: 5,
        name: "audit_chain",
        sqlite: include_str!("../migrations/sqlite/0005_audit_chain.sql"),
        postgres: include_str!("../migrations/postgres/0005_audit_chain.sql"),
    },
    Migration {
        version: 6,
        name: "registry_content",
        sqlite: include_str!("../migrations/sqlite/0006_registry_content.sql"),
        postgres: include_str!("../migrations/postgres/0006_registry_content.sql"),
    },
    Migration {
        version: 7,
        name: "registry_api",
        sqlite: include_str!("../migrations/sqlite/0007_registry_api.sql"),
        postgres: include_str!("../migrations/postgres/0007_registry_api.sql"),
    },
    Migration {
        version: 8,
        name: "blob_copies",
        sqlite: include_str!("../migrations/sqlite/0008_blob_copies.sql"),
        postgres: include_str!("../migrations/postgres/0008_blob_copies.sql"),
    },
    Migration {
        version: 9,
        name: "blob_bytes",
        sqlite: include_str!("../migrations/sqlite/0009_blob_bytes.sql"),
        postgres: include_str!("../migrations/postgres/0009_blob_bytes.sql"),
    },
    Migration {
        version: 10,
        name: "default_roles",
        sqlite: include_str!("../migrations/sqlite/0010_default_roles.sql"),
        postgres: include_str!("../migrations/postgres/0010_default_roles.sql"),
    },
    Migration {
        version: 11,
        name: "upstream_tags",
        sqlite: include_str!("../migrations/sqlite/0011_upstream_tags.sql"),
        postgres: include_str!("../migrations/postgres/0011_upstream_tags.sql"),
    },
    Migration {
        version: 12,
        name: "redeliveries",
        sqlite: include_str!("../migrations/sqlite/0012_redeliveries.sql"),
        postgres: include_str!("../migrations/postgres/0012_redeliveries.sql"),
    },
    Migration {
        version: 13,
        name: "advisories",
        sqlite: include_str!("../migrations/sqlite/0013_advisories.sql"),
        postgres: include_str!("../migrations/postgres/0013_advisories.sql"),
    },
    Migration {
        version: 14,
        name: "libraries",
        sqlite: include_str!("../migrations/sqlite/0014_libraries.sql"),
        postgres: include_str!("../migrations/postgres/0014_libraries.sql"),
    },
    Migration {
        version: 15,
        name: "records",
        sqlite: include_str!("../migrations/sqlite/0015_records.sql"),
        postgres: include_str!("../migrations/postgres/0015_records.sql"),
    },
    Migration {
        version: 16,
        name: "advisory_origins",
        sqlite: include_str!("../migrations/sqlite/0016_advisory_origins.sql"),
        postgres: include_str!("../migrations/postgres/0016_advisory_origins.sql"),
    },
    Migration {
        version: 17,
        name: "blob_places",
        sqlite: include_str!("../migrations/sqlite/0017_blob_places.sql"),
        postgres: include_str!("../migrations/postgres/0017_blob_places.sql"),
    },
    Migration {
        version: 18,
        name: "reports_of_manifests",
        sqlite: include_str!("../migrations/sqlite/0018_reports_of_manifests.sql"),
        postgres: include_str!("../migrations/postgres/0018_reports_of_manifests.sql"),
    },
    Migration {
        version: 20,
        name: "malware_of_records",
        sqlite: include_str!("../migrations/sqlite/0020_malware_of_records.sql"),
        postgres: include_str!("../migrations/postgres/0020_malware_of_records.sql"),
    },
    Migration {
        version: 21,
        name: "sources_of_repositories",
        sqlite: include_str!("../migrations/sqlite/0021_sources_of_repositories.sql"),
        postgres: include_str!("../migrations/postgres/0021_sources_of_repositories.sql"),
    },
    Migration {
        version: 22,
        name: "attempts_at_imports",
        sqlite: include_str!("../migrations/sqlite/0022_attempts_at_imports.sql"),
        postgres: include_str!("../migrations/postgres/0022_attempts_at_imports.sql"),
    },
    Migration {
        version: 23,
        name: "passwords_of_upstreams",
        sqlite: include_str!("../migrations/sqlite/0023_passwords_of_upstreams.sql"),
        postgres: include_str!("../migrations/postgres/0023_passwords_of_upstreams.sql"),
    },
    Migration {
        version: 24,
        name: "affects_alone",
        sqlite: include_str!("../migrations/sqlite/0024_affects_alone.sql"),
        postgres: include_str!("../migrations/postgres/0024_affects_alone.sql"),
    },
    Migration {
        version: 25,
        name: "records_seen_by_id",
        sqlite: include_str!("../migrations/sqlite/0025_records_seen_by_id.sql"),
        postgres: include_str!("../migrations/postgres/0025_records_seen_by_id.sql"),
    },
    Migration {
        version: 26,
        name: "indexes_of_what_goes",
        sqlite: include_str!("../migrations/sqlite/0026_indexes_of_what_goes.sql"),
        postgres: include_str!("../migrations/postgres/0026_indexes_of_what_goes.sql"),
    },
    Migration {
        version: 27,
        name: "images_of_charts",
        sqlite: include_str!("../migrations/sqlite/0027_images_of_charts.sql"),
        postgres: include_str!("../migrations/postgres/0027_images_of_charts.sql"),
    },
    Migration {
        version: 28,
        name: "promises_of_invitations",
        sqlite: include_str!("../migrations/sqlite/0028_promises_of_invitations.sql"),
        postgres: include_str!("../migrations/postgres/0028_promises_of_invitations.sql"),
    },
    Migration {
        version: 29,
        name: "open_uploads",
        sqlite: include_str!("../migrations/sqlite/0029_open_uploads.sql"),
        postgres: include_str!("../migrations/postgres/0029_open_uploads.sql"),
    },
    Migration {
        version: 32,
        name: "budget_of_tag_patterns",
        sqlite: include_str!("../migrations/sqlite/0032_budget_of_tag_patterns.sql"),
        postgres: include_str!("../migrations/postgres/0032_budget_of_tag_patterns.sql"),
    },
    Migration {
        version: 33,
        name: "bindings_of_default_roles",
        sqlite: include_str!("../migrations/sqlite/0033_bindings_of_default_roles.sql"),
        postgres: include_str!("../migrations/postgres/0033_bindings_of_default_roles.sql"),
    },
    Migration {
        version: 36,
        name: "retention_runs",
        sqlite: include_str!("../migrations/sqlite/0036_retention_runs.sql"),
        postgres: include_str!("../migrations/postgres/0036_retention_runs.sql"),
    },
    Migration {
        version: 37,
        name: "choices_by_time",
        sqlite: include_str!("../migrations/sqlite/0037_choices_by_time.sql"),
        postgres: include_str!("../migrations/postgres/0037_choices_by_time.sql"),
    },
];
