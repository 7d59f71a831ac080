//! `bowline configure`: files with which container clients pull through groups that mirror other registries.

mod files;
pub(crate) mod writing;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::credential_helper::require_host;
use crate::error::CliError;
use files::PullThrough;
use writing::{ClientFile, Writing};

/// `bowline configure`.
#[derive(Subcommand)]
pub enum ConfigureCommand {
    /// Print or write hosts.toml of containerd for each registry
    Containerd(PullThroughArgs),
    /// Print or write registries.conf.d of podman, CRI-O, skopeo and buildah
    Podman(PullThroughArgs),
    /// Print or write hosts.toml of Docker Engine with its containerd image store
    Docker(PullThroughArgs),
    /// Print or write registries.yaml of K3s and RKE2
    K3s(PullThroughArgs),
}

/// Options of each client.
#[derive(Args)]
pub struct PullThroughArgs {
    /// Host of this registry, as images name it
    #[arg(long, value_name = "HOST")]
    registry: String,
    /// Registry to mirror, and the group that pulls through from it; may be repeated
    #[arg(long = "mirror", value_name = "REGISTRY=GROUP", required = true, value_parser = pull_through)]
    mirrors: Vec<PullThrough>,
    #[command(flatten)]
    writing: Writing,
    /// Directory in place of /, such as that of an image
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// Renders the files of a client for the host of this registry.
type RenderFiles = fn(&str, &[PullThrough]) -> Vec<ClientFile>;

fn pull_through(text: &str) -> Result<PullThrough, String> {
    let (registry, group) = text.split_once('=').ok_or("must be REGISTRY=GROUP, such as docker.io=acme/mirrors")?;
    require_plain_host(registry).map_err(|error| error.to_string())?;
    let is_part = |part: &str| {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        !part.is_empty() && part.bytes().all(is_inner) && !part.starts_with('.') && !part.ends_with('.')
    };
    if !group.split('/').all(is_part) {
        return Err(format!("{group:?} is not the path of a group, such as acme/mirrors"));
    }
    Ok(PullThrough { registry: registry.to_ascii_lowercase(), group: group.to_owned() })
}

/// Refuses hosts that would be more than a name in a path or a file.
fn require_plain_host(host: &str) -> Result<(), CliError> {
    require_host(host)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
    if host.bytes().all(is_plain) && host.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(CliError::Option(format!("{host:?} is no host; it looks like registry.example.com or host:5000")))
}

/// Runs `bowline configure`.
///
/// # Errors
/// A host is not valid, a file has other content, or one cannot be written.
pub fn run(command: ConfigureCommand) -> Result<(), CliError> {
    let (args, render): (_, RenderFiles) = match command {
        ConfigureCommand::Containerd(args) => (args, files::containerd),
        ConfigureCommand::Podman(args) => (args, files::podman),
        ConfigureCommand::Docker(args) => (args, files::docker),
        ConfigureCommand::K3s(args) => (args, files::k3s),
    };
    require_plain_host(&args.registry)?;
    args.writing.run(&args.root, &render(&args.registry, &args.mirrors))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn args(root: &Path, replace: bool) -> PullThroughArgs {
        let mirrors = vec![pull_through("docker.io=acme/mirrors").unwrap()];
        let writing = Writing { write: true, replace };
        PullThroughArgs { registry: "registry.example.com".into(), mirrors, writing, root: root.into() }
    }

    #[test]
    fn nothing_of_others_is_replaced_without_being_asked_to() {
        let root = tempfile::tempdir().unwrap();
        let run = |replace| run(ConfigureCommand::K3s(args(root.path(), replace)));
        run(false).unwrap();
        let path = root.path().join("etc/rancher/k3s/registries.yaml");
        let written = std::fs::read_to_string(&path).unwrap();
        run(false).unwrap();
        std::fs::write(&path, "mirrors: {}\n").unwrap();
        let refused = run(false).unwrap_err().to_string();
        assert!(refused.contains("registries.yaml has other content") && refused.contains("--replace"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mirrors: {}\n");
        run(true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    }

    #[test]
    fn mirrors_are_a_registry_and_a_group() {
        let read = pull_through("Docker.io=acme/mirrors").unwrap();
        assert_eq!((read.registry.as_str(), read.group.as_str()), ("docker.io", "acme/mirrors"));
        for wrong in [
            "docker.io",
            "=acme",
            "docker.io=",
            "docker.io=a//b",
            "docker.io=../x",
            "a b=acme",
            "x/y=acme",
            "..=acme",
            "docker.io=A\"b",
        ] {
            assert!(pull_through(wrong).is_err(), "{wrong}");
        }
    }
}
