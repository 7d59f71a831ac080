//! What the endpoint says of itself.

use bowline_identity::scim::{CORE_SCHEMA, ENTERPRISE_SCHEMA, MAX_COUNT};
use serde_json::{Value, json};

use crate::schemas;

const LIST: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";

/// A list message: `start` counts from 1.
pub(crate) fn list(resources: Vec<Value>, total: usize, start: usize) -> Value {
    json!({
        "schemas": [LIST],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": resources.len(),
        "Resources": resources,
    })
}

pub(crate) fn service_provider_config(base: &str) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
        "patch": { "supported": true },
        "bulk": { "supported": false, "maxOperations": 0, "maxPayloadSize": 0 },
        "filter": { "supported": true, "maxResults": MAX_COUNT },
        "changePassword": { "supported": false },
        "sort": { "supported": false },
        "etag": { "supported": true },
        "authenticationSchemes": [{
            "type": "oauthbearertoken",
            "name": "SCIM token",
            "description": "The SCIM token of the identity provider, sent as a bearer token",
            "primary": true,
        }],
        "meta": { "resourceType": "ServiceProviderConfig", "location": format!("{base}/ServiceProviderConfig") },
    })
}

/// The one resource type.
pub(crate) fn resource_type(base: &str) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:ResourceType"],
        "id": "User",
        "name": "User",
        "endpoint": "/Users",
        "description": "A person of the organization",
        "schema": CORE_SCHEMA,
        "schemaExtensions": [{ "schema": ENTERPRISE_SCHEMA, "required": false }],
        "meta": { "resourceType": "ResourceType", "location": format!("{base}/ResourceTypes/User") },
    })
}

/// The schemas, each with its URL.
pub(crate) fn schemas(base: &str) -> Vec<Value> {
    [schemas::core(), schemas::enterprise()]
        .into_iter()
        .map(|mut schema| {
            let id = schema["id"].as_str().unwrap_or_default().to_owned();
            schema["meta"] = json!({ "resourceType": "Schema", "location": format!("{base}/Schemas/{id}") });
            schema
        })
        .collect()
}
