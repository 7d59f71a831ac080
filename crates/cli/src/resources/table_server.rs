//! The commands of `bowline server`: the operator's methods, over the network.

use super::table::{Column, Does, Kind, Resource, Verb, column};

/// A resource whose one verb is the command itself.
const fn alone(name: &'static str, verbs: &'static [Verb]) -> Resource {
    Resource { name, about: verbs[0].about, kind: Kind::Unnamed("server"), columns: &[], wide: &[], verbs }
}

const PROVIDERS: &[Column] = &[
    column("id", "id"),
    column("label", "label"),
    column("issuer", "issuer"),
    column("client", "clientId"),
    column("secret", "hasSecret"),
    column("configured", "configured"),
];
const OPTIONS: &[Column] =
    &[column("name", "name"), column("value", "value"), column("origin", "origin"), column("default", "defaultValue")];
const ORGANIZATIONS: &[Column] = &[
    column("uidp", "organization"),
    column("name", "name"),
    column("bytes", "blobBytes"),
    column("repositories", "repositories"),
];
const MINUTES: &[Column] = &[column("time", "time"), column("calls", "calls"), column("failures", "failures")];

pub(super) const RESOURCES: &[Resource] = &[
    Resource {
        name: "operators",
        about: "People who operate the server",
        kind: Kind::Identity,
        columns: &[
            column("uidp", "identity"),
            column("role", "role"),
            column("e-mail", "email"),
            column("issuer", "issuer"),
            column("granted", "grantTime"),
        ],
        wide: &[column("granted by", "grantedBy")],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.operator.v1.Operator.ListOperators",
                about: "List people with a role of the operator",
                does: Does::List,
                positional: "",
                example: "server operators list",
            },
            Verb {
                name: "grant",
                method: "bowline.operator.v1.Operator.GrantOperator",
                about: "Give a person a role of the operator, or change it",
                does: Does::Call,
                positional: "identity",
                example: "server operators grant $PERSON --role viewer",
            },
            Verb {
                name: "revoke",
                method: "bowline.operator.v1.Operator.RevokeOperator",
                about: "Take the role of the operator from a person",
                does: Does::Delete(" as an operator"),
                positional: "identity",
                example: "server operators revoke $PERSON --yes",
            },
        ],
    },
    alone(
        "health",
        &[Verb {
            name: "health",
            method: "bowline.operator.v1.Operator.GetHealth",
            about: "Show the version, database and start of the server",
            does: Does::Get,
            positional: "",
            example: "server health",
        }],
    ),
    alone(
        "storage",
        &[Verb {
            name: "storage",
            method: "bowline.operator.v1.Operator.GetStorage",
            about: "Show how much is stored, and how much room is left",
            does: Does::Get,
            positional: "",
            example: "server storage",
        }],
    ),
    Resource {
        name: "tasks",
        about: "Periodic tasks of the server that is called",
        kind: Kind::Unnamed("task"),
        columns: &[
            column("name", "name"),
            column("last run", "lastRunTime"),
            column("duration", "duration"),
            column("next", "nextRunTime"),
            column("running", "running"),
            column("error", "error"),
        ],
        wide: &[column("runnable", "runnable")],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.operator.v1.Operator.ListTasks",
                about: "List tasks with their last run",
                does: Does::List,
                positional: "",
                example: "server tasks list",
            },
            Verb {
                name: "run",
                method: "bowline.operator.v1.Operator.RunTask",
                about: "Run a task now, whether or not it is due",
                does: Does::Call,
                positional: "name",
                example: "server tasks run garbage-collection",
            },
        ],
    },
    Resource {
        name: "keys",
        about: "Signing keys of the server's tokens",
        kind: Kind::Unnamed("key"),
        columns: &[
            column("kid", "kid"),
            column("algorithm", "algorithm"),
            column("published", "publishTime"),
            column("signs since", "signTime"),
            column("retired", "retireTime"),
        ],
        wide: &[],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.operator.v1.Operator.ListKeys",
                about: "List keys, the newest first",
                does: Does::List,
                positional: "",
                example: "server keys list",
            },
            Verb {
                name: "rotate",
                method: "bowline.operator.v1.Operator.RotateKeys",
                about: "Add a key, which signs ten minutes later",
                does: Does::Call,
                positional: "",
                example: "server keys rotate",
            },
        ],
    },
    alone(
        "providers",
        &[Verb {
            name: "providers",
            method: "bowline.operator.v1.Operator.ListProviders",
            about: "List the identity providers that everyone may sign in with; `bowline operator providers` changes them",
            does: Does::ListOf(PROVIDERS),
            positional: "",
            example: "server providers",
        }],
    ),
    alone(
        "configuration",
        &[Verb {
            name: "configuration",
            method: "bowline.operator.v1.Operator.GetConfiguration",
            about: "Show every option of the server, with its value and where that comes from",
            does: Does::Rows(OPTIONS),
            positional: "",
            example: "server configuration",
        }],
    ),
    alone(
        "organizations",
        &[Verb {
            name: "organizations",
            method: "bowline.operator.v1.Operator.ListOrganizations",
            about: "List organizations by the bytes that they store, the largest first",
            does: Does::ListOf(ORGANIZATIONS),
            positional: "",
            example: "server organizations --limit 10",
        }],
    ),
    alone(
        "metrics",
        &[Verb {
            name: "metrics",
            method: "bowline.operator.v1.Operator.GetMetrics",
            about: "Show calls and failures of the last 24 hours by minute; -o json has their durations",
            does: Does::Rows(MINUTES),
            positional: "",
            example: "server metrics",
        }],
    ),
];
