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

/// The address of the host that serves the OSV query API alone.
fn osv_url(options: &Options, others: [&str; 4]) -> Result<Option<String>, StartError> {
    let Some(url) = &options.osv_url else { return Ok(None) };
    let url = public_url("osv-url", url)?;
    let host = |url: &str| url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().map(str::to_lowercase);
    if host(&url).as_deref() != url.split_once("://").map(|(_, rest)| rest.to_lowercase()).as_deref() {
        return Err(StartError::Option(format!(
            "--osv-url {url}: must have no path, because clients of the OSV query API know a host alone; below a path it is \
             at the base URL, at /osv"
        )));
    }
    if others.into_iter().any(|other| host(other) == host(&url)) {
        return Err(StartError::Option(format!(
            "--osv-url {url}: must be another host than those of the API, the token exchange, the registry and the \
             libraries, because nothing else is served there"
        )));
    }
    Ok(Some(url))
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
    let osv_url = osv_url(options, [&base_url, &auth_url, &registry_audience, &libraries_audience])?;
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
        osv_url,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(change: impl FnOnce(&mut Options)) -> Result<Settings, String> {
        let mut options = Options { base_url: Some("https://api.example".into()), ..Options::default() };
        change(&mut options);
        of(&options, "http", SocketAddr::from(([127, 0, 0, 1], 8080))).map_err(|error| error.to_string())
    }

    #[test]
    fn the_osv_api_has_a_host_alone() {
        let with = |url: &str| settings(|options| options.osv_url = Some(url.into())).map(|settings| settings.osv_url);
        assert_eq!(settings(|_| ()).unwrap().osv_url, None);
        for url in ["https://osv.example", "http://OSV.example:8443/"] {
            assert_eq!(with(url).unwrap().as_deref(), Some(url.trim_end_matches('/')));
        }
        for (url, part) in [
            ("https://osv.example/osv", "must have no path"),
            ("osv.example", "osv-url"),
            ("ftp://osv.example", "must be an http or https address"),
            ("https://osv.example/?a=b", "must have no query"),
            ("https://API.example", "must be another host"),
        ] {
            let error = with(url).unwrap_err();
            assert!(error.contains(part), "{url}: {error}");
        }
        let apart = |change: fn(&mut Options)| {
            settings(|options| {
                options.osv_url = Some("https://x.example".into());
                change(options);
            })
        };
        let others: [fn(&mut Options); 3] = [
            |options| options.auth_url = Some("https://x.example".into()),
            |options| options.registry_host = Some("x.example".into()),
            |options| options.libraries_url = Some("https://x.example/packages".into()),
        ];
        for other in others {
            assert!(apart(other).unwrap_err().contains("must be another host"));
        }
    }
}
