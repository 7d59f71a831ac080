//! PATCH (RFC 7644, section 3.5.2), with what the common directories write in place of it: operators in any
//! case, paths as members of a value, one object in place of a list.

use serde_json::{Map, Value};

use super::attributes::{MAX_ELEMENTS, PASSWORD, Shape, canonical_schema, core};
use super::path::{Comparison, Plain, Token, bracket, fits, tokens};
use super::refusal::{Refusal, Result, ScimError};

const SCHEMA: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Replace,
    Remove,
}

/// Where an operation works.
struct Target {
    /// Schema of an extension.
    extension: Option<String>,
    /// Absent for an extension as a whole.
    attribute: Option<String>,
    /// Elements of the list that are meant; absent for the attribute itself.
    filter: Option<Vec<Comparison>>,
    sub: Option<String>,
    is_list: bool,
}

/// Applies all operations of the message, in order.
pub(super) fn apply(attributes: &mut Map<String, Value>, message: &Value) -> Result<()> {
    let schemas = member(message, "schemas").and_then(Value::as_array);
    if !schemas.is_some_and(|schemas| schemas.iter().any(|schema| schema == SCHEMA)) {
        return Err(refuse(Refusal::InvalidSyntax, format!("schemas must name {SCHEMA}")));
    }
    let operations = member(message, "Operations").and_then(Value::as_array);
    let operations = operations.filter(|operations| !operations.is_empty());
    let operations =
        operations.ok_or_else(|| refuse(Refusal::InvalidSyntax, "Operations must be a list of at least one".into()))?;
    if operations.len() > MAX_MEMBERS || !operations.iter().all(is_bounded) {
        let what = format!("at most {MAX_MEMBERS} operations, and {MAX_MEMBERS} members of an object");
        return Err(refuse(Refusal::InvalidValue, what));
    }
    operations.iter().try_for_each(|operation| apply_one(attributes, operation))
}

/// Maximum number of operations of a message, and of members of an object in it, which are compared pairwise.
const MAX_MEMBERS: usize = 100;

fn is_bounded(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.len() <= MAX_MEMBERS && members.values().all(is_bounded),
        Value::Array(list) => list.iter().all(is_bounded),
        _ => true,
    }
}

fn apply_one(attributes: &mut Map<String, Value>, operation: &Value) -> Result<()> {
    let operator = match member(operation, "op").and_then(Value::as_str).unwrap_or_default() {
        op if op.eq_ignore_ascii_case("add") => Operator::Add,
        op if op.eq_ignore_ascii_case("replace") => Operator::Replace,
        op if op.eq_ignore_ascii_case("remove") => Operator::Remove,
        _ => return Err(refuse(Refusal::InvalidSyntax, "op must be add, replace or remove".into())),
    };
    let value = member(operation, "value").cloned().unwrap_or(Value::Null);
    let path = match member(operation, "path") {
        None | Some(Value::Null) => "",
        Some(Value::String(path)) => path.as_str(),
        Some(_) => return Err(refuse(Refusal::InvalidPath, "path must be a text".into())),
    };
    if !path.is_empty() {
        return match Target::read(path)? {
            Some(target) => target.apply(attributes, operator, value),
            None => Ok(()),
        };
    }
    match (operator, value) {
        (Operator::Remove, _) => Err(refuse(Refusal::NoTarget, "remove needs a path".into())),
        (_, Value::Object(members)) => members.into_iter().try_for_each(|(path, value)| {
            // The name of what is not kept says nothing here, as in a whole resource.
            match Target::of_member(&path)? {
                Some(target) => target.apply(attributes, operator, value),
                None => Ok(()),
            }
        }),
        _ => Err(refuse(Refusal::InvalidValue, "without a path, the value must be an object".into())),
    }
}

