//! Reads and writes OpenVEX 0.2.0.

use bowline_formats::purl::PackageUrl;

use crate::cursor::Cursor;
use crate::model::Advisory;
use crate::problem::{Problems, RecordError, Unreadable};
use crate::subject::{Subject, located_by, package_url};
use crate::tree::{Limits, Node, from_json, non_empty_text};
use crate::vex::{
    Outlook, Publisher, Statement, Status, Written, action, advisories, digest, false_positive, justification, outlook,
    own_name, statements,
};

const CONTEXT: &str = "https://openvex.dev/ns/v0.2.0";

/// Writes a document of what is believed now; none where nothing can be said.
pub(crate) fn write(from: &[Advisory], publisher: &Publisher, problems: &mut Problems) -> Option<Written> {
    let statements = statements(from, problems);
    let first = statements.iter().map(|statement| statement.at).min()?;
    let changed = statements.iter().map(Statement::changed).max()?;
    let body: Vec<Node> = statements.iter().filter_map(|statement| written(statement, publisher, problems)).collect();
    let document = |id: Option<Node>| {
        Node::map([
            ("@context", Some(Node::text(CONTEXT))),
            ("@id", id),
            ("author", Some(Node::text(&publisher.name))),
            ("timestamp", Some(Node::time(first))),
            ("last_updated", (changed > first).then(|| Node::time(changed))),
            // Grows with every change, because the time of the change does.
            ("version", Some(Node::Int(changed.div_euclid(1_000_000).max(1)))),
            ("statements", Some(Node::List(body.clone()))),
        ])
    };
    let id = format!("{}/openvex/{}", publisher.namespace, digest(&document(None).to_json()));
    let bytes = document(Some(Node::text(id))).to_json();
    Some(Written { bytes, first, changed })
}

fn written(statement: &Statement, publisher: &Publisher, problems: &mut Problems) -> Option<Node> {
    let (name, aliases) = own_name(&statement.names);
    let versions = match &statement.status {
        Status::Fixed(versions) => versions.clone(),
        _ => vec![String::new()],
    };
    let parts = parts(statement, publisher).ok()?;
    let mut products = Vec::new();
    for version in versions {
        let purl = statement.subject.artifact_purl(&version, &publisher.distribution).ok()?.to_string();
        products.push(Node::map([
            ("@id", Some(Node::text(&purl))),
            ("identifiers", Some(Node::map([("purl", Some(Node::text(&purl)))]))),
            ("subcomponents", (!parts.is_empty()).then(|| Node::List(parts.clone()))),
        ]));
    }
    let note = non_empty_text(&statement.note);
    let (status, why, impact, action, notes) = match &statement.status {
        Status::NotAffected(why) => ("not_affected", Some(justification(*why)), note, None, None),
        Status::Affected(outlook) => {
            ("affected", None, None, Some(Node::text(action(*outlook, &statement.note))), None)
        }
        Status::Fixed(_) => ("fixed", None, None, None, note),
        Status::UnderInvestigation => ("under_investigation", None, None, None, note),
    };
    if statement.subject.artifact.kind == "library" && statement.subject.component.is_empty() {
        problems.reduce(&name, "the library's ecosystem is not known");
    }
    if matches!(&statement.status, Status::Affected(outlook) if *outlook != Outlook::Open && !statement.note.is_empty())
    {
        problems.reduce(&name, "what is planned is said in words alone");
    }
    let aliases = (!aliases.is_empty()).then(|| Node::texts(aliases));
    Some(Node::map([
        ("vulnerability", Some(Node::map([("name", Some(Node::text(name))), ("aliases", aliases)]))),
        ("timestamp", Some(Node::time(statement.at))),
        ("last_updated", statement.updated.filter(|at| *at > statement.at).map(Node::time)),
        ("products", Some(Node::List(products))),
        ("status", Some(Node::text(status))),
        ("justification", why.map(Node::text)),
        ("impact_statement", impact),
        ("action_statement", action),
        ("status_notes", notes),
    ]))
}

/// The component that is meant, if it is not the whole product. Its id says where it lies; its package URL does not.
fn parts(statement: &Statement, publisher: &Publisher) -> Result<Vec<Node>, String> {
    let (subject, distribution) = (&statement.subject, &publisher.distribution);
    let purls = (subject.component_purl(distribution)?, subject.located_purl(distribution)?);
    let (Some(purl), Some(located)) = purls else { return Ok(Vec::new()) };
    let identifiers = Node::map([("purl", Some(Node::text(purl.to_string())))]);
    Ok(vec![Node::map([
        ("@id", Some(Node::text(located.to_string()))),
        ("identifiers", (located != purl).then_some(identifiers)),
    ])])
}

