//! What the formats of exchange have in common: one statement about one vulnerability in one product.

use std::collections::BTreeMap;

use crate::model::{Advisory, Assessment, Detection, Event, FalsePositive, Micros, Provenance, own_and_others};
use crate::problem::Problems;
use crate::subject::Subject;

/// Who publishes a document.
#[derive(Clone, Debug, Default)]
pub struct Publisher {
    pub name: String,
    /// Address that ids of documents begin with, without a slash at its end.
    pub namespace: String,
    /// Distribution that packages of operating systems belong to, such as `wolfi` or `debian`; empty for none.
    pub distribution: String,
}

/// A document, and between which times what it says was checked.
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    pub(crate) first: Micros,
    pub(crate) changed: Micros,
}

/// How a product stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    NotAffected(FalsePositive),
    Affected(Outlook),
    /// These versions are free of it.
    Fixed(Vec<String>),
    UnderInvestigation,
}

/// What those who are affected may expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlook {
    Open,
    NoFixPlanned,
    Upstream,
    NoAnalysisPlanned,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Ids of the vulnerability, sorted, each once.
    pub(crate) names: Vec<String>,
    pub(crate) subject: Subject,
    pub(crate) status: Status,
    pub(crate) note: String,
    pub(crate) at: Micros,
    pub(crate) updated: Option<Micros>,
}

impl Statement {
    /// What is believed of an advisory now, if these formats have words for it.
    pub(crate) fn of(advisory: &Advisory, problems: &mut Problems) -> Option<Statement> {
        let position = describe(advisory);
        let names = advisory.names();
        if names.is_empty() {
            problems.skip(position, "the vulnerability has no id");
            return None;
        }
        let Some((event, at)) = advisory.latest().and_then(|event| Some((event, event.at?))) else {
            problems.skip(position, "there is no statement with a time");
            return None;
        };
        let (status, note) = match &event.assessment {
            Assessment::Detection(how) => {
                if *how != Detection::Manual {
                    problems.reduce(&position, "how it was detected is not said");
                }
                (Status::UnderInvestigation, String::new())
            }
            Assessment::TruePositive { note } => (Status::Affected(Outlook::Open), note.clone()),
            Assessment::FixNotPlanned { note } => (Status::Affected(Outlook::NoFixPlanned), note.clone()),
            Assessment::PendingUpstreamFix { note } => (Status::Affected(Outlook::Upstream), note.clone()),
            Assessment::AnalysisNotPlanned { note } => (Status::Affected(Outlook::NoAnalysisPlanned), note.clone()),
            Assessment::FalsePositive { why, note } => {
                if matches!(why, FalsePositive::RecordContested | FalsePositive::VersionNotUsed) {
                    problems.reduce(&position, "the reason is written as: the code is not there");
                }
                (Status::NotAffected(*why), note.clone())
            }
            Assessment::Fixed { version, note } => (Status::Fixed(vec![version.clone()]), note.clone()),
            Assessment::Patched { versions, note } => (Status::Fixed(versions.clone()), note.clone()),
            Assessment::ComponentMoved { .. } => {
                problems.skip(position, "these formats cannot express that a component moved");
                return None;
            }
        };
        if matches!(&status, Status::Fixed(versions) if versions.is_empty() || versions.iter().any(String::is_empty)) {
            problems.skip(position, "it is fixed, and no version is said");
            return None;
        }
        let subject = advisory.subject();
        match (subject.artifact_purl("", ""), subject.located_purl("")) {
            (Ok(product), Ok(part)) => {
                // What a package URL says of it, and no more: so documents are the same when they come back.
                let (subject, _) = Subject::read(&product, part.as_ref());
                Some(Statement { names, subject, status, note, at, updated: advisory.updated })
            }
            (Err(reason), _) | (_, Err(reason)) => {
                problems.skip(position, reason);
                None
            }
        }
    }

    /// When anything about it was last changed.
    pub(crate) fn changed(&self) -> Micros {
        self.updated.map_or(self.at, |updated| updated.max(self.at))
    }

    /// Product and part as they are named, without a version.
    pub(crate) fn purls(&self) -> (String, String) {
        let product = self.subject.artifact_purl("", "").map(|purl| purl.to_string());
        let part = self.subject.located_purl("").ok().flatten().map(|purl| purl.to_string());
        (product.unwrap_or_default(), part.unwrap_or_default())
    }

    fn assessment(self) -> Assessment {
        let note = self.note;
        match self.status {
            Status::NotAffected(why) => Assessment::FalsePositive { why, note },
            Status::Affected(Outlook::Open) => Assessment::TruePositive { note },
            Status::Affected(Outlook::NoFixPlanned) => Assessment::FixNotPlanned { note },
            Status::Affected(Outlook::Upstream) => Assessment::PendingUpstreamFix { note },
            Status::Affected(Outlook::NoAnalysisPlanned) => Assessment::AnalysisNotPlanned { note },
            Status::Fixed(mut versions) if versions.len() == 1 => {
                Assessment::Fixed { version: versions.pop().unwrap_or_default(), note }
            }
            Status::Fixed(versions) => Assessment::Patched { versions, note },
            Status::UnderInvestigation => Assessment::Detection(Detection::Manual),
        }
    }
}

impl Advisory {
    pub(crate) fn subject(&self) -> Subject {
        Subject { artifact: self.artifact.clone(), component: self.component.clone() }
    }
}

