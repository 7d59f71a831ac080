//! Settings from the options, validated as a whole.

use std::net::SocketAddr;

use bowline_core::Uidp;
use bowline_pipeline::{OrganizationCreators, Settings};
use bowline_terminal::public_url;

use crate::demo_directory;
use crate::error::StartError;
use crate::garbage::upload_limits;
use crate::limits;
use crate::options::{Options, Organizations};
use crate::terms;

/// The group that an option names, if it is given.
fn group_option(option: &str, given: Option<&str>) -> Result<Option<Uidp>, StartError> {
    let parsed = given.map(Uidp::parse).transpose();
    parsed.map_err(|problem| StartError::Option(format!("--{option} names no group: it {problem}")))
}

/// The settings of a server that listens on that address.
///
/// # Errors
/// An option is invalid, or two audiences are the same.
pub(crate) fn of(options: &Options, scheme: &str, address: SocketAddr) -> Result<Settings, StartError> {
    let base_url = match &options.base_url {
        Some(url) => public_url("base-url", url)?,
        None => format!("{scheme}://{address}"),
    };
    let auth_url = match &options.auth_url {
        Some(url) => public_url("auth-url", url)?,
        None => base_url.clone(),
    };
    let host = base_url.split_once("://").map_or(&*base_url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    let registry_audience = options.registry_host.clone().unwrap_or_else(|| host.to_owned());
    let libraries_audience = match &options.libraries_url {
        Some(url) => public_url("libraries-url", url)?,
        None => format!("{base_url}/libraries"),
    };
    let settings = Settings {
        api_audience: base_url.clone(),
        organizations: match options.organizations {
            Some(Organizations::Anyone) => OrganizationCreators::Anyone,
            Some(Organizations::Operator) | None => OrganizationCreators::Operator,
        },
        operator_issuers: options.operator_providers.iter().map(|provider| provider.issuer.clone()).collect(),
        terms: terms::documents(options)?,
        terms_required: options.terms_required,
        entitlements_required: options.entitlements_required,
        blocked_email_domains: options.blocked_email_domains(),
        sends_mail: options.smtp_url.is_some(),
        is_demo: demo_directory::is_demo(options),
        advisory_prefix: options.advisory_prefix()?,
        community_charts: group_option("community-charts", options.community_charts.as_deref())?,
        iamguarded_charts: group_option("iamguarded-charts", options.iamguarded_charts.as_deref())?,
        uploads: upload_limits(options)?,
        streams: limits::streams(options)?,
        base_url,
        auth_url,
        registry_audience,
        libraries_audience,
    };
    let [api, registry, libraries] = settings.audiences();
    if api == registry || api == libraries || registry == libraries {
        return Err(StartError::Option(format!(
            "the API ({api}), the registry ({registry}) and the libraries ({libraries}) must have different audiences: \
             a token for one must not open another"
        )));
    }
    Ok(settings)
}
