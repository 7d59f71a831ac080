//! The shape of the workspace: which crate may know which, and what no file may hold.

use std::collections::{BTreeMap, BTreeSet};

#[path = "structure/console.rs"]
mod console;
#[path = "structure/language.rs"]
mod language;
#[path = "structure/repository.rs"]
mod repository;

use repository::{Dependency, crates, dependencies, files, is_test, read, root, sources};

/// What each crate may know of this server. A crate without a line here is a failure.
const ARROWS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("formats", &[]),
    ("contract", &["core", "formats"]),
    ("content", &["core"]),
    ("store", &["core"]),
    ("authn", &["core"]),
    ("transcode", &["core"]),
    ("schemas", &["contract"]),
    ("versions", &[]),
    ("osv", &["core", "formats", "versions"]),
    ("packages", &["formats", "versions"]),
    ("pipeline", &["core", "contract", "store", "authn", "transcode"]),
    ("feeds", &["core", "formats", "osv"]),
    ("resources", &["core", "contract", "store", "authn", "pipeline"]),
    ("identity", &["core", "contract", "store", "authn", "pipeline", "resources"]),
    (
        "registry",
        &["core", "formats", "contract", "store", "authn", "feeds", "versions", "pipeline", "resources", "identity"],
    ),
    ("vulnerabilities", &["core", "contract", "store", "authn", "feeds", "osv", "pipeline", "resources", "registry"]),
    (
        "libraries",
        &[
            "core",
            "formats",
            "contract",
            "store",
            "authn",
            "osv",
            "versions",
            "packages",
            "pipeline",
            "resources",
            "registry",
            "vulnerabilities",
        ],
    ),
    ("delivery", &["core", "formats", "contract", "store", "authn", "transcode", "pipeline"]),
    (
        "services",
        &[
            "core",
            "contract",
            "store",
            "pipeline",
            "resources",
            "identity",
            "registry",
            "vulnerabilities",
            "libraries",
            "delivery",
        ],
    ),
    ("calls", &["formats", "contract", "transcode"]),
    ("client", &["core", "formats", "contract", "authn", "transcode", "calls"]),
    ("terminal", &["formats", "contract", "transcode"]),
    (
        "cli",
        &[
            "core",
            "formats",
            "contract",
            "authn",
            "transcode",
            "client",
            "feeds",
            "osv",
            "packages",
            "schemas",
            "terminal",
        ],
    ),
    ("fronts", &["core", "formats", "pipeline"]),
    ("rpc", &["core", "contract", "authn", "transcode", "schemas", "pipeline", "fronts"]),
    ("oci", &["core", "formats", "content", "authn", "pipeline", "identity", "registry", "fronts"]),
    (
        "package-hosts",
        &[
            "core",
            "formats",
            "content",
            "osv",
            "authn",
            "pipeline",
            "identity",
            "vulnerabilities",
            "libraries",
            "packages",
            "fronts",
        ],
    ),
    ("osv-api", &["core", "osv", "pipeline", "vulnerabilities", "fronts"]),
    ("scim", &["core", "pipeline", "identity", "fronts"]),
    // Methods of the contract through the pipeline, and nothing else: no domain, no storage.
    ("console", &["core", "formats", "contract", "transcode", "calls", "pipeline", "fronts"]),
    ("signin", &["core", "formats", "contract", "store", "authn", "pipeline", "identity", "fronts"]),
    (
        "server",
        &[
            "core",
            "contract",
            "content",
            "store",
            "authn",
            "transcode",
            "pipeline",
            "identity",
            "registry",
            "vulnerabilities",
            "libraries",
            "services",
            "delivery",
            "fronts",
            "rpc",
            "osv-api",
            "package-hosts",
            "scim",
            "signin",
            "console",
            "oci",
            "terminal",
        ],
    ),
    ("demo", &["core", "contract", "client", "server", "terminal"]),
    ("bowline", &["cli", "demo", "server", "terminal"]),
    ("testkit", &["core", "formats", "contract", "server", "store"]),
    ("bench", &["core", "contract", "store", "transcode", "pipeline", "identity", "versions"]),
];

/// Packages whose tests may know every crate: those of the whole.
const KNOWS_ALL_IN_TESTS: &str = "bowline";

