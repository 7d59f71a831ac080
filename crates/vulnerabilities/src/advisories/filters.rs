//! The filters of lists: what each asks of an advisory, and where the advisories that it leaves are found.

use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v2::vulnerabilities as v2;
use bowline_resources::list::Clause;
use bowline_store::Value;

use super::rows::folded;

/// The filters of lists in v1 and v2. An empty list does not filter.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters {
    pub(super) advisory_ids: Vec<String>,
    pub(super) legacy_ids: Vec<String>,
    pub(super) artifact_names: Vec<String>,
    pub(super) artifact_types: Vec<String>,
    pub(super) artifact_architectures: Vec<String>,
    pub(super) component_names: Vec<String>,
    pub(super) component_types: Vec<String>,
    pub(super) component_locations: Vec<String>,
    pub(super) aliases: Vec<String>,
    pub(super) origin: String,
    /// The origin, and the packages of it that any organization knows: a superset of what is meant.
    pub(super) packages: Vec<String>,
    /// Of one and the same event.
    pub(super) event_states: Vec<i32>,
    pub(super) event_types: Vec<i32>,
    pub(super) event_authors: Vec<String>,
    pub(super) event_reviewers: Vec<String>,
    pub(super) exclude_event_authors: Vec<String>,
    /// Column and number of the latest approved event.
    pub(super) latest: Option<(&'static str, i32)>,
    /// The text to look for in lower case, and as a pattern.
    pub(super) query: String,
    pub(super) pattern: String,
}

impl Filters {
    pub(super) fn of_v1(filter: &v1::AdvisoryFilter) -> Filters {
        Filters {
            advisory_ids: filter.advisory_ids.clone(),
            legacy_ids: filter.legacy_advisory_ids.clone(),
            artifact_names: filter.artifact_name.clone(),
            artifact_types: filter.artifact_type.clone(),
            artifact_architectures: filter.artifact_architecture.clone(),
            component_names: filter.component_name.clone(),
            component_types: filter.component_type.clone(),
            component_locations: filter.component_location.clone(),
            aliases: filter.aliases.iter().map(|alias| folded(alias)).collect(),
            origin: filter.origin.clone().unwrap_or_default(),
            event_states: filter.event_statuses.clone(),
            event_types: filter.event_types.clone(),
            event_authors: filter.event_author.clone(),
            event_reviewers: filter.event_reviewer.clone(),
            exclude_event_authors: filter.exclude_event_author.clone(),
            latest: rendered(filter.latest_event_type).map(|number| ("latest_event_type", number)),
            ..Filters::default()
        }
    }

    pub(super) fn of_v2(request: &v2::ListAdvisoriesRequest) -> Filters {
        let filters = Filters {
            advisory_ids: request.advisory_ids.clone(),
            legacy_ids: request.legacy_advisory_ids.clone(),
            artifact_names: request.artifact_names.clone(),
            artifact_types: request.artifact_types.clone(),
            artifact_architectures: request.artifact_architectures.clone(),
            component_names: request.component_names.clone(),
            component_types: request.component_types.clone(),
            component_locations: request.component_locations.clone(),
            aliases: request.aliases.iter().map(|alias| folded(alias)).collect(),
            origin: request.origin.clone().unwrap_or_default(),
            event_states: request.event_review_states.clone(),
            event_types: request.event_types.clone(),
            event_authors: request.event_authors.clone(),
            event_reviewers: request.event_reviewers.clone(),
            exclude_event_authors: request.exclude_event_authors.clone(),
            latest: rendered(request.latest_event_type).map(|number| ("latest_judgement_type", number)),
            ..Filters::default()
        };
        filters.look_for(&request.query)
    }

    /// Whether advisories are named one by one, which shows deleted ones as well.
    pub(super) fn names_advisories(&self) -> bool {
        !self.advisory_ids.is_empty() || !self.legacy_ids.is_empty()
    }

