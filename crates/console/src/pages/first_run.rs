//! The first steps of a server: an organization, an identity provider, and a person with a name. The operator does them, and
//! may do without any.

use bowline_contract::Method as _;
use bowline_contract::bowline::iam::v1::rpc::matchers::TestIssuer;
use bowline_contract::bowline::operator::v1::ListProvidersRequest;
use bowline_contract::bowline::operator::v1::rpc::operator::ListProviders;
use bowline_contract::v1::common::UidpFilter;
use bowline_contract::v2::iam::rpc::group_invites_service::CreateGroupInvite;
use bowline_contract::v2::iam::rpc::groups_service::{CreateGroup, ListGroups};
use bowline_contract::v2::iam::rpc::identity_providers_service::{CreateIdentityProvider, ListIdentityProviders};
use bowline_contract::v2::iam::rpc::roles_service::ListRoles;
use bowline_contract::v2::iam::{Group, ListGroupsRequest, ListIdentityProvidersRequest, ListRolesRequest, Role};
use bowline_core::Result;
use maud::{Markup, html};

use super::below;
use super::wizard::{call_form, confirm};
use crate::components::{facts, link, refused, section};
use crate::guard::same;
use crate::method::{MADE, PREFIX, TESTED, UNREAD};
use crate::query::address;
use crate::shell::Content;
use crate::values::{badge, code};
use crate::visit::{Answer, ROWS, Visit};

/// Address of the first page.
pub(crate) const FIRST_RUN: &str = "/console/first-run";
const PROVIDER: &str = "/console/first-run/provider";
const TEST: &str = "/console/first-run/test";
const SAVE: &str = "/console/first-run/save";
const PERSON: &str = "/console/first-run/person";

/// Fields of the provider in addresses: none is secret.
const CARRIED: [&str; 7] = [UNREAD, "in", "name", "issuer", "client", "scopes", "role"];
/// Roles by which a person who signs in for the first time may be received, the narrowest first.
const ROLES: [&str; 3] = ["viewer", "editor", "owner"];
/// Role of the person that the operator invites.
const INVITED: &str = "owner";
/// Time in which an invitation is accepted.
const INVITATION: &str = "86400s";

/// What a server has of its first steps.
struct State {
    organizations: Answer<Vec<Group>>,
    has_provider: bool,
}

async fn state(visit: &mut Visit) -> Result<State> {
    let request = ListGroupsRequest {
        uidp: Some(UidpFilter { in_root: true, ..UidpFilter::default() }),
        page_size: ROWS,
        ..ListGroupsRequest::default()
    };
    let groups = visit.answer::<ListGroups>(request).await?;
    let organizations = Answer { method: groups.method, result: groups.result.map(|response| response.groups) };
    Ok(State { organizations, has_provider: has_provider(visit).await? })
}

/// Whether people can sign in: by a provider of the server, or of an organization.
async fn has_provider(visit: &mut Visit) -> Result<bool> {
    if visit.session.is_operator {
        let of_server = visit.answer::<ListProviders>(ListProvidersRequest {}).await?;
        if of_server.result.is_ok_and(|response| !response.providers.is_empty()) {
            return Ok(true);
        }
    }
    let request = ListIdentityProvidersRequest { page_size: 1, ..ListIdentityProvidersRequest::default() };
    let of_organizations = visit.answer::<ListIdentityProviders>(request).await?;
    Ok(of_organizations.result.is_ok_and(|response| !response.identity_providers.is_empty()))
}

/// What the first page of the operator says of steps that are left; nothing where there are none.
pub(super) async fn invitation(visit: &mut Visit, has_organizations: bool) -> Result<Markup> {
    if !visit.session.is_operator || (has_organizations && has_provider(visit).await?) {
        return Ok(html! {});
    }
    Ok(html! {
        div.notice role="status" {
            p {
                @if has_organizations { "No one can sign in by name yet: this server has no identity provider." }
                @else { "This server is new: it has no organization yet." }
            }
            p { a.button href=(FIRST_RUN) { "First steps of this server" } }
        }
    })
}

