//! The registry's control plane: repositories and their read-mes.

pub(crate) mod content;
pub(crate) mod images;
mod paths;
mod readme_html;
mod readmes;
mod repo_fields;
mod repos;
mod repos_v1;
mod shapes;
pub(crate) mod tags;

use bowline_pipeline::Handlers;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = repos::register(handlers);
    let handlers = repos_v1::register(handlers);
    readmes::register(handlers)
}
