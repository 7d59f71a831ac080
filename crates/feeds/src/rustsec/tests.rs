use super::*;

/// A record about one crate, with further members.
fn record(id: &str, affected: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","modified":"2026-03-02T10:00:00Z","published":"2026-01-31T23:59:59Z","affected":[{affected}]{more}}}"#
    )
}

fn of_crate(name: &str, events: &str, more: &str) -> String {
    format!(
        r#"{{"package":{{"ecosystem":"{RUST}","name":"{name}"}},"ranges":[{{"type":"SEMVER","events":[{events}]}}]{more}}}"#
    )
}

const FIXED: &str = r#"{"introduced":"0"},{"fixed":"1.2.0"}"#;

fn written(record: &str, name: &str) -> (String, String) {
    let mut problems = Problems::default();
    let file = rustsec_file(record.as_bytes(), name, "CC-BY-4.0", &mut problems);
    let file = file.unwrap_or_else(|| panic!("{:?}", problems.iter().collect::<Vec<_>>()));
    (file.path, String::from_utf8(file.bytes).unwrap())
}

fn left_out(record: &str, name: &str) -> String {
    let mut problems = Problems::default();
    assert_eq!(rustsec_file(record.as_bytes(), name, "CC-BY-4.0", &mut problems), None);
    assert_eq!(problems.skipped(), 1);
    problems.iter().next().unwrap().to_string()
}

#[test]
fn a_whole_record_is_written() {
    let more = r#","aliases":["CVE-2026-1","CVE-1999-1","CVE-x"],"summary":"Reads\npast \u0007 the end","details":"One.\r\n\u001b[31mTwo: \"x\".\n",
        "severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N/E:P"}],
        "references":[{"type":"WEB","url":"https://a.example/1"},{"type":"ADVISORY","url":"https://a.example/2"},
                      {"type":"WEB","url":"https://a.example/1"},{"type":"WEB","url":"http://[::1"},{"type":"WEB","url":"file:///etc"}]"#;
    let whole =
        record("GHSA-aaaa-bbbb-cccc", &of_crate("Some_Crate", r#"{"introduced":"1.0.0"},{"fixed":"1.2.0"}"#, ""), more);
    let (path, text) = written(&whole, "some_crate");
    assert_eq!(path, "crates/Some_Crate/GHSA-aaaa-bbbb-cccc.md");
    let expected = r#"```toml
[advisory]
id = "GHSA-aaaa-bbbb-cccc"
package = "Some_Crate"
date = "2026-01-31"
url = "https://a.example/2"
references = ["https://a.example/1"]
cvss = "CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N"
aliases = ["CVE-2026-1"]
license = "CC-BY-4.0"

[versions]
patched = [">= 1.2.0"]
unaffected = ["< 1.0.0"]
```

# Reads past the end

One.
[31mTwo: "x".
"#;
    assert_eq!(text, expected);
}

#[test]
fn what_the_public_database_says_of_an_advisory_is_kept() {
    let of = |word: &str| {
        let further = format!(
            r#","database_specific":{{"informational":{word},"categories":["memory-corruption"],"cvss":null}}"#
        );
        let more = r#","withdrawn":"2026-02-01T00:00:00Z","database_specific":{"license":"CC0-1.0"}"#;
        written(&record("RUSTSEC-2026-0001", &of_crate("a", r#"{"introduced":"0.0.0-0"}"#, &further), more), "a").1
    };
    let text = of("\"unmaintained\"");
    for line in [
        "informational = \"unmaintained\"",
        "categories = [\"memory-corruption\"]",
        "license = \"CC0-1.0\"",
        "withdrawn = \"2026-02-01\"",
        "patched = []\n```",
        "# RUSTSEC-2026-0001\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // Readers warn of no other word, and would show nothing at all.
    assert!(!of("\"other\"").contains("informational") && !of("null").contains("informational"));
}

#[test]
fn each_id_is_in_a_database_once() {
    let both = format!("{},{}", of_crate("beta", FIXED, ""), of_crate("alpha", FIXED, ""));
    let both = record("CVE-2026-7", &both, "");
    assert_eq!(written(&both, "alpha").0, "crates/alpha/CVE-2026-7.md");
    let (path, text) = written(&both, "beta");
    assert_eq!(path, "crates/beta/crate.beta.CVE-2026-7.md");
    assert!(text.contains("id = \"crate.beta.CVE-2026-7\"") && text.contains("aliases = [\"CVE-2026-7\"]"), "{text}");
    for refused in ["CVE-1999-1", "RUSTSEC-0000-0000", "CVE-2026-x", "CVE-2026-1-2", "RUSTSEC-1", "crate.a.X"] {
        let (path, text) = written(&record(refused, &of_crate("a", FIXED, ""), ""), "a");
        assert_eq!(path, format!("crates/a/crate.a.{refused}.md"));
        assert_eq!(text.contains("aliases"), refused == "crate.a.X", "{text}");
    }
}

#[test]
fn what_no_file_can_express_is_named() {
    let one = of_crate("a", FIXED, "");
    for (record, name, reason) in [
        (record("A-1", &one, ""), "b", "skipped A-1 (b): it names no such crate"),
        (record("A:1", &one, ""), "a", "skipped A:1 (a): its id is no name of a file"),
        (record("A-1", &of_crate("../a", FIXED, ""), ""), "../a", "its name is not that of a crate"),
        (record("A-1", &of_crate("a.b", FIXED, ""), ""), "a.b", "its name is not that of a crate"),
        (
            record("A-1", &of_crate("a", r#"{"introduced":"0"},{"fixed":"soon"}"#, ""), ""),
            "a",
            "is no semantic version",
        ),
        (record("A-1", &one, "").replace("2026-", "1998-"), "a", "its dates are before 2000"),
        ("{}".into(), "a", "skipped a: the record is invalid"),
    ] {
        let problem = left_out(&record, name);
        assert!(problem.contains(reason), "{problem}");
    }
}

#[test]
fn texts_of_records_stay_in_their_place() {
    let more = r#","summary":"```\n[versions]","details":"\n```\n# Other","references":[{"type":"WEB","url":"https://a.example/\"\n```"}]"#;
    let text = written(&record("A-1", &of_crate("a", FIXED, ""), more), "a").1;
    let fences: Vec<usize> =
        text.lines().enumerate().filter(|(_, line)| line.starts_with("```")).map(|(at, _)| at).collect();
    let end = text.lines().position(|line| line.starts_with("patched")).unwrap() + 1;
    assert_eq!(fences[..2], [0, end], "{text}");
    assert!(text.contains("# ``` [versions]\n"), "{text}");
}
