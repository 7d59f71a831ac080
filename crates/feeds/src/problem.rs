//! What a reader or a writer could not do, and where.

use std::fmt;

/// What became of the thing that a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It was left out.
    Skipped,
    /// It is there, without something that the other form has no words for.
    Reduced,
}

/// One thing that could not be read or written as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where: the path of members and elements in a document, or the advisory that is written.
    pub position: String,
    /// What became of it.
    pub effect: Effect,
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.effect {
            Effect::Skipped => "skipped",
            Effect::Reduced => "reduced",
        };
        write!(out, "{effect} {}: {}", self.position, self.reason)
    }
}

/// The problems of one document. All are counted, and at most [`Problems::MAX`] collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    collected: Vec<Problem>,
    skipped: usize,
    reduced: usize,
}

impl Problems {
    /// Maximum number of problems that are collected.
    pub const MAX: usize = 1000;

    pub(crate) fn skip(&mut self, position: impl Into<String>, reason: impl Into<String>) {
        self.skipped += 1;
        self.keep(position.into(), Effect::Skipped, reason.into());
    }

    pub(crate) fn reduce(&mut self, position: impl Into<String>, reason: impl Into<String>) {
        self.reduced += 1;
        self.keep(position.into(), Effect::Reduced, reason.into());
    }

    fn keep(&mut self, position: String, effect: Effect, reason: String) {
        if self.collected.len() < Problems::MAX {
            self.collected.push(Problem { position, effect, reason });
        }
    }

    /// Takes in the problems of another document.
    pub fn append(&mut self, other: Problems) {
        self.skipped += other.skipped;
        self.reduced += other.reduced;
        let room = Problems::MAX.saturating_sub(self.collected.len());
        self.collected.extend(other.collected.into_iter().take(room));
    }

    /// Those that were collected: the first thousand.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.collected.iter()
    }

    /// How many things were left out.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// How many things lost something.
    pub fn reduced(&self) -> usize {
        self.reduced
    }

    /// Whether all went well.
    pub fn is_empty(&self) -> bool {
        self.skipped + self.reduced == 0
    }
}

/// Why one record cannot be read, and where it breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordError {
    pub(crate) position: String,
    pub(crate) reason: String,
}

/// A document of which nothing can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub(crate) String);

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

impl From<RecordError> for Unreadable {
    fn from(error: RecordError) -> Unreadable {
        Unreadable(format!("{}: {}", error.position, error.reason))
    }
}
