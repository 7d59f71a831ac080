//! Texts that would do something if a page did not escape them, written into every text field that a request has, and then
//! every page that shows them. `conformance/console/xss.mjs` does the same in a browser.
//!
//! `golden/console_texts.txt` says which fields take free text; `UPDATE_GOLDEN=1` rewrites it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use bowline_contract::Method as _;
use bowline_contract::bowline::registry::v1::rpc::image_policies::CreateImageException;
use bowline_contract::v1::vulnerabilities::rpc::advisories::CreateAdvisoryEvent;
use bowline_testkit::{Engine, TestServer};
use prost_reflect::{DynamicMessage, MessageDescriptor};

use crate::calls::method;
use crate::console_fields::{Field, fields, set};
use crate::console_html::{Tag, read};
use crate::console_support::{Browsers, address, tries_all, unescaped};
use crate::fixture::{Fixture, Kind, Place};
use crate::golden::compare;
use crate::previewed::numbered;
use crate::table::{Aim, Row, table};

const FILE: &str = "tests/golden/console_texts.txt";

/// Texts that are tried first: a field that takes none of them takes no free text.
const FIRST: [usize; 7] = [0, 34, 39, 51, 55, NUL, LONGEST];

/// The text with a NUL.
const NUL: usize = 57;
/// The text of ten thousand characters.
const LONGEST: usize = 59;

/// Addresses of each page that are opened at most: of a list, its later pages; of a resource, other ones.
const ADDRESSES: usize = 60;

/// The texts, which the suite in a browser has as well.
fn corpus() -> Vec<String> {
    let json = include_str!("../../../conformance/console/corpus.json");
    let texts: Vec<serde_json::Value> = serde_json::from_str(json).expect("a list of texts");
    let text = |one: &serde_json::Value| {
        if let Some(text) = one.as_str() {
            return text.to_owned();
        }
        let times = one["times"].as_u64().and_then(|times| usize::try_from(times).ok()).expect("a number");
        one["text"].as_str().expect("a text").repeat(times)
    };
    texts.iter().map(text).collect()
}

#[tokio::test]
async fn no_text_becomes_an_element() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    let browsers = Browsers::new(&fixture);
    let operator = fixture.callers.iter().find(|caller| caller.actor.name == fixture.operator.name);
    let browser = browsers.of(operator.expect("the operator is a caller"));
    let place = fixture.place("parent");
    let harmless = crawl(&browsers, &browser, place).await;
    let corpus = corpus();
    assert_eq!(corpus.len(), 60);
    let written = write_all(&fixture, place, &corpus).await;
    compare(FILE, &written.fields);
    let hostile = crawl(&browsers, &browser, place).await;
    let ours: BTreeSet<(&str, &str)> = harmless.iter().flat_map(Page::pairs).collect();
    let mut wrong = Vec::new();
    for page in harmless.iter().chain(&hostile) {
        let foreign: Vec<_> = page.pairs().filter(|pair| !ours.contains(pair)).collect();
        if !foreign.is_empty() {
            wrong.push(format!("{} has {foreign:?}, which no page has without the texts", page.address));
        }
        wrong.extend(page.tags.iter().filter_map(led_away).map(|what| format!("{} leads to {what}", page.address)));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), hostile.len(), wrong.join("\n"));
    // These two are taken where nothing but the audit log shows them: the golden file says where.
    let seen =
        |number: usize| [NUL, LONGEST].contains(&number) || hostile.iter().any(|page| page.shows(&corpus[number]));
    let unseen: Vec<usize> = written.taken.iter().copied().filter(|number| !seen(*number)).collect();
    let untaken: Vec<usize> = (0..corpus.len()).filter(|number| !written.taken.contains(number)).collect();
    assert!(unseen.is_empty(), "no page shows {unseen:?}; no field takes {untaken:?}");
    assert!(untaken.is_empty(), "no field takes {untaken:?}");
    let marked = formulas(&browsers, &browser, &hostile).await;
    assert!(marked > 50, "{marked} cells were marked");
    assert!(hostile.len() > 300, "{}", hostile.len());
    drop(fixture);
    server.stop().await;
}

/// What makes parts of one resource, which has fewer of them than there are texts for all fields: exceptions of a policy,
/// events of an advisory.
const FILLS_UP: [&str; 2] = [CreateImageException::FULL_NAME, CreateAdvisoryEvent::FULL_NAME];

/// What became of the texts.
struct Written {
    /// The golden text.
    fields: String,
    /// Numbers of the texts that some field took.
    taken: BTreeSet<usize>,
}

