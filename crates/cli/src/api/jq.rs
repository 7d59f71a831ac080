//! `--jq EXPRESSION`: values of a response, by a filter in the language of jq.

use std::str::FromStr;

use jaq_core::compile::Errors;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use serde_json::Value;

/// A filter that compiles.
#[derive(Clone, Debug)]
pub(super) struct Filter(String);

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        outputs(text, None)?;
        Ok(Filter(text.to_owned()))
    }
}

impl Filter {
    /// The outputs of the filter for a document: a line each, texts as they are.
    ///
    /// # Errors
    /// The filter fails on the document.
    pub(super) fn apply(&self, document: &Value) -> Result<String, String> {
        outputs(&self.0, Some(document))
    }
}

/// Compiles a filter, and runs it on the document if there is one.
fn outputs(expression: &str, document: Option<&Value>) -> Result<String, String> {
    let arena = Arena::default();
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let program = File { code: expression, path: () };
    let malformed = || format!("{expression:?} is not a jq filter; an example: .groups[].name");
    let modules = Loader::new(definitions).load(&arena, program).map_err(|_| malformed())?;
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let filter = Compiler::default().with_funs(functions).compile(modules).map_err(|errors| undefined(&errors))?;
    let Some(document) = document else { return Ok(String::new()) };
    let input = read::parse_single(document.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut text = String::new();
    for output in filter.id.run((context, input)).map(unwrap_valr) {
        let value = output.map_err(|error| error.to_string())?;
        text.push_str(&line(&value));
        text.push('\n');
    }
    Ok(text)
}

/// A text as it is, and anything else as JSON.
fn line(value: &Val) -> String {
    match value {
        Val::TStr(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.to_string(),
    }
}

/// The functions and variables that a filter names and that there are not.
fn undefined(errors: &Errors<&str, ()>) -> String {
    let names: Vec<&str> = errors.iter().flat_map(|(_, errors)| errors).map(|(name, _)| *name).collect();
    format!("unknown in jq: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filters_select_values() {
        let page =
            json!({ "groups": [{ "name": "a b", "verified": true, "n": 9_007_199_254_740_993_u64 }, { "name": "c" }] });
        for (filter, expected) in [
            (".groups[].name", "a b\nc\n"),
            (".groups[] | select(.verified) | .n", "9007199254740993\n"),
            (".groups | length", "2\n"),
            (".groups[0] | {name}", "{\"name\":\"a b\"}\n"),
            (".groups[].name | select(startswith(\"c\"))", "c\n"),
            (".groups | map(.name) | sort | join(\",\")", "a b,c\n"),
            (".groups[] | [.name] | @json", "[\"a b\"]\n[\"c\"]\n"),
            (".groups[].name | select(test(\"^c\"))", "c\n"),
            (".none[]?", ""),
        ] {
            assert_eq!(filter.parse::<Filter>().unwrap().apply(&page).unwrap(), expected, "{filter}");
        }
        assert!(".groups[".parse::<Filter>().unwrap_err().contains("not a jq filter"));
        assert!(".groups | nme".parse::<Filter>().unwrap_err().contains("nme"));
        assert!(".groups.name".parse::<Filter>().unwrap().apply(&page).is_err());
    }
}
