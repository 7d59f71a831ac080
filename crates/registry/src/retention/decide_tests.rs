use proptest::prelude::*;

use super::*;

const DAY: Micros = GRACE;
const NOW: Micros = 1000 * DAY;

fn stored(digest: usize, age: Micros) -> Stored {
    Stored {
        digest: format!("{digest:03}"),
        pushed_at: NOW - age,
        pulled_at: None,
        has_tags: true,
        is_retained_by_name: false,
        subjects: Vec::new(),
        members: Vec::new(),
    }
}

fn removed(all: &[Stored], keep_last: usize, keep_days: Micros) -> Vec<&str> {
    let rules = Rules { keep_last, keep_for: Some(keep_days * DAY).filter(|lasts| *lasts > 0) };
    let doomed = doomed(all, rules, NOW);
    all.iter().zip(doomed).filter(|(_, doomed)| *doomed).map(|(one, _)| &*one.digest).collect()
}

#[test]
fn the_newest_images_stay() {
    let all = [stored(1, 9), stored(2, 7), stored(3, 8)];
    assert_eq!(removed(&all, 2, 0), ["001"]);
    assert_eq!(removed(&all, 1, 0), ["001", "003"]);
    assert_eq!(removed(&all, 3, 0), [""; 0]);
}

#[test]
fn what_is_used_or_named_stays() {
    let mut all = [stored(1, 30 * DAY), stored(2, 30 * DAY), stored(3, 3 * DAY)];
    assert_eq!(removed(&all, 0, 7), ["001", "002"]);
    all[0].pulled_at = Some(NOW - 2 * DAY);
    assert_eq!(removed(&all, 0, 7), ["002"]);
    all[1].is_retained_by_name = true;
    assert_eq!(removed(&all, 0, 7), [""; 0]);
}

#[test]
fn members_and_signatures_share_the_fate_of_their_image() {
    // Two indexes with a member of their own and one of both; a signature of each member and of each index.
    let mut all: Vec<Stored> = (0..9).map(|n| stored(n, (30 - n as Micros) * DAY)).collect();
    all[3].members = vec!["000".into(), "001".into()];
    all[4].members = vec!["001".into(), "002".into(), "absent".into()];
    for (signature, subject) in [(5, "000"), (6, "002"), (7, "003"), (8, "004")] {
        all[signature].subjects = vec![subject.into()];
    }
    assert_eq!(removed(&all, 1, 0), ["000", "003", "005", "007"]);
}

#[test]
fn a_late_signature_of_a_removed_image_pushes_no_image_out() {
    let mut all = [stored(1, 9 * DAY), stored(2, DAY / 2)];
    all[1].subjects = vec!["gone".into()];
    all[1].has_tags = false;
    assert_eq!(removed(&all, 1, 0), [""; 0]);
}

#[test]
fn what_has_no_tag_stays_for_a_day() {
    let mut all = [stored(1, DAY / 2), stored(2, 2 * DAY), stored(3, 0)];
    for one in &mut all {
        one.has_tags = false;
    }
    assert_eq!(removed(&all, 1, 0), ["002"]);
}

/// What is drawn for a manifest.
#[derive(Clone, Debug)]
struct Drawn {
    has_tags: bool,
    kind: u8,
    pulled: Option<i64>,
    named: [u8; 3],
}

/// Manifests in the order in which they were pushed: members and subjects come before what names them.
fn repository() -> impl Strategy<Value = Vec<Stored>> {
    let age = proptest::collection::vec(0..40i64, 24);
    let one = (any::<bool>(), 0..8u8, proptest::option::of(0..40i64), any::<[u8; 3]>())
        .prop_map(|(has_tags, kind, pulled, named)| Drawn { has_tags, kind, pulled, named });
    (age, proptest::collection::vec(one, 0..24)).prop_map(|(mut ages, drawn)| {
        ages.sort_by_key(|age| Reverse(*age));
        // Later ones are younger, also within one moment.
        let build = |(at, one): (usize, &Drawn)| one.pushed(at, ages[at] * DAY / 2 + 100 - at as i64);
        drawn.iter().enumerate().map(build).collect()
    })
}

impl Drawn {
    fn pushed(&self, at: usize, age: Micros) -> Stored {
        let earlier = |draw: u8| format!("{:03}", usize::from(draw) % at.max(1));
        Stored {
            has_tags: self.has_tags,
            is_retained_by_name: self.has_tags && self.kind == 0,
            pulled_at: self.pulled.map(|age| NOW - age * DAY / 2),
            members: if at > 0 && self.kind == 1 { self.named.map(earlier).into() } else { Vec::new() },
            subjects: if at > 0 && self.kind > 5 { vec![earlier(self.named[0])] } else { Vec::new() },
            ..stored(at, age)
        }
    }
}

proptest! {
    #[test]
    fn what_stays_is_whole(all in repository(), keep_last in 0..6usize, keep_days in 0..15i64) {
        let gone = removed(&all, keep_last, keep_days);
        let is_gone = |digest: &str| gone.contains(&digest);
        for one in &all {
            if !is_gone(&one.digest) {
                prop_assert!(one.members.iter().all(|member| !is_gone(member)), "{one:?} lost a member");
                let referrers = all.iter().filter(|other| other.subjects.contains(&one.digest));
                prop_assert!(referrers.into_iter().all(|other| !is_gone(&other.digest)), "{one:?} lost a referrer");
            }
            prop_assert!(!(one.is_retained_by_name && is_gone(&one.digest)));
        }
        // More rules keep more.
        for more in [removed(&all, keep_last + 1, keep_days), removed(&all, keep_last, keep_days.max(1) + 1)] {
            prop_assert!(more.iter().all(|digest| is_gone(digest)));
        }
    }

    /// In parts or at once: the same goes, and then nothing more.
    #[test]
    fn parts_add_up_to_the_whole(all in repository(), keep_last in 0..6usize, wanted in 1..5usize) {
        let rules = Rules { keep_last, keep_for: Some(5 * DAY) };
        let whole = removed(&all, keep_last, 5);
        let (mut left, mut gone) = (all.clone(), Vec::new());
        loop {
            let marks = doomed(&left, rules, NOW);
            let part = batch(&left, &marks, wanted);
            prop_assert_eq!(part.is_empty(), marks.iter().all(|mark| !mark));
            if part.is_empty() {
                break;
            }
            let digests: Vec<String> = part.iter().map(|at| left[*at].digest.clone()).collect();
            left.retain(|one| !digests.contains(&one.digest));
            gone.extend(digests);
        }
        gone.sort();
        prop_assert_eq!(gone, whole);
    }
}
