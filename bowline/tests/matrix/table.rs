//! One valid request per method, aimed at a place.

mod access;
pub(crate) mod advisories;
mod answers;
mod contained;
mod feeds;
mod joining;
mod operators;
mod personal;
mod previews;
pub(crate) mod sources;
pub(crate) mod telling;
mod transfers;

use bowline_contract::Method;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::auth::DeletionRequest;
use bowline_contract::v1::auth::rpc::auth::{Delete, Validate};
use bowline_contract::v1::events as e1;
use bowline_contract::v1::events::rpc::identities as event_identities;
use bowline_contract::v1::iam as i1;
use bowline_contract::v1::iam::rpc::{
    groups as groups1, identities as identities1, role_bindings as bindings1, roles as roles1,
};
use bowline_contract::v1::{common::UidpFilter, iam::identity as identity1};
use bowline_contract::v2::iam as i2;
use bowline_contract::v2::iam::identity as identity2;
use bowline_contract::v2::iam::rpc::{
    groups_service as groups2, identities_service as identities2, role_bindings_service as bindings2,
    roles_service as roles2,
};
use prost::Message;
use prost_types::FieldMask;

use crate::fixture::{Fixture, Kind, Place};
use crate::oracle::{INVALID, NOT_FOUND, OK};

/// How a method is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// By the scope that the request is about.
    Scope,
    /// Not at all, once the caller is known.
    Caller,
    /// By nothing but whether the operator calls.
    Operator,
    /// By the caller, who must be what the request is about; the table's requests are about someone else.
    Themselves,
    /// By whether a person calls, with a token that nothing limits.
    Person,
    /// A list: by what is seen at a place or below it; v1 never refuses.
    List { refuses: bool },
}

/// What a request is made of.
pub(crate) struct Aim<'a> {
    pub(crate) fixture: &'a Fixture<'a>,
    pub(crate) place: &'a Place,
    /// What a delete takes; empty for other methods.
    pub(crate) doomed: String,
}

impl Aim<'_> {
    pub(crate) fn group(&self) -> String {
        self.place.group.clone()
    }

    pub(crate) fn uid(&self, kind: Kind) -> String {
        self.place.lasting[&kind].clone()
    }

    pub(crate) fn name(&self) -> String {
        self.fixture.name()
    }

    /// Someone new: people can be bound before they come.
    fn person(&self) -> String {
        self.fixture.segment(40)
    }

    pub(crate) fn viewer(&self) -> String {
        self.fixture.server.role("viewer")
    }

    pub(crate) fn issuer(&self) -> String {
        self.fixture.server.idp().issuer().into()
    }

    fn below(&self) -> UidpFilter {
        UidpFilter { descendants_of: self.group(), ..UidpFilter::default() }
    }
}

pub(crate) fn default<T: Default>() -> T {
    T::default()
}

type Build = Box<dyn Fn(&Aim<'_>) -> Vec<u8> + Send + Sync>;

/// A method with its request.
pub(crate) struct Row {
    pub(crate) full_name: &'static str,
    pub(crate) validated: Check,
    /// The built-in role whose capabilities the caller must hold as well: no one grants what they lack.
    pub(crate) grants: Option<&'static str>,
    /// Whether a binding must give the caller that role: nothing else lasts.
    pub(crate) needs_binding: bool,
    /// Whether the role is given at the organization, wherever below it the request goes.
    pub(crate) grants_at_root: bool,
    /// Methods whose capabilities the caller must hold there as well, because of what this request asks for.
    pub(crate) also: &'static [&'static str],
    /// The method whose capabilities decide, where the request names one.
    pub(crate) decided_by: Option<&'static str>,
    /// What a success takes away.
    pub(crate) takes: Option<Kind>,
    /// Whether the absence of what the request names is a success.
    pub(crate) absent_is_fine: bool,
    /// The code of a call that is let through: not 0 where no caller of the matrix is a person.
    pub(crate) let_through: i32,
    /// Whether only an organization is a place for it.
    pub(crate) only_organizations: bool,
    /// Whether what it is about is in organizations alone, so that it is nowhere else.
    pub(crate) lives_in_organizations: bool,
    /// What a list lists.
    pub(crate) lists: Option<Kind>,
    pub(crate) build: Build,
}

