//! Writing: one document for all statements about one artifact.

use std::collections::{BTreeMap, BTreeSet};

use bowline_core::rfc3339::{self, Digits};

use super::products::Products;
use crate::model::{Advisory, Artifact, Micros};
use crate::problem::Problems;
use crate::tree::Node;
use crate::vex::{
    Outlook, Publisher, Statement, Status, Written, action, digest, justification, known_name, outlook, statements,
};

/// Writes a document of what is believed now of one artifact; none where nothing can be said.
pub(crate) fn write(from: &[Advisory], publisher: &Publisher, problems: &mut Problems) -> Option<Written> {
    let statements = consistent(statements(from, problems), problems);
    let artifact = statements.first()?.subject.artifact.clone();
    let changed = statements.iter().map(Statement::changed).max()?;
    let first = statements.iter().filter_map(dated).min().unwrap_or(changed).min(changed);
    let mut products = Products::new(&publisher.distribution);
    let grouped = grouped(statements);
    let vulnerabilities: Vec<Node> = grouped.iter().map(|group| vulnerability(group, &mut products)).collect();
    let document = Node::map([
        ("category", Some(Node::text("csaf_vex"))),
        ("csaf_version", Some(Node::text("2.0"))),
        ("lang", Some(Node::text("en"))),
        (
            "publisher",
            Some(Node::map([
                ("category", Some(Node::text("vendor"))),
                ("name", Some(Node::text(&publisher.name))),
                ("namespace", Some(Node::text(&publisher.namespace))),
            ])),
        ),
        ("title", Some(Node::text(format!("Vulnerabilities of {} {}", artifact.kind, artifact.name)))),
        ("tracking", Some(tracking(&artifact, first, changed))),
        ("distribution", Some(Node::map([("tlp", Some(Node::map([("label", Some(Node::text("WHITE")))])))]))),
    ]);
    let whole = Node::map([
        ("document", Some(document)),
        ("product_tree", Some(products.tree())),
        ("vulnerabilities", Some(Node::List(vulnerabilities))),
    ]);
    let bytes = whole.to_json();
    Some(Written { bytes, first, changed })
}

/// The time that a statement carries itself; the others have the document's.
fn dated(statement: &Statement) -> Option<Micros> {
    matches!(statement.status, Status::NotAffected(_) | Status::Affected(_)).then_some(statement.at)
}

/// One version for each second in which something changed: a later document has a higher one.
fn tracking(artifact: &Artifact, first: Micros, changed: Micros) -> Node {
    let revision = |number: &str, at: Micros, summary: &str| {
        Node::map([
            ("date", Some(Node::time(at))),
            ("number", Some(Node::text(number))),
            ("summary", Some(Node::text(summary))),
        ])
    };
    let seconds = changed.div_euclid(1_000_000).max(0);
    let mut history = Vec::new();
    let version = if changed > first {
        history.push(revision("1.0.0", first, "First assessment."));
        format!("1.{seconds}.0")
    } else {
        "1.0.0".into()
    };
    history.push(revision(&version, changed, "Latest assessment."));
    Node::map([
        ("current_release_date", Some(Node::time(changed))),
        ("id", Some(Node::text(tracking_id(artifact)))),
        ("initial_release_date", Some(Node::time(first))),
        ("revision_history", Some(Node::List(history))),
        ("status", Some(Node::text("final"))),
        ("version", Some(Node::text(version))),
    ])
}

/// Lower case from the start, so that the file can be named after it without two files getting one name.
fn tracking_id(artifact: &Artifact) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-".contains(c);
    let name: String = artifact.name.chars().map(|c| if plain(c) { c } else { '_' }).take(100).collect();
    let kind: String = artifact.kind.chars().map(|c| if plain(c) { c } else { '_' }).take(30).collect();
    if name == artifact.name && kind == artifact.kind {
        return format!("vex-{kind}-{name}");
    }
    let hash = digest(format!("{}\n{}", artifact.kind, artifact.name).as_bytes());
    format!("vex-{kind}-{name}-{}", &hash[..8])
}

/// Name of the file that holds the document of an artifact; documents lie by the year of their first release.
pub(crate) fn file_name(artifact: &Artifact, first: Micros) -> String {
    let year = rfc3339::text(first, Digits::Fewest);
    format!("{}/{}.json", year.split('-').next().unwrap_or_default(), tracking_id(artifact))
}

/// The key of statements that stand in one entry: the id that may occur only once, else all ids.
fn group_key(names: &[String]) -> (String, Vec<String>) {
    let (known, _) = known_name(names);
    if known.starts_with("CVE-") { (known, Vec::new()) } else { (String::new(), names.to_vec()) }
}

/// Drops all but the newest of statements about one product in one entry: a product stands in one way only.
fn consistent(statements: Vec<Statement>, problems: &mut Problems) -> Vec<Statement> {
    let mut newest: BTreeMap<_, usize> = BTreeMap::new();
    for (at, statement) in statements.iter().enumerate() {
        let key = (statement.purls(), group_key(&statement.names));
        let known = newest.entry(key).or_insert(at);
        if *known != at {
            let (older, newer) = if statements[*known].at <= statement.at { (*known, at) } else { (at, *known) };
            problems.skip(statements[older].names.join(" "), "a newer statement about the same product counts");
            *known = newer;
        }
    }
    let kept: BTreeSet<usize> = newest.into_values().collect();
    let numbered = statements.into_iter().enumerate();
    numbered.filter(|(at, _)| kept.contains(at)).map(|(_, statement)| statement).collect()
}

