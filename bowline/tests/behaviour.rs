//! What the server promises, each promise as a named test on both engines, over REST and gRPC.
//!
//! `BOWLINE_TEST_POSTGRES` names the PostgreSQL server; `BOWLINE_WALK_ROWS` and
//! `BOWLINE_REVOCATION_ROUNDS` size the two long tests.

#[path = "behaviour/accepting.rs"]
mod accepting;
#[path = "behaviour/access.rs"]
mod access;
#[path = "behaviour/access_requests.rs"]
mod access_requests;
#[path = "behaviour/advisories.rs"]
mod advisories;
#[path = "behaviour/advisory_batch_reviews.rs"]
mod advisory_batch_reviews;
#[path = "behaviour/advisory_documents.rs"]
mod advisory_documents;
#[path = "behaviour/advisory_lists.rs"]
mod advisory_lists;
#[path = "behaviour/advisory_reviews.rs"]
mod advisory_reviews;
#[path = "behaviour/advisory_transfers.rs"]
mod advisory_transfers;
#[path = "behaviour/associations.rs"]
mod associations;
#[path = "behaviour/audit.rs"]
mod audit;
#[path = "behaviour/audit_chain.rs"]
mod audit_chain;
#[path = "behaviour/audit_chain_bounds.rs"]
mod audit_chain_bounds;
#[path = "behaviour/audit_export.rs"]
mod audit_export;
#[path = "behaviour/audit_log.rs"]
mod audit_log;
#[path = "behaviour/audit_watch.rs"]
mod audit_watch;
#[path = "behaviour/backups.rs"]
mod backups;
#[path = "behaviour/bad_input.rs"]
mod bad_input;
#[path = "behaviour/bad_tokens.rs"]
mod bad_tokens;
#[path = "behaviour/block_statistics.rs"]
mod block_statistics;
#[path = "behaviour/cargo_policies.rs"]
mod cargo_policies;
#[path = "behaviour/chosen_limits.rs"]
mod chosen_limits;
#[path = "behaviour/connections.rs"]
mod connections;
#[path = "behaviour/console.rs"]
mod console;
#[path = "behaviour/console_bounds.rs"]
mod console_bounds;
#[path = "behaviour/console_changes.rs"]
mod console_changes;
#[path = "behaviour/console_changes_edits.rs"]
mod console_changes_edits;
#[path = "behaviour/console_changes_support.rs"]
mod console_changes_support;
#[path = "behaviour/console_help.rs"]
mod console_help;
#[path = "behaviour/console_hidden.rs"]
mod console_hidden;
#[path = "behaviour/console_home.rs"]
mod console_home;
#[path = "behaviour/console_limits.rs"]
mod console_limits;
#[path = "behaviour/console_links.rs"]
mod console_links;
#[path = "behaviour/console_live.rs"]
mod console_live;
#[path = "behaviour/console_pages.rs"]
mod console_pages;
#[path = "behaviour/console_screens.rs"]
mod console_screens;
#[path = "behaviour/console_support.rs"]
mod console_support;
#[path = "behaviour/console_wizard.rs"]
mod console_wizard;
#[path = "behaviour/contents.rs"]
mod contents;
#[path = "behaviour/deliveries.rs"]
mod deliveries;
#[path = "behaviour/deliveries_bounds.rs"]
mod deliveries_bounds;
#[path = "behaviour/deliveries_log.rs"]
mod deliveries_log;
#[path = "behaviour/escalation.rs"]
mod escalation;
#[path = "behaviour/exchange.rs"]
mod exchange;
#[path = "behaviour/exchange_aws.rs"]
mod exchange_aws;
#[path = "behaviour/exchange_untargeted.rs"]
mod exchange_untargeted;
#[path = "behaviour/explained_access.rs"]
mod explained_access;
#[path = "behaviour/feeds.rs"]
mod feeds;
#[path = "behaviour/feeds_support.rs"]
mod feeds_support;
#[path = "behaviour/findings.rs"]
mod findings;
#[path = "behaviour/first_version.rs"]
mod first_version;
#[path = "behaviour/full_disk.rs"]
mod full_disk;
#[path = "behaviour/golden_events.rs"]
mod golden_events;
#[path = "behaviour/golden_steps.rs"]
mod golden_steps;
#[path = "behaviour/group_mappings.rs"]
mod group_mappings;
#[path = "behaviour/group_retention.rs"]
mod group_retention;
#[path = "behaviour/groups.rs"]
mod groups;
#[path = "behaviour/http_bodies.rs"]
mod http_bodies;
#[path = "behaviour/http_connections.rs"]
mod http_connections;
#[path = "behaviour/identity_providers.rs"]
mod identity_providers;
#[path = "behaviour/image_orders.rs"]
mod image_orders;
#[path = "behaviour/image_views.rs"]
mod image_views;
#[path = "behaviour/images.rs"]
mod images;
#[path = "behaviour/invites.rs"]
mod invites;
#[path = "behaviour/invites_backed.rs"]
mod invites_backed;
#[path = "behaviour/libraries.rs"]
mod libraries;
#[path = "behaviour/libraries_cache.rs"]
mod libraries_cache;
#[path = "behaviour/libraries_malware.rs"]
mod libraries_malware;
#[path = "behaviour/libraries_policies.rs"]
mod libraries_policies;
#[path = "behaviour/libraries_records.rs"]
mod libraries_records;
#[path = "behaviour/library_decisions.rs"]
mod library_decisions;
#[path = "behaviour/library_policy_tests.rs"]
mod library_policy_tests;
#[path = "behaviour/mail.rs"]
mod mail;
#[path = "behaviour/matcher_tests.rs"]
mod matcher_tests;
#[path = "behaviour/metadata.rs"]
mod metadata;
#[path = "behaviour/metrics.rs"]
mod metrics;
#[path = "behaviour/names.rs"]
mod names;
#[path = "behaviour/narrowing.rs"]
mod narrowing;
#[path = "behaviour/neighbours.rs"]
mod neighbours;
#[path = "behaviour/new_front.rs"]
mod new_front;
#[path = "behaviour/open_services.rs"]
mod open_services;
#[path = "behaviour/operator_configuration.rs"]
mod operator_configuration;
#[path = "behaviour/operators.rs"]
mod operators;
#[path = "behaviour/osv_api.rs"]
mod osv_api;
#[path = "behaviour/own_sessions.rs"]
mod own_sessions;
#[path = "behaviour/page_tokens.rs"]
mod page_tokens;
#[path = "behaviour/people.rs"]
mod people;
#[path = "behaviour/people_gains.rs"]
mod people_gains;
#[path = "behaviour/people_limits.rs"]
mod people_limits;
#[path = "behaviour/people_refresh.rs"]
mod people_refresh;
#[path = "behaviour/people_register.rs"]
mod people_register;
#[path = "behaviour/people_sessions.rs"]
mod people_sessions;
#[path = "behaviour/people_support.rs"]
mod people_support;
#[path = "behaviour/posture.rs"]
mod posture;
#[path = "behaviour/preview_bounds.rs"]
mod preview_bounds;
#[path = "behaviour/preview_cases.rs"]
mod preview_cases;
#[path = "behaviour/previews.rs"]
mod previews;
#[path = "behaviour/provider_ends.rs"]
mod provider_ends;
#[path = "behaviour/publication_previews.rs"]
mod publication_previews;
#[path = "behaviour/registry_policies.rs"]
mod registry_policies;
#[path = "behaviour/registry_sources.rs"]
mod registry_sources;
#[path = "behaviour/registry_upstreams.rs"]
mod registry_upstreams;
#[path = "behaviour/release_cycles.rs"]
mod release_cycles;
#[path = "behaviour/replication_calls.rs"]
mod replication_calls;
#[path = "behaviour/repo_search.rs"]
mod repo_search;
#[path = "behaviour/repositories.rs"]
mod repositories;
#[path = "behaviour/revocation.rs"]
mod revocation;
#[path = "behaviour/roles.rs"]
mod roles;
#[path = "behaviour/scans.rs"]
mod scans;
#[path = "behaviour/scim.rs"]
mod scim;
#[path = "behaviour/scim_doors.rs"]
mod scim_doors;
#[path = "behaviour/scim_owners.rs"]
mod scim_owners;
#[path = "behaviour/scim_people.rs"]
mod scim_people;
#[path = "behaviour/scim_tokens.rs"]
mod scim_tokens;
#[path = "behaviour/search.rs"]
mod search;
#[path = "behaviour/search_bounds.rs"]
mod search_bounds;
#[path = "behaviour/signin.rs"]
mod signin;
#[path = "behaviour/signin_devices.rs"]
mod signin_devices;
#[path = "behaviour/signin_refusals.rs"]
mod signin_refusals;
#[path = "behaviour/sink.rs"]
mod sink;
#[path = "behaviour/sizes.rs"]
mod sizes;
#[path = "behaviour/statistics.rs"]
mod statistics;
#[path = "behaviour/stopping.rs"]
mod stopping;
#[path = "behaviour/storage_failure.rs"]
mod storage_failure;
#[path = "behaviour/subscriptions.rs"]
mod subscriptions;
#[path = "behaviour/support.rs"]
mod support;
#[path = "behaviour/tables.rs"]
mod tables;
#[path = "behaviour/tags.rs"]
mod tags;
#[path = "behaviour/terms.rs"]
mod terms;
#[path = "behaviour/tls.rs"]
mod tls;
#[path = "behaviour/too_many_elements.rs"]
mod too_many_elements;
#[path = "behaviour/traces.rs"]
mod traces;
#[path = "behaviour/visibility.rs"]
mod visibility;
#[path = "behaviour/vulnerability_metadata.rs"]
mod vulnerability_metadata;
#[path = "behaviour/walks.rs"]
mod walks;
#[path = "behaviour/wire.rs"]
mod wire;
#[path = "behaviour/work_before_limits.rs"]
mod work_before_limits;
