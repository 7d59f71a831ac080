use bowline_contract::v2::libraries::rpc::artifacts_service::{ListArtifactVersions, ListArtifacts};
use bowline_contract::v2::libraries::{Artifact, Ecosystem, ListArtifactVersionsRequest, ListArtifactsRequest};
use bowline_core::Result;
use maud::{Markup, html};

use super::required;
use crate::components::{Field, List, filters, link};
use crate::shell::Content;
use crate::values::{bytes, code, text, time, words};
use crate::visit::{ROWS, Visit};

const ECOSYSTEMS: [(&str, &str); 3] = [("", "all"), ("ECOSYSTEM_JAVA", "Java"), ("ECOSYSTEM_PYTHON", "Python")];

/// Lists name what they are of.
const ALL: [Ecosystem; 2] = [Ecosystem::Java, Ecosystem::Python];

/// Packages that this server knows.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let ecosystem =
        visit.query.get("ecosystem").and_then(Ecosystem::from_str_name).filter(|one| *one != Ecosystem::Unspecified);
    let request = ListArtifactsRequest {
        ecosystems: ecosystem.map_or(ALL.to_vec(), |one| vec![one]).into_iter().map(i32::from).collect(),
        query: visit.query.text("q"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListArtifactsRequest::default()
    };
    let response = visit.call::<ListArtifacts>(request).await?;
    let list = List {
        caption: "Packages",
        heads: &["Name", "Ecosystem", "Latest version", "Versions", "Changed"],
        rows: response.artifacts.iter().map(row).collect(),
        next: &response.next_page_token,
        total: Some(response.total_count),
        empty: "There is no package that you may see. An operator imports them.",
        filters: &["q", "ecosystem"],
    };
    let fields = [
        Field::Text { name: "q", label: "Name contains" },
        Field::Choice { name: "ecosystem", label: "Ecosystem", options: &ECOSYSTEMS },
    ];
    Ok(Content::new("Packages", html! { (filters(visit, &["in"], &fields)) (list.render(visit)) }))
}

fn row(package: &Artifact) -> Vec<Markup> {
    let ecosystem = Ecosystem::try_from(package.ecosystem).unwrap_or_default();
    vec![
        html! {
            (link("/console/package", &[("id", &package.uid)], &package.name))
            @if !package.description.trim().is_empty() { br; span.small { (text(&package.description)) } }
        },
        text(&words(ecosystem.as_str_name(), "ECOSYSTEM_")),
        code(&package.latest_version),
        text(&package.version_count.to_string()),
        time(package.update_time.as_ref()),
    ]
}

/// The versions of a package.
pub(super) async fn versions(visit: &mut Visit) -> Result<Content> {
    let request = ListArtifactVersionsRequest {
        artifact_id: required(visit, "id")?,
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListArtifactVersionsRequest::default()
    };
    let response = visit.call::<ListArtifactVersions>(request).await?;
    let row = |version: &bowline_contract::v2::libraries::ArtifactVersion| {
        vec![
            code(&version.version),
            text(&version.description),
            text(&bytes(version.size_bytes)),
            time(version.create_time.as_ref()),
        ]
    };
    let list = List {
        caption: "Versions",
        heads: &["Version", "Description", "Size", "Created"],
        rows: response.artifact_versions.iter().map(row).collect(),
        next: &response.next_page_token,
        total: Some(response.total_count),
        empty: "This package has no version that you may see.",
        filters: &[],
    };
    // The name as the responses have it: that of an address is whatever a link says.
    let name = response.artifact_versions.first().map_or("Package", |version| version.name.as_str());
    let title = if name.is_empty() { "Package" } else { name };
    Ok(Content::new(title, list.render(visit)).below("/console/packages".to_owned(), "Packages"))
}
