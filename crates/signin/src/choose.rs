//! The page that offers providers.

use axum::response::Response;
use bowline_core::Error;
use bowline_identity::people::Provider;
use maud::html;

use crate::activate::TICKET;
use crate::app::App;
use crate::login_request::LoginRequest;
use crate::page;
use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::start::{operator_id, purpose};

/// The field with the organization's name.
pub(crate) const NAME: &str = "organization";

/// What names a provider, which the page decides again.
const NAMING: [&str; 4] = ["idp_id", "connection", "client_id", NAME];

/// The parameters that a page hands on. Others would do nothing.
const HANDED_ON: [&str; 12] = [
    "exit",
    "return",
    "redirect",
    "invite",
    "skip_registration",
    "identity",
    "audience",
    "create_refresh_token",
    "screen_hint",
    "scope",
    "headless_code",
    TICKET,
];

/// The operator's providers as links, and a field for the name of an organization.
pub(crate) async fn page(
    app: &App,
    parameters: &Parameters,
    request: &LoginRequest,
    wrong: Option<&str>,
) -> Result<Response, Problem> {
    let mut choices = Vec::new();
    for provider in app.parts.people.operator_providers().await? {
        let label = provider.label.clone();
        choices.extend(operator_id(provider).map(|id| (label, address(parameters, &id))));
    }
    let kept: Vec<&(String, String)> = handed_on(parameters).collect();
    let body = html! {
        p { (purpose(&request.destination)) }
        @if !choices.is_empty() {
            ul.choices {
                @for (label, address) in &choices {
                    li { a.button href=(address) { "Continue with " (label) } }
                }
            }
            h2 id="organization" { "Your organization’s own sign-in" }
        }
        form method="post" action="/oauth/organization" {
            @for (name, value) in kept {
                input type="hidden" name=(name) value=(value);
            }
            label for="name" { "Name of the organization" }
            @if let Some(wrong) = wrong {
                p.notice role="alert" id="wrong" { (wrong) }
            }
            input type="text" id="name" name=(NAME) required autocomplete="organization" autocapitalize="none"
                spellcheck="false" maxlength="63" aria-describedby=[wrong.map(|_| "wrong")]
                aria-invalid=[wrong.map(|_| "true")];
            button.quiet type="submit" { "Continue" }
        }
    };
    Ok(page::page("Sign in", body))
}

/// Names the organization's provider that a link leads to, and the address the browser would go to; goes there on a
/// click alone.
pub(crate) fn leaving(provider: &Provider, url: &str) -> Result<Response, Problem> {
    let address = url::Url::parse(url).map_err(Error::internal)?;
    let body = html! {
        p { "The link that you followed signs you in with " strong { (provider.label) } ", which belongs to an organization on this server." }
        p { "Your browser continues at " code { (address.origin().ascii_serialization()) } ". Enter your password there only if you know that address." }
        p { a.button href=(url) { "Continue" } }
    };
    Ok(page::page("Continue at your provider", body))
}

fn handed_on(parameters: &Parameters) -> impl Iterator<Item = &(String, String)> {
    parameters.without(&NAMING).filter(|(name, _)| HANDED_ON.contains(&name.as_str()))
}

/// The same sign-in with this provider.
fn address(parameters: &Parameters, id: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(handed_on(parameters)).append_pair("connection", id);
    format!("/oauth?{}", query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_keeps_what_was_asked_for() {
        let query =
            "redirect=http%3A%2F%2Flocalhost%3A1%2F%3Fa%3Db%26c&exit=redirect&client_id=auth0&scope=a%252Fb&x=y";
        let parameters = Parameters::read(query.as_bytes()).unwrap();
        assert_eq!(
            address(&parameters, "my idp"),
            "/oauth?redirect=http%3A%2F%2Flocalhost%3A1%2F%3Fa%3Db%26c&exit=redirect&scope=a%252Fb&connection=my+idp"
        );
    }
}
