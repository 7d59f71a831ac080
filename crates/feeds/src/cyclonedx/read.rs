//! Reads CycloneDX VEX, of this server and of others.

use std::collections::BTreeMap;

use bowline_formats::percent;

use super::false_positive;
use crate::cursor::Cursor;
use crate::model::{Advisory, FalsePositive, Micros};
use crate::problem::{Problems, RecordError, Unreadable};
use crate::subject::{Subject, located_by, package_url};
use crate::tree::{Limits, from_json};
use crate::vex::{Outlook, Statement, Status, advisories};

pub(crate) fn read(bytes: &[u8], limits: &Limits, problems: &mut Problems) -> Result<Vec<Advisory>, Unreadable> {
    let tree = from_json(bytes, limits)?;
    let root = Cursor::root(&tree);
    let format = root.need("bomFormat")?;
    if format.word()? != "CycloneDX" {
        return Err(format.error("is not CycloneDX").into());
    }
    let version = root.need("specVersion")?;
    if !matches!(version.word()?, "1.4" | "1.5" | "1.6" | "1.7") {
        return Err(version.error("is none of 1.4 to 1.7").into());
    }
    let metadata = root.get("metadata")?;
    let changed = metadata.as_ref().map(|metadata| metadata.time_of("timestamp")).transpose()?.flatten();
    let mut components = Components::default();
    if let Some(component) = metadata.map(|metadata| metadata.get("component")).transpose()?.flatten() {
        components.read(&component, None)?;
    }
    for component in root.list("components")? {
        components.read(&component, None)?;
    }
    let mut found = Vec::new();
    for vulnerability in root.list("vulnerabilities")? {
        match read_vulnerability(&vulnerability, &components, changed, problems) {
            Ok(statements) => found.extend(statements),
            Err(RecordError { position, reason }) => problems.skip(position, reason),
        }
    }
    Ok(advisories(found, ""))
}

/// What references mean: a package URL, and the product that it is part of.
#[derive(Default)]
struct Components(BTreeMap<String, (String, Option<String>)>);

impl Components {
    fn read(&mut self, component: &Cursor<'_>, product: Option<&str>) -> Result<(), RecordError> {
        let purl = component.short("purl")?;
        let reference = component.short("bom-ref")?;
        if !reference.is_empty() && !purl.is_empty() {
            // Our own references say where a component lies.
            let id = reference.split(" in ").next().unwrap_or_default();
            let located = package_url(&purl).map_or_else(|_| purl.clone(), |read| located_by(read, id).to_string());
            self.0.insert(reference, (located, product.map(str::to_owned)));
        }
        // Only the outermost is a product; what lies deeper is a part of it.
        let product = product.map(str::to_owned).or(Some(purl).filter(|purl| !purl.is_empty()));
        component.list("components")?.iter().try_for_each(|part| self.read(part, product.as_deref()))
    }

    fn subject(&self, reference: &str) -> Result<(Subject, String), String> {
        if let Some((purl, product)) = self.0.get(reference) {
            let purl = package_url(purl)?;
            let Some(product) = product else {
                return Ok(Subject::read(&purl, None));
            };
            let (subject, _) = Subject::read(&package_url(product)?.unversioned(), Some(&purl.unversioned()));
            return Ok((subject, purl.version));
        }
        // A reference into another document says at most a package URL.
        let fragment = reference.split_once('#').and_then(|(_, fragment)| percent::decode(fragment)).map(String::from);
        let text = fragment.unwrap_or_else(|| reference.to_owned());
        let purl = package_url(&text).map_err(|_| format!("{reference:?} is no component with a package URL"))?;
        Ok(Subject::read(&purl, None))
    }
}

fn read_vulnerability(
    from: &Cursor<'_>,
    components: &Components,
    changed: Option<Micros>,
    problems: &mut Problems,
) -> Result<Vec<Statement>, RecordError> {
    let mut names = vec![from.need("id")?.word()?.to_owned()];
    for reference in from.list("references")? {
        names.push(reference.need("id")?.word()?.to_owned());
    }
    names.sort();
    names.dedup();
    let Some(analysis) = from.get("analysis")? else {
        return Err(from.error("has no analysis, so it states nothing"));
    };
    let updated = from.time_of("updated")?;
    let at = analysis.time_of("lastUpdated")?.or(analysis.time_of("firstIssued")?).or(updated).or(changed);
    let at = at.ok_or_else(|| from.error("has no time, and neither has the document"))?;
    let validated = read_status(&analysis)?;
    let note = analysis.long("detail")?;
    let mut found = Vec::new();
    for affected in from.need("affects")?.elements()? {
        let reference = affected.need("ref")?;
        let (subject, own) = match components.subject(reference.word()?) {
            Ok(read) => read,
            Err(reason) => {
                problems.skip(reference.position(), reason);
                continue;
            }
        };
        let mut versions = free_versions(&affected, problems)?;
        let status = match &validated {
            Status::Fixed(_) => {
                if versions.is_empty() && !own.is_empty() {
                    versions.push(own);
                }
                if versions.is_empty() {
                    problems.skip(affected.position(), "it is resolved, and no version is said to be unaffected");
                    continue;
                }
                Status::Fixed(versions)
            }
            other => {
                if !own.is_empty() {
                    let reason = format!("the statement holds for all versions, not only for {own}");
                    problems.reduce(affected.position(), reason);
                }
                other.clone()
            }
        };
        found.push(Statement { names: names.clone(), subject, status, note: note.clone(), at, updated });
    }
    Ok(found)
}

/// The versions that are marked `unaffected`, sorted.
fn free_versions(affected: &Cursor<'_>, problems: &mut Problems) -> Result<Vec<String>, RecordError> {
    let mut versions = Vec::new();
    for entry in affected.list("versions")? {
        match entry.get("version")? {
            Some(version) if entry.short("status")? == "unaffected" => versions.push(version.word()?.to_owned()),
            _ => problems.reduce(entry.position(), "what it says of versions is not kept"),
        }
    }
    versions.sort();
    versions.dedup();
    Ok(versions)
}

fn read_status(analysis: &Cursor<'_>) -> Result<Status, RecordError> {
    let state = analysis.need("state")?;
    let responses = analysis.words("response")?;
    let responds = |word: &str| responses.iter().any(|response| response == word);
    Ok(match state.word()? {
        "false_positive" => Status::NotAffected(FalsePositive::ComponentMismatch),
        "not_affected" => {
            let Some(why) = analysis.get("justification")? else {
                return Err(analysis.error("is not affected, and no justification says why"));
            };
            let read = false_positive(why.word()?).ok_or_else(|| why.error("is none of the justifications"))?;
            Status::NotAffected(read)
        }
        "exploitable" if responds("will_not_fix") => Status::Affected(Outlook::NoFixPlanned),
        "exploitable" if responds("can_not_fix") => Status::Affected(Outlook::Upstream),
        "exploitable" => Status::Affected(Outlook::Open),
        "in_triage" if responds("will_not_fix") => Status::Affected(Outlook::NoAnalysisPlanned),
        "in_triage" => Status::UnderInvestigation,
        "resolved" | "resolved_with_pedigree" => Status::Fixed(Vec::new()),
        other => return Err(state.error(format!("{other:?} is no state"))),
    })
}
