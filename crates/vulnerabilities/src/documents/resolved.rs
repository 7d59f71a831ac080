//! Reports of what was resolved: day by day, the vulnerabilities in the packages of chosen images whose advisories came
//! to say that they are fixed or do not apply.
//!
//! The packages of an image are those of its SBOM, and the packages that those are built from. Advisories count that
//! stand in a group at or above the repository's, or in a public one. Versions are not compared: the day is the one on
//! which the advisory said so.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bowline_contract::v1::advisory as v1;
use bowline_contract::v1::advisory::rpc::security_advisory as methods1;
use bowline_contract::v1::vulnerabilities::{EventTypeFilter, ReviewStatus};
use bowline_contract::v2::advisory as v2;
use bowline_contract::v2::advisory::rpc::security_advisory_service as methods2;
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::{Authorized, Handlers};
use bowline_registry::attached::Documents;
use bowline_registry::sboms::{self, Candidates};
use bowline_registry::vuln_counts::visible_repos;
use bowline_resources::list::{micros, timestamp};
use bowline_store::{ReadTx, Row, Value, placeholders};
use prost::Message as _;
use prost_types::Timestamp;

use crate::advisories::severities;

pub(super) fn register(handlers: Handlers, documents: &Documents) -> Handlers {
    let (first, second) = (documents.clone(), documents.clone());
    handlers
        .read_again::<methods1::ListResolvedVulnsReports, _, _>(
            |tx, call| Box::pin(async move { shown(tx, call, ResolvedQuery::of_first(call.request())?).await }),
            move |shown| Box::pin(shown.with_packages(first.clone())),
            |tx, _, known| {
                Box::pin(async move {
                    let list =
                        v2::ListResolvedVulnsReportsResponse { resolved_vulns_reports: reports(tx, &known).await? };
                    // The numbers and types are the same in both versions.
                    v1::ResolvedVulnsReportList::decode(list.encode_to_vec().as_slice()).map_err(Error::internal)
                })
            },
        )
        .read_again::<methods2::ListResolvedVulnsReports, _, _>(
            |tx, call| Box::pin(async move { shown(tx, call, ResolvedQuery::of_second(call.request())?).await }),
            move |shown| Box::pin(shown.with_packages(second.clone())),
            |tx, _, known| {
                Box::pin(async move {
                    Ok(v2::ListResolvedVulnsReportsResponse { resolved_vulns_reports: reports(tx, &known).await? })
                })
            },
        )
}

const DAY: Micros = 24 * 3600 * 1_000_000;
/// Maximum days of one call.
const MAX_DAYS: i64 = 366;
/// Maximum number of tags of one call.
const MAX_TAGS: usize = 50;
/// Maximum number of images whose SBOMs one call reads.
const MAX_IMAGES: usize = 100;
/// Maximum number of moves of a tag that one call looks at, the latest ones.
const MAX_MOVES: i64 = 10_000;
/// Maximum number of events that one call looks at.
const MAX_EVENTS: i64 = 50_000;
/// Names that one statement has.
const NAMES_AT_ONCE: usize = 200;
/// The tag that is meant where none is named.
const USUAL_TAG: &str = "latest";

/// A request: tags by repository, and the days by their starts.
struct ResolvedQuery {
    tags: BTreeMap<String, BTreeSet<String>>,
    days: Vec<Micros>,
}

impl ResolvedQuery {
    fn of_first(request: &v1::ResolvedVulnsReportFilter) -> Result<ResolvedQuery> {
        let v1::ResolvedVulnsReportFilter { image_refs, from, to } = request;
        let images = image_refs.iter().map(|image| (&*image.repo, &*image.tags)).collect();
        ResolvedQuery::of(images, [("from", *from), ("to", *to)])
    }

    fn of_second(request: &v2::ListResolvedVulnsReportsRequest) -> Result<ResolvedQuery> {
        let v2::ListResolvedVulnsReportsRequest { image_refs, start_time, end_time } = request;
        let images = image_refs.iter().map(|image| (&*image.repo, &*image.tags)).collect();
        ResolvedQuery::of(images, [("startTime", *start_time), ("endTime", *end_time)])
    }

