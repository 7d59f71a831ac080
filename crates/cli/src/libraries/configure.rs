//! `bowline libraries configure`: files with which installers and publishers use the package hosts, and no other index.
//! They hold no secret: accounts belong into `.netrc` or a keyring.

use std::path::PathBuf;

use bowline_client::ClientError;
use bowline_terminal::{note, public_url};
use clap::{Args, Subcommand};

use crate::configure::writing::{ClientFile, Writing};
use crate::error::CliError;
use crate::session::{Session, Target, variable};

/// `bowline libraries configure`.
#[derive(Subcommand)]
pub enum ConfigureCommand {
    /// Print or write pip.conf
    Pip(ClientArgs),
    /// Print or write uv.toml, to install and to publish
    Uv(ClientArgs),
    /// Print or write config.toml of PDM, to install and to publish
    Pdm(ClientArgs),
    /// Print or write config.toml of Poetry, to publish; print what projects need to install
    Poetry(ClientArgs),
    /// Print or write .pypirc, to publish
    Twine(ClientArgs),
}

/// Options of each client.
#[derive(Args)]
pub struct ClientArgs {
    #[command(flatten)]
    target: Target,
    /// Address of the package hosts [default: /libraries of the API]
    #[arg(long, value_name = "URL")]
    libraries_url: Option<String>,
    /// Group to install from and publish to, by path or UIDP [default: the organization of the account]
    #[arg(long, value_name = "GROUP", value_parser = scope)]
    group: Option<String>,
    #[command(flatten)]
    writing: Writing,
    /// Directory in place of the home directory
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// The path of a group as addresses have it, such as `~acme:web`. The parts of a UIDP are those of its path.
fn scope(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split(['/', ':']).collect();
    let is_plain = |part: &&str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    if parts.iter().all(is_plain) {
        return Ok(format!("~{}", parts.join(":")));
    }
    Err("must be the path of a group, such as acme/web".into())
}

/// The addresses of the index of Python.
struct PythonIndex {
    /// Pages of projects.
    simple: String,
    /// Where files are published.
    legacy: String,
}

/// Runs `bowline libraries configure`.
///
/// # Errors
/// No server or home directory is known, a file has other content, or one cannot be written.
pub(super) fn run(command: ConfigureCommand) -> Result<(), CliError> {
    let (args, render): (_, fn(&PythonIndex) -> ClientFile) = match command {
        ConfigureCommand::Pip(args) => (args, pip),
        ConfigureCommand::Uv(args) => (args, uv),
        ConfigureCommand::Pdm(args) => (args, pdm),
        ConfigureCommand::Poetry(args) => (args, poetry),
        ConfigureCommand::Twine(args) => (args, twine),
    };
    let url = match &args.libraries_url {
        Some(url) => public_url("libraries-url", url)?,
        None => format!("{}/libraries", Session::open(&args.target)?.api),
    };
    let scope = args.group.as_ref().map(|scope| format!("/{scope}")).unwrap_or_default();
    let base = format!("{}/python{scope}", url.trim_end_matches('/'));
    let index = PythonIndex { simple: format!("{base}/simple/"), legacy: format!("{base}/legacy/") };
    args.writing.run(&args.root.clone().map_or_else(home, Ok)?, &[render(&index)])?;
    note(&format!(
        "account: put the user name and password of `bowline auth pull-token create --parent ORG --repository python` into \
         .netrc: machine {} login USERNAME password PASSWORD\n",
        machine(&url)
    ));
    Ok(())
}

/// The name of a host without its port, as `.netrc` has it.
fn machine(url: &str) -> String {
    let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(String::from));
    host.unwrap_or_else(|| "HOST".into()).trim_matches(['[', ']']).to_owned()
}

fn home() -> Result<PathBuf, CliError> {
    let unknown = || ClientError::Usage("HOME is not set: name the directory with --root".into());
    Ok(variable("HOME").map(PathBuf::from).ok_or_else(unknown)?)
}

fn file(path: &str, text: String) -> ClientFile {
    ClientFile { path: path.into(), text }
}

fn pip(index: &PythonIndex) -> ClientFile {
    file(".config/pip/pip.conf", format!("[global]\nindex-url = {}\n", index.simple))
}

/// As the default index, so that no other is used; `authenticate` makes a missing account an error that says so.
fn uv(index: &PythonIndex) -> ClientFile {
    let PythonIndex { simple, legacy } = index;
    let text = format!(
        "publish-url = \"{legacy}\"\n\n[[index]]\nname = \"bowline\"\nurl = \"{simple}\"\ndefault = true\nauthenticate = \"always\"\n"
    );
    file(".config/uv/uv.toml", text)
}

fn pdm(index: &PythonIndex) -> ClientFile {
    let PythonIndex { simple, legacy } = index;
    let text = format!("[pypi]\nurl = \"{simple}\"\n\n[repository.bowline]\nurl = \"{legacy}\"\n");
    file(".config/pdm/config.toml", text)
}

/// Poetry takes the indexes that it installs from out of projects alone.
fn poetry(index: &PythonIndex) -> ClientFile {
    let PythonIndex { simple, legacy } = index;
    let text = format!(
        "# In pyproject.toml of each project:\n#   [[tool.poetry.source]]\n#   name = \"bowline\"\n#   url = \"{simple}\"\n#   \
         priority = \"primary\"\n[repositories.bowline]\nurl = \"{legacy}\"\n"
    );
    file(".config/pypoetry/config.toml", text)
}

fn twine(index: &PythonIndex) -> ClientFile {
    let text = format!("[distutils]\nindex-servers = bowline\n\n[bowline]\nrepository = {}\n", index.legacy);
    file(".pypirc", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_as_in_addresses() {
        assert_eq!(scope("acme/web").as_deref(), Ok("~acme:web"));
        assert_eq!(scope("acme:web").as_deref(), Ok("~acme:web"));
        let (organization, group) = ("ab".repeat(20), "cd".repeat(8));
        assert_eq!(scope(&format!("{organization}/{group}")), Ok(format!("~{organization}:{group}")));
        for wrong in ["", "a//b", "/a", "a b", "a\nb", "a\"b", "~a", "a@b"] {
            assert!(scope(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn machines_have_no_port() {
        for (url, name) in [("https://h.example:8443/x", "h.example"), ("http://[::1]:8080/libraries", "::1")] {
            assert_eq!(machine(url), name);
        }
    }

    #[test]
    fn each_client_has_its_file() {
        let index =
            PythonIndex { simple: "https://h/python/simple/".into(), legacy: "https://h/python/legacy/".into() };
        for (render, reads, publishes) in
            [(pip as fn(&PythonIndex) -> ClientFile, 1, 0), (uv, 1, 1), (pdm, 1, 1), (poetry, 1, 1), (twine, 0, 1)]
        {
            let ClientFile { path, text } = render(&index);
            let found =
                (text.matches("https://h/python/simple/").count(), text.matches("https://h/python/legacy/").count());
            assert_eq!(found, (reads, publishes), "{}: {text}", path.display());
        }
    }
}
