//! Step 3: which tokens the identity would take, by the comparison that an exchange makes.

use std::collections::BTreeMap;

use bowline_contract::Method as _;
use bowline_contract::bowline::iam::v1::rpc::matchers::{TestClaims, TestIssuer};
use bowline_contract::bowline::iam::v1::{ClaimResult, TestClaimsRequest, TestClaimsResponse};
use bowline_contract::v2::iam::identity::ClaimMatch;
use bowline_contract::v2::iam::identity::claim_match::{Aud, Iss, Sub};
use bowline_core::Result;
use bowline_formats::workloads::{AwsTrust, Expectation, SampleToken, TokenTrust};
use maud::{Markup, html};
use prost_types::value::Kind;
use prost_types::{Struct, Value};

use super::draft::{Workload, within};
use super::{Draft, FACTS, ROLES, Step, at, call_form, content, draft, steps};
use crate::components::{facts, refused, section, table};
use crate::method::PREFIX;
use crate::shell::Content;
use crate::values::{badge, code, none, text};
use crate::visit::{Answer, Visit};

/// The page of step 3.
pub(in crate::pages) async fn show(visit: &mut Visit) -> Result<Content> {
    let (platform, workload) = match draft(visit).await? {
        Draft::Ready(platform, workload) => (platform, workload),
        Draft::Lacks(content) => return Ok(content),
    };
    let body = match &workload {
        Workload::Aws(trust) => of_aws(trust),
        Workload::Token { trust, samples, keys } => {
            let audience = trust.audience.clone().unwrap_or_else(|| visit.app.api.settings().auth_url.clone());
            let mut own = Vec::new();
            for token in &samples.own {
                own.push((token, test(visit, trust, token, &audience).await?));
            }
            let mut others = Vec::new();
            for (token, why) in &samples.others {
                others.push((token, *why, test(visit, trust, token, &audience).await?));
                // What is refused once is refused for all of them.
                if others.last().is_some_and(|(.., answer)| answer.result.is_err()) {
                    break;
                }
            }
            html! {
                (section("own", "The workload's own token", &own_tokens(&own, &audience)))
                (section("others", "What else would match", &other_tokens(&others)))
                (section("real", "Test a real token", &real(visit, trust)))
                @if keys.is_none() { (section("issuer", "Test the issuer", &issuer(visit, trust))) }
            }
        }
    };
    let body = html! {
        (steps(visit, Step::Claims))
        (body)
        div.buttons {
            a.button href=(at(visit, ROLES, &[])) { "Continue: its role" }
            a href=(at(visit, FACTS, &[])) { "Back to the facts" }
        }
    };
    Ok(content(&format!("What a workload of {} must present", platform.title()), body))
}

async fn test(
    visit: &mut Visit,
    trust: &TokenTrust,
    token: &SampleToken,
    audience: &str,
) -> Result<Answer<TestClaimsResponse>> {
    let claims = token.claims.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let claims = claims.chain([("aud".to_owned(), audience.to_owned())]);
    let value = |text: String| Value { kind: Some(Kind::StringValue(text)) };
    let request = TestClaimsRequest {
        parent: visit.scope(),
        claim_match: Some(claim_match(trust)),
        claims: Some(Struct { fields: claims.map(|(name, text)| (name, value(text))).collect::<BTreeMap<_, _>>() }),
        ..TestClaimsRequest::default()
    };
    visit.answer::<TestClaims>(request).await
}

fn claim_match(trust: &TokenTrust) -> ClaimMatch {
    ClaimMatch {
        iss: Some(Iss::Issuer(trust.issuer.clone())),
        sub: Some(match &trust.subject {
            Expectation::Exact(subject) => Sub::Subject(subject.clone()),
            Expectation::Pattern(pattern) => Sub::SubjectPattern(pattern.clone()),
        }),
        aud: trust.audience.clone().map(Aud::Audience),
        ..ClaimMatch::default()
    }
}

fn own_tokens(own: &[(&SampleToken, Answer<TestClaimsResponse>)], audience: &str) -> Markup {
    html! {
        @if own.is_empty() {
            p.empty { "No token of a pattern is known before one was issued: test a real one below." }
        }
        @for (token, answer) in own {
            h3 { "A token of " (token.holder) }
            (sample(token, audience))
            @match &answer.result {
                Ok(response) => (results(response)),
                Err(error) => (refused(error, Some(answer.method))),
            }
        }
    }
}

/// The claims of a token.
fn sample(token: &SampleToken, audience: &str) -> Markup {
    let claims = token.claims.iter().map(|(name, value)| (*name, code(value)));
    facts(&claims.chain([("aud", code(audience))]).collect::<Vec<_>>())
}