impl Target {
    /// Reads a path; absent for one whose value is never kept.
    fn read(path: &str) -> Result<Option<Target>> {
        let parsed = Target::parse(path)
            .ok_or_else(|| refuse(Refusal::InvalidPath, format!("{path:?} is no path of a user")))?;
        if parsed.extension.is_some() {
            return Ok(Some(parsed));
        }
        match parsed.attribute.as_deref().and_then(core) {
            Some((PASSWORD, _)) => Ok(None),
            Some((name, Shape::Ignored)) => Err(refuse(Refusal::Mutability, format!("{name} is set by the server"))),
            Some((name, shape)) => {
                Ok(Some(Target { attribute: Some(name.into()), is_list: shape == Shape::List, ..parsed }))
            }
            None => Err(refuse(Refusal::InvalidPath, format!("{path:?} names no attribute of a user"))),
        }
    }

    /// Reads a member of a value without a path: unknown ones are passed over, as in a whole resource.
    fn of_member(path: &str) -> Result<Option<Target>> {
        match Target::read(path) {
            Err(ScimError::Refused(Refusal::Mutability | Refusal::InvalidPath, _)) => Ok(None),
            other => other,
        }
    }

    fn parse(path: &str) -> Option<Target> {
        let tokens = tokens(path)?;
        let [Token::Word(word), rest @ ..] = tokens.as_slice() else { return None };
        let plain = Plain::read(word)?;
        let (filter, sub) = match rest {
            [] => (None, plain.sub),
            [Token::Open, rest @ ..] if plain.sub.is_none() => {
                let (filter, rest) = bracket(rest)?;
                let sub = match rest {
                    [] => None,
                    [Token::Word(sub)] => Some(Plain::read(&format!("x{sub}"))?.sub?),
                    _ => return None,
                };
                (Some(filter), sub)
            }
            _ => return None,
        };
        let extension = plain.extension.map(|schema| canonical_schema(&schema));
        Some(Target { extension, attribute: plain.attribute, filter, sub, is_list: false })
    }

    fn apply(self, attributes: &mut Map<String, Value>, operator: Operator, value: Value) -> Result<()> {
        let Some(schema) = &self.extension else {
            return self.apply_in(attributes, operator, value);
        };
        let key = spelled(attributes, schema);
        if self.attribute.is_none() && operator == Operator::Remove {
            attributes.remove(&key);
            return Ok(());
        }
        let mut members = match attributes.remove(&key) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        if let Some(attribute) = &self.attribute {
            let attribute = spelled(&members, attribute);
            Target { attribute: Some(attribute), ..self }.apply_in(&mut members, operator, value)?;
        } else {
            merge(&mut members, object(value)?);
        }
        if !members.is_empty() {
            attributes.insert(key, Value::Object(members));
        }
        Ok(())
    }

    fn apply_in(self, attributes: &mut Map<String, Value>, operator: Operator, value: Value) -> Result<()> {
        let Target { attribute: Some(name), filter, sub, is_list, .. } = self else {
            return Err(refuse(Refusal::InvalidPath, "the path names no attribute".into()));
        };
        let is_list = is_list || attributes.get(&name).is_some_and(Value::is_array);
        match (filter, sub) {
            (Some(filter), sub) if is_list => elements(attributes, &name, &filter, sub, operator, value),
            (Some(_), _) => Err(refuse(Refusal::InvalidPath, format!("{name} is no list"))),
            (None, Some(_)) if is_list => Err(refuse(
                Refusal::InvalidPath,
                format!("say which element of {name} is meant: {name}[type eq \"…\"]"),
            )),
            (None, Some(sub)) => {
                let mut members = match attributes.remove(&name) {
                    Some(Value::Object(members)) => members,
                    _ => Map::new(),
                };
                set(&mut members, &sub, operator, value);
                if !members.is_empty() {
                    attributes.insert(name, Value::Object(members));
                }
                Ok(())
            }
            (None, None) if is_list && operator == Operator::Add => append(attributes, &name, value),
            (None, None) if is_list && operator == Operator::Remove && !value.is_null() => {
                Err(refuse(Refusal::InvalidPath, format!("say in the path which elements of {name} go")))
            }
            (None, None) => {
                match (attributes.get_mut(&name), value) {
                    (Some(Value::Object(members)), Value::Object(value)) if operator != Operator::Remove => {
                        merge(members, value);
                    }
                    (_, value) => set(attributes, &name, operator, value),
                }
                Ok(())
            }
        }
    }
}

