//! What a write makes of a repository's fields: masks, what only the operator sets, what is refused.

use bowline_contract::v2::registry as v2;
use bowline_core::{Error, FieldViolation, Result};
use bowline_pipeline::Mask;

/// The last second that the wire can say, 9999-12-31T23:59:59Z.
const NEVER: prost_types::Timestamp = prost_types::Timestamp { seconds: 253_402_300_799, nanos: 0 };

/// A new repository as the caller wants it.
///
/// # Errors
/// INVALID_ARGUMENT naming the fields.
pub(super) fn of_new(mut given: v2::Repo, by_operator: bool) -> Result<v2::Repo> {
    if let Some(sync) = given.sync_config.as_mut() {
        if !by_operator {
            keep_server_fields(sync, None);
        }
        expire_at_last(sync);
    }
    refuse(validate(&given))?;
    Ok(given)
}

/// A repository after a change of what the mask covers.
///
/// # Errors
/// INVALID_ARGUMENT naming the fields.
pub(super) fn changed(before: &v2::Repo, given: &v2::Repo, mask: &Mask, by_operator: bool) -> Result<v2::Repo> {
    let mut after = before.clone();
    apply(&mut after, given, mask, by_operator);
    let mut violations = validate(&after);
    violations.extend(validate_inherited(before, &after));
    refuse(violations)?;
    Ok(after)
}

fn refuse(violations: Vec<FieldViolation>) -> Result<()> {
    if violations.is_empty() { Ok(()) } else { Err(Error::invalid(violations)) }
}

fn apply(after: &mut v2::Repo, given: &v2::Repo, mask: &Mask, by_operator: bool) {
    let v2::Repo {
        name,
        description,
        catalog_tier,
        bundles,
        aliases,
        active_tags,
        sync_config,
        custom_overlay,
        // Of the server alone.
        uid: _,
        create_time: _,
        update_time: _,
    } = given;
    field(mask, "name", &mut after.name, name);
    field(mask, "description", &mut after.description, description);
    let stays_synchronized = after.sync_config.is_some() && sync_config.is_some();
    let inherits = mask.is_whole() && stays_synchronized;
    inherited(mask, "catalog_tier", &mut after.catalog_tier, catalog_tier, inherits);
    inherited(mask, "bundles", &mut after.bundles, bundles, inherits);
    inherited(mask, "aliases", &mut after.aliases, aliases, inherits);
    inherited(mask, "active_tags", &mut after.active_tags, active_tags, inherits);
    apply_sync(&mut after.sync_config, sync_config.as_ref(), mask, by_operator);
    apply_overlay(&mut after.custom_overlay, custom_overlay.as_ref(), mask);
}

fn apply_sync(after: &mut Option<v2::SyncConfig>, given: Option<&v2::SyncConfig>, mask: &Mask, by_operator: bool) {
    let stored = after.clone();
    message(mask, "sync_config", after, given, |after, given| {
        field(mask, "sync_config.source", &mut after.source, &given.source);
        field(mask, "sync_config.google", &mut after.google, &given.google);
        field(mask, "sync_config.amazon", &mut after.amazon, &given.amazon);
        field(mask, "sync_config.azure", &mut after.azure, &given.azure);
    });
    if let Some(after) = after.as_mut() {
        if !by_operator {
            keep_server_fields(after, stored.as_ref());
        }
        expire_at_last(after);
    }
}

/// A synchronization ends when the operator says, else never: clients count on a time being there.
fn expire_at_last(sync: &mut v2::SyncConfig) {
    sync.expiration_time.get_or_insert(NEVER);
}

/// What the contract calls output-only stays as it is stored.
fn keep_server_fields(sync: &mut v2::SyncConfig, stored: Option<&v2::SyncConfig>) {
    sync.unique_tags = stored.is_some_and(|stored| stored.unique_tags);
    sync.grace_period = stored.is_some_and(|stored| stored.grace_period);
    sync.expiration_time = stored.and_then(|stored| stored.expiration_time);
    sync.apko_overlay = stored.map(|stored| stored.apko_overlay.clone()).unwrap_or_default();
}

