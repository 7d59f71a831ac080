//! Facts of a platform, field by field.

use bowline_formats::workloads::WorkloadProblem;
use maud::{Markup, html};

use super::draft::{CARRIED, Platform};
use super::{CLAIMS, Step};
use crate::visit::Visit;

enum Kind {
    Line,
    Area,
    /// Values with their texts; the first is the default.
    Choice(&'static [(&'static str, &'static str)]),
}

struct Input {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    kind: Kind,
    is_required: bool,
}

const fn line(name: &'static str, label: &'static str, hint: &'static str) -> Input {
    Input { name, label, hint, kind: Kind::Line, is_required: false }
}

const fn required(name: &'static str, label: &'static str, hint: &'static str) -> Input {
    Input { name, label, hint, kind: Kind::Line, is_required: true }
}

const fn choice(
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    options: &'static [(&'static str, &'static str)],
) -> Input {
    Input { name, label, hint, kind: Kind::Choice(options), is_required: false }
}

const COMMON: &[Input] = &[
    required(
        "name",
        "Name of the identity",
        "How lists call it: 3 to 63 lower-case letters, digits, spaces, dots, underscores and hyphens.",
    ),
    line("description", "Description", "What it is for, for those who review access later."),
];

const AUDIENCE: Input = line(
    "audience",
    "Audience",
    "Whom the token is meant for. Leave it empty: this server takes tokens that name its own address, and no token that is \
     meant for someone else can be replayed here.",
);

const GITHUB: &[Input] = &[
    required("repo", "Repository", "Owner and name, such as acme/site. Jobs of other repositories never match."),
    choice(
        "jobs",
        "Which jobs",
        "Everyone who can start such a job acts as the identity. A branch that only reviewed changes reach, or a protected \
         environment, is the narrowest.",
        &[
            ("branch", "jobs on one branch"),
            ("tag", "jobs on one tag"),
            ("environment", "jobs of one environment"),
            ("all", "all jobs of the repository"),
        ],
    ),
    line("ref", "Branch, tag or environment", "Its name, such as main. Not needed for all jobs."),
    choice(
        "numbers",
        "How tokens name the repository",
        "Tokens of repositories that were made since July 2026, and of those that switched, have numbers in their subject: \
         repo:acme@1/site@2:... A new owner of an old name has other numbers. \"gh api repos/OWNER/NAME --jq '.owner.id, .id'\" \
         shows them.",
        &[
            ("names", "by names: repo:acme/site:..."),
            ("numbers", "by numbers: repo:acme@1/site@2:..."),
            ("both", "both, during a change"),
        ],
    ),
    line("owner-id", "Number of the owner", "Only where tokens name the repository by numbers."),
    line("repository-id", "Number of the repository", "Only where tokens name the repository by numbers."),
    line("host", "Host of GitHub Enterprise Server", "Leave it empty for github.com."),
    AUDIENCE,
];

const GITLAB: &[Input] = &[
    required("project", "Project", "Groups and name, such as acme/tools/site. Jobs of other projects never match."),
    choice(
        "jobs",
        "Which jobs",
        "Everyone who can start such a job acts as the identity. A protected branch or tag is the narrowest.",
        &[("branch", "jobs on one branch"), ("tag", "jobs on one tag"), ("all", "all jobs of the project")],
    ),
    line("ref", "Branch or tag", "Its name, such as main. Not needed for all jobs."),
    line("host", "Host", "Leave it empty for gitlab.com."),
    AUDIENCE,
];

const KUBERNETES: &[Input] = &[
    required(
        "cluster-issuer",
        "Issuer of the cluster",
        "The URL that \"kubectl get --raw /.well-known/openid-configuration\" shows as issuer.",
    ),
    required("namespace", "Namespace", "Of the service account. The same name in another namespace does not match."),
    line("service-account", "Service account", "Its name. Leave it empty for the account called default."),
    Input {
        name: "keys",
        label: "Keys of the cluster",
        hint: "Only where this server cannot reach the issuer: what \"kubectl get --raw /openid/v1/jwks\" prints. These are \
               public keys. They must be replaced here when the cluster changes them.",
        kind: Kind::Area,
        is_required: false,
    },
    AUDIENCE,
];

const AWS: &[Input] = &[
    required("account", "Account", "Its number, 12 digits."),
    line(
        "role-name",
        "Role",
        "Name of the role that the workload assumes, without its path. Every session of it matches.",
    ),
    line("user-name", "Or user", "Name of a user, where there is no role."),
    line(
        "principal-id",
        "Id of the role or user",
        "Such as AROA...: a new role of the same name has another id, and then does not match. \"aws iam get-role\" shows it as RoleId.",
    ),
    line("partition", "Partition", "Leave it empty for aws; aws-cn and aws-us-gov are others."),
];

const OIDC: &[Input] = &[
    required("oidc-issuer", "Issuer", "The URL in the claim iss. This server reads its keys from there."),
    required("subject", "Subject", "The claim sub: whom the issuer gave the token to."),
    choice(
        "match",
        "The subject must be",
        "A pattern is a regular expression that matches the whole subject. It is easily broader than it looks.",
        &[("exact", "exactly this"), ("pattern", "a match of this pattern")],
    ),
    AUDIENCE,
];

fn inputs(platform: Platform) -> &'static [Input] {
    match platform {
        Platform::Github => GITHUB,
        Platform::Gitlab => GITLAB,
        Platform::Kubernetes => KUBERNETES,
        Platform::Aws => AWS,
        Platform::Oidc => OIDC,
    }
}

