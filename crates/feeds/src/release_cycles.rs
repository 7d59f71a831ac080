//! Reads release cycles in the forms of endoflife.date: the list of one product's cycles (`/api/python.json`), and a
//! product or all products of its API v1 (`/api/v1/products/python`, `/api/v1/products/full`).

use bowline_formats::purl::PackageUrl;

use crate::cursor::Cursor;
use crate::problem::{Problems, RecordError, Unreadable};
use crate::tree::{Limits, from_json};

/// A product, as a file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Product {
    /// Name, in lower case.
    pub name: String,
    /// Other names: those of its images included.
    pub aliases: Vec<String>,
    pub cycles: Vec<Cycle>,
}

/// Versions that are supported together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    pub name: String,
    /// Dates as `YYYY-MM-DD`; empty if they are not known.
    pub release_date: String,
    pub end_date: String,
    /// Whether there are no more fixes, where `end_date` is empty.
    pub ended: bool,
    pub lts: bool,
    /// Newest version; empty if it is not known.
    pub latest_version: String,
}

/// The products of a file. `name` is the product of a file that is a list of cycles and does not say whose.
///
/// # Errors
/// It is in none of the forms, or beyond the limits.
pub fn release_cycles(
    bytes: &[u8],
    name: &str,
    limits: &Limits,
    problems: &mut Problems,
) -> Result<Vec<Product>, Unreadable> {
    let tree = from_json(bytes, limits)?;
    let document = Cursor::root(&tree);
    if let Ok(cycles) = document.elements() {
        let cycles = collect(&cycles, problems, listed_cycle);
        return Ok(vec![Product { name: name.to_lowercase(), aliases: Vec::new(), cycles }]);
    }
    let result = document.need("result")?;
    let products = result.elements().unwrap_or_else(|_| vec![result.clone()]);
    let mut found = Vec::new();
    for product in &products {
        match read_product(product, problems) {
            Ok(product) => found.push(product),
            Err(RecordError { position, reason }) => problems.skip(position, reason),
        }
    }
    Ok(found)
}