fn apply_overlay(after: &mut Option<v2::CustomOverlay>, given: Option<&v2::CustomOverlay>, mask: &Mask) {
    message(mask, "custom_overlay", after, given, |after, given| {
        let contents = given.contents.as_ref();
        message(mask, "custom_overlay.contents", &mut after.contents, contents, |after, given| {
            field(mask, "custom_overlay.contents.packages", &mut after.packages, &given.packages);
            let (into, from) = (&mut after.runtime_repositories, &given.runtime_repositories);
            field(mask, "custom_overlay.contents.runtime_repositories", into, from);
            let (into, from) = (&mut after.runtime_keyring, &given.runtime_keyring);
            field(mask, "custom_overlay.contents.runtime_keyring", into, from);
        });
        field(mask, "custom_overlay.environment", &mut after.environment, &given.environment);
        field(mask, "custom_overlay.annotations", &mut after.annotations, &given.annotations);
        let accounts = given.accounts.as_ref();
        message(mask, "custom_overlay.accounts", &mut after.accounts, accounts, |after, given| {
            field(mask, "custom_overlay.accounts.run_as", &mut after.run_as, &given.run_as);
            field(mask, "custom_overlay.accounts.users", &mut after.users, &given.users);
            field(mask, "custom_overlay.accounts.groups", &mut after.groups, &given.groups);
        });
        let certificates = given.certificates.as_ref();
        message(mask, "custom_overlay.certificates", &mut after.certificates, certificates, |after, given| {
            field(mask, "custom_overlay.certificates.additional", &mut after.additional, &given.additional);
            field(mask, "custom_overlay.certificates.providers", &mut after.providers, &given.providers);
        });
    });
}

/// Takes over a field that the mask covers.
fn field<T: Clone>(mask: &Mask, path: &str, after: &mut T, given: &T) {
    if mask.covers(path) {
        after.clone_from(given);
    }
}

/// The same for a field that a synchronized repository has from its source: a replacement that leaves it out
/// does not mean to change it.
fn inherited<T: Clone + Default + PartialEq>(mask: &Mask, path: &str, after: &mut T, given: &T, inherits: bool) {
    if !(inherits && *given == T::default()) {
        field(mask, path, after, given);
    }
}

/// Takes over a message whole, or the parts of it that the mask names.
fn message<T: Clone + Default>(
    mask: &Mask,
    path: &str,
    after: &mut Option<T>,
    given: Option<&T>,
    parts: impl FnOnce(&mut T, &T),
) {
    if mask.is_whole() || is_covered_by(mask, path) {
        *after = given.cloned();
    } else if mask.names(path) {
        parts(after.get_or_insert_default(), given.unwrap_or(&T::default()));
    }
}

/// Whether the mask has the path itself, rather than parts of it.
fn is_covered_by(mask: &Mask, path: &str) -> bool {
    mask.paths().iter().any(|named| named == path)
}

fn violation(field: impl Into<String>, description: impl Into<String>) -> FieldViolation {
    FieldViolation { field: field.into(), description: description.into() }
}

/// What the field rules of the contract cannot say.
fn validate(repo: &v2::Repo) -> Vec<FieldViolation> {
    let mut violations = Vec::new();
    if repo.sync_config.as_ref().is_some_and(|sync| sync.source.is_empty()) {
        violations.push(violation("sync_config.source", "source is required"));
    }
    let Some(overlay) = &repo.custom_overlay else {
        return violations;
    };
    for key in overlay.environment.keys().filter(|key| key.starts_with(RESERVED_VARIABLES)) {
        let description = format!("names that begin with {RESERVED_VARIABLES} are reserved");
        violations.push(violation(format!("customOverlay.environment[{key}]"), description));
    }
    for key in overlay.annotations.keys() {
        if let Some(reserved) = RESERVED_ANNOTATIONS.iter().find(|reserved| key.starts_with(**reserved)) {
            let description = format!("keys that begin with {reserved} are reserved");
            violations.push(violation(format!("customOverlay.annotations[{key}]"), description));
        }
    }
    violations
}

const RESERVED_VARIABLES: &str = "CHAINGUARD_";
const RESERVED_ANNOTATIONS: &[&str] = &["dev.chainguard.", "org.opencontainers."];

