//! Projects of Go: modules by `go.mod`, and the settings of the go command.

use super::sources::{Installer, Sources};

pub(super) fn read(name: &str) -> Option<Result<Sources, String>> {
    match name {
        // Replacements by other modules come from the same proxy, and others lie in directories.
        "go.mod" => Some(Ok(Sources::of(Installer::Go))),
        _ => None,
    }
}

/// What the file of the go command's settings says, one `NAME=value` in a line.
pub(super) fn settings(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Go);
    for (name, value) in text.lines().map(str::trim).filter_map(|line| line.split_once('=')) {
        add(&mut found, name, value);
    }
    found
}

/// What a variable says: the proxies, in their order, or the modules that come from where they lie.
pub(super) fn variable(name: &str, value: &str) -> Sources {
    let mut found = Sources::of(Installer::Go);
    add(&mut found, name, value);
    found
}

fn add(found: &mut Sources, name: &str, value: &str) {
    let parts = |separators: &'static [char]| value.split(separators).map(str::trim).filter(|part| !part.is_empty());
    match name {
        // The command asks the next one where a module is absent, and `off` ends the list.
        "GOPROXY" => {
            for (number, proxy) in parts(&[',', '|']).take_while(|proxy| *proxy != "off").enumerate() {
                if number == 0 {
                    found.index(Installer::Go, proxy);
                } else {
                    found.further_index(Installer::Go, proxy);
                }
            }
        }
        "GOPRIVATE" | "GONOPROXY" => parts(&[',']).for_each(|pattern| {
            if pattern != "none" {
                found.repository(Installer::Go, pattern);
            }
        }),
        _ => {}
    }
}
