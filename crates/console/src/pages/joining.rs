use bowline_contract::bowline::iam::v1::rpc::access_requests::{AnswerAccessRequest, ListAccessRequests};
use bowline_contract::bowline::iam::v1::{AccessRequest, ListAccessRequestsRequest};
use bowline_contract::v2::iam::identity_provider::Configuration;
use bowline_contract::v2::iam::rpc::external_group_role_mappings_service::{
    CreateExternalGroupRoleMapping, DeleteExternalGroupRoleMapping, ListExternalGroupRoleMappings,
};
use bowline_contract::v2::iam::rpc::group_invites_service::{DeleteGroupInvite, ListGroupInvites};
use bowline_contract::v2::iam::rpc::identity_providers_service::{
    DeleteIdentityProvider, ListIdentityProviders, UpdateIdentityProvider,
};
use bowline_contract::v2::iam::{
    ExternalGroupRoleMapping, GroupInvite, IdentityProvider, ListExternalGroupRoleMappingsRequest,
    ListGroupInvitesRequest, ListIdentityProvidersRequest,
};
use bowline_core::Result;
use maud::{Markup, html};

use super::{below, parent, part};
use crate::components::{List, action, edit, link, refused, section, table};
use crate::shell::Content;
use crate::values::{badge, code, none, text, time, yes};
use crate::visit::{ROWS, Visit};

/// Invitations in a group and below, and requests for access to the group. Codes of invitations are shown when they are
/// made, and never again.
pub(super) async fn invites(visit: &mut Visit) -> Result<Content> {
    let scope = visit.scope();
    let request = ListGroupInvitesRequest {
        uidp: below(&scope),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListGroupInvitesRequest::default()
    };
    let response = visit.call::<ListGroupInvites>(request).await?;
    let list = List {
        caption: "Invitations",
        heads: &["For", "Role", "Group", "Once", "Ends", "Created", "Actions"],
        rows: response.group_invites.iter().map(|one| invite(visit, one)).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: "There is no invitation that you may see here. Make one with: bowline iam invites create",
        filters: &[],
    };
    let mut body = html! { (list.render(visit)) };
    if !scope.is_empty() {
        let request = ListAccessRequestsRequest { group: scope, page_size: ROWS, page_token: String::new() };
        let requests = part(visit.call::<ListAccessRequests>(request).await)?;
        let method = visit.last_method();
        let shown = match &requests {
            Ok(response) if response.requests.is_empty() => html! { p.empty { "No one asks for access." } },
            Ok(response) => {
                let rows: Vec<_> = response.requests.iter().map(|one| access_request(visit, one)).collect();
                table("Requests for access", &["Name", "E-mail", "Identity", "Since", "Actions"], &rows)
            }
            Err(error) => refused(error, method),
        };
        body = html! { (body) (section("requests", "Requests for access", &shown)) };
    }
    Ok(Content::new("Invitations", body))
}

fn invite(visit: &Visit, invite: &GroupInvite) -> Vec<Markup> {
    let role = invite.role.as_ref().map_or(invite.role_uid.as_str(), |role| role.name.as_str());
    let group = parent(&invite.uid);
    vec![
        if invite.email.is_empty() {
            html! { "anyone with the code" }
        } else {
            text(&invite.email)
        },
        link("/console/role", &[("uid", &invite.role_uid)], role),
        link("/console/group", &[("uid", group)], group),
        yes(invite.single_use),
        time(invite.expiration_time.as_ref()),
        time(invite.create_time.as_ref()),
        action::<DeleteGroupInvite>(visit, "Revoke", &[("uid", &invite.uid)]),
    ]
}

