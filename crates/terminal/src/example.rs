//! Examples in help texts, broken where a shell continues the line.

/// Widest line of a help text.
const WIDTH: usize = 80;

/// What a line begins with that continues the one before.
const CONTINUED: &str = "\n      ";

/// A help text whose command lines are at most 80 columns wide: longer ones are continued, as a shell does after a
/// backslash.
pub fn with_short_examples(text: &str) -> String {
    let lines = text.lines().map(|line| if is_long(line) { continued(line) } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

/// The same text with each command line in one line again.
pub fn with_whole_examples(text: &str) -> String {
    text.replace(&format!(" \\{CONTINUED}"), " ")
}

fn is_long(line: &str) -> bool {
    line.starts_with("  bowline ") && line.chars().count() > WIDTH
}

fn continued(line: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in parts(line.trim_start()) {
        // A backslash may follow.
        if width > 0 && width + 1 + word.chars().count() + 2 > WIDTH {
            text.push_str(" \\");
            text.push_str(CONTINUED);
            width = CONTINUED.len() - 1;
        } else {
            text.push_str(if width == 0 { "  " } else { " " });
            width += if width == 0 { 2 } else { 1 };
        }
        text.push_str(&word);
        width += word.chars().count();
    }
    text
}

/// The words of a command line, options with their values.
fn parts(line: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in words(line) {
        match parts.last_mut() {
            Some(last) if last.starts_with('-') && !last.contains(' ') && !word.starts_with('-') => {
                last.push(' ');
                last.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
    }
    parts
}

/// The words of a command line; spaces between quotes separate none.
fn words(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    line.split(|c: char| {
        is_quoted ^= c == '\'';
        c == ' ' && !is_quoted
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_command_lines_are_continued_and_others_stay() {
        let long = "  bowline iam identities create kubernetes acme/puller --cluster-issuer https://k8s.example.com \
                    --namespace prod --description 'A text with spaces that stays one word' --role registry.pull";
        let text = format!(
            "Example:\n  bowline version\n{long}\nA sentence that is longer than eighty columns is wrapped elsewhere, by others."
        );
        let short = with_short_examples(&text);
        assert!(short.lines().filter(|line| line.contains("--")).all(|line| line.chars().count() <= WIDTH), "{short}");
        assert!(
            short.contains("'A text with spaces that stays one word'")
                && short.contains(" \\\n      --cluster-issuer https"),
            "{short}"
        );
        assert_eq!(with_whole_examples(&short), text);
    }
}
