//! The commands of `bowline access`.

use super::table::{Cell, Column, Does, Kind, Resource, Verb, column};

const ACCESS_COLUMNS: &[Column] = &[
    column("identity", "identityName"),
    column("e-mail", "email"),
    column("role", "roleName"),
    Column { head: "group", cell: Cell::NamesAt("group") },
    column("inherited", "inherited"),
    column("inactive", "inactive"),
];
const ACCESS_WIDE: &[Column] = &[
    column("uidp", "identity"),
    column("binding", "binding"),
    column("expires", "expireTime"),
    column("bound", "createTime"),
];

/// A resource whose one verb is the command itself.
const fn access(name: &'static str, verbs: &'static [Verb]) -> Resource {
    let about = verbs[0].about;
    Resource { name, about, kind: Kind::Identity, columns: ACCESS_COLUMNS, wide: ACCESS_WIDE, verbs }
}

pub(super) const RESOURCES: &[Resource] = &[
    access(
        "explain",
        &[Verb {
            name: "explain",
            method: "bowline.iam.v1.AccessExplainer.ExplainAccess",
            about: "Explain why an identity has a capability at a scope, or lacks it, and who can grant it",
            does: Does::Explain,
            positional: "",
            example: "access explain --scope acme/team --capabilities groups.create",
        }],
    ),
    access(
        "list",
        &[Verb {
            name: "list",
            method: "bowline.iam.v1.AccessExplainer.ListEffectiveAccess",
            about: "List who has a role at a scope, by bindings there and above it",
            does: Does::List,
            positional: "scope",
            example: "access list acme/team",
        }],
    ),
    access(
        "of",
        &[Verb {
            name: "of",
            method: "bowline.iam.v1.AccessExplainer.ListAccessOf",
            about: "List the roles of an identity, wherever they are bound",
            does: Does::List,
            positional: "identity",
            example: "access of acme/build",
        }],
    ),
    Resource {
        name: "requests",
        about: "Requests of people to join an organization",
        kind: Kind::Group,
        columns: &[
            column("uidp", "identity"),
            column("name", "name"),
            column("e-mail", "email"),
            column("asked", "requestTime"),
        ],
        wide: &[],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.iam.v1.AccessRequests.ListAccessRequests",
                about: "List open requests, the oldest first",
                does: Does::List,
                positional: "group",
                example: "access requests list acme",
            },
            Verb {
                name: "answer",
                method: "bowline.iam.v1.AccessRequests.AnswerAccessRequest",
                about: "Grant a role to a person who requested access, or decline",
                does: Does::Call,
                positional: "group",
                example: "access requests answer acme --identity $PERSON --role viewer",
            },
        ],
    },
];
