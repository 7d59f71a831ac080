//! Keeps the matches of components with records of vulnerabilities current.

use std::sync::Arc;
use std::time::Duration;

use bowline_contract::Contract;
use bowline_core::{Error, Micros};
use bowline_store::Db;
use bowline_vulnerabilities::matching::Matcher;
use tokio::sync::Mutex;

use crate::job::Job;
use crate::server::Parts;
use crate::task_board::TaskReport;

/// A new record is matched within five seconds after its commit.
const MATCH_EVERY: Duration = Duration::from_secs(2);
/// Between two steps: the writer and the processors are everyone's.
const PAUSE: Duration = Duration::from_millis(10);

/// The matcher of this server. The lease that its steps take is for other servers: here they follow one another.
pub struct Matching(Mutex<Matcher>);

impl Matching {
    pub(crate) fn new(db: Db, contract: Arc<Contract>, replica: &str) -> Matching {
        Matching(Mutex::new(Matcher::new(db, contract, replica.to_owned())))
    }

    /// One step; false if there is nothing to do here.
    ///
    /// # Errors
    /// Those of the database; the step can be repeated.
    pub async fn step(&self, now: Micros) -> Result<bool, Error> {
        self.0.lock().await.step(now).await
    }
}

pub(crate) async fn run(parts: Arc<Parts>, report: TaskReport) {
    let failure = "components were not matched with records of vulnerabilities; trying again later";
    let job = Job { pause: PAUSE, ..Job::every(MATCH_EVERY, failure) };
    job.run(report, move || {
        let (matching, now) = (parts.matching.clone(), parts.clock.now());
        Box::pin(async move { matching.step(now).await })
    })
    .await;
}
