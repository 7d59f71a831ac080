//! A strict parser of records, whose errors name the member.

use aws_lc_rs::digest;
use serde_json::{Map, Value};

use crate::canonical;
use crate::record::{Affected, Event, Package, Range, RangeKind, Record, Reference, Severity, SeverityKind};
use bowline_core::{Micros, rfc3339};

/// Maximum bytes of a record.
pub const MAX_BYTES: usize = 8 << 20;
/// Maximum characters of an identifier.
pub const LONGEST_ID: usize = 128;
/// Maximum characters of an ecosystem, a package's name or a version.
const LONGEST_NAME: usize = 1024;

/// A valid record, with its canonical form.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub record: Record,
    /// Its canonical form, members outside the schema included.
    pub canonical: Vec<u8>,
    /// SHA-256 of the canonical form.
    pub digest: [u8; 32],
}

/// Parses one record. The error is one line that names the member and what is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("has {} bytes; at most {MAX_BYTES} are read", bytes.len()));
    }
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut value: Value = serde_json::from_slice(bytes).map_err(|error| format!("is not JSON: {error}"))?;
    let members = value.as_object_mut().ok_or("is not a JSON object")?;
    // The schema allows null for some lists that are not there; both are the same content.
    members.retain(|_, member| !member.is_null());
    let record = record(members)?;
    let mut out = Vec::with_capacity(bytes.len());
    canonical::write(&value, &mut out).map_err(|error| format!("cannot be written again: {error}"))?;
    let mut sum = [0; 32];
    sum.copy_from_slice(digest::digest(&digest::SHA256, &out).as_ref());
    Ok(Parsed { record, canonical: out, digest: sum })
}

/// Whether a text may be an identifier: printable ASCII without spaces or slashes that begins with a letter or digit.
pub fn is_id(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\' | b'"' | b'?' | b'#' | b'%');
    text.len() <= LONGEST_ID
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && text.bytes().all(allowed)
}

type Members = Map<String, Value>;
type Outcome<T> = Result<T, String>;

fn record(members: &Members) -> Outcome<Record> {
    let id = required(members, "id")?;
    if !is_id(id) {
        return Err(format!("`id` is no identifier of at most {LONGEST_ID} characters"));
    }
    let modified = time(members, "modified")?.ok_or("`modified` is missing")?;
    Ok(Record {
        id: id.into(),
        modified,
        published: time(members, "published")?,
        withdrawn: time(members, "withdrawn")?,
        aliases: ids(members, "aliases")?,
        upstream: ids(members, "upstream")?,
        related: ids(members, "related")?,
        summary: text(members, "summary")?.unwrap_or_default().into(),
        details: text(members, "details")?.unwrap_or_default().into(),
        severity: each(members, "severity", severity)?,
        affected: each(members, "affected", affected)?,
        references: each(members, "references", reference)?,
    })
}

fn text<'a>(members: &'a Members, name: &str) -> Outcome<Option<&'a str>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` is not a string")),
    }
}

fn required<'a>(members: &'a Members, name: &str) -> Outcome<&'a str> {
    match text(members, name)? {
        None | Some("") => Err(format!("`{name}` is missing")),
        Some(text) => Ok(text),
    }
}

/// A text for an index: not empty, not long, without control characters.
fn name(members: &Members, member: &str) -> Outcome<String> {
    let text = required(members, member)?;
    plain(text).map_err(|what| format!("`{member}` {what}"))?;
    Ok(text.into())
}

fn plain(text: &str) -> Outcome<()> {
    if text.len() > LONGEST_NAME {
        return Err(format!("has more than {LONGEST_NAME} characters"));
    }
    if text.chars().any(char::is_control) {
        return Err("has a control character".into());
    }
    Ok(())
}

fn time(members: &Members, name: &str) -> Outcome<Option<Micros>> {
    let Some(text) = text(members, name)? else {
        return Ok(None);
    };
    let time = text.ends_with('Z').then(|| rfc3339::parse_micros(text)).flatten();
    time.map(Some).ok_or_else(|| format!("`{name}` is no RFC 3339 time in UTC"))
}

