//! `bowline access preview METHOD`, and `--dry-run` of the commands that are made from the contract: what a call would
//! change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bowline_client::{Api, ClientError};
use bowline_contract::bowline::preview::v1::PreviewRequest;
use bowline_contract::bowline::preview::v1::rpc::previews::Preview;
use bowline_contract::{Contract, Method, MethodInfo};
use bowline_terminal::{Form, Output, Table, Work, confirm, note};
use clap::{Arg, ArgAction, ArgMatches, Args, Subcommand};
use prost::Message as _;
use serde_json::{Map, Value};

use super::list::{flattened, text};
use super::uidp_names::UidpNames;
use crate::error::CliError;
use crate::session::Access;
use crate::{api, dynamic, print};

const EXAMPLE: &str = "\
Examples:
  bowline access preview DeleteGroup -f uid=$ORG -o json
  bowline access preview CreateGroup -f parent=$ORG -f group.name=new";

/// Id and name of the option of generated commands.
const DRY_RUN: &str = "dry-run";

const HELP: &str = "Show what would change, without changing it; other forms than tables are those of `access preview`";

/// Longest value in a table, in characters.
const VALUE_CHARACTERS: usize = 60;

/// Commands of `bowline access` that are written by hand.
#[derive(Subcommand)]
pub enum AccessCommand {
    /// Show what a call would change, or the error that it would get, without making it
    Preview(Box<PreviewCommand>),
}

/// `bowline access preview`.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct PreviewCommand {
    #[command(flatten)]
    access: Access,
    /// Method: its full name, or an end of it that no other method has, such as DeleteGroup
    #[arg(value_name = "METHOD")]
    method: String,
    /// Field of the request, by its path: group.name=acme; again for each element of a list; =@FILE for the text of a
    /// file
    #[arg(short, long = "field", value_name = "FIELD=VALUE")]
    fields: Vec<String>,
    /// JSON file with the request, or - for standard input; fields are added to it
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// Runs the handwritten commands of `bowline access`.
pub fn run(command: AccessCommand) -> Work<CliError> {
    let AccessCommand::Preview(command) = command;
    Box::pin(async move {
        let contract = Contract::load();
        let method = dynamic::method(&contract, &command.method)?;
        if !method.previewable {
            let text = format!(
                "{} cannot be previewed: it only reads, calls other servers, or returns a secret",
                method.short_name()
            );
            return Err(ClientError::Usage(text).into());
        }
        let request = api::request(&command.fields, command.input.as_deref(), method)?;
        let api = command.access.session()?.api().await?;
        show(&api, method, &request, command.output.form()).await
    })
}

/// `--dry-run` of a command that is written by hand.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DryRun {
    #[arg(long, help = HELP)]
    dry_run: bool,
}

impl DryRun {
    /// Whether nothing is to be changed.
    pub(crate) fn is_on(self) -> bool {
        self.dry_run
    }

    /// Asks for confirmation, unless nothing is to be changed.
    ///
    /// # Errors
    /// It is not confirmed.
    pub(crate) fn confirm(self, what: &str) -> Result<(), CliError> {
        if self.dry_run { Ok(()) } else { Ok(confirm(what)?) }
    }

    /// Calls a method. In a dry run the call is previewed instead, which is printed, and there is no response.
    ///
    /// # Errors
    /// That of the call, or of its preview.
    pub(crate) async fn call<M: Method>(
        self,
        api: &Api,
        request: &M::Request,
        form: &Form,
    ) -> Result<Option<M::Response>, CliError> {
        if !self.dry_run {
            return Ok(Some(api.call::<M>(request).await?));
        }
        let contract = Contract::load();
        let method = dynamic::method(&contract, M::FULL_NAME)?;
        show_encoded(api, method, request.encode_to_vec(), form).await?;
        Ok(None)
    }
}

/// `--dry-run` of a command whose method can be previewed.
pub(super) fn argument() -> Arg {
    Arg::new(DRY_RUN).long(DRY_RUN).action(ArgAction::SetTrue).help(HELP)
}

/// Whether the command is only to be previewed.
pub(super) fn is_requested(matches: &ArgMatches) -> bool {
    matches.try_get_one::<bool>(DRY_RUN).ok().flatten().copied().unwrap_or_default()
}

