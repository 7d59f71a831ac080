use std::collections::BTreeSet;

use bowline_client::Api;
use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::DependencyState;
use bowline_contract::bowline::libraries::v1::rpc::decisions::ExplainDependencies;
use bowline_terminal::{Form, Output, Table, json, note, time};
use serde_json::json;

use crate::error::CliError;
use crate::print;

/// What decides about a version.
pub(super) struct ExplainedVersion {
    pub(super) explanation: own::PackageExplanation,
    /// The same for people.
    pub(super) table: Table,
}

/// What the version requires.
///
/// # Errors
/// It is not stored on the server, or the server refuses.
pub(super) async fn required(
    api: &Api,
    parent: &str,
    explanation: &own::PackageExplanation,
) -> Result<own::PackageDependencies, CliError> {
    let request = own::ExplainDependenciesRequest { parent: parent.into(), purl: explanation.purl.clone() };
    api.call::<ExplainDependencies>(&request)
        .await
        .map_err(|error| if error.is_absent() { CliError::NotStored(error.to_string()) } else { error.into() })
}

/// Prints a decision, and what the version requires; fails if an installation would. CSV has what it requires alone.
pub(super) fn show(
    output: &Output,
    explained: &ExplainedVersion,
    required: Result<own::PackageDependencies, CliError>,
    shows_all: bool,
) -> Result<(), CliError> {
    let is_text = matches!(output.form(), Form::Table | Form::Wide);
    if is_text {
        print(&explained.table.text())?;
    }
    let required = required?;
    let table = table(&required, shows_all);
    if is_text && !table.is_empty() {
        print("\n")?;
    }
    if !is_text || !table.is_empty() {
        let document = || Ok(json!({ "explanation": json(&explained.explanation)?, "dependencies": json(&required)? }));
        print(&output.form().render(&table, document)?)?;
    }
    note(&summary(&required));
    match held(&required) {
        0 => Ok(()),
        held => Err(CliError::Held(held)),
    }
}

/// Requirements with what there is for them: without those whose highest version is served, unless all are shown.
fn table(required: &own::PackageDependencies, shows_all: bool) -> Table {
    let mut table =
        Table::new(&["package", "requirement", "required by", "state", "version", "reason", "allowed from"]);
    for one in &required.dependencies {
        if one.state() == DependencyState::Allowed && !shows_all {
            continue;
        }
        let decision = one.withheld.clone().unwrap_or_default();
        let reason = if one.unknown_because.is_empty() { decision.reason } else { one.unknown_because.clone() };
        let version = one.chosen.rsplit_once('@').map(|(_, version)| version.to_owned()).unwrap_or_default();
        let state = format!("{}{}", word(one.state()), if one.optional { " (optional)" } else { "" });
        let (requirement, required_by) = (one.requirement.clone(), one.required_by.clone());
        table.push([one.purl.clone(), requirement, required_by, state, version, reason, time(decision.allowed_time)]);
    }
    table
}

fn word(state: DependencyState) -> &'static str {
    match state {
        DependencyState::Allowed => "allowed",
        DependencyState::Older => "older",
        DependencyState::Held => "held",
        DependencyState::Unknown | DependencyState::Unspecified => "unknown",
    }
}

/// How many versions are withheld that an installation needs, since nothing else satisfies a requirement.
fn held(required: &own::PackageDependencies) -> usize {
    let is_needed = |one: &&own::PackageDependency| one.state() == DependencyState::Held && !one.optional;
    required.dependencies.iter().filter(is_needed).map(|one| &one.chosen).collect::<BTreeSet<_>>().len()
}

fn summary(required: &own::PackageDependencies) -> String {
    let of = |state| required.dependencies.iter().filter(|one| one.state() == state).count();
    let packages: BTreeSet<&str> = required.dependencies.iter().map(|one| one.purl.as_str()).collect();
    let more = if required.incomplete { "; there are more, which were not followed" } else { "" };
    format!(
        "{} requirements of {} packages: {} held, {} older, {} unknown{more}\n",
        required.dependencies.len(),
        packages.len(),
        of(DependencyState::Held),
        of(DependencyState::Older),
        of(DependencyState::Unknown),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(state: DependencyState, chosen: &str, optional: bool) -> own::PackageDependency {
        own::PackageDependency {
            purl: "pkg:npm/a".into(),
            requirement: "^1".into(),
            required_by: "pkg:npm/root@1.0.0".into(),
            state: state as i32,
            chosen: chosen.into(),
            optional,
            ..own::PackageDependency::default()
        }
    }

    fn sample() -> own::PackageDependencies {
        let mut unknown = one(DependencyState::Unknown, "", false);
        unknown.unknown_because = "no version of it is stored here".into();
        let dependencies = vec![
            one(DependencyState::Allowed, "pkg:npm/a@1.0.0", false),
            one(DependencyState::Older, "pkg:npm/a@1.0.0", false),
            one(DependencyState::Held, "pkg:npm/a@1.1.0", false),
            one(DependencyState::Held, "pkg:npm/a@1.1.0", false),
            one(DependencyState::Held, "pkg:npm/a@1.2.0", true),
            unknown,
        ];
        own::PackageDependencies { dependencies, incomplete: true, ..own::PackageDependencies::default() }
    }

    #[test]
    fn versions_that_an_installation_needs_count_once() {
        assert_eq!(held(&sample()), 1);
        assert_eq!(held(&own::PackageDependencies::default()), 0);
        let wanted =
            "6 requirements of 1 packages: 3 held, 1 older, 1 unknown; there are more, which were not followed\n";
        assert_eq!(summary(&sample()), wanted);
    }

    #[test]
    fn what_is_allowed_is_shown_with_all() {
        let of = |shows_all| Form::Csv.render(&table(&sample(), shows_all), || Ok(json!(null))).expect("a table");
        assert_eq!((of(false).lines().count(), of(true).lines().count()), (6, 7));
        assert!(of(false).contains("held (optional),1.2.0") && of(false).contains("unknown,,no version of it"));
    }
}
