//! What advisories say about findings.
//!
//! An advisory is about a finding if one of its aliases is an id of the vulnerability, and its component, or without one
//! its artifact, is the package; of a system package also the package that it was built from. Versions are not compared.
//! Advisories of the groups at and above the repository where the caller may list them decide the status. Those of other
//! public groups are shown, and decide nothing: everyone can publish one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::vulnerabilities::v1::{AdvisoryMatch, FindingAdvisory, FindingStatus};
use bowline_contract::v1::vulnerabilities::EventTypeFilter;
use bowline_core::{Error, Micros, Reason, Result, UidRange};
use bowline_registry::findings::Finding;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Sql, Value};

use crate::advisories::rows::folded;

/// Ids of a vulnerability that are looked for.
const MAX_IDS: usize = 20;
/// Ids that one statement names.
const IDS_AT_ONCE: usize = 200;
/// Advisories of the groups at and above the repositories that one statement reads.
const MAX_ADVISORIES: usize = 10_000;
/// Advisories of public groups that one statement reads, out of so many with these ids. Further ones are left out, so that
/// what one group writes neither fails nor delays the lists of others.
const MAX_PUBLIC: usize = 1_000;
const MAX_EXAMINED: usize = 50_000;

const COLUMNS: &str =
    "x.alias, a.uid, a.parent, a.advisory_id, a.artifact_name, a.component_name, a.component_location,
    a.latest_judgement_type, a.latest_event_at";

/// The advisories about some vulnerabilities, by folded alias and by the name that a package must have: popular
/// vulnerabilities have many advisories, and few of them are about one package.
#[derive(Default)]
pub(crate) struct ApplicableAdvisories {
    by_alias: BTreeMap<String, BTreeMap<String, Vec<ApplicableAdvisory>>>,
}

/// An advisory in use.
#[derive(Clone)]
struct ApplicableAdvisory {
    uid: String,
    parent: String,
    advisory_id: String,
    artifact_name: String,
    component_name: String,
    component_location: String,
    latest_event_type: i32,
    latest_event_at: Option<Micros>,
    /// Whether the caller may list the advisories of its group.
    is_listed: bool,
    /// Whether everyone may read the approved events of its group.
    is_public: bool,
}

/// Who reads the advisories about findings.
pub(crate) enum Reader<'a> {
    /// A caller who may list the advisories of the groups for which this is true.
    Caller(&'a (dyn Fn(&str) -> bool + Sync)),
    /// The server, for which the advisories of all groups at and above a repository decide.
    Server,
}

impl Reader<'_> {
    fn may_list(&self, group: &str) -> bool {
        match self {
            Reader::Caller(may_list) => may_list(group),
            Reader::Server => true,
        }
    }
}

/// Whether a group above the repository has an advisory at all.
pub(crate) async fn has_any(tx: &mut ReadTx, repo: &str) -> Result<bool> {
    let mut sql = Sql::new("SELECT 1 FROM advisories WHERE");
    sql.bind_list(" parent IN ", above(repo).map(Value::from)).push(" LIMIT 1");
    Ok(tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?.is_some())
}

fn read(row: &Row<'_>, reader: &Reader<'_>) -> Result<(String, ApplicableAdvisory)> {
    let parent = row.text(2)?;
    let advisory = ApplicableAdvisory {
        uid: row.text(1)?,
        is_listed: reader.may_list(&parent),
        parent,
        advisory_id: row.text(3)?,
        artifact_name: row.text(4)?,
        component_name: row.text(5)?,
        component_location: row.text(6)?,
        latest_event_type: row.int(7)? as i32,
        latest_event_at: row.opt_int(8)?,
        is_public: row.int(9)? > 0,
    };
    Ok((row.text(0)?, advisory))
}

/// The ids of a vulnerability as aliases are compared.
fn ids(finding: &Finding) -> impl Iterator<Item = String> {
    std::iter::once(&finding.id).chain(&finding.aliases).take(MAX_IDS).map(|id| folded(id))
}

