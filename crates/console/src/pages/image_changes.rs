use std::collections::{BTreeSet, HashMap};

use bowline_contract::bowline::registry::v1::rpc::images::CompareImages;
use bowline_contract::bowline::registry::v1::rpc::registry_policies::{GetEffectivePolicy, ListRetentionRuns};
use bowline_contract::bowline::registry::v1::{
    CompareImagesRequest, ConfigChange, EffectivePolicy, GetEffectivePolicyRequest, ImageComparison,
    ListRetentionRunsRequest, PackageChange, RetentionRun,
};
use bowline_contract::v1::registry::rpc::registry::ListTagHistory;
use bowline_contract::v1::registry::{TagHistory, TagHistoryFilter};
use bowline_core::{Micros, Result};
use maud::{Markup, html};

use super::{parent, part, required};
use crate::chart;
use crate::components::{Field, MAX_ROWS, facts, filters, link, more, refused, section, table};
use crate::query::address;
use crate::secrets::{masked, masked_member};
use crate::shell::Content;
use crate::values::{badge, beginning, bytes, code, count, day, none, text, time, yes};
use crate::visit::Visit;

/// What a tag named when.
pub(super) async fn tag_history(visit: &mut Visit) -> Result<Content> {
    let tag = required(visit, "tag")?;
    let request = TagHistoryFilter { parent_id: tag.clone(), ..TagHistoryFilter::default() };
    let response = visit.call::<ListTagHistory>(request).await?;
    let repo = parent(&tag);
    let mut times: HashMap<&str, usize> = HashMap::new();
    for one in &response.items {
        *times.entry(&one.digest).or_default() += 1;
    }
    let is_again = |one: &TagHistory| times.get(one.digest.as_str()).is_some_and(|times| *times > 1);
    let rows: Vec<_> = response.items.iter().take(MAX_ROWS).map(|one| moved(repo, is_again(one), one)).collect();
    let body = html! {
        @if rows.is_empty() { p.empty { "This tag has not been moved." } } @else {
            (line(&response.items, visit.app.now()))
            (table("What the tag named", &["Digest", "Since", "Again"], &rows))
            (more(response.items.len()))
        }
    };
    Ok(Content::new("History of a tag", body)
        .below(address("/console/repository", &[("uid", repo)]), "Repository")
        .below(address("/console/tags", &[("repo", repo)]), "Tags"))
}

/// The newest moves of a tag as a line of steps, the newest digests above.
fn line(moves: &[TagHistory], now: Micros) -> Markup {
    let one = |one: &TagHistory| chart::Move {
        at: one.update_timestamp.as_ref().map_or(0, |time| time.seconds),
        when: day(one.update_timestamp.as_ref()),
        value: one.digest.split_once(':').map_or(one.digest.as_str(), |(_, hex)| beginning(hex, 12)).to_owned(),
    };
    let mut ordered: Vec<&TagHistory> = moves.iter().rev().collect();
    ordered.sort_by_key(|one| one.update_timestamp.as_ref().map(|time| (time.seconds, time.nanos)));
    let drawn: Vec<_> = ordered.iter().skip(ordered.len().saturating_sub(MAX_ROWS)).copied().map(one).collect();
    let named: BTreeSet<&str> = moves.iter().map(|one| one.digest.as_str()).collect();
    let finding = format!(
        "{}, {}.",
        count(moves.len() as i64, "move", "moves"),
        count(named.len() as i64, "different digest", "different digests")
    );
    let figure =
        chart::Figure { id: "moves", title: "What the tag named when (UTC)", finding: &finding, numbers: None };
    chart::steps(&figure, &drawn, now / 1_000_000)
}

/// One move of a tag. A digest that it named more than once was rolled back to.
fn moved(repo: &str, is_again: bool, one: &TagHistory) -> Vec<Markup> {
    vec![
        link("/console/image", &[("repo", repo), ("digest", &one.digest)], &one.digest),
        time(one.update_timestamp.as_ref()),
        if is_again { badge("plain", "more than once") } else { none() },
    ]
}

/// What differs between two images of a repository.
pub(super) async fn compare(visit: &mut Visit) -> Result<Content> {
    let repo = required(visit, "repo")?;
    let fields = [
        Field::Text { name: "from", label: "Digest of the older one" },
        Field::Text { name: "to", label: "Of the newer one" },
    ];
    let form = filters(visit, &["repo"], &fields);
    let (from_digest, to_digest) = (visit.query.text("from"), visit.query.text("to"));
    let content = |body| {
        Content::new("Compare images", body).below(address("/console/repository", &[("uid", &repo)]), "Repository")
    };
    if from_digest.is_empty() || to_digest.is_empty() {
        return Ok(content(html! { (form) p.empty { "Name two digests of this repository." } }));
    }
    let request = CompareImagesRequest { repo_uid: repo.clone(), from_digest, to_digest };
    let comparison = visit.call::<CompareImages>(request).await?;
    Ok(content(html! { (form) (differences(&comparison)) }))
}

