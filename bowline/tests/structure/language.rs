//! One word per concept: retired names are not declared again, whether of types, functions, modules, constants, variants
//! or fields; comments, messages and documents are in plain words, and doc comments say something. GLOSSARY.md has the
//! words to use instead.

use crate::{files, is_test, read, sources};

/// Retired words in names that the product declares, where they are retired (beginning of the path, empty: everywhere),
/// and the word to use instead.
const RETIRED: &[(&str, &str, &str)] = &[
    ("door", "", "distribution, front"),
    ("visitor", "", "client, caller"),
    ("asked", "", "request, params"),
    ("wanted", "", "request, query, filter"),
    ("said", "", "args, facts"),
    ("told", "", "rendered"),
    ("found", "", "match, row"),
    ("place", "", "scope, parent, position"),
    ("places", "", "scopes, slots, placeholders"),
    ("judge", "", "validate, authorize, evaluate"),
    ("judged", "", "validated"),
    ("judgement", "", "advisory, statement, assessment"),
    ("kept", "", "cached"),
    ("remember", "", "cache, record"),
    ("remembered", "", "cached"),
    ("inside", "", "within"),
    ("via", "", "provider"),
    ("arrival", "", "origin, attempt"),
    ("gains", "", "grants"),
    ("hopeless", "", "permanent failure"),
    ("letter", "", "dead letter, redelivery"),
    ("letters", "", "dead letters, redelivery requests"),
    ("wishes", "", "requests"),
    ("mirror", "", "upstream, replica"),
    ("mirrored", "", "pulled through"),
    ("sight", "", "visibility"),
    ("surroundings", "", "ambient credentials"),
    ("zap", "", "purge"),
    ("anew", "", "again"),
    ("nobody", "", "anonymous"),
    ("somebody", "", "caller, user"),
    ("whoever", "", "caller, user"),
    ("first_version", "", "v1"),
    ("second_version", "", "v2"),
    ("wrong", "crates/formats/", "error"),
    ("broken", "crates/", "error, damaged"),
    ("copy", "crates/", "blob location, replica, sync"),
    ("copies", "crates/", "blob locations, replicas"),
    ("take_over", "crates/", "sync, claim"),
    ("enter", "crates/", "sign in, push, begin"),
    ("exit", "crates/signin/", "session end"),
    ("exit", "crates/identity/", "session end"),
    ("once", "crates/signin/", "one-time code"),
    ("once", "crates/identity/", "one-time code"),
    ("lines", "crates/delivery/", "lanes"),
    ("line", "crates/delivery/", "lane"),
    ("image", "crates/pipeline/", "snapshot"),
    ("images", "crates/pipeline/", "snapshots"),
    ("image", "crates/services/src/audit", "snapshot"),
    ("images", "crates/services/src/audit", "snapshots"),
    ("walk", "crates/services/", "page, cursor, scan"),
    ("walk", "crates/pipeline/", "page, cursor, scan"),
    ("walk", "crates/resources/", "page, cursor"),
];

/// Names with a retired word that are right: HTTP's own, the field's noun, implementations of serde's trait, commands
/// and options that have the word from the contract.
const RIGHT: &[&str] = &[
    "NOT_FOUND",
    "TakeOver",
    "Zap",
    "not_found",
    "take_over",
    "NotFound",
    "DeadLetter",
    "require_dead_letter",
    "FewVisitor",
    "KEEP_DEAD_LETTERS",
    "MAX_DEAD_LETTERS",
    "PartsVisitor",
    "TargetVisitor",
    "TextVisitor",
    "ToolsVisitor",
];

/// Words that comments, messages and documents do without.
const DIALECT: &[&str] =
    &["anew", "dawdled", "judgement", "judgements", "nobody", "somebody", "surroundings", "whoever", "whomever"];

/// Columns that keep such a word: renaming one is a migration.
const COLUMNS: &[&str] = &["latest_judgement_type"];

/// Fewest words of a doc comment, the slashes not counted.
const FEWEST_WORDS: usize = 4;

fn product() -> Vec<String> {
    let is_tool = |path: &str| path.starts_with("crates/testkit/") || path.starts_with("bench/");
    let is_product = |path: &String| path.contains("/src/") && !is_test(path) && !is_tool(path);
    sources().into_iter().filter(is_product).collect()
}

