//! Which images contain something: a package below a version, a license, a vulnerability.

use bowline_contract::bowline::registry::v1::rpc::components::{FindImages, ListLicenses, ListUnindexedSboms};
use bowline_contract::bowline::registry::v1::{
    FindImagesRequest, ImageMatch, LicenseUse, ListLicensesRequest, ListUnindexedSbomsRequest, UnindexedReason,
    UnindexedSbom,
};
use bowline_core::Result;
use maud::{Markup, html};

use super::findings::{choose, scope};
use crate::components::{Field, List, filters, link};
use crate::query::address;
use crate::shell::Content;
use crate::values::{code, count, digest, none, text, words};
use crate::visit::{ROWS, Visit};

/// Conditions of the search, by the names of the request's fields.
const CONDITIONS: [&str; 5] = ["package", "below", "license", "cve", "digest"];
const FIELDS: [Field<'_>; 5] = [
    Field::Text { name: "package", label: "Package URL, such as pkg:npm/lodash" },
    Field::Text { name: "below", label: "Below version" },
    Field::Text { name: "license", label: "License" },
    Field::Text { name: "cve", label: "Vulnerability" },
    Field::Text { name: "digest", label: "Digest" },
];

/// Images with a component, a license or a vulnerability, in a group and below.
pub(super) async fn images(visit: &mut Visit) -> Result<Content> {
    let Some(scope) = scope(visit) else { return Ok(choose("Find images")) };
    let form = filters(visit, &["in"], &FIELDS);
    if CONDITIONS.iter().all(|name| visit.query.text(name).is_empty()) {
        let body = html! {
            p { "Give one condition at least; all that are given hold. Components come from the SBOMs that are attached to images." }
            (form)
            p { (link("/console/licenses", &[("in", &scope)], "Licenses of all components")) }
        };
        return Ok(Content::new("Find images", body));
    }
    let request = FindImagesRequest {
        scope: scope.clone(),
        package: visit.query.text("package"),
        below: visit.query.text("below"),
        license: visit.query.text("license"),
        cve: visit.query.text("cve"),
        digest: visit.query.text("digest"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
    };
    let response = visit.call::<FindImages>(request).await?;
    let list = List {
        caption: "Images that match",
        heads: &["Image", "Tags", "Component", "Version", "License", "Package URL"],
        rows: response.matches.iter().map(match_row).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "No image here matches.",
        filters: &CONDITIONS,
    };
    let body = html! { (form) (unindexed_notice(&scope, response.unindexed_sboms)) (list.render(visit)) };
    Ok(Content::new("Find images", body))
}

/// What a search cannot see: an empty list alone would say too much.
pub(super) fn unindexed_notice(scope: &str, sboms: i32) -> Markup {
    html! {
        @if sboms > 0 {
            p.notice {
                (count(sboms.into(), "SBOM is", "SBOMs are")) " not indexed, so that their images may match too: "
                (link("/console/unindexed-sboms", &[("in", scope)], "see why")) "."
            }
        }
    }
}

/// Says how many components no record was compared with.
pub(super) fn uncompared_notice(components: i32) -> Markup {
    html! {
        @if components > 0 {
            p.notice {
                (count(components.into(), "component has", "components have"))
                " no version, or no release of a distribution that is known here, and may be vulnerable too."
            }
        }
    }
}

fn match_row(found: &ImageMatch) -> Vec<Markup> {
    let image = [("repo", found.repo_uid.as_str()), ("digest", &found.digest)];
    vec![
        html! { (link("/console/image", &image, &found.repo_name)) " " (digest(&found.digest)) },
        text(&found.tags.join(", ")),
        text(&found.component),
        code(&found.version),
        text(&found.license),
        code(&found.purl),
    ]
}

/// The licenses of all components in a group and below.
pub(super) async fn licenses(visit: &mut Visit) -> Result<Content> {
    let Some(scope) = scope(visit) else { return Ok(choose("Licenses")) };
    let request = ListLicensesRequest { scope: scope.clone(), page_size: ROWS, page_token: visit.query.text("page") };
    let response = visit.call::<ListLicenses>(request).await?;
    let list = List {
        caption: "Licenses",
        heads: &["License", "Packages", "Images"],
        rows: response.licenses.iter().map(|license| license_row(&scope, license)).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "No image here has an SBOM with components.",
        filters: &[],
    };
    Ok(Content::new("Licenses", list.render(visit)).below(address("/console/find", &[("in", &scope)]), "Find images"))
}

fn license_row(scope: &str, one: &LicenseUse) -> Vec<Markup> {
    let license = if one.license.is_empty() {
        none()
    } else {
        link("/console/find", &[("in", scope), ("license", &one.license)], &one.license)
    };
    vec![license, text(&one.packages.to_string()), text(&one.images.to_string())]
}

/// SBOMs that searches do not find, with the reasons.
pub(super) async fn unindexed(visit: &mut Visit) -> Result<Content> {
    let Some(scope) = scope(visit) else { return Ok(choose("SBOMs that are not indexed")) };
    let request =
        ListUnindexedSbomsRequest { scope: scope.clone(), page_size: ROWS, page_token: visit.query.text("page") };
    let response = visit.call::<ListUnindexedSboms>(request).await?;
    let list = List {
        caption: "SBOMs that are not indexed",
        heads: &["Repository", "SBOM", "Why"],
        rows: response.sboms.iter().map(unindexed_row).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "Every SBOM here is indexed.",
        filters: &[],
    };
    Ok(Content::new("SBOMs that are not indexed", list.render(visit))
        .below(address("/console/find", &[("in", &scope)]), "Find images"))
}

fn unindexed_row(sbom: &UnindexedSbom) -> Vec<Markup> {
    let reason = UnindexedReason::try_from(sbom.reason).unwrap_or_default();
    vec![
        link("/console/repository", &[("uid", &sbom.repo_uid)], &sbom.repo_name),
        digest(&sbom.digest),
        text(&words(reason.as_str_name(), "UNINDEXED_REASON_")),
    ]
}
