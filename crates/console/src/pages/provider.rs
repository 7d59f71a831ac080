//! One identity provider of an organization, and the directory that provisions its people.

use bowline_contract::v2::iam::identity_provider::scim::CredentialState;
use bowline_contract::v2::iam::identity_provider::{Configuration, Scim};
use bowline_contract::v2::iam::rpc::identity_providers_service::{
    GenerateScimToken, GetIdentityProvider, RegenerateScimToken, RevokeScimToken, SetScimEnabled,
};
use bowline_contract::v2::iam::{GetIdentityProviderRequest, IdentityProvider};
use bowline_core::Result;
use maud::{Markup, html};

use super::{parent, required};
use crate::components::{action, facts, link, section};
use crate::query::address;
use crate::shell::Content;
use crate::values::{badge, code, text, time, words, yes};
use crate::visit::Visit;

/// One identity provider: how people sign in, and the state of its directory.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let uid = required(visit, "uid")?;
    let provider = visit.call::<GetIdentityProvider>(GetIdentityProviderRequest { uid: uid.clone() }).await?;
    let scim = provider.scim.clone().unwrap_or_default();
    let body = html! {
        (about(&provider))
        (section("directory", "Directory", &html! { (state(&scim)) (changes(visit, &uid, &scim)) }))
        p { a href=(address("/console/history", &[("resource", &uid)])) { "How it was changed" } }
    };
    let list = address("/console/providers", &[("in", parent(&uid))]);
    Ok(Content::new(provider.name, body).below(list, "Identity providers"))
}

fn about(provider: &IdentityProvider) -> Markup {
    let mut rows = vec![
        ("Description", text(&provider.description)),
        ("Id", code(&provider.uid)),
        ("Default role", link("/console/role", &[("uid", &provider.default_role)], &provider.default_role)),
        ("Created", time(provider.create_time.as_ref())),
    ];
    if let Some(Configuration::Oidc(oidc)) = &provider.configuration {
        rows.extend([
            ("Issuer", code(&oidc.issuer)),
            ("Client", code(&oidc.client_id)),
            ("Further scopes", text(&oidc.additional_scopes.join(", "))),
            ("Groups by", code(&oidc.groups_claim)),
            ("PKCE", yes(oidc.pkce_enabled)),
        ]);
    }
    facts(&rows)
}

fn state(scim: &Scim) -> Markup {
    let token = CredentialState::try_from(scim.credential_state).unwrap_or_default();
    facts(&[
        ("Provisions people", if scim.enabled { badge("good", "on") } else { badge("plain", "off") }),
        ("Address", code(&scim.endpoint_url)),
        ("Token", text(&words(token.as_str_name(), "CREDENTIAL_STATE_"))),
        ("Token ends", time(scim.token_expire_time.as_ref())),
        ("Earlier token ends", time(scim.previous_token_expire_time.as_ref())),
    ])
}

fn changes(visit: &Visit, uid: &str, scim: &Scim) -> Markup {
    let (provider, etag) = (("identity_provider_uid", uid), ("etag", scim.etag.as_str()));
    let (switch, enabled) = if scim.enabled { ("Switch it off", "false") } else { ("Switch it on", "true") };
    let links = [
        action::<SetScimEnabled>(visit, switch, &[provider, ("enabled", enabled), etag]),
        action::<GenerateScimToken>(visit, "Create a token", &[provider]),
        action::<RegenerateScimToken>(visit, "Replace the token", &[provider, etag]),
        action::<RevokeScimToken>(visit, "Revoke the token", &[provider]),
    ];
    html! { ul.actions aria-label="Directory" { @for link in &links { li { (link) } } } }
}
