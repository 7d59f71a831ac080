//! Debian's `docker-registry`, as a process of its own on the same disk.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use super::wire::Side;
use crate::Outcome;

/// A running peer; it ends with this value.
pub(super) struct Peer {
    process: Child,
    pub(super) address: SocketAddr,
}

impl Peer {
    /// Starts it; absent if the machine has none.
    pub(super) async fn start(directory: &Path) -> Outcome<Option<Peer>> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let settings = format!(
            "version: 0.1\nlog:\n  level: error\n  accesslog:\n    disabled: true\n\
             storage:\n  filesystem:\n    rootdirectory: {}\n  cache:\n    blobdescriptor: inmemory\n\
             http:\n  addr: {address}\n",
            directory.join("peer").display()
        );
        let file = directory.join("peer.yml");
        std::fs::write(&file, settings)?;
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = match command.spawn() {
            Ok(process) => process,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let peer = Peer { process, address };
        let started = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            if started.elapsed() > Duration::from_secs(10) {
                return Err("docker-registry does not start".into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(Some(peer))
    }

    pub(super) fn side(&self) -> Side {
        Side { address: self.address, token: None, repo: "bench/app".into() }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
