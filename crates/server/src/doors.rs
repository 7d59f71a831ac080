//! Doors beside the methods of the contract that need little more than the database.

use bowline_identity::ScimUsers;
use bowline_osv_api::OsvApi;
use bowline_pipeline::RateLimits;
use bowline_scim::Scim;
use bowline_vulnerabilities::records::RecordLookup;

use crate::options::Options;
use crate::server::{Parts, address_rate};

/// Writes and searches per second of one directory.
const DEFAULT_SCIM_RATE: u32 = 25;
/// Calls per second of one address. Scanners ask for each record that they found, all at once.
const DEFAULT_OSV_RATE: u32 = 50;

pub(crate) fn scim(options: &Options, parts: &Parts) -> Scim {
    Scim {
        users: ScimUsers::new(parts.storage.db.clone(), parts.contract.clone()),
        base_url: parts.settings.base_url.clone(),
        clock: parts.clock.clone(),
        draw: bowline_authn::wrap::random_bytes::<8>,
        limits: RateLimits::new(options.scim_rate.unwrap_or(DEFAULT_SCIM_RATE), address_rate(options))
            .counted_with(&parts.pipeline.limits),
    }
}

pub(crate) fn osv_api(options: &Options, parts: &Parts) -> OsvApi {
    OsvApi {
        records: RecordLookup::new(parts.storage.db.clone()),
        limits: RateLimits::new(0, options.osv_rate.unwrap_or(DEFAULT_OSV_RATE)).counted_with(&parts.pipeline.limits),
    }
}
