//! What the console may do: nothing that changes something without a form of a person.

use std::collections::BTreeSet;

use super::{read, sources};

/// What the console may use of the pipeline: it gets no handler, no storage, no key and no token. `Quota` counts.
const OF_THE_PIPELINE: &[&str] = &[
    "ConsoleCall",
    "ConsolePipeline",
    "ConsoleStream",
    "ConsoleWatch",
    "Full",
    "HeldToken",
    "Lease",
    "OPERATOR",
    "Outcome",
    "Quota",
    "RequestOrigin",
    "Surface",
    "TokenFacts",
    "Unlocked",
    "network",
];

/// The one file that may prove that a person asks for a change: the one that uses forms up.
const UNLOCKS: &str = "crates/console/src/forms.rs";

/// No page can make the proof that a change needs: it is made where a form is used up, of a form that is read where the
/// headers of its request are checked.
#[test]
fn changes_of_the_console_need_a_form() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|path| path != UNLOCKS && path.contains("/src/"))
        .filter(|path| read(path).contains("Unlocked::by_form"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?} make proofs of changes");
    let unlocks = read(UNLOCKS);
    assert_eq!(unlocks.matches("Unlocked::by_form").count(), 1, "one function uses forms up");
    assert!(unlocks.contains("form: &Form") && !unlocks.contains("Query"), "the id of a form comes from a form alone");
    let guard = read("crates/console/src/guard.rs");
    assert!(guard.contains("pub(crate) struct Form(Query);"), "no other file makes a form");
    assert_eq!(guard.matches("map(Form)").count() + guard.matches("Ok(Form(").count(), 1, "one function makes forms");
}

#[test]
fn the_console_has_of_the_pipeline_what_reads() {
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for path in sources().into_iter().filter(|path| path.starts_with("crates/console/src/")) {
        let text = read(&path);
        for after in text.split("bowline_pipeline").skip(1) {
            let list = after.split([';', ']']).next().unwrap_or_default();
            for name in list.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
                used.insert(name.to_owned());
                if !OF_THE_PIPELINE.contains(&name) {
                    wrong.push(format!("{path} uses {name} of the pipeline"));
                }
            }
        }
    }
    assert!(used.contains("ConsolePipeline"), "hardly any file was read: {used:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
