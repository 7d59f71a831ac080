//! How old a version is: by its upstream, or by when this server saw it first.

use bowline_core::Micros;

/// From when on the age of versions of upstreams counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgeSource {
    /// From the time that the upstream says.
    #[default]
    Upstream,
    /// From the later of that and when this server saw it first, if an earlier list of the package did not have it.
    NewVersions,
    /// From the later of both, also where the first list of the package had it.
    AllVersions,
}

/// When this server saw a version at its upstream first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstSeen {
    pub at: Micros,
    /// Whether an earlier list of its package did not have it, so that it is not known to be older.
    pub is_new: bool,
}

impl FirstSeen {
    /// The earlier of two for the same bytes. Absent is earlier than any time: it was before this server noted that.
    pub fn earlier(one: Option<FirstSeen>, other: Option<FirstSeen>) -> Option<FirstSeen> {
        let (one, other) = (one?, other?);
        Some(if other.at < one.at { other } else { one })
    }
}

/// Since when a version is public, by each source, in microseconds; absent where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Age {
    /// As its upstream says.
    pub published_at: Option<Micros>,
    /// When this server saw it first.
    pub first_seen_at: Option<Micros>,
    new_versions: Option<Micros>,
    all_versions: Option<Micros>,
}

impl Age {
    /// The age of what no one dates.
    pub const UNKNOWN: Age = Age { published_at: None, first_seen_at: None, new_versions: None, all_versions: None };

    /// The age of what no upstream supplies, or was not seen there.
    pub fn published(at: Option<Micros>) -> Age {
        Age::of(at, None)
    }

    /// The age of a file of an upstream.
    pub fn of(published_at: Option<Micros>, first_seen: Option<FirstSeen>) -> Age {
        let seen = |seen: FirstSeen| seen.at;
        let new = first_seen.filter(|seen| seen.is_new).map(seen);
        let first_seen_at = first_seen.map(seen);
        // None is less than any time: what no one dates is as old as it is known here.
        Age {
            published_at,
            first_seen_at,
            new_versions: published_at.max(new),
            all_versions: published_at.max(first_seen_at),
        }
    }

    /// The age of a version of several files: that of the oldest, by each source.
    #[must_use]
    pub fn or_older(self, other: Age) -> Age {
        let earlier = |one: Option<Micros>, other: Option<Micros>| one.into_iter().chain(other).min();
        Age {
            published_at: earlier(self.published_at, other.published_at),
            first_seen_at: earlier(self.first_seen_at, other.first_seen_at),
            new_versions: earlier(self.new_versions, other.new_versions),
            all_versions: earlier(self.all_versions, other.all_versions),
        }
    }

    /// Since when it is public, by a source.
    pub fn since(&self, source: AgeSource) -> Option<Micros> {
        match source {
            AgeSource::Upstream => self.published_at,
            AgeSource::NewVersions => self.new_versions,
            AgeSource::AllVersions => self.all_versions,
        }
    }

    /// The same for a freeze. A package whose first list came after its cutoff is not withheld as a whole: of the first
    /// list, the upstream's times count.
    pub fn since_for_freeze(&self, source: AgeSource) -> Option<Micros> {
        match source {
            AgeSource::Upstream => self.published_at,
            AgeSource::NewVersions | AgeSource::AllVersions => self.new_versions,
        }
    }

    /// When it was first seen here, if by a source that decides how old it is.
    pub fn first_seen_if_decisive(&self, source: AgeSource) -> Option<Micros> {
        self.first_seen_if(self.since(source))
    }

    /// The same for a freeze.
    pub fn first_seen_if_decisive_for_freeze(&self, source: AgeSource) -> Option<Micros> {
        self.first_seen_if(self.since_for_freeze(source))
    }

    fn first_seen_if(&self, since: Option<Micros>) -> Option<Micros> {
        self.first_seen_at.filter(|seen| since == Some(*seen) && since != self.published_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: [AgeSource; 3] = [AgeSource::Upstream, AgeSource::NewVersions, AgeSource::AllVersions];

    fn by_each(age: Age) -> [Option<Micros>; 3] {
        SOURCES.map(|source| age.since(source))
    }

    #[test]
    fn the_later_of_both_times_counts() {
        let seen = |at, is_new| Some(FirstSeen { at, is_new });
        for (published, seen, wanted) in [
            (Some(5), None, [Some(5), Some(5), Some(5)]),
            (Some(5), seen(9, true), [Some(5), Some(9), Some(9)]),
            (Some(5), seen(9, false), [Some(5), Some(5), Some(9)]),
            // One that its upstream dates into the future.
            (Some(9), seen(5, true), [Some(9), Some(9), Some(9)]),
            (None, seen(5, true), [None, Some(5), Some(5)]),
            (None, seen(5, false), [None, None, Some(5)]),
            (None, None, [None, None, None]),
        ] {
            assert_eq!(by_each(Age::of(published, seen)), wanted, "{published:?} {seen:?}");
        }
    }

    #[test]
    fn the_same_bytes_were_seen_when_they_came_first() {
        let seen = |at, is_new| Some(FirstSeen { at, is_new });
        for (one, other, earlier) in [
            (seen(9, true), seen(5, false), seen(5, false)),
            (seen(9, false), seen(5, true), seen(5, true)),
            (seen(5, false), seen(5, true), seen(5, false)),
            (seen(9, true), None, None),
            (None, seen(9, true), None),
        ] {
            assert_eq!(FirstSeen::earlier(one, other), earlier, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_version_is_as_old_as_its_oldest_file() {
        let of_first_list = Age::of(Some(5), Some(FirstSeen { at: 6, is_new: false }));
        let later = Age::of(Some(1), Some(FirstSeen { at: 9, is_new: true }));
        let both = [Some(1), Some(5), Some(6)];
        assert_eq!(by_each(of_first_list.or_older(later)), both);
        assert_eq!(by_each(later.or_older(of_first_list)), both);
        assert_eq!(by_each(Age::default().or_older(later)), [Some(1), Some(9), Some(9)]);
    }

    #[test]
    fn freezes_count_first_lists_by_their_upstream() {
        let of_first_list = Age::of(Some(5), Some(FirstSeen { at: 9, is_new: false }));
        let new = Age::of(Some(5), Some(FirstSeen { at: 9, is_new: true }));
        assert_eq!(SOURCES.map(|source| of_first_list.since_for_freeze(source)), [Some(5); 3]);
        assert_eq!(SOURCES.map(|source| new.since_for_freeze(source)), [Some(5), Some(9), Some(9)]);
    }

    #[test]
    fn first_seen_decides_where_it_is_later() {
        let backdated = Age::of(Some(5), Some(FirstSeen { at: 9, is_new: true }));
        assert_eq!(SOURCES.map(|source| backdated.first_seen_if_decisive(source)), [None, Some(9), Some(9)]);
        let young = Age::of(Some(9), Some(FirstSeen { at: 5, is_new: true }));
        assert_eq!(SOURCES.map(|source| young.first_seen_if_decisive(source)), [None; 3]);
    }
}
