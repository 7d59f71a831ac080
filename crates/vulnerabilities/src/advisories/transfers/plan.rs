//! What an import would change: checked against what the group has, before anything is written.

use std::collections::{BTreeSet, HashMap, HashSet};

use bowline_contract::bowline::advisories::v1::{ImportOutcome, ImportedAdvisory};
use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::advisory_event::detection::{self, ScanV1};
use bowline_contract::v1::vulnerabilities::advisory_event::{Detection, Type};
use bowline_core::Micros;
use prost::Message as _;

use super::super::event_calls::new_event;
use super::super::events::{MAX_EVENT_BYTES, MAX_EVENTS};
use super::super::rows::{AdvisoryRow, Subject, folded};
use super::super::shapes;

/// Maximum number of aliases of an advisory; the rule of the field says the same.
const MAX_ALIASES: usize = 50;

/// What the caller may do besides adding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Whether aliases may be added to advisories that are there.
    pub(super) may_update: bool,
    /// Whether what comes counts at once.
    pub(super) approved: bool,
    pub(super) now: Micros,
}

/// An advisory of the group, as it is or as it will be.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Absent for one that the import creates.
    pub(super) row: Option<AdvisoryRow>,
    pub(super) subject: Subject,
    pub(super) advisory_id: String,
    pub(super) aliases: Vec<String>,
    events: Vec<(Type, Micros)>,
    bytes: i64,
    /// Whether something about it is approved.
    published: bool,
}

impl Entry {
    pub(super) fn of(row: AdvisoryRow, events: Vec<(Type, Micros)>) -> Entry {
        Entry {
            subject: row.subject.clone(),
            advisory_id: row.advisory_id.clone(),
            aliases: row.aliases.clone(),
            bytes: row.event_bytes,
            published: row.latest_event_type != 0,
            row: Some(row),
            events,
        }
    }

    /// Whether the advisory is known by one of these names.
    fn is_named(&self, names: &HashSet<String>) -> bool {
        self.aliases.iter().any(|alias| names.contains(&folded(alias))) || names.contains(&folded(&self.advisory_id))
    }

    fn has(&self, kind: &Type, at: Option<Micros>) -> bool {
        self.events.iter().any(|(known, known_at)| match (scan(known), scan(kind)) {
            // The same finding of a scanner again adds nothing.
            (Some(known), Some(found)) => is_same_find(known, found),
            _ => known == kind && at.is_none_or(|at| at == *known_at),
        })
    }
}

