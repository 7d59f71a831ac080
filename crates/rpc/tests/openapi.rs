//! The OpenAPI documents state what the server serves: every route, every rule of a field, every kind of response.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::{ApiVersion, Contract, Verb};
use serde_json::{Value, json};

fn documents() -> [(ApiVersion, Value); 2] {
    let contract = Contract::load();
    [ApiVersion::V1, ApiVersion::V2]
        .map(|version| (version, bowline_rpc::openapi(&contract, version, "http://localhost")))
}

fn v2() -> Value {
    let [_, (_, document)] = documents();
    document
}

/// Verb, path and operation.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    paths
        .iter()
        .flat_map(|(path, item)| {
            let operations = item.as_object().expect("an item").iter();
            operations.map(|(verb, operation)| (verb.as_str(), path.as_str(), operation))
        })
        .collect()
}

/// The path with every variable written as `{}`.
fn shape(path: &str) -> String {
    path.split('{')
        .map(|part| part.split_once('}').map_or(part.to_owned(), |(_, rest)| format!("{{}}{rest}")))
        .collect()
}

/// Names of the variables of a path.
fn variables(path: &str) -> BTreeSet<&str> {
    path.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0)).collect()
}

fn verb(name: &str) -> Verb {
    let all = [Verb::Get, Verb::Put, Verb::Post, Verb::Delete, Verb::Patch];
    all.into_iter().find(|verb| verb.name().eq_ignore_ascii_case(name)).expect("a verb of the contract")
}

fn walk<'v>(value: &'v Value, seen: &mut impl FnMut(&'v str, &'v Value)) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            seen(name, member);
            walk(member, seen);
        }),
        Value::Array(items) => items.iter().for_each(|item| walk(item, seen)),
        _ => {}
    }
}

#[test]
fn no_two_paths_differ_only_in_the_names_of_their_variables() {
    for (_, document) in documents() {
        let mut shapes: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        for path in document["paths"].as_object().expect("paths").keys() {
            shapes.entry(shape(path)).or_default().push(path);
        }
        shapes.retain(|_, paths| paths.len() > 1);
        assert_eq!(shapes, BTreeMap::new());
    }
}

#[test]
fn every_binding_of_the_contract_is_an_operation() {
    let contract = Contract::load();
    for (version, document) in documents() {
        let documented = operations(&document);
        let documented: BTreeSet<(String, String)> =
            documented.iter().map(|(verb, path, _)| ((*verb).to_uppercase(), shape(path))).collect();
        for method in contract.methods().iter().filter(|method| method.version == version) {
            for binding in &method.bindings {
                let route = (binding.verb.name().to_owned(), shape(&binding.template.to_string()));
                assert!(documented.contains(&route), "{}: {route:?}", method.full_name);
            }
        }
    }
}

#[test]
fn every_operation_leads_to_its_method_and_has_a_name_of_its_own() {
    let contract = Contract::load();
    for (_, document) in documents() {
        let mut ids = BTreeSet::new();
        for (name, path, operation) in operations(&document) {
            let id = operation["operationId"].as_str().expect("an id");
            assert!(ids.insert(id), "{id} twice");
            let sample = shape(path).replace("{}", "x");
            let found = contract.routes().find(Some(verb(name)), &sample);
            let method = contract.method(found.unwrap_or_else(|miss| panic!("{name} {path}: {miss:?}")).method);
            let own = format!("{}_{}", method.domain, method.short_name().replace('.', "_"));
            assert!(id.starts_with(&own), "{name} {path} leads to {own}, not to {id}");
        }
    }
}

#[test]
fn the_parameters_of_a_path_are_those_of_its_template() {
    for (_, document) in documents() {
        for (verb, path, operation) in operations(&document) {
            let parameters = operation["parameters"].as_array().expect("parameters");
            let names = parameters.iter().filter(|parameter| parameter["in"] == "path");
            let names: Vec<&str> = names.filter_map(|parameter| parameter["name"].as_str()).collect();
            assert_eq!(names.len(), variables(path).len(), "{verb} {path}");
            assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), variables(path), "{verb} {path}");
        }
    }
}