fn grouped(statements: Vec<Statement>) -> Vec<Vec<Statement>> {
    let mut groups: BTreeMap<(String, Vec<String>), Vec<Statement>> = BTreeMap::new();
    for statement in statements {
        groups.entry(group_key(&statement.names)).or_default().push(statement);
    }
    groups.into_values().collect()
}

fn vulnerability(group: &[Statement], products: &mut Products) -> Node {
    let names: BTreeSet<&String> = group.iter().flat_map(|statement| &statement.names).collect();
    let names: Vec<String> = names.into_iter().cloned().collect();
    let (known, others) = known_name(&names);
    let (cve, others) = if is_cve(&known) { (Some(known), others) } else { (None, names) };
    let ids: Vec<Node> = others.iter().map(|name| identified(name)).collect();
    let title = cve.clone().or_else(|| others.first().cloned()).unwrap_or_default();
    let mut facts = EntryFacts::default();
    for statement in group {
        facts.add(statement, products);
    }
    let note = Node::map([
        ("category", Some(Node::text("summary"))),
        ("text", Some(Node::text(format!("How the products stand to {title}.")))),
    ]);
    Node::map([
        ("cve", cve.map(Node::Text)),
        ("flags", some(facts.flags)),
        ("ids", some(ids)),
        ("notes", Some(Node::List(vec![note]))),
        ("product_status", Some(EntryFacts::statuses(facts.by_status))),
        ("remediations", some(facts.remediations)),
        ("threats", some(facts.threats)),
    ])
}

/// The list, or nothing if it is empty.
fn some(list: Vec<Node>) -> Option<Node> {
    (!list.is_empty()).then_some(Node::List(list))
}

/// What an entry says of products.
#[derive(Default)]
struct EntryFacts {
    by_status: BTreeMap<&'static str, Vec<String>>,
    flags: Vec<Node>,
    remediations: Vec<Node>,
    threats: Vec<Node>,
}

impl EntryFacts {
    fn add(&mut self, statement: &Statement, products: &mut Products) {
        let versions = match &statement.status {
            Status::Fixed(versions) => versions.clone(),
            _ => vec![String::new()],
        };
        let ids: Vec<String> = versions.iter().map(|version| products.id(&statement.subject, version)).collect();
        self.by_status.entry(status_name(&statement.status)).or_default().extend(ids.clone());
        let (date, ids) = (Some(Node::time(statement.at)), Some(Node::texts(ids)));
        match &statement.status {
            Status::NotAffected(why) => {
                let label = Some(Node::text(justification(*why)));
                self.flags.push(Node::map([("date", date.clone()), ("label", label), ("product_ids", ids.clone())]));
                if !statement.note.is_empty() {
                    self.threats.push(Node::map([
                        ("category", Some(Node::text("impact"))),
                        ("date", date),
                        ("details", Some(Node::text(&statement.note))),
                        ("product_ids", ids),
                    ]));
                }
            }
            Status::Affected(outlook) => self.remediations.push(Node::map([
                ("category", Some(Node::text(category(*outlook, &statement.note)))),
                ("date", date),
                ("details", Some(Node::text(action(*outlook, &statement.note)))),
                ("product_ids", ids),
            ])),
            Status::Fixed(_) | Status::UnderInvestigation => {}
        }
    }

    fn statuses(by_status: BTreeMap<&str, Vec<String>>) -> Node {
        let sorted = by_status.into_iter().map(|(name, mut ids)| {
            ids.sort();
            ids.dedup();
            (name.to_owned(), Node::texts(ids))
        });
        Node::Map(sorted.collect())
    }
}

/// Whether a name has the form that the schema asks of a CVE.
fn is_cve(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    matches!(parts[..], ["CVE", year, number] if year.len() == 4 && number.len() >= 4 && digits(year) && digits(number))
}

fn identified(name: &str) -> Node {
    let system = match name.split('-').next().unwrap_or_default() {
        "GHSA" => "GitHub",
        "CVE" => "CVE",
        "GO" => "Go",
        prefix if !prefix.is_empty() && prefix != name => prefix,
        _ => "other",
    };
    Node::map([("system_name", Some(Node::text(system))), ("text", Some(Node::text(name)))])
}

fn status_name(status: &Status) -> &'static str {
    match status {
        Status::NotAffected(_) => "known_not_affected",
        Status::Affected(_) => "known_affected",
        Status::Fixed(_) => "fixed",
        Status::UnderInvestigation => "under_investigation",
    }
}

/// A statement in words only has none of the specific categories.
fn category(expected: Outlook, note: &str) -> &'static str {
    let facts = if note.is_empty() { expected } else { outlook(note).0 };
    match (expected, facts) {
        (Outlook::NoFixPlanned, _) | (_, Outlook::NoFixPlanned) => "no_fix_planned",
        _ => "none_available",
    }
}
