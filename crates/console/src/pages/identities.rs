use bowline_contract::bowline::iam::v1::ListAccessOfRequest;
use bowline_contract::bowline::iam::v1::rpc::access_explainer::ListAccessOf;
use bowline_contract::v2::iam::identity::claim_match::{Aud, Iss, Sub};
use bowline_contract::v2::iam::identity::{ClaimMatch, Relationship};
use bowline_contract::v2::iam::rpc::identities_service::{GetIdentity, ListIdentities};
use bowline_contract::v2::iam::{GetIdentityRequest, Identity, ListIdentitiesRequest, RelationshipType};
use bowline_core::Result;
use maud::{Markup, html};

use super::{access, below, part, required};
use crate::components::{Field, List, facts, filters, link, refused, section};
use crate::query::address;
use crate::shell::Content;
use crate::values::{code, none, text, time};
use crate::visit::{ROWS, Visit};

const KINDS: [(&str, &str); 5] = [
    ("", "all"),
    ("RELATIONSHIP_TYPE_CLAIM_MATCH", "claims of a token"),
    ("RELATIONSHIP_TYPE_STATIC", "keys of its own"),
    ("RELATIONSHIP_TYPE_AWS_IDENTITY", "AWS"),
    ("RELATIONSHIP_TYPE_SERVICE_PRINCIPAL", "service principal"),
];

/// Identities in a group and below, or all visible ones.
pub(super) async fn list(visit: &mut Visit) -> Result<Content> {
    let kind = visit.query.get("kind").and_then(RelationshipType::from_str_name).unwrap_or_default();
    let request = ListIdentitiesRequest {
        uidp: below(&visit.scope()),
        name: visit.query.text("name"),
        relationship_type: kind.into(),
        page_size: ROWS,
        page_token: visit.query.text("page"),
        ..ListIdentitiesRequest::default()
    };
    let response = visit.call::<ListIdentities>(request).await?;
    let list = List {
        caption: "Identities",
        heads: &["Name", "Acts by", "Description", "Last seen", "Id"],
        rows: response.identities.iter().map(row).collect(),
        next: &response.next_page_token,
        total: response.total_count,
        empty: "There is no identity that you may see here. People appear when they have signed in and hold a role.",
        filters: &["name", "kind"],
    };
    let fields = [
        Field::Text { name: "name", label: "Name (whole)" },
        Field::Choice { name: "kind", label: "Acts by", options: &KINDS },
    ];
    Ok(Content::new("Identities", html! { (filters(visit, &["in"], &fields)) (list.render(visit)) }))
}

fn row(identity: &Identity) -> Vec<Markup> {
    vec![
        link("/console/identity", &[("uid", &identity.uid)], name_of(identity)),
        text(kind(identity)),
        text(&identity.description),
        seen(identity),
        code(&identity.uid),
    ]
}

fn name_of(identity: &Identity) -> &str {
    let names = [&identity.name, &identity.email, &identity.uid];
    names.into_iter().find(|name| !name.trim().is_empty()).map_or("", String::as_str)
}

fn seen(identity: &Identity) -> Markup {
    if identity.last_seen_time.is_some() {
        time(identity.last_seen_time.as_ref())
    } else {
        html! { span.none { "never" } }
    }
}

fn kind(identity: &Identity) -> &'static str {
    match identity.relationship {
        Some(Relationship::ClaimMatch(_)) => "claims of a token",
        Some(Relationship::StaticKeys(_)) => "keys of its own",
        Some(Relationship::AwsIdentity(_)) => "AWS",
        Some(Relationship::ServicePrincipal(_)) => "service principal",
        None => "person",
    }
}

