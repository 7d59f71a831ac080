//! The options of every command as a Markdown page.

use bowline_terminal::with_whole_examples;
use clap::{Arg, Command};

/// Options that most commands have, each described once. A command's own option of the same name has another row.
const SHARED: [&str; 6] = ["context", "api", "issuer", "token_file", "output", "max-elements"];

/// Heading of the options that commands on the server's machine share.
const STORAGE: &str = "Storage of the server";

const HEAD: &str = "\
# Options of the command line

`bowline man --markdown` prints this page. [COMMAND-LINE.md](COMMAND-LINE.md) describes the commands.

";

/// Renders the page of all commands.
pub(crate) fn markdown(mut command: Command) -> String {
    command.build();
    let mut page = HEAD.to_owned();
    let mut leaves = Vec::new();
    collect(&command, "", &mut leaves);
    let everywhere = command.get_arguments().filter(|arg| arg.is_global_set()).map(row).collect::<String>();
    section(&mut page, "Everywhere", "", &everywhere);
    let usual = leaves.iter().find(|(name, _)| name == "bowline iam groups list");
    let usual = usual.into_iter().flat_map(|(_, leaf)| leaf.get_arguments());
    let shared: Vec<String> = usual.filter(|arg| SHARED.contains(&arg.get_id().as_str())).map(row).collect();
    section(&mut page, "Commands that call a server", "Most of them have these:", &shared.concat());
    let storage = leaves.iter().find(|(name, _)| name == "bowline keys list");
    let storage = storage.into_iter().flat_map(|(_, leaf)| leaf.get_arguments()).filter(|arg| is_storage(arg));
    section(
        &mut page,
        "Commands on the server's machine",
        "Most of them have these:",
        &storage.map(row).collect::<String>(),
    );
    for (name, leaf) in &leaves {
        let about = leaf.get_about().map(ToString::to_string).unwrap_or_default();
        let is_own =
            |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set() && !is_storage(arg) && !shared.contains(&row(arg));
        let is_listed = |arg: &&Arg| is_own(arg) && !is_of_clap(arg);
        section(&mut page, &format!("`{name}`"), &format!("{}\n\n{}", cell(&about), examples(leaf)), "");
        groups(&mut page, leaf.get_arguments().filter(is_listed));
    }
    page
}

/// The commands that do something, in the order of the help, with their full names.
fn collect<'c>(command: &'c Command, path: &str, leaves: &mut Vec<(String, &'c Command)>) {
    let name = if path.is_empty() { command.get_name().to_owned() } else { format!("{path} {}", command.get_name()) };
    let is_leaf = !command.has_subcommands() || !command.is_subcommand_required_set();
    if is_leaf && !path.is_empty() {
        leaves.push((name.clone(), command));
    }
    for child in command.get_subcommands().filter(|child| child.get_name() != "help" && !child.is_hide_set()) {
        collect(child, &name, leaves);
    }
}

/// `--help` and `--version`, which clap adds by itself.
fn is_of_clap(arg: &Arg) -> bool {
    use clap::ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(arg.get_action(), Help | HelpLong | HelpShort | Version)
}

fn is_storage(arg: &Arg) -> bool {
    arg.get_help_heading().is_some_and(|heading| heading.starts_with(STORAGE))
}

/// The tables of a command's options, by the headings of its help.
fn groups<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let mut groups: Vec<(&str, String)> = Vec::new();
    for arg in arguments {
        let heading = arg.get_help_heading().unwrap_or_default();
        match groups.iter_mut().find(|(title, _)| *title == heading) {
            Some((_, rows)) => rows.push_str(&row(arg)),
            None => groups.push((heading, row(arg))),
        }
    }
    // Options without a heading come first.
    groups.sort_by_key(|(heading, _)| !heading.is_empty());
    for (heading, rows) in groups {
        if !heading.is_empty() {
            page.push_str(&format!("### {heading}\n\n"));
        }
        page.push_str(&format!("| option | |\n|---|---|\n{rows}\n"));
    }
}

fn section(page: &mut String, title: &str, text: &str, rows: &str) {
    page.push_str(&format!("## {title}\n\n"));
    if !text.is_empty() {
        page.push_str(&format!("{text}\n\n"));
    }
    if !rows.is_empty() {
        page.push_str(&format!("| option | |\n|---|---|\n{rows}\n"));
    }
}

fn row(arg: &Arg) -> String {
    let values =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let takes_value = arg.get_action().takes_values();
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => String::new(),
    };
    let name = match (name.is_empty(), takes_value) {
        (true, _) => values,
        (false, true) => format!("{name} {values}"),
        (false, false) => name,
    };
    let mut notes = Vec::new();
    if arg.is_required_set() {
        notes.push("required".to_owned());
    }
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",");
    if takes_value && !defaults.is_empty() {
        notes.push(format!("default: {defaults}"));
    }
    if let Some(variable) = arg.get_env() {
        notes.push(format!("variable: {}", variable.to_string_lossy()));
    }
    let possible =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ");
    if takes_value && !possible.is_empty() {
        notes.push(format!("one of {possible}"));
    }
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let notes = if notes.is_empty() { String::new() } else { format!(" [{}]", cell(&notes.join("; "))) };
    format!("| `{}` | {}{} |\n", name.replace('|', "\\|"), cell(&help), notes)
}

/// The lines of the help's example that are command lines.
fn examples(command: &Command) -> String {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let help = with_whole_examples(&help);
    let lines =
        help.lines().skip_while(|line| !line.starts_with("Example")).skip(1).take_while(|line| line.starts_with("  "));
    let lines: Vec<&str> = lines.map(str::trim_start).collect();
    if lines.is_empty() { String::new() } else { format!("```sh\n{}\n```", lines.join("\n")) }
}

/// A text in one line that ends no cell.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
