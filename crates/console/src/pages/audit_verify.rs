//! Whether an organization's audit log is whole: recomputed by the server in parts, and compared with a hash from elsewhere.

use std::convert::Infallible;
use std::time::Instant;

use bowline_contract::bowline::audit::v1::rpc::audit::{GetCheckpoints, VerifyChain};
use bowline_contract::bowline::audit::v1::{
    Checkpoints, GetCheckpointsRequest, VerifyChainProgress, VerifyChainRequest,
};
use bowline_core::{Error, Result};
use maud::{Markup, html};

use crate::components::{facts, refused, section};
use crate::query::address;
use crate::shell::Content;
use crate::values::{badge, code, text, time};
use crate::visit::Visit;

const PAGE: &str = "/console/audit-verify";
/// Maximum entries that one page verifies; a link continues with the next ones.
const AT_ONCE: i64 = 20_000;
/// Length of a hash in hexadecimal.
const HASH: usize = 64;

/// What was verified for a page.
struct Verified {
    first: i64,
    last: VerifyChainProgress,
    erased: i64,
}

/// The checkpoints of a log, the form that verifies it, and how far that came.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let scope = visit.scope();
    let Some(root) = scope.split('/').next().filter(|root| !root.is_empty()).map(str::to_owned) else {
        return Ok(super::findings::choose("Verify the audit log"));
    };
    let request = GetCheckpointsRequest { organization: root.clone() };
    let checkpoints = visit.answer::<GetCheckpoints>(request).await?;
    let result = match visit.query.get("run") {
        Some(_) => Some(verify(visit, &root).await?),
        None => None,
    };
    let body = html! {
        p {
            "Each entry of the log has a hash over its content and the hash before it. An entry that was changed, removed or "
            "inserted in the database breaks the chain."
        }
        @if let Some(result) = &result { (section("result", "Result", &outcome(visit, &root, result))) }
        (section("verify", "Verify", &form(visit, &root)))
        (section("checkpoint", "Checkpoint", &match &checkpoints.result {
            Ok(checkpoints) => pinned(&root, checkpoints),
            Err(error) => refused(error, Some(checkpoints.method)),
        }))
    };
    Ok(Content::new("Verify the audit log", body).below(address("/console/audit", &[("in", &root)]), "Audit log"))
}

/// A number of the query; 0 without one.
fn number(visit: &Visit, name: &str) -> Result<i64> {
    let Some(text) = visit.query.get(name) else { return Ok(0) };
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Error::invalid_field(name, "must be the number of an entry"))
}

/// Verifies a part of the log: so many entries, in half of the time that a page may take.
async fn verify(visit: &mut Visit, root: &str) -> Result<Verified> {
    let (first, last) = (number(visit, "first")?, number(visit, "at")?);
    let pasted = visit.query.get("hash").unwrap_or_default();
    if !pasted.is_empty() && (pasted.len() != HASH || !pasted.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Err(Error::invalid_field("hash", "must be a hash of 64 hexadecimal digits"));
    }
    let started = Instant::now();
    let time = visit.app.page_time / 2;
    let request = VerifyChainRequest { organization: root.to_owned(), first, last };
    let mut stream = visit.watch::<VerifyChain>(request, None).await?;
    let mut verified = Verified { first, last: VerifyChainProgress::default(), erased: 0 };
    while let Some(parts) = visit.in_time(async { Ok::<_, Infallible>(stream.next().await) }).await?? {
        for (_, part) in parts {
            verified.erased += part.erased_images;
            verified.last = part;
        }
        let last = &verified.last;
        let is_enough = last.sequence - first >= AT_ONCE || started.elapsed() > time;
        if last.done || !last.problem.is_empty() || is_enough {
            break;
        }
    }
    Ok(verified)
}

