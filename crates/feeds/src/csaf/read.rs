//! Reading, of documents of others too: 2.0, and of 2.1 what is the same.

use std::collections::BTreeMap;

use bowline_formats::purl::PackageUrl;

use crate::cursor::Cursor;
use crate::model::{Advisory, FalsePositive, Micros};
use crate::problem::{Problems, RecordError, Unreadable};
use crate::subject::{Subject, located_by, package_url};
use crate::tree::{Limits, from_json};
use crate::vex::{Outlook, Statement, Status, advisories, false_positive, outlook};

pub(crate) fn read(bytes: &[u8], limits: &Limits, problems: &mut Problems) -> Result<Vec<Advisory>, Unreadable> {
    let tree = from_json(bytes, limits)?;
    let root = Cursor::root(&tree);
    let document = root.need("document")?;
    let version = document.need("csaf_version")?;
    if !matches!(version.word()?, "2.0" | "2.1") {
        return Err(version.error("is neither 2.0 nor 2.1").into());
    }
    let author = document.need("publisher")?.short("name")?;
    let changed = document.need("tracking")?.need("current_release_date")?.time()?;
    let mut products = Products::default();
    if let Some(tree) = root.get("product_tree")? {
        products.read(&tree, problems)?;
    }
    let mut found = Vec::new();
    for vulnerability in root.list("vulnerabilities")? {
        match read_vulnerability(&vulnerability, &products, changed, problems) {
            Ok(statements) => found.extend(statements),
            Err(RecordError { position, reason }) => problems.skip(position, reason),
        }
    }
    Ok(advisories(found, &author))
}

/// What product ids mean: package URLs, and parts of products.
#[derive(Default)]
struct Products {
    plain: BTreeMap<String, PackageUrl>,
    parts: BTreeMap<String, (String, String)>,
    groups: BTreeMap<String, Vec<String>>,
}

impl Products {
    fn read(&mut self, tree: &Cursor<'_>, problems: &mut Problems) -> Result<(), RecordError> {
        for product in tree.list("full_product_names")? {
            self.product(&product, problems)?;
        }
        let mut branches = tree.list("branches")?;
        while let Some(branch) = branches.pop() {
            if let Some(product) = branch.get("product")? {
                self.product(&product, problems)?;
            }
            branches.extend(branch.list("branches")?);
        }
        for relationship in tree.list("relationships")? {
            let id = relationship.need("full_product_name")?.need("product_id")?.word()?;
            let part = relationship.need("product_reference")?.word()?;
            let product = relationship.need("relates_to_product_reference")?.word()?;
            self.parts.insert(id.into(), (part.into(), product.into()));
        }
        for group in tree.list("product_groups")? {
            self.groups.insert(group.need("group_id")?.word()?.into(), group.words("product_ids")?);
        }
        Ok(())
    }

    /// A product without a package URL matters only if a statement is about it.
    fn product(&mut self, product: &Cursor<'_>, problems: &mut Problems) -> Result<(), RecordError> {
        let id = product.need("product_id")?.word()?;
        let Some(helper) = product.get("product_identification_helper")? else {
            return Ok(());
        };
        // 2.1 has a list of them.
        let purl = match helper.get("purl")? {
            Some(purl) => Some(purl),
            None => helper.list("purls")?.into_iter().next(),
        };
        let Some(purl) = purl else {
            return Ok(());
        };
        match package_url(purl.word()?) {
            Ok(read) => drop(self.plain.insert(id.into(), located_by(read, id))),
            Err(reason) => problems.reduce(purl.position(), reason),
        }
        Ok(())
    }

    fn subject(&self, id: &str) -> Result<(Subject, String), String> {
        let plain = |id: &str| self.plain.get(id).ok_or_else(|| format!("the product {id:?} has no package URL"));
        match self.parts.get(id) {
            // A part that is itself a component of something is named by its own package URL alone.
            Some((part, product)) => Ok(Subject::read(plain(product)?, Some(&plain(part)?.unversioned()))),
            None => Ok(Subject::read(plain(id)?, None)),
        }
    }

    /// The products that an entry names, its groups resolved.
    fn named(&self, entry: &Cursor<'_>) -> Result<Vec<String>, RecordError> {
        let mut ids = entry.words("product_ids")?;
        for group in entry.words("group_ids")? {
            let members = self.groups.get(&group);
            ids.extend(members.ok_or_else(|| entry.error(format!("names the unknown group {group:?}")))?.clone());
        }
        Ok(ids)
    }
}

/// What flags, threats and remediations say of products.
#[derive(Default)]
struct ProductFacts {
    why: BTreeMap<String, (FalsePositive, Option<Micros>)>,
    impact: BTreeMap<String, (String, Option<Micros>)>,
    remedy: BTreeMap<String, (Outlook, String, Option<Micros>)>,
}

