use std::io;

use super::*;

const ONE: [&str; 2] = [
    include_str!("../../../bowline/tests/testdata/tls/one.pem"),
    include_str!("../../../bowline/tests/testdata/tls/one-key.pem"),
];
const TWO: [&str; 2] = [
    include_str!("../../../bowline/tests/testdata/tls/two.pem"),
    include_str!("../../../bowline/tests/testdata/tls/two-key.pem"),
];
/// `notAfter` of both.
const ENDS: [i64; 2] = [4_949_017_141, 4_905_817_141];

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_cause_is_logged_once_with_its_remedy_and_the_pair_from_before_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
    let write = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
    write(&certificate, ONE[0]);
    write(&key, ONE[1]);
    let options = Options { tls_cert: Some(certificate.clone()), tls_key: Some(key.clone()), ..Options::default() };
    let files = CertificateFiles::open(&options).unwrap().unwrap();
    assert_eq!(files.not_after(), Some(ENDS[0]));

    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        files.look();
        assert_eq!((files.failures(), log.text().as_str()), (0, ""), "nothing has changed");
        let half = &TWO[0][..TWO[0].len() / 2];
        let bad: [(&Path, Option<&str>, &str, &str); 4] = [
            (&key, Some(TWO[1]), "this key does not belong to the certificate", "--tls-key"),
            (&certificate, Some(half), "chain.pem: ", "--tls-cert"),
            (&certificate, Some(""), "no certificate in this file", "--tls-cert"),
            (&certificate, None, "chain.pem: No such file", "--tls-cert"),
        ];
        for (number, (path, text, cause, hint)) in bad.into_iter().enumerate() {
            match text {
                Some(text) => write(path, text),
                None => std::fs::remove_file(path).unwrap(),
            }
            let before = log.text().len();
            files.look();
            files.look();
            let said = log.text()[before..].to_owned();
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains(cause) && said.contains(hint), "{said}");
            assert_eq!((files.failures(), files.not_after()), (2 * (number as u64 + 1), Some(ENDS[0])));
        }
        write(&certificate, TWO[0]);
        files.look();
        assert_eq!((files.failures(), files.not_after()), (8, Some(ENDS[1])));
        assert!(log.text().ends_with("TLS certificate reloaded not_after=4905817141\n"), "{}", log.text());
    });
}