/// The code before the tests in the same file.
fn code(path: &str) -> String {
    read(path).split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

#[test]
fn retired_names_are_not_declared() {
    let (mut wrong, mut declared) = (Vec::new(), 0);
    for path in product() {
        for name in code(&path).lines().filter_map(declared_name) {
            declared += 1;
            wrong.extend(retired(&path, name).map(|better| format!("{path}: {name}: say {better}")));
        }
    }
    assert!(declared > 3000, "hardly any name was read: {declared}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn retired_members_are_not_declared() {
    let (mut wrong, mut declared) = (Vec::new(), 0);
    for path in product() {
        let code = code(&path);
        for name in code.lines().filter_map(constant).chain(members(&code)) {
            declared += 1;
            wrong.extend(retired(&path, name).map(|better| format!("{path}: {name}: say {better}")));
        }
    }
    assert!(declared > 5000, "hardly any name was read: {declared}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The words to use instead of those in a name that are retired in the file.
fn retired(path: &str, name: &str) -> impl Iterator<Item = &'static str> {
    // "At once" is plain English.
    let words = format!("_{}_", words(name).join("_")).replace("_at_once_", "_");
    let is_retired =
        move |word: &str, scope: &str, path: &str| path.starts_with(scope) && words.contains(&format!("_{word}_"));
    let (path, is_right) = (path.to_owned(), RIGHT.contains(&name));
    let entries = RETIRED.iter().filter(move |(word, scope, _)| !is_right && is_retired(word, scope, &path));
    entries.map(|(_, _, better)| *better)
}

/// The name that a line declares: of a type, a trait, a function or a module.
fn declared_name(line: &str) -> Option<&str> {
    const BEFORE: [&str; 3] = ["const ", "async ", "unsafe "];
    const KINDS: [&str; 6] = ["struct ", "enum ", "trait ", "type ", "fn ", "mod "];
    let mut rest = visible(line);
    while let Some(after) = BEFORE.iter().find_map(|before| rest.strip_prefix(before)) {
        rest = after;
    }
    KINDS.iter().find_map(|kind| rest.strip_prefix(kind)).map(identifier)
}

/// The name of the constant or static that a line declares.
fn constant(line: &str) -> Option<&str> {
    let rest = visible(line);
    let name = identifier(rest.strip_prefix("const ").or_else(|| rest.strip_prefix("static "))?);
    name.starts_with(|c: char| c.is_uppercase()).then_some(name)
}

/// The variants and fields that code declares, as rustfmt lays it out: in the body of a struct or an enum, which ends at
/// the indentation at which it begins.
fn members(code: &str) -> Vec<&str> {
    const KINDS: [&str; 2] = ["struct ", "enum "];
    let (mut names, mut lines) = (Vec::new(), code.lines());
    while let Some(line) = lines.next() {
        if !KINDS.iter().any(|kind| visible(line).starts_with(kind)) {
            continue;
        }
        let mut head = line;
        while !head.ends_with(['{', '}', ';']) {
            let Some(next) = lines.next() else { return names };
            head = next;
        }
        if !head.ends_with('{') {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        for line in lines.by_ref().take_while(|line| *line != end) {
            names.extend(members_of_line(line));
        }
    }
    names
}

/// The variant that a line begins with, and the names before a colon: fields.
fn members_of_line(line: &str) -> impl Iterator<Item = &str> {
    let line = visible(line);
    let line = if line.starts_with("//") || line.starts_with('#') { "" } else { line };
    let variant = Some(identifier(line)).filter(|name| name.starts_with(|c: char| c.is_uppercase()));
    let fields = line.match_indices(": ").map(|(at, _)| {
        let before = &line[..at];
        &before[before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1)..]
    });
    variant.into_iter().chain(fields)
}

/// A declaration without its indentation and visibility.
fn visible(line: &str) -> &str {
    const VISIBILITIES: [&str; 3] = ["pub ", "pub(crate) ", "pub(super) "];
    let line = line.trim_start();
    VISIBILITIES.iter().find_map(|visibility| line.strip_prefix(visibility)).unwrap_or(line)
}

/// The identifier that a text begins with.
fn identifier(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// The words of a name in any case, in lower case.
fn words(name: &str) -> Vec<String> {
    if !name.contains(char::is_lowercase) {
        return name.to_lowercase().split('_').map(String::from).collect();
    }
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if let (Some(word), true) = (words.last_mut(), c != '_') {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[test]
fn comments_messages_and_documents_are_in_plain_words() {
    let mut wrong = Vec::new();
    let mut check = |path: &str, number: usize, text: &str| {
        // What stands between backticks is quoted: names and messages.
        let unquoted = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let unquoted = COLUMNS.iter().fold(unquoted, |text, column| text.replace(column, " "));
        let words = unquoted.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase);
        let dialect = words.filter(|word| DIALECT.contains(&word.as_str()));
        wrong.extend(dialect.map(|word| format!("{path}:{number}: {word}")));
    };
    for path in files().iter().filter(|path| is_document(path)) {
        (1..).zip(read(path).lines()).for_each(|(number, line)| check(path, number, line));
    }
    for path in product() {
        (1..).zip(code(&path).lines()).for_each(|(number, line)| check(&path, number, line));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Maximum number of lines of a document below one heading, examples not counted.
const SECTION: usize = 40;

#[test]
fn sections_of_documents_are_short() {
    let mut wrong = Vec::new();
    for path in files().iter().filter(|path| is_document(path) && *path != GENERATED) {
        let (mut lines, mut heading, mut is_example) = (0, String::new(), false);
        for line in read(path).lines().chain(["# end"]) {
            is_example ^= line.starts_with("```");
            if line.starts_with('#') && !is_example {
                if lines > SECTION {
                    wrong.push(format!("{path}: {lines} lines below {heading:?}"));
                }
                (lines, heading) = (0, line.to_owned());
            }
            lines += usize::from(!is_example);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn is_document(path: &str) -> bool {
    let is_markdown = std::path::Path::new(path).extension().is_some_and(|extension| extension == "md");
    is_markdown && !path.contains("testdata")
}

/// The page of options that the binary prints: a table of a command is as long as its options.
const GENERATED: &str = "docs/COMMAND-OPTIONS.md";

/// Doc comments of options and commands are help, which is as short as it can be.
#[test]
fn doc_comments_say_something() {
    let mut wrong = Vec::new();
    for path in product() {
        let text = code(&path);
        let is_help = |word: &str| ["Args", "Parser", "Subcommand", "ValueEnum"].contains(&word);
        let mut derives = text.lines().filter(|line| line.trim_start().starts_with("#[derive("));
        if derives.any(|line| line.split(|c: char| !c.is_alphabetic()).any(is_help)) {
            continue;
        }
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        let is_doc = |line: &&&str| line.starts_with("///") || line.starts_with("//!");
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_doc(line)) {
            let is_part = at > 0 && lines.get(at - 1).is_some_and(|line| is_doc(&line));
            let goes_on = lines.get(at + 1).is_some_and(|line| is_doc(&line));
            if !is_part && !goes_on && line.split_whitespace().count() <= FEWEST_WORDS {
                wrong.push(format!("{path}:{}: {line}", at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