/// A synchronized repository has some fields from its source.
fn validate_inherited(before: &v2::Repo, after: &v2::Repo) -> Vec<FieldViolation> {
    if before.sync_config.is_none() || after.sync_config.is_none() {
        return Vec::new();
    }
    let fields = [
        ("catalogTier", before.catalog_tier != after.catalog_tier),
        ("bundles", before.bundles != after.bundles),
        ("aliases", before.aliases != after.aliases),
        ("activeTags", before.active_tags != after.active_tags),
    ];
    let refused = "comes from the source of a synchronized repository and cannot be changed here";
    fields.into_iter().filter(|(_, differs)| *differs).map(|(field, _)| violation(field, refused)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(paths: &[&str]) -> Mask {
        Mask::new(paths.iter().map(ToString::to_string).collect())
    }

    fn synchronized() -> v2::Repo {
        let sync = v2::SyncConfig {
            source: "a/b".into(),
            google: "g".into(),
            unique_tags: true,
            grace_period: true,
            apko_overlay: "x".into(),
            expiration_time: Some(prost_types::Timestamp { seconds: 5, nanos: 0 }),
            ..v2::SyncConfig::default()
        };
        v2::Repo { name: "n".into(), bundles: vec!["ai".into()], sync_config: Some(sync), ..v2::Repo::default() }
    }

    fn plain() -> v2::Repo {
        v2::Repo { name: "n".into(), description: "d".into(), bundles: vec!["ai".into()], ..v2::Repo::default() }
    }

    fn fields(result: Result<v2::Repo>) -> String {
        result.unwrap_err().message().to_owned()
    }

    #[test]
    fn only_named_fields_change() {
        let given = v2::Repo { name: "m".into(), description: "e".into(), ..v2::Repo::default() };
        let after = changed(&plain(), &given, &mask(&["description"]), false).unwrap();
        assert_eq!(after, v2::Repo { description: "e".into(), ..plain() });
        let after = changed(&plain(), &given, &Mask::whole(), false).unwrap();
        assert_eq!(after, given);
    }

    #[test]
    fn parts_of_messages_change() {
        let given = v2::Repo {
            sync_config: Some(v2::SyncConfig { source: "c".into(), google: "h".into(), ..v2::SyncConfig::default() }),
            ..v2::Repo::default()
        };
        let after = changed(&synchronized(), &given, &mask(&["sync_config.google"]), false).unwrap();
        let mut expected = synchronized();
        expected.sync_config.as_mut().unwrap().google = "h".into();
        assert_eq!(after, expected);

        let overlay = v2::CustomOverlay {
            contents: Some(v2::custom_overlay::ImageContents { packages: vec!["jq".into()], ..Default::default() }),
            environment: [("A".to_owned(), "1".to_owned())].into(),
            ..Default::default()
        };
        let given = v2::Repo { custom_overlay: Some(overlay), ..v2::Repo::default() };
        let after = changed(&plain(), &given, &mask(&["custom_overlay.contents.packages"]), false).unwrap();
        let overlay = after.custom_overlay.unwrap();
        assert_eq!(overlay.contents.unwrap().packages, ["jq"]);
        assert!(overlay.environment.is_empty());
    }

    #[test]
    fn sync_fields_of_the_server_are_kept() {
        let mut given = synchronized();
        given.sync_config = Some(v2::SyncConfig { source: "c".into(), ..v2::SyncConfig::default() });
        let kept = changed(&synchronized(), &given, &Mask::whole(), false).unwrap().sync_config.unwrap();
        let stored = synchronized().sync_config.unwrap();
        assert_eq!(kept, v2::SyncConfig { source: "c".into(), google: String::new(), ..stored.clone() });
        let written = changed(&synchronized(), &given, &Mask::whole(), true).unwrap().sync_config;
        assert_eq!(written, given.sync_config.map(|sync| v2::SyncConfig { expiration_time: Some(NEVER), ..sync }));
        let created = of_new(synchronized(), false).unwrap().sync_config.unwrap();
        let own = v2::SyncConfig { expiration_time: Some(NEVER), ..Default::default() };
        assert_eq!(created, v2::SyncConfig { source: "a/b".into(), google: "g".into(), ..own });
        assert_eq!(of_new(synchronized(), true).unwrap().sync_config, Some(stored));
    }

    #[test]
    fn inherited_fields_are_refused() {
        let mut given = v2::Repo { catalog_tier: 2, bundles: vec!["fips".into()], ..synchronized() };
        let refused = fields(changed(&synchronized(), &given, &Mask::whole(), false));
        assert!(refused.contains("catalogTier:") && refused.contains("bundles:"), "{refused}");
        let refused = fields(changed(&synchronized(), &v2::Repo::default(), &mask(&["bundles"]), false));
        assert!(refused.contains("bundles:"), "{refused}");
        (given.catalog_tier, given.bundles) = (0, Vec::new());
        assert_eq!(changed(&synchronized(), &given, &Mask::whole(), false).unwrap(), synchronized());
        given.sync_config = None;
        assert!(changed(&synchronized(), &given, &Mask::whole(), false).unwrap().bundles.is_empty());
    }

    #[test]
    fn reserved_overlay_keys_and_missing_sources_are_refused() {
        let overlay = v2::CustomOverlay {
            environment: [("CHAINGUARD_X", ""), ("X_CHAINGUARD_", "")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            annotations: [("dev.chainguard.a", ""), ("org.opencontainers.b", ""), ("org.example", "")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..Default::default()
        };
        let repo = v2::Repo { custom_overlay: Some(overlay), sync_config: Some(Default::default()), ..plain() };
        let found: Vec<String> = validate(&repo).into_iter().map(|violation| violation.field).collect();
        assert_eq!(
            found,
            [
                "sync_config.source",
                "customOverlay.environment[CHAINGUARD_X]",
                "customOverlay.annotations[dev.chainguard.a]",
                "customOverlay.annotations[org.opencontainers.b]",
            ]
        );
    }
}
