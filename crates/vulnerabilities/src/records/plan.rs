//! What a batch does to the rows of its source, decided before anything is written.

use super::import_row::Counts;

/// Digest of a record.
pub(super) type Digest = [u8; 32];

/// A row that is visible, or that the import has staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// Number of the row.
    pub(super) n: i64,
    pub(super) digest: Vec<u8>,
    pub(super) licence: String,
}

/// What is stored of one id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) visible: Option<Stored>,
    /// The import ends the visible row already.
    pub(super) ends: bool,
    pub(super) staged: Option<Stored>,
}

/// What is to be done to rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Visible rows that the import ends.
    pub(super) end: Vec<i64>,
    /// Visible rows that continue after all.
    pub(super) revive: Vec<i64>,
    /// Staged rows that go.
    pub(super) drop: Vec<i64>,
    pub(super) counts: Counts,
}

/// What becomes of a record that an import stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutOutcome {
    New,
    Unchanged,
    /// The import has another content of the id, which stays.
    Conflict,
}

impl Plan {
    /// Adds a record. With `replace` it replaces what the import staged before.
    pub(super) fn put(&mut self, known: &Known, digest: &Digest, licence: &str, replace: bool) -> PutOutcome {
        let same = |stored: &Stored| stored.digest == digest && stored.licence == licence;
        match &known.staged {
            Some(staged) if same(staged) => return PutOutcome::Unchanged,
            Some(_) if !replace => return PutOutcome::Conflict,
            Some(staged) => {
                self.drop.push(staged.n);
                return match &known.visible {
                    Some(visible) if same(visible) => {
                        self.revive.push(visible.n);
                        self.counts.changed -= 1;
                        PutOutcome::Unchanged
                    }
                    _ => PutOutcome::New,
                };
            }
            None => {}
        }
        match &known.visible {
            None => self.counts.added += 1,
            Some(visible) if same(visible) => {
                if known.ends {
                    self.revive.push(visible.n);
                    self.counts.removed -= 1;
                }
                return PutOutcome::Unchanged;
            }
            Some(visible) => {
                self.counts.changed += 1;
                if known.ends {
                    self.counts.removed -= 1;
                } else {
                    self.end.push(visible.n);
                }
            }
        }
        PutOutcome::New
    }

    /// A record is gone; true if there was one.
    pub(super) fn remove(&mut self, known: &Known) -> bool {
        if let Some(staged) = &known.staged {
            self.drop.push(staged.n);
            match &known.visible {
                Some(_) => {
                    self.counts.changed -= 1;
                    self.counts.removed += 1;
                }
                None => self.counts.added -= 1,
            }
            return true;
        }
        match &known.visible {
            Some(visible) if !known.ends => {
                self.end.push(visible.n);
                self.counts.removed += 1;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn digest(content: u8) -> Digest {
        [content; 32]
    }

    /// One id, as the tables have it.
    #[derive(Clone, Debug, Default)]
    struct Model {
        known: Known,
        rows: i64,
    }

    impl Model {
        fn apply(&mut self, plan: &Plan, written: Option<u8>) {
            if !plan.drop.is_empty() {
                self.known.staged = None;
            }
            self.known.ends |= !plan.end.is_empty();
            self.known.ends &= plan.revive.is_empty();
            if let Some(content) = written {
                self.rows += 1;
                self.known.staged = Some(stored(self.rows, content));
            }
        }

        /// What is visible once the import is committed.
        fn committed(&self) -> Option<Vec<u8>> {
            let goes_on = self.known.visible.as_ref().filter(|_| !self.known.ends);
            self.known.staged.as_ref().or(goes_on).map(|stored| stored.digest.clone())
        }
    }

    fn stored(n: i64, content: u8) -> Stored {
        Stored { n, digest: digest(content).to_vec(), licence: "A".into() }
    }

    #[test]
    fn the_first_of_two_contents_stays_unless_it_is_to_be_replaced() {
        let known = Known { staged: Some(stored(1, 1)), ..Known::default() };
        assert_eq!(Plan::default().put(&known, &digest(1), "A", false), PutOutcome::Unchanged);
        assert_eq!(Plan::default().put(&known, &digest(2), "A", false), PutOutcome::Conflict);
        let mut plan = Plan::default();
        assert_eq!(plan.put(&known, &digest(2), "A", true), PutOutcome::New);
        assert_eq!((plan.drop, plan.counts), (vec![1], Counts::default()));
    }

    #[test]
    fn another_licence_is_another_content() {
        let known = Known { visible: Some(stored(1, 1)), ..Known::default() };
        assert_eq!(Plan::default().put(&known, &digest(1), "A", false), PutOutcome::Unchanged);
        assert_eq!(Plan::default().put(&known, &digest(1), "B", false), PutOutcome::New);
    }

    proptest! {
        /// Whatever an import does in whatever order, its counts are the difference between before and after, and the
        /// last thing said of an id is what holds.
        #[test]
        fn counts_are_the_difference(
            before in proptest::option::of(0_u8..3),
            steps in proptest::collection::vec(proptest::option::of(0_u8..3), 0..8),
        ) {
            let mut model = Model::default();
            model.known.visible = before.map(|content| stored(0, content));
            let mut counts = BTreeMap::from([("added", 0), ("changed", 0), ("removed", 0)]);
            let mut expected = before;
            for step in steps {
                let mut plan = Plan::default();
                expected = step;
                let written = if let Some(content) = step {
                    (plan.put(&model.known, &digest(content), "A", true) == PutOutcome::New).then_some(content)
                } else {
                    plan.remove(&model.known);
                    None
                };
                *counts.get_mut("added").unwrap() += plan.counts.added;
                *counts.get_mut("changed").unwrap() += plan.counts.changed;
                *counts.get_mut("removed").unwrap() += plan.counts.removed;
                model.apply(&plan, written);
            }
            prop_assert_eq!(model.committed(), expected.map(|content| digest(content).to_vec()));
            let difference = match (before, expected) {
                (None, Some(_)) => [1, 0, 0],
                (Some(old), Some(new)) if old != new => [0, 1, 0],
                (Some(_), None) => [0, 0, 1],
                _ => [0, 0, 0],
            };
            prop_assert_eq!([counts["added"], counts["changed"], counts["removed"]], difference);
        }
    }
}