/// The advisories about the findings, each of which is in a repository.
pub(crate) async fn load(
    tx: &mut ReadTx,
    reader: &Reader<'_>,
    findings: &[(&str, &Finding)],
) -> Result<ApplicableAdvisories> {
    let aliases: BTreeSet<String> = findings.iter().flat_map(|(_, finding)| ids(finding)).collect();
    let mut organizations: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for group in findings.iter().flat_map(|(repo, _)| above(repo)) {
        organizations.entry(group.split('/').next().unwrap_or(group)).or_default().insert(group);
    }
    let aliases: Vec<String> = aliases.into_iter().collect();
    let mut advisories = ApplicableAdvisories::default();
    for aliases in aliases.chunks(IDS_AT_ONCE) {
        let mut rows = match reader {
            Reader::Caller(_) => of_public_groups(tx, reader, aliases).await?,
            Reader::Server => Vec::new(),
        };
        for (organization, groups) in &organizations {
            rows.extend(of_groups(tx, reader, aliases, (organization, groups)).await?);
        }
        for (alias, advisory) in rows {
            advisories.add(alias, advisory);
        }
    }
    Ok(advisories)
}

/// Approved advisories of public groups, as many as are read. Those of the groups above the repositories are not left to
/// this, since others could displace them.
async fn of_public_groups(
    tx: &mut ReadTx,
    reader: &Reader<'_>,
    aliases: &[String],
) -> Result<Vec<(String, ApplicableAdvisory)>> {
    let mut sql = Sql::new(format!(
        "SELECT {COLUMNS}, 1
         FROM (SELECT alias, advisory FROM advisory_aliases WHERE alias IN "
    ));
    sql.bind_list("", aliases.iter().map(Value::from)).bind(" LIMIT ", Value::Int(MAX_EXAMINED as i64));
    sql.push(
        ") x JOIN advisories a ON a.uid = x.advisory
         JOIN advisory_settings p ON p.place = a.parent AND p.is_public
         WHERE a.deleted_at IS NULL AND a.latest_judgement_type <> 0",
    );
    sql.bind(" LIMIT ", Value::Int(MAX_PUBLIC as i64));
    tx.query(&sql.text, &sql.params, |row| read(row, reader)).await
}

/// What the caller may read of the groups of an organization: all advisories where they may list them, else the approved
/// ones of public groups.
async fn of_groups(
    tx: &mut ReadTx,
    reader: &Reader<'_>,
    aliases: &[String],
    (organization, groups): (&str, &BTreeSet<&str>),
) -> Result<Vec<(String, ApplicableAdvisory)>> {
    let (listed, others): (Vec<&str>, Vec<&str>) = groups.iter().partition(|group| reader.may_list(group));
    let mut sql = Sql::new(format!(
        "SELECT {COLUMNS}, CASE WHEN p.place IS NULL THEN 0 ELSE 1 END
         FROM advisory_aliases x JOIN advisories a ON a.uid = x.advisory
         LEFT JOIN advisory_settings p ON p.place = a.parent AND p.is_public
         WHERE a.deleted_at IS NULL AND "
    ));
    sql.bind_list("x.alias IN ", aliases.iter().map(Value::from));
    // Advisories of other organizations with these ids are not read.
    let below = UidRange::below(organization);
    sql.bind(" AND x.advisory >= ", Value::from(&below.lower)).bind(" AND x.advisory < ", Value::from(&below.upper));
    sql.push(" AND (FALSE");
    if !listed.is_empty() {
        sql.bind_list(" OR a.parent IN ", listed.iter().map(|group| Value::from(*group)));
    }
    if !others.is_empty() {
        sql.bind_list(" OR a.parent IN ", others.iter().map(|group| Value::from(*group)));
        sql.push(" AND p.place IS NOT NULL AND a.latest_judgement_type <> 0");
    }
    sql.bind(") LIMIT ", Value::Int(MAX_ADVISORIES as i64 + 1));
    let rows = tx.query(&sql.text, &sql.params, |row| read(row, reader)).await?;
    // A caller asks for less; the server leaves out the rest, so that one organization keeps no other waiting.
    if rows.len() > MAX_ADVISORIES && matches!(reader, Reader::Caller(_)) {
        let text = "More than 10,000 advisories are about the vulnerabilities of one page: ask for a smaller page";
        return Err(Error::new(Reason::RequestTooLarge, text));
    }
    Ok(rows)
}

/// The groups above a repository.
fn above(repo: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(repo), |uid| uid.rsplit_once('/').map(|(above, _)| above)).skip(1)
}

/// What advisories say about one finding.
pub(crate) struct Assessment {
    pub(crate) status: FindingStatus,
    pub(crate) advisory: Option<FindingAdvisory>,
    /// Further advisories about it.
    pub(crate) more: usize,
}