fn outcome(visit: &Visit, root: &str, result: &Verified) -> Markup {
    let last = &result.last;
    let state = match () {
        () if !last.problem.is_empty() => badge("bad", "broken"),
        () if last.done => badge("good", "whole"),
        () => badge("plain", "whole so far"),
    };
    let (end, first) = (last.newest.max(last.sequence), result.first.max(1));
    let mut rows = vec![
        ("State", state),
        (
            "Verified",
            html! {
                "entries " (first) " to " (last.sequence) " of " (end) " "
                progress max=(end.max(1)) value=(last.sequence) aria-label="Verified entries" {}
            },
        ),
    ];
    if !last.problem.is_empty() {
        rows.push(("First break", text(&last.problem)));
    }
    if !last.hash.is_empty() {
        rows.push(("Hash of the last verified entry", code(&last.hash)));
    }
    if result.erased > 0 {
        rows.push(("Erased snapshots", html! { (result.erased) ", whose hashes remain" }));
    }
    if let Some(comparison) = comparison(visit, last) {
        rows.push(("Your hash", comparison));
    }
    let next = (last.sequence + 1).to_string();
    let parameters = |first: &'static str| -> Vec<(&str, &str)> {
        let kept = [("at", visit.query.get("at")), ("hash", visit.query.get("hash"))];
        let kept = kept.into_iter().map(|(name, value)| (name, value.unwrap_or_default()));
        [("in", root), ("run", "1"), (first, next.as_str())].into_iter().chain(kept).collect()
    };
    html! {
        (facts(&rows))
        @if !last.done && last.problem.is_empty() {
            p { a.button href=(address(PAGE, &parameters("first"))) { "Go on from entry " (next) } }
        }
    }
}

/// What a pasted hash shows; absent without one, and until the entry that it is of was verified.
fn comparison(visit: &Visit, last: &VerifyChainProgress) -> Option<Markup> {
    let pasted = visit.query.get("hash")?;
    if !last.done || !last.problem.is_empty() {
        return last.problem.is_empty().then(|| text("is compared when its entry was verified"));
    }
    let at = visit.query.get("at").and_then(|at| at.parse::<i64>().ok());
    Some(match at {
        Some(at) if at > last.sequence => html! {
            (badge("bad", "no such entry")) " The log ends at " (last.sequence) ": entries after it were removed, or the number is wrong."
        },
        _ if pasted.eq_ignore_ascii_case(&last.hash) => html! {
            (badge("good", "the same")) " The entries up to " (last.sequence) " are those of the moment when you kept this hash."
        },
        Some(_) => html! {
            (badge("bad", "different")) " Entries up to " (last.sequence) " were changed since you kept this hash, or it is of another entry."
        },
        None => {
            html! { (badge("bad", "different")) " It is not that of the newest entry: give the number of its entry." }
        }
    })
}

fn form(visit: &Visit, root: &str) -> Markup {
    html! {
        form.filters method="get" action=(PAGE) aria-label="Verify" {
            input type="hidden" name="in" value=(root);
            input type="hidden" name="run" value="1";
            div {
                label for="f-at" { "Up to entry (number)" }
                input type="text" id="f-at" name="at" inputmode="numeric" maxlength="19" autocomplete="off"
                    value=(visit.query.text("at"));
            }
            div {
                label for="f-hash" { "Hash that you kept of it" }
                input type="text" id="f-hash" name="hash" maxlength="64" autocomplete="off" autocapitalize="none"
                    spellcheck="false" value=(visit.query.text("hash"));
            }
            button type="submit" { "Verify" }
        }
        p.small { "Both fields can stay empty: then the whole log is verified, and nothing is compared." }
    }
}

/// The end of the log as it is, and how it is kept elsewhere.
fn pinned(root: &str, checkpoints: &Checkpoints) -> Markup {
    let mut rows = vec![("Last entry", text(&checkpoints.sequence.to_string())), ("Its hash", code(&checkpoints.hash))];
    if checkpoints.pruned_entries > 0 {
        rows.push(("Removed by age", text(&format!("{} entries", checkpoints.pruned_entries))));
        rows.push(("Last removed entry", text(&checkpoints.pruned_sequence.to_string())));
        rows.push(("Its hash", code(&checkpoints.pruned_hash)));
        rows.push(("Removed", time(checkpoints.prune_time.as_ref())));
    }
    let number = checkpoints.sequence.to_string();
    html! {
        (facts(&rows))
        @if checkpoints.sequence > 0 {
            p {
                "Keep number and hash outside of this server: an attacker with access to the database could recompute the "
                "chain, but not the copy that you kept."
            }
            pre tabindex="0" data-copy { code { "bowline audit checkpoints --organization " (root) " --output json" } }
            p {
                a href=(address(PAGE, &[("in", root), ("run", "1"), ("at", &number), ("hash", &checkpoints.hash)])) {
                    "Verify up to this checkpoint"
                }
            }
            p { "The same from the command line, which exits with 1 where an entry is wrong:" }
            pre tabindex="0" data-copy { code { "bowline audit verify-chain " (root) } }
        }
    }
}
