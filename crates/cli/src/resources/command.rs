use bowline_contract::{Contract, MethodInfo};
use bowline_terminal::{Output, with_short_examples};
use clap::{Arg, ArgAction, Args as _, Command, Subcommand as _};

use super::presets::PresetCommand;
use super::table::{Does, Kind, Resource, Verb};
use super::{Family, field_args, names, preview};
use crate::complete::{self, Subject};
use crate::session::Access;

/// Ids of arguments that are no field of a request.
pub(super) const PARENT: &str = "parent-group";
pub(super) const DIRECT: &str = "direct";
pub(super) const LIMIT: &str = "max-elements";
pub(super) const POSITIONAL: &str = "positional";

/// Adds the commands of a resource of a family. What is below a command is made when it is parsed or shown: a call needs the
/// part of the contract that its resource's methods are in, and no other.
pub(super) fn add<F: Family>(command: Command, resource: &'static Resource) -> Command {
    let own = Command::new(resource.name).about(resource.about);
    command.subcommand(match resource.verbs {
        [only] if only.name == resource.name => own.defer(of_verb::<F>),
        _ => own.subcommand_required(true).arg_required_else_help(true).defer(of_resource::<F>),
    })
}

/// Adds the verbs of the resource that the command is named after.
fn of_resource<F: Family>(command: Command) -> Command {
    let resource = F::resources().find(|resource| resource.name == command.get_name());
    let verbs = resource.into_iter().flat_map(|resource| resource.verbs.iter().map(move |verb| (resource, verb)));
    verbs.fold(command, |command, (resource, verb)| command.subcommand(verb_command(resource, verb)))
}

/// Makes the command that of the only verb of the resource that it is named after.
fn of_verb<F: Family>(command: Command) -> Command {
    let resource = F::resources().find(|resource| resource.name == command.get_name());
    let verbs = resource.into_iter().filter_map(|resource| resource.verbs.first().map(|verb| (resource, verb)));
    verbs.fold(command, |command, (resource, verb)| with_arguments(command, resource, verb))
}

fn verb_command(resource: &Resource, verb: &'static Verb) -> Command {
    with_presets(resource, verb, with_arguments(Command::new(verb.name), resource, verb))
}

/// Identities of well-known issuers have commands of their own.
fn with_presets(resource: &Resource, verb: &Verb, command: Command) -> Command {
    if resource.name != "identities" || verb.name != "create" {
        return command;
    }
    let command = command.args_conflicts_with_subcommands(true).subcommand_precedence_over_arg(true);
    // They have a description in common, which would take the command's place.
    let command = PresetCommand::augment_subcommands(command).subcommand_required(false).about(verb.about);
    command.mut_subcommands(|preset| {
        let example = preset.get_after_help().map(ToString::to_string).unwrap_or_default();
        preset.after_help(with_short_examples(&example))
    })
}

fn with_arguments(mut command: Command, resource: &Resource, verb: &'static Verb) -> Command {
    command = command.after_help(with_short_examples(&format!("Example:\n  bowline {}", verb.example)));
    let contract = Contract::of(verb.method);
    let Some(method) = contract.by_full_name(verb.method) else { return command.about(verb.about) };
    if let Some(argument) = positional(resource, verb) {
        command = command.arg(match subject(resource, verb) {
            Some(subject) => argument.add(complete::completer(subject)),
            None => argument,
        });
    }
    command = position(command, verb, method);
    for field in field_args::fields(&contract, method, verb) {
        command = command.arg(field.argument());
    }
    // Some methods have a limit of their own.
    if verb.is_list() && method.input.get_field_by_name("limit").is_none() {
        let help = "List at most so many elements [default: all]";
        let limit = Arg::new(LIMIT).long("limit").value_name("N").value_parser(clap::value_parser!(u64).range(1..));
        command = command.arg(limit.help(help));
    }
    if method.previewable {
        command = command.arg(preview::argument());
    }
    // Groups of arguments have a description of their own, which would take the command's place.
    Output::augment_args(Access::augment_args(command)).about(verb.about)
}

