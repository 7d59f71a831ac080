//! A start that cannot succeed: one line with the cause, one with the remedy, and nothing created.

use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Output, Stdio};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::Engine;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::{ended, text};

const ANY_PORTS: [&str; 4] = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];

/// A certificate whose key is nowhere.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBlDCCATugAwIBAgIUUQ0vqRBveQPr8uABTgV+TD6+eNAwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzAzMDkyNloYDzIxMjYxMDMw
MDMwOTI2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARjLOIqYNUgUoPQKNZLUqvp1DJB3TM1JbAIkQ49jGssEfdgC94zijtc
XvrqUb88ekxV6SVCUtdTCv4/oiAf36DEo2kwZzAdBgNVHQ4EFgQU/7qTveJmNE4m
X6MmKVP+bw0HMZQwHwYDVR0jBBgwFoAU/7qTveJmNE4mX6MmKVP+bw0HMZQwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
RwAwRAIgS/rx8SecUdQflWVynC/OYpkkiQO2Y/BMFkQtQogYF9MCIBHPPYQ3JODt
PAH91gs0YK3mHvfP8KINtfoOep3FFvAs
-----END CERTIFICATE-----
";

fn bowline(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
    command.env_clear().current_dir(home).args(arguments).kill_on_drop(true);
    command
}

async fn serve(home: &Path, arguments: &[&str]) -> Output {
    bowline(home, &[&["serve"], arguments, &ANY_PORTS].concat()).output().await.expect("the binary runs")
}

/// The cause and the remedy of a start that failed.
#[track_caller]
fn refusal(output: &Output) -> (String, String) {
    assert_eq!(ended(output, 1), "");
    let said = text(&output.stderr);
    // The log may have lines before.
    let lines: Vec<&str> = said.lines().collect();
    let [.., cause, hint] = lines.as_slice() else { panic!("less than two lines: {said}") };
    let cause = cause.strip_prefix("error: ").unwrap_or_else(|| panic!("no cause: {said}"));
    let hint = hint.strip_prefix("hint: ").unwrap_or_else(|| panic!("no remedy: {said}"));
    (cause.to_owned(), hint.to_owned())
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("a directory").next().is_none()
}

fn write_private(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("a private file");
}

/// A server that has printed where it serves.
async fn started(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = command.spawn().expect("the binary runs");
    let mut lines = BufReader::new(running.stdout.as_mut().expect("a pipe")).lines();
    let line = lines.next_line().await.expect("a line").expect("the server starts");
    assert!(line.starts_with("Bowline"), "{line}");
    running
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_before_anything_is_created() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().expect("an address").to_string();
    for (taken_flag, free_flag) in [("--listen", "--admin-listen"), ("--admin-listen", "--listen")] {
        let arguments = ["serve", "--data-dir", "data", taken_flag, &taken, free_flag, "127.0.0.1:0"];
        let output = bowline(home.path(), &arguments).output().await.expect("the binary runs");
        let (cause, hint) = refusal(&output);
        assert!(cause.contains(&taken), "{cause}");
        assert!(hint.contains(taken_flag), "{hint}");
        assert!(is_empty(home.path()), "something was created for {taken_flag}");
    }
}

#[tokio::test]
async fn a_damaged_database_is_named_with_the_backup_as_remedy() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let database = home.path().join("data/bowline.db");
    ended(&bowline(home.path(), &["migrate", "--data-dir", "data"]).output().await.expect("the binary runs"), 0);
    let whole = std::fs::read(&database).expect("the database");
    let half = whole[..whole.len() / 2].to_vec();
    for damaged in [vec![b'x'; whole.len()], half] {
        std::fs::write(&database, &damaged).expect("the database is overwritten");
        let (cause, hint) = refusal(&serve(home.path(), &["--data-dir", "data"]).await);
        assert!(cause.contains("data/bowline.db"), "{cause}");
        assert!(hint.contains("backup"), "{hint}");
        assert_eq!(std::fs::read(&database).expect("the database"), damaged, "the evidence stays");
    }
}

#[tokio::test]
async fn a_lost_key_is_not_replaced_and_a_wrong_one_is_named() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let key = home.path().join("data/key");
    for command in [&["migrate"][..], &["keys", "rotate"]] {
        let made = bowline(home.path(), &[command, &["--data-dir", "data"]].concat()).output().await;
        ended(&made.expect("the binary runs"), 0);
    }
    std::fs::remove_file(&key).expect("the key is there");
    let (cause, hint) = refusal(&serve(home.path(), &["--data-dir", "data"]).await);
    assert!(cause.contains("data/key") && cause.contains("bowline.db"), "{cause}");
    assert!(hint.contains("backup") && hint.contains("--key-file"), "{hint}");
    assert!(!key.exists(), "a new key opens nothing");

    write_private(&key, &[7; 32]);
    let (cause, hint) = refusal(&serve(home.path(), &["--data-dir", "data"]).await);
    assert!(cause.contains("key file") && cause.contains("signing key"), "{cause}");
    assert!(hint.contains("--key-file"), "{hint}");

    write_private(&key, b"too short");
    let (cause, hint) = refusal(&serve(home.path(), &["--data-dir", "data"]).await);
    assert!(cause.contains("data/key") && cause.contains("32 bytes"), "{cause}");
    assert!(hint.contains("--key-file"), "{hint}");
}

