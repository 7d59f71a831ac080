//! `bowline libraries doctor`: where a project takes packages from that policies do not see.

mod cargo;
mod go;
mod java;
mod javascript;
mod project;
mod python;
mod settings;
mod sources;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use bowline_terminal::{Output, Table, note, public_url};
use clap::Args;
use url::Url;

use self::project::File;
use self::settings::Settings;
use self::sources::{Installer, Origin};
use crate::error::CliError;
use crate::print;
use crate::session::{Session, Target};

/// `bowline libraries doctor`.
#[derive(Args)]
pub struct DoctorCommand {
    #[command(flatten)]
    target: Target,
    /// Directory of the project, with those below it
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Address of the package hosts [default: /libraries of the API]
    #[arg(long, value_name = "URL")]
    libraries_url: Option<String>,
    /// Look at the files of the project alone, not at the environment and the settings of the user
    #[arg(long)]
    project_only: bool,
    #[command(flatten)]
    output: Output,
}

/// A way around the package hosts.
#[derive(Debug, PartialEq, Eq)]
struct Bypass {
    file: String,
    /// The first line that has the source; absent where something is missing.
    line: Option<usize>,
    source: String,
    why: String,
}

/// Runs `bowline libraries doctor`.
///
/// # Errors
/// No server is known, the directory cannot be read, or packages come from elsewhere.
pub(super) fn run(command: DoctorCommand) -> Result<(), CliError> {
    let url = match &command.libraries_url {
        Some(url) => public_url("libraries-url", url)?,
        None => format!("{}/libraries", Session::open(&command.target)?.api),
    };
    let hosts = Url::parse(&url).map_err(|error| CliError::Option(format!("{url} is no address: {error}")))?;
    let files = project::files(&command.directory)?;
    let settings = if command.project_only { Settings::default() } else { Settings::read()? };
    let bypasses = examine(&hosts, &files, &settings);
    let mut table = Table::new(&["file", "line", "source", "why"]);
    for Bypass { file, line, source, why } in &bypasses {
        table.push([file, &line.map(|line| line.to_string()).unwrap_or_default(), source, why].map(String::clone));
    }
    print(&command.output.list(&table)?)?;
    note(&format!("{} files of the project were examined\n", files.len()));
    if bypasses.is_empty() { Ok(()) } else { Err(CliError::Bypassed(bypasses.len())) }
}

/// The ways around the package hosts that files of a project and settings leave. Of settings counts what installers of the
/// project use: projects go before files of the user, and the environment before projects.
fn examine(hosts: &Url, files: &[File], settings: &Settings) -> Vec<Bypass> {
    let defaults = |files: &[File]| -> Vec<Installer> { files.iter().flat_map(|file| file.defaults(hosts)).collect() };
    let (of_project, of_environment, of_home) =
        (defaults(files), defaults(&settings.environment), defaults(&settings.home));
    let mut users: BTreeMap<Installer, &File> = BTreeMap::new();
    for file in files {
        for installer in file.sources.iter().flat_map(|sources| &sources.installers) {
            users.entry(*installer).or_insert(file);
        }
    }
    let replaced = replaced(files, settings);
    let is_replaced = |installer: Installer, origin: &Origin| match installer {
        Installer::Maven | Installer::Gradle => matches!(origin, Origin::Index { .. }) && of_home.contains(&installer),
        Installer::Cargo => replaced.contains(origin.text()),
        _ => false,
    };
    let mut bypasses = Vec::new();
    for file in files {
        bypasses.extend(file.bypasses(hosts, |installer, origin| !is_replaced(installer, origin)));
    }
    for file in &settings.environment {
        bypasses.extend(file.bypasses(hosts, |installer, _| users.contains_key(&installer)));
    }
    for file in &settings.home {
        bypasses.extend(file.bypasses(hosts, |installer, origin| {
            let is_default = matches!(origin, Origin::Index { is_default: true, .. });
            let is_set_elsewhere = of_project.contains(&installer) || of_environment.contains(&installer);
            let is_replaced = installer == Installer::Cargo && replaced.contains(origin.text());
            users.contains_key(&installer) && !(is_default && is_set_elsewhere) && !is_replaced
        }));
    }
    for (installer, file) in users {
        if ![&of_project, &of_environment, &of_home].iter().any(|set| set.contains(&installer)) {
            let word = installer.to_string().to_lowercase();
            let why = format!("{installer} uses its public index: `bowline libraries configure {word}` names this one");
            bypasses.push(file.bypass(None, "", &why));
        }
    }
    bypasses
}

