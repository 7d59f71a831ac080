use bowline_client::ClientError;
use bowline_contract::{Contract, MethodInfo};
use bowline_terminal::suggestion;

/// The method of this name: its full name, its gRPC path, or an end of its name that no other method has, such as
/// `GroupsService.ListGroups` or `ListGroups`.
///
/// # Errors
/// No method has the name, or several have.
pub(crate) fn method<'c>(contract: &'c Contract, name: &str) -> Result<&'c MethodInfo, ClientError> {
    let dotted = name.trim_start_matches('/').replace('/', ".");
    let methods = contract.methods();
    if let Some(exact) = methods.iter().find(|method| method.full_name == dotted) {
        return Ok(exact);
    }
    let lower = format!(".{}", dotted.to_lowercase());
    let matches: Vec<&MethodInfo> =
        methods.iter().filter(|method| method.full_name.to_lowercase().ends_with(&lower)).collect();
    match matches.as_slice() {
        [only] => Ok(only),
        [] => Err(ClientError::Usage(format!("there is no method {name:?}{}", nearest_method(methods, &dotted)))),
        several => {
            let names: Vec<&str> = several.iter().map(|method| method.full_name.as_str()).collect();
            Err(ClientError::Usage(format!("several methods are called {name}: {}", names.join(", "))))
        }
    }
}

/// What is allowed at the registry, by the end of its name, such as `PushManifest`: capabilities are needed for it, and no
/// transport of methods serves it.
pub(crate) fn operation<'c>(contract: &'c Contract, name: &str) -> Option<&'c MethodInfo> {
    let lower = format!(".{}", name.to_lowercase());
    contract.operations().iter().find(|info| format!(".{}", info.full_name).to_lowercase().ends_with(&lower))
}

/// The nearest of all names that have as many parts.
fn nearest_method(methods: &[MethodInfo], dotted: &str) -> String {
    let parts = dotted.split('.').count();
    let ends = methods.iter().map(|method| end(&method.full_name, parts));
    suggestion(dotted, ends)
}

/// The last parts of a name.
pub(crate) fn end(name: &str, parts: usize) -> &str {
    name.rmatch_indices('.').nth(parts.saturating_sub(1)).map_or(name, |(at, _)| &name[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_several_names() {
        let contract = Contract::load();
        for name in [
            "chainguard.platform.iam.v2.GroupsService.ListGroups",
            "/chainguard.platform.iam.v2.GroupsService/ListGroups",
            "GroupsService.ListGroups",
            "listgroups",
        ] {
            assert_eq!(method(&contract, name).unwrap().short_name(), "GroupsService.ListGroups", "{name}");
        }
        for (name, named) in [
            ("ListGruops", "did you mean ListGroups?"),
            ("GroupService.ListGroups", "did you mean GroupsService.ListGroups?"),
            ("CreateRepo", "chainguard.platform.registry.Registry.CreateRepo"),
        ] {
            let refused = method(&contract, name).unwrap_err().to_string();
            assert!(refused.contains(named), "{name}: {refused}");
        }
    }

    #[test]
    fn every_method_has_a_name_a_request_and_a_response() {
        let contract = Contract::load();
        for info in contract.methods() {
            let named = method(&contract, &info.full_name).unwrap();
            assert_eq!(named.index, info.index);
            crate::dynamic::encoded(&named.input, &serde_json::Map::new()).unwrap();
            crate::dynamic::to_json(&named.output, &[]).unwrap();
        }
    }
}