impl ProductFacts {
    fn read(from: &Cursor<'_>, products: &Products) -> Result<ProductFacts, RecordError> {
        let mut facts = ProductFacts::default();
        for flag in from.list("flags")? {
            let label = flag.need("label")?;
            let why = false_positive(label.word()?).ok_or_else(|| label.error("is none of the labels"))?;
            let date = flag.time_of("date")?;
            for id in products.named(&flag)? {
                facts.why.insert(id, (why, date));
            }
        }
        for threat in from.list("threats")? {
            if threat.need("category")?.word()? == "impact" {
                let (details, date) = (threat.long("details")?, threat.time_of("date")?);
                for id in products.named(&threat)? {
                    facts.impact.insert(id, (details.clone(), date));
                }
            }
        }
        for remedy in from.list("remediations")? {
            let (words, date) = (remedy.long("details")?, remedy.time_of("date")?);
            let (expected, note) = match (remedy.need("category")?.word()?, outlook(&words)) {
                ("no_fix_planned", (Outlook::NoFixPlanned, _)) => (Outlook::NoFixPlanned, String::new()),
                ("no_fix_planned", _) => (Outlook::NoFixPlanned, words),
                (_, (outlook, note)) => (outlook, note),
            };
            for id in products.named(&remedy)? {
                facts.remedy.insert(id, (expected, note.clone(), date));
            }
        }
        Ok(facts)
    }
}

fn read_vulnerability(
    from: &Cursor<'_>,
    products: &Products,
    changed: Micros,
    problems: &mut Problems,
) -> Result<Vec<Statement>, RecordError> {
    let mut names: Vec<String> = Vec::new();
    for id in from.list("ids")? {
        names.push(id.need("text")?.word()?.into());
    }
    names.extend(from.get("cve")?.map(|cve| cve.word().map(str::to_owned)).transpose()?);
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Err(from.error("has neither cve nor ids"));
    }
    let facts = ProductFacts::read(from, products)?;
    let mut found: Vec<Statement> = Vec::new();
    for (status, ids) in from.need("product_status")?.members()? {
        if matches!(status, "recommended" | "last_affected") {
            problems.reduce(ids.position(), "what it says of versions is not kept");
            continue;
        }
        for id in ids.elements()? {
            let assessment =
                products.subject(id.word()?).and_then(|subject| validated(status, id.word_or_empty(), subject, &facts));
            match assessment {
                Ok(ProductStatement { subject, status, note, at, lost }) => {
                    if let Some(version) = lost {
                        let reason = format!("the statement holds for all versions, not only for {version}");
                        problems.reduce(id.position(), reason);
                    }
                    let at = at.unwrap_or(changed);
                    let names = names.clone();
                    merge(&mut found, Statement { names, subject, status, note, at, updated: Some(changed) });
                }
                Err(reason) => problems.skip(id.position(), reason),
            }
        }
    }
    Ok(found)
}

struct ProductStatement {
    subject: Subject,
    status: Status,
    note: String,
    at: Option<Micros>,
    /// The version of the statement, if none can be stored.
    lost: Option<String>,
}

fn validated(
    status: &str,
    id: &str,
    (subject, version): (Subject, String),
    facts: &ProductFacts,
) -> Result<ProductStatement, String> {
    let lost = (!version.is_empty()).then(|| version.clone());
    let assessment = match status {
        "fixed" | "first_fixed" if version.is_empty() => {
            return Err("it is fixed, and its package URL has no version".into());
        }
        "fixed" | "first_fixed" => ProductStatement {
            subject,
            status: Status::Fixed(vec![version]),
            note: String::new(),
            at: None,
            lost: None,
        },
        "known_affected" | "first_affected" => {
            let (outlook, note, at) = facts.remedy.get(id).cloned().unwrap_or((Outlook::Open, String::new(), None));
            ProductStatement { subject, status: Status::Affected(outlook), note, at, lost }
        }
        "known_not_affected" => {
            let Some((why, at)) = facts.why.get(id).copied() else {
                return Err("it is not affected, and no flag says why".into());
            };
            let (note, dated) = facts.impact.get(id).cloned().unwrap_or_default();
            ProductStatement { subject, status: Status::NotAffected(why), note, at: at.or(dated), lost }
        }
        "under_investigation" => {
            ProductStatement { subject, status: Status::UnderInvestigation, note: String::new(), at: None, lost }
        }
        other => return Err(format!("{other:?} is no status")),
    };
    Ok(assessment)
}

/// Several fixed versions of one product are one statement; another statement of it is one more.
fn merge(found: &mut Vec<Statement>, next: Statement) {
    for known in found.iter_mut().filter(|known| known.subject == next.subject) {
        if let (Status::Fixed(versions), Status::Fixed(more)) = (&mut known.status, &next.status) {
            versions.extend(more.iter().cloned());
            versions.sort();
            versions.dedup();
            return;
        }
    }
    found.push(next);
}
