//! The commands of `bowline libraries` about versions that groups published in other ecosystems than Python.

use super::table::{Column, Does, Kind, Resource, Verb, column};

const VERSIONS: &[Column] = &[
    column("package", "package"),
    column("version", "version"),
    column("license", "license"),
    column("files", "fileCount"),
    column("bytes", "sizeBytes"),
    column("created", "createTime"),
];
const CRATE_VERSIONS: &[Column] = &[
    column("package", "package"),
    column("version", "version"),
    column("license", "license"),
    column("yanked", "yanked"),
    column("files", "fileCount"),
    column("bytes", "sizeBytes"),
    column("created", "createTime"),
];

/// The verb that lists versions.
const fn list(method: &'static str, example: &'static str) -> Verb {
    Verb {
        name: "list",
        method,
        about: "List versions by package, the lowest first",
        does: Does::List,
        positional: "parent",
        example,
    }
}

/// The verb that deletes a version.
const fn delete(method: &'static str, example: &'static str) -> Verb {
    Verb {
        name: "delete",
        method,
        about: "Delete a version with its files, whose names cannot be used again",
        does: Does::Ask("Delete this version with its files"),
        positional: "parent",
        example,
    }
}

pub(super) const RESOURCES: &[Resource] = &[
    Resource {
        name: "javascript",
        about: "Versions of JavaScript packages that a group published",
        kind: Kind::Group,
        columns: VERSIONS,
        wide: &[column("deprecated", "deprecated")],
        verbs: &[
            list("bowline.libraries.v1.JavascriptPackages.ListVersions", "libraries javascript list acme"),
            Verb {
                name: "deprecate",
                method: "bowline.libraries.v1.JavascriptPackages.DeprecateVersion",
                about: "Warn those who install a version",
                does: Does::Call,
                positional: "parent",
                example: "libraries javascript deprecate acme --package example --version 1.0.0 --deprecated 'use 2'",
            },
            Verb {
                name: "undeprecate",
                method: "bowline.libraries.v1.JavascriptPackages.UndeprecateVersion",
                about: "Take back the warning of a version",
                does: Does::Call,
                positional: "parent",
                example: "libraries javascript undeprecate acme --package example --version 1.0.0",
            },
            delete(
                "bowline.libraries.v1.JavascriptPackages.DeleteVersion",
                "libraries javascript delete acme --package example --version 1.0.0 --yes",
            ),
        ],
    },
    Resource {
        name: "java",
        about: "Versions of Java packages that a group published",
        kind: Kind::Group,
        columns: VERSIONS,
        wide: &[],
        verbs: &[
            list("bowline.libraries.v1.JavaPackages.ListVersions", "libraries java list acme"),
            delete(
                "bowline.libraries.v1.JavaPackages.DeleteVersion",
                "libraries java delete acme --package org.example:library --version 1.0 --yes",
            ),
        ],
    },
    Resource {
        name: "go",
        about: "Versions of Go modules that a group published",
        kind: Kind::Group,
        columns: VERSIONS,
        wide: &[],
        verbs: &[
            list("bowline.libraries.v1.GoPackages.ListVersions", "libraries go list acme"),
            delete(
                "bowline.libraries.v1.GoPackages.DeleteVersion",
                "libraries go delete acme --package example.com/tool --version v1.0.0 --yes",
            ),
        ],
    },
    Resource {
        name: "cargo",
        about: "Versions of crates that a group published",
        kind: Kind::Group,
        columns: CRATE_VERSIONS,
        wide: &[],
        verbs: &[
            list("bowline.libraries.v1.CargoPackages.ListVersions", "libraries cargo list acme"),
            Verb {
                name: "yank",
                method: "bowline.libraries.v1.CargoPackages.YankVersion",
                about: "Mark a version as one that new lock files pass over",
                does: Does::Call,
                positional: "parent",
                example: "libraries cargo yank acme --package example --version 1.0.0",
            },
            Verb {
                name: "unyank",
                method: "bowline.libraries.v1.CargoPackages.UnyankVersion",
                about: "Take back the mark of a version",
                does: Does::Call,
                positional: "parent",
                example: "libraries cargo unyank acme --package example --version 1.0.0",
            },
            delete(
                "bowline.libraries.v1.CargoPackages.DeleteVersion",
                "libraries cargo delete acme --package example --version 1.0.0 --yes",
            ),
        ],
    },
    Resource {
        name: "files",
        about: "Versions of generic files that a group published",
        kind: Kind::Group,
        columns: VERSIONS,
        wide: &[],
        verbs: &[
            list("bowline.libraries.v1.GenericPackages.ListVersions", "libraries files list acme"),
            delete(
                "bowline.libraries.v1.GenericPackages.DeleteVersion",
                "libraries files delete acme --package tool --version 1.2.0 --yes",
            ),
        ],
    },
];
