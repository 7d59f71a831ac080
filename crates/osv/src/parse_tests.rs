use proptest::prelude::*;
use serde_json::json;

use super::*;

fn whole() -> Value {
    json!({
        "schema_version": "1.7.0",
        "id": "GHSA-aaaa-bbbb-cccc",
        "modified": "2024-05-01T10:00:00Z",
        "published": "2024-04-01T10:00:00Z",
        "aliases": ["CVE-2024-1", "PYSEC-2024-1"],
        "summary": "short",
        "details": "long",
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
        "affected": [{
            "package": {"ecosystem": "PyPI", "name": "Some.Thing", "purl": "pkg:pypi/some-thing"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.2"}]}],
            "versions": ["1.0", "1.1"],
            "database_specific": {"source": "x"}
        }],
        "references": [{"type": "WEB", "url": "https://example.com/a"}],
        "credits": [{"name": "somebody"}],
        "database_specific": {"z": 1, "a": [true, null]}
    })
}

fn parse_value(value: &Value) -> Result<Parsed, String> {
    parse(&serde_json::to_vec(value).unwrap())
}

#[test]
fn a_whole_record_is_read() {
    let parsed = parse_value(&whole()).unwrap();
    let record = parsed.record;
    assert_eq!(record.id, "GHSA-aaaa-bbbb-cccc");
    assert_eq!(record.aliases, ["CVE-2024-1", "PYSEC-2024-1"]);
    assert_eq!(record.affected[0].ranges[0].events[1], Event::Fixed("1.2".into()));
    assert_eq!(record.severity[0].kind, SeverityKind::CvssV3);
    assert_eq!(record.withdrawn, None);
}

#[test]
fn the_canonical_form_keeps_everything_and_knows_no_order_or_space() {
    let value = whole();
    let first = parse(&serde_json::to_vec(&value).unwrap()).unwrap();
    let spaced = parse(&serde_json::to_vec_pretty(&value).unwrap()).unwrap();
    assert_eq!(first.canonical, spaced.canonical);
    assert_eq!(first.digest, spaced.digest);
    assert_eq!(serde_json::from_slice::<Value>(&first.canonical).unwrap(), value);
    assert_eq!(parse(&first.canonical).unwrap().canonical, first.canonical);

    let mut with_null = value.clone();
    with_null["withdrawn"] = Value::Null;
    assert_eq!(parse_value(&with_null).unwrap().digest, first.digest, "null is the same as absent");

    let mut other = value;
    other["summary"] = json!("shorter");
    assert_ne!(parse_value(&other).unwrap().digest, first.digest);
}

#[test]
fn a_broken_record_is_refused_with_its_reason() {
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut value = whole();
        change(&mut value);
        parse_value(&value).unwrap_err()
    };
    for (reason, change) in [
        ("`id` is missing", (&|v: &mut Value| v["id"] = json!("")) as &dyn Fn(&mut Value)),
        ("`id` is not a string", &|v| v["id"] = json!(7)),
        ("`id` is no identifier of at most 128 characters", &|v| v["id"] = json!("../etc/passwd")),
        ("`id` is no identifier of at most 128 characters", &|v| v["id"] = json!("X".repeat(129))),
        ("`modified` is missing", &|v| v["modified"] = Value::Null),
        ("`modified` is no RFC 3339 time in UTC", &|v| v["modified"] = json!("yesterday")),
        ("`aliases[1]` is not a string", &|v| v["aliases"] = json!(["CVE-1", 2])),
        ("`affected` is not a list", &|v| v["affected"] = json!({})),
        ("`affected[0]` is not an object", &|v| v["affected"][0] = json!("x")),
        ("in `affected[0]` in `package` `name` is missing", &|v| v["affected"][0]["package"]["name"] = Value::Null),
        ("in `affected[0]` in `package` `name` has a control character", &|v| {
            v["affected"][0]["package"]["name"] = json!("a\nb");
        }),
        ("in `affected[0]` `versions[0]` has a control character", &|v| v["affected"][0]["versions"][0] = json!("1\t")),
        ("in `affected[0]` in `ranges[0]` `type` is none of GIT, SEMVER and ECOSYSTEM", &|v| {
            v["affected"][0]["ranges"][0]["type"] = json!("CVS");
        }),
        ("in `affected[0]` in `ranges[0]` `repo` is missing", &|v| {
            v["affected"][0]["ranges"][0]["type"] = json!("GIT");
        }),
        ("in `affected[0]` in `ranges[0]` `events` never says `introduced`", &|v| {
            v["affected"][0]["ranges"][0]["events"] = json!([{"fixed": "1"}]);
        }),
        ("in `affected[0]` in `ranges[0]` in `events[0]` there is not exactly one kind of event", &|v| {
            v["affected"][0]["ranges"][0]["events"][0] = json!({"introduced": "0", "fixed": "1"});
        }),
        ("in `references[0]` `url` is missing", &|v| v["references"][0] = json!({"type": "WEB"})),
    ] {
        assert_eq!(broken(change), reason);
    }
    assert_eq!(parse(b"[]").unwrap_err(), "is not a JSON object");
    assert!(parse(b"{\"id\":").unwrap_err().starts_with("is not JSON: "));
    assert!(parse(&vec![b' '; MAX_BYTES + 1]).unwrap_err().contains("at most"));
    let deep = format!("{{\"id\":\"A\",\"x\":{}", "[".repeat(100_000));
    assert!(parse(deep.as_bytes()).unwrap_err().starts_with("is not JSON: "));
}

#[test]
fn what_newer_schemas_add_is_kept() {
    let mut value = whole();
    value["severity"] = json!([{"type": "CVSS_V5", "score": "x"}]);
    value["something_new"] = json!({"b": 1});
    let parsed = parse_value(&value).unwrap();
    assert_eq!(parsed.record.severity[0].kind, SeverityKind::Other);
    assert_eq!(serde_json::from_slice::<Value>(&parsed.canonical).unwrap(), value);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn no_document_makes_it_panic(text in "[\\{\\}\\[\\]\":, a-z0-9]{0,80}") {
        let _ = parse(format!("{{\"id\":\"A\",\"modified\":\"2024-01-01T00:00:00Z\",\"affected\":{text}}}").as_bytes());
    }
}