    fn of(images: Vec<(&str, &[String])>, times: [(&'static str, Option<Timestamp>); 2]) -> Result<ResolvedQuery> {
        if images.is_empty() {
            return Err(Error::invalid_field("imageRefs", "imageRefs is required, such as image_refs=python:latest"));
        }
        let mut tags: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (repo, named) in images {
            let of_repo = tags.entry(repo.to_owned()).or_default();
            of_repo.extend(named.iter().filter(|tag| !tag.is_empty()).cloned());
            if of_repo.is_empty() {
                of_repo.insert(USUAL_TAG.into());
            }
        }
        if tags.values().map(BTreeSet::len).sum::<usize>() > MAX_TAGS {
            return Err(Error::invalid_field("imageRefs", format!("at most {MAX_TAGS} tags together")));
        }
        let [first, last] = times.map(|(field, time)| {
            let time = time.ok_or_else(|| Error::invalid_field(field, format!("{field} is required")));
            time.map(|time| micros(time).div_euclid(DAY))
        });
        let (first, last) = (first?, last?);
        if last < first {
            return Err(Error::invalid_field(times[1].0, format!("must not be before {}", times[0].0)));
        }
        if last - first >= MAX_DAYS {
            return Err(Error::invalid_field(times[0].0, format!("at most {MAX_DAYS} days are reported at once")));
        }
        Ok(ResolvedQuery { tags, days: (first..=last).map(|day| day * DAY).collect() })
    }

    fn start(&self) -> Micros {
        self.days.first().copied().unwrap_or_default()
    }

    fn end(&self) -> Micros {
        self.days.last().map_or(0, |day| day + DAY)
    }
}

/// An advisory that came to say that a package is fixed or not affected.
struct Resolution {
    advisory: String,
    package: String,
    at: Micros,
    id: String,
    aliases: Vec<String>,
}

/// What the tags showed: the images that they were at, and where their SBOMs may be.
struct Shown {
    query: ResolvedQuery,
    repos: Vec<(Uidp, HashMap<Micros, Vec<String>>)>,
    /// By repository, in their order, and digest.
    sources: HashMap<(usize, String), Candidates>,
}

/// The same with the packages of the images.
struct Known {
    query: ResolvedQuery,
    repos: Vec<(Uidp, HashMap<Micros, BTreeSet<String>>)>,
}

async fn shown<T>(tx: &mut ReadTx, call: &Authorized<T>, query: ResolvedQuery) -> Result<Shown> {
    let mut shown = Shown { query, repos: Vec::new(), sources: HashMap::new() };
    let mut images = 0;
    for (repo, tags) in shown.query.tags.clone() {
        for (repo, _) in visible_repos(tx, call, &repo).await? {
            let by_day = images_by_day(tx, &repo, &tags, &shown.query).await?;
            let digests: BTreeSet<&String> = by_day.values().flatten().collect();
            images += digests.len();
            if images > MAX_IMAGES {
                return Err(Error::new(
                    Reason::RequestTooLarge,
                    format!("The tags were at more than {MAX_IMAGES} images: name fewer, or a shorter time"),
                ));
            }
            for digest in digests {
                if let Some(sources) = sboms::sources(tx, &repo, digest).await? {
                    shown.sources.insert((shown.repos.len(), digest.clone()), sources);
                }
            }
            shown.repos.push((repo, by_day));
        }
    }
    Ok(shown)
}

impl Shown {
    async fn with_packages(self, documents: Documents) -> Result<Known> {
        let mut packages: HashMap<(usize, String), BTreeSet<String>> = HashMap::new();
        for (image, sources) in self.sources {
            packages.insert(image, documents.package_names(sources).await?);
        }
        let named = |n: usize, digests: Vec<String>| {
            digests.into_iter().filter_map(|digest| packages.get(&(n, digest))).flatten().cloned().collect()
        };
        let of_repo = |(n, (repo, by_day)): (usize, (Uidp, HashMap<Micros, Vec<String>>))| {
            (repo, by_day.into_iter().map(|(day, digests)| (day, named(n, digests))).collect())
        };
        Ok(Known { query: self.query, repos: self.repos.into_iter().enumerate().map(of_repo).collect() })
    }
}

async fn reports(tx: &mut ReadTx, known: &Known) -> Result<Vec<v2::ResolvedVulnsReport>> {
    let query = &known.query;
    let mut by_day: BTreeMap<Micros, BTreeMap<String, Resolution>> = BTreeMap::new();
    for (repo, packages) in &known.repos {
        let names: BTreeSet<&String> = packages.values().flatten().collect();
        for resolution in resolutions(tx, repo, &names, query).await? {
            let day = resolution.at.div_euclid(DAY) * DAY;
            if packages.get(&day).is_some_and(|packages| packages.contains(&resolution.package)) {
                by_day.entry(day).or_default().insert(resolution.advisory.clone(), resolution);
            }
        }
    }
    let aliases: BTreeSet<&str> =
        by_day.values().flat_map(BTreeMap::values).flat_map(|found| &found.aliases).map(String::as_str).collect();
    let severities = severities::load(tx, &aliases).await?;
    let report = |day: &Micros| v2::ResolvedVulnsReport {
        date: timestamp(*day),
        resolved_vulns: by_day
            .get(day)
            .into_iter()
            .flat_map(BTreeMap::values)
            .map(|one| one.rendered(&severities))
            .collect(),
    };
    Ok(query.days.iter().map(report).collect())
}

impl Resolution {
    fn rendered(&self, severities: &severities::Severities) -> v2::ResolvedVuln {
        let mut known: Vec<v2::Severity> = severities
            .of(&self.aliases)
            .into_iter()
            .map(|severity| v2::Severity { r#type: severity.r#type, score: severity.score })
            .collect();
        if known.is_empty() {
            known.push(v2::Severity::default());
        }
        v2::ResolvedVuln { id: self.id.clone(), aliases: self.aliases.clone(), cvss_severities: known }
    }
}

/// For each day, the images that one of the tags was at.
async fn images_by_day(
    tx: &mut ReadTx,
    repo: &Uidp,
    tags: &BTreeSet<String>,
    query: &ResolvedQuery,
) -> Result<HashMap<Micros, Vec<String>>> {
    let mut by_day: HashMap<Micros, Vec<String>> = HashMap::new();
    for tag in tags {
        let moves = moves(tx, repo, tag, query.end()).await?;
        for day in &query.days {
            by_day.entry(*day).or_default().extend(at_day(&moves, *day).map(str::to_owned));
        }
    }
    Ok(by_day)
}

/// The moves of a tag up to a time, the earliest first.
async fn moves(tx: &mut ReadTx, repo: &Uidp, tag: &str, end: Micros) -> Result<Vec<(Micros, String)>> {
    let sql = "SELECT at, digest FROM tag_history WHERE repo = $1 AND name = $2 AND at < $3
               ORDER BY at DESC, id DESC LIMIT $4";
    let params = [Value::from(repo.as_str()), Value::from(tag), Value::Int(end), Value::Int(MAX_MOVES)];
    let mut moves = tx.query(sql, &params, |row| Ok::<_, Error>((row.int(0)?, row.text(1)?))).await?;
    moves.reverse();
    Ok(moves)
}

/// The digests that a tag was at on a day: as the day began, and whatever it moved to.
fn at_day(moves: &[(Micros, String)], day: Micros) -> impl Iterator<Item = &str> {
    let begin = moves.partition_point(|(at, _)| *at < day);
    let end = moves.partition_point(|(at, _)| *at < day + DAY);
    moves[begin.saturating_sub(1)..end].iter().map(|(_, digest)| digest.as_str()).filter(|digest| !digest.is_empty())
}

/// What advisories that count for the repository came to say of these packages on the days.
async fn resolutions(
    tx: &mut ReadTx,
    repo: &Uidp,
    names: &BTreeSet<&String>,
    query: &ResolvedQuery,
) -> Result<Vec<Resolution>> {
    let above: Vec<&str> = repo.self_and_ancestors().skip(1).collect();
    let names: Vec<&String> = names.iter().copied().collect();
    let mut found = Vec::new();
    for names in names.chunks(NAMES_AT_ONCE) {
        let mut params = vec![Value::from(ReviewStatus::Approved as i32), Value::Int(query.start())];
        params.extend(above.iter().copied().map(Value::from));
        params.extend(names.iter().copied().map(Value::from));
        params.push(Value::Int(MAX_EVENTS + 1));
        let sql = format!(
            "SELECT a.uid, a.artifact_name, a.advisory_id, a.aliases, e.type, e.at FROM advisories a
             JOIN advisory_events e ON e.advisory = a.uid AND e.state = $1
             WHERE a.deleted_at IS NULL AND a.latest_event_at >= $2
               AND (a.parent IN ({}) OR a.parent IN (SELECT place FROM advisory_settings WHERE is_public))
               AND a.artifact_name IN ({})
             ORDER BY a.uid, e.at, e.created_at, e.uid LIMIT ${}",
            placeholders(3, above.len()),
            placeholders(3 + above.len(), names.len()),
            params.len()
        );
        let events = tx.query(&sql, &params, read).await?;
        if events.len() as i64 > MAX_EVENTS {
            return Err(Error::new(
                Reason::RequestTooLarge,
                "The advisories about these images have too many events for one report: name fewer images",
            ));
        }
        found.extend(turns(events).filter(|one| (query.start()..query.end()).contains(&one.at)));
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<(i64, Resolution)> {
    let resolution = Resolution {
        advisory: row.text(0)?,
        package: row.text(1)?,
        id: row.text(2)?,
        aliases: serde_json::from_str(&row.text(3)?).map_err(Error::internal)?,
        at: row.int(5)?,
    };
    Ok((row.int(4)?, resolution))
}

/// The events that turned an advisory to resolved: not those after which it stayed so. A moved component turns nothing.
fn turns(events: Vec<(i64, Resolution)>) -> impl Iterator<Item = Resolution> {
    let resolves =
        |kind: i64| kind == EventTypeFilter::Fixed as i64 || kind == EventTypeFilter::FalsePositiveDetermination as i64;
    let mut before: Option<(String, bool)> = None;
    let assessments = events.into_iter().filter(|(kind, _)| *kind != EventTypeFilter::ComponentLocationChanged as i64);
    assessments.filter_map(move |(kind, event)| {
        let was = before.as_ref().is_some_and(|(advisory, was)| *advisory == event.advisory && *was);
        before = Some((event.advisory.clone(), resolves(kind)));
        (resolves(kind) && !was).then_some(event)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(list: &[(i64, &str)]) -> Vec<(Micros, String)> {
        list.iter().map(|(day, digest)| (day * DAY + 5, (*digest).to_owned())).collect()
    }

    #[test]
    fn a_tag_is_where_it_began_the_day_and_wherever_it_moved() {
        let moves = moved(&[(1, "a"), (3, "b"), (3, "c"), (5, ""), (7, "d")]);
        let at = |day: i64| at_day(&moves, day * DAY).collect::<Vec<_>>();
        assert_eq!(at(0), [""; 0]);
        assert_eq!(at(1), ["a"]);
        assert_eq!(at(2), ["a"]);
        assert_eq!(at(3), ["a", "b", "c"]);
        assert_eq!(at(5), ["c"]);
        assert_eq!(at(6), [""; 0]);
        assert_eq!(at(8), ["d"]);
    }

    #[test]
    fn only_a_turn_counts() {
        use EventTypeFilter::{ComponentLocationChanged, Detection, FalsePositiveDetermination, Fixed};
        let event = |advisory: &str, kind: EventTypeFilter, at: Micros| {
            let (package, id) = ("p".to_owned(), "i".to_owned());
            (kind as i64, Resolution { advisory: advisory.into(), package, at, id, aliases: Vec::new() })
        };
        let events = vec![
            event("a", Detection, 1),
            event("a", Fixed, 2),
            event("a", ComponentLocationChanged, 3),
            event("a", FalsePositiveDetermination, 4),
            event("a", Detection, 5),
            event("a", Fixed, 6),
            event("b", Fixed, 7),
        ];
        assert_eq!(turns(events).map(|event| event.at).collect::<Vec<_>>(), [2, 6, 7]);
    }
}