/// How people find an advisory again.
pub(crate) fn describe(advisory: &Advisory) -> String {
    let names = advisory.names();
    let name = names.first().map_or("an advisory without ids", String::as_str);
    format!("{name} in {} {}", advisory.artifact.kind, advisory.artifact.name)
}

/// The statements that a document is made of, in order. Where several are about the same, the newest counts.
pub(crate) fn statements(advisories: &[Advisory], problems: &mut Problems) -> Vec<Statement> {
    let mut found: BTreeMap<(String, String, Vec<String>), Statement> = BTreeMap::new();
    for advisory in advisories {
        if advisory.events.len() > 1 {
            problems.reduce(describe(advisory), "earlier statements are not part of these formats");
        }
        let Some(statement) = Statement::of(advisory, problems) else {
            continue;
        };
        let (product, part) = statement.purls();
        let key = (product, part, statement.names.clone());
        let known = found.get(&key).map(|known| known.at);
        if known.is_some() {
            problems.skip(describe(advisory), "another advisory is about the same; the newer one counts");
        }
        if known.is_none_or(|known| known <= statement.at) {
            found.insert(key, statement);
        }
    }
    found.into_values().collect()
}

/// Puts what a document states together: one advisory for each vulnerability and subject, its statements by time.
pub(crate) fn advisories(statements: Vec<Statement>, author: &str) -> Vec<Advisory> {
    let mut found: BTreeMap<(Subject, Vec<String>), Advisory> = BTreeMap::new();
    for statement in statements {
        let key = (statement.subject.clone(), statement.names.clone());
        let advisory = found.entry(key).or_insert_with(|| {
            let (id, aliases) = own_and_others(statement.names.clone());
            let Subject { artifact, component } = statement.subject.clone();
            Advisory { artifact, component, id, aliases, author: author.into(), ..Advisory::default() }
        });
        advisory.updated = advisory.updated.max(statement.updated);
        let at = Some(statement.at);
        let event =
            Event { at, author: author.into(), assessment: statement.assessment(), provenance: Provenance::default() };
        if !advisory.events.contains(&event) {
            advisory.events.push(event);
        }
    }
    let mut advisories: Vec<Advisory> = found.into_values().collect();
    advisories.iter_mut().for_each(Advisory::sort);
    advisories
}

/// The id that a document names a vulnerability by, among all of them: the advisory's own, else the first.
pub(crate) fn own_name(names: &[String]) -> (String, Vec<String>) {
    let (own, mut others) = own_and_others(names.to_vec());
    if own.is_empty() && !others.is_empty() {
        let first = others.remove(0);
        return (first, others);
    }
    (own, others)
}

/// The id that everyone knows, if there is one, else the first; and the others.
pub(crate) fn known_name(names: &[String]) -> (String, Vec<String>) {
    let mut others = names.to_vec();
    let prefixes = ["CVE-", "GHSA-"];
    let position = prefixes.iter().find_map(|prefix| others.iter().position(|name| name.starts_with(prefix)));
    let known = if others.is_empty() { String::new() } else { others.remove(position.unwrap_or(0)) };
    (known, others)
}

/// The five reasons that all these formats know.
pub(crate) fn justification(why: FalsePositive) -> &'static str {
    match why {
        FalsePositive::RecordContested | FalsePositive::VersionNotUsed | FalsePositive::CodeNotIncluded => {
            "vulnerable_code_not_present"
        }
        FalsePositive::ComponentMismatch => "component_not_present",
        FalsePositive::CodeNotExecuted => "vulnerable_code_not_in_execute_path",
        FalsePositive::CodeNotControllable => "vulnerable_code_cannot_be_controlled_by_adversary",
        FalsePositive::Mitigated => "inline_mitigations_already_exist",
    }
}

/// The inverse; of several types with one reason the plainest.
pub(crate) fn false_positive(justification: &str) -> Option<FalsePositive> {
    Some(match justification {
        "component_not_present" => FalsePositive::ComponentMismatch,
        "vulnerable_code_not_present" => FalsePositive::CodeNotIncluded,
        "vulnerable_code_not_in_execute_path" => FalsePositive::CodeNotExecuted,
        "vulnerable_code_cannot_be_controlled_by_adversary" => FalsePositive::CodeNotControllable,
        "inline_mitigations_already_exist" => FalsePositive::Mitigated,
        _ => return None,
    })
}

/// The text for people if the author wrote none.
pub(crate) fn action(outlook: Outlook, note: &str) -> String {
    if !note.is_empty() {
        return note.into();
    }
    let usual = match outlook {
        Outlook::Open => "No fixed version is known yet.",
        Outlook::NoFixPlanned => "No fix is planned.",
        Outlook::Upstream => "A fix is awaited from upstream.",
        Outlook::NoAnalysisPlanned => "No analysis is planned.",
    };
    usual.into()
}

/// What an action statement without more to say means, else the words themselves.
pub(crate) fn outlook(words: &str) -> (Outlook, String) {
    let all = [Outlook::Open, Outlook::NoFixPlanned, Outlook::Upstream, Outlook::NoAnalysisPlanned];
    match all.into_iter().find(|outlook| action(*outlook, "") == words) {
        Some(outlook) => (outlook, String::new()),
        None => (Outlook::Open, words.into()),
    }
}

/// SHA-256 of a document's content: ids of documents come from it.
pub(crate) fn digest(content: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content);
    digest.as_ref().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