fn scan(kind: &Type) -> Option<&ScanV1> {
    match kind {
        Type::Detection(Detection { r#type: Some(detection::Type::Scanv1(scan)) }) => Some(scan),
        _ => None,
    }
}

fn is_same_find(known: &ScanV1, found: &ScanV1) -> bool {
    known.scanner == found.scanner
        && known.component_version == found.component_version
        && known.artifact_version == found.artifact_version
}

/// What is to be done for one advisory of the batch.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// Position of the advisory among the entries; none where it is refused.
    pub(super) entry: Option<usize>,
    pub(super) events: Vec<v1::AdvisoryEvent>,
    pub(super) result: ImportedAdvisory,
}

impl Step {
    fn refused(reason: impl Into<String>) -> Step {
        let result = ImportedAdvisory {
            outcome: ImportOutcome::Refused.into(),
            reason: reason.into(),
            ..ImportedAdvisory::default()
        };
        Step { result, ..Step::default() }
    }
}

/// A batch against the group, advisory after advisory: later ones see what earlier ones bring.
pub(super) struct Plan {
    pub(super) entries: Vec<Entry>,
    by_subject: HashMap<[String; 6], Vec<usize>>,
    /// Public ids that the organization uses already.
    taken: BTreeSet<String>,
    terms: Terms,
}

fn key(subject: &Subject) -> [String; 6] {
    let Subject {
        artifact_name,
        artifact_type,
        artifact_architecture,
        component_name,
        component_location,
        component_type,
    } = subject.clone();
    [artifact_name, artifact_type, artifact_architecture, component_name, component_location, component_type]
}

impl Plan {
    pub(super) fn new(entries: Vec<Entry>, taken: BTreeSet<String>, terms: Terms) -> Plan {
        let mut by_subject: HashMap<[String; 6], Vec<usize>> = HashMap::new();
        for (at, entry) in entries.iter().enumerate() {
            by_subject.entry(key(&entry.subject)).or_default().push(at);
        }
        Plan { entries, by_subject, taken, terms }
    }

    pub(super) fn add(&mut self, given: &v1::Advisory) -> Step {
        let names = names(given);
        if names.is_empty() {
            return Step::refused("it has neither an alias nor a public id, so it cannot be identified");
        }
        let events = match self.validated(given) {
            Ok(events) => events,
            Err(reason) => return Step::refused(reason),
        };
        let subject = Subject::of_v1(given);
        let folded_names: HashSet<String> = names.iter().map(|name| folded(name)).collect();
        let known = self.by_subject.get(&key(&subject)).into_iter().flatten();
        match known.copied().find(|at| self.entries[*at].is_named(&folded_names)) {
            Some(at) => self.extend(at, &names, events),
            None => self.create(subject, given, names, events),
        }
    }

    /// The events of an advisory that can be stored, or why one cannot.
    fn validated(&self, given: &v1::Advisory) -> Result<Vec<v1::AdvisoryEvent>, String> {
        for event in &given.events {
            if let Some((field, description)) = shapes::validate(event) {
                return Err(format!("an event's {field} {description}"));
            }
            new_event(event.clone(), self.terms.now).map_err(|error| error.to_string())?;
        }
        Ok(given.events.clone())
    }

    fn create(
        &mut self,
        subject: Subject,
        given: &v1::Advisory,
        names: Vec<String>,
        events: Vec<v1::AdvisoryEvent>,
    ) -> Step {
        // The id of another advisory of the organization stays an alias here.
        let is_free = !given.advisory_id.is_empty() && !self.taken.contains(&given.advisory_id);
        let advisory_id = if is_free { given.advisory_id.clone() } else { String::new() };
        let aliases: Vec<String> = names.into_iter().filter(|name| *name != advisory_id).collect();
        if aliases.len() > MAX_ALIASES {
            return Step::refused(format!("it has more than {MAX_ALIASES} aliases"));
        }
        let entry = Entry {
            row: None,
            subject: subject.clone(),
            advisory_id: advisory_id.clone(),
            aliases,
            events: Vec::new(),
            bytes: 0,
            published: false,
        };
        let at = self.entries.len();
        self.entries.push(entry);
        let added = match self.append(at, events) {
            Ok(added) => added,
            Err(reason) => {
                self.entries.pop();
                return Step::refused(reason);
            }
        };
        self.taken.extend(Some(advisory_id).filter(|id| !id.is_empty()));
        self.by_subject.entry(key(&subject)).or_default().push(at);
        let result = ImportedAdvisory {
            outcome: ImportOutcome::Created.into(),
            added_events: added.len() as i32,
            ..ImportedAdvisory::default()
        };
        Step { entry: Some(at), events: added, result }
    }

    fn extend(&mut self, at: usize, names: &[String], events: Vec<v1::AdvisoryEvent>) -> Step {
        let (added, withheld) = self.missing(at, names);
        let entry = &self.entries[at];
        if entry.aliases.len() + added.len() > MAX_ALIASES {
            return Step::refused(format!("the advisory would have more than {MAX_ALIASES} aliases"));
        }
        let events = match self.append(at, events) {
            Ok(events) => events,
            Err(reason) => return Step::refused(reason),
        };
        let entry = &mut self.entries[at];
        entry.aliases.extend(added.iter().cloned());
        let is_changed = !added.is_empty() || !events.is_empty();
        let outcome = if is_changed { ImportOutcome::Changed } else { ImportOutcome::Unchanged };
        let result = ImportedAdvisory {
            outcome: outcome.into(),
            uid: entry.row.as_ref().map(|row| row.uid.as_str().to_owned()).unwrap_or_default(),
            added_events: events.len() as i32,
            added_aliases: added,
            withheld_aliases: withheld,
            reason: String::new(),
        };
        Step { entry: Some(at), events, result }
    }

    /// The names that an entry does not have yet: those that it gets, and those that it does not get.
    fn missing(&self, at: usize, names: &[String]) -> (Vec<String>, Vec<String>) {
        let entry = &self.entries[at];
        let mut known: HashSet<String> = entry.aliases.iter().map(|alias| folded(alias)).collect();
        known.insert(folded(&entry.advisory_id));
        let missing = names.iter().filter(|name| known.insert(folded(name))).cloned();
        let may_add = entry.row.is_none() || (self.terms.may_update && (self.terms.approved || !entry.published));
        let same = self.by_subject.get(&key(&entry.subject)).into_iter().flatten();
        let others: Vec<&Entry> = same.filter(|other| **other != at).map(|other| &self.entries[*other]).collect();
        // A name that is another advisory's about the same would make two of them one.
        let is_theirs = |name: &String| {
            let name = HashSet::from([folded(name)]);
            others.iter().any(|other| other.is_named(&name))
        };
        missing.partition(|name| may_add && !is_theirs(name))
    }

    /// Takes in the events that the entry does not have.
    fn append(&mut self, at: usize, events: Vec<v1::AdvisoryEvent>) -> Result<Vec<v1::AdvisoryEvent>, String> {
        let entry = &mut self.entries[at];
        let (before, bytes) = (entry.events.len(), entry.bytes);
        let mut added = Vec::new();
        for event in events {
            let time = event.timestamp.map(bowline_resources::list::micros);
            let Some(kind) = &event.r#type else { continue };
            if entry.has(kind, time) {
                continue;
            }
            entry.events.push((kind.clone(), time.unwrap_or(self.terms.now)));
            entry.bytes += event.encoded_len() as i64;
            added.push(event);
        }
        if entry.events.len() as i64 > MAX_EVENTS || (!added.is_empty() && entry.bytes > MAX_EVENT_BYTES) {
            entry.events.truncate(before);
            entry.bytes = bytes;
            return Err(format!(
                "the advisory would have more than {MAX_EVENTS} events, or events of more than {MAX_EVENT_BYTES} bytes"
            ));
        }
        entry.published |= self.terms.approved && !added.is_empty();
        Ok(added)
    }
}

/// Aliases and public id, each once, in the order that was given.
pub(super) fn names(given: &v1::Advisory) -> Vec<String> {
    let mut seen = HashSet::new();
    let all = given.aliases.iter().chain([&given.advisory_id]).filter(|name| !name.is_empty());
    all.filter(|name| seen.insert(folded(name))).cloned().collect()
}
