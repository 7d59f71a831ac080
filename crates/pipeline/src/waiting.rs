//! How much costly work runs at once, and how much of it one organization has under way.

use std::sync::Arc;

use bowline_core::{Detail, Error, Reason, Result};

use crate::principal::Principal;
use crate::quota::{Lease, Quota};

/// Maximum number of requests whose costly work runs concurrently. Others wait; calls without such work do not.
pub(crate) const COSTLY_AT_ONCE: usize = 4;
/// Maximum number of heavy reads that run concurrently. They are fewer than costly requests, because a heavy read may need
/// a permit of those as well.
pub(crate) const HEAVY_AT_ONCE: usize = 2;

/// Previews that run at once, and most of one organization that run or wait: each takes a turn of the writer.
pub(crate) const PREVIEWS_AT_ONCE: usize = 2;
const PREVIEWS_BY_ORGANIZATION: usize = 4;

/// Maximum number of costly requests, and of heavy reads, of one organization that run or wait, so that none can fill
/// the shared queue.
const COSTLY_BY_ORGANIZATION: usize = 8;
const HEAVY_BY_ORGANIZATION: usize = 2;

/// Calls that run or wait for a permit, by the caller's organization.
pub(crate) struct Waiting {
    costly: Arc<Quota<String>>,
    heavy: Arc<Quota<String>>,
    previews: Arc<Quota<String>>,
}

impl Waiting {
    pub(crate) fn new() -> Waiting {
        Waiting {
            costly: Quota::new(usize::MAX, COSTLY_BY_ORGANIZATION),
            heavy: Quota::new(usize::MAX, HEAVY_BY_ORGANIZATION),
            previews: Quota::new(usize::MAX, PREVIEWS_BY_ORGANIZATION),
        }
    }

    pub(crate) fn costly(&self, principal: &Principal) -> Result<Lease<String>> {
        take(&self.costly, principal)
    }

    pub(crate) fn heavy(&self, principal: &Principal) -> Result<Lease<String>> {
        take(&self.heavy, principal)
    }

    pub(crate) fn preview(&self, principal: &Principal) -> Result<Lease<String>> {
        take(&self.previews, principal)
    }
}

fn take(quota: &Arc<Quota<String>>, principal: &Principal) -> Result<Lease<String>> {
    let organization = principal.subject().split('/').next().unwrap_or_default();
    quota.take(Some(organization.to_owned()), 1).map_err(|_| {
        let text =
            "Too many such calls of the organization are under way: make the next one when others have been answered";
        Error::new(Reason::RateLimited, text).with(Detail::RetryAfter(std::time::Duration::from_secs(1)))
    })
}