/// What the first argument names; absent if it is a number, an id or a text.
pub(super) fn positional_kind(resource: &Resource, verb: &Verb) -> Option<Kind> {
    match verb.positional {
        "sequence" | "id" | "name" | "query" => None,
        "organization" | "parent" => Some(Kind::Group),
        "scope" => Some(Kind::Scope),
        "resource" => Some(Kind::Resource),
        "provider" => Some(Kind::IdentityProvider),
        "repo_uid" | "repo_id" => Some(Kind::Repo),
        "identity" => Some(Kind::Identity),
        _ => Some(resource.kind),
    }
}

fn positional(resource: &Resource, verb: &Verb) -> Option<Arg> {
    if verb.positional.is_empty() {
        return None;
    }
    // Whose own access is meant needs no name.
    let is_required = verb.positional != "identity" || !verb.method.contains("AccessExplainer");
    let (name, help) = match (verb.does, verb.positional, positional_kind(resource, verb)) {
        (Does::Create(_), ..) => ("PATH", "Path of the new one: its group's path and its name, such as acme/name"),
        (_, "sequence", _) => ("SEQUENCE", "Number of the entry"),
        (_, "id", _) => ("ID", "Id, as the list shows it"),
        (.., None) => ("NAME", "Name, as the list shows it"),
        (.., Some(Kind::Resource)) => ("RESOURCE", "Path of a resource with a name, such as acme/team, or UIDP of any"),
        (.., Some(Kind::Scope)) => {
            ("SCOPE", "Path of a group or repository, such as acme/team, or UIDP of any resource")
        }
        (.., Some(Kind::Repo)) => ("REPO", "Repository: organization/name, organization/group/name, or UIDP"),
        (.., Some(Kind::Unnamed(_))) => ("UIDP", "UIDP, as the list shows it"),
        _ if is_required => ("NAME", "Path of names, such as acme/name, or UIDP"),
        _ => ("NAME", "Path of names, such as acme/name, or UIDP [default: you]"),
    };
    Some(Arg::new(POSITIONAL).value_name(name).help(help).required(is_required))
}

/// What completes the first argument: a group of a new resource, or what the resource's list has.
fn subject(resource: &Resource, verb: &Verb) -> Option<Subject> {
    let listed = || resource.verbs.iter().find(|verb| verb.is_list()).map(|verb| verb.method);
    match (verb.does, positional_kind(resource, verb)?) {
        (Does::Create(_), _) | (_, Kind::Scope | Kind::Resource) => Some(Subject::Group),
        (_, kind) => names::subject(kind).or_else(|| listed().map(Subject::Unnamed)),
    }
}

/// Where resources are listed or created.
fn position(command: Command, verb: &Verb, method: &MethodInfo) -> Command {
    let has = |name: &str| method.input.get_field_by_name(name).is_some();
    let parent =
        |help: &'static str| Arg::new(PARENT).long("parent").value_name("GROUP").help(help).add(complete::groups());
    match verb.does {
        Does::List | Does::ListOf(_) if has("uidp") => {
            let direct = Arg::new(DIRECT).long("direct").action(ArgAction::SetTrue).requires(PARENT);
            command
                .arg(parent("Only below this organization or group, by path or UIDP [default: all that you may see]"))
                .arg(direct.help("Only directly in it, not in the groups below it"))
        }
        Does::Create(_) if has("parent") && verb.positional.is_empty() => {
            let is_provider = field_args::parent_is_provider(verb);
            if is_provider {
                return command.arg(
                    Arg::new(PARENT)
                        .long("identity-provider")
                        .value_name("NAME")
                        .required(true)
                        .help("Identity provider whose groups are meant, by path such as acme/sso, or UIDP"),
                );
            }
            command.arg(parent("Organization or group, by path or UIDP").required(true))
        }
        Does::Create(_) if has("parent") => {
            command.arg(parent("Organization or group, by path or UIDP [default: the one in PATH]"))
        }
        _ => command,
    }
}
