//! The command line against a running server: what it prints, keeps, and ends with.

#[path = "command_line/advisories.rs"]
mod advisories;
#[path = "command_line/api.rs"]
mod api;
#[path = "command_line/ci.rs"]
mod ci;
#[path = "command_line/comparison.rs"]
mod comparison;
#[path = "command_line/containers.rs"]
mod containers;
#[path = "command_line/credential_provider.rs"]
mod credential_provider;
#[path = "command_line/demo.rs"]
mod demo;
#[path = "command_line/examples.rs"]
mod examples;
#[path = "command_line/examples_table.rs"]
mod examples_table;
#[path = "command_line/feeds.rs"]
mod feeds;
#[path = "command_line/files.rs"]
mod files;
#[path = "command_line/full_disk.rs"]
mod full_disk;
#[path = "command_line/greeting.rs"]
mod greeting;
#[path = "command_line/keyring.rs"]
mod keyring;
#[path = "command_line/keys.rs"]
mod keys;
#[path = "command_line/libraries.rs"]
mod libraries;
#[path = "command_line/manners.rs"]
mod manners;
#[path = "command_line/mcp.rs"]
mod mcp;
#[path = "command_line/operator.rs"]
mod operator;
#[path = "command_line/organization.rs"]
mod organization;
#[path = "command_line/organization_owners.rs"]
mod organization_owners;
#[path = "command_line/organization_refusals.rs"]
mod organization_refusals;
#[path = "command_line/organization_support.rs"]
mod organization_support;
#[path = "command_line/previews.rs"]
mod previews;
#[path = "command_line/provenance.rs"]
mod provenance;
#[path = "command_line/pull_tokens.rs"]
mod pull_tokens;
#[path = "command_line/reference.rs"]
mod reference;
#[path = "command_line/registry.rs"]
mod registry;
#[path = "command_line/resources.rs"]
mod resources;
#[path = "command_line/self_check.rs"]
mod self_check;
#[path = "command_line/sessions.rs"]
mod sessions;
#[path = "command_line/signing_in.rs"]
mod signing_in;
#[path = "command_line/start_up.rs"]
mod start_up;
#[path = "command_line/statements.rs"]
mod statements;
#[path = "command_line/storage.rs"]
mod storage;
#[path = "command_line/support.rs"]
mod support;
