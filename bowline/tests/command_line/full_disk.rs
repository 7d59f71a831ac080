//! A file system that is full to the last byte, and the real binary on it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::{ended, text};

/// A file system of 48 MiB, until it is dropped.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// Absent where this process may not mount.
    fn mount() -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("a scratch directory is made");
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=48m,mode=700", "none"]).arg(directory.path());
        let is_mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        is_mounted.then_some(SmallDisk { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    fn log(&self) -> PathBuf {
        self.path().join("log")
    }

    /// Writes until there is no room for another byte, nor in the last page of the log.
    fn fill(&self) {
        for path in [self.ballast(), self.log()] {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
            for part in [1 << 20, 4096, 1] {
                let bytes = vec![b'x'; part];
                while file.write_all(&bytes).is_ok() {}
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn bowline(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.env_clear().args(arguments).kill_on_drop(true);
    command
}

async fn run(arguments: &[&str]) -> Output {
    bowline(arguments).output().await.expect("the binary runs")
}

struct Running {
    process: Child,
    api: String,
    admin: String,
}

/// The server, whose log lies on that disk, too.
async fn serve(disk: &SmallDisk, data: &str) -> Running {
    let arguments = ["serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let log = std::fs::OpenOptions::new().create(true).append(true).open(disk.log()).expect("a log file");
    let mut process = bowline(&arguments).stdout(Stdio::piped()).stderr(log).spawn().expect("it runs");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let (mut api, mut admin) = (String::new(), String::new());
    while admin.is_empty() {
        let line = lines.next_line().await.expect("a line").expect("the greeting goes on");
        let mut words = line.split_whitespace();
        match words.next() {
            Some("API") => words.next().expect("an address").clone_into(&mut api),
            Some("admin") => words.next().expect("an address").clone_into(&mut admin),
            _ => {}
        }
    }
    // Whatever else it prints is taken.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Running { process, api, admin }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one scenario, step by step")]
async fn a_full_disk_is_cured_by_the_operator_without_a_restart() {
    let Some(disk) = SmallDisk::mount() else {
        // Past the capture of the tests' output: what is left out must be seen.
        let note = "left out: this process may not mount a small file system: run the tests as root\n";
        std::io::stderr().write_all(note.as_bytes()).expect("stderr takes a line");
        return;
    };
    let data = disk.path().join("data").to_string_lossy().into_owned();
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let http = reqwest::Client::new();
    let mut server = serve(&disk, &data).await;
    let token =
        async |data: &str| ended(&run(&["operator", "token", "--reason", "disk is full", "--data-dir", data]).await, 0);
    let first = token(&data).await;
    let post = async |server: &Running, token: &str, path: &str, body: String| {
        let request = http.post(format!("{}{path}", server.api)).bearer_auth(token).body(body);
        let reply = request.header("content-type", "application/json").send().await.expect("a reply");
        (reply.status().as_u16(), reply.text().await.expect("a body"))
    };
    let (status, org) = post(&server, &first, "/iam/v2/groups", r#"{"name":"acme"}"#.into()).await;
    assert_eq!(status, 200, "{org}");
    let org = serde_json::from_str::<serde_json::Value>(&org).expect("JSON")["uid"].as_str().expect("a uid").to_owned();
    let repos = format!("/registry/v2/repos/{org}");
    let mut uids = Vec::new();
    for n in 0..20 {
        let (status, made) = post(&server, &first, &repos, format!(r#"{{"name":"r{n}"}}"#)).await;
        assert_eq!(status, 200, "{made}");
        let made: serde_json::Value = serde_json::from_str(&made).expect("JSON");
        uids.push(made["uid"].as_str().expect("a uid").to_owned());
    }

    disk.fill();
    let full = async |server: &Running, token: &str| {
        for n in 0..600 {
            let (status, body) = post(server, token, &repos, format!(r#"{{"name":"more{n}"}}"#)).await;
            if status == 507 {
                assert!(body.contains("STORAGE_FULL"), "{body}");
                return;
            }
            assert_eq!(status, 200, "{body}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the disk is never full");
    };
    full(&server, &first).await;
    let delete = async |server: &Running, token: &str, uid: &str| {
        let request = http.delete(format!("{}/registry/v2/repos/{uid}", server.api)).bearer_auth(token);
        let reply = request.send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{}", reply.text().await.expect("a body"));
    };
    for (n, uid) in uids[..10].iter().enumerate() {
        delete(&server, &first, uid).await;
        // Others take what the reserve gave back. It has eight such steps.
        if n < 2 {
            disk.fill();
        }
    }
    token(&data).await;
    ended(&run(&["registry", "gc", "--data-dir", &data]).await, 0);
    // A server that rests shortens its log, and what that gives back may cure the disk for a moment.
    disk.fill();
    for n in 0.. {
        let ready = http.get(format!("{}/readyz", server.admin)).send().await;
        let Ok(ready) = ready else { panic!("{}: {ready:?}", server.admin) };
        assert_eq!(ready.status(), 200);
        if ready.text().await.expect("a page").contains("storage full") {
            break;
        }
        assert!(n < 600, "the page never says so");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // It starts on a full disk, too, and commands work without it.
    server.process.start_kill().expect("it runs");
    server.process.wait().await.expect("it ends");
    disk.fill();
    token(&data).await;
    server = serve(&disk, &data).await;
    // It has another port, and so another issuer.
    let second = token(&data).await;
    full(&server, &second).await;
    for uid in &uids[10..] {
        delete(&server, &second, uid).await;
    }

    std::fs::remove_file(disk.ballast()).expect("the ballast");
    for n in 0.. {
        let (status, body) = post(&server, &second, &repos, r#"{"name":"after"}"#.into()).await;
        if status == 200 {
            break;
        }
        assert!(n < 600, "never cured: {body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let verified = run(&["audit", "verify", "--data-dir", &data]).await;
    assert!(ended(&verified, 0).contains("verified"), "{}", text(&verified.stderr));
}
