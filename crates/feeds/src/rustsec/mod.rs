//! Records about crates as the files of a RustSec database, which `cargo audit` reads.
//!
//! A reader refuses the whole database for one file that it cannot read. So all that is written is validated as strictly as
//! readers do (rustsec 0.33), and a record that no file can express is left out and reported.

mod front;
mod ranges;
mod vector;

use std::collections::BTreeMap;

use bowline_osv::{Affected, PackageKey, RUST, Record, base_ecosystem};
use serde::Deserialize;

use crate::problem::Problems;

/// Most characters of the name of a crate.
const MAX_NAME: usize = 64;
/// Years that readers take, in dates and in ids with a year.
const YEARS: std::ops::RangeInclusive<u32> = 2000..=2100;

/// A file of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RustsecFile {
    /// Path in the directory of the database: `crates/<name>/<id>.md`.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// The file of a record for one crate, in any spelling of its name; none if no file can express it. `licence` is that of
/// the record's source.
pub fn rustsec_file(record: &[u8], name: &str, licence: &str, problems: &mut Problems) -> Option<RustsecFile> {
    let parsed = match bowline_osv::parse(record) {
        Ok(parsed) => parsed.record,
        Err(reason) => {
            problems.skip(name, format!("the record is invalid: {reason}"));
            return None;
        }
    };
    let further = Further::read(record);
    match file(&parsed, &further, name, licence) {
        Ok(file) => Some(file),
        Err(reason) => {
            problems.skip(format!("{} ({name})", parsed.id), reason);
            None
        }
    }
}

/// Members of records that the schema leaves to databases.
#[derive(Debug, Default, Deserialize)]
struct Further {
    #[serde(default)]
    database_specific: Option<OfDatabase>,
    #[serde(default)]
    affected: Vec<FurtherAffected>,
}

#[derive(Debug, Default, Deserialize)]
struct FurtherAffected {
    #[serde(default)]
    database_specific: Option<OfDatabase>,
}

/// What the public RustSec database says there.
#[derive(Clone, Debug, Default, Deserialize)]
struct OfDatabase {
    #[serde(default)]
    license: Option<String>,
    #[serde(default)]
    informational: Option<String>,
    #[serde(default)]
    categories: Vec<String>,
}

impl Further {
    /// Reads them; those of other databases may have other forms, and say nothing then.
    fn read(record: &[u8]) -> Further {
        serde_json::from_slice(record).unwrap_or_default()
    }
}

/// An advisory before it is written.
struct Advisory<'a> {
    id: String,
    name: &'a str,
    date: String,
    withdrawn: Option<String>,
    versions: ranges::Requirements,
    vector: Option<String>,
    license: &'a str,
    informational: Option<&'a str>,
    categories: Vec<&'a str>,
    aliases: Vec<&'a str>,
    record: &'a Record,
}

fn file(record: &Record, further: &Further, name: &str, licence: &str) -> Result<RustsecFile, String> {
    let key = PackageKey::new(RUST, name);
    let of_crates = of_crates(record);
    let (entries, spelling) = of_crates.get(&key).ok_or("it names no such crate")?;
    if !is_crate_name(spelling) {
        return Err("its name is not that of a crate".into());
    }
    let id = id(record, spelling, of_crates.keys().next() == Some(&key))?;
    let affected: Vec<&Affected> = entries.iter().map(|(_, affected)| *affected).collect();
    let of_entries = || entries.iter().filter_map(|(at, _)| further.affected.get(*at)?.database_specific.as_ref());
    let own = further.database_specific.as_ref();
    let severities = if record.severity.is_empty() {
        affected.iter().flat_map(|affected| affected.severity.clone()).collect()
    } else {
        record.severity.clone()
    };
    let is_other = id != record.id;
    let aliases = is_other.then_some(&record.id).into_iter().chain(&record.aliases);
    let advisory = Advisory {
        date: date(record.published).or_else(|| date(Some(record.modified))).ok_or("its dates are before 2000")?,
        withdrawn: record.withdrawn.map(|at| date(Some(at)).ok_or("its dates are before 2000")).transpose()?,
        versions: ranges::requirements(&affected)?,
        vector: vector::vector(&severities),
        license: own.and_then(|own| own.license.as_deref()).unwrap_or(licence),
        informational: of_entries().find_map(|of| informational(of.informational.as_deref()?)),
        categories: of_entries().flat_map(|of| &of.categories).map(String::as_str).collect(),
        aliases: aliases.map(String::as_str).filter(|alias| is_readable(alias) && *alias != id).collect(),
        name: spelling,
        id,
        record,
    };
    let path = format!("crates/{spelling}/{}.md", advisory.id);
    Ok(RustsecFile { path, bytes: front::text(&advisory).into_bytes() })
}

/// Entries of a crate with their positions in the record, and the name as the first one spells it.
type Entries<'a> = (Vec<(usize, &'a Affected)>, &'a str);

fn of_crates(record: &Record) -> BTreeMap<PackageKey, Entries<'_>> {
    let mut crates: BTreeMap<PackageKey, Entries<'_>> = BTreeMap::new();
    for (at, affected) in record.affected.iter().enumerate() {
        let Some(package) = &affected.package else { continue };
        if base_ecosystem(&package.ecosystem).eq_ignore_ascii_case(RUST) {
            let key = PackageKey::new(RUST, &package.name);
            crates.entry(key).or_insert_with(|| (Vec::new(), &package.name)).0.push((at, affected));
        }
    }
    crates
}

/// The name is that of a directory too.
fn is_crate_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// The id of the advisory: that of the record for the first of its crates. A database has each id once, so that the others
/// have their crate in front, and so have ids that readers refuse.
fn id(record: &Record, name: &str, is_first: bool) -> Result<String, String> {
    const IN_FRONT: &str = "crate.";
    let is_own = is_first && is_readable(&record.id) && !record.id.starts_with(IN_FRONT);
    let id = if is_own { record.id.clone() } else { format!("{IN_FRONT}{name}.{}", record.id) };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    // Id and name are short enough for one.
    if !id.bytes().all(allowed) {
        return Err("its id is no name of a file".into());
    }
    Ok(id)
}

/// Whether readers take an id: these kinds have a year and a number.
fn is_readable(id: &str) -> bool {
    let Some(rest) = ["RUSTSEC-", "CVE-", "TALOS-"].iter().find_map(|kind| id.strip_prefix(kind)) else { return true };
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let year_and_number = rest.split_once('-').and_then(|(year, rest)| number(year).zip(number(rest)));
    year_and_number.is_some_and(|(year, _)| YEARS.contains(&year))
}

/// The kinds that readers warn of. Any other word would hide the advisory.
fn informational(word: &str) -> Option<&'static str> {
    ["unmaintained", "unsound", "notice"].into_iter().find(|known| *known == word)
}

/// The day, if readers take its year.
fn date(at: Option<bowline_core::Micros>) -> Option<String> {
    let text = bowline_core::rfc3339::text(at?, bowline_core::rfc3339::Digits::Fewest);
    let day = text.get(..10)?;
    day.get(..4)?.parse().ok().filter(|year| YEARS.contains(year)).map(|_: u32| day.to_owned())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
