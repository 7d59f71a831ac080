use bowline_contract::bowline::registry::v1::rpc::images::{GetImage, ListPackages};
use bowline_contract::bowline::registry::v1::{
    GetImageRequest, HistoryStep, ImageDetail, ImageSummary, IndexMember, ListPackagesRequest,
};
use bowline_core::{Code, Result};
use maud::{Markup, html};
use serde_json::Value;

use super::repositories::{attached, findings, shared};
use super::{part, required};
use crate::components::{Field, List, MAX_ROWS, facts, filters, link, more, refused, section, table};
use crate::query::address;
use crate::secrets::{masked, masked_json, masked_step};
use crate::shell::Content;
use crate::values::{MAX_BLOCK, MAX_VALUE, beginning, block, bytes, code, digest, none, text, time, yes};
use crate::visit::{ROWS, Visit};

/// Packages on the page of the image; all of them have a page of their own.
const SOME_PACKAGES: i32 = 10;
const NO_SBOM: &str = "No SBOM is attached to this image.";
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
    let row = |member: &IndexMember| {
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
    let rows: Vec<_> = image.members.iter().take(MAX_ROWS).map(row).collect();
    let heads = ["Platform", "Digest", "Size", "Stored here"];
    html! { (table("Images of this index", &heads, &rows)) (more(image.members.len())) }
}

fn layers(image: &ImageDetail) -> Markup {
    let rows: Vec<_> = (1..)
        .zip(&image.layers)
        .take(MAX_ROWS)
        .map(|(number, layer): (i32, _)| {
            vec![text(&number.to_string()), digest(&layer.digest), text(&bytes(layer.size)), code(&layer.media_type)]
        })
        .collect();
    let heads = ["Number", "Digest", "Size, compressed", "Type"];
    html! { (table("Layers, from the bottom", &heads, &rows)) (more(image.layers.len())) }
}

/// The steps that fit into a block. Commands that look like they set secrets are masked, as in the configuration.
fn history(image: &ImageDetail) -> Markup {
    let mut room = MAX_BLOCK;
    let fits = |step: &&HistoryStep| {
        let bytes = step.created_by.len() + step.comment.len();
        room = room.saturating_sub(bytes.clamp(64, 2 * MAX_VALUE));
        room > 0
    };
    let shown: Vec<&HistoryStep> = image.history.iter().take_while(fits).collect();
    html! {
        ol {
            @for step in &shown {
                li {
                    (code(&masked_step(beginning(&step.created_by, 2 * MAX_VALUE))))
                    @if step.empty_layer { " " span.small { "(no layer)" } }
                    @if !step.comment.is_empty() { br; span.small { (text(&masked(beginning(&step.comment, 2 * MAX_VALUE)))) } }
                }
            }
        }
        @if shown.len() < image.history.len() {
            p.small { "These are the first " (shown.len()) " of " (image.history.len()) " steps." }
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
        .take(MAX_ROWS)
        .map(|one| {
            vec![
                link("/console/image", &[("repo", repo), ("digest", &one.digest)], &one.artifact_type),
                digest(&one.digest),
                text(&bytes(one.size)),
                time(one.push_time.as_ref()),
            ]
        })
        .collect();
    let heads = ["Type", "Digest", "Size", "Pushed"];
    html! { (table("What refers to this image", &heads, &rows)) (more(image.referrers.len())) }
}

/// The JSON of an image's configuration, member by member. What looks like a secret is left out.
fn run_config(json: &str) -> Markup {
    if json.len() > MAX_BLOCK {
        return html! { p.empty { "The configuration is too large to show: read it with a call below." } };
    }
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(json) else {
        return block(&masked(json));
    };
    let shown = |name: &str, value: &Value| match masked_json(name, value) {
        Value::String(text) => html! { (code(&text)) },
        Value::Array(items) => html! { ul.plain { @for item in items { li { (code(&plain(&item))) } } } },
        other => html! { (code(&other.to_string())) },
    };
    let rows: Vec<(&str, Markup)> =
        members.iter().map(|(name, value)| (beginning(name, MAX_VALUE), shown(name, value))).collect();
    if rows.is_empty() { none() } else { facts(&rows) }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
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
        let config = r#"{"Env":["PATH=/bin","DB_PASSWORD=hunter2","api_key=abc"],"User":"<b>",
            "Labels":{"token":"abc","note":"NPM_TOKEN=abc"},"Healthcheck":{"Test":["CMD","curl","http://u:abc@h/"]}}"#;
        let shown = run_config(config).into_string();
        assert!(shown.contains("PATH=/bin") && shown.contains("DB_PASSWORD=(not shown)"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("abc") && !shown.contains("<b>"), "{shown}");
        let step = HistoryStep {
            created_by: "RUN |1 NPM_TOKEN=hunter2 /bin/sh -c npm ci".into(),
            comment: "see https://u:hunter2@git.example/x".into(),
            ..HistoryStep::default()
        };
        let shown = history(&ImageDetail { history: vec![step], ..ImageDetail::default() }).into_string();
        assert!(shown.contains("npm ci") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn an_image_decides_little_about_the_size_of_its_page() {
        let quotes = "\"".repeat(4 << 20);
        let long = HistoryStep { created_by: quotes.clone(), comment: quotes.clone(), ..HistoryStep::default() };
        let many = HistoryStep { created_by: quotes[..100].into(), ..HistoryStep::default() };
        for history in [vec![long], vec![many; 40_000]] {
            let shown = super::history(&ImageDetail { history, ..ImageDetail::default() }).into_string();
            assert!(shown.len() < 1 << 20, "{}", shown.len());
        }
        assert!(run_config(&format!("[{quotes:?}]")).into_string().len() < 1000);
        let member = IndexMember { digest: "sha256:ab".into(), ..IndexMember::default() };
        let index = ImageDetail { members: vec![member; 20_000], ..ImageDetail::default() };
        let shown = members("repo", &index).into_string();
        assert!(shown.len() < 1 << 20 && shown.contains("first 200 of 20000"), "{}", shown.len());
    }
}
