//! What a generated command does.

use bowline_client::{Api, ClientError};
use bowline_contract::{Contract, MethodInfo};
use bowline_terminal::{Form, Output, Table, confirm, note};
use clap::{ArgMatches, FromArgMatches as _};
use prost_reflect::Kind as Type;
use serde_json::{Map, Value};

use super::command::{self, DIRECT, LIMIT, PARENT, POSITIONAL};
use super::presets::PresetCommand;
use super::table::{Column, Does, Kind, Resource, Verb};
use super::uidp_names::UidpNames;
use super::{audit_export, explanation, field_args, list, names, presets, preview};
use crate::error::CliError;
use crate::session::Access;
use crate::{dynamic, print, resolve};

/// Runs the command that was parsed below a resource's word.
pub(super) async fn run(resource: &'static Resource, matches: &ArgMatches) -> Result<(), CliError> {
    let (name, matches) = match resource.verbs {
        [only] if only.name == resource.name => (only.name, matches),
        _ => matches.subcommand().unwrap_or((resource.name, matches)),
    };
    let verb = resource.verbs.iter().find(|verb| verb.name == name);
    let verb = verb.ok_or_else(|| CliError::Defect(format!("the command {name} has no line in its table")))?;
    if matches.subcommand_name().is_some() {
        let preset = PresetCommand::from_arg_matches(matches).map_err(|error| CliError::Option(error.to_string()))?;
        return presets::run(preset).await;
    }
    let parsed = |error: clap::Error| CliError::Option(error.to_string());
    let access = Access::from_arg_matches(matches).map_err(parsed)?;
    let output = Output::from_arg_matches(matches).map_err(parsed)?;
    let contract = Contract::of(verb.method);
    let method = dynamic::method(&contract, verb.method)?;
    let api = access.session()?.api().await?;
    let command = Generated { resource, verb, method, matches, api: &api, contract: &contract };
    command.run(output.form()).await
}

struct Generated<'c> {
    resource: &'c Resource,
    verb: &'c Verb,
    method: &'c MethodInfo,
    matches: &'c ArgMatches,
    api: &'c Api,
    contract: &'c Contract,
}

