//! Security databases of distributions in Alpine's form: which version of a package fixes which
//! vulnerabilities.

use std::collections::{BTreeMap, BTreeSet};

use crate::cursor::{Cursor, SHORT};
use crate::model::{Advisory, Artifact, Assessment, Event, FalsePositive, Provenance, own_and_others};
use crate::problem::{Problems, RecordError, Unreadable};
use crate::tree::{Limits, Node};
use crate::vex::describe;

/// The header of a database.
#[derive(Clone, Debug, Default)]
pub struct Secdb {
    /// Name of the repository of packages.
    pub repository: String,
    /// URL prefix of the repository.
    pub prefix: String,
    /// Architectures of the packages, sorted.
    pub architectures: Vec<String>,
}

/// The version that means: no version was ever affected.
const NEVER: &str = "0";

impl Secdb {
    /// The text before the packages.
    pub(crate) fn head(&self) -> Vec<u8> {
        let head = Node::map([
            ("apkurl", Some(Node::text("{{urlprefix}}/{{reponame}}/{{arch}}/{{pkg.name}}-{{pkg.ver}}.apk"))),
            ("archs", Some(Node::texts(&self.architectures))),
            ("reponame", Some(Node::text(&self.repository))),
            ("urlprefix", Some(Node::text(&self.prefix))),
        ]);
        let mut text = compact(&head);
        text.truncate(text.len().saturating_sub(1));
        text.push_str(",\"packages\":[");
        text.into_bytes()
    }

    /// The text after the packages.
    pub(crate) fn tail() -> Vec<u8> {
        b"\n]}\n".to_vec()
    }
}

fn compact(node: &Node) -> String {
    serde_json::to_string(node).unwrap_or_default()
}

/// State of one vulnerability in the components of a package.
#[derive(Default)]
struct Standing {
    names: BTreeSet<String>,
    versions: BTreeSet<String>,
    is_open: bool,
}

/// The vulnerabilities of a package. Advisories that share an id are about the same one.
#[derive(Default)]
struct Standings {
    all: Vec<Standing>,
    by_name: BTreeMap<String, usize>,
}

impl Standings {
    /// The vulnerability with any of these names; merges those that the names connect.
    fn of(&mut self, names: Vec<String>) -> &mut Standing {
        let known: BTreeSet<usize> = names.iter().filter_map(|name| self.by_name.get(name).copied()).collect();
        let at = known.first().copied().unwrap_or(self.all.len());
        if at == self.all.len() {
            self.all.push(Standing::default());
        }
        for other in known.into_iter().skip(1) {
            let other = std::mem::take(&mut self.all[other]);
            self.by_name.extend(other.names.iter().map(|name| (name.clone(), at)));
            self.all[at].is_open |= other.is_open;
            self.all[at].versions.extend(other.versions);
            self.all[at].names.extend(other.names);
        }
        self.by_name.extend(names.iter().map(|name| (name.clone(), at)));
        self.all[at].names.extend(names);
        &mut self.all[at]
    }
}

/// Renders the entry of one package as a line; absent if no fix can be stated.
pub(crate) fn package(name: &str, from: &[Advisory], problems: &mut Problems) -> Option<Vec<u8>> {
    let mut standings = Standings::default();
    for advisory in from {
        let Some(names) = words(advisory, problems) else {
            continue;
        };
        let standing = standings.of(names);
        match advisory.latest().map(|event| &event.assessment) {
            Some(Assessment::Fixed { version, .. }) if version != NEVER && !version.is_empty() => {
                standing.versions.insert(version.clone());
            }
            Some(Assessment::FalsePositive { .. }) => {
                standing.versions.insert(NEVER.into());
            }
            _ => standing.is_open = true,
        }
    }
    let mut fixes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for mut standing in standings.all.into_iter().filter(|standing| !standing.names.is_empty()) {
        let names = standing.names.iter().cloned().collect::<Vec<_>>().join(" ");
        let position = format!("{names} in {name}");
        // A package is free of something once all of its components are.
        if standing.is_open {
            problems.skip(position, "not every component of the package is fixed or unaffected");
            continue;
        }
        if standing.versions.len() > 1 {
            standing.versions.remove(NEVER);
        }
        match (standing.versions.pop_first(), standing.versions.is_empty()) {
            (Some(version), true) => fixes.entry(version).or_default().push(names),
            _ => problems.skip(position, "components of the package are fixed in different versions"),
        }
    }
    if fixes.is_empty() {
        return None;
    }
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        Node::texts(ids)
    };
    let fixes = fixes.into_iter().map(|(version, ids)| (version, sorted(ids))).collect();
    let package = Node::map([("name", Some(Node::text(name))), ("secfixes", Some(Node::Map(fixes)))]);
    Some(compact(&Node::map([("pkg", Some(package))])).into_bytes())
}

