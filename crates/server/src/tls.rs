use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::StartError;
use crate::options::{Options, require_file};

/// The TLS configuration, absent where no certificate is given.
pub(crate) fn config(options: &Options) -> Result<Option<Arc<ServerConfig>>, StartError> {
    match (&options.tls_cert, &options.tls_key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => load(certificate, key).map(Some),
        _ => Err(StartError::Option("--tls-cert and --tls-key belong together: give both or neither".into())),
    }
}

fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, StartError> {
    let refuse = |path: &Path, why: &dyn std::fmt::Display| StartError::Option(format!("{}: {why}", path.display()));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&require_file(certificate)?).collect();
    let chain = chain.map_err(|error| refuse(certificate, &error))?;
    let private = PrivateKeyDer::from_pem_slice(&require_file(key)?).map_err(|error| refuse(key, &error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StartError::Defect(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| refuse(certificate, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
