//! The commands of `bowline libraries` that are made from the contract: what policies decide, and packages. Those of policies
//! themselves are in `table_library_policies.rs`.

use super::table::{Column, Does, Kind, Resource, Verb, column};

/// A resource whose one verb is the command itself.
const fn alone(name: &'static str, verbs: &'static [Verb]) -> Resource {
    Resource { name, about: verbs[0].about, kind: Kind::Group, columns: &[], wide: &[], verbs }
}

const DECISIONS: &[Column] = &[
    column("purl", "purl"),
    column("allowed", "allowed"),
    column("reason", "reason"),
    column("by", "matched"),
    column("allowed from", "allowedTime"),
    column("license", "license"),
];
const PYTHON_VERSIONS: &[Column] = &[
    column("package", "package"),
    column("version", "version"),
    column("license", "license"),
    column("yanked", "yanked"),
    column("files", "fileCount"),
    column("bytes", "sizeBytes"),
    column("created", "createTime"),
];
const EXCEPTIONS: &[Column] = &[
    column("uid", "uid"),
    column("purl", "purl"),
    column("state", "state"),
    column("until", "expireTime"),
    column("malware", "bypassMalware"),
    column("freeze", "bypassFreeze"),
    column("why", "justification"),
];
const EXCEPTIONS_WIDE: &[Column] = &[
    column("requested by", "requestedBy"),
    column("requested", "requestTime"),
    column("approved by", "approvedBy"),
    column("hours", "hours"),
];
const FREEZES: &[Column] = &[
    column("ecosystem", "ecosystem"),
    column("cutoff", "cutoffTime"),
    column("own", "includesOwn"),
    column("why", "justification"),
    column("by", "frozenBy"),
    column("set", "freezeTime"),
];
const RESERVATIONS: &[Column] =
    &[column("pattern", "pattern"), column("ecosystem", "ecosystem"), column("created", "createTime")];
const UPSTREAMS: &[Column] = &[
    column("name", "name"),
    column("ecosystem", "ecosystem"),
    column("position", "position"),
    column("url", "url"),
    column("username", "username"),
    column("updated", "updateTime"),
];
const DAYS: &[Column] = &[column("day", "day"), column("refused", "attempts")];

