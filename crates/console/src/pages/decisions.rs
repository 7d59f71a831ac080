use bowline_contract::bowline::libraries::v1::rpc::decisions::{ExplainPackage, GetBlockStatistics};
use bowline_contract::bowline::libraries::v1::{
    BlockStatistics, Decision, ExplainPackageRequest, GetBlockStatisticsRequest, PackageExplanation,
};
use bowline_core::Result;
use maud::{Markup, html};

use super::part;
use super::policies::choose;
use crate::components::{Field, facts, filters, refused, section, table};
use crate::shell::Content;
use crate::values::{badge, code, text, time, yes};
use crate::visit::Visit;

/// What the policies of an organization decide about a package, and what they blocked.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let parent = visit.scope();
    if parent.is_empty() {
        return Ok(choose("Is a package allowed?"));
    }
    let purl = visit.query.text("purl");
    let explanation = if purl.is_empty() {
        None
    } else {
        Some(visit.call::<ExplainPackage>(ExplainPackageRequest { parent: parent.clone(), purl }).await?)
    };
    let request = GetBlockStatisticsRequest { parent, ..GetBlockStatisticsRequest::default() };
    let statistics = part(visit.call::<GetBlockStatistics>(request).await)?;
    let fields = [Field::Text { name: "purl", label: "Package URL, such as pkg:npm/left-pad@1.3.0" }];
    let body = html! {
        (filters(visit, &["in"], &fields))
        @if let Some(explanation) = &explanation { (explained(explanation)) }
        (section("blocked", "What was blocked", &match &statistics {
            Ok(statistics) => blocked(statistics),
            Err(error) => refused(error, visit.last_method()),
        }))
    };
    Ok(Content::new("Is a package allowed?", body))
}

fn explained(explanation: &PackageExplanation) -> Markup {
    let decided = |title: &str, id: &str, decision: Option<&Decision>, policy: &str| {
        html! { @if let Some(decision) = decision { (section(id, title, &decision_of(decision, policy))) } }
    };
    html! {
        (decided("The decision", "decision", explanation.decision.as_ref(), &explanation.policy))
        (decided("What the policy that only logs would decide", "logged", explanation.logged.as_ref(), &explanation.logged_policy))
        @if let Some(exception) = &explanation.exception {
            (section("exception", "An exception is in force", &facts(&[
                ("Why", text(&exception.justification)),
                ("Until", time(exception.expire_time.as_ref())),
            ])))
        }
    }
}

fn decision_of(decision: &Decision, policy: &str) -> Markup {
    facts(&[
        ("Package", code(&decision.purl)),
        ("Decision", if decision.allowed { badge("good", "allowed") } else { badge("bad", "blocked") }),
        ("Why", text(&decision.reason)),
        ("Matched", code(&decision.matched)),
        ("Fixed in", code(&decision.fixed_version)),
        ("Allowed from", time(decision.allowed_time.as_ref())),
        ("Policy", code(policy)),
        ("Known here", yes(decision.known)),
        ("License", text(&decision.license)),
        ("Published", time(decision.publish_time.as_ref())),
        ("First seen here", time(decision.first_seen_time.as_ref())),
        ("Age counts from", time(decision.counted_time.as_ref())),
        ("Malware", yes(decision.malware)),
    ])
}

fn blocked(statistics: &BlockStatistics) -> Markup {
    if statistics.attempts == 0 {
        return html! { p.empty { "Nothing was blocked in the last days." } };
    }
    let reasons: Vec<_> = statistics
        .reasons
        .iter()
        .map(|one| vec![text(&one.reason), text(&one.attempts.to_string()), text(&one.packages.to_string())])
        .collect();
    let packages: Vec<_> =
        statistics.packages.iter().map(|one| vec![text(&one.package), text(&one.attempts.to_string())]).collect();
    html! {
        p { (statistics.attempts) " attempts, " (statistics.package_count) " packages" }
        (table("By reason", &["Reason", "Attempts", "Packages"], &reasons))
        (table("The most attempted packages", &["Package", "Attempts"], &packages))
    }
}
