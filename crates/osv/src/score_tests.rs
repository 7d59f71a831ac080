//! Scores against examples, the equations of the standard, and hostile texts.

use proptest::prelude::*;

use super::*;

#[test]
fn scores_are_those_of_the_standard() {
    for (vector, expected) in [
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H", 10.0),
        ("CVSS:3.0/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", 6.1),
        ("CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N", 3.1),
        ("CVSS:3.1/AV:L/AC:L/PR:L/UI:N/S:U/C:H/I:H/A:H", 7.8),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", 0.0),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H/E:P", 7.5),
        ("CVSS:3.1/A:H/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/", 7.5),
        ("AV:N/AC:L/Au:N/C:N/I:N/A:C", 7.8),
        ("AV:N/AC:L/Au:N/C:C/I:C/A:C", 10.0),
        ("(AV:L/AC:H/Au:N/C:C/I:C/A:C)", 6.2),
        ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:H/SI:H/SA:H", 10.0),
        ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", 9.3),
        ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:H/VA:N/SC:N/SI:N/SA:N/E:P/CR:X/S:X/U:Red/new:1", 7.7),
        ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:N/VI:N/VA:N/SC:N/SI:N/SA:N", 0.0),
    ] {
        assert_eq!(score(vector), Some(expected), "{vector}");
    }
    assert_eq!(highest_score(["low", "AV:N/AC:L/Au:N/C:N/I:N/A:C", "CVSS:3.1/AV:N"]), Some(7.8));
    assert_eq!(highest_score(["low"]), None);
    assert_eq!((Rating::of(9.8), Rating::of(0.0)), (Rating::Critical, Rating::None));
}

#[test]
fn other_texts_have_no_score() {
    let long = format!("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N{}", "/X:Y".repeat(300));
    for vector in [
        "",
        "high",
        "a/b",
        "(/)",
        "CVSS:3.1/AV:N",
        "CVSS:3.2/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H",
        "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N",
        "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:S",
        "CVSS:5.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N",
        "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:X",
        &long,
    ] {
        assert_eq!(score(vector), None, "{vector}");
    }
}

/// All base vectors of a version: each combination of the letters of its metrics.
fn all(version: &str, metrics: &[(&str, &str)]) -> Vec<String> {
    let begin = vec![version.to_owned()];
    let vectors = metrics.iter().fold(begin, |vectors, (name, values)| {
        let with = |vector: &String| values.chars().map(|value| format!("{vector}/{name}:{value}")).collect::<Vec<_>>();
        vectors.iter().flat_map(with).collect()
    });
    vectors.into_iter().map(|vector| vector.trim_start_matches('/').to_owned()).collect()
}

/// The weight of a metric of a vector.
fn weight(vector: &str, name: &str, weights: &[(&str, f64)]) -> f64 {
    let value = vector.split('/').filter_map(|metric| metric.split_once(':')).find(|(given, _)| *given == name);
    let value = value.map(|(_, value)| value).expect("every metric is there");
    weights.iter().find(|(word, _)| *word == value).map(|(_, weight)| *weight).expect("a value of the standard")
}

/// The equation of version 3.1, in integers where it rounds.
fn equation_3(vector: &str) -> f64 {
    let impact_weights = [("N", 0.0), ("L", 0.22), ("H", 0.56)];
    let is_changed = vector.contains("/S:C");
    let privileges =
        if is_changed { [("N", 0.85), ("L", 0.68), ("H", 0.5)] } else { [("N", 0.85), ("L", 0.62), ("H", 0.27)] };
    let base = 1.0 - ["C", "I", "A"].iter().map(|name| 1.0 - weight(vector, name, &impact_weights)).product::<f64>();
    let impact = if is_changed { 7.52 * (base - 0.029) - 3.25 * (base - 0.02).powi(15) } else { 6.42 * base };
    let exploitability = 8.22
        * weight(vector, "AV", &[("N", 0.85), ("A", 0.62), ("L", 0.55), ("P", 0.2)])
        * weight(vector, "AC", &[("L", 0.77), ("H", 0.44)])
        * weight(vector, "PR", &privileges)
        * weight(vector, "UI", &[("N", 0.85), ("R", 0.62)]);
    if impact <= 0.0 {
        return 0.0;
    }
    let factor = if is_changed { 1.08 } else { 1.0 };
    let hundred_thousandths = ((factor * (impact + exploitability)).min(10.0) * 100_000.0).round() as i64;
    if hundred_thousandths % 10_000 == 0 {
        hundred_thousandths as f64 / 100_000.0
    } else {
        ((hundred_thousandths / 10_000) + 1) as f64 / 10.0
    }
}

