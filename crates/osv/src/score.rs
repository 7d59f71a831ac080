//! Base scores of CVSS vectors of versions 2 and 3. Version 4 is looked up in a table of 270 rows that nothing here
//! needs; its vectors have no score here.

/// How severe a base score is, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the standard")]
pub enum Rating {
    None,
    Low,
    Medium,
    High,
    Critical,
}

impl Rating {
    /// The rating of a base score, by the scale of version 3.
    pub fn of(score: f64) -> Rating {
        match score {
            score if score >= 9.0 => Rating::Critical,
            score if score >= 7.0 => Rating::High,
            score if score >= 4.0 => Rating::Medium,
            score if score > 0.0 => Rating::Low,
            _ => Rating::None,
        }
    }
}

/// The base score of a vector; `None` if it is not of version 2 or 3, or lacks a base metric.
pub fn base_score(vector: &str) -> Option<f64> {
    match vector.split_once('/')? {
        ("CVSS:3.0" | "CVSS:3.1", metrics) => version_3(&Metrics(metrics)),
        (version, _) if version.starts_with("CVSS:") => None,
        _ => version_2(&Metrics(vector.trim_start_matches('(').trim_end_matches(')'))),
    }
}

struct Metrics<'a>(&'a str);

impl Metrics<'_> {
    fn pick(&self, name: &str, weights: &[(&str, f64)]) -> Option<f64> {
        let value = self.value(name)?;
        weights.iter().find(|(word, _)| *word == value).map(|(_, weight)| *weight)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.split('/').filter_map(|metric| metric.split_once(':')).find(|(key, _)| *key == name).map(|(_, v)| v)
    }
}

fn version_3(metrics: &Metrics<'_>) -> Option<f64> {
    let changed = match metrics.value("S")? {
        "U" => false,
        "C" => true,
        _ => return None,
    };
    let impact_weights = [("N", 0.0), ("L", 0.22), ("H", 0.56)];
    let privileges =
        if changed { [("N", 0.85), ("L", 0.68), ("H", 0.5)] } else { [("N", 0.85), ("L", 0.62), ("H", 0.27)] };
    let kept =
        ["C", "I", "A"].iter().try_fold(1.0, |kept, name| Some(kept * (1.0 - metrics.pick(name, &impact_weights)?)))?;
    let base = 1.0 - kept;
    let impact = if changed { 7.52 * (base - 0.029) - 3.25 * (base - 0.02).powi(15) } else { 6.42 * base };
    let exploitability = 8.22
        * metrics.pick("AV", &[("N", 0.85), ("A", 0.62), ("L", 0.55), ("P", 0.2)])?
        * metrics.pick("AC", &[("L", 0.77), ("H", 0.44)])?
        * metrics.pick("PR", &privileges)?
        * metrics.pick("UI", &[("N", 0.85), ("R", 0.62)])?;
    if impact <= 0.0 {
        return Some(0.0);
    }
    let factor = if changed { 1.08 } else { 1.0 };
    Some(round_up((factor * (impact + exploitability)).min(10.0)))
}

/// To one decimal place upwards, in integers as the standard says, so that 4.0000000001 stays 4.0.
fn round_up(score: f64) -> f64 {
    let hundred_thousandths = (score * 100_000.0).round() as i64;
    if hundred_thousandths % 10_000 == 0 {
        hundred_thousandths as f64 / 100_000.0
    } else {
        ((hundred_thousandths / 10_000) + 1) as f64 / 10.0
    }
}

fn version_2(metrics: &Metrics<'_>) -> Option<f64> {
    let impact_weights = [("N", 0.0), ("P", 0.275), ("C", 0.66)];
    let kept =
        ["C", "I", "A"].iter().try_fold(1.0, |kept, name| Some(kept * (1.0 - metrics.pick(name, &impact_weights)?)))?;
    let impact = 10.41 * (1.0 - kept);
    let exploitability = 20.0
        * metrics.pick("AV", &[("L", 0.395), ("A", 0.646), ("N", 1.0)])?
        * metrics.pick("AC", &[("H", 0.35), ("M", 0.61), ("L", 0.71)])?
        * metrics.pick("Au", &[("M", 0.45), ("S", 0.56), ("N", 0.704)])?;
    let factor = if impact == 0.0 { 0.0 } else { 1.176 };
    let score = ((0.6 * impact) + (0.4 * exploitability) - 1.5) * factor;
    Some((score * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_scores_are_those_of_the_standard() {
        for (vector, score) in [
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8),
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H", 10.0),
            ("CVSS:3.0/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", 6.1),
            ("CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N", 3.1),
            ("CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:H/I:H/A:H", 7.8),
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", 0.0),
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H/E:P", 7.5),
            ("AV:N/AC:L/Au:N/C:N/I:N/A:C", 7.8),
            ("AV:N/AC:L/Au:N/C:C/I:C/A:C", 10.0),
            ("(AV:L/AC:H/Au:N/C:C/I:C/A:C)", 6.2),
        ] {
            assert_eq!(base_score(vector), Some(score), "{vector}");
        }
        for vector in
            ["", "high", "CVSS:3.1/AV:N", "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", "a/b"]
        {
            assert_eq!(base_score(vector), None, "{vector}");
        }
        assert_eq!(Rating::of(9.8), Rating::Critical);
        assert_eq!(Rating::of(0.0), Rating::None);
    }
}
