use bowline_contract::bowline::registry::v1::rpc::images::{ListImages, SearchRepos};
use bowline_contract::bowline::registry::v1::rpc::statistics::ListActivity;
use bowline_contract::bowline::registry::v1::{
    FindingCounts, ImageSummary, ListActivityRequest, ListImagesRequest, ListImagesResponse, RepoSummary,
    SearchReposRequest,
};
use bowline_contract::v1::registry::rpc::registry::UpdateTag;
use bowline_contract::v2::registry::rpc::repos_service::GetRepo;
use bowline_contract::v2::registry::rpc::tags_service::{DeleteTag, ListTags};
use bowline_contract::v2::registry::{GetRepoRequest, ListTagsRequest, Repo, Tag};
use bowline_core::Result;
use maud::{Markup, html};

use super::{below, overview, parent, part, required};
use crate::components::{Field, List, action, edit, facts, filters, link, refused, section};
use crate::query::address;
use crate::shell::Content;
use crate::values::{badge, bytes, code, count, digest, none, text, time, yes};
use crate::visit::{ROWS, Visit};

const REPO_ORDERS: [(&str, &str); 5] = [
    ("", "name"),
    ("name desc", "name, backwards"),
    ("push_time desc", "last push"),
    ("pull_time desc", "last pull"),
    ("size desc", "size"),
];
const IMAGE_ORDERS: [(&str, &str); 4] =
    [("", "last push"), ("pull_time desc", "last pull"), ("name asc", "name"), ("size desc", "size")];

/// Repositories in a group and below, or all visible ones.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let request = SearchReposRequest {
        scope: visit.scope(),
        query: visit.query.text("q"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        order_by: visit.query.text("order"),
    };
    let response = visit.call::<SearchRepos>(request).await?;
    let list = List {
        caption: "Repositories",
        heads: &["Name", "Tags", "Size", "Last push", "Last pull", "Pulls, 30 days"],
        rows: response.repos.iter().map(row).collect(),
        next: &response.next_page_token,
        total: Some(response.total_count),
        empty: "There is no repository that you may see here. The first push makes one.",
        filters: &["q"],
    };
    let fields = [
        Field::Text { name: "q", label: "Name contains" },
        Field::Choice { name: "order", label: "Order by", options: &REPO_ORDERS },
    ];
    let body = html! {
        (filters(visit, &["in"], &fields))
        @if response.incomplete { p.notice { "There may be more: choose a group, or search for a longer text." } }
        (list.render(visit))
    };
    Ok(Content::new("Repositories", body))
}

fn row(repo: &RepoSummary) -> Vec<Markup> {
    let name = html! {
        (link("/console/repository", &[("uid", &repo.uid)], &repo.name))
        @if !repo.description.trim().is_empty() { br; span.small { (text(&repo.description)) } }
    };
    let pulls: i64 = repo.pulls_by_day.iter().sum();
    vec![
        name,
        text(&repo.tags.to_string()),
        text(&bytes(repo.size)),
        time(repo.push_time.as_ref()),
        time(repo.pull_time.as_ref()),
        html! { (pulls) " " (sparkline(&repo.pulls_by_day)) },
    ]
}

/// Bars of a series, without words: the number beside them says the sum.
fn sparkline(days: &[i64]) -> Markup {
    let most = days.iter().copied().max().unwrap_or(0);
    html! {
        @if most > 0 {
            svg width="90" height="18" viewBox="0 0 90 18" aria-hidden="true" focusable="false" {
                @for (at, amount) in days.iter().enumerate() {
                    @let height = (amount.max(&0) * 18 + most - 1) / most;
                    rect x=(at * 3) y=(18 - height) width="2" height=(height) fill="currentColor" {}
                }
            }
        }
    }
}