impl Assessment {
    /// The UIDP of the shown advisory if it is about the package itself.
    pub(crate) fn about_package(&self) -> Option<&str> {
        let advisory = self.advisory.as_ref().filter(|advisory| advisory.r#match() == AdvisoryMatch::Package)?;
        Some(&advisory.uid)
    }
}

impl ApplicableAdvisories {
    fn add(&mut self, alias: String, advisory: ApplicableAdvisory) {
        let of_alias = self.by_alias.entry(alias).or_default();
        of_alias.entry(advisory.package().to_owned()).or_default().push(advisory);
    }

    /// The advisories about a finding in a repository, of which the best one is shown.
    pub(crate) fn about(&self, repo: &str, finding: &Finding) -> Assessment {
        let origin = bowline_registry::sboms::origin(&finding.purl);
        let names = || std::iter::once(finding.package.as_str()).chain(origin.as_deref());
        let mut about: BTreeMap<&str, (AdvisoryMatch, &ApplicableAdvisory)> = BTreeMap::new();
        for of_alias in ids(finding).filter_map(|id| self.by_alias.get(&id)) {
            for advisory in names().filter_map(|name| of_alias.get(name)).flatten() {
                let matches = advisory.matches(finding, origin.as_deref());
                if let Some(by) = matches.filter(|_| advisory.counts_for(repo)) {
                    about.insert(&advisory.uid, (by, advisory));
                }
            }
        }
        let best = about.values().min_by_key(|(by, advisory)| advisory.rank(*by, repo));
        let deciding = best.filter(|(_, advisory)| is_above(&advisory.parent, repo));
        let status = deciding.map_or(FindingStatus::NoAdvisory, |(_, advisory)| advisory.status());
        let advisory = best.map(|(by, advisory)| advisory.shown(*by));
        Assessment { status, advisory, more: about.len().saturating_sub(1) }
    }
}

fn is_above(group: &str, repo: &str) -> bool {
    repo.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}

impl ApplicableAdvisory {
    /// Whether the caller may read it, and it is about a repository there. Everyone may read approved events of public
    /// groups, and no advisory without one.
    fn counts_for(&self, repo: &str) -> bool {
        (self.is_listed && is_above(&self.parent, repo)) || (self.is_public && self.latest_event_type != 0)
    }

    /// The name of the package that it is about.
    fn package(&self) -> &str {
        if self.component_name.is_empty() { &self.artifact_name } else { &self.component_name }
    }

    /// Whether it is about the finding, whose package was built from `origin`.
    fn matches(&self, finding: &Finding, origin: Option<&str>) -> Option<AdvisoryMatch> {
        if self.component_name.is_empty() {
            let is_it = self.artifact_name == finding.package || origin.is_some_and(|it| it == self.artifact_name);
            return is_it.then_some(AdvisoryMatch::Package);
        }
        let is_it = self.component_name == finding.package
            && (self.component_location.is_empty() || self.component_location == finding.location);
        is_it.then_some(AdvisoryMatch::Component)
    }

    /// Of several the least counts: of the groups at and above the repository, about the package, of the nearest group,
    /// and the newest.
    fn rank(&self, by: AdvisoryMatch, repo: &str) -> (bool, i32, Reverse<usize>, Reverse<Option<Micros>>, &str) {
        let is_foreign = !is_above(&self.parent, repo);
        (is_foreign, by as i32, Reverse(self.parent.len()), Reverse(self.latest_event_at), &self.uid)
    }

    fn status(&self) -> FindingStatus {
        match EventTypeFilter::try_from(self.latest_event_type).unwrap_or_default() {
            EventTypeFilter::Unspecified | EventTypeFilter::Detection | EventTypeFilter::ComponentLocationChanged => {
                FindingStatus::UnderReview
            }
            EventTypeFilter::TruePositiveDetermination
            | EventTypeFilter::AnalysisNotPlanned
            | EventTypeFilter::FixNotPlanned
            | EventTypeFilter::PendingUpstreamFix => FindingStatus::Affected,
            EventTypeFilter::Fixed | EventTypeFilter::Patched => FindingStatus::Fixed,
            EventTypeFilter::FalsePositiveDetermination => FindingStatus::NotAffected,
        }
    }

