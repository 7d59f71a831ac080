//! TLS: the certificate and its key, read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};

use crate::certificate_end;
use crate::error::StartError;
use crate::options::Options;
use crate::unusable;

/// Time between two comparisons of the files with what is served.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(10);

const PEM_CHAIN: &str =
    "give --tls-cert the certificate chain in PEM (-----BEGIN CERTIFICATE-----), the server's own first";
const PEM_KEY: &str = "give --tls-key the certificate's key in PEM, without a passphrase (-----BEGIN PRIVATE KEY-----)";
const PAIR: &str = "give --tls-key the key that the first certificate of --tls-cert was made for";

/// The files of a certificate and its key, and the pair that connections get.
pub(crate) struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    served: RwLock<Served>,
    failures: AtomicU64,
    /// The failure that was logged last, until a pair is usable again.
    reported: Mutex<Option<String>>,
}

#[derive(Clone)]
struct Served {
    pair: Arc<CertifiedKey>,
    digests: [Vec<u8>; 2],
}

impl CertificateFiles {
    /// Reads the pair that the options name; absent where they name none.
    ///
    /// # Errors
    /// One file without the other, or no usable pair.
    pub(crate) fn open(options: &Options) -> Result<Option<Arc<CertificateFiles>>, StartError> {
        let (certificate, key) = match (&options.tls_cert, &options.tls_key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
            _ => {
                return Err(StartError::Option(
                    "--tls-cert and --tls-key belong together: give both or neither".into(),
                ));
            }
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let (certificate_bytes, key_bytes) = (read(&certificate, PEM_CHAIN)?, read(&key, PEM_KEY)?);
        let served = Served {
            pair: Arc::new(parse(&provider, (&certificate, &certificate_bytes), (&key, &key_bytes))?),
            digests: digests(&certificate_bytes, &key_bytes),
        };
        Ok(Some(Arc::new(CertificateFiles {
            certificate,
            key,
            provider,
            served: RwLock::new(served),
            failures: AtomicU64::new(0),
            reported: Mutex::default(),
        })))
    }

    /// The configuration of a listener whose new connections get the pair that is served then.
    ///
    /// # Errors
    /// The TLS library refuses its own defaults: a defect.
    pub(crate) fn server_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, StartError> {
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| StartError::Defect(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Comparisons that found a pair that cannot be used.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// When the served certificate ends, in seconds since the Unix epoch.
    pub(crate) fn not_after(&self) -> Option<i64> {
        self.served().pair.cert.first().and_then(|certificate| certificate_end::not_after(certificate))
    }

    /// Serves the pair of the files if it has changed and is usable; otherwise the one from before stays.
    fn look(&self) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        match self.reload() {
            Ok(is_new) => {
                if is_new {
                    tracing::info!(not_after = self.not_after(), "TLS certificate reloaded");
                } else if reported.is_some() {
                    tracing::info!("TLS certificate and key are those that are served again");
                }
                *reported = None;
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                let cause = error.to_string();
                if reported.as_ref() != Some(&cause) {
                    let hint = error.hint().unwrap_or_default();
                    tracing::warn!(%cause, %hint, "TLS certificate not reloaded; the one from before is served");
                    *reported = Some(cause);
                }
            }
        }
    }

    /// Whether another pair is served from now on.
    fn reload(&self) -> Result<bool, StartError> {
        let (certificate, key) = (read(&self.certificate, PEM_CHAIN)?, read(&self.key, PEM_KEY)?);
        let digests = digests(&certificate, &key);
        if digests == self.served().digests {
            return Ok(false);
        }
        let pair = parse(&self.provider, (&self.certificate, &certificate), (&self.key, &key))?;
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = Served { pair: Arc::new(pair), digests };
        Ok(true)
    }

    fn served(&self) -> Served {
        self.served.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for CertificateFiles {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.served.read().unwrap_or_else(PoisonError::into_inner).pair.clone())
    }
}

impl std::fmt::Debug for CertificateFiles {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CertificateFiles { certificate, key, .. } = self;
        formatter.debug_struct("CertificateFiles").field("certificate", certificate).field("key", key).finish()
    }
}

/// Looks at the files again and again, on a thread that may wait for the disk.
pub(crate) async fn follow(files: Arc<CertificateFiles>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let files = files.clone();
        // An error is a panic, which has been logged; the pair from before is served.
        let _ = tokio::task::spawn_blocking(move || files.look()).await;
    }
}

fn read(path: &Path, hint: &str) -> Result<Vec<u8>, StartError> {
    std::fs::read(path).map_err(|error| unusable::tls(path, &error, hint))
}

fn digests(certificate: &[u8], key: &[u8]) -> [Vec<u8>; 2] {
    [certificate, key].map(|bytes| digest(&SHA256, bytes).as_ref().to_vec())
}

fn parse(
    provider: &CryptoProvider,
    (certificate, certificate_bytes): (&Path, &[u8]),
    (key, key_bytes): (&Path, &[u8]),
) -> Result<CertifiedKey, StartError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate_bytes).collect();
    let chain = chain.map_err(|error| unusable::tls(certificate, &error, PEM_CHAIN))?;
    if chain.is_empty() {
        return Err(unusable::tls(certificate, &"no certificate in this file", PEM_CHAIN));
    }
    let private = PrivateKeyDer::from_pem_slice(key_bytes)
        .map_err(|_| unusable::tls(key, &"no private key in this file", PEM_KEY))?;
    CertifiedKey::from_der(chain, private, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let cause = format!("this key does not belong to the certificate in {}", certificate.display());
            unusable::tls(key, &cause, PAIR)
        }
        rustls::Error::General(_) => unusable::tls(key, &error, PEM_KEY),
        _ => unusable::tls(certificate, &error, PEM_CHAIN),
    })
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
