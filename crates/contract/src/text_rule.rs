//! Rules of strings: patterns, lengths, names.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use prost_reflect::{DescriptorPool, DynamicMessage, Value};
use regex::{Regex, RegexBuilder};

use crate::options;
use crate::rules::TextFacts;

/// The rules of one string field.
#[derive(Clone)]
pub(crate) struct TextRule {
    pattern: Option<Arc<Pattern>>,
    /// The pattern as messages show it.
    shown_pattern: String,
    min_characters: usize,
    max_characters: usize,
    pub(crate) not_empty: bool,
    /// Whether reserved names are rejected.
    resource_name: bool,
    uidp: bool,
    pub(crate) max_elements: usize,
}

/// A regular expression that is compiled when it is first needed; fields of one rule share it.
struct Pattern {
    text: String,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            let built = RegexBuilder::new(&self.text).size_limit(SIZE_LIMIT).build();
            built.unwrap_or_else(|reason| panic!("rule {}: {reason}", self.text))
        })
    }
}

impl TextRule {
    /// Compiles the pattern, so that the first request does not wait for it.
    pub(crate) fn compile(&self) {
        self.pattern.iter().for_each(|pattern| {
            pattern.regex();
        });
    }

    /// What is wrong with the text, if anything.
    pub(crate) fn validate(&self, name: &str, text: &str) -> Option<String> {
        if text.is_empty() {
            return self.not_empty.then(|| format!("{name} is required"));
        }
        if text.contains('\0') {
            return Some("must not contain the character U+0000".into());
        }
        if self.is_too_long(text) {
            return Some(self.length_rule(name));
        }
        if self.pattern.as_ref().is_some_and(|pattern| !pattern.regex().is_match(text)) {
            return Some(format!("{name} must match \"{}\"", self.shown_pattern));
        }
        if self.min_characters > 0 && text.chars().count() < self.min_characters {
            return Some(self.length_rule(name));
        }
        if self.resource_name && is_reserved_name(text) {
            return Some(format!(
                "{name} must not be \".\" or \"..\", begin or end with a space, or look like part of a UIDP (16 or 40 hexadecimal characters)"
            ));
        }
        if self.uidp && !bowline_core::Uidp::is_valid(text) {
            return Some(format!("{name} {}", bowline_core::UidpError));
        }
        None
    }

    /// The rule as documentation shows it.
    pub(crate) fn facts(&self) -> TextFacts {
        TextFacts {
            not_empty: self.not_empty,
            pattern: self.pattern.as_ref().map(|pattern| pattern.text.clone()),
            shown_pattern: self.shown_pattern.clone(),
            pattern_matches_empty: self.pattern.as_ref().is_none_or(|pattern| pattern.regex().is_match("")),
            min_characters: self.min_characters,
            max_characters: self.max_characters,
            resource_name: self.resource_name,
            uidp: self.uidp,
        }
    }

    /// Whether the text has too many characters: checked before costlier rules.
    pub(crate) fn is_too_long(&self, text: &str) -> bool {
        let most = self.max_characters;
        most > 0 && text.len() > most && text.chars().count() > most
    }

    fn length_rule(&self, name: &str) -> String {
        match self.min_characters {
            0 => format!("{name} must have at most {} characters", self.max_characters),
            min => format!("{name} must have {min} to {} characters", self.max_characters),
        }
    }
}

fn is_reserved_name(text: &str) -> bool {
    let is_segment = matches!(text.len(), bowline_core::SEGMENT_LENGTH | bowline_core::ROOT_LENGTH)
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_segment || text == "." || text == ".." || text.starts_with(' ') || text.ends_with(' ')
}

/// The rules of the contract, by the full name of the field. Panics if a field has two: a defect of the
/// contract.
pub(crate) fn text_rules(pool: &DescriptorPool) -> HashMap<String, TextRule> {
    let extension = options::extension(pool, "bowline.contract.v1.field_rules");
    let mut rules = HashMap::new();
    for file in pool.files() {
        let Some(Value::List(list)) = options::get(&file.options(), &extension) else {
            continue;
        };
        for rule in &list {
            let Value::Message(rule) = rule else { continue };
            let parsed = text_rule(rule);
            for field in options::texts(rule, "fields") {
                assert!(rules.insert(field.clone(), parsed.clone()).is_none(), "{field} has two rules");
            }
        }
    }
    rules
}

fn text_rule(rule: &DynamicMessage) -> TextRule {
    let pattern = options::text(rule, "pattern");
    let shown = options::text(rule, "shown_pattern");
    TextRule {
        pattern: (!pattern.is_empty()).then(|| Arc::new(Pattern { text: pattern.clone(), compiled: OnceLock::new() })),
        shown_pattern: if shown.is_empty() { pattern } else { shown },
        min_characters: options::number(rule, "min_characters") as usize,
        max_characters: options::number(rule, "max_characters") as usize,
        not_empty: options::flag(rule, "not_empty"),
        resource_name: options::flag(rule, "resource_name"),
        uidp: options::flag(rule, "uidp"),
        max_elements: options::number(rule, "max_elements") as usize,
    }
}

/// Bytes that a compiled pattern may take: a server compiles them all when it starts.
const SIZE_LIMIT: usize = 128 << 10;
