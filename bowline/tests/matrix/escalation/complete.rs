//! No method that can give rights is forgotten: the contract is compared with the attacks.

use std::collections::BTreeSet;

use bowline_contract::{Contract, MethodInfo};
use prost_reflect::{Kind, MessageDescriptor, Value};
use serde_json::Value as Json;

use super::attacks::{ATTACKS, method};

/// Parts of the names of fields that hold rights, or name what holds them.
const TELLING: [&str; 24] = [
    "role",
    "capab",
    "identit",
    "principal",
    "issuer",
    "subject",
    "key",
    "claim",
    "audience",
    "client",
    "provider",
    "invite",
    "code",
    "upstream",
    "public",
    "account",
    "arn",
    "aws",
    "sink",
    "source",
    "sync_config",
    "scim",
    "static",
    "oidc",
];

/// Methods that change something and are not attacked, by name or package, with the reason.
const NOT_ATTACKED: [(&str, &str); 51] = [
    ("bowline.advisories.v1.", "writes advisories, as Advisories.Create does"),
    ("bowline.events.v1.", "sends events to where they go, or not"),
    ("bowline.feeds.v1.", "for the operator alone"),
    ("bowline.iam.v1.Matchers.", "compares and fetches, and stores nothing"),
    ("bowline.iam.v1.Names.", "reads names"),
    ("bowline.libraries.v1.CargoPackages.", "withdraws and deletes versions that its group published"),
    ("bowline.libraries.v1.CargoPolicies.", "rules on packages, for what everybody of the organization resolves"),
    ("bowline.libraries.v1.Catalog.", "for the operator alone"),
    ("bowline.libraries.v1.Decisions.", "only reads"),
    ("bowline.libraries.v1.GenericPackages.", "deletes versions that its group published"),
    ("bowline.libraries.v1.GoPackages.", "deletes versions that its group published"),
    ("bowline.libraries.v1.JavaPackages.", "deletes versions that its group published"),
    ("bowline.libraries.v1.JavascriptPackages.", "warns of and deletes versions that its group published"),
    ("bowline.preview.v1.", "changes nothing, and authorizes what it previews like the method itself"),
    ("bowline.people.v1.", "ends one's own sessions, and stores how one wants to see things"),
    (
        "bowline.registry.v1.ImagePolicies.",
        "rules on images, which only ever refuse pulls that other capabilities allow",
    ),
    ("bowline.registry.v1.ReleaseCycles.", "for the operator alone"),
    ("bowline.registry.v1.Images.DeleteImages", "deletes what its capabilities allow to delete"),
    ("bowline.operator.v1.", "for the operator alone: behaviour/operators.rs calls each"),
    ("bowline.registry.v1.RegistryPolicies.ApplyRetention", "deletes what its capabilities allow to delete"),
    (
        "bowline.libraries.v1.PackageExceptions.",
        "versions that everybody of the organization may install for some days",
    ),
    ("bowline.libraries.v1.PackageFreezes.", "versions that are not installed in the organization"),
    ("bowline.libraries.v1.PackageReservations.", "names that upstreams are not asked for"),
    (
        "bowline.libraries.v1.PackageUpstreams.",
        "sources of packages, for what everybody of the organization installs; a stored password stays with its address",
    ),
    ("bowline.libraries.v1.PythonPackages.", "withdraws and deletes versions that its group published"),
    ("bowline.libraries.v1.PolicyAges.", "rules on packages, for what everybody of the organization resolves"),
    (
        "bowline.libraries.v1.PolicyVulnerabilities.",
        "rules on packages, for what everybody of the organization resolves",
    ),
    ("bowline.libraries.v1.PolicyTests.", "rules on packages, for what everybody of the organization resolves"),
    ("bowline.registry.v1.Replication.CheckUpstream", "asks an upstream that is set already, and stores nothing of it"),
    ("bowline.registry.v1.Replication.FetchNow", "has pulls ask an upstream that is set already"),
    ("bowline.registry.v1.ScanReports.", "stores a report about content"),
    ("bowline.vulnerabilities.v1.Reviews.", "gives states to advisory events"),
    ("chainguard.platform.auth.Auth.Delete", "removes the caller"),
    ("chainguard.platform.auth.Auth.Register", "takes no API token; chains redeem codes by signing in"),
    ("chainguard.platform.events.Identities.Create", "for the operator alone"),
    ("chainguard.platform.events.Identities.UpdateMetadata", "what people say of themselves"),
    ("chainguard.platform.events.Subscriptions.Delete", "removes a subscription"),
    ("chainguard.platform.events.v2.SubscriptionsService.DeleteSubscription", "removes a subscription"),
    ("chainguard.platform.iam.v2.IdentitiesService.UpdateIdentityMetadata", "what people say of themselves"),
    ("chainguard.platform.iam.GroupAccountAssociations.Check", "asks another provider"),
    ("chainguard.platform.iam.v2.AccountAssociationsService.CheckAccountAssociation", "asks another provider"),
    ("chainguard.platform.iam.Groups.RequestGroupAccess", "sends mail to owners"),
    ("chainguard.platform.iam.v2.GroupsService.RequestGroupAccess", "sends mail to owners"),
    ("chainguard.platform.iam.Terms.", "accepts terms"),
    ("chainguard.platform.iam.v2.TermsService.", "accepts terms"),
    ("chainguard.platform.libraries.", "rules on packages, for what everybody of the organization resolves"),
    ("chainguard.platform.oidc.", "chains exchange tokens"),
    ("chainguard.platform.registry.Charts.AddChart", "behaviour/registry_sources.rs: a chart must be there"),
    ("chainguard.platform.registry.Policies.CheckPolicies", "evaluates rules"),
    ("chainguard.platform.registry.", "writes content that its capabilities allow to write"),
    ("chainguard.platform.vulnerabilities.", "writes advisories"),
];