/// Previews a call, and prints what it would change.
///
/// # Errors
/// That of the call, or of its preview.
pub(super) async fn show(
    api: &Api,
    method: &MethodInfo,
    request: &Map<String, Value>,
    form: &Form,
) -> Result<(), CliError> {
    show_encoded(api, method, dynamic::encoded(&method.input, request)?, form).await
}

async fn show_encoded(api: &Api, method: &MethodInfo, value: Vec<u8>, form: &Form) -> Result<(), CliError> {
    let type_url = format!("type.googleapis.com/{}", method.input.full_name());
    let request =
        PreviewRequest { method: method.full_name.clone(), request: Some(prost_types::Any { type_url, value }) };
    // The changed resources may be messages of any file.
    let contract = Contract::load();
    let preview = dynamic::method(&contract, Preview::FULL_NAME)?;
    let response = api.call_encoded(preview, &request.encode_to_vec()).await?;
    let response = dynamic::to_json(&preview.output, &response)?;
    let mut names = UidpNames::default();
    if matches!(form, Form::Table | Form::Wide | Form::Csv) {
        names.read(api, uidps(&response)).await;
    }
    let (rows, notes) = (rows(&response, &names), notes(&response));
    let mut table = Table::new(&["change", "kind", "resource", "field", "before", "after"]);
    let is_empty = rows.is_empty();
    for row in rows {
        table.push(row);
    }
    print(&form.render(&table, || Ok(response))?)?;
    note(&notes);
    note(if is_empty { "the call would change nothing\n" } else { "nothing was changed: this is a preview\n" });
    Ok(())
}

type Row = [String; 6];

/// The UIDPs that the table shows by name.
fn uidps(preview: &Value) -> Vec<String> {
    let of = |list: &'static str, path: &'static str| elements(preview, list).map(move |one| text(one, path));
    of("changes", "resource")
        .chain(of("events", "subject"))
        .chain(of("capabilityChanges", "identity"))
        .chain(of("capabilityChanges", "scope"))
        .collect()
}

/// The resources of a preview by path. One that would be created has no UIDP yet: the call draws another one.
struct Paths<'p> {
    names: &'p UidpNames,
    created: BTreeSet<String>,
}

impl<'p> Paths<'p> {
    fn of(preview: &Value, names: &'p UidpNames) -> Paths<'p> {
        let is_created = |change: &&Value| snapshot(change, "before").is_none() && snapshot(change, "after").is_some();
        let created = elements(preview, "changes").filter(is_created).map(|change| text(change, "resource")).collect();
        Paths { names, created }
    }

    fn path(&self, uidp: &str) -> String {
        if !self.created.contains(uidp) {
            return self.names.path(uidp);
        }
        match uidp.rsplit_once('/') {
            Some((parent, _)) => format!("{}/(new)", self.path(parent)),
            None => "(new)".to_owned(),
        }
    }
}

/// What a resource was before a change or is after it; absent if it was or is not there.
fn snapshot<'c>(change: &'c Value, member: &str) -> Option<&'c Value> {
    change.get(member).filter(|snapshot| snapshot.is_object())
}

fn rows(preview: &Value, names: &UidpNames) -> Vec<Row> {
    let names = Paths::of(preview, names);
    let mut rows: Vec<Row> = elements(preview, "changes").flat_map(|change| of_change(change, &names)).collect();
    for change in elements(preview, "capabilityChanges") {
        let (identity, scope) = (names.path(&text(change, "identity")), names.path(&text(change, "scope")));
        for (word, member) in [("gain", "gained"), ("lose", "lost")] {
            let capabilities = text(change, member);
            if !capabilities.is_empty() {
                let (before, after) =
                    if word == "gain" { (String::new(), capabilities) } else { (capabilities, String::new()) };
                rows.push([word.into(), "capabilities".into(), identity.clone(), format!("at {scope}"), before, after]);
            }
        }
    }
    for removed in preview.get("retention").into_iter().flat_map(|outcome| elements(outcome, "removed")) {
        let (digest, tags) = (text(removed, "digest"), text(removed, "tags"));
        rows.push(["delete".into(), "manifest".into(), digest, "tags".into(), tags, String::new()]);
    }
    for event in elements(preview, "events").filter(|event| event.get("delivered") == Some(&Value::Bool(true))) {
        let (subject, kind) = (names.path(&text(event, "subject")), text(event, "type"));
        rows.push(["send".into(), "event".into(), subject, "type".into(), String::new(), kind]);
    }
    rows
}

