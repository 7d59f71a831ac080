//! Release cycles of products, and what they say of packages and tags: `GetPackageVersionMetadata`, `ListEolTags`.
//!
//! The operator imports products with their cycles (`stored`). A tag belongs to the product that the main package of its
//! image or its repository is named after, and to the cycle that its version begins with (`cycles`). Without a product or
//! cycle, nothing is known, and a tag counts as supported.

mod cycles;
mod eol_tags;
mod import;
mod stored;
mod versions;

use bowline_pipeline::Handlers;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = stored::register(handlers);
    let handlers = import::register(handlers);
    let handlers = versions::register(handlers);
    eol_tags::register(handlers)
}
