//! Our own form: the advisories of one artifact as YAML that people keep in a repository. It loses nothing.

use crate::cursor::Cursor;
use crate::model::{Advisory, Artifact, Assessment, Component, Detection, Event, FalsePositive, Provenance, Scan};
use crate::problem::{Problems, RecordError, Unreadable};
use crate::tree::{Limits, Node, non_empty_text};
use crate::vex::{Written, describe};
use crate::yaml;

/// The first member of a document, and its only value.
const SCHEMA: &str = "bowline.advisories/v1";

/// Names of the types of false positives, in the order of their numbers.
const WHY: [&str; 7] = [
    "vulnerability-record-analysis-contested",
    "component-vulnerability-mismatch",
    "vulnerable-code-version-not-used",
    "vulnerable-code-not-included-in-package",
    "vulnerable-code-not-in-execution-path",
    "vulnerable-code-cannot-be-controlled-by-adversary",
    "inline-mitigations-exist",
];

/// Writes all that is known of the advisories of one artifact.
pub(crate) fn write(artifact: &Artifact, advisories: &[Advisory], problems: &mut Problems) -> Option<Written> {
    let (mut sorted, nameless): (Vec<Advisory>, Vec<Advisory>) =
        advisories.iter().cloned().partition(|advisory| !advisory.names().is_empty());
    for advisory in &nameless {
        problems.skip(describe(advisory), "the vulnerability has no id");
    }
    if sorted.is_empty() {
        return None;
    }
    sorted.iter_mut().for_each(Advisory::sort);
    sorted.sort();
    let document = Node::map([
        ("schema", Some(Node::text(SCHEMA))),
        (
            "artifact",
            Some(Node::map([("type", Some(Node::text(&artifact.kind))), ("name", Some(Node::text(&artifact.name)))])),
        ),
        ("advisories", Some(Node::List(sorted.iter().map(advisory).collect()))),
    ]);
    let times = || sorted.iter().flat_map(|one| one.events.iter().map(|event| event.at).chain([one.updated])).flatten();
    let bytes = yaml::to_yaml(&document);
    Some(Written { bytes, first: times().min().unwrap_or_default(), changed: times().max().unwrap_or_default() })
}

fn advisory(from: &Advisory) -> Node {
    let Component { kind, name, location } = &from.component;
    let component = Node::map([
        ("type", non_empty_text(kind)),
        ("name", non_empty_text(name)),
        ("location", non_empty_text(location)),
    ]);
    Node::map([
        ("id", non_empty_text(&from.id)),
        ("aliases", (!from.aliases.is_empty()).then(|| Node::texts(&from.aliases))),
        ("architecture", non_empty_text(&from.artifact.architecture)),
        ("component", (!from.component.is_empty()).then_some(component)),
        ("author", non_empty_text(&from.author)),
        ("created", from.created.map(Node::time)),
        ("updated", from.updated.map(Node::time)),
        ("events", Some(Node::List(from.events.iter().map(event).collect()))),
    ])
}

fn event(from: &Event) -> Node {
    let (kind, data) = assessment(&from.assessment);
    let data: Vec<(String, Node)> =
        data.into_iter().filter_map(|(name, node)| Some((name.to_owned(), node?))).collect();
    Node::map([
        ("time", from.at.map(Node::time)),
        ("author", non_empty_text(&from.author)),
        ("type", Some(Node::text(kind))),
        ("data", (!data.is_empty()).then_some(Node::Map(data))),
        ("source", non_empty_text(&from.provenance.source)),
        ("licence", non_empty_text(&from.provenance.licence)),
    ])
}