impl Row {
    /// The code of a call that is let through at this place.
    pub(crate) fn let_through_at(&self, place: &str) -> i32 {
        match place.contains('/') {
            true if self.only_organizations => INVALID,
            true if self.lives_in_organizations => NOT_FOUND,
            _ => self.let_through,
        }
    }
}

pub(crate) fn row<M: Method>(validated: Check, build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    Row {
        full_name: M::FULL_NAME,
        validated,
        grants: None,
        needs_binding: false,
        grants_at_root: false,
        also: &[],
        decided_by: None,
        takes: None,
        absent_is_fine: false,
        let_through: OK,
        only_organizations: false,
        lives_in_organizations: false,
        lists: None,
        build: Box::new(move |aim| build(aim).encode_to_vec()),
    }
}

pub(crate) fn at<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    row::<M>(Check::Scope, build)
}

/// A method that answers this once the caller is known, anyone who that is.
pub(crate) fn anybody<M: Method>(
    let_through: i32,
    build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static,
) -> Row {
    Row { let_through, ..row::<M>(Check::Caller, build) }
}

pub(crate) fn grant<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    Row { grants: Some("viewer"), ..row::<M>(Check::Scope, build) }
}

pub(crate) fn delete<M: Method>(kind: Kind, build: impl Fn(String) -> M::Request + Send + Sync + 'static) -> Row {
    Row { takes: Some(kind), ..row::<M>(Check::Scope, move |aim| build(aim.doomed.clone())) }
}

pub(crate) fn list<M: Method>(
    kind: Kind,
    refuses: bool,
    build: impl Fn(Option<UidpFilter>) -> M::Request + Send + Sync + 'static,
) -> Row {
    Row { lists: Some(kind), ..row::<M>(Check::List { refuses }, move |aim| build(Some(aim.below()))) }
}

/// Every implemented method that needs a caller.
pub(crate) fn table() -> Vec<Row> {
    let mut rows = groups();
    rows.extend(identities());
    rows.extend(bindings());
    rows.extend(roles());
    rows.extend(joining::invites());
    rows.extend(joining::associations());
    rows.extend(contained::repositories());
    rows.extend(contained::everything());
    rows.extend(sources::rows());
    rows.extend(answers::rows());
    rows.extend(advisories::rows());
    rows.extend(personal::terms());
    rows.extend(personal::of_people());
    rows.extend(access::explanations());
    rows.extend(access::requests_and_names());
    rows.extend(access::tests_of_trust());
    rows.extend(access::of_oneself());
    rows.extend(crate::table_providers::rows());
    rows.extend(feeds::imports());
    rows.extend(operators::operators());
    rows.extend(crate::table_libraries::rows());
    rows.extend(telling::audit_log());
    rows.extend(telling::subscriptions());
    rows.extend(transfers::everything());
    rows.push(previews::preview());
    rows.push(row::<Validate>(Check::Caller, |_| ()));
    rows.push(row::<Delete>(Check::Themselves, |aim| DeletionRequest { id: aim.person() }));
    rows
}

pub(crate) fn mask(path: &str) -> FieldMask {
    FieldMask { paths: vec![path.into()] }
}

