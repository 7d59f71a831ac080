//! Writing: one document for all statements about one artifact.

use std::collections::BTreeMap;

use bowline_formats::purl::PackageUrl;

use super::justification;
use crate::model::{Advisory, FalsePositive};
use crate::problem::Problems;
use crate::tree::{Node, non_empty_text};
use crate::vex::{Outlook, Publisher, Statement, Status, Written, digest, known_name, statements};

/// Writes a document of what is believed now; none where nothing can be said.
pub(crate) fn write(from: &[Advisory], publisher: &Publisher, problems: &mut Problems) -> Option<Written> {
    let statements = statements(from, problems);
    let first = statements.iter().map(|statement| statement.at).min()?;
    let changed = statements.iter().map(Statement::changed).max()?;
    let mut components: BTreeMap<String, Product> = BTreeMap::new();
    let vulnerabilities: Vec<Node> =
        statements.iter().map(|statement| vulnerability(statement, publisher, &mut components)).collect();
    let components: Vec<Node> = components.into_iter().map(|(purl, product)| product.written(&purl)).collect();
    let supplier =
        Node::map([("name", Some(Node::text(&publisher.name))), ("url", Some(Node::texts([&publisher.namespace])))]);
    let metadata = Node::map([("timestamp", Some(Node::time(changed))), ("supplier", Some(supplier))]);
    let document = |serial: Option<Node>| {
        Node::map([
            ("$schema", Some(Node::text("http://cyclonedx.org/schema/bom-1.6.schema.json"))),
            ("bomFormat", Some(Node::text("CycloneDX"))),
            ("specVersion", Some(Node::text("1.6"))),
            ("serialNumber", serial),
            ("version", Some(Node::Int(1))),
            ("metadata", Some(metadata.clone())),
            ("components", Some(Node::List(components.clone()))),
            ("vulnerabilities", Some(Node::List(vulnerabilities.clone()))),
        ])
    };
    let serial = uuid(&digest(&document(None).to_json()));
    let bytes = document(Some(Node::text(format!("urn:uuid:{serial}")))).to_json();
    Some(Written { bytes, first, changed })
}

/// A UUID of version 8, whose bits are those of a digest.
fn uuid(digest: &str) -> String {
    let (part, variant) = (|from: usize, to: usize| &digest[from..to], ["8", "9", "a", "b"]);
    let bits = usize::from(digest.as_bytes()[16] % 4);
    format!("{}-{}-8{}-{}{}-{}", part(0, 8), part(8, 12), part(13, 16), variant[bits], part(17, 20), part(20, 32))
}

/// A component of the document, and its parts.
#[derive(Default)]
struct Product {
    kind: String,
    name: String,
    /// By package URL and location: package URL and name.
    parts: BTreeMap<String, (String, String)>,
}

impl Product {
    fn written(self, purl: &str) -> Node {
        let parts = self.parts.iter().map(|(located, (part, name))| {
            Node::map([
                ("type", Some(Node::text("library"))),
                ("bom-ref", Some(Node::text(reference(purl, Some(located))))),
                ("name", Some(Node::text(name))),
                ("purl", Some(Node::text(part))),
            ])
        });
        let parts = (!self.parts.is_empty()).then(|| Node::List(parts.collect()));
        let kind = if self.kind == "image" { "container" } else { "library" };
        Node::map([
            ("type", Some(Node::text(kind))),
            ("bom-ref", Some(Node::text(reference(purl, None)))),
            ("name", Some(Node::text(self.name))),
            ("purl", Some(Node::text(purl))),
            ("components", parts),
        ])
    }
}

/// A component in a product is another one than the same in another product.
fn reference(product: &str, part: Option<&str>) -> String {
    part.map_or(product.to_owned(), |part| format!("{part} in {product}"))
}

fn vulnerability(statement: &Statement, publisher: &Publisher, components: &mut BTreeMap<String, Product>) -> Node {
    // Statements are only about what can be named; see `Statement::of`.
    let subject = &statement.subject;
    let purl = subject.artifact_purl("", &publisher.distribution).map(|purl| purl.to_string()).unwrap_or_default();
    let text = |purl: Result<Option<PackageUrl>, String>| purl.ok().flatten().map(|part| part.to_string());
    let located = text(subject.located_purl(&publisher.distribution));
    let part = text(subject.component_purl(&publisher.distribution));
    let product = components.entry(purl.clone()).or_default();
    product.kind.clone_from(&subject.artifact.kind);
    product.name.clone_from(&subject.artifact.name);
    if let (Some(located), Some(part)) = (&located, part) {
        product.parts.insert(located.clone(), (part, subject.component.name.clone()));
    }
    let affected = Node::map([
        ("ref", Some(Node::text(reference(&purl, located.as_deref())))),
        ("versions", versions(&statement.status)),
    ]);
    let (id, others) = known_name(&statement.names);
    let references = others.iter().map(|name| {
        let source = Node::map([("name", Some(Node::text(source(name))))]);
        Node::map([("id", Some(Node::text(name))), ("source", Some(source))])
    });
    let references = (!others.is_empty()).then(|| Node::List(references.collect()));
    Node::map([
        ("id", Some(Node::text(&id))),
        ("source", Some(Node::map([("name", Some(Node::text(source(&id))))]))),
        ("references", references),
        ("updated", statement.updated.map(Node::time)),
        ("analysis", Some(analysis(statement))),
        ("affects", Some(Node::List(vec![affected]))),
    ])
}

fn versions(status: &Status) -> Option<Node> {
    let Status::Fixed(versions) = status else {
        return None;
    };
    let free = versions
        .iter()
        .map(|version| Node::map([("version", Some(Node::text(version))), ("status", Some(Node::text("unaffected")))]));
    Some(Node::List(free.collect()))
}

fn analysis(statement: &Statement) -> Node {
    let (state, why, response) = match &statement.status {
        Status::NotAffected(FalsePositive::ComponentMismatch) => ("false_positive", None, None),
        Status::NotAffected(why) => ("not_affected", justification(*why), None),
        Status::Affected(Outlook::Open) => ("exploitable", None, None),
        Status::Affected(Outlook::NoFixPlanned) => ("exploitable", None, Some("will_not_fix")),
        Status::Affected(Outlook::Upstream) => ("exploitable", None, Some("can_not_fix")),
        Status::Affected(Outlook::NoAnalysisPlanned) => ("in_triage", None, Some("will_not_fix")),
        Status::Fixed(versions) if versions.len() > 1 => ("resolved_with_pedigree", None, None),
        Status::Fixed(_) => ("resolved", None, None),
        Status::UnderInvestigation => ("in_triage", None, None),
    };
    Node::map([
        ("state", Some(Node::text(state))),
        ("justification", why.map(Node::text)),
        ("response", response.map(|response| Node::texts([response]))),
        ("detail", non_empty_text(&statement.note)),
        ("lastUpdated", Some(Node::time(statement.at))),
    ])
}

fn source(name: &str) -> &str {
    match name.split('-').next().unwrap_or_default() {
        "CVE" => "NVD",
        "GHSA" => "GitHub",
        "GO" => "Go",
        prefix if !prefix.is_empty() && prefix != name => prefix,
        _ => "other",
    }
}
