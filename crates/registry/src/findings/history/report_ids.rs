//! The vulnerabilities of a report as numbers: many reports have the same ones, and their texts are kept once.

use std::collections::HashMap;

use crate::vuln_counts::Ids;

/// The number of a vulnerability's id.
pub(super) type IdNumber = u32;

/// Ids by the order in which they were first met.
#[derive(Default)]
pub(super) struct IdNumbers {
    numbers: HashMap<Box<str>, IdNumber>,
}

impl IdNumbers {
    fn of(&mut self, id: &str) -> IdNumber {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        // There are fewer ids than bytes of all reports that are read.
        let next = self.numbers.len() as IdNumber;
        self.numbers.insert(id.into(), next);
        next
    }
}

/// The ids of a report by number of their severity.
#[derive(Clone, Debug, Default)]
pub(super) struct ReportIds {
    by_severity: Box<[(i32, Box<[IdNumber]>)]>,
}

impl ReportIds {
    pub(super) fn new(ids: &Ids, numbers: &mut IdNumbers) -> ReportIds {
        let by_severity = ids.iter().map(|(severity, ids)| (*severity, ids.iter().map(|id| numbers.of(id)).collect()));
        ReportIds { by_severity: by_severity.collect() }
    }

    /// Each severity with its ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, &[IdNumber])> {
        self.by_severity.iter().map(|(severity, ids)| (*severity, &**ids))
    }

    /// The ids of all severities.
    pub(super) fn all(&self) -> impl Iterator<Item = IdNumber> {
        self.by_severity.iter().flat_map(|(_, ids)| ids.iter().copied())
    }

    /// How many ids there are.
    pub(super) fn count(&self) -> usize {
        self.by_severity.iter().map(|(_, ids)| ids.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_the_same_number_in_every_report() {
        let mut numbers = IdNumbers::default();
        let ids = |ids: &[&str]| Ids::from([(3, ids.iter().map(ToString::to_string).collect())]);
        let first = ReportIds::new(&ids(&["a", "b"]), &mut numbers);
        let second = ReportIds::new(&ids(&["b", "c"]), &mut numbers);
        assert_eq!(first.iter().collect::<Vec<_>>(), [(3, &[0, 1][..])]);
        assert_eq!((second.all().collect::<Vec<_>>(), second.count()), (vec![1, 2], 2));
    }
}
