use bowline_terminal::Work;
use std::io::IsTerminal as _;
use std::sync::Arc;

use bowline_core::SystemClock;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::commands::greeting;
use crate::error::StartError;
use crate::notify::Supervisor;
use crate::options::{LogFormat, Options};
use crate::self_check;
use crate::server::Server;

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
    // A supervisor that learns that the server is ready may stop it: a signal must find it listening.
    let mut signals = Signals::listen()?;
    greeting::print(&options, &server).await?;
    supervisor.say("READY=1");
    let outcome = tokio::select! {
        () = signals.next() => Ok(()),
        () = server.unregistered() => Err(unregistered()),
    };
    supervisor.say("STOPPING=1");
    tracing::info!("stopping: running calls may end, new ones are refused; a second signal stops at once");
    tokio::spawn(async move {
        signals.next().await;
        std::process::exit(130);
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
    // A line that cannot be written is lost: to report that on stderr, too, would end the thread that has it to say.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let builder = builder.log_internal_errors(false);
    let started = match options.log_format.unwrap_or(LogFormat::Text) {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| StartError::Defect(error.to_string()))
}

/// The signals that stop the server, from the moment on that it listens.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Signals, StartError> {
        let listen = |kind| signal(kind).map_err(|error| StartError::Defect(error.to_string()));
        Ok(Signals { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