type Data = Vec<(&'static str, Option<Node>)>;

fn assessment(from: &Assessment) -> (&'static str, Data) {
    match from {
        Assessment::Detection(Detection::Manual) => ("detection/manual", Vec::new()),
        Assessment::Detection(Detection::Nvd { searched, matched: found }) => {
            ("detection/nvd", vec![("cpe-searched", non_empty_text(searched)), ("cpe-found", non_empty_text(found))])
        }
        Assessment::Detection(Detection::Scan(scan)) => ("detection/scan", scan_data(scan)),
        Assessment::TruePositive { note } => ("true-positive", vec![("note", non_empty_text(note))]),
        Assessment::FalsePositive { why, note } => {
            let reason = WHY.get(*why as usize - 1).copied().unwrap_or_default();
            ("false-positive", vec![("reason", Some(Node::text(reason))), ("note", non_empty_text(note))])
        }
        Assessment::Fixed { version, note } => {
            ("fixed", vec![("version", Some(Node::text(version))), ("note", non_empty_text(note))])
        }
        Assessment::AnalysisNotPlanned { note } => ("analysis-not-planned", vec![("note", non_empty_text(note))]),
        Assessment::FixNotPlanned { note } => ("fix-not-planned", vec![("note", non_empty_text(note))]),
        Assessment::PendingUpstreamFix { note } => ("pending-upstream-fix", vec![("note", non_empty_text(note))]),
        Assessment::Patched { versions, note } => {
            ("patched", vec![("versions", Some(Node::texts(versions))), ("note", non_empty_text(note))])
        }
        Assessment::ComponentMoved { from, to, note } => (
            "component-moved",
            vec![("from", non_empty_text(from)), ("to", non_empty_text(to)), ("note", non_empty_text(note))],
        ),
    }
}

/// The members of a scan, and the fields that hold them.
fn scan_members(scan: &mut Scan) -> [(&'static str, &mut String); 11] {
    [
        ("scanner", &mut scan.scanner),
        ("scanner-version", &mut scan.scanner_version),
        ("subpackage", &mut scan.subpackage),
        ("component-id", &mut scan.component_id),
        ("component-name", &mut scan.component_name),
        ("component-version", &mut scan.component_version),
        ("component-type", &mut scan.component_kind),
        ("component-location", &mut scan.component_location),
        ("artifact-version", &mut scan.artifact_version),
        ("database-built", &mut scan.database_built),
        ("database-checksum", &mut scan.database_checksum),
    ]
}

fn scan_data(scan: &Scan) -> Data {
    let mut copy = scan.clone();
    scan_members(&mut copy).into_iter().map(|(name, value)| (name, non_empty_text(value))).collect()
}

pub(crate) fn read(bytes: &[u8], limits: &Limits, problems: &mut Problems) -> Result<Vec<Advisory>, Unreadable> {
    let tree = yaml::from_yaml(bytes, limits)?;
    let root = Cursor::root(&tree);
    let schema = root.need("schema")?;
    if schema.word()? != SCHEMA {
        return Err(schema.error(format!("is not {SCHEMA}")).into());
    }
    let head = root.need("artifact")?;
    let artifact = Artifact {
        kind: head.need("type")?.word()?.into(),
        name: head.need("name")?.word()?.into(),
        architecture: String::new(),
    };
    let mut advisories = Vec::new();
    for entry in root.need("advisories")?.elements()? {
        match read_advisory(&entry, &artifact) {
            Ok(advisory) => advisories.push(advisory),
            Err(RecordError { position, reason }) => problems.skip(position, reason),
        }
    }
    advisories.sort();
    Ok(advisories)
}

/// Unknown members are reported, because they are mistakes.
fn only(from: &Cursor<'_>, known: &[&str]) -> Result<(), RecordError> {
    for (name, member) in from.members()? {
        if !known.contains(&name) {
            return Err(member.error("is no member that is known here"));
        }
    }
    Ok(())
}

fn read_advisory(from: &Cursor<'_>, artifact: &Artifact) -> Result<Advisory, RecordError> {
    only(from, &["id", "aliases", "architecture", "component", "author", "created", "updated", "events"])?;
    let component = match from.get("component")? {
        None => Component::default(),
        Some(component) => {
            only(&component, &["type", "name", "location"])?;
            let [kind, name, location] = ["type", "name", "location"].map(|member| component.short(member));
            Component { kind: kind?, name: name?, location: location? }
        }
    };
    let events: Vec<Event> = from.list("events")?.iter().map(read_event).collect::<Result<_, _>>()?;
    let mut advisory = Advisory {
        artifact: Artifact { architecture: from.short("architecture")?, ..artifact.clone() },
        component,
        id: from.short("id")?,
        aliases: from.words("aliases")?,
        author: from.short("author")?,
        created: from.time_of("created")?,
        updated: from.time_of("updated")?,
        events,
    };
    if advisory.names().is_empty() {
        return Err(from.error("has neither id nor aliases"));
    }
    advisory.sort();
    Ok(advisory)
}

fn read_event(from: &Cursor<'_>) -> Result<Event, RecordError> {
    only(from, &["time", "author", "type", "data", "source", "licence"])?;
    let kind = from.need("type")?;
    let empty = Node::Map(Vec::new());
    let data = from.get("data")?;
    let data = data.unwrap_or_else(|| Cursor::root(&empty));
    let note = || data.long("note");
    let assessment = match kind.word()? {
        "detection/manual" => only(&data, &[]).map(|()| Assessment::Detection(Detection::Manual))?,
        "detection/nvd" => {
            only(&data, &["cpe-searched", "cpe-found"])?;
            let [searched, found] = ["cpe-searched", "cpe-found"].map(|member| data.short(member));
            Assessment::Detection(Detection::Nvd { searched: searched?, matched: found? })
        }
        "detection/scan" => Assessment::Detection(Detection::Scan(Box::new(read_scan(&data)?))),
        "false-positive" => {
            only(&data, &["reason", "note"])?;
            let reason = data.need("reason")?;
            let at = WHY.iter().position(|known| Some(*known) == reason.word().ok());
            let why = at.and_then(|at| FalsePositive::ALL.get(at).copied());
            Assessment::FalsePositive { why: why.ok_or_else(|| reason.error("is no reason"))?, note: note()? }
        }
        "fixed" => {
            only(&data, &["version", "note"])?;
            Assessment::Fixed { version: data.need("version")?.word()?.into(), note: note()? }
        }
        "patched" => {
            only(&data, &["versions", "note"])?;
            data.need("versions")?;
            Assessment::Patched { versions: data.words("versions")?, note: note()? }
        }
        "component-moved" => {
            only(&data, &["from", "to", "note"])?;
            Assessment::ComponentMoved { from: data.short("from")?, to: data.short("to")?, note: note()? }
        }
        simple => {
            only(&data, &["note"])?;
            let note = note()?;
            match simple {
                "true-positive" => Assessment::TruePositive { note },
                "analysis-not-planned" => Assessment::AnalysisNotPlanned { note },
                "fix-not-planned" => Assessment::FixNotPlanned { note },
                "pending-upstream-fix" => Assessment::PendingUpstreamFix { note },
                other => return Err(kind.error(format!("{other:?} is no type of event"))),
            }
        }
    };
    let provenance = Provenance { source: from.short("source")?, licence: from.short("licence")? };
    Ok(Event { at: from.time_of("time")?, author: from.short("author")?, assessment, provenance })
}

fn read_scan(data: &Cursor<'_>) -> Result<Scan, RecordError> {
    let mut scan = Scan::default();
    let members = scan_members(&mut scan);
    only(data, &members.each_ref().map(|(name, _)| *name))?;
    for (name, value) in members {
        *value = data.short(name)?;
    }
    Ok(scan)
}