/// One repository and its images.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let uid = required(visit, "uid")?;
    let repo = visit.call::<GetRepo>(GetRepoRequest { uid: uid.clone() }).await?;
    let is_untagged = visit.query.get("untagged") == Some("true");
    let request = ListImagesRequest {
        repo_uid: uid.clone(),
        query: visit.query.text("q"),
        untagged: is_untagged,
        page_size: ROWS,
        page_token: visit.query.text("page"),
        order_by: visit.query.text("order"),
    };
    let images = part(visit.call::<ListImages>(request).await)?;
    let method = visit.last_method().map(str::to_owned);
    let pulls = ListActivityRequest { scope: uid.clone(), ..ListActivityRequest::default() };
    let pulls = visit.answer::<ListActivity>(pulls).await?;
    let body = html! {
        (about(&repo))
        (section("pull", "Pull", &pull(visit, &repo)))
        ul.tabs {
            li { a href=(address("/console/tags", &[("repo", &uid)])) { "All tags" } }
            li { a href=(address("/console/compare", &[("repo", &uid)])) { "Compare images" } }
            li { a href=(address("/console/policy", &[("repo", &uid)])) { "Policy" } }
            li { a href=(address("/console/image-policies", &[("uid", &uid)])) { "Image policies" } }
            li { a href=(address("/console/matches", &[("uid", &uid)])) { "Vulnerable components" } }
            li { a href=(address("/console/history", &[("resource", &uid)])) { "Changes" } }
            li { a href=(address("/console/why", &[("scope", &uid)])) { "Why may someone do something here?" } }
        }
        (section("images", "Images", &match &images {
            Ok(response) => images_of(visit, &uid, response),
            Err(error) => refused(error, method.as_deref()),
        }))
        (section("pulls", "Pulls", &overview::shown(&pulls, overview::activity)))
    };
    let group = parent(&uid);
    Ok(Content::new(repo.name, body)
        .below(address("/console/repositories", &[("in", group)]), "Repositories")
        .below(address("/console/group", &[("uid", group)]), "Group"))
}

fn about(repo: &Repo) -> Markup {
    let source = repo.sync_config.as_ref().map(|sync| sync.source.as_str()).filter(|source| !source.is_empty());
    let mut rows = vec![("Description", text(&repo.description)), ("Id", code(&repo.uid))];
    if let Some(source) = source {
        rows.push(("Follows", link("/console/repository", &[("uid", source)], source)));
    }
    if !repo.aliases.is_empty() {
        rows.push(("Aliases", text(&repo.aliases.join(", "))));
    }
    rows.push(("Created", time(repo.create_time.as_ref())));
    rows.push(("Changed", time(repo.update_time.as_ref())));
    facts(&rows)
}

/// The command that pulls by UIDP, which needs no name of a group.
fn pull(visit: &Visit, repo: &Repo) -> Markup {
    let host = &visit.app.api.settings().registry_audience;
    let tag = repo.active_tags.first().map_or("latest", String::as_str);
    html! { pre tabindex="0" data-copy { code { "docker pull " (host) "/" (repo.uid) ":" (tag) } } }
}

fn images_of(visit: &Visit, repo: &str, response: &ListImagesResponse) -> Markup {
    let fields = [
        Field::Text { name: "q", label: "Tag contains, or digest begins with" },
        Field::Choice { name: "untagged", label: "Show", options: &[("", "with a tag"), ("true", "without a tag")] },
        Field::Choice { name: "order", label: "Order by", options: &IMAGE_ORDERS },
    ];
    let list = List {
        caption: "Images",
        heads: &["Tags", "Digest", "Platforms", "Size", "Pushed", "Pulled", "Attached", "Findings"],
        rows: response.images.iter().map(|image| image_row(repo, image)).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "There is no image here yet: push one.",
        filters: &["q", "untagged"],
    };
    html! { (filters(visit, &["uid"], &fields)) (list.render(visit)) }
}