#[test]
fn an_organization_is_created_without_a_parent() {
    let document = v2();
    let create = &document["paths"]["/iam/v2/groups"]["post"];
    assert_eq!(create["operationId"], "iam_GroupsService_CreateGroup_without_parent");
    assert_eq!(create["requestBody"]["content"]["application/json"]["schema"], group("Input"));
    let below = &document["paths"]["/iam/v2/groups/{uid}"];
    let verbs: BTreeSet<&String> = below.as_object().expect("an item").keys().collect();
    assert_eq!(verbs.into_iter().collect::<Vec<_>>(), ["delete", "get", "patch", "post"]);
    let parameter = &below["post"]["parameters"][0];
    assert!(parameter["description"].as_str().is_some_and(|text| text.ends_with("Fills `parent` of the request.")));
    assert!(document["paths"]["/iam/v2/identities"].get("post").is_none(), "an identity needs a parent");
}

fn group(form: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/chainguard.platform.iam.v2.Group.{form}") })
}

#[test]
fn what_a_creation_requires_an_update_may_leave_out() {
    let document = v2();
    let schemas = &document["components"]["schemas"];
    let name = json!({
        "type": "string",
        "pattern": "^[a-z0-9 ._-]{1,}$",
        "minLength": 3,
        "maxLength": 63,
    });
    let created = &schemas["chainguard.platform.iam.v2.Group.Input"];
    let updated =
        &document["paths"]["/iam/v2/groups/{uid}"]["patch"]["requestBody"]["content"]["application/json"]["schema"];
    for (schema, required) in [(created, json!(["name"])), (updated, Value::Null)] {
        assert_eq!(schema.get("required").unwrap_or(&Value::Null), &required);
        for (keyword, value) in name.as_object().expect("keywords") {
            assert_eq!(&schema["properties"]["name"][keyword], value);
        }
        assert!(schema["properties"].get("createTime").is_none(), "only the server sets it");
    }
    let shown = &schemas["chainguard.platform.iam.v2.Group"];
    assert!(shown["properties"].get("createTime").is_some());
    assert!(shown["required"].as_array().is_some_and(|names| names.contains(&json!("uid"))), "{shown}");
}

#[test]
fn rules_of_fields_are_keywords_of_their_schemas() {
    let [(_, v1), (_, v2)] = documents();
    let counted = |document: &Value| {
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        walk(document, &mut |name, _| *count.entry(name.to_owned()).or_default() += 1);
        count
    };
    for (document, which) in [(counted(&v1), "v1"), (counted(&v2), "v2")] {
        for keyword in
            ["required", "pattern", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "enum"]
        {
            assert!(document.get(keyword).is_some_and(|count| *count > 1), "{which} has hardly any {keyword}");
        }
    }
}

#[test]
fn fields_that_name_the_scope_are_required_and_uidps() {
    let contract = Contract::load();
    for (version, document) in documents() {
        let mut seen = 0;
        for (name, path, operation) in operations(&document) {
            let sample = shape(path).replace("{}", "x");
            let route = contract.routes().find(Some(verb(name)), &sample).expect("a route");
            let method = contract.method(route.method);
            let Some(scope) = method.authorized_field() else { continue };
            let binding = method.bindings.iter().find(|binding| binding.verb == verb(name)).expect("a binding");
            let place = binding.template.fields().position(|field| field == scope);
            let schema = match place {
                Some(at) => &operation["parameters"][at]["schema"],
                None if operation.get("requestBody").is_some() => {
                    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
                    let property = method.input.get_field_by_name(scope).map(|field| field.json_name().to_owned());
                    let property = property.expect("a field of the request");
                    assert!(
                        body["required"].as_array().is_some_and(|names| names.contains(&json!(property))),
                        "{path}"
                    );
                    &body["properties"][property]
                }
                None => continue,
            };
            assert_eq!(schema["minLength"], 1, "{name} {path}");
            assert_eq!(schema["pattern"].is_string(), !method.scope_takes_names(), "{name} {path}: {schema}");
            seen += 1;
        }
        assert!(seen > 40, "{version:?}: {seen}");
    }
}

