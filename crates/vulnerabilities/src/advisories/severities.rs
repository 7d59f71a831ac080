//! How severe vulnerabilities are: what their records say, by alias.

use std::collections::{BTreeSet, HashMap};

use bowline_contract::v2::vulnerabilities as v2;
use bowline_core::Result;
use bowline_osv::{Severity, SeverityKind};
use bowline_store::ReadTx;

use crate::records;

#[derive(Debug, Default)]
pub(crate) struct Severities {
    by_alias: HashMap<String, Vec<v2::Severity>>,
}

impl Severities {
    /// What the records of these aliases say together, each once.
    pub(crate) fn of(&self, aliases: &[String]) -> Vec<v2::Severity> {
        let mut severities: Vec<v2::Severity> = Vec::new();
        for severity in aliases.iter().filter_map(|alias| self.by_alias.get(alias)).flatten() {
            if !severities.contains(severity) {
                severities.push(severity.clone());
            }
        }
        severities
    }
}

/// The severities of everything that these aliases name, out of the records of vulnerabilities.
pub(crate) async fn load(tx: &mut ReadTx, aliases: &BTreeSet<&str>) -> Result<Severities> {
    let ids: Vec<&str> = aliases.iter().copied().collect();
    let found = records::severities(tx, &ids).await?;
    let of_alias =
        |(alias, severities): (String, Vec<Severity>)| (alias, severities.into_iter().filter_map(rendered).collect());
    Ok(Severities { by_alias: found.into_iter().map(of_alias).collect() })
}

/// A severity in a system that v2 knows.
fn rendered(severity: Severity) -> Option<v2::Severity> {
    let kind = match severity.kind {
        SeverityKind::CvssV2 => v2::severity::Type::CvssV2,
        SeverityKind::CvssV3 => v2::severity::Type::CvssV3,
        SeverityKind::CvssV4 => v2::severity::Type::CvssV4,
        SeverityKind::Ubuntu | SeverityKind::Other => return None,
    };
    Some(v2::Severity { r#type: kind as i32, score: severity.score })
}