pub(crate) fn read(bytes: &[u8], limits: &Limits, problems: &mut Problems) -> Result<Vec<Advisory>, Unreadable> {
    let tree = from_json(bytes, limits)?;
    let document = Cursor::root(&tree);
    let context = document.need("@context")?;
    if !context.word()?.starts_with("https://openvex.dev/ns") {
        return Err(context.error("is not that of OpenVEX").into());
    }
    let author = document.short("author")?;
    let dates = Dates { first: document.time_of("timestamp")?, last: document.time_of("last_updated")? };
    let mut found = Vec::new();
    for statement in document.need("statements")?.elements()? {
        match read_statement(&statement, &dates, problems) {
            Ok(read) => found.extend(read),
            Err(RecordError { position, reason }) => problems.skip(position, reason),
        }
    }
    Ok(advisories(found, &author))
}

struct Dates {
    first: Option<i64>,
    last: Option<i64>,
}

fn read_statement(from: &Cursor<'_>, dates: &Dates, problems: &mut Problems) -> Result<Vec<Statement>, RecordError> {
    let vulnerability = from.need("vulnerability")?;
    let mut names = vulnerability.words("aliases")?;
    names.push(vulnerability.need("name")?.word()?.to_owned());
    names.sort();
    names.dedup();
    let at = from.time_of("timestamp")?.or(dates.last).or(dates.first);
    let at = at.ok_or_else(|| from.error("has no timestamp, and neither has the document"))?;
    let updated = from.time_of("last_updated")?;
    let (status, note) = read_status(from)?;
    let products = from.need("products")?.elements()?;
    let mut found: Vec<Statement> = Vec::new();
    for product in products {
        for (subject, version) in read_product(&product, problems)? {
            let status = match &status {
                Status::Fixed(_) if version.is_empty() => {
                    return Err(product.error("is fixed, and its package URL has no version"));
                }
                Status::Fixed(_) => Status::Fixed(vec![version]),
                other => {
                    if !version.is_empty() {
                        let reason = format!("the statement holds for all versions, not only for {version}");
                        problems.reduce(product.position(), reason);
                    }
                    other.clone()
                }
            };
            merge(&mut found, Statement { names: names.clone(), subject, status, note: note.clone(), at, updated });
        }
    }
    Ok(found)
}

/// Several fixed versions of one product are one statement.
fn merge(found: &mut Vec<Statement>, next: Statement) {
    let same = found.iter_mut().find(|known| known.subject == next.subject);
    match (same.map(|known| &mut known.status), &next.status) {
        (Some(Status::Fixed(versions)), Status::Fixed(more)) => {
            versions.extend(more.iter().cloned());
            versions.sort();
            versions.dedup();
        }
        (Some(_), _) => {}
        (None, _) => found.push(next),
    }
}

fn read_status(from: &Cursor<'_>) -> Result<(Status, String), RecordError> {
    let status = from.need("status")?;
    let read = match status.word()? {
        "not_affected" => {
            let Some(why) = from.get("justification")? else {
                return Err(from.error("is not affected, and no justification says why"));
            };
            let read = false_positive(why.word()?).ok_or_else(|| why.error("is none of the justifications"))?;
            (Status::NotAffected(read), from.long("impact_statement")?)
        }
        "affected" => {
            let (outlook, note) = outlook(&from.long("action_statement")?);
            (Status::Affected(outlook), note)
        }
        "fixed" => (Status::Fixed(Vec::new()), from.long("status_notes")?),
        "under_investigation" => (Status::UnderInvestigation, String::new()),
        other => return Err(status.error(format!("{other:?} is no status"))),
    };
    Ok(read)
}

fn read_product(from: &Cursor<'_>, problems: &mut Problems) -> Result<Vec<(Subject, String)>, RecordError> {
    let product = purl_of(from)?;
    let parts = from.list("subcomponents")?;
    if parts.is_empty() {
        return Ok(vec![Subject::read(&product, None)]);
    }
    let mut subjects = Vec::new();
    for part in parts {
        let mut purl = purl_of(&part)?;
        if let Some(id) = part.get("@id")? {
            purl = located_by(purl, id.word()?);
        }
        if !purl.version.is_empty() {
            problems.reduce(part.position(), "the version of a part is not kept");
        }
        subjects.push(Subject::read(&product, Some(&purl)));
    }
    Ok(subjects)
}

/// The package URL that a product or a part of one is identified by.
fn purl_of(from: &Cursor<'_>) -> Result<PackageUrl, RecordError> {
    let identified = from.get("identifiers")?.map(|identifiers| identifiers.get("purl")).transpose()?.flatten();
    let text = match identified {
        Some(purl) => purl,
        None => from.need("@id")?,
    };
    package_url(text.word()?).map_err(|reason| text.error(reason))
}