fn list<'a>(members: &'a Members, name: &str) -> Outcome<&'a [Value]> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("`{name}` is not a list")),
    }
}

/// Reads every object of a list.
fn each<T>(members: &Members, name: &str, read: impl Fn(&Members) -> Outcome<T>) -> Outcome<Vec<T>> {
    let items = list(members, name)?.iter().enumerate();
    items
        .map(|(i, item)| {
            let object = item.as_object().ok_or_else(|| format!("`{name}[{i}]` is not an object"))?;
            read(object).map_err(|what| format!("in `{name}[{i}]` {what}"))
        })
        .collect()
}

fn strings(members: &Members, name: &str, validate: impl Fn(&str) -> Outcome<()>) -> Outcome<Vec<String>> {
    let items = list(members, name)?.iter().enumerate();
    items
        .map(|(i, item)| {
            let text = item.as_str().ok_or_else(|| format!("`{name}[{i}]` is not a string"))?;
            validate(text).map_err(|what| format!("`{name}[{i}]` {what}"))?;
            Ok(text.into())
        })
        .collect()
}

fn ids(members: &Members, name: &str) -> Outcome<Vec<String>> {
    strings(members, name, |text| if is_id(text) { Ok(()) } else { Err("is no identifier".into()) })
}

/// Vectors are not validated: a mistake in one must not reject the whole record.
fn severity(members: &Members) -> Outcome<Severity> {
    Ok(Severity { kind: SeverityKind::of(required(members, "type")?), score: required(members, "score")?.into() })
}

fn reference(members: &Members) -> Outcome<Reference> {
    Ok(Reference { kind: required(members, "type")?.into(), url: required(members, "url")?.into() })
}

fn affected(members: &Members) -> Outcome<Affected> {
    let package = match members.get("package") {
        None | Some(Value::Null) => None,
        Some(Value::Object(package)) => Some(self::package(package).map_err(|what| format!("in `package` {what}"))?),
        Some(_) => return Err("`package` is not an object".into()),
    };
    Ok(Affected {
        package,
        severity: each(members, "severity", severity)?,
        ranges: each(members, "ranges", range)?,
        versions: strings(members, "versions", plain)?,
    })
}

fn package(members: &Members) -> Outcome<Package> {
    let purl = text(members, "purl")?.map(String::from);
    Ok(Package { ecosystem: name(members, "ecosystem")?, name: name(members, "name")?, purl })
}

fn range(members: &Members) -> Outcome<Range> {
    let kind = match required(members, "type")? {
        "GIT" => RangeKind::Git,
        "SEMVER" => RangeKind::Semver,
        "ECOSYSTEM" => RangeKind::Ecosystem,
        _ => return Err("`type` is none of GIT, SEMVER and ECOSYSTEM".into()),
    };
    let repo = text(members, "repo")?.map(String::from);
    if kind == RangeKind::Git && repo.is_none() {
        return Err("`repo` is missing".into());
    }
    let events = each(members, "events", event)?;
    if !events.iter().any(|event| matches!(event, Event::Introduced(_))) {
        return Err("`events` never says `introduced`".into());
    }
    Ok(Range { kind, repo, events })
}

fn event(members: &Members) -> Outcome<Event> {
    let mut members = members.iter();
    let (Some((kind, version)), None) = (members.next(), members.next()) else {
        return Err("there is not exactly one kind of event".into());
    };
    let version = version.as_str().filter(|text| !text.is_empty()).ok_or_else(|| format!("`{kind}` is no version"))?;
    plain(version).map_err(|what| format!("`{kind}` {what}"))?;
    match kind.as_str() {
        "introduced" => Ok(Event::Introduced(version.into())),
        "fixed" => Ok(Event::Fixed(version.into())),
        "last_affected" => Ok(Event::LastAffected(version.into())),
        "limit" => Ok(Event::Limit(version.into())),
        _ => Err("there is an event that the schema does not know".into()),
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
