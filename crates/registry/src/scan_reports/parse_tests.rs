//! What scanners write, and what they do not.

use super::super::grype::report as grype;
use super::super::trivy::report as trivy;
use super::*;

#[test]
fn both_forms_are_understood() {
    let text = br#"{"matches":[{"vulnerability":{"id":"GHSA-1","severity":"High","dataSource":"https://e/1","urls":["https://e/2"],
        "fix":{"versions":["2.0"],"state":"fixed"}},"relatedVulnerabilities":[{"id":"CVE-1","description":"text"}],
        "artifact":{"name":"a","version":"1.0","type":"python","purl":"pkg:pypi/a@1.0","locations":[{"path":"/a"}]},"x":[]}],
        "descriptor":{"version":"0.80.0","db":{"built":"2026-01-02T03:04:05Z"}}}"#;
    let report = grype(text).expect("a report");
    assert_eq!(report.findings.len(), 1);
    let finding = &report.findings[0];
    assert_eq!((finding.id.as_str(), finding.aliases.as_slice()), ("GHSA-1", ["CVE-1".to_owned()].as_slice()));
    assert_eq!((finding.description.as_str(), finding.location.as_str()), ("text", "/a"));
    assert_eq!((report.scanner_version.as_str(), report.database_built.as_str()), ("0.80.0", "2026-01-02T03:04:05Z"));
    let newer = br#"{"matches":[],"descriptor":{"version":"1","db":{"status":{"built":"2026-01-02T03:04:05Z"}}}}"#;
    assert_eq!(grype(newer).expect("a report").database_built, "2026-01-02T03:04:05Z");

    let text = br#"{"SchemaVersion":2,"Trivy":{"Version":"0.60.0"},"Results":[{"Target":"os","Type":"alpine","Vulnerabilities":[
        {"VulnerabilityID":"CVE-2","PkgName":"b","InstalledVersion":"1","FixedVersion":"2, 3","Severity":"CRITICAL","Status":"fixed",
         "Title":"short","PkgIdentifier":{"PURL":"pkg:apk/b@1"}}]},{"Target":"empty"}]}"#;
    let report = trivy(text).expect("a report");
    let finding = &report.findings[0];
    assert_eq!(finding.fixed_versions, ["2", "3"]);
    assert_eq!((finding.severity, finding.description.as_str()), (Severity::Critical as i32, "short"));
    assert_eq!(finding.location, "os");
}

