//! Lists after one another, and what is noted of their files.

use super::*;

fn file(version: &str, upload_micros: Micros, first_seen_micros: Micros) -> UpstreamFile {
    let (name, version) = (format!("{version}.zip"), version.to_owned());
    UpstreamFile { name, version, upload_micros, first_seen_micros, ..UpstreamFile::default() }
}

fn document(files: Vec<UpstreamFile>) -> UpstreamDocument {
    UpstreamDocument { files, known_since_micros: 2, ..UpstreamDocument::default() }
}

/// A list of these versions that comes at 9 after another one.
fn next(language: Language, before: Option<&UpstreamDocument>, files: Vec<UpstreamFile>) -> UpstreamDocument {
    let mut new = UpstreamDocument { files, ..UpstreamDocument::default() };
    complete_list(language, before, &mut new, 9);
    new
}

type Row = (String, Micros, Micros, bool);

fn row(version: &str, published: Micros, seen: Micros, gone: bool) -> Row {
    (version.to_owned(), published, seen, gone)
}

/// The versions of a list after another one of Go, with both times, and whether they are gone.
fn after(before: Option<&[UpstreamFile]>, versions: &[&str]) -> Vec<Row> {
    let before = before.map(|files| document(files.to_vec()));
    let files = versions.iter().map(|version| file(version, 0, 0)).collect();
    let shown = |file: UpstreamFile| (file.version, file.upload_micros, file.first_seen_micros, file.gone);
    next(Language::Go, before.as_ref(), files).files.into_iter().map(shown).collect()
}

#[test]
fn what_a_list_lacked_is_as_old_as_it_is_known() {
    let before = [file("v1.0.0", 3, 0), file("v1.1.0", 4, 5)];
    let now = after(Some(&before), &["v1.0.0", "v1.2.0"]);
    assert_eq!(now, [row("v1.0.0", 3, 0, false), row("v1.2.0", 0, 9, false), row("v1.1.0", 4, 5, true)]);
    assert_eq!(after(Some(&[]), &["v1.0.0"]), [row("v1.0.0", 0, 9, false)], "the list was empty");
    assert_eq!(after(None, &["v1.0.0"]), [row("v1.0.0", 0, 0, false)], "the first list");
    let forged = "v1.9.0-0.20200101000000-abcdefabcdef";
    assert_eq!(after(Some(&before[..1]), &[forged])[0], row(forged, 0, 9, false), "what is listed is no commit");
}

#[test]
fn what_comes_back_is_as_old_as_before() {
    let first = document(vec![file("1.0", 3, 0), file("1.1", 4, 5)]);
    for language in [Language::Go, Language::Python, Language::JavaScript, Language::Cargo, Language::Java] {
        let lost = next(language, Some(&first), Vec::new());
        assert!(lost.files.iter().all(|file| file.gone), "{lost:?}");
        for lost in [lost, all_gone(first.clone(), GONE)] {
            let back = next(language, Some(&lost), vec![file("1.0", 3, 0), file("1.1", 4, 0)]);
            assert_eq!(back, first, "{language:?}");
        }
    }
}

#[test]
fn the_first_list_is_noted_with_its_time() {
    let first = next(Language::Python, None, vec![file("1.0", 3, 0)]);
    assert_eq!(of_file(&first, &first.files[0]), Some(FirstSeen { at: 9, is_new: false }));
    let unnoted = UpstreamDocument { known_since_micros: 0, ..first.clone() };
    assert_eq!(of_file(&unnoted, &first.files[0]), None);
    let second = next(Language::Python, Some(&unnoted), vec![file("1.0", 3, 0), file("1.1", 1, 0)]);
    let seen: Vec<_> = second.files.iter().map(|file| of_file(&second, file)).collect();
    assert_eq!(seen, [None, Some(FirstSeen { at: 9, is_new: true })]);
}