fn differences(comparison: &ImageComparison) -> Markup {
    let growth = comparison.to_size - comparison.from_size;
    let names = |names: &[String]| {
        let shown: Vec<&str> = names.iter().take(MAX_ROWS).map(String::as_str).collect();
        html! {
            @if shown.is_empty() { (none()) } @else { ul.plain { @for name in shown { li { (code(name)) } } } }
            (more(names.len()))
        }
    };
    let about = facts(&[
        ("Size", text(&format!("{} to {}", bytes(comparison.from_size), bytes(comparison.to_size)))),
        ("Grows by", text(&if growth < 0 { format!("-{}", bytes(-growth)) } else { bytes(growth) })),
        ("Layers in both", text(&comparison.shared_layers.to_string())),
    ]);
    let packages: Vec<_> = comparison.packages.iter().take(MAX_ROWS).map(package).collect();
    let configuration: Vec<_> = comparison.configuration.iter().take(MAX_ROWS).map(configured).collect();
    html! {
        (about)
        (section("added", "Findings that are new", &names(&comparison.findings_added)))
        (section("removed", "Findings that are gone", &names(&comparison.findings_removed)))
        (section("packages", "Packages", &html! {
            @if comparison.has_packages.contains(&false) { p.notice { "One of the images has no SBOM." } }
            @if packages.is_empty() { p.empty { "No package differs." } } @else {
                (table("Packages that differ", &["Name", "Before", "After"], &packages))
                (more(comparison.packages.len()))
            }
        }))
        (section("configuration", "Configuration", &html! {
            @if configuration.is_empty() { p.empty { "The configuration does not differ." } } @else {
                (table("Members that differ", &["Name", "Before", "After"], &configuration))
                (more(comparison.configuration.len()))
            }
        }))
    }
}

fn package(change: &PackageChange) -> Vec<Markup> {
    vec![text(&change.name), code(&change.from_version), code(&change.to_version)]
}

fn configured(change: &ConfigChange) -> Vec<Markup> {
    let shown = |json: &str| if json.is_empty() { none() } else { code(&masked_member(&change.name, json)) };
    vec![text(&change.name), shown(&change.from), shown(&change.to)]
}

/// The policy that a repository has, with the group that each part comes from, and what retention removed.
pub(super) async fn policy(visit: &mut Visit) -> Result<Content> {
    let repo = required(visit, "repo")?;
    let request = GetEffectivePolicyRequest { repo_uid: repo.clone() };
    let policy = visit.call::<GetEffectivePolicy>(request).await?;
    let runs = part(visit.call::<ListRetentionRuns>(ListRetentionRunsRequest { repo_uid: repo.clone() }).await)?;
    let body = html! {
        (effective(&repo, &policy))
        (section("runs", "What retention removed", &match &runs {
            Ok(response) if response.runs.is_empty() => html! { p.empty { "Retention has not run here." } },
            Ok(response) => {
                let rows: Vec<_> = response.runs.iter().take(MAX_ROWS).map(run).collect();
                table("Runs, the newest first", &["When", "Images", "Tags", "Bytes", "Stayed"], &rows)
            }
            Err(error) => refused(error, visit.last_method()),
        }))
    };
    Ok(Content::new("Policy of a repository", body)
        .below(address("/console/repository", &[("uid", &repo)]), "Repository"))
}

fn effective(repo: &str, policy: &EffectivePolicy) -> Markup {
    let from = |uid: &str| match uid {
        "" => html! {},
        uid if uid == repo => html! { " (of this repository)" },
        uid => html! { " (of " (link("/console/group", &[("uid", uid)], uid)) ")" },
    };
    let list = |items: Vec<Markup>| html! { @if items.is_empty() { (none()) } @else { ul.plain { @for item in items { li { (item) } } } } };
    let immutable = policy.immutable_tag_patterns.iter();
    let immutable = immutable.map(|one| html! { (code(&one.patterns.join(", "))) (from(&one.from)) }).collect();
    let quotas = policy.byte_quotas.iter().map(|one| html! { (text(&bytes(one.bytes))) (from(&one.from)) }).collect();
    let retention = policy.retention.as_ref().map_or_else(none, |rules| {
        html! {
            "the last " (rules.keep_last) ", those of " (rules.keep_days) " days"
            @if !rules.keep_patterns.is_empty() { ", and " (code(&rules.keep_patterns.join(", "))) }
            (from(&policy.retention_from))
        }
    });
    let upstream = policy.upstream.as_ref().map_or_else(none, |upstream| {
        html! { (code(&masked(&upstream.url))) " " (text(&upstream.tag_patterns.join(", "))) (from(&upstream.from)) }
    });
    facts(&[
        ("Public", html! { (yes(policy.public)) (from(&policy.public_from)) }),
        ("Tags that stay", list(immutable)),
        ("Quotas", list(quotas)),
        ("Retention keeps", retention),
        ("Upstream", upstream),
    ])
}

fn run(run: &RetentionRun) -> Vec<Markup> {
    vec![
        time(run.time.as_ref()),
        text(&run.removed.to_string()),
        text(&run.removed_tags.to_string()),
        text(&bytes(run.removed_bytes)),
        text(&run.kept.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_decides_little_about_the_size_of_its_picture() {
        let moves: Vec<TagHistory> = (0..40_000)
            .map(|number| TagHistory {
                digest: format!("sha256:{:064}", number % 2),
                update_timestamp: Some(prost_types::Timestamp { seconds: number, nanos: 0 }),
            })
            .collect();
        let picture = line(&moves, 50_000_000_000).into_string();
        assert!(picture.len() < 64 << 10, "{}", picture.len());
        assert!(picture.contains("40000 moves, 2 different digests."), "{}", &picture[..400]);
    }
}
