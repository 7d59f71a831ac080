//! Vulnerabilities: what organizations say about them in advisories, the documents made of advisories, the findings of
//! images with the advisories about them, records that are imported from databases of vulnerabilities, and the components of
//! images that these records affect.

pub mod advisories;
mod documents;
pub mod matching;
mod posture;
pub mod records;
mod tables;

use std::sync::Arc;

use bowline_pipeline::Handlers;
use bowline_registry::attached::Documents;

pub use advisories::GROUP_CONTENTS;
pub use documents::Published;
pub use tables::TABLES;

pub fn register(handlers: Handlers, published: &Arc<Published>, files: &Documents) -> Handlers {
    let handlers = advisories::register(handlers);
    let handlers = documents::register(handlers, published, files);
    let handlers = posture::register(handlers);
    let handlers = matching::register(handlers);
    records::register(handlers)
}