/// How a token compares, claim by claim.
pub(crate) fn results(response: &TestClaimsResponse) -> Markup {
    let row = |one: &ClaimResult| {
        let expected = match (one.expected.is_empty(), one.pattern) {
            (true, _) => text("this server"),
            (false, true) => html! { "pattern " (code(&one.expected)) },
            (false, false) => code(&one.expected),
        };
        vec![
            code(&one.claim),
            if one.matches { badge("good", "matches") } else { badge("bad", "does not match") },
            expected,
            code(&one.value),
            if one.reason.is_empty() { none() } else { text(&one.reason) },
        ]
    };
    let rows: Vec<_> = response.results.iter().map(row).collect();
    html! {
        p {
            @if response.matches { (badge("good", "matches")) " This token would be taken." }
            @else { (badge("bad", "does not match")) " This token would be refused." }
        }
        (table("Claim by claim", &["Claim", "Result", "Expected", "Found", "Why not"], &rows))
    }
}

fn other_tokens(others: &[(&SampleToken, &str, Answer<TestClaimsResponse>)]) -> Markup {
    let matches = |answer: &Answer<TestClaimsResponse>| answer.result.as_ref().is_ok_and(|response| response.matches);
    let broad: Vec<&str> = others.iter().filter(|one| matches(&one.2)).map(|one| one.1).collect();
    if let Some(error) = others.iter().find_map(|one| one.2.result.as_ref().err()) {
        return refused(error, Some(TestClaims::FULL_NAME));
    }
    let row = |(token, _, answer): &(&SampleToken, &str, Answer<TestClaimsResponse>)| {
        let subject = token.claims.iter().find(|(name, _)| *name == "sub").map_or("", |(_, value)| value.as_str());
        vec![
            text(&token.holder),
            if matches(answer) { badge("bad", "matches, too") } else { badge("good", "does not match") },
            code(subject),
        ]
    };
    let rows: Vec<_> = others.iter().map(row).collect();
    html! {
        @if broad.is_empty() {
            p { "None of these nearby tokens is taken." }
        } @else {
            div.notice role="alert" {
                p { strong { "This is broad." } " These could act as the identity, too:" }
                ul { @for who in &broad { li { (who) } } }
            }
        }
        (table("Tokens of others", &["Token", "Result", "Subject"], &rows))
    }
}

/// The form that compares a token of the workload. It is a POST, so that the token is in no address, and nothing keeps it.
fn real(visit: &Visit, trust: &TokenTrust) -> Markup {
    let mut fields = vec![("parent".to_owned(), visit.scope())];
    fields.extend(within("claim_match", trust.members()));
    let token = html! {
        div.field {
            label for="w-token" { "Token" }
            input type="password" id="w-token" name={ (PREFIX) "token" } autocomplete="off" autocapitalize="none"
                spellcheck="false" required;
        }
    };
    html! {
        p {
            "Paste a token that the platform issued. It is compared and forgotten: it is not stored, not logged, and not in the "
            "address of a page."
        }
        (call_form::<TestClaims>(visit, &fields, "", "Compare this token", Some(&token)))
    }
}

/// The form that reads the issuer's keys, as an exchange would.
fn issuer(visit: &Visit, trust: &TokenTrust) -> Markup {
    let fields = [("parent".to_owned(), visit.scope()), ("issuer".to_owned(), trust.issuer.clone())];
    html! {
        p { "This server must reach the issuer and read its keys: " (code(&trust.issuer)) }
        (call_form::<TestIssuer>(visit, &fields, "", "Read its keys now", None))
    }
}

fn of_aws(trust: &AwsTrust) -> Markup {
    let expected = |expectation: &Expectation| match expectation {
        Expectation::Exact(text) => code(text),
        Expectation::Pattern(pattern) => html! { "pattern " (code(pattern)) },
    };
    let any_id = matches!(&trust.user_id, Expectation::Pattern(pattern) if pattern.starts_with("[A-Z0-9]+"));
    html! {
        p {
            "Workloads of AWS have no token: they sign a request for this server and this identity, and AWS says who signed it. "
            "So there is nothing to compare here before the first exchange."
        }
        (facts(&[
            ("Account", code(&trust.account)),
            ("ARN", expected(&trust.arn)),
            ("User id", expected(&trust.user_id)),
        ]))
        @if any_id {
            div.notice role="alert" {
                "A role or user that is deleted and made again under this name matches, too. Its id, in the facts, prevents that."
            }
        }
        @if matches!(trust.arn, Expectation::Pattern(_)) {
            p { "Every session of the role matches: everyone who may assume it in AWS can act as this identity." }
        }
    }
}