fn access_request(visit: &Visit, request: &AccessRequest) -> Vec<Markup> {
    let asked = [("group", request.group.as_str()), ("identity", request.identity.as_str())];
    vec![
        text(&request.name),
        text(&request.email),
        link("/console/identity", &[("uid", &request.identity)], &request.identity),
        time(request.request_time.as_ref()),
        html! {
            (action::<AnswerAccessRequest>(visit, "Give a role", &asked)) " "
            (action::<AnswerAccessRequest>(visit, "Decline", &[asked[0], asked[1], ("decline", "true")]))
        },
    ]
}

/// Identity providers of organizations.
pub(super) async fn providers(visit: &mut Visit) -> Result<Content> {
    let request = ListIdentityProvidersRequest {
        uidp: below(&visit.scope()),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListIdentityProvidersRequest::default()
    };
    let response = visit.call::<ListIdentityProviders>(request).await?;
    let list = List {
        caption: "Identity providers",
        heads: &["Name", "Issuer", "Client", "Groups by", "Directory", "Default role", "Id", "Actions"],
        rows: response.identity_providers.iter().map(|one| provider(visit, one)).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: "There is no identity provider that you may see here. Make one with: bowline iam identity-providers create",
        filters: &[],
    };
    let request = ListExternalGroupRoleMappingsRequest {
        uidp: below(&visit.scope()),
        page_size: ROWS,
        ..ListExternalGroupRoleMappingsRequest::default()
    };
    let mappings = visit.answer::<ListExternalGroupRoleMappings>(request).await?;
    let shown = match &mappings.result {
        Ok(found) if found.external_group_role_mappings.is_empty() => {
            html! { p.empty { "No group of a provider has a role that you may see." } }
        }
        Ok(found) => {
            let row = |one| mapping(visit, &response.identity_providers, one);
            let rows: Vec<_> = found.external_group_role_mappings.iter().map(row).collect();
            html! {
                (table("Groups of providers with their roles", &["Group", "Role", "Where", "Provider", "Actions"], &rows))
                @if !found.next_page_token.is_empty() { p.small { "There are more: list them with the calls below." } }
            }
        }
        Err(error) => refused(error, Some(mappings.method)),
    };
    let body = html! { (list.render(visit)) (section("mappings", "Roles of groups", &shown)) };
    Ok(Content::new("Identity providers", body))
}

fn mapping(visit: &Visit, providers: &[IdentityProvider], mapping: &ExternalGroupRoleMapping) -> Vec<Markup> {
    let provider = providers.iter().find(|one| one.uid == mapping.identity_provider_uid);
    vec![
        text(&mapping.external_group_id),
        link("/console/role", &[("uid", &mapping.role_uid)], &mapping.role_uid),
        link("/console/group", &[("uid", &mapping.scope)], &mapping.scope),
        provider.map_or_else(|| code(&mapping.identity_provider_uid), |one| text(&one.name)),
        action::<DeleteExternalGroupRoleMapping>(visit, "Remove", &[("uid", &mapping.uid)]),
    ]
}

fn provider(visit: &Visit, provider: &IdentityProvider) -> Vec<Markup> {
    let name = link("/console/provider", &[("uid", &provider.uid)], &provider.name);
    let actions = html! {
        (edit::<UpdateIdentityProvider>(visit, "Edit", &[("identity_provider.uid", &provider.uid)])) " "
        (action::<CreateExternalGroupRoleMapping>(visit, "Map a group", &[("parent", &provider.uid)])) " "
        (action::<DeleteIdentityProvider>(visit, "Delete", &[("uid", &provider.uid)]))
    };
    let Some(Configuration::Oidc(oidc)) = &provider.configuration else {
        return vec![name, none(), none(), none(), none(), none(), code(&provider.uid), actions];
    };
    let directory = match &provider.scim {
        Some(scim) if scim.enabled => badge("good", "on"),
        _ => badge("plain", "off"),
    };
    vec![
        name,
        code(&oidc.issuer),
        code(&oidc.client_id),
        code(&oidc.groups_claim),
        directory,
        link("/console/role", &[("uid", &provider.default_role)], &provider.default_role),
        code(&provider.uid),
        actions,
    ]
}
