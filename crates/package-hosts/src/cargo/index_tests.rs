use super::*;

fn new(more: &Value) -> std::result::Result<NewVersion, serde_json::Error> {
    let mut version = json!({ "name": "Foo", "vers": "1.0.0" });
    for (member, value) in more.as_object().expect("an object") {
        version[member] = value.clone();
    }
    serde_json::from_value(version)
}

#[test]
fn what_cargo_sends_becomes_a_line() {
    let version = new(&json!({
        "deps": [
            { "name": "real", "version_req": "^1", "features": ["a"], "optional": true, "default_features": false,
              "target": "cfg(unix)", "kind": "build", "registry": "sparse+https://a.example/", "explicit_name_in_toml": "alias" },
            { "name": "plain", "version_req": ">=0.1, <0.3" },
        ],
        "features": { "default": ["a"], "a": ["dep:real"], "b": ["plain?/x"] },
        "authors": ["someone"],
    }));
    let version = version.expect("a version");
    assert_eq!(version.validate(), Ok(()));
    let wanted = json!({
        "name": "Foo", "vers": "1.0.0",
        "deps": [
            { "name": "alias", "package": "real", "req": "^1", "features": ["a"], "optional": true, "default_features": false,
              "target": "cfg(unix)", "kind": "build", "registry": "sparse+https://a.example/" },
            { "name": "plain", "req": ">=0.1, <0.3", "features": [], "optional": false, "default_features": true,
              "target": null, "kind": "normal" },
        ],
        "features": { "default": ["a"] },
        "features2": { "a": ["dep:real"], "b": ["plain?/x"] },
        "v": 2, "links": "z", "rust_version": "1.70",
    });
    assert_eq!(version.line(("z", "1.70")), wanted);
    let plain = new(&json!({})).expect("a version").line(("", ""));
    assert_eq!(plain, json!({ "name": "Foo", "vers": "1.0.0", "deps": [], "features": {} }));
}

#[test]
fn what_no_index_can_have_is_refused() {
    let dependency = |more: Value| {
        let mut dependency = json!({ "name": "a", "version_req": "^1" });
        for (member, value) in more.as_object().expect("an object") {
            dependency[member] = value.clone();
        }
        json!({ "deps": [dependency] })
    };
    for (more, wanted) in [
        (dependency(json!({ "name": "../a" })), "not the name of a crate"),
        (dependency(json!({ "version_req": "one" })), "no requirement of versions"),
        (dependency(json!({ "target": "a\nb" })), "cannot be read"),
        (dependency(json!({ "registry": "x".repeat(600) })), "cannot be read"),
        (dependency(json!({ "features": [""] })), "cannot be read"),
        (dependency(json!({ "artifact": ["bin"] })), "artifacts of a"),
        (json!({ "features": { "a\n": [] } }), "which is no name"),
        (json!({ "deps": vec![json!({ "name": "a", "version_req": "^1" }); DEPENDENCIES + 1] }), "more than"),
    ] {
        let refused = new(&more).expect("a version").validate().expect_err(wanted);
        assert!(refused.contains(wanted), "{refused}");
    }
    for more in [json!({ "deps": [{ "name": "a" }] }), json!({ "vers": 1 }), json!({ "deps": {} })] {
        assert!(new(&more).is_err(), "{more}");
    }
}

#[test]
fn a_line_of_an_upstream_is_read_and_served() {
    let sum = "ab".repeat(32);
    let line = json!({
        "name": "Foo", "vers": "1.0.0", "deps": [], "features": {}, "cksum": sum.to_uppercase(), "yanked": true,
        "pubtime": "2023-11-14T22:13:20Z", "other": 1, "v": 2, "features2": { "a": ["dep:b"] },
    });
    let read = read(&line.to_string(), "foo").expect("a line");
    assert_eq!(
        (read.file.as_str(), read.yanked, read.published_micros),
        ("foo-1.0.0.crate", true, 1_700_000_000_000_000)
    );
    let version = CargoVersion {
        manifest: read.manifest,
        sha256: read.sha256,
        yanked: false,
        published_at: Some(1_700_000_000_999_999),
    };
    let shown: Value = serde_json::from_str(&served(&version).expect("a line")).expect("JSON");
    let wanted = json!({
        "name": "Foo", "vers": "1.0.0", "deps": [], "features": {}, "cksum": sum, "yanked": false,
        "pubtime": "2023-11-14T22:13:20Z", "v": 2, "features2": { "a": ["dep:b"] },
    });
    assert_eq!(shown, wanted);
    for (member, value) in
        [("name", json!("bar")), ("vers", json!("1.0")), ("cksum", json!("xyz")), ("cksum", json!(1))]
    {
        let mut wrong = line.clone();
        wrong[member] = value;
        assert_eq!(super::read(&wrong.to_string(), "foo"), None, "{member}");
    }
}