#[tokio::test]
async fn a_wrong_database_url_is_named_without_its_password() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    write_private(&home.path().join("key"), &[7; 32]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address");
    let closed = format!("postgres://bowline:secret@{free}/bowline");
    let urls = [
        (&*closed, "refused", "host and port"),
        ("mysql://bowline:secret@127.0.0.1/bowline", "does not parse", "postgres://"),
        ("postgres://bowline:secret@127.0.0.1:port/bowline", "port", "postgres://"),
        ("postgres://bowline:secret@127.0.0.1/bowline?sslmode=require", "TLS", "sslmode=disable"),
    ];
    for (url, why, remedy) in urls {
        let (cause, hint) = refusal(&serve(home.path(), &["--database-url", url, "--key-file", "key"]).await);
        assert!(cause.contains("--database-url") && cause.contains(why), "{cause}");
        assert!(hint.contains(remedy), "{hint}");
        assert!(!cause.contains("secret") && !hint.contains("secret"), "{cause} {hint}");
    }
    if let Some(admin) = admin_url() {
        let (server, _) = admin.rsplit_once('/').expect("a URL with a database");
        let url = format!("{server}/there_is_no_such_database");
        let (cause, hint) = refusal(&serve(home.path(), &["--database-url", &url, "--key-file", "key"]).await);
        assert!(cause.contains("there_is_no_such_database"), "{cause}");
        assert!(hint.contains("createdb"), "{hint}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_none_or_does_not_fit_its_key_is_named() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let write = |name: &str, bytes: &[u8]| std::fs::write(home.path().join(name), bytes).expect("a file");
    write("junk", b"this is no PEM");
    write("chain.pem", CERTIFICATE.as_bytes());
    let other = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key");
    let other = STANDARD.encode(other.to_pkcs8v1().expect("PKCS #8").as_ref());
    write("other.pem", format!("-----BEGIN PRIVATE KEY-----\n{other}\n-----END PRIVATE KEY-----\n").as_bytes());
    let pairs = [
        ("junk", "other.pem", "junk: no certificate", "--tls-cert"),
        ("other.pem", "chain.pem", "other.pem: no certificate", "--tls-cert"),
        ("chain.pem", "junk", "junk: no private key", "--tls-key"),
        ("chain.pem", "other.pem", "other.pem: this key does not belong to the certificate in chain.pem", "--tls-key"),
    ];
    for (certificate, key, why, remedy) in pairs {
        let arguments = ["--data-dir", "data", "--tls-cert", certificate, "--tls-key", key];
        let (cause, hint) = refusal(&serve(home.path(), &arguments).await);
        assert!(cause.contains(why), "{cause}");
        assert!(hint.contains(remedy), "{hint}");
    }
    assert!(!home.path().join("data").exists());
}

#[tokio::test]
async fn an_error_in_the_configuration_file_has_its_line() {
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let files = [
        ("log = \"info\"\nbase-urll = \"http://a\"\n", "bowline.toml:2: ", "base-urll"),
        ("\n\nlog = 3\n", "bowline.toml:3: ", "integer"),
        ("log = \"info\"\n\n\ndata-dir = \"x\n", "bowline.toml:4: ", "string"),
        ("[[terms]]\nid = \"a\"\nlabel = \"A\"\nurl = \"https://a\"\nlink = \"b\"\n", "bowline.toml:5: ", "link"),
    ];
    for (file, place, why) in files {
        std::fs::write(home.path().join("bowline.toml"), file).expect("a file");
        let (cause, hint) = refusal(&serve(home.path(), &["--config", "bowline.toml"]).await);
        assert!(cause.starts_with(place) && cause.contains(why), "{cause}");
        assert!(cause.len() < 200 && hint.contains("line"), "{cause} {hint}");
    }
    let (cause, hint) = refusal(&serve(home.path(), &["--config", "nowhere.toml"]).await);
    assert!(cause.contains("nowhere.toml") && hint.contains("--config"), "{cause} {hint}");
}

#[expect(clippy::disallowed_methods, reason = "where the tests' database server is, only the environment knows")]
fn admin_url() -> Option<String> {
    bowline_testkit::engines()
        .contains(&Engine::Postgres)
        .then(|| std::env::var("BOWLINE_TEST_POSTGRES").ok())
        .flatten()
}

async fn administrate(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("PostgreSQL answers");
    let task = tokio::spawn(connection);
    client.batch_execute(sql).await.expect(sql);
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_that_start_together_make_one_first_key() {
    let Some(admin) = admin_url() else { return };
    let home = tempfile::tempdir().expect("a scratch directory is made");
    let mut key = std::fs::OpenOptions::new();
    let key = key.write(true).create_new(true).mode(0o600).open(home.path().join("key"));
    key.and_then(|mut file| std::io::Write::write_all(&mut file, &[7; 32])).expect("a key file");
    let tail = home.path().file_name().expect("a name").to_string_lossy().to_lowercase();
    let name: String = tail.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = format!("bowline_test_start_{name}");
    let (server, _) = admin.rsplit_once('/').expect("a URL with a database");
    let url = format!("{server}/{name}");
    administrate(&admin, &format!("CREATE DATABASE {name}")).await;

    let storage = ["--database-url", &url, "--key-file", "key", "--data-dir", "data"];
    let addresses = ["--base-url", "http://api.test", "--auth-url", "http://issuer.test"];
    let replica = || started(bowline(home.path(), &[&["serve"], &storage[..], &addresses, &ANY_PORTS].concat()));
    let (mut one, mut two) = tokio::join!(replica(), replica());
    let list = bowline(home.path(), &[&["keys", "list", "-o", "json"], &storage[..4]].concat()).output().await;
    let keys: Value = serde_json::from_str(&ended(&list.expect("the binary runs"), 0)).expect("JSON");
    assert_eq!(keys.as_array().expect("a list").len(), 2, "{keys}");
    assert_eq!((&keys[0]["state"], &keys[1]["state"]), (&"signs".into(), &"signs packages".into()));
    for replica in [&mut one, &mut two] {
        replica.kill().await.expect("the replica ends");
    }
    administrate(&admin, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
}
