use std::path::PathBuf;

use clap::Args;

use crate::error::StartError;
use crate::options::{Options, TokenAlgorithm};

/// Where a server keeps its data: what the commands that work on it beside the server need to know.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Storage of the server")]
pub struct StorageOptions {
    /// The server's configuration file
    #[arg(long, env = "BOWLINE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the embedded database and of the key file [default: ./bowline-data]
    #[arg(long, env = "BOWLINE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// PostgreSQL instead of the embedded database: postgres://user@host/database
    #[arg(long, env = "BOWLINE_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Bucket with the blobs of the container registry: s3://bucket/prefix [default: <data dir>/blobs]
    #[arg(long, env = "BOWLINE_BLOB_URL", value_name = "URL", hide_env_values = true)]
    blob_url: Option<String>,
    /// File with the key that wraps stored secrets [default: <data dir>/key]
    #[arg(long, env = "BOWLINE_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// What a command that issues a token needs to know of the server besides its storage.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct IssuingOptions {
    /// Public address of the API [default: the server's at its last start]
    #[arg(long, env = "BOWLINE_BASE_URL", value_name = "URL")]
    base_url: Option<String>,
    /// Public address of the token exchange [default: the server's at its last start]
    #[arg(long, env = "BOWLINE_AUTH_URL", value_name = "URL")]
    auth_url: Option<String>,
    /// Signature algorithm of the first key, if there is none yet [default: rs256]
    #[arg(long, env = "BOWLINE_TOKEN_ALGORITHM", value_name = "ALGORITHM")]
    token_algorithm: Option<TokenAlgorithm>,
}

impl StorageOptions {
    /// The key file, as the command line or the environment names it.
    pub(crate) fn key_file(&self) -> Option<PathBuf> {
        self.key_file.clone()
    }

    /// These options among all of the server's, with what they leave open taken from the configuration file.
    ///
    /// # Errors
    /// As [`Options::with_file`].
    pub fn with_file(self) -> Result<Options, StartError> {
        self.for_issuing(IssuingOptions::default())
    }

    /// The same for a command that issues a token.
    ///
    /// # Errors
    /// As [`Options::with_file`].
    pub(crate) fn for_issuing(self, issuing: IssuingOptions) -> Result<Options, StartError> {
        let options = Options {
            config: self.config,
            data_dir: self.data_dir,
            database_url: self.database_url,
            blob_url: self.blob_url,
            key_file: self.key_file,
            base_url: issuing.base_url,
            auth_url: issuing.auth_url,
            token_algorithm: issuing.token_algorithm,
            ..Options::default()
        };
        options.with_file()
    }
}
