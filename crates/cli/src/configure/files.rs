//! The files of each container client.

use std::path::PathBuf;

use super::writing::ClientFile;

/// A registry, and the group here that pulls through from it.
#[derive(Clone, Debug)]
pub(super) struct PullThrough {
    pub(super) registry: String,
    pub(super) group: String,
}

/// A directory with hosts.toml for each registry.
pub(super) fn containerd(host: &str, mirrors: &[PullThrough]) -> Vec<ClientFile> {
    hosts_files("etc/containerd/certs.d", host, mirrors)
}

/// The same files, where Docker Engine looks for them.
pub(super) fn docker(host: &str, mirrors: &[PullThrough]) -> Vec<ClientFile> {
    hosts_files("etc/docker/certs.d", host, mirrors)
}

fn hosts_files(directory: &str, host: &str, mirrors: &[PullThrough]) -> Vec<ClientFile> {
    let file = |mirror: &PullThrough| {
        let PullThrough { registry, group } = mirror;
        let server = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
        ClientFile {
            path: PathBuf::from(directory).join(registry).join("hosts.toml"),
            text: format!(
                "server = \"https://{server}\"\n\n[host.\"https://{host}/v2/{group}\"]\n  capabilities = [\"pull\", \
                 \"resolve\"]\n  override_path = true\n"
            ),
        }
    };
    mirrors.iter().map(file).collect()
}

/// A drop-in file for each registry.
pub(super) fn podman(host: &str, mirrors: &[PullThrough]) -> Vec<ClientFile> {
    let file = |mirror: &PullThrough| {
        let PullThrough { registry, group } = mirror;
        ClientFile {
            path: PathBuf::from("etc/containers/registries.conf.d")
                .join(format!("50-bowline-{}.conf", registry.replace(':', "_"))),
            text: format!(
                "[[registry]]\nprefix = \"{registry}\"\nlocation = \"{registry}\"\n\n[[registry.mirror]]\nlocation = \
                 \"{host}/{group}\"\n"
            ),
        }
    };
    mirrors.iter().map(file).collect()
}

/// One file for all registries.
pub(super) fn k3s(host: &str, mirrors: &[PullThrough]) -> Vec<ClientFile> {
    let mirror = |mirror: &PullThrough| {
        let PullThrough { registry, group } = mirror;
        format!(
            "  \"{registry}\":\n    endpoint:\n      - \"https://{host}\"\n    rewrite:\n      \"^(.*)$\": \
             \"{group}/$1\"\n"
        )
    };
    let text = format!("mirrors:\n{}", mirrors.iter().map(mirror).collect::<String>());
    vec![ClientFile { path: PathBuf::from("etc/rancher/k3s/registries.yaml"), text }]
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// The files as they are written, for two registries; `UPDATE_GOLDEN=1` writes them again.
    #[test]
    fn the_files_of_all_clients() {
        let mirror = |registry: &str, group: &str| PullThrough { registry: registry.into(), group: group.into() };
        let mirrors = [mirror("docker.io", "acme/mirrors"), mirror("quay.io:8443", "acme/quay")];
        let mut found = String::new();
        for render in [containerd, podman, docker, k3s] {
            for ClientFile { path, text } in render("registry.example.com:5000", &mirrors) {
                writeln!(found, "--- /{}\n{text}", path.display()).unwrap();
            }
        }
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/configure/golden.txt");
        if crate::session::variable("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &found).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), found);
    }
}