/// The addresses that settings of cargo replace by others.
fn replaced<'a>(files: &'a [File], settings: &'a Settings) -> HashSet<&'a str> {
    let sources = files.iter().chain(&settings.home).flat_map(|file| &file.sources);
    sources.flat_map(|sources| &sources.replaced).map(String::as_str).collect()
}

/// Whether an address is of the package hosts.
fn is_of(hosts: &Url, address: &str) -> bool {
    let Ok(address) = Url::parse(address) else { return false };
    let below = format!("{}/", hosts.path().trim_end_matches('/'));
    address.origin() == hosts.origin() && address.path().starts_with(&below)
}

/// The host of an address, with its scheme and account.
fn host(address: &str) -> &str {
    let start = address.find("://").map_or(0, |at| at + 3);
    let end = address[start..].find('/').map_or(address.len(), |at| start + at);
    &address[..end]
}

/// A source as it is shown: without an account, and on one line, since anyone who proposes a change writes such files.
fn shown(source: &str) -> String {
    let source = source.replace(char::is_control, " ");
    let Some((scheme, rest)) = source.split_once("://") else { return source };
    let (authority, path) = rest.split_once('/').map_or((rest, None), |(authority, path)| (authority, Some(path)));
    let host = authority.rsplit('@').next().unwrap_or_default();
    path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
}

impl File {
    /// The installers whose index this file sets to the package hosts.
    fn defaults(&self, hosts: &Url) -> Vec<Installer> {
        let of = |(installer, origin): &(Installer, Origin)| {
            let is_default = matches!(origin, Origin::Index { is_default: true, .. });
            (is_default && is_of(hosts, origin.text())).then_some(*installer)
        };
        self.sources.iter().flat_map(|found| &found.origins).filter_map(of).collect()
    }

    /// What it says of other sources than the package hosts, as far as that counts.
    fn bypasses(&self, hosts: &Url, counts: impl Fn(Installer, &Origin) -> bool) -> Vec<Bypass> {
        let sources = match &self.sources {
            Err(why) => return vec![self.bypass(None, "", &format!("{why}: it was not examined"))],
            Ok(sources) => sources,
        };
        let others = sources
            .origins
            .iter()
            .filter(|(installer, origin)| counts(*installer, origin) && !is_of(hosts, origin.text()));
        // A lock file may name thousands of files of one host, which is one thing to mend.
        let mut named = HashSet::new();
        let firsts = others.filter(|(_, origin)| match origin {
            Origin::Locked(address) => named.insert(host(address)),
            Origin::Index { .. } | Origin::Direct(_) => true,
        });
        firsts.map(|(installer, origin)| self.bypass_by(*installer, origin)).collect()
    }

    fn bypass(&self, line: Option<usize>, source: &str, why: &str) -> Bypass {
        Bypass { file: shown(&self.name), line, source: shown(source), why: why.to_owned() }
    }

    fn bypass_by(&self, installer: Installer, origin: &Origin) -> Bypass {
        let why = match origin {
            Origin::Index { .. } => format!("{installer} takes packages from there"),
            Origin::Direct(_) => "no index supplies it, so no policy decides about it".into(),
            Origin::Locked(_) => format!("{installer} fetches locked files from there"),
        };
        let line = self.text.lines().position(|line| line.contains(origin.text())).map(|line| line + 1);
        self.bypass(line, origin.text(), &why)
    }
}

#[cfg(test)]
#[path = "doctor/tests.rs"]
mod tests;