/// The form of a platform's facts, with what is wrong with one of them.
pub(super) fn form(visit: &Visit, platform: Platform, problem: Option<&WorkloadProblem>) -> Markup {
    let shown = || inputs(platform).iter().chain(COMMON);
    let label = |problem: &WorkloadProblem| {
        shown().find(|input| input.name == problem.field).map_or(problem.field, |input| input.label)
    };
    html! {
        (super::steps(visit, Step::Facts))
        @if let Some(problem) = problem {
            div.notice role="alert" {
                p { "One field is not right:" }
                ul { li { a href={ "#w-" (problem.field) } { (label(problem)) } ": " (problem.description) } }
            }
        }
        form.request method="get" action=(CLAIMS) {
            // What later pages added stays, for those who come back.
            @for name in CARRIED.iter().filter(|name| !shown().any(|input| input.name == **name)) {
                @if let Some(value) = visit.query.get(name) { input type="hidden" name=(name) value=(value); }
            }
            @for input in shown() { (field(visit, input, problem)) }
            button type="submit" { "Continue: what matches" }
        }
    }
}

fn field(visit: &Visit, input: &Input, problem: Option<&WorkloadProblem>) -> Markup {
    let (id, hint) = (format!("w-{}", input.name), format!("w-{}-hint", input.name));
    let problem = problem.filter(|problem| problem.field == input.name);
    let (wrong, value) = (problem.map(|_| "true"), visit.query.text(input.name));
    html! {
        div.field {
            label for=(id) { (input.label) @if input.is_required { " (required)" } }
            p.small id=(hint) { (input.hint) }
            @if let Some(problem) = problem { p.wrong { (problem.description) } }
            @match input.kind {
                Kind::Line => {
                    input type="text" id=(id) name=(input.name) value=(value) aria-describedby=(hint) aria-invalid=[wrong]
                        maxlength="1024" autocomplete="off" autocapitalize="none" spellcheck="false";
                }
                Kind::Area => {
                    textarea id=(id) name=(input.name) rows="3" aria-describedby=(hint) aria-invalid=[wrong] maxlength="8192"
                        autocapitalize="none" spellcheck="false" { "\n" (value) }
                }
                Kind::Choice(options) => {
                    select id=(id) name=(input.name) aria-describedby=(hint) aria-invalid=[wrong] {
                        @for (option, text) in options { option value=(option) selected[value == *option] { (text) } }
                    }
                }
            }
        }
    }
}