fn groups() -> Vec<Row> {
    let group1 = |name: String| i1::Group { name, ..i1::Group::default() };
    let group2 = |name: String| i2::Group { name, ..i2::Group::default() };
    vec![
        at::<groups2::GetGroup>(|aim| i2::GetGroupRequest { uid: aim.group() }),
        list::<groups2::ListGroups>(Kind::Group, true, |uidp| i2::ListGroupsRequest { uidp, ..default() }),
        at::<groups2::CreateGroup>(move |aim| i2::CreateGroupRequest {
            parent: aim.group(),
            group: Some(group2(aim.name())),
        }),
        at::<groups2::UpdateGroup>(|aim| i2::UpdateGroupRequest {
            group: Some(i2::Group { uid: aim.group(), description: "of the matrix".into(), ..default() }),
            update_mask: Some(mask("description")),
        }),
        delete::<groups2::DeleteGroup>(Kind::Group, |uid| i2::DeleteGroupRequest { uid }),
        at::<groups1::Create>(move |aim| i1::CreateGroupRequest {
            parent: aim.group(),
            group: Some(group1(aim.name())),
        }),
        at::<groups1::Update>(move |aim| i1::Group { id: aim.group(), ..group1(aim.name()) }),
        list::<groups1::List>(Kind::Group, false, |uidp| i1::GroupFilter { uidp, ..default() }),
        delete::<groups1::Delete>(Kind::Group, |id| i1::DeleteGroupRequest { id }),
    ]
}

fn identities() -> Vec<Row> {
    let claims1 = |aim: &Aim<'_>| {
        identity1::Relationship::ClaimMatch(identity1::ClaimMatch {
            iss: Some(identity1::claim_match::Iss::Issuer(aim.issuer())),
            sub: Some(identity1::claim_match::Sub::Subject(aim.name())),
            ..default()
        })
    };
    let claims2 = |aim: &Aim<'_>| {
        identity2::Relationship::ClaimMatch(identity2::ClaimMatch {
            iss: Some(identity2::claim_match::Iss::Issuer(aim.issuer())),
            sub: Some(identity2::claim_match::Sub::Subject(aim.name())),
            ..default()
        })
    };
    let machine1 =
        move |aim: &Aim<'_>| i1::Identity { name: aim.name(), relationship: Some(claims1(aim)), ..default() };
    let machine2 =
        move |aim: &Aim<'_>| i2::Identity { name: aim.name(), relationship: Some(claims2(aim)), ..default() };
    vec![
        at::<identities2::GetIdentity>(|aim| i2::GetIdentityRequest { uid: aim.uid(Kind::Identity) }),
        list::<identities2::ListIdentities>(Kind::Identity, true, |uidp| i2::ListIdentitiesRequest {
            uidp,
            ..default()
        }),
        row::<identities2::LookupIdentity>(Check::Caller, |aim| i2::LookupIdentityRequest {
            issuer: aim.issuer(),
            subject: "somebody".into(),
        }),
        at::<identities2::CreateIdentity>(move |aim| i2::CreateIdentityRequest {
            parent: aim.group(),
            identity: Some(machine2(aim)),
        }),
        at::<identities2::UpdateIdentity>(|aim| i2::UpdateIdentityRequest {
            identity: Some(i2::Identity { uid: aim.uid(Kind::Identity), name: aim.name(), ..default() }),
            update_mask: Some(mask("name")),
        }),
        delete::<identities2::DeleteIdentity>(Kind::Identity, |uid| i2::DeleteIdentityRequest { uid }),
        at::<identities1::Create>(move |aim| i1::CreateIdentityRequest {
            parent_id: aim.group(),
            identity: Some(machine1(aim)),
        }),
        at::<identities1::Update>(move |aim| i1::Identity { id: aim.uid(Kind::Identity), ..machine1(aim) }),
        list::<identities1::List>(Kind::Identity, false, |uidp| i1::IdentityFilter { uidp, ..default() }),
        row::<identities1::Lookup>(Check::Caller, |aim| i1::LookupRequest {
            issuer: aim.issuer(),
            subject: "somebody".into(),
        }),
        delete::<identities1::Delete>(Kind::Identity, |id| i1::DeleteIdentityRequest { id }),
        row::<event_identities::Create>(Check::Operator, |aim| e1::Identity {
            id: aim.group(),
            subject: aim.name(),
            issuer: aim.issuer(),
            issuer_keys: "{}".into(),
            expiration: None,
        }),
    ]
}

