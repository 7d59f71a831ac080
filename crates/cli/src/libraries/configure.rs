//! `bowline libraries configure`: files with which installers and publishers use the package hosts, and no other index.
//! They hold no secret: accounts belong into `.netrc`, a keyring, or the environment.

use std::path::PathBuf;

use bowline_client::ClientError;
use bowline_terminal::{note, public_url};
use clap::{Args, Subcommand};

use super::configure_keyring::{self, KeyringArgs};
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
    /// Print or write .npmrc, which npm, pnpm, yarn 1 and bun read
    Npm(ClientArgs),
    /// Print or write .yarnrc.yml, which yarn reads from version 2 on
    Yarn(ClientArgs),
    /// Print or write settings.xml of Maven, to install and to publish
    Maven(ClientArgs),
    /// Print or write an init script of Gradle, to install
    Gradle(ClientArgs),
    /// Print or write the file of the go command's settings, to install
    Go(ClientArgs),
    /// Print or write config.toml of cargo, to install and to publish
    Cargo(ClientArgs),
    /// Link the program from which pip and uv get tokens of the sign-in
    Keyring(KeyringArgs),
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
pub(super) fn scope(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split(['/', ':']).collect();
    let is_plain = |part: &&str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    if parts.iter().all(is_plain) {
        return Ok(format!("~{}", parts.join(":")));
    }
    Err("must be the path of a group, such as acme/web".into())
}

/// The addresses of the package hosts.
struct Addresses {
    /// Pages of projects of Python.
    simple: String,
    /// Where files of Python are published.
    legacy: String,
    /// The registry of npm, with a slash at its end.
    npm: String,
    /// The repository of Maven, with a slash at its end.
    java: String,
    /// The proxy of Go.
    go: String,
    /// The index of crates, with a slash at its end.
    cargo: String,
}

/// Where the account of a client belongs, from the address of the package hosts; and its file.
type Account = fn(&str) -> String;
type Render = fn(&Addresses) -> ClientFile;

/// Runs `bowline libraries configure`.
///
/// # Errors
/// No server or home directory is known, a file has other content, or one cannot be written.
pub(super) async fn run(command: ConfigureCommand) -> Result<(), CliError> {
    let (args, account, render): (_, Account, Render) = match command {
        ConfigureCommand::Keyring(args) => return configure_keyring::run(args).await,
        ConfigureCommand::Pip(args) => (args, in_netrc_or_keyring, pip),
        ConfigureCommand::Uv(args) => (args, in_netrc_or_keyring, uv),
        ConfigureCommand::Pdm(args) => (args, in_netrc, pdm),
        ConfigureCommand::Poetry(args) => (args, in_netrc, poetry),
        ConfigureCommand::Twine(args) => (args, in_netrc, twine),
        ConfigureCommand::Npm(args) => (args, in_npm_auth, npm),
        ConfigureCommand::Yarn(args) => (args, in_npm_account, yarn),
        ConfigureCommand::Maven(args) => (args, in_maven_account, maven),
        ConfigureCommand::Gradle(args) => (args, in_maven_account, gradle),
        ConfigureCommand::Go(args) => (args, in_go_netrc, go),
        ConfigureCommand::Cargo(args) => (args, in_cargo_token, cargo),
    };
    let url = match &args.libraries_url {
        Some(url) => public_url("libraries-url", url)?,
        None => format!("{}/libraries", Session::open(&args.target)?.api),
    };
    let scope = args.group.as_ref().map(|scope| format!("/{scope}")).unwrap_or_default();
    let base = url.trim_end_matches('/');
    let addresses = Addresses {
        simple: format!("{base}/python{scope}/simple/"),
        legacy: format!("{base}/python{scope}/legacy/"),
        npm: format!("{base}/javascript{scope}/"),
        java: format!("{base}/java{scope}/"),
        go: format!("{base}/go{scope}"),
        cargo: format!("{base}/cargo{scope}/"),
    };
    args.writing.run(&args.root.clone().map_or_else(home, Ok)?, &[render(&addresses)])?;
    note(&account(&url));
    Ok(())
}

fn in_netrc(url: &str) -> String {
    format!(
        "account: put the user name and password of `bowline auth pull-token create --parent ORG --repository python` into \
         .netrc: machine {} login USERNAME password PASSWORD\n",
        machine(url)
    )
}

fn in_netrc_or_keyring(url: &str) -> String {
    format!("{}or let it get tokens of your sign-in: bowline libraries configure keyring\n", in_netrc(url))
}

fn in_go_netrc(url: &str) -> String {
    format!(
        "account: put the user name and password of `bowline auth pull-token create --parent ORG --repository go` into .netrc: \
         machine {} login USERNAME password PASSWORD; the go command sends them over https alone\n",
        authority(url)
    )
}

