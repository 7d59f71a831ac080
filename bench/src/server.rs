//! The server as a process of its own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Outcome;
use crate::environment::Environment;
use crate::postgres::Database;

/// Of Linux, in what it shows to processes.
const TICKS_PER_SECOND: f64 = 100.0;
const START_TIME: Duration = Duration::from_secs(30);

/// A running server; dropping the value kills the process.
pub(crate) struct Server {
    process: Child,
    storage: Vec<String>,
    binary: std::path::PathBuf,
    pub(crate) api: SocketAddr,
    admin: SocketAddr,
    /// How long it took until it was ready.
    pub(crate) ready_after: Duration,
}

impl Server {
    /// On the embedded engine.
    pub(crate) async fn start(environment: &Environment, data: &Path) -> Outcome<Server> {
        Server::with(environment, vec!["--data-dir".into(), data.to_string_lossy().into_owned()]).await
    }

    /// On the embedded engine, signing tokens by that algorithm.
    pub(crate) async fn signing(environment: &Environment, data: &Path, algorithm: &str) -> Outcome<Server> {
        let data = data.to_string_lossy().into_owned();
        let options = ["--token-algorithm".into(), algorithm.into()];
        Server::started(environment, vec!["--data-dir".into(), data], &options).await
    }

    /// On PostgreSQL.
    pub(crate) async fn on_postgres(environment: &Environment, database: &Database, key: &Path) -> Outcome<Server> {
        std::fs::write(key, "5a".repeat(32))?;
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600))?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut storage = vec!["--database-url".into(), database.url(), "--key-file".into(), text(key)];
        storage.extend(["--data-dir".into(), text(&key.with_file_name("data"))]);
        Server::with(environment, storage).await
    }

    async fn with(environment: &Environment, storage: Vec<String>) -> Outcome<Server> {
        Server::started(environment, storage, &[]).await
    }

    async fn started(environment: &Environment, storage: Vec<String>, options: &[String]) -> Outcome<Server> {
        let sockets = [TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?];
        let (api, admin) = (sockets[0].local_addr()?, sockets[1].local_addr()?);
        drop(sockets);
        let started = Instant::now();
        let process = Command::new(&environment.server)
            .arg("serve")
            .args(&storage)
            .args(options)
            .args(["--listen", &api.to_string(), "--admin-listen", &admin.to_string()])
            .args(["--log", "warn", "--rate-limit-address", "0", "--osv-rate", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let binary = environment.server.clone();
        let mut server = Server { process, storage, binary, api, admin, ready_after: Duration::ZERO };
        while !server.is_ready().await.unwrap_or(false) {
            if started.elapsed() > START_TIME || server.process.try_wait()?.is_some() {
                return Err("the server does not start".into());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.ready_after = started.elapsed();
        Ok(server)
    }

    async fn is_ready(&self) -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(self.admin).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(answer.starts_with(b"HTTP/1.1 200"))
    }

    /// The public address, which is the audience and the issuer of its tokens.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.api)
    }

    pub(crate) fn operator_token(&self) -> Outcome<String> {
        let mut command = Command::new(&self.binary);
        // A variable: earlier releases, which may be measured too, have no such option.
        command.env("BOWLINE_OPERATOR_REASON", "benchmark").args(["operator", "token"]).args(&self.storage);
        let output = command.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Processor seconds that the process has used so far.
    pub(crate) fn processor_seconds(&self) -> Outcome<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // The fields after the command's name, which may have blanks: user and system time are the 12th and 13th.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| -> Outcome<f64> { Ok(fields.get(at).ok_or("no figure of time")?.parse::<f64>()?) };
        Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Outcome<u64> {
        self.memory("VmRSS:")
    }

    /// Memory of its own in bytes, without mapped files: the database is one.
    pub(crate) fn anonymous(&self) -> Outcome<u64> {
        self.memory("RssAnon:")
    }

    /// Peak resident memory in bytes.
    pub(crate) fn peak(&self) -> Outcome<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, figure: &str) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(figure)).ok_or("no figure of memory")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