/// What reads variables: the commands.
const READ_THE_ENVIRONMENT: &[&str] = &["bowline/", "crates/cli/", "crates/server/"];

/// Crates that no server is made of.
const TOOLS: &[&str] = &["testkit", "bench"];

/// Business rules: they know no transport.
const DOMAINS: &[&str] = &["resources", "identity", "registry", "vulnerabilities", "libraries", "services"];

const TRANSPORTS: &[&str] = &[
    "axum",
    "h2",
    "http",
    "http-body",
    "http-body-util",
    "hyper",
    "hyper-util",
    "reqwest",
    "tonic",
    "tower",
    "tower-service",
];

const DRIVERS: &[&str] = &[
    "deadpool",
    "deadpool-postgres",
    "diesel",
    "libsqlite3-sys",
    "postgres",
    "r2d2",
    "rusqlite",
    "sqlx",
    "tokio-postgres",
    "tokio-rusqlite",
];

/// Source files of more than this many lines need a place in the golden list.
const LONG: usize = 400;
const LONG_FILES: &str = "bowline/tests/golden/long_files.txt";

#[test]
fn arrows_between_crates_point_one_way() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for Dependency { krate, name, in_tests } in dependencies() {
        seen.insert(krate.clone());
        let Some(name) = name.strip_prefix("bowline-") else { continue };
        let may = ARROWS.iter().any(|(from, to)| *from == krate && to.contains(&name));
        let may_in_tests = in_tests && krate == KNOWS_ALL_IN_TESTS;
        if !may && !may_in_tests {
            wrong.push(format!("{krate} depends on {name}"));
        }
    }
    let known: BTreeSet<&str> = ARROWS.iter().map(|(krate, _)| *krate).collect();
    wrong.extend(
        crates()
            .iter()
            .filter(|krate| !known.contains(krate.as_str()))
            .map(|krate| format!("{krate} has no line in ARROWS")),
    );
    assert!(seen.contains("server") && seen.contains("pipeline"), "hardly any crate was read: {seen:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The table of docs/ARCHITECTURE.md: every crate, and what it depends on.
#[test]
fn the_document_names_every_crate_and_its_arrows() {
    let document = read("docs/ARCHITECTURE.md");
    let words = |cell: &str| -> BTreeSet<String> { cell.split('`').skip(1).step_by(2).map(String::from).collect() };
    let tables = document.split("| crate | holds | depends on |").skip(1);
    let rows = tables.flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with("| `")));
    let written: BTreeMap<String, BTreeSet<String>> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            (words(cells[0]).pop_first().expect("a name"), words(cells[2]))
        })
        .collect();
    let mut actual: BTreeMap<String, BTreeSet<String>> =
        crates().into_iter().map(|krate| (krate, BTreeSet::new())).collect();
    for Dependency { krate, name, in_tests } in dependencies() {
        if let (false, Some(arrows), Some(name)) = (in_tests, actual.get_mut(&krate), name.strip_prefix("bowline-")) {
            arrows.insert(name.into());
        }
    }
    assert_eq!(written, actual);
}