/// `GET /console/first-run`: the steps, and which are done.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let state = state(visit).await?;
    let organizations = match &state.organizations.result {
        Ok(organizations) => organizations,
        Err(error) => {
            return Ok(content("First steps of this server", refused(error, Some(state.organizations.method))));
        }
    };
    let mark = |is_done: bool| if is_done { badge("good", "done") } else { badge("plain", "to do") };
    let first = html! {
        p { (mark(!organizations.is_empty())) " Everything belongs to an organization: groups, images, people, rights." }
        @for group in organizations {
            p { (link("/console/home", &[("in", &group.uid)], &group.name)) }
        }
        @if organizations.is_empty() { (organization(visit)) }
    };
    let second = html! {
        p {
            (mark(state.has_provider))
            " People sign in with the accounts that they have. This server keeps no passwords: it needs an identity provider that "
            "speaks OpenID Connect, such as Entra ID, Google, Okta, Keycloak, Dex or GitLab."
        }
        @if organizations.is_empty() { p.small { "This needs an organization." } }
        @for group in organizations {
            p { a.button href=(address(PROVIDER, &[("in", &group.uid)])) { "Connect a provider to " bdi { (group.name) } } }
        }
        details {
            summary { "One provider for all organizations" }
            p { "It is added on the machine of the server, and offered to everyone at once:" }
            pre tabindex="0" data-copy { code {
                "bowline operator providers add company --label \"Example Company\" --issuer https://sso.example.com \\\n  "
                "--client-id bowline --client-secret-file secret"
            } }
            p { "Its redirect address: " (code(&callback(visit))) }
        }
    };
    let third = html! {
        p { "Someone with a name signs in and becomes an owner. From then on, what is changed has their name in the audit log." }
        @for group in organizations {
            p { a href=(address(PERSON, &[("in", &group.uid)])) { "Invite an owner to " bdi { (group.name) } } }
        }
    };
    let body = html! {
        (section("organization", "1. An organization", &first))
        (section("provider", "2. An identity provider", &second))
        (section("person", "3. A person with a name", &third))
        p { a href="/console/" { "Go on as the operator, without these steps" } }
    };
    Ok(content("First steps of this server", body))
}

fn content(title: &str, body: Markup) -> Content {
    let content = Content::new(title, body);
    if title.starts_with("First steps") { content } else { content.below(FIRST_RUN.to_owned(), "First steps") }
}

/// The redirect address of this server at every provider.
fn callback(visit: &Visit) -> String {
    format!("{}/oauth/callback", visit.app.api.settings().auth_url)
}

fn organization(visit: &Visit) -> Markup {
    let name = html! {
        div.field {
            label for="r-organization" { "Name of the organization (required)" }
            p.small id="r-organization-hint" { "Lower-case letters, digits and hyphens. Names of images begin with it." }
            input type="text" id="r-organization" name={ (PREFIX) "group.name" } required aria-describedby="r-organization-hint"
                autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="63";
        }
    };
    confirm::<CreateGroup>(visit, &[], FIRST_RUN, "Create the organization", Some(&name))
}

fn filled(visit: &Visit, path: &str, with: &[(&str, &str)]) -> String {
    let kept: Vec<(&str, String)> = CARRIED.iter().map(|name| (*name, visit.query.text(name))).collect();
    let kept = kept.iter().map(|(name, value)| (*name, value.as_str()));
    address(path, &kept.chain(with.iter().copied()).collect::<Vec<_>>())
}

