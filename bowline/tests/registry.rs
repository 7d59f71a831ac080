//! The registry host over HTTP: pushes, pulls, tokens, and who may do what.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

#[path = "registry/bytes.rs"]
mod bytes;
#[path = "registry/charts.rs"]
mod charts;
#[path = "registry/chunks.rs"]
mod chunks;
#[path = "registry/collecting.rs"]
mod collecting;
#[path = "registry/components.rs"]
mod components;
#[path = "registry/credentials.rs"]
mod credentials;
#[path = "registry/deleting.rs"]
mod deleting;
#[path = "registry/documents.rs"]
mod documents;
#[path = "registry/ended_credentials.rs"]
mod ended_credentials;
#[path = "registry/fake_upstream.rs"]
mod fake_upstream;
#[path = "registry/fetching.rs"]
mod fetching;
#[path = "registry/finding_events.rs"]
mod finding_events;
#[path = "registry/finding_steps.rs"]
mod finding_steps;
#[path = "registry/full_disk.rs"]
mod full_disk;
#[path = "registry/hostile.rs"]
mod hostile;
#[path = "registry/image_evidence.rs"]
mod image_evidence;
#[path = "registry/image_packages.rs"]
mod image_packages;
#[path = "registry/image_policies.rs"]
mod image_policies;
#[path = "registry/limits.rs"]
mod limits;
#[path = "registry/lists.rs"]
mod lists;
#[path = "registry/manifests.rs"]
mod manifests;
#[path = "registry/matching.rs"]
mod matching;
#[path = "registry/matching_distributions.rs"]
mod matching_distributions;
#[path = "registry/matching_property.rs"]
mod matching_property;
#[path = "registry/mirrors.rs"]
mod mirrors;
#[path = "registry/mounts.rs"]
mod mounts;
#[path = "registry/namespaces.rs"]
mod namespaces;
#[path = "registry/open_uploads.rs"]
mod open_uploads;
#[path = "registry/oracle.rs"]
mod oracle;
#[path = "registry/permissions.rs"]
mod permissions;
#[path = "registry/pulling.rs"]
mod pulling;
#[path = "registry/pushing.rs"]
mod pushing;
#[path = "registry/races.rs"]
mod races;
#[path = "crash/random.rs"]
mod random;
#[path = "registry/resolved.rs"]
mod resolved;
#[path = "registry/retention.rs"]
mod retention;
#[path = "registry/scanned.rs"]
mod scanned;
#[path = "registry/slow.rs"]
mod slow;
#[path = "registry/sources.rs"]
mod sources;
#[path = "registry/stored_bytes.rs"]
mod stored_bytes;
#[path = "registry/streaming.rs"]
mod streaming;
#[path = "registry/support.rs"]
mod support;
#[path = "registry/upstream_accounts.rs"]
mod upstream_accounts;
#[path = "registry/upstream_checks.rs"]
mod upstream_checks;
#[path = "registry/upstream_rest.rs"]
mod upstream_rest;
#[path = "registry/upstream_tags.rs"]
mod upstream_tags;
