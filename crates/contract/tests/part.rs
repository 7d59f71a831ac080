//! A part of the contract says of its methods what the whole says. It is a test of its own: a process that has read the whole
//! contract has no parts.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::path::Path;

use bowline_contract::{Contract, MethodInfo};

/// What a method is, with everything that rules add.
fn shown(method: &MethodInfo) -> String {
    let mut facts = format!("{method:?}");
    // The position is one in the table.
    let at = facts.find("index: ").unwrap();
    let end = at + facts[at..].find(',').unwrap();
    facts.replace_range(at..end, "");
    facts
}

#[test]
fn a_part_has_its_methods_as_the_whole_has_them() {
    // Names of methods, from a list that needs no contract.
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/methods.txt");
    let names = std::fs::read_to_string(golden).unwrap();
    let parts: Vec<_> = names.lines().map(|name| (name, Contract::of(name))).collect();
    let smallest = parts.iter().map(|(_, part)| part.pool().all_messages().len()).min().unwrap();
    let whole = Contract::load();
    assert!(smallest * 5 < whole.pool().all_messages().len(), "the smallest part has {smallest} messages");
    for (name, part) in parts {
        let (own, of_whole) = (part.by_full_name(name).unwrap(), whole.by_full_name(name).unwrap());
        assert_eq!(shown(own), shown(of_whole));
        for message in [&own.input, &own.output] {
            for field in message.fields() {
                let in_whole = whole.pool().get_message_by_name(message.full_name()).unwrap();
                let in_whole = in_whole.get_field(field.number()).unwrap();
                assert_eq!(part.field_rules().facts(&field), whole.field_rules().facts(&in_whole), "{field:?}");
            }
        }
    }
    let all: Vec<&str> = whole.methods().iter().map(|method| method.full_name.as_str()).collect();
    assert_eq!(names.lines().collect::<Vec<_>>(), all, "UPDATE_GOLDEN=1 rewrites the list");
    assert_eq!(Contract::of("no.such.Method").methods().len(), whole.methods().len());
}
