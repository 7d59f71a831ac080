//! Sends advisories in batches, those of one origin together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bowline_client::Api;
use bowline_contract::bowline::advisories::v1::ImportAdvisoriesRequest;
use bowline_contract::bowline::advisories::v1::rpc::advisory_transfers::ImportAdvisories;
use bowline_contract::v1::vulnerabilities::{Advisory as Message, ReviewStatus};
use bowline_contract::{FieldRules, Method as _};
use bowline_feeds::{Advisory, Event};
use prost::{Message as _, Name as _};

use super::convert;
use super::report::Report;
use crate::error::CliError;

/// Advisories of one request.
const BATCH: usize = 100;
/// Bytes of one request, about.
const BATCH_BYTES: usize = 4 << 20;

/// Where statements come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    pub(super) source: String,
    pub(super) licence: String,
}

/// Advisories that wait to be sent.
#[derive(Default)]
struct Batch {
    advisories: Vec<Message>,
    /// File and name of each.
    named: Vec<(PathBuf, String)>,
    bytes: usize,
}

/// Collects advisories, and sends them.
pub(super) struct Sender<'a> {
    api: &'a Api,
    rules: &'a FieldRules,
    group: &'a str,
    status: ReviewStatus,
    dry_run: bool,
    batches: BTreeMap<Origin, Batch>,
}

impl<'a> Sender<'a> {
    pub(super) fn new(
        api: &'a Api,
        rules: &'a FieldRules,
        group: &'a str,
        status: ReviewStatus,
        dry_run: bool,
    ) -> Sender<'a> {
        Sender { api, rules, group, status, dry_run, batches: BTreeMap::new() }
    }

    /// Takes an advisory. `usual` is where its events come from that do not say.
    pub(super) async fn add(
        &mut self,
        file: &Path,
        advisory: Advisory,
        usual: &Origin,
        report: &mut Report,
    ) -> Result<(), CliError> {
        let name = named(&advisory);
        for (origin, message) in split(&advisory, usual) {
            if let Err(reason) = self.validated(&message, &origin) {
                report.skipped(file, &name, &reason);
                continue;
            }
            let batch = self.batches.entry(origin.clone()).or_default();
            batch.bytes += message.encoded_len();
            batch.advisories.push(message);
            batch.named.push((file.to_owned(), name.clone()));
            if batch.advisories.len() >= BATCH || batch.bytes >= BATCH_BYTES {
                let batch = std::mem::take(batch);
                self.send(&origin, batch, report).await?;
            }
        }
        Ok(())
    }

    /// Sends what still waits.
    pub(super) async fn finish(mut self, report: &mut Report) -> Result<(), CliError> {
        for (origin, batch) in std::mem::take(&mut self.batches) {
            if !batch.advisories.is_empty() {
                self.send(&origin, batch, report).await?;
            }
        }
        Ok(())
    }

    /// Whether the server's rules let an advisory through: one that breaks them would take its batch with it.
    fn validated(&self, message: &Message, origin: &Origin) -> Result<(), String> {
        let request = self.request(origin, vec![message.clone()]);
        let name = ImportAdvisoriesRequest::full_name();
        let violations = self.rules.validate(&name, &request.encode_to_vec(), None, None);
        match violations.list.first() {
            None => Ok(()),
            Some(violation) => {
                let field = violation.field.trim_start_matches("advisories[0].");
                Err(format!("{field}: {}", violation.description))
            }
        }
    }

    fn request(&self, origin: &Origin, advisories: Vec<Message>) -> ImportAdvisoriesRequest {
        ImportAdvisoriesRequest {
            parent: self.group.into(),
            advisories,
            status: self.status.into(),
            source: origin.source.clone(),
            licence: origin.licence.clone(),
            dry_run: self.dry_run,
        }
    }

    async fn send(&self, origin: &Origin, batch: Batch, report: &mut Report) -> Result<(), CliError> {
        let answer = self.api.call::<ImportAdvisories>(&self.request(origin, batch.advisories)).await?;
        if answer.advisories.len() != batch.named.len() {
            return Err(CliError::Defect(format!("{} are about other advisories", ImportAdvisories::FULL_NAME)));
        }
        for ((file, name), told) in batch.named.into_iter().zip(answer.advisories) {
            report.outcome(&file, name, told);
        }
        Ok(())
    }
}

/// One message for each origin that the events have; one where there are no events.
fn split(advisory: &Advisory, usual: &Origin) -> Vec<(Origin, Message)> {
    let origin = |event: &Event| {
        let said = &event.provenance;
        if said.source.is_empty() && said.licence.is_empty() {
            return usual.clone();
        }
        Origin { source: said.source.clone(), licence: said.licence.clone() }
    };
    let mut origins: Vec<Origin> = advisory.events.iter().map(origin).collect();
    origins.sort();
    origins.dedup();
    if origins.is_empty() {
        origins.push(usual.clone());
    }
    let message = |wanted: Origin| {
        let message = convert::advisory(advisory, |event| origin(event) == wanted);
        (wanted, message)
    };
    origins.into_iter().map(message).collect()
}

fn named(advisory: &Advisory) -> String {
    let names = advisory.names();
    let name = names.first().map_or("an advisory without ids", String::as_str);
    format!("{name} in {} {}", advisory.artifact.kind, advisory.artifact.name)
}
