//! Methods of the contract as tools.

use bowline_client::ClientError;
use bowline_contract::{Contract, MethodInfo, ToolHints};
use bowline_terminal::suggestion;

/// Longest name of a tool that every client takes.
#[cfg(test)]
const LONGEST_NAME: usize = 64;

/// Which methods are tools.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// Tools that change something are listed too.
    pub(super) writes: bool,
    /// Only methods of these domains; empty for all.
    pub(super) domains: Vec<String>,
    /// Methods of the operator are listed too.
    pub(super) operator: bool,
}

impl Selection {
    /// Refuses domains that no tool has.
    ///
    /// # Errors
    /// A domain is unknown; the nearest is named.
    pub(super) fn validate(&self, contract: &Contract) -> Result<(), ClientError> {
        let mut known: Vec<&str> = contract.methods().iter().filter(|method| is_tool(method)).map(domain).collect();
        known.sort_unstable();
        known.dedup();
        for domain in &self.domains {
            if !known.contains(&domain.as_str()) {
                let near = suggestion(domain, known.iter().copied());
                let near = if near.is_empty() { format!("; there are {}", known.join(", ")) } else { near };
                return Err(ClientError::Usage(format!("--domains: no tools of {domain:?}{near}")));
            }
        }
        Ok(())
    }

    /// The hints of a method, if it is a tool of this selection.
    pub(super) fn hints<'m>(&self, method: &'m MethodInfo) -> Option<&'m ToolHints> {
        let hints = method.tool.as_ref().filter(|_| is_tool(method))?;
        let is_selected = (self.writes || hints.read_only)
            && (self.operator || !method.operator_only)
            && (self.domains.is_empty() || self.domains.iter().any(|one| one == domain(method)));
        is_selected.then_some(hints)
    }
}

/// Whether the contract lists the method for models, and its response has an end.
fn is_tool(method: &MethodInfo) -> bool {
    method.tool.as_ref().is_some_and(|hints| !hints.hidden) && !method.server_streaming
}

fn domain(method: &MethodInfo) -> &str {
    &method.domain
}

/// Name of a method's tool: its domain and its name, such as `iam_list_groups`; the service is between them where several of a
/// domain have methods of one name.
pub(super) fn name(contract: &Contract, method: &MethodInfo) -> String {
    let (service, own) = service_and_name(method);
    let is_of_another =
        |other: &&MethodInfo| is_tool(other) && other.domain == method.domain && other.full_name != method.full_name;
    let is_shared = contract.methods().iter().filter(is_of_another).any(|other| service_and_name(other).1 == own);
    let mut name = method.domain.clone();
    for c in if is_shared { service } else { "" }.chars().chain(own.chars()) {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// The service of a method without its package, and the name of the method in it.
fn service_and_name(method: &MethodInfo) -> (&str, &str) {
    let (service, name) = method.full_name.rsplit_once('.').unwrap_or_default();
    (service.rsplit('.').next().unwrap_or_default(), name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tools_have_names_of_their_own() {
        let contract = Contract::load();
        let mut names = BTreeSet::new();
        for method in contract.methods().iter().filter(|method| is_tool(method)) {
            let name = name(&contract, method);
            assert!(
                name.len() <= LONGEST_NAME
                    && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{name}"
            );
            assert!(names.insert(name.clone()), "two tools are called {name}");
        }
        assert!(names.contains("iam_list_groups") && names.len() > 100, "{names:?}");
        assert!(names.contains("libraries_java_packages_list_versions"), "{names:?}");
    }

    #[test]
    fn selections_hide_what_they_should() {
        let contract = Contract::load();
        let listed = |selection: Selection| {
            let methods = contract.methods().iter().filter(|method| selection.hints(method).is_some());
            methods.map(|method| name(&contract, method)).collect::<BTreeSet<_>>()
        };
        let reads = listed(Selection::default());
        assert!(reads.contains("iam_list_groups") && !reads.contains("iam_create_group"));
        assert!(reads.iter().all(|name| !name.starts_with("operator_")), "{reads:?}");
        let writes = listed(Selection { writes: true, ..Selection::default() });
        assert!(writes.contains("iam_create_group") && writes.is_superset(&reads));
        let iam = listed(Selection { domains: vec!["iam".into()], ..Selection::default() });
        assert!(!iam.is_empty() && iam.iter().all(|name| name.starts_with("iam_")), "{iam:?}");
        assert!(!listed(Selection { operator: true, ..Selection::default() }).is_subset(&reads));
        // Tokens and secrets are no tools.
        for method in contract.methods().iter().filter(|method| is_tool(method)) {
            for secret in ["PullToken", "ScimToken", "LoginUrl"] {
                assert!(!method.full_name.contains(secret), "{}", method.full_name);
            }
        }
        let unknown = Selection { domains: vec!["iaam".into()], ..Selection::default() };
        assert!(unknown.validate(&contract).unwrap_err().to_string().contains("did you mean iam?"));
    }
}
