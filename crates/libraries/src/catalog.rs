//! Filling the catalogue: the operator takes in what he has, in batches. What is known and says the same changes nothing.

mod stored;
mod summary;

use std::collections::BTreeSet;

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::catalog::ImportVersions;
use bowline_contract::v1::libraries::SourceType;
use bowline_core::{Error, FieldViolation, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, EventBody, Handlers, ResourceSnapshot, handler};
use bowline_store::WriteTx;

use super::ecosystems::Language;
use stored::Stored;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.validate::<ImportVersions>(violations).write::<ImportVersions>(handler!(import))
}

/// A version to take in.
struct Given<'a> {
    artifact: String,
    language: Language,
    name: String,
    version: &'a own::PackageVersion,
}

impl<'a> Given<'a> {
    fn of(version: &'a own::PackageVersion) -> Result<Given<'a>> {
        let language = Language::required("ecosystem", version.ecosystem)?;
        let name = language.normalized(&version.name);
        Ok(Given { artifact: language.artifact_id(&name), language, name, version })
    }

    fn key(&self) -> (&str, &str, i32) {
        (&self.artifact, &self.version.version, self.version.source)
    }
}

/// What is wrong with versions, beyond what the rules of their fields say.
fn violations(request: &own::ImportVersionsRequest) -> Vec<FieldViolation> {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, version) in request.versions.iter().enumerate() {
        let mut refuse = |field: &str, description: String| {
            wrong.push(FieldViolation { field: format!("versions[{index}].{field}"), description });
        };
        validate(version, &mut refuse);
        if let Ok(given) = Given::of(version)
            && !seen.insert((given.artifact.clone(), version.version.as_str(), version.source))
        {
            refuse("version", "is in the request twice".into());
        }
    }
    wrong
}

fn validate(version: &own::PackageVersion, refuse: &mut impl FnMut(&str, String)) {
    let language = Language::required("ecosystem", version.ecosystem);
    match &language {
        Err(_) => {
            refuse(
                "ecosystem",
                "must be JAVA, PYTHON, JAVASCRIPT or GO; a remediated version says so by its source".into(),
            );
        }
        Ok(language) => {
            if let Err(description) = language.validate_name(&version.name) {
                refuse("name", description.into());
            }
        }
    }
    if version.version.contains(char::is_whitespace) || version.version.contains('/') {
        refuse("version", "must not have spaces or slashes".into());
    }
    if version.source() == SourceType::Unspecified {
        refuse("source", "must say where the version was made".into());
    }
    if version.files.is_empty() {
        refuse("files", "a version has one file at least".into());
    }
    let mut names = BTreeSet::new();
    for file in &version.files {
        if file.name.contains('/') || !names.insert(&file.name) {
            refuse("files", format!("{:?} has a directory, or is there twice", file.name));
        }
        if file.size_bytes < 0 {
            refuse("files", format!("{:?} has a negative length", file.name));
        }
    }
    if !version.npm_manifest.is_empty() {
        let is_object =
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&version.npm_manifest).is_ok();
        if !is_object || !matches!(language, Ok(Language::JavaScript)) {
            refuse("npmManifest", "must be the JSON object of an npm package".into());
        }
    }
    if version.npm_file_count < 0 {
        refuse("npmFileCount", "must not be negative".into());
    }
}

async fn import(
    tx: &mut WriteTx,
    call: &Authorized<own::ImportVersionsRequest>,
) -> Result<Changed<own::ImportVersionsResponse>> {
    let request = call.request();
    let given: Vec<Given<'_>> = request.versions.iter().map(Given::of).collect::<Result<_>>()?;
    let stored = Stored::load(tx, &given).await?;
    let outcomes: Vec<own::ImportOutcome> = given.iter().map(|given| stored.outcome(given)).collect();
    let response = own::ImportVersionsResponse { outcomes: outcomes.iter().map(|outcome| *outcome as i32).collect() };
    let news: Vec<(&Given<'_>, own::ImportOutcome)> =
        given.iter().zip(outcomes).filter(|(_, outcome)| *outcome != own::ImportOutcome::Unchanged).collect();
    if request.dry_run || news.is_empty() {
        return Ok(Changed::nothing(response));
    }
    for (given, _) in &news {
        stored.write(tx, given, call.now()).await?;
    }
    let changes = summary::refresh(tx, call, &news).await?;
    let count = |wanted| news.iter().filter(|(_, outcome)| *outcome == wanted).count() as i32;
    let summary =
        own::CatalogImport { created: count(own::ImportOutcome::Created), updated: count(own::ImportOutcome::Updated) };
    let event = event_of_catalog(call, &summary);
    Ok(Changed { event: Some(event), ..Changed::many(changes, response) })
}

/// The event of a change of the catalogue, which lies in no organization: it is about the identity that changed it.
pub(super) fn event_of_catalog<T, M: prost::Message + prost::Name>(call: &Authorized<T>, body: &M) -> EventBody {
    EventBody {
        subject: call.principal().subject().into(),
        group: String::new(),
        body: ResourceSnapshot::of(body),
        extensions: Vec::new(),
    }
}

/// Where the audit log puts something of the catalogue: below the root of the operator.
pub(super) fn audit_name<T>(call: &Authorized<T>, id: &str) -> Result<Uidp> {
    let root = Uidp::parse(call.principal().subject()).map_err(Error::internal)?;
    let digest = bowline_authn::crypto::sha256(id.as_bytes());
    Ok(root.child_from(std::array::from_fn(|index| digest[index])))
}
