//! What `bowline serve` prints when it is up: where everything is, and how to begin.

use std::io::IsTerminal as _;
use std::net::IpAddr;

use bowline_authn::crypto::random_bytes;
use bowline_identity::people;

use crate::assembly::is_loopback_url;
use crate::error::StartError;
use crate::options::Options;
use crate::server::Server;

/// What a server of demonstration data says at its start.
const DEMO_BANNER: &str = "\
DEMONSTRATION DATA: the organization acme and everything in it are generated. Do not store anything here that matters:\n\
everyone with this directory can act as the operator.\n\n";

/// Prints it to stdout.
///
/// # Errors
/// stdout is closed, or the options name no key file.
pub(super) async fn print(options: &Options, server: &Server) -> Result<(), StartError> {
    let settings = &server.parts().settings;
    let storage = match &options.database_url {
        Some(_) => "PostgreSQL".to_owned(),
        None => format!("{}", options.data_dir().join("bowline.db").display()),
    };
    let access = access(options)?;
    let (base, auth) = (&settings.base_url, &settings.auth_url);
    let mut text = format!("Bowline {} serves\n", env!("CARGO_PKG_VERSION"));
    text += &format!("  API        {base}   (REST and gRPC)\n  tokens     {auth}/sts/exchange\n");
    if options.has_console() {
        text += &format!("  console    {auth}/console\n");
    }
    text += &format!("  admin      http://{}   (/livez, /readyz, /metrics)\n", server.admin_address());
    text += &format!("  storage    {storage}\n\n");
    if settings.is_demo {
        text += DEMO_BANNER;
    }
    if options.has_console() {
        text += &operator_entry(options, server, &access).await;
    }
    text += &format!(
        "To begin in a terminal, paste:\n  \
           export BOWLINE_API={base}\n  \
           export BOWLINE_TOKEN=$(bowline operator token --reason \"first look\" {access})\n  \
           bowline iam groups create my-organization\n\n"
    );
    super::print(&text)
}

/// The option by which commands reach the storage of this server.
fn access(options: &Options) -> Result<String, StartError> {
    Ok(match (&options.database_url, &options.config) {
        (_, Some(config)) => format!("--config {}", config.display()),
        (Some(_), None) => format!("--key-file {}", options.key_file()?.display()),
        (None, None) => format!("--data-dir {}", options.data_dir().display()),
    })
}

/// Whether a link for the operator, which lets in any holder, is printed: to a person at a terminal, and where only programs
/// of this machine are known to reach the server. Stdin counts, too, since a container with a terminal for its output alone
/// has a log of it. Tools that record a terminal, such as `script`, keep the link for the five minutes that it is good for.
fn may_print_link(is_at_terminal: bool, listens_on: IpAddr, has_proxies: bool, auth_url: &str) -> bool {
    is_at_terminal && listens_on.is_loopback() && !has_proxies && is_loopback_url(auth_url)
}

/// How the operator opens the console.
async fn operator_entry(options: &Options, server: &Server, access: &str) -> String {
    let parts = server.parts();
    let is_at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let has_proxies = !options.trusted_proxies.is_empty();
    if may_print_link(is_at_terminal, server.address().ip(), has_proxies, &parts.settings.auth_url) {
        let db = &parts.storage.db;
        match people::create_operator_link(db, random_bytes(), "bowline serve in a terminal", parts.clock.now()).await {
            Ok(code) => {
                return format!(
                    "To open the console as the operator, once and within five minutes:\n  {}/oauth/operator?code={code}\n\n",
                    parts.settings.auth_url
                );
            }
            // Its absence stops no server: a full disk is such a cause.
            Err(error) => tracing::warn!(%error, "no sign-in link for the operator could be made"),
        }
    }
    format!(
        "To open the console as the operator, use the link that this prints:\n  bowline operator login-url --reason \"first look\" {access}\n\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_is_for_people_at_this_machine() {
        let (local, network) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0]));
        let own = "http://127.0.0.1:8080";
        assert!(may_print_link(true, local, false, own) && may_print_link(true, local, false, "http://localhost:8080"));
        for (is_at_terminal, listens_on, has_proxies, auth_url) in [
            (false, local, false, own),
            (true, network, false, own),
            (true, local, true, own),
            (true, local, false, "https://bowline.example"),
        ] {
            let text = format!("{is_at_terminal} {listens_on} {has_proxies} {auth_url}");
            assert!(!may_print_link(is_at_terminal, listens_on, has_proxies, auth_url), "{text}");
        }
    }
}