impl Generated<'_> {
    async fn run(&self, form: &Form) -> Result<(), CliError> {
        let request = self.request().await?;
        if preview::is_requested(self.matches) {
            return preview::show(self.api, self.method, &request, form).await;
        }
        let columns = list::columns(self.resource, self.verb, form);
        match self.verb.does {
            Does::List | Does::ListOf(_) => {
                let limit = self.matches.try_get_one::<u64>(LIMIT).ok().flatten().copied();
                list::print(self.api, &columns, self.method, request, limit, form).await
            }
            Does::Rows(_) => {
                let response = self.call(&request).await?;
                let table = list::table(self.api, &columns, dynamic::elements(self.method, &response)).await;
                print(&form.render(&table, || Ok(response))?)
            }
            Does::Get | Does::Call => show_fields(self.call(&request).await?, form),
            Does::Text(path) => {
                let response = self.call(&request).await?;
                let mut text = list::text(&response, path);
                if !text.ends_with('\n') {
                    text.push('\n');
                }
                if matches!(form, Form::Table | Form::Wide) { print(&text) } else { print(&form.document(&response)?) }
            }
            Does::Ask(question) => {
                confirm(question)?;
                show_fields(self.call(&request).await?, form)
            }
            Does::Create(shown) => show(&self.call(&request).await?, shown, form),
            Does::Update => {
                let response = self.call(&request).await?;
                if response.get("uid").is_some() {
                    show(&response, &["uid"], form)
                } else {
                    show_fields(response, form)
                }
            }
            Does::Delete(along) => {
                let (noun, name) = (self.resource.kind.noun(), self.positional());
                confirm(&format!("{} the {noun} {name}{along}", capitalized(self.verb.name)))?;
                self.call(&request).await?;
                note(&format!("the {noun} {name}: {} done\n", self.verb.name));
                Ok(())
            }
            Does::Watch => self.watch(&request, form).await.map(drop),
            Does::Export => audit_export::run(self.api, self.method, &request).await,
            Does::Verify => require_verified(self.watch(&request, form).await?.as_ref()),
            Does::Explain => {
                let response = self.call(&request).await?;
                let mut names = UidpNames::default();
                if matches!(form, Form::Table | Form::Wide | Form::Csv) {
                    names.read(self.api, explanation::uidps(&response)).await;
                }
                let table = explanation::table(self.contract, &response, &names);
                print(&form.render(&table, || Ok(response))?)
            }
        }
    }

    async fn call(&self, request: &Map<String, Value>) -> Result<Value, ClientError> {
        dynamic::call(self.api, self.method, request).await
    }

    fn positional(&self) -> &str {
        self.argument(POSITIONAL).unwrap_or_default()
    }

    fn argument(&self, id: &str) -> Option<&str> {
        self.matches.try_get_one::<String>(id).ok().flatten().map(String::as_str)
    }

    /// The request: position, flags, and the mask of an update.
    async fn request(&self) -> Result<Map<String, Value>, ClientError> {
        let mut request = Map::new();
        self.position(&mut request).await?;
        let mut changed = Vec::new();
        for field in field_args::fields(self.contract, self.method, self.verb) {
            let Some(values) = field.given(self.matches)? else { continue };
            changed.push(field.path.clone());
            for text in values {
                if field.is_list() && text.is_empty() {
                    // An empty list of what is changed empties it.
                    continue;
                }
                let text = match field.kind() {
                    Some(kind) => names::uidp(self.api, kind, &text).await?,
                    None if field.names_method() => self.method_name(text)?,
                    None => text,
                };
                let (path, text) = field.entry(&text)?;
                dynamic::set(&mut request, &self.method.input, &path, &text)?;
            }
        }
        dynamic::require_known(&self.method.input, &Value::Object(request.clone()))?;
        if matches!(self.verb.does, Does::Update) {
            self.mask(&mut request, &changed)?;
        }
        Ok(request)
    }

    /// Fields from the first argument and `--parent`.
    async fn position(&self, request: &mut Map<String, Value>) -> Result<(), ClientError> {
        let (input, text) = (&self.method.input, self.positional());
        let mut parent = self.argument(PARENT).map(String::from);
        if matches!(self.verb.does, Does::Create(_)) {
            if !text.is_empty() {
                let (group, name) = text.rsplit_once('/').map_or((None, text), |(group, name)| (Some(group), name));
                parent = parent.or(group.map(String::from));
                dynamic::set(request, input, self.verb.positional, name)?;
            }
            let kind = if field_args::parent_is_provider(self.verb) { Kind::IdentityProvider } else { Kind::Group };
            return match parent {
                Some(parent) => {
                    let uidp = names::uidp(self.api, kind, &parent).await?;
                    dynamic::set(request, input, "parent", &uidp)
                }
                // An organization has no parent.
                None if self.verb.method.ends_with("GroupsService.CreateGroup") => Ok(()),
                None => Err(ClientError::Usage(format!(
                    "{text:?} names no group: write its path before the name, as acme/{text}, or pass --parent"
                ))),
            };
        }
        if let Some(parent) = parent {
            let filter = if self.matches.get_flag(DIRECT) { "uidp.children_of" } else { "uidp.descendants_of" };
            dynamic::set(request, input, filter, &resolve::group(self.api, &parent).await?)?;
        }
        if !text.is_empty() {
            let uidp = match command::positional_kind(self.resource, self.verb) {
                Some(kind) => names::uidp(self.api, kind, text).await?,
                None => text.to_owned(),
            };
            dynamic::set(request, input, self.verb.positional, &uidp)?;
            // What is tested is authorized where it is.
            if matches!(self.verb.does, Does::Call)
                && self.verb.positional != "parent"
                && input.get_field_by_name("parent").is_some()
                && let Some((group, _)) = uidp.rsplit_once('/')
            {
                dynamic::set(request, input, "parent", group)?;
            }
        }
        Ok(())
    }

    /// Full name of a method, which may be given by its end. The audit log names commands as well.
    fn method_name(&self, text: String) -> Result<String, ClientError> {
        let contract = Contract::load();
        match dynamic::method(&contract, &text) {
            Ok(method) => Ok(method.full_name.clone()),
            Err(_) if let Some(operation) = dynamic::operation(&contract, &text) => Ok(operation.full_name.clone()),
            Err(_) if !matches!(self.verb.does, Does::Explain) => Ok(text),
            Err(error) => Err(error),
        }
    }

    /// Names the fields that were given, below the resource.
    fn mask(&self, request: &mut Map<String, Value>, changed: &[String]) -> Result<(), ClientError> {
        if changed.is_empty() {
            return Err(ClientError::Usage("nothing to change: name a field, such as --description".into()));
        }
        let has_mask = self.method.input.get_field_by_name("update_mask");
        if !has_mask.is_some_and(|field| matches!(field.kind(), Type::Message(_))) {
            return Ok(());
        }
        let below = |path: &String| path.split_once('.').map_or(path.clone(), |(_, rest)| rest.to_owned());
        let paths: Vec<String> = changed.iter().map(below).collect();
        request.insert("update_mask".into(), paths.join(",").into());
        Ok(())
    }

    /// Prints messages as they come: a line each. The last one is returned.
    async fn watch(&self, request: &Map<String, Value>, form: &Form) -> Result<Option<Value>, CliError> {
        let wire = dynamic::encoded(&self.method.input, request)?;
        let mut messages = self.api.watch(self.method, &wire).await?;
        let columns: Vec<&Column> = self.resource.columns.iter().collect();
        let head: Vec<&'static str> = columns.iter().map(|column| column.head).collect();
        let mut listing = bowline_terminal::Listing::new(form, &head);
        let mut names = UidpNames::default();
        let mut last = None;
        while let Some(message) = messages.next().await? {
            let json = dynamic::to_json(&self.method.output, &message)?;
            match form {
                Form::Json => print(&format!("{json}\n"))?,
                Form::JsonPath(_) | Form::Yaml => print(&form.document(&json)?)?,
                _ => {
                    names.read(self.api, list::uidps(&columns, std::slice::from_ref(&json))).await;
                    let cells =
                        |element: &Value| columns.iter().map(|column| list::cell(column, element, &names)).collect();
                    listing.page(vec![json.clone()], cells)?;
                }
            }
            last = Some(json);
        }
        Ok(last)
    }
}

/// Prints a response field by field.
fn show_fields(response: Value, form: &Form) -> Result<(), CliError> {
    let mut table = Table::new(&["field", "value"]);
    for (field, value) in list::flattened(&response) {
        table.push([field, value]);
    }
    print(&form.render(&table, || Ok(response))?)
}

/// Requires the last message of a verification to be its end, without a problem.
fn require_verified(last: Option<&Value>) -> Result<(), CliError> {
    let problem = last.map(|progress| list::text(progress, "problem")).unwrap_or_default();
    if !problem.is_empty() {
        return Err(CliError::Unverified(problem));
    }
    if last.and_then(|progress| progress.get("done")) != Some(&Value::Bool(true)) {
        return Err(CliError::Unverified("the server ended the verification before the last entry".into()));
    }
    Ok(())
}

/// Prints what is needed next of something new or changed, such as its UIDP: a line each.
fn show(response: &Value, paths: &[&str], form: &Form) -> Result<(), CliError> {
    let mut table = Table::without_head();
    for path in paths {
        table.push([list::text(response, path)]);
    }
    print(&form.render(&table, || Ok(response.clone()))?)
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
