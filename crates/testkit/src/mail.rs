use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A mail relay on loopback that stores what it receives and sends nothing.
pub struct MailSink {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

/// A mail that the relay accepted.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Sender of the envelope.
    pub from: String,
    /// Recipients of the envelope.
    pub to: Vec<String>,
    /// Headers and body, lines ended by line feeds.
    pub text: String,
}

#[derive(Default)]
struct State {
    refusing: AtomicBool,
    attempts: AtomicUsize,
    mails: Mutex<Vec<Received>>,
}

impl MailSink {
    /// A relay on a port of its own.
    pub async fn start() -> MailSink {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = socket.local_addr().expect("a bound socket has an address");
        let state = Arc::new(State::default());
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let state = shared.clone();
                // A client that goes away in the middle has sent nothing.
                tokio::spawn(async move { converse(stream, &state).await.ok() });
            }
        });
        MailSink { address, state, task }
    }

    /// The relay's address, as the server's option has it.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Makes the relay reject every mail, or accept mails again.
    pub fn refuse(&self, refusing: bool) {
        self.state.refusing.store(refusing, Ordering::SeqCst);
    }

    /// Number of mails offered so far, accepted or not.
    pub fn attempts(&self) -> usize {
        self.state.attempts.load(Ordering::SeqCst)
    }

    /// Waits up to 10 s for this many mails and returns them. Panics if there are fewer or more.
    pub async fn mails(&self, wanted: usize) -> Vec<Received> {
        for _ in 0..200 {
            let mails = self.state.mails.lock().expect("no thread panics with the lock").clone();
            if mails.len() >= wanted {
                assert_eq!(mails.len(), wanted, "{mails:#?}");
                return mails;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{wanted} mails did not come");
    }

    /// Waits up to 10 s until this many mails were offered. Panics if there are fewer.
    pub async fn attempted(&self, wanted: usize) {
        for _ in 0..200 {
            if self.attempts() >= wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{wanted} attempts did not come, only {}", self.attempts());
    }
}

impl Drop for MailSink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The subset of SMTP that a client needs to send one mail after the other.
async fn converse(stream: TcpStream, state: &State) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut mail = Received::default();
    write.write_all(b"220 sink\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let (verb, rest) = line.split_at_checked(4).unwrap_or((&line, ""));
        let answer = match verb.to_ascii_uppercase().as_str() {
            "EHLO" | "HELO" => "250-sink\r\n250 8BITMIME\r\n",
            "MAIL" => {
                state.attempts.fetch_add(1, Ordering::SeqCst);
                mail = Received { from: address(rest), ..Received::default() };
                if state.refusing.load(Ordering::SeqCst) { "451 not now\r\n" } else { "250 ok\r\n" }
            }
            "RCPT" => {
                mail.to.push(address(rest));
                "250 ok\r\n"
            }
            "DATA" => {
                write.write_all(b"354 go on\r\n").await?;
                while let Some(line) = lines.next_line().await?.filter(|line| line != ".") {
                    mail.text += line.strip_prefix('.').unwrap_or(&line);
                    mail.text += "\n";
                }
                state.mails.lock().expect("no thread panics with the lock").push(std::mem::take(&mut mail));
                "250 taken\r\n"
            }
            "QUIT" => {
                write.write_all(b"221 bye\r\n").await?;
                return Ok(());
            }
            "RSET" | "NOOP" => "250 ok\r\n",
            _ => "502 no\r\n",
        };
        write.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

/// What stands between angle brackets.
fn address(text: &str) -> String {
    let inside = text.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inside.map(|(address, _)| address.to_owned()).unwrap_or_default()
}
