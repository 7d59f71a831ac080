use crate::Uidp;

/// A contiguous range of UIDPs in byte order: `lower <= uid < upper`.
///
/// A subtree is one range, because `/` sorts right before `0`: `p` up to but excluding `p0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UidRange {
    /// First UIDP that may be in the range.
    pub lower: String,
    /// First UIDP past the range.
    pub upper: String,
}

impl UidRange {
    pub fn all() -> UidRange {
        UidRange { lower: String::new(), upper: "g".into() }
    }

    /// The resource and everything below it.
    pub fn subtree(uid: &str) -> UidRange {
        UidRange { lower: uid.into(), upper: format!("{uid}0") }
    }

    /// Everything below the resource, itself left out.
    pub fn below(uid: &str) -> UidRange {
        UidRange { lower: format!("{uid}/"), upper: format!("{uid}0") }
    }

    pub fn single(uid: &str) -> UidRange {
        UidRange { lower: uid.into(), upper: just_after(uid) }
    }

    /// Whether the UIDP is in the range.
    pub fn contains(&self, uid: &str) -> bool {
        self.lower.as_str() <= uid && uid < self.upper.as_str()
    }

    /// The range of a subtree given as a UIDP.
    pub fn of(uidp: &Uidp) -> UidRange {
        UidRange::subtree(uidp.as_str())
    }
}

/// The text right after the UIDP and right before whatever is below it: no UIDP lies between the two.
pub fn just_after(uid: &str) -> String {
    format!("{uid}/")
}

/// Sorts the ranges and joins those that overlap.
pub fn merge(mut ranges: Vec<UidRange>) -> Vec<UidRange> {
    ranges.retain(|range| range.lower < range.upper);
    ranges.sort();
    let mut merged: Vec<UidRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.lower <= last.upper => {
                if range.upper > last.upper {
                    last.upper = range.upper;
                }
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// What is in both lists of sorted, disjoint ranges; sorted and disjoint itself.
pub fn intersect(left: &[UidRange], right: &[UidRange]) -> Vec<UidRange> {
    let (mut i, mut j) = (0, 0);
    let mut both = Vec::new();
    while let (Some(a), Some(b)) = (left.get(i), right.get(j)) {
        let lower = a.lower.as_str().max(&b.lower);
        let upper = a.upper.as_str().min(&b.upper);
        if lower < upper {
            both.push(UidRange { lower: lower.into(), upper: upper.into() });
        }
        if a.upper < b.upper {
            i += 1;
        } else {
            j += 1;
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ranges() -> impl Strategy<Value = Vec<UidRange>> {
        proptest::collection::vec(("[a-e]{1,2}", "[a-e]{1,2}"), 0..6)
            .prop_map(|pairs| merge(pairs.into_iter().map(|(lower, upper)| UidRange { lower, upper }).collect()))
    }

    #[test]
    fn a_subtree_holds_itself_and_what_is_below() {
        let range = UidRange::subtree("ab");
        assert!(range.contains("ab") && range.contains("ab/cd") && range.contains("ab/0/1"));
        assert!(!range.contains("ab0") && !range.contains("abc") && !range.contains("aa"));
        assert!(!UidRange::below("ab").contains("ab"));
    }

    #[test]
    fn a_single_resource_is_without_what_is_below_it_and_fit_for_every_engine() {
        let range = UidRange::single("ab");
        assert!(range.contains("ab") && !range.contains("ab/cd") && !range.contains("aa") && !range.contains("ab0"));
        assert!(!range.upper.contains('\0'));
    }

    proptest! {
        #[test]
        fn intersection_is_pointwise(left in ranges(), right in ranges(), point in "[a-e]{1,3}") {
            let contains = |set: &[UidRange]| set.iter().any(|range| range.contains(&point));
            let both = intersect(&left, &right);
            prop_assert_eq!(contains(&both), contains(&left) && contains(&right));
            prop_assert_eq!(merge(both.clone()).iter().any(|range| range.contains(&point)), contains(&both));
        }
    }
}
