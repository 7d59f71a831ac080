//! Documents: the public advisories of each package. Anyone may read them.

use std::sync::Arc;

use bowline_contract::v1::advisory::rpc::security_advisory as methods1;
use bowline_contract::v2::advisory::rpc::security_advisory_service as methods2;
use bowline_core::{Error, Result};
use bowline_pipeline::{Answer, Handlers};

use super::published::Published;
use crate::advisories::rows::folded;

/// Maximum number of names of one call.
const MAX_NAMES: usize = 200;
/// Maximum bytes of a name, and of a package's.
const LONGEST: usize = 512;

pub(super) fn register(handlers: Handlers, published: &Arc<Published>) -> Handlers {
    let (first, second) = (published.clone(), published.clone());
    handlers
        .prepared::<methods1::ListDocuments>(move |call| {
            let (published, request) = (first.clone(), call.request().clone());
            Box::pin(async move { list(&published, &request.id, &request.cves).await })
        })
        .prepared::<methods2::ListDocuments>(move |call| {
            let (published, request) = (second.clone(), call.request().clone());
            Box::pin(async move { list(&published, &request.id, &request.cves).await })
        })
}

/// No permission stands before this method, so that its field rules are checked here.
async fn list(published: &Published, id: &str, cves: &[String]) -> Result<Answer> {
    if cves.len() > MAX_NAMES {
        return Err(Error::invalid_field("cves", format!("at most {MAX_NAMES} elements")));
    }
    let is_wrong = |text: &str| text.len() > LONGEST || text.contains('\0');
    if is_wrong(id) {
        return Err(Error::invalid_field("id", format!("at most {LONGEST} characters, none of them U+0000")));
    }
    if let Some(at) = cves.iter().position(|name| is_wrong(name)) {
        let description = format!("at most {LONGEST} characters, none of them U+0000");
        return Err(Error::invalid_field(format!("cves[{at}]"), description));
    }
    published.find(id, cves.iter().map(|name| folded(name)).collect()).await
}
