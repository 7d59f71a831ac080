//! CVSS vectors as readers of RustSec advisories take them: with base metrics alone, each once.

use bowline_osv::{Severity, SeverityKind};

/// A metric and the values that it may have, one letter each.
type Metric = (&'static str, &'static str);

const OF_3: [Metric; 8] =
    [("AV", "NALP"), ("AC", "LH"), ("PR", "NLH"), ("UI", "NR"), ("S", "UC"), ("C", "NLH"), ("I", "NLH"), ("A", "NLH")];

const OF_4: [Metric; 11] = [
    ("AV", "NALP"),
    ("AC", "LH"),
    ("AT", "NP"),
    ("PR", "NLH"),
    ("UI", "NPA"),
    ("VC", "NLH"),
    ("VI", "NLH"),
    ("VA", "NLH"),
    ("SC", "NLH"),
    ("SI", "NLH"),
    ("SA", "NLH"),
];

/// The vector of an advisory: of version 3, which every reader knows, else of version 4. Vectors with an error are left out.
pub(super) fn vector(severities: &[Severity]) -> Option<String> {
    let of = |kind: SeverityKind, versions: &[&str], metrics: &[Metric]| {
        severities.iter().filter(|one| one.kind == kind).find_map(|one| base(&one.score, versions, metrics))
    };
    of(SeverityKind::CvssV3, &["CVSS:3.1", "CVSS:3.0"], &OF_3)
        .or_else(|| of(SeverityKind::CvssV4, &["CVSS:4.0"], &OF_4))
}

fn base(vector: &str, versions: &[&str], metrics: &[Metric]) -> Option<String> {
    let (version, rest) = vector.split_once('/').filter(|(version, _)| versions.contains(version))?;
    let given: Vec<(&str, &str)> = rest.split('/').map(|metric| metric.split_once(':')).collect::<Option<_>>()?;
    let mut base = version.to_owned();
    for (name, values) in metrics {
        let mut of_name = given.iter().filter(|(given, _)| given == name);
        let (Some((_, value)), None) = (of_name.next(), of_name.next()) else { return None };
        if value.len() != 1 || !values.contains(value) {
            return None;
        }
        base.push_str(&format!("/{name}:{value}"));
    }
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE_3: &str = "CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N";
    const WHOLE_4: &str = "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N";

    fn of(all: &[(SeverityKind, &str)]) -> Option<String> {
        let severities = all.iter().map(|(kind, score)| Severity { kind: *kind, score: (*score).into() });
        vector(&severities.collect::<Vec<_>>())
    }

    #[test]
    fn vectors_keep_their_base_metrics_alone() {
        let (v3, v4) = (SeverityKind::CvssV3, SeverityKind::CvssV4);
        assert_eq!(of(&[(v4, WHOLE_4), (v3, WHOLE_3)]).as_deref(), Some(WHOLE_3));
        assert_eq!(of(&[(v3, &format!("{WHOLE_3}/E:P/RL:O"))]).as_deref(), Some(WHOLE_3));
        assert_eq!(of(&[(v4, &format!("{WHOLE_4}/E:A"))]).as_deref(), Some(WHOLE_4));
        for wrong in [
            "",
            "high",
            "CVSS:3.1",
            "CVSS:3.2/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N",
            "CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L",
            "CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:X",
            "CVSS:3.1/AV:NA/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N",
            "CVSS:3.1/AV:N/AV:L/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N",
            "CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N/",
        ] {
            assert_eq!(of(&[(v3, wrong)]), None, "{wrong}");
        }
        assert_eq!(of(&[(SeverityKind::CvssV2, "AV:N/AC:L/Au:N/C:N/I:N/A:C")]), None);
    }
}
