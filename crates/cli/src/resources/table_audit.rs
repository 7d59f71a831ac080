//! The commands of `bowline audit` that call a server.

use super::table::{Cell, Column, Does, Kind, Resource, Verb, column};

const AUDIT_COLUMNS: &[Column] = &[
    column("sequence", "sequence"),
    column("time", "time"),
    Column { head: "actor", cell: Cell::NamesAt("actor") },
    Column { head: "method", cell: Cell::End("method", 2) },
    Column { head: "resource", cell: Cell::NamesAt("resource") },
];
const AUDIT_WIDE: &[Column] = &[
    column("actor uidp", "actor"),
    column("full method", "method"),
    column("kind", "kind"),
    column("resource uidp", "resource"),
    column("request", "requestId"),
    column("hash", "hash"),
];

/// A resource whose one verb is the command itself.
const fn audit(name: &'static str, verbs: &'static [Verb]) -> Resource {
    let about = verbs[0].about;
    Resource { name, about, kind: Kind::Unnamed("entry"), columns: AUDIT_COLUMNS, wide: AUDIT_WIDE, verbs }
}

pub(super) const AUDIT: &[Resource] = &[
    audit(
        "list",
        &[Verb {
            name: "list",
            method: "bowline.audit.v1.Audit.ListEntries",
            about: "List changes, the newest first, without the resources before and after them",
            does: Does::List,
            positional: "",
            example: "audit list --organization acme --limit 20",
        }],
    ),
    audit(
        "get",
        &[Verb {
            name: "get",
            method: "bowline.audit.v1.Audit.GetEntry",
            about: "Show a change, with the resource before and after it",
            does: Does::Get,
            positional: "sequence",
            example: "audit get 1 --organization acme",
        }],
    ),
    audit(
        "history",
        &[Verb {
            name: "history",
            method: "bowline.audit.v1.Audit.GetHistory",
            about: "List the changes of one resource, the oldest first",
            does: Does::List,
            positional: "resource",
            example: "audit history acme/team",
        }],
    ),
    audit(
        "watch",
        &[Verb {
            name: "watch",
            method: "bowline.audit.v1.Audit.WatchEntries",
            about: "Show changes as they come",
            does: Does::Watch,
            positional: "",
            example: "audit watch --organization acme --after 0",
        }],
    ),
    audit(
        "checkpoints",
        &[Verb {
            name: "checkpoints",
            method: "bowline.audit.v1.Audit.GetCheckpoints",
            about: "Show the first and the last entry of the log, with their hashes",
            does: Does::Get,
            positional: "",
            example: "audit checkpoints --organization acme",
        }],
    ),
    audit(
        "export",
        &[Verb {
            name: "export",
            method: "bowline.audit.v1.Audit.ExportEntries",
            about: "Export all changes, the oldest first, with the resource before and after each, as lines of JSON",
            does: Does::Export,
            positional: "",
            example: "audit export --organization acme",
        }],
    ),
    Resource {
        name: "summary",
        about: "Count changes by day and kind",
        kind: Kind::Unnamed("day"),
        columns: &[
            column("day", "day"),
            column("entries", "entries"),
            Column { head: "kinds", cell: Cell::Counts("kinds", "kind", "entries") },
        ],
        wide: &[],
        verbs: &[Verb {
            name: "summary",
            method: "bowline.audit.v1.Audit.GetSummary",
            about: "Count changes by day and kind",
            does: Does::List,
            positional: "",
            example: "audit summary --organization acme",
        }],
    },
    Resource {
        name: "verify-chain",
        about: "Recompute the hashes of an organization's entries on the server",
        kind: Kind::Unnamed("entry"),
        columns: &[
            column("verified", "sequence"),
            column("newest", "newest"),
            column("erased", "erasedImages"),
            column("hash", "hash"),
            column("problem", "problem"),
        ],
        wide: &[],
        verbs: &[Verb {
            name: "verify-chain",
            method: "bowline.audit.v1.Audit.VerifyChain",
            about: "Recompute the hashes of an organization's entries on the server; exits with 1 if one is wrong",
            does: Does::Verify,
            positional: "organization",
            example: "audit verify-chain acme",
        }],
    },
];