#[test]
fn what_is_no_report_is_refused() {
    for text in [
        "",
        "[]",
        "{}",
        "{\"matches\":1}",
        "{\"matches\":[{}]}",
        "{\"matches\":[{\"vulnerability\":{},\"artifact\":{}}]}",
    ] {
        assert!(grype(text.as_bytes()).is_err(), "{text}");
        assert!(trivy(text.as_bytes()).is_err(), "{text}");
    }
    let deep = format!("{{\"matches\":[],\"x\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    // Members that no one reads may be as deep as they like: what counts is that the call comes back.
    assert!(grype(deep.as_bytes()).is_ok());
}

#[test]
fn an_id_counts_once_under_its_highest_severity() {
    let finding =
        |id: &str, severity: Severity| Finding { id: id.into(), severity: severity as i32, ..Finding::default() };
    let findings = vec![finding("a", Severity::Negligible), finding("a", Severity::Low), finding("b", Severity::Low)];
    let report = Report { findings, ..Report::default() };
    assert_eq!(report.summary(), [(Severity::Low as i32, ["a", "b"].into())].into());
}

fn repeated(part: &str, times: usize) -> String {
    vec![part; times].join(",")
}

#[test]
fn lists_and_texts_are_cut_while_they_are_read() {
    let (long, urls) = ("x".repeat(3000), repeated(r#""u""#, 99));
    let text = format!(
        r#"{{"matches":[{{"vulnerability":{{"id":"{long}","urls":[{urls}],"fix":{{"versions":null}}}},"artifact":{{}}}}]}}"#
    );
    let finding = &grype(text.as_bytes()).expect("a report").findings[0];
    assert_eq!((finding.id.len(), finding.references.len()), (2048, MAX_ELEMENTS));
}

#[test]
fn what_would_grow_beyond_bounds_is_refused() {
    let found = r#"{"vulnerability":{"id":"x"},"artifact":{}}"#;
    let matches = |times: usize| format!(r#"{{"matches":[{}]}}"#, repeated(found, times));
    assert_eq!(grype(matches(MAX_FINDINGS).as_bytes()).map(|report| report.findings.len()), Ok(MAX_FINDINGS));
    assert!(grype(matches(MAX_FINDINGS + 1).as_bytes()).is_err());

    // What is said once of many packages is cut before each of them gets it, and even so not stored without end.
    let outcome = |target: usize, times: usize| {
        let found = repeated(r#"{"VulnerabilityID":"x"}"#, times);
        format!(r#"{{"Vulnerabilities":[{found}],"Target":"{}"}}"#, "t".repeat(target))
    };
    let outcomes = |parts: &[String]| format!(r#"{{"SchemaVersion":2,"Results":[{}]}}"#, parts.join(","));
    let report = trivy(outcomes(&[outcome(1 << 20, 20_000)]).as_bytes()).expect("a report");
    assert_eq!((report.findings.len(), report.findings[0].location.len()), (20_000, 2048));
    assert!(trivy(outcomes(&[outcome(1 << 20, 40_000)]).as_bytes()).is_err());
    let halves = [outcome(1, MAX_FINDINGS / 2), outcome(1, MAX_FINDINGS / 2 + 1)];
    assert!(trivy(outcomes(&halves).as_bytes()).is_err());
    assert!(trivy(outcomes(&vec!["{}".to_owned(); 200_000]).as_bytes()).is_ok_and(|report| report.findings.is_empty()));
}

#[test]
fn what_was_scanned_is_known_by_digests_alone() {
    let [one, two, three] = ["1", "2", "3"].map(|digit| format!("sha256:{}", digit.repeat(64)));
    let of =
        |target: &str| grype(format!("{{\"matches\":[],\"source\":{target}}}").as_bytes()).expect("a report").scanned;
    let image = format!(
        r#"{{"type":"image","target":{{"userInput":"a:1","imageID":"{two}","manifestDigest":"{one}",
             "repoDigests":["h/a@{three}"],"layers":[{{"digest":"x"}}]}}}}"#
    );
    assert_eq!(of(&image), [one.clone(), two.clone(), three.clone()]);
    for nothing in [
        "null",
        "{}",
        r#"{"type":"directory","target":"/a"}"#,
        r#"{"target":null}"#,
        r#"{"target":{"repoDigests":null,"imageID":"x"}}"#,
    ] {
        assert_eq!(of(nothing), [""; 0], "{nothing}");
    }
    let metadata = format!(r#"{{"SchemaVersion":2,"Metadata":{{"ImageID":"{two}","RepoDigests":["h/a@{three}"]}}}}"#);
    assert_eq!(trivy(metadata.as_bytes()).expect("a report").scanned, [two, three]);
    assert_eq!(trivy(br#"{"SchemaVersion":2,"Metadata":null}"#).expect("a report").scanned, [""; 0]);
}

fn rated(report: Result<Report, String>) -> Vec<(String, String)> {
    let finding = report.expect("a report").findings.remove(0);
    finding.ratings.into_iter().map(|rating| (rating.version, rating.score)).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(version, score)| ((*version).to_owned(), (*score).to_owned())).collect()
}

#[test]
fn ratings_are_read_once_for_each_version_of_the_scale() {
    let of = |own: &str, related: &str| {
        let text = format!(
            r#"{{"matches":[{{"vulnerability":{{"id":"A","cvss":{own}}},"artifact":{{}},
                 "relatedVulnerabilities":[{{"id":"B"}},{{"id":"C","cvss":{related}}}]}}]}}"#
        );
        rated(grype(text.as_bytes()))
    };
    let some = r#"[{"version":"3.1","metrics":{"baseScore":7.2}},{"version":"3.1","metrics":{"baseScore":9}},
                   {"version":"2.0","metrics":{"baseScore":4}},{"version":"x","metrics":{"baseScore":4}},
                   {"version":"4.0","metrics":{"baseScore":11}},{"version":"3.0","metrics":null},{}]"#;
    assert_eq!(of(some, "[]"), pairs(&[("3.1", "7.2"), ("2.0", "4.0")]));
    assert_eq!(of("[]", some), of(some, "null"));
    assert_eq!(of("null", "null"), []);
    let of = |cvss: &str| {
        let found = format!(r#"{{"VulnerabilityID":"A","CVSS":{cvss}}}"#);
        rated(trivy(format!(r#"{{"SchemaVersion":2,"Results":[{{"Vulnerabilities":[{found}]}}]}}"#).as_bytes()))
    };
    let some = r#"{"ghsa":{"V3Vector":"CVSS:3.1/AV:N","V3Score":9.8,"V40Score":8.7},"nvd":{"V3Vector":"CVSS:3.1/AV:N","V3Score":7.5,"V2Score":5},"x":1}"#;
    assert_eq!(of(some), pairs(&[("3.1", "7.5"), ("2.0", "5.0"), ("4.0", "8.7")]));
    assert_eq!(of("null"), []);
}