fn image_row(repo: &str, image: &ImageSummary) -> Vec<Markup> {
    let tags = image.tags.join(", ");
    let parameters = [("repo", repo), ("digest", image.digest.as_str())];
    let name = if tags.is_empty() { "no tag" } else { &tags };
    vec![
        link("/console/image", &parameters, name),
        digest(&image.digest),
        kind(image),
        text(&bytes(image.size)),
        time(image.push_time.as_ref()),
        time(image.pull_time.as_ref()),
        attached(image),
        findings(image.findings.as_ref()),
    ]
}

/// The platforms of a container image, the type of another artifact.
fn kind(image: &ImageSummary) -> Markup {
    if image.platforms.is_empty() { code(&image.artifact_type) } else { text(&image.platforms.join(", ")) }
}

/// What is attached to an image.
pub(super) fn attached(image: &ImageSummary) -> Markup {
    let kinds = [(image.signed, "signature"), (image.has_sbom, "SBOM"), (image.has_attestation, "attestation")];
    let is_bare = kinds.iter().all(|(is_there, _)| !is_there);
    html! {
        @if is_bare { (none()) }
        @for (_, name) in kinds.iter().filter(|(is_there, _)| *is_there) { (badge("good", name)) " " }
    }
}

/// Findings by severity, with the letter and the word of each.
pub(super) fn findings(counts: Option<&FindingCounts>) -> Markup {
    let Some(counts) = counts else { return html! { span.none { "no scan" } } };
    let known = [
        (counts.critical, "critical", "bad"),
        (counts.high, "high", "bad"),
        (counts.medium, "medium", "plain"),
        (counts.low, "low", "plain"),
        (counts.negligible, "negligible", "plain"),
        (counts.unknown, "unknown", "plain"),
    ];
    let has_none = known.iter().all(|(number, ..)| *number == 0);
    html! {
        @if has_none { (badge("good", "none found")) }
        @for (number, word, kind) in known.iter().filter(|(number, ..)| *number > 0) {
            (badge(kind, &format!("{number} {word}"))) " "
        }
    }
}

/// The tags of a repository, or of a group, one by one.
pub(super) async fn tags(visit: &mut Visit) -> Result<Content> {
    let repo = required(visit, "repo")?;
    let request = ListTagsRequest {
        uidp: below(&repo),
        name: visit.query.text("name"),
        include_referrers: visit.query.get("referrers") == Some("true"),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListTagsRequest::default()
    };
    let response = visit.call::<ListTags>(request).await?;
    let list = List {
        caption: "Tags",
        heads: &["Tag", "Digest", "Changed", "Deprecated", "Moves", "Pull", "Actions"],
        rows: response.tags.iter().map(|tag| tag_row(visit, tag)).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: "There is no tag here yet: push an image with one.",
        filters: &["name", "referrers"],
    };
    let fields = [
        Field::Text { name: "name", label: "Name (whole)" },
        Field::Choice {
            name: "referrers",
            label: "Tags of signatures and SBOMs",
            options: &[("", "hide"), ("true", "show")],
        },
    ];
    let body = html! { (filters(visit, &["repo"], &fields)) (list.render(visit)) };
    Ok(Content::new("Tags", body).below(address("/console/repository", &[("uid", &repo)]), "Repository"))
}

fn tag_row(visit: &Visit, tag: &Tag) -> Vec<Markup> {
    let repo = parent(&tag.uid);
    let host = &visit.app.api.settings().registry_audience;
    vec![
        link("/console/image", &[("repo", repo), ("digest", &tag.digest)], &tag.name),
        digest(&tag.digest),
        time(tag.update_time.as_ref()),
        yes(tag.deprecated),
        link("/console/tag-history", &[("tag", &tag.uid)], "history"),
        code(&format!("{host}/{repo}:{}", tag.name)),
        html! {
            (edit::<UpdateTag>(visit, "Move", &[("id", &tag.uid), ("name", &tag.name), ("digest", &tag.digest)])) " "
            (action::<DeleteTag>(visit, "Delete", &[("uid", &tag.uid)]))
        },
    ]
}

/// How many images share something.
pub(super) fn shared(number: i32) -> String {
    count(i64::from(number), "other repository", "other repositories")
}
