//! `bowline iam identities create kubernetes`: service accounts of a cluster, and with `--kubelet DIR` the files with which
//! its nodes pull as such an identity.

use std::path::{Path, PathBuf};

use bowline_client::ClientError;
use bowline_formats::workloads::KubernetesAccount;
use bowline_formats::workloads::kubelet::{self, FILES, PullingAccount};
use bowline_terminal::note;
use clap::Args;
use serde_json::{Value, json};

use super::presets::{Claims, claim_match};
use crate::credential_helper;
use crate::error::CliError;
use crate::session::Session;

/// A service account of a cluster.
#[derive(Args)]
pub(super) struct Kubernetes {
    /// Issuer of the cluster: `kubectl get --raw /.well-known/openid-configuration` shows it
    #[arg(long, value_name = "URL")]
    cluster_issuer: String,
    /// Namespace of the service account
    #[arg(long)]
    namespace: String,
    /// Name of the service account
    #[arg(long, default_value = "default")]
    service_account: String,
    /// File with the cluster's keys, where the server cannot reach the issuer: `kubectl get --raw /openid/v1/jwks`
    #[arg(long, value_name = "FILE")]
    issuer_keys_file: Option<PathBuf>,
    /// Audience of the projected token [default: the server's own address]
    #[arg(long)]
    audience: Option<String>,
    #[command(flatten)]
    kubelet: Kubelet,
}

impl Claims for Kubernetes {
    fn relationship(&self) -> Result<Value, ClientError> {
        let account = KubernetesAccount {
            issuer: &self.cluster_issuer,
            namespace: &self.namespace,
            name: &self.service_account,
            audience: self.audience.as_deref(),
        };
        let Some(path) = &self.issuer_keys_file else { return Ok(claim_match(&account.trust())) };
        let not_text = |_| ClientError::Usage(format!("--issuer-keys-file {}: must be UTF-8", path.display()));
        let keys = String::from_utf8(crate::input::read(path, 1 << 20)?).map_err(not_text)?;
        let audiences: Vec<&String> = self.audience.iter().collect();
        let keys = json!({
            "issuer": self.cluster_issuer, "subject": account.subject(), "issuer_keys": keys.trim(),
            "audiences": audiences,
        });
        Ok(json!({ "static_keys": keys }))
    }

    fn default_roles(&self) -> &'static [&'static str] {
        if self.kubelet.is_set() { &["registry.pull"] } else { &[] }
    }

    fn prepare(&self) -> Result<(), CliError> {
        self.kubelet.prepare()
    }

    fn finish(&self, session: &Session, identity: &str) -> Result<(), CliError> {
        let Kubelet { directory: Some(directory), registry: Some(registry) } = &self.kubelet else { return Ok(()) };
        let account = PullingAccount {
            namespace: &self.namespace,
            name: &self.service_account,
            audience: self.audience.as_deref().unwrap_or(session.issuer.url()),
            identity,
            api: &session.api,
            issuer: session.issuer.url(),
            registry,
        };
        write(directory, &account)
    }
}

/// Files of the kubelet's credential provider.
#[derive(Args)]
struct Kubelet {
    /// Directory to write the files to with which kubelets pull as this identity: the configuration of their credential
    /// provider, the right to request tokens, and the annotated service account. The role is then registry.pull, unless
    /// --role names others
    #[arg(long = "kubelet", value_name = "DIR", requires = "registry")]
    directory: Option<PathBuf>,
    /// Host of the registry, as images name it
    #[arg(long, value_name = "HOST", requires = "directory")]
    registry: Option<String>,
}

impl Kubelet {
    /// Whether files are to be written.
    fn is_set(&self) -> bool {
        self.directory.is_some()
    }

    /// Refuses what no file can be made of, before anything is created on the server.
    ///
    /// # Errors
    /// The registry is not a host, the directory cannot be made, or it has one of the files.
    fn prepare(&self) -> Result<(), CliError> {
        if let (Some(directory), Some(registry)) = (&self.directory, &self.registry) {
            credential_helper::require_host(registry)?;
            std::fs::create_dir_all(directory).map_err(|source| failed(directory, source))?;
            if let Some(path) = FILES.iter().map(|name| directory.join(name)).find(|path| path.exists()) {
                let why = format!("{} is there already; name another directory with --kubelet", path.display());
                return Err(CliError::Option(why));
            }
        }
        Ok(())
    }
}

/// Writes the files.
///
/// # Errors
/// A file cannot be written.
fn write(directory: &Path, account: &PullingAccount<'_>) -> Result<(), CliError> {
    for (name, text) in FILES.into_iter().zip(kubelet::files(account)) {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|source| failed(&path, source))?;
        note(&format!("written: {}\n", path.display()));
    }
    Ok(())
}

fn failed(path: &Path, source: std::io::Error) -> CliError {
    CliError::File { path: path.into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of `examples/kubelet` are what the command writes; `UPDATE_GOLDEN=1` writes them again.
    #[test]
    fn the_examples_are_what_is_written() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kubelet");
        let written = tempfile::tempdir().unwrap();
        let is_update = crate::session::variable("UPDATE_GOLDEN").is_some();
        let directory = if is_update { examples.clone() } else { written.path().to_owned() };
        let registry = Some("registry.example.com".to_owned());
        let kubelet = Kubelet { directory: Some(directory.clone()), registry };
        kubelet.prepare().unwrap();
        let account = PullingAccount {
            namespace: "prod",
            name: "web",
            audience: "https://api.example.com",
            identity: "2c9b1e4fb1a04c0c8f7d4c3f5c2f6e0a1b2c3d4e/0f1e2d3c4b5a6978",
            api: "https://api.example.com",
            issuer: "https://api.example.com",
            registry: "registry.example.com",
        };
        write(&directory, &account).unwrap();
        for name in ["credential-provider.yaml", "rbac.yaml", "service-account.yaml"] {
            let read = |directory: &Path| std::fs::read_to_string(directory.join(name)).unwrap();
            assert_eq!(read(&examples), read(&directory), "{name}");
        }
        let refused = Kubelet { registry: Some("https://registry.example.com".into()), ..kubelet };
        assert!(refused.prepare().is_err());
    }
}