pub(super) const RESOURCES: &[Resource] = &[
    alone(
        "explain",
        &[Verb {
            name: "explain",
            method: "bowline.libraries.v1.Decisions.ExplainPackage",
            about: "Show what the policies in force decide about a version of a package, and why",
            does: Does::Get,
            positional: "parent",
            example: "libraries explain acme --purl pkg:npm/left-pad@1.3.0",
        }],
    ),
    alone(
        "dependencies",
        &[Verb {
            name: "dependencies",
            method: "bowline.libraries.v1.Decisions.ExplainDependencies",
            about: "Show which versions that a version of a package requires are withheld (JavaScript, Python and Cargo)",
            does: Does::Get,
            positional: "parent",
            example: "libraries dependencies acme --purl pkg:npm/example@1.0.0",
        }],
    ),
    alone(
        "evaluate",
        &[Verb {
            name: "evaluate",
            method: "bowline.libraries.v1.Decisions.EvaluatePolicy",
            about: "Show what a draft of a policy decides about versions of packages",
            does: Does::Rows(DECISIONS),
            positional: "parent",
            example: "libraries evaluate acme --purls pkg:npm/left-pad@1.3.0 --policy-name draft --policy-cooldown-days 14",
        }],
    ),
    alone(
        "preview",
        &[Verb {
            name: "preview",
            method: "bowline.libraries.v1.Decisions.PreviewPolicy",
            about: "Compare a draft of a policy with the one in force, over what was served lately",
            does: Does::Get,
            positional: "parent",
            example: "libraries preview acme --ecosystem java --policy-name draft --policy-cooldown-days 14",
        }],
    ),
    alone(
        "block-statistics",
        &[Verb {
            name: "block-statistics",
            method: "bowline.libraries.v1.Decisions.GetBlockStatistics",
            about: "Count refused downloads by day; -o json counts by policy, package, reason and ecosystem too",
            does: Does::Rows(DAYS),
            positional: "parent",
            example: "libraries block-statistics acme",
        }],
    ),
    Resource {
        name: "python",
        about: "Versions of Python packages that a group published",
        kind: Kind::Group,
        columns: PYTHON_VERSIONS,
        wide: &[column("reason", "yankedReason")],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.libraries.v1.PythonPackages.ListVersions",
                about: "List versions by package, the lowest first",
                does: Does::List,
                positional: "parent",
                example: "libraries python list acme",
            },
            Verb {
                name: "yank",
                method: "bowline.libraries.v1.PythonPackages.YankVersion",
                about: "Withdraw a version: installers pass over it, unless its exact version is requested",
                does: Does::Call,
                positional: "parent",
                example: "libraries python yank acme --package example --version 1.0 --reason CVE-2026-7",
            },
            Verb {
                name: "unyank",
                method: "bowline.libraries.v1.PythonPackages.UnyankVersion",
                about: "Take back the withdrawal of a version",
                does: Does::Call,
                positional: "parent",
                example: "libraries python unyank acme --package example --version 1.0",
            },
            Verb {
                name: "delete",
                method: "bowline.libraries.v1.PythonPackages.DeleteVersion",
                about: "Delete a version with its files, whose names cannot be used again",
                does: Does::Ask("Delete this version with its files"),
                positional: "parent",
                example: "libraries python delete acme --package example --version 1.0 --yes",
            },
        ],
    },
    Resource {
        name: "exceptions",
        about: "Versions that are installed for some days although something withholds them",
        kind: Kind::Group,
        columns: EXCEPTIONS,
        wide: EXCEPTIONS_WIDE,
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.libraries.v1.PackageExceptions.ListExceptions",
                about: "List the exceptions of an organization that are requested or in force",
                does: Does::List,
                positional: "parent",
                example: "libraries exceptions list acme",
            },
            Verb {
                name: "request",
                method: "bowline.libraries.v1.PackageExceptions.RequestException",
                about: "Request an exception, which someone else puts into force",
                does: Does::Call,
                positional: "parent",
                example: "libraries exceptions request acme --purl pkg:pypi/example@1.0.1 --justification CVE-2026-7",
            },
            Verb {
                name: "create",
                method: "bowline.libraries.v1.PackageExceptions.CreateException",
                about: "Let a version be installed from now on, for some hours",
                does: Does::Call,
                positional: "parent",
                example: "libraries exceptions create acme --purl pkg:pypi/example@1.0.1 --justification CVE-2026-7 --hours 48",
            },
            Verb {
                name: "approve",
                method: "bowline.libraries.v1.PackageExceptions.ApproveException",
                about: "Put a requested exception into force",
                does: Does::Call,
                positional: "uid",
                example: "libraries exceptions approve $REQUESTED",
            },
            Verb {
                name: "end",
                method: "bowline.libraries.v1.PackageExceptions.EndException",
                about: "End an exception before its time, or decline a requested one",
                does: Does::Ask("End this exception"),
                positional: "uid",
                example: "libraries exceptions end $EXCEPTION --yes",
            },
            Verb {
                name: "set-approval",
                method: "bowline.libraries.v1.PackageExceptions.SetExceptionApproval",
                about: "Set whether someone other than who requested an exception must approve it",
                does: Does::Call,
                positional: "parent",
                example: "libraries exceptions set-approval acme --second-person",
            },
        ],
    },
    Resource {
        name: "freezes",
        about: "Times after which nothing that an organization installs may have been published",
        kind: Kind::Group,
        columns: FREEZES,
        wide: &[],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.libraries.v1.PackageFreezes.ListFreezes",
                about: "List the freezes of an organization",
                does: Does::List,
                positional: "parent",
                example: "libraries freezes list acme",
            },
            Verb {
                name: "set",
                method: "bowline.libraries.v1.PackageFreezes.FreezePackages",
                about: "Refuse whatever was published after a time, now without one",
                does: Does::Ask("Freeze packages"),
                positional: "parent",
                example: "libraries freezes set acme --ecosystems javascript --justification worm --yes",
            },
            Verb {
                name: "lift",
                method: "bowline.libraries.v1.PackageFreezes.LiftFreeze",
                about: "Lift freezes: policies alone decide again",
                does: Does::Ask("Lift these freezes"),
                positional: "parent",
                example: "libraries freezes lift acme --ecosystems javascript --yes",
            },
        ],
    },
    Resource {
        name: "reservations",
        about: "Names of packages that belong to an organization and are not requested from upstreams",
        kind: Kind::Group,
        columns: RESERVATIONS,
        wide: &[],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.libraries.v1.PackageReservations.ListReservations",
                about: "List the reservations of an organization",
                does: Does::List,
                positional: "parent",
                example: "libraries reservations list acme",
            },
            Verb {
                name: "create",
                method: "bowline.libraries.v1.PackageReservations.CreateReservation",
                about: "Reserve a name, or all names that begin with a text",
                does: Does::Call,
                positional: "parent",
                example: "libraries reservations create acme --ecosystem python --pattern acme-*",
            },
            Verb {
                name: "delete",
                method: "bowline.libraries.v1.PackageReservations.DeleteReservation",
                about: "End a reservation; names that groups published stay the organization's",
                does: Does::Ask("End this reservation"),
                positional: "parent",
                example: "libraries reservations delete acme --ecosystem python --pattern acme-* --yes",
            },
        ],
    },
    Resource {
        name: "upstreams",
        about: "Package indexes that an organization takes packages from",
        kind: Kind::Group,
        columns: UPSTREAMS,
        wide: &[column("uid", "uid"), column("password", "hasPassword"), column("created", "createTime")],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.libraries.v1.PackageUpstreams.ListUpstreams",
                about: "List the upstreams of an organization in the order in which they are requested",
                does: Does::List,
                positional: "parent",
                example: "libraries upstreams list acme",
            },
            Verb {
                name: "set",
                method: "bowline.libraries.v1.PackageUpstreams.SetUpstream",
                about: "Add an upstream, or replace the one of the same name",
                does: Does::Call,
                positional: "parent",
                example: "libraries upstreams set acme --upstream-name pypi --upstream-ecosystem python --upstream-url https://pypi.org/simple/",
            },
            Verb {
                name: "delete",
                method: "bowline.libraries.v1.PackageUpstreams.DeleteUpstream",
                about: "Remove an upstream and the files that were stored from it",
                does: Does::Ask("Remove this upstream and its stored files"),
                positional: "parent",
                example: "libraries upstreams delete acme --name pypi --yes",
            },
        ],
    },
];