/// Works on those elements of a list that fit.
fn elements(
    attributes: &mut Map<String, Value>,
    name: &str,
    filter: &[Comparison],
    sub: Option<String>,
    operator: Operator,
    value: Value,
) -> Result<()> {
    let mut list = match attributes.remove(name) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let found = list.iter().any(|element| fits(filter, element));
    match (operator, sub) {
        (Operator::Remove, None) => list.retain(|element| !fits(filter, element)),
        (operator, None) => {
            let value = object(value)?;
            let all = list.iter_mut().filter(|element| fits(filter, element)).filter_map(Value::as_object_mut);
            all.for_each(|element| merge(element, value.clone()));
            if !found {
                list.push(Value::Object(missing(operator, filter, name, value)?));
            }
        }
        (operator, Some(sub)) => {
            let all = list.iter_mut().filter(|element| fits(filter, element)).filter_map(Value::as_object_mut);
            all.for_each(|element| set(element, &sub, operator, value.clone()));
            if !found && operator != Operator::Remove {
                list.push(Value::Object(missing(operator, filter, name, Map::from_iter([(sub, value)]))?));
            }
        }
    }
    limit(name, &list)?;
    if !list.is_empty() {
        attributes.insert(name.into(), Value::Array(list));
    }
    Ok(())
}

/// The element that an addition makes where none fits: it is what the filter says it is.
fn missing(
    operator: Operator,
    filter: &[Comparison],
    name: &str,
    value: Map<String, Value>,
) -> Result<Map<String, Value>> {
    if operator != Operator::Add {
        return Err(refuse(Refusal::NoTarget, format!("no element of {name} fits the path's filter")));
    }
    let mut element: Map<String, Value> =
        filter.iter().map(|comparison| (comparison.attribute.clone(), comparison.value.clone())).collect();
    merge(&mut element, value);
    Ok(element)
}

/// Adds elements that are not there yet. Only one is the first: a new one takes that from the others.
fn append(attributes: &mut Map<String, Value>, name: &str, value: Value) -> Result<()> {
    let mut list = match attributes.remove(name) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let added = match value {
        Value::Array(added) => added,
        Value::Null => Vec::new(),
        one => vec![one],
    };
    for element in added {
        if element.get("primary") == Some(&Value::Bool(true)) {
            for other in list.iter_mut().filter_map(Value::as_object_mut) {
                other.remove("primary");
            }
        }
        if !list.contains(&element) {
            list.push(element);
        }
        limit(name, &list)?;
    }
    if !list.is_empty() {
        attributes.insert(name.into(), Value::Array(list));
    }
    Ok(())
}

fn limit(name: &str, list: &[Value]) -> Result<()> {
    if list.len() > MAX_ELEMENTS {
        return Err(refuse(Refusal::InvalidValue, format!("{name} has at most {MAX_ELEMENTS} elements")));
    }
    Ok(())
}

fn set(container: &mut Map<String, Value>, name: &str, operator: Operator, value: Value) {
    if operator == Operator::Remove || value.is_null() {
        container.remove(name);
    } else {
        container.insert(name.into(), value);
    }
}

fn merge(into: &mut Map<String, Value>, members: Map<String, Value>) {
    for (name, value) in members {
        let name = spelled(into, &super::attributes::canonical_sub(&name));
        set(into, &name, Operator::Replace, value);
    }
}

/// The name as it is spelled already, or else as it is given.
fn spelled(container: &Map<String, Value>, name: &str) -> String {
    container.keys().find(|known| known.eq_ignore_ascii_case(name)).map_or(name, |known| known).into()
}

fn object(value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(refuse(Refusal::InvalidValue, "the value of such a path must be an object".into())),
    }
}

/// A member of a message, whatever the case of its name.
fn member<'a>(message: &'a Value, name: &str) -> Option<&'a Value> {
    message.as_object()?.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn refuse(refusal: Refusal, detail: String) -> ScimError {
    ScimError::refuse(refusal, detail)
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