#[test]
fn sizes_of_pages_are_not_negative() {
    for (_, document) in documents() {
        let mut seen = 0;
        for (name, path, operation) in operations(&document) {
            for parameter in operation["parameters"].as_array().expect("parameters") {
                if ["pageSize", "skip"].iter().any(|paging| parameter["name"] == *paging) {
                    let schema = &parameter["schema"];
                    let pattern = json!("^(?:0|[1-9][0-9]{0,18})$");
                    assert!(schema["minimum"] == 0 || schema["pattern"] == pattern, "{name} {path}: {schema}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 5);
    }
}

#[test]
fn parts_of_the_whole_lists_of_v1_are_documented() {
    let [(_, v1), (_, v2)] = documents();
    let parts = |document: &Value, path: &str| {
        let parameters = document["paths"][path]["get"]["parameters"].as_array().expect("parameters");
        let names = parameters.iter().filter_map(|parameter| parameter["name"].as_str());
        names
            .filter(|name| ["offset", "limit", "page", "pageSize"].contains(name))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(parts(&v1, "/registry/v1/repos"), ["offset", "limit", "page", "pageSize"]);
    assert_eq!(parts(&v1, "/libraries/v1/policies"), ["pageSize"], "a list that has pages");
    assert_eq!(parts(&v2, "/registry/v2/repos"), ["pageSize"]);
}

#[test]
fn a_body_is_required_where_a_member_of_it_is() {
    let document = v2();
    let is_required = |path: &str| document["paths"][path]["post"]["requestBody"]["required"].clone();
    assert_eq!(is_required("/iam/v2/groups"), true);
    assert_eq!(is_required("/catalog/v1/versions:import"), false);
    assert_eq!(is_required("/feeds/bowline/v1/imports/{uid}:abort"), false);
    let [(_, v1), _] = documents();
    // The body is a list, and no text is not one.
    assert_eq!(v1["paths"]["/iam/v1/rolebindings/batch/{parent}"]["post"]["requestBody"]["required"], true);
}

#[test]
fn no_member_is_required_twice() {
    for (_, document) in documents() {
        walk(&document, &mut |name, value| {
            let names = value.as_array().filter(|_| name == "required").map_or(&[][..], Vec::as_slice);
            let distinct: BTreeSet<&str> = names.iter().filter_map(Value::as_str).collect();
            assert_eq!(distinct.len(), names.len(), "{value}");
        });
    }
}

#[test]
fn methods_that_authenticate_by_themselves_take_a_token_or_none() {
    let [(_, v1), _] = documents();
    for path in ["/sts/exchange", "/sts/headless_sessions"] {
        assert_eq!(v1["paths"][path]["get"]["security"], json!([{ "bearer": [] }, {}]), "{path}");
    }
}

#[test]
fn patterns_have_no_syntax_that_other_languages_lack() {
    for (_, document) in documents() {
        walk(&document, &mut |name, value| {
            let pattern = value.as_str().filter(|_| name == "pattern").unwrap_or_default();
            for foreign in ["\\p", "\\P", "(?P", "(?i", "(?s", "(?x", "\\z", "\\A", "[[:", "&&"] {
                assert!(!pattern.contains(foreign), "{pattern}");
            }
        });
    }
}

#[test]
fn a_stream_is_documented_as_what_it_is() {
    let document = v2();
    let watch = &document["paths"]["/audit/v1/entries:watch"]["get"];
    let content = watch["responses"]["200"]["content"].as_object().expect("content");
    assert_eq!(content.keys().collect::<Vec<_>>(), ["text/event-stream"]);
    let event = &content["text/event-stream"]["schema"]["oneOf"][0]["properties"];
    assert_eq!(event["event"]["const"], "entry");
    assert_eq!(event["data"]["contentSchema"]["$ref"], "#/components/schemas/bowline.audit.v1.Entry");
    let parameters = watch["parameters"].as_array().expect("parameters");
    assert!(parameters.iter().any(|parameter| parameter["name"] == "Last-Event-ID" && parameter["in"] == "header"));
}

#[test]
fn every_operation_documents_its_refusals() {
    for (_, document) in documents() {
        for (verb, path, operation) in operations(&document) {
            let responses = operation["responses"].as_object().expect("responses");
            let is_public = operation.get("security").is_some();
            let mut expected = vec!["200", "400", "404", "429", "500", "501", "503", "504", "default"];
            if !is_public {
                expected.extend(["401", "403"]);
            }
            if operation.get("requestBody").is_some() {
                expected.extend(["413", "415"]);
            }
            for status in expected {
                assert!(responses.contains_key(status), "{verb} {path} lacks {status}");
            }
        }
        for (name, response) in document["components"]["responses"].as_object().expect("responses") {
            let schema = &response["content"]["application/json"]["schema"];
            assert_eq!(schema["$ref"], "#/components/schemas/google.rpc.Status", "{name}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    for (_, document) in documents() {
        walk(&document, &mut |name, value| {
            let target = value.as_str().filter(|_| name == "$ref").and_then(|target| target.strip_prefix('#'));
            if let Some(target) = target {
                assert!(document.pointer(target).is_some_and(Value::is_object), "{target}");
            }
        });
    }
}
