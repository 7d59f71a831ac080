//! A call as configuration of Terraform: a resource for a method that creates one, and the line that imports one for a
//! method that reads it.
//!
//! The provider is the public one of the wire contract, `chainguard-dev/chainguard`. It has resources for a part of the
//! contract; what it has no argument for is named in a comment, so that nothing is left out unsaid.

use std::fmt::Write as _;

use bowline_contract::{Contract, MethodInfo};
use bowline_transcode::Tables;
use serde_json::Value;

use crate::rest::to_json;
use crate::shell::{is_printable, quoted};

/// A resource of the provider.
struct Resource {
    /// Full name of the service.
    service: &'static str,
    create: &'static str,
    /// The method that reads one, where the provider can import it.
    read: Option<&'static str>,
    kind: &'static str,
    /// Members of the request by their dotted path, and arguments by theirs.
    members: &'static [(&'static str, &'static str)],
}

const RESOURCES: &[Resource] = &[
    Resource {
        service: "chainguard.platform.iam.v2.GroupsService",
        create: "CreateGroup",
        read: Some("GetGroup"),
        kind: "chainguard_group",
        members: &[
            ("parent", "parent_id"),
            ("group.name", "name"),
            ("group.description", "description"),
            ("group.kind", "kind"),
            ("group.verified", "verified"),
        ],
    },
    Resource {
        service: "chainguard.platform.iam.v2.IdentitiesService",
        create: "CreateIdentity",
        read: Some("GetIdentity"),
        kind: "chainguard_identity",
        members: &[
            ("parent", "parent_id"),
            ("identity.name", "name"),
            ("identity.description", "description"),
            ("identity.service_principal", "service_principal"),
            ("identity.claim_match.issuer", "claim_match.issuer"),
            ("identity.claim_match.issuer_pattern", "claim_match.issuer_pattern"),
            ("identity.claim_match.subject", "claim_match.subject"),
            ("identity.claim_match.subject_pattern", "claim_match.subject_pattern"),
            ("identity.claim_match.audience", "claim_match.audience"),
            ("identity.claim_match.audience_pattern", "claim_match.audience_pattern"),
            ("identity.claim_match.claims", "claim_match.claims"),
            ("identity.claim_match.claim_patterns", "claim_match.claim_patterns"),
            ("identity.static_keys.issuer", "static.issuer"),
            ("identity.static_keys.subject", "static.subject"),
            ("identity.static_keys.issuer_keys", "static.issuer_keys"),
            ("identity.static_keys.expiration_time", "static.expiration"),
            ("identity.aws_identity.aws_account", "aws_identity.aws_account"),
            ("identity.aws_identity.arn", "aws_identity.aws_arn"),
            ("identity.aws_identity.arn_pattern", "aws_identity.aws_arn_pattern"),
            ("identity.aws_identity.user_id", "aws_identity.aws_user_id"),
            ("identity.aws_identity.user_id_pattern", "aws_identity.aws_user_id_pattern"),
        ],
    },
    Resource {
        service: "chainguard.platform.iam.v2.RolesService",
        create: "CreateRole",
        read: Some("GetRole"),
        kind: "chainguard_role",
        members: &[
            ("parent", "parent_id"),
            ("role.name", "name"),
            ("role.description", "description"),
            ("role.capabilities", "capabilities"),
        ],
    },
    Resource {
        service: "chainguard.platform.iam.v2.RoleBindingsService",
        create: "CreateRoleBinding",
        read: Some("GetRoleBinding"),
        kind: "chainguard_rolebinding",
        members: &[("parent", "group"), ("role_binding.identity_uid", "identity"), ("role_binding.role_uid", "role")],
    },
    Resource {
        service: "chainguard.platform.iam.v2.IdentityProvidersService",
        create: "CreateIdentityProvider",
        read: Some("GetIdentityProvider"),
        kind: "chainguard_identity_provider",
        members: &[
            ("parent", "parent_id"),
            ("identity_provider.name", "name"),
            ("identity_provider.description", "description"),
            ("identity_provider.default_role", "default_role"),
            ("identity_provider.oidc.issuer", "oidc.issuer"),
            ("identity_provider.oidc.client_id", "oidc.client_id"),
            ("identity_provider.oidc.client_secret", "oidc.client_secret"),
            ("identity_provider.oidc.additional_scopes", "oidc.additional_scopes"),
        ],
    },
    Resource {
        service: "chainguard.platform.iam.v2.GroupInvitesService",
        create: "CreateGroupInvite",
        read: None,
        kind: "chainguard_group_invite",
        members: &[
            ("parent", "group"),
            ("group_invite.role_uid", "role"),
            ("group_invite.email", "email"),
            ("group_invite.ttl", EXPIRATION),
        ],
    },
    Resource {
        service: "chainguard.platform.iam.v2.AccountAssociationsService",
        create: "CreateAccountAssociation",
        read: Some("GetAccountAssociation"),
        kind: "chainguard_account_associations",
        members: &[
            ("parent", "group"),
            ("account_association.name", "name"),
            ("account_association.description", "description"),
            ("account_association.amazon.account", "amazon.account"),
            ("account_association.google.project_id", "google.project_id"),
            ("account_association.google.project_number", "google.project_number"),
            ("account_association.azure.tenant_id", "azure.tenant_id"),
            ("account_association.azure.client_ids", "azure.client_ids"),
            ("account_association.chainguard.service_bindings", "chainguard.service_bindings"),
        ],
    },
    Resource {
        service: "chainguard.platform.registry.v2.ReposService",
        create: "CreateRepo",
        read: Some("GetRepo"),
        kind: "chainguard_image_repo",
        members: &[
            ("parent", "parent_id"),
            ("repo.name", "name"),
            ("repo.description", "description"),
            ("repo.catalog_tier", "tier"),
            ("repo.bundles", "bundles"),
            ("repo.aliases", "aliases"),
            ("repo.active_tags", "active_tags"),
            ("repo.sync_config.source", "sync_config.source"),
            ("repo.sync_config.amazon", "sync_config.amazon"),
            ("repo.sync_config.azure", "sync_config.azure"),
            ("repo.sync_config.google", "sync_config.google"),
        ],
    },
    Resource {
        service: "chainguard.platform.registry.v2.TagsService",
        create: "CreateTag",
        read: Some("GetTag"),
        kind: "chainguard_image_tag",
        members: &[
            ("parent", "repo_id"),
            ("tag.name", "name"),
            ("tag.bundles", "bundles"),
            ("tag.deprecated", "deprecated"),
        ],
    },
    Resource {
        service: "chainguard.platform.events.v2.SubscriptionsService",
        create: "CreateSubscription",
        read: Some("GetSubscription"),
        kind: "chainguard_subscription",
        members: &[("parent", "parent_id"), ("subscription.sink", "sink")],
    },
];

