//! `jsonpath` templates, as kubectl has them: `{.items[*].name}` between plain text, or one path without braces.

use serde_json::Value;

use crate::nearest::suggestion;

/// A template: texts and paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Path(Vec<Step>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(i64),
    All,
    /// Members of this name at any depth.
    Below(String),
}

impl std::str::FromStr for JsonPath {
    type Err = String;

    fn from_str(text: &str) -> Result<JsonPath, String> {
        if !text.contains('{') {
            return Ok(JsonPath(vec![Part::Path(steps(text)?)]));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (inner, after) = after.split_once('}').ok_or("jsonpath: a `{` without its `}`")?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(match inner.strip_prefix('"') {
                Some(_) => {
                    Part::Text(serde_json::from_str(inner).map_err(|_| format!("jsonpath: {inner} is not a text"))?)
                }
                None => Part::Path(steps(inner)?),
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(JsonPath(parts))
    }
}

impl JsonPath {
    /// The template filled in from a document; several values of a path are separated by spaces.
    ///
    /// # Errors
    /// A path names a member that its object does not have.
    pub fn render(&self, document: &Value) -> Result<String, String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Path(steps) => {
                    let values = select(document, steps)?;
                    let values: Vec<String> = values.into_iter().map(shown).collect();
                    out.push_str(&values.join(" "));
                }
            }
        }
        if !out.ends_with('\n') {
            out.push('\n');
        }
        Ok(out)
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn select<'d>(document: &'d Value, steps: &[Step]) -> Result<Vec<&'d Value>, String> {
    let mut values = vec![document];
    // After a step that selects any number of values, a missing member selects none of one of them.
    let mut is_several = false;
    for step in steps {
        let mut next = Vec::new();
        for value in &values {
            match step {
                Step::Member(name) => match value.get(name) {
                    Some(inner) => next.push(inner),
                    None if is_several => {}
                    None => return Err(missing(value, name)),
                },
                Step::Index(index) => next.extend(element(value, *index)),
                Step::All => match value {
                    Value::Array(items) => next.extend(items),
                    Value::Object(members) => next.extend(members.values()),
                    _ => {}
                },
                Step::Below(name) => below(value, name, &mut next),
            }
        }
        is_several |= !matches!(step, Step::Member(_));
        values = next;
    }
    Ok(values)
}

fn missing(value: &Value, name: &str) -> String {
    let members = value.as_object().map(|members| members.keys().map(String::as_str)).into_iter().flatten();
    format!("jsonpath: there is no member {name:?}{}", suggestion(name, members))
}

fn element(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    let at = if index < 0 { items.len().checked_sub(index.unsigned_abs() as usize)? } else { index as usize };
    items.get(at)
}

fn below<'d>(value: &'d Value, name: &str, out: &mut Vec<&'d Value>) {
    out.extend(value.get(name));
    let children: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return,
    };
    for child in children {
        below(child, name, out);
    }
}

/// The steps of a path such as `$.items[*].name`, `.a["b.c"][-1]` or `..uid`.
fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = text.trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    // A path may begin with a name.
    let mut is_first = true;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inner, after) =
                after.split_once(']').ok_or_else(|| format!("jsonpath: {text}: a `[` without its `]`"))?;
            steps.push(bracket(text, inner)?);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("..") {
            let (name, after) = name(text, after)?;
            steps.push(Step::Below(name.to_owned()));
            rest = after;
        } else if rest == "." {
            rest = "";
        } else if let Some(after) = rest.strip_prefix('.').or_else(|| is_first.then_some(rest)) {
            let (name, after) = name(text, after)?;
            steps.push(if name == "*" { Step::All } else { Step::Member(name.to_owned()) });
            rest = after;
        } else {
            return Err(format!("jsonpath: {text}: expected `.` or `[` before {rest:?}"));
        }
        is_first = false;
    }
    Ok(steps)
}

fn name<'t>(text: &str, rest: &'t str) -> Result<(&'t str, &'t str), String> {
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    if name.is_empty() { Err(format!("jsonpath: {text}: a name is missing")) } else { Ok((name, after)) }
}

fn bracket(text: &str, inner: &str) -> Result<Step, String> {
    let quoted = |quote: char| inner.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    if inner == "*" {
        return Ok(Step::All);
    }
    if let Some(name) = quoted('\'').or_else(|| quoted('"')) {
        return Ok(Step::Member(name.to_owned()));
    }
    let unknown = || format!("jsonpath: {text}: [{inner}] is neither *, a number nor a quoted name");
    inner.parse().map(Step::Index).map_err(|_| unknown())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(template: &str) -> Result<String, String> {
        let document = json!({
            "items": [{"name": "a", "labels": {"x.y": 1}}, {"name": "b", "uid": "u"}], "next": "", "on": true,
        });
        template.parse::<JsonPath>()?.render(&document)
    }

    #[test]
    fn paths_select_values() {
        for (template, expected) in [
            ("{.items[*].name}", "a b\n"),
            ("items[-1].name", "b\n"),
            ("$.items[0].labels['x.y']", "1\n"),
            ("{..uid}", "u\n"),
            ("{.items[*].uid}", "u\n"),
            ("{.items[0]['name']}{\"\\t\"}{.on}", "a\ttrue\n"),
            ("{.next}", "\n"),
            ("{.items[7].name}", "\n"),
        ] {
            assert_eq!(render(template).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn mistakes_have_words() {
        for (template, named) in [
            ("{.item}", "did you mean items?"),
            ("{.items", "without its `}`"),
            ("{.items[x]}", "[x] is neither"),
            (".items[0", "without its `]`"),
            ("{.a..}", "a name is missing"),
        ] {
            let refused = render(template).unwrap_err();
            assert!(refused.contains(named), "{template}: {refused}");
        }
    }
}
