//! Examples in the help of commands that are written by hand. Commands made from the contract have theirs in their tables,
//! and a few beside their options. A test runs the last line of each.

use bowline_terminal::with_short_examples;
use clap::Command;

const EXAMPLES: &[(&str, &str)] = &[
    (
        "serve",
        "serve --demo\nserve --data-dir /var/lib/bowline --base-url https://api.example.com --listen 127.0.0.1:8080",
    ),
    (
        "auth login",
        "auth login --api https://api.example.com --refresh\nauth login --org-name acme --headless\n\
         auth login --identity $IDENTITY --identity-token token.jwt",
    ),
    ("auth token", "auth token --audience registry.example.com"),
    ("auth logout", "auth logout"),
    ("auth configure-docker", "auth configure-docker --registry registry.example.com --helper-directory tools"),
    (
        "configure containerd",
        "configure containerd --registry registry.example.com --mirror docker.io=acme/mirrors --mirror quay.io=acme/quay",
    ),
    ("configure podman", "configure podman --registry registry.example.com --mirror docker.io=acme/mirrors"),
    ("configure docker", "configure docker --registry registry.example.com --mirror docker.io=acme/mirrors"),
    (
        "configure k3s",
        "configure k3s --registry registry.example.com --mirror docker.io=acme/mirrors --write --root image",
    ),
    ("auth pull-token create", "auth pull-token create --parent acme --name laptop --ttl 720h"),
    ("auth pull-token list", "auth pull-token list --parent acme"),
    ("auth pull-token delete", "auth pull-token delete $PULL_TOKEN --yes"),
    ("registry repos list", "registry repos list acme --name nginx"),
    ("registry repos get", "registry repos get acme/nginx -o json"),
    ("registry repos create", "registry repos create acme/nginx --description 'Web server'"),
    ("registry repos update", "registry repos update acme/nginx --readme README.md"),
    ("registry repos delete", "registry repos delete acme/nginx --yes"),
    ("registry charts add", "registry charts add acme/shop --parent acme/team --tag 1"),
    ("registry charts find", "registry charts find nginx --catalog community"),
    ("registry charts using", "registry charts using acme/team/app"),
    ("registry history", "registry history acme/nginx:1.0"),
    ("registry retention get", "registry retention get acme/nginx"),
    ("registry retention set", "registry retention set acme/nginx --keep-last 10 --keep-tags 'v*'"),
    ("registry retention clear", "registry retention clear acme/nginx"),
    ("registry policy get", "registry policy get acme/nginx"),
    ("registry policy set", "registry policy set acme/nginx --immutable-tags 'v*' --quota 20GiB"),
    ("registry scan-report put", "registry scan-report put acme/nginx:1.0 --file grype.json"),
    ("registry gc", "registry gc --data-dir /var/lib/bowline --dry-run"),
    ("registry verify", "registry verify --data-dir /var/lib/bowline"),
    ("advisories list", "advisories list acme --pending"),
    ("advisories get", "advisories get $ADVISORY"),
    ("advisories create", "advisories create acme --artifact curl --alias CVE-2026-2000"),
    ("advisories event", "advisories event $ADVISORY fixed --version 8.1-r0"),
    ("advisories review", "advisories review $EVENT approve"),
    ("advisories settings", "advisories settings acme --second-reviewer false"),
    ("feeds import osv", "feeds import osv records.jsonl --source ghsa --license CC-BY-4.0"),
    ("feeds import secdb", "feeds import secdb out/secdb --group acme"),
    ("feeds import openvex", "feeds import openvex out/openvex --group acme"),
    ("feeds import csaf", "feeds import csaf out/csaf --group acme"),
    ("feeds import cyclonedx", "feeds import cyclonedx out/cyclonedx --group acme"),
    ("feeds import yaml", "feeds import yaml advisories --group acme --approved"),
    ("feeds import grype", "feeds import grype grype.json --group acme"),
    ("feeds import trivy", "feeds import trivy trivy.json --group acme --artifact oci/nginx"),
    ("feeds export secdb", "feeds export secdb --group acme -o out/secdb --distribution wolfi"),
    ("feeds export openvex", "feeds export openvex --group acme -o out/openvex --distribution wolfi"),
    ("feeds export csaf", "feeds export csaf --group acme -o out/csaf --publisher Acme --distribution wolfi"),
    ("feeds export cyclonedx", "feeds export cyclonedx --group acme -o out/cyclonedx --distribution wolfi"),
    ("feeds export osv", "feeds export osv --group acme -o out/osv --ecosystem Wolfi"),
    ("feeds export yaml", "feeds export yaml --group acme -o out/yaml"),
    ("feeds export rustsec", "feeds export rustsec -o out/rustsec --replace"),
    ("feeds import cycles", "feeds import cycles python.json"),
    ("feeds sources", "feeds sources"),
    ("feeds cycles", "feeds cycles"),
    ("feeds status", "feeds status ghsa"),
    ("feeds abort", "feeds abort ghsa"),
    ("vulns get", "vulns get CVE-2026-1000"),
    ("libraries artifacts", "libraries artifacts lib --ecosystem java"),
    ("libraries versions", "libraries versions java:org.example:lib"),
    ("libraries entitlements list", "libraries entitlements list acme"),
    ("libraries entitlements create", "libraries entitlements create acme --ecosystem python --cooldown-days 3"),
    ("libraries entitlements delete", "libraries entitlements delete $ENTITLEMENT --yes"),
    ("libraries policies list", "libraries policies list acme"),
    ("libraries policies get", "libraries policies get $POLICY"),
    ("libraries policies create", "libraries policies create acme --name strict --cooldown-days 14"),
    ("libraries policies update", "libraries policies update $POLICY --block pkg:npm/left-pad"),
    ("libraries policies delete", "libraries policies delete $POLICY --yes"),
    ("libraries bindings list", "libraries bindings list acme"),
    ("libraries bindings create", "libraries bindings create acme --policy $POLICY --ecosystem javascript --mode log"),
    ("libraries bindings delete", "libraries bindings delete $LIBRARY_BINDING --yes"),
    ("libraries blocked", "libraries blocked acme --ecosystem javascript"),
    ("libraries malware list", "libraries malware list left-pad"),
    ("libraries malware add", "libraries malware add --id MAL-2026-1 --ecosystem javascript --package left-pad"),
    ("libraries malware remove", "libraries malware remove MAL-2026-1 --yes"),
    ("libraries cache status", "libraries cache status acme"),
    ("libraries cache list", "libraries cache list acme"),
    ("libraries cache zap", "libraries cache zap acme --ecosystem python --dry-run"),
    ("libraries cache opt-in", "libraries cache opt-in acme --ecosystem java"),
    ("libraries cache opt-out", "libraries cache opt-out acme --ecosystem java"),
    ("libraries import", "libraries import maven --ecosystem java --dry-run"),
    ("libraries configure pip", "libraries configure pip --group acme/web"),
    (
        "libraries configure uv",
        "libraries configure uv --libraries-url https://packages.example.com --write --root home",
    ),
    ("libraries configure pdm", "libraries configure pdm --group acme/web"),
    ("libraries configure poetry", "libraries configure poetry --group acme/web"),
    ("libraries configure twine", "libraries configure twine --group acme/web"),
    ("libraries configure npm", "libraries configure npm --group acme/web"),
    ("libraries configure yarn", "libraries configure yarn --group acme/web"),
    ("libraries configure maven", "libraries configure maven --group acme/web"),
    ("libraries configure gradle", "libraries configure gradle --group acme/web"),
    ("libraries configure go", "libraries configure go --group acme/web"),
    ("libraries configure cargo", "libraries configure cargo --group acme/web"),
    ("libraries configure keyring", "libraries configure keyring --directory tools"),
    ("libraries publish go", "libraries publish go v1.2.0 tool"),
    ("libraries publish files", "libraries publish files pkg:generic/tool@1.2.0 tool/go.mod --below linux/amd64"),
    ("libraries download", "libraries download pkg:generic/tool@1.2.0 linux/amd64/go.mod --to downloaded"),
    (
        "libraries provenance",
        "libraries provenance pkg:npm/%40acme/app@1.0.0 --group acme/web --bundle\nlibraries provenance pkg:pypi/signed@1.0",
    ),
    ("libraries check", "libraries check uv.lock --organization acme"),
    ("libraries doctor", "libraries doctor web --libraries-url https://packages.example.com"),
    ("libraries why", "libraries why pkg:npm/left-pad@1.3.0 --organization acme"),
    ("context list", "context list"),
    ("context set", "context set work --api https://api.example.com"),
    ("context use", "context use work"),
    ("context remove", "context remove work"),
    (
        "operator token",
        "operator token --data-dir /var/lib/bowline --base-url https://api.example.com --reason 'Ticket 7'",
    ),
    (
        "operator login-url",
        "operator login-url --data-dir /var/lib/bowline --base-url https://api.example.com --reason 'Ticket 7'",
    ),
    ("operator providers list", "operator providers list --data-dir /var/lib/bowline"),
    (
        "operator providers add",
        "operator providers add main --issuer https://accounts.example.com --client-id bowline --public-client \
         --data-dir /var/lib/bowline",
    ),
    ("operator providers remove", "operator providers remove main --data-dir /var/lib/bowline"),
    ("keys list", "keys list --data-dir /var/lib/bowline"),
    ("keys rotate", "keys rotate --data-dir /var/lib/bowline --every 90d"),
    ("keys revoke", "keys revoke --all --data-dir /var/lib/bowline --yes"),
    ("keys rewrap", "keys rewrap --data-dir /var/lib/bowline --new-key-file /var/lib/bowline/new.key"),
    ("migrate", "migrate --data-dir /var/lib/bowline"),
    ("backup keygen", "backup keygen backup.key"),
    ("backup create", "backup create --data-dir /var/lib/bowline --to archive --recipient $RECIPIENT"),
    ("backup list", "backup list --from archive"),
    ("backup verify", "backup verify --from archive --identity backup.key --key-file /var/lib/bowline/key"),
    ("restore", "restore --from archive --identity backup.key --key-file /var/lib/bowline/key --to restored"),
    ("self-check", "self-check --data-dir /var/lib/bowline --base-url https://api.example.com"),
    ("audit verify", "audit verify --data-dir /var/lib/bowline"),
    ("audit erase", "audit erase --data-dir /var/lib/bowline --resource $RESOURCE"),
    ("contract print", "contract print --out facts"),
    ("contract status", "contract status"),
    ("contract capabilities", "contract capabilities"),
    ("openapi", "openapi --version v2"),
    ("completion", "completion bash"),
    ("man", "man --out pages"),
    ("version", "version"),
];

/// Adds the examples to the commands that there are: a client alone has fewer.
pub(crate) fn add(command: Command) -> Command {
    add_below(command, "")
}

fn add_below(command: Command, path: &str) -> Command {
    command.mut_subcommands(|child| {
        let path = if path.is_empty() { child.get_name().to_owned() } else { format!("{path} {}", child.get_name()) };
        let child = match EXAMPLES.iter().find(|(name, _)| *name == path) {
            Some((_, lines)) => with_example(child, lines),
            None => child,
        };
        let child = match child.get_after_help().map(ToString::to_string) {
            Some(help) => child.after_help(with_short_examples(&help)),
            None => child,
        };
        add_below(child, &path)
    })
}

fn with_example(command: Command, lines: &str) -> Command {
    let further = command.get_after_help().map(|text| format!("\n\n{text}")).unwrap_or_default();
    let title = if lines.contains('\n') { "Examples" } else { "Example" };
    let lines: Vec<String> = lines.lines().map(|line| format!("  bowline {line}")).collect();
    command.after_help(format!("{title}:\n{}{further}", lines.join("\n")))
}
