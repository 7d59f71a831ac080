//! What screens and commands ask for in one call: search, images and statistics.

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::{components, images, statistics};
use bowline_contract::bowline::search::v1 as search;
use bowline_contract::bowline::search::v1::rpc::search::Search;

use super::{Aim, Row, anybody, at, default};
use crate::contents;
use crate::fixture::Kind;
use crate::oracle::OK;

/// The image that every repository of the fixture has.
fn digest() -> String {
    contents::digest('a')
}

pub(super) fn rows() -> Vec<Row> {
    // `behaviour/search.rs` checks what each caller is shown.
    let query = |aim: &Aim<'_>| search::SearchRequest { query: "web".into(), scope: aim.group(), ..default() };
    let mut rows = vec![anybody::<Search>(OK, query)];
    rows.extend(of_images());
    rows.extend(of_components());
    rows.extend(of_statistics());
    rows
}

fn of_images() -> Vec<Row> {
    let repo = |aim: &Aim<'_>| aim.uid(Kind::Repo);
    vec![
        // `behaviour/repo_search.rs` checks what each caller is shown.
        anybody::<images::SearchRepos>(OK, |aim| own::SearchReposRequest { scope: aim.group(), ..default() }),
        at::<images::ListImages>(move |aim| own::ListImagesRequest { repo_uid: repo(aim), ..default() }),
        at::<images::GetImage>(move |aim| own::GetImageRequest { repo_uid: repo(aim), digest: digest() }),
        // The image has no SBOM.
        Row {
            let_through: crate::oracle::NOT_FOUND,
            ..at::<images::ListPackages>(move |aim| own::ListPackagesRequest {
                repo_uid: repo(aim),
                digest: digest(),
                ..default()
            })
        },
        at::<images::CompareImages>(move |aim| own::CompareImagesRequest {
            repo_uid: repo(aim),
            from_digest: digest(),
            to_digest: digest(),
        }),
        at::<images::PreviewDelete>(move |aim| own::PreviewDeleteRequest {
            repo_uid: repo(aim),
            digests: vec![digest()],
            tags: Vec::new(),
        }),
        Row {
            // What other rows read stays.
            let_through: crate::oracle::NOT_FOUND,
            ..at::<images::DeleteImages>(move |aim| own::DeleteImagesRequest {
                repo_uid: repo(aim),
                digests: vec![contents::digest('9')],
                tags: Vec::new(),
            })
        },
    ]
}

/// `registry/components.rs` checks what each caller is shown.
fn of_components() -> Vec<Row> {
    vec![
        anybody::<components::FindImages>(OK, |aim| own::FindImagesRequest {
            scope: aim.group(),
            digest: digest(),
            ..default()
        }),
        anybody::<components::ListLicenses>(OK, |aim| own::ListLicensesRequest { scope: aim.group(), ..default() }),
        anybody::<components::ListUnindexedSboms>(OK, |aim| own::ListUnindexedSbomsRequest {
            scope: aim.group(),
            ..default()
        }),
    ]
}

fn of_statistics() -> Vec<Row> {
    vec![
        at::<statistics::GetUsage>(|aim| own::GetUsageRequest { scope: aim.group() }),
        at::<statistics::ListTopUsage>(|aim| own::ListTopUsageRequest { scope: aim.group(), ..default() }),
        at::<statistics::ListActivity>(|aim| own::ListActivityRequest { scope: aim.group(), ..default() }),
    ]
}