/// The ids of an advisory that this form can hold: ids that are one word.
fn words(advisory: &Advisory, problems: &mut Problems) -> Option<Vec<String>> {
    let names = advisory.names();
    if advisory.artifact.kind != "apk" {
        problems.skip(describe(advisory), "the form knows packages of the kind apk alone");
    } else if names.is_empty() || names.iter().any(|name| name.contains(|c: char| c.is_whitespace() || c == '(')) {
        problems.skip(describe(advisory), "the vulnerability has no id, or one that is no single word");
    } else {
        if advisory.events.len() > 1 {
            problems.reduce(describe(advisory), "earlier statements are not part of this form");
        }
        return Some(names);
    }
    None
}

/// Reads a database, from JSON or YAML.
pub(crate) fn read(tree: &Node, limits: &Limits, problems: &mut Problems) -> Result<Vec<Advisory>, Unreadable> {
    let root = Cursor::root(tree);
    let mut found: BTreeMap<(String, Vec<String>), Advisory> = BTreeMap::new();
    for entry in root.need("packages")?.elements()? {
        match read_package(&entry, problems) {
            Ok(advisories) => {
                for advisory in advisories {
                    add(&mut found, advisory, &entry, problems);
                }
            }
            Err(RecordError { position, reason }) => problems.skip(position, reason),
        }
        if found.len() > limits.advisories {
            return Err(Unreadable(format!("the document has more than {} entries", limits.advisories)));
        }
    }
    Ok(found.into_values().collect())
}

/// Adds an advisory. An id that a package lists twice is fixed in the version that comes first.
fn add(
    found: &mut BTreeMap<(String, Vec<String>), Advisory>,
    advisory: Advisory,
    at: &Cursor<'_>,
    problems: &mut Problems,
) {
    let key = (advisory.artifact.name.clone(), advisory.names());
    if let Some(known) = found.get(&key) {
        if known.events != advisory.events {
            problems.skip(at.position(), format!("{} is there with another version too", key.1.join(" ")));
        }
        return;
    }
    found.insert(key, advisory);
}

fn read_package(entry: &Cursor<'_>, problems: &mut Problems) -> Result<Vec<Advisory>, RecordError> {
    let package = entry.need("pkg")?;
    let name = package.need("name")?.word()?;
    let mut advisories = Vec::new();
    let Some(fixes) = package.get("secfixes")? else {
        return Ok(advisories);
    };
    for (version, ids) in fixes.members()? {
        let is_version = (1..=SHORT).contains(&version.len()) && !version.contains(char::is_control);
        let read = if is_version { ids.elements() } else { Err(fixes.error("has an invalid version")) };
        let ids = match read {
            Ok(ids) => ids,
            Err(RecordError { position, reason }) => {
                problems.skip(position, reason);
                continue;
            }
        };
        for id in ids {
            match id.word() {
                Ok(text) => advisories.extend(fixed(name, version, text, &id, problems)),
                Err(RecordError { position, reason }) => problems.skip(position, reason),
            }
        }
    }
    Ok(advisories)
}

fn fixed(package: &str, version: &str, ids: &str, at: &Cursor<'_>, problems: &mut Problems) -> Option<Advisory> {
    // Text in brackets is a remark, such as that of a regression.
    let (ids, remark) = ids.split_once('(').unwrap_or((ids, ""));
    if !remark.is_empty() {
        problems.reduce(at.position(), format!("the remark ({remark} is not kept"));
    }
    let names: Vec<String> = ids.split_whitespace().map(str::to_owned).collect();
    if names.is_empty() {
        problems.skip(at.position(), "it has no id");
        return None;
    }
    let note = String::new();
    let assessment = match version {
        NEVER => Assessment::FalsePositive { why: FalsePositive::RecordContested, note },
        version => Assessment::Fixed { version: version.into(), note },
    };
    let (id, aliases) = own_and_others(names);
    let artifact = Artifact { kind: "apk".into(), name: package.into(), architecture: String::new() };
    let events = vec![Event { at: None, author: String::new(), assessment, provenance: Provenance::default() }];
    Some(Advisory { artifact, id, aliases, events, ..Advisory::default() })
}
