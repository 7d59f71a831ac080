use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::StartError;
use crate::options::{Options, require_file};
use crate::unusable;

/// The TLS configuration, absent where no certificate is given.
pub(crate) fn config(options: &Options) -> Result<Option<Arc<ServerConfig>>, StartError> {
    match (&options.tls_cert, &options.tls_key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => load(certificate, key).map(Some),
        _ => Err(StartError::Option("--tls-cert and --tls-key belong together: give both or neither".into())),
    }
}

const PEM_CHAIN: &str =
    "give --tls-cert the certificate chain in PEM (-----BEGIN CERTIFICATE-----), the server's own first";
const PEM_KEY: &str = "give --tls-key the certificate's key in PEM, without a passphrase (-----BEGIN PRIVATE KEY-----)";
const PAIR: &str = "give --tls-key the key that the first certificate of --tls-cert was made for";

fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, StartError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&require_file(certificate)?).collect();
    let chain = chain.map_err(|error| unusable::tls(certificate, &error, PEM_CHAIN))?;
    if chain.is_empty() {
        return Err(unusable::tls(certificate, &"no certificate in this file", PEM_CHAIN));
    }
    let private = PrivateKeyDer::from_pem_slice(&require_file(key)?)
        .map_err(|_| unusable::tls(key, &"no private key in this file", PEM_KEY))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StartError::Defect(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let cause = format!("this key does not belong to the certificate in {}", certificate.display());
                unusable::tls(key, &cause, PAIR)
            }
            rustls::Error::General(_) => unusable::tls(key, &error, PEM_KEY),
            _ => unusable::tls(certificate, &error, PEM_CHAIN),
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
