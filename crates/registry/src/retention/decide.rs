//! Which manifests of a repository retention removes: a function of what is there and of the rules alone.

use std::cmp::Reverse;
use std::collections::HashMap;

use bowline_core::Micros;

/// How long a manifest stays that no tag names: who pushes an index pushes its members before.
const GRACE: Micros = 24 * 3600 * 1_000_000;

/// A manifest of the repository, as far as the decision looks at it.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) digest: String,
    pub(super) pushed_at: Micros,
    pub(super) pulled_at: Option<Micros>,
    pub(super) has_tags: bool,
    /// Whether it has a tag that a rule keeps, or that is immutable.
    pub(super) is_retained_by_name: bool,
    /// What it refers to, there or not.
    pub(super) subjects: Vec<String>,
    /// The members of an index, there or not.
    pub(super) members: Vec<String>,
}

/// The rules that are not about names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) keep_last: usize,
    /// Absent where age keeps nothing.
    pub(super) keep_for: Option<Micros>,
}

/// Manifests by their position, and what each brings along: its members, and what refers to it.
struct Graph {
    along: Vec<Vec<usize>>,
    is_member: Vec<bool>,
}

impl Graph {
    fn of(all: &[Stored]) -> Graph {
        let position: HashMap<&str, usize> = all.iter().enumerate().map(|(at, one)| (&*one.digest, at)).collect();
        let mut graph = Graph { along: vec![Vec::new(); all.len()], is_member: vec![false; all.len()] };
        for (at, one) in all.iter().enumerate() {
            for member in one.members.iter().filter_map(|digest| position.get(&**digest)) {
                graph.along[at].push(*member);
                graph.is_member[*member] = true;
            }
            for subject in one.subjects.iter().filter_map(|digest| position.get(&**digest)) {
                graph.along[*subject].push(at);
            }
        }
        graph
    }

    /// Marks these and everything that they bring along, as far as `is_wanted` goes.
    fn mark(&self, from: Vec<usize>, is_wanted: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut marked = vec![false; self.along.len()];
        let mut waiting = from;
        while let Some(at) = waiting.pop() {
            if is_wanted(at) && !std::mem::replace(&mut marked[at], true) {
                waiting.extend(&self.along[at]);
            }
        }
        marked
    }
}

/// For each manifest whether it goes.
pub(super) fn doomed(all: &[Stored], rules: Rules, now: Micros) -> Vec<bool> {
    let graph = Graph::of(all);
    // What refers to something is no image of its own, even when that something is gone.
    let mut images: Vec<usize> =
        (0..all.len()).filter(|at| !graph.is_member[*at] && all[*at].subjects.is_empty()).collect();
    images.sort_by_key(|at| (Reverse(all[*at].pushed_at), &all[*at].digest));
    images.truncate(rules.keep_last);
    let stays = |one: &Stored| {
        let used_at = one.pulled_at.map_or(one.pushed_at, |pulled_at| pulled_at.max(one.pushed_at));
        one.is_retained_by_name
            || rules.keep_for.is_some_and(|lasts| now.saturating_sub(used_at) < lasts)
            || (!one.has_tags && now.saturating_sub(one.pushed_at) < GRACE)
    };
    let mut kept = images;
    kept.extend((0..all.len()).filter(|at| stays(&all[*at])));
    graph.mark(kept, |_| true).into_iter().map(|is_kept| !is_kept).collect()
}

/// The positions of about `wanted` doomed manifests, the oldest first. What goes takes along what is doomed with it:
/// a member without its index would look like an image of its own.
pub(super) fn batch(all: &[Stored], doomed: &[bool], limit: usize) -> Vec<usize> {
    let graph = Graph::of(all);
    let mut has_parent = vec![false; all.len()];
    for (at, along) in graph.along.iter().enumerate().filter(|(at, _)| doomed[*at]) {
        along.iter().filter(|below| **below != at).for_each(|below| has_parent[*below] = true);
    }
    let by_age = |at: &usize| (all[*at].pushed_at, all[*at].digest.clone());
    let mut first: Vec<usize> = (0..all.len()).filter(|at| doomed[*at] && !has_parent[*at]).collect();
    if first.is_empty() {
        // Referrers by tag may stand in a circle, and go together.
        first = (0..all.len()).filter(|at| doomed[*at]).collect();
    }
    first.sort_by_key(by_age);
    let mut chosen = vec![false; all.len()];
    let mut count = 0;
    for one in first {
        if count >= limit {
            break;
        }
        for (at, _) in graph.mark(vec![one], |at| doomed[at]).iter().enumerate().filter(|(_, marked)| **marked) {
            count += usize::from(!std::mem::replace(&mut chosen[at], true));
        }
    }
    let mut batch: Vec<usize> = (0..all.len()).filter(|at| chosen[*at]).collect();
    batch.sort_by_key(by_age);
    batch
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
