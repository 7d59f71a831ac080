//! The commands of `bowline audit` that call a server.

use super::table::{Cell, Column, Does, Kind, Resource, Verb, column};

const AUDIT_COLUMNS: &[Column] = &[
    column("sequence", "sequence"),
    column("time", "time"),
    column("actor", "actor"),
    column("method", "method"),
    column("kind", "kind"),
    column("resource", "resource"),
];
const AUDIT_WIDE: &[Column] = &[column("request", "requestId"), column("hash", "hash")];

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
            about: "Show where the log begins and ends, with the hashes there",
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
            about: "Write changes so far, the oldest first, with the resources before and after them: a JSON document a line",
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
