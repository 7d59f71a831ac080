use bowline_contract::bowline::search::v1::rpc::search::Search;
use bowline_contract::bowline::search::v1::{SearchForm, SearchHit, SearchKind, SearchRequest, SearchSection};
use bowline_core::Result;
use maud::{Markup, html};

use crate::components::{Field, filters, link, section, table};
use crate::shell::Content;
use crate::values::{code, text, words};
use crate::visit::{ROWS, Visit};

/// Everything that has a name, by a part of it.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let fields = [Field::Text { name: "q", label: "Name, digest, vulnerability, package URL or id" }];
    let query = visit.query.text("q");
    if query.is_empty() {
        let body = html! { (filters(visit, &["in"], &fields)) p.empty { "Type what you look for." } };
        return Ok(Content::new("Search", body));
    }
    let kind = visit.query.get("kind").and_then(SearchKind::from_str_name);
    let request = SearchRequest {
        query: query.clone(),
        kinds: kind.into_iter().map(i32::from).collect(),
        scope: visit.scope(),
        page_size: if kind.is_some() { ROWS } else { 10 },
        page_token: visit.query.text("page"),
    };
    let response = visit.call::<Search>(request).await?;
    let form = SearchForm::try_from(response.form).unwrap_or_default();
    let has_hits = response.sections.iter().any(|section| !section.hits.is_empty());
    let body = html! {
        (filters(visit, &["in", "kind"], &fields))
        @if !matches!(form, SearchForm::Unspecified | SearchForm::Text) {
            p.small { "Read as " (words(form.as_str_name(), "SEARCH_FORM_")) "." }
        }
        @if !has_hits { p.empty { "Nothing that you may see has this in its name." } }
        @for found in response.sections.iter().filter(|found| !found.hits.is_empty()) { (hits(visit, found)) }
    };
    Ok(Content::new("Search", body))
}

fn hits(visit: &Visit, found: &SearchSection) -> Markup {
    let kind = SearchKind::try_from(found.kind).unwrap_or_default();
    let name = words(kind.as_str_name(), "SEARCH_KIND_");
    let rows: Vec<_> = found.hits.iter().map(|hit| row(kind, hit)).collect();
    let next = [("kind", kind.as_str_name()), ("page", found.next_page_token.as_str())];
    let more = visit.query.address(visit.path, &["kind", "page", "notice"], &next);
    section(
        &format!("kind-{}", found.kind),
        &heading(&name),
        &html! {
            (table(&heading(&name), &["Name", "In", "About", "Id"], &rows))
            @if found.incomplete { p.small { "There may be more: a longer text finds the rest." } }
            @if !found.next_page_token.is_empty() { p { a href=(more) { "More of these" } } }
        },
    )
}

fn heading(kind: &str) -> String {
    match kind {
        "repo" => "Repositories".into(),
        "identity" => "Identities".into(),
        "advisory" => "Advisories".into(),
        other => {
            let mut chars = other.chars();
            chars.next().map(|first| format!("{}{}s", first.to_uppercase(), chars.as_str())).unwrap_or_default()
        }
    }
}

fn row(kind: SearchKind, hit: &SearchHit) -> Vec<Markup> {
    let name = if hit.name.is_empty() { &hit.uid } else { &hit.name };
    let one = |path: &str| link(path, &[("uid", &hit.uid)], name);
    let linked = match kind {
        SearchKind::Group => one("/console/group"),
        SearchKind::Repo => one("/console/repository"),
        SearchKind::Identity => one("/console/identity"),
        SearchKind::Advisory => one("/console/advisory"),
        SearchKind::Package => link("/console/package", &[("id", &hit.uid)], name),
        SearchKind::Image => link("/console/image", &[("repo", &hit.uid), ("digest", &hit.digest)], name),
        SearchKind::Tag => link("/console/image", &[("repo", &hit.parent), ("digest", &hit.digest)], name),
        SearchKind::Unspecified => text(name),
    };
    let place = if hit.parent_name.is_empty() { code(&hit.parent) } else { text(&hit.parent_name) };
    let about = if hit.detail.is_empty() { &hit.digest } else { &hit.detail };
    vec![linked, place, text(about), code(&hit.uid)]
}