/// Writes the texts into every field of every request that changes something. A field that takes free text gets some of
/// them, other fields other ones.
async fn write_all(fixture: &Fixture<'_>, place: &Place, corpus: &[String]) -> Written {
    let (mut fields_taken, mut known, mut taken) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let rows = table();
    for row in rows.iter().chain(&more()).filter(|row| row.takes.is_none()) {
        let info = method(fixture, row.full_name);
        if info.only_reads() {
            continue;
        }
        for (turn, field) in fields(&info.input).iter().enumerate() {
            let name = format!("{} {field}", row.full_name);
            let (mut is_free, mut marks) = (false, String::new());
            for number in FIRST {
                if write_one(fixture, place, row, field, &corpus[number]).await {
                    is_free = true;
                    taken.insert(number);
                    marks += [(NUL, ", also a NUL"), (LONGEST, ", also a long word")]
                        .into_iter()
                        .find_map(|(known, mark)| (known == number).then_some(mark))
                        .unwrap_or_default();
                }
            }
            let all = tries_all() && !FILLS_UP.contains(&row.full_name);
            let chosen = |number: &usize| is_free && (all || (number + turn).is_multiple_of(6));
            for number in (0..corpus.len()).filter(|number| !FIRST.contains(number)).filter(chosen).collect::<Vec<_>>()
            {
                if write_one(fixture, place, row, field, &corpus[number]).await {
                    taken.insert(number);
                }
            }
            if is_free {
                fields_taken.insert(format!("{name}{marks}"));
            }
            known.insert(name);
        }
    }
    let mut text = String::from("# Fields of requests that take free text.\n");
    for name in &fields_taken {
        let _ = writeln!(text, "{name}");
    }
    let others = known.len().saturating_sub(fields_taken.len());
    let _ = writeln!(text, "# {others} other text fields take none: ids, names with a form, addresses, enumerations.");
    Written { fields: text, taken }
}

/// Sends the request of a row with the text in one field; whether it was taken.
async fn write_one(fixture: &Fixture<'_>, place: &Place, row: &Row, field: &Field, text: &str) -> bool {
    let info = method(fixture, row.full_name);
    let base = (row.build)(&Aim { fixture, place, doomed: String::new() });
    let mut request = DynamicMessage::decode(info.input.clone(), base.as_slice()).expect("an encoded request");
    set(&mut request, field, text);
    let payload = prost::Message::encode_to_vec(&request);
    fixture.operator.grpc_raw(&info.grpc_path, payload).await.is_ok()
}

/// Requests with more in them than the matrix needs.
fn more() -> Vec<Row> {
    use bowline_contract::bowline::libraries::v1 as libraries;
    use bowline_contract::bowline::libraries::v1::rpc::catalog::ImportVersions;
    use bowline_contract::v1::vulnerabilities as v1;
    use bowline_contract::v1::vulnerabilities::advisory_event::{Fixed, Type};

    use crate::table::at;
    let version = |aim: &Aim<'_>| libraries::PackageVersion {
        ecosystem: bowline_contract::v1::libraries::Ecosystem::Python.into(),
        name: aim.name(),
        version: "1.0".into(),
        ..Default::default()
    };
    vec![
        at::<CreateAdvisoryEvent>(|aim| v1::CreateAdvisoryEventRequest {
            parent_id: aim.uid(Kind::Advisory),
            advisory_event: Some(v1::AdvisoryEvent {
                r#type: Some(Type::Fixed(Fixed { fixed_version: "1.0".into(), ..Default::default() })),
                ..Default::default()
            }),
        }),
        at::<ImportVersions>(move |aim| libraries::ImportVersionsRequest {
            versions: vec![version(aim)],
            ..Default::default()
        }),
    ]
}

/// A page that was read.
struct Page {
    address: String,
    tags: Vec<Tag>,
    text: String,
}

impl Page {
    /// Elements with each of their attributes.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tags.iter().flat_map(|tag| {
            let attributes = tag.attributes.iter().map(|(name, _)| name.as_str());
            attributes.chain([""]).map(|attribute| (tag.name.as_str(), attribute))
        })
    }

    /// Whether the text stands on the page, or its beginning where it is long.
    fn shows(&self, text: &str) -> bool {
        let plain = |text: &str| text.replace(['\r', '\n', '\0', '\u{fffd}'], "");
        let text = plain(text);
        let start = text.trim().chars().take(500).collect::<String>();
        self.text.contains(&start)
    }
}

/// Opens the pages of a place, and what they link to.
async fn crawl(browsers: &Browsers<'_>, browser: &str, place: &Place) -> Vec<Page> {
    let paths: Vec<&str> = bowline_console::Console::paths().collect();
    let mut queue: VecDeque<String> = paths.iter().map(|path| address(path, place)).collect();
    let (mut seen, mut opened, mut pages) = (BTreeSet::new(), BTreeMap::<String, usize>::new(), Vec::new());
    while let Some(next) = queue.pop_front() {
        let path = next.split('?').next().unwrap_or_default().to_owned();
        let is_page = paths.contains(&path.as_str()) && !next.contains("format=");
        let number = opened.entry(path).or_default();
        if !is_page || *number >= ADDRESSES || !seen.insert(next.clone()) {
            continue;
        }
        *number += 1;
        let (status, html) = browsers.get(browser, &next).await;
        assert!([200, 400, 404].contains(&status), "{next}: {status} {html}");
        let (tags, text) = read(&html);
        let links = tags.iter().filter(|tag| tag.name == "a").filter_map(|tag| tag.get("href"));
        queue.extend(links.map(|link| link.split('#').next().unwrap_or_default().to_owned()));
        let text = text.replace(['\r', '\n', '\0', '\u{fffd}'], "");
        pages.push(Page { address: next, tags, text });
    }
    pages
}

