use bowline_contract::{Contract, Docs};
use bowline_terminal::{Form, Table};
use serde_json::json;

use crate::error::CliError;

/// The methods whose full name contains a text, in any case.
pub(super) fn methods(contract: &Contract, part: &str, form: &Form) -> Result<String, CliError> {
    let docs = Docs::load();
    let part = part.to_lowercase();
    let mut table = Table::new(&["method", "rest", "summary"]);
    let mut documents = Vec::new();
    for method in contract.methods().iter().filter(|method| method.full_name.to_lowercase().contains(&part)) {
        let rest = method.bindings.first().map(|binding| format!("{} {}", binding.verb.name(), binding.template));
        let rest = rest.unwrap_or_default();
        let summary = docs.of(&method.full_name);
        let summary = summary.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned();
        documents.push(json!({ "name": method.full_name, "rest": rest, "summary": summary }));
        table.push([method.full_name.clone(), rest, summary]);
    }
    Ok(form.render(&table, || Ok(documents.into()))?)
}
