//! Which cells of the matrix are tried: all of them with `BOWLINE_MATRIX=whole`.

use crate::fixture::{Caller, Fixture, Place};

/// Callers who are tried at a place where their standing matters, and at one other place, by method in turn; everyone else
/// is tried at every place.
const AT_HOME: [(&str, &str); 12] = [
    ("anonymous", "own"),
    ("expired", "own"),
    ("expired identity", "own"),
    ("other audience", "own"),
    ("stranger", "other organization"),
    ("puller", "own"),
    ("owner of the child", "child"),
    ("viewer of the other organization", "other organization"),
    ("owner of the other organization", "other organization"),
    ("person of a provider", "own"),
    ("operator.viewer", "own"),
    ("operator.admin", "own"),
];

/// A place that no call of the matrix is about: refusals at the other organization are compared with those here.
pub(crate) const COMPARED_ALONE: &str = "absent organization";

const OTHER: &str = "other organization";

pub(crate) struct Sample {
    is_whole: bool,
}

impl Sample {
    #[expect(clippy::disallowed_methods, reason = "the environment says how much is tried")]
    pub(crate) fn of_environment(fixture: &Fixture<'_>) -> Sample {
        for (name, home) in AT_HOME {
            assert!(fixture.callers.iter().any(|caller| caller.actor.name == name), "no caller is {name}");
            fixture.place(home);
        }
        Sample { is_whole: std::env::var("BOWLINE_MATRIX").is_ok_and(|size| size == "whole") }
    }

    /// Whether the case with this number is tried by the caller at the place.
    pub(crate) fn has(&self, fixture: &Fixture<'_>, number: usize, caller: &Caller, place: &Place) -> bool {
        if place.name == COMPARED_ALONE {
            return false;
        }
        let home = AT_HOME.iter().position(|(name, _)| *name == caller.actor.name);
        if self.is_whole {
            return true;
        }
        // Members of the first organization are strangers to the other one alike, so every third method is tried there.
        let Some(position) = home else { return place.name != OTHER || number.is_multiple_of(3) };
        let others: Vec<&str> =
            fixture.places.iter().map(|other| other.name).filter(|n| *n != COMPARED_ALONE).collect();
        place.name == AT_HOME[position].1 || place.name == others[(number + position) % others.len()]
    }
}
