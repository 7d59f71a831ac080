//! The registry's control plane: repositories, their read-mes, and what is in them.

pub(crate) mod attached;
mod charts;
pub(crate) mod content;
mod deployments;
mod image_calls;
pub(crate) mod images;
mod limits;
mod manifest_metadata;
mod neutral;
mod paths;
mod pattern_budget;
mod policies;
mod readme_html;
mod readmes;
mod repo_fields;
mod repos;
mod repos_v1;
mod retention;
pub(crate) mod sboms;
mod scan_reports;
pub(crate) mod settings;
mod shapes;
mod sources;
mod stored_bytes;
mod syncs;
mod tag_calls;
mod tag_lists;
mod tag_views;
pub(crate) mod tags;
pub(crate) mod upstream_credentials;
mod upstream_tags;
pub(crate) mod vuln_counts;
mod vuln_matches;
mod vuln_reports;

use bowline_pipeline::Handlers;

pub(crate) fn register(handlers: Handlers, documents: &attached::Documents) -> Handlers {
    let handlers = repos::register(handlers);
    let handlers = repos_v1::register(handlers);
    let handlers = readmes::register(handlers);
    let handlers = tag_calls::register(handlers);
    let handlers = tag_lists::register(handlers);
    let handlers = tag_views::register(handlers);
    let handlers = image_calls::register(handlers);
    let handlers = deployments::register(handlers);
    let handlers = settings::register(handlers);
    let handlers = syncs::register(handlers);
    let handlers = policies::register(handlers);
    let handlers = retention::register(handlers);
    let handlers = charts::register(handlers, documents);
    let handlers = sboms::register(handlers, documents);
    let handlers = manifest_metadata::register(handlers, documents);
    let handlers = scan_reports::register(handlers);
    let handlers = vuln_reports::register(handlers);
    let handlers = vuln_counts::register(handlers);
    let handlers = vuln_matches::register(handlers);
    neutral::register(handlers)
}
