use bowline_terminal::Work;
use std::io::IsTerminal as _;
use std::sync::Arc;

use bowline_core::SystemClock;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::commands::print;
use crate::error::StartError;
use crate::notify::Supervisor;
use crate::options::{LogFormat, Options};
use crate::self_check;
use crate::server::Server;

/// What a server of demonstration data says at its start.
const DEMO_BANNER: &str = "\
DEMONSTRATION DATA: the organization acme and everything in it are generated. Do not store anything here that matters:\n\
everyone with this directory can act as the operator.\n\n";

/// Runs `bowline serve`: until a signal, or until a command has taken this server for stopped.
pub fn run(options: Options) -> Work<StartError> {
    Box::pin(execute(options))
}

async fn execute(options: Options) -> Result<(), StartError> {
    start_log(&options)?;
    for finding in self_check::at_start(&options, &SystemClock) {
        tracing::warn!(subject = finding.subject, hint = finding.hint, "{}", finding.text);
    }
    let supervisor = Supervisor::of_this_process();
    let server = Server::start(&options, Arc::new(SystemClock)).await?;
    greet(&options, &server)?;
    supervisor.say("READY=1");
    let outcome = tokio::select! {
        signal = wait_for_signal() => Ok(signal?),
        () = server.unregistered() => Err(unregistered()),
    };
    supervisor.say("STOPPING=1");
    tracing::info!("stopping: running calls may end, new ones are refused; a second signal stops at once");
    tokio::spawn(async {
        if wait_for_signal().await.is_ok() {
            std::process::exit(130);
        }
    });
    server.stop().await;
    outcome
}

fn unregistered() -> StartError {
    StartError::Unusable {
        cause: "this server was silent for too long, and a command that needs every server stopped may have run".into(),
        hint: "start it again, with the key file that `bowline keys rewrap` made if it ran".into(),
    }
}

/// Logs go to stderr: stdout is for data.
fn start_log(options: &Options) -> Result<(), StartError> {
    let filter = options.log.as_deref().unwrap_or("info");
    let filter = EnvFilter::try_new(filter).map_err(|error| StartError::Option(format!("--log {filter}: {error}")))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match options.log_format.unwrap_or(LogFormat::Text) {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| StartError::Defect(error.to_string()))
}

/// Says where everything is, and three lines to paste.
fn greet(options: &Options, server: &Server) -> Result<(), StartError> {
    let settings = &server.parts().settings;
    let storage = match &options.database_url {
        Some(_) => "PostgreSQL".to_owned(),
        None => format!("{}", options.data_dir().join("bowline.db").display()),
    };
    let (flag, location) = match (&options.database_url, &options.config) {
        (_, Some(config)) => ("--config", config.display().to_string()),
        (Some(_), None) => ("--key-file", options.key_file()?.display().to_string()),
        (None, None) => ("--data-dir", options.data_dir().display().to_string()),
    };
    let banner = if settings.is_demo { DEMO_BANNER } else { "" };
    print(&format!(
        "Bowline {version} serves\n  \
           API        {base}   (REST and gRPC)\n  \
           tokens     {auth}/sts/exchange\n  \
           admin      http://{admin}   (/livez, /readyz, /metrics)\n  \
           storage    {storage}\n\n\
         {banner}\
         To begin, paste:\n  \
           export BOWLINE_API={base}\n  \
           export BOWLINE_TOKEN=$(bowline operator token --reason \"first look\" {flag} {location})\n  \
           bowline iam groups create my-organization\n\n",
        version = env!("CARGO_PKG_VERSION"),
        base = settings.base_url,
        auth = settings.auth_url,
        admin = server.admin_address(),
    ))
}

async fn wait_for_signal() -> Result<(), StartError> {
    let listen = |kind| signal(kind).map_err(|error| StartError::Defect(error.to_string()));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