/// The name of a host with its port, by which the go command finds an account.
fn authority(url: &str) -> String {
    let port = url::Url::parse(url).ok().and_then(|url| url.port());
    port.map_or_else(|| machine(url), |port| format!("{}:{port}", machine(url)))
}

fn in_npm_auth(_: &str) -> String {
    "account: set BOWLINE_NPM_AUTH to the base64 of USERNAME:PASSWORD, as `bowline auth pull-token create --parent ORG \
     --repository javascript` prints them: printf %s USERNAME:PASSWORD | base64 | tr -d '\\n'\n"
        .into()
}

fn in_npm_account(_: &str) -> String {
    "account: set BOWLINE_NPM_ACCOUNT to USERNAME:PASSWORD, as `bowline auth pull-token create --parent ORG --repository \
     javascript` prints them\n"
        .into()
}

fn in_maven_account(_: &str) -> String {
    "account: set BOWLINE_MAVEN_USERNAME and BOWLINE_MAVEN_PASSWORD, as `bowline auth pull-token create --parent ORG --repository \
     java` prints them\n"
        .into()
}

fn in_cargo_token(_: &str) -> String {
    "account: set CARGO_REGISTRIES_BOWLINE_TOKEN to \"Basic BASE64\", or write token = \"Basic BASE64\" below [registries.bowline] \
     into ~/.cargo/credentials.toml; BASE64 is that of USERNAME:PASSWORD, as `bowline auth pull-token create --parent ORG \
     --repository cargo` prints them: printf %s USERNAME:PASSWORD | base64 | tr -d '\\n'\n"
        .into()
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

fn pip(index: &Addresses) -> ClientFile {
    file(".config/pip/pip.conf", format!("[global]\nindex-url = {}\n", index.simple))
}

/// As the default index, so that no other is used; `authenticate` makes a missing account an error that says so.
fn uv(index: &Addresses) -> ClientFile {
    let Addresses { simple, legacy, .. } = index;
    let text = format!(
        "publish-url = \"{legacy}\"\n\n[[index]]\nname = \"bowline\"\nurl = \"{simple}\"\ndefault = true\nauthenticate = \"always\"\n"
    );
    file(".config/uv/uv.toml", text)
}

fn pdm(index: &Addresses) -> ClientFile {
    let Addresses { simple, legacy, .. } = index;
    let text = format!("[pypi]\nurl = \"{simple}\"\n\n[repository.bowline]\nurl = \"{legacy}\"\n");
    file(".config/pdm/config.toml", text)
}

/// Poetry takes the indexes that it installs from out of projects alone.
fn poetry(index: &Addresses) -> ClientFile {
    let Addresses { simple, legacy, .. } = index;
    let text = format!(
        "# In pyproject.toml of each project:\n#   [[tool.poetry.source]]\n#   name = \"bowline\"\n#   url = \"{simple}\"\n#   \
         priority = \"primary\"\n[repositories.bowline]\nurl = \"{legacy}\"\n"
    );
    file(".config/pypoetry/config.toml", text)
}

fn twine(index: &Addresses) -> ClientFile {
    let text = format!("[distutils]\nindex-servers = bowline\n\n[bowline]\nrepository = {}\n", index.legacy);
    file(".pypirc", text)
}

/// The account counts below this address alone. Clients read the variable when they run.
fn npm(addresses: &Addresses) -> ClientFile {
    let registry = &addresses.npm;
    let below = registry.split_once(':').map_or(registry.as_str(), |(_, below)| below);
    let text =
        format!("registry={registry}\n{below}:_auth=${{BOWLINE_NPM_AUTH}}\n; yarn 1 also needs:\n;always-auth=true\n");
    file(".npmrc", text)
}

/// With a default, since yarn ends where a variable is not set.
fn yarn(addresses: &Addresses) -> ClientFile {
    let registry = &addresses.npm;
    let text = format!(
        "npmRegistryServer: \"{registry}\"\nnpmAlwaysAuth: true\nnpmAuthIdent: \"${{BOWLINE_NPM_ACCOUNT:-none:none}}\"\n"
    );
    file(".yarnrc.yml", text)
}

/// As the mirror of all repositories, so that plugins and dependencies of projects come from nowhere else; `mvn deploy` publishes
/// there, whatever projects say.
fn maven(addresses: &Addresses) -> ClientFile {
    let url = &addresses.java;
    let text = format!(
        "<settings>\n  <mirrors>\n    <mirror><id>bowline</id><mirrorOf>*</mirrorOf><url>{url}</url></mirror>\n  </mirrors>\n  \
         <servers>\n    <server>\n      <id>bowline</id>\n      <username>${{env.BOWLINE_MAVEN_USERNAME}}</username>\n      \
         <password>${{env.BOWLINE_MAVEN_PASSWORD}}</password>\n    </server>\n  </servers>\n  <profiles>\n    <profile>\n      \
         <id>bowline</id>\n      <properties>\n        \
         <altDeploymentRepository>bowline::{url}</altDeploymentRepository>\n      </properties>\n      <repositories>\n        \
         <repository>\n          <id>central</id>\n          <url>{url}</url>\n          \
         <snapshots><enabled>true</enabled></snapshots>\n        </repository>\n      </repositories>\n    </profile>\n  \
         </profiles>\n  <activeProfiles>\n    <activeProfile>bowline</activeProfile>\n  </activeProfiles>\n</settings>\n"
    );
    file(".m2/settings.xml", text)
}

/// Without `direct`, so that no module comes past the policies. Checksums of own modules are in no public database.
fn go(addresses: &Addresses) -> ClientFile {
    let text = format!(
        "GOPROXY={}\n# Modules of the organization, such as git.acme.example/*, which no database of checksums has:\n#GONOSUMDB=\n",
        addresses.go
    );
    file(".config/go/env", text)
}

/// In place of the public registry, by whose name lock files still call the sources of crates.
fn cargo(addresses: &Addresses) -> ClientFile {
    let text = CARGO.replace("ADDRESS", &addresses.cargo);
    file(".cargo/config.toml", text)
}

/// Cargo sends credentials to no registry but its own without the name of a provider.
const CARGO: &str = r#"[registries.bowline]
index = "sparse+ADDRESS"
credential-provider = "cargo:token"
# The token of `bowline auth login`, in place of a stored one:
#credential-provider = ["cargo:token-from-stdout", "bowline", "auth", "token"]

[source.crates-io]
replace-with = "bowline"
"#;

/// In place of all repositories of projects, their builds and their plugins.
fn gradle(addresses: &Addresses) -> ClientFile {
    let text = GRADLE.replace("ADDRESS", &addresses.java);
    file(".gradle/init.d/bowline.gradle", text)
}

const GRADLE: &str = r"// Dependencies and plugins of all projects come from this repository alone.
def bowline = { repositories ->
  repositories.maven {
    name = 'bowline'
    url = uri('ADDRESS')
    credentials {
      username = System.getenv('BOWLINE_MAVEN_USERNAME') ?: ''
      password = System.getenv('BOWLINE_MAVEN_PASSWORD') ?: ''
    }
  }
}
def only = { repositories ->
  bowline(repositories)
  repositories.all { repository ->
    if (repository.name != 'bowline') { repositories.remove(repository) }
  }
}
settingsEvaluated { settings -> only(settings.pluginManagement.repositories) }
allprojects {
  only(buildscript.repositories)
  only(repositories)
}
";

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
        assert_eq!(authority("https://h.example:8443/x"), "h.example:8443");
        assert_eq!(authority("https://h.example/x"), "h.example");
    }

    #[test]
    fn each_client_has_its_file() {
        let addresses = Addresses {
            simple: "https://h/python/simple/".into(),
            legacy: "https://h/python/legacy/".into(),
            npm: "https://h:1/javascript/~a/".into(),
            java: "https://h/java/".into(),
            go: "https://h/go".into(),
            cargo: "https://h/cargo/".into(),
        };
        for (render, counts) in [
            (pip as Render, [1, 0, 0, 0, 0, 0]),
            (uv, [1, 1, 0, 0, 0, 0]),
            (pdm, [1, 1, 0, 0, 0, 0]),
            (poetry, [1, 1, 0, 0, 0, 0]),
            (twine, [0, 1, 0, 0, 0, 0]),
            (npm, [0, 0, 1, 0, 0, 0]),
            (yarn, [0, 0, 1, 0, 0, 0]),
            (maven, [0, 0, 0, 3, 0, 0]),
            (gradle, [0, 0, 0, 1, 0, 0]),
            (go, [0, 0, 0, 0, 1, 0]),
            (cargo, [0, 0, 0, 0, 0, 1]),
        ] {
            let ClientFile { path, text } = render(&addresses);
            let Addresses { simple, legacy, npm, java, go, cargo } = &addresses;
            let urls = [simple, legacy, npm, java, go, cargo];
            let found = urls.map(|url| text.matches(url).count());
            assert_eq!(found, counts, "{}: {text}", path.display());
        }
        assert!(npm(&addresses).text.contains("\n//h:1/javascript/~a/:_auth=${BOWLINE_NPM_AUTH}\n"));
        assert!(cargo(&addresses).text.contains("index = \"sparse+https://h/cargo/\"\n"));
    }
}