/// The equation of version 2.
fn equation_2(vector: &str) -> f64 {
    let impact_weights = [("N", 0.0), ("P", 0.275), ("C", 0.66)];
    let rest = ["C", "I", "A"].iter().map(|name| 1.0 - weight(vector, name, &impact_weights)).product::<f64>();
    let impact = 10.41 * (1.0 - rest);
    let exploitability = 20.0
        * weight(vector, "AV", &[("L", 0.395), ("A", 0.646), ("N", 1.0)])
        * weight(vector, "AC", &[("H", 0.35), ("M", 0.61), ("L", 0.71)])
        * weight(vector, "Au", &[("M", 0.45), ("S", 0.56), ("N", 0.704)]);
    let factor = if impact == 0.0 { 0.0 } else { 1.176 };
    ((((0.6 * impact) + (0.4 * exploitability) - 1.5) * factor) * 10.0).round() / 10.0
}

#[test]
fn every_base_vector_of_versions_2_and_3_has_the_score_of_the_equation() {
    let metrics = [
        ("AV", "NALP"),
        ("AC", "LH"),
        ("PR", "NLH"),
        ("UI", "NR"),
        ("S", "UC"),
        ("C", "NLH"),
        ("I", "NLH"),
        ("A", "NLH"),
    ];
    for version in ["CVSS:3.0", "CVSS:3.1"] {
        let vectors = all(version, &metrics);
        assert_eq!(vectors.len(), 2592);
        for vector in &vectors {
            assert_eq!(score(vector), Some(equation_3(vector)), "{vector}");
        }
    }
    let metrics = [("AV", "NAL"), ("AC", "LMH"), ("Au", "NSM"), ("C", "NPC"), ("I", "NPC"), ("A", "NPC")];
    let vectors = all("", &metrics);
    assert_eq!(vectors.len(), 729);
    for vector in &vectors {
        assert_eq!(score(vector), Some(equation_2(vector)), "{vector}");
    }
}

/// Values of each metric of version 4, base metrics first; `-` stands for a metric that is left out.
const VALUES_4: [(&str, &str); 26] = [
    ("AV", "NALP"),
    ("AC", "LH"),
    ("AT", "NP"),
    ("PR", "NLH"),
    ("UI", "NPA"),
    ("VC", "HLN"),
    ("VI", "HLN"),
    ("VA", "HLN"),
    ("SC", "HLN"),
    ("SI", "HLN"),
    ("SA", "HLN"),
    ("E", "-XAPU"),
    ("CR", "-XHML"),
    ("IR", "-XHML"),
    ("AR", "-XHML"),
    ("MAV", "-XNALP"),
    ("MAC", "-XLH"),
    ("MAT", "-XNP"),
    ("MPR", "-XNLH"),
    ("MUI", "-XNPA"),
    ("MVC", "-XHLN"),
    ("MVI", "-XHLN"),
    ("MVA", "-XHLN"),
    ("MSC", "-XHLN"),
    ("MSI", "-XSHLN"),
    ("MSA", "-XSHLN"),
];

/// The vector with these values, by their positions.
fn vector_4(values: &[usize]) -> String {
    let metrics = VALUES_4.iter().zip(values).filter_map(|((name, letters), at)| {
        let letter = letters.as_bytes()[at % letters.len()];
        (letter != b'-').then(|| format!("/{name}:{}", char::from(letter)))
    });
    format!("CVSS:4.0{}", metrics.collect::<String>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_vector_of_version_4_has_a_score(values in proptest::collection::vec(0_usize..60, 26)) {
        let vector = vector_4(&values);
        let scored = score(&vector);
        prop_assert!(scored.is_some_and(|score| (0.0..=10.0).contains(&score)), "{} {:?}", vector, scored);
    }

    #[test]
    fn a_worse_impact_scores_no_lower(values in proptest::collection::vec(0_usize..60, 11), at in 5_usize..11) {
        let mut worse = values.clone();
        worse[at] = 0;
        let (one, other) = (score(&vector_4(&values)), score(&vector_4(&worse)));
        prop_assert!(one <= other, "{} {:?}, {} {:?}", vector_4(&values), one, vector_4(&worse), other);
    }

    #[test]
    fn no_text_makes_it_panic(text in "(CVSS:[0-9]\\.[0-9]|\\()?(/?[A-Za-z]{0,3}:?[A-Za-zé]{0,2}){0,20}") {
        let _ = score(&text);
    }

    #[test]
    fn no_damaged_vector_makes_it_panic(
        values in proptest::collection::vec(0_usize..60, 26), at in 0_usize..120, letter in any::<char>(),
    ) {
        let vector = vector_4(&values);
        let damaged: String =
            vector.chars().enumerate().map(|(index, own)| if index == at { letter } else { own }).collect();
        let _ = score(&damaged);
    }
}