    /// The filtered columns, with the wanted values. An origin stands for the names of artifacts.
    fn columns(&self) -> Vec<(&'static str, &[String])> {
        let names: &[String] = if self.origin.is_empty() { &self.artifact_names } else { &[] };
        let columns: [(&str, &[String]); 8] = [
            ("advisory_id", &self.advisory_ids),
            ("legacy_id", &self.legacy_ids),
            ("artifact_name", names),
            ("artifact_type", &self.artifact_types),
            ("artifact_architecture", &self.artifact_architectures),
            ("component_name", &self.component_names),
            ("component_type", &self.component_types),
            ("component_location", &self.component_locations),
        ];
        columns.into_iter().filter(|(_, values)| !values.is_empty()).collect()
    }

    /// The conditions on one event.
    fn of_event(&self) -> Vec<(&'static str, Vec<Value<'_>>)> {
        let numbers = |numbers: &[i32]| numbers.iter().map(|number| Value::from(*number)).collect::<Vec<_>>();
        let conditions = [
            ("state", numbers(&self.event_states)),
            ("type", numbers(&self.event_types)),
            ("author", texts(&self.event_authors)),
            ("reviewer", texts(&self.event_reviewers)),
        ];
        conditions.into_iter().filter(|(_, values)| !values.is_empty()).collect()
    }

    /// The conditions on an advisory, in a form for which no index is used: to check an advisory that was
    /// found, or comes next. Those that indexes have decided are left out.
    pub(super) fn tests(&self, decided: &[&str]) -> Vec<Clause<'_>> {
        let is_open = |name: &str| !decided.contains(&name);
        let mut tests: Vec<Clause<'_>> = Vec::new();
        for (column, values) in self.columns().into_iter().filter(|(column, _)| is_open(column)) {
            tests.push(Clause { text: format!("@.{column} || '' IN ({})", list(values.len())), values: texts(values) });
        }
        if !self.origin.is_empty() {
            let text = "(@.artifact_name || '' = ? OR @.artifact_name || '' IN
                (SELECT o.package FROM package_origins o WHERE o.org = @.org AND o.origin = ?))";
            tests.push(Clause { text: text.into(), values: vec![Value::from(&self.origin); 2] });
        }
        if !self.aliases.is_empty() && is_open("aliases") {
            let placeholders = list(self.aliases.len());
            let text = format!(
                "EXISTS (SELECT 1 FROM advisory_aliases a WHERE a.advisory = @.uid AND a.alias IN ({placeholders}))"
            );
            tests.push(Clause { text, values: texts(&self.aliases) });
        }
        let of_event = self.of_event();
        // Several conditions are about one and the same event, of which an index knows one.
        if !of_event.is_empty() && (of_event.len() > 1 || is_open(of_event[0].0)) {
            let mut text = "EXISTS (SELECT 1 FROM advisory_events e WHERE e.advisory = @.uid".to_owned();
            let mut values = Vec::new();
            for (column, wanted) in of_event {
                let plain = if matches!(column, "state" | "type") { " + 0" } else { " || ''" };
                text += &format!(" AND e.{column}{plain} IN ({})", list(wanted.len()));
                values.extend(wanted);
            }
            tests.push(Clause { text: text + ")", values });
        }
        if !self.exclude_event_authors.is_empty() {
            let placeholders = list(self.exclude_event_authors.len());
            let text = format!(
                "NOT EXISTS (SELECT 1 FROM advisory_events e WHERE e.advisory = @.uid AND e.author || '' IN ({placeholders}))"
            );
            tests.push(Clause { text, values: texts(&self.exclude_event_authors) });
        }
        if let Some((column, number)) = self.latest.filter(|(column, _)| is_open(column)) {
            tests.push(Clause { text: format!("@.{column} + 0 = ?"), values: vec![Value::from(number)] });
        }
        if !self.query.is_empty() && is_open(WORDS) {
            let text =
                r"EXISTS (SELECT 1 FROM advisory_words w WHERE w.advisory = @.uid AND w.words LIKE ? ESCAPE '\')";
            tests.push(Clause { text: text.into(), values: vec![Value::from(&self.pattern)] });
        }
        tests
    }

    /// Where the advisories that one of the filters leaves are found by an index. Free text has a search of its own.
    pub(super) fn sources(&self) -> Vec<Source<'_>> {
        let source = |decides, table, column, values| Source { decides, table, column, values };
        let columns = self.columns().into_iter();
        let mut sources: Vec<Source<'_>> =
            columns.map(|(column, values)| source(column, ADVISORIES, column, texts(values))).collect();
        if !self.packages.is_empty() {
            // More than are meant.
            sources.push(source("", ADVISORIES, "artifact_name", texts(&self.packages)));
        }
        if !self.aliases.is_empty() {
            sources.push(source("aliases", "advisory_aliases", "alias", texts(&self.aliases)));
        }
        let of_event = self.of_event().into_iter();
        sources.extend(of_event.map(|(column, values)| source(column, EVENTS, column, values)));
        if let Some((column, number)) = self.latest {
            sources.push(source(column, ADVISORIES, column, vec![Value::from(number)]));
        }
        sources
    }

    /// Sets the text to look for.
    pub(super) fn look_for(mut self, query: &str) -> Filters {
        self.query = query.to_lowercase();
        let escaped = self.query.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        self.pattern = format!("%{escaped}%");
        self
    }
}

