//! Work that is done in rounds for as long as the server runs.

use std::time::Duration;

use bowline_core::Error;
use bowline_store::BoxFuture;

use crate::background::cause;
use crate::task_board::TaskReport;

/// A job and its times.
pub(crate) struct Job {
    /// Pause after a round that left nothing to do.
    pub(crate) every: Duration,
    /// Pause after a round that left more to do.
    pub(crate) pause: Duration,
    /// Pause after a round that failed.
    pub(crate) after_failure: Duration,
    /// What the log says of a failure: what was not done, and what that means.
    pub(crate) failure: &'static str,
}

impl Job {
    /// A job whose rounds follow at once while there is more to do, and which rests as long after a failure as after the
    /// end of its work.
    pub(crate) fn every(every: Duration, failure: &'static str) -> Job {
        Job { every, pause: Duration::ZERO, after_failure: every, failure }
    }

    /// Does rounds for ever, sooner when the operator wants it; a round says whether it left more to do.
    pub(crate) async fn run(
        self,
        report: TaskReport,
        mut round: impl FnMut() -> BoxFuture<'static, Result<bool, Error>>,
    ) {
        loop {
            report.begin();
            let outcome = round().await;
            report.end(outcome.as_ref().err());
            if let Err(error) = &outcome {
                tracing::warn!(cause = %cause(error), "{}", self.failure);
            }
            report.wait(self.pause_after(&outcome)).await;
        }
    }

    fn pause_after(&self, outcome: &Result<bool, Error>) -> Duration {
        match outcome {
            Ok(true) => self.pause,
            Ok(false) => self.every,
            Err(_) => self.after_failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_at_once_while_there_is_more_and_rest_after_failures() {
        let seconds = Duration::from_secs;
        let job = Job { after_failure: seconds(7), ..Job::every(seconds(1), "it failed") };
        assert_eq!(job.pause_after(&Ok(true)), Duration::ZERO);
        assert_eq!(job.pause_after(&Ok(false)), seconds(1));
        assert_eq!(job.pause_after(&Err(Error::internal("a defect"))), seconds(7));
        assert_eq!(Job::every(seconds(1), "").pause_after(&Err(Error::internal("a defect"))), seconds(1));
    }
}
