//! JSON Schema of the contract's messages, with the rules of their fields and the comments of the proto files.
//!
//! OpenAPI documents, the tools of MCP and the published schemas of command output are made of it. [`request`] and
//! [`response`] are documents that need nothing else; [`Schemas`] collects the schemas of a larger document.

mod messages;
mod patterns;

use bowline_contract::{Contract, Docs, MethodInfo};
use prost_reflect::MessageDescriptor;
use serde_json::Value;

pub use messages::{Form, Schemas, scoped};

/// Where a document of its own holds the schemas that it refers to.
const DEFINITIONS: &str = "#/$defs/";

/// The schema of a method's request.
pub fn request(contract: &Contract, docs: &Docs, method: &MethodInfo) -> Value {
    let mut schemas = Schemas::new(contract, docs, &[], DEFINITIONS);
    let schema = schemas.request(method, &[]);
    with_definitions(schema, schemas)
}

/// The schema of a message as responses show it.
pub fn response(contract: &Contract, docs: &Docs, message: &MessageDescriptor) -> Value {
    let mut schemas = Schemas::new(contract, docs, &[], DEFINITIONS);
    let schema = schemas.message(message, Form::Output);
    with_definitions(schema, schemas)
}

fn with_definitions(mut schema: Value, schemas: Schemas<'_>) -> Value {
    let definitions = schemas.finish();
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into_iter().collect::<serde_json::Map<_, _>>().into();
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that a document refers to.
    fn references(value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(name)) = members.get("$ref") {
                    names.push(name.strip_prefix(DEFINITIONS).expect("a reference within the document").to_owned());
                }
                members.values().for_each(|member| references(member, names));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, names)),
            _ => {}
        }
    }

    #[test]
    fn documents_hold_what_they_refer_to() {
        let (contract, docs) = (Contract::load(), Docs::load());
        for method in contract.methods() {
            for schema in [request(&contract, &docs, method), response(&contract, &docs, &method.output)] {
                let mut names = Vec::new();
                references(&schema, &mut names);
                for name in names {
                    assert!(schema["$defs"].get(&name).is_some(), "{}: {name}", method.full_name);
                }
            }
        }
    }

    #[test]
    fn requests_have_rules_and_comments() {
        let (contract, docs) = (Contract::load(), Docs::load());
        let method = contract.by_full_name("chainguard.platform.iam.v2.GroupsService.CreateGroup").unwrap();
        let schema = request(&contract, &docs, method);
        assert_eq!(schema["type"], "object");
        assert!(schema["properties"]["parent"]["description"].as_str().unwrap().len() > 10);
        let group = &schema["$defs"]["chainguard.platform.iam.v2.Group"];
        assert!(group["properties"].get("name").is_some() && group["properties"].get("createTime").is_none());
    }
}