/// The address of an attribute if it leads to another server.
fn led_away(tag: &Tag) -> Option<String> {
    let is_ours = |value: &str| {
        value.starts_with("/console") || value.starts_with("/oauth?") || value.starts_with('#') || value == "data:,"
    };
    let leading = ["href", "src", "action", "formaction", "xlink:href", "data", "srcset", "poster"];
    let found = tag.attributes.iter().find(|(name, value)| leading.contains(&name.as_str()) && !is_ours(value));
    let handler = tag.attributes.iter().find(|(name, _)| name.starts_with("on") || name == "style");
    found.or(handler).map(|(name, value)| format!("{} {name}={value}", tag.name))
}

/// Lists as tables: no cell begins like a formula. How many were marked.
async fn formulas(browsers: &Browsers<'_>, browser: &str, pages: &[Page]) -> usize {
    let mut marked = 0;
    for page in pages {
        let link = page.tags.iter().filter_map(|tag| tag.get("href")).find(|link| link.ends_with("format=csv"));
        let Some(link) = link else { continue };
        let (status, file) = browsers.get(browser, link).await;
        assert!([200, 400, 404].contains(&status), "{link}: {status} {file}");
        for cell in cells(&file).into_iter().filter(|_| status == 200) {
            let first = cell.trim_start().chars().next().unwrap_or(' ');
            assert!(!"=+-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(first), "{link} has the cell {cell:?}");
            marked += usize::from(cell.starts_with("'=") || cell.starts_with("'+") || cell.starts_with("'@"));
        }
    }
    marked
}

/// The cells of a table whose every cell is quoted.
fn cells(csv: &str) -> Vec<String> {
    let unquoted = csv.replace("\"\"", "\u{1}");
    let quoted = unquoted.split('"').skip(1).step_by(2);
    quoted.map(|cell| cell.replace('\u{1}', "\"")).collect()
}

/// The same page with a text of each kind has the same elements as with a harmless one.
#[tokio::test]
async fn a_page_with_a_hostile_text_is_made_like_one_with_a_harmless_text() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    let browsers = Browsers::new(&fixture);
    let operator = fixture.callers.iter().find(|caller| caller.actor.name == fixture.operator.name);
    let browser = browsers.of(operator.expect("the operator is a caller"));
    let place = fixture.place("own");
    let rows = table();
    for (name, field, path) in [
        ("GroupsService.UpdateGroup", "group.description", "/console/group"),
        ("ReposService.UpdateRepo", "repo.description", "/console/repository"),
        ("IdentitiesService.UpdateIdentity", "identity.description", "/console/identity"),
        ("RolesService.UpdateRole", "role.description", "/console/role"),
    ] {
        let row = rows.iter().find(|row| row.full_name.contains(".v2.") && row.full_name.ends_with(name));
        let row = row.unwrap_or_else(|| panic!("the table has no {name}"));
        let input: &MessageDescriptor = &method(&fixture, row.full_name).input;
        let field = fields(input).into_iter().find(|known| known.to_string() == field).expect("a field");
        let address = address(path, place);
        // Lists of the last changes are full from then on.
        for number in 0..12 {
            assert!(write_one(&fixture, place, row, &field, &format!("harmless {number}")).await);
        }
        numbered(&server).await;
        let expected = shape(&browsers.get(&browser, &address).await.1);
        let mut taken = 0;
        for text in corpus() {
            if write_one(&fixture, place, row, &field, &text).await {
                taken += 1;
                let html = browsers.get(&browser, &address).await.1;
                let found = shape(&html);
                assert_eq!(found, expected, "{name} with {text:?}: {}", unescaped(&html));
            }
        }
        assert!(taken > 30, "{name} takes {taken}");
    }
    drop(fixture);
    server.stop().await;
}

/// The elements of a page in their order, with the names of their attributes; but for what says that a text was cut.
fn shape(html: &str) -> Vec<String> {
    let (tags, _) = read(&html.replace(" <span class=\"small\">(cut: ", "<cut>"));
    let kept = tags.iter().filter(|tag| tag.name != "cut");
    let shape = kept.map(|tag| {
        let names: Vec<&str> = tag.attributes.iter().map(|(name, _)| name.as_str()).collect();
        format!("{} {}", tag.name, names.join(" "))
    });
    shape.collect()
}
