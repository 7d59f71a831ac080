//! Requests that create, change and delete objects, by the messages of their methods.

use bowline_client::ClientError;
use bowline_contract::{Contract, MethodInfo};
use serde_json::Value;

use super::kinds::{Kind, PathOf};
use super::schema::{self, Members};
use super::spec::Secret;
use crate::dynamic;

/// A method and its request.
pub(super) struct Call<'c> {
    pub(super) method: &'c MethodInfo,
    pub(super) request: Members,
}

/// What a call writes.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) kind: &'static Kind,
    /// UIDP of the container or subject.
    pub(super) parent: &'a str,
    pub(super) name: &'a str,
    pub(super) spec: &'a Members,
    pub(super) secrets: &'a [Secret],
}

impl Written<'_> {
    /// The resource, with the secrets in fields that are written.
    fn resource(&self, is_written: impl Fn(&str) -> bool) -> Members {
        let mut resource = self.spec.clone();
        if self.kind.is_named() {
            resource.insert("name".into(), self.name.into());
        }
        for secret in self.secrets {
            if secret.path.split('.').next().is_some_and(&is_written) {
                schema::put(&mut resource, &secret.path, secret.value.clone().into());
            }
        }
        resource
    }
}

/// The call that creates an object.
///
/// # Errors
/// A defect: the contract has no such method.
pub(super) fn create<'c>(contract: &'c Contract, written: Written<'_>) -> Result<Call<'c>, ClientError> {
    let kind = written.kind;
    if kind.path == PathOf::Subject && kind.update == Some(kind.create) {
        let fields = written.spec.keys().map(String::as_str);
        let secrets = written.secrets.iter().filter_map(|secret| secret.path.split('.').next());
        return update(contract, written, written.parent, &fields.chain(secrets).collect::<Vec<_>>());
    }
    let method = dynamic::method(contract, kind.create)?;
    let resource = written.resource(|_| true);
    let mut request = match method.resource_field() {
        Some(field) => Members::from_iter([(field.name().to_owned(), Value::Object(resource))]),
        None => resource,
    };
    if !written.parent.is_empty() {
        let parent = ["parent", "parent_id"].into_iter().find(|name| method.input.get_field_by_name(name).is_some());
        request.insert(parent.unwrap_or("parent").to_owned(), written.parent.into());
    }
    Ok(Call { method, request })
}

/// The call that changes fields of an object, by their JSON names.
///
/// # Errors
/// A defect: objects of the kind cannot be changed.
pub(super) fn update<'c>(
    contract: &'c Contract,
    written: Written<'_>,
    uid: &str,
    fields: &[&str],
) -> Result<Call<'c>, ClientError> {
    let kind = written.kind;
    if kind.path != PathOf::Subject && kind.update == Some(kind.create) {
        return create(contract, written);
    }
    let fixed = || ClientError::Usage(format!("no {} can be changed", kind.name));
    let method = dynamic::method(contract, kind.update.ok_or_else(fixed)?)?;
    let mut resource = written.resource(|field| fields.contains(&field));
    resource.insert(kind.uid_field().to_owned(), uid.into());
    let Some(field) = method.resource_field() else {
        // The whole resource is replaced.
        return Ok(Call { method, request: resource });
    };
    let message = schema::message(contract, kind)?;
    let mut mask: Vec<String> = Vec::new();
    for name in fields.iter().filter_map(|name| message.get_field_by_json_name(name)) {
        if !mask.iter().any(|known| known == name.name()) {
            mask.push(name.name().to_owned());
        }
    }
    let request = Members::from_iter([
        (field.name().to_owned(), Value::Object(resource)),
        ("update_mask".to_owned(), mask.join(",").into()),
    ]);
    Ok(Call { method, request })
}

/// The call that deletes an object, or empties settings, which have these fields.
///
/// # Errors
/// A defect: the contract has no such method.
pub(super) fn delete<'c>(
    contract: &'c Contract,
    kind: &'static Kind,
    uid: &str,
    spec: &Members,
) -> Result<Call<'c>, ClientError> {
    let Some(method) = kind.delete else {
        let nothing = Written { kind, parent: uid, name: "", spec: &Members::new(), secrets: &[] };
        return update(contract, nothing, uid, &spec.keys().map(String::as_str).collect::<Vec<_>>());
    };
    let method = dynamic::method(contract, method)?;
    Ok(Call { method, request: Members::from_iter([(kind.uid_field().to_owned(), uid.into())]) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::kinds::{KINDS, kind};
    use super::*;

    fn members(value: Value) -> Members {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn requests_have_the_form_of_their_methods() {
        let contract = Contract::load();
        let spec = members(json!({"description": "d"}));
        let written = |name| Written { kind: kind(name).unwrap(), parent: "aa", name: "n", spec: &spec, secrets: &[] };
        let call = create(&contract, written("Role")).unwrap();
        assert_eq!(Value::Object(call.request), json!({"parent": "aa", "role": {"name": "n", "description": "d"}}));
        let call = update(&contract, written("Role"), "aa/b", &["description"]).unwrap();
        let expected = json!({"role": {"uid": "aa/b", "name": "n", "description": "d"}, "update_mask": "description"});
        assert_eq!(Value::Object(call.request), expected);
        let call = update(&contract, written("LibraryPolicy"), "aa/b", &["description"]).unwrap();
        assert_eq!(Value::Object(call.request), json!({"id": "aa/b", "name": "n", "description": "d"}));
        let ecosystem = members(json!({"ecosystem": "JAVA"}));
        let call = create(&contract, Written { spec: &ecosystem, ..written("LibraryEntitlement") }).unwrap();
        assert_eq!(Value::Object(call.request), json!({"parent_id": "aa", "ecosystem": "JAVA"}));
        let call = delete(&contract, kind("Readme").unwrap(), "aa/b", &members(json!({"content": "c"}))).unwrap();
        assert_eq!(Value::Object(call.request), json!({"repo_readme": {"uid": "aa/b"}, "update_mask": "content"}));
    }

    #[test]
    fn secrets_go_along_with_what_is_written() {
        let contract = Contract::load();
        let spec = members(json!({"description": "d", "oidc": {"issuer": "i"}}));
        let secrets = [Secret { path: "oidc.clientSecret".into(), file: "f".into(), value: "s".into() }];
        let provider = kind("IdentityProvider").unwrap();
        let written = Written { kind: provider, parent: "aa", name: "n", spec: &spec, secrets: &secrets };
        let secret = |call: Call<'_>| Value::Object(call.request)["identity_provider"]["oidc"]["clientSecret"].clone();
        assert_eq!(secret(create(&contract, written).unwrap()), "s");
        assert_eq!(secret(update(&contract, written, "aa/b", &["oidc"]).unwrap()), "s");
        assert_eq!(secret(update(&contract, written, "aa/b", &["description"]).unwrap()), Value::Null);
    }

    #[test]
    fn every_kind_has_requests() {
        let contract = Contract::load();
        for kind in KINDS {
            let written = Written { kind, parent: "aa", name: "n", spec: &Members::new(), secrets: &[] };
            let mut calls =
                vec![create(&contract, written).unwrap(), delete(&contract, kind, "aa/b", written.spec).unwrap()];
            if kind.update.is_some() {
                calls.push(update(&contract, written, "aa/b", &[]).unwrap());
            }
            for call in calls {
                dynamic::encoded(&call.method.input, &call.request).unwrap();
                dynamic::require_known(&call.method.input, &Value::Object(call.request)).unwrap();
            }
        }
    }
}
