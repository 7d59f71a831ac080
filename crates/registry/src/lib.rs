//! The registry: its control plane (repositories, policies, charts, what is known of images), and in [`content`] the
//! rules of its distribution protocol.
//!
//! A resource's file holds its row, its SQL, its operations and its handlers. To add a method, write its handler next
//! to its resource and register it in the file's `register`.

pub mod attached;
mod charts;
pub mod components;
pub mod content;
mod deployments;
mod effective_policies;
pub mod findings;
mod image_calls;
mod image_policies;
mod image_views;
mod images;
mod limits;
mod manifest_metadata;
mod neutral;
mod paths;
mod pattern_budget;
mod policies;
mod readme_html;
mod readmes;
pub mod references;
mod release_cycles;
mod repo_fields;
mod repo_search;
mod repos;
mod repos_v1;
mod retention;
pub mod sboms;
mod scan_reports;
mod settings;
mod shapes;
mod statistics;
mod stored_bytes;
mod tables;
mod tag_calls;
mod tag_lists;
mod tag_views;
mod tags;
pub mod trusted_root;
pub mod vuln_counts;
mod vuln_matches;
mod vuln_reports;

use std::sync::Arc;

use bowline_pipeline::Handlers;
use bowline_resources::groups::GroupContents;

pub use paths::group_of;
pub use retention::retention_by;
pub use tables::TABLES;

pub fn register(
    handlers: Handlers,
    documents: &attached::Documents,
    checks: Option<&Arc<content::UpstreamChecks>>,
) -> Handlers {
    let handlers = repos::register(handlers);
    let handlers = repos_v1::register(handlers);
    let handlers = readmes::register(handlers);
    let handlers = tag_calls::register(handlers);
    let handlers = tag_lists::register(handlers);
    let handlers = tag_views::register(handlers);
    let handlers = image_calls::register(handlers);
    let handlers = deployments::register(handlers);
    let handlers = settings::register(handlers);
    let handlers = content::replication::statuses::register(handlers);
    let handlers = content::replication::upstream_calls::register(handlers);
    let handlers = content::replication::upstream_checks::register(handlers, checks);
    let handlers = policies::register(handlers);
    let handlers = effective_policies::register(handlers);
    let handlers = retention::register(handlers);
    let handlers = charts::register(handlers, documents);
    let handlers = sboms::register(handlers, documents);
    let handlers = manifest_metadata::register(handlers, documents);
    let handlers = scan_reports::register(handlers);
    let handlers = vuln_reports::register(handlers);
    let handlers = vuln_counts::register(handlers);
    let handlers = vuln_matches::register(handlers);
    let handlers = image_views::register(handlers, documents);
    let handlers = components::register(handlers);
    let handlers = image_policies::register(handlers, documents);
    let handlers = repo_search::register(handlers);
    let handlers = statistics::register(handlers);
    let handlers = release_cycles::register(handlers);
    neutral::register(handlers)
}

/// What the registry holds of groups.
pub const GROUP_CONTENTS: GroupContents = GroupContents { tables: TABLES, delete: None };
