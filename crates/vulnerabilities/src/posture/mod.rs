//! The vulnerabilities of all images of a scope: [`summary`] in numbers from day to day, [`list`] one by one with the
//! advisories about them.

pub(crate) mod applicable;
mod list;
mod summary;

use bowline_contract::bowline::vulnerabilities::v1::rpc::posture::{GetPosture, ListFindings};
use bowline_pipeline::{Handlers, handler};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.heavy_read::<GetPosture>(handler!(summary::get)).heavy_read::<ListFindings>(handler!(list::list))
}
