//! The table for people.

use std::fmt::Write as _;

use super::attacks::ATTACKS;
use super::callers::{KINDS, TOKENS};
use super::{Outcome, Outcomes};

const FILE: &str = "tests/golden/no_escalation.txt";
/// Room for requests.
const WIDTH: usize = 74;

pub(super) fn compare(outcomes: &Outcomes) {
    crate::golden::compare(FILE, &text(outcomes));
}

fn text(outcomes: &Outcomes) -> String {
    let mut text = String::from(
        "# No escalation. Each request tries to give more than its caller has; none gave anybody more. Found by calling the\n\
         # server and using everything that the attacker had afterwards. UPDATE_GOLDEN=1 rewrites this file.\n\
         #\n\
         # Three tokens of each caller: whole, narrowed to what the method needs, narrowed to a group below.\n\
         #   - denied    x refused for another reason    y let through, without a gain    . no such token\n\
         #\n",
    );
    for (number, kind) in (1..).zip(KINDS) {
        let _ = writeln!(text, "# {number:>2} {}", kind.name);
    }
    let _ = write!(text, "\n{:<WIDTH$}", "request");
    for number in 1..=KINDS.len() {
        let _ = write!(text, "{number:>4}");
    }
    text.push('\n');
    for (attack, row) in ATTACKS.iter().zip(outcomes) {
        let by = if attack.by.is_empty() { String::new() } else { format!(" [{}]", attack.by) };
        let _ = write!(text, "{:<WIDTH$}", format!("{}{by}", attack.what));
        for cells in row {
            let _ = write!(text, " {}", cell(*cells));
        }
        text.push('\n');
    }
    text
}

fn cell(outcomes: [Outcome; TOKENS.len()]) -> String {
    let sign = |outcome: &Outcome| match outcome {
        Outcome::NoToken => '.',
        Outcome::Denied => '-',
        Outcome::Refused => 'x',
        Outcome::LetThrough => 'y',
    };
    outcomes.iter().map(sign).collect()
}
