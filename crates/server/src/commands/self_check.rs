//! `bowline self-check`: what would keep this server from starting or serving well.

use std::sync::Arc;
use std::time::Duration;

use bowline_core::{Clock, SystemClock};
use bowline_terminal::{Output, Table, Work};
use clap::Args;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::commands::print;
use crate::error::StartError;
use crate::options::Options;
use crate::self_check::{self, Finding, Level};

/// How long a running server has to say that it is ready.
const READY_TIME: Duration = Duration::from_secs(5);

/// `bowline self-check`.
#[derive(Args)]
pub struct SelfCheckCommand {
    /// Only ask a running server whether it is ready: the address of its admin listener, such as http://127.0.0.1:8081
    #[arg(long, value_name = "URL")]
    ready: Option<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    options: Options,
}

/// Runs `bowline self-check`.
pub fn run(command: SelfCheckCommand) -> Work<StartError> {
    Box::pin(execute(command))
}

async fn execute(command: SelfCheckCommand) -> Result<(), StartError> {
    if let Some(url) = &command.ready {
        return require_ready(url).await;
    }
    let options = command.options.with_file()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let findings = self_check::run(&options, &clock).await;
    let mut table = Table::new(&["level", "subject", "finding", "hint"]);
    for Finding { level, subject, text, hint } in &findings {
        table.push([level.as_str().to_owned(), (*subject).to_owned(), text.clone(), hint.clone()]);
    }
    print(&command.output.list(&table)?)?;
    match findings.iter().filter(|finding| finding.level == Level::Failure).count() {
        0 => Ok(()),
        failures => Err(StartError::Checks(failures)),
    }
}

/// Asks `/readyz`: images have no other client for their health check.
async fn require_ready(url: &str) -> Result<(), StartError> {
    let host = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    let host = host.filter(|host| !host.is_empty() && !host.contains('/'));
    let host = host.ok_or_else(|| StartError::Option(format!("--ready {url}: write http://HOST:PORT")))?;
    let failed = |cause: String| StartError::Unusable {
        cause: format!("{url} is not ready: {cause}"),
        hint: "look into the server's log".into(),
    };
    let response = tokio::time::timeout(READY_TIME, ready(host)).await;
    let response =
        response.map_err(|_| failed("no answer within 5 s".into()))?.map_err(|error| failed(error.to_string()))?;
    match response.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(failed(response.lines().last().unwrap_or_default().to_owned())),
    }
}

async fn ready(host: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(host).await?;
    stream.write_all(format!("GET /readyz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut response = String::new();
    stream.take(64 << 10).read_to_string(&mut response).await?;
    Ok(response)
}
