//! The composition root: configuration, wiring, telemetry, lifecycle, and the operator's commands.
//!
//! Only this crate reads the environment. [`Server::start`] brings a whole server up, on real sockets,
//! from an [`Options`]; the command and the tests both use it.

#![expect(rustdoc::invalid_html_tags, rustdoc::broken_intra_doc_links, reason = "help of options is plain text")]

mod admin;
mod assembly;
mod background;
mod backup;
mod blob_totals;
mod blobs;
mod call_rates;
mod certificate_end;
pub mod commands;
mod configuration;
mod connections;
pub mod demo_directory;
mod disk;
mod error;
mod facts;
mod fronts;
mod garbage;
mod job;
mod keys;
mod limits;
mod mail;
mod matching;
mod metrics;
mod notify;
mod option_origins;
mod option_values;
mod options;
mod options_file;
mod providers;
mod record_sweep;
mod request_sizes;
mod rounds;
mod sbom_index;
mod self_check;
mod server;
mod serving;
mod settings;
mod state;
mod storage;
mod storage_options;
mod tables;
mod task_board;
mod terms;
mod tls;
mod transfer;
mod unusable;
mod verify;
mod well_known;
mod work_counts;

pub use backup::BackupSchedule;
pub use error::StartError;
pub use garbage::{Collected, Plan, Schedule, collect};
pub use matching::Matching;
pub use option_origins::{OptionOrigin, OptionOrigins};
pub use options::{LogFormat, Options, Organizations, TokenAlgorithm};
pub use providers::OperatorProvider;
pub use server::{Parts, Server};
pub use storage::{Storage, mint_operator_token};
pub use storage_options::StorageOptions;
pub use tables::declared_tables;
pub use terms::TermsOption;
pub use verify::{BlobVerification, DamagedBlob, verify};
pub use work_counts::WorkCounts;
