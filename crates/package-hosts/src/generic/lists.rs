//! Lists as JSON: the versions under a name, and the files of a version.

use bowline_core::rfc3339::{self, Digits};
use bowline_libraries::hosting::{GenericFiles, GenericVersions, Withheld, generic_purl};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::target::versioned;

/// The version that a page of versions begins after, if the query of an address names one.
///
/// # Errors
/// It is no version.
pub(super) fn after(query: Option<&str>) -> Result<Option<String>, String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let Some((_, after)) = pairs.find(|(name, _)| name == "after") else { return Ok(None) };
    versioned(&after).map_err(|wrong| format!("after: {wrong}"))?;
    Ok(Some(after.into_owned()))
}

/// A page of versions.
pub(super) fn versions(name: &str, listed: &GenericVersions) -> String {
    let versions = listed.versions.iter().map(|item| {
        json!({
            "version": item.version,
            "file_count": item.file_count,
            "size_bytes": item.size_bytes,
            "published_at": rfc3339::text(item.published_at, Digits::Fewest),
        })
    });
    let mut list = json!({
        "name": name,
        "versions": versions.collect::<Vec<_>>(),
        "withheld": listed.withheld.iter().map(|(version, why)| withheld("version", version, why)).collect::<Vec<_>>(),
    });
    if let Some(last) = &listed.next_after {
        list["next_after"] = last.as_str().into();
    }
    list.to_string()
}

/// The files of a version.
pub(super) fn files((name, version): (&str, &str), listed: &GenericFiles) -> String {
    let files = listed.files.iter().map(|file| {
        json!({
            "path": file.path,
            "size_bytes": file.size_bytes,
            "sha256": file.sha256,
            "published_at": rfc3339::text(file.published_at, Digits::Fewest),
        })
    });
    json!({
        "name": name,
        "version": version,
        "purl": generic_purl(name, version),
        "files": files.collect::<Vec<_>>(),
        "withheld": listed.withheld.iter().map(|(path, why)| withheld("path", path, why)).collect::<Vec<_>>(),
    })
    .to_string()
}

/// What a policy withholds, and why.
fn withheld(member: &str, named: &str, why: &Withheld) -> Value {
    json!({ member: named, "reason": why.reason, "message": why.sentence })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_after_a_version() {
        assert_eq!(after(None), Ok(None));
        assert_eq!(after(Some("other=1")), Ok(None));
        assert_eq!(after(Some("after=1.0%2Bb")), Ok(Some("1.0+b".into())));
        for wrong in ["after=", "after=1.0+b", "after=../1"] {
            assert!(after(Some(wrong)).expect_err(wrong).starts_with("after: the version"), "{wrong}");
        }
    }
}
