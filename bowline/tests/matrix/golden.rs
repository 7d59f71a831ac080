//! The table for people: which built-in role may call which method, found by calling.

use std::fmt::Write as _;
use std::path::Path;

use bowline_testkit::{Engine, TestServer};

use crate::calls::{Outcome, over_grpc};
use crate::fixture::Fixture;
use crate::oracle::DENIED;
use crate::table::{Check, Row, table};

const FILE: &str = "tests/golden/role_method_matrix.txt";
/// Room for the names of methods.
const WIDTH: usize = 52;

#[tokio::test]
async fn roles_and_methods_are_as_the_golden_file_says() {
    let server = TestServer::start(Engine::Sqlite).await;
    let fixture = Fixture::new(&server).await;
    let own = fixture.place("own");
    let roles = &server.server().parts().contract.built_in_roles();
    let mut callers = Vec::new();
    for role in *roles {
        callers.push(fixture.caller(&role.name, &role.name, &own.group).await);
    }
    let names: Vec<&str> = callers.iter().map(|caller| caller.actor.name.as_str()).collect();
    let mut text = head(&names);
    for row in table() {
        let mut cells = Vec::new();
        for caller in &callers {
            let outcome = over_grpc(&fixture, &caller.actor, &row, own).await;
            cells.push(may(&row, &outcome, &own.group));
        }
        let purpose = match row.grants {
            Some("owner") => " with a client",
            _ if row.also.is_empty() => "",
            _ => " with content",
        };
        write_row(&mut text, &format!("{}{purpose}", short(row.full_name)), &cells);
    }
    drop(fixture);
    server.stop().await;
    compare(FILE, &text);
}

/// Whether the call was let through; lists that refuse no one must show something of the place.
fn may(row: &Row, outcome: &Outcome, place: &str) -> bool {
    let let_through = row.let_through_at(place);
    assert!([let_through, DENIED].contains(&outcome.code), "{}: {outcome:?}", row.full_name);
    match row.validated {
        Check::List { .. } => outcome.body.contains(&format!("{place}/")),
        Check::Scope | Check::Caller | Check::Operator | Check::Person | Check::Themselves => {
            outcome.code == let_through
        }
    }
}

fn head(roles: &[&str]) -> String {
    let mut text = String::from(
        "# Which built-in role, bound at a group, may call which method there. Found by calling the server.\n\
         # A list counts as allowed if it shows what lives in the group. UPDATE_GOLDEN=1 rewrites this file.\n#\n",
    );
    for (number, role) in (1..).zip(roles) {
        let _ = writeln!(text, "# {number:>2} {role}");
    }
    text += "\n";
    let _ = write!(text, "{:<WIDTH$}", "method");
    for number in 1..=roles.len() {
        let _ = write!(text, "{number:>4}");
    }
    text.push('\n');
    text
}

fn write_row(text: &mut String, method: &str, cells: &[bool]) {
    let cells: String = cells.iter().map(|may| if *may { " yes" } else { "   -" }).collect();
    let _ = writeln!(text, "{method:<WIDTH$}{cells}");
}

/// `iam.v2.GroupsService.GetGroup`: what differs from method to method.
fn short(full_name: &str) -> &str {
    full_name.strip_prefix("chainguard.platform.").unwrap_or(full_name)
}

#[expect(clippy::disallowed_methods, reason = "the environment says that golden files are to be rewritten")]
pub(crate) fn compare(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var("UPDATE_GOLDEN").is_ok_and(|value| value == "1") {
        std::fs::write(&path, text).expect("the golden file is written");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    for (old, new) in golden.lines().zip(text.lines()) {
        assert_eq!(old, new, "{file} says otherwise; if that is meant, run with UPDATE_GOLDEN=1");
    }
    assert_eq!(golden, text, "{file} is shorter or longer; if that is meant, run with UPDATE_GOLDEN=1");
}
