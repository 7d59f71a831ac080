//! The neutral form that every format is read into and written from.

/// Microseconds since the Unix epoch, UTC.
pub type Micros = i64;

/// What is known of one vulnerability in one component of one artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Advisory {
    /// What the vulnerability is looked for in.
    pub artifact: Artifact,
    /// The part of it that is concerned; empty for all of it.
    pub component: Component,
    /// Public id, such as `CGA-2222-3333-4444`; empty where there is none.
    pub id: String,
    /// Ids of others for the vulnerability, sorted.
    pub aliases: Vec<String>,
    /// Who keeps the advisory.
    pub author: String,
    /// When it was first known; empty where a format does not say.
    pub created: Option<Micros>,
    /// When anything about it last changed.
    pub updated: Option<Micros>,
    /// What was found out, oldest first.
    pub events: Vec<Event>,
}

/// A package, an image or a library.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Artifact {
    /// `apk`, `image`, `library`, or a type of package URLs.
    pub kind: String,
    /// Its name, as in its kind.
    pub name: String,
    /// Architecture; empty for all.
    pub architecture: String,
}

/// A part of an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Component {
    /// Such as `python` or `go-module`.
    pub kind: String,
    pub name: String,
    /// Path inside the artifact.
    pub location: String,
}

impl Component {
    /// Whether the artifact as a whole is meant.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty() && self.name.is_empty() && self.location.is_empty()
    }
}

/// Where a statement came from, and what that allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Provenance {
    /// Name or address of the source; empty for statements of one's own.
    pub source: String,
    /// SPDX expression of its licence; empty where nothing is known of one.
    pub licence: String,
}

/// One statement at one time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// When it was checked; absent where a format has no times.
    pub at: Option<Micros>,
    pub author: String,
    pub assessment: Assessment,
    /// Where that comes from.
    pub provenance: Provenance,
}

/// What was found out about a vulnerability in an artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assessment {
    /// Someone or something believes that it may be there.
    Detection(Detection),
    TruePositive {
        /// Text that people read; never parsed.
        note: String,
    },
    /// It is not, or does no harm.
    FalsePositive {
        why: FalsePositive,
        /// Text that people read; never parsed.
        note: String,
    },
    /// A version is free of it.
    Fixed {
        /// The first such version.
        version: String,
        /// Text that people read; never parsed.
        note: String,
    },
    /// No one will look into it.
    AnalysisNotPlanned {
        /// Text that people read; never parsed.
        note: String,
    },
    /// It is there and stays.
    FixNotPlanned {
        /// Text that people read; never parsed.
        note: String,
    },
    /// It is there until those who write the software act.
    PendingUpstreamFix {
        /// Text that people read; never parsed.
        note: String,
    },
    /// Versions are free of it whose upstream versions are not.
    Patched {
        /// The versions it is about, sorted.
        versions: Vec<String>,
        /// Text that people read; never parsed.
        note: String,
    },
    /// The component was found elsewhere.
    ComponentMoved {
        /// Where it had been.
        from: String,
        to: String,
        /// Text that people read; never parsed.
        note: String,
    },
}

/// How a vulnerability was noticed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detection {
    Manual,
    /// By a look into the National Vulnerability Database.
    Nvd {
        /// The platform name that was searched.
        searched: String,
        /// The platform name that matched.
        matched: String,
    },
    Scan(Box<Scan>),
}

/// What a scanner says of its finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scan {
    /// Name of the scanner.
    pub scanner: String,
    pub scanner_version: String,
    /// The package of a group of packages in which it was found.
    pub subpackage: String,
    /// The scanner's own id of the component.
    pub component_id: String,
    /// Name of the component.
    pub component_name: String,
    pub component_version: String,
    /// Its type, in the scanner's words.
    pub component_kind: String,
    pub component_location: String,
    /// Version of the artifact that was scanned.
    pub artifact_version: String,
    /// When the scanner's database was built.
    pub database_built: String,
    /// Checksum of that database.
    pub database_checksum: String,
}

/// Why a vulnerability does no harm; the numbers are those of the wire contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FalsePositive {
    /// The record itself is contested.
    RecordContested = 1,
    /// The record is about another component.
    ComponentMismatch = 2,
    /// This version never had the code.
    VersionNotUsed = 3,
    /// The code is left out of the package.
    CodeNotIncluded = 4,
    /// Nothing reaches the code.
    CodeNotExecuted = 5,
    /// No one hostile can steer the code.
    CodeNotControllable = 6,
    /// Something else prevents the harm.
    Mitigated = 7,
}

impl FalsePositive {
    /// All of them, in the order of their numbers.
    pub const ALL: [FalsePositive; 7] = [
        FalsePositive::RecordContested,
        FalsePositive::ComponentMismatch,
        FalsePositive::VersionNotUsed,
        FalsePositive::CodeNotIncluded,
        FalsePositive::CodeNotExecuted,
        FalsePositive::CodeNotControllable,
        FalsePositive::Mitigated,
    ];

    /// The one of that number.
    pub fn from_number(number: i32) -> Option<FalsePositive> {
        FalsePositive::ALL.into_iter().find(|why| *why as i32 == number)
    }
}

impl Advisory {
    /// The newest statement: what is believed now. Of several at one time the last counts; a moved component checks
    /// nothing.
    pub fn latest(&self) -> Option<&Event> {
        let mut latest: Option<&Event> = None;
        for event in self.events.iter().filter(|event| !matches!(event.assessment, Assessment::ComponentMoved { .. })) {
            if latest.is_none_or(|known| known.at <= event.at) {
                latest = Some(event);
            }
        }
        latest
    }

    /// Its own id and the ids of others, sorted, each once.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.aliases.clone();
        names.push(self.id.clone());
        names.retain(|name| !name.is_empty());
        names.sort();
        names.dedup();
        names
    }

    /// Puts lists into the order in which equal data is equal.
    pub fn sort(&mut self) {
        self.aliases.sort();
        self.aliases.dedup();
        self.events.sort_by_key(|event| event.at);
        for event in &mut self.events {
            if let Assessment::Patched { versions, .. } = &mut event.assessment {
                versions.sort();
                versions.dedup();
            }
        }
    }
}

/// Whether a text is an advisory's own id: a prefix, and three groups of four symbols. GitHub's ids look the same.
pub fn is_advisory_id(text: &str) -> bool {
    let mut parts = text.split('-');
    let prefix = parts.next().unwrap_or_default();
    let groups: Vec<&str> = parts.collect();
    let is_group = |group: &&str| group.len() == 4 && group.chars().all(|c| "23456789cfghjmpqrvwx".contains(c));
    (2..=10).contains(&prefix.len())
        && prefix.starts_with(|c: char| c.is_ascii_uppercase())
        && prefix.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        && prefix != "GHSA"
        && groups.len() == 3
        && groups.iter().all(is_group)
}

/// Splits names into the advisory's own id, if exactly one looks like it, and the ids of others.
pub(crate) fn own_and_others(mut names: Vec<String>) -> (String, Vec<String>) {
    names.sort();
    names.dedup();
    let own: Vec<usize> = (0..names.len()).filter(|&at| is_advisory_id(&names[at])).collect();
    match own[..] {
        [at] => (names.remove(at), names),
        _ => (String::new(), names),
    }
}
