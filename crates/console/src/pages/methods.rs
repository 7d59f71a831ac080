use bowline_contract::{Docs, MethodInfo};
use bowline_core::Result;
use maud::{Markup, html};

use crate::components::{Field, MAX_ROWS, filters, link, more, table};
use crate::method::{METHOD, NAME, kind};
use crate::shell::Content;
use crate::values::note;
use crate::visit::Visit;

/// All methods, by service.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let wanted = visit.query.text("q").to_lowercase();
    let docs = Docs::load();
    let contract = visit.app.api.contract();
    let has_text = |method: &&MethodInfo| method.full_name.to_lowercase().contains(&wanted);
    let methods: Vec<&MethodInfo> = contract.methods().iter().filter(has_text).collect();
    let services = methods.chunk_by(|a, b| service(a) == service(b));
    let body = html! {
        (filters(visit, &[], &[Field::Text { name: "q", label: "Name contains" }]))
        @if methods.is_empty() { p.empty { "No method has this in its name." } }
        @for methods in services {
            @let rows: Vec<_> = methods.iter().take(MAX_ROWS).map(|method| row(visit, docs.of(&method.full_name), method)).collect();
            (table(service(methods[0]), &["Method", "Does", "Kind"], &rows))
            (more(methods.len()))
        }
    };
    Ok(Content::new("Methods", body))
}

fn service(method: &MethodInfo) -> &str {
    method.full_name.rsplit_once('.').map_or("", |(service, _)| service)
}

fn row(visit: &Visit, doc: String, method: &MethodInfo) -> Vec<Markup> {
    let name = method.full_name.rsplit('.').next().unwrap_or_default();
    vec![link(METHOD, &[(NAME, &method.full_name)], name), note(&doc), kind(visit, method)]
}
