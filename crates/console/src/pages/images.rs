use bowline_contract::bowline::registry::v1::rpc::images::{GetImage, ListPackages};
use bowline_contract::bowline::registry::v1::{GetImageRequest, ImageDetail, ImageSummary, ListPackagesRequest};
use bowline_core::{Code, Result};
use maud::{Markup, html};
use serde_json::Value;

use super::repositories::{attached, findings, shared};
use super::{part, required};
use crate::components::{Field, List, facts, filters, link, refused, section, table};
use crate::query::address;
use crate::shell::Content;
use crate::values::{bytes, code, digest, none, text, time, yes};
use crate::visit::{ROWS, Visit};

/// Packages on the page of the image; all of them have a page of their own.
const SOME_PACKAGES: i32 = 10;
const NO_SBOM: &str = "No SBOM is attached to this image.";
/// Words in the names of variables whose values are not shown.
const SECRETS: [&str; 6] = ["PASSWORD", "PASSWD", "SECRET", "TOKEN", "CREDENTIAL", "KEY"];

/// One image: platforms, layers, how it was built and is run, what is attached, its packages.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let (repo, digest) = (required(visit, "repo")?, required(visit, "digest")?);
    let request = GetImageRequest { repo_uid: repo.clone(), digest: digest.clone() };
    let image = visit.call::<GetImage>(request).await?;
    let request = ListPackagesRequest {
        repo_uid: repo.clone(),
        digest: digest.clone(),
        page_size: SOME_PACKAGES,
        ..ListPackagesRequest::default()
    };
    let packages = part(visit.call::<ListPackages>(request).await)?;
    let method = visit.last_method().map(str::to_owned);
    let summary = image.summary.clone().unwrap_or_default();
    let all = address("/console/image-packages", &[("repo", &repo), ("digest", &digest)]);
    let body = html! {
        (about(visit, &repo, &image, &summary))
        @if !image.members.is_empty() { (section("platforms", "Platforms", &members(&repo, &image))) }
        @if !image.layers.is_empty() { (section("layers", "Layers", &layers(&image))) }
        @if !image.history.is_empty() { (section("history", "How it was built", &history(&image))) }
        @if !image.run_config.is_empty() { (section("run", "How it is run", &run_config(&image.run_config))) }
        (section("attached", "Attached", &referrers(&repo, &image)))
        (section("packages", "Packages", &match &packages {
            Ok(response) if response.packages.is_empty() => html! { p.empty { (NO_SBOM) } },
            Ok(response) => html! {
                (package_table(&response.packages))
                p { a href=(all) { "All " (response.total_count) " packages" } }
            },
            Err(error) if error.code() == Code::NotFound => html! { p.empty { (NO_SBOM) } },
            Err(error) => refused(error, method.as_deref()),
        }))
    };
    let title = match summary.tags.first() {
        Some(tag) => tag.clone(),
        None => digest,
    };
    Ok(Content::new(title, body).below(address("/console/repository", &[("uid", &repo)]), "Repository"))
}

fn about(visit: &Visit, repo: &str, image: &ImageDetail, summary: &ImageSummary) -> Markup {
    let host = &visit.app.api.settings().registry_audience;
    let mut rows = vec![
        ("Digest", code(&summary.digest)),
        ("Tags", text(&summary.tags.join(", "))),
        ("Type", code(if summary.artifact_type.is_empty() { &summary.media_type } else { &summary.artifact_type })),
        ("Size, everything it names", text(&bytes(summary.size))),
        ("Pushed", time(summary.push_time.as_ref())),
        ("Pulled", time(summary.pull_time.as_ref())),
        ("Attached", attached(summary)),
        ("Findings of the newest scan", findings(summary.findings.as_ref())),
    ];
    if let Some(scan) = summary.findings.as_ref() {
        rows.push(("Scanned", time(scan.report_time.as_ref())));
    }
    rows.push(("Also in", text(&shared(image.shared_with))));
    html! {
        (facts(&rows))
        pre tabindex="0" data-copy { code { "docker pull " (host) "/" (repo) "@" (summary.digest) } }
    }
}

fn members(repo: &str, image: &ImageDetail) -> Markup {
    let row = |member: &bowline_contract::bowline::registry::v1::IndexMember| {
        let name = if member.platform.is_empty() { &member.digest } else { &member.platform };
        vec![
            if member.present {
                link("/console/image", &[("repo", repo), ("digest", &member.digest)], name)
            } else {
                text(name)
            },
            digest(&member.digest),
            text(&bytes(member.size)),
            yes(member.present),
        ]
    };
    let rows: Vec<_> = image.members.iter().map(row).collect();
    table("Images of this index", &["Platform", "Digest", "Size", "Stored here"], &rows)
}

