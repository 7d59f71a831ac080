//! Notifies systemd of the server's state (`Type=notify`), where systemd requests it.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket that the supervisor listens on, from its environment.
#[derive(Debug)]
pub(crate) struct Supervisor(Option<SocketAddr>);

impl Supervisor {
    /// The supervisor of this process, if it has one that wants to know.
    pub(crate) fn of_this_process() -> Supervisor {
        let path = std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty());
        Supervisor(path.and_then(|path| match path.as_bytes() {
            // A name without a file, which cannot be written as a path.
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
            _ => SocketAddr::from_pathname(path).ok(),
        }))
    }

    /// Says a state, such as `READY=1`. A supervisor that does not listen is no reason to stop.
    pub(crate) fn say(&self, state: &str) {
        if let Some(address) = &self.0 {
            let sent = UnixDatagram::unbound().and_then(|socket| socket.send_to_addr(state.as_bytes(), address));
            if let Err(error) = sent {
                tracing::warn!(%error, state, "the supervisor was not told");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_arrive_and_absence_is_silent() {
        Supervisor(None).say("READY=1");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket = UnixDatagram::bind(&path).unwrap();
        Supervisor(Some(SocketAddr::from_pathname(&path).unwrap())).say("READY=1");
        let mut buffer = [0; 32];
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1");
    }
}