/// One identity, and where it may do what.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let uid = required(visit, "uid")?;
    let identity = visit.call::<GetIdentity>(GetIdentityRequest { uid: uid.clone() }).await?;
    let request = ListAccessOfRequest { identity: uid.clone(), page_size: ROWS, page_token: visit.query.text("page") };
    let bindings = part(visit.call::<ListAccessOf>(request).await)?;
    let method = visit.last_method().map(str::to_owned);
    let access = match &bindings {
        Ok(response) => List {
            caption: "Roles of this identity",
            heads: &access::HEADS_OF_ONE,
            rows: response.entries.iter().map(access::row_of_one).collect(),
            next: &response.next_page_token,
            total: None,
            empty: "This identity has no role that you may see.",
            filters: &[],
        }
        .render(visit),
        Err(error) => refused(error, method.as_deref()),
    };
    let body = html! {
        (about(&identity))
        @if let Some(relationship) = &identity.relationship {
            (section("proof", "How it proves itself", &proof(relationship)))
        }
        (section("roles", "Where it may do what", &access))
        p { a href=(address("/console/why", &[("identity", &uid)])) { "Why may it do something, or not?" } }
        @if let Some((organization, _)) = uid.split_once('/') {
            p { a href=(address("/console/audit", &[("actor", &uid), ("in", organization)])) { "What it changed" } }
        }
        p { a href=(address("/console/history", &[("resource", &uid)])) { "How it was changed" } }
    };
    Ok(Content::new(name_of(&identity), body).below("/console/identities".to_owned(), "Identities"))
}

fn about(identity: &Identity) -> Markup {
    facts(&[
        ("Description", text(&identity.description)),
        ("Acts by", text(kind(identity))),
        ("E-mail", text(&identity.email)),
        ("Id", code(&identity.uid)),
        ("Last seen", seen(identity)),
        ("Created", time(identity.create_time.as_ref())),
        ("Changed", time(identity.update_time.as_ref())),
    ])
}

fn proof(relationship: &Relationship) -> Markup {
    match relationship {
        Relationship::ClaimMatch(claims) => claims_of(claims),
        Relationship::StaticKeys(keys) => facts(&[
            ("Issuer", code(&keys.issuer)),
            ("Subject", code(&keys.subject)),
            ("Audiences", text(&keys.audiences.join(", "))),
            ("Keys end", time(keys.expiration_time.as_ref())),
        ]),
        Relationship::AwsIdentity(aws) => facts(&[("AWS account", code(&aws.aws_account))]),
        Relationship::ServicePrincipal(_) => html! { p { "A service principal cannot be assumed." } },
    }
}

fn claims_of(claims: &ClaimMatch) -> Markup {
    let exactly = |value: &str| html! { (code(value)) };
    let pattern = |value: &str| html! { "pattern " (code(value)) };
    let mut rows = vec![
        (
            "Issuer",
            match &claims.iss {
                Some(Iss::Issuer(issuer)) => exactly(issuer),
                Some(Iss::IssuerPattern(issuer)) => pattern(issuer),
                None => none(),
            },
        ),
        (
            "Subject",
            match &claims.sub {
                Some(Sub::Subject(subject)) => exactly(subject),
                Some(Sub::SubjectPattern(subject)) => pattern(subject),
                None => none(),
            },
        ),
        (
            "Audience",
            match &claims.aud {
                Some(Aud::Audience(audience)) => exactly(audience),
                Some(Aud::AudiencePattern(audience)) => pattern(audience),
                None => html! { "this server" },
            },
        ),
    ];
    if !claims.claims.is_empty() || !claims.claim_patterns.is_empty() {
        let exact: std::collections::BTreeMap<_, _> = claims.claims.iter().collect();
        let patterns: std::collections::BTreeMap<_, _> = claims.claim_patterns.iter().collect();
        rows.push((
            "Further claims",
            html! {
                ul.plain {
                    @for (name, value) in exact { li { (code(name)) " is " (code(value)) } }
                    @for (name, value) in patterns { li { (code(name)) " matches " (code(value)) } }
                }
            },
        ));
    }
    facts(&rows)
}
