//! Checks of what the server calls.

use std::collections::BTreeSet;

use bowline_authn::discovery::IssuerKeys;
use bowline_core::Micros;

use super::Finding;
use crate::error::StartError;
use crate::options::Options;
use crate::{assembly, settings};

const ISSUER: &str = "issuer";

/// Whether the issuers of the operator's providers publish their keys.
pub(super) async fn issuers(options: &Options, stored: Vec<String>, now: Micros) -> Vec<Finding> {
    let configured = options.operator_providers.iter().map(|provider| provider.issuer.clone());
    let issuers: BTreeSet<String> = configured.chain(stored).collect();
    let scheme = if options.tls_cert.is_some() { "https" } else { "http" };
    // Options that make no sense are a finding of their own.
    let Ok(settings) = settings::of(options, scheme, options.listen()) else { return Vec::new() };
    let keys = match assembly::outbound(options, &settings, options.listen()) {
        Ok(client) => IssuerKeys::new(client),
        Err(error) => return vec![Finding::failure(ISSUER, &error)],
    };
    let mut findings = Vec::new();
    for issuer in issuers {
        findings.push(match keys.keys_for(&issuer, None, now.div_euclid(1_000_000)).await {
            Ok(_) => Finding::ok(ISSUER, format!("{issuer} answers with its keys")),
            Err(error) => {
                let cause = format!("{issuer}: {}", error.public_message());
                let hint = "people cannot sign in with it: see that this machine reaches it, and --allow-private-addresses \
                            names its network if it is a private one";
                Finding::failure(ISSUER, &StartError::Unusable { cause, hint: hint.into() })
            }
        });
    }
    findings
}