/// The argument that has an end where the method has a duration.
const EXPIRATION: &str = "expiration";
/// The resource that every plan would change if it had no description, be it an empty one.
const UNDESCRIBED: &str = "chainguard_role";
/// The argument that has a secret. Its value is never written: a variable has it.
const SECRET: &str = "oidc.client_secret";
/// What declares that variable.
const VARIABLE: &str = "variable \"client_secret\" {\n  type      = string\n  sensitive = true\n}";
/// Prefixes of names of values, which the provider leaves out.
const PREFIXES: [&str; 3] = ["ORG_KIND_", "CATALOG_TIER_", "SERVICE_PRINCIPAL_"];
/// Arguments with such a value.
const NAMED: [&str; 3] = ["kind", "tier", "service_principal"];

/// The configuration or the line for a call; absent where the provider has no resource for it, or no text can hold it.
pub fn terraform(contract: &Contract, tables: &Tables, method: &MethodInfo, request: &[u8]) -> Option<String> {
    let (service, name) = method.full_name.rsplit_once('.')?;
    let resource = RESOURCES.iter().find(|one| one.service == service)?;
    let json = to_json(tables, &method.input, request).ok()?;
    if resource.read == Some(name) {
        let uid = json.get("uid").and_then(Value::as_str).filter(|uid| is_printable(uid))?;
        return Some(format!("terraform import {}.this {}", resource.kind, quoted(uid)));
    }
    (resource.create == name).then(|| block(contract, resource, &json))
}