#[test]
fn other_bytes_are_a_new_file() {
    let with = |sha256: &str, sha512: &str| UpstreamFile {
        sha256: sha256.repeat(64),
        sha512: sha512.repeat(128),
        ..file("1.0", 3, 0)
    };
    let seen = |before: UpstreamFile, now: UpstreamFile| {
        let lists = [document(vec![before.clone()]), document(vec![gone(&before)])];
        lists.map(|list| next(Language::Python, Some(&list), vec![now.clone()]).files[0].first_seen_micros)
    };
    assert_eq!(seen(with("a", ""), with("a", "")), [0, 0]);
    assert_eq!(seen(with("a", ""), with("b", "")), [9, 9]);
    assert_eq!(seen(with("", "a"), with("", "b")), [9, 9]);
    assert_eq!(seen(with("", ""), with("", "b")), [0, 0], "the upstream did not say");
}

#[test]
fn files_of_one_name_and_several_versions_differ() {
    let named = |version: &str| UpstreamFile { name: "a.tgz".into(), ..file(version, 3, 0) };
    let before = document(vec![named("1.0"), named("1.0+b")]);
    assert_eq!(next(Language::JavaScript, Some(&before), before.files.clone()), before);
}

#[test]
fn what_is_gone_is_bounded() {
    let many = (0..=GONE).map(|at| file(&at.to_string(), 1, 0)).collect();
    let before = document(many);
    assert_eq!(next(Language::Python, Some(&before), vec![file("new", 1, 0)]).files.len(), 1 + GONE);
    assert_eq!(all_gone(before, GONE).files.len(), GONE);
}

#[test]
fn the_youngest_are_remembered_longest() {
    let remembered = |files| {
        let versions = |file: UpstreamFile| file.version;
        all_gone(document(files), 2).files.into_iter().map(versions).collect::<Vec<_>>()
    };
    assert_eq!(remembered(vec![file("1", 3, 0), file("3", 1, 9), file("2", 4, 0)]), ["3", "2"]);
    assert_eq!(remembered(vec![file("1", 0, 0), file("2", 0, 0), file("3", 0, 0)]), ["3", "2"], "undated");
}

#[test]
fn a_pom_that_came_before_the_list_was_seen_earlier() {
    let seen = |at, is_new| HashMap::from([("1.0.zip", FirstSeen { at, is_new })]);
    let of = |list: &UpstreamDocument, seen: &HashMap<&str, FirstSeen>| {
        let mut list = list.clone();
        take_earlier(&mut list, seen);
        of_file(&list, &list.files[0])
    };
    let first = UpstreamDocument { known_since_micros: 9, ..document(vec![file("1.0", 3, 0)]) };
    assert_eq!(of(&first, &seen(4, false)), Some(FirstSeen { at: 4, is_new: false }));
    let later = document(vec![file("1.0", 3, 9)]);
    assert_eq!(of(&later, &seen(4, true)), Some(FirstSeen { at: 4, is_new: true }));
    assert_eq!(of(&later, &seen(10, false)), Some(FirstSeen { at: 9, is_new: true }));
}

#[test]
fn a_version_of_go_has_the_times_of_its_list() {
    let list = document(vec![file("v1.0.0", 3, 0), file("v1.1.0", 4, 5)]);
    let of = |version: &str, archive| {
        let mut new = UpstreamDocument { files: vec![file(version, 1, 0)], ..UpstreamDocument::default() };
        complete_version(None, &list, archive, &mut new, 9);
        of_file(&new, &new.files[0])
    };
    assert_eq!(of("v1.0.0", Some(1)), Some(FirstSeen { at: 2, is_new: false }));
    assert_eq!(of("v1.1.0", Some(1)), Some(FirstSeen { at: 5, is_new: true }));
    assert_eq!(of("v1.2.0", Some(1)), Some(FirstSeen { at: 9, is_new: true }));
    let commit = "v0.0.0-20230714214113-ca9018fc6e4b";
    assert_eq!(of(commit, None), Some(FirstSeen { at: 9, is_new: false }));
    assert_eq!(of(commit, Some(4)), Some(FirstSeen { at: 4, is_new: false }), "its archive is stored");
    assert_eq!(of(commit, Some(0)), None, "before that was noted");
    for (before, wanted) in [(commit, 2), ("v0.0.0-20230720214113-ca9018fc6e4b", 9)] {
        let mut new = UpstreamDocument { files: vec![file(commit, 1, 0)], ..UpstreamDocument::default() };
        complete_version(Some(&document(vec![file(before, 1, 0)])), &list, None, &mut new, 9);
        assert_eq!(new.known_since_micros, wanted, "a branch that led to {before}");
    }
}
