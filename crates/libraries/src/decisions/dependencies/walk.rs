//! The walk over what versions require, breadth first and bounded: level by level, so that the packages of a level are read together.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::requirement::{DependencyChoice, RequiredVersions, VersionRequirement};

/// How much a walk follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkLimits {
    /// Packages, with that of the first version.
    pub(super) packages: usize,
    pub(super) edges: usize,
    /// Levels of requirements; those of the first version are the first.
    pub(super) depth: usize,
}

/// A package and a version of it.
pub(super) type VersionNode = (String, String);

/// A requirement of a version, and what there is for it.
#[derive(Debug)]
pub(super) struct DependencyEdge {
    pub(super) from: VersionNode,
    pub(super) requirement: VersionRequirement,
    pub(super) choice: DependencyChoice,
}

/// A walk that has come to some level.
pub(super) struct DependencyWalk {
    limits: WalkLimits,
    depth: usize,
    level: Vec<VersionNode>,
    /// What the versions of the level require, before it is chosen.
    open: Vec<(VersionNode, VersionRequirement)>,
    seen: HashSet<VersionNode>,
    names: BTreeSet<String>,
    edges: Vec<DependencyEdge>,
    incomplete: bool,
}

impl DependencyWalk {
    /// A walk from a version.
    pub(super) fn from(first: VersionNode, limits: WalkLimits) -> DependencyWalk {
        DependencyWalk {
            limits,
            depth: 0,
            level: vec![first.clone()],
            open: Vec::new(),
            names: BTreeSet::from([first.0.clone()]),
            seen: HashSet::from([first]),
            edges: Vec::new(),
            incomplete: false,
        }
    }

    /// The versions whose requirements come next; none at the end.
    pub(super) fn level(&self) -> &[VersionNode] {
        &self.level
    }

    /// How many more requirements are taken.
    pub(super) fn room(&self) -> usize {
        if self.depth >= self.limits.depth { 0 } else { self.limits.edges.saturating_sub(self.edges.len()) }
    }

    /// Takes what the versions of the level require, where that is known. The packages among them that are new.
    pub(super) fn require(
        &mut self,
        mut requirements: HashMap<VersionNode, Vec<VersionRequirement>>,
    ) -> BTreeSet<String> {
        let mut new = BTreeSet::new();
        for node in std::mem::take(&mut self.level) {
            let Some(required) = requirements.remove(&node) else {
                self.incomplete = true;
                continue;
            };
            for requirement in required {
                let is_new = self.is_to_be_read(&requirement);
                if self.is_full(is_new) {
                    self.incomplete = true;
                    continue;
                }
                if is_new {
                    self.names.insert(requirement.name.clone());
                    new.insert(requirement.name.clone());
                }
                self.open.push((node.clone(), requirement));
            }
        }
        new
    }

    fn is_to_be_read(&self, requirement: &VersionRequirement) -> bool {
        !matches!(requirement.versions, RequiredVersions::Unclear(_)) && !self.names.contains(&requirement.name)
    }

    /// Whether one more requirement is too much, which may name a new package.
    fn is_full(&self, is_new: bool) -> bool {
        self.depth >= self.limits.depth
            || self.edges.len() + self.open.len() >= self.limits.edges
            || is_new && self.names.len() >= self.limits.packages
    }

    /// Chooses versions for what was required, and goes to the level of those that are new.
    pub(super) fn choose(&mut self, mut choice_of: impl FnMut(&VersionRequirement) -> DependencyChoice) {
        for (from, requirement) in std::mem::take(&mut self.open) {
            let choice = choice_of(&requirement);
            if let Some(version) = choice.chosen() {
                let node = (requirement.name.clone(), version.to_owned());
                if self.seen.insert(node.clone()) {
                    self.level.push(node);
                }
            }
            self.edges.push(DependencyEdge { from, requirement, choice });
        }
        self.depth += 1;
    }

    /// What was required in its order, and whether there is more. A requirement is optional, too, if only optional ones lead to it.
    pub(super) fn end(self, first: &VersionNode) -> (Vec<DependencyEdge>, bool) {
        let mut edges = self.edges;
        let mut of_node: HashMap<&VersionNode, Vec<VersionNode>> = HashMap::new();
        for edge in edges.iter().filter(|edge| !edge.requirement.is_optional) {
            if let Some(version) = edge.choice.chosen() {
                let node = (edge.requirement.name.clone(), version.to_owned());
                of_node.entry(&edge.from).or_default().push(node);
            }
        }
        let (mut needed, mut next) = (HashSet::from([first.clone()]), vec![first.clone()]);
        while let Some(node) = next.pop() {
            for to in of_node.remove(&node).into_iter().flatten() {
                if needed.insert(to.clone()) {
                    next.push(to);
                }
            }
        }
        for edge in &mut edges {
            edge.requirement.is_optional |= !needed.contains(&edge.from);
        }
        (edges, self.incomplete)
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
