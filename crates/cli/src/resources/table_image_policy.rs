//! The commands of `bowline registry image-policy`.

use super::table::{Cell, Column, Does, Kind, Resource, Verb, column};

const IMAGE_POLICIES: &[Column] = &[
    column("uidp", "uid"),
    Column { head: "path", cell: Cell::NamesAt("uid") },
    Column { head: "rules", cell: Cell::Counts("rules", "name", "mode") },
    column("grace days", "graceDays"),
    Column { head: "exceptions", cell: Cell::Counts("exceptions", "id", "expireTime") },
];
const VERDICTS: &[Column] = &[
    Column { head: "repository", cell: Cell::NamesAt("repoUid") },
    column("digest", "digest"),
    column("tags", "tags"),
    column("refused", "refused"),
    Column { head: "rules", cell: Cell::Counts("rules", "rule", "result") },
];
pub(super) const IMAGE_POLICY: &[Resource] = &[Resource {
    name: "image-policy",
    about: "Rules that images must satisfy to be pulled",
    kind: Kind::Scope,
    columns: IMAGE_POLICIES,
    wide: &[],
    verbs: &[
        Verb {
            name: "list",
            method: "bowline.registry.v1.ImagePolicies.ListImagePolicies",
            about: "List the image policies of a group and of everything below it",
            does: Does::List,
            positional: "uid",
            example: "registry image-policy list acme",
        },
        Verb {
            name: "get",
            method: "bowline.registry.v1.ImagePolicies.GetImagePolicy",
            about: "Show the image policy of a group or repository",
            does: Does::Get,
            positional: "uid",
            example: "registry image-policy get acme",
        },
        Verb {
            name: "set",
            method: "bowline.registry.v1.ImagePolicies.UpdateImagePolicy",
            about: "Change the named fields of the image policy of a group or repository",
            does: Does::Update,
            positional: "policy.uid",
            example: "registry image-policy set acme --grace-days 14",
        },
        Verb {
            name: "preview",
            method: "bowline.registry.v1.ImagePolicies.PreviewImagePolicy",
            about: "Show what the rules, or other rules, say about the images of a group or repository",
            does: Does::ListOf(VERDICTS),
            positional: "uid",
            example: "registry image-policy preview acme",
        },
        Verb {
            name: "except",
            method: "bowline.registry.v1.ImagePolicies.CreateImageException",
            about: "Except an image or a repository from rules until a time",
            does: Does::Call,
            positional: "uid",
            example: "registry image-policy except acme --digest $DIGEST --expire-time 7d --justification 'Fix is on its way'",
        },
        Verb {
            name: "end-exception",
            method: "bowline.registry.v1.ImagePolicies.DeleteImageException",
            about: "Remove an exception from the image policy of a group or repository",
            does: Does::Call,
            positional: "uid",
            example: "registry image-policy end-exception acme --exception-id $EXCEPTION",
        },
    ],
}];