const ADVISORIES: &str = "advisories";
const EVENTS: &str = "advisory_events";
/// What the search for free text decides.
pub(super) const WORDS: &str = "words";

/// Where advisories are found by an index of one column, whose entries of one value are in the order of UIDPs.
pub(super) struct Source<'a> {
    /// The test that needs not be made of what is found; empty if all are.
    pub(super) decides: &'static str,
    table: &'static str,
    column: &'static str,
    values: Vec<Value<'a>>,
}

impl<'a> Source<'a> {
    /// What the selects below call the UIDP in their conditions.
    pub(super) fn matching(&self) -> String {
        format!("i.{}", self.uid())
    }

    /// A SELECT of `uid` that ends with a condition.
    pub(super) fn select(&self) -> Clause<'a> {
        let text = self.head() + &self.holds("i", &format!("IN ({})", list(self.values.len())));
        Clause { text, values: self.values.clone() }
    }

    /// The same for each value by itself.
    pub(super) fn each(&self) -> impl Iterator<Item = Clause<'a>> {
        self.values.iter().map(|value| Clause { text: self.head() + &self.holds("i", "= ?"), values: vec![*value] })
    }

    /// Whether one value is wanted, so that the index has all of its advisories in order.
    pub(super) fn has_one_value(&self) -> bool {
        self.values.len() == 1
    }

    /// The condition that it has an advisory too.
    pub(super) fn has(&self, uid: &str) -> Clause<'a> {
        let holds = self.holds("o", &format!("IN ({})", list(self.values.len())));
        let text = format!("EXISTS (SELECT 1 FROM {} o WHERE {holds} AND o.{} = {uid})", self.table, self.uid());
        Clause { text, values: self.values.clone() }
    }

    fn uid(&self) -> &'static str {
        if self.table == ADVISORIES { "uid" } else { "advisory" }
    }

    fn head(&self) -> String {
        // Several events of an advisory may be alike.
        let distinct = if self.table == EVENTS { "DISTINCT " } else { "" };
        format!("SELECT {distinct}i.{} AS uid FROM {} i WHERE ", self.uid(), self.table)
    }

    fn holds(&self, alias: &str, test: &str) -> String {
        let column = self.column;
        match column {
            // Their indexes leave those out that have none.
            "legacy_id" | "reviewer" => format!("{alias}.{column} {test} AND {alias}.{column} <> ''"),
            _ => format!("{alias}.{column} {test}"),
        }
    }
}

/// A number that a filter names; 0 names none.
fn rendered(number: Option<i32>) -> Option<i32> {
    number.filter(|number| *number != 0)
}

fn texts(values: &[String]) -> Vec<Value<'_>> {
    values.iter().map(Value::from).collect()
}

fn list(count: usize) -> String {
    vec!["?"; count].join(", ")
}
