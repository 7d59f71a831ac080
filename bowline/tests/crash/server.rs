//! The binary as a process.

use std::fs::OpenOptions;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::storage::Storage;

const START_TIME: Duration = Duration::from_secs(30);

/// Where the servers of one storage listen: always at the same place, so that a token stays good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) api: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Addresses {
    pub(crate) fn free() -> Addresses {
        let sockets = [reserve(), reserve()];
        let [api, admin] = sockets.each_ref().map(|socket| socket.local_addr().expect("an address"));
        Addresses { api, admin }
    }
}

/// A port below those that the system gives to outgoing connections: one of them would take it while its server is down.
fn reserve() -> TcpListener {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(16);
    let ports = (0..10_000).map(|_| 10_000 + first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000);
    let mut ports = ports.map(|port| u16::try_from(port).expect("a port"));
    ports.find_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()).expect("a free port")
}

/// A running server; dropping it kills it.
pub(crate) struct Server {
    process: Child,
    addresses: Addresses,
    log: std::path::PathBuf,
}

pub(crate) fn binary() -> std::ffi::OsString {
    std::env::var_os("BOWLINE_CRASH_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_bowline").into())
}

impl Server {
    pub(crate) fn spawn(storage: &Storage, addresses: Addresses) -> Server {
        Server::spawn_with(storage, addresses, &[])
    }

    /// The same with more options.
    pub(crate) fn spawn_with(storage: &Storage, addresses: Addresses, options: &[&str]) -> Server {
        let log = storage.log_file();
        let stderr = OpenOptions::new().create(true).append(true).open(&log).expect("a log file");
        let process = Command::new(binary())
            .arg("serve")
            .args(storage.options())
            .args(["--listen", &addresses.api.to_string(), "--admin-listen", &addresses.admin.to_string()])
            .args(["--log", "warn"])
            .args(options)
            .envs(storage.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the server starts");
        Server { process, addresses, log }
    }

    /// Waits until the server says that it is ready.
    pub(crate) async fn ready(&mut self) {
        let started = Instant::now();
        while !self.is_ready().await {
            let log = || std::fs::read_to_string(&self.log).unwrap_or_default();
            if let Some(status) = self.process.try_wait().expect("the process can be asked") {
                panic!("the server ended ({status}) instead of starting:\n{}", log());
            }
            assert!(started.elapsed() < START_TIME, "the server is not ready after {START_TIME:?}:\n{}", log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn is_ready(&self) -> bool {
        let ask = async {
            let mut stream = TcpStream::connect(self.addresses.admin).await?;
            stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n").await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            std::io::Result::Ok(answer.starts_with(b"HTTP/1.1 200"))
        };
        tokio::time::timeout(Duration::from_secs(1), ask).await.is_ok_and(|answer| answer.unwrap_or(false))
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// A token of the operator for the API.
pub(crate) fn operator_token(storage: &Storage) -> String {
    token(storage, &[])
}

/// A token of the operator, from the command with these options.
pub(crate) fn token(storage: &Storage, options: &[&str]) -> String {
    let output = Command::new(binary())
        .args(["operator", "token", "--reason", "a test"])
        .args(storage.options())
        .args(options)
        .output();
    let output = output.expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a token").trim().to_owned()
}