/// docs/ERRORS.md lists every kind of precondition, and every code of the registry.
#[test]
fn the_document_of_errors_is_complete() {
    let document = read("docs/ERRORS.md");
    let table = document.split("## Preconditions").nth(1).expect("the tables").split("### Terms").next();
    let listed: BTreeSet<&str> = table
        .expect("the table's end")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let mut used = BTreeSet::new();
    let files = sources();
    let product: Vec<&String> = files.iter().filter(|path| path.contains("/src/") && !is_test(path)).collect();
    for path in &product {
        // One file words a kind in a function of its own, and one has a violation for each of many subjects.
        for call in ["Error::precondition(", "refusal(", "const FAILED: &str = "] {
            let text = read(path);
            for after in text.split(call).skip(1) {
                let kind = after.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                let is_kind =
                    |kind: &&str| kind.contains('_') && kind.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
                used.extend(kind.filter(is_kind).map(String::from));
            }
        }
    }
    assert_eq!(listed, used.iter().map(String::as_str).collect());
    let codes = read("crates/oci/src/answer.rs");
    let codes: Vec<&str> = codes.split("=> (\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(codes.len() > 10, "{codes:?}");
    let missing: Vec<_> = codes.iter().filter(|code| !document.contains(&format!("`{code}`"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn domains_know_no_transport_and_store_alone_a_database() {
    let mut wrong = Vec::new();
    for Dependency { krate, name, in_tests } in dependencies() {
        let name = name.as_str();
        let is_tool = in_tests || TOOLS.contains(&krate.as_str());
        let is_domain = DOMAINS.contains(&krate.as_str());
        if is_domain && TRANSPORTS.contains(&name) {
            wrong.push(format!("{krate} depends on {name}, a transport"));
        }
        // Tests of any crate but these two make databases of their own.
        let never = is_domain || krate == "rpc";
        if DRIVERS.contains(&name) && krate != "store" && (never || !is_tool) {
            wrong.push(format!("{krate} depends on {name}, a database driver"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn commands_alone_read_the_environment() {
    let mut wrong = Vec::new();
    let reads = |path: &str| READ_THE_ENVIRONMENT.iter().any(|package| path.starts_with(package));
    let product = |path: &&String| path.contains("/src/") && !is_test(path) && !reads(path);
    let tools: Vec<String> = TOOLS.iter().flat_map(|tool| [format!("crates/{tool}/"), format!("{tool}/")]).collect();
    let files = sources();
    for path in files.iter().filter(product).filter(|path| !tools.iter().any(|tool| path.starts_with(tool))) {
        let text = read(path);
        if text.contains("env::var") {
            wrong.push(format!("{path} reads a variable"));
        }
        for attribute in ["#[arg(", "#[clap("] {
            let mut parts = text.split(attribute).skip(1).map(|rest| rest.split(")]").next().unwrap_or(rest));
            if parts.any(|inside| inside.split([',', ' ', '\n']).any(|word| word == "env" || word.starts_with("env=")))
            {
                wrong.push(format!("{path} has an option that reads a variable"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// An expectation that is not met any more is reported, an allowance stays for ever.
#[test]
fn lints_are_expected_and_not_allowed() {
    let (outer, inner) = (concat!("#[al", "low("), concat!("#![al", "low("));
    let mut wrong = Vec::new();
    for path in sources() {
        let text = read(&path);
        // At the head of a file of tests, `expect` does not do: not each of them breaks each lint.
        if text.contains(outer) || (text.contains(inner) && !is_test(&path)) {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "say #[expect(…, reason = …)] in {wrong:#?}");
}

#[test]
fn no_file_names_a_place_of_one_machine_or_a_package_registry() {
    // Lock files say where packages came from, and the check of licences says where they may come from.
    const MAY: &[&str] =
        &["Cargo.lock", "deny.toml", "conformance/go-sdk/go.sum", "conformance/walk/package-lock.json"];
    let needles = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("crates", ".io"),
        concat!("registry", ".npmjs"),
        concat!("proxy", ".golang"),
    ];
    let mut wrong = Vec::new();
    for path in files() {
        let bytes = std::fs::read(root().join(&path)).expect("a file of the repository is read");
        let text = String::from_utf8_lossy(&bytes);
        for (number, line) in (1..).zip(text.lines()) {
            let places = &needles[..2];
            let is_registry = needles[2..].iter().any(|needle| line.contains(needle)) && !MAY.contains(&path.as_str());
            if is_registry || places.iter().any(|needle| line.contains(needle)) {
                wrong.push(format!("{path}:{number}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The list only shrinks: it is not written by `UPDATE_GOLDEN`, and anyone who splits a file takes its line out.
#[test]
fn long_files_become_fewer() {
    let golden = read(LONG_FILES);
    let listed: BTreeSet<&str> = golden.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    let files = sources();
    let long: BTreeMap<&str, usize> = files
        .iter()
        .map(|path| (path.as_str(), read(path).lines().count()))
        .filter(|(_, lines)| *lines > LONG)
        .collect();
    let new: Vec<_> = long.iter().filter(|(path, _)| !listed.contains(*path)).collect();
    assert!(new.is_empty(), "split what has become longer than {LONG} lines: {new:?}");
    let short: Vec<_> = listed.iter().filter(|path| !long.contains_key(**path)).collect();
    assert!(short.is_empty(), "take out of {LONG_FILES} what is not longer than {LONG} lines any more: {short:?}");
}
