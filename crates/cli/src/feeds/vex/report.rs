//! What became of an import: counts, and everything that was not taken in as it is.

use std::path::Path;

use bowline_contract::bowline::advisories::v1::{ImportOutcome, ImportedAdvisory};
use bowline_feeds::{Effect, Problems};
use bowline_terminal::Table;
use serde::Serialize;

use crate::error::CliError;

/// Most problems that are printed.
const MAX_SHOWN: usize = 20;
/// Most problems and differences in memory.
const MAX_STORED: usize = 100_000;

#[derive(Serialize)]
struct Line {
    file: String,
    position: String,
    effect: &'static str,
    reason: String,
}

struct Difference {
    outcome: &'static str,
    name: String,
    events: i32,
    aliases: Vec<String>,
}

/// Counts and problems of an import.
#[derive(Serialize)]
pub(super) struct Report {
    dry_run: bool,
    created: usize,
    changed: usize,
    unchanged: usize,
    refused: usize,
    skipped: usize,
    reduced: usize,
    added_events: i64,
    problems: Vec<Line>,
    #[serde(skip)]
    differences: Vec<Difference>,
}

impl Report {
    pub(super) fn new(dry_run: bool) -> Report {
        Report {
            dry_run,
            created: 0,
            changed: 0,
            unchanged: 0,
            refused: 0,
            skipped: 0,
            reduced: 0,
            added_events: 0,
            problems: Vec::new(),
            differences: Vec::new(),
        }
    }

    fn line(&mut self, file: &Path, position: &str, effect: &'static str, reason: &str) {
        if self.problems.len() < MAX_STORED {
            let file = file.display().to_string();
            self.problems.push(Line { file, position: position.into(), effect, reason: reason.into() });
        }
    }

    /// A file of which nothing was read.
    pub(super) fn unreadable(&mut self, file: &Path, reason: &str) {
        self.skipped += 1;
        self.line(file, "", "skipped", reason);
    }

    /// What a reader could not read.
    pub(super) fn problems(&mut self, file: &Path, problems: Problems) {
        self.skipped += problems.skipped();
        self.reduced += problems.reduced();
        for problem in problems.iter() {
            let effect = match problem.effect {
                Effect::Skipped => "skipped",
                Effect::Reduced => "reduced",
            };
            self.line(file, &problem.position, effect, &problem.reason);
        }
    }

    /// An advisory that the API has no words for.
    pub(super) fn skipped(&mut self, file: &Path, name: &str, reason: &str) {
        self.skipped += 1;
        self.line(file, name, "skipped", reason);
    }

    /// What the server made of an advisory.
    pub(super) fn outcome(&mut self, file: &Path, name: String, told: ImportedAdvisory) {
        self.added_events += i64::from(told.added_events);
        if !told.withheld_aliases.is_empty() {
            self.reduced += 1;
            let reason = format!("aliases were left out: {}", told.withheld_aliases.join(" "));
            self.line(file, &name, "reduced", &reason);
        }
        let outcome = match told.outcome() {
            ImportOutcome::Created => {
                self.created += 1;
                "created"
            }
            ImportOutcome::Changed => {
                self.changed += 1;
                "changed"
            }
            ImportOutcome::Unchanged => {
                self.unchanged += 1;
                return;
            }
            ImportOutcome::Refused | ImportOutcome::Unspecified => {
                self.refused += 1;
                self.line(file, &name, "refused", &told.reason);
                return;
            }
        };
        if self.dry_run && self.differences.len() < MAX_STORED {
            let difference = Difference { outcome, name, events: told.added_events, aliases: told.added_aliases };
            self.differences.push(difference);
        }
    }

    /// Whether anything is missing.
    pub(super) fn is_incomplete(&self) -> bool {
        self.skipped + self.refused > 0
    }

    /// Writes all of it as JSON.
    pub(super) fn write(&self, path: &Path) -> Result<(), CliError> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| CliError::Defect(error.to_string()))?;
        text.push(b'\n');
        std::fs::write(path, text).map_err(|source| CliError::File { path: path.into(), source })
    }

    /// The first problems, for people.
    pub(super) fn talk(&self) -> String {
        let mut talk = String::new();
        for Line { file, position, effect, reason } in self.problems.iter().take(MAX_SHOWN) {
            let place = if position.is_empty() { file.clone() } else { format!("{file}: {position}") };
            let line = format!("{effect} {place}: {reason}").replace(|c: char| c.is_control(), " ");
            talk.push_str(&format!("{line}\n"));
        }
        let more = (self.skipped + self.reduced + self.refused).saturating_sub(MAX_SHOWN.min(self.problems.len()));
        if more > 0 {
            talk.push_str(&format!("and {more} more; --report FILE writes them down\n"));
        }
        talk
    }

    /// What would change in a dry run, else the counts.
    pub(super) fn table(&self) -> Table {
        if self.dry_run {
            let mut table = Table::new(&["outcome", "advisory", "events", "aliases"]);
            for Difference { outcome, name, events, aliases } in &self.differences {
                table.push([(*outcome).to_owned(), name.clone(), events.to_string(), aliases.join(" ")]);
            }
            return table;
        }
        let mut table =
            Table::new(&["created", "changed", "unchanged", "refused", "skipped", "reduced", "added events"]);
        let counts = [self.created, self.changed, self.unchanged, self.refused, self.skipped, self.reduced];
        table.push(counts.map(|count| count.to_string()).into_iter().chain([self.added_events.to_string()]));
        table
    }
}