/// `GET /console/first-run/provider`: what the server must know of the provider, and the provider of the server.
pub(super) async fn provider(visit: &mut Visit) -> Result<Content> {
    if visit.scope().is_empty() {
        return show(visit).await;
    }
    let roles = roles(visit).await?;
    let field = |name: &str, label: &str, hint: &str, default: &str, is_required: bool| {
        let (id, about) = (format!("r-{name}"), format!("r-{name}-hint"));
        html! {
            div.field {
                label for=(id) { (label) @if is_required { " (required)" } }
                p.small id=(about) { (hint) }
                input type="text" id=(id) name=(name) value=(visit.query.get(name).unwrap_or(default)) maxlength="512"
                    required[is_required] aria-describedby=(about) autocomplete="off" autocapitalize="none" spellcheck="false";
            }
        }
    };
    let chosen = visit.query.text("role");
    let body = html! {
        p { "At the provider, register this server as a web application with this redirect address:" }
        pre tabindex="0" data-copy { code { (callback(visit)) } }
        p { "The provider then shows a client id and a client secret. Nothing is saved on this page." }
        form.request method="get" action=(TEST) {
            input type="hidden" name="in" value=(visit.scope());
            @if visit.query.get(UNREAD).is_some() { input type="hidden" name=(UNREAD) value="true"; }
            (field("name", "Name", "How lists call it.", "company", true))
            (field("issuer", "Issuer", "Its URL, such as https://login.example.com. /.well-known/openid-configuration is below it.", "", true))
            (field("client", "Client id", "How the provider calls this server.", "", true))
            (field("scopes", "Further scopes", "Besides openid, with spaces. email and profile give people their names here.", "email profile", false))
            @match &roles.result {
                Err(error) => (refused(error, Some(roles.method))),
                Ok(roles) => {
                    div.field {
                        label for="r-role" { "Role of everyone who signs in" }
                        p.small id="r-role-hint" {
                            "Everyone with an account at the provider gets it in the whole organization. Give more to single people later."
                        }
                        select id="r-role" name="role" aria-describedby="r-role-hint" {
                            @for role in roles { option value=(role.uid) selected[role.uid == chosen] { (role.name) } }
                        }
                    }
                }
            }
            button type="submit" { "Continue: test it" }
        }
    };
    Ok(content("Connect an identity provider", body))
}

/// Built-in roles for people, the narrowest first.
async fn roles(visit: &mut Visit) -> Result<Answer<Vec<Role>>> {
    let request = ListRolesRequest { page_size: 200, ..ListRolesRequest::default() };
    let listed = visit.answer::<ListRoles>(request).await?;
    let built_in = |response: bowline_contract::v2::iam::ListRolesResponse| -> Vec<Role> {
        let of =
            |name: &&str| response.roles.iter().find(|role| role.name == **name && !role.uid.contains('/')).cloned();
        ROLES.iter().filter_map(of).collect()
    };
    Ok(Answer { method: listed.method, result: listed.result.map(built_in) })
}

fn summary(visit: &Visit) -> Markup {
    let shown = |name: &str| code(&visit.query.text(name));
    facts(&[
        ("Name", shown("name")),
        ("Issuer", shown("issuer")),
        ("Client id", shown("client")),
        ("Scopes", shown("scopes")),
        ("Redirect address", code(&callback(visit))),
    ])
}

/// `GET /console/first-run/test`: the test of the provider, which is a POST: a link must not make this server call out.
pub(super) async fn test(visit: &mut Visit) -> Result<Content> {
    if ["in", "issuer", "client"].iter().any(|name| visit.query.get(name).is_none()) {
        return provider(visit).await;
    }
    let fields = owned(&[("parent", &visit.scope()), ("issuer", &visit.query.text("issuer"))]);
    let body = html! {
        (summary(visit))
        p { "This server must reach the provider: it reads the discovery document and the keys, as a sign-in would." }
        (call_form::<TestIssuer>(visit, &fields, &filled(visit, SAVE, &[]), "Test the provider", None))
        p { a.button.quiet href=(filled(visit, PROVIDER, &[])) { "Back" } }
    };
    Ok(content("Test the identity provider", body))
}