/// A line for each changed field; one for a resource that is created or deleted.
fn of_change(change: &Value, names: &Paths<'_>) -> Vec<Row> {
    let (kind, path) = (text(change, "kind"), names.path(&text(change, "resource")));
    let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
    let name = |snapshot: &Value| text(snapshot, "content.name");
    let whole = |word: &str, before: String, after: String| {
        let field = if before.is_empty() && after.is_empty() { "" } else { "name" };
        vec![[word.to_owned(), kind.clone(), path.clone(), field.to_owned(), before, after]]
    };
    match (snapshot(change, "before"), snapshot(change, "after")) {
        (None, Some(after)) => whole("create", String::new(), name(after)),
        (Some(before), None) => whole("delete", name(before), String::new()),
        (before, after) => {
            let (before, after) = (before.map(fields).unwrap_or_default(), after.map(fields).unwrap_or_default());
            let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            let value = |fields: &BTreeMap<String, String>, path: &str| {
                shortened(fields.get(path).map(String::as_str).unwrap_or_default())
            };
            let changed = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
            let row = |field: &String| {
                let (before, after) = (value(&before, field), value(&after, field));
                ["update".to_owned(), kind.clone(), path.clone(), field.clone(), before, after]
            };
            changed.map(row).collect()
        }
    }
}

/// The fields of a snapshot by path. When it was changed is no change of its own.
fn fields(snapshot: &Value) -> BTreeMap<String, String> {
    let content = snapshot.get("content").cloned().unwrap_or_default();
    let is_own = |path: &str| path != "@type" && path != "updateTime" && path != "updatedAt";
    flattened(&content).into_iter().filter(|(path, _)| is_own(path)).collect()
}

/// What the table lacks.
fn notes(preview: &Value) -> String {
    let count = |member: &str| preview.get(member).and_then(Value::as_i64).unwrap_or_default();
    let mut notes = String::new();
    for (member, what) in [("moreChanges", "changes"), ("moreCapabilityChanges", "changes of capabilities")] {
        if count(member) > 0 {
            notes.push_str(&format!("{} more {what} are not shown\n", count(member)));
        }
    }
    if preview.get("capabilityChangesIncomplete") == Some(&Value::Bool(true)) {
        notes.push_str("there are more role bindings than a preview compares: capabilities may change of others too\n");
    }
    notes
}

fn elements<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= VALUE_CHARACTERS {
        return text.to_owned();
    }
    text.chars().take(VALUE_CHARACTERS).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_a_line_for_each_field_and_resource() {
        let group = |name: &str, time: &str| json!({ "content": { "@type": "g", "name": name, "updateTime": time } });
        let preview = json!({
            "changes": [
                { "kind": "iam.chainguard.dev/Group", "resource": "ab", "before": group("a", "1"), "after": group("b", "2") },
                { "kind": "iam.chainguard.dev/Group", "resource": "ab/cd", "after": group("new", "1") },
                { "kind": "iam.chainguard.dev/RoleBinding", "resource": "ab/ef", "before": { "content": {} }, "after": null },
            ],
            "capabilityChanges": [{ "identity": "i", "scope": "ab", "gained": ["x"], "lost": ["y", "z"] }],
            "events": [{ "type": "t", "subject": "ab", "delivered": true }, { "type": "u", "delivered": false }],
            "moreChanges": 3,
        });
        let lines: Vec<String> = rows(&preview, &UidpNames::default()).iter().map(|row| row.join("|")).collect();
        assert_eq!(
            lines,
            [
                "update|Group|ab|name|a|b",
                "create|Group|ab/(new)|name||new",
                "delete|RoleBinding|ab/ef|||",
                "gain|capabilities|i|at ab||x",
                "lose|capabilities|i|at ab|y,z|",
                "send|event|ab|type||t",
            ]
        );
        assert_eq!(notes(&preview), "3 more changes are not shown\n");
    }
}