/// Fields with telling names that are attacked under another name, or give nothing.
const GIVE_NOTHING: [(&str, &str); 13] = [
    ("additional_scopes", "asked of the issuer"),
    ("client_secret", "proves the server to the issuer"),
    ("has_password", "output"),
    ("identity_provider_uidp", "the parent"),
    ("audience", "makes a claim match narrower"),
    ("audience_pattern", "makes a claim match narrower"),
    ("arn_pattern", "of AWS identities, like arn"),
    ("claims", "make a claim match narrower"),
    ("claim_patterns", "make a claim match narrower"),
    ("resource_limits", "for the operator alone"),
    ("audiences", "makes static keys narrower"),
    ("issuer_pattern", "refused: an issuer must be known"),
    ("key", "of a map"),
];

#[tokio::test]
async fn every_method_that_can_give_rights_is_attacked() {
    let contract = Contract::load();
    let attacked: BTreeSet<&str> =
        ATTACKS.iter().map(|attack| method(&contract, attack.what).full_name.as_str()).collect();
    let mut wrong = Vec::new();
    for index in bowline_services::implemented(&contract) {
        let info = contract.method(index);
        let name = info.full_name.as_str();
        let excused = NOT_ATTACKED.iter().any(|(prefix, _)| name.starts_with(prefix));
        if info.is_mutation() && !attacked.contains(name) && !excused {
            wrong
                .push(format!("{name}: add it to escalation/attacks.rs, or say in NOT_ATTACKED why it gives no right"));
        }
        if attacked.contains(name) {
            let sent: Vec<String> = ATTACKS
                .iter()
                .filter(|attack| method(&contract, attack.what).full_name == name)
                .map(|attack| format!("{} {}", attack.what, attack.body))
                .collect();
            wrong.extend(forgotten(&contract, info, &sent.concat()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Fields of the request that can hold rights, and that no attack on the method sets.
fn forgotten(contract: &Contract, info: &MethodInfo, sent: &str) -> Vec<String> {
    let mut fields = BTreeSet::new();
    collect(contract, &info.input, &mut fields, 0);
    let is_telling = |name: &str| TELLING.iter().any(|part| name.contains(part));
    let is_excused = |name: &str| GIVE_NOTHING.iter().any(|(known, _)| *known == name);
    let is_scope = |name: &str| info.scope_field.as_deref().is_some_and(|field| field.ends_with(name));
    let missing = fields.into_iter().filter(|(name, json)| {
        is_telling(name) && !is_excused(name) && !is_scope(name) && !sent.contains(&format!("\"{json}\""))
    });
    missing.map(|(name, _)| format!("{}: no attack sets `{name}`, which can hold rights", info.full_name)).collect()
}

/// Name and JSON name of every field that a caller can set.
fn collect(contract: &Contract, message: &MessageDescriptor, fields: &mut BTreeSet<(String, String)>, depth: usize) {
    let behavior = contract.pool().get_extension_by_name("google.api.field_behavior").expect("an option");
    for field in message.fields() {
        let options = field.options();
        let is_output = match options.get_extension(&behavior).as_ref() {
            Value::List(values) => values.contains(&Value::EnumNumber(OUTPUT_ONLY)),
            _ => false,
        };
        if is_output || LEFT_OUT.contains(&field.name()) {
            continue;
        }
        match field.kind() {
            Kind::Message(inner) if field.is_map() || inner.full_name().starts_with("google.") => {
                fields.insert((field.name().into(), field.json_name().into()));
            }
            Kind::Message(inner) if depth < 4 => collect(contract, &inner, fields, depth + 1),
            _ => {
                fields.insert((field.name().into(), field.json_name().into()));
            }
        }
    }
}

/// The number of google.api.FieldBehavior.OUTPUT_ONLY.
const OUTPUT_ONLY: i32 = 3;
/// What describes the building of an image or a package, whose accounts are those inside it; and whose cloud accounts
/// a group or a synchronized repository says that it has.
const LEFT_OUT: [&str; 6] = ["custom_overlay", "azure", "github", "google", "amazon", "chainguard"];

/// A member that no request has would be ignored, and the attack would be none.
#[tokio::test]
async fn attacks_set_fields_that_exist() {
    let contract = Contract::load();
    for attack in ATTACKS.iter().filter(|attack| attack.body.starts_with('{')) {
        let info = method(&contract, attack.what);
        let mut fields = BTreeSet::new();
        names(&info.input, &mut fields, 0);
        let body: Json = serde_json::from_str(attack.body).expect("JSON");
        for member in members(&body) {
            assert!(fields.contains(&member), "{} [{}]: there is no field {member}", attack.what, attack.by);
        }
    }
}

fn names(message: &MessageDescriptor, found: &mut BTreeSet<String>, depth: usize) {
    for field in message.fields() {
        found.insert(field.json_name().into());
        match field.kind() {
            Kind::Message(inner) if depth < 4 && !field.is_map() => names(&inner, found, depth + 1),
            _ => {}
        }
    }
}

fn members(value: &Json) -> Vec<String> {
    match value {
        Json::Object(object) => object
            .iter()
            .filter(|(name, _)| name.as_str() != "INGESTER")
            .flat_map(|(name, inner)| [name.clone()].into_iter().chain(members(inner)))
            .collect(),
        Json::Array(items) => items.iter().flat_map(members).collect(),
        _ => Vec::new(),
    }
}