/// What can be read of a list; the rest is skipped.
fn collect(
    elements: &[Cursor<'_>],
    problems: &mut Problems,
    read: impl Fn(&Cursor<'_>) -> Result<Cycle, RecordError>,
) -> Vec<Cycle> {
    let mut found = Vec::new();
    for element in elements {
        match read(element) {
            Ok(cycle) => found.push(cycle),
            Err(RecordError { position, reason }) => problems.skip(position, reason),
        }
    }
    found
}

fn read_product(from: &Cursor<'_>, problems: &mut Problems) -> Result<Product, RecordError> {
    let name = from.need("name")?.word()?.to_lowercase();
    let mut aliases: Vec<String> = from.words("aliases")?.iter().map(|alias| alias.to_lowercase()).collect();
    for identifier in from.list("identifiers")? {
        aliases.extend(image_name(&identifier)?);
    }
    aliases.sort();
    aliases.dedup();
    aliases.retain(|alias| *alias != name && is_name(alias));
    let cycles = collect(&from.need("releases")?.elements()?, problems, release);
    Ok(Product { name, aliases, cycles })
}

/// Whether the server takes a text as the name of a product.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= 100
        && text.bytes().next().is_some_and(is_plain)
        && text.bytes().all(|byte| is_plain(byte) || b"._+-".contains(&byte))
}

/// The name of an image that an identifier is about, such as `pkg:docker/library/node`.
fn image_name(identifier: &Cursor<'_>) -> Result<Option<String>, RecordError> {
    if identifier.need("type")?.word()? != "purl" {
        return Ok(None);
    }
    let purl = PackageUrl::parse(identifier.need("id")?.word()?).ok();
    Ok(purl.filter(|purl| matches!(purl.kind.as_str(), "docker" | "oci")).map(|purl| purl.name.to_lowercase()))
}

/// A release of API v1.
fn release(from: &Cursor<'_>) -> Result<Cycle, RecordError> {
    let latest = from.get("latest")?.map(|latest| latest.short("name")).transpose()?;
    Ok(Cycle {
        name: from.need("name")?.word()?.to_owned(),
        release_date: date(from.get("releaseDate")?)?,
        end_date: date(from.get("eolFrom")?)?,
        ended: from.get("isEol")?.map(|flag| flag.flag()).transpose()?.unwrap_or_default(),
        lts: from.get("isLts")?.map(|flag| flag.flag()).transpose()?.unwrap_or_default(),
        latest_version: latest.unwrap_or_default(),
    })
}

/// A cycle of the older API, where `eol` and `lts` are dates or flags.
fn listed_cycle(from: &Cursor<'_>) -> Result<Cycle, RecordError> {
    let (end_date, ended) = date_or_flag(from.get("eol")?)?;
    let (lts_date, is_lts) = date_or_flag(from.get("lts")?)?;
    Ok(Cycle {
        name: from.need("cycle")?.word()?.to_owned(),
        release_date: date(from.get("releaseDate")?)?,
        end_date,
        ended,
        lts: is_lts || !lts_date.is_empty(),
        latest_version: from.short("latest")?,
    })
}

fn date_or_flag(from: Option<Cursor<'_>>) -> Result<(String, bool), RecordError> {
    let Some(value) = from else { return Ok((String::new(), false)) };
    match value.flag() {
        Ok(flag) => Ok((String::new(), flag)),
        Err(_) => Ok((date(Some(value))?, false)),
    }
}

/// A date as `YYYY-MM-DD`; empty where there is none.
fn date(from: Option<Cursor<'_>>) -> Result<String, RecordError> {
    let Some(value) = from else { return Ok(String::new()) };
    let text = value.word()?;
    let is_date = text.len() == 10 && bowline_core::rfc3339::parse(&format!("{text}T00:00:00Z")).is_some();
    if is_date { Ok(text.to_owned()) } else { Err(value.error("is no date such as 2026-10-31")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Product>, Problems) {
        let mut problems = Problems::default();
        let products = release_cycles(text.as_bytes(), "Python", &Limits::default(), &mut problems).expect("a form");
        (products, problems)
    }

    #[test]
    fn a_list_of_cycles_is_of_the_named_product() {
        let (products, problems) = read(
            r#"[{"cycle": "3.12", "releaseDate": "2023-10-02", "eol": "2028-10-31", "latest": "3.12.4", "lts": false},
                {"cycle": "2.7", "releaseDate": "2010-07-03", "eol": true, "latest": "2.7.18", "lts": "2014-01-01"}]"#,
        );
        assert!(problems.is_empty(), "{problems:?}");
        let [product] = products.as_slice() else { panic!("{products:?}") };
        assert_eq!((product.name.as_str(), product.cycles.len()), ("python", 2));
        let [new, old] = product.cycles.as_slice() else { panic!("{product:?}") };
        assert_eq!((new.end_date.as_str(), new.ended, new.lts), ("2028-10-31", false, false));
        assert_eq!((old.end_date.as_str(), old.ended, old.lts), ("", true, true));
        assert_eq!(old.latest_version, "2.7.18");
    }

    #[test]
    fn products_of_the_newer_form_bring_the_names_of_their_images() {
        let (products, problems) = read(
            r#"{"schema_version": "1.2.0", "result": [{
                "name": "nodejs", "aliases": ["node.js", "Not a name"],
                "identifiers": [{"type": "purl", "id": "pkg:docker/library/node"}, {"type": "cpe", "id": "cpe:/a:x"}],
                "releases": [
                    {"name": "22", "releaseDate": "2024-04-24", "isLts": true, "isEol": false, "eolFrom": "2027-04-30",
                     "latest": {"name": "22.11.0"}},
                    {"name": "9", "eolFrom": null, "isEol": true, "latest": null}]}]}"#,
        );
        assert!(problems.is_empty(), "{problems:?}");
        let [product] = products.as_slice() else { panic!("{products:?}") };
        assert_eq!(product.aliases, ["node", "node.js"]);
        let [new, old] = product.cycles.as_slice() else { panic!("{product:?}") };
        assert_eq!((new.latest_version.as_str(), new.lts, new.end_date.as_str()), ("22.11.0", true, "2027-04-30"));
        assert_eq!((old.ended, old.end_date.as_str()), (true, ""));
    }

    #[test]
    fn what_is_wrong_is_skipped_with_its_place() {
        let (products, problems) = read(r#"[{"cycle": "1", "eol": "2026-02-30"}, {"eol": true}, {"cycle": "2"}]"#);
        assert_eq!(products[0].cycles.len(), 1);
        let reasons: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(reasons, ["skipped [0].eol: is no date such as 2026-10-31", "skipped [1]: has no cycle"]);
        for text in ["{}", "1", "[", r#"{"result": 1}"#] {
            let mut problems = Problems::default();
            let read = release_cycles(text.as_bytes(), "x", &Limits::default(), &mut problems);
            assert!(read.is_err() || problems.skipped() == 1, "{text}: {read:?}");
        }
    }
}