fn layers(image: &ImageDetail) -> Markup {
    let rows: Vec<_> = (1..)
        .zip(&image.layers)
        .map(|(number, layer): (i32, _)| {
            vec![text(&number.to_string()), digest(&layer.digest), text(&bytes(layer.size)), code(&layer.media_type)]
        })
        .collect();
    table("Layers, from the bottom", &["Number", "Digest", "Size, compressed", "Type"], &rows)
}

fn history(image: &ImageDetail) -> Markup {
    html! {
        ol {
            @for step in &image.history {
                li {
                    code { (step.created_by) }
                    @if step.empty_layer { " " span.small { "(no layer)" } }
                    @if !step.comment.is_empty() { br; span.small { bdi { (step.comment) } } }
                }
            }
        }
    }
}

fn referrers(repo: &str, image: &ImageDetail) -> Markup {
    if image.referrers.is_empty() {
        return html! { p.empty { "Nothing is attached: no signature, SBOM or report." } };
    }
    let rows: Vec<_> = image
        .referrers
        .iter()
        .map(|one| {
            vec![
                link("/console/image", &[("repo", repo), ("digest", &one.digest)], &one.artifact_type),
                digest(&one.digest),
                text(&bytes(one.size)),
                time(one.push_time.as_ref()),
            ]
        })
        .collect();
    table("What refers to this image", &["Type", "Digest", "Size", "Pushed"], &rows)
}

/// The JSON of an image's configuration, member by member. Values of variables that look like secrets are left out.
fn run_config(json: &str) -> Markup {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(json) else {
        return html! { pre tabindex="0" { code { (json) } } };
    };
    let shown = |value: &Value| match value {
        Value::String(text) => html! { (code(text)) },
        Value::Array(items) => html! { ul.plain { @for item in items { li { (code(&masked(item))) } } } },
        other => html! { (code(&other.to_string())) },
    };
    let rows: Vec<(&str, Markup)> = members.iter().map(|(name, value)| (name.as_str(), shown(value))).collect();
    if rows.is_empty() { none() } else { facts(&rows) }
}

fn masked(item: &Value) -> String {
    let Some(text) = item.as_str() else { return item.to_string() };
    let Some((name, _)) = text.split_once('=') else { return text.to_owned() };
    let upper = name.to_ascii_uppercase();
    if SECRETS.iter().any(|word| upper.contains(word)) { format!("{name}=(not shown)") } else { text.to_owned() }
}

fn package_table(packages: &[bowline_contract::bowline::registry::v1::ImagePackage]) -> Markup {
    table("Packages of the SBOM", &PACKAGE_HEADS, &packages.iter().map(package_row).collect::<Vec<_>>())
}

const PACKAGE_HEADS: [&str; 5] = ["Name", "Version", "License", "From", "Package URL"];

fn package_row(package: &bowline_contract::bowline::registry::v1::ImagePackage) -> Vec<Markup> {
    vec![
        text(&package.name),
        code(&package.version),
        text(&package.license),
        text(&package.origin),
        code(&package.purl),
    ]
}

/// All packages of an image.
pub(super) async fn packages(visit: &mut Visit) -> Result<Content> {
    let (repo, digest) = (required(visit, "repo")?, required(visit, "digest")?);
    let request = ListPackagesRequest {
        repo_uid: repo.clone(),
        digest: digest.clone(),
        query: visit.query.text("q"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListPackagesRequest::default()
    };
    let response = visit.call::<ListPackages>(request).await?;
    let list = List {
        caption: "Packages of the SBOM",
        heads: &PACKAGE_HEADS,
        rows: response.packages.iter().map(package_row).collect(),
        next: &response.next_page_token,
        total: Some(response.total_count),
        empty: "The SBOM of this image names no package.",
        filters: &["q"],
    };
    let fields = [Field::Text { name: "q", label: "Name contains" }];
    let body = html! { (filters(visit, &["repo", "digest"], &fields)) (list.render(visit)) };
    Ok(Content::new("Packages of an image", body)
        .below(address("/console/repository", &[("uid", &repo)]), "Repository")
        .below(address("/console/image", &[("repo", &repo), ("digest", &digest)]), "Image"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_look_like_secrets_are_left_out() {
        let config = r#"{"Env":["PATH=/bin","DB_PASSWORD=hunter2","api_key=abc"],"User":"<b>"}"#;
        let shown = run_config(config).into_string();
        assert!(shown.contains("PATH=/bin") && shown.contains("DB_PASSWORD=(not shown)"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("abc") && !shown.contains("<b>"), "{shown}");
    }
}
