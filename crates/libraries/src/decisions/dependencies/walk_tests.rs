use super::*;

use crate::decisions::dependencies::requirement;

const LIMITS: WalkLimits = WalkLimits { packages: 500, edges: 2000, depth: 20 };

/// What each package requires, all of which have the version 1.0.0 alone: a `?` marks what is optional, a `!` what is withheld.
type Map = HashMap<&'static str, &'static [&'static str]>;

fn node(name: &str) -> VersionNode {
    (name.into(), "1.0.0".into())
}

fn requirement(mark: &str) -> VersionRequirement {
    let name = mark.trim_start_matches('?');
    let (_, versions) = requirement::npm("", "^1.0.0");
    VersionRequirement { name: name.into(), text: "^1.0.0".into(), is_optional: mark.starts_with('?'), versions }
}

/// Walks over a map; `from to` of each edge with a `?` for those that are optional, whether there is more, and what was read.
fn walked(map: &Map, limits: WalkLimits) -> (Vec<String>, bool, Vec<String>) {
    let first = node("root");
    let (mut walk, mut read) = (DependencyWalk::from(first.clone(), limits), Vec::new());
    while !walk.level().is_empty() {
        let declared = walk.level().iter().filter_map(|node| {
            let required = map.get(node.0.as_str())?;
            Some((node.clone(), required.iter().map(|mark| requirement(mark)).collect()))
        });
        let declared = declared.collect();
        read.extend(walk.require(declared));
        walk.choose(|requirement| match requirement.name.strip_prefix('!') {
            Some(_) => DependencyChoice::Held("1.0.0".into()),
            None if map.contains_key(requirement.name.as_str()) => DependencyChoice::Allowed("1.0.0".into()),
            None => DependencyChoice::Unknown("absent"),
        });
    }
    let (edges, incomplete) = walk.end(&first);
    let shown = |edge: &DependencyEdge| {
        let mark = if edge.requirement.is_optional { "?" } else { "" };
        format!("{} {mark}{}", edge.from.0, edge.requirement.name)
    };
    (edges.iter().map(shown).collect(), incomplete, read)
}

#[test]
fn cycles_end_and_diamonds_are_read_once() {
    let cycle = Map::from([("root", &["a"][..]), ("a", &["b"]), ("b", &["a", "root"])]);
    let (edges, incomplete, read) = walked(&cycle, LIMITS);
    assert_eq!(edges, ["root a", "a b", "b a", "b root"]);
    assert_eq!((incomplete, read), (false, vec!["a".to_owned(), "b".into()]));

    let diamond = Map::from([("root", &["b", "a"][..]), ("a", &["c"]), ("b", &["c"]), ("c", &["d"]), ("d", &[])]);
    let (edges, incomplete, read) = walked(&diamond, LIMITS);
    assert_eq!(edges, ["root b", "root a", "b c", "a c", "c d"], "breadth first, in the order of declarations");
    assert_eq!((incomplete, read.len()), (false, 4));
}

#[test]
fn withheld_versions_are_followed_and_unknown_ones_are_not() {
    let map = Map::from([("root", &["!held", "absent"][..]), ("!held", &["deep"]), ("deep", &[])]);
    let (edges, incomplete, _) = walked(&map, LIMITS);
    assert_eq!((edges, incomplete), (vec!["root !held".to_owned(), "root absent".into(), "!held deep".into()], false));
}

#[test]
fn what_only_optional_requirements_lead_to_is_optional() {
    let map = Map::from([
        ("root", &["?a", "b"][..]),
        ("a", &["c", "d"]),
        ("b", &["d"]),
        ("c", &["e"]),
        ("d", &["e"]),
        ("e", &[]),
    ]);
    let (edges, ..) = walked(&map, LIMITS);
    assert_eq!(edges, ["root ?a", "root b", "a ?c", "a ?d", "b d", "c ?e", "d e"]);
}

#[test]
fn a_walk_is_bounded() {
    let map = Map::from([("root", &["a", "b"][..]), ("a", &["c"]), ("b", &["a"]), ("c", &["d"]), ("d", &[])]);
    let of = |limits: WalkLimits| {
        let (edges, incomplete, _) = walked(&map, limits);
        (edges, incomplete)
    };
    let list = |list: &[&str]| list.iter().map(|edge| (*edge).to_owned()).collect::<Vec<_>>();
    assert_eq!(of(WalkLimits { depth: 1, ..LIMITS }), (list(&["root a", "root b"]), true));
    assert_eq!(of(WalkLimits { edges: 3, ..LIMITS }), (list(&["root a", "root b", "a c"]), true));
    // A requirement of a package that is known already is not too much.
    assert_eq!(of(WalkLimits { packages: 3, ..LIMITS }), (list(&["root a", "root b", "b a"]), true));
    let exact = WalkLimits { packages: 5, edges: 5, depth: 4 };
    assert_eq!(of(exact), (list(&["root a", "root b", "a c", "b a", "c d"]), false), "nothing is missing");
}

#[test]
fn versions_without_requirements_that_are_known_leave_the_walk_incomplete() {
    let map = Map::from([("root", &["!held"][..])]);
    assert_eq!(walked(&map, LIMITS), (vec!["root !held".to_owned()], true, vec!["!held".to_owned()]));
}