/// `GET /console/first-run/save`: the form that saves a provider that was tested.
pub(super) async fn save(visit: &mut Visit) -> Result<Content> {
    let issuer = visit.query.text("issuer");
    let seal = visit.app.seal(&visit.key, std::iter::once((TESTED, issuer.as_str())));
    if !same(&seal, visit.query.get(TESTED).unwrap_or_default()) {
        return test(visit).await;
    }
    let scopes = visit.query.text("scopes").split_whitespace().collect::<Vec<_>>().join("\n");
    let fields = owned(&[
        ("parent", &visit.scope()),
        ("identity_provider.name", &visit.query.text("name")),
        ("identity_provider.default_role", &visit.query.text("role")),
        ("identity_provider.oidc.issuer", &issuer),
        ("identity_provider.oidc.client_id", &visit.query.text("client")),
        ("identity_provider.oidc.additional_scopes", &scopes),
    ]);
    let secret = html! {
        div.field {
            label for="r-secret" { "Client secret" }
            p.small id="r-secret-hint" { "It is stored encrypted, never shown again, and in no address." }
            input type="password" id="r-secret" name={ (PREFIX) "identity_provider.oidc.client_secret" }
                aria-describedby="r-secret-hint" autocomplete="off" autocapitalize="none" spellcheck="false";
        }
    };
    let next = address(PERSON, &[("in", &visit.scope())]);
    let body = html! {
        p.notice role="status" { "The provider answered. Save it, and people can sign in." }
        (summary(visit))
        (confirm::<CreateIdentityProvider>(visit, &fields, &next, "Save the provider", Some(&secret)))
    };
    Ok(content("Save the identity provider", body))
}

/// `GET /console/first-run/person`: how the first person signs in and becomes an owner.
pub(super) async fn person(visit: &mut Visit) -> Result<Content> {
    let scope = visit.scope();
    if scope.is_empty() {
        return show(visit).await;
    }
    let known = provider_of(visit, &scope).await?;
    let provider = known.as_deref().unwrap_or_default().to_owned();
    let roles = roles(visit).await?;
    let owner = roles.result.as_ref().ok().and_then(|roles| roles.iter().find(|role| role.name == INVITED));
    let link = sign_in_link(&visit.app.api.settings().auth_url, &provider, "");
    let body = html! {
        p {
            "Invite yourself, or the person who will own the organization: the response has a link, which works once within a day. Open it "
            "in a private window, or send it, and sign in at the provider."
        }
        @match (owner, &roles.result) {
            (_, Err(error)) => (refused(error, Some(roles.method))),
            (None, Ok(_)) => { p.empty { "There is no role of the name owner." } }
            (Some(owner), Ok(_)) => {
                @let fields = owned(&[
                    ("parent", &scope), ("group_invite.role_uid", &owner.uid), ("group_invite.ttl", INVITATION),
                    ("group_invite.single_use", "true"),
                ]);
                @let next = address("/console/home", &[("in", &scope), ("provider", &provider)]);
                (confirm::<CreateGroupInvite>(visit, &fields, &next, "Invite an owner", Some(&html! {
                    div.field {
                        label for="r-email" { "E-mail address" }
                        p.small id="r-email-hint" { "Only the account with this verified address may accept. Without one, everyone who has the link may." }
                        input type="text" inputmode="email" id="r-email" name={ (PREFIX) "group_invite.email" }
                            aria-describedby="r-email-hint" autocomplete="off" autocapitalize="none" spellcheck="false";
                    }
                })))
            }
        }
        @if let Err(error) = &known { (refused(error, Some(ListIdentityProviders::FULL_NAME))) }
        @if !provider.is_empty() {
            p { "Everyone else signs in here, and gets the role of the provider:" }
            pre tabindex="0" data-copy { code { (link) } }
        }
    };
    Ok(content("A person with a name", body))
}

/// The provider that was made before, or the one that the organization has; empty for none.
async fn provider_of(visit: &mut Visit, scope: &str) -> Result<Result<String>> {
    if let Some(made) = visit.query.get(MADE) {
        return Ok(Ok(made.to_owned()));
    }
    let request =
        ListIdentityProvidersRequest { uidp: below(scope), page_size: 1, ..ListIdentityProvidersRequest::default() };
    let listed = visit.answer::<ListIdentityProviders>(request).await?;
    Ok(listed.result.map(|response| {
        let first = response.identity_providers.into_iter().next();
        first.map(|provider| provider.uid).unwrap_or_default()
    }))
}

fn owned(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let filled = fields.iter().filter(|(_, value)| !value.is_empty());
    filled.map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
}

/// Where people sign in to the console: at one provider, if it is known, and with an invitation.
pub(crate) fn sign_in_link(auth_url: &str, provider: &str, invitation: &str) -> String {
    let parameters = [("exit", "console"), ("idp_id", provider), ("invite", invitation)];
    format!("{auth_url}{}", address("/oauth", &parameters))
}
