//! Hosts of packages over HTTP: who may publish and read where, what policies withhold, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

#[path = "packages/age_rules.rs"]
mod age_rules;
#[path = "packages/attestations.rs"]
mod attestations;
#[path = "packages/cargo_publishing.rs"]
mod cargo_publishing;
#[path = "packages/cargo_upstreams.rs"]
mod cargo_upstreams;
#[path = "packages/dated.rs"]
mod dated;
#[path = "packages/dependencies.rs"]
mod dependencies;
#[path = "packages/entitled.rs"]
mod entitled;
#[path = "packages/fake_index.rs"]
mod fake_index;
#[path = "packages/fake_proxy.rs"]
mod fake_proxy;
#[path = "packages/fake_repository.rs"]
mod fake_repository;
#[path = "packages/files.rs"]
mod files;
#[path = "packages/files_withholding.rs"]
mod files_withholding;
#[path = "packages/first_seen.rs"]
mod first_seen;
#[path = "packages/first_seen_files.rs"]
mod first_seen_files;
#[path = "packages/go_publishing.rs"]
mod go_publishing;
#[path = "packages/go_upstreams.rs"]
mod go_upstreams;
#[path = "packages/hosted_artifacts.rs"]
mod hosted_artifacts;
#[path = "packages/hosted_packages.rs"]
mod hosted_packages;
#[path = "packages/hostile.rs"]
mod hostile;
#[path = "packages/java_publishing.rs"]
mod java_publishing;
#[path = "packages/java_signatures.rs"]
mod java_signatures;
#[path = "packages/java_upstreams.rs"]
mod java_upstreams;
#[path = "packages/keeping.rs"]
mod keeping;
#[path = "packages/kept_pages.rs"]
mod kept_pages;
#[path = "packages/npm_audit.rs"]
mod npm_audit;
#[path = "packages/npm_changes.rs"]
mod npm_changes;
#[path = "packages/npm_hostile.rs"]
mod npm_hostile;
#[path = "packages/npm_publishing.rs"]
mod npm_publishing;
#[path = "packages/npm_signatures.rs"]
mod npm_signatures;
#[path = "packages/npm_signatures_upstreams.rs"]
mod npm_signatures_upstreams;
#[path = "packages/npm_upstreams.rs"]
mod npm_upstreams;
#[path = "packages/npm_withholding.rs"]
mod npm_withholding;
#[path = "packages/overrides.rs"]
mod overrides;
#[path = "packages/publishing.rs"]
mod publishing;
#[path = "packages/reaching.rs"]
mod reaching;
#[path = "packages/support.rs"]
mod support;
#[path = "packages/trusted_publishing.rs"]
mod trusted_publishing;
#[path = "packages/upstream_attestations.rs"]
mod upstream_attestations;
#[path = "packages/upstream_faults.rs"]
mod upstream_faults;
#[path = "packages/upstreams.rs"]
mod upstreams;
#[path = "packages/versions.rs"]
mod versions;
#[path = "packages/vulnerable.rs"]
mod vulnerable;
#[path = "packages/withholding.rs"]
mod withholding;