/// The block of a resource.
fn block(contract: &Contract, resource: &Resource, json: &Value) -> String {
    let (mut arguments, mut others) = (Vec::new(), Vec::new());
    collect(resource, "", json, &mut arguments, &mut others);
    let (secret, empty) = (Value::Null, Value::from(""));
    if resource.kind == UNDESCRIBED && !arguments.iter().any(|(argument, _)| *argument == "description") {
        arguments.push(("description", &empty));
    }
    let has_secret = arguments.iter().any(|(argument, _)| argument.starts_with("oidc."));
    if has_secret {
        // The provider requires it.
        arguments.retain(|(argument, _)| *argument != SECRET);
        arguments.push((SECRET, &secret));
    }
    // In the order of the table, with those of inner blocks last.
    let position = |argument: &str| resource.members.iter().position(|(_, name)| *name == argument);
    arguments.sort_by_key(|(argument, _)| (argument.contains('.'), position(argument)));
    let named = arguments.iter().find(|(argument, _)| *argument == "name").and_then(|(_, value)| value.as_str());
    let mut text = format!("resource \"{}\" \"{}\" {{\n", resource.kind, label(named.unwrap_or_default()));
    let mut open: Option<&str> = None;
    for (argument, value) in &arguments {
        let (inner, name) = match argument.split_once('.') {
            Some((inner, name)) => (Some(inner), name),
            None => (None, *argument),
        };
        if open != inner {
            text += if open.is_some() { "  }\n" } else { "" };
            if let Some(inner) = inner {
                let _ = writeln!(text, "  {inner} {{");
            }
            open = inner;
        }
        let indent = if inner.is_some() { "    " } else { "  " };
        let value =
            if *argument == SECRET { "var.client_secret".to_owned() } else { expression(contract, name, value) };
        let _ = writeln!(text, "{indent}{name} = {value}");
    }
    text += if open.is_some() { "  }\n" } else { "" };
    if arguments.iter().any(|(argument, _)| *argument == EXPIRATION) {
        text += "  lifecycle {\n    ignore_changes = [expiration]\n  }\n";
    }
    for path in others {
        let _ = writeln!(text, "  # The provider has no argument for {path}.");
    }
    text += "}";
    if has_secret { format!("{text}\n\n{VARIABLE}") } else { text }
}

/// Takes the members of a request apart: those that are arguments, and paths of the others.
fn collect<'v>(
    resource: &Resource,
    path: &str,
    value: &'v Value,
    arguments: &mut Vec<(&'static str, &'v Value)>,
    others: &mut Vec<String>,
) {
    if let Some((_, argument)) = resource.members.iter().find(|(member, _)| *member == path) {
        arguments.push((argument, value));
        return;
    }
    let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
    let has_inner = |prefix: &str| resource.members.iter().any(|(member, _)| member.starts_with(prefix));
    match value {
        Value::Object(members) if has_inner(&prefix) => {
            for (name, value) in members {
                collect(resource, &format!("{prefix}{name}"), value, arguments, others);
            }
        }
        // Keys of maps are texts of callers: the field alone is named.
        _ => others.push(path.to_owned()),
    }
}

/// A name of a block that Terraform takes.
fn label(name: &str) -> String {
    let label: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if label.starts_with(|c: char| c.is_ascii_alphabetic()) { label.to_lowercase() } else { format!("this{label}") }
}

fn expression(contract: &Contract, argument: &str, value: &Value) -> String {
    let items = |items: &[Value]| {
        let items: Vec<String> = items.iter().map(|item| expression(contract, "", item)).collect();
        format!("[{}]", items.join(", "))
    };
    match value {
        Value::String(ttl) if argument == EXPIRATION && ttl.ends_with('s') && !ttl.contains('-') => {
            format!("timeadd(timestamp(), {})", string(ttl))
        }
        Value::String(text) if NAMED.contains(&argument) => {
            let plain = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
            string(plain)
        }
        Value::Array(names) if argument == "capabilities" => {
            let name = |value: &Value| match value.as_str() {
                Some(name) => contract
                    .capabilities()
                    .iter()
                    .find(|one| one.enum_name == name)
                    .map_or_else(|| value.clone(), |one| one.name.clone().into()),
                None => value.clone(),
            };
            items(&names.iter().map(name).collect::<Vec<_>>())
        }
        Value::String(text) => string(text),
        Value::Array(values) => items(values),
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{} = {}", string(name), expression(contract, "", value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A text in quotes, in printable ASCII, without templates.
fn string(text: &str) -> String {
    let mut quoted = String::from('"');
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            '$' | '%' if characters.peek() == Some(&'{') => quoted.extend([character, character]),
            ' '..='~' => quoted.push(character),
            other if u32::from(other) <= 0xffff => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(other));
            }
            other => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(other));
            }
        }
    }
    quoted.push('"');
    quoted
}
