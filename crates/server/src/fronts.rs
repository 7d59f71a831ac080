//! Every protocol front, registered: the one place in the server that names them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bowline_authn::crypto::random_bytes;
use bowline_console::Console;
use bowline_fronts::Count;
use bowline_identity::ScimUsers;
use bowline_osv_api::OsvApi;
use bowline_pipeline::{ConsolePipeline, RateLimits};
use bowline_rpc::{InFlight, Telemetry};
use bowline_scim::Scim;
use bowline_signin::{Redirects, SignIn};
use bowline_vulnerabilities::records::RecordLookup;

use crate::options::Options;
use crate::server::{Parts, address_rate};

/// Writes and searches per second of one directory.
const DEFAULT_SCIM_RATE: u32 = 25;
/// Calls per second of one address. Scanners look up every record that they found, all at once.
const DEFAULT_OSV_RATE: u32 = 50;

/// The routes of all fronts. `queries` bounds the bodies of the OSV API that are in memory, `request_time` a page of the
/// console.
pub(crate) fn all(
    options: &Options,
    parts: &Parts,
    telemetry: Arc<Telemetry>,
    redirects: Redirects,
    queries: InFlight,
    request_time: Duration,
) -> Router {
    let count: Count = Arc::new(move |name, code, elapsed| telemetry.count_named(name, code, elapsed));
    let console = options.has_console().then(|| {
        let api = ConsolePipeline::new(parts.pipeline.clone());
        Console::new(api, request_time, Arc::new(random_bytes::<32>), count.clone())
    });
    if console.as_ref().is_some_and(Console::is_exposed) {
        let address = &parts.settings.auth_url;
        tracing::warn!(
            address,
            "console without TLS: session cookies are readable on the network; set an https --auth-url"
        );
    }
    let osv_api = bowline_osv_api::router(osv_api(options, parts, count.clone()));
    Router::new()
        .merge(console.as_ref().map(Console::router).unwrap_or_default())
        .merge(bowline_signin::router(sign_in(parts, redirects, console.as_ref()), count.clone()))
        .merge(bowline_scim::router(scim(options, parts, count.clone())))
        .merge(bowline_package_hosts::router(parts.package_hosts.clone(), count.clone()))
        .merge(bowline_oci::router(parts.distribution.clone(), count))
        .merge(Arc::new(queries).hold_bodies(osv_api, bowline_osv_api::MAX_BODY))
}

fn sign_in(parts: &Parts, redirects: Redirects, console: Option<&Console>) -> SignIn {
    SignIn {
        people: parts.people.clone(),
        pipeline: parts.pipeline.clone(),
        redirects,
        random: Arc::new(random_bytes::<32>),
        console: console.map(Console::sessions),
    }
}

fn scim(options: &Options, parts: &Parts, count: Count) -> Scim {
    let limits = RateLimits::new(options.scim_rate.unwrap_or(DEFAULT_SCIM_RATE), address_rate(options));
    Scim {
        users: ScimUsers::new(parts.storage.db.clone(), parts.contract.clone()),
        base_url: parts.settings.base_url.clone(),
        clock: parts.clock.clone(),
        draw: random_bytes::<8>,
        limits: Arc::new(limits.counted_with(&parts.pipeline.limits)),
        count,
    }
}

fn osv_api(options: &Options, parts: &Parts, count: Count) -> OsvApi {
    let limits = RateLimits::new(0, options.osv_rate.unwrap_or(DEFAULT_OSV_RATE));
    OsvApi {
        records: RecordLookup::new(parts.storage.db.clone()),
        limits: limits.counted_with(&parts.pipeline.limits),
        count,
    }
}
