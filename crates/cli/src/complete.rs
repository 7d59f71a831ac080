//! Names and UIDPs for the completion of shells, from the server that the line or the current context names.
//!
//! Completion is silent: without a token at hand, or where the server takes too long, there are no candidates.

use std::ffi::{OsStr, OsString};
use std::sync::mpsc;
use std::time::Duration;

use bowline_client::{Api, ClientError};
use bowline_contract::Contract;
use bowline_terminal::block_on;
use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::session::{Access, Target, variable};
use crate::{dynamic, resolve};

/// Longest time that a shell waits.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Most candidates of each kind.
const MOST: usize = 100;

const GROUPS: &str = "chainguard.platform.iam.v2.GroupsService.ListGroups";
const REPOS: &str = "chainguard.platform.registry.v2.ReposService.ListRepos";

/// What an argument names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    /// A group, by its path.
    Group,
    /// What this method lists, by the path of its group and its name.
    ByName(&'static str),
    /// What this method lists, by UIDP.
    Unnamed(&'static str),
}

/// The completer of an argument.
pub(crate) fn completer(subject: Subject) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| candidates(subject, current))
}

/// Adds completers to the arguments of all commands that name repositories and groups, by what help calls their values.
pub fn add(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let name = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        match name.as_deref() {
            Some("REPO") => arg.add(completer(Subject::ByName(REPOS))),
            Some("GROUP" | "ORG" | "UIDP|NAME") => arg.add(groups()),
            _ => arg,
        }
    });
    command.mut_subcommands(add)
}

/// The completer of arguments that name groups.
pub(crate) fn groups() -> ArgValueCompleter {
    completer(Subject::Group)
}

fn candidates(subject: Subject, current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(text) = current.to_str().map(String::from) else { return Vec::new() };
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the process if the server takes longer.
    std::thread::spawn(move || {
        let names = block_on(async { search(subject, &text).await }).unwrap_or_default();
        let _ = sender.send(names);
    });
    let names = receiver.recv_timeout(PATIENCE).unwrap_or_default();
    let candidate = |(name, uidp): (String, String)| CompletionCandidate::new(name).help(Some(uidp.into()));
    names.into_iter().filter(|(name, _)| is_plain(name)).map(candidate).collect()
}

/// Whether a shell takes the text as one word: it inserts candidates as they are, and runs what they say.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || "-_./@:+,=".contains(c)) && !text.starts_with('-')
}

/// The server that the completed line names, else the variables.
fn target(arguments: impl IntoIterator<Item = OsString>) -> Target {
    // The shell passes the line behind two dashes.
    let line = arguments.into_iter().skip_while(|argument| argument != "--").skip(1);
    let words: Vec<String> = line.filter_map(|word| word.into_string().ok()).collect();
    let option = |name: &str| {
        let behind = |word: &String| word.strip_prefix(name)?.strip_prefix('=').map(String::from);
        let at = words.iter().rposition(|word| word == name || behind(word).is_some())?;
        let value = words.get(at).and_then(behind).or_else(|| words.get(at + 1).cloned());
        value.filter(|value| !value.is_empty() && !value.starts_with('-'))
    };
    Target {
        context: option("--context").or_else(|| variable("BOWLINE_CONTEXT")),
        api: option("--api").or_else(|| variable("BOWLINE_API")),
        issuer: option("--issuer").or_else(|| variable("BOWLINE_ISSUER")),
    }
}

/// Names that the text is the beginning of, with their UIDPs.
async fn search(subject: Subject, text: &str) -> Result<Vec<(String, String)>, CliError> {
    let api = Access::of(target(std::env::args_os())).session()?.api_at_hand()?;
    let (path, prefix) = text.rsplit_once('/').map_or((None, text), |(path, prefix)| (Some(path), prefix));
    if let Subject::Unnamed(method) = subject {
        let all = list(&api, method, Map::new()).await?;
        return Ok(all.into_iter().filter(|(uidp, _)| uidp.starts_with(text)).collect());
    }
    let parent = match path {
        Some(path) => Some(resolve::group(&api, path).await?),
        None => None,
    };
    let below = |name: &str| path.map_or(name.to_owned(), |path| format!("{path}/{name}"));
    let filter = parent.as_ref().map_or(json!({ "in_root": true }), |parent| json!({ "children_of": parent }));
    let groups = list(&api, GROUPS, Map::from_iter([("uidp".to_owned(), filter.clone())])).await?;
    let matches = |items: Vec<(String, String)>| items.into_iter().filter(|(_, name)| name.starts_with(prefix));
    let Subject::ByName(method) = subject else {
        return Ok(matches(groups).map(|(uidp, name)| (below(&name), uidp)).collect());
    };
    let mut names: Vec<(String, String)> =
        matches(groups).map(|(uidp, name)| (format!("{}/", below(&name)), uidp)).collect();
    let items = match parent {
        Some(_) => list(&api, method, Map::from_iter([("uidp".to_owned(), filter)])).await?,
        // Roles of the server itself are in no group.
        None => list(&api, method, Map::new()).await?.into_iter().filter(|(uidp, _)| !uidp.contains('/')).collect(),
    };
    names.extend(matches(items).map(|(uidp, name)| (below(&name), uidp)));
    Ok(names)
}

/// UIDPs and names of the first page of a list.
async fn list(api: &Api, method: &str, mut request: Map<String, Value>) -> Result<Vec<(String, String)>, ClientError> {
    let contract = Contract::of(method);
    let method = dynamic::method(&contract, method)?;
    if dynamic::page_token_field(method) {
        request.insert("page_size".into(), MOST.into());
    }
    let page = dynamic::call(api, method, &request).await?;
    let text =
        |element: &Value, member: &str| element.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let elements = dynamic::elements(method, &page).iter();
    Ok(elements.map(|element| (text(element, "uid"), text(element, "name"))).take(MOST).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_that_of_the_line() {
        let named = |line: &str| {
            let target = target(line.split(' ').map(OsString::from));
            [target.context, target.api, target.issuer].map(Option::unwrap_or_default)
        };
        let line = "bowline -- bowline registry repos get --context a --api=https://b.example --issuer c acme/";
        assert_eq!(named(line), ["a", "https://b.example", "c"]);
        assert_eq!(named("bowline -- bowline --context a iam --context b groups get x")[0], "b");
        for without in
            ["--context a", "-- bowline --contexts=a", "-- bowline --context", "-- bowline --context --yes x"]
        {
            assert_eq!(named(&format!("bowline {without}"))[0], "", "{without}");
        }
    }

    #[test]
    fn shells_get_nothing_to_run() {
        for plain in ["acme/team", "registry.pull", "a_b-c", "sha256:ab"] {
            assert!(is_plain(plain), "{plain}");
        }
        for hostile in ["$(id)", "a b", "a;b", "`id`", "a*", "-rf", "a\nb", "a'b", "~/x"] {
            assert!(!is_plain(hostile), "{hostile}");
        }
    }
}