    fn shown(&self, by: AdvisoryMatch) -> FindingAdvisory {
        FindingAdvisory {
            uid: if self.is_listed { self.uid.clone() } else { String::new() },
            advisory_id: self.advisory_id.clone(),
            artifact_name: self.artifact_name.clone(),
            component_name: self.component_name.clone(),
            r#match: by as i32,
            latest_event_type: self.latest_event_type,
            event_time: self.latest_event_at.and_then(timestamp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advisory(artifact: &str, component: &str, parent: &str) -> ApplicableAdvisory {
        ApplicableAdvisory {
            uid: format!("{parent}/{artifact}:{component}"),
            parent: parent.into(),
            advisory_id: String::new(),
            artifact_name: artifact.into(),
            component_name: component.into(),
            component_location: String::new(),
            latest_event_type: EventTypeFilter::Fixed as i32,
            latest_event_at: None,
            is_listed: true,
            is_public: false,
        }
    }

    fn finding() -> Finding {
        let purl = "pkg:apk/wolfi/libssl3@3?origin=openssl".into();
        Finding { id: "cve-1".into(), package: "libssl3".into(), purl, location: "/lib".into(), ..Finding::default() }
    }

    fn of(all: Vec<ApplicableAdvisory>) -> ApplicableAdvisories {
        let mut advisories = ApplicableAdvisories::default();
        for one in all {
            advisories.add("CVE-1".into(), one);
        }
        advisories
    }

    #[test]
    fn the_names_of_packages_lead_to_the_same_advisories_as_a_look_at_all_of_them() {
        let names = ["libssl3", "openssl", "curl", ""];
        let pairs = names.iter().flat_map(|artifact| names.map(|component| (*artifact, component)));
        let all: Vec<ApplicableAdvisory> =
            pairs.map(|(artifact, component)| advisory(artifact, component, "o")).collect();
        for package in names {
            for purl in ["", "pkg:apk/wolfi/x?origin=openssl", "pkg:apk/wolfi/x?origin=libssl3", "pkg:apk/x?origin="] {
                let finding = Finding { package: package.into(), purl: purl.into(), ..finding() };
                let origin = bowline_registry::sboms::origin(purl);
                let matching = all.iter().filter(|one| one.matches(&finding, origin.as_deref()).is_some()).count();
                let assessed = of(all.clone()).about("o/r", &finding);
                let found = assessed.more + usize::from(assessed.advisory.is_some());
                assert_eq!(found, matching, "{package} {purl}");
            }
        }
    }

    #[test]
    fn an_advisory_is_about_the_package_its_origin_or_a_component() {
        let origin = Some("openssl");
        let by = |artifact: &str, component: &str| advisory(artifact, component, "o").matches(&finding(), origin);
        assert_eq!(by("libssl3", ""), Some(AdvisoryMatch::Package));
        assert_eq!(by("openssl", ""), Some(AdvisoryMatch::Package));
        assert_eq!(by("curl", "libssl3"), Some(AdvisoryMatch::Component));
        assert_eq!(by("libssl3", "other"), None, "another component of the package");
        assert_eq!(by("curl", ""), None);
        let elsewhere = ApplicableAdvisory { component_location: "/usr".into(), ..advisory("curl", "libssl3", "o") };
        assert_eq!(elsewhere.matches(&finding(), origin), None);
    }

    #[test]
    fn the_package_comes_before_a_component_and_the_nearest_group_first() {
        let all = vec![advisory("curl", "libssl3", "o/g"), advisory("openssl", "", "o"), advisory("libssl3", "", "x")];
        let advisories = of(all);
        let assessed = advisories.about("o/g/r", &finding());
        let advisory = assessed.advisory.unwrap();
        assert_eq!((advisory.artifact_name.as_str(), assessed.more), ("openssl", 1), "no other organization counts");
        assert_eq!(assessed.status, FindingStatus::Fixed);
        assert_eq!(advisories.about("p/r", &finding()).status, FindingStatus::NoAdvisory);
    }

    #[test]
    fn what_cannot_be_listed_counts_once_it_is_public_and_approved() {
        let hidden = ApplicableAdvisory { is_listed: false, ..advisory("libssl3", "", "o") };
        assert!(!hidden.counts_for("o/g/r"));
        let public = ApplicableAdvisory { is_public: true, ..hidden };
        assert!(public.counts_for("o/g/r") && public.counts_for("p/r"));
        assert!(!ApplicableAdvisory { latest_event_type: 0, ..public }.counts_for("p/r"));
    }
}
