//! What the rules say about one request field: documentation states what is validated.

use prost_reflect::FieldDescriptor;

use super::{Check, FieldRules};

/// The rules of one request field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldFacts {
    /// The field must be there, and an empty value is an absent one.
    pub required: bool,
    /// The field names the scope: inside a batch, the batch's own scope stands for it.
    pub scope: bool,
    /// Maximum number of elements of a repeated field; 0 for no limit.
    pub max_elements: usize,
    /// What the text may be, or each text of a repeated field.
    pub text: TextFacts,
}

/// The rules of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextFacts {
    /// The empty text is refused.
    pub not_empty: bool,
    /// Regular expression that a text which is not empty matches, in the syntax of the crate `regex`.
    pub pattern: Option<String>,
    /// The pattern as messages show it.
    pub shown_pattern: String,
    /// Whether the pattern matches the empty text.
    pub pattern_matches_empty: bool,
    /// Fewest characters of a text that is not empty; 0 for no limit.
    pub min_characters: usize,
    /// Maximum characters; 0 for no limit.
    pub max_characters: usize,
    /// A name of a resource: nothing that looks like part of a UIDP, and no space at either end.
    pub resource_name: bool,
    /// A text that is not empty is a UIDP.
    pub uidp: bool,
}

impl FieldRules {
    /// The rules of a field; absent for a field that only the server sets, which requests may not rely on.
    pub fn facts(&self, field: &FieldDescriptor) -> Option<FieldFacts> {
        let plan = &self.plans[*self.by_message.get(field.parent_message().full_name())?];
        let plan = plan.fields.get(&field.number())?;
        let text = match &plan.check {
            Check::Text(Some(rule)) => rule.facts(),
            _ => TextFacts::default(),
        };
        Some(FieldFacts {
            required: plan.required || text.not_empty,
            scope: plan.scope,
            max_elements: plan.max_elements,
            text,
        })
    }
}
