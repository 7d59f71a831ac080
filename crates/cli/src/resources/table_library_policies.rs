//! The commands of `bowline libraries` about policies that are made from the contract: their tests, their rules, and those in force
//! for Cargo and generic files.

use super::table::{Column, Does, Kind, Resource, Verb, column};

const BLOCKED: &[Column] = &[
    column("package", "purl"),
    column("reason", "reason"),
    column("attempts", "attemptCount"),
    column("last", "lastBlockedAt"),
    column("until", "unblocksAt"),
    column("policy", "policy"),
];
const TESTS: &[Column] = &[
    column("purl", "test.purl"),
    column("expected", "test.expected"),
    column("passed", "passed"),
    column("allowed", "allowed"),
    column("reason", "reason"),
    column("note", "test.note"),
];

pub(super) const RESOURCES: &[Resource] = &[
    Resource {
        name: "policy-tests",
        about: "Tests of a policy: what it must decide about versions of packages",
        kind: Kind::Unnamed("policy"),
        columns: TESTS,
        wide: &[],
        verbs: &[
            Verb {
                name: "list",
                method: "bowline.libraries.v1.PolicyTests.ListPolicyTests",
                about: "List the tests of a policy, with what it decides now",
                does: Does::List,
                positional: "policy",
                example: "libraries policy-tests list $POLICY",
            },
            Verb {
                name: "set",
                method: "bowline.libraries.v1.PolicyTests.SetPolicyTests",
                about: "Replace the tests of a policy",
                does: Does::Rows(TESTS),
                positional: "policy",
                example: "libraries policy-tests set $POLICY --tests-file tests.json",
            },
        ],
    },
    Resource {
        name: "vulnerability-rules",
        about: "Rules of policies about known vulnerabilities",
        kind: Kind::Unnamed("policy"),
        columns: &[],
        wide: &[],
        verbs: &[
            Verb {
                name: "get",
                method: "bowline.libraries.v1.PolicyVulnerabilities.GetRule",
                about: "Show the rule of a policy",
                does: Does::Call,
                positional: "policy",
                example: "libraries vulnerability-rules get $POLICY",
            },
            Verb {
                name: "set",
                method: "bowline.libraries.v1.PolicyVulnerabilities.SetRule",
                about: "Replace the rule of a policy; without a severity, it has none",
                does: Does::Call,
                positional: "policy",
                example: "libraries vulnerability-rules set $POLICY --rule-minimum-severity high --rule-fix-days 14",
            },
        ],
    },
    Resource {
        name: "age-rules",
        about: "From when on policies count the age of versions",
        kind: Kind::Unnamed("policy"),
        columns: &[],
        wide: &[],
        verbs: &[
            Verb {
                name: "get",
                method: "bowline.libraries.v1.PolicyAges.GetRule",
                about: "Show from when on a policy counts",
                does: Does::Call,
                positional: "policy",
                example: "libraries age-rules get $POLICY",
            },
            Verb {
                name: "set",
                method: "bowline.libraries.v1.PolicyAges.SetRule",
                about: "Set from when on a policy counts; without a source, from when versions were published",
                does: Does::Call,
                positional: "policy",
                example: "libraries age-rules set $POLICY --age-source first-seen-new-versions",
            },
        ],
    },
    Resource {
        name: "cargo-policies",
        about: "Policies in force for Cargo and generic files",
        kind: Kind::Group,
        columns: BLOCKED,
        wide: &[column("mode", "mode"), column("first", "firstBlockedAt"), column("published", "publishDate")],
        verbs: &[
            Verb {
                name: "get",
                method: "bowline.libraries.v1.CargoPolicies.GetPolicies",
                about: "Show which policies are in force for Cargo, or for generic files, in an organization",
                does: Does::Call,
                positional: "parent",
                example: "libraries cargo-policies get acme",
            },
            Verb {
                name: "set",
                method: "bowline.libraries.v1.CargoPolicies.SetPolicy",
                about: "Put a policy into force for Cargo, or for generic files; without one, none of the mode is in force",
                does: Does::Call,
                positional: "parent",
                example: "libraries cargo-policies set acme --mode log --policy $POLICY",
            },
            Verb {
                name: "blocked",
                method: "bowline.libraries.v1.CargoPolicies.ListBlockEvents",
                about: "List refused downloads of crates or generic files, the latest first",
                does: Does::List,
                positional: "parent",
                example: "libraries cargo-policies blocked acme",
            },
        ],
    },
];
