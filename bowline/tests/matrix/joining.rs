//! Invitations and account associations.

use bowline_contract::Method;
use bowline_contract::v1::iam as i1;
use bowline_contract::v1::iam::rpc::{group_account_associations as associations1, group_invites as invites1};
use bowline_contract::v2::iam as i2;
use bowline_contract::v2::iam::rpc::{
    account_associations_service as associations2, group_invites_service as invites2,
};

use super::{Aim, Check, Row, at, default, delete, grant, list, mask, row};
use crate::fixture::Kind;

pub(super) fn invites() -> Vec<Row> {
    let ttl = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    let invite1 = move |aim: &Aim<'_>, group| i1::GroupInviteRequest { group, ttl, role: aim.viewer(), ..default() };
    vec![
        at::<invites2::GetGroupInvite>(|aim| i2::GetGroupInviteRequest { uid: aim.uid(Kind::Invite) }),
        list::<invites2::ListGroupInvites>(Kind::Invite, true, |uidp| i2::ListGroupInvitesRequest {
            uidp,
            ..default()
        }),
        Row {
            needs_binding: true,
            ..grant::<invites2::CreateGroupInvite>(move |aim| i2::CreateGroupInviteRequest {
                parent: aim.group(),
                group_invite: Some(i2::GroupInvite { role_uid: aim.viewer(), ttl, ..default() }),
            })
        },
        delete::<invites2::DeleteGroupInvite>(Kind::Invite, |uid| i2::DeleteGroupInviteRequest { uid }),
        Row { needs_binding: true, ..grant::<invites1::Create>(move |aim| invite1(aim, aim.group())) },
        Row {
            needs_binding: true,
            absent_is_fine: true,
            ..row::<invites1::CreateWithGroup>(Check::Operator, move |aim| invite1(aim, aim.name()))
        },
        list::<invites1::List>(Kind::Invite, false, |_| default()),
        delete::<invites1::Delete>(Kind::Invite, |id| i1::DeleteGroupInviteRequest { id }),
    ]
}

/// A method that makes something of which a group has one: it takes a group that has none yet.
fn once<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    Row { takes: Some(Kind::Group), ..row::<M>(Check::Scope, build) }
}

pub(super) fn associations() -> Vec<Row> {
    let association1 = |aim: &Aim<'_>, group| i1::AccountAssociations { group, name: aim.name(), ..default() };
    let association2 = |aim: &Aim<'_>| i2::AccountAssociation { name: aim.name(), ..default() };
    vec![
        at::<associations2::GetAccountAssociation>(|aim| i2::GetAccountAssociationRequest {
            uid: aim.uid(Kind::Association),
        }),
        list::<associations2::ListAccountAssociations>(Kind::Association, true, |uidp| {
            i2::ListAccountAssociationsRequest { uidp, ..default() }
        }),
        once::<associations2::CreateAccountAssociation>(move |aim| i2::CreateAccountAssociationRequest {
            parent: aim.doomed.clone(),
            account_association: Some(association2(aim)),
        }),
        at::<associations2::UpdateAccountAssociation>(move |aim| i2::UpdateAccountAssociationRequest {
            account_association: Some(i2::AccountAssociation { uid: aim.uid(Kind::Association), ..association2(aim) }),
            update_mask: Some(mask("name")),
        }),
        Row {
            absent_is_fine: true,
            ..delete::<associations2::DeleteAccountAssociation>(Kind::Association, |uid| {
                i2::DeleteAccountAssociationRequest { uid }
            })
        },
        at::<associations2::CheckAccountAssociation>(|aim| i2::CheckAccountAssociationRequest {
            uid: aim.uid(Kind::Association),
            provider_type: i2::AccountProviderType::Amazon as i32,
        }),
        once::<associations1::Create>(move |aim| association1(aim, aim.doomed.clone())),
        at::<associations1::Update>(move |aim| association1(aim, aim.uid(Kind::Association))),
        list::<associations1::List>(Kind::Association, false, |_| default()),
        Row {
            absent_is_fine: true,
            ..delete::<associations1::Delete>(Kind::Association, |group| i1::DeleteAccountAssociationsRequest { group })
        },
        at::<associations1::Check>(|aim| i1::AccountAssociationsCheckRequest {
            group: aim.uid(Kind::Association),
            account_type: i1::account_associations_check_request::AccountType::Amazon as i32,
        }),
    ]
}