fn bindings() -> Vec<Row> {
    let binding1 = |aim: &Aim<'_>| i1::RoleBinding { identity: aim.person(), role: aim.viewer(), ..default() };
    let binding2 = |aim: &Aim<'_>| i2::RoleBinding { identity_uid: aim.person(), role_uid: aim.viewer(), ..default() };
    vec![
        at::<bindings2::GetRoleBinding>(|aim| i2::GetRoleBindingRequest { uid: aim.uid(Kind::Binding) }),
        list::<bindings2::ListRoleBindings>(Kind::Binding, true, |uidp| i2::ListRoleBindingsRequest {
            uidp,
            ..default()
        }),
        grant::<bindings2::CreateRoleBinding>(move |aim| i2::CreateRoleBindingRequest {
            parent: aim.group(),
            role_binding: Some(binding2(aim)),
        }),
        grant::<bindings2::BatchCreateRoleBindings>(move |aim| {
            let entry = || i2::CreateRoleBindingRequest { parent: aim.group(), role_binding: Some(binding2(aim)) };
            i2::BatchCreateRoleBindingsRequest { parent: aim.group(), requests: vec![entry(), entry()], ..default() }
        }),
        grant::<bindings2::UpdateRoleBinding>(move |aim| i2::UpdateRoleBindingRequest {
            role_binding: Some(i2::RoleBinding { uid: aim.uid(Kind::Binding), ..binding2(aim) }),
            update_mask: Some(mask("identity_uid")),
        }),
        Row {
            absent_is_fine: true,
            ..delete::<bindings2::DeleteRoleBinding>(Kind::Binding, |uid| i2::DeleteRoleBindingRequest { uid })
        },
        grant::<bindings1::Create>(move |aim| i1::CreateRoleBindingRequest {
            parent: aim.group(),
            role_binding: Some(binding1(aim)),
        }),
        grant::<bindings1::CreateBatch>(move |aim| i1::CreateRoleBindingBatchRequest {
            parent: aim.group(),
            role_bindings: vec![binding1(aim), binding1(aim)],
        }),
        grant::<bindings1::Update>(move |aim| i1::RoleBinding { id: aim.uid(Kind::Binding), ..binding1(aim) }),
        list::<bindings1::List>(Kind::Binding, false, |uidp| i1::RoleBindingFilter { uidp, ..default() }),
        Row {
            absent_is_fine: true,
            ..delete::<bindings1::Delete>(Kind::Binding, |id| i1::DeleteRoleBindingRequest { id })
        },
    ]
}

fn roles() -> Vec<Row> {
    let role1 = |aim: &Aim<'_>| i1::Role { name: aim.name(), capabilities: vec!["groups.list".into()], ..default() };
    let role2 = |aim: &Aim<'_>| i2::Role {
        name: aim.name(),
        capabilities: vec![Capability::CapIamGroupsList as i32],
        ..default()
    };
    vec![
        at::<roles2::GetRole>(|aim| i2::GetRoleRequest { uid: aim.uid(Kind::Role) }),
        list::<roles2::ListRoles>(Kind::Role, true, |uidp| i2::ListRolesRequest { uidp, ..default() }),
        at::<roles2::CreateRole>(move |aim| i2::CreateRoleRequest { parent: aim.group(), role: Some(role2(aim)) }),
        at::<roles2::UpdateRole>(move |aim| i2::UpdateRoleRequest {
            role: Some(i2::Role { uid: aim.uid(Kind::Role), ..role2(aim) }),
            update_mask: Some(mask("name")),
        }),
        delete::<roles2::DeleteRole>(Kind::Role, |uid| i2::DeleteRoleRequest { uid }),
        at::<roles1::Create>(move |aim| i1::CreateRoleRequest { parent_id: aim.group(), role: Some(role1(aim)) }),
        at::<roles1::Update>(move |aim| i1::Role { id: aim.uid(Kind::Role), ..role1(aim) }),
        list::<roles1::List>(Kind::Role, false, |uidp| i1::RoleFilter { uidp, ..default() }),
        delete::<roles1::Delete>(Kind::Role, |id| i1::DeleteRoleRequest { id }),
    ]
}
